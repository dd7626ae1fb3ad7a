"""The hub behind the wire of PostgreSQL: an API token as the password, and the way that every other question goes.

What leaves here passed the policy, was charged, kept and written down by `answering.py`. Who the person is, and what they may do,
is looked up again at each statement, so a token that was revoked answers nothing more. Answers leave at ticks, as in the API.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.crypto import server_context
from cloister.errors import AccessDenied, InvalidParameter, Missing, UnsupportedQuery
from cloister.hub.decisions.callers import caller_of_token
from cloister.hub.guard import check_action
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import named_algorithm
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.accounts import folded
from cloister.hub.releases.reading import read_release
from cloister.hub.releases.tables import TableOffer, answer_in, asked_in, free_tables, tables_of
from cloister.hub.service import SqlFunction
from cloister.hub.services.asking.answering import ask, stored
from cloister.hub.services.asking.authorised import algorithms_to_ask_under, ready
from cloister.hub.services.asking.preview import explain
from cloister.hub.services.asking.question_request import NAME, QuestionRequest
from cloister.hub.work.offers import offers
from cloister.pgwire import AnswerColumn, Asking, Explained, FreeAnswer, PostgresFront, Tables, shape_of
from cloister.pgwire.functions import Called, called
from cloister.session import Release

_LOG = logging.getLogger("cloister.hub.pg")
_PART = "pg front"
_DIALECT = "postgres"
_EXAMPLE = "0.1"
_PATIENCE = 20.0


class HubBackend:
    """Who may come in: the e-mail address as the user, an API token as the password."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def login(self, user: str, token: str, address: str) -> HubSession:
        """A session for a person with a token; refused in the same words whatever was wrong."""
        session = HubSession(self._hub, user, token, address)
        session.caller()
        return session


