"""A guest that asks gets the answers of the door, whatever holds the rows: an engine, sites, or masked cells and a key holder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.together import MemoryJournal, Site, SiteAgent
from tests.engines.conftest import Loader
from tests.session.test_parts import NONE
from tests.together.joint_tables import MUCH
from tests.together.sealed.cells import ages, holder_of
from tests.together.sealed.test_sealed import session_of
from tests.together.wired import COLUMNS, coordinator_of, key_of, running

ROWS: dict[str, list[Any]] = {"age": [20, 30, 40, 50, 60], "sex": ["F", "F", "M", "M", "M"]}
CODE = """
def f(about):
    n = ask(f"SELECT sex, COUNT(*) AS n FROM {about['table']} GROUP BY sex", "SPEND")["columns"]
    refused = []
    for question in ("SELECT age FROM people", "SELECT COUNT(*) AS n FROM people; SELECT 1", "SELECT COUNT(*) AS n FROM nowhere"):
        try:
            ask(question, "SPEND")
        except ValueError:
            refused.append(question)
    return [sorted(zip(n["sex"], n["n"])), len(refused)]
"""


def answered(session: Any) -> Any:
    """What the guest returns of answers without noise, within a share twice as large."""
    guest = cl.Guest(code=CODE.replace("SPEND", str(NONE)), entry="f", way="ask", inputs=["sex"])
    found = guest.run(session, "people", 2 * NONE)
    assert found.why == ""
    assert len(found.asked) == 4
    assert found.cost == session.spent
    return found.values


EXPECTED = [[["F", 2], ["M", 3]], 3]


def test_on_each_engine(loader: Loader) -> None:
    table = cl.PrivateTable(loader.load(ROWS, {"age": "integer", "sex": "text"}), columns=COLUMNS)
    with cl.Session({"people": table}, budget=cl.PureDP(10 * NONE)) as session:
        assert answered(session) == EXPECTED


@contextmanager
def joint() -> Iterator[Any]:
    """Three sites, each with some of the rows."""
    parts = {"a": slice(0, 2), "b": slice(2, 3), "c": slice(3, 5)}
    held = {name: {column: values[part] for column, values in ROWS.items()} for name, part in parts.items()}
    sites = [
        Site(name, cl.PrivateTable(rows, columns=COLUMNS), budget=MUCH, key=key_of(name), journal=MemoryJournal())
        for name, rows in held.items()
    ]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running([SiteAgent(site) for site in sites], hub):
        people = cl.JointTable(coordinator.sites, COLUMNS, overlap="none")
        with cl.Session({"people": people}, budget=cl.PureDP(10 * NONE)) as session:
            yield session


def test_on_tables_of_several_sites() -> None:
    with joint() as session:
        assert answered(session) == EXPECTED


def test_on_masked_cells_and_a_key_holder(tmp_path: Path) -> None:
    holder = holder_of()
    with ExitStack() as stack:
        ages(tmp_path, holder, ROWS)
        session = stack.enter_context(session_of(tmp_path, holder, cl.PureDP(10 * NONE)))
        assert answered(session) == EXPECTED


def test_by_blocks_there_are_no_rows_to_be_had_of_several_sites() -> None:
    """Nothing exact exists outside of a site: refused by name, and nothing is spent."""
    guest = cl.Guest(code="def f(rows): return [1]", entry="f", inputs=["age"], output=cl.Vector([(0, 1)]), blocks=5)
    with joint() as session:
        with pytest.raises(cl.CloisterError, match="people"):
            guest.run(session, "people", 1)
        assert session.spent == cl.PureDP(0)
