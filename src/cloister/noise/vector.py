"""The vector mechanism: noise of a gamma-distributed length in a uniform direction, for a vector of known L2 sensitivity, under
pure ε.

It serves what changes by a bounded *length*: the solution of a regularised convex problem, or the linear term that perturbs its
objective. Independent Laplace noise scaled to the same L2 sensitivity would cost √d·ε.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise._checks import level, vector, whole
from cloister.noise._continuous import check_step, gammas, normals
from cloister.noise.mechanism import narrowed, release_integers, set_fields, source
from cloister.noise.random import Random
from cloister.privacy import Exact, PureDP, exact_positive
from cloister.privacy.precision import context, real


@dataclass(frozen=True, slots=True, init=False)
class VectorMechanism:
    """Noise b in d dimensions with density ∝ exp(−ε‖b‖₂/Δ₂): ‖b‖ is gamma distributed, shape d and scale Δ₂/ε; the direction is
    uniform.

    Guarantee: ε-DP between the neighbours that Δ₂ was stated for (Chaudhuri & Monteleoni 2009; Chaudhuri, Monteleoni & Sarwate
    2011). Proof: at any point the densities of two worlds are e^(−ε‖y−v‖/Δ₂) and e^(−ε‖y−v′‖/Δ₂), and ‖y−v‖ − ‖y−v′‖ ≤ ‖v−v′‖ ≤
    Δ₂.

    Continuous, so what bounds the harm: the value is a vector of integers, counting a declared `step`; the noise is rounded to
    whole steps before it is added, which equals rounding the exact release (post-processing). So floating point acts on the
    noise alone, whose law is the same in every world: no low-order bits of a value can show. It is computed in sixty digits: a
    coordinate is off by at most 2⁻⁹⁰‖b‖, which matters only where that crosses a rounding boundary; the chance of it, some 10⁻²⁰,
    is `float_delta`, what a computed draw may add to δ = 0.

    Error: E‖b‖ = dΔ₂/ε; each coordinate has variance (d+1)(Δ₂/ε)².

    >>> mechanism = VectorMechanism(epsilon=1, sensitivity="0.02", dimension=3, step="0.001")
    >>> mechanism.guarantee, round(mechanism.variance, 4), mechanism.float_delta < 1e-18
    (PureDP(epsilon='1'), 0.0016, True)
    """

    epsilon: Fraction
    sensitivity: Fraction
    dimension: int
    step: Fraction

    def __init__(self, *, epsilon: Exact, sensitivity: Exact, dimension: int, step: Exact = 1) -> None:
        set_fields(
            self,
            epsilon=exact_positive(epsilon, "epsilon"),
            sensitivity=exact_positive(sensitivity, "sensitivity"),
            dimension=whole(dimension, "dimension", least=1),
            step=exact_positive(step, "step"),
        )
        check_step(float(self.step / self.scale))

    @property
    def scale(self) -> Fraction:
        """Δ₂/ε, the scale of the length."""
        return self.sensitivity / self.epsilon

    @property
    def guarantee(self) -> PureDP:
        """ε; floating point adds at most `float_delta`."""
        return PureDP(self.epsilon)

    @property
    def float_delta(self) -> float:
        """What floating point may add to δ: (1 + e^ε) times the total variation between the computed and the exact noise.

        ‖b‖ exceeds r₀ = (8d + 60)s with probability below 2⁻⁸⁰ (Chernoff); below it a coordinate is off by at most r = 2⁻⁹⁰r₀,
        but with probability 2⁻⁸⁰ (`_precise`).
        Its density is log-concave with standard deviation s√(d+1), so at most 1/(s√(d+1)), and sums to at most 1/step + that
        over the rounding boundaries: it lies within r of one of them with probability at most 2r times that sum. There are d
        coordinates.
        """
        s, d = float(self.scale), self.dimension
        crossing = 2 * RELATIVE_ERROR * (8 * d + 60) * s * (1 / float(self.step) + 1 / (s * math.sqrt(d + 1))) + 2 * MISSED
        return (1 + math.exp(min(float(self.epsilon), 700.0))) * d * crossing

    @property
    def variance(self) -> float:
        """The variance of one coordinate, in squared units of the value (not of the step): (d+1)(Δ₂/ε)²."""
        return float((self.dimension + 1) * self.scale**2)

    def margin(self, confidence: Exact = 0.95) -> float:
        """The least m, in units of the value, with P(‖b‖₂ <= m) >= confidence: a quantile of the gamma law, before rounding.

        >>> round(VectorMechanism(epsilon=1, sensitivity=1, dimension=1, step="0.01").margin(0.95), 3)
        2.996
        """
        wanted, d = level(confidence), self.dimension
        low, high = 0.0, 50.0 + 10.0 * d + 4 * math.log(1 / (1 - wanted))
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if _gamma_cdf(d, middle) >= wanted else (middle, high)
        return high * float(self.scale)

    def sample(self, n: int, *, random: Random | None = None) -> npt.NDArray[np.float64]:
        """n draws of the noise, one a row, before rounding, in floating point: to look at, not to release.

        >>> from cloister.noise.random import Random
        >>> VectorMechanism(epsilon=1, sensitivity=1, dimension=3, step="0.01").sample(5, random=Random.deterministic(1)).shape
        (5, 3)
        """
        drawn, count = source(random), whole(n, "n", least=0)
        directions = normals(count * self.dimension, drawn).reshape(count, self.dimension)
        lengths = gammas(self.dimension, count, drawn) * float(self.scale)
        norms = np.sqrt((directions**2).sum(axis=1))
        return np.asarray(directions * (lengths / norms)[:, None])

    def release(self, value: Any, *, random: Random | None = None) -> npt.NDArray[Any]:
        """The noisy vector, in steps. `value` counts steps; Δ₂ is the sensitivity of that fixed-point vector times the step.

        >>> from cloister.noise.random import Random
        >>> mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=2, step="0.01")
        >>> mechanism.release([0, 500], random=Random.deterministic(1)).dtype
        dtype('int64')
        """
        steps = vector(value, "value", self.dimension)
        noise = ball_in_steps(self.dimension, self.scale / self.step, source(random))
        return np.asarray(release_integers(steps, lambda _: noise))


def _gamma_cdf(shape: int, x: float) -> float:
    """1 − e^(−x) Σ_{k<shape} x^k / k!, for a whole shape."""
    terms = [k * math.log(x) - x - math.lgamma(k + 1) for k in range(shape)] if x > 0 else [0.0]
    return 1 - math.fsum(math.exp(term) for term in terms)


RELATIVE_ERROR = 2.0**-90
"""How far a coordinate may be from its real value, relatively to the vector's length, but with probability `MISSED`."""
MISSED = 2.0**-80
_BITS = 192


