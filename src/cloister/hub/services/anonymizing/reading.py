"""Which trials and released tables somebody may see.

A trial is exact: it is its owner's alone. A released table is its owner's, and of those whom a grant on the data set that it
became lets see or download releases, the whole of it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from starlette.responses import Response, StreamingResponse

from cloister.errors import AccessDenied
from cloister.hub.problems import Conflict, Missing
from cloister.hub.records.anonymizing import TRIAL_KEPT, AnonymizedTable, Trial
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.releases.derived import check_derived, newest_open
from cloister.hub.services.access import allowed, check, context_of, data_set_object, facts_of
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.services.catalogue import source_of
from cloister.hub.spreadsheets import safe
from cloister.tables.relations.public_values import read

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.tables.sourcing.sources import Source

__all__ = ["csv_digest", "csv_of", "order_of", "rows_sent", "seen_table", "seen_trial", "source_of_table", "tables_of"]


def seen_trial(hub: Hub, db: Db, caller: Caller, number: str) -> tuple[Trial, dict[str, Any]]:
    """A trial of the caller's own on a data set that is still theirs, and what it found, of which version of the rows; any other
    is missing."""
    kept = Trial.created >= hub.now() - TRIAL_KEPT
    row = db.scalar(select(Trial).where(Trial.id == number, Trial.person == caller.id, kept))
    data_set = None if row is None else db.get(DataSet, row.data_set)
    if row is None or data_set is None or data_set.state == "deleted" or data_set.owner != caller.id:
        raise Missing("There is no such trial", why="it does not exist, or is not yours", instead="/anonymise")
    # as when it was ordered: what has been forbidden since is not shown, either
    columns = frozenset(name for name, part in row.order["parts"].items() if part != "identifying")
    context = context_of(hub, caller, purpose=str(row.order["purpose"]), columns={data_set.id: columns})
    check(hub, db, caller, ACTION, data_set_object(data_set), context)
    found: dict[str, Any] = json.loads(hub.keys.unwrap(row.wrapped, row.about))
    return row, found | {"newest": data_set.version, "version": found.get("version", data_set.version)}


def order_of(row: Trial, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a trial was asked for, with its hierarchies."""
    return {**row.order, "hierarchies": found["hierarchies"]}


def seen_table(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see") -> AnonymizedTable:
    """A released table that somebody may see; anyone who may not even do that is told that there is none."""
    row = db.get(AnonymizedTable, number)
    if row is None or not _open_to(hub, db, caller, row, "release.see"):
        raise Missing("There is no such table", why="it does not exist, or is not open to you", instead="/anonymised")
    if row.person != caller.id and not _open_to(hub, db, caller, row, action):
        raise AccessDenied(
            "The table was not downloaded", why="you may view it but not download it", instead="ask the owner of its data set"
        )
    # what binds its source now binds everybody; what is granted on it is asked of others where it is another's now
    check_derived(hub, db, caller, row, action, by=row.person)
    return row


def tables_of(hub: Hub, db: Db, caller: Caller, *, after: str = "", limit: int = 50) -> list[AnonymizedTable]:
    """The newest that somebody may see now; `after` is the id of the last one that was seen."""
    others = db.scalars(select(AnonymizedTable).where(AnonymizedTable.person != caller.id))
    opened = [row.id for row in others if _open_to(hub, db, caller, row, "release.see")]
    wanted = (AnonymizedTable.person == caller.id) | AnonymizedTable.id.in_(opened)
    return newest_open(hub, db, caller, AnonymizedTable, wanted, after=after, limit=limit)


def _open_to(hub: Hub, db: Db, caller: Caller, row: AnonymizedTable, action: str) -> bool:
    """One's own; or one that became a data set of which a grant opens every column and every row."""
    if row.person == caller.id:
        return True
    made, state = facts_of(hub, db).data_sets.get(row.made), db.get(DataSet, row.made)
    if made is None or state is None or state.state != "open":
        return False
    context = context_of(hub, caller, purpose=row.purpose, columns={made.id: made.columns})
    decision = allowed(hub, db, caller, action, made, context)
    narrowed = decision.narrowed
    return decision.allowed and not narrowed.rows and (narrowed.columns is None or narrowed.columns >= made.columns)


def source_of_table(hub: Hub, db: Db, row: AnonymizedTable) -> tuple[str, Source]:
    """The stored rows of a released table, and the name of the data set that they became: those that were certified, whatever
    rows the data set may have besides."""
    made, version = db.get(DataSet, row.made), db.get(DataSetVersion, row.version)
    if made is None or made.state == "deleted" or version is None or version.destroyed is not None:
        raise Missing("The rows are gone", why="the data set that they became was deleted", instead="a new release")
    if (version.data_set, version.digest) != (made.id, row.digest):
        raise Conflict("The rows were not sent", why="they are not those that the certificate is about", instead="a new release")
    source = source_of(hub, made, version)
    return made.name, source  # type: ignore[return-value]


def rows_sent(name: str, source: Source, form: str) -> Response:
    """The rows as a file: CSV in pieces, or Parquet."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    if form == "csv":
        return StreamingResponse(csv_of(name, source), headers=headers, media_type="text/csv; charset=utf-8")
    names = list(source.schema)
    columns = read(name, source, names)
    import polars as pl

    body = io.BytesIO()
    pl.DataFrame([pl.Series(each, values, strict=False) for each, values in zip(names, columns, strict=True)]).write_parquet(body)
    return Response(body.getvalue(), headers=headers, media_type="application/vnd.apache.parquet")


def csv_of(name: str, source: Source) -> Iterator[bytes]:
    """The rows as CSV, in pieces. What a spreadsheet would compute stays a text."""
    names = list(source.schema)
    columns = read(name, source, names)
    return _pieces(names, columns)


def csv_digest(name: str, source: Source) -> str:
    """The SHA-256 of the file that a download of these rows is."""
    found = hashlib.sha256()
    for piece in csv_of(name, source):
        found.update(piece)
    return found.hexdigest()


def _pieces(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([safe(each) for each in names])
    for number, row in enumerate(zip(*columns, strict=True)):
        writer.writerow([_cell(each) for each in row])
        if number % 5000 == 4999:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def _cell(value: Any) -> Any:
    """A value as the file has it.

    >>> _cell("=1+1"), _cell(True), _cell(None), _cell(1.5)
    ("'=1+1", 'true', '', 1.5)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else safe(value) if isinstance(value, str) else value
