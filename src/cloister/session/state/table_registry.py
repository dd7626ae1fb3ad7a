"""What all sessions about the same tables share: the tables, their prepared rows, the ledger and the randomness.

Tables come and go while questions are asked. The tables of one moment are a `TableSnapshot`, which never changes; adding,
replacing or removing a table makes another one. A question keeps the snapshot that it began with, from its text to its answer
(`pinned`); so it ends on the rows that it began with, under the bounds that were declared of them. The rows of a table that is
gone are closed when the last such question has ended. Which snapshot that is belongs to the question's context.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from cloister.errors import CloisterError
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.planning.abilities import check_rows
from cloister.session.state.prepared_cache import PreparedCache, close_all
from cloister.session.state.table_snapshot import SourceIdentities, Table, TableSnapshot
from cloister.tables import Prepared, PrivateTable, Workspace

_BEGUN: ContextVar[Mapping[TableRegistry, TableSnapshot]] = ContextVar("cloister snapshots", default=MappingProxyType({}))
"""The tables that the question which is asked here began with, by registry."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowAccess:
    """What is declared of a table, whose budget it is, and its rows: for the marked door. What is made of them and leaves has no
    guarantee.

    Whoever opens it answers for it: that the owner asks, that what is worked out on the rows is `sealed`, and that the ledger is
    told (`note_not_private`) before anything leaves.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     access = door.row_access("people")
    ...     access.population, access.prepare().declaration is access.declaration
    ('people', True)
    """

    declaration: PrivateTable
    population: str
    version: str
    secret: str = field(repr=False)
    """Of this table in this ledger; it leaves for nobody."""
    prepare: Callable[[], Prepared] = field(repr=False)
    """The prepared rows, made when they are first needed; refused where they come from elsewhere by now."""


class TableRegistry:
    """Tables that come and go, over one ledger and one source of randomness."""

    def __init__(self, tables: Mapping[str, Table], ledger: Ledger, random: Random, workspace: Workspace | None = None) -> None:
        self.random = random
        self.flights = SingleFlight()
        self._stock = PreparedCache(workspace)
        self.workspace = self._stock.workspace
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._now = TableSnapshot(tables, ledger, random, self._stock, SourceIdentities())
        self._asking: dict[TableSnapshot, int] = {}
        self._narrowed: WeakKeyDictionary[PrivateTable, dict[tuple[str, ...], PrivateTable]] = WeakKeyDictionary()

    @property
    def snapshot(self) -> TableSnapshot:
        """The tables as the question that is asked here began with them; without one, as they are now."""
        return _BEGUN.get().get(self, self._now)

    @contextmanager
    def pinned(self) -> Iterator[TableSnapshot]:
        """What is asked within it sees these tables, which are those of its beginning."""
        begun = _BEGUN.get()
        if self in begun:
            yield begun[self]
            return
        if self._stock.closed:
            raise self._stock.ended()
        with self._lock:
            snapshot = self._now
            self._asking[snapshot] = self._asking.get(snapshot, 0) + 1
        token = _BEGUN.set({**begun, self: snapshot})
        try:
            with self._stock.in_use():
                yield snapshot
        finally:
            _BEGUN.reset(token)
            with self._lock:
                self._asking[snapshot] -= 1
                if not self._asking[snapshot]:
                    del self._asking[snapshot]
                closing = [] if snapshot is self._now else self._unused()
            if closing:
                close_all(closing)

    def open(self, budget: Guarantee | Mapping[str, Guarantee] | None, *, who: str) -> None:
        """Open the populations of all tables."""
        self._now.open(budget, who=who)

    def add(self, name: str, table: Table, budget: Guarantee | None, *, who: str) -> None:
        """One table more."""
        with self._changing:
            changed = self._now.adding(name, table)
            changed.open(budget, who=who, names=[name])
            self._become(changed)

    def replace(self, name: str, table: Table, *, who: str) -> None:
        """Another table of the same population under a name."""
        with self._changing:
            changed = self._now.replacing(name, table)
            changed.open(None, who=who, names=[name])
            self._become(changed)

    def remove(self, name: str) -> None:
        """One table fewer; what its population has spent stays spent."""
        with self._changing:
            self._become(self._now.removing(name))

    def row_access(self, name: str) -> RowAccess:
        """The rows of a table, for whoever holds the registry: it asks on nobody's behalf, and whoever calls it has decided."""
        snapshot = self.snapshot
        entry = snapshot.entry(name)
        check_rows(name, entry.declaration)
        return RowAccess(
            declaration=entry.declaration,
            population=entry.population,
            version=entry.version,
            secret=entry.secret,
            prepare=functools.partial(snapshot.prepare, name),
        )

    def narrowed(self, table: PrivateTable, columns: tuple[str, ...]) -> PrivateTable:
        """The declaration of a table with some of its columns; always the same object for the same ones."""
        with self._lock:
            known = self._narrowed.setdefault(table, {})
            if columns not in known:
                known[columns] = with_columns(table, columns)
            return known[columns]

    def close(self) -> None:
        """Remove all prepared rows, and prepare no more."""
        self._stock.closed = True
        close_all(self._stock.without([]))

    def _become(self, snapshot: TableSnapshot) -> None:
        with self._lock:
            self._now = snapshot
            closing = self._unused()
        close_all(closing)

    def _unused(self) -> list[Prepared]:
        return self._stock.without([entry for each in (self._now, *self._asking) for entry in each.entries.values()])


