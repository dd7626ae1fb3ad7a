"""Propose, test, release: name a small bound on the local sensitivity, test privately that the data are far from breaking it,
release.

Where the test fails nothing is released but that it failed. No smooth bound is needed, only the *distance*: how many units must
be added or removed before the local sensitivity exceeds the proposed bound. For the median that is a closed form
(`median_distance`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise._checks import vector, whole
from cloister.noise._exponentials import ln_up
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields
from cloister.noise.random import Random
from cloister.noise.smooth import check_bounds, clamped, local_sensitivities, lower_median
from cloister.privacy import ApproxDP, Exact, exact_positive, exact_probability


@dataclass(frozen=True, slots=True, init=False)
class ProposeTestRelease:
    """An integer statistic with noise of scale b/ε₂, released only if the data are found far from a local sensitivity above b =
    `proposed`.

    Half of ε goes to the test, half to the release. The test adds discrete Laplace noise of scale 1/ε₁ to the distance, and
    passes if the sum exceeds `cutoff`, an integer t with P(noise > t) <= δ: about ln(1/δ)/ε₁.

    Guarantee: (ε, δ)-DP between the neighbours that the distance counts (Dwork & Lei 2009; Vadhan 2017, Section 3.2). Proof:
    the distance has sensitivity 1, so the test is ε₁-DP. If x is at distance at least 1, its local sensitivity is at most b,
    the release moves by at most b to any neighbour, and the pair is (ε₁ + ε₂)-DP by composition. If x is at distance 0, it is
    released with probability at most δ, and what is left is the test's refusal: (ε₁, δ).

    Error: on data at distance d, a refusal has probability P(noise <= cutoff − d); a release errs by at most `margin`.

    >>> mechanism = ProposeTestRelease(epsilon=2, delta="1e-6", proposed=1)
    >>> mechanism.guarantee, mechanism.cutoff, mechanism.margin(0.95)
    (ApproxDP(epsilon='2', delta='0.000001'), 13, 3)
    """

    epsilon: Fraction
    delta: Fraction
    proposed: int

    def __init__(self, *, epsilon: Exact, delta: Exact, proposed: int) -> None:
        cost, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        if not slack:
            raise InvalidParameter(
                "delta=0 is invalid", why="the test may wrongly pass with probability δ", instead='delta="1e-6"'
            )
        set_fields(self, epsilon=cost, delta=slack, proposed=whole(proposed, "proposed", least=1))

    @property
    def guarantee(self) -> ApproxDP:
        """(ε, δ) for test and release together, also where nothing is released."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def test_noise(self) -> DiscreteLaplace:
        """The law of what is added to the distance."""
        return DiscreteLaplace(scale=2 / self.epsilon)

    @property
    def release_noise(self) -> DiscreteLaplace:
        """The law of what is added to the statistic."""
        return DiscreteLaplace(scale=2 * self.proposed / self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of a release that is made."""
        return self.release_noise.variance

    @property
    def cutoff(self) -> int:
        """An integer t with P(test noise > t) <= δ, at most ln(2)/ε₁ + 1 above the least.

        P(Z > t) = α^(t+1)/(1 + α) <= α^(t+1) with α = e^(−ε₁), which is at most δ once t + 1 >= ln(1/δ)/ε₁.
        """
        return max(0, -(-ln_up(1 / self.delta) * 2 // self.epsilon) - 1)

    def margin(self, confidence: Exact = 0.95) -> int:
        """The half-width of the interval around a release that is made; the test's refusals are not counted."""
        return self.release_noise.margin(confidence)

    def refusal(self, distance: int) -> float:
        """The probability that nothing is released, for data at that distance, in floating point.

        >>> mechanism = ProposeTestRelease(epsilon=2, delta="1e-6", proposed=1)
        >>> mechanism.refusal(0) > 0.999_99, mechanism.refusal(40) < 1e-9
        (True, True)
        """
        slack = self.cutoff - distance  # refused where Z <= slack
        rate = float(self.epsilon) / 2
        tail = float(np.exp(-rate * (abs(slack) + (slack >= 0)))) / (1 + float(np.exp(-rate)))
        return 1 - tail if slack >= 0 else tail

    def release(self, value: int, *, distance: int, random: Random | None = None) -> int | None:
        """The noisy statistic, or None. `distance` is that of the private data, in units, to a local sensitivity above
        `proposed`.

        >>> ProposeTestRelease(epsilon=2, delta="1e-6", proposed=1).release(5, distance=0) is None
        True
        """
        statistic, away = vector([value, distance], "value", 2).tolist()
        noisy = int(self.release_noise.release(statistic, random=random))  # drawn always: refusing takes as long
        passed = int(self.test_noise.release(away, random=random)) > self.cutoff
        return noisy if passed else None

    def release_median(self, value: Sequence[int], *, lower: int, upper: int, random: Random | None = None) -> int | None:
        """The lower median of rows in [lower, upper], one row a unit, or None.

        >>> from cloister.noise.random import Random
        >>> mechanism = ProposeTestRelease(epsilon=10, delta="1e-6", proposed=1)
        >>> mechanism.release_median([50] * 99, lower=0, upper=100, random=Random.deterministic(1))
        50
        """
        low, high = check_bounds(lower, upper)
        rows = clamped(value, low, high)
        distance = median_distance(rows, self.proposed)
        noisy = self.release(lower_median(rows), distance=distance, random=random)
        return None if noisy is None else min(high, max(low, noisy))


def median_distance(rows: object, proposed: int) -> int:
    """How many rows must be added or removed until the lower median's local sensitivity exceeds `proposed`; n + 1 where none
    does.

    `rows` are padded and sorted by `cloister.noise.smooth.clamped`. A distance to a set has sensitivity 1. Where no data within
    the bounds break the proposal the distance is truly infinite; n + 1 stands for it, and moves by one between neighbours.

    >>> median_distance(clamped([10, 11, 13], 0, 20), 2), median_distance(clamped([10, 11, 13], 0, 20), 50)
    (1, 4)
    """
    array = np.asarray(rows)
    widths = local_sensitivities(array)
    return int(np.searchsorted(widths, proposed, side="right"))
