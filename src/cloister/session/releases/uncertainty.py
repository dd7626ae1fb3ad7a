"""How far a number made from several noises may lie from the truth.

A released value is a weighted sum of integers that were noised independently. `Terms` lists the weights and the noises;
`half_width` finds the least m for which the sum of the noises stays within ±m with the wanted probability. One noise: its own
exact margin. Two Laplace noises, or Gaussians only, of large scales: the closed form for continuous laws, with what the steps of
the discrete ones can add. Otherwise: from the characteristic functions (`convolution.py`). Equal noises are gathered first, so
that a thousand of a kind take no longer than one. A margin errs on the wide side alone: by less than 1 %, at confidences from a
half to 1 − 10⁻¹².
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, DiscreteLaplace, SummedNoise
from cloister.noise.laws import NoiseLaw
from cloister.privacy import text_of
from cloister.session.planning.zoom import Zoom, law_of
from cloister.session.releases.convolution import Kind, chance_of_one, width_of_sum
from cloister.session.releases.spreads import spreads, widest

Planned: TypeAlias = DiscreteLaplace | DiscreteGaussian | Zoom
"""The noise that a plan asks for."""
Noise: TypeAlias = NoiseLaw | Zoom
"""The noise that is in a number: what was asked for, or what an engine of several parts says that it is."""
Floats: TypeAlias = npt.NDArray[np.float64]

_SUREST = 1 - 1e-12
_SMOOTH = 64  # the scale from which a discrete law may be taken for the continuous one, with its steps added
_STEPS = 2e-3  # the part of a half-width that the steps may add there
MOST_EXACT = 256
"""How many sums of one answer have their half-widths worked out one by one."""
_COARSE = 5e-3  # the part of a half-width that the step of a law must be, for that to be worth its time
_HARMONICS = 1 << 12  # of each of these; makes them half a per cent wider


@dataclass(frozen=True)
class Term:
    """One noise, times a public weight."""

    weight: float
    noise: Noise

    @property
    def spread(self) -> float:
        """The scale of the weighted noise."""
        return abs(self.weight) * float(self.noise.scale)

    @property
    def variance(self) -> float:
        """The variance of the weighted noise."""
        return self.weight**2 * float(self.noise.variance)

    @cached_property
    def square(self) -> float:
        """The variance of the weighted noise, that of the continuous law: a little more than that of the discrete one."""
        return math.fsum(number * spread**2 * (1.0 if gaussian else 2.0) for gaussian, spread, number in self._spreads())

    @cached_property
    def fourth(self) -> float:
        """The fourth cumulant of the weighted noise, that of the continuous law: 12 b⁴ for Laplace, 0 for Gaussian noise."""
        return 12 * math.fsum(number * spread**4 for gaussian, spread, number in self._spreads() if not gaussian)

    @cached_property
    def largest(self) -> float:
        """The variance of the largest Laplace noise in it, 2b²; 0 where there is none."""
        return 2 * max((spread**2 for gaussian, spread, _ in self._spreads() if not gaussian), default=0.0)

    def _spreads(self) -> Iterator[tuple[bool, float, float]]:
        """Of each noise in it whether it is Gaussian, its weighted scale, and how many of it there are."""
        weight = abs(self.weight)
        return ((gaussian, weight * scale, number) for gaussian, scale, number in _parts(self.noise))


Terms: TypeAlias = tuple[Term, ...]


def in_words(noise: Noise) -> str:
    """The law of a noise and its scale.

    >>> in_words(DiscreteLaplace(scale=10))
    'DiscreteLaplace of scale 10'
    """
    if isinstance(noise, Zoom):
        return noise.words()
    if isinstance(noise, SummedNoise):
        return "the sum of " + " and ".join(f"{text_of(number)} × {in_words(law)}" for law, number in noise.parts)
    return f"{law_of(noise)} of scale {float(noise.scale):,.6g}"


def scaled(terms: Terms, factor: float) -> Terms:
    """The noises of `factor` times the value."""
    return tuple([Term(term.weight * factor, term.noise) for term in terms])


def variance(terms: Terms) -> float:
    """Variances of independent noises add.

    >>> variance((Term(2.0, DiscreteGaussian(scale=3)), Term(1.0, DiscreteGaussian(scale=4)))) == 4 * 9 + 16
    True
    """
    return math.fsum(term.variance for term in terms)


def check_confidence(confidence: float) -> None:
    """A confidence is a number between 0 and 1, and no closer to 1 than a margin can be told from certainty.

    >>> check_confidence(0.95)
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence <= _SUREST:
        raise InvalidParameter(
            f"confidence={confidence!r} is invalid", why="it must be a number between 0 and 1", instead="confidence=0.95"
        )


