"""Data sets of several owners in a hub: one answer, under each owner's policy and on the budget of each one's people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

import cloister as cl
from cloister.hub.generation import bump
from cloister.hub.platform.catalogue.versions import redeclare
from cloister.hub.platform.jobs import Workers
from cloister.hub.problems import Conflict
from cloister.hub.records.access import Grant
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from tests.hub.house import READS, House, Visitor, served

SQL = "SELECT COUNT(*) AS n FROM everybody"
POOL = {"parts": ["north", "south"], "name": "everybody", "title": "Both", "population": "everybody", "epsilon": "1000"}


@dataclass
class Play:
    house: House
    north: Visitor
    south: Visitor
    study: Visitor
    analyst: Visitor
    parts: dict[str, DataSet]
    grants: dict[str, str]

    def ask(self, sql: str = SQL, spend: str = "1", by: Visitor | None = None, **more: Any) -> Any:
        visitor = by or self.analyst
        return visitor.client.post("/api/v1/questions", json={"sql": sql, "spend": spend, **more}, headers=visitor.bearer)

    def spent(self, *names: str) -> list[str]:
        return [str(self.house.hub.ledger.spent(each)) for each in names or ("everybody", "north", "south")]

    def made(self, **other: Any) -> Any:
        return self.study.client.post("/api/v1/pooled-datasets", json={**POOL, **other}, headers=self.study.bearer)

    def row(self, name: str) -> DataSet:
        with self.house.hub.database.reading() as db:
            return db.query(DataSet).filter(DataSet.name == name).one()


@pytest.fixture
def play(house: House) -> Play:
    north, south, study = (house.person("owner", email=f"{each}@example.org") for each in ("north", "south", "study"))
    analyst = house.person("analyst", email="ana@example.org")
    parts = {}
    for visitor, name in ((north, "north"), (south, "south")):
        parts[name] = house.sample_data_set(name, owner=visitor, budget=cl.PureDP(1000), readers=[study])
    made = Play(house, north, south, study, analyst, parts, {})
    answer = made.made()
    assert answer.status_code == 201, answer.text
    assert answer.json()["parts"] == ["north", "south"]
    house.grant(made.row("everybody"), analyst, by=study)
    return made


def test_every_owner_is_asked_and_every_population_pays(play: Play) -> None:
    """Without a grant of each owner nothing is answered, and nobody is charged; a purpose and a share are each owner's."""
    house, zero = play.house, ["ε = 0"] * 3
    assert play.ask().status_code == 403
    house.grant(play.parts["north"], play.analyst, by=play.north)
    refused = play.ask()
    assert refused.status_code == 403, refused.text
    narrow = house.grant(play.parts["south"], play.analyst, by=play.south, rows="age > 30")
    whole = play.ask()
    assert whole.status_code == 403
    assert "all of its rows would be in the sum" in whole.text
    beside = play.ask(f"{SQL} UNION ALL SELECT COUNT(*) AS n FROM south")
    assert "all of its rows would be in the sum" in beside.text  # also where the part itself is asked in the same breath
    with house.hub.database.begin() as db:
        grant = db.get_one(Grant, narrow)
        grant.rules = {
            **{k: v for k, v in grant.rules.items() if k != "rows"},
            "purposes": ["a report"],
            "share": {"epsilon": "250"},
        }
        bump(db)
    assert play.ask(purpose="advertising").status_code == 403
    assert play.spent() == zero
    answer = play.ask(spend="200", purpose="a report")
    assert answer.status_code == 201, answer.text
    assert play.spent() == ["ε = 200"] * 3
    more = play.ask("SELECT AVG(age) AS age FROM everybody", spend="100", purpose="a report")
    assert more.status_code == 403, more.text  # beyond the share that south granted
    assert play.spent() == ["ε = 200"] * 3
    again = play.ask(spend="200", purpose="a report")
    assert (again.status_code, again.json()["columns"]) == (201, answer.json()["columns"])
    assert play.spent() == ["ε = 200"] * 3
    with house.hub.database.reading() as db:
        lines = {each.action: each.details for each in db.query(AuditLine)}
    assert lines["dataset.register"]["parts"] == "north, south"


def granted(play: Play) -> None:
    actions = (*READS, "learn.run", "synthesise.run", "compress.run")
    for name, owner in (("north", play.north), ("south", play.south)):
        play.house.grant(play.parts[name], play.analyst, by=owner, actions=actions)
    play.house.grant(play.row("everybody"), play.analyst, by=play.study, actions=actions)


