"""Gaussian noise: on the integers (`DiscreteGaussian`), and for real numbers on a declared grid (`Gaussian`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from cloister.errors import InvalidParameter
from cloister.noise.additive import IntegerNoise
from cloister.noise.gaussian_tails import discrete_delta, discrete_tail, least_epsilon, normal_tail
from cloister.noise.grid import GridNoise, default_step, l2_squared_on_grid, root_above
from cloister.noise.inversion import Inversion, inversion
from cloister.noise.mechanism import check_scale, set_fields
from cloister.privacy.conversion import epsilon_of_zcdp, zcdp_within
from cloister.privacy.gaussian import epsilon_of_gaussian, sigma_of_gaussian
from cloister.privacy.guarantee import ZCDP, ApproxDP
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact, exact_positive, exact_probability, text_of


@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussian(IntegerNoise):
    """The discrete Gaussian law on the integers: P(k) ∝ exp(−k²/(2·scale²)).

    Guarantee: ZCDP(sensitivity²/(2·scale²)), for any neighbours between which the L2 distance of the integer values is at most
    `sensitivity`. Theorem: Canonne, Kamath & Steinke (2020), Theorem 4 and, for vectors, Theorem 14. Proof sketch: the Rényi
    divergence of order α between the law and its shift by an integer d is αd²/(2·scale²) at most, by Poisson's summation
    formula; it adds over independent coordinates. The draws have exactly this law for the exact rational scale²
    (inversion.proof.md).

    A scale or a sensitivity that is the root of a rational is given by its square. Error: variance at most scale².

    >>> noise = DiscreteGaussian(scale=10, sensitivity=1)
    >>> noise.guarantee, noise.margin(0.95), round(noise.variance, 9)
    (ZCDP(rho='0.005'), 20, 100.0)
    >>> DiscreteGaussian(scale_squared=2, sensitivity_squared=3).guarantee
    ZCDP(rho='0.75')
    >>> noise.release([1, 2, 3]).shape
    (3,)
    """

    scale_squared: Fraction
    sensitivity_squared: Fraction

    def __init__(
        self,
        *,
        scale: Exact | None = None,
        sensitivity: Exact | None = None,
        scale_squared: Exact | None = None,
        sensitivity_squared: Exact | None = None,
    ) -> None:
        width = _squared("scale", scale, scale_squared)
        if width is None:
            raise InvalidParameter("No scale was given", why="noise needs one", instead="DiscreteGaussian(scale=10)")
        check_scale(root_above(width))
        reach = _squared("sensitivity", sensitivity, sensitivity_squared)
        set_fields(self, scale_squared=width, sensitivity_squared=Fraction(1) if reach is None else reach)

    @classmethod
    def for_rho(
        cls, rho: Exact, *, sensitivity: Exact | None = None, sensitivity_squared: Exact | None = None
    ) -> DiscreteGaussian:
        """The one whose guarantee is exactly ZCDP(rho): scale² = sensitivity²/(2·rho).

        >>> DiscreteGaussian.for_rho("0.01").guarantee
        ZCDP(rho='0.01')
        """
        reach = _squared("sensitivity", sensitivity, sensitivity_squared) or Fraction(1)
        return cls(scale_squared=reach / (2 * exact_positive(rho, "rho")), sensitivity_squared=reach)

    @classmethod
    def for_approx(
        cls,
        epsilon: Exact,
        delta: Exact,
        *,
        sensitivity: Exact | None = None,
        sensitivity_squared: Exact | None = None,
        coordinates: int | None = None,
    ) -> DiscreteGaussian:
        """A least scale whose `.approx(delta, coordinates)` is at most `epsilon`: by the exact curve where that is known for
        one number.

        >>> noise = DiscreteGaussian.for_approx(1, "1e-6")
        >>> round(float(noise.scale), 2), noise.approx("1e-6") <= ApproxDP(1, "1e-6")
        (4.23, True)
        """
        bound, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        reach = _squared("sensitivity", sensitivity, sensitivity_squared) or Fraction(1)
        enough = cls.for_rho(zcdp_within(epsilon=bound, delta=slack).rho, sensitivity_squared=reach)
        shift = _single_shift(reach, coordinates)
        if shift is None:
            return enough
        low, high = enough.scale / 4, enough.scale
        while high - low > high / 10**9:
            middle = ((low + high) / 2).limit_denominator(10**15)
            if discrete_delta(middle**2, shift, bound) <= slack:
                high = middle
            else:
                low = middle
        return cls(scale=up(real(high), 12), sensitivity_squared=reach)._at_least_as_private(enough, shift, bound, slack)

    @property
    def scale(self) -> Fraction:
        """σ, where it is rational; else a number above it by less than 10⁻⁴⁸ of it.

        >>> DiscreteGaussian(scale=10).scale
        Fraction(10, 1)
        """
        return root_above(self.scale_squared)

    @property
    def sensitivity(self) -> Fraction:
        """The L2 sensitivity, where it is rational; else a number above it by less than 10⁻⁴⁸ of it.

        >>> DiscreteGaussian(scale=10, sensitivity=2).sensitivity
        Fraction(2, 1)
        """
        return root_above(self.sensitivity_squared)

    @property
    def guarantee(self) -> ZCDP:
        """ZCDP(sensitivity²/(2·scale²)).

        >>> DiscreteGaussian(scale=2, sensitivity=1).guarantee
        ZCDP(rho='0.125')
        """
        return ZCDP(self.sensitivity_squared / (2 * self.scale_squared))

    def approx(self, delta: Exact, *, coordinates: int | None = None) -> ApproxDP:
        """The least ε known for this δ, rounded up.

        Where one unit can move one number only, the curve is exact: P(K > a) − e^ε·P(K > a + Δ), a = εσ²/Δ − Δ/2 (Canonne,
        Kamath & Steinke 2020, Theorem 7; a smaller shift is no worse, since the law is log-concave: `matrices.proof.md`, last
        section). That is so for `coordinates=1`, and for any integers of L2 sensitivity below √2. Otherwise ε follows from
        zero-concentrated privacy.

        >>> round(float(DiscreteGaussian(scale=10).approx("1e-6").epsilon), 4)
        0.3968
        """
        slack = exact_probability(delta, "delta")
        by_rho = epsilon_of_zcdp(self.guarantee, slack)
        shift = _single_shift(self.sensitivity_squared, coordinates)
        if shift is None:
            return ApproxDP(by_rho, slack)
        exact_curve = least_epsilon(lambda epsilon: discrete_delta(self.scale_squared, shift, epsilon), slack, by_rho)
        return ApproxDP(min(by_rho, exact_curve), slack)

    @property
    def variance(self) -> float:
        """Σ k²·P(k): below scale² by 8π²·scale⁴·exp(−2π²·scale²), nothing that a float shows from scale 2 on.

        >>> round(DiscreteGaussian(scale=1).variance, 6), DiscreteGaussian(scale=100).variance
        (1.0, 10000.0)
        """
        square = float(self.scale_squared)
        if square >= 4:
            return square
        weights = [math.exp(-(k * k) / (2 * square)) if k * k < 1600 * square else 0.0 for k in range(81)]
        return 2 * sum(k * k * weight for k, weight in enumerate(weights)) / (2 * sum(weights) - 1)

    def __repr__(self) -> str:
        width, reach = _root_text("scale", self.scale_squared), _root_text("sensitivity", self.sensitivity_squared)
        return f"DiscreteGaussian({width}, {reach})"

    def _at_least_as_private(self, enough: DiscreteGaussian, shift: int, bound: Fraction, slack: Fraction) -> DiscreteGaussian:
        """Itself if its rounded scale passes the exact test, else the one that passes by zero-concentrated privacy."""
        return self if discrete_delta(self.scale_squared, shift, bound) <= slack else enough

    @cached_property
    def _law(self) -> Inversion:
        return inversion(decay=1 / (2 * self.scale_squared), power=2)

    def _tail_above(self, m: int) -> Fraction:
        return 2 * discrete_tail(self.scale_squared, m + 1)[1]

    def _guess(self, miss: Fraction) -> int:
        return int(self.scale * Fraction(_normal_guess(miss)))


@dataclass(frozen=True, init=False, repr=False)
class Gaussian(GridNoise):
    """The Gaussian mechanism for real numbers, on a grid of `step`: round the value to the grid, add Gaussian noise rounded to
    the grid.

    Guarantee: ZCDP(s²/(2·scale²)) and every (ε, δ) of `approx(delta)`, where s is the L2 sensitivity *on the grid*: for one
    number, or several of which one unit can move one, step·⌈sensitivity/step⌉; for more `coordinates`, at most sensitivity +
    step·√coordinates. With the default step, a power of two times smaller than `sensitivity` and at most scale/2²⁰, one number
    pays nothing for rounding. Theorems: Bun & Steinke (2016), Proposition 1.6; Balle & Wang (2018), Theorem 8. Proof: value and
    noise are rounded apart, and adding an integer commutes with rounding, so the release is the textbook mechanism's, on the
    rounded value, rounded: post-processing. Its every theorem holds as it stands, in any dimension.

    `release` takes one real number, or an array where `coordinates` was declared, and returns floats. `margin` includes the
    half step that rounding the value may cost.

    >>> noise = Gaussian(scale=10, sensitivity=1)
    >>> noise.guarantee, round(noise.margin(0.95), 3), round(noise.variance, 6)
    (ZCDP(rho='0.005'), 19.6, 100.0)
    >>> Gaussian(scale=10, sensitivity=1, step="0.3").guarantee  # 1 becomes 4 steps of 0.3
    ZCDP(rho='0.0072')
    """

    scale: Fraction
    sensitivity: Fraction
    step: Fraction
    coordinates: int | None

    @classmethod
    def analytic(
        cls, epsilon: Exact, delta: Exact, sensitivity: Exact = 1, *, step: Exact | None = None, coordinates: int | None = None
    ) -> Gaussian:
        """The least scale that is (ε, δ)-private, for any ε > 0: Balle & Wang (2018), rounded up in the 15th digit.

        >>> noise = Gaussian.analytic(1, "1e-6")
        >>> round(float(noise.scale), 3), noise.approx("1e-6") <= ApproxDP(1, "1e-6")
        (4.225, True)
        """
        bound, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        reach = exact_positive(sensitivity, "sensitivity")
        first = sigma_of_gaussian(epsilon=bound, delta=slack, sensitivity_squared=reach**2)
        return cls._for_grown(first, reach, step, coordinates)

    @classmethod
    def classical(
        cls, epsilon: Exact, delta: Exact, sensitivity: Exact = 1, *, step: Exact | None = None, coordinates: int | None = None
    ) -> Gaussian:
        """sensitivity·√(2·ln(1.25/δ))/ε, for ε < 1 only: Dwork & Roth (2014), Theorem A.1. Never better than `analytic`.

        >>> round(float(Gaussian.classical("0.5", "1e-6").scale), 3)
        10.598
        """
        bound, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        reach = exact_positive(sensitivity, "sensitivity")
        if bound >= 1 or slack == 0:
            raise InvalidParameter(
                f"The classical Gaussian mechanism is invalid at ε = {text_of(bound)}, δ = {text_of(slack)}",
                why="its theorem holds for 0 < ε < 1 and δ > 0 only",
                instead="Gaussian.analytic(epsilon, delta, sensitivity)",
            )
        number = context()
        return cls._for_grown(
            up(real(reach / bound) * number.sqrt(2 * number.log(real(Fraction(5, 4) / slack)))), reach, step, coordinates
        )

    @property
    def guarantee(self) -> ZCDP:
        """ZCDP(s²/(2·scale²)), s the sensitivity on the grid.

        >>> Gaussian(scale=2, sensitivity=1).guarantee
        ZCDP(rho='0.125')
        """
        return ZCDP(self._reach_squared / (2 * self.scale**2))

    def approx(self, delta: Exact) -> ApproxDP:
        """The least ε for this δ, rounded up: the curve of Balle & Wang (2018), exact for Gaussian noise in any dimension.

        >>> round(float(Gaussian(scale=10).approx("1e-6").epsilon), 4)
        0.3969
        """
        slack = exact_probability(delta, "delta")
        return ApproxDP(epsilon_of_gaussian(self._reach_squared / self.scale**2, slack), slack)

    @property
    def variance(self) -> float:
        """Of the noise on the grid: scale² + step²/12 but for a term that vanishes as exp(−2π²·scale²/step²).

        >>> round(Gaussian(scale=3).variance, 9)
        9.0
        """
        sigma = float(self.scale / self.step)
        if sigma > 4:
            return float(self.scale**2 + self.step**2 / 12)
        spread = math.sqrt(2) * sigma
        steps = sum((2 * k - 1) * math.erfc((k - 0.5) / spread) for k in range(1, 160)) if sigma > 0.01 else 0.0
        return float(self.step**2) * steps

    def __repr__(self) -> str:
        return f"Gaussian(scale={text_of(self.scale)!r}, {self._grid_text()})"

    @classmethod
    def _for_grown(cls, scale: Fraction, reach: Fraction, step: Exact | None, coordinates: int | None) -> Gaussian:
        """Scale and sensitivity enter every bound by their ratio alone: what rounding adds to one is added to the other."""
        fine = default_step(scale, reach) if step is None else exact_positive(step, "step")
        grown = root_above(l2_squared_on_grid(reach**2, fine, coordinates))
        wide = scale if grown == reach else up(real(scale * grown / reach))
        return cls(scale=wide, sensitivity=reach, step=fine, coordinates=coordinates)

    @cached_property
    def _reach_squared(self) -> Fraction:
        return l2_squared_on_grid(self.sensitivity**2, self.step, self.coordinates)

    @cached_property
    def _law(self) -> Inversion:
        return inversion(decay=(self.step / self.scale) ** 2 / 2, power=2, grid="rounded")

    def _tail_above(self, m: int) -> Fraction:
        """P(|round(X)| > m) = P(|X| > m + ½), in steps."""
        return normal_tail((m + Fraction(1, 2)) * self.step / self.scale)

    def _guess(self, miss: Fraction) -> int:
        return int(self.scale / self.step * Fraction(_normal_guess(miss)))


def _squared(name: str, value: Exact | None, square: Exact | None) -> Fraction | None:
    if value is not None and square is not None:
        raise InvalidParameter(
            f"{name} was given twice", why=f"{name}_squared says it as well", instead=f"{name}=… or {name}_squared=…"
        )
    if square is not None:
        return exact_positive(square, f"{name}_squared")
    return None if value is None else exact_positive(value, name) ** 2


def _root_text(name: str, square: Fraction) -> str:
    root = root_above(square)
    return f"{name}={text_of(root)!r}" if root * root == square else f"{name}_squared={text_of(square)!r}"


def _single_shift(sensitivity_squared: Fraction, coordinates: int | None) -> int | None:
    """By how much the one number moves that a unit can move; None where several can move."""
    if coordinates == 1 or sensitivity_squared < 2:
        return max(1, math.isqrt(math.floor(sensitivity_squared)))
    return None


def _normal_guess(miss: Fraction) -> float:
    """z with P(|Z| > z) near `miss`, by halving; for miss below the floats, its leading term."""
    small = float(miss)
    if small < 1e-300:
        return math.sqrt(2 * (math.log(miss.denominator) - math.log(miss.numerator)))
    low, high = 0.0, 40.0
    while high - low > 1e-14:
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > small else (low, middle)
        if middle in (low, high) and high - low <= math.ulp(high):
            break
    return high
