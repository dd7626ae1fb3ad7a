"""Looking after people, and one's own account."""

from __future__ import annotations

import re
from html import escape

import pytest

from cloister.hub.decisions.callers import caller_for, caller_of_token
from cloister.hub.ids import new_id
from cloister.hub.platform.accounts.people import roles_of
from cloister.hub.records.accounts import folded
from tests.hub.accounts.world import PASSWORD, Browser, World


@pytest.fixture
def root(world: World) -> Browser:
    return world.logged_in("root@example.org", "administrator")


def roles(world: World, email: str) -> tuple[str, ...]:
    with world.hub.database.reading() as db:
        return roles_of(db, world.find(email).id)


def test_the_list_is_searched_and_comes_in_pages(world: World, root: Browser) -> None:
    for number in range(60):
        world.person(f"p{number:02d}@north.example", "analyst", password=None, name=f"Person {number}")
    world.person("zoe@south.example", "owner", password=None, name="Zoë 100%_<b>")
    first = root.get("/people").text
    assert "p00@north.example" in first
    assert "zoe@south.example" not in first
    after = re.search(r'href="(/people\?search=&amp;after=[^"]+)"', first)
    assert after is not None
    assert "zoe@south.example" in root.get(after[1].replace("&amp;", "&")).text
    seen = dict.fromkeys(("ZOË", "Zoë", "zoë", "100%_", "south", "%", "_"), True)
    for search, hit in (seen | {"Person 7": False}).items():
        text = root.get("/people", params={"search": search}).text
        assert ("zoe@south.example" in text) == hit
        assert "<b>" not in text
    assert "p01@north.example" not in root.get("/people", params={"search": "100%"}).text
    page = root.api("GET", "/people?limit=7").json()
    assert len(page["items"]) == 7
    following = root.api("GET", f"/people?limit=200&after={page['next']}").json()
    assert len(following["items"]) == 55
    assert following["next"] is None
    assert set(page["items"][0]) == {
        "id", "email", "name", "institution", "roles", "training", "attributes", "blocked", "second_factor", "created",
    }  # fmt: skip


