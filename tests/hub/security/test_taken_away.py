"""What was taken away, or never given, is not had by another way: each of these was, once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import cloister.hub.services.asking.keeping as keeping
from cloister.errors import CloisterError
from cloister.hub.generation import bump
from cloister.hub.platform.access import projects
from cloister.hub.platform.accounts import people
from cloister.hub.platform.accounts.notices import notices, said_at_sign_in
from cloister.hub.platform.catalogue import managing
from cloister.hub.records.access import Grant
from cloister.hub.records.accounts import person_by_id
from cloister.hub.services.asking import publishing
from tests.hub.house import READS, House, Visitor

ASK = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}


def api(who: Visitor, path: str, body: Any = None, method: str = "post") -> Any:
    return who.client.request(method, f"/api/v1{path}", json=body, headers=who.csrf())


def token(page: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_a_release_is_shared_with_the_very_address(house: House) -> None:
    """ß is not ss: to a mail server they are two people."""
    owner, analyst = house.person("owner"), house.person("analyst")
    right, wrong = (house.person("analyst", email=f"{name}@uni.example") for name in ("straße", "strasse"))
    house.grant(
        house.sample_data_set("people", owner=owner, readers=[analyst]), analyst, by=owner, actions=[*READS, "release.share"]
    )
    number = api(analyst, "/questions", ASK).json()["id"]
    assert api(analyst, f"/releases/{number}/shares", {"email": " Straße@Uni.example"}).status_code == 200
    assert [who.client.get(f"/releases/{number}").status_code for who in (right, wrong)] == [200, 404]


def test_no_number_of_harmless_acts_hides_a_password_that_was_reset(house: House) -> None:
    eve, ada = house.person("administrator", name="Eve"), house.person("analyst")
    made = eve.client.post(
        f"/people/{ada.id}/password-link", data={"form_token": token(eve.client.get(f"/people/{ada.id}").text)}
    )
    link = re.findall(r"/link/[\w-]+", made.text)[0]
    other, word = house.client(), "tepid otter juggles maps"
    sent = {"form_token": token(other.get(link).text), "password": word, "password2": word, "again": word}
    assert other.post(link, data=sent).status_code < 400
    for number in range(25):
        with house.hub.database.begin() as db:
            people.describe(house.hub, db, eve.caller, person_by_id(db, ada.id), institution=f"I{number // 2}")
    with house.hub.database.reading() as db:
        assert "with a link created by Eve" in said_at_sign_in(
            house.hub, db, ada.id, lambda text, **how: text % how if how else text
        )
        acts = [each.action for each in notices(db, ada.id)]
    assert acts.count("people.describe") == 13  # what changes nothing is no act
    assert acts[-2:] == ["password.change", "people.password-link"]


def test_the_oldest_published_view_can_be_revoked(house: House) -> None:
    owner, analyst, stranger = house.person("owner"), house.person("analyst"), house.person("analyst")
    data = house.sample_data_set("people", owner=owner)
    house.grant(data, analyst, by=owner, actions=[*READS, "release.publish"], until="2026-12-31T00:00:00+00:00")
    number = api(analyst, "/questions", ASK).json()["id"]
    how: dict[str, Any] = {"origins": "https://a.example.org", "until": "2026-06-30"}
    views = []
    for place in range(202):
        with house.hub.database.begin() as db:
            part = [{"release": number, "shows": "table"}]
            views.append(publishing.publish(house.hub, db, analyst.caller, part, title=f"v{place}", **how).id)
        house.clock.move(seconds=1)
    for who, view in ((owner, views[0]), (analyst, views[1])):
        assert house.client().get(f"/shown/{view}").status_code == 200
        with house.hub.database.begin() as db, pytest.raises(CloisterError, match="no such published view"):
            publishing.revoke_view(house.hub, db, stranger.caller, view)
        with house.hub.database.begin() as db:
            publishing.revoke_view(house.hub, db, who.caller, view)
        assert house.client().get(f"/shown/{view}").status_code == 404


@pytest.mark.parametrize("gone", [{"institution": "South"}, {"training": {}}, {"attributes": {}}, {"until": True}])
def test_what_a_grant_asks_of_a_person_holds_until_the_answer_leaves(
    house: House, gone: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken away between the charge and the answer: none of it changes the number of facts."""
    owner, root, ada = house.person("owner"), house.person("administrator"), house.person("analyst")
    grant = house.grant(house.sample_data_set("people", owner=owner), ada, by=owner, until="2026-12-31T00:00:00+00:00")

    def described(**how: Any) -> Callable[[Any], None]:
        return lambda db: people.describe(house.hub, db, root.caller, person_by_id(db, ada.id), **how)

    with house.hub.database.begin() as db:
        row = db.get_one(Grant, grant)
        row.attributes = {"people": [ada.id], "training": ["GCP"], "institutions": ["North"], "attributes": {"level": "A"}}
        described(institution="North", training={"GCP": "2030-01-01"}, attributes={"level": "A"})(db)
        bump(db)
    assert api(ada, "/questions", ASK).status_code == 201
    real = keeping.check_standing

    def check(*given: Any) -> None:
        house.clock.move(days=400) if "until" in gone else described(**gone)(given[1])
        real(*given)

    monkeypatch.setattr(keeping, "check_standing", check)
    assert api(ada, "/questions", {**ASK, "sql": f"{ASK['sql']} WHERE age > 40"}).status_code == 403


