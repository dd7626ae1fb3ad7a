"""Data sets that are made of other data sets of this hub, each with an owner and a population of its own: asked as one.

Whoever makes one reads nothing by it. A question about it is a question about each of its parts: the policy of each is asked
(`work/authorise.py`), and the population of each is charged (`Source.made_of`). The list of parts never changes; what a part's
rows are is looked up whenever the catalogue changes, so a part that gets another version makes another version of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.crypto import canonical_json
from cloister.hub.ids import new_id
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet, DataSetPart, DataSetVersion
from cloister.hub.services.catalogue.remote import version_of
from cloister.hub.services.catalogue.sources import POOLED, pooled_source
from cloister.together.pooled import PooledSource

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


@dataclass
class PooledRows:
    """The rows of other data sets, as a `RowSource`."""

    hub: Hub
    parts: Sequence[DataSet]
    name: str
    source: PooledSource = field(init=False)
    schema: Mapping[str, str] = field(init=False)
    origin: str = field(init=False)
    told: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.source = pooled_source(self.hub, [each.id for each in self.parts], repr(self.name))
        self.schema, self.origin = self.source.schema, new_id()  # the same parts may be asked under several budgets: each pays
        self.told = {"parts": ", ".join(each.name for each in self.parts)}
        self._of = ""

    def settle(self) -> None:
        """Nothing is stored here."""

    def version(self, caller: Caller, data_set: DataSet, number: int) -> DataSetVersion:
        """A version that holds the list."""
        self._of = data_set.id
        text = canonical_json([each.id for each in self.parts])
        return version_of(self.hub, caller, data_set, number, kind=POOLED, origin=self.origin, length=0, text=text)

    def take(self, db: Db) -> None:
        """Write down which they are, for every decision about the whole."""
        db.add_all(DataSetPart(data_set=self._of, part=each.id, place=place) for place, each in enumerate(self.parts))


def label_of(
    version: DataSetVersion, found: Mapping[str, tuple[DataSet, DataSetVersion]], parts: Mapping[str, Sequence[str]]
) -> str:
    """What an answer's version is called: of one that is made of others, it changes with theirs and with what they declare."""
    if version.kind != POOLED:
        return version.id
    held = [found.get(each) for each in parts.get(version.data_set, ())]
    told = [version.id, *(None if each is None else [each[1].id, each[0].declaration] for each in held)]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:32]


def parts_by_data_set(db: Db) -> dict[str, list[str]]:
    """The ids of the parts of each data set that has any, in their order."""
    found: dict[str, list[str]] = {}
    for row in db.scalars(select(DataSetPart).order_by(DataSetPart.data_set, DataSetPart.place)):
        found.setdefault(row.data_set, []).append(row.part)
    return found


def check_own_rows(db: Db, row: DataSet) -> None:
    """Refuse other rows, or another declaration, of what is made of others."""
    if db.scalar(select(DataSetPart.part).where(DataSetPart.data_set == row.id).limit(1)) is not None:
        raise Conflict(
            f"The rows of {row.name!r} were not changed",
            why="they are those of the data sets that it is made of, as these are declared",
            instead="another data set of several owners",
        )
