"""Boosting: what is noised moves as it is declared, plans follow from public facts, curves can be read, and how good it is."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.learn.ensembles.boosting import (
    BoostingPlan,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    one_category,
    plan_of,
)
from cloister.learn.ensembles.boosting_losses import Logistic, Softmax, Squared, believed
from cloister.learn.ensembles.histograms import Columns, merged, sums
from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.groups import alike_in_name, grouped
from cloister.noise import Random
from cloister.noise.allowance import Allowance, Share
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.learn.replay import told

Floats = npt.NDArray[np.float64]


def bent(n: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Two features that matter, one by a valley that no line divides, and one that doesn't."""
    X = Random.deterministic(seed).below(10**6, 3 * n).reshape(n, 3) / 10**6
    return X, (np.abs(X[:, 0] - 0.5) + 0.5 * X[:, 1] > 0.45).astype(np.int64)


# ── losses ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_a_gradient_is_no_longer_than_declared_whatever_the_scores(classes: int) -> None:
    random = Random.deterministic(classes)
    y = random.below(classes, 4000)
    outputs = 1 if classes == 2 else classes
    scores = random.below(2**16, 4000 * outputs).reshape(4000, outputs) - 2**15
    scores[:50], scores[50:100] = 0, 2**40
    loss: Any = Logistic(y=y) if classes == 2 else Softmax(y=y, classes=classes)
    found = loss.gradient(scores)
    assert 0.999 * loss.l1 < np.abs(found).sum(axis=1).max() <= loss.l1
    assert (found.astype(object) ** 2).sum(axis=1).max() <= loss.l2_squared
    expected = np.exp((scores - scores.max(axis=1, keepdims=True)) / 2.0**loss.bits)
    if classes == 2:
        likely = 1 / (1 + np.exp(-np.clip(scores[:, :1] / 2.0**loss.bits, -16, 16)))
        np.testing.assert_allclose(found / loss.one, y[:, None] - likely, atol=2e-6)
    else:
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found / loss.one, (y[:, None] == np.arange(classes)) - expected, atol=2e-5)
        assert (found.sum(axis=1) == 0).all()
    assert (loss.shares().sum(axis=1) == loss.unit).all()


@pytest.mark.parametrize("clip", [1, 2**18, 2**21])
def test_a_number_s_gradient_is_clipped_and_its_shares_sum_to_one(clip: int) -> None:
    y = np.concatenate([[-(2**20), 2**20, 0, 1, -1], Random.deterministic(1).below(2**21, 500) - 2**20])
    loss = Squared(y=y, clip=clip)
    for scores in (np.zeros((505, 1), dtype=np.int64), np.full((505, 1), -(2**22))):
        assert np.abs(loss.gradient(scores)).max() == min(clip, np.abs(y - scores[:, 0]).max())
    shares = loss.shares()
    assert shares.min() >= 0
    assert (shares.sum(axis=1) == loss.unit).all()
    np.testing.assert_allclose((shares[:, 1] - shares[:, 0]) / loss.unit, y / loss.one, atol=1e-6)


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────


def test_every_row_has_one_place_in_every_column() -> None:
    box = Box(low=np.array([-1.0, 0, 0, 5]), high=np.array([1.0, 1, 1, 5]))
    columns = Columns(box=box, members=grouped(4, [[1, 2]]), bins=4)
    X = np.array([[-1.0, 1, 0, 5], [-0.5, 0, 1, 5], [0.999, 1, 1, 5], [1.0, 0, 0, 5], [9.0, 0.4, 0.6, 7]])
    assert columns.places(X).tolist() == [[0, 1, 3, 3, 3], [0, 1, 0, 2, 1], [0, 0, 0, 0, 0]]
    assert [columns.bins_of(column) for column in range(3)] == [4, 3, 4]


@pytest.mark.parametrize("wrong", [[[0, 0]], [[0], [0]], [[3]], [[-1]], 5, ["a"]])
def test_groups_that_mean_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="groups"):
        GradientBoostingClassifier(bounds=(0, 1), groups=wrong).fit([[0.0, 1, 1]], [0])