def ball_in_steps(dimension: int, scale: Fraction, random: Random) -> npt.NDArray[Any]:
    """One draw of density ∝ exp(−‖b‖₂/scale), each coordinate rounded to the nearest whole number.

    For mechanisms that promise a pure ε: what the computation may be off by is so little (2⁻⁹⁰ of the length) that the chance
    of landing in another step than the exact draw is far below anything that could be told.

    Normal numbers give the direction (Box & Muller 1958), a sum of d exponential ones the length. A uniform number is the middle
    of one of 2¹⁹² cells. Within a cell a logarithm moves by 2⁻¹⁹³/u, which is below 2⁻¹⁰² unless u < 2⁻⁹⁰; a radius √(−2 ln u) by
    2⁻¹⁹³/radius, below 2⁻¹⁰⁰ unless it is below 2⁻⁹². The length, a sum of d such logarithms, is about d and off by at most
    2⁻¹⁰²d; with two hundred bits of arithmetic a coordinate stays within `RELATIVE_ERROR`.

    >>> from fractions import Fraction
    >>> from cloister.noise.random import Random
    >>> ball_in_steps(3, Fraction(1000), Random.deterministic(1)).dtype
    dtype('int64')
    """
    number = context()
    half = (dimension + 1) // 2
    drawn = iter(_uniforms(2 * half + dimension, random))
    directions = []
    for _ in range(half):
        radius, angle = number.sqrt(-2 * number.ln(next(drawn))), 2 * number.pi * next(drawn)
        directions += [radius * number.cos(angle), radius * number.sin(angle)]
    del directions[dimension:]
    length = -number.fsum(number.ln(each) for each in drawn)
    norm = number.sqrt(number.fsum(each * each for each in directions))
    factor = real(scale) * length / norm
    steps = [int(number.nint(each * factor)) for each in directions]
    return narrowed(np.array(steps, dtype=object))


def _uniforms(n: int, random: Random) -> list[Any]:
    number, size = context(), _BITS // 8
    text = random.bytes(n * size)
    whole = (int.from_bytes(text[place : place + size], "little") for place in range(0, n * size, size))
    return [number.ldexp(2 * each + 1, -_BITS - 1) for each in whole]
