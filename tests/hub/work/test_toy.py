"""A service that is not ours, of 150 lines, has all that ours have: order, price, job, page, API, shares, audit log, Chinese."""

from __future__ import annotations

import ast
import csv
import html
import io
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po
from fastapi import FastAPI
from sqlalchemy import select, update

from cloister.errors import AccessDenied
from cloister.hub import services
from cloister.hub.decisions.policy.actions import register_actions
from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.records.access import Grant
from cloister.hub.records.accounts import ApiToken, Person
from cloister.hub.records.trail import AuditLine
from cloister.hub.web.languages import language_of
from cloister.session import Release
from scripts.translations_found import said
from tests.hub import house as making
from tests.hub.house import READS, Clock, House, Visitor
from tests.hub.work import toy

WANTED = {"table": "people", "column": "sex", "spend": "0.25", "purpose": "care", "title": "By sex"}
TOY = Path(toy.__file__)
MAY = (*READS, "tally.make", "release.share", "release.download")


@pytest.fixture(scope="module")
def _registered() -> Iterator[None]:
    """The toy beside the hub's own services, its action among the actions and its texts among the texts."""
    ours = services.all_services
    messages: Any = language_of("zh_CN").messages
    told = {str(each.id): str(each.string) for each in read_po(TOY.with_name("zh_CN.po").open("rb")) if each.id}
    before = dict(messages)
    with pytest.MonkeyPatch.context() as here:
        here.setattr(services, "all_services", lambda: [*ours(), toy.SERVICE])
        built: list[FastAPI] = []
        here.setattr(making, "_built", lambda: built)  # an application of its own, which no other test gets
        register_actions([toy.MAKE])
        messages.update(told)
        yield
    import_module("cloister.hub.decisions.policy.actions")._ACTIONS.pop(toy.MAKE.name)
    messages.clear()
    messages.update(before)


@pytest.fixture
def play(_registered: None, tmp_path: Path, clock: Clock) -> Iterator[tuple[House, Visitor, Visitor, str]]:
    """A house with the toy in it, the owner of its data, and an analyst who may make tallies by a grant."""
    made = House(tmp_path / "hub", clock)
    owner, ana = made.person("owner", email="olga@example.org"), made.person("analyst", email="ana@example.org")
    people = made.sample_data_set("people", owner=owner)
    yield made, owner, ana, made.grant(people, ana, by=owner, actions=MAY)
    made.close()


def post(house: House, who: Visitor, path: str, body: Any, **headers: str) -> Any:
    return house.client().post(f"/api/v1{path}", json=body, headers={**who.bearer, **headers})


def get(house: House, who: Visitor, path: str) -> Any:
    return house.client().get(f"/api/v1{path}", headers=who.bearer)


def test_an_order_over_the_api_becomes_a_release(play: tuple[House, Visitor, Visitor, str]):
    house, _, ana, _ = play
    price = post(house, ana, "/tallies/price", WANTED).json()
    assert price == {"cost": "ε = 0.25", "charge": "ε = 0.25", "population": "people"}
    assert str(house.hub.ledger.spent("people")) == "ε = 0"
    jobs = {post(house, ana, "/tallies", WANTED, **{"Idempotency-Key": "one"}).json()["job"] for _ in range(2)}
    assert len(jobs) == 1
    assert Workers(house.hub, 0).run_one()
    told = get(house, ana, f"/jobs/{jobs.pop()}").json()
    assert told["state"] == "done", told
    number = told["result"]["tally"]
    assert told["result"]["href"] == f"/tallies/{number}"
    page = ana.client.get(f"/tallies/{number}").text
    assert "<h1>By sex</h1>" in page
    [header, *lines] = csv.reader(io.StringIO(get(house, ana, f"/releases/{number}/download/csv").text))
    assert (header, [line[0] for line in lines]) == (["value", "count", "margin"], ["F", "M"])
    assert 100 < int(lines[0][1]) < 300
    assert Release.from_json(get(house, ana, f"/releases/{number}").text).column_names == ["sex", "count"]
    assert [each["id"] for each in get(house, ana, "/releases?kind=tally").json()["releases"]] == [number]
    assert f"/tallies/{number}" in ana.client.get("/tallies").text
    again = post(house, ana, "/tallies", WANTED).json()["job"]  # the same is answered again at no cost
    assert post(house, ana, "/tallies/price", WANTED).json()["charge"] == "ε = 0"
    assert Workers(house.hub, 0).run_one()
    assert get(house, ana, f"/jobs/{again}").json()["state"] == "done"
    assert str(house.hub.ledger.spent("people")) == "ε = 0.25"
    with house.hub.database.reading() as db:
        said = db.scalars(select(AuditLine).where(AuditLine.action == "tally.make")).all()
        assert [(each.kind, each.outcome, each.cost) for each in said] == [
            ("tally", "done", {"people": "ε = 0.25"}),
            ("tally", "done", {}),
        ]
        assert said[0].details["columns"] == ["people.sex"]


