"""From noisy raws to released numbers, each with its margin: post-processing, so it costs nothing.

A *reading* is what a raw was found to be: one array of values and the noises that lie in them (several, where the same question
was bought twice and the readings were combined by inverse variance).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.session.planning.zoom import Zoom
from cloister.session.releases.frames import Kind, Series, whole
from cloister.session.releases.linearised import Certainty, Floats, Linearised, Weights, unknown
from cloister.session.releases.uncertainty import Noise, Term, Terms, half_width, half_widths, scaled, variance


@dataclass(frozen=True)
class Reading:
    """The noisy values of one raw over all groups, and the noises in each of them (the same in every group)."""

    values: npt.NDArray[Any]
    terms: Terms


@dataclass(frozen=True)
class Chosen(Reading):
    """Noisy counts of groups that are shown because these very counts reached `least`.

    A small group is shown only when its noise was large, so a count that is not more than one margin above the threshold may
    belong to a group of any size from 1: there its margin reaches down to 1. A count further up keeps its margin m.

    Proof. Let Z be the noise, symmetric and log-concave on the integers, and P(|Z| > m) ≤ α. A group of n < least that is shown
    has the count least + E with P(E > m | shown) = P(Z ≥ least − n + m + 1)/P(Z ≥ least − n), which by log-concavity falls as
    least − n grows, so it is at most P(Z ≥ m + 1)/P(Z ≥ 0) ≤ 2·P(Z > m) ≤ α; where E ≤ m the margin reaches down to 1, and m
    reaches up, since the count is not below n. A group of n ≥ least, with a = n − least ≥ 0, is missed only where |Z| > m. For
    a > m that has, once shown, the probability (P(|Z| > m) − P(Z < −a))/(1 − P(Z < −a)) ≤ P(|Z| > m); for a ≤ m no count that
    is shown lies too low, and P(Z > m)/P(Z ≥ −a) ≤ 2·P(Z > m) ≤ α. ∎
    """

    least: int

    def reach(self, margins: Floats) -> Floats:
        """The margins of the counts, given those that they would have if nothing had been chosen by them."""
        counts = self.values.astype(np.float64)
        return np.where(self.near(margins), np.maximum(margins, counts - 1), margins)

    def near(self, margins: Floats) -> npt.NDArray[np.bool_]:
        """Which counts may belong to a group of any size."""
        found: npt.NDArray[np.bool_] = self.values.astype(np.float64) <= self.least + margins
        return found


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
    if isinstance(readings[0].terms[0].noise, Zoom):
        return _beside(readings)
    weights = [1 / max(variance(reading.terms), 1e-300) for reading in readings]
    total = math.fsum(weights)
    values = sum(reading.values.astype(np.float64) * (weight / total) for reading, weight in zip(readings, weights, strict=True))
    weighed = [term for reading, weight in zip(readings, weights, strict=True) for term in scaled(reading.terms, weight / total)]
    return Reading(np.asarray(values), tuple(term for term in weighed if term.weight) or readings[0].terms)


def together(found: Sequence[Mapping[str, Reading]]) -> Mapping[str, Reading]:
    """Of each raw the readings that were bought, as one."""
    return found[0] if len(found) == 1 else {name: combined([each[name] for each in found]) for name in found[0]}


def _beside(readings: list[Reading]) -> Reading:
    """Purchases of one quantile (`zoomed.py`): each has cuts of its own, so they stay apart, on the second axis."""
    terms = tuple(term for reading in readings for term in reading.terms)
    values = [reading.values[:, None] if reading.values.ndim == 2 else reading.values for reading in readings]
    return Reading(values[0] if values[0].ndim == 1 else np.concatenate(values, axis=1), terms)


@dataclass(frozen=True, kw_only=True)
class Formula(ABC):
    """How one released column, and its margins, follow from the readings of raws."""

    name: str
    kind: Kind

    @property
    @abstractmethod
    def raws(self) -> tuple[str, ...]:
        """What it is made of."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which its values must lie by declaration."""
        return (-math.inf, math.inf)

    @abstractmethod
    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""

    @abstractmethod
    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The half-width of the interval of each cell."""

    def linearised(self, readings: Mapping[str, Reading], certainty: Certainty) -> Linearised:
        """The values with the noises that lie in them, for arithmetic on several statistics; without more knowledge, with
        nothing but their margins."""
        values = self.series(readings).values.astype(np.float64)
        return unknown(values, self.margins(readings, certainty.radius_confidence))


@dataclass(frozen=True, kw_only=True)
class Linear(Formula):
    """Σ coefficient × raw, counts and sums. `integer` rounds to whole numbers."""

    coefficients: tuple[tuple[str, float], ...]

    @property
    def raws(self) -> tuple[str, ...]:
        """What it is made of."""
        return tuple([name for name, _ in self.coefficients])

    @property
    def bounds(self) -> tuple[float, float]:
        """Nothing is below 0 that is made of counts, and of sums of what lies above or below a bound, by adding alone; nor is the
        count of a column's values, the rows without those that miss one. Of other sums and differences nothing is known."""
        taken = [(name, coefficient) for name, coefficient in self.coefficients if not coefficient > 0]
        counted = all(name.startswith(_COUNTS) for name in self.raws)
        present = len(self.coefficients) == 2 and ("rows", 1.0) in self.coefficients and taken[:1] == [(self._missing, -1.0)]
        return (0.0, math.inf) if counted and (not taken or present) else super().bounds

    @property
    def _missing(self) -> str:
        return next((name for name in self.raws if name.startswith("nulls:")), "")

    def terms(self, readings: Mapping[str, Reading]) -> Terms:
        """The noises in every cell."""
        found: list[Term] = []
        for name, coefficient in self.coefficients:
            found += scaled(readings[name].terms, coefficient)
        return tuple([term for term in found if term.weight] or found[:1])

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
        """The half-width of the interval: the same in every cell, but where the counts themselves decided what is shown."""
        width = half_width(self.terms(readings), confidence, self.kind == "integer")
        found = np.full(len(readings[self.coefficients[0][0]].values), width)
        for name, coefficient in self.coefficients:
            reading = readings[name]
            if isinstance(reading, Chosen):
                own = np.full(len(found), half_width(reading.terms, confidence))
                found = found + abs(coefficient) * (reading.reach(own) - own)
        return found

    def linearised(self, readings: Mapping[str, Reading], certainty: Certainty) -> Linearised:
        """Exactly linear: nothing is left out. Of a count that may belong to a group of any size, nothing but that is known."""
        size = len(readings[self.raws[0]].values)
        total = sum(readings[name].values.astype(np.float64) * coefficient for name, coefficient in self.coefficients)
        weights = {name: np.full(size, coefficient) for name, coefficient in self.coefficients}
        rest = np.zeros(size)
        for name, coefficient in self.coefficients:
            reading = readings[name]
            if isinstance(reading, Chosen):
                radius = certainty.radius({name: np.ones(size)})
                near = reading.near(radius)
                weights[name] = np.where(near, 0.0, weights[name])
                rest = rest + abs(coefficient) * np.where(near, reading.reach(radius), 0.0)
        return Linearised(np.asarray(total), weights, rest)


