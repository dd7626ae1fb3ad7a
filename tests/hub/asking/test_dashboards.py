"""A dashboard is arranged by one and seen by a project; it shows what its reader may see, and is refreshed at a stated price."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.errors import UnknownTable
from cloister.hub.ids import new_id
from cloister.hub.services.asking import boards
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.house import Visitor


def post(who: Visitor, page: str, path: str, **fields: str) -> Any:
    token = re.search(r'name="form_token" value="([^"]+)"', who.client.get(page).text)
    assert token is not None
    return who.client.post(path, data={"form_token": token[1], **fields}, follow_redirects=True)


def test_a_dashboard_from_its_first_answer_to_its_refresh(stage: Stage):
    ana, house = stage.ana, stage.house
    bob = house.person("analyst", name="Bob Colleague")
    house.grant(stage.people, bob, by=stage.owner, actions=MAY)
    eve = house.person("analyst", name="Eve Elsewhere")
    project = house.workspace(stage.people, ana, bob, by=stage.owner, actions=MAY)
    first = stage.ask(BY_SEX, "0.1", project=project)["id"]
    second = stage.ask(COUNT, "0.05")["id"]  # in no project: Bob does not see it
    made = post(ana, "/dashboards", "/dashboards", title="Wards at a glance", project=project)
    where = str(made.url.path)
    for release in (first, second):
        page = post(ana, where, f"{where}/parts", release=release, shows="both").text
    assert page.count('class="card"') >= 2
    assert "Count of people by sex" in page
    assert f"/releases/{first}/chart.svg" in page
    twice = post(ana, where, f"{where}/parts", release=first, shows="both")
    assert "The answer was not added" in twice.text
    seen = bob.client.get(where).text
    assert "Count of people by sex" in seen
    assert "Not open to you now" in seen
    assert "Take off" not in seen
    assert eve.client.get(where).status_code == 404
    assert bob.client.get("/dashboards").text.count("Wards at a glance") == 1
    for path in ("parts", "price", "refresh", "remove"):
        assert post(bob, "/dashboards", f"{where}/{path}", part="x", what="remove").status_code == 404, path
    shown = ana.client.get(where).text
    assert re.findall(r'name="part" value="([\w-]+)"', shown)[-1] == second, "a part is named by its answer, wherever it stands"
    moved = post(ana, where, f"{where}/parts", part=second, what="up").text
    assert moved.index("/releases/" + second) < moved.index("/releases/" + first)
    post(ana, where, f"{where}/parts", part=second, what="up")  # a page that somebody else changed: no other part is moved
    assert ana.client.get(where).text.index("/releases/" + second) < moved.index("/releases/" + first)
    only = post(ana, where, f"{where}/parts", part=first, what="table").text
    assert "chart.svg" not in only
    assert len(stage.charges) == 2


def test_a_refresh_costs_what_was_said_and_nothing_where_nothing_changed(stage: Stage):
    ana = stage.ana
    number = stage.ask(BY_SEX, "0.1")["id"]
    where = str(post(ana, "/dashboards", "/dashboards", title="One").url.path)
    post(ana, where, f"{where}/parts", release=number, shows="both")
    assert "A refresh costs nothing" in post(ana, where, f"{where}/price").text
    assert "Nothing has changed" in post(ana, where, f"{where}/refresh", most="", key="k1").text
    assert len(stage.charges) == 1
    rows = "age,sex,pay\n" + "40,F,20\n" * 200
    sent = stage.house.client().post(
        "/api/v1/uploads", content=rows.encode(), headers={**stage.owner.bearer, "Content-Type": "text/csv"}
    )
    assert stage.post("/datasets/people/versions", {"upload": sent.json()["id"]}, stage.owner).status_code == 201
    told = post(ana, where, f"{where}/price").text
    assert "A refresh costs" in told
    most = re.search(r'name="most" value="([^"]+)"', told)
    assert most is not None
    assert "0.1" in most[1]
    assert len(stage.charges) == 1
    dearer = post(ana, where, f"{where}/refresh", most="people: ε = 0.01", key="k2")
    assert "has changed since it was shown" in dearer.text
    assert len(stage.charges) == 1
    assert "The dashboard was refreshed" in post(ana, where, f"{where}/refresh", most=most[1], key="k3").text
    assert len(stage.charges) == 2
    page = ana.client.get(where).text
    assert f"/releases/{number}" not in page
    gone = post(ana, where, f"{where}/remove")
    assert "Its answers stay" in gone.text
    assert ana.client.get(f"/releases/{number}").status_code == 200


def test_a_refresh_reads_a_query_in_the_dialect_in_which_it_was_asked(stage: Stage):
    """A tool's division of whole numbers is whole: read otherwise, the same words are another question."""
    ana, sql = stage.ana, "SELECT COUNT(*) AS n FROM people WHERE age / 10 = 3"
    number = stage.post("/questions", {"sql": sql, "spend": "0.1", "purpose": "care", "dialect": "postgres"}).json()["id"]
    where = str(post(ana, "/dashboards", "/dashboards", title="One").url.path)
    post(ana, where, f"{where}/parts", release=number, shows="both")
    assert "A refresh costs nothing" in post(ana, where, f"{where}/price").text
    page = ana.client.get(f"/ask?release={number}").text
    assert 'name="dialect" value="postgres"' in page
    again = post(ana, f"/ask?release={number}", "/ask", sql=sql, spend="0.1", purpose="care", dialect="postgres", key="k1")
    assert again.status_code == 200
    assert len(stage.charges) == 1, "the same question costs nothing again"


