"""Joint learning: each owner's grant is asked and each population charged; the result goes to all owners, and to nobody else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.compress import DCA, LDA, Scatter
from cloister.hub.generation import bump
from cloister.hub.platform.accounts import make_token
from cloister.hub.platform.jobs import Workers, workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.joint_learning.learning import _following, parties
from tests.hub.house import READS, House, Visitor
from tests.hub.sites.test_joining import TABLE
from tests.hub.sites.test_joining import Play as Sites

NUMBERS = {"kind": "integer", "low": 0, "high": 100}
DECLARATION: dict[str, Any] = {
    "columns": {
        **dict.fromkeys(("age", "pay", "size"), NUMBERS),
        "ill": {"kind": "category", "values": ["no", "yes"]},
    },
    "size": 300,
}
ORDER: dict[str, Any] = {
    "table": "everybody",
    "columns": ["age", "pay", "size"],
    "method": "DCA",
    "label": "ill",
    "components": "1",
    "spend": "200",
    "purpose": "care",
}
ACTIONS = (*READS, "joint.run")


def rows_of(turn: int) -> dict[str, list[Any]]:
    """The classes lie apart along age and, less so, pay."""
    ill = [(each + turn) % 2 for each in range(300)]
    return {
        "age": [30 + 40 * one + each * 7 % 11 for each, one in enumerate(ill)],
        "pay": [40 + 10 * one + each * 13 % 17 for each, one in enumerate(ill)],
        "size": [each * 37 % 101 for each in range(300)],
        "ill": [("no", "yes")[one] for one in ill],
    }


@dataclass
class Play:
    house: House
    owners: dict[str, Visitor]
    lead: Visitor
    analyst: Visitor

    def post(self, who: Visitor, path: str = "", **changed: Any) -> Any:
        return who.client.post(f"/api/v1/joint-learning{path}", json={**ORDER, **changed}, headers=who.bearer)

    def get(self, who: Visitor, path: str) -> Any:
        return who.client.get(f"/api/v1/{path}", headers=who.bearer)

    def spent(self) -> dict[str, str]:
        return {name: str(self.house.hub.ledger.spent(name)) for name in ("everybody", "north", "south")}


@pytest.fixture
def play(house: House) -> Play:
    return played(house)


def played(house: House) -> Play:
    """Two owners, a data set of both, and an analyst whom its lead lets work with it."""
    owners = {name: house.person("owner", email=f"{name}@example.org") for name in ("north", "south")}
    lead, analyst = house.person("owner", email="lead@example.org"), house.person("analyst", email="ana@example.org")
    for turn, (name, owner) in enumerate(owners.items()):
        how: dict[str, Any] = {"rows": rows_of(turn), "declaration": DECLARATION, "budget": cl.PureDP(1000)}
        house.sample_data_set(name, owner=owner, readers=[lead], **how)
    pool = {"parts": ["north", "south"], "name": "everybody", "title": "Both", "population": "everybody", "epsilon": "1000"}
    made = lead.client.post("/api/v1/pooled-datasets", json=pool, headers=lead.bearer)
    assert made.status_code == 201, made.text
    grant("everybody", analyst, lead)
    return Play(house, owners, lead, analyst)


def grant(name: str, to: Visitor, by: Visitor) -> None:
    members = {"people": [to.caller.email]}
    wanted = {"data_set": name, "role": "reader", "members": members, "rules": {"actions": sorted(ACTIONS)}}
    answer = by.client.post("/api/v1/grants", json=wanted, headers=by.csrf())
    assert answer.status_code == 201, answer.text


def test_before_it_starts_then_started_and_handed_to_every_owner(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    house, nothing = play.house, dict.fromkeys(("everybody", "north", "south"), "ε = 0")
    grant("north", play.analyst, play.owners["north"])
    assert play.post(play.analyst).status_code == 403, "south has granted nothing"
    grant("south", play.analyst, play.owners["south"])

    price = play.post(play.analyst, "/price")
    assert price.status_code == 200, price.text
    told = price.json()["errors"]
    assert {each["population"]: each["cost"] for each in told if "population" in each} == dict.fromkeys(nothing, "ε = 200")
    assert [each["owners"] for each in told if "owners" in each] == ["north, south"]
    assert next(each["seconds"] for each in told if "seconds" in each) < 5
    assert told[-1]["tells"].startswith("1 of 3 directions")
    assert "They go to you and to the owners of all parts" in told[-1]["tells"]
    assert play.spent() == nothing

    stages = list[str]()
    monkeypatch.setattr(workers._Running, "say", lambda each: stages.append(each._stage))
    order = play.post(play.analyst)
    assert order.status_code == 202, order.text
    assert Workers(house.hub, 0).run_one()
    assert play.spent() == dict.fromkeys(nothing, "ε = 200")
    asked = [each for each in stages if each.startswith("asking the owners")]
    assert asked[0] == "asking the owners · north 1 · south 0"
    assert asked[-1] in ("asking the owners · north 2 · south 2", "asking the owners · north 1 · south 1")

    with house.hub.database.reading() as db:
        [release] = db.query(StoredRelease).filter_by(kind="joint")
        job = db.get_one(Job, order.json()["job"])
    assert job.state == "done", job.problem
    assert release.cost == dict.fromkeys(nothing, "ε = 200")
    found = json.loads(release.body)
    both = {name: [*rows_of(0)[name], *rows_of(1)[name]] for name in rows_of(0)}
    scaled = np.column_stack([np.array(both[name]) / 50 - 1 for name in ORDER["columns"]])
    exact = DCA(1).fit_scatter(Scatter.of_rows(scaled, both["ill"])).components_[0]
    assert abs(np.dot(found["components"][0], exact)) > 0.99  # ε = 200: hardly any noise
    assert (found["parts"], found["guarantee"]) == (2, "ε = 200")
    assert "north" not in release.body.decode(), "an owner may not know of the others' data sets"

    page = play.analyst.client.get(f"/joint-results/{release.id}").text
    assert "Handed to the owners of" in page
    assert "a projected row is still personal data" in page
    for owner in play.owners.values():
        [listed] = play.get(owner, "joint-learning/results").json()["items"]
        assert (listed["id"], listed["method"]) == (release.id, "DCA")
        assert "Handed to you" in owner.client.get("/joint-learning").text
        for answer in (
            play.get(owner, f"joint-learning/results/{release.id}"),
            owner.client.get(f"/joint-learning/results/{release.id}"),
        ):
            assert answer.status_code == 200, answer.text
            assert answer.json() == found
    stranger = house.person("owner")
    assert play.get(stranger, "joint-learning/results").json() == {"items": []}
    for other in (stranger, play.analyst, play.lead):  # who made the data set of both gets nothing by it
        assert play.get(other, f"joint-learning/results/{release.id}").status_code == 404
    with house.hub.database.reading() as db:
        taken = db.query(AuditLine).filter_by(action="release.download", object=release.id).count()
        [line] = db.query(AuditLine).filter_by(action="joint.run", object=release.id)
    assert taken == 4
    assert line.cost == dict.fromkeys(nothing, "ε = 200")
    assert verify(house.hub)

    again = play.post(play.analyst, components="2")  # of the same scatters
    assert again.status_code == 202
    assert Workers(house.hub, 0).run_one()
    assert play.spent() == dict.fromkeys(nothing, "ε = 200")


def test_a_rule_of_the_institution_and_a_tokens_scopes_bind_owners_too(play: Play) -> None:
    house = play.house
    for name, owner in play.owners.items():
        grant(name, play.analyst, owner)
    assert play.post(play.analyst).status_code == 202
    assert Workers(house.hub, 0).run_one()
    north = play.owners["north"]
    [listed] = play.get(north, "joint-learning/results").json()["items"]
    address = f"/api/v1/joint-learning/results/{listed['id']}"

    def with_scopes(*scopes: str) -> int:
        with house.hub.database.begin() as db:
            _, token = make_token(house.hub, db, north.caller, name=" ".join(scopes), scopes=scopes)
        return int(house.client().get(address, headers={"Authorization": f"Bearer {token}"}).status_code)

    assert (with_scopes("dataset.see", "release.see"), with_scopes("release.download")) == (403, 200)
    with house.hub.database.begin() as db:
        rule = {"populations": ["south"], "actions": ["release.download"], "deny": True}
        db.add(InstitutionRule(id="r1", title="Nothing leaves", rule=rule, created=house.hub.now(), made_by=play.lead.id))
        bump(db)
    assert play.get(north, "joint-learning/results").json() == {"items": []}
    assert play.get(north, f"joint-learning/results/{listed['id']}").status_code == 403


def test_the_form_shows_cost_time_and_what_it_tells(play: Play) -> None:
    for name, owner in play.owners.items():
        grant(name, play.lead, owner)
    page = play.lead.client.get("/joint-learning?about=everybody").text
    assert "everybody, of 2 owners" in page
    assert page.count('name="columns"') == 3  # numbers alone
    assert '<option value="ill"' in page
    token, key = (page.split(f'name="{each}" value="')[1].split('"')[0] for each in ("form_token", "key"))
    form = {**ORDER, "form_token": token, "key": key, "label": "", "method": "PCA"}
    shown = play.lead.client.post("/joint-learning/price", data=form)
    assert shown.status_code == 200, shown.text
    for words in (
        "Before it starts",
        "Content of the output",
        "several times as long on busy ones",
        "1 of 3 directions",
        "south",
    ):
        assert words in shown.text, words
    sent = play.lead.client.post("/joint-learning", data=form)
    assert sent.status_code == 303, sent.text
    assert sent.headers["location"].startswith("/jobs/")
    assert "No data set of several owners is open to you" in play.house.person("analyst").client.get("/joint-learning").text


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"columns": ["age"]}, "2 to 50 different columns"),
    ({"columns": ["age", "age"]}, "2 to 50 different columns"),
    ({"columns": ["age", "ill"], "label": "", "method": "PCA"}, "with declared bounds"),
    ({"method": "PCA"}, "PCA has no label"),
    ({"method": "LDA", "label": ""}, "PCA has no label"),
    ({"method": "LDA", "components": "2"}, "one for each class less one: 1"),
    ({"label": "size", "columns": ["age", "pay"]}, "a label has declared values"),
    ({"components": "3"}, "fewer than the 3 columns"),
    ({"components": "0"}, "fewer than the 3 columns"),
    ({"spend": "0"}, "spend"),
    ({"table": "alone"}, "the data set has one owner"),
)


def test_days_and_truth_values_are_offered_and_learnt_from(house: House) -> None:
    play = played(house)
    kinds = {"born": {"kind": "date", "low": "1930-01-01", "high": "2020-12-31"}, "smoker": {"kind": "boolean"}}
    declaration = {"columns": {**kinds, "ill": DECLARATION["columns"]["ill"]}, "size": 4}
    rows = {"born": ["1950-01-01", "1951-01-01", "1990-01-01", "1991-01-01"], "smoker": [True, True, False, False]}
    for name, owner in play.owners.items():
        sample = {**rows, "ill": ["yes", "yes", "no", "no"]}
        how: dict[str, Any] = {"rows": sample, "declaration": declaration, "budget": cl.PureDP(10**7)}
        house.sample_data_set(f"{name}_born", owner=owner, readers=[play.lead], **how)
        grant(f"{name}_born", play.analyst, owner)
    pool = {"parts": ["north_born", "south_born"], "name": "born", "title": "Born", "population": "born", "epsilon": "10000000"}
    assert play.lead.client.post("/api/v1/pooled-datasets", json=pool, headers=play.lead.bearer).status_code == 201
    grant("born", play.analyst, play.lead)
    page = play.analyst.client.get("/joint-learning?about=born").text
    assert re.findall(r'name="columns" value="(\w+)"( checked)?', page) == [("born", " checked"), ("smoker", "")]
    order = play.post(play.analyst, table="born", columns=["born", "smoker"], method="PCA", label="", spend="1000000")
    assert order.status_code == 202, order.text
    assert Workers(house.hub, 0).run_one()
    with house.hub.database.reading() as db:
        [release] = db.query(StoredRelease).filter_by(kind="joint")
    told = json.loads(release.body)
    assert told["components"][0][0] * told["components"][0][1] < 0, "who was born early smokes"


def test_days_are_not_offered_where_a_person_may_be_at_two_sites(house: House) -> None:
    """They become numbers row by row, and such a table is asked of its columns alone."""
    sites = Sites(house, house.person("owner"), house.person("analyst", email="ana@example.org"))
    more = 'pay = { kind = "integer", low = 0, high = 90 }\nborn = { kind = "date", low = "1950-01-01", high = "2000-01-01" }\n'
    assert sites.join(overlap="2", table=f"{TABLE}{more}").status_code == 201
    grant("hospitals", sites.analyst, sites.owner)
    page = sites.analyst.client.get("/joint-learning?about=hospitals").text
    assert [name for name in ("age", "pay", "born") if f'name="columns" value="{name}"' in page] == ["age", "pay"]


def test_what_is_refused_charges_nothing(play: Play) -> None:
    for name, owner in play.owners.items():
        grant(name, play.lead, owner)
    play.house.sample_data_set("alone", owner=play.lead, rows=rows_of(0), declaration=DECLARATION)
    for changed, words in REFUSED:
        answer = play.post(play.lead, **changed)
        assert answer.status_code == 422, (changed, answer.text)
        assert words in answer.text, (changed, answer.text)
    assert set(play.spent().values()) == {"ε = 0"}


def test_fishers_discriminants_are_found_at_any_price(play: Play) -> None:
    """Noise may leave more between the classes than in all: an order that is charged is answered all the same."""
    for name, owner in play.owners.items():
        grant(name, play.analyst, owner)
    little = [(f"0.00{each}", method) for each in range(1, 7) for method in ("LDA", "DCA")]
    for spend, method in (*little, ("200", "LDA")):  # from the least: what is known well already costs no more
        assert play.post(play.analyst, method=method, spend=spend).status_code == 202
        assert Workers(play.house.hub, 0).run_one()
    with play.house.hub.database.reading() as db:
        assert {each.state for each in db.query(Job)} == {"done"}, [each.problem for each in db.query(Job)]
        found = [json.loads(each.body) for each in db.query(StoredRelease).filter_by(kind="joint")]
    [sure] = (each["components"][0] for each in found if each["guarantee"] == "ε = 200")
    both = {name: [*rows_of(0)[name], *rows_of(1)[name]] for name in rows_of(0)}
    scaled = np.column_stack([np.array(both[name]) / 50 - 1 for name in ORDER["columns"]])
    assert abs(np.dot(sure, LDA(1).fit_scatter(Scatter.of_rows(scaled, both["ill"])).components_[0])) > 0.99


def test_many_owners_are_counted_and_sites_are_parties() -> None:
    told = list[str]()
    heard = _following([f"hospital number {each} of the region" for each in range(50)], told.append)
    heard("hospital number 3 of the region")
    assert told == ["asking the owners · 1 / 50"]
    columns = {"age": cl.Integer(0, 9)}
    sites = [cl.together.Site(name, cl.PrivateTable({"age": [1]}, columns=columns), budget=cl.PureDP(1)) for name in "abc"]
    assert parties(cl.JointTable(sites, columns, overlap="none")) == ("a", "b", "c")
    assert parties(cl.PrivateTable({"age": [1]}, columns=columns)) == ()
