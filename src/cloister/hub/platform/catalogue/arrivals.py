"""What arrives: a file as it is sent, or a connection as it is made; and what is kept of it until it is a data set.

Nothing that arrives is ever on the disk in plain (`hub/storage`), and only who sent it finds it again. What is not used within a
day is forgotten.
"""

from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from cloister.errors import Conflict, InvalidParameter, Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.catalogue.sources import authorities_of, reached, table_store_of
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import Arrival
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.storage import (
    FOREIGN,
    Allowed,
    Header,
    HeaderColumn,
    Reading,
    Received,
    RefusedUpload,
    StoredTable,
    header_of,
    keep,
    shown_of,
    suggestion,
)
from cloister.tables.declaring.table import check_printable

_PIECE = 2**20
_MOST_WAITING = 20
_DAY = timedelta(hours=24)
_TYPES = {
    "text/csv": "csv",
    "application/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/gzip": "gz",
    "application/zip": "zip",
    "application/x-spss-sav": "sav",
    "application/x-stata-dta": "dta",
    "application/x-sas-data": "sas7bdat",
}


def kind_of(content_type: str, name: str = "") -> str:
    """csv or parquet: by the type that is said, or by the end of the file's name.

    >>> kind_of("text/csv; charset=utf-8"), kind_of("application/octet-stream", "people.PARQUET")
    ('csv', 'parquet')
    """
    if name:
        end = name.lower().rpartition(".")[2]
        known = {"csv": "csv", "txt": "csv", "tsv": "csv", "parquet": "parquet", "pq": "parquet"}
        kind = end if end in FOREIGN else known.get(end)
    else:
        kind = _TYPES.get(content_type.partition(";")[0].strip().lower())
    if kind is None:
        raise RefusedUpload(
            "The upload is invalid",
            why="its kind is missing, or is not one that the hub reads",
            instead="people.csv, people.parquet or people.xlsx; in the API, Content-Type: text/csv",
        )
    return kind


async def received(hub: Hub, kind: str, stream: AsyncIterator[bytes], how: Reading | None = None) -> Received:
    """Everything that comes, encrypted on its way to the disk: all of it or nothing."""
    with await run_in_threadpool(lambda: table_store_of(hub).receiving(kind, how or Reading())) as upload:
        held = bytearray()
        try:
            async for chunk in stream:
                held += chunk
                if len(held) >= _PIECE:
                    await run_in_threadpool(upload.write, bytes(held))
                    held.clear()
        except ClientDisconnect:
            raise RefusedUpload(
                "The upload is invalid", why="it ended before it was whole", instead="the same upload once more"
            ) from None
        if held:
            await run_in_threadpool(upload.write, bytes(held))
        return await run_in_threadpool(upload.finish)


def sent(hub: Hub, source: Path | str | Iterable[bytes], kind: str) -> Received:
    """The same from a file of this machine, or from pieces that are there already."""
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            return table_store_of(hub).receive(iter(lambda: file.read(_PIECE), b""), kind)
    return table_store_of(hub).receive(source, kind)


def kept(hub: Hub, caller: Caller, upload: Received, shown: str = "", how: Reading | None = None) -> Arrival:
    """Write down an upload, with the names and kinds of its columns; one that cannot be looked at is gone. A foreign file becomes
    a CSV file first, and how it was read is said beside its name."""
    how, said = how or Reading(), [shown]
    try:
        if upload.kind in FOREIGN:
            upload = table_store_of(hub).converted(upload, how, shown)
            said.append(how.sheet)
        shown = " · ".join(each for each in (*said, upload.encoding) if each)
        header = table_store_of(hub).look(upload)
        check_printable({each.name: each.kind for each in header.columns})
        with hub.database.begin() as db:
            _check_few(db, caller)
            row = Arrival(
                id=upload.id,
                person=caller.id,
                kind=upload.kind,
                shown=shown[:300],
                digest=upload.digest,
                length=upload.length,
                wrapped=upload.wrapped_key,
                columns=[[each.name, each.kind, each.suggested] for each in header.columns],
                typed={},
                created=hub.now(),
            )
            db.add(row)
            db.flush()
            write(hub, db, caller, "dataset.upload", kind="upload", object_id=row.id, format=row.kind, bytes=row.length)
    except BaseException:
        table_store_of(hub).discard(upload)
        raise
    return row


def connected(hub: Hub, caller: Caller, address: str) -> Arrival:
    """Write down a connection that passes and answers; its address is kept wrapped."""
    if not hub.settings.sources.strip():
        raise InvalidParameter(
            "The connection is invalid",
            why="this hub allows no connection to databases",
            instead='an administrator sets sources = "db.example.org:5432"',
        )
    allowed = Allowed.read(hub.settings.sources)
    address_kept = keep(address, allowed, hub.keys, new_id(), authorities=authorities_of(hub))
    source = reached(hub, address_kept)
    check_printable(source.schema)
    source.lineage()  # a table that nobody can tell the rows of is refused here, and not when all is filled in
    with hub.database.begin() as db:
        _check_few(db, caller)
        row = Arrival(
            id=address_kept.id,
            person=caller.id,
            kind="connection",
            shown=shown_of(address_kept, source)[:300],
            wrapped=address_kept.wrapped,
            columns=[[name, kind, suggestion(kind, ())] for name, kind in source.schema.items()],
            typed={},
            created=hub.now(),
        )
        db.add(row)
        db.flush()
        write(hub, db, caller, "dataset.connect", kind="connection", object_id=row.id, address=row.shown)
    return row


