"""The prepared rows that sessions share: made once, when they are first needed, and closed when nobody uses them any more.

Each table is prepared under a lock of its own, so a large one keeps nobody from asking about another.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Answering, Prepared, PublicTable, Relation, Workspace, prepare, relate

if TYPE_CHECKING:
    from cloister.session.state.table_snapshot import Entry

_MOST_RELATED = 64

Made = TypeVar("Made")


class _Once(Generic[Made]):
    """A thing that one thread makes while the others that want it wait; what failed is tried again."""

    def __init__(self, entries: Collection[Entry]) -> None:
        self.entries = tuple(entries)
        self.made: Made | None = None
        self._lock = threading.Lock()

    def get(self, make: Callable[[], Made]) -> Made:
        """The thing."""
        with self._lock:
            if self.made is None:
                self.made = scrubbed(make)
            return self.made


class PreparedCache:
    """Prepared rows by entry (the very object: a table that was replaced is another entry), and relations over them.

    >>> PreparedCache().prepared()
    {}
    """

    def __init__(self, workspace: Workspace | None = None) -> None:
        self.workspace = workspace or Workspace.of()
        self._lock = threading.Lock()
        self._rows: dict[int, _Once[Prepared]] = {}
        self._related: OrderedDict[Hashable, _Once[Answering]] = OrderedDict()

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
        """The prepared rows of a table."""
        with self._lock:
            slot = self._rows.setdefault(id(entry), _Once([entry]))
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

    def without(self, used: Collection[Entry]) -> list[Prepared]:
        """Forget all that no entry in use stands for; the rows that are to be closed."""
        alive = {id(entry) for entry in used}
        with self._lock:
            gone = [key for key in self._rows if key not in alive]
            closing = [self._rows.pop(key).made for key in gone]
            for each in [key for key, slot in self._related.items() if any(id(entry) not in alive for entry in slot.entries)]:
                del self._related[each]
        return [rows for rows in closing if rows is not None]