def test_one_answer_and_what_each_owner_sees(play: Play) -> None:
    granted(play)
    with served(play.house.hub) as address, cl.connect(address, token=play.analyst.token) as session:
        alone = session.sql("SELECT sex, COUNT(*) AS n FROM north GROUP BY sex", spend=400).to_pydict()
        both = session.sql("SELECT sex, COUNT(*) AS n FROM everybody GROUP BY sex", spend=400).to_pydict()
        assert both["n"] == [2 * each for each in alone["n"]]  # the same sample twice, and no noise to speak of
    rows = {"table": "everybody", "method": "LogisticRegression", "features": ["age"], "target": "sex", "spend": "50"}
    judged = {**rows, "method": "GaussianNB", "held_out": "0.25"}
    for asked, why in ((rows, "hands no rows to a method"), (judged, "a score reads rows")):
        refused = play.analyst.client.post("/api/v1/models", json=asked, headers=play.analyst.bearer)
        assert (refused.status_code, why in refused.text) == (422, True), "before a job is made of it"
    order = {"table": "everybody", "columns": ["age", "sex"], "spend": "50", "method": "pairs"}
    assert play.analyst.client.post("/api/v1/synthetic-tables", json=order, headers=play.analyst.bearer).status_code == 202
    assert Workers(play.house.hub, 0).run_one()
    with play.house.hub.database.reading() as db:
        [made] = db.query(StoredRelease).filter(StoredRelease.kind == "synthetic")
        [line] = db.query(AuditLine).filter(AuditLine.action == "synthesise.run")
    assert made.cost == dict.fromkeys(("everybody", "north", "south"), "ε = 50")
    assert line.cost == made.cost
    assert len(made.data_sets) == 3  # what may be done with it is what every owner allows
    assert play.spent() == ["ε = 450", "ε = 850", "ε = 450"]

    def given(visitor: Visitor) -> Any:
        [found] = visitor.client.get("/api/v1/pooled-datasets", headers=visitor.bearer).json()["items"]
        hidden = {play.north.id: ["north", "…"], play.south.id: ["…", "south"]}  # neither owner may know of the other's
        assert found["parts"] == hidden.get(visitor.id, ["north", "south"])
        return found["given"]

    assert [(each["name"], each["times"], each["cost"]) for each in given(play.south)] == [("south", 2, "ε = 450")]
    assert [each["name"] for each in given(play.north)] == ["north"]
    assert given(play.analyst) == []
    page = play.south.client.get("/pools/everybody").text
    assert "450" in page
    assert "ε = 850" not in page
    assert play.analyst.client.get("/pools").status_code == 200
    stranger = play.house.person("analyst")
    assert stranger.client.get("/api/v1/pooled-datasets", headers=stranger.bearer).json() == {"items": []}
    assert stranger.client.get("/pools/everybody").status_code == 404
    compare = {"sql": SQL, "spend": "1"}
    ways = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=compare, headers=play.analyst.bearer)
    assert ways.status_code == 200, ways.text
    margins = {each["way"]: each["margins"]["n"] for each in ways.json() if each["margins"]}
    assert [each["values"] for each in ways.json() if each["way"] == "raw"] == [{"n": 600.0}]  # of the declared sizes
    assert margins["everybody"] == margins["north"] == margins["south"]
    assert margins["apart"] == pytest.approx(2**0.5 * margins["everybody"])
    means = {"sql": "SELECT AVG(pay) AS mean, SUM(pay) AS paid FROM everybody", "spend": "1"}
    told = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=means, headers=play.analyst.bearer)
    [apart] = [each["margins"] for each in told.json() if each["way"] == "apart"]
    assert [*apart] == ["paid"], "means do not add up"
    unnamed = {"sql": 'SELECT SUM("pay"), COUNT(pay) FROM everybody', "spend": "1"}
    told = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=unnamed, headers=play.analyst.bearer)
    [apart] = [each["margins"] for each in told.json() if each["way"] == "apart"]
    assert sorted(apart) == ["count(pay)", "sum(pay)"], "sums without a name of their own add up too"
    named = {"sql": 'SELECT TOP 3 COUNT(*) AS n FROM everybody AS "values"', "spend": "1"}
    told = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=named, headers=play.analyst.bearer)
    assert {each["way"]: each["margins"].get("n") for each in told.json()} == {**margins, "raw": None}, told.text
    town = {"sql": "SELECT MODE(sex) AS town, COUNT(*) AS n FROM everybody", "spend": "1"}
    texts = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=town, headers=play.analyst.bearer)
    assert [each["values"] for each in texts.json() if each["way"] == "raw"] == [{"n": 600.0}], texts.text
    nobody = {"sql": "SELECT SUM(pay) / SUM(pay) AS n FROM everybody WHERE age > 1000", "spend": "1"}
    ratio = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=nobody, headers=play.analyst.bearer)
    assert [each["values"] for each in ratio.json() if each["way"] == "raw"] == [{}], ratio.text
    other = {"sql": "SELECT COUNT(*) AS n FROM north", "spend": "1"}
    refused = play.analyst.client.post("/api/v1/pooled-datasets/everybody/compare", json=other, headers=play.analyst.bearer)
    assert "it does not ask about everybody" in refused.text, "north's margins stood under the names of the whole and the parts"
    assert play.spent() == ["ε = 450", "ε = 850", "ε = 450"]
    token = re.search(r'name="form_token" value="([^"]+)"', play.analyst.client.get("/pools/everybody").text)
    assert token
    shown = play.analyst.client.post("/pools/everybody", data={"form_token": token[1], **compare})
    assert "each apart, and counts and sums added up" in shown.text
    assert re.search(r"raw rows in one table, without noise, on made-up rows</th><td[^>]*>600</td>", shown.text)
    order = {"table": "everybody", "columns": "age, pay", "method": "PCA", "dimensions": "1", "spend": "50"}
    assert play.analyst.client.post("/api/v1/projections", json=order, headers=play.analyst.bearer).status_code == 202
    assert Workers(play.house.hub, 0).run_one()
    with play.house.hub.database.reading() as db:
        [projection] = db.query(StoredRelease).filter(StoredRelease.kind == "projection")
    assert projection.cost == made.cost


