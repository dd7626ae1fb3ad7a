"""No row moves what is noised by more than was declared: all models, corners of the bounds, and what was found to break it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.learn import fit_and_score_table
from cloister.learn.assessment.judging import Judge
from cloister.learn.assessment.selection import PrivateSearch
from cloister.learn.bayesian.discriminant import LinearDiscriminantAnalysis
from cloister.learn.bayesian.naive_bayes import CategoricalNB, GaussianNB, MixedNB
from cloister.learn.decomposition.products import Products, coarse_steps
from cloister.learn.decomposition.wishart import wishart_products
from cloister.learn.ensembles.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from cloister.learn.ensembles.trees import DecisionTreeClassifier
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import row_lengths, row_products
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.examples import Threshold
from cloister.learn.frame.from_tables import Learning, declare
from cloister.learn.frame.scaling import QuantileClipper, StandardScaler
from cloister.learn.linear_models import regression_rows
from cloister.learn.linear_models.kernel import KernelClassifier
from cloister.learn.linear_models.least_squares import solved
from cloister.learn.linear_models.linear import LinearRegression, Ridge
from cloister.learn.linear_models.poisson import PoissonRegressor
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP
from cloister.session import Door
from cloister.tables import Category, Integer, PrivateTable
from tests.learn.replay import cost, moved, told
from tests.tiers import some_by_day

BOUNDS = ([-3, 0, -1000, 5], [7, 1, 1000, 5])
MODELS: dict[str, Callable[..., PrivateModel]] = {
    "GaussianNB": GaussianNB,
    "CategoricalNB": lambda **about: CategoricalNB(categories=[[0, 7], 2, [1000, -1000, 0], [5]], **about),
    "MixedNB": lambda **about: MixedNB(categories={1: [0, 1], 3: [5, -0.0]}, **about),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis,
    "KernelClassifier": lambda **about: KernelClassifier(n_components=4, method="gradient", **about),
    "LinearRegression": lambda **about: LinearRegression(bounds_y=(0, 10), **about),
    "Ridge": lambda **about: Ridge(bounds_y=(0, 10), fit_intercept=False, **about),
    "DecisionTreeClassifier": lambda **about: DecisionTreeClassifier(max_depth=2, bins=4, **about),
    "GradientBoostingClassifier": lambda **about: GradientBoostingClassifier(rounds=2, groups=[[0, 2]], **about),
    "GradientBoostingClassifier, three classes": lambda **about: GradientBoostingClassifier(rounds=2, classes=[0, 1, 7], **about),
    "GradientBoostingClassifier, chosen columns": lambda **about: GradientBoostingClassifier(max_features=1, rounds=1, **about),
    "PoissonRegressor": lambda **about: PoissonRegressor(bounds_y=(0, 10), **about),
    "GradientBoostingRegressor": lambda **about: GradientBoostingRegressor(bounds_y=(0, 10), rounds=2, **about),
    "StandardScaler": StandardScaler,
    "QuantileClipper": lambda **about: QuantileClipper(bins=16, **about),
}


def rows(count: int, order: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners and middles of the bounds, signed zeros, infinities, a row with a missing value, a row twice."""
    generator, low, high = np.random.default_rng(count), *np.array(BOUNDS, dtype=np.float64)
    X = generator.uniform(low, high, (count, 4))
    X[::3] = np.where(generator.random((len(X[::3]), 4)) < 0.5, low, high)
    X[1::5], X[2::9], X[4::11] = (low + high) / 2, -0.0, [np.inf, -np.inf, 1e308, 5]
    X[7:8], X[13:14] = np.nan, X[12:13]
    return np.array(X, order=order), generator.integers(0, 2, count), generator.choice([0, 10, 5, 3.3, -1e300, np.inf], count)


PROMISES = [("1", None), ("0.01", None), ("20", None), ("1", "1e-5"), ("8", "1e-9")]


