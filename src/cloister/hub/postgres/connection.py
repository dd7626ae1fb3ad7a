"""One connection after its log-in: the simple and the extended protocol, message by message.

After an error, messages of the extended protocol are skipped up to the next Sync, as the protocol wants it. A portal runs at most
once: what it found is kept, and asking it again for rows charges nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor as Pool
from typing import TypeVar

from cloister.hub.postgres import protocol
from cloister.hub.postgres.execution import Executor
from cloister.hub.postgres.failures import Failure, Refused, failure_of
from cloister.hub.postgres.limits import Limits
from cloister.hub.postgres.parameters import bound, count_of, example, spell
from cloister.hub.postgres.prepared import Columns, Portal, Prepared, Store
from cloister.hub.postgres.results import Column, Result
from cloister.hub.postgres.statements import Statement, read, read_all
from cloister.hub.postgres.types import TYPES
from cloister.hub.postgres.variables import REPORTED, spelled
from cloister.hub.postgres.words import statements
from cloister.hub.postgres.work import Work

__all__ = ["Connection"]

_LOG = logging.getLogger(__name__)
_PIECE = 500
_QUIET = ("warning", "error", "fatal", "panic")
_Found = TypeVar("_Found")


class Connection:
    """Reads messages and answers them, until the client goes."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        executor: Executor,
        store: Store,
        *,
        limits: Limits,
        pools: tuple[Pool, Pool],
        turns: asyncio.Semaphore,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._executor, self._store, self._limits = executor, store, limits
        self._quick, self._slow = pools
        self.work = Work(turns)
        self._skipping = False
        self._reported: dict[str, str] = {}

    async def serve(self) -> None:
        """From the first ReadyForQuery to the end."""
        self._report()
        await self._ready()
        while True:
            async with asyncio.timeout(self._limits.idle):
                letter, body = await protocol.read_message(self._reader, self._limits.message)
            if letter == "X":
                return
            if self._skipping and letter not in ("S", "Q", "F"):
                continue
            try:
                await self._answer(letter, body)
            except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                raise
            except Exception as error:  # whatever it was, the client gets an error and the connection lives on
                await self._failed(error, extended=letter in "PBDEC")

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
                self._skipping = False
                if self._executor.variables.state == "I":
                    self._store.portals.clear()
                await self._ready()
            case "H":
                await self._flush()
            case "F":
                self._skipping = False
                self._tell(failure_of(Refused("A function call was refused", why="there are none", instead="SELECT …")))
                await self._ready()
            case "d" | "c" | "f":
                pass  # what is left of a COPY that was refused
            case _:
                raise protocol.breach("it is none of the protocol")

    # ── the simple protocol ──────────────────────────────────────────────────────────────────────

    async def _simple(self, body: protocol.Body) -> None:
        text = body.text()
        body.end()
        variables = self._executor.variables
        alone, before = variables.state == "I", variables.saved()
        try:
            found = await self._quickly(lambda: read_all(text))
            if not found:
                self._writer.write(protocol.EMPTY)
            for statement in found:
                result = await self._run(statement)
                await self._send(result, (), Portal(None, ()))
        except Refused as error:
            if alone and variables.state == "I":
                variables.restore(before)  # statements of one message stand or fall together
            if error.fatal:
                raise
            variables.fail()
            self._tell(failure_of(error))
        except Exception as error:
            if isinstance(error, ConnectionError | TimeoutError):
                raise
            if alone and variables.state == "I":
                variables.restore(before)
            variables.fail()
            self._log(error)
            self._tell(failure_of(error))
        await self._ready()

    # ── the extended protocol ────────────────────────────────────────────────────────────────────

    async def _parse(self, body: protocol.Body) -> None:
        name, text = body.text(), body.text()
        given = [body.oid() for _ in range(body.count())]
        body.end()
        if not name:
            self._store.statements.pop("", None)
        self._store.prepare(name, await self._quickly(lambda: _prepared(text, given)))
        self._writer.write(protocol.PARSED)

    async def _bind(self, body: protocol.Body) -> None:
        name, statement = body.text(), body.text()
        value_formats = body.formats()
        values = [body.value() for _ in range(body.count())]
        formats = body.formats()
        body.end()
        prepared = self._store.statement(statement)
        if len(values) != len(prepared.types):
            raise Refused(
                "The values were refused", why=f"{len(prepared.types)} are wanted", instead="one value each", code="08P01"
            )
        binary = _spread(value_formats, len(values))
        if not name:
            self._store.portals.pop("", None)

        def spelled_out() -> Statement | None:
            if not values:
                return prepared.statement
            literals = [
                spell(value, oid, flag == 1, place)
                for place, (value, oid, flag) in enumerate(zip(values, prepared.types, binary, strict=True), start=1)
            ]
            return _one(bound(prepared.text, prepared.words, literals))

        portal = Portal(await self._quickly(spelled_out), tuple(formats), prepared.told)
        self._store.bind(name, portal)
        self._writer.write(protocol.BOUND)

    async def _describe(self, body: protocol.Body) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._store.statement(name)
            self._writer.write(protocol.parameters([oid or TYPES["text"].oid for oid in prepared.types]))
            prepared.told = await self._told(await self._quickly(lambda: _exemplified(prepared)))
            self._describe_columns(prepared.told[0], ())
        elif kind == b"P":
            portal = self._store.portal(name)
            if portal.rows is None:
                portal.told = await self._told(portal.statement)
                columns = portal.told[0]
            else:
                columns = portal.columns
            self._describe_columns(columns, portal.formats)
        else:
            raise protocol.breach("it describes neither a statement nor a portal")

    async def _execute(self, body: protocol.Body) -> None:
        name, most = body.text(), body.int32()
        body.end()
        portal = self._store.portal(name)
        if portal.statement is None:
            self._writer.write(protocol.EMPTY)
            return
        notices: tuple[str, ...] = ()
        if portal.rows is None:
            await self._check_told(portal)
            portal.failed = True  # until it has run: a portal that failed never runs again
            result = await self._run(portal.statement)
            portal.rows, portal.columns, portal.tag, portal.failed = list(result.rows), result.columns, result.tag, False
            if portal.told is not None and portal.told[0] is not None:
                portal.columns = portal.told[0]
            notices = result.notices
        end = len(portal.rows) if most <= 0 else min(portal.sent + most, len(portal.rows))
        rows, portal.sent = portal.rows[portal.sent : end], end
        whole = end == len(portal.rows)
        tag = f"SELECT {len(rows)}" if portal.tag.startswith("SELECT") else portal.tag
        result = Result(columns=portal.columns, rows=rows, tag=tag if whole else "", notices=notices)
        await self._send(result, portal.formats, portal)

    async def _check_told(self, portal: Portal) -> None:
        """What the client was told of must be what it gets, and this is found out before anything is charged."""
        if portal.failed:
            raise Refused("The portal failed before", why="it runs once", instead="Bind again", code="55000")
        told = portal.told
        if told is not None and told[1] != self._executor.variables.asking().margins:
            now = await self._told(portal.statement)
            if now[0] != told[0]:
                raise Refused(
                    "The statement was refused",
                    why="its columns changed with cloister.margins since they were described",
                    instead="prepare it again",
                )

    def _close(self, body: protocol.Body) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        if kind not in (b"S", b"P"):
            raise protocol.breach("it closes neither a statement nor a portal")
        (self._store.statements if kind == b"S" else self._store.portals).pop(name, None)
        self._writer.write(protocol.CLOSED)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    async def _run(self, statement: Statement) -> Result:
        slow = await self._quickly(lambda: self._executor.private(statement))
        pool, seconds = (self._slow, self._limits.asking) if slow else (self._quick, self._limits.looking)
        own = self._executor.variables.seconds
        seconds = min(seconds, own) if own else seconds
        return await self.work.do(pool, lambda: self._executor.run(statement), seconds, self._executor.interrupt)

    async def _quickly(self, call: Callable[[], _Found]) -> _Found:
        return await self.work.do(self._quick, call, self._limits.looking, self._executor.interrupt)

    async def _told(self, statement: Statement | None) -> tuple[Columns, bool]:
        margins = self._executor.variables.asking().margins
        if statement is None:
            return None, margins
        return await self._quickly(lambda: self._executor.columns(statement)), margins

    def _describe_columns(self, columns: Columns, formats: Sequence[int]) -> None:
        if columns is None:
            self._writer.write(protocol.NO_DATA)
        else:
            self._writer.write(_description(columns, _spread(formats, len(columns))))

    async def _send(self, result: Result, formats: Sequence[int], portal: Portal) -> None:
        """Rows in pieces, so that a client that does not read holds up nobody but itself."""
        simple = portal.statement is None
        if self._executor.variables.get("client_min_messages") not in _QUIET:
            for notice in result.notices:
                self._writer.write(protocol.failed(Failure(code="00000", message=notice, severity="NOTICE"), notice=True))
        if result.columns is not None:
            codes = _spread(formats, len(result.columns))
            types = [TYPES[column.kind] for column in result.columns]
            if simple:
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
                self._writer.write(protocol.parameter_status(spelled(name), value))

    async def _ready(self) -> None:
        self._report()
        self._writer.write(protocol.ready(self._executor.variables.state))
        await self._flush()

    async def _flush(self) -> None:
        async with asyncio.timeout(self._limits.writing):
            await self._writer.drain()


