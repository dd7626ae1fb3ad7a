"""Questions as jobs: submitted, answered by a worker, begun again after a crash, and charged once."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cloister.hub.platform.jobs import Stopped, Workers
from cloister.hub.services.asking import answering as later
from cloister.hub.services.asking import answering as way
from tests.hub.asking.conftest import BY_SEX, Stage

BODY = {"sql": BY_SEX, "spend": "0.25"}


class Died(BaseException):
    """The process ends, as by kill -9."""


def submitted(stage: Stage, **headers: str) -> str:
    answer = stage.post("/questions", BODY, Prefer="respond-async", **headers)
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    assert answer.headers["location"] == f"/api/v1/jobs/{job}"
    assert answer.headers["preference-applied"] == "respond-async"
    return job


def test_a_job_answers_and_names_the_release(stage: Stage):
    job = submitted(stage)
    assert stage.charges == []
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert told["state"] == "done", told
    release = stage.get(f"/releases/{told['result']['release']}")
    assert release.status_code == 200
    assert release.json()["sql"] == BY_SEX
    assert told["result"]["href"] == f"/releases/{told['result']['release']}"
    assert stage.spent == "ε = 0.25"


def test_the_same_key_submits_one_job(stage: Stage):
    key = {"Idempotency-Key": "one"}
    assert submitted(stage, **key) == submitted(stage, **key)
    assert len(stage.get("/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize("place", ["charged and not kept", "kept and not told", "not begun"])
def test_a_worker_that_died_leaves_one_charge_and_one_release(stage: Stage, monkeypatch: pytest.MonkeyPatch, place: str):
    job = submitted(stage)

    def dies(*how: Any, **more: Any) -> Any:
        raise Died

    target: tuple[Any, str] = {
        "charged and not kept": (way, "_keep"),
        "kept and not told": (later, "json"),
        "not begun": (way, "ready"),
    }[place]
    with monkeypatch.context() as here:
        dead = (
            SimpleNamespace(loads=dies, dumps=json.dumps) if target[1] == "json" else dies
        )  # of this module alone: the database reads JSON, too
        here.setattr(*target, dead)
        with pytest.raises(Died):
            Workers(stage.hub, 0).run_one()
    stage.house.clock.move(seconds=timedelta(seconds=61).total_seconds())
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["attempts"]) == ("done", 2), told
    assert [each["id"] for each in stage.get("/releases").json()["releases"]] == [told["result"]["release"]]
    assert len(stage.charges) == 1
    assert stage.spent == "ε = 0.25"


def test_a_right_that_was_taken_away_in_between_counts(stage: Stage):
    job = submitted(stage)
    with stage.hub.database.begin() as db:
        from cloister.hub.generation import bump
        from cloister.hub.records.access import Grant

        for grant in db.query(Grant).all():
            grant.revoked = stage.hub.now()
        bump(db)
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["problem"]["code"]) == ("failed", "unknown-table")
    assert stage.charges == []


def test_a_job_that_is_stopped_before_its_charge_costs_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    submitted(stage)
    told: list[str] = []

    class Stopping:
        job, who = "j", stage.ana.id

        def tell(self, stage: str, share: float | None = None) -> None:
            told.append(stage)

        def stopped(self) -> bool:
            return True

    payload = {"wish": later.WISH.told(later.QuestionRequest(sql=BY_SEX, spend="0.25")), "came": _came()}
    with pytest.raises(Stopped):
        later.QUESTION.run(stage.hub, payload, Stopping())  # type: ignore[arg-type]
    assert stage.charges == []
    assert told == []


def _came() -> dict[str, Any]:
    return {"address": "", "second_factor": False, "via": "session", "scopes": None}
