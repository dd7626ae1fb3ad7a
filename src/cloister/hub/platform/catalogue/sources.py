"""Where the rows of a version are: a stored file, a connected database, sites, masked cells, or other data sets of this hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cloister.hub.platform.catalogue.joint import SITES, source_at_sites
from cloister.hub.platform.catalogue.masked import MASKED, masked_source
from cloister.hub.platform.catalogue.remote import text_in
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.declarations import table_of
from cloister.hub.storage import Allowed, KeptAddress, Limits, StoredTable, TableStore, reopen
from cloister.tables import PrivateTable
from cloister.together.pooled import PooledSource

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.hub import Hub
    from cloister.tables.sourcing.sources import Source

POOLED = "pooled"
"""The kind of such a version, as it is stored."""
_STORE = "table store"


def source_of(hub: Hub, row: DataSet, version: DataSetVersion) -> object:
    """Where the rows of a version are: its stored file, checked and decrypted, or the database it is connected to."""
    if version.kind == SITES:
        return source_at_sites(hub, row, version)
    if version.kind == POOLED:
        return pooled_of(hub, row, version)
    if version.kind == MASKED:
        return masked_source(hub, version)
    if version.kind == "connection":
        assert version.address is not None
        kept = KeptAddress(id=version.place, shown="", wrapped=version.address)
        return reached(hub, kept, " ".join(row.declaration.get("during") or ()) if row.window else "")
    stored = StoredTable(
        file=version.file, digest=version.digest, length=version.length, wrapped_key=version.key, about=version.about
    )
    return table_store_of(hub).open(stored, name=row.name, identity=f"data set {row.id}")


def reached(hub: Hub, kept: KeptAddress, part: str = "") -> Source:
    """The table behind a kept address, where the settings of this moment allow it."""
    return reopen(kept, Allowed.read(hub.settings.sources), hub.keys, authorities=authorities_of(hub), part=part)


def authorities_of(hub: Hub) -> Path | None:
    """The file of those who vouch for the certificates of databases; None: the operating system."""
    named = hub.settings.source_authorities
    return Path(named) if named else None


def table_store_of(hub: Hub) -> TableStore:
    """Where this hub's tables lie."""
    store: TableStore = hub.parts.setdefault(_STORE, None) or TableStore(
        hub.settings.path("vault"),
        hub.keys,
        limits=Limits(bytes=hub.settings.upload_megabytes * 2**20, memory=hub.settings.memory),
    )
    hub.parts[_STORE] = store
    return store


def pooled_of(hub: Hub, row: DataSet, version: DataSetVersion) -> PooledSource:
    """The rows of such a version, as they are now."""
    return pooled_source(hub, json.loads(text_in(hub, version)), repr(row.name))


def pooled_source(hub: Hub, ids: Sequence[str], name: str) -> PooledSource:
    """The open data sets of these ids as one."""
    tables: dict[str, Any] = {}
    with hub.database.reading() as db:
        found = {row.id: (row, version) for row, version in _versions_of(db, ids)}
    for each in ids:
        row, version = found.get(each, (None, None))
        if row is None or version is None or row.state != "open":
            raise Conflict(
                f"The data set {name} can't be asked",
                why="a data set that it is made of is closed",
                instead="the same when its owner has opened that one again",
            )
        table = table_of(row, source_of(hub, row, version), version.id)
        if not isinstance(table, PrivateTable):
            raise _refused(name, f"the data set {row.name!r} is public, and nobody in it needs hiding")
        if version.kind == POOLED:
            raise _refused(name, f"the data set {row.name!r} is made of others itself")
        tables[row.name] = table
    return PooledSource(tables)


def _refused(name: str, why: str) -> Conflict:
    return Conflict(f"The data set {name} can't be made", why=why, instead="private data sets, each with rows of its own")


def _versions_of(db: Db, ids: Sequence[str]) -> list[tuple[DataSet, DataSetVersion]]:
    now = (DataSetVersion.data_set == DataSet.id) & (DataSetVersion.number == DataSet.version)
    wanted = select(DataSet, DataSetVersion).join(DataSetVersion, now).where(DataSet.id.in_(ids))
    return [(row, version) for row, version in db.execute(wanted)]