def arrival_of(db: Session, caller: Caller, number: str) -> Arrival:
    """One's own arrival; another person's is not told from none."""
    row = db.get(Arrival, number)
    if row is None or row.person != caller.id:
        raise Missing(
            "There is no such upload", why="it was used, discarded or too old, or is not yours", instead="upload the file again"
        )
    return row


def arrivals_of(db: Session, caller: Caller) -> list[Arrival]:
    """One's own arrivals, the newest first."""
    return list(db.scalars(select(Arrival).where(Arrival.person == caller.id).order_by(Arrival.created.desc())))


def look(hub: Hub, caller: Caller, row: Arrival, rows: int) -> Header:
    """The first rows of an upload, for its sender; the audit log says that they were looked at."""
    if row.kind == "connection":
        raise InvalidParameter(
            "The rows were not shown", why="the hub holds no uploaded file for this entry", instead="look where they come from"
        )
    table = table_in(row)
    if table is None:
        header = table_store_of(hub).look(_received(row), rows=rows)
    else:
        header = header_of(table_store_of(hub).open(table, name=row.shown), rows)
    with hub.database.begin() as db:
        write(hub, db, caller, "dataset.look", kind="upload", object_id=row.id, rows=rows)
        kept_row = db.get(Arrival, row.id)
        if kept_row is not None:
            kept_row.columns = [[each.name, each.kind, each.suggested] for each in header.columns]
    return header


def columns_of(row: Arrival) -> list[HeaderColumn]:
    """What is known of the columns."""
    return [HeaderColumn(name=name, kind=kind, suggested=suggested) for name, kind, suggested in row.columns]


def stored(hub: Hub, row: Arrival) -> Arrival:
    """An upload as a table under a key of its own; written down at once, so that what fails afterwards can be done again."""
    if row.kind == "connection" or row.file:
        return row
    table = table_store_of(hub).add(_received(row), about=f"arrival {row.id}")
    with hub.database.begin() as db:
        found = db.get(Arrival, row.id)
        if found is None:
            table_store_of(hub).destroy(table, lambda: None)
            raise Conflict(
                "The upload was not registered", why="it was used or discarded meanwhile", instead="upload the file again"
            )
        found.file, found.key, found.file_digest, found.file_length = table.file, table.wrapped_key, table.digest, table.length
    return found


def forget(db: Session, row: Arrival) -> None:
    """Delete an arrival, and what was found in it for its owner."""
    db.execute(delete(OwnerView).where(OwnerView.data_set == row.id))
    db.delete(row)


def discard(hub: Hub, caller: Caller, number: str, *, maybe: bool = False) -> None:
    """Forget one's own arrival, and then the table that it was stored as; with `maybe`, one that is not there is none."""
    with hub.database.begin() as db:
        row = None if maybe and db.get(Arrival, number) is None else arrival_of(db, caller, number)
        if row is not None:
            _forgotten(hub, db, row)
            write(hub, db, caller, "dataset.discard", kind="upload", object_id=row.id)
    _destroyed(hub, [row])


def forget_old(hub: Hub) -> int:
    """Forget what nobody used for a day; how many that were."""
    with hub.database.begin() as db:
        old = list(db.scalars(select(Arrival).where(Arrival.created < hub.now() - _DAY)))
        for row in old:
            _forgotten(hub, db, row)
    _destroyed(hub, old)
    return len(old)


def _forgotten(hub: Hub, db: Session, row: Arrival) -> None:
    if row.kind != "connection":
        table_store_of(hub).discard(_received(row))
    forget(db, row)


def _destroyed(hub: Hub, rows: Iterable[Arrival | None]) -> None:
    """Their stored tables, once it is committed that they are forgotten."""
    for row in rows:
        table = None if row is None else table_in(row)
        if table is not None:
            table_store_of(hub).destroy(table, lambda: None)


def _received(row: Arrival) -> Received:
    return Received(id=row.id, kind=row.kind, digest=row.digest, length=row.length, wrapped_key=row.wrapped)


def table_in(row: Arrival) -> StoredTable | None:
    """The table that an upload was stored as, where it was."""
    if not row.file:
        return None
    digest, length = row.file_digest, row.file_length
    return StoredTable(file=row.file, digest=digest, length=length, wrapped_key=row.key, about=row.about)


def _check_few(db: Session, caller: Caller) -> None:
    if len(arrivals_of(db, caller)) >= _MOST_WAITING:
        raise InvalidParameter(
            "The upload is invalid",
            why=f"{_MOST_WAITING} of yours wait to be registered",
            instead="register or discard one of them first",
        )