def half_width(terms: Terms, confidence: float, integer: bool = False) -> float:
    """The least m with P(|sum of the noises| ≤ m) ≥ confidence, or a little more; for values rounded to integers, the least such
    integer.

    >>> half_width((Term(1.0, DiscreteLaplace(scale=10)),), 0.95)
    30.0
    >>> round(half_width((Term(1.0, DiscreteLaplace(scale=10)),) * 1000, 0.95))
    877
    """
    live = [term for term in terms if term.weight != 0]
    if not live:
        return 0.0
    first = live[0].noise
    if len(live) == 1 and not isinstance(first, SummedNoise) and (not integer or live[0].weight in (1.0, -1.0)):
        return abs(live[0].weight) * _of_one(first, confidence)
    kinds = gathered_kinds(live)
    width = _continuous(kinds, confidence)
    if width is None:
        width = width_of_sum(kinds, confidence)
    return float(max(0, math.ceil(width - 0.5))) if integer else width


def gathered_kinds(terms: Iterable[Term]) -> tuple[Kind, ...]:
    """The noises by law, scale and size of weight, in a fixed order: equal sums have equal ones, and are worked out once.

    >>> gathered_kinds([Term(1.0, DiscreteLaplace(scale=3)), Term(-1.0, DiscreteLaplace(scale=3))])
    (Kind(gaussian=False, scale=3.0, weight=1.0, number=2),)
    """
    laws: dict[int, list[tuple[bool, float, float]]] = {}
    found: dict[tuple[bool, float, float], float] = {}
    for term in terms:
        known = laws.get(id(term.noise))
        if known is None:
            known = laws[id(term.noise)] = _parts(term.noise)
        for gaussian, scale, number in known:
            place = (gaussian, scale, abs(term.weight))
            found[place] = found.get(place, 0) + number
    return tuple(Kind(*place, number) for place, number in sorted(found.items()))


@np.errstate(over="ignore")  # a margin that no double holds is infinite
def half_widths(weights: Mapping[str, Floats], terms: Mapping[str, Terms], confidence: float) -> Floats:
    """For many weighted sums of the same noises at once: for each the half-width that `half_width` would find, or a little more.

    `weights` holds for each noisy number its weight in every sum. The variance of a sum, its fourth cumulant and its largest
    noise, all of the continuous laws, decide (`spreads.py`); half of the widest step of a discrete law is added.

    >>> noise = (Term(1.0, DiscreteLaplace(scale=100)),)
    >>> wide = half_widths({"a": np.array([1.0, 1.0]), "b": np.array([0.0, 1.0])}, {"a": noise, "b": noise}, 0.95)
    >>> [round(float(each)) for each in wide], round(half_width(noise + noise, 0.95))
    ([303, 415], 412)
    """
    size = max((len(np.atleast_1d(weight)) for weight in weights.values()), default=1)
    square, fourth, largest, steps, unit = (np.zeros(size) for _ in range(5))
    for weight in weights.values():
        unit = np.maximum(unit, np.abs(weight))
    unit[unit == 0] = 1.0  # the fourth power of a weight of 1e-90 or 1e90 does not fit a double
    for name, whole in weights.items():
        weight = whole / unit
        square = square + weight**2 * math.fsum(term.square for term in terms[name])
        fourth = fourth + weight**4 * math.fsum(term.fourth for term in terms[name])
        largest = np.maximum(largest, weight**2 * max((term.largest for term in terms[name]), default=0.0))
        steps = np.maximum(steps, np.abs(weight) * max((abs(term.weight) for term in terms[name]), default=0.0) / 2)
    return _wide(square, fourth, largest, steps, confidence) * unit


def widths_of_counts(weights: Floats, numbers: Floats, terms: Sequence[Terms], confidence: float) -> Floats:
    """For many sums at once, a row a sum: the half-width of `numbers` independent noises of the weight `weights` in each column.

    Sums of small noises take few values, and most of these noises may be 0: their half-widths come from the laws themselves
    (`convolution.py`) where there are not too many of them, and are 0 where no noise is likely to be anything else. The others
    are found as by `half_widths`.

    >>> counts = np.array([[1.0, 0.0], [1.0, 3.0]])
    >>> noise = (Term(1.0, DiscreteGaussian(scale=1)),)
    >>> widths_of_counts(np.ones((2, 2)), counts, [noise, noise], 0.95).round(1).tolist()
    [2.0, 4.0]
    >>> nearly_none = (Term(1.0, DiscreteGaussian(scale="0.2")),)
    >>> widths_of_counts(np.ones((2, 2)), counts, [nearly_none, nearly_none], 0.95).tolist()
    [0.0, 0.0]
    """
    weights = np.abs(weights)
    square, fourth, largest, steps, others = (np.zeros(len(weights)) for _ in range(5))
    for column, noise in enumerate(terms):
        weight, number = weights[:, column], np.where(weights[:, column] > 0, numbers[:, column], 0.0)
        square = square + number * weight**2 * math.fsum(term.square for term in noise)
        fourth = fourth + number * weight**4 * math.fsum(term.fourth for term in noise)
        largest = np.maximum(largest, (number > 0) * weight**2 * max((term.largest for term in noise), default=0.0))
        steps = np.maximum(steps, (number > 0) * weight * max((abs(term.weight) for term in noise), default=0.0) / 2)
        others = others + number * chance_of_any(noise)
    found = _wide(square, fourth, largest, steps, confidence)
    found[others <= 1 - confidence] = 0.0
    close = np.flatnonzero(steps > _COARSE * found)
    if len(close) <= MOST_EXACT:
        laws = [[(*part, abs(each.weight)) for each in noise for part in _parts(each.noise)] for noise in terms]
        for row in close[found[close] > 0]:
            kinds = [
                Kind(gaussian, scale, round(float(weights[row, column]) * weight, 12), int(numbers[row, column]) * number)
                for column in np.flatnonzero(numbers[row] * weights[row])
                for gaussian, scale, number, weight in laws[column]
            ]
            found[row] = width_of_sum(tuple(sorted(kinds)), confidence, _HARMONICS)
    return found


