"""Linear and ridge regression: scikit-learn's without noise, near the line with much ε, tame with little; what a row moves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import linear_model as theirs

from cloister.errors import InvalidParameter
from cloister.learn import LinearRegression, Ridge
from cloister.learn.decomposition import products, wishart
from cloister.learn.decomposition.products import Products, noisy_lengths, noisy_products, radius_within
from cloister.learn.decomposition.wishart import best_currency
from cloister.learn.linear_models.least_squares import solved
from cloister.noise import Random, WishartMechanism
from cloister.noise.allowance import Allowance
from cloister.privacy import ApproxDP, PureDP, mu_squared_of_gaussian
from cloister.session import Door
from cloister.tables import Boolean, Category, Integer, PrivateTable, Real

GENERATOR = np.random.default_rng(6)
BOUNDS: dict[str, Any] = {"bounds": ([0, -5, 100], [10, 5, 300]), "bounds_y": (-50, 150)}


def problem(count: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """A line through features of different bounds, not in their middles."""
    generator = np.random.default_rng(3)
    X = np.column_stack([generator.uniform(0, 6, count), generator.uniform(-1, 5, count), generator.uniform(150, 300, count)])
    return X, 4 * X[:, 0] - 6 * X[:, 1] + 0.3 * X[:, 2] - 20 + generator.normal(0, 3, count)


def far_off(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """One less the share of the target's variance that is explained."""
    return 1 - float(model.score(X, y))


@pytest.mark.parametrize("intercept", [True, False])
def test_without_noise_it_is_theirs(intercept: bool) -> None:
    X, y = problem(200)
    pairs = [
        (LinearRegression(privacy=None, fit_intercept=intercept), theirs.LinearRegression(fit_intercept=intercept)),
        (Ridge(privacy=None, alpha=7.0, fit_intercept=intercept), theirs.Ridge(alpha=7.0, fit_intercept=intercept)),
    ]
    for ours, known in pairs:
        ours.fit(X, y)
        known.fit(X, y)
        np.testing.assert_allclose(ours.coef_, known.coef_)
        np.testing.assert_allclose(ours.intercept_, known.intercept_, atol=1e-9)
        np.testing.assert_allclose(ours.predict(X), known.predict(X))


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_a_usual_epsilon_it_is_near(delta: str | None, intercept: bool) -> None:
    X, y = problem()
    model = LinearRegression(epsilon=2, delta=delta, fit_intercept=intercept, random=Random.deterministic(2), **BOUNDS).fit(X, y)
    best = theirs.LinearRegression(fit_intercept=intercept).fit(X, y)
    assert far_off(model, X, y) < far_off(best, X, y) + 0.05


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_with_a_large_epsilon_it_is_the_line(delta: str | None) -> None:
    X, y = problem()
    model = LinearRegression(epsilon=2000, delta=delta, random=Random.deterministic(2), **BOUNDS).fit(X, y)
    best = theirs.LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=0.05)
    np.testing.assert_allclose(model.predict(X), best.predict(X), atol=1.5)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("method", ["moments", "wishart"])
def test_it_never_explodes(seed: int, method: str) -> None:
    X, y = problem(30)
    further = {"delta": "1e-2", "epsilon": "0.05"} if method == "wishart" else {"epsilon": "0.001"}
    model = LinearRegression(method=method, random=Random.deterministic(seed), **further, **BOUNDS).fit(X, y)
    answers = model.predict(X)
    assert ((answers >= -50) & (answers <= 150)).all()
    slopes = np.abs(model.coef_) * np.array([10, 10, 200]) / 200
    assert slopes.max() < 10  # in shares of the target's width over a feature's whole width


def test_a_ridge_of_much_draws_to_nothing() -> None:
    X, y = problem()
    strong, weak = (Ridge(alpha=alpha, epsilon=1000, random=Random.deterministic(1), **BOUNDS).fit(X, y) for alpha in (1e9, 1e-9))
    assert np.abs(strong.coef_).max() < 1e-2 * np.abs(weak.coef_).max()


class Recorder:
    """A share that adds nothing and remembers what it was given."""

    currency = "mu_squared"

    def __init__(self) -> None:
        self.values: list[np.ndarray] = []
        self.sizes: list[dict[str, Fraction]] = []

    def add(self, values: np.ndarray, *, random: Random | None = None, **sizes: Fraction) -> np.ndarray:
        self.values.append(values)
        self.sizes.append(sizes)
        return values.astype(np.float64)

    def told(self, bits: int, reach: Fraction) -> tuple[int, Kept] | None:
        """For vector noise at so many bits; None at the most, where other noise is added."""
        if bits == 16:
            return None
        return bits, Kept(self, {"l2_squared": reach**2})

    def variance(self, **sizes: Fraction) -> float:
        return 0.0


@dataclass
class Kept:
    """A mechanism that adds nothing and tells the share what it was given."""

    share: Recorder
    sizes: dict[str, Fraction]
    variance = 0.0

    def release(self, values: np.ndarray, *, random: Random | None = None) -> np.ndarray:
        return self.share.add(values, **self.sizes)


