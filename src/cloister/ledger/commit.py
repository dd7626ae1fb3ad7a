"""Group commit: what several threads ask for at once is done in one transaction, so that they share one push to the disk.

The first thread to come leads: it takes everything that waits and runs it as one batch. While it waits for the disk, others
queue; when it is done it resumes them, and the first of those who still wait leads the next batch. A lone thread leads every
time, at the cost of taking one uncontended lock twice.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Work = TypeVar("Work")

_LARGEST = 256
_PATIENCE = 0.002
"""Seconds for which a batch waits for those who are known to be coming."""
_MOMENT = 0.1
"""Seconds for which somebody is known to be coming soon."""


class Entry(Generic[Work]):
    """A piece of work, and then its result or its error."""

    __slots__ = ("done", "error", "leads", "result", "turn", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.turn: threading.Lock | None = None  # for those who wait


class Rush:
    """The questions that are being answered, each with when it was begun.

    >>> now = [0.0]
    >>> rush = Rush(lambda: now[0])
    >>> with rush.one():
    ...     with rush.one():
    ...         both = rush.coming()
    ...     now[0] = 60.0
    ...     late = rush.coming()
    >>> both, late, rush.coming()
    (2, 0, 0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[object, float] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """One of them."""
        mine = object()
        self._begun[mine] = self._clock()
        try:
            yield
        finally:
            del self._begun[mine]

    def coming(self) -> int:
        """How many were begun a moment ago."""
        lately, number = self._clock() - _MOMENT, 0
        for begun in list(self._begun.values()):
            number += begun > lately
        return number


class GroupCommit(Generic[Work]):
    """A queue whose members take turns at leading. `run` gets a batch, and must mark every entry of it as done; it may not
    raise."""

    def __init__(self, run: Callable[[list[Entry[Work]]], None]) -> None:
        self._run = run
        self.coming: Callable[[], int] = lambda: 0
        """How many are at work just now that will soon come, or are here; whoever knows may say so."""
        self._wanted = 0
        self._bell: threading.Lock | None = None  # of a leader who waits for so many
        self._mutex = threading.Lock()
        self._waiting: list[Entry[Work]] = []
        self._busy = False
        self._clients = 0  # how many came lately: those of the batch before, and those who came while it ran

    def submit(self, work: Work) -> Any:
        """Do `work`, alone or with others', and give back its result or raise its error.

        >>> def run(batch):
        ...     for entry in batch:
        ...         entry.result, entry.done = entry.work + 1, True
        >>> GroupCommit(run).submit(1)
        2
        """
        entry = Entry(work)
        coming = self.coming()
        with self._mutex:
            alone = not self._busy and self._clients <= 1 and coming <= 1
            if not alone:
                self._waiting.append(entry)
                if self._bell is not None and len(self._waiting) >= self._wanted:
                    self._bell.release()
                    self._bell = None
                entry.leads = not self._busy
                if not entry.leads:
                    entry.turn = turn = threading.Lock()
                    turn.acquire()
            self._busy = True
        if alone:  # nobody waits, and nobody is worth waiting for
            self._run_batch([entry])
        else:
            if not entry.leads:
                self._wait(entry, turn)
            if entry.leads:
                self._lead()
        if entry.error is not None:
            raise entry.error
        return entry.result

    def _wait(self, entry: Entry[Work], turn: threading.Lock) -> None:
        """Until a leader has done the work, or says that it is this thread's turn to lead."""
        try:
            turn.acquire()
        except BaseException:  # an interrupt: the queue must go on without this thread
            with self._mutex:
                if entry in self._waiting:
                    self._waiting.remove(entry)
                leads = entry.leads
            if leads:
                self._lead()
            raise

    def _gather(self) -> None:
        """Where several came lately, let most of those who were just answered come again: many small batches take longer than
        one. The others resume and come while the disk works, which takes longer than waiting for them would save.

        As soon as a yield of the processor brings nobody new, the batch begins; a thread that is alone never waits. Where it is
        known how many are coming, most of them are waited for, and for no longer than one push to the disk takes.
        """
        here = len(self._waiting)
        while 3 * here < 2 * self._clients and here < _LARGEST:
            time.sleep(0)
            if len(self._waiting) == here:
                break
            here = len(self._waiting)
        wanted = min(2 * self.coming() // 3, _LARGEST)
        if here >= wanted:
            return
        bell = threading.Lock()
        bell.acquire()
        with self._mutex:
            if len(self._waiting) >= wanted:
                return
            self._wanted, self._bell = wanted, bell
        try:
            bell.acquire(timeout=_PATIENCE)
        finally:
            with self._mutex:
                self._bell = None

    def _lead(self) -> None:
        """Take what waits as one batch, and run it; also where the gathering is interrupted, since others wait for it."""
        try:
            self._gather()
        finally:
            with self._mutex:
                batch, self._waiting = self._waiting[:_LARGEST], self._waiting[_LARGEST:]
            self._run_batch(batch)

    def _run_batch(self, batch: list[Entry[Work]]) -> None:
        """Run it, resume those who are answered, and hand over to the first who came meanwhile."""
        try:
            if batch:
                self._run(batch)
        finally:
            with self._mutex:
                self._clients = len(batch) + len(self._waiting)
                successor = self._waiting[0] if self._waiting else None
                self._busy = successor is not None
                if successor is not None:
                    successor.leads = True
            for entry in batch if successor is None else (successor, *batch):
                if entry.turn is not None and entry.turn.locked():
                    entry.turn.release()