class HubSession:
    """One person, connected. It keeps the token, and nothing that the token was once allowed."""

    def __init__(self, hub: Hub, user: str, token: str, address: str) -> None:
        self._hub, self._user, self._token, self._address = hub, user, token, address

    def caller(self) -> Caller:
        """Who it is, as of now."""
        try:
            caller = caller_of_token(self._hub, self._token, self._address)
        except Unauthenticated:
            raise _refused() from None
        try:
            known = folded(self._user)
        except InvalidParameter:
            raise _refused() from None
        if caller.email != known:
            raise _refused()
        return caller

    def tables(self) -> Tables:
        """What this person may see the declarations of."""
        caller = self._may("question.explain")
        with self._hub.database.reading() as db:
            under = algorithms_to_ask_under(self._hub, db, caller)
            found = [
                *tables_of(self._hub, db, caller),
                *free_tables(self._hub, db, caller),
                *offers(self._hub, db, caller, "question.explain", under=under),
            ]
            return {each.which.name: each.table for each in found}

    def shape(self, sql: str, how: Asking) -> list[AnswerColumn]:
        """The columns that the answer will have, from the plan alone: spends nothing."""
        if (call := called(sql)) is not None:
            function, caller = self._function(call)
            return call.shaped(function.shape(self._hub, caller, call.arguments, how))
        caller = self._may("question.explain")
        free = self._free(caller, sql, how, logged=False)
        if free is not None:
            return [AnswerColumn(name, series.kind, False) for name, series in free.table.columns.items()]
        with self._hub.database.reading() as db:
            wish = self._wish(db, caller, sql, how)
            found = ready(self._hub, db, caller, wish, "question.explain")
        with found.held.pinned():
            return shape_of(found.session, sql, wish.dialect)

    def explain(self, sql: str, how: Asking) -> Explained:
        """The plan for a spend, for the least spend that reaches a margin, or for an example."""
        with self._ticked():
            if (call := called(sql)) is not None:
                function, caller = self._function(call)
                call.shaped(function.shape(self._hub, caller, call.arguments, how))
                return function.explain(self._hub, caller, call.arguments, how)
            caller = self._may("question.explain")
            with self._hub.database.reading() as db:
                if asked_in(self._hub, db, caller, sql) is not None:
                    why = "what was released answers at no cost"
                    raise UnsupportedQuery("EXPLAIN is not supported here", why=why, instead="the SELECT by itself")
            paid = "" if how.within is not None else how.spend or _EXAMPLE
            return explain(self._hub, caller, replace(self._wished(caller, sql, how), spend=paid, within=how.within))

    def ask(self, sql: str, how: Asking) -> Release | FreeAnswer:
        """The private answer, charged, kept and written down."""
        with self._ticked():
            if (call := called(sql)) is not None:
                function, caller = self._function(call)
                call.shaped(function.shape(self._hub, caller, call.arguments, how))
                found = function.call(self._hub, caller, call.arguments, how)
                return found._replace(table=call.laid_out(found.table))
            caller = self._may("question.ask")
            free = self._free(caller, sql, how)
            if free is not None:
                return free
            wish = replace(self._wished(caller, sql, how), spend=how.spend or "", within=how.within, fresh=how.fresh)
            return ask(self._hub, caller, wish, progress=how.progress).release

    def repeat(self, sql: str, how: Asking) -> Release | FreeAnswer | None:
        """An answer that was paid for and that this person may see again, or one of a released table, which costs nothing; None
        where there is none."""
        with self._ticked():
            caller = self._may("question.ask")
            free = self._free(caller, sql, how)
            if free is not None:
                return free
            wish = self._wished(caller, sql, how)
            try:
                return stored(self._hub, caller, wish).release
            except Missing:
                return None

    def check(self, sql: str, how: Asking) -> None:
        """Refuse who could not ask this any more, as of now."""
        if (call := called(sql)) is not None:
            function, caller = self._function(call)
            function.check(self._hub, caller, call.arguments, how)
            return
        caller = self._may("question.ask")
        with self._hub.database.reading() as db:
            table = asked_in(self._hub, db, caller, sql)
            if table is None:
                ready(self._hub, db, caller, self._wish(db, caller, sql, how), "question.ask", charges=False)
            elif isinstance(table, TableOffer):
                read_release(self._hub, db, caller, table.row.id)

    def close(self) -> None:
        """Nothing is held for one person."""

    def _free(self, caller: Caller, sql: str, how: Asking, *, logged: bool = True) -> FreeAnswer | None:
        """The answer of a released table; None where the query names none."""
        how_asked: dict[str, Any] = {"confidence": how.confidence, "dialect": _DIALECT, "program": True, "logged": logged}
        found = answer_in(self._hub, caller, sql, **how_asked)
        return None if found is None else FreeAnswer(found[1].table, found[1].notes)

    def _wished(self, caller: Caller, sql: str, how: Asking) -> QuestionRequest:
        with self._hub.database.reading() as db:
            return self._wish(db, caller, sql, how)

    def _wish(self, db: Db, caller: Caller, sql: str, how: Asking) -> QuestionRequest:
        """A question without its price. The text of an algorithm is that very text, in the hub's own SQL."""
        own = how.algorithm and named_algorithm(self._hub, db, caller, how.algorithm, NAME).settings.get("sql") is not None
        return QuestionRequest(
            sql=sql,
            confidence=how.confidence,
            purpose=how.purpose,
            project=how.project,
            algorithm=how.algorithm,
            dialect=None if own else _DIALECT,
        )

    def _function(self, call: Called) -> tuple[SqlFunction, Caller]:
        """A service's function, and who calls it."""
        made = next(each.functions[call.name] for each in self._hub.services if call.name in each.functions)
        function = made()
        return function, self._may(function.action)

    def _may(self, action: str) -> Caller:
        caller = self.caller()
        check_action(caller, action)
        return caller

    @contextmanager
    def _ticked(self) -> Iterator[None]:
        """What is told leaves at the next tick, refusals too."""
        begun, tick = time.perf_counter(), self._hub.settings.tick_ms / 1000
        try:
            yield
        finally:
            passed = time.perf_counter() - begun
            time.sleep(math.ceil(passed / tick) * tick - passed)


class _Front:
    """The listener, in a loop and a thread of its own."""

    def __init__(self, hub: Hub) -> None:
        settings = hub.settings
        pair = (settings.certificate, settings.certificate_key)
        context = server_context(*pair, settings.client_authority) if settings.certificate else None
        self.front = PostgresFront(HubBackend(hub), host=settings.host, port=settings.pg_port, context=context)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cloister-pg", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Begin to listen."""
        asyncio.run_coroutine_threadsafe(self.front.start(), self._loop).result(_PATIENCE)

    def stop(self, patience: float = _PATIENCE) -> None:
        """End all connections."""
        try:
            asyncio.run_coroutine_threadsafe(self.front.close(), self._loop).result(patience)
        except TimeoutError:
            _LOG.warning("a statement was still running when the front for PostgreSQL clients ended")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(patience)
        if not self._thread.is_alive():
            self._loop.close()


def start(hub: Hub) -> None:
    """Listen for PostgreSQL clients; where the port is taken, as by another process of this hub, the log says so."""
    front = _Front(hub)
    try:
        front.start()
    except OSError as error:
        _LOG.warning("no PostgreSQL client can come in: port %d: %s", hub.settings.pg_port, error.strerror)
        front.stop()
        return
    hub.parts[_PART] = front


def stop(hub: Hub) -> None:
    """Listen no longer."""
    front: _Front | None = hub.parts.pop(_PART, None)
    if front is not None:
        front.stop(hub.patience(_PATIENCE))


def _refused() -> AccessDenied:
    return AccessDenied(
        "You could not be signed in",
        why="the name or the token is wrong",
        instead="your e-mail address, and an API token as password",
    )
