"""One connection after its sign-in: the simple and the extended protocol, message by message.

After an error, messages of the extended protocol are skipped up to the next Sync, as the protocol wants it. A portal runs at most
once: what it found is kept, and asking it again for rows charges nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Pool
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from cloister.pgwire import protocol
from cloister.pgwire.copying import copied
from cloister.pgwire.execution import Executor
from cloister.pgwire.failures import Failure, Refused, failure_of
from cloister.pgwire.parameters import spell
from cloister.pgwire.portals import Columns, Portal
from cloister.pgwire.reading import read_all
from cloister.pgwire.results import Column, Result
from cloister.pgwire.statements import Statement
from cloister.pgwire.types import SPOKEN, TYPES
from cloister.pgwire.variables import REPORTED, spelled


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one client may take, so that it can neither stall nor exhaust the others: sizes, numbers and seconds.

    >>> Limits().connections
    200
    """

    message: int = 1_000_000
    """The longest message in bytes."""
    connections: int = 200
    """At once, those that have not signed in yet included."""
    strangers: int = 50
    """At once, of those that have not signed in yet; half as many more from networks where somebody has. Past them the oldest
    goes (`server.py`)."""
    each: int = 20
    """Connections of one person."""
    turns: int = 2
    """Calls of one person that are worked on at once, so that nobody takes all threads."""
    prepared: int = 500
    """Statements, and cursors, of one connection."""
    held: int = 32_000_000
    """Bytes that the open cursors of one connection hold, about; past them nothing is run before one is closed."""
    startup: float = 15.0
    """Seconds until a client has signed in."""
    idle: float = 1800.0
    """Seconds between two messages."""
    writing: float = 60.0
    """Seconds in which a client takes what it is sent, a piece at a time."""
    looking: float = 10.0
    """Seconds of a plan or a catalogue query."""
    asking: float = 300.0
    """Seconds of a question; its charge stands all the same."""
    askers: int = 8
    """Questions that are worked on at once."""
    lookers: int = 4
    """Plans and catalogue queries that are worked on at once."""


