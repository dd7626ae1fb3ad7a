"""Randomised response: a person answers truly with a known probability and by chance otherwise, so that no single answer tells.

Probabilities are exact rationals, drawn exactly. The guarantee's ε is a logarithm, hence irrational: it is a rational just
above it. These protect one report as it is given (changing what the person would have said, or leaving the report out and
putting a public constant law in its place); `cloister.local` builds frequency oracles on the same idea.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import level, vector, whole
from cloister.noise._exponentials import exp_down, ln_up
from cloister.noise.mechanism import set_fields, source
from cloister.noise.random import Random
from cloister.privacy import Exact, PureDP, exact, exact_positive

_DENOMINATOR = 1 << 40


@dataclass(frozen=True, slots=True, init=False)
class BinaryResponse:
    """Warner's randomised response: the truth with probability `truth`, otherwise "yes" with probability `coin`.

    Guarantee: ε-DP for a change of the one true answer (Warner 1965; Kasiviswanathan et al. 2011). With p = `truth` and q =
    `coin`, P("yes") is p + (1−p)q or (1−p)q, and P("no") is (1−p)(1−q) or p + (1−p)(1−q); so ε is the larger of ln(1 +
    p/((1−p)q)) and the same with 1−q. A fair second coin gives ln((1+p)/(1−p)); one coin of bias p thrown twice gives ln(1 +
    p/(1−p)²) for p ≥ ½, hence ln 3 at p = ½ and ln 21 = 3.04 at p = 0.8.

    Error: `estimate` is unbiased for a share of n people; its variance is y(1−y)/np², y being the probability of a "yes".

    >>> round(float(BinaryResponse(truth="1/2").guarantee.epsilon), 6), round(math.log(3), 6)
    (1.098612, 1.098612)
    >>> round(float(BinaryResponse(truth="0.8", coin="0.8").guarantee.epsilon), 6), round(math.log(21), 6)
    (3.044522, 3.044522)
    """

    truth: Fraction
    coin: Fraction

    def __init__(self, *, truth: Exact, coin: Exact = "1/2") -> None:
        p, q = exact(truth, "truth"), exact(coin, "coin")
        if not 0 <= p < 1 or not 0 < q < 1:
            raise InvalidParameter(
                f"truth={truth}, coin={coin} is invalid",
                why="ε would be infinite, or the numbers are not probabilities: 0 <= truth < 1 and 0 < coin < 1",
                instead='BinaryResponse(truth="1/2", coin="1/2")',
            )
        set_fields(self, truth=p, coin=q)

    @classmethod
    def for_epsilon(cls, epsilon: Exact) -> BinaryResponse:
        """With a fair coin, the largest `truth` (to 2⁻⁴⁰) that costs at most ε: (e^ε − 1)/(e^ε + 1), rounded down.

        >>> BinaryResponse.for_epsilon(1).guarantee <= PureDP(1)
        True
        """
        odds = exp_down(_modest(epsilon))
        return cls(truth=Fraction(math.floor((odds - 1) / (odds + 1) * _DENOMINATOR), _DENOMINATOR))

    @property
    def yes(self) -> tuple[Fraction, Fraction]:
        """P("yes" reported) where the truth is no, and where it is yes.

        >>> BinaryResponse(truth="1/2").yes
        (Fraction(1, 4), Fraction(3, 4))
        """
        return (1 - self.truth) * self.coin, self.truth + (1 - self.truth) * self.coin

    @property
    def guarantee(self) -> PureDP:
        """ε, rounded up."""
        low, high = self.yes
        return PureDP(ln_up(max(high / low, (1 - low) / (1 - high))))

    @property
    def variance(self) -> float:
        """The variance of `estimate` from one report, at worst over the truth; infinite where `truth` is 0."""
        return float(max(y * (1 - y) for y in self.yes) / self.truth**2) if self.truth else math.inf

    def release(self, value: Any, *, random: Random | None = None) -> Any:
        """The report of one truth value, or an array of reports for an array of truth values.

        >>> from cloister.noise.random import Random
        >>> BinaryResponse(truth="0.9").release([True, False, True], random=Random.deterministic(1)).tolist()
        [True, False, True]
        """
        array = np.asarray(value)
        if array.dtype != np.bool_:
            raise InvalidParameter("value is invalid", why="it must be True or False, or an array of these", instead="value=True")
        low, high = self.yes
        scale = math.lcm(low.denominator, high.denominator)
        points = source(random).below(scale, array.size).reshape(array.shape)
        reports = np.where(array, points < int(high * scale), points < int(low * scale)).astype(np.bool_)
        return bool(reports) if array.ndim == 0 else reports

    def estimate(self, reports: npt.NDArray[np.bool_]) -> float:
        """The share of true "yes" behind the reports: unbiased, and so not always within [0, 1].

        >>> BinaryResponse(truth="1/2").estimate(np.array([True, True, True, False]))
        1.0
        """
        return (float(np.mean(reports)) - float(self.yes[0])) / float(self.truth)

    def margin(self, confidence: Exact = 0.95, *, reports: int) -> float:
        """A half-width for `estimate` from that many reports, right whatever the truths are (Hoeffding 1963).

        >>> round(BinaryResponse(truth="1/2").margin(0.95, reports=10_000), 4)
        0.0272
        """
        return hoeffding(confidence, reports) / float(self.truth) if self.truth else math.inf


@dataclass(frozen=True, slots=True, init=False)
class KaryResponse:
    """Direct encoding: one of k categories, reported truly with probability `truth`, and as each other one with (1 − truth)/(k
    − 1).

    Guarantee: ε-DP for a change of the one true category, e^ε = truth·(k−1)/(1−truth) (Kairouz, Oh & Viswanath 2016). Every
    category is possible for every truth: an index off by one, which leaves one out, would make ε infinite.

    Error: a count estimated from n reports has variance n·q(1−q)/(p−q)² where nobody holds the category, p = truth and q =
    (1−p)/(k−1).

    >>> KaryResponse(categories=4, truth="1/2").guarantee.epsilon == BinaryResponse(truth="1/2").guarantee.epsilon
    True
    """

    categories: int
    truth: Fraction

    def __init__(self, *, categories: int, truth: Exact) -> None:
        p = exact(truth, "truth")
        if not 0 < p < 1:
            raise InvalidParameter(
                f"truth={truth} is invalid", why="it must lie between 0 and 1, or ε is infinite", instead='truth="1/2"'
            )
        set_fields(self, categories=whole(categories, "categories", least=2), truth=p)

    @classmethod
    def for_epsilon(cls, epsilon: Exact, *, categories: int) -> KaryResponse:
        """The largest `truth` (to 2⁻⁴⁰ of its odds) that costs at most ε: e^ε/(e^ε + k − 1), rounded down.

        >>> KaryResponse.for_epsilon(1, categories=10).guarantee <= PureDP(1)
        True
        """
        others = whole(categories, "categories", least=2) - 1
        odds = Fraction(math.floor(exp_down(_modest(epsilon)) * _DENOMINATOR), _DENOMINATOR)
        return cls(categories=categories, truth=odds / (odds + others))

    @property
    def other(self) -> Fraction:
        """The probability of each single category that is not the true one."""
        return (1 - self.truth) / (self.categories - 1)

    @property
    def guarantee(self) -> PureDP:
        """ε, rounded up; also where the truth is reported less often than the rest."""
        ratio = self.truth / self.other
        return PureDP(ln_up(max(ratio, 1 / ratio)))

    @property
    def variance(self) -> float:
        """The variance of one estimated count from one report, at worst over the truth; infinite where reports tell nothing."""
        p, q = self.truth, self.other
        return float(max(p * (1 - p), q * (1 - q)) / (p - q) ** 2) if p != q else math.inf

    def release(self, value: Any, *, random: Random | None = None) -> Any:
        """The report of one category (0 … k−1), or an array of reports for an array of categories.

        >>> from cloister.noise.random import Random
        >>> KaryResponse(categories=5, truth="0.9").release([0, 4, 2], random=Random.deterministic(1)).tolist()
        [0, 4, 2]
        """
        single = isinstance(value, int | np.integer)
        length = 1 if single else len(value) if isinstance(value, Sequence | np.ndarray) else 0
        truths = vector([value] if single else value, "value", length)
        if length and (truths.min() < 0 or truths.max() >= self.categories):
            raise InvalidParameter("value is invalid", why="a category is a whole number below `categories`", instead="value=0")
        # on the common denominator the true category holds `heavy` points and every other one `light`
        heavy = self.truth.numerator * (self.categories - 1)
        light = self.truth.denominator - self.truth.numerator
        points = source(random).below(heavy + light * (self.categories - 1), length)
        others = ((np.maximum(points, heavy) - heavy) // light).astype(
            np.int64
        )  # the rank among the others; it skips the true one
        reports = np.where((points < heavy).astype(np.bool_), truths, others + (others >= truths)).astype(np.int64)
        return int(reports[0]) if single else reports

    def estimate(self, reports: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The number of people in each category: unbiased, and so below zero at times.

        >>> KaryResponse(categories=2, truth="3/4").estimate(np.array([0, 0, 0, 1])).tolist()
        [4.0, 0.0]
        """
        if self.truth == self.other:
            raise InvalidParameter(
                "The estimate is invalid", why="all reports are equally likely", instead="a truth other than 1/categories"
            )
        seen = np.bincount(reports, minlength=self.categories)
        return np.asarray((seen - len(reports) * float(self.other)) / float(self.truth - self.other))

    def margin(self, confidence: Exact = 0.95, *, reports: int) -> float:
        """A half-width for each estimated count by itself, right whatever the truths are (Hoeffding 1963).

        >>> KaryResponse(categories=4, truth="1/2").margin(0.95, reports=100) < 100
        True
        """
        spread = float(abs(self.truth - self.other))
        return reports * hoeffding(confidence, reports) / spread if spread else math.inf


def hoeffding(confidence: Exact, n: int) -> float:
    """The t with P(|mean of n independent coins − its expectation| >= t) <= 1 − confidence.

    >>> round(hoeffding(0.95, 100), 3)
    0.136
    """
    return math.sqrt(math.log(2 / (1 - level(confidence))) / (2 * whole(n, "reports", least=1)))


def _modest(epsilon: Exact) -> Fraction:
    number = exact_positive(epsilon, "epsilon")
    if number > 27:
        raise InvalidParameter(
            f"epsilon={epsilon} is invalid", why="above 27 nearly every report is the truth", instead="epsilon=1"
        )
    return number