@lru_cache(maxsize=256)
def chance_of_any(terms: Terms) -> float:
    """The probability that any of the noises is not 0, or more. A part of a Laplace noise is 0 more often than the whole: the
    transforms of these laws are positive, and the probability of 0 is the mean of the transform.

    >>> round(chance_of_any((Term(1.0, DiscreteLaplace(scale=1)),)), 3)
    0.538
    """
    parts = [part for term in terms for part in _parts(term.noise)]
    return math.fsum(math.ceil(number) * chance_of_one(gaussian, scale) for gaussian, scale, number in parts)


def _wide(square: Floats, fourth: Floats, largest: Floats, steps: Floats, confidence: float) -> Floats:
    """By the continuous laws (`spreads.py`), and half of the widest step of a discrete one."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kurtosis = np.where(square > 0, fourth / square**2, 0.0)
        share = np.where(square > 0, largest / square, 0.0)
    found: Floats = np.sqrt(square) * spreads(np.nan_to_num(share), np.nan_to_num(kurtosis), confidence) + steps
    return found


def spreads_at(kurtosis: Floats | float, confidence: float) -> Floats:
    """How many standard deviations make the half-width of a sum of noises of that excess kurtosis, whichever noises these are.

    >>> [round(float(spreads_at(kurtosis, 0.95)), 2) for kurtosis in (0.0, 3.0)]
    [1.98, 2.14]
    """
    return widest(kurtosis, confidence)


@lru_cache(maxsize=4096)
def _of_one(noise: Planned, confidence: float) -> float:
    return float(noise.margin(confidence))


def _parts(noise: Noise) -> list[tuple[bool, float, float]]:
    """The independent noises that it is the sum of: whether each is Gaussian, its scale, and how many of it there are."""
    parts = noise.parts if isinstance(noise, SummedNoise) else ((noise.noise if isinstance(noise, Zoom) else noise, 1),)
    return [
        (isinstance(law, DiscreteGaussian), float(law.scale), number if isinstance(number, int) else float(number))
        for law, number in parts
    ]


def _continuous(kinds: tuple[Kind, ...], confidence: float) -> float | None:
    """The half-width by the closed form for continuous laws, where there is one and the steps of the discrete laws hardly count.

    A discrete Laplace noise is a continuous one of its scale, rounded to the nearest integer and then set to 0 with a small
    probability, since P(|X| ≥ k) = P(|Y| ≥ k − ½)/cosh(1/2b); a discrete Gaussian lies as near to the continuous one, as the tail
    of that is convex beyond its scale. So rounding adds at most half of each weight, which is added here.
    """
    number = sum(kind.number for kind in kinds)
    if any(kind.scale < _SMOOTH for kind in kinds):
        return None
    if all(kind.gaussian for kind in kinds):
        width = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(math.fsum(kind.variance for kind in kinds))
    elif number == 2 and all(kind.number in (1, 2) and not kind.gaussian for kind in kinds):
        spread = [kind.weight * kind.scale for kind in kinds for _ in range(int(kind.number))]
        width = _of_two_laplace(spread[0], spread[1], confidence)
    else:
        return None
    steps = math.fsum(kind.number * kind.weight for kind in kinds) / 2
    return width + steps if steps <= _STEPS * width else None


def _of_two_laplace(one: float, other: float, confidence: float) -> float:
    """Solves P(|X + Y| > t) = (a²e^(−t/a) − b²e^(−t/b))/(a² − b²), the tail of two Laplace laws of scales a > b; for a = b its
    limit (1 + t/2a)e^(−t/a)."""
    wide, narrow = max(one, other), min(one, other)
    near = narrow > 0.999 * wide

    def tail(at: float) -> float:
        if near:
            return (1 + at / (2 * wide)) * math.exp(-at / wide)
        return (wide**2 * math.exp(-at / wide) - narrow**2 * math.exp(-at / narrow)) / (wide**2 - narrow**2)

    low, high = 0.0, 800.0 * wide
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= 1 - confidence else (middle, high)
    return high
