"""A share is a delegation: it sleeps while whoever gave it could not give it now, and wakes when they can; on pages, in the API,
in files, and in the workspace of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.records.access import Grant, Project, ProjectMember
from cloister.hub.records.accounts import Person, PersonRole
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage, stage_in
from tests.hub.asking.test_policy import rule
from tests.hub.asking.test_sources import attach, end_rules
from tests.hub.house import House, Visitor

Ends = tuple[Callable[[Stage], object], Callable[[Stage], object]]


def changed(what: type, number: str, **values: Any) -> Callable[[Stage], object]:
    def act(stage: Stage) -> None:
        with stage.hub.database.begin() as db:
            key = {"people": stage.people.id, "ana": stage.ana.id}.get(number, number)
            row = db.get_one(what, key)
            for name, value in values.items():
                setattr(row, name, value)
            bump(db)

    return act


def of_grants(**values: Any) -> Callable[[Stage], object]:
    """Change every grant to Ana."""

    def act(stage: Stage) -> None:
        with stage.hub.database.begin() as db:
            for row in db.query(Grant).filter(Grant.object == stage.people.id):
                if stage.ana.id not in row.attributes.get("people", ()):
                    continue
                rules = {**row.rules, **{name: each for name, each in values.items() if name != "revoked"}}
                row.rules = {name: each for name, each in rules.items() if each is not None}
                row.revoked = values.get("revoked", row.revoked) and stage.hub.now()
            bump(db)

    return act


def roles(*given: str) -> Callable[[Stage], object]:
    def act(stage: Stage) -> None:
        with stage.hub.database.begin() as db:
            db.query(PersonRole).filter(PersonRole.person == stage.ana.id).delete()
            db.add_all(PersonRole(person=stage.ana.id, role=each, given=stage.hub.now()) for each in given)

    return act


ENDS: dict[str, Ends] = {
    "grant revoked": (of_grants(revoked=True), of_grants(revoked=None)),
    "grant expired": (of_grants(until="2026-03-01"), of_grants(until=None)),
    "without the right to share": (of_grants(actions=["question.ask", "release.see"]), of_grants(actions=sorted(MAY))),
    "sharer blocked": (changed(Person, "ana", blocked=True), changed(Person, "ana", blocked=False)),
    "sharer without their role": (roles("provider"), roles("analyst")),
    "data set closed": (changed(DataSet, "people", state="closed"), changed(DataSet, "people", state="open")),
    "data set deleted": (changed(DataSet, "people", state="deleted"), changed(DataSet, "people", state="open")),
    "rule of the institution": (
        lambda stage: rule(stage, populations=["people"], actions=["release.share"], deny=True),
        end_rules,
    ),
    "policy of the data": (
        lambda stage: attach(stage, policy={"prohibitions": ["release.share"]}),
        lambda stage: attach(stage),
    ),
}


@pytest.fixture
def bob(stage: Stage) -> Visitor:
    return bob_in(stage)


def bob_in(stage: Stage) -> Visitor:
    """Somebody who was shown Ana's answer, and may download what came of the data."""
    found = stage.house.person("analyst", email="bob@example.org", name="Bob")
    stage.house.grant(stage.people, found, by=stage.owner, actions=["release.download"])
    return found


@pytest.fixture
def number(stage: Stage, bob: Visitor) -> str:
    found = str(stage.ask(COUNT)["id"])
    assert stage.post(f"/releases/{found}/shares", {"email": "bob@example.org"}).status_code == 200
    return found


def seen(stage: Stage, number: str, who: Visitor) -> list[int]:
    """The page and the picture, the API and its margins, the files."""
    pages = [f"/releases/{number}{rest}" for rest in ("", "/chart.svg", "/download/csv")]
    api = [f"/releases/{number}{rest}" for rest in ("", "/margins", "/download/json")]
    return [who.client.get(each).status_code for each in pages] + [stage.get(each, who).status_code for each in api]


def works(number: str, who: Visitor) -> tuple[int, bool]:
    """The page, and whether the workspace of the project has it."""
    return who.client.get(f"/releases/{number}").status_code, number in who.client.get("/projects/study").text


def listed(stage: Stage, who: Visitor) -> int:
    return len(stage.get("/releases", who).json()["releases"]) + who.client.get("/releases?which=shown").text.count("COUNT(*)")


@dataclass
class Shared:
    """A stage on which Bob was shown one answer, and another one in a project."""

    stage: Stage
    bob: Visitor
    number: str
    in_project: str

    def sleeps(self) -> None:
        assert seen(self.stage, self.number, self.bob) == [403] * 6
        assert works(self.in_project, self.bob) == (403, False)
        assert listed(self.stage, self.bob) == 0, "a title and a question tell of data too"

    def is_awake(self) -> None:
        assert seen(self.stage, self.number, self.bob) == [200] * 6
        assert works(self.in_project, self.bob) == (200, True)
        assert listed(self.stage, self.bob) > 0