def test_an_owner_who_goes_takes_the_whole_along(play: Play) -> None:
    granted(play)
    assert play.ask().status_code == 201
    closed = play.south.client.post("/api/v1/datasets/south/close", headers=play.south.bearer)
    assert closed.status_code < 300, closed.text
    refused = play.ask("SELECT AVG(age) AS age FROM everybody")
    assert "closed or deleted" in refused.json()["detail"]
    assert play.spent("everybody") == ["ε = 1"]
    assert play.south.client.post("/api/v1/datasets/south/open", headers=play.south.bearer).status_code < 300
    assert play.ask("SELECT AVG(age) AS age FROM everybody").status_code == 201
    for path, status in (("", 200), ("/manage", 200)):
        assert play.study.client.get(f"/datasets/everybody{path}").status_code == status, path
    manage = play.study.client.get("/datasets/everybody/manage", headers={"Accept-Language": "zh-CN"}).text
    assert ">多个所有者</td>" in manage, "a version says where its rows are, in the words of the page"
    assert "Each owner decides who may ask" in play.analyst.client.get("/datasets/everybody").text


WRONG = [
    ({"parts": ["north", "north"]}, "different data sets"),
    ({"parts": ["north", "nobody"]}, "no such data set"),
    ({"parts": ["north", "everybody"]}, "is made of others itself"),
    ({"parts": ["north", "free"]}, "is public"),
    ({"parts": ["north", "other"]}, "declare the column"),
    ({"parts": ["north", "twin"]}, "of one population"),
    ({"epsilon": "", "rho": "0.5"}, "all in ρ"),
    ({"parts": ["north", "counts_in_rho"]}, "all in ρ"),
]


def test_what_is_no_pool_is_said(play: Play) -> None:
    wider = {"columns": {"age": {"kind": "integer", "low": 0, "high": 99}}}
    play.house.sample_data_set("free", owner=play.study, public=True)
    play.house.sample_data_set("other", owner=play.study, declaration=wider)
    play.house.sample_data_set("twin", owner=play.study, population="north")
    play.house.sample_data_set("counts_in_rho", owner=play.study, budget=cl.ZCDP(1))
    for change, why in WRONG:
        answer = play.made(**{"name": "third", "population": "third", **change})
        assert 400 <= answer.status_code < 500, answer.text
        assert why in answer.text, (change, answer.text)
    declared = {"columns": {"age": {"kind": "integer", "low": 0, "high": 200}}, "reasons": {"age": "the law"}}
    with pytest.raises(Conflict, match="of the data sets that it is made of"):
        redeclare(play.house.hub, play.study.caller, "everybody", declared)
