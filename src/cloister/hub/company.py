"""One thread in which short questions are answered together, as guests of one company.

A question that is answered in memory takes a millisecond of the processor, and waits three times for the disk. In threads of
their own, sixteen such questions spend as long on waking one another, and on waiting for the interpreter, as on their answers.
Here each runs until it would wait for the disk; then the next one runs; and when all of them wait, one of them commits for all
(`ledger/company.py`). Each runs on a stack of its own, with a context of its own (greenlets), so that nothing in the way of a
question is written otherwise for it. The order in which guests run decides nothing: each is identified, allowed, charged and kept
by itself.

Who would have to wait for anything else (rows that are still to be prepared, an engine, another request under the same key), or
takes long (a text whose form is not known yet, a question with groups), leaves the company before anything is charged, and is
begun again in a thread of its own; see `own_thread`. So nobody can hold up the others by what they ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

from cloister.ledger.commit import Entry, GroupCommit
from cloister.ledger.company import CARRIER, OwnThread

__all__ = ["Company"]

Answer = TypeVar("Answer")

_IDLE = 5.0
"""Seconds after which the thread ends, until somebody comes again."""
_MOST = 128
"""Guests at once: more would wait for longer, and share no more."""


class _Guest(Generic[Answer]):
    """A piece of work, the stack that it runs on, the commit that it waits for, and who waits for its answer."""

    def __init__(self, work: Callable[[], Answer]) -> None:
        self._work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Answer | None] = self.loop.create_future()
        self._stack: greenlet | None = None
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self.group: GroupCommit[Any] | None = None
        self.entry: Entry[Any] | None = None
        self.moment: dict[Hashable, Any] | None = None

    def goes_on(self) -> bool:
        """Run, to the next commit or to the end; whether it waits for a commit now."""
        if self._stack is None:
            self._stack = greenlet(self._whole)  # here, since a stack belongs to the thread that made it
        self.group = self.entry = None
        self._stack.switch()
        return not self._stack.dead

    def until_done(self, group: GroupCommit[Any], entry: Entry[Any]) -> None:
        """As a carrier: the others run."""
        self.group, self.entry, self.moment = group, entry, None
        getcurrent().parent.switch()

    def fail(self, error: BaseException) -> None:
        """What should not happen happened to the company; who has no answer yet is let go."""
        if self._stack is None or not self._stack.dead:
            self._stack, self._error = None, error

    def deliver(self) -> None:
        """In the loop of whoever waits, unless they are gone."""
        if self.future.done():
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._answer)

    def _whole(self) -> None:
        CARRIER.set(self)  # of this stack's context alone
        try:
            self._answer = self._work()
        except OwnThread:
            return
        except BaseException as error:
            self._error = error


class Company:
    """The thread, and who waits at its door. Those who come while others are inside wait until these have gone, so that as many
    as can be share each commit.

    >>> asyncio.run(Company().answer(lambda: 6 * 7))
    42
    """

    def __init__(self) -> None:
        self._arrived: deque[_Guest[Any]] = deque()
        self._door = threading.Condition()
        self._open = False

    async def answer(self, work: Callable[[], Answer]) -> Answer | None:
        """What the work gives, or its error; None where it must be begun again in a thread of its own."""
        guest = _Guest(work)
        with self._door:
            self._arrived.append(guest)
            if self._open:
                self._door.notify()
            else:
                self._open = True
                threading.Thread(target=self._run, name="cloister-company", daemon=True).start()
        return await guest.future

    def _run(self) -> None:
        """Until nobody has come for a while."""
        while guests := self._welcome():
            try:
                self._entertain(guests)
            except BaseException as error:  # nobody may wait for ever
                for guest in guests:
                    guest.fail(error)
                _part(guests)

    def _welcome(self) -> list[_Guest[Any]]:
        with self._door:
            if not self._arrived:
                self._door.wait(_IDLE)
            guests = [self._arrived.popleft() for _ in range(min(len(self._arrived), _MOST))]
            self._open = bool(guests)
            return guests

    @staticmethod
    def _entertain(guests: list[_Guest[Any]]) -> None:
        """All of them, from the door to the door."""
        moment: dict[Hashable, Any] = {}
        for guest in guests:
            guest.moment = moment
        while guests:
            waiting = [guest for guest in guests if guest.goes_on()]
            _part(guest for guest in guests if guest.entry is None)
            groups = {id(guest.group): guest.group for guest in waiting if guest.group is not None}
            for group in groups.values():
                group.run_together([guest.entry for guest in waiting if guest.group is group and guest.entry is not None])
            guests = waiting


def _part(guests: Iterable[_Guest[Any]]) -> None:
    """Answers, each loop told of its own at once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Guest[Any]]] = {}
    for guest in guests:
        by_loop.setdefault(guest.loop, []).append(guest)
    for loop, those in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that has ended has nobody waiting
            loop.call_soon_threadsafe(_deliver, those)


def _deliver(guests: list[_Guest[Any]]) -> None:
    for guest in guests:
        guest.deliver()
