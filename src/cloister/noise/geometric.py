"""The geometric mechanism: discrete Laplace noise by its textbook parameter ε, clamped to a public range if one is declared."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.additive import IntegerNoise
from cloister.noise.inversion import Inversion
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import Integers, set_fields
from cloister.noise.random import Random
from cloister.privacy import Exact, PureDP, exact_positive, text_of


@dataclass(frozen=True, init=False, repr=False)
class Geometric(IntegerNoise):
    """P(k) = (1 − α)/(1 + α)·α^|k| with α = exp(−ε/sensitivity), added to integers; the sum is clamped to [low, high] if given.

    Guarantee: PureDP(epsilon), for any neighbours between which the L1 distance of the integer values is at most
    `sensitivity`. Theorem: Ghosh, Roughgarden & Sundararajan (2009): for one count it is optimal for every user at once,
    whatever the user believes in advance and however errors are weighed. Proof: it is `DiscreteLaplace` of scale
    sensitivity/ε; clamping to public bounds is post-processing. `variance`, `margin`, `tail` and `sample` are of the noise alone.

    >>> Geometric(epsilon="0.5").guarantee, Geometric(epsilon="0.5").margin(0.95)
    (PureDP(epsilon='0.5'), 6)
    >>> 0 <= Geometric(epsilon="0.001", low=0, high=10).release(3) <= 10
    True
    """

    epsilon: Fraction
    sensitivity: Fraction
    low: int | None
    high: int | None

    def __init__(self, *, epsilon: Exact, sensitivity: Exact = 1, low: int | None = None, high: int | None = None) -> None:
        if low is not None and high is not None and low > high:
            raise InvalidParameter(
                f"low={low}, high={high} are invalid", why="the range is empty", instead=f"low={high}, high={low}"
            )
        set_fields(
            self,
            epsilon=exact_positive(epsilon, "epsilon"),
            sensitivity=exact_positive(sensitivity, "sensitivity"),
            low=low,
            high=high,
        )

    @property
    def guarantee(self) -> PureDP:
        """PureDP(epsilon).

        >>> Geometric(epsilon=1, sensitivity=5).guarantee
        PureDP(epsilon='1')
        """
        return PureDP(self.epsilon)

    @property
    def variance(self) -> float:
        """2α/(1 − α)², before clamping.

        >>> round(Geometric(epsilon=1).variance, 6)
        1.841347
        """
        return self._noise.variance

    def release(self, value: Integers, *, random: Random | None = None) -> Any:
        """`value` plus noise, clamped to the range where one is declared.

        >>> Geometric(epsilon=100, low=0).release([5, -7]).tolist()
        [5, 0]
        """
        noisy = super().release(value, random=random)
        if isinstance(noisy, int):
            noisy = noisy if self.low is None else max(noisy, self.low)
            return noisy if self.high is None else min(noisy, self.high)
        noisy = noisy if self.low is None else np.maximum(noisy, self.low)
        return noisy if self.high is None else np.minimum(noisy, self.high)

    def __repr__(self) -> str:
        ends = "".join(f", {name}={end}" for name, end in (("low", self.low), ("high", self.high)) if end is not None)
        return f"Geometric(epsilon={text_of(self.epsilon)!r}, sensitivity={text_of(self.sensitivity)!r}{ends})"

    @cached_property
    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.sensitivity / self.epsilon, sensitivity=self.sensitivity)

    @property
    def _law(self) -> Inversion:
        return self._noise._law

    def _tail_above(self, m: int) -> Fraction:
        return self._noise._tail_above(m)

    def _guess(self, miss: Fraction) -> int:
        return self._noise._guess(miss)
