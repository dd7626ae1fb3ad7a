"""Rows made ready: no row is too long, one person changes each sum by what is declared, and coefficients lead back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.learn.frame.bounds import Rows, box_of
from cloister.learn.frame.vectors import noisy_columns, noisy_vector
from cloister.learn.linear_models import prepared as module
from cloister.learn.linear_models.prepared import prepare
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP
from cloister.tables.engines.row_sums import STEPS, ball_rows

WHOLES = [PureDP(1), PureDP("0.001"), PureDP(10_000), ApproxDP(1, "1e-5"), ZCDP("0.1")]


def rows_of(X: Any, y: Any, bounds: Any = (0, 10)) -> Rows:
    X = np.asarray(X, dtype=float)
    box = box_of(bounds, features=X.shape[1])
    return Rows(X=box.clipped(X), y=np.asarray(y), box=box)


def some(n: int = 300, d: int = 4, classes: int = 3) -> Rows:
    draw = np.random.default_rng(1)
    return rows_of(draw.uniform(0, 10, size=(n, d)), draw.integers(0, classes, size=n))


def test_a_row_is_never_longer_than_declared() -> None:
    draw = np.random.default_rng(1)
    X = draw.normal(size=(20_000, 7)) * 10.0 ** draw.uniform(-20, 20, size=(20_000, 1))
    steps = ball_rows(X, 0.37)
    assert ((steps.astype(object) ** 2).sum(axis=1) <= STEPS**2).all()
    assert ((steps**2).sum(axis=1) > 0.99 * STEPS**2).any()


@pytest.mark.parametrize("whole", WHOLES, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_prepared_rows_are_in_the_unit_ball(whole: Any, n: int) -> None:
    given = some(n)
    ready = prepare(given, 3, Allowance(whole), Random.deterministic(1))
    assert ready.rows.dtype == np.int64
    assert ready.rows.shape == (n, 5)
    assert ((ready.rows.astype(object) ** 2).sum(axis=1) <= STEPS**2).all()
    assert (ready.rows[:, -1] == ready.constant * STEPS).all()
    assert ready.counts.min() >= 1
    assert ready.people >= 10
    assert 0 <= ready.square <= 1


def test_every_sum_changes_by_at_most_one_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is noised is recorded; between neighbours it differs by at most the sensitivity it was noised for."""
    seen: list[tuple[np.ndarray, Fraction]] = []
    monkeypatch.setattr(Allowance, "share", recording(Allowance.share, seen))
    monkeypatch.setattr(module, "noisy_vector", lambda values, share, random, length: keep(seen, values, length))
    full = some()
    found = []
    for left_out in (None, 0, 17, 299):
        keeping = np.arange(300) != left_out
        assert full.y is not None
        seen.clear()
        prepare(Rows(X=full.X[keeping], y=full.y[keeping], box=full.box), 3, Allowance(PureDP(1)), Random.deterministic(1))
        found.append([(values.copy(), bound) for values, bound in seen])
    changed = 0.0
    for other in found[1:]:
        for (values, bound), (fewer, same) in zip(found[0], other, strict=True):
            assert bound == same
            assert np.linalg.norm(values - fewer) <= bound
            changed += float(np.linalg.norm(values - fewer))
    assert changed > 0


def keep(seen: list[tuple[np.ndarray, Fraction]], values: np.ndarray, bound: Any) -> np.ndarray:
    seen.append((values, bound))
    coarse = 100 * float(bound)
    return np.round(values / coarse) * coarse  # the same for neighbours, so that later rounds can be compared


def recording(share: Any, seen: list[tuple[np.ndarray, Fraction]]) -> Any:
    class Kept:
        currency = "epsilon"

        def add(self, values: np.ndarray, *, l1: Any, l2_squared: Any, random: Any) -> np.ndarray:
            return keep(seen, values, l1)

        def variance(self, **sensitivities: Any) -> float:
            return 1.0

    def drawn(self: Allowance, what: str, portion: Any) -> Any:
        share(self, what, portion)
        return Kept()

    return drawn


def test_coefficients_give_the_scores_of_prepared_rows() -> None:
    given = some()
    ready = prepare(given, 3, Allowance(PureDP(10_000)), Random.deterministic(1))
    weights = np.random.default_rng(2).normal(size=(5, 2))
    coefficients, intercepts = ready.unscaled(weights)
    inside = np.linalg.norm(given.box.centred(given.X) - ready.centre, axis=1) <= ready.radius
    assert inside.mean() > 0.5
    ours = (given.X @ coefficients.T + intercepts)[inside]
    assert np.allclose(ours, (ready.rows / STEPS @ weights)[inside], atol=2e-3)


@pytest.mark.parametrize("epsilon", ["0.0001", "0.5", "100"])
def test_noise_of_columns_has_the_declared_length(epsilon: str) -> None:
    """The mean length of 2,000 columns of 6 numbers is 6Δ/ε, with a standard error of 0.9 %: ±8 % by chance is below 1e-15."""
    share = Allowance(PureDP(epsilon)).rest("x")
    values = np.full((6, 2000), 12345, dtype=np.int64)
    noisy = noisy_columns(values, share, Random.deterministic(1), length=Fraction(STEPS))
    step = max(1, int(STEPS / float(epsilon) / 2**18))
    expected = 6 * (STEPS + (6**0.5 * step if step > 1 else 0)) / float(epsilon)
    assert np.linalg.norm(noisy - values, axis=0).mean() == pytest.approx(expected, rel=0.08)
    assert (noisy == np.rint(noisy)).all()


def test_noise_of_a_vector_is_gaussian_where_a_delta_is() -> None:
    share = Allowance(ApproxDP(1, "1e-5")).rest("x")
    noisy = noisy_vector(np.zeros(4000, dtype=np.int64), share, Random.deterministic(1), length=Fraction(STEPS))
    assert noisy.std() == pytest.approx(STEPS / float(share.mu_squared) ** 0.5, rel=0.08)
