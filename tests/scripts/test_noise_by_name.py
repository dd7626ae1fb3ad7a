"""Noise by day follows from the test's name; at night it is fresh, and a coin is found. The product has no such switch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRAWS = """
import os, subprocess, sys
import pytest
from cloister.noise import Random, default_random

READ = Random().word()

@pytest.fixture(scope="module")
def shared():
    return default_random().word()

def test_one(shared):
    print("drawn one", READ, shared, default_random().word(), Random().word())

@pytest.mark.parametrize("value", [1, 2])
def test_two(shared, value):
    print("drawn two", READ, shared, default_random().word(), Random().word())

def test_program():
    code = "from cloister.noise import Random; print('drawn program', Random().word())"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
"""
COIN = """
from cloister.noise import Random

def test_coin():
    assert Random().word() % 2, "tails"

def test_draws_nothing():
    assert True
"""


def run(folder: Path, *more: str, text: str = DRAWS, **environment: str) -> str:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLOISTER_"))}
    kept |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # half of a short run is the import of plugins
    command = [sys.executable, "-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider", "-p", "scripts.noise_by_name", *more]
    return subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False).stdout


def drawn(*about: str, folder: Path, **environment: str) -> list[str]:
    return sorted(line for line in run(folder, *about, **environment).splitlines() if line.startswith("drawn"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What one run of all of them drew."""
    return drawn(folder=tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """And what another one drew."""
    return drawn(folder=tmp_path_factory.mktemp("again"))


def test_a_test_draws_the_same_alone_and_among_others(tmp_path: Path, whole: list[str], again: list[str]) -> None:
    assert len(whole) == 4
    assert len({words for line in whole for words in line.split()[-2:] if words.isdigit()}) == 7  # no word of a test is another's
    assert drawn("-k", "test_two", folder=tmp_path) == [line for line in whole if "two" in line]
    assert [line for line in again if "program" not in line] == [line for line in whole if "program" not in line]


def test_workers_draw_the_same(tmp_path: Path, whole: list[str]) -> None:
    text = DRAWS.replace("def test_one", '@pytest.mark.xdist_group("a/b")\ndef test_one')
    other = run(tmp_path, "-p", "xdist.plugin", "-n", "2", "--dist", "loadgroup", text=text).splitlines()
    pick = [sorted(line for line in each if line.startswith(("drawn one", "drawn two"))) for each in (whole, other)]
    assert pick[0] == pick[1]
    assert len(pick[0]) == 3


@pytest.mark.parametrize("switch", [{"CLOISTER_FRESH": "1"}, {"CLOISTER_TEST_SEED": "7"}])
def test_fresh_noise_and_another_seed_draw_otherwise(tmp_path: Path, whole: list[str], switch: dict[str, str]) -> None:
    other = drawn(folder=tmp_path, **switch)
    assert len(other) == len(whole)
    assert not {words for line in whole for words in line.split()[2:]} & {words for line in other for words in line.split()[2:]}


def test_what_a_program_draws_is_fresh(whole: list[str], again: list[str]) -> None:
    one, other = (next(line for line in lines if "program" in line) for lines in (whole, again))
    assert one != other


def test_a_coin_is_found_at_night(tmp_path: Path) -> None:
    said = run(tmp_path, "--again", "5", text=COIN)
    assert "runs failed" in said
    [line] = (tmp_path / ".cache" / "again.tsv").read_text().splitlines()  # what draws nothing is not run again
    failures, runs, name = line.split("\t")
    assert (failures, name) == ("5", "test_it.py::test_coin")
    assert int(runs) >= 5


def test_the_product_has_no_switch() -> None:
    """Neither a variable of the environment nor a setting foretells noise: two programs draw different words."""
    code = "from cloister.noise import Random, default_random; print(Random().word(), default_random().word())"
    everything = os.environ | {"CLOISTER_FRESH": "0", "CLOISTER_TEST_SEED": "1", "PYTHONHASHSEED": "1"}
    words = [
        subprocess.run([sys.executable, "-c", code], env=everything, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert len(set(" ".join(words).split())) == 4
    for path in (ROOT / "src/cloister/noise").rglob("*.py"):
        assert "environ" not in path.read_text(encoding="utf-8"), path