def test_merged_bins_hold_enough_and_miss_nobody() -> None:
    for seed in range(20):
        counts = Random.deterministic(seed).below(200, 64) - 60.0
        for deviation in (0.0, 3.0, 50.0, 1e6):
            leaf = merged(counts, deviation, ordered=True)
            assert (np.diff(leaf) >= 0).all()
            assert sorted(set(leaf.tolist())) == list(range(int(leaf.max()) + 1))
            if leaf.max():
                assert np.bincount(leaf, weights=counts)[:-1].min() >= max(4 * deviation, 10)
            loose = merged(counts, deviation, ordered=False)
            alone = np.flatnonzero(np.bincount(loose) == 1)
            assert len(set(loose.tolist())) <= 65
            assert all(counts[loose == one][0] >= max(4 * deviation, 10) for one in alone if one != loose.max())


def test_sums_are_exact() -> None:
    places = np.array([0, 2, 2])
    assert sums(places, np.array([[2**52, -1], [1, 2], [2**51, 3]]), 4).tolist() == [[2**52, -1], [0, 0], [2**51 + 1, 5], [0, 0]]


# ── what is spent, on what ───────────────────────────────────────────────────────────────────────────


def test_the_whole_budget_is_spent_and_each_column_of_a_round_gets_its_part() -> None:
    X, y = bent(200, 1)
    given: dict[str, Any] = {"epsilon": "0.8", "bounds": (0, 1), "rounds": 2, "max_features": 3}
    model = GradientBoostingClassifier(**given, random=Random.deterministic(1))
    lines = told(lambda: model.fit(X, y))
    assert [str(line) for line in model.spent_] == [
        "number of rows: ε = 0.04",
        "counts by column: ε = 0.152",
        "gradients, round 1: ε = 0.304",
        "gradients, round 2: ε = 0.304",
    ]
    amounts = [line.limits[2] for line in lines]
    assert amounts == [Fraction(4, 100), Fraction(152, 1000), *[Fraction(304, 3000)] * 6]
    assert [line.limits[1] for line in lines] == [1, 3, *[2**20] * 6]
    assert sum(amounts) == Fraction(8, 10)


def test_a_hint_of_the_size_saves_counting() -> None:
    X, y = bent(200, 2)
    given: dict[str, Any] = {"bounds": (0, 1), "size": 200, "rounds": 0, "random": Random.deterministic(1)}
    model = GradientBoostingClassifier(max_features=3, **given).fit(X, y)
    assert [str(line) for line in model.spent_] == ["counts by column: ε = 1"]


def test_columns_that_tell_most_are_chosen_for_a_part_of_the_budget() -> None:
    """Each choice gets its part; a score moves by 1 at most, and all of them in one direction."""
    X = Random.deterministic(12).below(10**6, 4800).reshape(600, 8) / 10**6
    y = (X[:, 5] + X[:, 2] / 2 > 0.7).astype(np.int64)
    given: dict[str, Any] = {"epsilon": 2, "bounds": (0, 1), "size": 600, "max_features": 2, "rounds": 0}

    def fit(X: Floats, y: Any) -> GradientBoostingClassifier:
        return GradientBoostingClassifier(random=Random.deterministic(1), **given).fit(X, y)

    model, lines = fit(X, y), told(lambda: fit(X, y))
    assert [str(line) for line in model.spent_] == ["columns that tell most: ε = 0.4", "counts by column: ε = 1.6"]
    assert [line.limits for line in lines[:2]] == [(1, Fraction(1, 5))] * 2
    assert model.columns_ == ((2,), (5,))
    assert GradientBoostingClassifier(privacy=None, bounds=(0, 1), max_features=2).fit(X, y).columns_ == model.columns_
    for place in range(0, 600, 7):
        fewer = np.delete(X, place, axis=0), np.delete(y, place)
        rest = told(lambda fewer=fewer: fit(*fewer), lines)  # type: ignore[misc]
        for one, other in zip(lines[:2], rest[:2], strict=True):
            assert set((one.values - other.values).ravel().tolist()) <= {0, 1}
    number = GradientBoostingRegressor(bounds_y=(0, 1), random=Random.deterministic(1), **given).fit(X, y)
    assert [str(line) for line in number.spent_] == ["counts by column: ε = 2"]


