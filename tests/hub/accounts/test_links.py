"""Links that work once."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from cloister.hub.ids import digest
from cloister.hub.platform.accounts import first_link, login_link
from cloister.hub.platform.accounts.people import roles_of
from cloister.hub.problems import Missing
from cloister.hub.records.accounts import OneTimeLink
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, World


def path_of(link: str | None) -> str:
    assert link is not None
    found = re.search(r"/link/[\w-]{43}", link)
    assert found is not None
    return found[0]


def test_the_first_start_makes_the_administrator_once(world: World) -> None:
    stale = path_of(first_link(world.hub))
    link = first_link(world.hub)
    assert link is not None
    assert link.startswith(world.settings.origin + "/link/")
    path = path_of(link)
    browser = world.browser()
    assert browser.get(stale).status_code == 404
    assert browser.get(path).status_code == 200
    assert browser.get(path).status_code == 200, "looking does not use it"
    weak = {"email": "Root@example.org", "name": "Grace Hopper", "password": "Grace Hopper 1", "again": "Grace Hopper 1"}
    assert browser.post(path, **weak).status_code == 422
    assert browser.post(path, **weak | {"email": "root"}).status_code == 422
    assert browser.post(path, **weak | {"password": PASSWORD, "again": PASSWORD}).status_code == 303
    assert browser.who() == "root@example.org"
    with world.hub.database.reading() as db:
        assert roles_of(db, world.find("root@example.org").id) == ("administrator",)
    assert browser.get(path).status_code == 404
    assert first_link(world.hub) is None


def test_two_first_links_make_one_administrator(world: World) -> None:
    path = path_of(first_link(world.hub))
    browser = world.browser()
    token = browser.token(path)
    world.person("root@example.org", "administrator")
    from cloister.hub.web.forms import TOKEN_FIELD

    form = {TOKEN_FIELD: token, "email": "eve@example.org", "name": "Eve", "password": PASSWORD, "again": PASSWORD}
    assert browser.client.post(path, data=form).status_code == 404


def test_an_invitation_is_taken_up_once_with_its_own_address_and_roles(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    page = root.post("/people/invite", email="Ada@Example.org", role=["owner", "analyst"])
    path = path_of(page.text)
    assert "ada@example.org" in root.get("/people").text
    ada = world.browser()
    form = {"name": "Ada", "password": PASSWORD, "again": PASSWORD}
    answer = ada.post(path, email="eve@example.org", role="administrator", **form)
    assert answer.status_code == 303
    assert ada.who() == "ada@example.org"
    with world.hub.database.reading() as db:
        assert roles_of(db, world.find("ada@example.org").id) == ("analyst", "owner")
    assert ada.get(path).status_code == 404
    assert "Open invitations" not in root.get("/people").text
    assert ("people.join", world.find("ada@example.org").id, "done") in world.trail()


def test_a_link_expires_and_can_be_withdrawn(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    late = path_of(root.post("/people/invite", email="late@example.org", role="analyst").text)
    world.clock.move(days=14)
    assert world.browser().get(late).status_code == 404
    root.log_in("root@example.org")
    path = path_of(root.post("/people/invite", email="ada@example.org", role="analyst").text)
    name = re.search(r"/people/invitations/([\w-]+)/withdraw", root.get("/people").text)
    assert name is not None
    assert root.post(f"/people/invitations/{name[1]}/withdraw", "/people").status_code == 303
    assert world.browser().get(path).status_code == 404
    assert root.post(f"/people/invitations/{name[1]}/withdraw", "/people").status_code == 404


def test_a_second_invitation_replaces_the_first(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    first, second = (path_of(root.post("/people/invite", email="a@example.org", role="analyst").text) for _ in range(2))
    assert world.browser().get(first).status_code == 404
    assert world.browser().get(second).status_code == 200
    world.person("a@example.org")
    assert root.post("/people/invite", email="a@example.org", role="analyst").status_code == 409


def test_a_steward_invites_nobody_above_the_others(world: World) -> None:
    steward = world.logged_in("s@example.org", "steward")
    for role in ("administrator", "steward"):
        answer = steward.post("/people/invite", email="eve@example.org", role=["analyst", role])
        assert answer.status_code == 403
        assert "only an administrator" in answer.text
    assert steward.post("/people/invite", email="eve@example.org", role="gardener").status_code == 422
    assert steward.post("/people/invite", email="eve", role="analyst").status_code == 422
    assert steward.post("/people/invite", email="eve@example.org", role="owner").status_code == 201


def test_a_password_link_ends_all_log_ins(world: World) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    root = world.logged_in("root@example.org", "administrator")
    identity = world.find("ada@example.org").id
    stale = path_of(root.post(f"/people/{identity}/password-link", f"/people/{identity}").text)
    path = path_of(root.post(f"/people/{identity}/password-link", f"/people/{identity}").text)
    assert world.browser().get(stale).status_code == 404
    browser = world.browser()
    assert browser.post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD).status_code == 303
    assert browser.who() == "ada@example.org"
    assert ada.who() == ""
    assert world.browser().post("/login", email="ada@example.org", password=PASSWORD).status_code == 403


def test_a_link_is_no_way_in_for_who_is_blocked(world: World) -> None:
    ada = world.person("ada@example.org", "owner")
    path = path_of(login_link(world.hub, "ada@example.org"))
    root = world.logged_in("root@example.org", "administrator")
    root.post(f"/people/{ada}/block", f"/people/{ada}")
    browser = world.browser()
    assert browser.post(path).status_code == 409
    assert browser.who() == ""


def test_a_demonstration_logs_in_by_a_link(world: World) -> None:
    world.person("ada@example.org", "owner", password=None)
    path = path_of(login_link(world.hub, "Ada@example.org"))
    browser = world.browser()
    assert browser.post(path).status_code == 303
    assert browser.who() == "ada@example.org"
    assert world.browser().get(path).status_code == 404
    with pytest.raises(Missing):
        login_link(world.hub, "nobody@example.org")


def test_the_secret_of_a_link_is_not_kept(world: World) -> None:
    link = first_link(world.hub)
    assert link is not None
    secret = link.rpartition("/")[2]
    with world.hub.database.reading() as db:
        row = db.scalars(select(OneTimeLink)).one()
    assert row.digest == digest(secret)
    assert all(secret.encode() not in each.read_bytes() for each in world.settings.data.glob("hub.db*"))
