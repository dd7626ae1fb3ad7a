"""Questions that ask for a word: a job looks for the frequent ones, the page says how far it is, and files wait for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.platform.jobs import Workers
from cloister.hub.records.jobs import Job
from cloister.hub.records.surveys import HeldSurvey
from cloister.hub.services.surveys import words
from cloister.hub.services.surveys.counting import receive
from cloister.local.survey import Results, Survey, Tally, respond
from cloister.noise import Random
from tests.hub.surveys.conftest import COPIED, Field

TOWN = {"kind": "word", "name": "town", "text": "Which town do you come from?", "length": 2}
LEVELS = [{"name": "careful", "epsilon": "0.5"}, {"name": "open", "epsilon": "6"}]
PEOPLE = 40


def filled(field: Field, *, people: int = PEOPLE) -> str:
    """An open survey with a word, to which some have answered: most from "ch" at the open level."""
    number = field.opened(questions=[TOWN, COPIED], levels=LEVELS, cap="16")
    answered(field, number, range(people))
    return number


def answered(field: Field, number: str, seeds: range) -> None:
    survey = field.survey(number)
    for seed in seeds:
        levels = {"town": "open", "copied": "careful" if seed % 2 else "open"}
        report = respond(survey, {"town": "ch", "copied": seed % 2 == 0}, levels, random=Random.deterministic(seed))
        assert receive(field.hub, number, report.to_dict())


def jobs(field: Field) -> list[tuple[str, str]]:
    with field.hub.database.reading() as db:
        return [(row.kind, row.state) for row in db.scalars(select(Job).order_by(Job.created))]


def test_a_job_looks_for_words_and_the_page_says_so(field: Field) -> None:
    number = filled(field)
    page = field.ana.client.get(f"/surveys/{number}").text
    assert 'data-poll-every="2000"' in page
    assert "Looking for words" in page
    assert "Which town do you come from?" in page
    assert "Have you ever copied" in page, "what needs no looking for is shown at once"
    assert jobs(field) == [("survey.words", "waiting")]
    fresh = field.ana.client.get(f"/surveys/{number}/fresh?looking=yes")
    assert "X-Go" not in fresh.headers
    assert jobs(field) == [("survey.words", "waiting")], "one job, however often somebody looks"
    assert Workers(field.hub, 0).run_one()
    assert jobs(field) == [("survey.words", "done")]
    assert field.ana.client.get(f"/surveys/{number}/fresh?looking=yes").headers["X-Go"] == f"/surveys/{number}"
    page = field.ana.client.get(f"/surveys/{number}").text
    assert 'data-poll-every="15000"' in page
    assert '<th scope="row">ch</th>' in page
    assert "Looking for words" not in page


def test_files_wait_for_words_and_are_those_of_the_library(field: Field) -> None:
    number = filled(field)
    waiting = field.ask("GET", f"/{number}/results")
    assert waiting.status_code == 202
    job = waiting.json()["job"]
    assert field.house.client().get(f"/api/v1/jobs/{job}", headers=field.ana.bearer).json()["state"] == "waiting"
    for name in ("results.csv", "results.json"):
        assert field.ana.client.get(f"/surveys/{number}/{name}").headers["location"] == f"/surveys/{number}"
    assert field.ana.client.get(f"/surveys/{number}/reports.json").status_code == 200, "reports need no words"
    assert Workers(field.hub, 0).run_one()
    told = field.results(number)
    file = field.ask("GET", f"/{number}/reports").json()
    survey = Survey.from_dict(file["survey"])
    tally = Tally(survey)
    tally.add(file["reports"])
    assert told == json.loads(Results(survey, tally).to_json())
    assert [each["question"] for each in told["questions"]] == ["town", "copied"]
    assert told["questions"][0]["combined"]["answers"][0]["answer"] == "ch"
    assert "town,open,ch," in field.ana.client.get(f"/surveys/{number}/results.csv").text


def test_an_open_survey_is_looked_through_again_when_it_has_grown_or_time_has_passed(field: Field) -> None:
    number = filled(field)
    field.ask("GET", f"/{number}/results")
    assert Workers(field.hub, 0).run_one()
    answered(field, number, range(100, 102))
    told = field.results(number)
    assert (told["n"], told["questions"][0]["n"], told["questions"][1]["n"]) == (PEOPLE + 2, PEOPLE, PEOPLE + 2)
    assert len(jobs(field)) == 1, "two of forty are too few to look again at once"
    assert f"the words of the first {PEOPLE} reports" in field.ana.client.get(f"/surveys/{number}").text
    field.house.clock.move(minutes=11)
    field.results(number)
    assert jobs(field)[1:] == [("survey.words", "waiting")]
    assert Workers(field.hub, 0).run_one()
    assert field.results(number)["questions"][0]["n"] == PEOPLE + 2
    answered(field, number, range(200, 210))
    field.results(number)
    assert len(jobs(field)) == 3, "a tenth more"


def test_a_closed_survey_is_looked_through_to_its_last_report(field: Field) -> None:
    number = filled(field)
    field.ask("GET", f"/{number}/results")
    assert Workers(field.hub, 0).run_one()
    answered(field, number, range(100, 101))
    field.ask("POST", f"/{number}/close")
    assert field.ask("GET", f"/{number}/results").status_code == 202
    fresh = field.ana.client.get(f"/surveys/{number}/fresh")
    assert "X-Done" not in fresh.headers
    assert Workers(field.hub, 0).run_one()
    assert field.results(number)["questions"][0]["n"] == PEOPLE + 1
    assert field.ana.client.get(f"/surveys/{number}/fresh").headers["X-Done"] == "1"
    assert not Workers(field.hub, 0).run_one()


def test_a_job_that_fails_is_said_and_tried_again_later(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    number = filled(field)
    field.ask("GET", f"/{number}/results")
    with monkeypatch.context() as broken:
        broken.setattr(words.Results, "at_level", lambda *_: 1 // 0)
        assert Workers(field.hub, 0).run_one()
    assert jobs(field) == [("survey.words", "failed")]
    page = field.ana.client.get(f"/surveys/{number}").text
    assert "The search for words in all reports failed" in page
    assert "Have you ever copied" in page
    assert len(jobs(field)) == 1
    field.house.clock.move(minutes=11)
    assert field.ask("GET", f"/{number}/results").status_code == 202
    assert Workers(field.hub, 0).run_one()
    assert field.results(number)["questions"][0]["n"] == PEOPLE


def test_progress_goes_level_by_level_and_a_stop_is_heard(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    number = filled(field, people=3)
    seen: list[Any] = []
    monkeypatch.setattr("cloister.hub.platform.jobs.workers._Running.tell", lambda _, *said: seen.append(said))
    field.ask("GET", f"/{number}/results")
    assert Workers(field.hub, 0).run_one()
    assert seen == [("looking for words", 0.0), ("looking for words", 0.5)]
    field.house.clock.move(minutes=11)
    answered(field, number, range(10, 11))
    field.ask("GET", f"/{number}/results")
    monkeypatch.setattr("cloister.hub.platform.jobs.workers._Running.stopped", lambda _: True)
    assert Workers(field.hub, 0).run_one()
    assert jobs(field)[-1] == ("survey.words", "cancelled")


def test_nobody_has_answered_and_nothing_is_looked_for(field: Field) -> None:
    number = field.opened(questions=[TOWN, COPIED], levels=LEVELS, cap="16")
    assert field.results(number)["questions"][0]["n"] == 0
    assert "No one has answered yet" in field.ana.client.get(f"/surveys/{number}").text
    assert jobs(field) == []


def test_what_was_found_is_of_all_reports_and_never_of_fewer_than_before(field: Field) -> None:
    """Two jobs at once: the one that saw fewer reports and ends later changes nothing."""
    number = filled(field)
    field.ask("GET", f"/{number}/results")
    assert Workers(field.hub, 0).run_one()
    with field.hub.database.begin() as db:
        row = db.get(HeldSurvey, number)
        assert row is not None
        row.words = json.dumps({**json.loads(row.words), "n": 1000})
    words._run(field.hub, {"survey": number, "n": 1}, _Quiet())  # type: ignore[arg-type]
    with field.hub.database.reading() as db:
        row = db.get(HeldSurvey, number)
        assert row is not None
        assert json.loads(row.words)["n"] == 1000


class _Quiet:
    def tell(self, *_: Any) -> None:
        """Nobody listens."""

    def stopped(self) -> bool:
        return False
