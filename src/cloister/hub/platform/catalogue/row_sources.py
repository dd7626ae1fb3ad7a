"""Where the rows of a new version come from: what arrived, or the rows that another window of the same data set is served from.

Both end as a `DataSetVersion` whose key (or whose connection's address) is bound to the data set that it is for. Windows may
share one stored file: each has a key to it of its own, and the file goes with the last of them (`managing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.catalogue.arrivals import arrival_of, forget, table_in
from cloister.hub.platform.catalogue.cleaning import cleaned
from cloister.hub.platform.catalogue.origins import origin_of
from cloister.hub.platform.catalogue.sources import source_of, table_store_of
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion
from cloister.hub.storage import StoredTable
from cloister.tables.sourcing.sources import Source


class RowSource(Protocol):
    """Rows that can become a version."""

    @property
    def origin(self) -> str:
        """Their keyed digest (`origins.py`)."""

    @property
    def schema(self) -> Mapping[str, str]:
        """Names and kinds of the columns."""

    @property
    def told(self) -> Mapping[str, str]:
        """What the audit log says of them, beside the data set."""

    def settle(self) -> None:
        """Store what is not stored yet; before any transaction."""

    def version(self, caller: Caller, data_set: DataSet, number: int) -> DataSetVersion:
        """A version of a data set, to which its key or address is bound from now on; not yet in the database."""

    def take(self, db: Db) -> None:
        """In the transaction that makes the version: see that the rows are still there, and that they are used once."""


@dataclass
class UploadedRows:
    """What somebody sent, or connected."""

    hub: Hub
    arrival: Arrival
    origin: str
    told: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls, hub: Hub, caller: Caller, number: str) -> UploadedRows:
        """One's own arrival."""
        with hub.database.reading() as db:
            arrival = arrival_of(db, caller, number)
        return cls(hub, arrival, origin_of(hub, arrival))

    @property
    def schema(self) -> dict[str, str]:
        """As it was looked at when it came."""
        return {name: kind for name, kind, _ in self.arrival.columns}

    def settle(self) -> None:
        """A table under a key of its own, with its cells as its owner said that they are written."""
        self.arrival = cleaned(self.hub, self.arrival)

    def version(self, caller: Caller, data_set: DataSet, number: int) -> DataSetVersion:
        """Its id is the arrival's."""
        arrival, table = self.arrival, table_in(self.arrival)
        connected = (arrival.wrapped, arrival.id) if arrival.kind == "connection" else None
        return _version(self.hub, caller, data_set, number, arrival.id, arrival.kind, self.origin, table, connected)

    def take(self, db: Db) -> None:
        """It is used up."""
        found = db.get(Arrival, self.arrival.id)
        if found is None:
            raise Conflict(
                "The upload was not registered", why="it was used or discarded meanwhile", instead="upload the file again"
            )
        forget(db, found)


@dataclass
class SharedRowsOf:
    """The rows of a version of another window."""

    hub: Hub
    data_set: DataSet
    of: DataSetVersion
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """The same."""
        return self.of.origin

    @property
    def schema(self) -> Mapping[str, str]:
        """As the source has it; where it cannot be opened, that is said."""
        source = source_of(self.hub, self.data_set, self.of)
        assert isinstance(source, Source)
        return source.schema

    def settle(self) -> None:
        """It is stored."""

    def version(self, caller: Caller, data_set: DataSet, number: int) -> DataSetVersion:
        """The same file or connection, with a key or an address of its own."""
        of, table, connected = self.of, None, None
        if of.kind == "connection":
            assert of.address is not None
            connected = (of.address, of.place)
        else:
            table = StoredTable(file=of.file, digest=of.digest, length=of.length, wrapped_key=of.key, about=of.about)
        return _version(self.hub, caller, data_set, number, new_id(), of.format, of.origin, table, connected)

    def take(self, db: Db) -> None:
        """Anyone who destroys it meanwhile comes before or after, and removes no file that has a key left."""
        wanted = select(DataSetVersion.destroyed).where(DataSetVersion.id == self.of.id).with_for_update()
        if db.execute(wanted).one().destroyed is not None:
            raise Conflict("The window was not opened", why="the key of these rows was destroyed meanwhile", instead="a file")


def _version(
    hub: Hub,
    caller: Caller,
    data_set: DataSet,
    number: int,
    called: str,
    format_: str,
    origin: str,
    table: StoredTable | None,
    connected: tuple[bytes, str] | None,
) -> DataSetVersion:
    """A version of a stored table, or of a wrapped address and what that is bound to."""
    version = DataSetVersion(
        id=called,
        data_set=data_set.id,
        number=number,
        kind="stored" if connected is None else "connection",
        file="" if table is None else table.file,
        digest="" if table is None else table.digest,
        length=0 if table is None else table.length,
        origin=origin,
        format=format_,
        created=hub.now(),
        created_by=caller.id,
    )
    if connected is not None:
        address = hub.keys.unwrap(connected[0], f"connection {connected[1]}")
        version.address = hub.keys.wrap(address, f"connection {version.place}")
    elif table is not None:
        version.key = table_store_of(hub).bound(table, version.about).wrapped_key
    return version