def with_columns(table: PrivateTable, columns: Sequence[str]) -> PrivateTable:
    """The same table with some of its declared columns.

    >>> from cloister.tables import Integer
    >>> table = PrivateTable({"a": [1], "b": [2]}, columns={"a": Integer(0, 9), "b": Integer(0, 9)})
    >>> list(with_columns(table, ["b"]).columns)
    ['b']
    """
    kept = {name: domain for name, domain in table.columns.items() if name in columns}
    return PrivateTable.declared(table.source, kept, like=table)


class HasTables(Protocol):
    """Something that holds a registry, and says what it refuses in the words that it was asked in."""

    registry: TableRegistry

    def worded(self, refusal: CloisterError, *asked: object, **how: object) -> CloisterError: ...


Holder = TypeVar("Holder", bound=HasTables)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def pinned(method: Callable[Concatenate[Holder, Given], Answer]) -> Callable[Concatenate[Holder, Given], Answer]:
    """A method that sees the same tables from its beginning to its end, whatever others add, replace or remove meanwhile."""

    @functools.wraps(method)
    def held(self: Holder, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        registry = self.registry
        try:
            if registry in _BEGUN.get():
                return method(self, *args, **kwargs)
            with registry.pinned():
                return method(self, *args, **kwargs)
        except CloisterError as refusal:  # only here, since what is answered needs no words
            raise self.worded(refusal, *args, **kwargs) from None

    return held


class SingleFlight:
    """A lock for each key that is being worked on, and none for any other.

    One at a time of the same person's same question: whoever asks it again while it is being answered gets the stored answer.

    Two requests that both find nothing stored would both buy. That is charged rightly, and a waste of budget. Other processes
    are not waited for: for them holds what the ledger says.

    >>> flights = SingleFlight()
    >>> with flights.one("key", limit=1):
    ...     len(flights)
    1
    >>> len(flights)
    0
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._flights: dict[Hashable, tuple[threading.RLock, int]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    @contextmanager
    def one(self, key: Hashable, *, limit: float | None) -> Iterator[None]:
        """Work on a key while no other thread does; after `limit` seconds of waiting, beside them: it decides nothing."""
        with self._mutex:
            lock, here = self._flights.get(key) or (threading.RLock(), 0)
            self._flights[key] = lock, here + 1
        try:
            alone = lock.acquire(timeout=-1 if limit is None else limit)
            try:
                yield
            finally:
                if alone:
                    lock.release()
        finally:
            with self._mutex:
                lock, here = self._flights.pop(key)
                if here > 1:
                    self._flights[key] = lock, here - 1
