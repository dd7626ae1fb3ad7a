"""What holds of every route: forgery, other sites, foreign hosts, caches, redirects, strange methods and headers.

Covered elsewhere: session fixation, what log-ins tell and work (`accounts/test_log_in.py`), tokens after revocation
(`accounts/test_tokens.py`), guesses (`accounts/test_throttle.py`).
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from cloister.hub.decisions.policy import actions
from cloister.hub.ids import new_id
from tests.hub.house import House
from tests.hub.security.walk import FORM, Place, body_of, form_token, places
from tests.hub.security.world import World

EVIL = "evil.example"


def filled(place: Place, value: str = "") -> str:
    """An address of the route."""
    return place.at(**{name: "csv" if name == "form" else value or new_id() for name in place.parameters})


@pytest.fixture
def writing(every: list[Place]) -> list[Place]:
    """Every route that may change something."""
    found = [place for place in every if place.writes]
    assert len(found) > 70
    return found


def test_a_browser_writes_nothing_without_the_token_of_its_forms(world: World, writing: list[Place]) -> None:
    """The cookie alone, which a browser sends along whoever made the page, is never enough."""
    openapi = world.house.app.openapi()
    taken = []
    for visitor in (world.administrator, world.mallory):
        for place in writing:
            address = filled(place)
            if place.api:
                answer = visitor.client.request(place.method, address, json=body_of(openapi, place))
            else:
                answer = visitor.client.request(place.method, address, data=FORM)
            if answer.status_code not in (403, 404, 422):
                taken.append(f"{place}: {answer.status_code}")
            elif place.api and answer.status_code != 403 and "CSRF" not in answer.text and not body_refused(answer):
                taken.append(f"{place}: {answer.status_code} {answer.text[:80]}")
    assert taken == []


def body_refused(answer: Any) -> bool:
    """Whether its form alone was refused, before anybody looked at who sends it."""
    return answer.status_code == 422 and answer.json()["code"] == "invalid"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": f"https://{EVIL}"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=lambda headers: next(iter(headers.values())),
)
def test_what_another_site_sends_is_refused_before_it_is_read(
    world: World, writing: list[Place], headers: dict[str, str]
) -> None:
    token = form_token(world.administrator)
    for place in writing:
        sent = {**headers, "X-CSRF-Token": token}
        given: dict[str, Any] = {"json": {}} if place.api else {"data": {**FORM, "form_token": token}}
        answer = world.administrator.client.request(place.method, filled(place), headers=sent, **given)
        assert answer.status_code == 403, place
        assert "another site" in answer.text, place


def test_no_answer_repeats_the_host_that_was_asked_for(world: World, every: list[Place]) -> None:
    """Links and redirects are made of the hub's own address: a forged Host or X-Forwarded-Host changes none."""
    for place in every:
        if place.writes:
            continue
        for visitor in (world.owner, world.administrator):
            answer = visitor.client.get(
                filled(place),
                headers={"Host": EVIL, "X-Forwarded-Host": EVIL, "X-Forwarded-Proto": "https", "Forwarded": f"host={EVIL}"},
            )
            assert EVIL not in answer.text, place
            assert EVIL not in str(answer.headers), place


def test_an_invitation_leads_to_the_hub_itself(world: World) -> None:
    client = world.administrator.client
    form = {"email": "new@example.org", "role": ["analyst"], "form_token": form_token(world.administrator)}
    refused = client.post("/people/invite", data=form, headers={"Host": EVIL})
    assert (refused.status_code, EVIL in refused.text) == (421, False)
    answer = client.post("/people/invite", data=form, headers={"Host": "localhost:1", "X-Forwarded-Host": EVIL})
    assert answer.status_code == 201
    assert "localhost:1" not in answer.text
    assert f"{world.house.settings.origin}/link/" in answer.text
    assert EVIL not in answer.text


@pytest.mark.parametrize(
    "where",
    [f"//{EVIL}", f"https://{EVIL}", f"/\\{EVIL}", f"\\/{EVIL}", f"/%09/{EVIL}", f"\t//{EVIL}", f"https:{EVIL}", "javascript:1"],
)
def test_no_form_or_address_leads_elsewhere(house: House, where: str) -> None:
    """Every place of the hub that leads on follows only to the hub itself."""
    visitor = house.person("administrator", "owner", "analyst")
    token = form_token(visitor)
    for place in places(house.app):
        if place.path in ("/logout", "/preferences", "/login") or (place.writes and not place.api and not place.parameters):
            answer = (
                visitor.client.post(
                    place.path, data={"form_token": token, "next": where, "back": where}, params={"next": where, "back": where}
                )
                if place.writes
                else visitor.client.get(place.path, params={"next": where, "back": where})
            )
            leads = answer.headers.get("location", "/")
            assert leads.startswith("/"), f"{place} leads to {leads}"
            assert not leads.startswith(("//", "/\\")), f"{place} leads to {leads}"
            assert "\t" not in leads
        if place.path == "/logout":
            visitor = house.person("administrator", "owner", "analyst")
            token = form_token(visitor)


