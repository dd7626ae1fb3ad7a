"""Noisy Newton steps: one person changes the two sums of a round by what is declared, and the steps lead to the minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.learn import LinearSVC, LogisticRegression
from cloister.learn.linear_models.losses import Logistic
from cloister.learn.linear_models.minimum import minimum
from cloister.learn.linear_models.newton import Newton, curvatures, newton_steps, plan
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP
from cloister.tables.engines.row_sums import STEPS
from tests.learn.replay import Told, told
from tests.learn.test_neighbours import BOUNDS, rows
from tests.learn.test_objective import ready

DRAW = np.random.default_rng(1)
X = DRAW.uniform(0, 10, size=(3000, 4))
Y = (X[:, 0] + X[:, 1] > 10 + DRAW.normal(size=3000)).astype(int)


def model(**parameters: Any) -> LogisticRegression:
    given = {"epsilon": 2, "delta": "1e-5", "bounds": (0, 10), "method": "newton", "random": Random.deterministic(1)}
    return LogisticRegression(**(given | parameters))


def part(one: Told, other: Told) -> float:
    """The squared length of the change, over the declared one."""
    steps = (one.values.astype(object) - other.values.astype(object)).ravel().tolist()
    assert one.limits == other.limits
    assert one.limits[0] == "l2"
    return float(sum(int(step) ** 2 for step in steps) / one.limits[1])


@pytest.mark.parametrize(("promise", "idle"), [(("1", "1e-5"), 0.5), (("0.001", "1e-6"), 0.05), (("20", "1e-5"), 0.5)])
def test_one_row_moves_the_two_sums_of_a_round_by_no_more_than_is_declared(promise: tuple[str, str], idle: float) -> None:
    """The Hessian's diagonal and the rest of it have one share together, so their parts are added. Far scores bend little."""

    def fit(given: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
        fitted = model(epsilon=promise[0], delta=promise[1], bounds=BOUNDS)
        return lambda: fitted.fit(given, labels)

    of_gradients, of_hessians = 0.0, 0.0
    for count in (1, 2, 30):
        given, labels, _ = rows(count, "C")
        whole = told(fit(given, labels))
        shapes = [line.values.shape for line in whole]
        first = next(place for place, shape in enumerate(shapes) if shape == (5, 1))  # d and the intercept: a gradient
        assert shapes[first:] == [(5, 1), (10,), (5,)] * ((len(shapes) - first) // 3)
        for place in range(count):
            rest = told(fit(np.delete(given, place, axis=0), np.delete(labels, place)), whole)
            assert len(rest) == len(whole)
            parts = [part(one, other) for one, other in zip(whole, rest, strict=True)]
            of_gradients = max(of_gradients, *parts[first::3])
            of_hessians = max(of_hessians, *(a + b for a, b in zip(parts[first + 1 :: 3], parts[first + 2 :: 3], strict=True)))
            assert max(parts) <= 1
    assert of_gradients <= 1
    assert of_hessians <= 1
    assert of_hessians > idle  # neither bound is idle
    assert of_gradients > 0.2


@pytest.mark.parametrize("whole", [ApproxDP(1, "1e-5"), ZCDP("0.1")], ids=repr)
def test_rounds_share_what_there_is(whole: Any) -> None:
    given, share = ready(Logistic()), Allowance(whole, currency="mu_squared").rest("x")
    heard = told(
        lambda: newton_steps(given, Logistic(), share, None, newton=Newton(rounds=3), start=np.zeros((given.dimension, 1)))
    )
    assert len(heard) == 9
    amounts = [line.limits[2] for line in heard]
    assert sum(amounts[0::3]) + sum(amounts[1::3]) == share.amount
    assert amounts[1::3] == amounts[2::3]


def test_with_little_noise_it_goes_to_the_minimum() -> None:
    loss, given = Logistic(), ready(Logistic(), 300)
    share = Allowance(ApproxDP(10**9, "1e-5")).rest("x")
    steps = Newton(rounds=60, clip=1.0, damping=0.0)
    weights = newton_steps(given, loss, share, Random.deterministic(1), newton=steps, start=np.zeros((given.dimension, 1)))
    exact, near = minimum(
        given.rows / STEPS, given.classes, loss, ridge=np.full((1, 1), 1e-4), linear=np.zeros((1, 1)), tolerance=1e-9
    )
    assert near
    scores, best = (given.rows / STEPS @ w for w in (weights, exact))
    assert loss.value(scores, given.classes) <= loss.value(best, given.classes) * 1.002


def test_the_curvature_lies_above_that_of_the_loss_and_is_at_most_a_quarter() -> None:
    scores = np.concatenate([np.linspace(-40, 40, 4001), [1e-9, -1e-9, 0.0, 1e300, -1e300]])
    found = curvatures(scores)
    p = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    assert (found <= 0.25).all()
    assert (found >= p * (1 - p) - 1e-9).all()
    assert found[2000] == 0.25


def test_it_learns_and_says_what_it_spent() -> None:
    fitted = model().fit(X, Y)
    assert fitted.score(X, Y) > 0.85
    assert fitted.method_ == "newton"
    assert str(fitted.guarantee_) == "ε = 2, δ = 1e-05"
    assert sum(line.portion for line in fitted.spent_) == 1
    assert fitted.spent_[-1].what == "gradients and Hessians"


@pytest.mark.parametrize("epsilon", ["1e-6", "0.001", "1", "10000"])
def test_nothing_breaks_it(epsilon: str) -> None:
    nasty = [
        (np.empty((0, 4)), np.empty(0, dtype=int)),
        (X[:1], Y[:1]),
        (np.full((50, 4), 5.0), np.zeros(50, dtype=int)),
        (np.array([[np.nan] * 4, [np.inf] * 4, [-np.inf] * 4, [1e308] * 4]), np.array([0, 1, 7, -3])),
    ]
    for given, labels in nasty:
        fitted = model(epsilon=epsilon).fit(given, labels)
        assert np.isfinite(fitted.coef_).all()
        assert np.isfinite(fitted.intercept_).all()


@pytest.mark.parametrize("wrong", [{"delta": None}, {"classes": [0, 1, 2]}])
def test_what_it_cannot_do_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"δ|two classes"):
        model(**wrong).fit(X, Y)
    with pytest.raises(InvalidParameter, match="two classes"):
        LinearSVC(delta="1e-5", bounds=(0, 10), method="newton").fit(X, Y)


def test_a_refusal_costs_a_table_nothing() -> None:
    table = cl.PrivateTable({"x": [1, 2, 3], "y": [0, 1, 2]}, {"x": cl.Integer(0, 9), "y": cl.Integer(0, 2)})
    with cl.Session({"t": table}, budget=cl.ZCDP(1)) as session:
        with pytest.raises(InvalidParameter, match="two classes"):
            LogisticRegression(method="newton").fit_table(session, "t", features=["x"], target="y", spend="0.5")
        assert session.spent == cl.ZCDP(0)


def test_more_signal_means_more_rounds() -> None:
    found = [plan(people=n, dimension=50, mu=0.5).rounds for n in (10, 1000, 10**5, 10**9)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (3, 60)
