"""Poisson regression: the line of scikit-learn, what is noised, bad counts, tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor as Theirs

import cloister as cl
from cloister.errors import InvalidParameter, MissingBound
from cloister.learn import PoissonRegressor, load
from cloister.learn.linear_models import descent
from cloister.noise import Random
from cloister.privacy import ApproxDP, PureDP
from tests.learn.replay import moved, told

DRAW = np.random.default_rng(1)
X = DRAW.uniform(0, 10, size=(8000, 3))
Y = np.minimum(DRAW.poisson(np.exp(0.15 * X[:, 0] - 0.1 * X[:, 1] + 0.5)), 20)
PLAIN = Theirs(alpha=0, tol=1e-9, max_iter=1000).fit(X, Y)


def model(**parameters: Any) -> PoissonRegressor:
    return PoissonRegressor(**{"bounds": (0, 10), "bounds_y": (0, 20), "random": Random.deterministic(1), **parameters})


@pytest.mark.parametrize("bounds_y", [None, (0, 20), (0, 1000)])
def test_without_privacy_it_is_scikit_learns(bounds_y: Any) -> None:
    ours = PoissonRegressor(privacy=None, bounds_y=bounds_y).fit(X, Y)
    assert np.allclose(ours.coef_, PLAIN.coef_, atol=1e-4)
    assert ours.intercept_ == pytest.approx(PLAIN.intercept_, abs=1e-3)
    assert np.allclose(ours.predict(X), PLAIN.predict(X), rtol=1e-3)
    assert ours.score(X, Y) == pytest.approx(PLAIN.score(X, Y), abs=1e-6)
    assert ours.score(X, Y, sample_weight=X[:, 0]) == pytest.approx(PLAIN.score(X, Y, sample_weight=X[:, 0]), abs=1e-6)


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_at_a_huge_epsilon_it_is_nearly_scikit_learns(delta: Any) -> None:
    ours = model(epsilon=10**6, delta=delta).fit(X, Y)
    assert ours.score(X, Y) == pytest.approx(PLAIN.score(X, Y), abs=0.002)
    assert ours.coef_ == pytest.approx(PLAIN.coef_, abs=0.02)


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_it_learns_at_an_epsilon_of_one(delta: Any) -> None:
    ours = model(epsilon=1, delta=delta).fit(X, Y)
    assert ours.score(X, Y) > 0.9 * PLAIN.score(X, Y)
    assert ours.guarantee_ == (ApproxDP(1, "1e-6") if delta else PureDP(1))
    assert [share.what for share in ours.spent_][:2] == ["number and sum of counts", "length of rows"]
    again = load(ours.to_json())
    assert isinstance(again, PoissonRegressor)
    assert again.predict(X).tolist() == ours.predict(X).tolist()
    assert str(again.card()) == str(ours.card())


def test_rates_stay_within_what_is_declared() -> None:
    """However far the line leads: above the highest count, and not down to 0, where a deviance has no value."""
    ours = model(epsilon=10**6, delta="1e-6").fit(X, Y)
    ours.coef_ = np.array([50.0, -50.0, 0.0])
    assert ours.predict([[10, 0, 5]]) == pytest.approx([20])
    [low] = ours.predict([[0, 10, 5]])
    assert 0 < low < 1e-12
    assert ours.predict([[10**9, 0, 5]]) == pytest.approx([20])


def test_few_people_with_no_count_at_all_make_a_model() -> None:
    for count in (0, 1, 5):
        ours = model(epsilon="0.01").fit(X[:count], np.zeros(count))
        assert np.isfinite(ours.predict(X)).all()


@pytest.mark.parametrize("delta", [None, "1e-5"])
def test_a_count_moves_nothing_by_more_than_was_declared(delta: Any) -> None:
    """At the ends of the bounds, beyond them and between whole numbers, in corners of the box; all that there is is reached."""
    rows = np.array([[0, 0], [1, 1], [1, 0], [0, 1], [1, 1], [0.5, 0.2]])
    counts = np.array([0.0, 9, 1e300, -np.inf, 0, 3.3])

    def fit(kept: Any) -> Any:
        ours = PoissonRegressor(epsilon=8, delta=delta, bounds=(0, 1), bounds_y=(0, 9), random=Random.deterministic(5))
        return lambda: ours.fit(rows[kept], counts[kept])

    whole = told(fit(np.arange(6)))
    furthest = max(max(moved(whole, told(fit(np.arange(6) != at), whole))) for at in range(6))
    assert 0.8 < furthest <= 1


def test_residuals_that_are_not_cut_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """BROKEN ON PURPOSE: the noise is for the cut, and nothing is cut."""
    cut = descent.cut
    monkeypatch.setattr(descent, "cut", lambda residuals, clip: cut(residuals, 1.0))
    counts = np.array([0.0] * 60 + [1000])

    def fit(kept: int) -> Any:
        ours = PoissonRegressor(epsilon=8, bounds=(0, 1), bounds_y=(0, 1000), random=Random.deterministic(5))
        return lambda: ours.fit(np.ones((kept, 1)), counts[:kept])

    whole = told(fit(61))
    assert max(moved(whole, told(fit(60), whole))) > 1


# ── what is no count ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bounds_y", "why", "instead"),
    [
        ((-1, 20), "a count is never below 0", "bounds_y=(0, 20)"),
        ((0, 2.5), "a count is a whole number", "bounds_y=(0, 3)"),
        ((0.5, 2), "a count is a whole number", "bounds_y=(0, 2)"),
        ((0, 1001), "counts up to 1,000 are learned", "bounds_y=(0, 1000)"),
        ((3, 3), "the interval is empty", "bounds_y=(0, 1)"),
    ],
)
def test_bounds_of_no_count_are_refused(bounds_y: Any, why: str, instead: str) -> None:
    for given in ({}, {"privacy": None}):
        with pytest.raises(InvalidParameter, match=why) as caught:
            model(bounds_y=bounds_y, **given).fit(X, Y)
        assert instead in str(caught.value)


def test_a_bound_is_declared() -> None:
    with pytest.raises(MissingBound, match=r"bounds_y= is missing: what the target may be is declared, never looked up"):
        model(bounds_y=None).fit(X, Y)


def test_a_count_that_is_none_is_refused_of_public_rows_alone() -> None:
    """Of private rows an error would say that there is one: what is below 0 counts as 0, what is above the bound as the bound."""
    with pytest.raises(InvalidParameter, match="y is invalid: a count is never below 0"):
        PoissonRegressor(privacy=None).fit(X, Y - 1.0)
    wrong, right = Y.astype(float), Y.astype(float)
    wrong[:3], right[:3] = (-4, 1e9, -np.inf), (0, 20, 0)
    assert model().fit(X, wrong).coef_.tolist() == model().fit(X, right).coef_.tolist()


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def table(**change: Any) -> cl.PrivateTable:
    values = {"age": (X[:, 0] * 5 + 20).round().tolist(), "sex": ["FM"[int(one > 5)] for one in X[:, 1]], "visits": Y.tolist()}
    return cl.PrivateTable(values, columns={"age": cl.Integer(20, 70), "sex": cl.Category(["F", "M"]), **change})


def test_it_learns_from_a_table_whose_counts_are_declared() -> None:
    with cl.Session({"t": table(visits=cl.Integer(0, 20))}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
        ours = PoissonRegressor(epsilon=1).fit_table(session, "t", features=["age", "sex"], target="visits")
        assert session.spent == cl.PureDP(1)
    assert ours.bounds_y_ == (0, 20)
    [young, old] = ours.predict([[20, 1, 0], [70, 1, 0]])
    assert 2 < old / young < 8


@pytest.mark.parametrize(
    ("visits", "why"),
    [
        (cl.Real(0, 20, step="0.5"), "a count is a whole number"),
        (cl.Integer(-1, 20), "a count is never below 0"),
        (cl.Integer(0, 5000), "counts up to 1,000 are learned"),
        (cl.Category([str(each) for each in range(21)]), "it has no declared bounds"),
    ],
)
def test_a_column_of_no_counts_is_refused_before_a_charge(visits: Any, why: str) -> None:
    with cl.Session({"t": table(visits=visits)}, budget=cl.PureDP(2)) as session:
        with pytest.raises(cl.CloisterError, match=why) as caught:
            PoissonRegressor(epsilon=1).fit_table(session, "t", features=["age", "sex"], target="visits")
        assert 'columns={"visits": cl.' in str(caught.value)
        assert session.spent == cl.PureDP(0)


def test_a_day_is_not_a_count() -> None:
    """It was to be declared as `cl.Integer(0, 1000)`, which no column of days can be."""
    days = {"day": ["2026-03-01", "2026-03-02"], "age": [30, 40]}
    columns = {"day": cl.Date("1970-01-01", "2026-12-31"), "age": cl.Integer(20, 70)}
    with cl.Session({"t": cl.PrivateTable(days, columns)}, budget=cl.PureDP(2)) as session:
        with pytest.raises(cl.CloisterError, match="a day is not a count") as caught:
            PoissonRegressor(epsilon=1).fit_table(session, "t", features=["age"], target="day")
        assert caught.value.instead == "another target"
        assert session.spent == cl.PureDP(0)


def test_a_mean_that_came_out_too_low_does_not_make_steps_too_long() -> None:
    """Of few counts under a high bound the noisy mean is off by as much as it is: where it was too low, the descent diverged."""
    draw = np.random.default_rng(3)
    X = draw.uniform(0, 1, (20_000, 2))
    y = draw.poisson(np.exp(X[:, 0] - X[:, 1] - 0.4))
    fitted = [
        PoissonRegressor(epsilon=1, bounds=(0, 1), bounds_y=(0, 200), random=Random.deterministic(seed)).fit(X, y)
        for seed in range(12)
    ]
    assert min(model.score(X, y) for model in fitted) > -1


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_at_a_huge_epsilon_few_skewed_rows_are_drawn_in(delta: Any) -> None:
    draw = np.random.default_rng(1)
    rows = np.clip(draw.exponential(0.12, size=(10_000, 3)), 0, 1)
    rates = np.minimum(np.exp(rows @ [4.0, 3.0, 2.0] - 1), 20)
    ours = PoissonRegressor(epsilon=10**4, delta=delta, bounds=(0, 1), bounds_y=(0, 20), random=Random.deterministic(1))
    ours.fit(rows, np.minimum(draw.poisson(rates), 20))
    assert np.corrcoef(ours.predict(rows), rates)[0, 1] > 0.98
    assert np.abs(ours.predict(rows) - rates).mean() < (0.1 if delta else 0.2) * rates.mean()
