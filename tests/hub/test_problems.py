"""Errors on their way out: problem details for programs, a page for people, and no word of what nobody foresaw."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from cloister import errors
from cloister.hub import problems
from cloister.hub.app import make_app
from cloister.hub.guard import needs
from cloister.hub.problems import TooMany, Unauthenticated, problem_of
from cloister.hub.service import Service
from tests.hub.house import Clock, House

CANARY = "canary-row-value-4711"


def leaves(kind: type[errors.CloisterError]) -> list[type[errors.CloisterError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in leaves(child))]


@pytest.mark.parametrize(
    "kind", [kind for _, kind in inspect.getmembers(errors, inspect.isclass)], ids=lambda kind: kind.__name__
)
def test_every_error_has_a_status_and_keeps_its_three_parts(kind: type[errors.CloisterError]) -> None:
    problem = problem_of(kind("It was refused", why="a reason", instead="another line"))
    told = problem.details()
    assert 400 <= problem.status < 600
    assert told["title"] == "It was refused"
    assert (told["detail"], told["instead"]) == ("a reason", "another line")
    assert told["type"].endswith(told["code"])


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.AccessDenied("x"), 403),
        (errors.UnknownTable("x"), 404),
        (errors.BudgetExceeded("x"), 409),
        (errors.MissingBound("x"), 422),
        (errors.LedgerFrozen("x"), 503),
        (errors.EngineError("x"), 502),
        (Unauthenticated("x"), 401),
        (problems.Conflict("x"), 409),
    ],
)
def test_statuses(error: errors.CloisterError, status: int) -> None:
    assert problem_of(error).status == status


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application with routes that fail in every way."""
    house = House(tmp_path_factory.mktemp("failing") / "hub", Clock())

    def fail(kind: str) -> None:
        if kind == "unforeseen":
            raise ValueError(CANARY)
        if kind == "chained":
            try:
                raise KeyError(CANARY)
            except KeyError as error:
                raise RuntimeError(CANARY) from error
        if kind == "often":
            raise TooMany("Too many log-ins", why="this address tried too often", instead="wait", after=77)
        raise errors.UnsupportedQuery("<b>It</b> was refused", why="a & b", instead="<script>alert(1)</script>")

    def routes() -> APIRouter:
        router = APIRouter()
        router.add_api_route("/failing/{kind}", fail, dependencies=[needs("public.read")])
        return router

    house.hub.services = (Service(name="failing", title="Failing", pages=routes, api=routes), *house.hub.services)
    app, more = make_app(house.hub), {"raise_server_exceptions": False, "follow_redirects": False}
    yield TestClient(app, base_url=house.settings.origin, client=("127.0.0.1", 1), **more)
    house.close()


@pytest.mark.parametrize("kind", ["unforeseen", "chained"])
@pytest.mark.parametrize("prefix", ["", "/api/v1"])
def test_what_nobody_foresaw_shows_a_reference_and_nothing_else(
    failing: TestClient, caplog: pytest.LogCaptureFixture, kind: str, prefix: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = failing.get(f"{prefix}/failing/{kind}")
    assert answer.status_code == 500
    told = caplog.text + answer.text
    assert CANARY not in told
    assert "Traceback" not in told
    if prefix:
        reference = answer.json()["detail"].removeprefix("the log knows it as ")
        assert reference in caplog.text


def test_an_error_on_a_page_is_escaped_and_too_many_says_when(failing: TestClient) -> None:
    page = failing.get("/failing/other")
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert "<b>It</b>" not in page.text
    assert "&lt;script&gt;" in page.text
    assert failing.get("/api/v1/failing/often").headers["retry-after"] == "77"
    assert failing.get("/failing/often").headers["retry-after"] == "77"


def test_the_api_answers_in_problem_details_and_pages_in_pages(house: House) -> None:
    client = house.client()
    api = client.get("/api/v1/no-such-thing")
    assert api.headers["content-type"] == "application/problem+json"
    assert (api.status_code, api.json()["code"]) == (404, "missing")
    page = client.get("/no-such-page")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert client.put("/api/v1/hub").json()["code"] == "method"
    login = client.get("/api/v1/me")
    assert (login.status_code, login.headers["www-authenticate"]) == (401, "Bearer")


def test_who_is_not_logged_in_is_sent_to_log_in_and_back(house: House) -> None:
    answer = house.client().get("/people?search=a%26b&after=%22")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fpeople%3Fsearch%3Da%2526b%26after%3D%2522"
    assert house.client().get("//evil.example.org/x").headers.get("location", "/login").startswith("/login")


@pytest.mark.parametrize(
    ("path", "body", "why", "instead"),
    [
        ("questions", {"sql": "x", "dialect": 5}, "dialect: Input should be a valid string", '"dialect": "…"'),
        (
            "questions",
            {"sql": "x", "fresh": "no"},
            "fresh: Input should be a valid boolean",
            '"fresh": false',
        ),
        ("questions", {"sql": "x", "confidence": 0.3}, "confidence: Input should be greater than 0.5", '"confidence": …'),
        ("questions", {"sql": ""}, "it is empty, or has a character of code 0", "a SELECT over your data sets"),
        ("questions", {"sql": "a\0b"}, "it is empty, or has a character of code 0", "a SELECT over your data sets"),
        ("questions", {"sql": "x", "purpose": "x" * 2000}, "it must be printable text of at most 1000 characters", 'purpose="…"'),
        (
            "questions/workload",
            {"questions": ["x"], "spend": ""},
            "spend: String should have at least 1 character",
            '"spend": "…"',
        ),
        (
            "synthetic-tables",
            {"table": "x", "columns": [], "spend": "1"},
            "they are 1 to 50 different columns",
            "one column, or more",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_in_a_body_is_said_with_the_line_to_write(
    house: House, path: str, body: dict[str, object], why: str, instead: str
) -> None:
    told = house.client().post(f"/api/v1/{path}", json=body, headers=house.person("analyst").bearer).json()
    assert (told["code"], told["detail"], told["instead"]) == ("invalid", why, instead)


def test_a_malformed_body_is_refused_without_being_repeated(house: House) -> None:
    ana = house.person("analyst")
    for body in ({"sql": 7, CANARY: CANARY}, {"sql": "x", "spend": CANARY}, [CANARY], CANARY):
        answer = house.client().post("/api/v1/questions", json=body, headers=ana.bearer)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.text.count(CANARY) <= 1  # the name of a field may be told, its value not
    headers = ana.bearer | {"Content-Type": "application/json"}
    unread = [b'{"sql": "caf\xe9"}', b'{"sql": ' + b"9" * 6000 + b"}", b'{"sql": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
    for content in (b'{"sql": ', *unread):
        broken = house.client().post("/api/v1/questions", content=content, headers=headers)
        assert (broken.status_code, broken.json()["code"]) == (422, "invalid")
        assert broken.json()["instead"] == "a request body that matches /api/v1/openapi.json"
