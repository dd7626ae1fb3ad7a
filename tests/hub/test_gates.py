"""What every request passes: where it comes from, how large it is, whose it is; what every answer carries, and when it leaves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloister.hub import middleware
from cloister.hub.middleware import POLICY, Middleware
from tests.hub.house import Clock, House, Visitor, served

MEGABYTES_4 = 4 * 2**20
QUESTION = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1", "purpose": "x"}


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "http://127.0.0.1:8765"}, False),
        ({"Origin": "https://127.0.0.1:8765"}, True),
        ({"Origin": "http://127.0.0.1:8766"}, True),
        ({"Origin": "http://evil.example.org"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": ""}, True),
        ({"Origin": "http://127.0.0.1:8765.example.org"}, True),
    ],
)
def test_what_another_site_writes_is_refused(house: House, headers: dict[str, str], refused: bool) -> None:
    answer = house.client().post("/logout", headers=headers)
    assert ("another site" in answer.text) is refused
    api = house.client().post("/api/v1/questions", json=QUESTION, headers=headers)
    assert (api.status_code == 403) is refused
    assert house.client().get("/login", headers=headers).status_code == 200  # reading is another matter


def test_a_foreign_site_is_refused_whoever_is_logged_in(house: House) -> None:
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    headers = ana.csrf() | {"Sec-Fetch-Site": "cross-site"}
    answer = ana.client.post("/api/v1/questions", json=QUESTION, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "access-denied")
    assert house.hub.ledger.spent("people").epsilon == 0  # type: ignore[union-attr]


def test_a_session_that_writes_needs_the_token_against_forgery_and_an_api_token_does_not(house: House) -> None:
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    assert ana.client.post("/api/v1/questions", json=QUESTION).status_code == 403
    assert ana.client.post("/api/v1/questions", json=QUESTION, headers={"X-CSRF-Token": "x"}).status_code == 403
    other = house.person("analyst").csrf()
    assert ana.client.post("/api/v1/questions", json=QUESTION, headers=other).status_code == 403
    assert house.client().post("/api/v1/questions", json=QUESTION, headers=ana.bearer).status_code == 201


@pytest.mark.parametrize("told", [True, False])
def test_a_body_beyond_the_limit_is_refused_told_or_not(house: House, told: bool) -> None:
    headers = {} if told else {"Transfer-Encoding": "chunked"}
    big = b"x" * (MEGABYTES_4 + 1)
    content: Any = big if told else iter([big[: 2**20]] * 5)
    answer = house.client().post("/api/v1/questions", content=content, headers=headers | house.person("analyst").bearer)
    assert answer.status_code == 413
    assert answer.json()["code"] == "too-large"


@pytest.mark.parametrize("length", ["-1", "nine", "1e3", "99999999999999999999"])
def test_an_odd_length_is_refused(house: House, length: str) -> None:
    headers = {"Content-Length": length, **house.person("analyst").bearer}
    assert house.client().post("/api/v1/questions", content=b"", headers=headers).status_code == 413


@pytest.mark.parametrize("path", ["/login", "/api/v1/me", "/healthz", "/no-such-page", "/api/v1/no-such", "/static/no-such.css"])
def test_every_answer_carries_the_headers(house: House, path: str) -> None:
    headers = house.client().get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers
    assert "strict-transport-security" not in headers
    if not path.startswith("/static/"):
        assert headers["cache-control"] == "no-store"


def test_refusals_at_the_gate_carry_them_too_and_tls_adds_its_own(house: House, tmp_path: Path) -> None:
    refused = house.client().post("/logout", headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.headers["content-security-policy"] == POLICY
    secure = House(tmp_path / "secure", Clock(), address="https://hub.example.org")
    assert secure.client().get("/login").headers["strict-transport-security"].startswith("max-age=")
    secure.close()


def address_of(house: House, peer: str, *forwarded: str) -> str:
    from starlette.requests import Request

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"x-forwarded-for", each.encode()) for each in forwarded if each],
        "client": (peer, 1) if peer else None,
    }
    return Middleware(house.app, house.hub)._address(Request(scope))[0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "believed"),
    [
        ("192.0.2.7", "198.51.100.9", "192.0.2.7"),
        ("10.0.0.1", "198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "203.0.113.5, 198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "198.51.100.9, 10.0.0.2", "198.51.100.9"),
        ("10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.9, nonsense", "10.0.0.1"),
        ("10.0.0.1", "<script>", "10.0.0.1"),
        ("10.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("::ffff:10.0.0.1", "198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9"),
        ("::ffff:192.0.2.7", "198.51.100.9", "192.0.2.7"),
        ("testclient", "198.51.100.9", "testclient"),
        ("", "198.51.100.9", ""),
    ],
)
def test_an_address_is_taken_from_a_proxy_that_is_believed_and_from_nobody_else(
    tmp_path: Path, peer: str, forwarded: str, believed: str
) -> None:
    behind = House(tmp_path / "hub", Clock(), proxies="10.0.0.0/8")
    assert address_of(behind, peer, forwarded) == believed
    behind.close()


def test_all_lines_of_the_header_are_one_list(tmp_path: Path) -> None:
    """A client sends a line of its own; the proxy adds another below it: the last word is the proxy's."""
    behind = House(tmp_path / "hub", Clock(), proxies="10.0.0.0/8")
    assert address_of(behind, "10.0.0.1", "127.0.0.1", "198.51.100.9") == "198.51.100.9"
    assert address_of(behind, "10.0.0.1", "203.0.113.5, 198.51.100.9", "10.0.0.2") == "198.51.100.9"
    behind.close()


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"])
def test_the_metrics_are_not_read_through_a_proxy_that_nobody_named(house: House, tmp_path: Path, header: str) -> None:
    """A proxy on this machine makes everybody seem to be on this machine."""
    assert house.client().get("/metrics").status_code == 200
    assert house.client().get("/metrics", headers={header: "127.0.0.1"}).status_code == 303  # to log in
    behind = House(tmp_path / "hub", Clock(), proxies="127.0.0.1", metrics_token="word")
    told = {header: "198.51.100.9", "Authorization": "Bearer word"}
    assert behind.client().get("/metrics", headers=told).status_code == 200
    assert behind.client().get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code == 303
    behind.close()


