"""Second moments XᵀX with noise that is a matrix: Wishart (stays positive semi-definite) and symmetric Gaussian (Analyze Gauss).

Rows have a declared bound on their length. The matrix is integer: fixed-point, in units of a declared step, summed exactly.
**There is no pure-ε Wishart mechanism**: the one that circulates has a support that moves with the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import IntegerArray, whole
from cloister.noise._continuous import RELATIVE_ERROR, check_step, chi_square, in_steps, normals
from cloister.noise._exponentials import ln_up
from cloister.noise.gaussian import DiscreteGaussian
from cloister.noise.mechanism import integer_array, release_integers, set_fields, source
from cloister.noise.random import Random
from cloister.privacy import ZCDP, ApproxDP, Exact, exact_positive, exact_probability


@dataclass(frozen=True, slots=True, init=False)
class WishartMechanism:
    """XᵀX + N with N Wishart distributed, scale matrix B²·I and k degrees of freedom; N is positive semi-definite, and so is
    the sum.

    Guarantee: (ε, δ)-DP between unbounded neighbours, one row a unit, each row of length at most B = `bound` (Sheffet 2015,
    additive Wishart noise: k ≥ d + 28 ln(4/δ)/ε² for ε < 1, δ < 1/e). `tightest` finds the least k that is private, some 6 to
    20 times fewer: for a row v, the two worlds' densities at a matrix depend on it only through ‖v‖²/(vᵀ(·)⁻¹v), which is
    chi-square with m = k−d+1 degrees in one world and the same plus ‖v‖²/B² ≤ 1 in the other. So the mechanism is exactly as
    private as chi-square noise on a number that moves by 1, whose δ at every ε is a closed form; the proof is in
    `matrices.proof.md`.

    Continuous, so what bounds the harm: the noise is drawn in floating point, rounded to whole steps, and added to exact
    integers; its law is the same in every world, and off by at most `float_delta` in δ. Rounding may push an eigenvalue below
    zero by at most d·step/2.

    Error: N has mean kB²·I (`shift`, which a reader may subtract), variance kB⁴ off the diagonal and 2kB⁴ on it.

    >>> mechanism = WishartMechanism(dimension=3, epsilon="0.5", delta="1e-6", bound=1, step="0.01")
    >>> mechanism.degrees, WishartMechanism.tightest(dimension=3, epsilon="0.5", delta="1e-6", bound=1, step="0.01").degrees
    (1706, 88)
    """

    dimension: int
    epsilon: Fraction
    delta: Fraction
    bound: Fraction
    step: Fraction
    degrees: int

    def __init__(self, *, dimension: int, epsilon: Exact, delta: Exact, bound: Exact, step: Exact) -> None:
        self._fill(dimension, epsilon, delta, bound, step)
        if self.epsilon >= 1 or self.delta >= Fraction(36, 100):
            raise InvalidParameter(
                f"epsilon={epsilon}, delta={delta} is invalid",
                why="the theorem's degrees of freedom hold for ε < 1 and δ < 1/e",
                instead="WishartMechanism.tightest(…), which holds for every ε and δ",
            )
        set_fields(self, degrees=sheffet_degrees(self.dimension, self.epsilon, self.delta))
        self._check_step()

    @classmethod
    def tightest(cls, *, dimension: int, epsilon: Exact, delta: Exact, bound: Exact, step: Exact) -> WishartMechanism:
        """With the least degrees of freedom that are (ε, δ)-DP, by the exact privacy profile.

        >>> WishartMechanism.tightest(dimension=2, epsilon=2, delta="1e-6", bound=1, step="0.01").degrees < 40
        True
        """
        mechanism = cls.__new__(cls)
        mechanism._fill(dimension, epsilon, delta, bound, step)
        set_fields(mechanism, degrees=least_degrees(mechanism.epsilon, mechanism.delta) + mechanism.dimension - 1)
        mechanism._check_step()
        return mechanism

    @property
    def guarantee(self) -> ApproxDP:
        """(ε, δ), one row a unit; floating point adds at most `float_delta`."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def shift(self) -> Fraction:
        """The mean of the noise on the diagonal, in steps: kB²/step. Subtract it for an unbiased matrix, which may be
        indefinite.
        """
        return self.degrees * self.bound**2 / self.step

    @property
    def variance(self) -> float:
        """The variance of the noise off the diagonal, in squared steps; on the diagonal it is twice that."""
        return float(self.degrees * (self.bound**2 / self.step) ** 2)

    @property
    def float_delta(self) -> float:
        """What floating point may add to δ, as for `VectorMechanism`.

        All entries are below r₀ = (4k + 120)B² but with probability 2⁻⁸⁰; each is off by at most 2⁻⁴⁵r₀, has a unimodal density
        below 1/B², and so crosses a rounding boundary with probability at most 2⁻⁴⁴r₀(1/step + 1/B²). There are d(d+1)/2
        entries.
        """
        size, square = 4 * self.degrees + 120, float(self.bound**2)
        crossing = 2 * RELATIVE_ERROR * size * square * (1 / float(self.step) + 1 / square) + 2.0**-80
        pairs = self.dimension * (self.dimension + 1) / 2
        return (1 + math.exp(min(float(self.epsilon), 700.0))) * pairs * crossing

    def margin(self, confidence: Exact = 0.95) -> float:
        """A half-width, in steps, for an entry off the diagonal, by Bernstein's inequality for sums of products of normals.

        >>> mechanism = WishartMechanism.tightest(dimension=2, epsilon=1, delta="1e-6", bound=1, step="0.01")
        >>> mechanism.margin(0.95) > 1.96 * mechanism.variance**0.5
        True
        """
        miss = 1 - float(exact_probability(confidence, "confidence"))
        # g·h has the cumulants of (χ² − χ²)/2: ln E e^(tS) = −(k/2) ln(1 − t²) <= k t²/2 / (1 − t), sub-gamma with scale 1
        log = math.log(2 / miss)
        return (math.sqrt(2 * self.degrees * log) + log) * float(self.bound**2 / self.step)

    def sample(self, *, random: Random | None = None) -> npt.NDArray[np.float64]:
        """One noise matrix in units of the value, before rounding (Bartlett's decomposition).

        >>> from cloister.noise.random import Random
        >>> mechanism = WishartMechanism.tightest(dimension=2, epsilon=1, delta="1e-6", bound=1, step="0.01")
        >>> noise = mechanism.sample(random=Random.deterministic(1)); bool(np.linalg.eigvalsh(noise).min() > 0)
        True
        """
        drawn, d = source(random), self.dimension
        root = np.zeros((d, d))
        root[np.tril_indices(d, -1)] = normals(d * (d - 1) // 2, drawn)
        root[np.diag_indices(d)] = [math.sqrt(chi_square(self.degrees - i, drawn)) for i in range(d)]
        return np.asarray(root @ root.T * float(self.bound**2))

    def release(self, value: Any, *, random: Random | None = None) -> npt.NDArray[Any]:
        """The noisy matrix, in steps; `value` is the exact integer matrix of second moments, in steps.

        >>> from cloister.noise.random import Random
        >>> mechanism = WishartMechanism.tightest(dimension=2, epsilon=1, delta="1e-6", bound=1, step="0.01")
        >>> mechanism.release([[100, 0], [0, 100]], random=Random.deterministic(1)).shape
        (2, 2)
        """
        moments = _symmetric(value, self.dimension)
        noise = in_steps(self.sample(random=random), float(self.step))
        lower = np.tril(noise)  # one number for both of a pair, whatever rounding did
        noise = lower + np.tril(noise, -1).T
        return np.asarray(release_integers(moments, lambda _: noise))

    def _fill(self, dimension: int, epsilon: Exact, delta: Exact, bound: Exact, step: Exact) -> None:
        cost, slack = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        if not slack:
            raise InvalidParameter(
                "delta=0 is invalid",
                why="no Wishart noise is private with δ = 0: its support moves with the data",
                instead='delta="1e-6", or symmetric Laplace noise on the upper triangle',
            )
        d, length, grid = whole(dimension, "dimension", least=1), exact_positive(bound, "bound"), exact_positive(step, "step")
        set_fields(self, dimension=d, epsilon=cost, delta=slack, bound=length, step=grid)

    def _check_step(self) -> None:
        check_step(float(self.step) / math.sqrt(self.degrees) / float(self.bound**2))


@dataclass(frozen=True, slots=True, init=False)
class SymmetricGaussian:
    """XᵀX + N with N symmetric: discrete Gaussian of deviation σ on the diagonal and σ/√2 off it. Exact on integers.

    Guarantee: ρ = (B²/step)²/2σ² of zCDP between unbounded neighbours, one row a unit, each of length at most B = `bound`; σ
    counts steps. After "Analyze Gauss" (Dwork, Talwar, Thakurta & Zhang 2014), which gives all entries σ. Proof: a
    row v adds vᵢvⱼ to entry (i, j) of the upper triangle. Discrete Gaussians of their own deviations cost Σ vᵢ⁴/2σ² + Σ_{i<j}
    vᵢ²vⱼ²/2(σ/√2)² = ‖v‖⁴/2σ² together (Canonne, Kamath & Steinke 2020, Theorem 4, and composition): no v costs more than
    another of its length, and an entry off the diagonal, which acts on both sides, needs half the variance only.

    What must hold: `value` is exactly Σ xxᵀ/step over rows x of fixed-point numbers with ‖x‖ ≤ B; rounding rows after clipping
    them may break it, so clip to B less half a step of the rows' own grid times √d.

    Error: variance σ² on the diagonal, σ²/2 off it, in squared steps. The result may be indefinite: cut eigenvalues below zero
    afterwards.

    >>> SymmetricGaussian(dimension=3, scale=100, bound=1, step="0.01").guarantee
    ZCDP(rho='0.5')
    """

    dimension: int
    scale_squared: Fraction
    bound: Fraction
    step: Fraction

    def __init__(
        self, *, dimension: int, bound: Exact, step: Exact, scale: Exact | None = None, scale_squared: Exact | None = None
    ) -> None:
        set_fields(
            self,
            dimension=whole(dimension, "dimension", least=1),
            scale_squared=DiscreteGaussian(scale=scale, scale_squared=scale_squared).scale_squared,
            bound=exact_positive(bound, "bound"),
            step=exact_positive(step, "step"),
        )

    @classmethod
    def for_rho(cls, rho: Exact, *, dimension: int, bound: Exact, step: Exact) -> SymmetricGaussian:
        """The σ that costs exactly ρ.

        >>> SymmetricGaussian.for_rho("0.1", dimension=2, bound=2, step="0.01").guarantee
        ZCDP(rho='0.1')
        """
        length, grid = exact_positive(bound, "bound"), exact_positive(step, "step")
        square = (length**2 / grid) ** 2 / (2 * exact_positive(rho, "rho"))
        return cls(dimension=dimension, scale_squared=square, bound=length, step=grid)

    @property
    def guarantee(self) -> ZCDP:
        """ρ = (B²/step)²/2σ², one row a unit."""
        return ZCDP((self.bound**2 / self.step) ** 2 / (2 * self.scale_squared))

    @property
    def diagonal_noise(self) -> DiscreteGaussian:
        """The law of the noise of one entry on the diagonal."""
        return DiscreteGaussian(scale_squared=self.scale_squared)

    @property
    def off_diagonal_noise(self) -> DiscreteGaussian:
        """The law of the noise of one entry off the diagonal: its σ² is half as large."""
        return DiscreteGaussian(scale_squared=self.scale_squared / 2)

    @property
    def variance(self) -> float:
        """The variance on the diagonal, in squared steps; off the diagonal it is half of that."""
        return self.diagonal_noise.variance

    def margin(self, confidence: Exact = 0.95) -> int:
        """The half-width, in steps, for an entry on the diagonal; it is wide enough off the diagonal too."""
        return self.diagonal_noise.margin(confidence)

    def release(self, value: Any, *, random: Random | None = None) -> npt.NDArray[Any]:
        """The noisy matrix, in steps; `value` is the exact integer matrix of second moments, in steps.

        >>> from cloister.noise.random import Random
        >>> mechanism = SymmetricGaussian(dimension=2, scale=10, bound=1, step="0.01")
        >>> noisy = mechanism.release([[9, 1], [1, 9]], random=Random.deterministic(1))
        >>> bool(noisy[0, 1] == noisy[1, 0])
        True
        """
        moments, d, drawn = _symmetric(value, self.dimension), self.dimension, source(random)
        noise = np.zeros((d, d), dtype=object)
        noise[np.tril_indices(d, -1)] = self.off_diagonal_noise.sample(d * (d - 1) // 2, random=drawn)
        noise = noise + noise.T
        noise[np.diag_indices(d)] = self.diagonal_noise.sample(d, random=drawn)
        return np.asarray(release_integers(moments, lambda _: integer_array(noise)))


def _symmetric(value: Any, dimension: int) -> IntegerArray:
    moments = integer_array(value)
    if moments.shape != (dimension, dimension) or not (moments == moments.T).all():
        raise InvalidParameter(
            "value is invalid",
            why=f"it must be a symmetric integer matrix of {dimension} rows",
            instead="value = X.T @ X in steps",
        )
    return moments


_DIGITS = 50
_MOST_DEGREES = 1 << 24


def delta_of_shift(degrees: int, epsilon: Fraction) -> float:
    """The least δ for which chi-square noise of m = `degrees` ≥ 3 on a number that moves by at most 1 is (ε, δ)-DP.

    With densities p(t) ∝ t^a e^(−t/2), a = m/2 − 1, and p(t − 1), the ratio p(t)/p(t−1) = (t/(t−1))^a e^(−1/2) falls in t. So
    the worst events are t < t₁ one way and, for ε < ½, t > t₂ the other way. A smaller shift is no worse, since the law is
    log-concave (`matrices.proof.md`, last section).

    >>> delta_of_shift(100, Fraction(1)) < 1e-6 < delta_of_shift(50, Fraction("0.5"))
    True
    """
    import mpmath

    context = mpmath.MPContext()
    context.dps = _DIGITS
    half, cost = context.mpf(degrees) / 2, context.mpf(epsilon.numerator) / epsilon.denominator
    a = half - 1
    t1 = 1 / -context.expm1(-(cost + 0.5) / a)
    worst = _gamma_below(context, half, t1 / 2) - context.exp(cost) * _gamma_below(context, half, (t1 - 1) / 2)
    if cost < 0.5:
        t2 = 1 / -context.expm1(-(0.5 - cost) / a)
        early, late = _gamma_below(context, half, (t2 - 1) / 2), _gamma_below(context, half, t2 / 2)
        worst = max(worst, (1 - early) - context.exp(cost) * (1 - late))
    return max(0.0, float(worst) * (1 + 2.0**-40))


def _gamma_below(context: Any, shape: Any, x: Any) -> Any:
    """P(Γ ≤ x) for a gamma number, x^s e^(−x)/Γ(s+1) · Σ_k x^k/((s+1)…(s+k)), to some 45 digits."""
    if x <= 0:
        return context.mpf(0)
    if x > shape + 100 * context.sqrt(shape) + 1000:  # the tail is below e^(−400)
        return context.mpf(1)
    total = term = context.exp(shape * context.log(x) - x - context.loggamma(shape + 1))
    k = 0
    while k < x - shape or term > total * context.eps:
        k += 1
        term *= x / (shape + k)
        total += term
    return total


def least_degrees(epsilon: Fraction, delta: Fraction) -> int:
    """The least m ≥ 3 with `delta_of_shift(m, ε)` ≤ δ.

    >>> least_degrees(Fraction(1), Fraction("1e-6")) < 60
    True
    """
    low, high = 2, 4
    while delta_of_shift(high, epsilon) > delta:
        low, high = high, high * 2
        if high > _MOST_DEGREES:
            raise InvalidParameter(
                "epsilon is invalid", why="it needs more degrees of freedom than can be drawn", instead='epsilon="0.1"'
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of_shift(middle, epsilon) <= delta else (middle, high)
    return high


def sheffet_degrees(dimension: int, epsilon: Fraction, delta: Fraction) -> int:
    """The degrees of freedom of Sheffet's theorem, for ε < 1 and δ < 1/e: ⌈d + 28 ln(4/δ)/ε²⌉.

    >>> sheffet_degrees(3, Fraction("0.5"), Fraction("1e-6"))
    1706
    """
    needed = dimension + 28 * ln_up(4 / delta) / epsilon**2
    return -(-needed.numerator // needed.denominator)