@pytest.mark.parametrize("bits", [5, 12, 16])
def test_one_row_moves_the_products_by_no_more_than_is_said(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "finest_steps", lambda share, _, reach, **more: share.told(bits, reach(bits)))
    rows = GENERATOR.normal(size=(40, 4))
    rows *= (2.0 / np.linalg.norm(rows, axis=1))[:, None]
    rows[:4] = 2.0 * np.eye(4)

    def whole(given: np.ndarray) -> tuple[np.ndarray, Fraction]:
        share = Recorder()
        noisy_products(given, radius=2.0, share=share, random=None)  # type: ignore[arg-type]
        return share.values[0], share.sizes[0]["l2_squared"]

    everything, said = whole(rows)
    lengths = [sum(int(step) ** 2 for step in everything - whole(np.delete(rows, i, axis=0))[0]) for i in range(40)]
    assert max(lengths) <= said
    assert max(lengths) > 0.9 * 4**bits


def test_products_without_noise_are_exact_but_for_rounding() -> None:
    rows = GENERATOR.uniform(-0.5, 0.5, (70_001, 3))
    found = noisy_products(rows, radius=1.0, share=Recorder(), random=None)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.matrix, rows.T @ rows, rtol=1e-3, atol=2)


def test_products_are_as_noisy_as_is_said() -> None:
    rows, random = np.full((10, 2), 0.5), Random.deterministic(8)
    for promise in (PureDP(1), ApproxDP(1, "1e-5")):
        share = Allowance(promise).rest("p")
        found = [noisy_products(rows, radius=1.0, share=share, random=random) for _ in range(2000)]
        drawn = np.array([each.matrix for each in found])
        np.testing.assert_allclose(drawn[:, 0, 0].var(), found[0].diagonal, rtol=0.25)
        np.testing.assert_allclose(drawn[:, 0, 1].var(), found[0].off, rtol=0.25)
        assert abs(drawn[:, 0, 1].mean() - 2.5) < 6 * np.sqrt(found[0].off / 2000)


def test_one_row_moves_one_length() -> None:
    lengths = np.append(GENERATOR.uniform(0, 2, 50), [0.0, 2.0])
    share = Recorder()
    noisy_lengths([(lengths, 2.0), (lengths, 0.0)], share=share, random=None)  # type: ignore[arg-type]
    for place in range(len(lengths)):
        rest = np.delete(lengths, place)
        noisy_lengths([(rest, 2.0), (rest, 0.0)], share=share, random=None)  # type: ignore[arg-type]
        assert (np.abs(share.values[0] - share.values[-1]).sum(axis=1) == 1).all()
    assert share.sizes[0]["l1"] == 2


def test_a_radius_holds_all_but_so_many() -> None:
    lengths = GENERATOR.uniform(0, 1, 1000)
    [counts] = noisy_lengths([(lengths, 4.0)], share=Recorder(), random=None)  # type: ignore[arg-type]
    radius = radius_within(counts, 4.0, beyond=300)
    assert (lengths > radius).sum() <= 300 < (lengths > radius / np.sqrt(2)).sum()


def test_an_indefinite_matrix_gives_a_tame_line() -> None:
    noisy = Products(matrix=np.array([[-5.0, 1.0], [1.0, 0.01]]), diagonal=4.0, off=2.0)
    found = solved(noisy, np.array([10.0, 10.0]), 4.0, most=100.0)
    assert np.isfinite(found.weights).all()
    assert np.abs(found.weights).max() < 10 / (2 * np.sqrt(2.0)) + 1
    assert (found.noise > 0).all()


def test_margins_speak_of_the_noise() -> None:
    X, y = problem()
    best = theirs.LinearRegression().fit(X, y)
    inside = []
    for seed in range(40):
        model = LinearRegression(epsilon=5, delta="1e-6", random=Random.deterministic(seed), **BOUNDS).fit(X, y)
        inside.append(np.abs(model.coef_ - best.coef_) <= model.margin(0.95)["coef"])
    assert np.mean(inside) > 0.8


def test_wishart_is_refused_without_a_delta_and_works_with_one() -> None:
    X, y = problem()
    with pytest.raises(InvalidParameter, match="never pure"):
        LinearRegression(method="wishart", **BOUNDS).fit(X, y)
    with pytest.raises(InvalidParameter, match="known are"):
        LinearRegression(method="best", **BOUNDS).fit(X, y)
    model = LinearRegression(method="wishart", epsilon=3, delta="1e-3", random=Random.deterministic(3), **BOUNDS).fit(X, y)
    assert model.method_ == "wishart"
    assert far_off(model, X, y) < 0.4


