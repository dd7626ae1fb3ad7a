"""Versions of data sets whose rows are elsewhere (sites, key holders, other data sets): what is kept of them, and who calls.

What a version keeps is one text, under the hub's key. Who answers for it calls any process of the hub, and finds a mailbox
there; what another process asks, a worker too, comes through the database (`SharedPost`).
"""

import hashlib
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError
from cloister.hub.generation import generation
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.sites import SiteCall, SiteMessage
from cloister.together import Journal
from cloister.together.coordinator import CLOCK, LOOK, Letter, Mailboxes, Presence

Box = TypeVar("Box", bound=Mailboxes)
Kept = TypeVar("Kept")
_LARGEST, _KEPT = 1 << 26, 7 * 86_400
"""Bytes of the answers to one step that are kept, and for how many seconds: an answer may be asked for again days later."""
_FORGOTTEN = 400 * 86_400
"""Seconds after which nobody asks any more when somebody called last."""


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


class SharedPost:
    """What the processes of a hub leave for one another in its database, about parties with one digest: a `Post`. Messages and
    answers lie there under the hub's key; what nobody waits for any more is gone when the next message is left."""

    def __init__(self, hub: Hub, parties: str) -> None:
        self._hub, self._parties = hub, parties

    @property
    def patience(self) -> float:
        """None for a worker, whom nobody calls."""
        return LOOK if self._hub.serves else 0.0

    def _open(self, *more: ColumnElement[bool]) -> ColumnElement[bool]:
        here = SiteMessage.parties == self._parties
        return and_(here, SiteMessage.answer.is_(None), SiteMessage.ends > time.time(), *more)

    def leave(self, letters: Iterable[Letter]) -> Mapping[str, str]:
        """Where other processes serve: with its database in files a hub is one, besides its workers."""
        rows = []
        for each in letters if self._hub.database.is_postgres or not self._hub.serves else ():
            told = {"digest": each.digest, "round": each.round, "most": each.most, "since": each.since, "ends": each.ends}
            rows.append(SiteMessage(id=new_id(), parties=self._parties, name=each.name, message=b"", **told))
            rows[-1].message = self._hub.keys.wrap(each.message, rows[-1].about)
        if rows:
            with self._hub.database.begin() as db:
                db.execute(delete(SiteMessage).where(SiteMessage.ends < time.time()))
                db.add_all(rows)
        return {row.name: row.id for row in rows}

    def remove(self, letters: Iterable[str]) -> None:
        """They wait for nothing any more."""
        with self._hub.database.begin() as db:
            db.execute(delete(SiteMessage).where(SiteMessage.id.in_(list(letters))))

    def answers(self, letters: Iterable[str]) -> list[tuple[str, bytes]]:
        """Those of letters that are there, by the party's name."""
        wanted = list(letters)
        if not wanted:
            return []
        with self._hub.database.reading() as db:
            found = db.scalars(select(SiteMessage).where(SiteMessage.id.in_(wanted), SiteMessage.answer.is_not(None)))
            return [(row.name, self._hub.keys.unwrap(row.answer or b"", f"answer to {row.about}")) for row in found]

    def waiting(self) -> list[tuple[str, str, float]]:
        """Whose answer to what is awaited since when, the oldest first: name and digest."""
        with self._hub.database.reading() as db:
            columns = select(SiteMessage.name, SiteMessage.digest, SiteMessage.since)
            found = db.execute(columns.where(self._open()).order_by(SiteMessage.since))
            return [(name, digest, since) for name, digest, since in found]

    def letter(self, name: str, digest: str) -> Letter | None:
        """A message that still waits for its answer."""
        with self._hub.database.reading() as db:
            asked = self._open(SiteMessage.name == name, SiteMessage.digest == digest)
            row = db.scalars(select(SiteMessage).where(asked).order_by(SiteMessage.most.desc()).limit(1)).first()
            message = b"" if row is None else self._hub.keys.unwrap(row.message, row.about)
        if row is None:
            return None
        return Letter(name=name, message=message, round=row.round, most=row.most, ends=row.ends, since=row.since)

    def answer(self, name: str, digest: str, data: bytes) -> None:
        """For everybody who waits for the answer to this message. Where nobody does, nothing is kept."""
        with self._hub.database.begin() as db:
            for row in db.scalars(
                select(SiteMessage).where(self._open(SiteMessage.name == name, SiteMessage.digest == digest)).with_for_update()
            ):
                row.answer = self._hub.keys.wrap(data, f"answer to {row.about}")

    def tell(self, name: str, presence: Presence) -> None:
        """When a party called this process, unless another was called since, by a clock that was not set back."""
        row = {"seen": presence.seen, "problem": presence.problem}
        mine = (SiteCall.parties == self._parties, SiteCall.name == name)
        with suppress(IntegrityError), self._hub.database.begin() as db:  # two processes that are called first: one is enough
            if db.scalar(select(SiteCall.seen).where(*mine)) is None:
                db.execute(delete(SiteCall).where(SiteCall.seen < presence.seen - _FORGOTTEN))
                db.add(SiteCall(parties=self._parties, name=name, **row))
            else:
                older = or_(SiteCall.seen <= presence.seen, SiteCall.seen > time.time() + CLOCK)
                db.execute(update(SiteCall).where(*mine, older).values(row))

    def told(self) -> Mapping[str, Presence]:
        """When each party last called one of the processes, as far as they told."""
        with self._hub.database.reading() as db:
            found = db.scalars(select(SiteCall).where(SiteCall.parties == self._parties))
            return {row.name: Presence(seen=row.seen, problem=row.problem) for row in found}


class KeptRound(Journal):
    """The answers of sites with which each step of one round ended, beside those messages: masked, and under the hub's key. They
    are swept some days later; what is too large for a database is asked again."""

    def __init__(self, hub: Hub, round_: str) -> None:
        self._hub, self._round = hub, round_

    def _id(self, step: str) -> str:
        return hashlib.sha256(f"{self._round} {step}".encode()).hexdigest()[:32]

    def get(self, name: str) -> bytes | None:
        """Those of a step that ended."""
        with self._hub.database.reading() as db:
            row = db.get(SiteMessage, self._id(name))
            return None if row is None else self._hub.keys.unwrap(row.message, row.about)

    def put(self, name: str, text: bytes, *, once: bool = False) -> None:
        """Those of a step that ends now; the first stand."""
        if len(text) > _LARGEST:
            return
        now, told = time.time(), {"parties": "", "name": name, "digest": "", "round": self._round, "most": len(text)}
        row = SiteMessage(id=self._id(name), message=b"", since=now, ends=now + _KEPT, **told)
        row.message = self._hub.keys.wrap(text, row.about)
        with suppress(IntegrityError, CloisterError), self._hub.database.begin() as db:
            db.execute(delete(SiteMessage).where(SiteMessage.ends < now))
            db.add(row)


class Called(Generic[Box]):
    """The mailboxes of one kind in one process."""

    kind: ClassVar[str]

    def __init__(self, hub: Hub) -> None:
        self._hub, self._lock, self._post = hub, threading.Lock(), partial(SharedPost, hub)
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
