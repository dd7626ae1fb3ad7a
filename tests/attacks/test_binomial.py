"""Clopper–Pearson bounds against scipy's, their rounding, and their coverage counted exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from cloister.attacks.binomial import lower_bound, upper_bound
from cloister.errors import InvalidParameter

ERRORS = [Fraction(1, 4), Fraction(1, 40), Fraction(1, 10**9), Fraction(1, 10**30)]
COUNTS = [
    (0, 1),
    (1, 1),
    (1, 2),
    (3, 10),
    (10, 10),
    (0, 500_000),
    (1, 500_000),
    (17, 500_000),
    (250_000, 500_000),
    (499_999, 500_000),
    (3, 10**7),
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("hits", "runs"), COUNTS)
def test_the_bounds_are_those_of_the_beta_law_rounded_outward(hits: int, runs: int, error: Fraction) -> None:
    low = beta.ppf(float(error), hits, runs - hits + 1) if hits else 0.0
    high = beta.isf(float(error), hits + 1, runs - hits) if hits < runs else 1.0
    ours = lower_bound(hits, runs, error=error), upper_bound(hits, runs, error=error)
    assert ours[0] <= low * (1 + 1e-10)
    assert ours[1] >= high * (1 - 1e-10)
    assert ours[0] == pytest.approx(low, rel=1e-7, abs=1e-300)
    assert ours[1] == pytest.approx(high, rel=1e-7)


@given(st.integers(1, 400), st.data())
def test_the_bounds_are_mirror_images_and_hold_the_estimate(runs: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, runs))
    error = Fraction(1, data.draw(st.integers(4, 10**12)))
    low, high = lower_bound(hits, runs, error=error), upper_bound(hits, runs, error=error)
    assert 0 <= low <= hits / runs <= high <= 1
    assert high == pytest.approx(1 - lower_bound(runs - hits, runs, error=error), rel=1e-12)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
def test_the_coverage_is_never_less_than_stated(p: float) -> None:
    runs, error = 40, Fraction(1, 20)
    law = [math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]
    too_high = sum(weight for k, weight in enumerate(law) if lower_bound(k, runs, error=error) > p)
    too_low = sum(weight for k, weight in enumerate(law) if upper_bound(k, runs, error=error) < p)
    assert too_high <= error
    assert too_low <= error


@pytest.mark.parametrize(("hits", "runs", "error"), [(1, 0, "0.1"), (-1, 5, "0.1"), (6, 5, "0.1"), (1, 5, "0"), (1, 5, "0.3")])
def test_impossible_counts_and_errors_are_refused(hits: int, runs: int, error: str) -> None:
    with pytest.raises(InvalidParameter):
        lower_bound(hits, runs, error=Fraction(error))
