"""One at a time of the same person's same question: whoever asks it again while it is being answered gets the stored answer.

Two requests that both find nothing stored would both buy. That is charged rightly, and a waste of budget. Other processes are not
waited for: for them holds what the ledger says.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class SingleFlight:
    """A lock for each key that is being worked on, and none for any other.

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
