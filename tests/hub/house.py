"""A whole hub for tests: every service, the real application, people who are logged in, and data sets with grants."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import anyio
import httpx
from alembic.config import Config
from argon2 import PasswordHasher
from fastapi import FastAPI
from sqlalchemy import Connection, Engine, event, inspect, update
from starlette.testclient import TestClient

from cloister.hub import database, migrations, services, serving
from cloister.hub.app import make_app
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_id, new_secret
from cloister.hub.platform.accounts import add_person, hashing, make_token
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.accounts.tokens import scopes_for
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.access import Grant, Project, ProjectMember
from cloister.hub.records.accounts import WebSession
from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.hub.records.declarations import check_declaration
from cloister.hub.settings import Settings
from cloister.privacy import Guarantee, PureDP

ROLES = ("administrator", "steward", "owner", "provider", "analyst", "algorithm-provider", "csp")
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC).timestamp()
READS = ("dataset.see", "dataset.describe", "question.ask", "question.explain", "question.rehearse", "release.see", "budget.see")
PEOPLE = {
    "columns": {
        "age": {"kind": "integer", "low": 17, "high": 90},
        "sex": {"kind": "category", "values": ["F", "M"]},
        "pay": {"kind": "real", "low": 0, "high": 100, "step": 0.5},
    },
    "size": 300,
}


def people_rows(number: int = 300) -> dict[str, list[Any]]:
    """Three kinds of people, over and over."""
    return {
        "age": [(30, 40, 50)[each % 3] for each in range(number)],
        "sex": ["FMF"[each % 3] for each in range(number)],
        "pay": [(10.5, 20.0, 30.0)[each % 3] for each in range(number)],
    }


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def move(self, **how: float) -> None:
        self.now += timedelta(**how).total_seconds()


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Somebody, with a browser that is logged in and an API token for all that their roles allow."""

    caller: Caller
    client: TestClient
    token: str
    known: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The token of forms, by the log-in that it is of."""

    @property
    def id(self) -> str:
        return self.caller.id

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def csrf(self) -> dict[str, str]:
        """The header that a page's own script sends with what it writes."""
        log_in = str(sorted((each.name, each.value) for each in self.client.cookies.jar))
        if log_in not in self.known:
            self.known[log_in] = self.client.get("/api/v1/me").json()["csrf"]
        return {"X-CSRF-Token": self.known[log_in]}


@contextmanager
def cheap_passwords() -> Iterator[None]:
    """A hub that is opened meanwhile does the least work for a password: it hashes as it opens, and each test opens one."""
    with patch.object(hashing, "PasswordHasher", lambda **_: PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)):
        yield


@contextmanager
def compiled_once() -> Iterator[None]:
    """Hubs that are opened meanwhile share what SQLAlchemy made of their statements: it compiles each of them for a database, and
    each test has a database of its own. Statements, parameters and connections are those of the test.
    """
    real, first = database.create_engine, list[Engine]()

    def create(*given: Any, **more: Any) -> Engine:
        engine = real(*given, **more)
        if engine.dialect.name == "sqlite":
            first.append(engine)
            engine.dialect = engine.pool._dialect = first[0].dialect  # type: ignore[assignment]
            engine._compiled_cache = first[0]._compiled_cache
            del first[1:]
        return engine

    with patch.object(database, "create_engine", create):
        yield


@contextmanager
def migrated_once() -> Iterator[None]:
    """Databases that are empty get what the first of their kind got from the steps, without asking Alembic for each again."""
    real, made = migrations.command.upgrade, dict[str, list[str]]()

    def upgrade(config: Config, revision: str) -> None:
        connection: Connection = config.attributes["connection"]
        kind, empty = connection.dialect.name, not inspect(connection).get_table_names()
        if empty and kind in made:
            for statement in made[kind]:
                connection.exec_driver_sql(statement)
            return

        said = list[str]()

        def note(_: Any, __: Any, statement: str, *___: Any) -> None:
            said.append(statement)

        event.listen(connection, "before_cursor_execute", note)
        try:
            real(config, revision)
        finally:
            event.remove(connection, "before_cursor_execute", note)
        if empty:
            written = [each for each in said if each.split()[0] in ("ALTER", "CREATE", "DROP", "INSERT", "UPDATE")]
            made[kind] = [";\n".join(written)] if kind == "postgresql" else written

    with patch.object(migrations.command, "upgrade", upgrade):
        yield


