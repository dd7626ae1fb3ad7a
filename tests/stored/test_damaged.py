"""One damaged row stops no start, no worker and nobody else: each stored column of JSON, in each way in which it may be wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from click.testing import CliRunner
from sqlalchemy import Table, select, text
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from cloister.cli.hub import hub as command
from cloister.hub.database import Base, Shaped
from cloister.hub.generation import bump
from cloister.hub.platform.catalogue import sweep_masked
from cloister.hub.platform.catalogue.retention import expire
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.services import all_services
from cloister.hub.services.streams.releasing import release_due
from tests.hub.house import Clock, House
from tests.stored.hub_panel import extract
from tests.stored.test_hub import Kept
from tests.tiers import by_day_and_night

all_services()
COLUMNS = [
    (table.name, column.name)
    for table in Base.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, Shaped) and not table.name.startswith("trail")
]
"""Every column of JSON that there is, but those of the audit log, whose lines are chained and are looked at as text."""
WRONG = {
    "truncated": '{"a": [1,',
    "another kind": "17",
    "empty": "{}",
    "later": '{"format": 99, "kind": "later"}',
    "list": "[[1]]",
}
OWN = {
    "published_view.data_sets": ("/published",),
    "published_view.origins": ("/published",),
    "algorithm.settings": ("/api/v1/algorithms", "/algorithms"),
    "joint_survey.questions": ("/api/v1/joint-surveys", "/joint-surveys"),
    "joint_survey.helper": ("/api/v1/joint-surveys", "/joint-surveys"),
    "joint_survey.sums": ("/api/v1/joint-surveys", "/joint-surveys"),
    "api_token.scopes": ("/api/v1/tokens", "/account/tokens"),
}
"""Lists of their own that are looked at, too."""
PAGES = ("", "/datasets", "/datasets?search=people", "/releases", "/jobs", "/models", "/surveys", "/budgets", "/ask", "/learn")
LISTS = ("datasets", "releases", "jobs", "models", "surveys", "budgets")


def opened(folder: Path) -> Kept:
    """The hub of an older version, brought up to date."""
    clock = Clock()
    clock.move(hours=1)
    return Kept(House(folder, clock), json.loads((folder / "said.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("damaged")
    extract(folder)
    found = opened(folder / "hub")
    yield found
    found.house.close()


def row_of(kept: Kept, table: str, column: str) -> tuple[int, Any]:
    """A row in which something stands, and what; made where the stored hub has none."""
    wanted = text(f'SELECT rowid, "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL LIMIT 1')
    with kept.house.hub.database.begin() as db:
        found = db.execute(wanted).first()
        if found is None:
            make(kept, db, Base.metadata.tables[table])
            found = db.execute(wanted).one()
    return (found[0], found[1])


def make(kept: Kept, db: Session, table: Table) -> None:
    """A row with something in each column: what other tables have where it points there, else what its kind allows."""
    given: dict[type, Any] = {str: "open", int: 1, bool: False, bytes: b"x", float: 1.0, datetime: kept.house.hub.now()}
    values = {}
    for column in table.columns:
        known = next(iter(column.foreign_keys), None)
        if isinstance(column.type, Shaped):
            values[column.name] = column.type.shape()
        elif known is not None:
            if db.scalar(select(known.column).limit(1)) is None and not column.nullable:
                make(kept, db, known.column.table)
            values[column.name] = db.scalar(select(known.column).limit(1))
        elif not column.nullable:
            values[column.name] = given[getattr(column.type, "impl_instance", column.type).python_type]
    db.execute(table.insert().values(values))


def write(kept: Kept, table: str, column: str, row: int, value: Any) -> None:
    with kept.house.hub.database.begin() as db:
        db.execute(text(f'UPDATE "{table}" SET "{column}" = :value WHERE rowid = :row'), {"value": value, "row": row})
        bump(db)


@pytest.fixture(scope="module")
def people(kept: Kept) -> dict[str, Any]:
    """A browser of each person, by their id."""
    with kept.house.hub.database.reading() as db:
        known = db.execute(text("SELECT id, email FROM person")).all()
    return {number: kept.browser(email) for number, email in known}


def looked_at(browser: TestClient, *more: str) -> dict[str, int]:
    """Each list, and how it was answered."""
    return {path: browser.get(path or "/").status_code for path in (*PAGES, *(f"/api/v1/{each}" for each in LISTS), *more)}


@by_day_and_night("wrong", 1, len(WRONG))
@pytest.mark.parametrize("column", [f"{table}.{column}" for table, column in COLUMNS])
def test_a_damaged_row_breaks_no_list(kept: Kept, people: dict[str, Any], column: str, wrong: int) -> None:
    table, name = column.split(".")
    row, before = row_of(kept, table, name)
    with kept.house.hub.database.reading() as db:  # whoever can't be read themselves are the only ones who are kept out
        own = db.execute(text("SELECT id FROM person WHERE rowid = :row"), {"row": row}).scalar() if table == "person" else None
    others = {number: browser for number, browser in people.items() if number != own}
    more = OWN.get(column, ())
    shown = {number: looked_at(browser, *more) for number, browser in others.items()}
    by_day = [[*WRONG][crc32(column.encode()) % 2]]  # half of the columns are truncated, half are of another kind
    for label in WRONG if more or wrong > 1 else by_day:
        write(kept, table, name, row, WRONG[label])
        try:
            assert {number: looked_at(browser, *more) for number, browser in others.items()} == shown, label
        finally:
            write(kept, table, name, row, before)


def test_a_hub_whose_every_column_is_damaged_starts_works_and_says_which(kept: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(kept.house.settings.data, folder)
    other = opened(folder)
    damaged = []
    for table, column in COLUMNS:
        write(other, table, column, row_of(other, table, column)[0], WRONG["truncated"])
        damaged.append(f"{table}.{column} of ")
    other.house.close()
    again = opened(folder)
    try:
        while Workers(again.house.hub, 0, Timing(lost=0)).run_one():
            pass
        assert release_due(again.house.hub) == 0
        assert expire(again.house.hub) == []
        sweep_masked(again.house.hub)
    finally:
        again.house.close()
    said = CliRunner().invoke(command, ["check", "--data", str(folder)])
    assert said.exit_code == 1, said.output
    assert [each for each in damaged if each not in said.output] == []