def test_a_choice_of_columns_is_kept_in_rho_and_not_made_under_a_delta() -> None:
    X, y = bent(300, 13)
    for promise, first in ((ZCDP("0.1"), "columns that tell most"), (ApproxDP(1, "1e-6"), "counts by column")):
        model = GradientBoostingClassifier(bounds=(0, 1), size=300, max_features=1, random=Random.deterministic(1))
        model._fitted(model._checked(X, y), model._allowance(promise))
        assert model.spent_[0].what == first
        assert sum(line.portion for line in model.spent_) == 1


def test_a_promise_in_rho_is_kept_in_rho() -> None:
    X, y = bent(100, 3)
    model = GradientBoostingClassifier(bounds=(0, 1), rounds=1, random=Random.deterministic(1))
    model._fitted(model._checked(X, y), model._allowance(ZCDP("0.1")))
    assert {line.currency for line in model.spent_} == {"rho"}
    assert sum(line.amount for line in model.spent_) == Fraction(1, 10)


def test_plans_grow_with_rows_and_budget() -> None:
    def plan(people: float, promise: Any) -> BoostingPlan:
        return plan_of(columns=20, people=people, allowance=Allowance(promise))

    for promise in (PureDP(1), ApproxDP(1, "1e-5"), ZCDP("0.1")):
        plans = [plan(people, promise) for people in (-100.0, 0.0, 10.0, 1e3, 1e5, 1e7)]
        for less, more in pairwise(plans):
            assert less.columns <= more.columns
            assert less.rounds <= more.rounds
        assert (plans[0].rounds, plans[-1].rounds) == (0, 4)
    assert plan(1e4, PureDP("0.01")).rounds < plan(1e4, PureDP(100)).rounds
    asked = plan_of(columns=20, people=5.0, allowance=Allowance(PureDP(1)), max_features=7, bins=9, rounds=3)
    assert asked == BoostingPlan(columns=7, bins=9, rounds=3)


@pytest.mark.parametrize(
    "wrong", [{"rounds": -1}, {"rounds": True}, {"bins": 1}, {"bins": 2.5}, {"max_features": 0}, {"size": 0}]
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        GradientBoostingClassifier(bounds=(0, 1), **wrong).fit(*bent(20, 4))


# ── nasty rows ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", ["0.001", "1", "1000"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_noise_and_nasty_rows_crash_nothing(epsilon: str, delta: str | None) -> None:
    X, y = bent(60, 5)
    nasty = X.copy()
    nasty[::3], nasty[1::7, 0], nasty[2::5, 1] = np.inf, np.nan, -1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, labels in ((nasty, y), (X[:0], y[:0]), (X[:1], y[:1]), (np.zeros_like(X), np.zeros_like(y))):
            for seed in range(3):
                given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "bounds": (0, 1), "rounds": 3}
                given["random"] = Random.deterministic(seed)
                model = GradientBoostingClassifier(classes=[0, 1, 9], **given).fit(rows, labels)
                assert np.isfinite(model.predict_proba(X)).all()
                line = GradientBoostingRegressor(bounds_y=(-3, 5), **given).fit(rows, labels)
                assert ((line.predict(X) >= -3) & (line.predict(X) <= 5)).all()


# ── what it learns ───────────────────────────────────────────────────────────────────────────────────


def test_a_valley_is_found_and_what_does_not_matter_is_flat() -> None:
    X, y = bent(8000, 6)
    model = GradientBoostingClassifier(bounds=(0, 1), random=Random.deterministic(1)).fit(X, y)
    assert model.score(*bent(4000, 7)) > 0.9
    curves = model.value_[:, :, 0]
    assert curves[0, 0] > curves[0, model.bins_ // 2] + 2
    assert curves[0, -1] > curves[0, model.bins_ // 2] + 2
    assert np.std(curves[2]) < np.std(curves[1]) / 3


def test_the_score_is_the_sum_of_the_curves() -> None:
    X, y = bent(500, 8)
    model = GradientBoostingClassifier(epsilon=5, bounds=(0, 1), random=Random.deterministic(1)).fit(X, y)
    places = np.minimum((X * model.bins_).astype(int), model.bins_ - 1)
    expected = model.base_[0] + sum(model.value_[column, places[:, column], 0] for column in range(3))
    np.testing.assert_allclose(model.decision_function(X), expected)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-expected)))