def in_one_step(transport: Any, request: httpx.Request) -> httpx.Response:
    """What `TestClient` does with a request to the application, whose answer is read to its end: in one step of the loop, where
    the client takes eight so that an answer could be read while it is made. No test of a hub does that, and the steps took most
    of a short request's time.
    """
    url, body, started, parts = request.url, request.read(), dict[str, Any](), list[bytes]()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "path": unquote(url.path),
        "raw_path": url.raw_path.split(b"?", 1)[0],
        "root_path": transport.root_path,
        "scheme": url.scheme,
        "query_string": url.query,
        "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.multi_items()],
        "client": transport.client,
        "server": [url.raw_host.decode(), url.port or {"http": 80, "https": 443}[url.scheme]],
        "extensions": {},
        "state": transport.app_state.copy(),
    }

    async def answered() -> None:
        asked, ended = [{"type": "http.request", "body": body}], anyio.Event()

        async def receive() -> Any:
            if asked:
                return asked.pop()
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert not started, "an answer began twice"
                told = [(name.decode(), value.decode()) for name, value in message.get("headers", [])]
                started.update(status_code=message["status"], headers=told)
            else:
                assert started, "the body came before the answer"
                assert not ended.is_set(), "more came after the end of an answer"
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    ended.set()

        await transport.app(scope, receive, send)

    try:
        with transport.portal_factory() as portal:
            portal.call(answered)
        assert started or not transport.raise_server_exceptions, "there was no answer"
    except Exception:
        if transport.raise_server_exceptions:
            raise
    said = b"" if request.method == "HEAD" else b"".join(parts)
    return httpx.Response(**(started or {"status_code": 500}), stream=httpx.ByteStream(said), request=request)