def test_a_refresh_asks_no_further_than_a_page_waits(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    ana = stage.ana
    where = str(post(ana, "/dashboards", "/dashboards", title="Two").url.path)
    for sql in (BY_SEX, COUNT):
        post(ana, where, f"{where}/parts", release=stage.ask(sql, "0.1")["id"], shows="table")
    rows = "age,sex,pay\n" + "40,F,20\n" * 200
    sent = stage.house.client().post(
        "/api/v1/uploads", content=rows.encode(), headers={**stage.owner.bearer, "Content-Type": "text/csv"}
    )
    assert stage.post("/datasets/people/versions", {"upload": sent.json()["id"]}, stage.owner).status_code == 201
    monkeypatch.setattr(boards, "PATIENCE", -1.0)
    for new, cost in (("New: 1 of 2", "0.2"), ("The dashboard was refreshed", "0.1")):
        most = re.search(r'name="most" value="([^"]+)"', post(ana, where, f"{where}/price").text)
        assert most is not None
        assert cost in most[1], "the rest is priced anew"
        assert new in post(ana, where, f"{where}/refresh", most=most[1], key="one form").text
    assert len(stage.charges) == 4


def grown(stage: Stage, name: str = "people") -> None:
    rows = "age,sex,pay\n" + "40,F,20\n" * 200
    sent = stage.house.client().post(
        "/api/v1/uploads", content=rows.encode(), headers={**stage.owner.bearer, "Content-Type": "text/csv"}
    )
    assert stage.post(f"/datasets/{name}/versions", {"upload": sent.json()["id"]}, stage.owner).status_code == 201


def board(who: Visitor, *releases: str) -> str:
    where = str(post(who, "/dashboards", "/dashboards", title="Some").url.path)
    for release in releases:
        post(who, where, f"{where}/parts", release=release, shows="table")
    return where


def shown_on(page: str) -> list[str]:
    """The answers on a dashboard, in order."""
    return list(dict.fromkeys(re.findall(r'<h2 class="card-title" id="part-\d+"><a href="/releases/([\w-]+)"', page)))


def refreshed(who: Visitor, where: str) -> tuple[str, str]:
    """What it would cost, and the page after the refresh."""
    told = re.search(r'name="most" value="([^"]*)"', post(who, where, f"{where}/price").text)
    assert told is not None
    return told[1], post(who, where, f"{where}/refresh", most=told[1], key=new_id()).text


def test_a_refresh_takes_what_somebody_asked_of_the_new_data_before(stage: Stage):
    """Or one part would speak of the old rows beside others of the new."""
    old = stage.ask(BY_SEX, "0.1")["id"]
    where = board(stage.ana, old, stage.ask(COUNT, "0.05")["id"])
    grown(stage)
    new = stage.ask(BY_SEX, "0.1")["id"]
    cost, page = refreshed(stage.ana, where)
    assert cost.endswith("ε = 0.05")
    assert "The dashboard was refreshed" in page
    assert f"/releases/{old}" not in page
    told = [
        stage.ana.client.get(f"/api/v1/releases/{each}", headers=stage.ana.bearer).json() for each in (new, shown_on(page)[0])
    ]
    assert told[0]["release"]["release"]["readings"] == told[1]["release"]["release"]["readings"], "those that were paid for"
    assert "Nothing has changed" in refreshed(stage.ana, where)[1]
    assert len(stage.charges) == 4


def test_what_was_asked_together_is_refreshed_together(stage: Stage):
    asked = {"questions": [BY_SEX, COUNT], "spend": "0.1", "purpose": "a first look"}
    made = stage.post("/questions/workload", asked, stage.ana)
    assert made.status_code == 201, made.text
    where = board(stage.ana, *(each["id"] for each in made.json()["releases"]))
    assert "Nothing has changed" in refreshed(stage.ana, where)[1]
    grown(stage)
    cost, page = refreshed(stage.ana, where)
    assert cost.endswith("ε = 0.1")
    assert "The dashboard was refreshed" in page
    assert len(stage.charges) == 2


def test_what_followed_from_another_answer_costs_nothing_while_its_data_stay(stage: Stage):
    """Its charge is that of the answer that it follows from, though nobody asked the two together."""
    where = board(stage.ana, stage.ask(BY_SEX, "0.1")["id"], stage.ask(f"{BY_SEX} ORDER BY n DESC", "0.1")["id"])
    assert len(stage.charges) == 1, "the second follows from the first"
    cost, page = refreshed(stage.ana, where)
    assert cost == ""
    assert "Nothing has changed" in page
    grown(stage)
    assert refreshed(stage.ana, where)[0].endswith("ε = 0.1")
    assert len(stage.charges) == 2, "and follows from it again"


def test_what_cannot_be_asked_any_more_holds_up_no_other_part(stage: Stage):
    where = board(stage.ana, stage.ask(BY_SEX, "0.1")["id"], stage.ask("SELECT AVG(pay) AS mean FROM people", "0.1")["id"])
    grown(stage)
    seen = boards.explain

    def closed(hub: Any, caller: Any, wish: Any) -> Any:
        if "pay" in wish.sql:
            raise UnknownTable("The table 'people' is unknown", why="it is closed", instead="another")
        return seen(hub, caller, wish)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boards, "explain", closed)
        told = post(stage.ana, where, f"{where}/price").text
        assert "Take them off" in told
        cost, page = refreshed(stage.ana, where)
    assert cost.endswith("ε = 0.1")
    assert "The dashboard was refreshed" in page


def test_many_that_were_asked_together_are_refreshed_together(stage: Stage):
    asked = {"questions": [f"{COUNT} WHERE age > {20 + each}" for each in range(9)], "spend": "0.1", "purpose": "a first look"}
    made = stage.post("/questions/workload", asked, stage.ana)
    assert made.status_code == 201, made.text
    where = board(stage.ana, *(each["id"] for each in made.json()["releases"]))
    grown(stage)
    assert "The dashboard was refreshed" in refreshed(stage.ana, where)[1]
