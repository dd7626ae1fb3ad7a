"""Lost connections, refusals, and what is sent again: against a hub that a script plays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import httpx
import pytest

from cloister import errors
from cloister.client import HubError, HubUnreachable, RemoteSession
from cloister.client.transport import Transport
from cloister.session.examples import small_release

KEPT = small_release()
Play = Callable[[httpx.Request], httpx.Response]


def answered(request: httpx.Request) -> httpx.Response:
    body = {"id": "r1", "release": json.loads(KEPT.to_json())}
    return httpx.Response(201, json=body)


def problem(status: int, code: str, **more: str) -> httpx.Response:
    told = {"code": code, "title": "It was refused", "detail": "a reason", "instead": "another line", "status": status} | more
    return httpx.Response(status, json=told, headers={"content-type": "application/problem+json"})


class Scripted:
    """Plays one line of the script for each request, and keeps what came."""

    def __init__(self, *lines: Play | httpx.Response | Exception) -> None:
        self.lines = list(lines)
        self.seen: list[httpx.Request] = []
        self.slept: list[float] = []
        self.time = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, httpx.Response) else line(request)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def session(self, **how: str) -> RemoteSession:
        client = httpx.Client(base_url="https://hub.example.org", transport=httpx.MockTransport(self))
        return RemoteSession(Transport(client, timeout=60, sleep=self.sleep, now=lambda: self.time), **how)


SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
LOST = (
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("slow"),
    httpx.RemoteProtocolError("cut"),
    httpx.ReadError("cut"),
    httpx.Response(500, text="Internal Server Error", headers={"content-type": "text/plain"}),
    httpx.Response(502, text="<h1>Bad gateway</h1>", headers={"content-type": "text/html"}),
    httpx.Response(503, text="<h1>Service unavailable</h1>", headers={"content-type": "text/html"}),
    httpx.Response(504, text="<h1>Gateway timeout</h1>", headers={"content-type": "text/html"}),
)


@pytest.mark.parametrize("loss", LOST, ids=lambda loss: getattr(loss, "status_code", type(loss).__name__))
def test_a_lost_answer_is_asked_for_again_with_the_same_key_and_body(loss: Exception | httpx.Response) -> None:
    hub = Scripted(loss, answered)
    answer = hub.session().sql(SQL, spend="0.1")
    first, second = hub.seen
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert len(first.headers["idempotency-key"]) == 22
    assert first.content == second.content
    assert answer.to_json() == KEPT.to_json()


def test_every_question_has_a_key_of_its_own() -> None:
    hub = Scripted(answered, answered)
    session = hub.session()
    session.sql(SQL, spend="0.1")
    session.sql(SQL, spend="0.1")
    assert len({each.headers["idempotency-key"] for each in hub.seen}) == 2


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "not-logged-in", errors.AccessDenied),
        (403, "access-denied", errors.AccessDenied),
        (404, "unknown-table", errors.UnknownTable),
        (409, "budget-exceeded", errors.BudgetExceeded),
        (409, "conflict", HubError),
        (422, "invalid", errors.InvalidParameter),
        (422, "invalid-declaration", errors.InvalidDeclaration),
        (422, "missing-bound", errors.MissingBound),
        (422, "unknown-column", errors.UnknownColumn),
        (422, "unsupported", errors.UnsupportedQuery),
        (422, "not-convertible", errors.NotConvertible),
        (429, "too-many", HubError),
        (500, "failed", HubError),
        (501, "not-installed", errors.MissingDependency),
        (502, "engine", errors.EngineError),
        (503, "ledger", errors.LedgerError),
        (503, "database", HubError),
    ],
)
def test_a_refusal_is_an_error_of_ours_and_is_sent_once(status: int, code: str, kind: type[errors.CloisterError]) -> None:
    hub = Scripted(problem(status, code, rule="grant:g1"))
    with pytest.raises(kind) as refused:
        hub.session().sql(SQL, spend="0.1")
    assert type(refused.value) is kind
    assert (refused.value.what, refused.value.why, refused.value.instead) == ("It was refused", "a reason", "another line")
    assert refused.value.rule == "grant:g1"
    assert len(hub.seen) == 1
    assert hub.slept == []


def test_a_certificate_that_nobody_vouches_for_is_looked_at_once() -> None:
    hub = Scripted(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate"))
    with pytest.raises(HubUnreachable, match="could not be verified"):
        hub.session().sql(SQL, spend="0.1")
    assert (len(hub.seen), hub.slept) == (1, [])


def test_after_a_loss_the_hub_may_still_be_working_on_the_first_request() -> None:
    hub = Scripted(httpx.ReadError("cut"), problem(409, "conflict"), problem(409, "conflict"), answered)
    hub.session().sql(SQL, spend="0.1")
    assert len({each.headers["idempotency-key"] for each in hub.seen}) == 1
    assert len(hub.seen) == 4


def test_a_refusal_after_a_loss_is_a_refusal() -> None:
    hub = Scripted(httpx.ReadError("cut"), problem(409, "budget-exceeded"))
    with pytest.raises(errors.BudgetExceeded):
        hub.session().sql(SQL, spend="0.1")


def test_a_hub_that_starts_again_is_waited_for() -> None:
    hub = Scripted(*[httpx.ConnectError("refused")] * 6, answered)
    assert hub.session().sql(SQL, spend="0.1").to_json() == KEPT.to_json()
    assert 10 < hub.time < 30
    assert len({each.headers["idempotency-key"] for each in hub.seen}) == 1


def test_it_gives_up_in_words() -> None:
    hub = Scripted(*[httpx.ConnectError("refused")] * 7)
    with pytest.raises(HubUnreachable, match="no connection could be made"):
        hub.session().sql(SQL, spend="0.1")
    assert hub.slept == sorted(hub.slept)
    busy = Scripted(httpx.ReadError("cut"), *[problem(409, "conflict")] * 100)
    with pytest.raises(HubUnreachable):
        busy.session().sql(SQL, spend="0.1")
    assert busy.time <= 60


@pytest.mark.parametrize(
    "odd",
    [
        httpx.Response(200, text="<h1>Log in</h1>", headers={"content-type": "text/html"}),
        httpx.Response(200, text="[]", headers={"content-type": "application/json"}),
        httpx.Response(200, text="{", headers={"content-type": "application/json"}),
        httpx.Response(302, headers={"location": "https://elsewhere.example.org"}),
        httpx.Response(500, json={"code": 7, "title": ["x"]}),
    ],
)
def test_what_is_no_answer_is_refused_and_no_redirect_is_followed(odd: httpx.Response) -> None:
    hub = Scripted(odd)
    with pytest.raises(HubError, match=f"status {odd.status_code}") as refused:
        hub.session().sql(SQL, spend="0.1")
    assert len(hub.seen) == 1
    if "json" not in odd.headers.get("content-type", ""):
        assert refused.value.why == "a proxy or another server answered, not a hub"
        assert refused.value.instead


def test_a_lost_order_is_not_said_to_cost_nothing_when_it_is_sent_again() -> None:
    """Another order is another job, and another charge: only questions are answered from the ledger."""
    for lost in (
        [],
        [httpx.Response(200, json={"job": "j1"}), httpx.Response(200, json={"state": "done", "result": {"guest": "g1"}})],
    ):
        hub = Scripted(*lost, *[httpx.ConnectError("refused")] * 7)
        with pytest.raises(HubUnreachable) as refused:
            hub.session().run_algorithm("mean", "people", spend=1)
        assert "no further cost" not in refused.value.instead
        assert "/jobs" in refused.value.instead


def test_a_fork_sends_nothing_over_the_connections_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes would read each other's answers from one connection, or wait for them for ever."""
    hub = Scripted(answered, answered)
    session = hub.session()
    session.sql(SQL, spend="0.1")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(errors.InvalidParameter, match="forked"):
            session.sql(SQL, spend="0.1")
    assert len(hub.seen) == 1
    session.sql(SQL, spend="0.1")


def test_an_answer_that_holds_no_release_is_refused() -> None:
    hub = Scripted(httpx.Response(201, json={"id": "r1", "release": {"format": 1, "release": {"groups": "import os"}}}))
    with pytest.raises(errors.InvalidParameter, match="holds no release"):
        hub.session().sql(SQL, spend="0.1")


def test_after_close_nothing_is_sent() -> None:
    hub = Scripted(answered)
    with hub.session() as session:
        pass
    with pytest.raises(errors.InvalidParameter, match="closed"):
        session.sql(SQL, spend="0.1")
    assert hub.seen == []


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, json={}),
        httpx.Response(200, headers={"content-type": "application/json"}, content=b"[" * 100_000),
        httpx.DecodingError("no gzip"),
    ],
)
def test_what_is_no_answer_of_a_hub_is_said(answer: httpx.Response | Exception) -> None:
    with pytest.raises(HubError):
        Scripted(answer).session().sql(SQL, spend=1)


def test_a_list_that_never_ends_is_refused() -> None:
    page = {"items": [], "next": "again"}
    with pytest.raises(HubError, match="never ends"):
        Scripted(*(httpx.Response(200, json=page) for _ in range(3))).session().tables  # noqa: B018
