"""One-sided noise on 0, 1, 2, …: the discrete exponential (geometric) law. A building block, not a mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cloister.noise.additive import least_integer
from cloister.noise.enclosure import exp_above
from cloister.noise.inversion import Inversion, inversion
from cloister.noise.mechanism import check_confidence, check_scale, set_fields, source
from cloister.noise.random import Random, check_count
from cloister.privacy.rational import Exact, float_up, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, init=False, repr=False)
class DiscreteExponential:
    """P(k) = (1 − α)·α^k for k = 0, 1, 2, …, with α = exp(−1/scale).

    No guarantee and no `release`: its support moves with the value, so adding it to a released number would tell neighbours
    apart for certain. It is private inside a choice: the candidate with the largest noisy score of such noise is
    permute-and-flip (Ding, Kifer, Steinke et al. 2021).

    >>> noise = DiscreteExponential(scale=3)
    >>> bool((noise.sample(100) >= 0).all()), round(noise.mean, 3), noise.margin(0.95)
    (True, 2.528, 8)
    """

    scale: Fraction

    def __init__(self, *, scale: Exact) -> None:
        set_fields(self, scale=check_scale(scale))

    @property
    def mean(self) -> float:
        """α/(1 − α) = 1/(exp(1/scale) − 1).

        >>> round(DiscreteExponential(scale=1).mean, 6)
        0.581977
        """
        rate = float(1 / self.scale)
        return 1 / math.expm1(rate) if rate < 700 else 0.0

    @property
    def variance(self) -> float:
        """α/(1 − α)².

        >>> round(DiscreteExponential(scale=1).variance, 6)
        0.920674
        """
        half = float(1 / (2 * self.scale))
        return 0.25 / math.sinh(half) ** 2 if half < 350 else 0.0

    def tail(self, m: int) -> float:
        """P(noise > m) = exp(−(m + 1)/scale), rounded up.

        >>> round(DiscreteExponential(scale=1).tail(0), 6)
        0.367879
        """
        return 1.0 if m < 0 else min(1.0, float_up(max(exp_above((m + 1) / self.scale), Fraction(2) ** -1074)))

    def margin(self, confidence: Exact = "0.95") -> int:
        """The least m with P(noise ≤ m) ≥ `confidence`.

        >>> DiscreteExponential(scale=10).margin(0.5)
        6
        """
        miss = 1 - check_confidence(confidence)
        guess = int(self.scale * Fraction(math.log(miss.denominator) - math.log(miss.numerator)))
        return least_integer(lambda m: exp_above((m + 1) / self.scale) <= miss, guess)

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[Any]:
        """`n` independent draws: int64, or Python ints where the scale is beyond what int64 has room for.

        >>> DiscreteExponential(scale=2).sample(3, random=Random.deterministic(1)).shape
        (3,)
        """
        return self._law.draw(check_count(n), source(random))

    def __repr__(self) -> str:
        return f"DiscreteExponential(scale={text_of(self.scale)!r})"

    @cached_property
    def _law(self) -> Inversion:
        return inversion(decay=1 / self.scale, power=1, two_sided=False)
