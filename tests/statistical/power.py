"""How many draws a test of a sampler needs, and exact laws to hold it against: nothing here uses the code under test.

Power. A test of scale looks at the mean of |noise| (or of its square). Its sample size follows from the false alarm that is
allowed, the power that is wanted and the smallest harmful error, 5 % of the scale:
n = ((z(false alarm/2)·s₀ + z(1 − power)·s₁)/(m₁ − m₀))², with means m and standard deviations s under the right law and
the wrong one. Shape is tested by chi-square for the middle and by exact binomial tests for the tails, which chi-square
would drown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

FALSE_ALARM = 1e-7  # below the 1e-6 that is allowed: the normal approximation is not exact in its tails
POWER = 0.999
HARM = 0.05

Cumulative = Callable[[int], mpmath.mpf]
"""k ↦ P(K ≤ k)."""


@dataclass(frozen=True)
class ScaleTest:
    """Accepts a sample whose mean of `statistic` is within `reach` of `mean`, when it has `n` draws."""

    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    mean: float
    reach: float
    n: int

    def accepts(self, draws: NDArray[np.int64]) -> bool:
        assert draws.size >= self.n, "too few draws for the power that was promised"
        return bool(abs(float(self.statistic(draws[: self.n].astype(np.float64)).mean()) - self.mean) <= self.reach)


def scale_test(
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], moments: Callable[[float], tuple[float, float]], scale: float
) -> ScaleTest:
    """The test of scale for a law whose statistic has moments(scale) = (mean, standard deviation)."""
    alarm, miss = NormalDist().inv_cdf(1 - FALSE_ALARM / 2), NormalDist().inv_cdf(POWER)
    mean, spread = moments(scale)
    n = 0
    for wrong in (scale * (1 - HARM), scale * (1 + HARM)):
        other, other_spread = moments(wrong)
        n = max(n, math.ceil(((alarm * spread + miss * other_spread) / (other - mean)) ** 2))
    return ScaleTest(statistic=statistic, mean=mean, reach=alarm * spread / math.sqrt(n), n=n)


def laplace_cumulative(scale: mpmath.mpf) -> Cumulative:
    """The discrete Laplace law, in closed form."""
    alpha = mpmath.exp(-1 / scale)

    def cumulative(k: int) -> mpmath.mpf:
        return 1 - alpha ** (k + 1) / (1 + alpha) if k >= 0 else alpha ** (-k) / (1 + alpha)

    return cumulative


def gaussian_cumulative(scale: mpmath.mpf) -> Cumulative:
    """The discrete Gaussian law: the sum itself up to σ = 50; beyond, the integral to the middle of the gap, whose relative error
    near 1/(24σ²) < 2e-5 moves a chi-square over a million draws by less than one thousandth."""
    if scale > 50:
        return lambda k: mpmath.ncdf((k + mpmath.mpf(1) / 2) / scale)
    reach = int(40 * scale) + 2
    weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)) for k in range(-reach, reach + 1)]
    total = mpmath.fsum(weights)
    sums = np.cumsum(np.array(weights, dtype=object))
    return lambda k: sums[min(max(k + reach, 0), 2 * reach)] / total if k >= -reach else mpmath.mpf(0)


def rounded(cumulative: Callable[[mpmath.mpf], mpmath.mpf]) -> Cumulative:
    """A continuous law, rounded to integers."""
    return lambda k: cumulative(k + mpmath.mpf(1) / 2)


def exponential_cumulative(scale: mpmath.mpf) -> Cumulative:
    """The one-sided law."""
    return lambda k: 1 - mpmath.exp(-(k + 1) / scale) if k >= 0 else mpmath.mpf(0)


def p_value(draws: NDArray[np.int64], cumulative: Cumulative, *, cells: int = 300) -> float:
    """The p-value of a law: twice the lesser of chi-square over cells and of the tails, which carry Bonferroni's factor."""
    tails = [quantile(cumulative, share) for j in range(4, 18) if (share := 1 - 2.0**-j) < 1 - 4 / draws.size]
    beyond = []
    for far in sorted(set(tails)):
        for count, share in (
            (int((draws > far).sum()), 1 - cumulative(far)),
            (int((draws < -far).sum()), cumulative(-far - 1)),
        ):
            beyond.append(float(stats.binomtest(count, draws.size, float(share)).pvalue))
    return min(1.0, 2 * min(chi_square(draws, cumulative, cells=cells), len(beyond) * min(beyond)))


def chi_square(draws: NDArray[np.int64], cumulative: Cumulative, *, cells: int) -> float:
    """Chi-square on cells of about equal probability."""
    edges = sorted({quantile(cumulative, i / cells) for i in range(1, cells)})
    at = [cumulative(k) for k in edges]
    due = np.array([float(b - a) for a, b in zip([mpmath.mpf(0), *at], [*at, mpmath.mpf(1)], strict=True)]) * draws.size
    seen = np.bincount(np.searchsorted(np.array(edges), draws, side="left"), minlength=len(edges) + 1).astype(float)
    due, seen = merged(due, seen, least=6.0)
    return 1.0 if due.size == 1 else float(stats.chi2.sf(((seen - due) ** 2 / due).sum(), due.size - 1))


def quantile(cumulative: Cumulative, share: float) -> int:
    """The least k with P(K ≤ k) ≥ share."""
    low, high = -1, 1
    while cumulative(low) >= share:
        low *= 2
    while cumulative(high) < share:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cumulative(middle) >= share else (middle, high)
    return high


def merged(
    due: NDArray[np.float64], seen: NDArray[np.float64], *, least: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Neighbouring cells joined until each is due at least `least` draws."""
    groups: list[list[float]] = []
    for want, got in zip(due, seen, strict=True):
        if groups and groups[-1][0] < least:
            groups[-1][0] += want
            groups[-1][1] += got
        else:
            groups.append([want, got])
    if len(groups) > 1 and groups[-1][0] < least:
        want, got = groups.pop()
        groups[-1][0] += want
        groups[-1][1] += got
    return np.array([group[0] for group in groups]), np.array([group[1] for group in groups])