@dataclass(frozen=True, kw_only=True)
class Rounded(Linear):
    """A count or a sum that was rounded together with others, so that they add up: by up to `slack` more than to the nearest
    whole number, which its margin holds too. How far is public: both the estimate and the whole number follow from noisy
    ones."""

    slack: float = 0.0

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """That of the estimate, and the way to the whole number."""
        return super().margins(readings, confidence) + self.slack


@dataclass(frozen=True, kw_only=True)
class Ratio(Formula):
    """low + width · A/(A + B): the mean of a bounded column from its two sides.

    The margin is Fieller's: θ = A/(A + B) is the true share exactly where (1 − θ)A − θB is nothing but noise, so the set of all
    θ for which that number lies within its own noise's margin covers the truth with exactly the wanted probability, also where
    the group is small: then it is the whole range. Nothing but noisy values goes into it.
    """

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

    def linearised(self, readings: Mapping[str, Reading], certainty: Certainty) -> Linearised:
        """In units of W·n: θ* − θ = −((1 − θ)·noise − θ·noise′)/n*, as for every mean (`mean_of`)."""
        above = readings[self.above].values.astype(np.float64) / self.codes
        both = above + readings[self.below].values.astype(np.float64) / self.codes
        part = 1.0 / self.codes
        share = mean_of(above, both, {self.above: part}, {self.above: part, self.below: part}, certainty, self.top)
        weights = {name: weight * self.width for name, weight in share.weights.items()}
        return Linearised(self.low + self.width * share.value, weights, share.rest * self.width)

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
        if len(above_terms) + len(below_terms) > _MANY:
            shares = {"above": 1 - _SHARES, "below": -_SHARES}
            return fieller(above, both, half_widths(shares, {"above": above_terms, "below": below_terms}, confidence))
        widths = np.array(
            [half_width(scaled(above_terms, 1 - theta) + scaled(below_terms, -theta), confidence) for theta in _SHARES]
        )
        return fieller(above, both, widths)


