"""The data sets that can be asked, as one session of this process: opened when first needed, renewed when the catalogue changes.

Everybody's questions go through sessions that share its prepared rows (`Session.on_behalf`). A data set whose stored rows cannot
be opened (a damaged file, a key of another hub, a database that is away) does not keep the others from being asked: it is left
out, and who asks about it is told why.

The tables go forward only: who reads an older moment of the catalogue does not take them back to it. What is decided for some
tables is `Held`, and carried out on these very tables or not at all, however slow the decision was.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, Conflict, UnknownTable
from cloister.hub.decisions.facts import parts_by_data_set
from cloister.hub.decisions.held import Exchanged, Held
from cloister.hub.generation import generation, read_generation
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue.origins import whole_of
from cloister.hub.platform.catalogue.sources import label_of, source_of
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.declarations import table_of
from cloister.query import Session
from cloister.session.state.lineage import SharedRows
from cloister.tables import PrivateTable, PublicTable
from cloister.tables.engines.folder import sweep

_PART, _KEEPER = "live tables", "catalogue keeper"


_AGAIN = 10.0
"""After so many seconds a data set that could not be opened is tried again."""
_TRIES = 5


@dataclass(frozen=True)
class _State:
    """What a name stood for when it was opened."""

    version: str
    declaration: str


class Live:
    """One session over all open data sets, shared by all people of this process."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = threading.RLock()
        self._generation = self._towards = -1
        self._tried = 0.0
        self._states: dict[str, _State] = {}
        self._since: dict[str, int] = {}
        """The generation from which on a name stands for the table that it stands for."""
        self._session: Session | None = None
        self.closed_for: dict[str, CloisterError] = {}
        """Data sets that are open and could not be opened here, with the reason."""
        self.shared: dict[str, frozenset[str]] = {}
        """Of these, those whose rows are in another data set too, of another population, with the names of these others."""
        self._refused: dict[str, SharedRows] = {}

    def session(
        self,
        db: Db,
        who: str,
        *,
        tables: Iterable[str],
        rows: Mapping[str, str] | None = None,
        columns: Mapping[str, Iterable[str]] | None = None,
        progress: Callable[[str], None] | None = None,
        time_limit: float | None = None,
        generation: int | None = None,
    ) -> Session:
        """A session in which somebody sees these tables, and of them these rows and columns; `generation`: of the facts that it
        is made on, where these are known."""
        self.renew(db, generation)
        wanted = list(tables)
        for name in wanted:
            if name in self.closed_for:
                raise self.closed_for[name]
        known, opened = [name for name in wanted if name in self._states], self._open
        narrowed = {*(rows or ()), *(columns or ())}
        with opened.registry.pinned() if narrowed else nullcontext():
            if narrowed and not narrowed <= opened.tables.keys():  # the session would say which others there are
                raise Exchanged
            return opened.on_behalf(
                who, tables=known, rows=rows or None, columns=columns or None, progress=progress, time_limit=time_limit
            )

    def held(
        self,
        session: Session,
        names: Collection[str],
        generation: int,
        now: Mapping[str, PrivateTable | PublicTable] | None = None,
    ) -> Held:
        """The tables of these names as they are `now`, for what is decided on the facts of a generation: none may be newer."""
        now = session.registry.snapshot.tables if now is None else now
        tables, whole = {}, True
        for name in names:
            if name in now:
                tables[name] = now[name]
            # after the tables: who exchanges one says so first
            whole = whole and name in now and self._since.get(name, generation + 1) <= generation
        return Held(session=session, tables=tables, whole=whole, found_shared=self._found_shared)

    def is_of(self, generation: int) -> bool:
        """Whether nothing is to be taken over from that generation, so that no look into the database is needed: nor is
        something closed that may be well again (a ledger thawed, a database back)."""
        waits = bool(self.closed_for) and self._hub.clock() >= self._tried + _AGAIN
        return generation == self._generation and not waits

    def renew(self, db: Db, now: int | None = None) -> None:
        """Take over what was registered, changed, closed or deleted since; and try again what could not be opened a while ago.
        A moment that is older than the tables changes nothing."""
        now = generation(db) if now is None else now
        if self.is_of(now):
            return
        with self._lock:
            if self.is_of(now) or now < self._towards:
                return
            self._tried = self._hub.clock()
            present = (DataSetVersion.data_set == DataSet.id) & (DataSetVersion.number == DataSet.version)
            wanted = select(DataSet, DataSetVersion).join(DataSetVersion, present).where(DataSet.state == "open")
            rows = db.execute(wanted.order_by(DataSet.created, DataSet.id)).all()  # the older one is whose the rows are
            found = {row.name: (row, version) for row, version in rows}
            then = read_generation(
                db.connection()
            )  # the rows may be of a later moment than the number; none is later than this one
            self._towards = then
            for name in [name for name in self._states if name not in found]:
                self._remove(name)
            self.closed_for = {name: error for name, error in self.closed_for.items() if name in found}
            self.shared = {name: others for name, others in self.shared.items() if name in found and others & found.keys()}
            by_id, parts = {row.id: (row, version) for row, version in rows}, parts_by_data_set(db)
            for name, (row, version) in found.items():
                self._take(db, name, row, version, label_of(version, by_id, parts), then)
            self._shut_shared()
            self._generation = now

    def close(self) -> None:
        """Remove all prepared rows."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None
            self._states.clear()
            self._since.clear()
            self._generation = self._towards = -1

    def _shut_shared(self) -> None:
        """Two data sets whose rows are one relation's, with a budget each: nobody asks either of them, until their owners were
        told (`shared.py`) and chose."""
        entries = self._open.registry.snapshot.entries
        for name, error in self._refused.items():
            others = {
                each
                for each, entry in entries.items()
                if entry.population in error.populations and entry.marks.whole & error.whole
            }
            self._shut(others.union({name}, *(self.shared.get(each, ()) for each in others)) if others else set())
        self._refused.clear()
        self._tell_keeper()

    def _found_shared(self, error: SharedRows) -> None:
        """The same of what was found when a question was about to be charged: what stands open over these rows, in several
        populations."""
        with self._lock:
            entries = self._open.registry.snapshot.entries
            found = {name: entry.population for name, entry in entries.items() if entry.marks.whole & error.whole}
            if len(set(found.values())) > 1:
                self._shut(found.keys())
        self._tell_keeper()

    def _shut(self, together: Collection[str]) -> None:
        for each in together:
            self.shared[each] = frozenset(together) - {each}
            self.closed_for[each] = _shared(each)
            if each in self._states:
                self._remove(each)

    def _tell_keeper(self) -> None:
        if self.shared and _KEEPER in self._hub.parts:
            self._hub.parts[_KEEPER].notify()  # who writes it down; this may be in somebody's reading transaction

    def _take(self, db: Db, name: str, row: DataSet, version: DataSetVersion, label: str, then: int) -> None:
        state = _State(label, repr((row.declaration, row.population, row.public)))
        if self._states.get(name) == state or name in self.shared:
            return
        try:
            table = table_of(row, source_of(self._hub, row, version), label)
            for mark, population in whole_of(self._hub, db, row, table.source).items():
                self._hub.ledger.bind(mark, population, who="hub")
            self._since[name] = then
            if name in self._states:
                self._exchange(name, table)
            else:
                self._open.add(name, table)
        except CloisterError as error:
            self.closed_for[name] = error
            if isinstance(error, SharedRows):
                self._refused[name], self.closed_for[name] = error, _shared(name)
            if name in self._states:
                self._remove(name)
            return
        self.closed_for.pop(name, None)
        self._states[name] = state

    @property
    def _open(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = Session(
                    {},
                    ledger=self._hub.ledger,
                    who="hub",
                    memory_limit=self._hub.settings.memory,
                    temporary_directory=scratch_of(self._hub),
                    prepared_tables=self._hub.settings.prepared,
                )
            return self._session

    def _exchange(self, name: str, table: PrivateTable | PublicTable) -> None:
        try:
            self._open.replace(name, table)
        except CloisterError:  # of another kind now, or of another population: another table under the name
            self._open.remove(name)
            self._open.add(name, table)

    def _remove(self, name: str) -> None:
        del self._states[name]
        with suppress(UnknownTable):  # where another could not be put in its place
            self._open.remove(name)


def _shared(name: str) -> Conflict:
    return Conflict(
        f"The data set {name!r} is closed",
        why="its rows are in another data set too, which has the budget of another population",
        instead="its owner keeps one of the two, and deletes the other",
    )


def scratch_of(hub: Hub) -> Path:
    """Where rows that do not fit into memory are spilled, encrypted, while a data set is open."""
    folder = hub.settings.path("scratch")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def sweep_scratch(hub: Hub) -> None:
    """What processes that were killed have left there goes."""
    sweep(hub.settings.path("scratch"))


def live_of(hub: Hub) -> Live:
    """The live tables of this process."""
    live: Live = hub.parts.get(_PART) or hub.parts.setdefault(_PART, Live(hub))
    return live