@some_by_day("promise, order", product(PROMISES, ["C", "F"]), lambda case: (PROMISES.index(case[0]) % 2 == 0) == (case[1] == "C"))
@pytest.mark.parametrize("name", MODELS)
def test_one_row_moves_nothing_by_more_than_was_declared(name: str, promise: tuple[str, str | None], order: str) -> None:
    def fit(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
        model = MODELS[name](epsilon=promise[0], delta=promise[1], bounds=BOUNDS, random=Random.deterministic(5))
        return lambda: model.fit(X) if model.target_kind == "none" else model.fit(X, y)

    furthest = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (1, 2, 30):
            X, labels, numbers = rows(count, order)
            y = numbers if "R" in name else labels
            whole = told(fit(X, y))
            for place in range(0, count, 1 if count < 9 else 3):
                rest = told(fit(np.array(np.delete(X, place, axis=0), order=order), np.delete(y, place)), whole)
                furthest = max(furthest, *moved(whole, rest))
    assert 0.8 < furthest <= 1


def test_a_row_that_is_left_out_does_not_move_the_others() -> None:
    """A row of this length lies at the edge of two bins: added up in another order its last bit, and so its bin, is another."""
    edge = [0.44803149522754837, -0.9891942972472706, 0.5271886371880143, 0.02607570378617809]
    edge += [0.8769838740964332, -0.8868210439747501, 0.6975688787552746]
    X = np.asfortranarray(np.array([edge] * 50))
    more = np.asfortranarray(np.vstack([X, [[np.nan] * 7]]))

    def fit(rows: np.ndarray) -> Callable[[], Any]:
        model = LinearRegression(bounds=(-1, 1), bounds_y=(-1, 1), fit_intercept=False, random=Random.deterministic(1))
        return lambda: model.fit(rows, np.zeros(len(rows)))

    whole = told(fit(X))
    assert max(moved(whole, told(fit(more), whole))) == 0  # the row with a missing value counts for nothing


@pytest.mark.parametrize("features", [1, 2, 3, 7, 30, 101, 8_192, 10_000])
def test_what_is_worked_out_of_a_row_is_of_that_row_alone(features: int) -> None:
    generator = np.random.default_rng(features)
    X, w = generator.normal(size=(67, features)), generator.normal(size=(features, 3))
    for found in (row_lengths, lambda rows: row_products(rows, w), lambda rows: row_products(rows, w[:, 0])):
        whole = found(X)
        for layout in (X, np.asfortranarray(X)):
            assert (found(layout) == whole).all()
            assert (found(layout[5:]) == whole[5:]).all()
            assert all((found(layout[place : place + 1]) == whole[place]).all() for place in range(len(X)))


def test_a_row_at_the_origin_warns_nobody() -> None:
    X = np.random.default_rng(1).uniform(0, 1, (200, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, np.vstack([X, np.zeros((1, 40))])):
            Ridge(epsilon=100, bounds=(0, 1), bounds_y=(0, 1), fit_intercept=False).fit(rows, np.zeros(len(rows)))


def test_products_of_noise_alone_make_numbers_and_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solved(Products(matrix=-np.eye(2)), np.array([3.0, 4.0]), 0.0, most=1.0)
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.noise).all()


@pytest.mark.parametrize("bounds", [(0, 1e-320), ([0, 1], [1, 1 + 0.0]), (0, 1e-151)])
def test_an_interval_too_narrow_to_divide_by_is_refused(bounds: Any) -> None:
    """Otherwise the middle of the interval becomes no number, and as a whole number −2⁶³: no noise hides that."""
    if bounds == ([0, 1], [1, 1]):  # of no width at all: the feature is a constant
        GaussianNB(bounds=bounds).fit([[0.5, 1.0]], [0])
        return
    with pytest.raises(InvalidParameter, match="narrower"):
        GaussianNB(bounds=bounds).fit([[0.0], [5e-321]], [0, 1])
    with pytest.raises(InvalidParameter, match="narrower"):
        LinearRegression(bounds=(0, 1), bounds_y=bounds).fit([[0.0]], [0.0])


def test_products_are_rounded_exactly_however_many_rows_there_are() -> None:
    generator, d, bits = np.random.default_rng(3), 6, 16
    many = generator.integers(2**61, 2**62, (d, d))
    many = (many + many.T) // 2
    size = d * (d + 1) // 2
    for _ in range(50):
        row = generator.integers(-26_000, 26_000, d)  # no longer than 2^16
        apart = coarse_steps(many + np.outer(row, row), bits).astype(object) - coarse_steps(many, bits).astype(object)
        assert math.sqrt(sum(int(step) ** 2 for step in apart)) <= 2**bits + math.sqrt(size)
    diagonal, above = coarse_steps(many, bits)[:d], coarse_steps(many, bits)[d:]
    assert all(
        abs(Fraction(int(step)) - Fraction(int(one), 2**16)) <= Fraction(1, 2)
        for step, one in zip(diagonal, np.diag(many), strict=True)
    )
    root = Fraction(math.isqrt(2 << 200), 2**100)
    exact = [Fraction(int(one), 2**16) * root for one in many[np.triu_indices(d, 1)].tolist()]
    assert all(abs(int(step) - one) < Fraction(1, 2) + one / 2**39 for step, one in zip(above, exact, strict=True))


@pytest.mark.parametrize("model", [StandardScaler(), GaussianNB(), LinearDiscriminantAnalysis(), QuantileClipper(bins=8)])
def test_a_person_of_several_rows_costs_no_more_than_the_promise(model: PrivateModel) -> None:
    """All that three rows do to a fit of rows from a table, added up over its mechanisms, against the ε of the promise."""
    generator = np.random.default_rng(8)
    declared = {"a": Integer(0, 10), "b": Integer(0, 5), "y": Category(["no", "yes"]), "id": Integer(0, 99)}
    columns = {"a": [1, 2], "b": [0, 5], "y": ["no", "yes"], "id": [1, 1]}
    table = PrivateTable(columns, columns=declared, unit="id", max_rows=3)
    target = None if model.target_kind == "none" else "y"
    encoder = Encoder.of(table.columns, ["a", "b"])
    declare(model, encoder, table, target)
    method = Learning(model=model, encoder=encoder, target=target)
    codes = {"a": generator.integers(0, 11, 60), "b": generator.integers(0, 6, 60), "y": generator.integers(0, 2, 60)}
    codes["a"][::4], codes["b"][::3] = 10, 0
    codes = {name: values + table.columns[name].low_code * (name == "y") for name, values in codes.items()}

    def fit(kept: np.ndarray) -> Callable[[], Any]:
        rows = {name: codes[name][kept] for name in method.columns}
        return lambda: method.release(rows, table, PureDP(2), Random.deterministic(3))

    whole, furthest = told(fit(np.ones(60, dtype=bool))), 0.0
    for first in range(0, 58, 4):
        kept = ~np.isin(np.arange(60), range(first, first + 3))
        furthest = max(furthest, cost(whole, told(fit(kept), whole)))
    assert 1 < furthest <= 2 * (1 + 1e-12)


# ── what floating point may add to a δ, and what a person of several rows takes of it ────────────────


@pytest.mark.parametrize(("epsilon", "rows_each"), [("1", 2), ("8", 3), ("0.001", 5), ("900", 2)])
def test_a_person_of_several_rows_takes_no_more_of_a_delta(epsilon: str, rows_each: int) -> None:
    allowance = Allowance(ApproxDP(epsilon, "1e-5"), currency="epsilon", rows=rows_each)
    one = allowance.of_row(Fraction(1))
    if epsilon != "900":
        grown = float(one) * sum(math.exp(i * float(epsilon) / rows_each) for i in range(rows_each))
        assert 0.999999 < grown <= 1
    assert 0 < one < 1


def test_a_delta_is_shared_by_the_rows_of_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Fraction] = []

    def spied(rows: Any, *, delta: Fraction, **about: Any) -> Any:
        given.append(delta)
        return wishart_products(rows, delta=delta, **about)

    monkeypatch.setattr(regression_rows, "wishart_products", spied)
    generator = np.random.default_rng(2)
    columns = {name: generator.integers(0, 11, 300).tolist() for name in ("a", "b", "y")} | {"id": (np.arange(300) // 2).tolist()}
    declared = {"a": Integer(0, 10), "b": Integer(0, 10), "y": Integer(0, 10), "id": Integer(0, 1000)}
    table = PrivateTable(columns, columns=declared, unit="id", max_rows=2)
    with Door({"t": table}, budget=ApproxDP(10, "1e-2")) as door:
        model = LinearRegression(epsilon=2, delta="1e-3", method="wishart")
        fit_and_score_table(door, model, "t", features=["a", "b"], target="y")
    assert float(given[0]) * (1 + math.e) <= 1e-3


def test_what_floating_point_may_add_lies_within_the_delta() -> None:
    X = np.random.default_rng(0).uniform(0, 1, (300, 2))
    for epsilon, delta, most in (("1", None, 1e-18), ("80", None, 2e-12), ("60", "1e-14", 1e-14)):
        model = LinearRegression(epsilon=epsilon, delta=delta, bounds=(0, 1), bounds_y=(0, 1))
        lines = told(lambda model=model: model.fit(X, X[:, 0]))  # type: ignore[misc]
        assert sum(line.limits[2] for line in lines if line.mechanism == "vector") <= most


# ── choosing and judging ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("setting", [{"privacy": [None]}, {"epsilon": [1, 100]}, {"delta": ["1e-2"]}, {"random": [None]}])
@pytest.mark.parametrize("method", ["stopping", "parts"])
def test_a_setting_says_nothing_of_the_promise(setting: dict[str, Any], method: Any) -> None:
    """With privacy=None a try took classes and bounds from the rows, and the search promised ε all the same."""
    with pytest.raises(InvalidParameter, match=next(iter(setting))):
        PrivateSearch(Threshold(bounds=(0, 1)), setting, method=method).fit([[0.2], [0.8]] * 50, [3, 9] * 50)


def test_the_number_of_warnings_does_not_tell_the_number_of_tries() -> None:
    X, y = [[0.2], [0.8]] * 50, np.array([[0], [1]] * 50)
    said = set()
    for seed in range(8):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.1", "0.5"]}, random=Random.deterministic(seed)).fit(X, y)
        said.add(len(seen))
    assert len(said) == 1


class _Counting:
    """As a product of matrices does with ties: what it says of a row depends on how many are asked about, and on their place."""

    classes_ = np.array([0, 1])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), len(X) % 2)