def test_roles_are_given_and_end_what_the_person_had_open(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    identity = world.find("ada@example.org").id
    assert root.post(f"/people/{identity}/roles", f"/people/{identity}", role=["owner", "analyst"]).status_code == 303
    assert roles(world, "ada@example.org") == ("analyst", "owner")
    assert ada.who() == ""
    ada.log_in("ada@example.org")
    root.post(f"/people/{identity}/roles", f"/people/{identity}", role=["owner", "analyst"])
    assert ada.who() == "ada@example.org", "nothing changed, nothing ends"
    assert root.post(f"/people/{identity}/roles", f"/people/{identity}", role="gardener").status_code == 422


def test_a_role_with_nothing_behind_it_is_not_given_and_whoever_has_it_keeps_it(world: World, root: Browser) -> None:
    world.logged_in("ada@example.org", "analyst")
    world.logged_in("old@example.org", "csp", "analyst")
    identity, kept = (world.find(f"{name}@example.org").id for name in ("ada", "old"))
    assert 'value="csp"' not in root.get(f"/people/{identity}").text
    assert 'value="csp"' not in root.get("/people/invite").text
    refused = root.post(f"/people/{identity}/roles", f"/people/{identity}", role=["csp"])
    assert refused.status_code == 422
    assert "with one of them nothing can be done yet" in refused.text
    invited = root.api("POST", "/people/invitations", json={"email": "e@example.org", "roles": ["csp"], "name": "Eve"})
    assert invited.status_code == 422
    assert roles(world, "ada@example.org") == ("analyst",)
    page = root.get(f"/people/{kept}").text
    assert 'value="csp" checked' in page
    assert root.post(f"/people/{kept}/roles", f"/people/{kept}", role=["csp", "owner"]).status_code == 303
    assert roles(world, "old@example.org") == ("csp", "owner")
    assert root.post(f"/people/{kept}/roles", f"/people/{kept}", role=["owner"]).status_code == 303
    assert root.post(f"/people/{kept}/roles", f"/people/{kept}", role=["csp", "owner"]).status_code == 422


def test_changing_ones_own_roles_changes_the_secret(world: World, root: Browser) -> None:
    identity = world.find("root@example.org").id
    elsewhere = world.browser()
    elsewhere.log_in("root@example.org")
    before = root.cookie
    root.post(f"/people/{identity}/roles", f"/people/{identity}", role=["administrator", "steward"])
    assert root.cookie != before
    assert root.who() == "root@example.org"
    assert elsewhere.who() == ""
    elsewhere.client.cookies.clear()
    elsewhere.client.cookies.set("cloister", before)
    assert elsewhere.who() == ""


def test_the_last_administrator_stays(world: World, root: Browser) -> None:
    identity = world.find("root@example.org").id
    for path, form in (("roles", {"role": "analyst"}), ("block", {})):
        answer = root.post(f"/people/{identity}/{path}", f"/people/{identity}", **form)
        assert answer.status_code == 409
        assert "The last administrator stays one" in answer.text
    other = world.person("other@example.org", "administrator")
    assert root.post(f"/people/{other}/block", f"/people/{other}").status_code == 303
    assert root.post(f"/people/{identity}/roles", f"/people/{identity}", role="analyst").status_code == 409
    root.post(f"/people/{other}/unblock", f"/people/{other}")
    assert root.post(f"/people/{identity}/roles", f"/people/{identity}", role="analyst").status_code == 303
    assert root.get("/api/v1/people").status_code == 403
    assert roles(world, "other@example.org") == ("administrator",)


def test_blocking_ends_everything_at_once(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    token = ada.api("POST", "/tokens", json={"name": "n", "scopes": ["trail.own"]}).json()["token"]
    identity = world.find("ada@example.org").id
    assert caller_of_token(world.hub, token).id == identity
    assert root.api("POST", f"/people/{identity}/block").json()["blocked"] is True
    assert ada.who() == ""
    assert world.browser().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert world.browser().post("/login", email="ada@example.org", password=PASSWORD).status_code == 403
    with world.hub.database.reading() as db:
        assert caller_for(world.hub, db, identity) is None
    root.api("POST", f"/people/{identity}/unblock")
    assert ada.who() == "", "what ended stays ended"
    assert world.browser().get("/api/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    world.browser().log_in("ada@example.org")
    with world.hub.database.reading() as db:
        caller = caller_for(world.hub, db, identity)
    assert caller is not None
    assert (caller.via, caller.roles) == ("system", {"analyst"})


def test_what_policies_ask_for_reaches_the_caller(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    identity = world.find("ada@example.org").id
    form = {"institution": "North Hospital", "training": "GCP ＝ 2027-12-31\n", "attributes": "department = cardiology"}
    assert root.post(f"/people/{identity}/details", f"/people/{identity}", **form).status_code == 303
    me = ada.get("/api/v1/me").json()
    assert (me["institution"], me["training"], me["attributes"]) == (
        "North Hospital",
        {"GCP": "2027-12-31"},
        {"department": "cardiology"},
    )
    twice = {"training": "GCP = 2026-12-31\nGCP = 2027-12-31"}
    for wrong in (
        {"training": "GCP"},
        {"training": "GCP = soon"},
        twice,
        {"attributes": "x\x07 = y"},
        {"institution": "x" * 300},
    ):
        refused = root.post(f"/people/{identity}/details", f"/people/{identity}", **form | wrong)
        assert refused.status_code == 422
        assert escape(wrong.get("training", "")) in refused.text, "what was typed stays"
    refused = root.api("PATCH", f"/people/{identity}", json={"training": {"GCP": "2026-12-31", " GCP": "2027-12-31"}})
    assert "a name is in it twice" in refused.text
    assert root.api("PATCH", f"/people/{identity}", json={"attributes": {}}).json()["attributes"] == {}
    assert ada.get("/api/v1/me").json()["institution"] == "North Hospital"


@pytest.mark.parametrize(
    "body", [{"roles": ["owner"]}, {"blocked": True}, {"email": "eve@example.org"}, {"password": "x"}, {"id": "x"}]
)
def test_no_field_is_set_that_is_not_offered(world: World, root: Browser, body: dict[str, object]) -> None:
    identity = world.person("ada@example.org", "analyst")
    answer = root.api("PATCH", f"/people/{identity}", json={"institution": "North", **body})
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    person = world.find("ada@example.org")
    assert (person.institution, person.blocked, person.email) == ("", False, "ada@example.org")
    invited = root.api("POST", "/people/invitations", json={"email": "e@example.org", "roles": [], "name": "Eve"})
    assert invited.status_code == 422


def test_ones_own_profile_takes_name_and_language_alone(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    more = {"email": "eve@example.org", "role": "administrator", "institution": "Elsewhere", "blocked": "yes"}
    assert ada.post("/account", name="Countess", language="zh_CN", **more).status_code == 303
    person = world.find("ada@example.org")
    assert (person.name, person.locale, person.institution) == ("Countess", "zh_CN", "")
    assert roles(world, "ada@example.org") == ("analyst",)
    assert 'lang="zh-Hans"' in ada.get("/account").text
    assert ada.post("/account", name="Ada", language="tlh").status_code == 422
    assert ada.post("/account", name=" ").status_code == 422


def test_other_roles_do_not_look_after_people(world: World, root: Browser) -> None:
    identity = world.find("root@example.org").id
    for role, sees in (("steward", True), ("owner", False), ("analyst", False), ("provider", False), ("csp", False)):
        browser = world.logged_in(f"{role}@example.org", role)
        assert (browser.get("/people").status_code == 200) == sees
        assert (browser.get("/api/v1/people").status_code == 200) == sees
        for path in ("roles", "block", "unblock", "details", "second-factor", "password-link"):
            assert browser.post(f"/people/{identity}/{path}", "/account").status_code == 403
        assert browser.api("POST", f"/people/{identity}/block").status_code == 403
        assert browser.api("PUT", f"/people/{identity}/roles", json={"roles": []}).status_code == 403
        assert browser.api("PATCH", f"/people/{identity}", json={}).status_code == 403


@pytest.mark.parametrize("identity", ["x", "..%2f..%2fetc", "%00", "a" * 64, "'--"])
def test_who_is_not_there_is_missing(world: World, root: Browser, identity: str) -> None:
    assert root.get(f"/people/{identity}").status_code == 404
    assert root.api("GET", f"/people/{identity}").status_code == 404
    assert root.post(f"/people/{identity}/block", "/account").status_code == 404


def test_log_ins_are_listed_and_ended(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    others = [world.browser(f"198.51.100.{number}") for number in range(3)]
    for each in others:
        each.client.headers["User-Agent"] = "Browser <script>"
        each.log_in("ada@example.org")
    text = ada.get("/account/sessions").text
    assert "198.51.100.2" in text
    assert "<script>" not in text.replace("<script src", "")
    names = re.findall(r'name="which" value="([\w-]{22})"', text)
    assert len(names) == 4
    assert not {name for name in names if name in ada.cookie}
    eve = world.logged_in("eve@example.org", "analyst")
    answers = [eve.post("/account/sessions/end", "/account/sessions", which=which) for which in (names[0], new_id())]
    assert [each.status_code for each in answers] == [404, 404]
    hidden = [re.sub(r'value="[^"]*"', "", each.text) for each in answers]
    assert hidden[0] == hidden[1]
    assert ada.post("/account/sessions/end", "/account/sessions", which="others").status_code == 303
    assert [each.who() for each in others] == ["", "", ""]
    mine = re.findall(r'name="which" value="([\w-]{22})"', ada.get("/account/sessions").text)
    assert len(mine) == 1
    assert ada.post("/account/sessions/end", "/account/sessions", which=mine[0]).headers["location"] == "/login"
    assert ada.who() == ""


def test_every_page_is_a_page(world: World, root: Browser) -> None:
    identity = world.find("root@example.org").id
    for path in ("/account", "/account/password", "/account/second-factor", "/account/sessions", "/account/tokens", "/people"):
        assert root.get(path).status_code == 200, path
    for path in ("/people/invite", f"/people/{identity}"):
        assert root.get(path).status_code == 200, path


def test_the_look_and_the_zone_are_kept_in_the_browser(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    assert ada.post("/preferences", "/account", back="/account", zone="Europe/Berlin", theme="dark").status_code == 303
    text = ada.get("/account").text
    assert 'data-theme="dark"' in text
    assert '<option value="Europe/Berlin" selected>' in text
    assert "UTC</time>" not in text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ada@Example.ORG", "ada@example.org", True),
        ("  ada@example.org ", "ada@example.org", True),
        ("andre\u0301@example.org", "andr\u00e9@example.org", True),
        ("straße@uni.de", "strasse@uni.de", False),
        ("ⓐda@example.org", "ada@example.org", False),
        ("ada@eⅹample.org", "ada@example.org", False),
        ("ﬁ@x.org", "fi@x.org", False),
        ("İ@x.org", "i\u0307@x.org", False),
        ("\u212aate@x.org", "kate@x.org", True),  # the sign for kelvin is K by definition
        ("É@x.org", "é@x.org", False),
    ],
)
def test_only_ascii_letters_are_folded_in_an_address(one: str, other: str, same: bool) -> None:
    """What a mail server keeps apart, the hub keeps apart: nobody comes in by an address that only looks like an invited one."""
    assert (folded(one) == folded(other)) is same
