"""What every mechanism that adds noise to integers does alike: sample, release, and the least margin for a confidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.noise.inversion import Inversion
from cloister.noise.mechanism import Integers, check_confidence, release_integers, source
from cloister.noise.random import Random, check_count
from cloister.privacy.rational import Exact, float_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST_FLOAT = Fraction(2) ** -1074


class IntegerNoise(ABC):
    """Integer noise whose law does not depend on the value."""

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[Any]:
        """`n` independent draws of the noise: int64, or Python ints where the scale is beyond what int64 has room for.

        >>> from cloister.noise import DiscreteLaplace
        >>> DiscreteLaplace(scale=3).sample(5).shape
        (5,)
        """
        return self._law.draw(check_count(n), source(random))

    def release(self, value: Integers, *, random: Random | None = None) -> Any:
        """`value` plus fresh noise in each coordinate: an int for an int, an array of the same shape for an array.

        The array is int64, or holds Python ints where a released number does not fit.

        >>> from cloister.noise import DiscreteLaplace
        >>> DiscreteLaplace(scale="0.001").release([3, 2**70]).tolist()
        [3, 1180591620717411303424]
        """
        drawn = source(random)
        if type(value) is int:
            return value + self._law.draw_one(drawn)
        return release_integers(value, lambda n: self._law.draw(n, drawn))

    def margin(self, confidence: Exact = "0.95") -> int:
        """The least m with P(|noise| ≤ m) ≥ `confidence`, for one coordinate.

        >>> from cloister.noise import DiscreteLaplace
        >>> DiscreteLaplace(scale=10).margin("0.99")
        46
        """
        miss = 1 - check_confidence(confidence)
        return least_integer(lambda m: self._tail_above(m) <= miss, self._guess(miss))

    def tail(self, m: int) -> float:
        """P(|noise| > m) for one coordinate, rounded up.

        >>> from cloister.noise import DiscreteLaplace
        >>> round(DiscreteLaplace(scale=10).tail(46), 6)
        0.00955
        """
        if m < 0:
            return 1.0
        return min(1.0, float_up(max(self._tail_above(m), _LEAST_FLOAT)))

    @property
    @abstractmethod
    def _law(self) -> Inversion:
        """What draws it."""

    @abstractmethod
    def _tail_above(self, m: int) -> Fraction:
        """A number not below P(|noise| > m), m ≥ 0, and so close to it that the least margin follows."""

    @abstractmethod
    def _guess(self, miss: Fraction) -> int:
        """About where P(|noise| > m) = `miss`."""


def least_integer(holds: Callable[[int], bool], guess: int) -> int:
    """The least m ≥ 0 for which `holds`, which stays true once it is: strides of 1, 2, 4, … from a guess, then halving.

    >>> least_integer(lambda m: m >= 1000, 990), least_integer(lambda m: True, 5)
    (1000, 0)
    """
    high = max(0, guess)
    stride = 1
    while not holds(high):
        high += stride
        stride *= 2
    low = high - 1
    stride = 1
    while low >= 0 and holds(low):
        high = low
        low -= stride
        stride *= 2
    low = max(low, -1)
    while high - low > 1:
        middle = (high + low) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
