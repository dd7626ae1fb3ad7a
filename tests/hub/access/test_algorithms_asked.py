"""U3 may run the algorithm A1 on the data set D1, and nothing else: as a question that is asked under an algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

import cloister as cl
from cloister import errors
from cloister.hub.platform.access import grant
from cloister.hub.platform.access.algorithms import exact_settings
from cloister.hub.records.access import Algorithm
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import AuditLine
from tests.hub.house import House, Visitor, served

SQL = "SELECT sex, COUNT(*) AS n FROM d1 GROUP BY sex"


@dataclass
class Play:
    """An owner with two data sets, the provider of three algorithms, and U3."""

    house: House
    owner: Visitor
    provider: Visitor
    u3: Visitor
    ids: dict[str, str]

    def post(self, path: str, **body: Any) -> Any:
        """U3's question to the API, or what it is changed to."""
        told = {"sql": SQL, "spend": "0.1", "algorithm": "a1", **body}
        sent = {name: value for name, value in told.items() if value is not None}
        return self.house.client().post(f"/api/v1{path}", json=sent, headers=self.u3.bearer)

    @property
    def spent(self) -> str:
        return str(self.house.hub.ledger.spent("d1"))

    def lines(self) -> list[AuditLine]:
        """What the trail says of questions."""
        with self.house.hub.database.reading() as db:
            return list(db.scalars(select(AuditLine).where(AuditLine.action == "question.ask").order_by(AuditLine.number)))


@pytest.fixture
def play(house: House, person: Callable[..., Visitor]) -> Play:
    owner, provider, u3 = person("owner"), person("algorithm-provider"), person("analyst", name="U3")
    for name in ("d1", "d2"):
        row = house.sample_data_set(name, owner=owner)
        house.grant(row, u3, by=owner, actions=("dataset.see",))
        house.grant(row, provider, by=owner, actions=("dataset.see",))
    for name, settings in (("a1", {"sql": SQL}), ("a2", {"sql": "SELECT COUNT(*) AS n FROM d1"}), ("a3", {})):
        body = {"name": name, "title": name.upper(), "service": "asking", "settings": settings}
        made = provider.client.post("/api/v1/algorithms", json=body, headers=provider.bearer)
        assert made.status_code == 201, made.text
        for who, rules in ((u3, {"actions": ["algorithm.run"], "only_with": ["d1"]}), (owner, {"actions": ["algorithm.see"]})):
            body = {"role": "runner", "members": {"people": [who.id]}, "rules": rules}
            made = provider.client.post(f"/api/v1/algorithms/{name}/grants", json=body, headers=provider.bearer)
            assert made.status_code == 201, made.text
    rules = {"actions": ["algorithm.run"], "algorithms": ["a1"]}
    grant(house.hub, owner.caller, data_set="d1", role="runner", members={"people": [u3.id]}, rules=rules)
    with house.hub.database.reading() as db:
        ids = {row.name: row.id for row in db.scalars(select(Algorithm))}
    return Play(house, owner, provider, u3, ids)


def test_u3_may_run_a1_on_d1_and_nothing_else(play: Play):
    explained = play.post("/questions/explain")
    assert explained.status_code == 200, explained.text
    assert explained.json()["denied"] is None
    answer = play.post("/questions")
    assert answer.status_code == 201, answer.text
    assert play.spent == "ε = 0.1"
    again = play.post("/questions", sql=f" {SQL}\n", algorithm=play.ids["a1"])
    assert again.status_code == 201, "with blanks around it, and by its id"
    refused = [
        {"algorithm": None},
        {"algorithm": "a2", "sql": "SELECT COUNT(*) AS n FROM d1"},
        {"algorithm": "a3"},
        {"algorithm": "a3", "sql": "SELECT COUNT(*) AS n FROM d2"},
    ]
    for changed in refused:
        answer = play.post("/questions", **changed)
        assert answer.status_code == 403, (changed, answer.text)
    assert play.spent == "ε = 0.1"


