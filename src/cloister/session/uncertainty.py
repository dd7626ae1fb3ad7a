"""How far a number made from several noises may lie from the truth.

A released value is a weighted sum of integers that were noised independently. `Terms` lists the weights and the noises;
`half_width` finds the least m for which the sum of the noises stays within ±m with the wanted probability. One noise: its own
exact margin. Gaussians only: one Gaussian. Otherwise: the laws are laid on one fine grid, each atom moved by less than half a
step, multiplied in the Fourier domain, and read off with the steps added, so that the margin errs on the wide side by less than
0.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.session.zoom import Zoom

Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian | Zoom
Floats: TypeAlias = npt.NDArray[np.float64]

_SMOOTH = 64  # the scale from which a discrete law may be taken for the continuous one
_SUREST = 1 - 1e-12
_GRID = 1 << 15
_SPREAD = 45.0  # in units of the widest scale: e^-45 of a Laplace law lies beyond
_EQUAL = (1, 2, 3, 4, 6, 9, 16, 40)
_COARSE = 8  # below this scale the steps of a discrete law are felt in its margins
_SLACK = 1.004


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

    @property
    def fourth(self) -> float:
        """The fourth cumulant of the weighted noise, that of the continuous law: 12 b⁴ for Laplace, 0 for Gaussian noise."""
        return 12 * self.spread**4 if isinstance(self.noise, DiscreteLaplace) else 0.0


Terms: TypeAlias = tuple[Term, ...]


def in_words(noise: Noise) -> str:
    """The law of a noise and its scale.

    >>> in_words(DiscreteLaplace(scale=10))
    'DiscreteLaplace of scale 10'
    """
    if isinstance(noise, Zoom):
        return noise.words()
    return f"{type(noise).__name__} of scale {float(noise.scale):,.6g}"


def scaled(terms: Terms, factor: float) -> Terms:
    """The noises of `factor` times the value."""
    return tuple(Term(term.weight * factor, term.noise) for term in terms)


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
            f"confidence={confidence!r} was refused", why="it must be a number between 0 and 1", instead="confidence=0.95"
        )


@lru_cache(maxsize=4096)
def half_width(terms: Terms, confidence: float, integer: bool = False) -> float:
    """The least m with P(|sum of the noises| ≤ m) ≥ confidence; for values rounded to integers, the least such integer.

    >>> half_width((Term(1.0, DiscreteLaplace(scale=10)),), 0.95)
    30.0
    """
    live = tuple(term for term in terms if term.weight != 0)
    if not live:
        return 0.0
    if len(live) == 1 and (not integer or live[0].weight in (1.0, -1.0)):
        return abs(live[0].weight) * float(live[0].noise.margin(confidence))
    if all(isinstance(term.noise, DiscreteGaussian) and term.noise.scale >= _SMOOTH for term in live):
        width = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance(live))
    elif len(live) == 2 and all(isinstance(term.noise, DiscreteLaplace) and term.noise.scale >= _SMOOTH for term in live):
        width = _of_two_laplace(live[0].spread, live[1].spread, confidence)
    else:
        width = _from_grid(live, confidence)
    return float(max(0, math.ceil(width - 0.5))) if integer else width


def half_widths(weights: Mapping[str, Floats], terms: Mapping[str, Terms], confidence: float) -> Floats:
    """For many weighted sums of the same noises at once: for each the half-width that `half_width` would find, or a little more.

    `weights` holds for each noisy number its weight in every sum. Two numbers decide: the variance of a sum and its excess
    kurtosis, which is 3 for one Laplace noise, 3/k for k equal ones and 0 for a Gaussian. Between these, whose half-widths are
    exact, it is read off by interpolation, with 0.4 % added.

    >>> noise = (Term(1.0, DiscreteLaplace(scale=100)),)
    >>> wide = half_widths({"a": np.array([1.0, 1.0]), "b": np.array([0.0, 1.0])}, {"a": noise, "b": noise}, 0.95)
    >>> [round(float(each)) for each in wide], round(half_width(noise + noise, 0.95))
    ([301, 413], 411)
    """
    size = max((len(np.atleast_1d(weight)) for weight in weights.values()), default=1)
    square, fourth, steps = np.zeros(size), np.zeros(size), np.zeros(size)
    for name, weight in weights.items():
        square = square + weight**2 * variance(terms[name])
        fourth = fourth + weight**4 * math.fsum(term.fourth for term in terms[name])
        for term in terms[name]:
            if term.noise.scale < _COARSE:
                steps = np.maximum(steps, np.abs(weight) * abs(term.weight) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.where(square > 0, fourth / square**2, 0.0)
    found: Floats = np.sqrt(square) * spreads_at(kurtosis, confidence) + steps
    return found


def spreads_at(kurtosis: Floats | float, confidence: float) -> Floats:
    """How many standard deviations make the half-width of a sum of noises of that excess kurtosis.

    >>> [round(float(spreads_at(kurtosis, 0.95)), 2) for kurtosis in (0.0, 3.0)]
    [1.97, 2.13]
    """
    points, spreads = _spreads(confidence)
    return np.asarray(np.interp(kurtosis, points, spreads) * _SLACK)


@lru_cache(maxsize=256)
def _spreads(confidence: float) -> tuple[Floats, Floats]:
    numbers = list(reversed(_EQUAL))
    spreads = [_of_equal_laplace(number, confidence) / math.sqrt(2 * number) for number in numbers]
    points = [3 / number for number in numbers]
    return np.array([0.0, *points]), np.array([NormalDist().inv_cdf((1 + confidence) / 2), *spreads])


def _of_equal_laplace(number: int, confidence: float) -> float:
    """The half-width of a sum of so many Laplace noises of scale 1: the power of one transform."""
    step = 2 * _SPREAD * max(1.0, math.sqrt(number) / 3) / _GRID
    edges = (np.arange(_GRID + 1) - _GRID // 2 - 0.5) * step
    tails = np.exp(-np.abs(edges)) / 2
    masses = np.diff(np.where(edges < 0, tails, 1 - tails))
    transformed = np.fft.rfft(np.fft.ifftshift(masses / masses.sum()))
    return _read_off(transformed**number, confidence, number) * step


def _of_two_laplace(one: float, other: float, confidence: float) -> float:
    """Solves P(|X + Y| > t) = (a²e^(−t/a) − b²e^(−t/b))/(a² − b²), the tail of two Laplace laws of scales a > b; for a = b its
    limit (1 + t/2a)e^(−t/a). From scale 16 on, a discrete Laplace law differs from the continuous one by less than a
    thousandth."""
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


def _from_grid(terms: Terms, confidence: float) -> float:
    widest = max(term.spread for term in terms)
    step = 2 * _SPREAD * widest / _GRID
    product = np.ones(_GRID // 2 + 1, dtype=np.complex128)
    for term in terms:
        product *= np.fft.rfft(np.fft.ifftshift(_masses(term, step)))
    return _read_off(product, confidence, len(terms)) * step


def _read_off(product: npt.NDArray[np.complex128], confidence: float, terms: int) -> float:
    """The half-width, in steps of the grid, of the law that has this transform; half a step is added for each noise."""
    masses = np.fft.fftshift(np.fft.irfft(product, _GRID))
    centre = _GRID // 2
    folded = masses[centre:].copy()
    folded[1:] += masses[centre - 1 : 0 : -1]
    return int(np.searchsorted(np.cumsum(folded), confidence)) + terms / 2


def _masses(term: Term, step: float) -> Floats:
    """The law of the weighted noise, each atom at its nearest point of the grid; beyond the grid, at its ends."""
    points = (np.arange(_GRID) - _GRID // 2) * step
    masses = np.zeros(_GRID)
    apart = abs(term.weight)
    if apart > step / 8:
        reach = min(int(_SPREAD * max(float(term.noise.scale), 1.0)) + 1, int(points[-1] / apart) + 1)
        atoms = np.arange(-reach, reach + 1)
        law = _probabilities(term.noise, atoms)
        cells = np.clip(np.rint(atoms * apart / step).astype(np.int64) + _GRID // 2, 0, _GRID - 1)
        np.add.at(masses, cells, law)
    else:
        masses = np.diff(_cumulative(term, np.append(points, points[-1] + step) - step / 2))
    law_on_grid: Floats = masses / masses.sum()
    return law_on_grid


def _probabilities(noise: Noise, atoms: npt.NDArray[np.int64]) -> Floats:
    scale = float(noise.scale)
    sizes = np.abs(atoms) / scale
    weights = np.exp(-sizes if isinstance(noise, DiscreteLaplace) else -(sizes**2) / 2)
    law: Floats = weights / weights.sum()
    return law


def _cumulative(term: Term, points: Floats) -> Floats:
    spread = term.spread
    if isinstance(term.noise, DiscreteLaplace):
        tail = np.exp(-np.abs(points) / spread) / 2
        return np.where(points < 0, tail, 1 - tail)
    return np.array([0.5 * math.erfc(-point / (spread * math.sqrt(2))) for point in points])
