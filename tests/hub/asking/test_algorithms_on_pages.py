"""An algorithm is chosen in the workbench by those who may run it, goes with the question, and stands beside the answer."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.platform.access import grant
from cloister.hub.records.access import Algorithm
from cloister.hub.records.asking import SavedQuestion
from cloister.hub.records.releases import StoredRelease
from tests.hub.asking.conftest import BY_SEX, COUNT, Stage
from tests.hub.asking.test_pages import FORM, hidden, send
from tests.hub.house import Visitor
from tests.hub.web.browser import strict

ASKS = {"spend": "0.1", "confidence": "0.95", "purpose": "a study"}


@dataclass
class Play:
    """The stage, and U3, who may ask under a1 (with a question of its own) and a3 (with none), and nothing else."""

    stage: Stage
    u3: Visitor
    provider: Visitor
    ids: dict[str, str]

    def kept(self, kind: type[Any]) -> Any:
        with self.stage.hub.database.reading() as db:
            return db.scalars(select(kind)).one()


def let(provider: Visitor, name: str, who: Visitor, **rules: Any) -> None:
    body = {
        "role": "runner",
        "members": {"people": [who.id]},
        "rules": {"actions": ["algorithm.run"], "only_with": ["people"], **rules},
    }
    made = provider.client.post(f"/api/v1/algorithms/{name}/grants", json=body, headers=provider.bearer)
    assert made.status_code == 201, made.text


@pytest.fixture
def play(stage: Stage) -> Play:
    u3, provider = stage.house.person("analyst", name="U3"), stage.house.person("algorithm-provider", name="Pia")
    stage.house.grant(stage.people, provider, by=stage.owner, actions=("dataset.see",))
    for name, settings in (("a1", {"sql": BY_SEX}), ("a2", {"sql": COUNT}), ("a3", {})):
        body = {"name": name, "title": f"The {name.upper()}", "service": "asking", "settings": settings}
        assert provider.client.post("/api/v1/algorithms", json=body, headers=provider.bearer).status_code == 201
        seen = {"role": "runner", "members": {"people": [stage.owner.id]}, "rules": {"actions": ["algorithm.see"]}}
        provider.client.post(f"/api/v1/algorithms/{name}/grants", json=seen, headers=provider.bearer)
    for name in ("a1", "a2", "a3"):
        let(provider, name, u3)
    rules = {"actions": ["algorithm.run", "release.see"], "algorithms": ["a1", "a3"]}
    grant(stage.hub, stage.owner.caller, data_set="people", role="runner", members={"people": [u3.id]}, rules=rules)
    with stage.hub.database.reading() as db:
        return Play(stage, u3, provider, {row.name: row.id for row in db.scalars(select(Algorithm))})


def offered(page: str) -> list[str]:
    choice = re.search(r'<select id="f-algorithm".*?</select>', page, re.DOTALL)
    return re.findall(r'<option value="(\w*)"', choice[0]) if choice else []


def test_those_that_may_be_run_are_offered_and_no_other(play: Play):
    page = play.u3.client.get("/ask").text
    strict(page)
    assert offered(page) == ["a1", "a3"], "no a2, which the owner does not let run, and none at all is no choice either"
    assert BY_SEX in html.unescape(page), "its question stands there"
    assert "under an algorithm only" in page
    assert 'data-insert="age"' in page
    assert offered(play.stage.ana.client.get("/ask").text) == []
    let(play.provider, "a2", play.stage.ana)
    play.stage.house.grant(
        play.stage.people, play.stage.ana, by=play.stage.owner, actions=["algorithm.run"], algorithms=[play.ids["a2"]]
    )
    assert offered(play.stage.ana.client.get("/ask").text) == ["", "a2"], "who may ask without one may choose none"


def test_one_that_was_withdrawn_or_whose_grant_ended_is_not_offered(play: Play):
    assert play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer).status_code == 200
    assert offered(play.u3.client.get("/ask").text) == ["a3"]
    page = play.u3.client.get("/ask?algorithm=a1").text
    assert "not open to you now" in page
    rule = {"title": "None", "actions": ["algorithm.run"], "deny": True}
    steward = play.stage.house.person("steward")
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201
    assert "No data set is open to you yet" in play.u3.client.get("/ask").text


def test_a_question_is_explained_rehearsed_and_asked_under_it(play: Play):
    under = {**ASKS, "algorithm": "a1", "sql": ""}
    for sql in ("", BY_SEX):
        told = send(play.u3, "/ask/explain", under | {"sql": sql})
        assert (told.status_code, "Expected answer" in told.text) == (200, True), told.text
        assert "denied" not in told.text
    part = send(play.u3, "/ask/explain", under, **{"X-Fragment": "1"}).text
    assert "Expected answer" in part
    assert "These rows are made up" in send(play.u3, "/ask/rehearse", under).text
    answer = send(play.u3, "/ask", under)
    assert answer.status_code == 303, answer.text
    assert play.kept(StoredRelease).algorithm == play.ids["a1"]
    assert play.stage.spent == "ε = 0.1"
    page = play.u3.client.get(answer.headers["location"]).text
    strict(page)
    assert "<dt>Asked under the algorithm</dt><dd>The A1</dd>" in page
    assert "under the algorithm The A1" in play.u3.client.get("/releases").text
    again = play.u3.client.get(f"/ask?release={play.kept(StoredRelease).id}").text
    assert re.findall(r'<option value="(\w*)" selected', again)[:1] == ["a1"]
    assert re.findall(r'<option value="(\w*)" selected', play.u3.client.get("/ask").text)[:1] == ["a1"], "the one of a moment ago"
    assert play.stage.get("/releases", play.u3).json()["releases"][0]["algorithm"] == play.ids["a1"]


def test_another_question_or_none_is_refused_in_words(play: Play):
    made = play.u3.client.get("/ask").text
    page_has = {name: hidden(made, name) for name in ("key", "form_token")}
    for form, status, said in (
        ({"algorithm": "a1", "sql": COUNT}, 422, "says otherwise"),
        ({"algorithm": "", "sql": BY_SEX}, 403, "denied"),
        ({"algorithm": "a2", "sql": COUNT}, 403, "does not cover this algorithm"),
        ({"algorithm": "a3", "sql": ""}, 422, "it is empty"),
        ({"algorithm": "never-was", "sql": ""}, 404, "There is no such algorithm"),
    ):
        for path in ("/ask", "/ask/explain", "/ask/rehearse", "/ask/save"):
            page = play.u3.client.post(path, data={**page_has, **ASKS, **form, "title": "T"})
            if path == "/ask/save" and status == 403:
                assert page.status_code == 303, "to keep it asks nothing"
                continue
            assert (page.status_code, said in html.unescape(page.text)) == (status, True), (path, form, page.status_code)
    assert play.stage.charges == []
    assert send(play.u3, "/ask", {**ASKS, "algorithm": "a3", "sql": COUNT}).status_code == 303


def test_a_saved_question_keeps_its_algorithm(play: Play):
    saved = send(play.u3, "/ask/save", {**ASKS, "algorithm": "a1", "sql": "", "title": "By sex"})
    assert saved.status_code == 303, saved.text
    assert (play.kept(SavedQuestion).algorithm, play.kept(SavedQuestion).sql) == (play.ids["a1"], BY_SEX)
    page = play.u3.client.get(saved.headers["location"]).text
    assert re.findall(r'<option value="(\w*)" selected', page)[:1] == ["a1"]
    assert "under the algorithm The A1" in play.u3.client.get("/questions").text
    play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer)
    listed = play.u3.client.get("/questions").text
    strict(listed)
    assert "under an algorithm that is not open to you now" in listed
    assert "The A1" not in listed
    assert "Your query runs without it" in play.u3.client.get(saved.headers["location"]).text


def test_the_api_keeps_it_too(play: Play):
    body = {"title": "By sex", "sql": BY_SEX, "spend": "0.1", "algorithm": "a1"}
    made = play.stage.post("/questions/saved", body, play.u3)
    assert (made.status_code, made.json()["algorithm"]) == (201, play.ids["a1"])
    assert play.stage.post("/questions/saved", body | {"sql": COUNT}, play.u3).status_code == 422
    assert play.stage.post("/questions/saved", body | {"algorithm": "never-was"}, play.u3).status_code == 404
    assert play.stage.post("/questions/saved", {**body, "algorithm": ""}, play.u3).json()["algorithm"] == ""


def test_a_form_under_another_algorithm_is_another_question(play: Play):
    """The key of a form that was sent once gives its answer to that very form alone."""
    made = play.u3.client.get("/ask").text
    key, token = (re.search(rf'name="{name}" value="([^"]+)"', made)[1] for name in ("key", "form_token"))
    form = {**ASKS, "sql": BY_SEX, "key": html.unescape(key), "form_token": html.unescape(token)}
    assert play.u3.client.post("/ask", data=form | {"algorithm": "a1"}).status_code == 303
    assert play.u3.client.post("/ask", data=form | {"algorithm": "a3"}).status_code == 409
    assert FORM["sql"] == BY_SEX
    assert len(play.stage.charges) == 1
