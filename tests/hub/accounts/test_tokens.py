"""API tokens: what they may do, how they end, and that they are nobody else's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.hub.decisions.callers import caller_of_token
from cloister.hub.ids import new_id
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.accounts import ApiToken
from tests.hub.accounts.world import Browser, World

SCOPES = ["trail.own", "question.ask"]


def make(browser: Browser, **more: Any) -> dict[str, Any]:
    answer = browser.api("POST", "/tokens", json={"name": "notebook", "scopes": SCOPES, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_shown_once_and_kept_as_a_digest(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    assert ada.post("/account/tokens", name="notebook", days="9" * 5_000, scope=SCOPES).status_code == 422
    page = ada.post("/account/tokens", name="notebook", days="30", scope=SCOPES)
    found = re.search(r"clo_[\w-]{43}", page.text)
    assert found is not None
    assert found[0] not in ada.get("/account/tokens").text
    assert world.browser().get("/api/v1/me", headers=bearer(found[0])).json() | {"id": ""} == {
        "id": "",
        "email": "ada@example.org",
        "name": "Ada Byron",
        "institution": "",
        "roles": ["analyst"],
        "projects": [],
        "training": {},
        "attributes": {},
        "via": "token",
        "scopes": sorted(SCOPES),
        "csrf": "",
    }
    world.hub.close()
    assert all(found[0].encode() not in each.read_bytes() for each in world.settings.data.glob("*.db*"))


def test_a_preset_ticks_what_a_program_needs_and_no_more(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")

    def ticked(preset: str) -> set[str]:
        page = ada.get(f"/account/tokens?preset={preset}").text
        return set(re.findall(r'name="scope" value="([a-z.-]+)" checked', page))

    offered = set(re.findall(r"/account/tokens\?preset=(\w+)#make", ada.get("/account/tokens").text))
    assert offered == {"ask", "see", "all"}
    assert ticked("") == ticked("nonsense") == set()
    assert {"question.ask", "dataset.see", "release.download"} < ticked("ask") < ticked("all")
    assert "dataset.register" not in ticked("all"), "no more than the roles allow"
    assert all(name.endswith((".see", ".own", ".read")) for name in ticked("see"))


def test_a_token_ends_at_once(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    made = make(ada)
    program = world.browser()
    assert program.get("/api/v1/me", headers=bearer(made["token"])).status_code == 200
    assert ada.api("DELETE", f"/tokens/{made['id']}").json()["revoked"] is not None
    for _ in range(2):
        answer = program.get("/api/v1/me", headers=bearer(made["token"]))
        assert answer.status_code == 401
        assert answer.json()["detail"] == "it is unknown, revoked or expired"
    assert [line[0] for line in world.trail()] == ["session.begin", "token.make", "token.revoke"]


def test_a_token_expires(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    made = make(ada, days=2)
    world.clock.move(days=2, seconds=-1)
    assert world.browser().get("/api/v1/me", headers=bearer(made["token"])).status_code == 200
    world.clock.move(seconds=1)
    assert world.browser().get("/api/v1/me", headers=bearer(made["token"])).status_code == 401


@pytest.mark.parametrize("token", ["", "x", "clo_", "clo_" + "A" * 43, "Ω" * 40])
def test_what_is_no_token_is_refused_in_the_same_words(world: World, token: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        caller_of_token(world.hub, token)
    assert caught.value.why == "it is unknown, revoked or expired"
    assert token == "" or token not in str(caught.value) or token == "x"


def test_a_bearer_token_is_not_helped_by_a_cookie(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    assert ada.get("/api/v1/me", headers=bearer("clo_" + "A" * 43)).status_code == 401
    eve = world.logged_in("eve@example.org", "analyst")
    made = make(eve)
    assert ada.get("/api/v1/me", headers=bearer(made["token"])).json()["email"] == "eve@example.org"
    assert ada.get("/api/v1/me", headers={"Authorization": "Basic YTpi"}).json()["email"] == "ada@example.org"


def test_a_token_does_what_its_scopes_and_its_owners_roles_allow(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    narrow = make(root, scopes=["trail.own"])
    wide = make(root, scopes=["people.see"])
    program = world.browser()
    assert program.get("/api/v1/people", headers=bearer(narrow["token"])).status_code == 403
    assert program.get("/api/v1/people", headers=bearer(wide["token"])).status_code == 200
    assert program.get("/api/v1/tokens", headers=bearer(wide["token"])).status_code == 403
    assert program.get("/account", headers=bearer(wide["token"])).status_code == 403
    world.person("other@example.org", "administrator")
    identity = world.find("root@example.org").id
    assert root.post(f"/people/{identity}/roles", f"/people/{identity}", role="analyst").status_code == 303
    assert program.get("/api/v1/people", headers=bearer(wide["token"])).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["people.see"]},
        {"scopes": ["token.manage"]},
        {"scopes": ["public.read"]},
        {"scopes": ["gardening"]},
        {"scopes": []},
        {"days": 91},
        {"days": 0},
        {"days": "10"},
        {"name": ""},
        {"name": "a\x00b"},
        {"person": "somebody"},
        {"expires": "2099-01-01T00:00:00Z"},
        {"digest": "0" * 64},
    ],
)
def test_a_token_beyond_ones_rights_is_refused(world: World, body: dict[str, Any]) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    answer = ada.api("POST", "/tokens", json={"name": "notebook", "scopes": SCOPES, **body})
    assert answer.status_code == 422
    with world.hub.database.reading() as db:
        assert db.query(ApiToken).count() == 0


def test_anothers_token_is_not_told_from_none(world: World) -> None:
    ada, eve = world.logged_in("ada@example.org", "analyst"), world.logged_in("eve@example.org", "administrator")
    made = make(ada)
    answers = []
    for identity in (made["id"], new_id(), "no-such"):
        answers += [
            [eve.api("GET", f"/tokens/{identity}") for _ in range(1)],
            [eve.api("DELETE", f"/tokens/{identity}"), eve.api("PATCH", f"/tokens/{identity}", json={"name": "mine"})],
            [eve.api("GET", f"/tokens?after={identity}"), eve.post(f"/account/tokens/{identity}/revoke", "/account/tokens")],
        ]
    shown = [[(each.status_code, re.sub(r'value="[^"]*"|path=\S+', "", each.text)) for each in some] for some in answers]
    assert shown[:3] == shown[3:6] == shown[6:]
    assert {status for some in shown for status, _ in some} == {404}
    assert ada.api("GET", f"/tokens/{made['id']}").json()["revoked"] is None
    assert ada.api("PATCH", f"/tokens/{made['id']}", json={"name": "other"}).json()["name"] == "other"


def test_tokens_come_in_pages(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    made = []
    for number in range(5):
        made.append(make(ada, name=f"n{number}")["id"])
        world.clock.move(seconds=number % 2)
    seen: list[str] = []
    after = ""
    while True:
        page = ada.api("GET", f"/tokens?limit=2&after={after}").json()
        seen += [each["id"] for each in page["items"]]
        assert all("token" not in each and "digest" not in each for each in page["items"])
        if page["next"] is None:
            break
        after = page["next"]
    assert sorted(seen) == sorted(made)
    assert ada.api("GET", "/tokens?limit=0").status_code == 422


def test_last_use_is_written_once_a_minute(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    made = make(ada)

    def used() -> Any:
        return ada.api("GET", f"/tokens/{made['id']}").json()["used"]

    assert used() is None
    caller_of_token(world.hub, made["token"], "192.0.2.9")
    first = used()
    world.clock.move(seconds=30)
    caller_of_token(world.hub, made["token"])
    assert used() == first
    world.clock.move(seconds=31)
    caller_of_token(world.hub, made["token"])
    assert used() > first


def test_the_api_of_a_browser_needs_the_token_against_forgery(world: World) -> None:
    ada, eve = world.logged_in("ada@example.org", "analyst"), world.logged_in("eve@example.org", "analyst")
    body = {"name": "notebook", "scopes": SCOPES}
    stale = ada.get("/api/v1/me").json()["csrf"]
    for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": eve.get("/api/v1/me").json()["csrf"]}):
        assert ada.client.post("/api/v1/tokens", json=body, headers=headers).status_code == 403
    ada.post("/logout", "/account")
    ada.log_in("ada@example.org")
    assert ada.client.post("/api/v1/tokens", json=body, headers={"X-CSRF-Token": stale}).status_code == 403
    assert ada.api("POST", "/tokens", json=body).status_code == 201
