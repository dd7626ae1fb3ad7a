"""How long the engine may work on a question: a limit that follows from public facts, and a clock that keeps it.

Whoever waits can see how long an answer takes; the limit makes sure that nobody waits for ever on a question that only some rows
make slow. A question that is stopped costs in full (promise 2): the engine had begun to read. Asked again, it goes on once more
under that charge, and for ten times as long, since it would be stopped in vain otherwise.

A limit that follows from declared sizes is meant for a machine that does nothing else. Where others keep it busy when the time is
over, it is stretched once, by how much slower the machine is just then for a work of ours that reads no row. By that speed, and
the declared size, a question that is stopped says what it may need.
"""

import heapq
import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from cloister.errors import EngineError, InvalidParameter
from cloister.tables.engines.engine import Turn

_LEAST = 120.0
_MICROSECONDS_A_ROW = 20
_ROWS = 10_000_000
_FORGET = 100
_BUSY, _BUSIEST = 1.5, 20.0
"""Below the first the machine counts as quiet: the engine itself may keep its processors busy. No limit is stretched by more than
the second."""
_AGAIN = 1.0
"""Seconds after which what began when the time was over is stopped, too."""
_SAMPLE = 0.05
_GOES_ON = 10
"""How many times as long as the first a second attempt may take."""


class Stoppable(Protocol):
    """What an engine's work can be stopped by."""

    def cancel(self, thread: int | None = None) -> None:
        """Stops what runs now, or only what that thread asked for."""


class Clock:
    """Stops the engine when the time is over, and knows that it did. It is made in the thread that asks."""

    def __init__(
        self, seconds: float, tables: Collection[Stoppable], *, firm: bool = True, needs: float | None = None, attempt: int = 1
    ) -> None:
        self.seconds = seconds if firm or attempt == 1 else _GOES_ON * seconds
        self._needs = seconds if needs is None else needs
        self._firm, self._attempt = firm, attempt
        self._busy: float | None = None
        self._tables = tables
        self._over = False
        self._thread = threading.get_ident()
        self._turn = threading.Lock()
        self.runs = False
        """Whether the work is not done; looked at by the hundred, so no property."""

    def start(self) -> None:
        """The time begins."""
        self.runs = True
        _ALARMS.set(self, self.seconds)

    def end(self) -> None:
        """The work is done: from here on nothing is stopped any more."""
        with self._turn:
            self.runs = False
            self._tables = ()
        _ALARMS.unset()

    def stop(self) -> None:
        """Stops what the engine does for this thread; what others ask of it goes on."""
        for table in self._tables:
            table.cancel(self._thread)

    @property
    def over(self) -> bool:
        """Whether the time was over before the work was done."""
        return self._over

    def check(self) -> None:
        """Says that the time was over, if it was, and what the question may need by the machine's speed just then."""
        if not self._over:
            return
        needs = self._needs * max(1.0, min(self._busy or busyness(), _BUSIEST))
        longer = f"cl.Session(…, time_limit={10 * max(60, round(max(needs, self.seconds)))})"
        instead = "the same query again: the first repetition is not charged and may take ten times as long"
        if self._attempt > 1:
            instead = f"{longer}, and the same query: it is charged again"
        elif self._firm:
            instead = f"{longer}, and the same query: the first repetition is not charged"
        raise EngineError(
            "The query was stopped",
            why=f"the engine took longer than its limit of {self.seconds:,.0f} seconds; what was reserved stays charged; by its "
            f"declared size= it may need {needs:,.0f} on a machine as busy as this one is",
            instead=instead,
        )

    def ring(self) -> None:
        """The time is over; on a busy machine not yet, unless somebody chose it."""
        if not self._firm and self._busy is None:
            self._busy = busyness()
            if self._busy > _BUSY:
                given = self.seconds
                self.seconds = given * min(self._busy, _BUSIEST)
                _ALARMS.set(self, self.seconds - given)
                return
        with self._turn:
            if self.runs:
                self._over = True
                self.stop()
                _ALARMS.set(self, _AGAIN)


class _Alarms:
    """One thread for the clocks of all questions: a thread for each would cost more than a short question does. It sleeps until
    the earliest limit has passed, which a question that was answered in time does not change."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)  # the thread and its locks are the parent's

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Clock]] = []
        self._number = 0
        self._ended = 0
        self._thread: threading.Thread | None = None

    def set(self, clock: Clock, seconds: float) -> None:
        """Have it rung after so many seconds."""
        with self._changed:
            self._number += 1
            heapq.heappush(self._waiting, (time.monotonic() + seconds, self._number, clock))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cloister-limits", daemon=True)
                self._thread.start()
            elif self._waiting[0][2] is clock:
                self._changed.notify()

    def unset(self) -> None:
        """One was ended: when most have been, they are forgotten."""
        with self._changed:
            self._ended += 1
            if self._ended > _FORGET and 2 * self._ended > len(self._waiting):
                waiting = self._waiting
                self._waiting = []
                for each in waiting:
                    if each[2].runs:
                        self._waiting.append(each)
                heapq.heapify(self._waiting)
                self._ended = 0

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                if not self._waiting or self._waiting[0][0] > now:
                    self._changed.wait(self._waiting[0][0] - now if self._waiting else None)
                    continue
                clock = heapq.heappop(self._waiting)[2]
            if clock.runs:  # rarely: a server that is slow to stop keeps no other clock waiting
                threading.Thread(target=clock.ring, name="cloister-limit", daemon=True).start()


_ALARMS = _Alarms()


@contextmanager
def stopped_after(
    seconds: float, tables: Collection[Stoppable], *, firm: bool = True, needs: float | None = None, attempt: int = 1
) -> Iterator[Clock]:
    """A clock that runs while the engine works; one that is not `firm` gives more time on a busy machine, and to a second
    attempt. `needs` is what follows from declared sizes, where the limit is another.

    >>> with stopped_after(60, []) as clock:
    ...     clock.check()
    """
    clock = Clock(seconds, tables, firm=firm, needs=needs, attempt=attempt)
    clock.start()
    try:
        yield clock
    finally:
        clock.end()


@contextmanager
def in_turn(turns: Iterable[Turn | None], seconds: float) -> Iterator[None]:
    """Waits for all of them, each once, in an order that is the same for everybody, so that no two wait for each other; and no
    longer than the engine may work, so that nobody waits for ever. What does not get its turn is refused before it is charged.

    >>> with in_turn([threading.Semaphore(0), None], 0.01):
    ...     pass
    Traceback (most recent call last):
    cloister.errors.EngineError: The query was not run: others take all the memory that is set; nothing was charged.
      Instead: the same query later
    """
    until = time.monotonic() + seconds
    with ExitStack() as taken:
        for _, turn in sorted({id(each): each for each in turns if each is not None}.items()):
            if not turn.acquire(timeout=max(0, until - time.monotonic())):
                raise EngineError(
                    "The query was not run",
                    why="others take all the memory that is set; nothing was charged",
                    instead="the same query later",
                )
            taken.callback(turn.release)
        yield


def busyness() -> float:
    """How many times as long as alone a thread takes here just now.

    >>> busyness() > 0
    True
    """
    begun, until = time.monotonic(), time.thread_time() + _SAMPLE
    while time.thread_time() < until:
        pass
    return (time.monotonic() - begun) / _SAMPLE


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
            f"time_limit={seconds!r} is invalid", why="it must be a number of seconds greater than 0", instead="time_limit=600"
        )
    return seconds
