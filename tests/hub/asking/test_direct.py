"""The short way of a plain question through the gates, beside the long one: the same answers, the same refusals."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub import middleware
from cloister.hub.services.asking import api
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.house import Visitor


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which way each question went."""
    taken: list[str] = []
    short, long = middleware.Middleware._directly, middleware.Middleware._passed

    async def directly(self: Any, *how: Any) -> None:
        taken.append("short")
        await short(self, *how)

    async def passed(self: Any, scope: Any, *how: Any) -> None:
        if scope["path"] == "/api/v1/questions":
            taken.append("long")
        await long(self, scope, *how)

    monkeypatch.setattr(middleware.Middleware, "_directly", directly)
    monkeypatch.setattr(middleware.Middleware, "_passed", passed)
    return taken


BODIES = [
    ({"sql": COUNT, "spend": "0.1"}, 201),
    ({"sql": COUNT, "spend": "0.1", "purpose": "study", "confidence": 0.9, "fresh": True}, 201),
    ({"sql": "SELECT nothing FROM people", "spend": "0.1"}, 422),
    ({"sql": "SELECT COUNT(*) FROM nowhere", "spend": "0.1"}, 404),
    ({"sql": COUNT, "spend": "1000"}, 409),
    ({"sql": COUNT, "spend": "0.1", "within": 5}, 422),
    ({"sql": COUNT, "spend": "0.1", "project": "unknown"}, 403),
]


@pytest.mark.parametrize(("body", "status"), BODIES)
def test_both_ways_answer_alike(stage: Stage, ways: list[str], body: dict[str, Any], status: int) -> None:
    short = stage.post("/questions", body)
    long = stage.post("/questions", body, Prefer="wait=10")
    assert ways == ["short", "long"]
    assert (short.status_code, long.status_code) == (status, status), short.text
    one, other = short.json(), long.json()
    assert one.keys() == other.keys()
    assert status == 201 or one == other
    assert {name for name in short.headers if name != "content-length"} == {
        name for name in long.headers if name != "content-length"
    }
    assert short.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "change",
    [
        {"content": b"{", "status": 422},
        {"content": b'{"sql": "SELECT 1", "spend": "0.1", "more": 1}', "status": 422},
        {"content": b'{"sql": 5}', "status": 422},
        {"content": b'{"sql": "x", "spend": "' + b"1" * 101 + b'"}', "status": 422},
        {"content": b'{"sql": "' + b"x" * 2**17 + b'"}', "status": 422},
        {"headers": {"content-type": "text/plain"}, "status": 422},
        {"headers": {"Idempotency-Key": "k" * 201}, "status": 422},
        {"headers": {"Prefer": "respond-async"}, "status": 202},
    ],
)
def test_what_is_not_plain_goes_the_long_way(stage: Stage, ways: list[str], change: dict[str, Any]) -> None:
    content = change.get("content", b'{"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}')
    headers = {"content-type": "application/json", **stage.ana.bearer, **change.get("headers", {})}
    answer = stage.house.client().post("/api/v1/questions", content=content, headers=headers)
    assert ways == ["long"]
    assert answer.status_code == change["status"], answer.text
    assert stage.charges == []


def test_a_browser_goes_the_long_way_and_needs_its_token(stage: Stage, ways: list[str]) -> None:
    body = {"sql": COUNT, "spend": "0.1"}
    assert stage.ana.client.post("/api/v1/questions", json=body).status_code == 403
    assert stage.ana.client.post("/api/v1/questions", json=body, headers=stage.ana.csrf()).status_code == 201
    assert ways == ["long", "long"]


def test_nobody_is_let_in_by_the_short_way(stage: Stage, ways: list[str]) -> None:
    body = {"sql": COUNT, "spend": "0.1"}
    for token in ("clo_wrong", "wrong", ""):
        answer = stage.house.client().post("/api/v1/questions", json=body, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["code"]) == (401, "not-logged-in")
        assert answer.headers["www-authenticate"] == "Bearer"
    owner: Visitor = stage.house.person("provider")
    assert stage.post("/questions", body, owner).status_code == 403
    assert stage.house.client().post("/api/v1/questions", json=body).status_code == 401  # without a token: the long way
    assert stage.charges == []
    assert ways == ["short"] * 4 + ["long"]


def test_what_nobody_foresaw_shows_nothing(stage: Stage, ways: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("row 44: Alice")

    monkeypatch.setattr(api, "answered_to", broken)
    answer = stage.post("/questions", {"sql": COUNT, "spend": "0.1"})
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert "Alice" not in answer.text
    assert ways == ["short"]


def test_the_same_key_gives_the_same_bytes_by_either_way(stage: Stage, ways: list[str]) -> None:
    body, key = {"sql": COUNT, "spend": "0.1"}, {"Idempotency-Key": "one"}
    short, long = stage.post("/questions", body, **key), stage.post("/questions", body, Prefer="wait=10", **key)
    assert ways == ["short", "long"]
    assert short.content == long.content
    assert stage.spent == "ε = 0.1"


def test_both_ways_are_counted_under_one_route(stage: Stage, ways: list[str]) -> None:
    stage.post("/questions", {"sql": COUNT, "spend": "0.1"})
    stage.post("/questions", {"sql": COUNT, "spend": "0.1"}, Prefer="wait=10")
    assert b'cloister_requests_total{method="POST",route="/api/v1/questions",status="201"} 2.0' in stage.hub.meter.text()
