"""Objective and output perturbation: what the theorems ask for holds, worked out again from neighbouring rows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.learn.linear_models import objective
from cloister.learn.linear_models.linear_classes import perturbed_output
from cloister.learn.linear_models.losses import HuberHinge, Logistic, Loss, Softmax
from cloister.learn.linear_models.minimum import minimum
from cloister.learn.linear_models.objective import TOLERANCE, _error_of_the_term, perturbed_objective, plan, solvable
from cloister.learn.linear_models.prepared import Prepared, prepare
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ApproxDP, PureDP
from cloister.tables.engines.row_sums import STEPS
from tests.learn.test_prepared import some

LOSSES = [Logistic(slope=0.7), Softmax(classes=3), HuberHinge(classes=2), HuberHinge(classes=3)]


def ready(loss: Loss, n: int = 60) -> Prepared:
    return prepare(some(n, classes=2 if loss.columns == 1 else 3), 3, Allowance(PureDP(10_000)), Random.deterministic(1))


def hessian(loss: Loss, rows: Any, classes: Any, weights: Any, ridge: float) -> np.ndarray:
    units = np.eye(weights.size).reshape(-1, *weights.shape)
    columns = [(rows.T @ loss.bent(rows @ weights, classes, rows @ unit) + ridge * unit).ravel() for unit in units]
    return np.stack(columns)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
def test_density_of_the_weights_changes_by_at_most_epsilon(loss: Loss, epsilon: str) -> None:
    """The two factors of the density at weights w: the length of b(w), and the Jacobian; between all neighbours, at many w."""
    spent = plan(loss, Fraction(epsilon), numbers=15)
    assert spent.noise + spent.jacobian + spent.rounding <= Fraction(epsilon)
    assert min(spent.noise, spent.jacobian, spent.rounding) > 0
    given = ready(loss, 12)
    rows, draw, worst = given.rows / STEPS, np.random.default_rng(3), 0.0
    for size in (0.0, 0.5, 5.0):
        weights = size * draw.normal(size=(5, loss.columns))
        for left_out in range(12):
            kept = np.arange(12) != left_out
            lengths, determinants = [], []
            for chosen in (np.ones(12, dtype=bool), kept):
                x, y = rows[chosen], given.classes[chosen]
                b = x.T @ loss.residuals(x @ weights, y) + spent.ridge * weights
                lengths.append(np.linalg.norm(b, axis=0).sum() * float(spent.noise) / loss.reach)
                determinants.append(np.linalg.slogdet(hessian(loss, x, y, weights, spent.ridge))[1])
            length, determinant = abs(lengths[0] - lengths[1]), determinants[0] - determinants[1]
            assert length <= float(spent.noise) * (1 + 1e-9)
            assert -1e-9 <= determinant <= float(spent.jacobian) * (1 + 1e-9)
            worst = max(worst, length / float(spent.noise))
    assert worst > 0.2


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_larger_ridge_leaves_more_for_the_noise(loss: Loss) -> None:
    usual, larger = plan(loss, Fraction(1), numbers=15), plan(loss, Fraction(1), numbers=15, ridge=1000.0)
    assert larger.ridge == 1000.0
    assert usual.noise < larger.noise < 1
    assert larger.noise + larger.jacobian + larger.rounding <= 1
    assert loss.columns * math.log1p(loss.trace / loss.columns / 1000.0) <= float(larger.jacobian)


def test_little_noise_leaves_the_minimum() -> None:
    loss = Logistic(slope=0.7)
    given, spent = ready(loss), plan(loss, Fraction(10**6), numbers=5)
    weights = perturbed_objective(given, loss, Random.deterministic(1), plan=spent)
    exact, _ = minimum(
        given.rows / STEPS, given.classes, loss, ridge=np.full((1, 1), spent.ridge), linear=np.zeros((1, 1)), tolerance=1e-9
    )
    assert np.allclose(weights, exact, atol=2e-2)


def test_nothing_is_released_of_a_minimum_that_was_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objective, "minimum", lambda *arguments, **more: (np.full((5, 1), 77.0), False))
    loss = Logistic()
    weights = perturbed_objective(ready(loss), loss, Random.deterministic(1), plan=plan(loss, Fraction(1), numbers=5))
    assert np.abs(weights).max() < 1


def test_the_noise_of_near_minima_is_small_and_covers_the_gap() -> None:
    """Each of 400 numbers has a scale of (1 + √5) gaps over a 64th of ε; their mean size stays within a third by far."""
    loss = Logistic()
    spent = plan(loss, Fraction(1), numbers=5)
    gap = 2 * TOLERANCE / spent.ridge
    drawn = [objective._hidden(np.zeros((5, 1)), spent.rounding, gap, Random.deterministic(seed)) for seed in range(400)]
    mean = float(np.mean([np.linalg.norm(one) for one in drawn]))
    assert mean == pytest.approx(5 * gap * (1 + 5**0.5) / float(spent.rounding), rel=0.15)
    assert mean < 0.2


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("ridge", [0.1, 3.0])
def test_one_person_moves_the_minimum_by_less_than_declared(loss: Loss, ridge: float) -> None:
    given = ready(loss, 40)
    rows, moved = given.rows / STEPS, []
    found = []
    for left_out in [None, *range(40)]:
        kept = np.arange(40) != left_out
        found.append(
            minimum(rows[kept], given.classes[kept], loss, ridge=np.full((1, 1), ridge), linear=np.zeros((1, 1)), tolerance=1e-9)[
                0
            ]
        )
    moved = [float(np.linalg.norm(found[0] - other)) for other in found[1:]]
    assert 0 < max(moved) <= loss.length / ridge


@pytest.mark.parametrize("whole", [PureDP(1), ApproxDP(1, "1e-5")], ids=repr)
def test_output_noise_is_as_declared_and_within_its_margin(whole: Any) -> None:
    """Of 300 releases some 285 lie within a margin of 95 % (for ε all numbers, for Gaussian noise each); the seeds are fixed."""
    loss = Logistic(slope=0.7)
    given = ready(loss)
    exact, _ = minimum(
        given.rows / STEPS, given.classes, loss, ridge=np.full((1, 1), 2.0), linear=np.zeros((1, 1)), tolerance=1e-9
    )
    within, lengths = [], []
    for seed in range(300):
        found = perturbed_output(given, loss, Allowance(whole).rest("x"), Random.deterministic(seed), ridge=2.0)
        off = found.weights - exact
        lengths.append(float(np.linalg.norm(off)))
        within.append(lengths[-1] <= found.margin(0.95) if found.pure else float((np.abs(off) <= found.margin(0.95)).mean()))
    assert 0.9 < np.mean(within) < 0.99
    share = Allowance(whole).rest("x")
    expected = 5 * 0.35 if share.currency == "epsilon" else 5**0.5 * 0.35 / float(share.mu_squared) ** 0.5
    assert np.mean(lengths) == pytest.approx(expected, rel=0.15)


def test_a_long_random_term_widens_what_is_near_enough() -> None:
    loss, shape = Softmax(classes=10), (65, 10)
    usual, small = (_error_of_the_term(plan(loss, Fraction(epsilon), numbers=650), loss, shape) for epsilon in ("1", "0.0001"))
    assert usual < TOLERANCE
    error = math.sqrt(650) * 2.0**-45 * (8 * 65 + 60) * loss.reach / float(plan(loss, Fraction("0.0001"), numbers=650).noise)
    assert small >= 4 * error > TOLERANCE


def test_very_many_persons_widen_what_is_near_enough() -> None:
    given = ready(Logistic())
    assert solvable(given, Logistic()) == TOLERANCE
    many = replace(given, counts=np.array([1e9, 1e9]))
    assert solvable(many, HuberHinge(classes=2)) == 2e9 * 2.0**-42 > TOLERANCE