def test_several_classes() -> None:
    X, _ = bent(6000, 9)
    y = (X[:, 0] * 3).astype(int)
    model = GradientBoostingClassifier(bounds=(0, 1), classes=[0, 1, 2], random=Random.deterministic(1)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (6000, 3)


def test_numbers() -> None:
    X, _ = bent(8000, 10)
    y = 50 + 60 * np.abs(X[:, 0] - 0.5) + 10 * X[:, 1]
    for more in ({}, {"delta": "1e-6"}, {"privacy": None}):
        model = GradientBoostingRegressor(bounds=(0, 1), bounds_y=(40, 100), random=Random.deterministic(1), **more).fit(X, y)
        assert model.score(X, y) > 0.9, more


def test_at_epsilon_one_a_few_hundred_rows_beat_the_larger_class() -> None:
    data = load_breast_cancer()
    bounds = (np.zeros(30), np.ceil(data.data.max(axis=0)))
    order = Random.deterministic(1).permutation(569)
    train, test = order[:455], order[455:]
    for delta, least in ((None, 0.75), ("1e-5", 0.85)):
        scored = [
            GradientBoostingClassifier(delta=delta, bounds=bounds, size=450, random=Random.deterministic(seed))
            .fit(data.data[train], data.target[train])
            .score(data.data[test], data.target[test])
            for seed in range(12)
        ]
        assert np.mean(scored) > least


def test_with_next_to_no_budget_it_says_what_everybody_is() -> None:
    X, y = bent(300, 11)
    models = [
        GradientBoostingClassifier(epsilon="1e-6", bounds=(0, 1), random=Random.deterministic(s)).fit(X, y) for s in range(8)
    ]
    assert 0.1 < np.mean([model.score(X, y) for model in models]) < 0.9
    assert models[0].guarantee_ == PureDP("1e-6")


def test_a_table_s_category_is_one_column() -> None:
    colours = ["red", "green", "blue"]
    n = 3000
    place = np.arange(n) % 3
    columns = {"colour": [colours[at] for at in place], "age": (np.arange(n) % 70 + 20).tolist(), "y": (place == 1).tolist()}
    declared = {"colour": cl.Category(colours), "age": cl.Integer(20, 89), "y": cl.Boolean()}
    with cl.Session({"t": cl.PrivateTable(columns, columns=declared)}, budget=cl.PureDP(3)) as session:
        model = GradientBoostingClassifier(epsilon=2).fit_table(session, "t", features=["colour", "age"], target="y")
    assert model.columns_ == ((0, 1, 2), (3,))
    assert model.predict([[0, 1, 0, 50.0], [1, 0, 0, 50.0]]).tolist() == [True, False]


def test_categories_are_told_by_names_and_by_bounds_alone() -> None:
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(1)
    town = draw.integers(0, 3, 400)
    X = pandas.DataFrame(
        {"age": draw.uniform(17, 90, 400), **{f"town={each}": (town == each).astype(float) for each in range(3)}}
    )
    given = {"bounds": ([17, 0, 0, 0], [90, 1, 1, 1]), "random": Random.deterministic(1)}
    y = (town == 1).astype(int)
    assert GradientBoostingClassifier(**given).fit(X, y).columns_ == ((0,), (1, 2, 3))
    assert GradientBoostingClassifier(groups=[], **given).fit(X, y).columns_ == ((0,), (1,), (2,), (3,))
    assert GradientBoostingClassifier(**given).fit(X.to_numpy(), y).columns_ == ((0,), (1,), (2,), (3,))
    wide = {**given, "bounds": ([17, 0, 0, 0], [90, 2, 2, 2])}
    assert GradientBoostingClassifier(**wide).fit(X, y).columns_ == ((0,), (1,), (2,), (3,))
    dummies = X.rename(columns=lambda name: name.replace("=", "_"))
    assert GradientBoostingClassifier(groups=["town"], **given).fit(dummies, y).columns_ == ((0,), (1, 2, 3))
    with pytest.raises(InvalidParameter, match="no feature is called city"):
        GradientBoostingClassifier(groups=["city"], **given).fit(dummies, y)


def test_dummies_are_told_from_illnesses_by_noisy_counts() -> None:
    """Names are alike; a twentieth of the budget says which columns hardly anybody has two of. Few people, or `[]`: no look."""
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(1)
    n = 4000
    town, ill = draw.integers(0, 3, n), draw.uniform(size=(n, 3)) < 0.5
    columns = {"age": draw.uniform(17, 90, n), **{f"home_town_{each}": (town == each).astype(float) for each in range(3)}}
    X = pandas.DataFrame({**columns, **{f"ill_{each}": ill[:, each].astype(float) for each in range(3)}})
    y = (town == 1).astype(int)
    bounds = ([17, *[0] * 6], [90, *[1] * 6])
    given = {"bounds": bounds, "size": n, "random": Random.deterministic(1)}
    model = GradientBoostingClassifier(max_features=7, **given).fit(X, y)
    assert model.columns_ == ((0,), (1, 2, 3), (4,), (5,), (6,))
    assert next(share.what for share in model.spent_) == "features that are one category"
    assert sum(share.portion for share in model.spent_) <= 1
    assert GradientBoostingClassifier(privacy=None, bounds=bounds).fit(X, y).columns_ == model.columns_
    for changed in ({"groups": []}, {"size": 300}):
        alone = GradientBoostingClassifier(max_features=7, **{**given, **changed}).fit(X, y)
        assert len(alone.columns_) == 7
        assert "features that are one category" not in [share.what for share in alone.spent_]
    assert GradientBoostingRegressor(bounds_y=(0, 1), max_features=7, **given).fit(X, y).columns_ == model.columns_


def test_a_person_is_once_in_each_count_of_names_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more person moves the counts that are noised by as much as is declared, and no more; half of it would be too little."""
    told = []

    def seen(self: Share, values: Any, *, l1: Any, l2_squared: Any, random: Any = None) -> Any:
        told.append((np.array(values), l1, l2_squared))
        return np.asarray(values, dtype=float)

    monkeypatch.setattr(Share, "add", seen)
    X = np.zeros((4000, 4))
    X[::2, 0] = 1
    names = ["a_b_c", "a_b_d", "a_e", "a_f"]
    box = Box(low=np.zeros(4), high=np.ones(4))
    maybe = alike_in_name(names, box)
    assert maybe == [(0, 1, 2, 3), (0, 1)]
    for rows in (X, np.vstack([X, np.ones(4)])):
        found = one_category(maybe, Rows(X=rows, y=None, box=box), 4000, Allowance(PureDP(1)), Random.deterministic(1))
        assert found == [[0, 1, 2, 3]]
    (before, l1, square), (after, _, _) = told
    moved = np.abs(after - before)
    assert moved.sum() == l1 == 2
    assert (moved**2).sum() == square == 2
    assert moved.sum() > l1 / 2


def test_a_leaf_is_believed_as_far_as_it_is_not_noise() -> None:
    """Where leaves differ by noise alone, hardly anything is left; a difference above the noise is left as it is."""
    draw = np.random.default_rng(2)
    size = np.full(20, 500.0)
    noise = np.full(20, 0.2)
    kept = [np.abs(believed(draw.normal(0, 0.2, 20), noise, size)).mean() for _ in range(200)]
    assert np.mean(kept) < 0.03  # of 0.16
    found = np.where(np.arange(20) % 2, 0.6, -0.6)
    np.testing.assert_allclose(believed(found + draw.normal(0, 0.01, 20), noise / 20, size), found, atol=0.05)


def test_a_number_within_wide_bounds_is_hardly_worse_than_its_mean() -> None:
    """R² of a prediction by the mean is 0; with 600 rows leaves that noise makes said −3 at ε = 1 and at ε = 0.1."""
    draw = np.random.default_rng(3)
    X = draw.uniform(0, 1, (900, 6))
    y = 120 + 10 * X[:, 0] + draw.normal(0, 8, 900)
    for epsilon in ("0.1", "1"):
        given = {"epsilon": epsilon, "bounds": (0, 1), "bounds_y": (0, 300)}
        models = [GradientBoostingRegressor(random=Random.deterministic(seed), **given) for seed in range(12)]
        assert np.median([model.fit(X[:600], y[:600]).score(X[600:], y[600:]) for model in models]) > -0.5
