"""Which trials somebody may see: exact, they are their owner's alone. And the rows of a released table, as they are stored."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict, Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import source_of
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.work.owner_view import seen_view
from cloister.tables.relations.public_values import read
from cloister.tables.sourcing.sources import Source

TRIAL = "trial"
"""The kind of owner view that a trial is (`hub/work/owner_view.py`)."""


def seen_trial(hub: Hub, db: Db, caller: Caller, number: str) -> tuple[OwnerView, dict[str, Any]]:
    """A trial of the caller's own on a data set that is still theirs, and what it found."""

    def columns(order: Mapping[str, Any]) -> list[str]:
        return [name for name, part in order["parts"].items() if part != "identifying"]

    none = Missing("There is no such trial", why="it does not exist, or is not yours", instead="/anonymise")
    return seen_view(hub, db, caller, number, kind=TRIAL, action=ACTION, columns=columns, missing=none)


def order_of(row: OwnerView, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a trial was asked for, with its hierarchies."""
    return {**row.order, "hierarchies": found["hierarchies"]}


def source_of_table(hub: Hub, db: Db, row: StoredRelease) -> tuple[str, Source]:
    """The stored rows of a released table, and the name of the data set that they became: those that were certified, whatever
    rows the data set may have besides."""
    made, version = db.get(DataSet, row.data_set), db.get(DataSetVersion, row.details["version"])
    if made is None or made.state == "deleted" or version is None or version.destroyed is not None:
        raise Missing("The rows are gone", why="the data set that they became was deleted", instead="a new release")
    if (version.data_set, version.digest) != (made.id, row.digest):
        raise Conflict("The rows were not sent", why="they are not those that the certificate is about", instead="a new release")
    source = source_of(hub, made, version)
    return made.name, source  # type: ignore[return-value]


def parquet_of(name: str, source: Source) -> bytes:
    """The rows as Parquet."""
    names = list(source.schema)
    columns = read(name, source, names)
    import polars as pl

    body = io.BytesIO()
    pl.DataFrame([pl.Series(each, values, strict=False) for each, values in zip(names, columns, strict=True)]).write_parquet(body)
    return body.getvalue()


def csv_of(name: str, source: Source) -> Iterator[bytes]:
    """The rows as CSV, in pieces."""
    names = list(source.schema)
    return csv_pieces(names, zip(*read(name, source, names), strict=True))


def csv_digest(name: str, source: Source) -> str:
    """The SHA-256 of the file that a download of these rows is."""
    found = hashlib.sha256()
    for piece in csv_of(name, source):
        found.update(piece)
    return found.hexdigest()
