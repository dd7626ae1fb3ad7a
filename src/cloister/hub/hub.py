"""The hub as a process holds it: settings, database, keys, ledger, clock, services and counters; and who asks it."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy import select

from cloister.errors import LedgerUnavailable
from cloister.hub.database import Database, answering, left_out, sqlite_address
from cloister.hub.keys import has_stored_secrets, hub_keyring, master_key, stored_secret
from cloister.hub.max_delta import MaxDeltaLedger
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.catalogue import Population
from cloister.hub.service import Guide, JobType, Link, Service
from cloister.hub.settings import Settings
from cloister.installed import lacking

if TYPE_CHECKING:
    from cloister.hub.releases.kinds import ReleaseKind


_OTHERS = 0o077
_OWN = (
    *(f"{name}{end}" for name in ("hub.db", "ledger.db") for end in ("", "-wal", "-shm", "-journal")),
    *("master.key", "ledger.head", "trail.head"),
)
"""What a hub writes into its folder, besides the folder of its tables."""


class Hub:
    """What every part of a running hub can reach. `parts` is where a service keeps what lives as long as the process."""

    def __init__(
        self, settings: Settings, services: Sequence[Service], *, clock: Callable[[], float] = time.time, migrate: bool = True
    ) -> None:
        self.settings = settings
        self.services = tuple(services)
        self.clock = clock
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not settings.database:
            with contextlib.suppress(OSError):  # SQLite gives its other files the mode of this one, and says what is wrong
                settings.path("hub.db").touch(mode=0o600, exist_ok=False)
        _tighten(settings.data)
        self.database = Database(settings.database or sqlite_address(settings.path("hub.db")))
        if migrate:
            from cloister.hub.migrations import bring_up_to_date

            with answering():
                bring_up_to_date(self.database)
        self._secrets: dict[str, bytes] = {}
        key_file = Path(settings.master_key_file) if settings.master_key_file else settings.path("master.key")
        new = not settings.master_key_file and not has_stored_secrets(self.database)  # one that was put back has a key elsewhere
        self.keys = hub_keyring(master_key(settings.master_key or None, key_file, make=new))
        self.ledger = MaxDeltaLedger(
            settings.ledger or settings.path("ledger.db"), key=self.secret("ledger"), head=settings.path("ledger.head")
        )
        self.ledger.max_delta = settings.max_delta
        with self.database.reading() as db:
            lost = db.scalar(select(Population.name).limit(1)) and not (self.ledger.populations() or self.ledger.frozen)
        if lost:
            self.ledger.close()
            self.database.close()
            why = "its ledger is lost: it holds no budget, and the hub's database has populations"
            raise LedgerUnavailable(
                "The hub was not opened", why=why, instead="put it back from the backup of the hub's database"
            )
        self.meter = Meter()
        self.parts: dict[str, Any] = {}
        self.serves = False
        """Whether this process answers requests: sites call it."""
        self.ends: float | None = None
        """When the process is ended, whatever still runs (`serving.end_by`), by `time.monotonic`."""
        self.jobs: dict[str, JobType] = {job.kind: job for service in self.services for job in service.jobs}
        self.kinds: dict[str, ReleaseKind] = {kind.name: kind for service in self.services for kind in service.releases}
        links = sorted((link for service in self.services for link in service.links), key=lambda link: link.order)
        absent = {extra for extra in {link.extra for link in links} if lacking(extra)}
        self.links: list[Link] = [link for link in links if link.extra not in absent]
        self.guides: list[Link | Guide] = [*links, *(guide for service in self.services for guide in service.guides)]
        self.help: dict[str, str] = {each.path: each.help for each in self.guides}
        for service in self.services:
            if service.opened is not None:
                service.opened(self)

    def now(self) -> datetime:
        """This moment, in UTC."""
        return datetime.fromtimestamp(self.clock(), UTC)

    def secret(self, name: str) -> bytes:
        """A secret that was made once for this hub, and stays when the master key changes."""
        if name not in self._secrets:
            self._secrets[name] = stored_secret(self.database, self.keys, name)
        return self._secrets[name]

    def patience(self, most: float) -> float:
        """For how many seconds to wait for something that runs while the hub closes: less where the process was told to end,
        since what closes later waits as well."""
        return most if self.ends is None else max(0.0, min(most, (self.ends - time.monotonic() - 1) / 2))

    def close(self) -> None:
        """Let go of everything, the last service first."""
        for service in reversed(self.services):
            if service.closed is not None:
                service.closed(self)
        self.ledger.close()
        self.database.close()

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Hub: {self.settings.title}>"


def _tighten(folder: Path) -> None:
    """What a hub has written is for its own user alone, whoever may look into the folder; what is another user's stays."""
    for each in (*(folder / name for name in _OWN), folder / "vault", *_inside(folder / "vault")):
        with contextlib.suppress(OSError):
            found = each.lstat()
            if found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode) and found.st_mode & _OTHERS:
                each.chmod(found.st_mode & 0o700)


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def hub_of(request: Request) -> Hub:
    """The hub that a request came to."""
    hub: Hub = request.app.state.hub
    return hub


