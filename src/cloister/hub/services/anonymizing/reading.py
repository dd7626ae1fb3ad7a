"""Which trials and released tables somebody may see: their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cloister.hub.problems import Missing
from cloister.hub.records.anonymizing import AnonymizedTable, Trial
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.services.asking.sources import check_derived, newest_open
from cloister.hub.services.catalogue.live import source_of
from cloister.hub.spreadsheets import safe
from cloister.tables.public_values import read

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.tables.sources import Source

__all__ = ["columns_of", "csv_of", "seen_table", "seen_trial", "source_of_table", "tables_of"]


def seen_trial(hub: Hub, db: Db, caller: Caller, number: str) -> tuple[Trial, dict[str, Any]]:
    """A trial of the caller's own on a data set that is still theirs, and what it found; any other is missing."""
    row = db.scalar(select(Trial).where(Trial.id == number, Trial.person == caller.id))
    data_set = None if row is None else db.get(DataSet, row.data_set)
    if row is None or data_set is None or data_set.state == "deleted" or data_set.owner != caller.id:
        raise Missing("There is no such trial", why="it does not exist, or is not yours", instead="/anonymise")
    found: dict[str, Any] = json.loads(hub.keys.unwrap(row.wrapped, row.about))
    return row, found


def seen_table(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see") -> AnonymizedTable:
    """A released table of the caller's own."""
    mine = (AnonymizedTable.id == number) & (AnonymizedTable.person == caller.id)
    row = db.scalar(select(AnonymizedTable).where(mine))
    if row is None:
        raise Missing("There is no such table", why="it does not exist, or is not yours", instead="/anonymised")
    check_derived(hub, db, caller, row, action)
    return row


def tables_of(hub: Hub, db: Db, caller: Caller, *, after: str = "", limit: int = 50) -> list[AnonymizedTable]:
    """The newest that somebody may see now; `after` is the id of the last one that was seen."""
    mine = AnonymizedTable.person == caller.id
    last = db.scalar(select(AnonymizedTable).where(AnonymizedTable.id == after, mine)) if after else None
    return newest_open(hub, db, caller, AnonymizedTable, mine, last=last, limit=limit)


def source_of_table(hub: Hub, db: Db, row: AnonymizedTable) -> tuple[str, Source]:
    """The stored rows of a released table, and the name of the data set that they became."""
    made = db.get(DataSet, row.made)
    version = (
        None
        if made is None
        else db.scalar(select(DataSetVersion).where(DataSetVersion.data_set == made.id, DataSetVersion.number == made.version))
    )
    if made is None or made.state == "deleted" or version is None:
        raise Missing("The rows are gone", why="the data set that they became was deleted", instead="a new release")
    source = source_of(hub, made, version)
    return made.name, source  # type: ignore[return-value]


def columns_of(source: Source) -> list[str]:
    """The columns, in their order."""
    return list(source.schema)


def csv_of(name: str, source: Source) -> Iterator[bytes]:
    """The rows as CSV, in pieces; what a spreadsheet would compute stays a text."""
    import csv
    import io

    names = columns_of(source)
    columns = read(name, source, names)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([safe(each) for each in names])
    for number, row in enumerate(zip(*columns, strict=True)):
        writer.writerow(["" if cell is None else safe(cell) if isinstance(cell, str) else cell for cell in row])
        if number % 5000 == 4999:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()
