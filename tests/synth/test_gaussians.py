"""A noisy Gaussian for each public group: draws follow the rows, stay where they may be, and cost what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Door
from cloister.synth import GaussianModel, fit_gaussians

COLUMNS = {
    "ill": cl.Category(["no", "yes"]),
    "age": cl.Integer(0, 100),
    "weight": cl.Real(40, 120, step="0.5"),
    "pulse": cl.Integer(40, 140),
}


def rows(n: int = 5000) -> dict[str, Any]:
    """The ill are older and have a faster pulse; weight goes with age."""
    drawn = np.random.default_rng(11)
    ill = drawn.random(n) < 0.3
    age = np.clip(drawn.normal(40 + 25 * ill, 10), 0, 100).astype(int)
    weight = np.clip(np.round(2 * (60 + 0.4 * age + drawn.normal(0, 6, n))) / 2, 40, 120)
    pulse = np.clip(drawn.normal(70 + 15 * ill, 8), 40, 140).astype(int)
    return {"ill": np.where(ill, "yes", "no"), "age": age, "weight": weight, "pulse": pulse}


def fit(held: dict[str, Any], spend: Any = 5, seed: int = 3, columns: Any = COLUMNS, **how: Any) -> GaussianModel:
    table = cl.PrivateTable(held, columns, population="people", row_is_person=True)
    with Door({"people": table}, budget=cl.PureDP(50), random=Random.deterministic(seed)) as door:
        model = fit_gaussians(door, "people", **{"spend": spend, "by": ["ill"], **how})
        assert door.spent == cl.PureDP(spend) == model.cost
        assert len(door.ledger.charges("people")) == 1
    return model


def test_draws_follow_the_rows() -> None:
    held = rows()
    made = fit(held).sample(20_000, random=Random.deterministic(4)).to_pydict()
    for ill in ("yes", "no"):
        for name, near in (("age", 1.0), ("weight", 1.0), ("pulse", 1.0)):
            real, drawn = (np.mean(np.array(each[name], float)[np.array(each["ill"]) == ill]) for each in (held, made))
            assert drawn == pytest.approx(real, abs=near), (ill, name)
    real, drawn = (np.corrcoef(each["age"], np.array(each["weight"], float))[0, 1] for each in (held, made))
    assert drawn == pytest.approx(real, abs=0.08)
    assert np.mean(np.array(made["ill"]) == "yes") == pytest.approx(np.mean(held["ill"] == "yes"), abs=0.02)


def test_a_classifier_of_drawn_rows_serves_the_real_ones() -> None:
    from sklearn.linear_model import LogisticRegression

    held, names = rows(), ["age", "weight", "pulse"]
    made = fit(held, spend="0.5").sample(5000, random=Random.deterministic(4)).to_pydict()
    learner = LogisticRegression(max_iter=1000).fit(np.column_stack([made[name] for name in names]), made["ill"])
    right = learner.score(np.column_stack([held[name] for name in names]), held["ill"])
    assert right > 0.85 > np.mean(held["ill"] == "no") + 0.1


def test_draws_are_declared_values() -> None:
    made = fit(rows(200), spend="0.3").sample(3000, random=Random.deterministic(5)).to_pydict()
    assert list(made) == ["ill", "age", "weight", "pulse"]
    assert set(made["ill"]) <= {"yes", "no"}
    assert all(type(each) is int and 0 <= each <= 100 for each in made["age"])
    assert all(40 <= each <= 120 and (2 * each).is_integer() for each in made["weight"])


def test_groups_may_be_bins_and_several_columns() -> None:
    held, bins = rows(), cl.Binned("age", [0, 30, 60, 100])
    model = fit(held, by=["ill", bins], columns=COLUMNS, spend=10)
    assert len(model.counts) == 6
    made = model.sample(10_000, random=Random.deterministic(6)).to_pydict()
    young = [np.mean(np.asarray(each["age"]) < 30) for each in (held, made)]
    assert young[1] == pytest.approx(young[0], abs=0.02)


def test_what_the_noise_hides_is_said() -> None:
    model = fit(rows(20), spend="0.05")
    assert model.silent == 2
    assert "rows drawn tell nothing" in str(model)
    assert model.weights.tolist() == [0.5, 0.5]
    assert len(model.sample(10)) == 10


@pytest.mark.parametrize("n", [0, 1, 2])
def test_tables_of_hardly_anybody(n: int) -> None:
    held = {"ill": ["yes"] * n, "age": [3] * n, "weight": [50.0] * n, "pulse": [60] * n}
    model = fit(held, spend=20)
    assert np.isfinite(model.means).all()
    assert np.linalg.eigvalsh(model.covariance).min() > 0
    assert len(model.sample(7)) == 7
    assert len(model.sample(0)) == 0


def test_nothing_but_missing_and_values_out_of_bounds() -> None:
    columns = {"ill": COLUMNS["ill"], "age": cl.Integer(0, 100, nullable=True), "weight": cl.Real(40, 120)}
    held = {"ill": ["yes", "no"] * 50, "age": [None] * 100, "weight": [np.inf, -np.inf, np.nan, 500.0] * 25}
    made = fit(held, columns=columns).sample(50).to_pydict()
    assert all(0 <= each <= 100 for each in made["age"])
    assert all(40 <= each <= 120 for each in made["weight"])


def test_one_column_of_one_value() -> None:
    columns = {"ill": COLUMNS["ill"], "age": cl.Integer(5, 5)}
    made = fit({"ill": ["yes", "no"] * 50, "age": [5] * 100}, columns=columns).sample(20).to_pydict()
    assert set(made["age"]) == {5}


def test_the_same_charge_is_not_made_twice() -> None:
    table = cl.PrivateTable(rows(300), COLUMNS, population="people", row_is_person=True)
    with Door({"people": table}, budget=cl.ApproxDP(1, "1e-6")) as door:
        one, two = (fit_gaussians(door, "people", spend=1, by=["ill"]) for _ in range(2))
        assert door.spent == one.cost
    np.testing.assert_array_equal(one.means, two.means)


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    model, path = fit(rows(500)), tmp_path / "model.json"
    model.save(path)
    back = GaussianModel.load(path)
    one, other = (each.sample(100, random=Random.deterministic(8)).to_pydict() for each in (model, back))
    assert one == other
    assert str(back) == str(model)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "recipe"},
        {"format": 2},
        {"cost": {"kind": "free"}},
        {"means": [[0.0]]},
        {"means": [[9.0] * 3] * 2},
        {"counts": [[1.0, -1.0]] * 2},
        {"covariance": "much"},
        {"by": []},
        {"columns": 3},
    ],
    ids=str,
)
def test_another_file_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    fit(rows(100)).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match="no file that"):
        GaussianModel.load(path)


@pytest.mark.parametrize(
    ("how", "error", "why"),
    [
        ({"by": []}, cl.InvalidParameter, "at least one"),
        ({"by": ["height"]}, cl.UnknownColumn, "height"),
        ({"columns": ["ill"]}, cl.UnsupportedQuery, "no number beside the groups"),
        ({"columns": []}, cl.InvalidParameter, "at least one"),
        ({"by": ["age", "pulse"]}, cl.UnsupportedQuery, "at most 1,000 groups"),
    ],
    ids=str,
)
def test_what_cannot_be_made_is_refused_and_costs_nothing(how: dict[str, Any], error: Any, why: str) -> None:
    table = cl.PrivateTable(rows(50), COLUMNS, population="people", row_is_person=True)
    with Door({"people": table}, budget=cl.PureDP(5)) as door:
        with pytest.raises(error, match=why):
            fit_gaussians(door, "people", **{"spend": 1, "by": ["ill"], **how})
        assert door.ledger.charges("people") == []
