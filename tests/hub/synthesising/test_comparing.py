"""A synthetic table against the rows that it was made of: for the owner of the rows alone, kept encrypted, gone after a week."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from sqlalchemy import update

from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import OwnerView
from tests.hub.house import Clock, Visitor
from tests.hub.synthesising.conftest import Stage


def compare(stage: Stage, number: str, who: Visitor) -> Any:
    """Press the button, or send what it would."""
    page = who.client.get(f"/synthetic/{number}").text
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    key = re.search(r'name="key" value="([^"]+)"', page)
    sent = {"form_token": token[1] if token else "", "key": key[1] if key else "one"}
    return who.client.post(f"/synthetic/{number}/comparison", data=sent)


def compared(stage: Stage, number: str) -> str:
    """The address of a comparison that was made."""
    sent = compare(stage, number, stage.owner)
    assert sent.status_code == 303, sent.text
    assert Workers(stage.hub, 0).run_one()
    job = stage.get(f"/jobs/{sent.headers['location'].rpartition('/')[2]}", stage.owner).json()
    assert job["state"] == "done", job
    where: str = job["result"]["href"]
    return where


def test_the_owner_sees_how_far_off_it_is_and_nothing_leaves(stage: Stage, clock: Clock) -> None:
    number = stage.made(stage.owner, spend="1")
    where = compared(stage, number)
    page = html.unescape(stage.owner.client.get(where).text)
    assert "k-marginal score" in page
    assert "propensity" in page
    assert "Not differentially private" in page
    assert stage.spent == "ε = 1"
    with stage.hub.database.reading() as db:
        [view] = db.query(OwnerView).all()
    assert (view.kind, b"k-marginal" in view.wrapped) == ("comparison", False)
    [entry] = stage.entries("release.compare")
    assert (entry.kind, entry.object, entry.cost) == ("comparison", view.id, {})
    kinds = [each["kind"] for each in stage.get("/releases?kind=all", stage.owner).json()["releases"]]
    assert kinds == ["synthetic"], "a comparison is no release"
    assert stage.get(f"/releases/{view.id}", stage.owner).status_code == 404
    assert stage.get(f"/releases/{number}/download/comparison", stage.owner).status_code == 404
    clock.move(days=8)
    stage.house.awake(stage.owner)
    assert stage.owner.client.get(where).status_code == 404


def test_nobody_else_makes_it_or_sees_it(stage: Stage) -> None:
    number = stage.made(spend="1")
    assert "/comparison" not in stage.ana.client.get(f"/synthetic/{number}").text
    refused = compare(stage, number, stage.ana)
    assert (refused.status_code, Workers(stage.hub, 0).run_one()) == (403, False)
    assert compare(stage, number, stage.owner).status_code in (403, 404), "of an owner who was not shown it, either"
    stage.post(f"/releases/{number}/shares", {"email": "olga@example.org"})
    where = compared(stage, number)
    assert stage.owner.client.get(where).status_code == 200
    assert stage.ana.client.get(where).status_code == 404
    other = stage.house.person("owner", email="otto@example.org")
    assert other.client.get(where).status_code == 404
    assert [each.outcome for each in stage.entries("release.compare")] == ["denied", "done"]


def test_whose_data_set_it_is_no_more_sees_it_no_more(stage: Stage) -> None:
    where = compared(stage, stage.made(stage.owner, spend="1"))
    other = stage.house.person("owner", email="otto@example.org")
    with stage.hub.database.begin() as db:
        db.execute(update(DataSet).where(DataSet.id == stage.people.id).values(owner=other.id))
    assert stage.owner.client.get(where).status_code == 404
    assert other.client.get(where).status_code == 404


def test_a_failure_says_nothing_of_the_rows(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.errors import InvalidParameter
    from cloister.synth import SyntheticModel

    def fails(*_: Any) -> None:
        raise InvalidParameter("rows= is invalid", why="the person of row 17 is 93", instead="others")

    monkeypatch.setattr(SyntheticModel, "compare", fails)
    number = stage.made(stage.owner, spend="1")
    sent = compare(stage, number, stage.owner)
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{sent.headers['location'].rpartition('/')[2]}", stage.owner).text
    assert '"failed"' in told
    assert "17" not in stage.get(f"/jobs/{sent.headers['location'].rpartition('/')[2]}", stage.owner).json()["problem"]["detail"]
