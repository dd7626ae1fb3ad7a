"""So many questions are worked on at once, and of one person at most a part of them: nobody's questions hold up all others'.

A person's own seat is taken first, so that those who wait for it hold none of the common ones. Of those who wait, too, one person
has only so many, since each of them holds a thread of the server.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from cloister.errors import TooMany
from cloister.hub.hub import Caller, Hub

_WORKING, _LOOKING = "asking seats", "explaining seats"
_WAITING = 2
"""How many of one person may be there for each seat of the hub."""


class ConcurrencyLimit:
    """A number of seats, of which one person takes at most a part.

    >>> seats = ConcurrencyLimit(8)
    >>> seats.each, seats.most
    (4, 16)
    """

    def __init__(self, number: int) -> None:
        number = max(number, 1)
        self.each, self.most = max(number // 2, 1), _WAITING * number
        self._all = threading.BoundedSemaphore(number)
        self._own: dict[str, tuple[threading.BoundedSemaphore, int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, person: str) -> Iterator[bool]:
        """Hold a seat, and hear whether it was waited for; refused at once to somebody of whom too many wait already."""
        with self._lock:
            own, here = self._own.get(person) or (threading.BoundedSemaphore(self.each), 0)
            if here >= self.most:
                raise TooMany(
                    "The query was refused",
                    why=f"{here} of your queries are running or waiting",
                    instead="wait for one of them",
                    after=5,
                )
            self._own[person] = own, here + 1
        try:
            with own:
                waited = not self._all.acquire(blocking=False)
                if waited:
                    self._all.acquire()
                try:
                    yield waited or here >= self.each
                finally:
                    self._all.release()
        finally:
            with self._lock:
                own, here = self._own[person]
                if here == 1:
                    del self._own[person]
                else:
                    self._own[person] = own, here - 1


def working(hub: Hub, caller: Caller) -> AbstractContextManager[bool]:
    """A seat for a question that is answered."""
    return _seat(hub, caller, _WORKING, hub.settings.asking)


def looking(hub: Hub, caller: Caller) -> AbstractContextManager[bool]:
    """A seat for a question that is only looked at: these keep to seats of their own, and leave the others to answers."""
    return _seat(hub, caller, _LOOKING, hub.settings.asking // 2)


def _seat(hub: Hub, caller: Caller, name: str, number: int) -> AbstractContextManager[bool]:
    seats: ConcurrencyLimit = hub.parts.get(name) or hub.parts.setdefault(name, ConcurrencyLimit(number))
    return seats.taken(caller.id)
