"""What somebody made and left behind ends with their power to make it: invitations, links to passwords, tokens."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import update

from cloister.hub.hub import Caller
from cloister.hub.platform.accounts import links
from cloister.hub.records.accounts import OneTimeLink, Person, PersonRole, person_of_address
from tests.hub.accounts.test_links import path_of
from tests.hub.accounts.test_second_factor import set_up
from tests.hub.accounts.test_tokens import bearer, make
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, Browser, World

TAKEN_UP = {"name": "Back", "password": PASSWORD, "again": PASSWORD}


@pytest.fixture
def root(world: World) -> Browser:
    return world.logged_in("root@example.org", "administrator")


@pytest.fixture
def rogue(world: World) -> Browser:
    return world.logged_in("rogue@example.org", "administrator", "analyst")


def doors(world: World, rogue: Browser) -> tuple[str, str]:
    """An invitation of an administrator, and a link to the password of another, both made by the rogue."""
    world.person("victim@example.org", "owner")
    invitation = rogue.post("/people/invite", email="back@example.org", role=["administrator"])
    victim = world.find("victim@example.org").id
    password = rogue.post(f"/people/{victim}/password-link", f"/people/{victim}")
    return path_of(invitation.text), path_of(password.text)


def block(root: Browser, person: str) -> None:
    assert root.post(f"/people/{person}/block", f"/people/{person}").status_code == 303


def demote(root: Browser, person: str) -> None:
    assert root.post(f"/people/{person}/roles", f"/people/{person}", role=["analyst"]).status_code == 303


@pytest.mark.parametrize("ended", [block, demote])
def test_the_links_of_who_lost_the_power_are_closed(
    world: World, root: Browser, rogue: Browser, ended: Callable[[Browser, str], None]
) -> None:
    paths = doors(world, rogue)
    for path in paths:
        assert world.browser().get(path).status_code == 200
    taken = world.browser()
    token = taken.token(paths[0])
    ended(root, world.find("rogue@example.org").id)
    for path in paths:
        assert world.browser().get(path).status_code == 404
    assert taken.client.post(paths[0], data={"form_token": token, **TAKEN_UP}).status_code == 404
    assert "back@example.org" not in root.get("/people").text
    with world.hub.database.reading() as db:
        assert person_of_address(db, "back@example.org") is None
        assert db.query(OneTimeLink).filter(OneTimeLink.used.is_(None)).count() == 0


@pytest.mark.parametrize("how", ["role", "blocked"])
def test_a_link_asks_who_made_it_even_where_its_row_was_left(world: World, root: Browser, rogue: Browser, how: str) -> None:
    """The rows of links are ended with the power, and a link that was missed works no more for that."""
    invitation, password = doors(world, rogue)
    number = world.find("rogue@example.org").id
    with world.hub.database.begin() as db:
        if how == "role":
            db.query(PersonRole).filter_by(person=number, role="administrator").delete()
        else:
            db.execute(update(Person).where(Person.id == number).values(blocked=True))
    for path in (invitation, password):
        assert world.browser().get(path).status_code == 404
    assert "back@example.org" not in root.get("/people").text


def test_a_steward_who_was_an_administrator_invites_no_administrator_any_more(world: World, rogue: Browser) -> None:
    governs, plain = (
        path_of(rogue.post("/people/invite", email=f"{name}@example.org", role=role).text)
        for name, role in (("one", ["administrator"]), ("two", ["analyst"]))
    )
    number = world.find("rogue@example.org").id
    with world.hub.database.begin() as db:
        db.query(PersonRole).filter_by(person=number, role="administrator").delete()
        db.add(PersonRole(person=number, role="steward", given=world.hub.now()))
    assert world.browser().get(governs).status_code == 404
    assert world.browser().get(plain).status_code == 200


def test_more_roles_close_nothing_and_the_hubs_own_links_need_nobody(world: World, root: Browser, rogue: Browser) -> None:
    invitation, _ = doors(world, rogue)
    number = world.find("rogue@example.org").id
    assert (
        root.post(f"/people/{number}/roles", f"/people/{number}", role=["administrator", "analyst", "owner"]).status_code == 303
    )
    assert world.browser().get(invitation).status_code == 200
    with world.hub.database.begin() as db:
        own = links.invite(world.hub, db, Caller(roles=frozenset({"administrator"}), via="system"), email="x@y.org", roles=[])
    assert world.browser().get(path_of(own)).status_code == 200


def test_a_link_to_the_password_of_who_was_blocked_stays_closed_when_they_are_let_in_again(world: World, root: Browser) -> None:
    victim = world.person("victim@example.org", "owner")
    password = path_of(root.post(f"/people/{victim}/password-link", f"/people/{victim}").text)
    block(root, victim)
    assert root.post(f"/people/{victim}/unblock", f"/people/{victim}").status_code == 303
    assert world.browser().get(password).status_code == 404


def test_a_token_of_a_log_in_without_the_second_factor_is_refused_where_one_is_asked_for(world: World) -> None:
    ada, eve = world.logged_in("ada@example.org", "owner"), world.logged_in("eve@example.org", "analyst")
    weak, plain = make(ada)["token"], make(eve)["token"]
    assert world.browser().get("/api/v1/me", headers=bearer(weak)).status_code == 200
    world = world.again(second_factor="owners")
    refused = world.browser().get("/api/v1/me", headers=bearer(weak))
    assert (refused.status_code, "two-step verification" in refused.json()["detail"]) == (401, True)
    assert world.browser().get("/api/v1/me", headers=bearer(plain)).status_code == 200
    again = world.browser()
    again.log_in("ada@example.org")
    set_up(again)
    assert world.browser().get("/api/v1/me", headers=bearer(make(again)["token"])).status_code == 200
    assert world.browser().get("/api/v1/me", headers=bearer(weak)).status_code == 401


@pytest.mark.parametrize("keep", [False, True])
def test_a_new_password_revokes_tokens_unless_they_are_wanted(world: World, keep: bool) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    token = make(ada)["token"]
    assert 'name="keep_tokens"' in ada.get("/account/password").text
    form = {"present": PASSWORD, "password": OTHER_PASSWORD, "again": OTHER_PASSWORD, **({"keep_tokens": "yes"} if keep else {})}
    assert ada.post("/account/password", **form).status_code == 303
    assert world.browser().get("/api/v1/me", headers=bearer(token)).status_code == (200 if keep else 401)
    assert world.browser().get("/api/v1/me", headers=bearer(make(ada)["token"])).status_code == 200


def test_a_password_by_a_link_revokes_tokens(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    token = make(ada)["token"]
    number = world.find("ada@example.org").id
    path = path_of(root.post(f"/people/{number}/password-link", f"/people/{number}").text)
    assert world.browser().post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD).status_code == 303
    assert world.browser().get("/api/v1/me", headers=bearer(token)).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/people/invitations", {"email": "evil@example.org", "roles": ["administrator"]}),
        ("POST", "/people/AAAA/block", None),
        ("PUT", "/people/AAAA/roles", {"roles": ["administrator"]}),
        ("POST", "/tokens", {"name": "x", "scopes": ["question.ask"]}),
    ],
)
def test_no_token_makes_people_roles_or_tokens(world: World, root: Browser, method: str, path: str, body: object) -> None:
    token = make(root, scopes=["people.see", "trail.read"])["token"]
    answer = world.browser().client.request(method, f"/api/v1{path}", json=body, headers=bearer(token))
    assert (answer.status_code, "an API token cannot" in answer.json()["detail"]) == (403, True)
    assert root.api("POST", "/tokens", json={"name": "x", "scopes": ["people.invite"]}).status_code == 422
