"""Two who change one thing at a time, on PostgreSQL, where each reads what the other has not yet written: neither change is lost,
and what was promised to a third is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from sqlalchemy import select

from cloister.errors import CloisterError
from cloister.hub.records.access import GuestReview
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.guests import admission
from cloister.hub.services.surveys import counting, drafts
from cloister.local.survey import Survey, respond
from scripts import postgres
from tests.hub.guests.test_admission import DECLARED, ready
from tests.hub.guests.test_running import play_in
from tests.hub.house import Clock, House

pytestmark = pytest.mark.postgres
LEVELS = [{"name": "open", "epsilon": "3"}]
QUESTION = {"kind": "yes-no", "name": "copied", "text": "Copied?"}


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    try:
        found = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield found
    postgres.stop(found.folder, found.pid)


@pytest.fixture
def house(server: postgres.Server, tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[House]:
    schema = f"raced_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    made = House(tmp_path / "hub", clock, database=f"{server.url}?options=-csearch_path%3D{schema}")
    yield made
    made.close()


def beside(act: Callable[[], Any]) -> Callable[[], Any]:
    """The act, begun in another thread; what is given back waits for it and gives what it gave."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(act()))
    thread.start()
    thread.join(0.5)  # time to come where it has to wait, or to be done where it need not

    def awaited() -> Any:
        thread.join(60)
        return found[0]

    return awaited


class Surveys:
    """Somebody with surveys at a hub."""

    def __init__(self, house: House) -> None:
        self.house, self.ana = house, house.person("owner", "analyst")

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self.house.client().request(method, f"/api/v1/surveys{path}", json=body, headers=self.ana.bearer)

    def draft(self, **more: Any) -> str:
        told = {"title": "Ethics", "levels": LEVELS, "cap": "8", "questions": [QUESTION], **more}
        return str(self.api("POST", "", told).json()["id"])

    def send(self, number: str) -> int:
        survey = Survey.from_dict(self.house.client().get(f"/api/v1/surveys/{number}/form").json()["survey"])
        report = respond(survey, {"copied": True}, "open").to_json()
        kind = {"Content-Type": "application/json"}
        sent = self.house.client().post(f"/api/v1/surveys/{number}/reports", content=report, headers=kind)
        return int(sent.status_code)


def test_a_draft_that_is_rewritten_while_it_is_opened_keeps_one_promise(house: House) -> None:
    surveys = Surveys(house)
    number = surveys.draft(invited=True)
    with house.hub.database.begin() as db:
        drafts.rewrite(house.hub, db, surveys.ana.caller, number, invited=False, title="Another title", cap="3")
        opened = beside(lambda: surveys.api("POST", f"/{number}/open"))
    assert opened().status_code == 200
    now = surveys.api("GET", f"/{number}").json()
    assert (now["state"], now["invited"], now["title"], now["draft"]["cap"]) == ("open", False, "Another title", "3")
    assert (now["survey"]["title"], now["survey"]["cap"]) == ("Another title", "3")


def test_two_questions_that_are_added_at_once_are_both_asked(house: House) -> None:
    surveys = Surveys(house)
    number = surveys.draft(cap="20")

    def add(name: str) -> None:
        with house.hub.database.begin() as db:
            drafts.add_question(house.hub, db, surveys.ana.caller, number, {**QUESTION, "name": name, "text": f"{name}?"})

    with house.hub.database.begin() as db:
        drafts.add_question(house.hub, db, surveys.ana.caller, number, {**QUESTION, "name": "a", "text": "a?"})
        added = beside(lambda: add("b"))
    added()
    asked = surveys.api("GET", f"/{number}").json()["draft"]["questions"]
    assert [each["name"] for each in asked] == ["copied", "a", "b"]


def test_who_closes_a_survey_counts_the_report_that_is_just_coming(house: House) -> None:
    surveys = Surveys(house)
    number, real, closed = surveys.draft(), counting._open, list[Any]()
    surveys.api("POST", f"/{number}/open")
    assert surveys.send(number) == 201

    def slowly(db: Any, which: str) -> bool:
        was = real(db, which)
        closed.append(beside(lambda: surveys.api("POST", f"/{number}/close")))
        return was

    with patch.object(counting, "_open", slowly):
        assert surveys.send(number) == 201
    assert closed[0]().json()["state"] == "closed"
    assert surveys.api("GET", f"/{number}/results").json()["n"] == 2
    with house.hub.database.reading() as db:
        [line] = db.scalars(select(AuditLine).where(AuditLine.action == "survey.close"))
        assert line.details["reports"] == 2
    assert surveys.send(number) == 409


def test_two_approvals_at_once_are_two(house: House) -> None:
    play = play_in(house)
    stella = ready(play, "total", DECLARED)
    with house.hub.database.begin() as db:
        now = admission.reviewed(house.hub, db, play.owner.caller, "total", "people")
        found = {"trial": {"done": 1}, "audit": {"kept": True, "telling": True, "told": "1"}}
        admission.keep_found(house.hub, db, play.owner.caller, now, found)
    both, real, said = threading.Barrier(2), admission.reviewed, dict[str, str]()

    def together(*given: Any) -> Any:
        read = real(*given)
        both.wait(30)
        return read

    def approve(who: Any) -> None:
        try:
            admission.approve(house.hub, who.caller, "total", "people")
            said[who.caller.email] = "approved"
        except CloisterError as error:
            said[who.caller.email] = str(error)

    threads = [threading.Thread(target=approve, args=(who,)) for who in (play.owner, stella)]
    with patch.object(admission, "reviewed", together):
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert set(said.values()) == {"approved"}, said
    with house.hub.database.reading() as db:
        [row] = db.scalars(select(GuestReview)).all()
        assert {each["person"] for each in row.approvals} == {play.owner.id, stella.id}
