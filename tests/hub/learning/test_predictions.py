"""Rows in, predictions out: formulas stay texts, what is not declared gets none, and nothing is spent."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import polars
import pytest
from click.testing import CliRunner

from cloister.cli.main import cli
from cloister.hub.services.learning.predicting import MOST_BYTES
from cloister.learn import load
from tests.hub.house import PEOPLE
from tests.hub.learning.conftest import MAY, Stage


def told(stage: Stage, number: str, text: str, **how: str) -> list[list[str]]:
    answer = stage.post(f"/models/{number}/predictions", {"csv": text, **how})
    assert answer.status_code == 200, answer.text
    return list(csv.reader(io.StringIO(answer.json()["csv"])))


def test_each_row_gets_what_the_model_says(stage: Stage):
    number = stage.learnt(spend="1", method="GaussianNB")
    spent = stage.spent
    rows = told(stage, number, "\ufeffname,pay,age\r\nAnn,10.5,30\r\nBob,20,40\r\n")
    assert rows[0] == ["name", "pay", "age", "prediction"]
    assert all(row[3] in ("F", "M") for row in rows[1:])
    assert [row[:3] for row in rows[1:]] == [["Ann", "10.5", "30"], ["Bob", "20", "40"]]
    assert stage.spent == spent
    model = stage.get(f"/models/{number}").json()["model"]
    from cloister.learn import load

    found = load(model)
    assert [row[3] for row in rows[1:]] == found.predict([[30, 10.5], [40, 20]]).tolist()


def test_what_cannot_be_read_gets_no_prediction_and_what_lies_outside_is_clipped(stage: Stage):
    """A cell is read as one of rows to learn from: blanks belong to a category, and 1e400 counts as the bound."""
    number = stage.learnt(method="LinearRegression", features=["age", "sex"], target="pay")
    rows = told(stage, number, "age,sex\n30,F\n,F\nold,F\n30,X\n999,F\n90,F\nnan,F\n1e400,F\n1_0,F\n٣,F\n30, F\n030.0,F\n")
    known = [row[2] != "" for row in rows[1:]]
    assert known == [True, False, False, False, True, True, False, True, False, False, False, True]
    assert rows[5][2] == rows[6][2] == rows[8][2]
    assert rows[1][2] == rows[12][2]


def test_numbers_of_a_spreadsheet_are_read_as_those_of_a_table(stage: Stage):
    number = stage.learnt(method="LinearRegression", features=["pay"], target="age")
    rows = told(stage, number, "pay;age\n10,5;x\n10.5;x\n")
    assert [row[0] for row in rows[1:]] == ["10,5", "10.5"]
    assert rows[1][2] == rows[2][2] != ""


def test_it_can_be_said_how_numbers_are_written_as_of_an_upload(stage: Stage):
    """A model of a file of 2.000 and 1.234,5 read 2.000 as 2."""
    number = stage.learnt(method="LinearRegression", features=["pay"], target="age")
    for how, like in (("", 3), ("comma", 2)):
        rows = told(stage, number, "pay;note\n2.000;a\n100;b\n2;c\n", numbers=how)
        assert rows[1][:2] == ["2.000", "a"]
        assert rows[1][2] == rows[like][2] != rows[5 - like][2]


MIXED = {
    "age": {"kind": "integer", "low": 0, "high": 90},
    "pay": {"kind": "real", "low": "0", "high": "9000"},
    "beds": {"kind": "integer", "low": 0, "high": 9000},
    "plan": {"kind": "category", "values": ["1", "01"]},
    "born": {"kind": "date", "low": "1900-01-01", "high": "2026-12-31"},
    "smoker": {"kind": "boolean"},
}
NASTY = """pay;beds;plan;born;smoker
1000.5;4;1;1984-02-03;true
1000.4;4.4;01;1984-02-03;false
1000,5;4,4;1;3.2.1984;YES
2.000;2.000;1;03.02.1984 10:00;0
1e999;-5;01;1700-01-01;f
1.2.2026;4;1;1984-02-03;1
yes;4;1;1984-02-03;1
1;1;1.0;1984-02-03;1
1;1;1;30.2.1984;1
1;1;1;12345;1
1;1;1;1984-02-03;2
1;1e3;1;;n
"""


def test_hub_command_and_library_say_the_same_of_every_cell(stage: Stage, tmp_path: Path):
    """What the columns were declared as is kept with the model: names of features do not tell."""
    rows = {"age": [30, 50], "pay": [10.0, 20.0], "beds": [1, 2000], "plan": ["1", "01"], "smoker": [True, False]}
    rows = {name: values * 20 for name, values in {**rows, "born": ["1984-02-03", "1999-02-03"]}.items()}
    table = stage.house.sample_data_set("mixed", owner=stage.owner, rows=rows, declaration={"columns": MIXED, "size": 40})
    stage.house.grant(table, stage.ana, by=stage.owner, actions=MAY)
    features = [name for name in MIXED if name != "age"]
    number = stage.learnt(table="mixed", method="LinearRegression", features=features, target="age", spend="0.5")
    hub = [float(row[-1] or "nan") for row in told(stage, number, NASTY)[1:]]
    assert [known == known for known in hub] == [True] * 5 + [False] * 7
    rows_file, model_file = tmp_path / "rows.csv", tmp_path / "model.json"
    rows_file.write_text(NASTY, encoding="utf-8")
    model_file.write_text(stage.get(f"/models/{number}").json()["model"], encoding="utf-8")
    command = CliRunner().invoke(cli, ["learn", "--predict", str(model_file), str(rows_file), "--json"])
    by_command = [math.nan if each is None else each for each in json.loads(command.stdout)["prediction"]]
    assert by_command == pytest.approx(hub, nan_ok=True)
    known = {"pay": [1000.5, 1000.4], "beds": [4.0, 4.4], "plan": ["1", "01"], "smoker": [True, False]}
    frame = polars.DataFrame({**known, "born": [date(1984, 2, 3)] * 2})
    assert load(model_file).predict(frame).tolist() == pytest.approx(hub[:2])


def test_a_spreadsheet_computes_nothing(stage: Stage):
    number = stage.learnt(features=["age"])
    rows = told(stage, number, 'age,=cmd,"+x"\n30,"=1+1",-3\n40,@SUM(A1),"\t=1"\n')
    assert rows[0] == ["age", "'=cmd", "'+x", "prediction"]
    assert rows[1][1:3] == ["'=1+1", "-3"]
    assert rows[2][1:3] == ["'@SUM(A1)", "'\t'=1"]


def test_a_column_named_prediction_is_kept(stage: Stage):
    assert told(stage, stage.learnt(features=["age"]), "age,prediction\n30,x\n")[0] == ["age", "prediction", "prediction_"]


def test_columns_whose_names_have_blanks_are_found(stage: Stage):
    """As a file wrote them, `age, pay`, and as people do."""
    rows = {"age": [30, 50] * 20, " pay": [10.0, 20.0] * 20}
    declared = {"columns": {"age": PEOPLE["columns"]["age"], " pay": PEOPLE["columns"]["pay"]}, "size": 40}
    table = stage.house.sample_data_set("spaced", owner=stage.owner, rows=rows, declaration=declared)
    stage.house.grant(table, stage.ana, by=stage.owner, actions=MAY)
    number = stage.learnt(table="spaced", method="LinearRegression", features=[" pay"], target="age")
    assert told(stage, number, " pay, age \n10,x\n")[0] == [" pay", "age", "prediction"]


def test_groups_and_directions_have_theirs(stage: Stage):
    groups = stage.learnt(method="KMeans", target="", parameters={"n_clusters": 2}, spend="0.2")
    assert {row[2] for row in told(stage, groups, "age,pay\n20,1\n80,99\n")[1:]} <= {"0", "1"}
    directions = stage.learnt(method="PCA", target="", parameters={"n_components": 2}, spend="0.2")
    for text in ("age,pay\n20,1\n,2\n", "age,pay\n,2\nold,3\n", "age,pay\n"):  # also where no row, or none of them, has any
        assert told(stage, directions, text)[0][2:] == ["component_1", "component_2"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("pay\n1\n", 422),
        ("age,age\n1,2\n", 422),
        ("age, age\n1,2\n", 422),
        ("age\n1,2\n", 422),
        ('age\n"1\n', 422),
        ("age\n" + "1\n" * 100_001, 422),
        ("\n", 422),
    ],
    ids=["not a feature", "twice", "twice but for a blank", "ragged", "open quote", "long", "empty"],
)
def test_what_is_no_table_is_refused(stage: Stage, text: str, status: int):
    number = stage.learnt(features=["age"])
    answer = stage.post(f"/models/{number}/predictions", {"csv": text})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("by", [";", "\t", "|"])
def test_fields_may_be_divided_otherwise(stage: Stage, by: str):
    rows = told(stage, stage.learnt(features=["age"]), f'"name, first"{by}age\nAnn{by}30\n')
    assert rows[0] == ["name, first", "age", "prediction"]
    assert rows[1][2] != ""


def test_no_rows_are_no_predictions(stage: Stage):
    assert told(stage, stage.learnt(features=["age"]), "age\n") == [["age", "prediction"]]


def test_the_page_takes_a_file_and_gives_one(stage: Stage):
    number = stage.learnt(features=["age"])
    client = stage.ana.client
    token = {"form_token": stage.ana.csrf()["X-CSRF-Token"]}

    def sent(content: Any, fields: dict[str, str]) -> Any:
        return client.post(f"/models/{number}/predictions", data=fields, files={"file": ("rows.csv", content, "text/csv")})

    answer = sent(b"age\n30\n", token)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="predictions-{number}.csv"'
    assert answer.text.splitlines()[0] == "age,prediction"
    said = sent(b"age;x\n3.0;1\n", {**token, "numbers": "comma", "dates": "mdy"})
    assert said.text.splitlines()[1].startswith("3.0,1,")
    assert sent(b"age\n30\n", {"form_token": "forged"}).status_code == 403
    assert sent(b"pay\n30\n", token).status_code == 422
    assert sent(b"age\n\xff\n", token).status_code == 422
    assert sent(b"age\n" + b"1\n" * (MOST_BYTES // 2), token).status_code == 422


def test_a_count_is_foretold_within_its_bound(stage: Stage):
    number = stage.learnt(method="PoissonRegressor", features=["pay", "sex"], target="age", spend="0.5", held_out="0.2")
    rows = told(stage, number, "pay,sex\n10,F\n90,M\n1e400,F\n")[1:]
    assert all(0 < float(row[2]) <= 90 for row in rows[:2])
    assert 0 < float(rows[2][2]) <= 90, "beyond every double it is the bound, as in rows to learn from"
    page = stage.ana.client.get(f"/models/{number}").text
    assert "Coefficients" in page
    assert "R²" in page
    assert "泊松回归" in stage.ana.client.get("/learn", headers={"accept-language": "zh"}).text