def _prepared(text: str, given: Sequence[int]) -> Prepared:
    found = statements(text)
    if len(found) > 1:
        raise Refused("The statement was refused", why="it is several", instead="one after the other", code="42601")
    if not found:
        return Prepared("", (), None, tuple(given))
    own, words = found[0]
    count = max(count_of(words), len(given))
    types = (*given, *[0] * (count - len(given)))
    return Prepared(own, tuple(words), read(own, words), types)


def _one(text: str) -> Statement:
    [statement] = read_all(text)
    return statement


def _exemplified(prepared: Prepared) -> Statement | None:
    """The statement with examples for its parameters: a plan's columns do not depend on their values."""
    if not prepared.types or prepared.statement is None:
        return prepared.statement
    return _one(bound(prepared.text, prepared.words, [example(oid) for oid in prepared.types]))


def _description(columns: Sequence[Column], codes: Sequence[int]) -> bytes:
    return protocol.description([(column.name, TYPES[column.kind]) for column in columns], codes)


def _spread(formats: Sequence[int], count: int) -> list[int]:
    """No code: all text; one: the same for all; else one each."""
    if len(formats) <= 1:
        return [*(formats or [0])] * count
    if len(formats) != count:
        raise Refused("The formats were refused", why=f"{count} are wanted", instead="one for all", code="08P01")
    return list(formats)
