"""Staircase noise: of all ε-private noises for one number, the one of least expected error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.additive import least_integer
from cloister.noise.bernoulli import coins
from cloister.noise.enclosure import Enclosure, exp_above, exp_below
from cloister.noise.grid import Reals, nearest_float, rounded_to_grid, times_step
from cloister.noise.inversion import Inversion, inversion
from cloister.noise.mechanism import check_confidence, check_scale, release_integers, set_fields, source
from cloister.noise.random import Random, check_count
from cloister.privacy import Exact, PureDP, exact_positive, float_up, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INT64_ROOM = 1 << 62
_PADDED = 1 + Fraction(1, 1 << 180)


@dataclass(frozen=True, init=False, repr=False)
class Staircase:
    """P(k) falls by e^−ε at every stair: all |k| < r are equally likely, every next Δ integers e^−ε times as likely as the last.

    Guarantee: PureDP(epsilon), for one number that differs by at most `sensitivity` between neighbours (any). Theorem: Geng
    & Viswanath (2014), Theorem 4, in its form for integers. Proof: the stairs begin at r, r + Δ, r + 2Δ, …, so |k| and |k +
    d| with |d| ≤ Δ are at most one stair apart, and the probabilities at most a factor e^ε. Vectors are not covered:
    release each number on its own and add up.

    Of all ε-private noises it has the least expected |noise|; r is the better of the integers next to Δ/(1 + e^(ε/2)) + ½
    (the minimum of a quotient that has only one). For Δ = 1 it is `Geometric`. Without `step` it is made for integers and
    `sensitivity` is one. With a `step`, real numbers are rounded to its multiples (halves upwards), Δ is ⌈sensitivity/step⌉
    of them, and as the step shrinks the law becomes the continuous staircase with γ* = 1/(1 + e^(ε/2)).

    >>> noise = Staircase(epsilon=2, sensitivity=10)
    >>> noise.first_stair, noise.guarantee, round(noise.mean_error, 2)
    (3, PureDP(epsilon='2'), 4.23)
    >>> Staircase(epsilon=2, sensitivity=1, step="0.001").guarantee
    PureDP(epsilon='2')
    """

    epsilon: Fraction
    sensitivity: Fraction
    step: Fraction | None

    def __init__(self, *, epsilon: Exact, sensitivity: Exact = 1, step: Exact | None = None) -> None:
        reach = exact_positive(sensitivity, "sensitivity")
        if step is None and reach.denominator != 1:
            raise InvalidParameter(
                f"sensitivity={text_of(reach)} is invalid",
                why="integers move by a whole number; real numbers need a declared step",
                instead=f'sensitivity={math.ceil(reach)}, or step="0.01"',
            )
        cost = exact_positive(epsilon, "epsilon")
        check_scale(1 / cost, "1/epsilon")
        set_fields(self, epsilon=cost, sensitivity=reach, step=None if step is None else exact_positive(step, "step"))
        check_scale(Fraction(self.stair), "sensitivity/step")
        check_scale(self.stair / cost, "sensitivity/epsilon")

    @property
    def guarantee(self) -> PureDP:
        """PureDP(epsilon): the rounding is inside the length of a stair.

        >>> Staircase(epsilon=1).guarantee
        PureDP(epsilon='1')
        """
        return PureDP(self.epsilon)

    @cached_property
    def stair(self) -> int:
        """Δ, the length of a stair, in steps.

        >>> Staircase(epsilon=1, sensitivity=1, step="0.3").stair
        4
        """
        return math.ceil(self.sensitivity if self.step is None else self.sensitivity / self.step)

    @cached_property
    def first_stair(self) -> int:
        """r: how many of 0, 1, 2, … lie on the highest stair, in steps.

        >>> Staircase(epsilon=1).first_stair
        1
        """
        share = 1 / (1 + math.exp(min(float(self.epsilon) / 2, 700.0)))
        middle = int(self.stair * Fraction(share) + Fraction(1, 2))
        return min((max(1, min(self.stair, r)) for r in (middle - 1, middle, middle + 1)), key=self._mean_at)

    @property
    def mean_error(self) -> float:
        """The expected |noise|.

        >>> round(Staircase(epsilon=1).mean_error, 6)  # geometric: 2α/(1 − α²)
        0.850918
        """
        return self._mean_at(self.first_stair) * float(self.step or 1)

    @property
    def variance(self) -> float:
        """The expected square of the noise.

        >>> round(Staircase(epsilon=1).variance, 6)  # geometric
        1.841347
        """
        r, d, b, odds = self.first_stair, float(self.stair), self._fall, self._odds
        spread = 1 / -math.expm1(-float(self.epsilon))
        first = (r - 1) * r * (2 * r - 1) / 3
        # Over the later stairs, which start at a = r + (l − 1)d and weigh b^l: Σ b^l = odds, Σ (l − 1)b^l = odds², and so on.
        a1 = r * odds + d * odds**2
        a2 = r**2 * odds + 2 * r * d * odds**2 + d**2 * odds**2 * (1 + b) * spread
        later = 2 * (d * a2 + d * (d - 1) * a1 + (d - 1) * d * (2 * d - 1) / 6 * odds)
        return (first + later) / (2 * r - 1 + 2 * d * odds) * float(self.step or 1) ** 2

    def tail(self, m: float | Fraction) -> float:
        """P(|noise| > m), rounded up; m in the units of the value.

        >>> round(Staircase(epsilon=1).tail(0), 6)
        0.537883
        """
        if m < 0:
            return 1.0
        return min(1.0, float_up(max(self._tail_above(math.floor(Fraction(m) / (self.step or 1))), Fraction(2) ** -1074)))

    def margin(self, confidence: Exact = "0.95") -> int | float:
        """The least m with P(|noise| ≤ m) ≥ `confidence`; with a step, in the units of the value, and half a step more.

        >>> Staircase(epsilon=1).margin(0.95)
        3
        """
        miss = 1 - check_confidence(confidence)
        log = math.log(miss.denominator) - math.log(miss.numerator)
        m = least_integer(lambda m: self._tail_above(m) <= miss, int(self.stair * Fraction(log) / self.epsilon))
        return m if self.step is None else float_up((m + Fraction(1, 2)) * self.step)

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[Any]:
        """`n` independent draws of the noise: integers, or floats where there is a step.

        >>> Staircase(epsilon=1, sensitivity=3).sample(4).shape
        (4,)
        """
        noise = self._draw(check_count(n), source(random))
        return noise if self.step is None else times_step(noise, self.step)

    def release(self, value: Reals, *, random: Random | None = None) -> Any:
        """One number plus fresh noise: an int, or with a step the float nearest to a multiple of it. Arrays are refused.

        >>> isinstance(Staircase(epsilon=1).release(10), int)
        True
        """
        drawn = source(random)
        if isinstance(value, np.ndarray | list | tuple):
            raise InvalidParameter(
                "The array is invalid",
                why="the theorem is for one number; each release of another costs epsilon again",
                instead="DiscreteLaplace or Laplace",
            )
        if self.step is None:
            return release_integers(cast("int", value), lambda n: self._draw(n, drawn))
        return nearest_float((rounded_to_grid(value, self.step) + int(self._draw(1, drawn)[0])) * self.step)

    def __repr__(self) -> str:
        fine = "" if self.step is None else f", step={text_of(self.step)!r}"
        return f"Staircase(epsilon={text_of(self.epsilon)!r}, sensitivity={text_of(self.sensitivity)!r}{fine})"

    def _draw(self, n: int, random: Random) -> NDArray[Any]:
        """A coin for the highest stair; else a geometric number of stairs down, a place, a side. All are drawn each time."""
        r, d = self.first_stair, self.stair
        highest = coins(self._highest, n, random)
        level = self._levels.draw(n, random)
        place = random.below(d, n)
        middle = random.below(2 * r - 1, n)
        negative = (random.words(n) & np.uint64(1)).astype(np.int64)
        if n and (int(level.max()) + 2) * d >= _INT64_ROOM:
            level, place, middle = level.astype(object), place.astype(object), middle.astype(object)
        size = r + level * d + place
        return np.where(highest, middle - (r - 1), (size ^ -negative) + negative)

    @cached_property
    def _levels(self) -> Inversion:
        return inversion(decay=self.epsilon, power=1, two_sided=False)

    @property
    def _highest(self) -> Enclosure:
        """P(|noise| < r) = (2r − 1)(1 − b)/((2r − 1)(1 − b) + 2Δb), which falls in b = e^−ε."""
        r, d = self.first_stair, self.stair
        guard = 2 * d.bit_length() + 8  # the slope in b is below 4Δ²

        def enclose(bits: int) -> tuple[int, int]:
            one = 1 << (bits + guard)
            low = exp_below(self.epsilon, bits + guard)
            ends = []
            for b in (min(low + 2, one), low):
                top = (2 * r - 1) * (one - b)
                ends.append(Fraction(top, top + 2 * d * b))
            return math.floor(ends[0] * 2**bits), math.ceil(ends[1] * 2**bits)

        return enclose

    def _tail_above(self, m: int) -> Fraction:
        """P(|noise| > m) from above: it rises with b, of which an upper bound is within a relative 2^−250 (for ε up to 10⁵)."""
        r, d = self.first_stair, self.stair
        bits = 260 + 2 * d.bit_length() + int(min(self.epsilon, Fraction(100_000)) * 3 / 2)
        b = Fraction(exp_below(self.epsilon, bits) + 2, 1 << bits)
        total = (2 * r - 1) * (1 - b) + 2 * d * b
        if m < r:
            return 1 - (2 * m + 1) * (1 - b) / total
        level, place = divmod(m - r, d)
        return _PADDED * exp_above(self.epsilon * (level + 1)) * 2 * ((d - 1 - place) * (1 - b) + d * b) / total

    @property
    def _fall(self) -> float:
        return math.exp(-min(float(self.epsilon), 745.0))

    @property
    def _odds(self) -> float:
        """b/(1 − b)."""
        return self._fall / -math.expm1(-float(self.epsilon))

    def _mean_at(self, r: int) -> float:
        d, odds = float(self.stair), self._odds
        return (r * (r - 1.0) + 2 * ((d * r + d * (d - 1) / 2) * odds + (d * odds) ** 2)) / (2.0 * r - 1 + 2 * d * odds)
