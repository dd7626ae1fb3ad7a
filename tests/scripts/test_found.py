"""What broke a property at night is tried first by day, and a run by day writes nothing down."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase, ReadOnlyDatabase

from tests.conftest import FOUND, pytest_runtest_setup


def test_what_a_night_finds_is_tried_first_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One number in five hundred breaks it: 40 draws from the seed of the day miss it, and 2,000 from another find it."""
    tried: list[int] = []

    def run(profile: str, database: ExampleDatabase, seed: int) -> None:
        monkeypatch.setattr("hypothesis.core.global_force_seed", seed)

        @settings(settings.get_profile(profile), database=database)
        @given(st.integers(1, 10_000))
        def holds(number: int) -> None:
            tried.append(number)
            assert number % 500 != 77

        pytest_runtest_setup(cast(Any, SimpleNamespace(obj=holds, path=Path(__file__), name="holds")))
        tried.clear()
        holds()

    kept = DirectoryBasedExampleDatabase(tmp_path)
    run("every commit", ReadOnlyDatabase(kept), 1)
    assert len(tried) == settings.get_profile("every commit").max_examples
    with pytest.raises(AssertionError):
        run("nightly", kept, 2)
    files = sorted(tmp_path.rglob("*"))
    assert files
    with pytest.raises(AssertionError):
        run("every commit", ReadOnlyDatabase(kept), 1)
    assert tried[0] % 500 == 77
    assert sorted(tmp_path.rglob("*")) == files


def test_a_day_reads_what_was_found_and_draws_from_one_seed(pytestconfig: pytest.Config) -> None:
    day, night = settings.get_profile("every commit").database, settings.get_profile("nightly").database
    assert isinstance(day, ReadOnlyDatabase)
    assert night == FOUND
    if settings.get_current_profile_name() == "every commit":
        assert pytestconfig.option.hypothesis_seed


def test_examples_by_day_do_not_depend_on_what_else_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hypothesis.core.global_force_seed", 1)
    tried: list[int] = []

    @settings(max_examples=400, database=None)
    @given(st.integers())
    def draw(number: int) -> None:
        tried.append(number)

    draw()
    first, tried[:] = list(tried), []
    module = ModuleType("odd_numbers")
    module.__file__ = str(tmp_path / "odd_numbers.py")
    Path(module.__file__).write_text(f"ODD = {list(range(1_000_003, 1_000_303))}\n")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    draw()
    assert settings.get_current_profile_name() != "every commit" or tried == first