def test_wishart_products_are_centred_and_as_noisy_as_is_said() -> None:
    rows, random = np.full((10, 2), 0.5), Random.deterministic(8)
    share = Allowance(ApproxDP(2, "1e-3"), currency="epsilon").rest("p")
    found = [wishart.wishart_products(rows, radius=1.0, share=share, delta=Fraction(1, 1000), random=random) for _ in range(1500)]
    drawn = np.array([each.matrix for each in found])
    np.testing.assert_allclose(drawn[:, 0, 0].var(), found[0].diagonal, rtol=0.3)
    assert abs(drawn[:, 0, 0].mean() - 2.5) < 6 * np.sqrt(found[0].diagonal / 1500)
    assert abs(drawn[:, 0, 1].mean() - 2.5) < 6 * np.sqrt(found[0].off / 1500)


@pytest.mark.parametrize("dimension", [2, 10])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "4"])
def test_wishart_is_never_the_sharper_one(dimension: int, epsilon: str) -> None:
    """Even with all of ε and δ for itself; so the choice leaves it out."""
    mechanism = WishartMechanism.tightest(dimension=dimension, epsilon=epsilon, delta="1e-6", bound=1, step="0.01")
    gaussian = 1 / (2 * float(mu_squared_of_gaussian(epsilon=Fraction(epsilon), delta=Fraction(1, 10**6))))
    assert mechanism.degrees > gaussian


def test_the_choice_follows_from_public_facts() -> None:
    shares = {"with_target": Fraction(2, 5), "products": Fraction(2, 5)}
    assert best_currency(ApproxDP(1, "1e-6"), 30, **shares) == "mu_squared"
    assert best_currency(ApproxDP(1, "1e-12"), 1, **shares) == "epsilon"
    X, y = problem(300)
    model = LinearRegression(epsilon=1, delta="1e-6", random=Random.deterministic(1), **BOUNDS).fit(X, y)
    assert {line.currency for line in model.spent_} == {best_currency(ApproxDP(1, "1e-6"), 3, **shares)}
    assert sum(line.portion for line in model.spent_) == 1


def people(count: int = 4000) -> tuple[PrivateTable, np.ndarray, np.ndarray]:
    """A number, a truth value and a category, some missing; a target that they explain."""
    generator = np.random.default_rng(4)
    age, smoker, sex = generator.integers(17, 91, count), generator.integers(0, 2, count), generator.integers(0, 2, count)
    pay = np.clip(100 + 4 * age + 80 * smoker - 60 * sex + generator.normal(0, 20, count), 0, 600).round()
    missing = np.arange(count) % 20 == 0
    columns = {
        "age": [None if gone else value for gone, value in zip(missing.tolist(), age.tolist(), strict=True)],
        "smoker": smoker.astype(bool).tolist(),
        "sex": np.where(sex, "M", "F").tolist(),
        "pay": pay.tolist(),
    }
    declared = {
        "age": Integer(17, 90, nullable=True),
        "smoker": Boolean(),
        "sex": Category(["F", "M"]),
        "pay": Real(0, 600, step=1),
    }
    X = np.column_stack([age, smoker, sex == 0, sex == 1]).astype(float)
    return PrivateTable(columns, columns=declared), X[~missing], pay[~missing]


@pytest.mark.parametrize("intercept", [True, False])
def test_a_table_gives_what_rows_give(intercept: bool) -> None:
    table, X, y = people()
    with Door({"people": table}, budget=PureDP(10**7)) as door:
        model = LinearRegression(epsilon=10**6, fit_intercept=intercept)
        model.fit_table(door, "people", features=["age", "smoker", "sex"], target="pay")
    best = theirs.LinearRegression(fit_intercept=intercept).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.clip(best.predict(X), 0, 600), atol=2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("wide", [Real(0, 10**8, step="0.01"), Integer(-(10**12), 10**12 + 1), Integer(0, 2**61)])
def test_columns_of_more_steps_than_products_can_count(wide: Any, intercept: bool) -> None:
    places = np.random.default_rng(3).integers(0, 1001, 500)
    low, high = int(wide.low), int(wide.high)
    x = [low + (high - low) * int(place) // 1000 for place in places]
    y = [low + (high - low) * int(1000 - place) // 2000 for place in places]
    table = PrivateTable({"x": x, "y": y}, columns={"x": wide, "y": wide})
    with Door({"cells": table}, budget=PureDP(10**8)) as door:
        model = LinearRegression(epsilon=10**7, fit_intercept=intercept)
        model.fit_table(door, "cells", features=["x"], target="y")
    X = np.array([[float(each)] for each in x])
    best = theirs.LinearRegression(fit_intercept=intercept).fit(X, np.array(y, dtype=float))
    np.testing.assert_allclose(model.predict(X), np.clip(best.predict(X), low, high), atol=(high - low) / 1000)


def test_a_table_with_a_usual_epsilon_is_near() -> None:
    table, X, y = people()
    with Door({"people": table}, budget=PureDP(10)) as door:
        model = Ridge(epsilon=5).fit_table(door, "people", features=["age", "smoker", "sex"], target="pay")
        assert door.spent == PureDP(5)
    assert far_off(model, X, y) < 0.4
