"""A researcher with a survey, and people who answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.surveys import HeldSurvey
from cloister.hub.services.surveys.composing import composed
from cloister.local.survey import Survey, respond
from cloister.noise import Random
from cloister.printable import kept
from tests.hub.house import House, Visitor

COPIED = {"kind": "yes-no", "name": "copied", "text": "Have you ever copied in an exam?"}
WHY = {"kind": "choice", "name": "why", "text": "Why?", "options": ["time", "grade", "=1+1"]}
LEVELS = [{"name": "careful", "epsilon": "1"}, {"name": "open", "epsilon": "3"}]


@dataclass
class Field:
    """A house, a researcher, and their surveys."""

    house: House
    ana: Visitor

    @property
    def hub(self) -> Hub:
        return self.house.hub

    def ask(self, method: str, path: str, body: Any = None, who: Visitor | None = None) -> Any:
        """The API with a token."""
        return self.house.client().request(method, f"/api/v1/surveys{path}", json=body, headers=(who or self.ana).bearer)

    def draft(self, questions: Any = (COPIED, WHY), **more: Any) -> str:
        """The id of a draft."""
        said = {
            "title": "Exams",
            "purpose": "a study of exams",
            "levels": LEVELS,
            "cap": "8",
            "questions": list(questions),
            **more,
        }
        answer = self.ask("POST", "", said)
        assert answer.status_code == 201, answer.text
        number: str = answer.json()["id"]
        return number

    def opened(self, **more: Any) -> str:
        """The id of an open survey."""
        number = self.draft(**more)
        answer = self.ask("POST", f"/{number}/open")
        assert answer.status_code == 200, answer.text
        return number

    def post(self, path: str, form: Any, who: Visitor | None = None) -> Any:
        """A form of a page, by its browser."""
        person = who or self.ana
        return person.client.post(path, data={**form, "form_token": person.csrf()["X-CSRF-Token"]})

    def survey(self, number: str) -> Survey:
        """As a respondent's machine gets it."""
        return Survey.from_dict(self.house.client().get(f"/api/v1/surveys/{number}/form").json()["survey"])

    def report(self, number: str, answers: Any, level: Any = "open", *, seed: int, token: str | None = None) -> str:
        """A report, by chance that a test can repeat."""
        return respond(self.survey(number), answers, level, token=token, random=Random.deterministic(seed)).to_json()

    def send(self, number: str, report: str | bytes) -> Any:
        """A respondent's browser: no cookie, no token of ours."""
        headers = {"Content-Type": "application/json"}
        return self.house.client().post(f"/api/v1/surveys/{number}/reports", content=report, headers=headers)

    def results(self, number: str) -> dict[str, Any]:
        """As JSON; where words are to be looked for first, they are, here and now."""
        answer = self.ask("GET", f"/{number}/results")
        if answer.status_code == 202:
            assert Workers(self.hub, 0).run_one()
            answer = self.ask("GET", f"/{number}/results")
        found: dict[str, Any] = answer.json()
        return found


ODD = ["turned \u202e round", "tabs\tand\nlines", "nul \x00 in it", "half \ud800 a letter", "lines\u2028apart"]
"""Texts that an older version took, and none takes now."""


def stored(field: Field, odd: str) -> str:
    """The id of an open survey all of whose texts are this one, as an older version stored it."""
    number = field.opened()
    question = {"kind": "choice", "name": "which", "text": odd, "options": [odd, "b"], "no_answer": True}
    with kept(), field.hub.database.begin() as db:
        row = db.get_one(HeldSurvey, number)
        levels = [{"name": odd, "epsilon": "1"}, {"name": "open", "epsilon": "3"}]
        row.draft = {**row.draft, "introduction": odd, "levels": levels, "questions": [question]}
        row.body = composed(odd, row.draft, identity=row.id).to_json()
        if not any("\ud800" <= letter <= "\udfff" for letter in odd):  # a column of text holds no half letter
            row.title = row.purpose = odd
    return number


@pytest.fixture
def field(house: House) -> Field:
    return Field(house, house.person("analyst", email="ana@example.org", name="Ana Analyst"))
