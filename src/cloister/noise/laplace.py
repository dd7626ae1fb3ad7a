"""Laplace noise: on the integers (`DiscreteLaplace`), and for real numbers on a declared grid (`Laplace`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from cloister.noise.additive import IntegerNoise
from cloister.noise.enclosure import exp_above, exp_below
from cloister.noise.grid import GridNoise, default_step, l1_on_grid
from cloister.noise.inversion import Inversion, inversion
from cloister.noise.mechanism import check_scale, set_fields
from cloister.privacy import Exact, PureDP, exact_positive, text_of


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplace(IntegerNoise):
    """The discrete Laplace law on the integers: P(k) ∝ exp(−|k|/scale). Also known as two-sided geometric noise.

    Guarantee: PureDP(sensitivity/scale), for any neighbours between which the L1 distance of the integer values is at most
    `sensitivity`. Theorem: Ghosh, Roughgarden & Sundararajan (2009). Proof: P(k)/P(k + d) ≤ exp(|d|/scale) for each coordinate;
    the coordinates are independent, so the ratio of their product is at most exp(‖d‖₁/scale). The draws have exactly this law
    for the exact rational scale (inversion.proof.md), so nothing is added to ε by the arithmetic.

    Error: variance 2α/(1 − α)² with α = exp(−1/scale).

    >>> from cloister.noise.random import Random
    >>> noise = DiscreteLaplace(scale="10", sensitivity=1)
    >>> noise.guarantee, noise.margin(0.95), round(noise.variance, 2)
    (PureDP(epsilon='0.1'), 30, 199.83)
    >>> noise.release(100, random=Random.deterministic(1)) == 100 + int(noise.sample(1, random=Random.deterministic(1))[0])
    True
    >>> noise.release([1, 2, 3]).shape
    (3,)
    """

    scale: Fraction
    sensitivity: Fraction

    def __init__(self, *, scale: Exact, sensitivity: Exact = 1) -> None:
        set_fields(self, scale=check_scale(scale), sensitivity=exact_positive(sensitivity, "sensitivity"))

    @classmethod
    def for_epsilon(cls, epsilon: Exact, *, sensitivity: Exact = 1) -> DiscreteLaplace:
        """The one whose guarantee is exactly PureDP(epsilon): scale = sensitivity/epsilon.

        >>> DiscreteLaplace.for_epsilon("0.1", sensitivity=3)
        DiscreteLaplace(scale='30', sensitivity='3')
        """
        reach = exact_positive(sensitivity, "sensitivity")
        return cls(scale=reach / exact_positive(epsilon, "epsilon"), sensitivity=reach)

    @property
    def guarantee(self) -> PureDP:
        """PureDP(sensitivity/scale).

        >>> DiscreteLaplace(scale=2, sensitivity=3).guarantee
        PureDP(epsilon='1.5')
        """
        return PureDP(self.sensitivity / self.scale)

    @property
    def variance(self) -> float:
        """2α/(1 − α)² = 1/(2 sinh²(1/(2·scale))), for one coordinate.

        >>> round(DiscreteLaplace(scale=1).variance, 6)
        1.841347
        """
        return _half_over_sinh_squared(self.scale)

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={text_of(self.scale)!r}, sensitivity={text_of(self.sensitivity)!r})"

    @cached_property
    def _law(self) -> Inversion:
        return inversion(decay=1 / self.scale, power=1)

    def _tail_above(self, m: int) -> Fraction:
        """P(|K| > m) = 2·exp(−(m + 1)/scale)/(1 + α)."""
        rest = exp_above(Fraction(m + 1) / self.scale)
        return 2 * rest / (1 + Fraction(exp_below(1 / self.scale, 200), 1 << 200))

    def _guess(self, miss: Fraction) -> int:
        return int(self.scale * Fraction(-_log(miss)))


@dataclass(frozen=True, init=False, repr=False)
class Laplace(GridNoise):
    """The Laplace mechanism for real numbers, on a grid of `step`: round the value to the grid, add Laplace noise rounded to
    the grid.

    Guarantee: PureDP(s/scale), where s is the sensitivity *on the grid*. Rounding to the nearest multiple (halves upwards)
    moves two values that differ by D steps apart by at most ⌈D⌉ steps; over the `coordinates` that one unit can move, the L1
    distance grows from D to at most ⌈D⌉ + coordinates − 1 steps. So s = step·(⌈sensitivity/step⌉ + coordinates − 1). With the
    default step, a power of two times smaller than `sensitivity` and at most scale/2²⁰, a single number pays nothing for its
    rounding. Theorem: Dwork, McSherry, Nissim & Smith (2006). Proof: value and step are rounded first, so adding the rounded
    noise gives the same as adding real Laplace noise and rounding the sum: post-processing of the textbook mechanism. No
    floating-point number is computed from the value before the noise is in, so Mironov's (2012) attack on low-order bits finds
    nothing.

    `release` takes one real number, or an array of them where `coordinates` was declared, and returns floats. `margin` and
    `variance` are in the units of the value; the margin includes the half step that rounding the value may cost.

    >>> noise = Laplace(scale=10, sensitivity="0.5")
    >>> noise.guarantee, round(noise.margin(0.95), 3), round(noise.variance, 6)
    (PureDP(epsilon='0.05'), 29.957, 200.0)
    >>> Laplace(scale=10, sensitivity=1, step="0.3").guarantee  # 1 becomes 4 steps of 0.3
    PureDP(epsilon='0.12')
    >>> from cloister.noise.random import Random
    >>> float(Laplace(scale="0.001", step="0.25").release(1.6, random=Random.deterministic(1)))
    1.5
    """

    scale: Fraction
    sensitivity: Fraction
    step: Fraction
    coordinates: int | None

    @classmethod
    def for_epsilon(
        cls, epsilon: Exact, *, sensitivity: Exact = 1, step: Exact | None = None, coordinates: int | None = None
    ) -> Laplace:
        """The one whose guarantee is exactly PureDP(epsilon), the rounding of the value accounted for.

        >>> Laplace.for_epsilon("0.1", sensitivity=1, step="0.3").guarantee
        PureDP(epsilon='0.1')
        """
        reach = exact_positive(sensitivity, "sensitivity")
        width = reach / exact_positive(epsilon, "epsilon")
        fine = default_step(width, reach) if step is None else exact_positive(step, "step")
        grown = l1_on_grid(reach, fine, coordinates)
        return cls(scale=width * grown / reach, sensitivity=reach, step=fine, coordinates=coordinates)

    @property
    def guarantee(self) -> PureDP:
        """PureDP(sensitivity on the grid/scale).

        >>> Laplace(scale=2, sensitivity=3).guarantee
        PureDP(epsilon='1.5')
        """
        return PureDP(l1_on_grid(self.sensitivity, self.step, self.coordinates) / self.scale)

    @property
    def variance(self) -> float:
        """Of the noise on the grid: step²·cosh(h)/(2 sinh²(h)) with h = step/(2·scale); close to 2·scale² + step²/12 for small
        steps.

        >>> round(Laplace(scale=3).variance, 9)
        18.0
        """
        half = float(self.step / self.scale) / 2
        grown = math.cosh(half) if half < 300 else 0.0
        return float(self.step) ** 2 * _half_over_sinh_squared(self.scale / self.step) * grown

    def __repr__(self) -> str:
        return f"Laplace(scale={text_of(self.scale)!r}, {self._grid_text()})"

    @cached_property
    def _law(self) -> Inversion:
        return inversion(decay=self.step / self.scale, power=1, grid="rounded")

    def _tail_above(self, m: int) -> Fraction:
        """P(|round(X)| > m) = P(|X| > m + ½) = exp(−(m + ½)/scale), in steps."""
        return exp_above((m + Fraction(1, 2)) * self.step / self.scale)

    def _guess(self, miss: Fraction) -> int:
        return int(self.scale / self.step * Fraction(-_log(miss)))


def _half_over_sinh_squared(scale: Fraction) -> float:
    half = float(1 / (2 * scale))
    return 0.5 / math.sinh(half) ** 2 if half < 350 else 0.0


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