class House:
    """A hub with everything in it."""

    def __init__(self, folder: Path, clock: Clock, **settings: Any) -> None:
        self.clock = clock
        self.settings = Settings(data=folder, **{"workers": 0, "tick_ms": 1, **settings})
        with cheap_passwords():
            self.hub = Hub(self.settings, services.all_services(), clock=clock)
        self.app = application(self.hub)

    def in_front(self) -> None:
        """The application that all houses of a process share is around this one again."""
        application(self.hub)

    def close(self) -> None:
        self.hub.close()

    def client(self, address: str = "127.0.0.1", **more: Any) -> TestClient:
        """A browser in which nobody is logged in."""
        return TestClient(self.app, base_url=self.settings.origin, client=(address, 40_000), follow_redirects=False, **more)

    def person(self, *roles: str, email: str = "", name: str = "Ada Byron") -> Visitor:
        """A new person with these roles."""
        secret, now = new_secret(), self.hub.now()
        with self.hub.database.begin() as db:
            row = add_person(self.hub, db, email=email or f"{new_id().lower()}@example.org", name=name, roles=roles)
            caller = Caller(id=row.id, email=row.email, name=row.name, roles=frozenset(roles), via="session")
            db.add(
                WebSession(
                    digest=digest(secret),
                    person=row.id,
                    created=now,
                    used=now,
                    expires=now + timedelta(days=300),
                    second_factor=True,
                    address="127.0.0.1",
                    agent="test",
                )
            )
            _, token = make_token(self.hub, db, caller, name="test", scopes=scopes_for(roles))
        client = self.client()
        client.cookies.set(cookie_name(self.settings), secret)
        return Visitor(caller=caller, client=client, token=token)

    def again(self, visitor: Visitor) -> Visitor:
        """Somebody of the hub that this one's folder is a copy of, with a browser of this one that is logged in."""
        client, name = self.client(), cookie_name(self.settings)
        client.cookies.set(name, visitor.client.cookies[name])
        return replace(visitor, client=client, known={})

    def awake(self, visitor: Visitor) -> None:
        """Their browser was in use until now: it is logged in still, however far the clock was moved."""
        with self.hub.database.begin() as db:
            db.execute(update(WebSession).where(WebSession.person == visitor.id).values(used=self.hub.now()))

    def time_passes(self, visitor: Visitor, **how: float) -> None:
        """While their browser is in use: it is logged in at every moment, so a page that asks by itself is answered."""
        left = timedelta(**how)
        while left:
            step = min(left, timedelta(minutes=self.hub.settings.idle_minutes / 2))
            self.clock.move(seconds=step.total_seconds())
            self.awake(visitor)
            left -= step

    def sample_data_set(
        self,
        name: str = "people",
        *,
        owner: Visitor | None = None,
        rows: Mapping[str, Sequence[Any]] | None = None,
        declaration: Mapping[str, Any] | None = None,
        budget: Guarantee | None = None,
        population: str = "",
        readers: Iterable[Visitor] = (),
        public: bool = False,
    ) -> DataSet:
        """A data set that is open, stored and, for `readers`, granted."""
        owned = owner or self.person("owner")
        stored = self._stored(people_rows() if rows is None else rows)
        known = population or name
        with self.hub.database.begin() as db:
            if not public and known not in self.hub.ledger.populations():
                self.hub.ledger.open(known, budget or PureDP(1), who=owned.caller.email)
                db.add(Population(name=known, title=known.title(), owner=owned.id, created=self.hub.now()))
                db.flush()
            row = DataSet(
                id=new_id(),
                name=name,
                title=name.title(),
                owner=owned.id,
                public=public,
                population=None if public else known,
                declaration=check_declaration(name, declaration or PEOPLE),
                metadata_={},
                window={},
                version=1,
                state="open",
                created=self.hub.now(),
                changed=self.hub.now(),
            )
            db.add(row)
            db.flush()
            version = DataSetVersion(
                id=new_id(),
                data_set=row.id,
                number=1,
                kind="stored",
                file=stored.file,
                digest=stored.digest,
                length=stored.length,
                created=self.hub.now(),
                created_by=owned.id,
            )
            version.key = table_store_of(self.hub).bound(stored, version.about).wrapped_key
            db.add(version)
            bump(db)
        for reader in readers:
            self.grant(row, reader, by=owned)
        return row

    def grant(self, data_set: DataSet, reader: Visitor, *, by: Visitor, actions: Iterable[str] = READS, **rules: Any) -> str:
        """Let somebody do these things with a data set: the grant's id."""
        number = new_id()
        with self.hub.database.begin() as db:
            db.add(
                Grant(
                    id=number,
                    kind="data-set",
                    object=data_set.id,
                    role="reader",
                    attributes={"people": [reader.id]},
                    rules={"actions": sorted(actions), **rules},
                    granted_by=by.id,
                    created=self.hub.now(),
                )
            )
            bump(db)
        return number

    def workspace(self, data_set: DataSet, *members: Visitor, by: Visitor, actions: Iterable[str], let_in: bool = True) -> str:
        """A project of these people, the first of whom leads it, with a grant to it of which they may be named: its id, which is
        its name. The grant's is `to-study`."""
        with self.hub.database.begin() as db:
            db.add(Project(id="study", name="study", title="The study", lead=members[0].id, created=self.hub.now()))
            db.flush()
            db.add_all([ProjectMember(project="study", person=each.id, joined=self.hub.now()) for each in members])
            people = {"people": [each.id for each in members]} if let_in else {}
            grant = Grant(id="to-study", kind="data-set", object=data_set.id, role="member", rules={"actions": list(actions)})
            grant.attributes, grant.granted_by, grant.created = {"projects": ["study"], **people}, by.id, self.hub.now()
            db.add(grant)
            bump(db)
        return "study"

    def _stored(self, rows: Mapping[str, Sequence[Any]]) -> Any:
        """The rows as a table of the hub's. To encrypt one takes longer than most tests: the same rows, under the same master key
        of a hub that was copied from the same template, are the same file.
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
        store, given = table_store_of(self.hub), text.getvalue().encode()
        key_file = self.settings.path("master.key")
        known = (key_file.read_bytes(), given) if key_file.exists() else None
        if known in _ENCRYPTED:
            stored, held = _ENCRYPTED[known]
            if not store.path(stored).exists():  # two data sets of one hub never share a file
                store.path(stored).write_bytes(held)
                store.path(stored).chmod(0o600)
                return stored
        stored = store.add(store.receive([given], "csv"), about="test")
        if known is not None and known not in _ENCRYPTED:
            _ENCRYPTED[known] = stored, store.path(stored).read_bytes()
        return stored


_ENCRYPTED: dict[tuple[bytes, bytes] | None, tuple[Any, bytes]] = {}
"""Tables that a hub of these tests has stored, with their files, by its master key and their rows."""


@cache
def _built() -> list[FastAPI]:
    return []


def application(hub: Hub) -> FastAPI:
    """The real application around a hub. Its routes are built once for all tests, since that takes most of a second."""
    if not _built():
        _built().append(make_app(hub))
    return _around(hub, _built()[0])


def _around(hub: Hub, app: FastAPI) -> FastAPI:
    app.state.hub = hub
    hub.serves = True
    for layer in app.user_middleware:
        if "hub" in layer.kwargs:
            layer.kwargs["hub"] = hub
    app.middleware_stack = None
    return app


_SPARE: dict[tuple[str, ...], list[FastAPI]] = {}
"""Applications that are served by no test now, by the services in them."""


@contextmanager
def served(hub: Hub) -> Iterator[str]:
    """The hub over real connections, on a free port of this machine: its address."""
    spare = _SPARE.setdefault(tuple(each.name for each in hub.services), [])
    app = _around(hub, spare.pop() if spare else make_app(hub))
    with patch.object(serving, "make_app", lambda _: app):
        web = serving.server(hub)
    web.config.port = 0
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    try:
        while not web.started:
            assert thread.is_alive(), "the server ended before it began"
            time.sleep(0.01)
        port = web.servers[0].sockets[0].getsockname()[1]
        yield f"{'https' if hub.settings.certificate else 'http'}://127.0.0.1:{port}"
    finally:
        web.should_exit = True
        thread.join(timeout=30)
        spare.append(app)
