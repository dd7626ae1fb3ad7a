"""Models of a survey in the hub: learnt from its reports by a job at no cost, kept, shown, used; and to whom they are missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from cloister.hub.platform.jobs import Workers
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.surveys.counting import receive_all
from cloister.hub.web.render import LANGUAGE_COOKIE
from cloister.local.survey import Survey, respond
from cloister.local.survey.models import Answers, Chances, Line, model_from_json
from cloister.noise import Random
from tests.hub.house import Clock, House, Visitor, served
from tests.hub.surveys.conftest import COPIED, Field

YEAR = {"kind": "choice", "name": "year", "text": "Which year?", "options": ["first", "<third>"], "no_answer": False}
HOURS = {"kind": "number", "name": "hours", "text": "Hours a week?", "low": "0", "high": "40", "no_answer": False}
ORDER = {"method": "naive-bayes", "target": "copied", "features": ["year"], "title": "Who copies"}


def filled(field: Field, n: int = 1200) -> str:
    """An open survey: third years copy nine times in ten and study 30 hours, first years one time in ten and 10 hours."""
    number = field.opened(questions=[COPIED, YEAR, HOURS], cap="9")
    survey, draw, chance = field.survey(number), np.random.default_rng(1), Random.deterministic(1)
    people = [
        {
            "copied": bool(draw.random() < (0.9 if at % 2 else 0.1)),
            "year": ["first", "<third>"][at % 2],
            "hours": 10.0 + 20 * (at % 2),
        }
        for at in range(n)
    ]
    receive_all(field.hub, number, [respond(survey, each, "open", random=chance).to_dict() for each in people])
    return number


def learnt(field: Field, number: str, **changed: Any) -> str:
    """The id of a model that was trained by the API."""
    answer = field.ask("POST", f"/{number}/models", {**ORDER, **changed})
    assert answer.status_code == 202, answer.text
    assert Workers(field.hub, 0).run_one()
    told = field.house.client().get(f"/api/v1/jobs/{answer.json()['job']}", headers=field.ana.bearer).json()
    assert told["state"] == "done", told
    found: str = told["result"]["survey_model"]
    return found


def api(field: Field, method: str, path: str, body: Any = None, who: Any = None) -> Any:
    return field.house.client().request(method, f"/api/v1{path}", json=body, headers=(who or field.ana).bearer)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path) -> tuple[Path, Visitor, str]:
    """The folder of a hub with a survey that 1,200 people have answered, whose it is, and its id."""
    folder = tmp_path_factory.mktemp("answered") / "hub"
    shutil.copytree(empty_hub, folder)
    house = House(folder, Clock())
    made = Field(house, house.person("analyst", email="ana@example.org", name="Ana Analyst"))
    number = filled(made)
    house.close()
    return folder, made.ana, number


@pytest.fixture
def number(answered: tuple[Path, Visitor, str]) -> str:
    return answered[2]


@pytest.fixture
def field(answered: tuple[Path, Visitor, str], tmp_path: Path, clock: Clock) -> Iterator[Field]:
    """A copy of it."""
    shutil.copytree(answered[0], tmp_path / "hub")
    house = House(tmp_path / "hub", clock)
    yield Field(house, house.again(answered[1]))
    house.close()


@pytest.fixture
def bea(field: Field) -> Any:
    return field.house.person("analyst", email="bea@example.org", name="Bea Reader")


def test_a_model_by_the_api_is_that_of_the_library(field: Field, number: str) -> None:
    model = learnt(field, number)
    told = api(field, "GET", f"/survey-models/{model}").json()
    assert (told["survey"], told["target"], told["features"], told["n"], told["cap"]) == (number, "copied", ["year"], 1200, "9")
    assert told["levels"] == [["careful", "1"], ["open", "3"]]
    found = model_from_json(told["model"])
    file = field.ask("GET", f"/{number}/reports").json()
    mine = Answers(Survey.from_dict(file["survey"]), file["reports"]).naive_bayes("copied", ["year"])
    assert found.to_json() == mine.to_json()
    assert field.house.client().get(f"/api/v1/survey-models/{model}/download", headers=field.ana.bearer).text == mine.to_json()
    said = api(field, "POST", f"/survey-models/{model}/predictions", {"answers": [{"year": "first"}, {"year": "<third>"}, {}]})
    assert said.json()["predictions"][:2] == ["no", "yes"]
    assert learnt(field, number) == model, "of the same reports it is the same model"
    with field.hub.database.reading() as db:
        lines = db.scalars(select(AuditLine).where(AuditLine.kind == "survey-model"))
        assert [line.action for line in lines if line.object == model][:1] == ["release.derive"]
    assert not list(field.hub.ledger.populations()), "nothing is charged to anyone"


def test_a_line_by_the_api(field: Field, number: str) -> None:
    model = learnt(field, number, method="regression", target="hours", title="Hours")
    line = model_from_json(api(field, "GET", f"/survey-models/{model}").json()["model"])
    assert isinstance(line, Line)
    apart = line.added["year"]["<third>"] - line.added["year"]["first"]
    assert abs(apart - 20) < 5
    page = field.ana.client.get(f"/survey-models/{model}").text
    assert f"{line.added['year']['first']:+.3g} ± {line.margins['year']['first']:.2g}" in page
    assert "&lt;third&gt;" in page
    assert [each["title"] for each in api(field, "GET", "/survey-models").json()["models"]] == ["Hours"]


def test_a_model_by_its_pages(field: Field, number: str) -> None:
    assert f"/surveys/{number}/models" in field.ana.client.get(f"/surveys/{number}").text
    form = field.ana.client.get(f"/surveys/{number}/models").text
    assert "costs respondents nothing more" in form
    assert "There are 1,200 reports" in form
    refused = field.post(f"/surveys/{number}/models", {"method": "naive-bayes", "target": "copied", "key": "a"})
    assert (refused.status_code, "features" in refused.text) == (422, True)
    sent = [field.post(f"/surveys/{number}/models", {**ORDER, "key": "b"}).headers["location"] for _ in range(2)]
    assert sent[0] == sent[1], "a form that is sent twice orders once"
    assert Workers(field.hub, 0).run_one()
    (line,) = api(field, "GET", "/survey-models").json()["models"]
    page = field.ana.client.get(f"/survey-models/{line['id']}").text
    assert "Who copies" in page
    assert "</a> ≤ 9<" in page
    assert "percentage points" in page
    assert "Who copies" in field.ana.client.get("/survey-models").text
    told = field.post(f"/survey-models/{line['id']}/predictions", {"q year": "<third>"})
    assert (told.status_code, 'id="foretold">yes<' in told.text) == (200, True)
    odd = field.post(f"/survey-models/{line['id']}/predictions", {"q year": "fourth"})
    assert (odd.status_code, "fourth" in odd.text) == (422, False)


def test_its_pages_in_chinese(field: Field) -> None:
    """What a researcher wrote stays as it is; yes, no and everything of the hub is said in Chinese."""
    number = filled(field, 100)
    model = learnt(field, number)
    field.ana.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    form = field.ana.client.get(f"/surveys/{number}/models").text
    assert "用问卷训练模型" in form
    assert "共有 100 份答卷。" in form
    page = field.ana.client.get(f"/survey-models/{model}").text
    assert "不增加任何消耗，也不扣减预算" in page
    assert '<th scope="col" class="n">是</th>' in page
    assert "Which year?" in page
    assert not any(word in page for word in ("Predict<", "Guarantee", "Reports", "Survey<"))


def test_what_cannot_be_learnt_is_refused_before_a_job(field: Field) -> None:
    number = filled(field, 20)
    for changed, status, said in (
        ({}, 422, "20 of at least 30"),
        ({"target": "hours"}, 422, "predicted"),
        ({"target": "none"}, 422, "predicted"),
        ({"features": ["copied"]}, 422, "features"),
        ({"features": ["hours"]}, 422, "features"),
        ({"features": []}, 422, ""),
        ({"method": "forest"}, 422, ""),
        ({"spend": "1"}, 422, ""),
    ):
        answer = field.ask("POST", f"/{number}/models", {**ORDER, **changed})
        assert (answer.status_code, said in answer.json()["detail"] or said in answer.text) == (status, True), answer.text
    assert not Workers(field.hub, 0).run_one()
    draft = field.draft()
    assert field.ask("POST", f"/{draft}/models", ORDER).status_code == 409


def test_a_model_is_its_makers_until_it_is_shown(field: Field, number: str, bea: Any) -> None:
    model = learnt(field, number)
    assert field.ask("POST", f"/{number}/models", ORDER, who=bea).status_code == 404
    assert bea.client.get(f"/surveys/{number}/models").status_code == 404
    assert bea.client.get(f"/survey-models/{model}").status_code == 404
    body = {"answers": [{"year": "first"}]}
    assert api(field, "POST", f"/survey-models/{model}/predictions", body, bea).status_code == 404
    shown = api(field, "POST", f"/releases/{model}/shares", {"email": "bea@example.org"})
    assert shown.status_code == 200, shown.text
    page = bea.client.get(f"/survey-models/{model}")
    assert (page.status_code, f"/surveys/{number}/models" in page.text) == (200, False)
    assert api(field, "POST", f"/survey-models/{model}/predictions", body, bea).json() == {"predictions": ["no"]}
    api(field, "POST", f"/releases/{model}/shares/withdraw", {"email": "bea@example.org"})
    assert bea.client.get(f"/survey-models/{model}").status_code == 404


def test_a_client_learns_one(field: Field, number: str) -> None:
    import cloister as cl

    workers = Workers(field.hub, 1)
    workers.start()
    try:
        with served(field.hub) as url, cl.connect(url, token=field.ana.token) as session:
            model = session.fit_survey(f"{url}/surveys/{number}", "copied", ["year"])
            assert isinstance(model, Chances)
            assert model.predict([{"year": "<third>"}]) == ["yes"]
            with pytest.raises(cl.CloisterError, match="predicted"):
                session.fit_survey(number, "nothing", ["year"])
    finally:
        workers.stop()
    assert json.loads(model.to_json())["n"] == 1200