_COUNTS = ("rows", "units", "values:", "nulls:", "above:", "below:")
"""How raws begin that are never below 0."""
_ROUNDING = 1e-13  # of floating point, which is felt where the noise is next to nothing
_MANY = 24  # noises, from which on all shares are looked up at once
_SHARES = np.linspace(0.0, 1.0, 33)


def fieller(above: Floats, both: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """The least and greatest θ in [0, 1] with |above − θ·both| ≤ w(θ), where w is given at 33 places from 0 to 1.

    >>> low, high = fieller(np.array([50.0]), np.array([100.0]), np.full(33, 5.0))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.45, 0.55)
    """

    def inside(theta: Floats) -> npt.NDArray[np.bool_]:
        reach = np.interp(theta, _SHARES, widths) + _ROUNDING * np.abs(both)
        found: npt.NDArray[np.bool_] = np.abs(above - theta * both) <= reach
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


def mean_of(
    total: Floats,
    count: Floats,
    of_total: Mapping[str, float],
    of_count: Mapping[str, float],
    certainty: Certainty,
    top: float = 1.0,
) -> Linearised:
    """total/count, known to lie in [0, top], where both are sums of raws with these coefficients.

    With θ = total/count and a the noise in total − θ·count, the true share is θ − a/n: n is at least the noisy count less its
    radius.
    """
    share = np.clip(np.divide(total, count, out=np.full_like(total, 0.5), where=count > 0), 0.0, top)
    noise = {name: of_total.get(name, 0.0) - share * of_count.get(name, 0.0) for name in of_count}
    size = certainty.radius({name: np.full_like(total, weight) for name, weight in of_count.items()})
    least = np.maximum(count - size, 0.0)
    sure = least > np.maximum(count / 2, 1.0)
    safe, tight = np.where(sure, count, 1.0), np.where(sure, least, 1.0)
    clipped = np.where(sure, np.abs(total / safe - share), 0.0)
    rest = np.where(sure, certainty.radius(noise) * (1 / tight - 1 / safe) + clipped, np.maximum(share, top - share))
    weights: Weights = {name: np.where(sure, weight / safe, 0.0) for name, weight in noise.items()}
    return Linearised(share, weights, rest).within(0.0, top, certainty)


def reading_of(values: npt.NDArray[Any], noise: Noise) -> Reading:
    """A raw that was measured once."""
    return Reading(values, (Term(1.0, noise),))


def cut(reading: Reading, keep: npt.NDArray[Any]) -> Reading:
    """The reading of some of the groups."""
    return replace(reading, values=reading.values[keep])