async def _hub(request: Request) -> Hub:
    """`hub_of` for handlers: a dependency that is no coroutine would be run in a thread."""
    return hub_of(request)


HubDep = Annotated[Hub, Depends(_hub)]


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Meter:
    """The counters of one process: requests by route, questions by outcome, jobs. No label is a person, a data set or a value.
    /metrics shows them to who keeps the hub running, on loopback or to a bearer token.

    >>> meter = Meter()
    >>> meter.request("/api/v1/questions", "POST", 200, 0.02)
    >>> b'cloister_requests_total{method="POST",route="/api/v1/questions",status="200"} 1.0' in meter.text()
    True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cloister_requests", "Requests that were answered", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "cloister_request_seconds", "How long answers took", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self._kinds: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._questions = Counter("cloister_questions", "Questions, by how they ended", ["outcome"], registry=self.registry)
        self._jobs = Gauge("cloister_jobs", "Jobs, by state", ["state"], registry=self.registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request. `route` is the template of the address, never the address itself."""
        kind = (route, method, status)
        known = self._kinds.get(kind)
        if known is None:  # as many as there are routes, methods and states
            known = self._kinds[kind] = self._requests.labels(route, method, str(status)), self._seconds.labels(route)
        known[0].inc()
        known[1].observe(seconds)

    def question(self, outcome: str) -> None:
        """One question: answered, repeated, refused, denied, over-budget or failed."""
        self._questions.labels(outcome).inc()

    def jobs(self, state: str, number: int) -> None:
        """How many jobs are in a state."""
        self._jobs.labels(state).set(number)

    def text(self) -> bytes:
        """Everything, in the form that Prometheus reads."""
        return generate_latest(self.registry)


Via = Literal["nobody", "session", "token", "system"]


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A person (or nobody), as this request proves it.

    >>> NOBODY.signed_in, NOBODY.has("analyst")
    (False, False)
    """

    id: str = ""
    email: str = ""
    name: str = ""
    institution: str = ""
    roles: frozenset[str] = frozenset()
    training: Mapping[str, str] = field(default_factory=dict)
    """Certificate → the last day on which it holds (ISO date)."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    projects: frozenset[str] = frozenset()
    locale: str = ""
    via: Via = "nobody"
    scopes: frozenset[str] | None = None
    """Of an API token: the actions it may do; None: all of the person's."""
    session: str = ""
    """The digest of the browser's session, for forms and for signing out."""
    token: str = ""
    """The id of the API token, where one was shown."""
    address: str = ""
    second_factor: bool = False

    @property
    def signed_in(self) -> bool:
        """Whether it is anybody."""
        return self.id != ""

    def has(self, *roles: str) -> bool:
        """Whether the person has one of the roles."""
        return not self.roles.isdisjoint(roles)


NOBODY = Caller()
ITSELF = Caller(name="cloister", via="system")
"""The hub, where nobody asked it."""


def caller_of(request: Request) -> Caller:
    """Who asks; worked out once a request by the middleware of accounts."""
    caller: Caller = getattr(request.state, "caller", NOBODY)
    return caller


def person_of(request: Request) -> Caller:
    """Who asks, where it has to be somebody."""
    caller = caller_of(request)
    if not caller.signed_in:
        raise Unauthenticated("Sign in to see this page", why="you are not signed in", instead="/login")
    return caller


async def _caller(request: Request) -> Caller:
    """`caller_of` for handlers: a dependency that is no coroutine would be run in a thread."""
    return caller_of(request)


async def _person(request: Request) -> Caller:
    return person_of(request)


def somebody(calls: Collection[object]) -> bool:
    """Whether a route with these dependencies takes somebody who has signed in, whatever it names besides.

    >>> somebody([_caller]), somebody([_caller, _person])
    (False, True)
    """
    return _person in calls


def left_out_for(caller: Caller) -> list[str]:
    """The rows that lists of this request went on without, as far as the caller may hear of them: the own ones, and an
    administrator of all."""
    return left_out(caller.id, all_rows=caller.has("administrator")) if caller.signed_in else []


CallerDep = Annotated[Caller, Depends(_caller)]
PersonDep = Annotated[Caller, Depends(_person)]
