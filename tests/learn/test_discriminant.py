"""Linear discriminants: scikit-learn's without noise, near with much ε, positive definite with little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Theirs

from cloister.learn import LinearDiscriminantAnalysis, LinearRegression
from cloister.noise import Random
from cloister.privacy import ApproxDP, PureDP
from cloister.session import Door
from cloister.tables import Category, Integer, PrivateTable


def problem(classes: int = 2, count: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Features that go together, so that their covariance matters."""
    generator = np.random.default_rng(9)
    y = np.arange(count) % classes
    common = generator.normal(0, 1.5, count)
    X = np.column_stack([common + y, common - y, generator.normal(0, 1, count)]) + generator.normal(0, 0.4, (count, 3))
    return np.clip(X * 4 + 50, 17, 90).round(), y


@pytest.mark.parametrize("classes", [2, 4])
def test_without_noise_it_is_theirs(classes: int) -> None:
    X, y = problem(classes)
    ours, known = LinearDiscriminantAnalysis(privacy=None).fit(X, y), Theirs().fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), known.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), known.predict_proba(X), atol=2e-3)
    np.testing.assert_allclose(ours.means_, known.means_)
    np.testing.assert_allclose(ours.priors_, known.priors_)


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("classes", [2, 4])
def test_with_a_usual_epsilon_it_is_near(classes: int, delta: str | None) -> None:
    X, y = problem(classes)
    known = Theirs().fit(X, y).score(X, y)
    model = LinearDiscriminantAnalysis(
        epsilon=2, delta=delta, bounds=(17, 90), classes=range(classes), random=Random.deterministic(1)
    ).fit(X, y)
    assert model.score(X, y) > known - 0.05


@pytest.mark.parametrize("epsilon", ["0.001", "0.1"])
@pytest.mark.parametrize("seed", range(5))
def test_the_covariance_stays_positive_definite(epsilon: str, seed: int) -> None:
    X, y = problem(2, 300)
    model = LinearDiscriminantAnalysis(epsilon=epsilon, bounds=(17, 90), random=Random.deterministic(seed)).fit(X, y)
    assert np.linalg.eigvalsh(model.covariance_).min() > 0
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_decision_is_the_difference_of_two() -> None:
    X, y = problem()
    model = LinearDiscriminantAnalysis(epsilon=5, bounds=(17, 90), random=Random.deterministic(1)).fit(X, y)
    logs = model.predict_log_proba(X)
    np.testing.assert_allclose(model.decision_function(X), logs[:, 1] - logs[:, 0], atol=1e-9)


def test_a_table_gives_what_rows_give() -> None:
    X, y = problem()
    names = ["a", "b", "c"]
    columns = {name: X[:, place].astype(int).tolist() for place, name in enumerate(names)} | {"y": np.where(y, "q", "p").tolist()}
    declared = {name: Integer(17, 90) for name in names} | {"y": Category(["p", "q"])}
    with Door({"people": PrivateTable(columns, columns=declared)}, budget=PureDP(10**6)) as door:
        model = LinearDiscriminantAnalysis(epsilon=10**5).fit_table(door, "people", features=names, target="y")
    known = Theirs().fit(X, np.where(y, "q", "p"))
    np.testing.assert_allclose(model.means_, known.means_, rtol=1e-2)
    assert (model.predict(X) == known.predict(X)).mean() > 0.99
    with Door({"people": PrivateTable(columns, columns=declared)}, budget=PureDP(3)) as door:
        noisy = LinearDiscriminantAnalysis(epsilon=3).fit_table(door, "people", features=names, target="y")
        assert door.spent == PureDP(3)
    assert noisy.score(X, np.where(y, "q", "p")) > 0.8


def test_rows_of_a_table_without_a_class_are_left_out_as_by_rows() -> None:
    """Their products were summed, and divided by the number of rows with a class."""
    rows: dict[str, list[Any]] = {"a": [1, 9, 5] * 200, "b": [place % 7 for place in range(600)], "y": ["p", "q", None] * 200}
    known = {name: [value for value, y in zip(column, rows["y"], strict=True) if y] for name, column in rows.items()}
    declared = {"a": Integer(0, 10), "b": Integer(0, 10), "y": Category(["p", "q"], nullable=True)}
    found = []
    for each in (rows, known):
        with Door({"people": PrivateTable(each, columns=declared)}, budget=PureDP(10**7)) as door:
            found.append(LinearDiscriminantAnalysis(epsilon=10**7).fit_table(door, "people", features=["a", "b"], target="y"))
    np.testing.assert_allclose(found[0].covariance_, found[1].covariance_, atol=1e-3)


@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis, LinearRegression])
def test_of_many_features_rows_are_multiplied_and_no_engine_is_asked(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Door, "measure_all", None)
    towns = [f"t{number}" for number in range(70)]
    rows = {"town": towns * 20, "y": [int(town > "t4") for town in towns] * 20}
    people = PrivateTable(rows, columns={"town": Category(towns), "y": Integer(0, 1)})
    with Door({"people": people}, budget=ApproxDP(10**5, "1e-5"), random=Random.deterministic(1)) as door:
        found = model(epsilon=10**4, delta="1e-6").fit_table(door, "people", features=["town"], target="y")
        assert door.spent == ApproxDP(10**4, "1e-6")
    assert np.mean(np.rint(found.predict(np.eye(70))) == rows["y"][:70]) > 0.9
