"""How long the engine may work on a question: a limit that follows from public facts, and a clock that keeps it.

Whoever waits can see how long an answer takes; the limit makes sure that nobody waits for ever on a question that only some rows
make slow. A question that is stopped costs in full (promise 2): the engine had begun to read.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Protocol

from cloister.errors import EngineError, InvalidParameter

_LEAST = 120.0
_MICROSECONDS_A_ROW = 20
_ROWS = 10_000_000


class Stoppable(Protocol):
    """What an engine's work can be stopped by."""

    def cancel(self, thread: int | None = None) -> None:
        """Stops what runs now, or only what that thread asked for."""


class Clock:
    """Stops the engine when the time is over, and knows that it did. It is made in the thread that asks."""

    def __init__(self, seconds: float, tables: Collection[Stoppable]) -> None:
        self.seconds = seconds
        self._tables = tables
        self._over = False
        self._thread = threading.get_ident()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def start(self) -> None:
        """The time begins."""
        self._timer.start()

    def end(self) -> None:
        """The work is done."""
        self._timer.cancel()

    def stop(self) -> None:
        """Stops what the engine does for this thread; what others ask of it goes on."""
        for table in self._tables:
            table.cancel(self._thread)

    def check(self) -> None:
        """Says that the time was over, if it was."""
        if self._over:
            raise EngineError(
                "The question was stopped",
                why=f"the engine took longer than its limit of {self.seconds:,.0f} seconds; what was reserved stays charged",
                instead="a simpler question, or cl.Session(…, time_limit=3600)",
            )

    def _end(self) -> None:
        self._over = True
        self.stop()


@contextmanager
def stopped_after(seconds: float, tables: Collection[Stoppable]) -> Iterator[Clock]:
    """A clock that runs while the engine works.

    >>> with stopped_after(60, []) as clock:
    ...     clock.check()
    """
    clock = Clock(seconds, tables)
    clock.start()
    try:
        yield clock
    finally:
        clock.end()


def limit_of(passes: int, size: int | None) -> float:
    """Seconds for so many passes over a table of so many rows (the owner's public `size=`, or ten million).

    >>> limit_of(1, 1000), limit_of(2, None)
    (120.0, 400.0)
    """
    return max(_LEAST, passes * (size or _ROWS) * _MICROSECONDS_A_ROW / 1e6)


def checked_limit(seconds: float | None) -> float | None:
    """A limit as the owner gives it.

    >>> checked_limit(60)
    60
    """
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e7):
        raise InvalidParameter(
            f"time_limit={seconds!r} was refused", why="it must be a number of seconds greater than 0", instead="time_limit=600"
        )
    return seconds
