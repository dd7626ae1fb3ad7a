"""Shares are given, withdrawn, suspended and woken in any order: every way to a release says the same, and what it says follows
from the facts of the moment alone, told here by a table of truth of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

from cloister.hub.generation import bump
from cloister.hub.records.access import ProjectMember
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.learning import fitting
from tests.hub.asking.conftest import COUNT, MAY, Stage
from tests.hub.asking.test_lending import ENDS
from tests.hub.house import House, Visitor
from tests.hub.learning.conftest import Stage as Learning
from tests.hub.synthesising.conftest import Stage as Synthesising

PATHS = {"release": "/releases", "model": "/models", "synthetic": "/synthetic"}
FILES = {"release": "csv", "model": "json", "synthetic": "csv"}
PROJECT = "study"


@dataclass
class Truth:
    """What is so."""

    ended: set[str] = field(default_factory=set)
    """Why the giver could not give it now."""
    person: set[str] = field(default_factory=set)
    project: set[str] = field(default_factory=set)
    """The releases that are shared with the reader, and with the project."""
    members: set[str] = field(default_factory=lambda: {"ana", "bob"})
    withdrawn: set[str] = field(default_factory=set)

    def status(self, number: str, *, asked_in: bool) -> int:
        """What the reader is told of a release."""
        if number in self.withdrawn:
            return 404
        there = "bob" in self.members
        if asked_in and there:
            return 200
        ways = [True] * (number in self.person) + ["ana" in self.members] * (there and number in self.project)
        if not ways:
            return 404
        return 200 if any(ways) and not self.ended else 403


@pytest.mark.parametrize(("seed", "acts"), [(0, 15), *(pytest.param(each, 25, marks=pytest.mark.slow) for each in range(6))])
def test_every_way_to_a_release_agrees_with_the_facts(
    house: House, monkeypatch: pytest.MonkeyPatch, seed: int, acts: int
) -> None:
    for name in ("attacked", "lost"):
        monkeypatch.setattr(fitting, name, lambda *_: None)
    random, truth = Random(seed), Truth()
    owner, ana, bob = (
        house.person(role, email=f"{name}@example.org", name=name.title())
        for name, role in (("olga", "owner"), ("ana", "analyst"), ("bob", "analyst"))
    )
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions={*MAY, "learn.run", "synthesise.run"})
    house.grant(people, bob, by=owner, actions=["release.download"])
    stage = Stage(house, owner, ana, people)
    house.workspace(people, ana, bob, by=owner, actions=["question.ask", "release.share"])
    kinds = {str(stage.ask(COUNT)["id"]): "release"}
    kinds |= {
        Learning(house, owner, ana, people).learnt(): "model",
        Synthesising(house, owner, ana, people, "").made(): "synthetic",
    }
    inside = str(stage.ask(COUNT, spend="0.2", project=PROJECT)["id"])
    kinds[inside] = "release"
    for _ in range(acts):
        _act(stage, bob, truth, random, list(kinds))
        listed = [each["id"] for each in stage.get("/releases?kind=all&limit=200", bob).json()["releases"]]
        pages = {
            kind: [bob.client.get(f"{path}?which={which}").text for which in ("shown", "projects")]
            for kind, path in PATHS.items()
        }
        study = bob.client.get(f"/projects/{PROJECT}").text if "bob" in truth.members else ""
        for number, kind in kinds.items():
            expected = truth.status(number, asked_in=number == inside)
            where = f"{kind} {truth}"
            read = stage.get(f"/releases/{number}", bob).status_code
            assert read == expected or (expected == 200 and read == 403 and kind != "release"), where
            assert bob.client.get(f"{PATHS[kind]}/{number}").status_code == expected, where
            assert (number in listed) == (expected == 200), where
            assert any(number in page for page in pages[kind]) == (expected == 200), where
            got = stage.get(f"/releases/{number}/download/{FILES[kind]}", bob).status_code
            assert got == expected or (expected == 200 and got == 403), where
            shares = {"email": "eve@example.org"}
            assert stage.post(f"/releases/{number}/shares", shares, bob).status_code == 404, where
            if "bob" in truth.members:
                assert (number in study) == (expected == 200 and (number == inside or number in truth.project)), where


def _act(stage: Stage, bob: Visitor, truth: Truth, random: Random, numbers: list[str]) -> None:
    """One act, whose outcome the giver's own state decides."""
    number = random.choice(numbers)
    acts: list[Callable[[], None]] = [
        lambda: _end_or_wake(stage, truth, random),
        lambda: _share(stage, truth, truth.person, number, {"email": "bob@example.org"}),
        lambda: _share(stage, truth, truth.project, number, {"project": PROJECT}),
        lambda: _unshare(stage, truth, truth.person, number, {"email": "bob@example.org"}),
        lambda: _unshare(stage, truth, truth.project, number, {"project": PROJECT}),
        lambda: _member(stage, truth, "bob", bob),
        lambda: _member(stage, truth, "ana", stage.ana),
        lambda: _withdraw(stage, truth, number),
    ]
    random.choices(acts, weights=[5, 6, 6, 2, 2, 2, 2, 1])[0]()


def _end_or_wake(stage: Stage, truth: Truth, random: Random) -> None:
    alone = {name for name in ENDS if not name.startswith("data set")}  # one state, which two of them set
    name = random.choice(sorted(truth.ended or alone))
    ENDS[name][name in truth.ended](stage)
    truth.ended ^= {name}


def _share(stage: Stage, truth: Truth, shared: set[str], number: str, whom: dict[str, str]) -> None:
    answer = stage.post(f"/releases/{number}/shares", whom)
    may = not truth.ended and number not in truth.withdrawn and ("email" in whom or "ana" in truth.members)
    assert (answer.status_code == 200) == may, f"{answer.text} {truth}"
    shared |= {number} if may else set()


def _unshare(stage: Stage, truth: Truth, shared: set[str], number: str, whom: dict[str, str]) -> None:
    answer = stage.post(f"/releases/{number}/shares/withdraw", whom)
    if answer.status_code == 200:
        shared -= {number}
    else:
        assert truth.ended or number in truth.withdrawn or number not in shared, f"{answer.text} {truth}"


def _member(stage: Stage, truth: Truth, name: str, who: Visitor) -> None:
    with stage.hub.database.begin() as db:
        if name in truth.members:
            db.delete(db.get_one(ProjectMember, (PROJECT, who.id)))
        else:
            db.add(ProjectMember(project=PROJECT, person=who.id, joined=stage.hub.now()))
        bump(db)
    truth.members ^= {name}


def _withdraw(stage: Stage, truth: Truth, number: str) -> None:
    with stage.hub.database.begin() as db:
        db.get_one(StoredRelease, number).withdrawn = stage.hub.now()
    truth.withdrawn |= {number}