def test_every_answer_carries_the_headers_and_is_kept_by_nobody(world: World, every: list[Place]) -> None:
    for place in every:
        if place.writes:
            continue
        for client in (world.analyst.client, world.house.client()):
            answer = client.get(filled(place))
            assert answer.headers["cache-control"] == "no-store", place
            assert "default-src 'none'" in answer.headers["content-security-policy"], place
            assert "unsafe" not in answer.headers["content-security-policy"], place
            assert answer.headers["x-content-type-options"] == "nosniff", place
            assert "server" not in answer.headers, place


def test_who_nobody_is_sees_nothing_but_what_is_public(world: World, every: list[Place]) -> None:
    """By their actions: what is not for nobody leads to the log-in or says 401, before anything else."""
    open_to_all = {name for name, each in actions().items() if "nobody" in each.roles}
    client = world.house.client()
    for place in every:
        if place.action in open_to_all:
            continue
        answer = client.request(place.method, filled(place))
        if place.api:
            assert answer.status_code in (401, 422), place  # 422: an address that is none is said so to anybody
            assert answer.status_code == 401 or answer.json()["code"] == "invalid", place
        elif place.writes:
            assert answer.status_code in (401, 403, 422), place
        else:
            assert answer.status_code in (303, 422), place
            assert answer.headers.get("location", "/login").startswith("/login"), place


STRANGE = [
    {"Authorization": "Bearer \xe9\xff"},
    {"Authorization": "Bearer " + "clo_" + "A" * 9000},
    {"Authorization": "Basic YTpi"},
    {"Cookie": "cloister-session=\xff; cloister-visit=\x01"},
    {"Cookie": "; ".join(f"c{each}=x" for each in range(200))},
    {"X-Forwarded-For": "not an address, 1.2.3.4"},
    {"Accept-Language": "x" * 5000},
    {"Accept-Language": "zh;q=nan, en;q=1e999, *;q=-1"},
    {"Content-Length": "-1"},
    {"Content-Length": "99999999999999999999"},
    {"Content-Type": "application/json; charset=no-such"},
    {"Content-Type": "multipart/form-data"},
    {"Range": "bytes=0-"},
    {"If-None-Match": "\xff"},
    {"Idempotency-Key": "\xff\x01"},
]


@pytest.mark.parametrize("headers", STRANGE, ids=lambda headers: f"{next(iter(headers))} {next(iter(headers.values()))[:20]!r}")
def test_strange_headers_are_an_answer_and_no_failure(world: World, headers: dict[str, str]) -> None:
    client = world.house.client()
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    for method, path in (
        ("GET", "/"),
        ("GET", "/login"),
        ("GET", "/api/v1/me"),
        ("POST", "/login"),
        ("POST", "/api/v1/questions"),
    ):
        answer = client.request(method, path, headers=raw, content=b"" if method == "GET" else b"{}")
        assert answer.status_code < 500, (method, path, answer.text)


def test_a_header_cannot_be_put_into_an_answer(world: World) -> None:
    """What comes from an address or a form reaches a header only as a part of its value."""
    client, bad = world.owner.client, "x%0d%0aSet-Cookie:%20stolen=1"
    for path in (f"/login?next=/{bad}", f"/datasets/{bad}", f"/api/v1/releases/{bad}", f"/link/{bad}", f"/{bad}"):
        answer = client.get(path)
        assert "stolen" not in answer.headers.get("set-cookie", ""), path
        assert "\n" not in answer.headers.get("location", ""), path


def test_the_metrics_are_for_this_machine_even_where_a_proxy_stands_on_it(house: House) -> None:
    """A proxy on the same machine that nobody named in `proxies`, or a page that a browser here shows, asks by another host."""
    assert house.client().get("/metrics").status_code == 200
    assert house.client().get("/metrics", headers={"Host": EVIL}).status_code == 421
    assert house.client("203.0.113.9").get("/metrics").status_code == 303


def test_metrics_count_by_route_and_never_by_what_was_sent(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """A name in an address or a method that does not exist would be a label of its own, and grow without end."""
    caplog.set_level(logging.DEBUG)
    client = house.client()
    for path in ("/datasets/CanaryName", "/CanaryPath", "/api/v1/datasets/CanaryName", "/api/v1/CanaryPath?q=CanaryQuery"):
        client.get(path)
        client.request("CANARYMETHOD", path)
    told = client.get("/metrics").text
    assert "canary" not in told.lower()
    assert 'route="/api/v1/datasets/{name}"' in told
    assert 'route="/datasets/{name}"' in told


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "127.0.0.1", "localhost", "[::1]", "0x7f000001", "10.0.0.5", "no-such.example", "a@127.0.0.1"],
)
def test_no_address_that_is_not_listed_is_connected_to(world: World, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """A connection string is no way to look around inside the institution: what is there and what is not is refused alike."""
    called = []
    monkeypatch.setattr("psycopg.connect", lambda *given, **more: called.append(given))
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **more: called.append(given))
    monkeypatch.setattr("cloister.tables.engines.spark_connection.SparkConnection.to", lambda *given: called.append(given))
    for address in (f"postgresql://user:word@{host}:5432/db::people", f"sc://{host}:15002/;token=word::people"):
        answer = world.owner.client.post("/api/v1/connections", json={"address": address}, headers=world.owner.csrf())
        assert answer.status_code in (403, 422), answer.text
        assert called == []
        assert "word" not in answer.text
