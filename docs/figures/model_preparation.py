"""How far a noisy mean of pay is off, by ε: with wide declared bounds, and with bounds bought for a fifth of the spend."""

from __future__ import annotations

from fractions import Fraction

import altair as alt
import numpy as np

from cloister.learn import QuantileClipper, StandardScaler
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.1", "0.3", "1", "3")
WIDE = (0, 10_000_000)


def chart() -> alt.LayerChart:
    """The absolute error of the mean of 20,000 persons, most of whom earn some 50,000."""
    pay = np.random.default_rng(3).lognormal(10.8, 0.5, size=(20_000, 1))
    truth = float(pay.mean())

    def straight(epsilon: str | None, random: Random) -> float:
        return abs(mean_of(pay, WIDE, Fraction(epsilon or 1), random) - truth)

    def bought(epsilon: str | None, random: Random) -> float:
        spend = Fraction(epsilon or 1)
        clipper = QuantileClipper(epsilon=spend / 5, bounds=WIDE, quantiles=("0.01", "0.99"), bins=4096, random=random).fit(pay)
        low, high = float(clipper.low_[0]), float(clipper.high_[0])
        return abs(mean_of(pay, (low, max(high, low + 1.0)), spend * 4 / 5, random) - truth)

    curves = {
        "declared bounds: 0 to 10,000,000": measured("wide", "error", EPSILONS, straight, runs=40, plain=False),
        "clipped at bought quantiles": measured("bought", "error", EPSILONS, bought, runs=40, plain=False),
    }
    return drawn(curves, y="error of the mean", log=True, domain=(10, 100_000))


def mean_of(pay: np.ndarray, bounds: tuple[float, float], epsilon: Fraction, random: Random) -> float:
    """A noisy mean within those bounds."""
    return float(StandardScaler(epsilon=epsilon, bounds=bounds, random=random).fit(pay).mean_[0])
