"""Two who change one thing at a time, on PostgreSQL, where each reads what the other has not yet written: neither change is lost,
and what was promised to a third is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from sqlalchemy import select

from cloister.errors import CloisterError
from cloister.hub.decisions import facts
from cloister.hub.hub import Hub
from cloister.hub.platform.access import granting, requests
from cloister.hub.platform.accounts import people, sessions, tokens
from cloister.hub.platform.catalogue import managing, reading, registering
from cloister.hub.problems import Missing
from cloister.hub.records.access import GuestReview
from cloister.hub.records.accounts import Person, WebSession
from cloister.hub.records.trail import AuditLine
from cloister.hub.services import all_services
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
    number, real, closed = surveys.draft(), counting.is_open, list[Any]()
    surveys.api("POST", f"/{number}/open")
    assert surveys.send(number) == 201

    def slowly(*which: Any) -> bool:
        was = real(*which)
        closed.append(beside(lambda: surveys.api("POST", f"/{number}/close")))
        return was

    with patch.object(counting, "is_open", slowly):
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
    real, said, second = admission.reviewed, dict[str, str](), list[Any]()

    def approve(who: Any) -> None:
        try:
            admission.approve(house.hub, who.caller, "total", "people")
            said[who.caller.email] = "approved"
        except CloisterError as error:
            said[who.caller.email] = str(error)

    def meanwhile(*given: Any) -> Any:
        read = real(*given)
        if not second:
            second.append(None)
            second[0] = beside(lambda: approve(stella))
        return read

    with patch.object(admission, "reviewed", meanwhile):
        approve(play.owner)
        second[0]()
    assert set(said.values()) == {"approved"}, said
    with house.hub.database.reading() as db:
        [row] = db.scalars(select(GuestReview)).all()
        assert {each["person"] for each in row.approvals} == {play.owner.id, stella.id}


class Shared:
    """A data set that somebody may ask, and two processes of the hub."""

    def __init__(self, house: House) -> None:
        self.house, self.owner, self.eve = house, house.person("owner", "analyst"), house.person("analyst")
        self.row = house.sample_data_set("people", owner=self.owner)
        self.grant = house.grant(self.row, self.eve, by=self.owner)
        self.other = Hub(house.settings, all_services(), clock=house.clock)

    def asked(self) -> int:
        order = {"sql": "SELECT COUNT(*) FROM people", "spend": "0.01"}
        return int(self.house.client().post("/api/v1/questions", json=order, headers=self.eve.bearer).status_code)

    def revoke(self) -> None:
        with self.other.database.begin() as db:
            granting.revoke_in(self.other, db, self.owner.caller, self.grant)


@pytest.fixture
def shared(house: House) -> Iterator[Shared]:
    made = Shared(house)
    yield made
    made.other.close()


def test_a_grant_that_is_revoked_while_its_facts_are_read_is_gone(shared: Shared) -> None:
    hub, real, revoked = shared.house.hub, facts.parts_by_data_set, list[Any]()
    assert shared.asked() == 201
    bob = shared.house.person("analyst")
    shared.house.grant(shared.row, bob, by=shared.owner, actions=["dataset.see"])  # so that facts are read again

    def between(db: Any) -> Any:
        if not revoked:
            revoked.append(None)
            revoked[0] = beside(shared.revoke)
        return real(db)

    wanted = {"data_set": "people", "purpose": "research", "wanted": {"actions": ["question.ask"]}}
    with patch.object(facts, "parts_by_data_set", between), hub.database.begin() as db:
        requests.ask_access(hub, db, bob.caller, **wanted)
    revoked[0]()
    assert [shared.asked() for _ in range(2)] == [404, 404]


def test_what_a_transaction_saw_that_was_undone_decides_on_nothing(shared: Shared) -> None:
    hub = shared.house.hub
    shared.house.sample_data_set("another", owner=shared.owner)

    def undone() -> None:
        with hub.database.begin() as db:
            managing.close(hub, db, shared.owner.caller, reading.owned(hub, db, shared.owner.caller, "another"))
            facts.facts_of(hub, db)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    shared.revoke()
    assert shared.asked() == 404


@pytest.mark.parametrize("round_", range(2))
def test_one_file_is_registered_for_one_budget_however_often_it_comes_at_once(shared: Shared, round_: int) -> None:
    """Two uploads of the same rows, under two populations."""
    kinds = {"age": {"kind": "integer", "low": 17, "high": 90, "reason": "adults only"}}
    headers, rows = {**shared.owner.bearer, "Content-Type": "text/csv"}, b"age\n" + b"30\n40\n" * (20 + round_)
    sent = [shared.house.client().post("/api/v1/uploads", content=rows, headers=headers).json()["id"] for _ in "ab"]
    looked, second, real = list[str](), list[Any](), registering.check_origin

    def register(name: str, upload: str) -> Any:
        told = {"name": name, "title": "T", "upload": upload, "population": name, "budget": {"epsilon": "1"}}
        told |= {"columns": kinds, "row_is_person": True}
        answer = shared.house.client().post("/api/v1/datasets", json=told, headers=shared.owner.bearer)
        return answer.status_code, answer.text

    def looking(*given: Any) -> None:
        real(*given)
        looked.append(given[1].name)
        if looked == ["one", "one"]:  # first to read, then in the transaction that writes
            second.append(beside(lambda: register("two", sent[1])))

    with patch.object(registering, "check_origin", looking):
        found = [register("one", sent[0]), second[0]()]
    assert [each[0] for each in found] == [201, 422], found


def test_who_was_shut_out_a_moment_ago_leaves_no_token_behind(shared: Shared) -> None:
    hub, eve = shared.house.hub, shared.eve
    with hub.database.reading() as db:
        session = db.scalars(select(WebSession.digest).where(WebSession.person == eve.id)).one()
    caller = replace(eve.caller, session=session)
    with hub.database.begin() as db:
        sessions.end_all(db, eve.id)
    with pytest.raises(Missing, match="ended"), hub.database.begin() as db:
        tokens.make_token(hub, db, caller, name="late", scopes=["dataset.see"])
    administrator = shared.house.person("administrator")
    with hub.database.begin() as db:
        people.block(hub, db, administrator.caller, db.get_one(Person, eve.id))
    with pytest.raises(Missing, match="ended"), hub.database.begin() as db:
        tokens.make_token(hub, db, eve.caller, name="late", scopes=["dataset.see"])
