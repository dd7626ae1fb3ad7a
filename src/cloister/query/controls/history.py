"""The sets that were answered, kept as long as the ledger: overlap and audit are about all questions of all analysts.

One small SQLite file beside the ledger (`<ledger>.controls`), or memory where the ledger is in memory. A line is written, under
the file's write lock, in the same transaction as the decision, so that no interleaving of processes answers two questions that
were not allowed together; and it is on the disk before the answer leaves. Each line is sealed with a key that follows from the
ledger's (AES-SIV), together with its place in the order: lines can be neither read, nor changed, nor moved. The ledger's
events say how many lines there must be, so lines that were cut off are missed (`ControlledSession`).
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cloister.crypto import DeterministicCipher, WrongKey
from cloister.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from cloister.ledger import Ledger
from cloister.query.controls.masks import Mask

_WAIT_SECONDS = 60.0
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answered (place TEXT, number INTEGER, state TEXT, sealed BLOB, PRIMARY KEY (place, number)) "
    "WITHOUT ROWID"
)
_IN_MEMORY: weakref.WeakKeyDictionary[Ledger, SetHistory] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredSet:
    """One answered statistic: its column ("*" for counts), the columns that chose its records, and the records."""

    statistic: str
    column: str
    reads: tuple[str, ...]
    records: Mask
    who: str
    what: str


class SetHistory:
    """The lines of all tables of one ledger.

    >>> from cloister.ledger import Ledger
    >>> history = history_of(Ledger())
    >>> line = AnsweredSet(statistic="sum", column="pay", reads=("sex",), records=np.ones(9, dtype=bool), who="ada", what="sum")
    >>> with history.turn():
    ...     history.append("place", "state", [line])
    >>> history.lines("place", "state")[0].column, history.count("place"), history.states("place")
    ('pay', 1, ['state'])
    """

    def __init__(self, path: Path | None, key: bytes) -> None:
        self._lock = threading.RLock()
        self._cipher = DeterministicCipher(key)
        self._memory = path is None
        self._name = "the history in memory" if path is None else f"the history {path.name}"
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_TABLE)
        except sqlite3.Error:
            raise self._unavailable() from None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """The write lock of all processes; what is appended within is durable when it ends, or gone if it fails."""
        with self._lock:
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def append(self, place: str, state: str, lines: list[AnsweredSet]) -> None:
        """The next lines of a table, in a turn."""
        number = self.count(place)
        for line in lines:
            number += 1
            head = {
                "statistic": line.statistic,
                "column": line.column,
                "reads": list(line.reads),
                "size": len(line.records),
                "who": line.who,
                "what": line.what,
            }
            plain = zlib.compress(json.dumps(head).encode() + b"\n" + np.packbits(line.records).tobytes())
            sealed = self._cipher.encrypt(plain, self._bound(place, number, state))
            self._execute("INSERT INTO answered VALUES (?, ?, ?, ?)", (place, number, state, sealed))

    def lines(self, place: str, state: str, after: int = 0) -> list[AnsweredSet]:
        """The lines of one state of a table after a number, in order."""
        with self._lock:
            query = "SELECT number, sealed FROM answered WHERE place = ? AND state = ? AND number > ? ORDER BY number"
            return [self._opened(place, number, state, sealed) for number, sealed in self._execute(query, (place, state, after))]

    def count(self, place: str) -> int:
        """How many lines a table has, over all of its states."""
        with self._lock:
            found = self._execute("SELECT COUNT(*), MAX(number) FROM answered WHERE place = ?", (place,))[0]
            if found[0] != (found[1] or 0):
                raise self._tampered()
            return int(found[0])

    def states(self, place: str) -> list[str]:
        """The states (version and declaration) of a table of which something was answered."""
        with self._lock:
            return [row[0] for row in self._execute("SELECT DISTINCT state FROM answered WHERE place = ?", (place,))]

    def close(self) -> None:
        """Let go of the file; what is in memory is shared, and goes with its ledger."""
        if self._memory:
            return
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _opened(self, place: str, number: int, state: str, sealed: bytes) -> AnsweredSet:
        try:
            plain = zlib.decompress(self._cipher.decrypt(sealed, self._bound(place, number, state)))
        except WrongKey:
            raise self._tampered() from None
        head, _, packed = plain.partition(b"\n")
        said = json.loads(head)
        records = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=said["size"]).astype(bool)
        return AnsweredSet(
            statistic=said["statistic"],
            column=said["column"],
            reads=tuple(said["reads"]),
            records=records,
            who=said["who"],
            what=said["what"],
        )

    @staticmethod
    def _bound(place: str, number: int, state: str) -> list[bytes]:
        return [place.encode(), str(number).encode(), state.encode()]

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error:
            raise self._unavailable() from None

    def _unavailable(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            "Nothing was answered",
            why=f"{self._name} could not be read or written, and without it overlap and audit are blind",
            instead="a disk with room, and a folder that this process may write",
        )

    def _tampered(self) -> LedgerTampered:
        return LedgerTampered(
            "Nothing was answered",
            why=f"a line of {self._name} was changed, moved or dropped",
            instead="its last backup, together with the ledger's",
        )


def history_of(ledger: Ledger, where: str | Path | None = None) -> SetHistory:
    """The history that belongs to a ledger: beside its file, where the caller says, or in memory with it."""
    key = ledger.derive("controls", "history", "1") + ledger.derive("controls", "history", "2")
    if where is None and not ledger.durable:
        if ledger not in _IN_MEMORY:
            _IN_MEMORY[ledger] = SetHistory(None, key)
        return _IN_MEMORY[ledger]
    if where is None:
        place = ledger.where
        if place is None or (isinstance(place, str) and "://" in place):
            raise InvalidParameter(
                "The controls are invalid",
                why="the ledger is on a server, so the place of the history must be said",
                instead='history="people.controls"',
            )
        where = f"{Path(place)}.controls"
    return SetHistory(Path(where), key)
