"""The median with noise fitted to the data: smooth sensitivity.

One person can move the median across its whole range, so noise for the worst case hides it; on ordinary data nobody moves it
by more than a step or two. Noise fitted to that local sensitivity would itself tell; noise fitted to a *smooth* bound of it
does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import IntegerArray, integers_or_none
from cloister.noise._exponentials import ln_down, ln_up
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields
from cloister.noise.random import Random
from cloister.privacy import ApproxDP, Exact, exact_positive, exact_probability, float_down

_ROUNDING = Fraction(1, 2**36)
_LEAST = Fraction(1, 1024)


@dataclass(frozen=True, slots=True, init=False)
class SmoothMedian:
    """The lower median of integers in [lower, upper], plus discrete Laplace noise of scale 2S/ε, S a smooth bound of local
    sensitivity.

    Rows are clamped to the declared bounds, and the release is clamped to them again. n is private; the median of no rows is
    `lower`.

    Guarantee: (ε, δ)-DP between unbounded neighbours, one row a unit (after Nissim, Raskhodnikova & Smith 2007, who change
    rows; adding and removing needs its own windows, and integer noise its own constants). S(x) = max_k e^(−βk)·A_k(x), where
    A_k is the largest local sensitivity within k additions and removals, and e^β = 1 + ε/(2 ln(2/δ)). Proof sketch: S bounds
    the local sensitivity, and changes by a factor e^β at most between neighbours. Shifting the centre costs ε/2. Stretching the
    scale by e^β costs |Z|(e^β − 1)/scale for noise Z, at most ε/2 unless |Z| > scale·ln(2/δ), which has probability δ at most.
    The whole proof is in `smooth.proof.md`.

    Error: the scale depends on the data and is as private as they are. `margin` is therefore a function of an assumed S.

    >>> from cloister.noise.random import Random
    >>> rows = list(range(1000)) * 3
    >>> mechanism = SmoothMedian(lower=0, upper=1000, epsilon=1, delta="1e-6")
    >>> 400 < mechanism.release(rows, random=Random.deterministic(1)) < 600
    True
    """

    lower: int
    upper: int
    epsilon: Fraction
    delta: Fraction
    beta: Fraction

    def __init__(self, *, lower: int, upper: int, epsilon: Exact, delta: Exact) -> None:
        cost, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        if not 0 < slack <= Fraction(1, 2):
            raise InvalidParameter(f"delta={delta} is invalid", why="a smooth bound needs 0 < δ <= 1/2", instead='delta="1e-6"')
        low, high = check_bounds(lower, upper)
        beta = ln_down(1 + cost / (2 * ln_up(2 / slack)))
        if beta < 2 * _ROUNDING:
            raise InvalidParameter(
                f"epsilon={epsilon} is invalid", why="so small an ε leaves no smooth bound", instead='epsilon="0.1"'
            )
        set_fields(self, lower=low, upper=high, epsilon=cost, delta=slack, beta=beta)

    @property
    def guarantee(self) -> ApproxDP:
        """(ε, δ), one row a unit."""
        return ApproxDP(self.epsilon, self.delta)

    def smooth_sensitivity(self, value: Sequence[int]) -> Fraction:
        """S(x), rounded up by less than 2⁻³⁵ of it. As private as the rows: for studies on public data.

        >>> SmoothMedian(lower=0, upper=100, epsilon=1, delta="1e-6").smooth_sensitivity([50] * 500) < 1
        True
        """
        return self._smooth(clamped(value, self.lower, self.upper))

    def margin(self, confidence: Exact = 0.95, *, smooth_sensitivity: Exact) -> int:
        """The half-width of the interval for the median of the clamped rows, if S had that value.

        >>> SmoothMedian(lower=0, upper=100, epsilon=1, delta="1e-6").margin(0.95, smooth_sensitivity=1)
        6
        """
        return self._noise(exact_positive(smooth_sensitivity, "smooth_sensitivity")).margin(confidence)

    def release(self, value: Sequence[int], *, random: Random | None = None) -> int:
        """The noisy median."""
        rows = clamped(value, self.lower, self.upper)
        noisy = int(self._noise(self._smooth(rows)).release(lower_median(rows), random=random))
        return min(self.upper, max(self.lower, noisy))

    def _noise(self, smooth: Fraction) -> DiscreteLaplace:
        return DiscreteLaplace(scale=2 * smooth / self.epsilon)

    def _smooth(self, rows: IntegerArray) -> Fraction:
        # The value is too large by a factor below 1 + 2⁻³⁶, and the decay smaller by 2⁻³⁶: together still β-smooth.
        rate = float_down(self.beta - _ROUNDING)
        gaps = local_sensitivities(rows).astype(np.float64)
        largest = float((gaps * np.exp(-rate * np.arange(len(gaps)))).max()) * (1 + float(_ROUNDING) / 2)
        return max(Fraction(largest), _LEAST)


def local_sensitivities(rows: IntegerArray) -> IntegerArray:
    """A_k for k = 0 … n: the largest move of the lower median by one more addition or removal, after k of them. Rows are padded
    and sorted.

    After k changes the widest gap around the middle is between the ranks ⌊(n−k)/2⌋ and ⌊(n+k)/2⌋ + 1: all rows strictly between
    are removed, and the rest balanced, with k changes together. Ranks 0 and n+1 are the bounds.

    >>> local_sensitivities(np.array([0, 10, 11, 13, 20])).tolist()
    [1, 3, 13, 20]
    """
    n = len(rows) - 2
    k = np.arange(n + 1)
    widths: IntegerArray = rows[(n + k) // 2 + 1] - rows[(n - k) // 2]
    return widths


def lower_median(rows: IntegerArray) -> int:
    """The row of rank ⌊(n+1)/2⌋ of padded, sorted rows; the lower bound where there is none.

    >>> lower_median(np.array([0, 10, 11, 13, 20])), lower_median(np.array([0, 20]))
    (11, 0)
    """
    return int(rows[(len(rows) - 1) // 2])


def clamped(value: Sequence[int] | npt.NDArray[Any], lower: int, upper: int) -> IntegerArray:
    """Rows clamped to their bounds, sorted, and padded by one bound on each side.

    >>> clamped([5, 99, 1], 0, 10)
    array([ 0,  1,  5, 10, 10])
    """
    array = integers_or_none(value)
    if array is None or array.ndim != 1:
        raise InvalidParameter(
            "value is invalid",
            why="it must be one list of rows, all of them integers",
            instead="value=[3, 1, 2], numpy.rint(x / step).astype(int) for real numbers",
        )
    inner = np.sort(np.clip(array, lower, upper)).astype(np.int64)
    return np.concatenate([[lower], inner, [upper]])


def check_bounds(lower: int, upper: int) -> tuple[int, int]:
    """Declared integer bounds, the right way round, within ±2⁵².

    >>> check_bounds(0, 10)
    (0, 10)
    """
    if not (isinstance(lower, int) and isinstance(upper, int) and -(2**52) <= lower < upper <= 2**52):
        raise InvalidParameter(
            f"lower={lower!r}, upper={upper!r} is invalid",
            why="bounds are declared whole numbers within ±2⁵², lower below upper",
            instead="lower=0, upper=120",
        )
    return lower, upper
