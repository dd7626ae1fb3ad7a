"""Numbers made from noisy ones by a curved formula, with their first-order error and a bound on the rest.

A `Linearised` number v stands for a true number t with |t − (v − Σ wᵢ·noiseᵢ)| ≤ rest, but for a small, fixed part of the
confidence. Its margin is the half-width of Σ wᵢ·noiseᵢ plus the rest. The arithmetic below keeps that statement true through
sums, products and quotients: each rule is an identity, and what it leaves out of the first order is bounded by *radii*,
half-widths at a confidence so high that all radii of one formula together take only a twentieth of what may be missed.

Where nothing was left out, all of the confidence goes to the first order, and a sum of counts has the margin of a count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cloister.session.releases.uncertainty import Terms, half_widths

Floats = npt.NDArray[np.float64]
Weights = Mapping[str, Floats]

_OTHERS = 0.05
_RADII = 8
_SUREST = 1 - 1e-12
_FAR, _CHORDS = 1e6, 8


@dataclass(frozen=True, eq=False)
class Certainty:
    """The noises of all noisy numbers, and the confidence that a margin is to have."""

    terms: Mapping[str, Terms]
    confidence: float
    radius_confidence: float = field(init=False)

    def __post_init__(self) -> None:
        miss = (1 - self.confidence) * _OTHERS / _RADII
        object.__setattr__(self, "radius_confidence", min(1 - miss, _SUREST))

    def radius(self, weights: Weights) -> Floats:
        """A bound on |Σ wᵢ·noiseᵢ| that hardly ever fails."""
        return half_widths(weights, self.terms, self.radius_confidence)

    def first(self, weights: Weights) -> Floats:
        """The half-width of Σ wᵢ·noiseᵢ at the confidence that the radii leave."""
        return half_widths(weights, self.terms, 1 - (1 - self.confidence) * (1 - _OTHERS))

    def margin(self, number: Linearised) -> Floats:
        """The half-width of the interval of a number."""
        curved = bool(np.any(number.rest > 0))
        width = number.rest
        if number.weights:
            width = width + (self.first(number.weights) if curved else half_widths(number.weights, self.terms, self.confidence))
        found: Floats = np.broadcast_to(width, number.value.shape).copy()
        return found

    def margin_about(self, number: Linearised, shown: Floats) -> Floats:
        """The half-width of an interval around another value, which was released for the same number."""
        with np.errstate(invalid="ignore"):
            moved: Floats = np.nan_to_num(np.abs(number.value - shown), nan=0.0, posinf=np.inf)
        return self.margin(number) + moved


@dataclass(frozen=True, eq=False)
class Linearised:
    """A number in each group, the weights of the noises in it, and a bound on what they leave out."""

    value: Floats
    weights: Weights
    rest: Floats

    def reach(self, certainty: Certainty) -> Floats:
        """How far the truth may be, with the confidence of a radius."""
        return np.asarray(certainty.radius(self.weights) + self.rest) if self.weights else self.rest

    def within(self, low: Floats | float, high: Floats | float, certainty: Certainty) -> Linearised:
        """The same number, where it is known that the truth lies in [low, high]: there the error is never more than the longer
        way to an end."""
        value = np.clip(self.value, low, high)
        worst = np.maximum(value - low, high - value)
        moved = np.abs(value - self.value)
        loose = ~(self.reach(certainty) + moved < worst)
        weights = {name: np.where(loose, 0.0, weight) for name, weight in self.weights.items()}
        return Linearised(value, weights, np.where(loose, worst, self.rest + moved))


def fieller_ends(
    value: Floats, divisor: Floats, width: Callable[[Floats], Floats], low: float, high: float
) -> tuple[Floats, Floats]:
    """The least and greatest θ in [low, high] with divisor·|θ − value| ≤ width(θ), for a convex width and a positive divisor.

    What is missing, h(t) = divisor·t − width(value ± t), is concave and below 0 at 0, so once above 0 it stays there. A chord
    of h lies below it and reaches 0 later: every step below goes down to the end from outside. An end that is not met within a
    million times what the first width makes is taken to be that of the range.

    A value outside of [low, high] is shown as the nearer end, and the interval moves along with it: it holds all of the range
    that it held, and is not cut to next to nothing where noise has made the value impossible.

    >>> ends = fieller_ends(np.array([1.0]), np.array([2.0]), lambda theta: 1 + 0.5 * np.abs(theta), -np.inf, np.inf)
    >>> [round(float(end[0]), 3) for end in ends]
    [0.4, 2.0]
    >>> fieller_ends(np.array([1.5]), np.array([1.0]), lambda theta: 0.25 + 0 * theta, -1.0, 1.0)[0].tolist()
    [0.75]
    """
    first, shown, ends = width(value), np.clip(value, low, high), []
    for sign, end in ((-1.0, low), (1.0, high)):
        reach = np.maximum(_FAR * first / divisor, 1e-300)
        met = divisor * reach > width(value + sign * reach)
        for _ in range(_CHORDS):
            over = np.maximum(divisor * reach - width(value + sign * reach), 0.0)
            reach = np.where(met, reach * first / np.where(met, np.maximum(over + first, 1e-300), 1.0), reach)
        ends.append(np.clip(np.where(met, shown + sign * reach, end), low, high))
    return ends[0], ends[1]


def constant(value: float, size: int) -> Linearised:
    """A public number.

    >>> constant(2.0, 3).value.tolist()
    [2.0, 2.0, 2.0]
    """
    return Linearised(np.full(size, value), {}, np.zeros(size))


def unknown(value: Floats, rest: Floats) -> Linearised:
    """A number of which only an interval is known."""
    return Linearised(value, {}, rest)


def weighed(parts: list[tuple[Floats | float, Weights]]) -> dict[str, Floats]:
    """The weights of a sum of factors times noises.

    >>> weighed([(2.0, {"a": np.array([1.0])}), (1.0, {"a": np.array([3.0])})])["a"].tolist()
    [5.0]
    """
    found: dict[str, Floats] = {}
    for factor, weights in parts:
        for name, weight in weights.items():
            found[name] = found[name] + factor * weight if name in found else np.asarray(factor * weight)
    return found


def added(one: Linearised, other: Linearised, sign: float = 1.0) -> Linearised:
    """one + sign · other: errors add with their signs, so that shared noise cancels."""
    weights = weighed([(1.0, one.weights), (sign, other.weights)])
    return Linearised(one.value + sign * other.value, weights, one.rest + abs(sign) * other.rest)


def multiplied(one: Linearised, other: Linearised, certainty: Certainty) -> Linearised:
    """t·u − v·w = w(t − v) + v(u − w) + (t − v)(u − w); the last is at most the product of the radii."""
    weights = weighed([(other.value, one.weights), (one.value, other.weights)])
    rest = np.abs(other.value) * one.rest + np.abs(one.value) * other.rest
    return Linearised(one.value * other.value, weights, rest + _product(one.reach(certainty), other.reach(certainty)))


def divided(one: Linearised, other: Linearised, certainty: Certainty) -> Linearised:
    """With θ = v/w: t/u − θ = ((t − v) − θ(u − w))/u, and |u| ≥ |w| − radius.

    Where the radius reaches |w|, nothing is known of the quotient: its margin is infinite. A quotient by exactly 0 is NaN, and
    where no noise is in the 0 it is so for certain.
    """
    reach = other.reach(certainty)
    least = np.abs(other.value) - reach
    sure = least > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(other.value != 0, one.value / other.value, np.nan)
        plain = np.where(sure, share, 0.0)
        safe = np.where(sure, other.value, 1.0)
        kept = np.where(sure, 1.0, 0.0)
        difference = weighed([(kept, one.weights), (-plain * kept, other.weights)])
        rests = one.rest + np.abs(plain) * other.rest
        moved = (certainty.radius(difference) if difference else 0.0) + rests
        tight = np.where(sure, least, 1.0)
        rest = rests / np.abs(safe) + moved * (1 / tight - 1 / np.abs(safe))
    weights = {name: weight / safe for name, weight in difference.items()}
    certain = (other.value == 0) & (reach == 0)
    return Linearised(share, weights, np.where(sure & np.isfinite(rest), rest, np.where(certain, 0.0, np.inf)))


def _product(one: Floats, other: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        found: Floats = np.nan_to_num(one * other, nan=0.0, posinf=np.inf)  # 0 · ∞: one of them is exact and 0
    return found
