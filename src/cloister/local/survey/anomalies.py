"""Tests that tell reports which no honest crowd could have sent, whatever its true answers are.

Randomised reports can't be believed one by one, but together they obey laws: each report is more likely than some least chance
and rarer than some greatest one whatever the truth; a unary report has a known number of bits; seeds are uniform. Who sends
made-up reports breaks these laws, unless they lie as the protocol would (and then they can only lie about their answer).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.protocols.coins import probability


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """One test of the reports to one question at one level.

    >>> Anomaly(test="bits in a report", p_value=0.2).alarm, Anomaly(test="bits in a report", p_value=1e-9).alarm
    (False, True)
    """

    test: str
    p_value: float
    """An upper bound on (or, for chi-square, a close value of) the chance of reports as odd as these from honest people."""

    @property
    def alarm(self) -> bool:
        """Whether honest people would send such reports less than once in a million surveys."""
        return self.p_value < 1e-6

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"test": self.test, "p_value": self.p_value, "alarm": self.alarm}


def within_reach(counts: npt.NDArray[Any], n: int, low: float, high: float, *, test: str) -> Anomaly:
    """Are counts of reports within what any true answers can make of them? Each report counts towards a cell with a
    probability from `low` to `high`, whoever sent it.

    Proof: the count of a cell is a sum of independent coins with probabilities of at least `low`, so it lies below n·x, x < low,
    with a probability of at most exp(−n·KL(x‖low)) (Hoeffding 1963); above likewise. The least over 2 × cells tests is multiplied
    by their number (Bonferroni).

    >>> within_reach(np.array([500, 500]), 1000, 0.3, 0.7, test="t").p_value, within_reach(np.array([990, 10]), 1000, 0.3, 0.7,
    ... test="t").alarm
    (1.0, True)
    """
    if not n or not len(counts):
        return Anomaly(test=test, p_value=1.0)
    shares = np.clip(np.asarray(counts, dtype=np.float64) / n, 0.0, 1.0)
    least, most = float(shares.min()), float(shares.max())
    bound = 0.0
    if least < low:
        bound = max(bound, _divergence(least, low))
    if most > high:
        bound = max(bound, _divergence(most, high))
    return Anomaly(test=test, p_value=min(1.0, 2 * len(shares) * math.exp(-n * bound)))


def fits_law(observed: npt.NDArray[Any], law: Sequence[float], *, test: str) -> Anomaly:
    """Chi-square of counts against a known law; cells that expect fewer than 5 are joined to their neighbours.

    >>> fits_law(np.array([250, 500, 250]), [0.25, 0.5, 0.25], test="t").p_value
    1.0
    """
    n = int(observed.sum())
    seen: list[float] = []
    wanted: list[float] = []
    held, hoped = 0.0, 0.0
    for count, chance in zip(observed.tolist(), law, strict=True):
        held, hoped = held + count, hoped + n * chance
        if hoped >= 5:
            seen.append(held)
            wanted.append(hoped)
            held, hoped = 0.0, 0.0
    if seen:
        seen[-1], wanted[-1] = seen[-1] + held, wanted[-1] + hoped
    if len(seen) < 2:
        return Anomaly(test=test, p_value=1.0)
    statistic = sum((each - hope) ** 2 / hope for each, hope in zip(seen, wanted, strict=True))
    return Anomaly(test=test, p_value=chi_square_tail(statistic, len(seen) - 1))


def bits_of_one(size: int, stay: int, rise: int) -> list[float]:
    """The law of the number of bits set in an honest unary report: one coin of `stay`, size − 1 of `rise`, whatever the answer.

    >>> [round(each, 3) for each in bits_of_one(2, 1 << 63, 1 << 62)]
    [0.375, 0.5, 0.125]
    """
    s, r = float(probability(stay)), float(probability(rise))
    others = [_binomial(size - 1, k, r) for k in range(size)]
    return [(1 - s) * (others[k] if k < size else 0.0) + s * (others[k - 1] if k else 0.0) for k in range(size + 1)]


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(χ² ≥ statistic), from the upper incomplete gamma function.

    >>> round(chi_square_tail(3.841, 1), 3), round(chi_square_tail(18.307, 10), 3)
    (0.05, 0.05)
    """
    from cloister.privacy.precision import context

    if freedom < 1 or statistic <= 0:
        return 1.0
    return float(context().gammainc(freedom / 2, statistic / 2, regularized=True))


def _divergence(x: float, p: float) -> float:
    """KL of two coins, in nats."""
    if not 0 < p < 1:
        return math.inf if x != p else 0.0
    left = x * math.log(x / p) if x > 0 else 0.0
    right = (1 - x) * math.log((1 - x) / (1 - p)) if x < 1 else 0.0
    return max(0.0, left + right)


def _binomial(n: int, k: int, p: float) -> float:
    if p <= 0 or p >= 1:
        return float(k == (n if p >= 1 else 0))
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p))