def test_a_form_in_a_browser_in_chinese(play: tuple[House, Visitor, Visitor, str]):
    house, _, ana, _ = play
    ana.client.cookies.set("cloister-language", "zh_CN")
    page = ana.client.get("/tally?about=people").text
    assert "声明了取值的列" in page
    token, key = (html.unescape(re.search(rf'name="{name}" value="([^"]+)"', page)[1]) for name in ("form_token", "key"))  # type: ignore[index]
    sent = {"form_token": token, "key": key, **WANTED}
    priced = ana.client.post("/tally/price", data=sent)
    assert (priced.status_code, "0.25" in priced.text) == (200, True)
    wrong = ana.client.post("/tally", data={**sent, "column": "age"})
    assert (wrong.status_code, "该列没有声明取值" in wrong.text) == (422, True)
    places = {ana.client.post("/tally", data=sent).headers["location"] for _ in range(2)}
    assert len(places) == 1
    assert Workers(house.hub, 0).run_one()
    assert "计数表" in ana.client.get("/tallies").text


def test_what_is_not_granted_is_refused_and_written_down(play: tuple[House, Visitor, Visitor, str]):
    house, owner, _, _ = play
    bob = house.person("analyst", email="bob@example.org")
    assert post(house, bob, "/tallies", WANTED).status_code == 404  # he may not even know of the data set
    house.grant(house.sample_data_set("other", owner=owner), bob, by=owner, actions=READS)
    refused = post(house, bob, "/tallies", {**WANTED, "table": "other"})
    assert (refused.status_code, refused.json()["code"]) == (403, "access-denied")
    assert post(house, bob, "/tallies", {**WANTED, "more": "x"}).status_code == 422
    with house.hub.database.reading() as db:
        said = db.scalars(select(AuditLine).where(AuditLine.action == "tally.make")).all()
        assert [(each.kind, each.outcome, each.details["table"]) for each in said] == [
            ("tally", "failed", "people"),
            ("tally", "denied", "other"),
        ]


def test_what_is_revoked_while_it_waits_leaves_nothing(play: tuple[House, Visitor, Visitor, str]):
    house, _, ana, grant = play
    job = post(house, ana, "/tallies", WANTED).json()["job"]
    with house.hub.database.begin() as db:
        db.get_one(Grant, grant).revoked = house.hub.now()
        bump(db)
    assert Workers(house.hub, 0, Timing(lost=0)).run_one()
    assert get(house, ana, f"/jobs/{job}").json()["state"] == "failed"
    assert str(house.hub.ledger.spent("people")) == "ε = 0"
    assert get(house, ana, "/releases?kind=all").json()["releases"] == []


@pytest.mark.parametrize("taken", ["grant", "token", "account", "work"])
def test_what_is_taken_away_before_the_charge_is_not_charged(
    play: tuple[House, Visitor, Visitor, str], monkeypatch: pytest.MonkeyPatch, taken: str
):
    house, _, ana, grant = play
    job = post(house, ana, "/tallies", WANTED).json()["job"]

    def refused(*_: Any) -> None:
        raise AccessDenied("The run was denied", why="its code was stopped", instead="ask the owner")

    def slowly(*_: Any) -> None:
        if taken == "work":
            monkeypatch.setattr(type(toy.TALLYING), "still", refused)
        with house.hub.database.begin() as db:
            match taken:
                case "grant":
                    db.get_one(Grant, grant).revoked = house.hub.now()
                    bump(db)
                case "token":
                    db.execute(update(ApiToken).where(ApiToken.person == ana.id).values(revoked=house.hub.now()))
                case "account":
                    db.execute(update(Person).where(Person.id == ana.id).values(blocked=True))

    monkeypatch.setattr(type(toy.TALLYING), "rehearse", slowly)  # between the decision and the charge
    assert Workers(house.hub, 0, Timing(lost=0)).run_one()
    assert house.hub.ledger.charges("people") == []
    with house.hub.database.reading() as db:
        [line] = db.scalars(select(AuditLine).where(AuditLine.action == "tally.make")).all()
    assert (line.outcome, line.cost) == ("denied", {})
    if taken != "account":
        told = ana.client.get(f"/api/v1/jobs/{job}").json()
        assert (told["state"], "charge" in str(told["problem"])) == ("failed", False), told


def test_it_is_short_and_each_of_its_texts_is_translated():
    text = TOY.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 160
    ours = {str(each.id) for each in read_po(TOY.with_name("zh_CN.po").open("rb"))} | set(language_of("zh_CN").messages)
    marked = re.findall(r'N_\("([^"]+)"\)', text)
    assert marked
    assert set(marked) | set(said(ast.parse(text), errors=True)) <= ours