OWN_NAMES = ["127.0.0.1:8765", "localhost", "LOCALHOST:8765", "[::1]:8765", "127.9.9.9"]
FOREIGN = ["evil.example:8765", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
STRANGE = ["x/uploads?", "x/api/v1/uploads?z=", "x#", "a@127.0.0.1", "127.0.0.1:x", "127.0.0.1,evil.example", ""]


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/hub", "/healthz", "/static/cloister.css"])
def test_a_host_that_the_hub_does_not_have_is_refused(house: House, path: str) -> None:
    for name in OWN_NAMES:
        assert house.client().get(path, headers={"Host": name}).status_code < 400, name
    for name in (*FOREIGN, *STRANGE):
        answer = house.client().get(path, headers={"Host": name})
        assert answer.status_code == 421, name
        assert "evil" not in answer.text
        assert answer.headers["content-security-policy"] == POLICY


def test_the_names_of_a_hub_are_those_of_its_settings(tmp_path: Path) -> None:
    named = House(tmp_path / "hub", Clock(), address="https://Hub.example.org", hosts="hub.internal, other.internal.")
    for name, status in {
        "hub.example.org": 200,
        "hub.example.org:443": 200,
        "hub.internal:8765": 200,
        "OTHER.internal": 200,
        "127.0.0.1:8765": 200,
        "evil.example": 421,
    }.items():
        assert named.client().get("/healthz", headers={"Host": name}).status_code == status, name
    twice = [("Host", "127.0.0.1"), ("Host", "hub.internal")]
    assert named.client().get("/healthz", headers=twice).status_code == 421
    named.close()


@pytest.mark.parametrize(
    ("address", "host", "origin", "refused"),
    [
        ("https://hub.example.org", "hub.example.org", "https://hub.example.org", False),
        ("https://hub.example.org", "127.0.0.1:8765", "https://hub.example.org", False),
        ("https://hub.example.org", "127.0.0.1:8765", "http://127.0.0.1:8765", True),
        ("https://hub.example.org", "evil.example", "https://evil.example", True),
        ("https://hub.example.org", "localhost", "http://localhost", True),
        ("", "localhost:8765", "http://localhost:8765", False),
        ("", "127.0.0.1:8765", "http://localhost:8765", True),
        ("", "evil.example", "http://evil.example", True),
    ],
)
def test_an_origin_is_not_taken_from_the_host_where_the_address_is_set(
    tmp_path: Path, address: str, host: str, origin: str, refused: bool
) -> None:
    named = House(tmp_path / "hub", Clock(), address=address)
    answer = named.client().post("/logout", headers={"Host": host, "Origin": origin})
    assert ("another site" in answer.text or answer.status_code == 421) is refused
    named.close()


def test_no_answer_leads_to_the_host_that_a_client_names(house: House) -> None:
    for path in ("/people/", "/login/", "/api/v1/me/", "/datasets/", "/static"):
        answer = house.client().get(path, headers={"Host": "localhost:1"})
        assert answer.status_code == 404, path
        assert "localhost:1" not in answer.headers.get("location", "")
    assert house.client().get("/account").headers["location"] == "/login?next=%2Faccount"


def test_without_proxies_the_header_says_nothing(house: House) -> None:
    assert address_of(house, "192.0.2.7", "127.0.0.1") == "192.0.2.7"
    assert house.client("192.0.2.7").get("/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status_code != 200


class Time:
    """A clock that the work and the waiting move."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(("work", "leaves"), [(0.0, 0.0), (0.001, 0.01), (0.0099, 0.01), (0.0101, 0.02), (0.137, 0.14)])
def test_answers_about_rows_leave_at_ticks_of_the_clock(
    house: House, monkeypatch: pytest.MonkeyPatch, work: float, leaves: float
) -> None:
    clock = Time()
    monkeypatch.setattr(middleware.time, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(middleware.asyncio, "sleep", clock.sleep)
    object.__setattr__(house.settings, "tick_ms", 10)
    assert _left_after(house, clock, work, ticked=True) == pytest.approx(leaves)
    before = len(clock.slept)
    assert _left_after(house, clock, work, ticked=False) == pytest.approx(work)
    assert len(clock.slept) == before


def _left_after(house: House, clock: Time, work: float, *, ticked: bool) -> float:
    """When the head of an answer leaves, after so much work."""
    left: list[float] = []
    begun = clock.now
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/x", "state": {"ticked": ticked}}

    async def sent(_: Any) -> None:
        left.append(clock.now - begun)

    counted = Middleware(house.app, house.hub)._counted(scope, sent, begun)
    clock.now += work
    asyncio.run(_call(counted, {"type": "http.response.start", "status": 200, "headers": []}))
    return left[0]


async def _call(send: Callable[[Any], Any], message: dict[str, Any]) -> None:
    await send(message)


def test_what_tells_of_rows_is_ticked(house: House) -> None:
    """The refusals of a question take the same way out as its answers."""
    ana: Visitor = house.person("analyst")
    house.sample_data_set(readers=[ana])
    ticked: list[bool] = []
    original = Middleware._counted

    def watched(self: Middleware, scope: Any, send: Any, begun: float) -> Any:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                ticked.append(bool(scope["state"].get("ticked")))
            await original(self, scope, send, begun)(message)

        return sent

    assert inspect.iscoroutinefunction(Middleware.__call__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Middleware, "_counted", watched)
        client = house.client()
        asked = [QUESTION, QUESTION | {"spend": "9"}, QUESTION | {"sql": "SELECT age FROM people"}, QUESTION | {"sql": "x"}]
        for body in asked:
            client.post("/api/v1/questions", json=body, headers=ana.bearer)
        client.post("/api/v1/questions/explain", json=QUESTION, headers=ana.bearer)
    assert ticked == [True] * 5


@pytest.mark.parametrize(
    "path", ["/", "/login", "/healthz", "/data-sets", "/api/v1/me", "/api/v1/openapi.json", "/static/missing.js", "/no/such/page"]
)
def test_head_is_answered_as_get_without_a_body(house: House, path: str) -> None:
    ana = house.person("analyst")
    whole, head = ana.client.get(path), ana.client.head(path)
    assert head.status_code == whole.status_code != 405
    assert head.content == b""
    changing = {"x-request-id", "set-cookie", "date", "content-length"}
    assert {name for name in head.headers if name not in changing} == {name for name in whole.headers if name not in changing}
    assert house.client().head("/api/v1/me").status_code == house.client().get("/api/v1/me").status_code == 401
    assert ana.client.head("/api/v1/questions").status_code == ana.client.get("/api/v1/questions").status_code


def test_head_over_a_real_connection_leaves_it_in_order(house: House) -> None:
    with served(house.hub) as url, httpx.Client(base_url=url, trust_env=False, timeout=120) as client:
        for _ in range(2):
            head, whole = client.head("/login"), client.get("/login")
            assert (head.status_code, head.content) == (200, b"")
            assert whole.status_code == 200
            assert whole.text.startswith("<!doctype html>")
            assert client.head("/healthz").status_code == 200
