"""What a service brings to the hub: routes, pages, jobs, links, cards; and the line that registers it.

A service is one package under `services/`. Its `__init__.py` ends with `SERVICE = Service(…)`, and `services/__init__.py` lists
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from fastapi import APIRouter, Request
    from sqlalchemy.orm import Session
    from starlette.responses import Response

    from cloister.hub.hub import Caller, Hub
    from cloister.hub.records.access import Project
    from cloister.hub.releases.kinds import ReleaseKind
    from cloister.hub.releases.tables import FreeTable
    from cloister.pgwire import AnswerColumn, Asking, Explained, FreeAnswer


GroupName = Literal["data", "ask", "learn", "publish", "collect", "govern", "account"]
"""The groups of the menu; "account" is the menu of one's own account."""


@dataclass(frozen=True)
class Link:
    """A link of the menu, shown to those who may do the action. `title` is an English msgid."""

    title: str
    path: str
    action: str
    group: GroupName
    """What people do there: the frame draws the menu by it (`web/menu.py`)."""
    order: int = 50
    icon: str = ""
    help: str = field(kw_only=True)
    """The page of the documentation that says how, as "how-to/ask-a-hub": of this address and of those below it."""
    extra: str = field(default="", kw_only=True)
    """What has to be installed for it: a hub without it does not offer the link."""


@dataclass(frozen=True, kw_only=True)
class Guide:
    """The page of the documentation for an address that no link of the menu leads to. `title` is an English msgid; `*` in `path`
    is any one part of an address.
    """

    title: str
    path: str
    group: GroupName
    help: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """A part of the first page of a person: a template of its own, and what it shows."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    order: int = 50


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a running job may use: who asked, how to say how far it is, and whether it should stop; and what work that must not be
    done twice needs besides.
    """

    job: str
    who: str
    tell: Callable[[str, float | None], None]
    """The name of the stage, and the share that is done where that is public."""
    stopped: Callable[[], bool]
    attempt: int
    """1, or 2 where the process of the first one died or ended."""
    notes: tuple[Mapping[str, Any], ...]
    """What attempts before this one have written down, the oldest first."""
    note: Callable[[Mapping[str, Any]], None]
    """Write down, durably, what an attempt after this one has to know. Refused where the job is another worker's by now: so
    nothing that follows it is done by two."""
    finish: Callable[[Session, Mapping[str, Any]], None]
    """Write, in a transaction that keeps what the job has made, that it is done and what its result is: neither is ever there
    without the other. Refused where the job is another worker's by now."""


@dataclass(frozen=True, kw_only=True)
class JobType:
    """A kind of long work: `run` gets the hub, what was asked for, and the progress; what it returns is kept as the job's result.

    `again` says whether work that a killed process left behind may be begun once more. What is charged is safe to begin again: an
    unsettled reservation is taken over, a settled one answers from the ledger. What is kept besides is made once where it is kept
    in the transaction of `Progress.finish`, or found again by the job's id.
    """

    kind: str
    title: str
    run: Callable[[Hub, Mapping[str, Any], Progress], Mapping[str, Any]]
    again: bool = True


@dataclass(frozen=True, kw_only=True)
class Direct:
    """A route of the API on which most requests come: where one is plain, it is answered without the web framework's way to it,
    which takes longer than the answer (`middleware.py`). The route itself stands among `api` all the same, and answers what is
    not plain; both must answer alike.
    """

    path: str
    """Under /api/v1; to be posted to."""
    action: str
    """What its route asks of the caller, as in `guard.needs`."""
    read: Callable[[Request, bytes], tuple[Any, ...] | None]
    """What the body asks for; None where that is for the route to say."""
    answer: Callable[..., Response]
    """Given the hub, the caller and what was read, once the caller's roles and token were asked after (`guard.gate`). It leaves
    at a tick, as what is `TICKED` does."""


class SqlFunction(Protocol):
    """A function that clients of PostgreSQL call as a table, with texts: `SELECT * FROM cloister.run('middle', 'people')`."""

    action: str
    """What the person must be able to do."""

    def shape(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking, /) -> list[AnswerColumn]:
        """The columns that it gives, from declarations alone."""

    def explain(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking, /) -> Explained:
        """What it would cost: spends nothing."""

    def check(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking, /) -> None:
        """Refuse who could not call it any more."""

    def call(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking, /) -> FreeAnswer:
        """Do it."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service: everything that the hub has to know of it."""

    name: str
    title: str
    pages: Callable[[], APIRouter] | None = None
    """Routes that answer with pages."""
    api: Callable[[], APIRouter] | None = None
    """Routes under /api/v1."""
    busy: bool = False
    """Whether most requests are for it: its routes are tried first."""
    direct: Callable[[], tuple[Direct, ...]] | None = None
    """Of its routes those that are answered directly."""
    jobs: tuple[JobType, ...] = ()
    releases: tuple[ReleaseKind, ...] = ()
    """The kinds of releases that it makes."""
    tables: Callable[[Hub, Session, Caller, str | None], Sequence[FreeTable]] | None = None
    """Tables of what it has released already, which answer SQL at no cost, as far as somebody sees them: all, or those whose
    names stand in a query."""
    functions: Mapping[str, Callable[[], SqlFunction]] = field(default_factory=dict)
    """What clients of PostgreSQL may call in the schema `cloister` (`postgres/functions.py` lists the names)."""
    algorithm: Callable[[Mapping[str, Any]], None] | None = None
    """Refuses settings under which it can run no algorithm; None: it runs none. Empty ones are the service itself."""
    links: tuple[Link, ...] = ()
    guides: tuple[Guide, ...] = ()
    cards: Callable[[Hub, Session, Caller], list[Card]] | None = None
    in_project: Callable[[Hub, Session, Caller, Project], Mapping[str, Any]] | None = None
    """What it shows of a project on the page of that project."""
    opened: Callable[[Hub], None] | None = None
    """Called once when a process opens the hub."""
    closed: Callable[[Hub], None] | None = None


def routes_in(package: str, name: str, *parts: str) -> Callable[[], APIRouter]:
    """The routes that the `add` of the module `name` (`pages`, `api`), or of each of `parts`, adds: they are loaded when they
    are wanted, since a process that serves nobody does without."""

    def routes() -> APIRouter:
        from cloister.hub.web.routing import Pages, Routes

        made = Pages() if name == "pages" else Routes()
        for part in parts or (name,):
            import_module(f"{package}.{part}").add(made)
        return made.router

    return routes


def routes_of(*parts: Callable[[], APIRouter]) -> Callable[[], APIRouter]:
    """All of these, in their order."""

    def routes() -> APIRouter:
        from cloister.hub.web.routing import Routes

        made = Routes()
        for part in parts:
            made.router.include_router(part())
        return made.router

    return routes
