"""A view of an answer is framed by the sites that it names, as long as its owner's grant lets it, and tells nobody why not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cloister.hub.platform.access import revoke
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.asking.test_dashboards import post
from tests.hub.house import Visitor
from tests.hub.web.browser import strict

SITE = "https://www.example.org"
DAY = "2026-05-01"


def given(stage: Stage) -> str:
    """The owner lets Ana publish: the grant."""
    return stage.house.grant(stage.people, stage.ana, by=stage.owner, actions=("release.publish",))


def publish(stage: Stage, release: str, who: Visitor | None = None, **more: str) -> Any:
    fields = {"release": release, "shows": "both", "title": "Care by sex", "origins": SITE, "until": DAY, **more}
    return post(who or stage.ana, "/published", "/published", **fields)


def address(page: Any) -> str:
    found = re.search(r'href="(/shown/[\w-]+)"', page.text)
    assert found is not None, page.text
    return found[1]


def test_what_is_published_is_framed_by_the_sites_that_it_names(stage: Stage) -> None:
    given(stage)
    number = stage.ask(BY_SEX, "0.1")["id"]
    assert "Publish on other sites" in stage.ana.client.get(f"/releases/{number}").text
    made = publish(stage, number, origins=f"{SITE}\nhttps://stats.example.org:8443/")
    view = address(made)
    assert f"/releases/{number}" not in view
    anybody = stage.house.client().get(view)
    assert anybody.status_code == 200
    policy = anybody.headers["content-security-policy"]
    assert policy.endswith(f"frame-ancestors {SITE} https://stats.example.org:8443")
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "set-cookie" not in anybody.headers
    strict(anybody.text)
    assert "Differentially private" in anybody.text
    assert "data:image/svg+xml" in anybody.text
    assert "<script" not in anybody.text
    assert "<form" not in anybody.text
    told = stage.ana.client.get(view).text
    assert stage.ana.caller.name not in told, "it is the same whoever looks"
    assert len(stage.charges) == 1
    other = stage.house.client().get(f"/releases/{number}")
    assert "frame-ancestors 'none'" in other.headers["content-security-policy"]


def test_nothing_is_published_without_each_owners_grant(stage: Stage) -> None:
    number = stage.ask(COUNT, "0.1")["id"]
    assert "Publish on other sites" not in stage.ana.client.get(f"/releases/{number}").text
    assert publish(stage, number).status_code == 403
    given(stage)
    assert publish(stage, number).status_code == 200
    eve = stage.house.person("analyst", name="Eve Elsewhere")
    assert publish(stage, number, eve).status_code == 404, "another's answer is not told from none"
    other = stage.house.person("owner")
    stage.house.grant(stage.house.sample_data_set("others", owner=other, population="people"), stage.ana, by=other, actions=MAY)
    joined = stage.ask("SELECT COUNT(*) AS n FROM (SELECT age FROM people UNION ALL SELECT age FROM others) AS x", "0.1")["id"]
    assert publish(stage, joined).status_code == 403, "one of two owners has not let it go"
    assert stage.house.client().post("/published", headers=stage.ana.bearer).status_code in (401, 403, 422)


def test_a_grant_to_publish_has_an_end(stage: Stage) -> None:
    path, page = "/datasets/people/access", "/datasets/people/access/new"
    fields = {"role": "press", "people": stage.ana.caller.email, "actions": "release.publish"}
    refused = post(stage.owner, page, path, **fields)
    assert refused.status_code == 422
    assert "is granted with an end" in refused.text
    assert post(stage.owner, page, path, **fields, until="2026-04-01").status_code == 200


@pytest.mark.parametrize("how", ["revoked grant", "closed", "over", "by its maker", "by the owner", "blocked", "left alone"])
def test_a_view_ends_with_what_lets_it(stage: Stage, how: str) -> None:
    kept = given(stage)
    number = stage.ask(COUNT, "0.1")["id"]
    view = address(publish(stage, number))
    anybody = stage.house.client()
    never = anybody.get("/shown/no-such-view")
    assert anybody.get(view).status_code == 200
    where = view.replace("/shown/", "/published/")
    if how == "revoked grant":
        revoke(stage.hub, replace(stage.owner.caller, via="session"), kept)
    elif how == "closed":
        assert post(stage.owner, "/datasets/people/manage", "/datasets/people/close").status_code == 200
    elif how == "over":
        stage.house.clock.move(days=61)
    elif how == "by its maker":
        assert "The view is revoked" in post(stage.ana, "/published", f"{where}/revoke").text
    elif how == "by the owner":
        eve = stage.house.person("owner", name="Eve Elsewhere")
        assert post(eve, "/published", f"{where}/revoke").status_code == 404
        assert "Care by sex" in stage.owner.client.get("/published").text
        assert "The view is revoked" in post(stage.owner, "/published", f"{where}/revoke").text
    elif how == "blocked":
        root = stage.house.person("administrator")
        assert post(root, f"/people/{stage.ana.id}", f"/people/{stage.ana.id}/block").status_code == 200
    found = anybody.get(view)
    if how == "left alone":
        assert found.status_code == 200
        return
    assert found.status_code == 404
    assert re.sub(r"[\w-]{22}", "", found.text) == re.sub(r"no-such-view", "", re.sub(r"[\w-]{22}", "", never.text))
    assert "frame-ancestors 'none'" in found.headers["content-security-policy"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"origins": ""},
        {"origins": "https://*.example.org"},
        {"origins": "http://www.example.org"},
        {"origins": "https://a.org; script-src *"},
        {"origins": "https://a.org/path"},
        {"origins": "'self'"},
        {"until": ""},
        {"until": "2025-01-01"},
        {"until": "2036-01-01"},
        {"until": "2026-13-01"},
        {"title": " "},
    ],
    ids=str,
)
def test_what_a_view_needs(stage: Stage, wrong: dict[str, str]) -> None:
    given(stage)
    answer = publish(stage, stage.ask(COUNT, "0.1")["id"], **wrong)
    assert answer.status_code == 422
    assert "The view was not published" in answer.text
    assert "No published views" in answer.text


def test_a_dashboard_is_published_as_it_stands(stage: Stage) -> None:
    given(stage)
    ana = stage.ana
    first, second = (stage.ask(each, "0.05")["id"] for each in (COUNT, BY_SEX))
    where = str(post(ana, "/dashboards", "/dashboards", title="At a glance").url.path)
    for number in (first, second):
        page = post(ana, where, f"{where}/parts", release=number, shows="table").text
    assert "Publish on other sites" in page
    fields = {"dashboard": where.rsplit("/", 1)[1], "title": "At a glance", "origins": SITE, "until": DAY}
    view = address(post(ana, where, "/published", **fields))
    page = stage.house.client().get(view).text
    assert page.count("<table") == 2
    assert "data:image" not in page
    assert "/releases/" + first not in post(ana, where, f"{where}/parts", part=first, what="remove").text
    assert stage.house.client().get(view).text.count("<table") == 2


def test_a_refused_form_keeps_what_was_typed(stage: Stage) -> None:
    given(stage)
    number = stage.ask(COUNT, "0.1")["id"]
    refused = publish(stage, number, origins="https://*.example.org")
    assert refused.status_code == 422
    for kept in ('value="Care by sex"', "https://*.example.org</textarea>", f'value="{DAY}"', f'name="release" value="{number}"'):
        assert kept in refused.text, kept
    fields = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', refused.text))
    again = stage.ana.client.post("/published", data=fields | {"origins": SITE}, follow_redirects=True)
    assert address(again)
    unnamed = post(stage.ana, "/dashboards", "/dashboards", title="x" * 201)
    assert (unnamed.status_code, f'value="{"x" * 201}"' in unnamed.text) == (422, True)


def test_a_form_that_is_sent_twice_publishes_one_view(stage: Stage) -> None:
    given(stage)
    number = stage.ask(COUNT, "0.1")["id"]
    key = re.findall(r'name="form_once" value="([^"]+)"', stage.ana.client.get(f"/releases/{number}").text)[-1]
    token = stage.ana.csrf()["X-CSRF-Token"]
    fields = {"release": number, "shows": "both", "title": "Care", "origins": SITE, "until": DAY, "form_token": token}
    for _ in range(2):
        assert stage.ana.client.post("/published", data=fields | {"form_once": key}).status_code == 303
        page = stage.ana.client.get("/published").text
        assert len(re.findall(r'href="/shown/', page)) == 1
