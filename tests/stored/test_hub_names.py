"""What a hub of an older version stored by name is found, read and written under the same names today.

`hub_panel.py` made `hub_names.json`, once, with the version before; `hub.toml` sets each setting that it knew.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.hub.house import Clock
from tests.stored import hub_panel
from tests.stored.renaming import renamed

HERE = Path(__file__).parent
STORED: dict[str, Any] = json.loads((HERE / "hub_names.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return json.loads(json.dumps(hub_panel.names()))  # type: ignore[no-any-return]


def test_a_request_is_known_again_by_its_key(now: dict[str, Any]) -> None:
    """A form or a program that sends the same once more is answered, and nothing is charged again."""
    assert now["requests"] == STORED["requests"]


def test_a_job_is_written_as_it_was(now: dict[str, Any]) -> None:
    """A worker of either version reads what the other was told to do, and what it noted of its charges."""
    assert now["jobs"] == STORED["jobs"]


@pytest.mark.parametrize("what", ["audit log", "files"])
def test_entries_and_files_are_called_what_they_were(now: dict[str, Any], what: str) -> None:
    assert set(STORED[what]) <= set(now[what])


@pytest.mark.parametrize("what", ["purposes", "bound", "of the ledger"])
def test_keys_are_derived_for_and_bound_to_what_they_were(now: dict[str, Any], what: str) -> None:
    assert set(STORED["keys"][what]) <= set(now["keys"][what])


@pytest.mark.parametrize("what", sorted(set(STORED["listed"]) - {"fields"}))
def test_no_name_that_others_say_is_gone(now: dict[str, Any], what: str) -> None:
    """An address is still there where one with a parameter answers it: `/models/{number}/{file}` answers `/models/7/card`."""
    gone = set(STORED["listed"][what]) - set(now["listed"][what])
    wider = [re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(known))) for known in now["listed"][what]]
    assert [name for name in gone if what != "addresses" or not any(known.fullmatch(name) for known in wider)] == []


def test_no_field_of_the_api_is_gone(now: dict[str, Any]) -> None:
    told = {line.partition(":")[0]: set(line.split()) for line in now["listed"]["fields"]}
    for line in STORED["listed"]["fields"]:
        route = line.partition(":")[0]
        assert route in told
        assert set(line.split()) <= told[route], route


def test_every_setting_of_an_old_file_is_read() -> None:
    found = hub_panel.settings()
    assert {name: found.get(name) for name in STORED["settings"]} == STORED["settings"]
    told = (HERE / "hub.toml").read_text(encoding="utf-8")
    assert all(f"\n{name} = " in told for name in STORED["settings"])


def test_a_stored_answer_opens_in_every_format(tmp_path: Path) -> None:
    said, house = hub_panel.unpacked(tmp_path, Clock())
    try:
        for form, before in STORED["downloads"].items():
            assert hub_panel.text_of(form, hub_panel.file(house, said, form)) == before
        table = pl.read_parquet(io.BytesIO(hub_panel.file(house, said, "parquet")))
        assert table.columns == ["sex", "n", "n_margin", "age", "age_margin"]
        assert table["n"].to_list() == said["answer"]["columns"]["n"]
    finally:
        house.close()


def test_nothing_that_a_hub_stores_follows_the_name_of_a_class(now: dict[str, Any], tmp_path: Path) -> None:
    """Under other names of all classes and modules, and other words of `repr`, the same is written and read."""
    assert now  # the application of all tests is built, so that none of it bears the other names afterwards
    with renamed():
        again = json.loads(json.dumps(hub_panel.names()))
        assert {what: again[what] for what in ("requests", "jobs")} == {what: STORED[what] for what in ("requests", "jobs")}
        assert STORED["settings"].items() <= again["settings"].items()
        for what in ("audit log", "files"):
            assert set(STORED[what]) <= set(again[what])
        for what, before in STORED["keys"].items():
            assert set(before) <= set(again["keys"][what])
        assert set(STORED["listed"]["columns"]) <= set(again["listed"]["columns"])
        test_a_stored_answer_opens_in_every_format(tmp_path)