def test_another_question_contradicts_the_algorithm(play: Play):
    others = [
        {"sql": "SELECT COUNT(*) AS n FROM d1"},
        {"sql": SQL.replace(" FROM", " -- \n FROM")},  # spaced otherwise, the rest would be a comment
        {"dialect": "mysql"},  # in which a name in quotes is a text
    ]
    for path in ("/questions", "/questions/explain", "/questions/rehearse"):
        for other in others:
            answer = play.post(path, **other)
            assert answer.status_code == 422, answer.text
            assert "says otherwise" in answer.text
    together = {"questions": [SQL, "SELECT COUNT(*) AS n FROM d1"], "spend": "0.1", "algorithm": "a1"}
    answer = play.house.client().post("/api/v1/questions/workload", json=together, headers=play.u3.bearer)
    assert answer.status_code == 422, answer.text
    assert "says otherwise" in answer.text
    assert play.spent == "ε = 0"


def test_what_is_withdrawn_or_hidden_is_missing(play: Play):
    withdrawn = play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer)
    assert withdrawn.status_code == 200, withdrawn.text
    for name in ("a1", play.ids["a1"], "never-was"):
        answer = play.post("/questions", algorithm=name)
        assert (answer.status_code, answer.json()["title"]) == (404, "There is no such algorithm")
    assert play.spent == "ε = 0"


def test_owner_and_provider_see_that_it_ran(play: Play):
    number = play.post("/questions", purpose="a study").json()["id"]
    assert play.post("/questions", algorithm="a3").status_code == 403
    done, denied = play.lines()
    assert (done.outcome, done.object, done.details["algorithm"]) == ("done", number, play.ids["a1"])
    assert (denied.outcome, denied.details["algorithm"]) == ("denied", play.ids["a3"])
    assert "by a1" in play.owner.client.get("/trail/uses").text
    giver = play.house.person("provider", email="gil@example.org")
    with play.house.hub.database.begin() as db:
        db.scalars(select(DataSet).where(DataSet.name == "d1")).one().provider = "gil@example.org"
    assert "by A1" in giver.client.get("/contributions/d1").text
    page = play.provider.client.get("/algorithms/a1").text
    assert "Runs" in page
    assert "a study" in page
    assert number not in page
    assert "U3" not in page.split("Runs")[1]


def test_a_later_question_runs_under_it_too(play: Play):
    from cloister.hub.platform.jobs import Workers

    client = play.house.client()
    body = {"sql": SQL, "spend": "0.1", "algorithm": "a1"}
    told = client.post("/api/v1/questions", json=body, headers={**play.u3.bearer, "Prefer": "respond-async"})
    assert told.status_code == 202, told.text
    assert Workers(play.house.hub, 0).run_one()
    job = client.get(f"/api/v1/jobs/{told.json()['job']}", headers=play.u3.bearer).json()
    assert job["state"] == "done", job
    assert [line.details.get("algorithm") for line in play.lines()] == [play.ids["a1"]]


@pytest.mark.parametrize("settings", [{"sql": 3}, {"sql": "  "}, {"rounds": 3}])
def test_settings_are_checked_when_it_is_registered(person: Callable[..., Visitor], settings: dict[str, Any]):
    provider = person("algorithm-provider")
    body = {"name": "a1", "title": "A1", "service": "asking", "settings": settings}
    made = provider.client.post("/api/v1/algorithms", json=body, headers=provider.bearer)
    assert made.status_code == 422, made.text


@pytest.mark.parametrize("value", [{"a": {"b": {}}}, {"a": [["b"]]}, {"a": None}, {"": 1}, {"a": 2**53}])
def test_settings_are_simple(value: dict[str, Any]):
    with pytest.raises(Exception, match="is invalid"):
        exact_settings(value)


def test_a_notebook_names_the_algorithm_when_it_connects(play: Play):
    with served(play.house.hub) as url:
        with cl.connect(url, token=play.u3.token, algorithm="a1") as session:
            assert session.sql(SQL, spend="0.1").provenance is not None
        with cl.connect(url, token=play.u3.token) as session, pytest.raises(errors.AccessDenied):
            session.sql(SQL, spend="0.1")
    assert play.spent == "ε = 0.1"
