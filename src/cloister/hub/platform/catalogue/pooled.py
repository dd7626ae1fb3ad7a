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
from cloister.hub.platform.catalogue.remote import RowsElsewhere
from cloister.hub.platform.catalogue.sources import POOLED, pooled_source
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet, DataSetPart, DataSetVersion
from cloister.together.pooled import PooledSource

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db


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