def study(house: House) -> tuple[Visitor, Visitor, Visitor, str]:
    """An owner, who leads, a member, and the id of their project, which works with `people`."""
    owner, lead, ada = house.person("owner"), house.person("analyst"), house.person("analyst", email="ada@example.org")
    house.sample_data_set("people", owner=owner, readers=[lead])
    number = api(lead, "/projects", {"name": "study", "title": "T", "purpose": "research"}).json()["id"]
    api(lead, "/projects/study/members", {"email": "ada@example.org"})
    api(ada, "/projects/study/join", {})
    api(lead, "/projects/study/data-sets", {"data_set": "people"})
    assert api(owner, "/projects/study/data-sets/people/approve", {"actions": ["question.ask"]}).status_code == 200
    return owner, lead, ada, number


def test_who_was_taken_out_of_a_project_does_not_join_again(house: House) -> None:
    _owner, lead, ada, number = study(house)
    assert api(ada, "/questions", {**ASK, "project": number}).status_code == 201
    api(lead, "/projects/study/members", {"email": "ada@example.org"})  # invited once more, while a member
    assert api(lead, f"/projects/study/members/{ada.id}", method="delete").status_code == 200
    assert api(ada, "/projects/study/join", {}).status_code == 404
    assert api(ada, "/questions", {**ASK, "project": number}).status_code in (403, 404)


def test_an_owner_admits_those_that_were_shown(house: House) -> None:
    owner, lead, _, number = study(house)
    new = {name: house.person("analyst", email=f"{name}@example.org") for name in ("xena", "mallory")}
    page = ""
    for name, who in new.items():
        api(lead, "/projects/study/members", {"email": f"{name}@example.org"})
        api(who, "/projects/study/join", {})
        if name == "xena":
            page = owner.client.get("/projects/study").text
    shown = re.findall(r'name="person" value="([^"]+)"', page)
    assert shown == [new["xena"].id]
    sent = {"form_token": token(page), "data_set": "people", "person": shown}
    assert owner.client.post("/projects/study/data/confirm", data=sent).status_code < 400
    assert [api(who, "/questions", {**ASK, "project": number}).status_code for who in new.values()] == [201, 404]


