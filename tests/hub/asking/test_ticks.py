"""Answers about rows, refusals too, leave at multiples of the tick: by a clock that the test holds."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute

from cloister.hub import middleware
from cloister.hub.releases import api as releases
from cloister.hub.releases.pages import pages as released
from cloister.hub.service import routes_in
from cloister.hub.services.asking.answers import ANSWER
from cloister.hub.web.routing import ticked
from tests.hub.asking.conftest import BY_SEX, COUNT, Stage

TICK = 0.001
STEP = 0.00037
UNTICKED = {
    "POST /questions/rehearse",  # made-up rows
    "POST /ask/rehearse",
    "GET /ask",
    "POST /ask/save",
    "GET /ask/build",
    "GET /dashboards",
    "POST /dashboards",
    "POST /dashboards/{number}/remove",
    "GET /published",
    "POST /published/{number}/revoke",
    "GET /releases",  # names and costs, of which nothing follows from rows
    "GET /questions",
    "POST /questions/{number}/remove",
    "GET /questions/saved",
    "POST /questions/saved",
    "GET /questions/saved/{number}",
    "POST /questions/saved/{number}/remove",
    "GET /releases/{number}/shares",
    "POST /releases/{number}/shares",
    "POST /releases/{number}/shares/withdraw",
    "POST /releases/{number}/share",
    "POST /releases/{number}/withdraw",
    "POST /releases/{number}/title",
}


@pytest.fixture
def slept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each answer was held back; each look at the clock moves it by an odd amount."""
    now, held = [0.0], []

    def look() -> float:
        now[0] += STEP
        return now[0]

    async def sleep(seconds: float) -> None:
        held.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(middleware, "time", SimpleNamespace(perf_counter=look))
    monkeypatch.setattr(middleware, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return held


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/questions", {"sql": BY_SEX, "spend": "0.1"}, 201),
        ("/questions", {"sql": BY_SEX, "spend": "7"}, 409),
        ("/questions", {"sql": "SELECT COUNT(*) FROM nobody", "spend": "0.1"}, 404),
        ("/questions", {"sql": "SELECT MAX(age) FROM", "spend": "0.1"}, 422),
        ("/questions", {"no": "question"}, 422),
        ("/questions/explain", {"sql": COUNT, "spend": "0.1"}, 200),
        ("/questions/afford", {"sql": COUNT}, 200),
        ("/questions/stored", {"sql": COUNT}, 404),
        ("/questions/workload", {"questions": [COUNT], "spend": "0.1"}, 201),
    ],
)
def test_it_waits_for_the_tick(stage: Stage, slept: list[float], path: str, body: Any, status: int):
    assert stage.post(path, body).status_code == status
    [held] = slept
    assert held == pytest.approx(TICK - STEP)


def test_what_is_not_about_rows_does_not_wait(stage: Stage, slept: list[float]):
    assert stage.get("/questions/saved").status_code == 200
    assert slept == []


def test_every_route_waits_or_is_known_not_to():
    asking = "cloister.hub.services.asking"
    routers = (routes_in(asking, "api")(), routes_in(asking, "pages")(), releases.api([ANSWER]), released([ANSWER]))
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    waiting = {_name(route) for route in routes if ticked in [each.call for each in route.dependant.dependencies]}
    assert {_name(route) for route in routes} - waiting <= UNTICKED
    assert "POST /questions" in waiting
    assert "GET /releases/{number}/download/{form}" in waiting


def _name(route: APIRoute) -> str:
    return f"{min(route.methods)} {route.path}"