class _Talking:
    classes_ = np.array([0, 1])

    def __init__(self, loud: bool) -> None:
        self.loud = loud

    def predict(self, X: np.ndarray) -> np.ndarray:
        if self.loud:
            raise ValueError(f"cannot say {X[0, 0]}")
        warnings.warn(f"odd: {X[0, 0]}", RuntimeWarning, stacklevel=1)
        return np.zeros(len(X), dtype=int)


def test_a_row_is_judged_alike_whoever_else_is_there() -> None:
    judge = Judge(measure="accuracy", classes=np.array([0, 1]))
    hits = [judge.sums(np.zeros(n, dtype=int), judge.guesses(_Counting(), np.zeros((n, 1))))[0] for n in (998, 999, 4096, 4097)]
    assert max(abs(hits[1] - hits[0]), abs(hits[3] - hits[2])) <= 1


def test_what_a_model_says_aloud_of_judged_rows_stays_behind() -> None:
    judge = Judge(measure="accuracy", classes=np.array([0, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judge.guesses(_Talking(loud=False), np.full((3, 1), 4242.0)).tolist() == [0, 0, 0]
    with pytest.raises(InvalidParameter) as refused:
        judge.guesses(_Talking(loud=True), np.full((3, 1), 4242.0))
    assert "4242" not in str(refused.value)


@pytest.mark.parametrize("odd", ["x", ["x"], None])
def test_one_label_of_another_kind_in_a_list_decides_nothing(odd: Any) -> None:
    model = Threshold(bounds=(0, 1), classes=[0, 1])
    assert len(model._checked([[0.5]] * 5, [0, 1, odd, 1, 0]).X) == 4


# ── quantiles, categories, marks ─────────────────────────────────────────────────────────────────────


def test_a_quantile_too_fine_to_count_in_is_refused() -> None:
    """Counts times 10¹⁸ parts overflow, and then one row moves a utility by far more than was declared."""
    with pytest.raises(InvalidParameter, match="at most"):
        QuantileClipper(bounds=(0, 1), quantiles=("0.123456789012345678", "0.9")).fit([[0.5]] * 100)


@pytest.mark.parametrize(("budget", "spend"), [(ApproxDP(5, "1e-5"), PureDP("0.5")), (PureDP(5), "0.5"), (ZCDP(5), "0.5")])
def test_quantiles_are_bought_under_every_budget(budget: Any, spend: Any) -> None:
    table = PrivateTable({"age": [30, 40] * 20}, columns={"age": Integer(17, 90)})
    with Door({"people": table}, budget=budget) as door:
        model = QuantileClipper(bins=8).fit_table(door, "people", features=["age"], spend=spend)
        assert door.spent == model.guarantee_


def test_categories_may_have_different_numbers_of_values_and_none_has_no_value() -> None:
    model = CategoricalNB(categories=[[0, 1, 2], [5, 7]], bounds=(0, 1)).fit([[0, 5], [2, 7]] * 20, [0, 1] * 20)
    assert [len(logs.T) for logs in model.feature_log_prob_] == [3, 2]
    for rows in ([[0.0]], np.empty((0, 1))):
        with pytest.raises(InvalidParameter, match="a category has a value"):
            CategoricalNB(categories=[[]]).fit(rows, [0] * len(rows))


def test_a_mark_of_what_was_bought_before_stays_with_the_model() -> None:
    columns = {"age": [30, 40] * 50, "y": ["no", "yes"] * 50}
    table = PrivateTable(columns, columns={"age": Integer(17, 90), "y": Category(["no", "yes"])}, version="1")
    with cl.Ledger() as book:
        with Door({"t": table}, budget=PureDP(5), ledger=book, random=Random.deterministic(1)) as door:
            assert GaussianNB().fit_table(door, "t", features=["age"], target="y").marked_
        with Door({"t": table}, ledger=book) as door:
            again = GaussianNB().fit_table(door, "t", features=["age"], target="y")
            assert door.spent == PureDP(1)
    assert again.marked_
