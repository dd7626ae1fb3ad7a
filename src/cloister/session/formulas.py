"""From noisy raws to released numbers, each with its margin: post-processing, so it costs nothing.

A *reading* is what a raw was found to be: one array of values and the noises that lie in them (several, where the same question
was bought twice and the readings were combined by inverse variance).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.session.frames import Kind, Series, whole
from cloister.session.uncertainty import Noise, Term, Terms, half_width, scaled, variance

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """The noisy values of one raw over all groups, and the noises in each of them (the same in every group)."""

    values: npt.NDArray[Any]
    terms: Terms


def combined(readings: list[Reading]) -> Reading:
    """Independent readings of the same integers, weighted by inverse variance: the least variance of all unbiased weightings.

    >>> from cloister.noise import DiscreteGaussian
    >>> once = Reading(np.array([10]), (Term(1.0, DiscreteGaussian(scale=3)),))
    >>> twice = combined([once, Reading(np.array([20]), once.terms)])
    >>> twice.values.tolist(), round(variance(twice.terms), 6)
    ([15.0], 4.5)
    """
    if len(readings) == 1:
        return readings[0]
    weights = [1 / max(variance(reading.terms), 1e-300) for reading in readings]
    total = math.fsum(weights)
    values = sum(reading.values.astype(np.float64) * (weight / total) for reading, weight in zip(readings, weights, strict=True))
    terms = tuple(
        term for reading, weight in zip(readings, weights, strict=True) for term in scaled(reading.terms, weight / total)
    )
    return Reading(np.asarray(values), terms)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Σ coefficient × raw, counts and sums. `integer` rounds to whole numbers."""

    name: str
    kind: Kind
    coefficients: tuple[tuple[str, float], ...]

    @property
    def raws(self) -> tuple[str, ...]:
        """What it is made of."""
        return tuple(name for name, _ in self.coefficients)

    def terms(self, readings: Mapping[str, Reading]) -> Terms:
        """The noises in every cell."""
        return tuple(term for name, coefficient in self.coefficients for term in scaled(readings[name].terms, coefficient))

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""
        if len(self.coefficients) == 1 and self.coefficients[0][1] == 1.0 and self.kind == "integer":
            values = whole(readings[self.coefficients[0][0]].values)
            if values.dtype.kind == "i":
                return Series("integer", values)
        total = sum(readings[name].values.astype(np.float64) * coefficient for name, coefficient in self.coefficients)
        if self.kind == "integer":
            total = np.clip(np.rint(total), -(2.0**62), 2.0**62).astype(np.int64)
        return Series(self.kind, np.asarray(total))

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The half-width of the interval, the same in every cell."""
        width = half_width(ordered(self.terms(readings)), confidence, self.kind == "integer")
        return np.full(len(readings[self.raws[0]].values), width)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """low + width · A/(A + B): the mean of a bounded column from its two sides.

    The margin is Fieller's: θ = A/(A + B) is the true share exactly where (1 − θ)A − θB is nothing but noise, so the set of all
    θ for which that number lies within its own noise's margin covers the truth with exactly the wanted probability, also where
    the group is small: then it is the whole range. Nothing but noisy values goes into it.
    """

    name: str
    above: str
    below: str
    low: float
    width: float
    codes: int
    """The width of the range in steps: what one row adds to A + B."""
    top: float = 1.0
    """The largest share that the declared bounds allow: 0 for a column of one value, whose width is taken as one step."""
    kind: Kind = "real"

    @property
    def raws(self) -> tuple[str, ...]:
        """What it is made of."""
        return (self.above, self.below)

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column, within the declared bounds."""
        return Series("real", self.low + self.width * self._share(readings))

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds of the column."""
        return self.low, self.low + self.width * self.top

    def _share(self, readings: Mapping[str, Reading]) -> Floats:
        above = readings[self.above].values.astype(np.float64)
        both = above + readings[self.below].values.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(both > 0, above / both, 0.5)
        return np.clip(share, 0.0, self.top)

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The half-width of the interval of each cell: the longer arm of Fieller's interval."""
        above = readings[self.above].values.astype(np.float64)
        both = above + readings[self.below].values.astype(np.float64)
        lower, upper = self.interval(above, both, readings[self.above].terms, readings[self.below].terms, confidence)
        share = self._share(readings)
        return np.maximum(share - np.minimum(lower, self.top), np.minimum(upper, self.top) - share) * self.width

    @staticmethod
    def interval(above: Floats, both: Floats, above_terms: Terms, below_terms: Terms, confidence: float) -> tuple[Floats, Floats]:
        """The least and greatest θ in [0, 1] with |above − θ·both| ≤ the margin of (1 − θ)·noise − θ·noise′."""
        grid = np.linspace(0.0, 1.0, 33)
        widths = np.array(
            [half_width(ordered(scaled(above_terms, 1 - theta) + scaled(below_terms, -theta)), confidence) for theta in grid]
        )

        def inside(theta: Floats) -> npt.NDArray[np.bool_]:
            found: npt.NDArray[np.bool_] = np.abs(above - theta * both) <= np.interp(theta, grid, widths)
            return found

        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.clip(np.where(both > 0, above / both, 0.5), 0.0, 1.0)
        certain = inside(centre) & (both > 0)
        ends = []
        for far in (0.0, 1.0):
            outer, inner = np.full_like(centre, far), centre.copy()
            reached = inside(outer) | ~certain
            for _ in range(40):
                middle = (outer + inner) / 2
                within = inside(middle)
                inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
            ends.append(np.where(reached, far, outer))
        return ends[0], ends[1]


Formula: TypeAlias = Linear | Ratio


def ordered(terms: Terms) -> Terms:
    """The terms that count, in a fixed order: equal sums of noises then have equal tuples, and their margin is worked out
    once."""
    return tuple(sorted((term for term in terms if term.weight), key=_order))


def _order(term: Term) -> tuple[str, float, float]:
    return type(term.noise).__name__, float(term.noise.scale), abs(term.weight)


def reading_of(values: npt.NDArray[Any], noise: Noise) -> Reading:
    """A raw that was measured once."""
    return Reading(values, (Term(1.0, noise),))


def cut(reading: Reading, keep: npt.NDArray[Any]) -> Reading:
    """The reading of some of the groups."""
    return replace(reading, values=reading.values[keep])