class Work:
    """The calls of one connection, one at a time.

    A call that was given up on goes on in its thread, since nothing may stop a question between its charge and its answer. The
    next call of the same connection waits for it, and one person's connections share a few turns, so nobody holds all threads."""

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self._gone = self._charged = False
        self._left: asyncio.Future[Any] | None = None
        self._given_up: asyncio.Future[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    async def do(
        self, pool: Pool, call: Callable[[], _Found], seconds: float, stop: Callable[[], None], *, charged: bool = False
    ) -> _Found:
        """What the call gives; `stop` is called when nobody waits for it any more. Whether it may be `charged`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        self._given_up = loop.create_future()
        self._charged = charged
        if self._gone:
            self.leave()
        try:
            if self._left is not None and not await self._ended(self._left, deadline):
                raise self._refused()
            self._left = None
            await self._turn(deadline)
            try:
                job = pool.submit(copy_context().run, call)
            except RuntimeError:  # the hub stops
                self._turns.release()
                raise
            future = asyncio.wrap_future(job)
            future.add_done_callback(lambda _: self._turns.release())
            try:
                if await self._ended(future, deadline):
                    return future.result()
            finally:
                if not future.done() and not job.cancel():  # what has not begun never does, and is charged nothing
                    self._left = future
                    future.add_done_callback(_unheard)
                    stop()  # before its client hears so
                    self._stopping = asyncio.ensure_future(_stopped(future, stop))
            raise self._refused()
        finally:
            self._given_up = None

    def cancel(self) -> None:
        """Gives up on the call that is waited for, where there is one."""
        if self._given_up is not None and not self._given_up.done():
            self._given_up.set_result(None)

    def leave(self) -> None:
        """Its client has gone, or goes once it is answered: what would be charged and has not begun never does."""
        self._gone = True
        if self._charged:
            self.cancel()

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
            instead="the same question again, which is not charged twice; of a run, which would be, its job: /jobs",
            code="57014",
        )


async def _stopped(future: asyncio.Future[Any], stop: Callable[[], None]) -> None:
    """Say it until it is heard: an engine forgets what it was told before its query began."""
    while not (await asyncio.wait([future], timeout=_AGAIN))[0]:
        stop()


def _unheard(future: asyncio.Future[Any]) -> None:
    """Nobody waits for it; an exception in it is not an accident of the loop."""
    if not future.cancelled():
        future.exception()


_LOG = logging.getLogger(__name__)
_PIECE = 500
_AGAIN = 0.05
"""Seconds until a call that goes on is told again to stop."""
_QUIET = ("warning", "error", "fatal", "panic")
_Found = TypeVar("_Found")


class Connection:
    """Reads messages and answers them, until the client goes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        executor: Executor,
        *,
        limits: Limits,
        pools: tuple[Pool, Pool],
        turns: asyncio.Semaphore,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._executor, self._store, self._limits = executor, executor.store, limits
        self._quick, self._slow = pools
        self.work = Work(turns)
        self._skipping = False
        self._reported: dict[str, str] = {}

    async def serve(self) -> None:
        """From the first ReadyForQuery to the end."""
        self._report()
        await self._ready()
        ahead = self._listened()
        try:
            while True:
                async with asyncio.timeout(self._limits.idle):
                    letter, body = await ahead
                if letter == "X":
                    return
                ahead = self._listened()
                if self._skipping and letter not in ("S", "Q", "F"):
                    continue
                try:
                    await self._answer(letter, body)
                except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                    raise
                except Exception as error:  # whatever it was, the client gets an error and the connection lives on
                    await self._failed(error, extended=letter in "PBDEC")
        finally:
            ahead.cancel()

    def _listened(self) -> asyncio.Future[tuple[str, protocol.Body]]:
        """The next message, read while the one before it is answered: so a client that goes is heard."""
        ahead = asyncio.ensure_future(self._next())
        ahead.add_done_callback(_unheard)
        return ahead

    async def _next(self) -> tuple[str, protocol.Body]:
        try:
            found = await protocol.read_message(self._reader, self._limits.message)
        except (OSError, EOFError):
            found = "X", protocol.Body(b"")  # gone without a word
        if found[0] == "X":
            self.work.leave()
        return found

    async def _answer(self, letter: str, body: protocol.Body) -> None:
        match letter:
            case "Q":
                self._skipping = False
                await self._simple(body)
            case "P":
                await self._parse(body)
            case "B":
                await self._bind(body)
            case "D":
                await self._describe(body)
            case "E":
                await self._execute(body)
            case "C":
                self._close(body)
            case "S":
                self._executor.end(commit=not self._skipping)
                if self._skipping:
                    self._executor.variables.undo()
                self._skipping = False
                await self._ready()
            case "H":
                await self._flush()
            case "F":
                self._skipping = False
                self._tell(failure_of(Refused("A function call is not supported", why="there are none", instead="SELECT …")))
                await self._ready()
            case "d" | "c" | "f":
                pass  # what is left of a COPY that was refused
            case _:
                raise protocol.breach("it is none of the protocol")

    # ── the simple protocol ──────────────────────────────────────────────────────────────────────

    async def _simple(self, body: protocol.Body) -> None:
        variables = self._executor.variables
        try:
            text = body.text()
            body.end()
            found = await self._quickly(lambda: read_all(text))
            if not found:
                self._writer.write(protocol.EMPTY)
            self._executor.several = len(found) > 1
            for statement in found:
                result = await self._run(statement)
                await self._send(result, (int(result.binary),), described=True)
            self._executor.end(commit=True)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            variables.undo()
            failure = failure_of(error)
            if failure.severity == "FATAL":
                raise
            self._executor.end(commit=False)
            variables.fail()
            self._log(error)
            self._tell(failure)
        finally:
            self._executor.several = False
        await self._ready()

    # ── the extended protocol ────────────────────────────────────────────────────────────────────

    async def _parse(self, body: protocol.Body) -> None:
        name, text = body.text(), body.text()
        given = [body.oid() for _ in range(body.count())]
        body.end()
        if not name:
            self._store.statements.pop("", None)
        self._store.prepare(name, await self._quickly(lambda: self._executor.prepared(text, given)))
        self._writer.write(protocol.PARSED)

    async def _bind(self, body: protocol.Body) -> None:
        name, source = body.text(), body.text()
        value_formats = body.formats()
        values = [body.value() for _ in range(body.count())]
        formats = body.formats()
        body.end()
        prepared = self._store.statement(source)
        if len(values) != len(prepared.types):
            raise Refused(
                "The values are invalid", why=f"{len(prepared.types)} are wanted", instead="one value each", code="08P01"
            )
        binary = _spread(value_formats, len(values))
        if not name:
            self._store.portals.close("")

        def with_values() -> Statement | None:
            given = enumerate(zip(values, prepared.types, binary, strict=True), start=1)
            return prepared.with_values([spell(value, oid, flag == 1, place) for place, (value, oid, flag) in given])

        statement = await self._quickly(with_values)
        depth = self._executor.variables.depth
        self._store.portals.bind(name, Portal(statement, tuple(formats), prepared.told, text=prepared.text, depth=depth))
        self._writer.write(protocol.BOUND)

    async def _describe(self, body: protocol.Body) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._store.statement(name)
            self._writer.write(protocol.parameters([oid or TYPES["text"].oid for oid in prepared.types]))
            prepared.told = await self._quickly(lambda: self._executor.told(prepared.exemplified()))
            self._describe_columns(prepared.told[0], ())
        elif kind == b"P":
            portal = self._store.portals.get(name)
            if portal.rows is None and not portal.failed:
                portal.told = await self._quickly(lambda: self._executor.told(portal.statement))
            columns = portal.columns if portal.rows is not None else portal.told[0] if portal.told else None
            self._describe_columns(columns, portal.formats)
        else:
            raise protocol.breach("it describes neither a statement nor a portal")

    async def _execute(self, body: protocol.Body) -> None:
        name, most = body.text(), body.int32()
        body.end()
        portal = self._store.portals.get(name)
        statement = portal.statement
        if statement is None:
            self._writer.write(protocol.EMPTY)
            return
        slow = portal.rows is None and await self._quickly(lambda: self._executor.private(statement))
        notices = await self._timed(lambda: self._executor.open(portal), slow=slow)
        rows, whole = portal.next(0 if portal.copy else most)
        tag = f"SELECT {len(rows)}" if portal.tag.startswith("SELECT") else portal.tag
        copy = portal.copy
        result = Result(columns=portal.columns, rows=rows, tag=tag if whole or copy else "", notices=notices, copy=copy)
        await self._send(result, portal.formats)

    def _close(self, body: protocol.Body) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind not in (b"S", b"P"):
            raise protocol.breach("it closes neither a statement nor a portal")
        if kind == b"S":
            self._store.statements.pop(name, None)
        else:
            self._store.portals.close(name)
        self._writer.write(protocol.CLOSED)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    async def _run(self, statement: Statement) -> Result:
        slow = await self._quickly(lambda: self._executor.private(statement))
        return await self._timed(lambda: self._executor.run(statement), slow=slow)

    async def _timed(self, call: Callable[[], _Found], *, slow: bool) -> _Found:
        pool, seconds = (self._slow, self._limits.asking) if slow else (self._quick, self._limits.looking)
        own = self._executor.variables.seconds
        seconds = min(seconds, own) if own else seconds
        return await self.work.do(pool, call, seconds, self._executor.interrupt, charged=slow)

    async def _quickly(self, call: Callable[[], _Found]) -> _Found:
        return await self.work.do(self._quick, call, self._limits.looking, self._executor.interrupt)

    def _describe_columns(self, columns: Columns, formats: Sequence[int]) -> None:
        if columns is None:
            self._writer.write(protocol.NO_DATA)
        else:
            self._writer.write(_description(columns, _spread(formats, len(columns))))

    async def _send(self, result: Result, formats: Sequence[int], *, described: bool = False) -> None:
        """Rows in pieces, so that a client that does not read holds up nobody but itself."""
        if self._executor.variables.get("client_min_messages") not in _QUIET:
            for notice in result.notices:
                self._writer.write(protocol.failed(Failure(code="00000", message=notice, severity="NOTICE"), notice=True))
        if result.copy is not None:
            for sent in copied(result.columns or (), result.rows, result.copy):
                self._writer.write(sent)
                await self._flush()
        elif result.columns is not None:
            codes = _spread(formats, len(result.columns))
            types = [TYPES[column.kind] for column in result.columns]
            if described:
                self._writer.write(_description(result.columns, codes))
            for start in range(0, len(result.rows), _PIECE):
                piece = result.rows[start : start + _PIECE]
                self._writer.write(b"".join(protocol.row(values, types, codes) for values in piece))
                await self._flush()
        self._report()
        self._writer.write(protocol.complete(result.tag) if result.tag else protocol.SUSPENDED)

    async def _failed(self, error: Exception, *, extended: bool) -> None:
        failure = failure_of(error)
        if failure.severity == "FATAL":
            raise error
        self._log(error)
        self._executor.variables.fail()
        self._tell(failure)
        self._skipping = extended
        await self._flush()

    def _tell(self, failure: Failure) -> None:
        self._writer.write(protocol.failed(failure))

    def _log(self, error: Exception) -> None:
        """The kind alone: texts and values of a client have no place in a log."""
        if failure_of(error).code == "XX000":
            _LOG.error("a statement failed with %s", type(error).__name__)

    def _report(self) -> None:
        for name in REPORTED:
            value = self._executor.variables.get(name)
            if self._reported.get(name) != value:
                self._reported[name] = value
                if name == "client_encoding":
                    SPOKEN.set(value)
                self._writer.write(protocol.parameter_status(spelled(name), value))

    async def _ready(self) -> None:
        self._executor.variables.settle()
        self._report()
        self._writer.write(protocol.ready(self._executor.variables.state))
        await self._flush()

    async def _flush(self) -> None:
        async with asyncio.timeout(self._limits.writing):
            await self._writer.drain()


def _description(columns: Sequence[Column], codes: Sequence[int]) -> bytes:
    return protocol.description([(column.name, TYPES[column.kind]) for column in columns], codes)


def _spread(formats: Sequence[int], count: int) -> list[int]:
    """No code: all text; one: the same for all; else one each."""
    if len(formats) <= 1:
        return [*(formats or [0])] * count
    if len(formats) != count:
        raise Refused("The formats are invalid", why=f"{count} are wanted", instead="one for all", code="08P01")
    return list(formats)