def test_an_approval_is_for_the_members_that_were_shown(house: House) -> None:
    owner, lead, ada = house.person("owner"), house.person("analyst"), house.person("analyst", email="ada@example.org")
    house.sample_data_set("people", owner=owner, readers=[lead])
    number = api(lead, "/projects", {"name": "study", "title": "T", "purpose": "research"}).json()["id"]
    api(lead, "/projects/study/data-sets", {"data_set": "people"})
    page = owner.client.get("/projects/study").text
    api(lead, "/projects/study/members", {"email": "ada@example.org"})
    api(ada, "/projects/study/join", {})
    for again in (False, True):
        page = owner.client.get("/projects/study").text if again else page
        form = page[page.index("/projects/study/data/approve") :]
        shown = re.findall(r'name="person" value="([^"]+)"', form[: form.index("</form>")])
        sent = {"form_token": token(page), "data_set": "people", "person": shown, "actions": ["question.ask"]}
        said = owner.client.post("/projects/study/data/approve", data=sent)
        assert ("joined the project after" in said.text) is not again
        assert api(ada, "/questions", {**ASK, "project": number}).status_code == (201 if again else 404)


def test_a_request_of_a_project_is_granted_to_the_members_that_were_shown(house: House) -> None:
    """Its page named none of them, and all who had joined until the form came were let in."""
    owner, lead = house.person("owner"), house.person("analyst")
    ada = house.person("analyst", email="ada@example.org", name="Ada L")
    house.sample_data_set("people", owner=owner, readers=[lead])
    number = api(lead, "/projects", {"name": "study", "title": "T", "purpose": "research"}).json()["id"]
    asked = {"data_set": "people", "purpose": "research", "wanted": {"actions": ["question.ask"]}, "project": number}
    path = f"/access/requests/{api(lead, '/access-requests', asked).json()['id']}"
    page = owner.client.get(path).text
    api(lead, "/projects/study/members", {"email": "ada@example.org"})
    api(ada, "/projects/study/join", {})
    for again in (False, True):
        page = owner.client.get(path).text if again else page
        assert ("Ada L" in page) is again
        shown = re.findall(r'name="person" value="([^"]+)"', page)
        assert {*shown} == {lead.id, *([ada.id] if again else [])}
        sent = {"form_token": token(page), "person": shown, "actions": ["question.ask"]}
        said = owner.client.post(f"{path}/grant", data=sent)
        assert ("joined the project after" in said.text) is not again
        assert api(ada, "/questions", {**ASK, "project": number}).status_code == (201 if again else 404)


def test_a_deleted_data_set_is_in_no_project(house: House) -> None:
    owner, lead, _, _ = study(house)
    managing.delete(house.hub, owner.caller, "people", "people")
    assert api(lead, "/projects/study", method="get").json()["data_sets"] == {}
    assert api(owner, "/projects/study", method="get").status_code == 404
    with house.hub.database.begin() as db:
        projects.remove_data_set(house.hub, db, lead.caller, "study", "people")


@pytest.mark.parametrize("charset", ["unicode_escape", "utf-7", "undefined", "hex", "utf-16"])
@pytest.mark.parametrize("password", ["\\ud800", "+2AA-"])
def test_no_charset_of_a_form_is_an_error_of_ours(house: House, charset: str, password: str) -> None:
    client = house.client(raise_server_exceptions=False)
    fields = {"form_token": token(client.get("/login").text), "email": "a@example.org", "password": password}
    parts = (f'--X\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items())
    kind = {"content-type": f"multipart/form-data; boundary=X; charset={charset}"}
    assert client.post("/login", content="".join([*parts, "--X--\r\n"]).encode(), headers=kind).status_code < 500


@pytest.mark.parametrize("path", ["/synthetic-tables", "/synthetic-tables/price", "/algorithm-runs", "/joint-learning/price"])
def test_half_a_character_in_an_order_is_refused(house: House, path: str) -> None:
    analyst = house.person("analyst")
    half = dict.fromkeys(("table", "algorithm", "purpose", "method"), "�")
    text = json.dumps({**half, "columns": ["age"], "spend": "0.1", "data_sets": ["\ud800"]})
    client = house.client(raise_server_exceptions=False)
    sent = client.post(f"/api/v1{path}", content=text, headers={**analyst.bearer, "content-type": "application/json"})
    assert 400 <= sent.status_code < 500
