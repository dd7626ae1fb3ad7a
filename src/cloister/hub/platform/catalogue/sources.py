"""Where the rows of a version are: a stored file, a connected database, sites, masked cells, or other data sets of this hub.

Of data sets that are made of others, each with an owner and a population of its own, and asked as one: whoever makes one reads
nothing by it. A question about it is a question about each of its parts: the policy of each is asked (`work/authorise.py`), and
the population of each is charged (`Source.made_of`). The list of parts never changes; what a part's rows are is looked up
whenever the catalogue changes, so a part that gets another version makes another version of the whole.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.crypto import canonical_json
from cloister.errors import Conflict
from cloister.hub.hub import Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.catalogue.joint import SITES, coordinators_of, joined_in
from cloister.hub.platform.catalogue.masked import MASKED, line_of, masked_in
from cloister.hub.platform.catalogue.remote import RowsElsewhere, text_in
from cloister.hub.records.catalogue import DataSet, DataSetPart, DataSetVersion
from cloister.hub.records.declarations import table_of
from cloister.hub.storage import Allowed, KeptAddress, Limits, StoredTable, TableStore, reopen
from cloister.tables import PrivateTable
from cloister.tables.sourcing.sources import Source
from cloister.together.pooled import PooledSource

POOLED = "pooled"
"""The kind of such a version, as it is stored."""
_STORE = "table store"


def source_of(hub: Hub, row: DataSet, version: DataSetVersion) -> object:
    """Where the rows of a version are: its stored file, checked and decrypted, or the database it is connected to."""
    if version.kind == SITES:
        joined = joined_in(hub, version)
        return joined.source(hub, row.declaration, coordinators_of(hub).of(joined.signed))
    if version.kind == POOLED:
        return pooled_source(hub, json.loads(text_in(hub, version)), repr(row.name))
    if version.kind == MASKED:
        masked = masked_in(hub, version)
        return masked.source(hub, line_of(hub, masked))
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
                why="a data set that it is made of is closed or deleted",
                instead="the same when its owner has opened that one again, or a new one without it: /pools",
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


@dataclass
class PooledRows(RowsElsewhere):
    """The rows of other data sets; a version holds the list of these."""

    parts: Sequence[DataSet]
    name: str
    source: PooledSource = field(init=False)
    kind = POOLED

    def __post_init__(self) -> None:
        self.source = pooled_source(self.hub, [each.id for each in self.parts], repr(self.name))
        self.schema, self.origin = self.source.schema, new_id()  # the same parts may be asked under several budgets: each pays
        self.told = {"parts": ", ".join(each.name for each in self.parts)}

    def text(self) -> str:
        """Their ids."""
        return canonical_json([each.id for each in self.parts])

    def take(self, db: Db) -> None:
        """Write down which they are, for every decision about the whole."""
        db.add_all(DataSetPart(data_set=self._made_for, part=each.id, place=place) for place, each in enumerate(self.parts))


def label_of(
    version: DataSetVersion, found: Mapping[str, tuple[DataSet, DataSetVersion]], parts: Mapping[str, Sequence[str]]
) -> str:
    """What an answer's version is called: of one that is made of others, it changes with theirs and with what they declare."""
    if version.kind != POOLED:
        return version.id
    held = [found.get(each) for each in parts.get(version.data_set, ())]
    told = [version.id, *(None if each is None else [each[1].id, each[0].declaration] for each in held)]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:32]


def check_own_rows(db: Db, row: DataSet) -> None:
    """Refuse other rows, or another declaration, of what is made of others."""
    if db.scalar(select(DataSetPart.part).where(DataSetPart.data_set == row.id).limit(1)) is not None:
        raise Conflict(
            f"The rows of {row.name!r} were not changed",
            why="they are those of the data sets that it is made of, as these are declared",
            instead="another data set of several owners",
        )
