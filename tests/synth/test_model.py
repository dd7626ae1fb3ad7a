"""A model's rows have the table's columns, types, missing values, dates and categories; a model survives its file."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.synth import SyntheticModel
from tests.synth.conftest import COLUMNS, ROWS, rows


def test_the_columns_of_the_table_come_back_with_their_types(sure: SyntheticModel) -> None:
    frame = sure.sample(2000, random=Random.deterministic(4))
    assert frame.column_names == list(COLUMNS)
    kinds = {name: series.kind for name, series in frame.columns.items()}
    assert kinds == {
        "age": "integer", "pay": "real", "sex": "text", "ward": "integer",
        "born": "date", "smoker": "boolean", "member": "boolean",
    }  # fmt: skip
    values = frame.to_pydict()
    types = {name: {type(value) for value in values[name]} for name in values}
    assert types == {
        "age": {int}, "pay": {float, type(None)}, "sex": {str}, "ward": {int, type(None)},
        "born": {datetime.date, type(None)}, "smoker": {bool, type(None)}, "member": {bool},
    }  # fmt: skip
    assert all(value is None or (value * 2 == int(value * 2) and 0 <= value <= 50_000) for value in values["pay"])


def test_the_types_don_t_follow_from_the_rows_drawn(sure: SyntheticModel) -> None:
    """Promise 1: a nullable column is one of objects, whether a value is missing among these rows or not."""
    frame = sure.sample(50, given={"ward": [3, 8], "born": ("1960-01-01", "1990-01-01")})
    assert frame["ward"].dtype == frame["born"].dtype == object
    assert sure.sample(0)["age"].dtype == np.int64


def test_missing_values_are_as_many_as_in_the_table(sure: SyntheticModel) -> None:
    real, made = rows(), sure.sample(random=Random.deterministic(5)).to_pydict()
    assert len(made["age"]) == pytest.approx(ROWS, abs=6)
    for name in COLUMNS:
        assert sum(value is None for value in made[name]) == pytest.approx(sum(value is None for value in real[name]), abs=12)


def test_dependences_come_back(sure: SyntheticModel) -> None:
    """Smokers have no pay, and ward 8 is that of men."""
    made = sure.sample(20_000, random=Random.deterministic(6)).to_pydict()
    paid = [pay is not None for pay, smoker in zip(made["pay"], made["smoker"], strict=True) if smoker]
    assert np.mean(paid) < 0.05
    women = [sex == "F" for sex, ward in zip(made["sex"], made["ward"], strict=True) if ward == 8]
    assert np.mean(women) < 0.05


def test_rows_are_drawn_under_conditions(sure: SyntheticModel) -> None:
    given = {"age": (20, 22), "smoker": [True, None], "ward": 8}
    made = sure.sample(500, given=given, random=Random.deterministic(8)).to_pydict()
    assert set(made["age"]) == {20, 21, 22}
    assert set(made["smoker"]) <= {True, None}
    assert set(made["ward"]) == {8}
    assert np.mean([sex == "M" for sex in made["sex"]]) > 0.9
    real = rows()
    expected = sum(smoker is True for smoker in real["smoker"])
    assert len(sure.sample(given={"smoker": True})) == pytest.approx(expected, abs=10)


def test_the_same_generator_draws_the_same_rows(sure: SyntheticModel) -> None:
    one, other = (sure.sample(100, random=Random.deterministic(7)).to_pydict() for _ in range(2))
    assert one == other != sure.sample(100).to_pydict()


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ({"n": 10**9}, cl.InvalidParameter, "at most 20,000,000 rows are drawn at once"),
        ({"n": -1}, cl.InvalidParameter, "whole number of rows"),
        ({"n": 1.5}, cl.InvalidParameter, "whole number of rows"),
        ({"given": {"height": 3}}, cl.UnknownColumn, "'height' is unknown"),
        ({"given": {"age": 99}}, cl.InvalidParameter, "declares no such value"),
        ({"given": {"age": 30.5}}, cl.InvalidParameter, "declares no such value"),
        ({"given": {"age": (30, "40.5")}}, cl.InvalidParameter, "declares no such value"),
        ({"given": {"age": 10**400}}, cl.InvalidParameter, "declares no such value"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sure: SyntheticModel, asked: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        sure.sample(**asked)


def test_a_model_survives_its_file(sure: SyntheticModel, tmp_path: Path) -> None:
    sure.save(tmp_path / "model.json")
    (tmp_path / "marked.json").write_bytes("\ufeff".encode() + (tmp_path / "model.json").read_bytes())  # as an editor saves it
    assert cl.synth.load(tmp_path / "marked.json").to_json() == cl.synth.load(tmp_path / "model.json").to_json()
    back = cl.synth.load(tmp_path / "model.json")
    assert str(back) == str(sure)
    assert (back.cost, back.charges, back.marked) == (sure.cost, sure.charges, True)
    one, other = (
        each.sample(300, random=Random.deterministic(3)).to_pydict() for each in (back, cl.synth.load(tmp_path / "model.json"))
    )
    assert one == other
    np.testing.assert_allclose(back.mixture.marginal((0, 2)), sure.mixture.marginal((0, 2)), atol=1e-7)
    again = json.loads(back.to_json())
    assert again == json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))


def test_bins_of_ones_own_survive_the_file(tmp_path: Path) -> None:
    columns = {"pay": cl.Real(0, 10, step="0.5"), "born": cl.Date("2000-01-01", "2000-12-31")}
    table = cl.PrivateTable({"pay": [1.0] * 50, "born": ["2000-05-05"] * 50}, columns)
    chosen = [cl.Binned("pay", [0, "2.5", 10]), cl.Binned("born", ["2000-01-01", "2000-07-01", "2000-12-31"])]
    with cl.Session({"t": table}, budget=cl.PureDP(10**9)) as session:
        model = cl.synth.fit(session, "t", spend=10**8, columns=chosen)
    model.save(tmp_path / "model.json")
    back = cl.synth.load(tmp_path / "model.json")
    assert [each.starts.tolist() for each in back.columns] == [each.starts.tolist() for each in model.columns]
    assert set(back.sample(50)["pay"]) <= {0.0, 0.5, 1.0, 1.5, 2.0}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 99}, "format is 99"),
        ({"kind": "recipe"}, "not a synthetic model"),
        ({"method": "os.system"}, "'os.system' is unknown"),
        ({"weights": [0.5, 0.5]}, "not probabilities"),
        ({"weights": []}, "not probabilities|belong together"),
        ({"columns": []}, "belong together"),
        ({"rows": "many"}, "not a model that this library wrote"),
        ({"cost": {"kind": "free"}}, "unknown kind"),
        ({"probabilities": None}, "not a model that this library wrote"),
    ],
)
def test_a_file_that_is_no_model_is_refused(sure: SyntheticModel, tmp_path: Path, change: dict[str, Any], why: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(sure.to_json()), **change}), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match=why):
        cl.synth.load(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"round": -1}, "of no round"),
        ({"round": 1_000}, "of no round"),
        ({"round": 1}, "of one column is missing"),
        ({"variance": 1e300}, "holds no numbers"),
        ({"variance": -1.0}, "holds no numbers"),
        ({"columns": [0, 0]}, "names no columns"),
    ],
    ids=str,
)
def test_a_file_with_other_measured_tables_is_refused(
    sure: SyntheticModel, tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    path, written = tmp_path / "model.json", json.loads(sure.to_json())
    written["measured"][0] |= change
    path.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match=why):
        cl.synth.load(path)


def test_rules_in_a_format_that_has_none_are_refused(sure: SyntheticModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(sure.to_json()), "format": 1, "rules": ["age > 3"]}), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match="format 1 has no rules"):
        cl.synth.load(path)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format": 1, "kind": "synthetic model"}', "\x80"])
def test_neither_is_any_other_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(cl.InvalidParameter, match="The model"):
        cl.synth.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cl.InvalidParameter, match="can be read"):
        cl.synth.load(tmp_path / "none.json")


def test_what_would_be_enough_to_tell_the_number_of_rows_is_said(people: cl.PrivateTable) -> None:
    """The ε of the refusal tells 1,000 rows: at four deviations of noise, of which two are left over (a miss has 6e-5, and the
    seed is fixed)."""
    held, columns = {"age": [3] * 1000, "sex": ["f", "m"] * 500}, {"age": cl.Integer(0, 99), "sex": cl.Category(["f", "m"])}
    model = cl.synth.fit_frame(held, columns, epsilon="0.0001", random=Random.deterministic(5))
    with pytest.raises(cl.InvalidParameter, match="tell 1,000 rows") as refused:
        model.sample()
    found = re.search(r"ε = ([0-9.]+) would be enough", str(refused.value))
    assert found is not None
    enough = cl.synth.fit_frame(held, columns, epsilon=found[1], random=Random.deterministic(6))
    assert len(enough.sample()) > 0
    assert 3 <= 1000 / enough.rows_error <= 6
