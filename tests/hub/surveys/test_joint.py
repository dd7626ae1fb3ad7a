"""Joint surveys: the hub leads, a helper in a folder of its own calls it, respondents' devices send shares."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import CloisterError
from cloister.hub.records.surveys import JointReportRow
from cloister.noise import Random
from cloister.together.prio3.helper import Helper
from cloister.together.prio3.joint_survey import JointSurvey
from tests.hub.house import House, Visitor

WAYS = {"text": "How do you come to work?", "kind": "choice", "epsilon": "300", "options": ["walk", "bus", "car"]}
SMOKES = {"text": "Do you smoke?", "kind": "yes-no", "epsilon": "300"}
AGE = {"text": "How old are you?", "kind": "number", "epsilon": "30000", "low": 18, "high": 100}
ANSWERS = [["bus", "yes", 40], ["walk", "no", 18], ["bus", "no", 100], ["car", "yes", 50]]


class Joint:
    """A house, a researcher, a survey, and its helper."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house, self.folder, self.ana = house, folder, house.person("analyst")
        house.hub.settings = replace(house.hub.settings, survey_cap="100000")

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.house.client().request(method, f"/api/v1/joint-surveys{path}", json=body, headers=self.ana.bearer)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def made(self, *questions: Any, **more: Any) -> str:
        return str(self.ask("POST", "", {"title": "Ways", "questions": list(questions), **more}, status=201)["id"])

    def call(self, number: str, secret: str, body: Any, *, status: int = 200) -> Any:
        answer = self.house.client().post(
            f"/api/v1/joint-surveys/{number}/helper", json=body, headers={"Helper-Key": secret}
        )
        assert answer.status_code == status, answer.text
        return answer.json()

    def joined(self, *questions: Any, **more: Any) -> tuple[str, str, Helper]:
        """An open survey whose helper has joined: its id, the secret, the helper."""
        number = self.made(*questions, **more)
        secret = self.ask("POST", f"/{number}/link")["secret"]
        survey = JointSurvey.from_dict(self.call(number, secret, {})["survey"])
        helper = Helper.made(self.folder / number, survey, link=f"#{secret}", name="Registry")
        self.call(number, secret, {"name": "Registry", "key": helper.public.hex()})
        self.ask("POST", f"/{number}/open")
        return number, secret, helper

    def form(self, number: str) -> tuple[JointSurvey, bytes]:
        told = self.house.client().get(f"/api/v1/joint-surveys/{number}/form").json()
        survey = JointSurvey.from_dict(told["survey"])
        assert survey.digest == told["digest"]
        return survey, bytes.fromhex(told["helper"])

    def answered(self, number: str, answers: Any, *, seed: int = 0, **more: Any) -> Any:
        survey, key = self.form(number)
        report = survey.report(answers, key, random=Random.deterministic(seed)).to_dict()
        return self.send(number, {**report, **more})

    def send(self, number: str, body: Any) -> Any:
        return self.house.client().post(f"/api/v1/joint-surveys/{number}/reports", json=body)

    def turn(self, number: str, secret: str, helper: Helper, answer: Any) -> Any:
        """What the helper says to what it is told."""
        import base64

        told = self.call(number, secret, answer)
        if told.get("reports"):
            return {"said": helper.said(base64.b64decode(told["check"]), told["reports"])}
        if told.get("list"):
            return {"shares": [each.hex() for each in helper.share(told["list"])], "list": told["list"]}
        return {"done": told["state"]}


@pytest.fixture
def joint(house: House, tmp_path: Path) -> Joint:
    return Joint(house, tmp_path)


def test_two_servers_add_up_what_neither_reads(joint: Joint) -> None:
    number, secret, helper = joint.joined(WAYS, SMOKES, AGE)
    for seed, answers in enumerate(ANSWERS):
        assert joint.answered(number, answers, seed=seed).status_code == 201
    said = joint.turn(number, secret, helper, {})
    joint.ask("POST", f"/{number}/close")
    shares = joint.turn(number, secret, helper, said)
    assert joint.turn(number, secret, helper, shares) == {"done": "done"}
    whole = joint.ask("GET", f"/{number}")
    assert whole["reports"] == {"new": 0, "counted": 4, "dropped": 0}
    ways, smokes, age = whole["results"]
    assert ways["counts"] == {"walk": 1, "bus": 2, "car": 1}
    assert smokes["counts"] == {"no": 2, "yes": 2}
    assert age["mean"] == 52 and age["margin"] < 1
    with joint.house.hub.database.reading() as db:
        assert {each.body for each in db.query(JointReportRow)} == {""}, "shares are deleted once they are added"
    assert helper.ended
    helper.close()
