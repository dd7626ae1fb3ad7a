"""What is made of synthetic tables for nothing: pools of two populations, models, files; and what a table is for."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest
from sqlalchemy import select

from cloister.errors import InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases import rows as row_files
from cloister.hub.services.synthesising import tables
from cloister.hub.services.synthesising.order import Synthesis
from cloister.synth import SyntheticModel
from tests.hub.synthesising.conftest import MAY, Stage


def two(stage: Stage, second: str = "clinic") -> list[str]:
    """The ids of two tables, of two populations."""
    other = stage.house.sample_data_set(second, owner=stage.owner)
    stage.house.grant(other, stage.ana, by=stage.owner, actions=MAY)
    return [stage.made(columns=["age", "sex"], spend="1"), stage.made(table=second, columns=["age", "sex"], spend="0.5")]


def test_two_populations_are_pooled_for_nothing(stage: Stage):
    ids = two(stage)
    answer = stage.post("/releases/pool", {"releases": ids, "table": "patients", "title": "Both"})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["title"], told["kind"], told["cost"]) == ("Both", "synthetic", {"people": "ε = 1", "clinic": "ε = 0.5"})
    model = SyntheticModel.from_json(stage.get(f"/releases/{told['id']}/download/json").text)
    assert (model.method, model.table, str(model.cost)) == ("pooled", "patients", "ε = 1")
    assert stage.post("/releases/pool", {"releases": ids, "table": "patients"}).json()["id"] == told["id"], "made once"
    page = stage.ana.client.get(f"/synthetic/{told['id']}").text
    assert "patients_synthetic_" in page
    assert "has the sum of their costs" in page
    assert "Compare" not in page
    name = page[page.index("patients_synthetic_") :][:27]
    found = stage.post("/releases/answer", {"sql": f"SELECT COUNT(*) AS n FROM {name} WHERE sex = 'F'"}).json()["columns"]
    assert found["n_kind"] == ["measured"]
    assert found["n_low"][0] < 400 < found["n_high"][0] + 100, "200 women in each; far off with less than 1e-6"
    assert (stage.spent, str(stage.hub.ledger.spent("clinic"))) == ("ε = 1", "ε = 0.5")
    [entry] = stage.entries("release.derive")
    assert (entry.object, entry.details["of"]) == (told["id"], ids)


def test_what_cannot_be_pooled_says_why(stage: Stage):
    [one, other] = two(stage)
    twice = stage.made(columns=["age", "sex"], spend="0.25")
    bea = stage.house.person("analyst", email="bea@example.org")
    for ids, status, said in (
        ([one, twice], 422, "of the population"),
        ([one, one], 422, "different ones"),
        ([one, "none"], 404, "There is no such"),
        ([one, stage.made(table="clinic", columns=["age"], spend="0.25")], 422, "has the columns"),
        ([one, stage.made(table="clinic", columns=["age", "sex"], spend="0.5", purpose="research")], 422, "different purposes"),
    ):
        refused = stage.post("/releases/pool", {"releases": ids})
        assert (refused.status_code, said in refused.text) == (status, True), refused.text
    form = {"releases": [one, twice], "table": "both", "form_token": stage.ana.csrf()["X-CSRF-Token"]}
    assert "of the population" in stage.ana.client.post("/synthetic/pool", data=form).text
    assert stage.post("/releases/pool", {"releases": [one, other]}, bea).status_code == 404
    stage.post(f"/releases/{one}/shares", {"email": "bea@example.org"})
    stage.post(f"/releases/{other}/shares", {"email": "bea@example.org"})
    assert stage.post("/releases/pool", {"releases": [one, other]}, bea).status_code == 403, "to look is not to take"


@pytest.mark.parametrize(
    ("policy", "said"), [({"combinable_with": []}, "may not be combined"), ({"prohibitions": ["learn.run"]}, "")]
)
def test_the_policies_of_its_data_bind_what_is_made_of_it(stage: Stage, policy: dict[str, list[str]], said: str):
    with stage.hub.database.begin() as db:
        db.get_one(DataSet, stage.people.id).metadata_ = {"policy": policy}
        bump(db)
    ids = two(stage)
    pooled = stage.post("/releases/pool", {"releases": ids})
    assert (pooled.status_code, said in pooled.text) == (403 if said else 201, True), pooled.text
    page = stage.ana.client.get(f"/synthetic/{ids[0]}").text
    name = page[page.index("people_synthetic_") :][:25]
    stage.house.grant(stage.people, stage.ana, by=stage.owner, actions=("learn.run",))
    learnt = stage.post("/models/released", {"table": name, "method": "GaussianNB", "features": ["age"], "target": "sex"})
    assert learnt.status_code == (202 if said else 403), learnt.text


def test_a_model_learns_from_a_table_for_nothing(stage: Stage):
    number = stage.made(columns=["age", "sex"], spend="1")
    page = stage.ana.client.get(f"/synthetic/{number}").text
    name = page[page.index("people_synthetic_") :][:25]
    stage.house.grant(stage.people, stage.ana, by=stage.owner, actions=("learn.run",))
    order = {"table": name, "method": "GaussianNB", "features": ["age"], "target": "sex"}
    job = stage.post("/models/released", order).json()["job"]
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert told["state"] == "done", told
    model = stage.get(f"/models/{told['result']['model']}").json()
    assert (model["cost"], json.loads(model["model"])["guarantee"]) == ({"people": "ε = 1"}, {"kind": "pure", "epsilon": "1"})
    lines = stage.post(f"/models/{told['result']['model']}/predictions", {"csv": "age\n40\n30\n"}).json()["csv"].split()
    assert [line.partition(",")[0] for line in lines] == ["age", "40", "30"]
    assert {line[-1] for line in lines[1:]} <= {"F", "M"}, "which one is chance: the table is noisy"
    assert stage.spent == "ε = 1"
    for changed, status in (({"table": "people"}, 404), ({"features": ["pay"]}, 422), ({"target": "age"}, 422)):
        assert stage.post("/models/released", {**order, **changed}).status_code == status
    bea = stage.house.person("analyst", email="bea@example.org")
    assert stage.post("/models/released", order, bea).status_code in (403, 404)


def sheets(content: bytes) -> list[str]:
    """The rows of a workbook, and where they come from."""
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        return [parts.read(f"xl/worksheets/sheet{place}.xml").decode() for place in (1, 2)]


def test_rows_leave_as_a_workbook(stage: Stage):
    number = stage.made(spend="1", title="=1+1")
    file = stage.get(f"/releases/{number}/download/xlsx")
    assert file.headers["content-disposition"] == f'attachment; filename="synthetic-{number}.xlsx"'
    rows, facts = sheets(file.content)
    assert ('<row r="250">' in rows, "<f>" in rows + facts, "ε = 1" in facts) == (True, False, True)
    assert "of about" not in facts, "all rows are in it"


def test_a_workbook_that_is_cut_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    number = stage.made(columns=["age", "sex"], spend="1")
    for module in (row_files, tables):
        monkeypatch.setattr(module, "MOST_CELLS", 24)
    rows, facts = sheets(stage.get(f"/releases/{number}/download/xlsx").content)
    assert ('<row r="13">' in rows, '<row r="14">' in rows) == (True, False)
    assert re.search("12 of about [1-9][0-9]{2}; the model draws more", facts), facts
    assert "at most 2,500,000, a workbook 12." in stage.ana.client.get(f"/synthetic/{number}").text


@pytest.mark.parametrize(
    ("how", "method"),
    [({"use": "software"}, "independent"), ({"use": "model", "target": "sex"}, "pairs")],
)
def test_what_it_is_for_says_what_is_measured(stage: Stage, how: dict[str, str], method: str):
    columns = ["age", "sex", "pay"]
    priced = stage.post("/synthetic-tables/price", {"table": "people", "columns": columns, "spend": "0.5", **how})
    errors = priced.json()["errors"]
    number = stage.made(columns=columns, spend="0.5", **how)
    with stage.hub.database.reading() as db:
        row = db.scalar(select(StoredRelease).where(StoredRelease.id == number))
    assert row is not None
    model = SyntheticModel.from_json(json.loads(row.body)["model"])
    assert (model.method, errors[0]["two"] is None) == (method, method == "independent")
    assert (errors[0]["three"] is not None) == ("target" in how)


def test_a_use_that_is_not_known_is_invalid():
    for how in ({"use": "else"}, {"use": "model"}, {"target": "a"}, {"use": "model", "target": "a", "method": "mst"}):
        with pytest.raises(InvalidParameter):
            Synthesis(table="t", columns=("a", "b"), spend="1", **how)
