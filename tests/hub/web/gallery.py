"""An application of the tests alone: every part that pages are made of, on one page, in the hub's own frame.

It stands on a small stand-in of a hub, so that the look of pages is tested without any service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, Response

from cloister.hub.hub import Caller
from cloister.hub.keys import hub_keyring
from cloister.hub.middleware import POLICY
from cloister.hub.problems import Problem
from cloister.hub.service import Card, Link, Service
from cloister.hub.settings import Settings
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.home import home_pages
from cloister.hub.web.languages import LANGUAGES, language_of
from cloister.hub.web.render import TEMPLATES, Assets, make_environment, render, request_language, respond
from cloister.privacy import PureDP

HERE = Path(__file__).parent / "templates"
NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
ADA = Caller(
    id="ada",
    email="ada@example.org",
    name="Ada Okafor",
    institution="Riverside University Hospital",
    roles=frozenset({"owner", "analyst"}),
    via="session",
    session="0" * 64,
)
LINKS = [
    Link("Data sets", "/gallery", "public.read", "data", 50, "data", help="how-to/ask-a-hub"),
    Link("Ask", "/ask", "question.ask", "ask", 50, "ask", help="how-to/ask-a-hub"),
    Link("Answers", "/answers", "release.see", "ask", 50, "answers", help="how-to/ask-a-hub"),
    Link("Requests", "/requests", "access.ask", "govern", 50, "request", help="how-to/ask-a-hub"),
    Link("Projects", "/projects", "project.see", "govern", 50, "project", help="how-to/ask-a-hub"),
    Link("Budgets", "/budgets", "budget.see", "govern", 50, "budget", help="how-to/ask-a-hub"),
    Link("Jobs", "/jobs", "job.see", "account", 50, "jobs", help="how-to/ask-a-hub"),
    Link("Audit log", "/trail", "trail.own", "govern", 50, "trail", help="how-to/ask-a-hub"),
    Link("Hub settings", "/settings", "settings.see", "govern", 50, "settings", help="how-to/ask-a-hub"),
]
PEOPLE = [
    {"town": "Ashford", "n": 12_412, "margin": 46, "mean": 71.3, "mean_margin": 0.84},
    {"town": "Brighton", "n": 8_903, "margin": 46, "mean": 68.92, "mean_margin": 1.17},
    {"town": "Carlisle", "n": 1_240, "margin": 46, "mean": 74.05, "mean_margin": 8.4},
]
SQL = 'SELECT town, COUNT(*) AS n, AVG(age) AS age\nFROM hospital\nWHERE ward = "heart"\nGROUP BY town'


class _Nothing:
    """A database that is not asked anything."""

    def reading(self) -> _Nothing:
        return self

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def cards(_hub: Any, _db: Any, _caller: Caller) -> list[Card]:
    """Two cards of a service, as services bring them."""
    budgets = [
        {"title": "patients", "total": PureDP(2), "spent": PureDP("0.75"), "unbounded": False, "frozen": False},
        {"title": "census", "total": "1", "spent": "1", "unbounded": False, "frozen": False},
    ]
    items = [("Lin Wei asks for <hospital>", "/gallery", "2 days ago"), ("Jonas Bergström asks for more budget", "/gallery", "")]
    first = {"title": "Your budgets", "budgets": budgets, "waiting": 0}
    second = {"title": "Requests", "href": "/requests", "items": items, "nothing": "", "states": False}
    third = {"title": "Jobs", "href": "", "items": [], "nothing": "No work is running.", "states": False}
    return [
        Card(template="budgets/card.html", values=first, order=20),
        Card(template="access/card.html", values=second, order=10),
        Card(template="access/card.html", values=third, order=30),
    ]


def stand_in(*, with_cards: bool = True) -> SimpleNamespace:
    """As much of a hub as pages need."""
    service = Service(name="sample", title="Sample", cards=cards if with_cards else None)
    return SimpleNamespace(
        settings=Settings(data=Path("nowhere"), title="Riverside research hub", institution="Riverside University Hospital"),
        keys=hub_keyring(bytes(32)),
        links=LINKS,
        guides=LINKS,
        help={link.path: link.help for link in LINKS},
        services=(service,),
        parts={},
        database=_Nothing(),
        now=lambda: NOW,
    )


def environment_of(code: str) -> Any:
    """The hub's templates, and the gallery's."""
    return make_environment(language_of(code), [TEMPLATES, HERE])


def make_gallery(*, with_cards: bool = True, caller: Caller = ADA) -> FastAPI:
    """The application. `?nobody` in an address, or the cookie `who=nobody`, is a visit of nobody."""
    app = FastAPI()
    app.state.hub = stand_in(with_cards=with_cards)
    environments = {code: environment_of(code) for code in LANGUAGES}

    @app.middleware("http")
    async def who(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if "nobody" not in request.query_params and request.cookies.get("who") != "nobody":
            request.state.caller = caller
        response = await go_on(request)
        response.headers["Content-Security-Policy"] = POLICY
        return response

    def page(request: Request, template: str, **values: Any) -> Response:
        language = request_language(request)
        return respond(request, environments[language.code], language, template, 200, values)

    @app.get("/gallery")
    def gallery(request: Request) -> Response:
        return page(request, "gallery.html", people=PEOPLE, sql=SQL, now=NOW)

    @app.get("/error/{status}")
    def error(request: Request, status: int) -> Response:
        problem = Problem(
            status=status,
            code="budget-exceeded",
            title="The query was refused",
            why="it costs ε = 0.5, and ε = 0.2 of the budget of 'patients' are left",
            instead='session.sql("SELECT …", spend="0.2")',
            rule="the owner's allotment for analysts",
        )
        return render(request, "error.html", status=status, problem=problem)

    @app.post("/explain")
    def explain(request: Request, form: FormDep) -> Response:
        return page(request, "explained.html", length=len(form.text("sql")))

    polls = {"seen": 0}

    @app.get("/progress")
    def progress(request: Request) -> Response:
        polls["seen"] += 1
        response = page(request, "progress.html", share=min(1.0, polls["seen"] / 2))
        if polls["seen"] >= 2:
            response.headers["X-Done"] = "1"
        return response

    @app.post("/save")
    def save(request: Request, form: FormDep) -> Response:
        return go(request, "/gallery", f"Saved for {form.text('name')}.")

    @app.get("/account")
    @app.get("/login")
    def plain() -> Response:
        return PlainTextResponse("here")

    app.include_router(home_pages())
    app.mount("/static", Assets(), name="static")
    return app
