"""Blocking calls of one connection, in threads, with a limit of time and a way to give up on them.

A call that was given up on goes on in its thread, since nothing may stop a question between its charge and its answer. The next
call of the same connection waits for it, and one person's connections share a few turns, so nobody holds all threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor as Pool
from typing import Any, TypeVar

from cloister.hub.postgres.failures import Refused

_Found = TypeVar("_Found")


class Work:
    """The calls of one connection, one at a time."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self._left: asyncio.Future[Any] | None = None
        self._given_up: asyncio.Future[None] | None = None

    async def do(self, pool: Pool, call: Callable[[], _Found], seconds: float, stop: Callable[[], None]) -> _Found:
        """What the call gives; `stop` is called when nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        self._given_up = loop.create_future()
        try:
            if self._left is not None and not await self._ended(self._left, deadline):
                raise self._refused()
            self._left = None
            await self._turn(deadline)
            try:
                future = loop.run_in_executor(pool, call)
            except RuntimeError:  # the hub stops
                self._turns.release()
                raise
            future.add_done_callback(lambda _: self._turns.release())
            if await self._ended(future, deadline):
                return future.result()
            self._left = future
            future.add_done_callback(_unheard)
            stop()
            raise self._refused()
        finally:
            self._given_up = None

    def cancel(self) -> None:
        """Gives up on the call that is waited for, where there is one."""
        if self._given_up is not None and not self._given_up.done():
            self._given_up.set_result(None)

    async def finished(self) -> None:
        """Waits for what goes on."""
        if self._left is not None:
            await asyncio.wait([self._left])

    async def _turn(self, deadline: float) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        turn = asyncio.ensure_future(self._turns.acquire())
        if not await self._ended(turn, deadline):
            turn.cancel()
            raise self._refused()

    async def _ended(self, future: asyncio.Future[Any], deadline: float) -> bool:
        assert self._given_up is not None
        left = max(deadline - asyncio.get_running_loop().time(), 0)
        await asyncio.wait([future, self._given_up], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return future.done()

    def _refused(self) -> Refused:
        canceled = self._given_up is not None and self._given_up.done()
        return Refused(
            "The statement was canceled" if canceled else "The statement took too long",
            why="what it was charged by then stays charged",
            instead="the same question again: an answer that was paid for is given without another charge",
            code="57014",
        )


def _unheard(future: asyncio.Future[Any]) -> None:
    """Nobody waits for it; an exception in it is not an accident of the loop."""
    if not future.cancelled():
        future.exception()
