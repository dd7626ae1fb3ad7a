"""The prepared rows that sessions share: made once, when they are first needed, and closed when nobody uses them any more.

Each table is prepared under a lock of its own, so a large one keeps nobody from asking about another.

Every table has an engine of its own, with threads and some 4 MiB besides its rows. Where the workspace bounds how many are
prepared at once, those that were not asked for the longest are closed, and prepared again when somebody asks; before that, all
but the last few rest, without threads. Never while a question has them in hand. When that happens follows from who asks what,
and in no way from rows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from cloister.errors import CloisterError, LedgerError
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Answering, Prepared, PublicTable, Relation, Workspace, prepare, relate

if TYPE_CHECKING:
    from cloister.session.state.table_snapshot import Entry

_MOST_RELATED = 64
_AWAKE = 8
"""Tables that keep their threads between two questions."""

Made = TypeVar("Made")


class _Once(Generic[Made]):
    """A thing that one thread makes while the others that want it wait; what failed is tried again."""

    def __init__(self, entries: Collection[Entry]) -> None:
        self.entries = tuple(entries)
        self.made: Made | None = None
        self.users = 0
        """Questions that have it in hand; whoever asks outside of any is never done."""
        self._lock = threading.Lock()

    def get(self, make: Callable[[], Made]) -> Made:
        """The thing."""
        with self._lock:
            if self.made is None:
                self.made = scrubbed(make)
            return self.made


_Hand: TypeAlias = "Mapping[PreparedCache, set[_Once[Any]]]"
_IN_HAND: ContextVar[_Hand] = ContextVar("cloister tables in hand", default=MappingProxyType({}))


class PreparedCache:
    """Prepared rows by entry (the very object: a table that was replaced is another entry), and relations over them.

    >>> PreparedCache().prepared()
    {}
    """

    def __init__(self, workspace: Workspace | None = None) -> None:
        self.workspace = workspace or Workspace.of()
        self.closed = False
        self._lock = threading.Lock()
        self._rows: OrderedDict[int, _Once[Prepared]] = OrderedDict()
        """By when they were last asked."""
        self._related: OrderedDict[Hashable, _Once[Answering]] = OrderedDict()

    def ended(self) -> LedgerError:
        """The refusal of what is asked after the end: nobody would close what is prepared for it."""
        return LedgerError("Nothing was charged", why="the session is closed", instead="a new cl.Session(…)")

    def prepared(self) -> dict[str, Prepared]:
        """What is prepared now, by the name of its table."""
        with self._lock:
            slots = list(self._rows.values())
        return {slot.entries[0].name: slot.made for slot in slots if slot.made is not None}

    def known(self, entry: Entry) -> Prepared | None:
        """The prepared rows of a table, if they were needed before."""
        slot = self._rows.get(id(entry))
        return None if slot is None else slot.made

    def rows(self, entry: Entry) -> Prepared:
        """The prepared rows of a table; made again where what held them lost them."""
        if self.closed:
            raise self.ended()
        mine, had = _IN_HAND.get().get(self), self._rows.get(id(entry))
        if had is not None and (made := had.made) is not None and not made.lasts and not made.stands():
            with self._lock:
                lost = self._forget([id(entry)]) if self._rows.get(id(entry)) is had else []
            close_all(lost)
        with self._lock:
            slot = self._rows.get(id(entry)) or self._rows.setdefault(id(entry), _Once([entry]))
            self._rows.move_to_end(id(entry))
            if mine is None or slot not in mine:
                slot.users += 1
                if mine is not None:
                    mine.add(slot)
        return slot.get(lambda: prepare(entry.declaration, secret=entry.secret, workspace=self.workspace))

    def related(self, relation: Relation, entries: Mapping[str, Entry], public: Mapping[str, PublicTable]) -> Answering:
        """The rows of a relation, put together from those of its tables when it is asked."""
        key = (relation, tuple(id(entry) for entry in entries.values()))
        prepared = {name: self.rows(entry) for name, entry in entries.items()}
        with self._lock:
            slot = self._related.setdefault(key, _Once(list(entries.values())))
            self._related.move_to_end(key)
            while len(self._related) > _MOST_RELATED:
                self._related.popitem(last=False)
        return slot.get(lambda: relate(relation, prepared, public))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The rows that are handed out within it stay until its end; then those that nobody asked lately go."""
        if self.workspace.tables is None:
            yield
            return
        mine: set[_Once[Any]] = set()
        token = _IN_HAND.set({**_IN_HAND.get(), self: mine})
        try:
            yield
        finally:
            _IN_HAND.reset(token)
            with self._lock:
                for slot in mine:
                    slot.users -= 1
                resting, closing = self._not_asked_lately() if mine and len(self._rows) > _AWAKE else ([], [])
            for rows in resting:
                with suppress(CloisterError):
                    rows.rest()
            if closing:
                close_all(closing)

    def without(self, used: Collection[Entry]) -> list[Prepared]:
        """Forget all that no entry in use stands for; the rows that are to be closed."""
        alive = {id(entry) for entry in used}
        with self._lock:
            return self._forget([key for key in self._rows if key not in alive])

    def _not_asked_lately(self) -> tuple[list[Prepared], list[Prepared]]:
        """The rows that rest, and those that are to be closed."""
        free = [key for key, slot in self._rows.items() if not slot.users]
        most = self.workspace.tables
        closing = self._forget(free[: max(0, len(self._rows) - most)] if most is not None else [])
        early = list(self._rows.values())[:-_AWAKE]
        return [slot.made for slot in early if slot.made is not None and not slot.users], closing

    def _forget(self, gone: Collection[int]) -> list[Prepared]:
        """What was made of these entries, and no relation over them any more."""
        closing = [self._rows.pop(key).made for key in gone]
        lost = set(gone)
        for each in [key for key, slot in self._related.items() if any(id(entry) in lost for entry in slot.entries)]:
            del self._related[each]
        return [rows for rows in closing if rows is not None]


def close_all(rows: list[Prepared]) -> None:
    """Close them; nobody must fail for a temporary file that is gone."""
    for each in rows:
        with suppress(CloisterError):
            each.close()
