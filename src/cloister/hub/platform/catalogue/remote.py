"""Versions of data sets whose rows are elsewhere (sites, key holders, other data sets): what is kept of them, and who calls.

What a version keeps is one text, under the hub's key. Who answers for it calls this process, and finds a mailbox here.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from sqlalchemy import select

from cloister.errors import CloisterError
from cloister.hub.generation import generation
from cloister.hub.ids import new_id
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.together.coordinator import Mailboxes

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

Box = TypeVar("Box", bound=Mailboxes)
Kept = TypeVar("Kept")


def newest_of(db: Db, kind: str, *, open_only: bool = True) -> list[tuple[DataSet, DataSetVersion]]:
    """The data sets of a kind that are open (or that are there at all), with their newest versions."""
    present = (DataSetVersion.data_set == DataSet.id) & (DataSetVersion.number == DataSet.version)
    wanted = select(DataSet, DataSetVersion).join(DataSetVersion, present).where(DataSetVersion.kind == kind)
    wanted = wanted.where(DataSet.state == "open" if open_only else DataSet.state != "deleted")
    found = db.execute(wanted.order_by(DataSet.created, DataSet.id))
    return [(data_set, version) for data_set, version in found if version.address is not None]


def text_in(hub: Hub, version: DataSetVersion) -> str:
    """What a version keeps."""
    assert version.address is not None
    return hub.keys.unwrap(version.address, f"connection {version.place}").decode()


def legible(
    hub: Hub, versions: Iterable[tuple[DataSet, DataSetVersion]], read: Callable[[Hub, DataSetVersion], Kept]
) -> Iterator[tuple[DataSet, Kept]]:
    """What versions keep, but for those that can't be read: such a one keeps nobody of another one out. It answers nothing
    either, since whoever asks it reads it first."""
    for data_set, version in versions:
        with suppress(CloisterError):
            yield data_set, read(hub, version)


@dataclass
class RowsElsewhere:
    """Rows that are not stored here, as a `RowSource`."""

    hub: Hub
    schema: Mapping[str, str] = field(init=False)
    origin: str = field(init=False)
    told: Mapping[str, str] = field(init=False, default_factory=dict)
    kind: ClassVar[str]
    _made_for: str = field(init=False, default="")

    @abstractmethod
    def text(self) -> str:
        """What a version keeps of them."""

    @property
    def length(self) -> int:
        """How many bytes of them lie here."""
        return 0

    def settle(self) -> None:
        """Nothing is stored here."""

    def version(self, caller: Caller, data_set: DataSet, number: int) -> DataSetVersion:
        """A version that keeps that text."""
        self._made_for = data_set.id
        told = {"kind": self.kind, "format": self.kind, "origin": self.origin, "length": self.length, "created": self.hub.now()}
        made = DataSetVersion(id=new_id(), data_set=data_set.id, number=number, created_by=caller.id, **told)
        made.address = self.hub.keys.wrap(self.text().encode(), f"connection {made.place}")
        return made


class Called(Generic[Box]):
    """The mailboxes of one kind in one process."""

    kind: ClassVar[str]

    def __init__(self, hub: Hub) -> None:
        self._hub, self._lock = hub, threading.Lock()
        self._open: tuple[int, list[Box]] = (-1, [])

    @abstractmethod
    def of_version(self, version: DataSetVersion) -> Box:
        """The mailbox of those who answer for a version."""

    def called_by(self, name: str, authorization: str) -> Box | None:
        """The one that a call is for; None where no open data set has somebody of that name and key."""
        with self._hub.database.reading() as db:
            now = generation(db)
            if self._open[0] != now:
                self._open = now, self._opened(newest_of(db, self.kind))
        return next((each for each in self._open[1] if each.knows(name, authorization)), None)

    def _opened(self, versions: Iterable[tuple[DataSet, DataSetVersion]]) -> list[Box]:
        """Those of open data sets. A version that can't be read keeps nobody of another one out."""
        return [box for _, box in legible(self._hub, versions, lambda _, version: self.of_version(version))]