@pytest.fixture(scope="module")
def shared(one_house: House) -> Shared:
    """One for all ways in which it falls asleep, since it wakes after each."""
    stage = stage_in(one_house)
    bob = bob_in(stage)
    study = one_house.workspace(stage.people, stage.ana, bob, by=stage.owner, actions=["question.ask"])
    number, in_project = (str(stage.ask(sql)["id"]) for sql in (COUNT, BY_SEX))
    for each, whom in ((number, {"email": "bob@example.org"}), (in_project, {"project": study})):
        assert stage.post(f"/releases/{each}/shares", whom).status_code == 200
    found = Shared(stage, bob, number, in_project)
    found.is_awake()
    return found


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_share_sleeps_while_its_giver_could_not_give_it_and_wakes_when_they_can(shared: Shared, ends: Ends) -> None:
    stage, number, bob = shared.stage, shared.number, shared.bob
    stage.house.in_front()
    end, again = ends
    end(stage)
    shared.sleeps()
    told = stage.get(f"/releases/{number}", bob).json()
    assert told["detail"].startswith("the person who shared it may not share it any more")
    assert told["instead"] == "ask the person who shared it (Ana Analyst)"
    assert told["rule"]
    assert not {"people", "COUNT"} & set(told["detail"].split())
    again(stage)
    shared.is_awake()


def test_a_release_that_was_withdrawn_is_not_told_from_none(stage: Stage, number: str, bob: Visitor) -> None:
    changed(StoredRelease, number, withdrawn=stage.hub.now())(stage)
    assert seen(stage, number, bob) == [404] * 6


def test_the_sharer_sees_that_it_sleeps_and_why(stage: Stage, number: str) -> None:
    shares = f"/releases/{number}/shares"
    assert [each["asleep"] for each in stage.get(shares).json()["shares"]] == [""]
    assert "No one sees it there now" not in stage.ana.client.get(f"/releases/{number}").text
    of_grants(revoked=True)(stage)
    [told] = stage.get(shares).json()["shares"]
    assert (told["asleep"], told["rule"].partition(":")[0]) == ("the grant was revoked", "grant")
    page = stage.ana.client.get(f"/releases/{number}").text
    assert "No one sees it there now" in page
    assert "suspended" in page
    assert stage.post(f"{shares}/withdraw", {"email": "bob@example.org"}).json() == {"shares": []}


def test_a_share_reaches_no_further_than_its_giver_would_where_the_reader_stands(stage: Stage, number: str, bob: Visitor) -> None:
    of_grants(networks=["10.0.0.0/8"])(stage)

    def looks(address: str) -> int:
        return int(stage.house.client(address).get(f"/api/v1/releases/{number}", headers=bob.bearer).status_code)

    assert (looks("10.1.2.3"), looks("192.168.0.1")) == (200, 403)
    of_grants(networks=None)(stage)
    rule(stage, populations=["people"], second_factor=True)
    without = stage.house.client()
    assert without.get(f"/api/v1/releases/{number}", headers=bob.bearer).status_code == 403


def test_what_the_owner_of_the_data_shows_needs_no_grant(stage: Stage, bob: Visitor) -> None:
    found = stage.ask(COUNT, who=stage.owner)["id"]
    assert stage.post(f"/releases/{found}/shares", {"email": "bob@example.org"}, stage.owner).status_code == 200
    assert seen(stage, found, bob) == [200] * 6
    changed(DataSet, "people", state="closed")(stage)
    assert seen(stage, found, bob) == [200] * 6, "it is theirs to show"
    with stage.hub.database.begin() as db:
        db.get_one(Person, stage.owner.id).blocked = True
    assert seen(stage, found, bob) == [403] * 6


class TestProjects:
    """Workspaces."""

    @pytest.fixture
    def study(self, stage: Stage, bob: Visitor) -> str:
        return stage.house.workspace(stage.people, stage.ana, bob, by=stage.owner, actions=["question.ask"])

    def test_a_sharer_who_left_the_project_shows_nothing_in_it(self, stage: Stage, study: str, bob: Visitor) -> None:
        number = stage.ask(COUNT)["id"]
        stage.post(f"/releases/{number}/shares", {"project": study})
        with stage.hub.database.begin() as db:
            db.delete(db.get_one(ProjectMember, (study, stage.ana.id)))
            bump(db)
        assert works(number, bob) == (403, False)
        [told] = stage.get(f"/releases/{number}/shares").json()["shares"]
        assert told["asleep"] == "you are not a member of the project any more"

    def test_what_was_asked_in_it_stays_with_its_members(self, stage: Stage, study: str, bob: Visitor) -> None:
        number = stage.ask(COUNT, project=study)["id"]
        assert stage.get(f"/releases/{number}", bob).status_code == 200, "the project's answer is its members' own"
        changed(Grant, "to-study", revoked=stage.hub.now())(stage)
        changed(Person, "ana", blocked=True)(stage)
        assert works(number, bob) == (200, True)
        changed(Project, study, closed=stage.hub.now())(stage)
        assert bob.client.get(f"/releases/{number}").status_code == 200

    def test_who_joins_later_sees_nothing_before_the_owner_lets_them_in(self, stage: Stage, study: str) -> None:
        number = stage.ask(COUNT, project=study)["id"]
        eve = stage.house.person("analyst", email="eve@example.org", name="Eve")
        of_grants(actions=["question.ask", "release.see"])(stage)  # nor may Ana show it to anybody
        with stage.hub.database.begin() as db:
            db.add(ProjectMember(project=study, person=eve.id, joined=stage.hub.now()))
            bump(db)
        assert works(number, eve) == (403, False)
        told = stage.get(f"/releases/{number}", eve).json()
        assert (told["rule"], told["instead"]) == (f"data-set:{stage.people.id}", "ask its owner (Olga Owner)")
        members = {"projects": [study], "people": [stage.ana.id, eve.id]}
        changed(Grant, "to-study", attributes=members)(stage)
        assert works(number, eve) == (200, True)
        assert stage.get(f"/releases/{number}", eve).status_code == 200
