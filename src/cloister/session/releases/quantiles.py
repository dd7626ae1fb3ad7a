"""Quantiles, extremes and modes from a noisy hierarchy, with margins from noisy values alone.

Let P(k) be the number of rows in the first k + 1 leaves and n their number in all. The quantile at q is the first k with D(k)
= P(k) − q·n ≥ 0. Least squares over the hierarchy gives D̂(k) = D(k) + a weighted sum of noises, whose variance is known
exactly for every k. The released value is where the monotone cumulative count (the mean of the largest value so far and the
smallest value yet to come) reaches q of the total.

Margin. With w(k) the half-width of the noise in D̂(k) at the confidence 1 − α, the set

    {k : D̂(k) ≥ −w(k) and D̂(k − 1) ≤ w(k − 1)}

holds the true quantile k* with probability at least 1 − α: D(k*) ≥ 0, so D̂(k*) < −w(k*) needs a noise below −w, and D(k* −
1) < 0, so D̂(k* − 1) > w(k* − 1) needs one above w; each has probability at most α/2. No band that holds at all k at once is
needed. The interval runs from the first code of its first leaf to the last code of its last.

Extremes. No private answer can tell whether one person lies beyond a value. `Extreme` is the value that r rows reach or pass,
where r is twice the largest half-width (95 %) of such a count of rows: a public number, said in the plan. In a group of fewer
than 2r rows fewer than half of them would lie on its other side; there it is the value that half of the rows reach, its
median. Which of the two it is hangs on the private number n, so it is the first leaf k with P(k) ≥ r or P(k) − n/2 ≥ 0. At that
leaf one of the two is true, and one leaf before neither: the set of k that may be so by the noise of both is missed with at
most three times the half of what each test may miss. A twentieth goes to telling n ≥ 2r or n < 2r apart, where one pair of
tests is enough."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.session.planning.leaves import Leaves
from cloister.session.releases.cumulative import ROUNDING, Bounds, Plausible, narrowed, usual_widths, width_at
from cloister.session.releases.formulas import Formula, Reading
from cloister.session.releases.frames import Kind, Series
from cloister.session.releases.linearised import Floats
from cloister.session.releases.uncertainty import Terms
from cloister.tables import Domain

_HIDES = 0.95
_SIZE = 0.05  # of what may be missed: for telling a group that is large enough for an extreme's rank
_SUREST = 1 - 1e-12


@dataclass(frozen=True, kw_only=True)
class OfLeaves(Formula):
    """What is read off the leaves of one column."""

    leaves: Leaves
    domain: Domain

    @property
    def raws(self) -> tuple[str, ...]:
        """The blocks of all levels, and the total where it was measured."""
        return (self.leaves.levels_name, *([self.leaves.total_name] if self.leaves.total else []))

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds of the column; in days where it holds dates."""
        return self._number(self.domain.low_code), self._number(self.domain.high_code)

    def counts(self, readings: Mapping[str, Reading]) -> Floats:
        """The least-squares count of each leaf, a row a group; not rounded, and perhaps below 0."""
        total = readings[self.leaves.total_name].values if self.leaves.total else None
        return self.leaves.counts(readings[self.leaves.levels_name].values, total)

    def _number(self, code: float) -> float:
        return float(self.domain.origin) + code * float(self.domain.step)

    def _decoded(self, codes: Floats) -> Series:
        if self.kind == "real":
            return Series("real", float(self.domain.origin) + codes * float(self.domain.step))
        whole = np.rint(codes).astype(np.int64)
        if self.kind == "integer" and self.domain.kind != "category":
            origin, step = self.domain.origin, self.domain.step
            if origin.denominator == 1 and step.denominator == 1:
                return Series("integer", int(origin) + whole * int(step))
        values: Any = np.empty(len(whole), dtype=object)
        values[:] = [self.domain.decode(int(code)) for code in whole]
        return Series(self.kind, values if self.kind in ("text", "date") else np.array(values.tolist()))

    def _reach(self, codes: Floats, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Floats:
        """How far the released codes are from the farther end of an interval of leaves; days for dates."""
        low, high = self._clipped(self.leaves.first(first)), self._clipped(self.leaves.last(last))
        if self.kind == "real" and self.leaves.stride > 1:
            low, high = low - 0.5, high + 0.5
        if self.kind == "date":
            return np.array([_days(self.domain, *each) for each in zip(codes, low, high, strict=True)])
        reach = np.maximum(np.maximum(codes - low, high - codes), 0.0)
        return np.asarray(reach * float(self.domain.step))

    def _clipped(self, codes: Any) -> Floats:
        found: Floats = np.clip(codes.astype(np.float64), self.domain.low_code, self.domain.high_code)
        return found


@dataclass(frozen=True, kw_only=True)
class Ordered(OfLeaves):
    """The value at a rank: a share of the rows, or a number of rows from one end."""

    share: Fraction | None = None
    """The quantile; None for an extreme."""
    top: bool = False
    """Whether an extreme is counted from the highest value."""

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""
        return self._decoded(self._codes(readings, self._counts(readings)))

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The longer way to an end of the interval; days for dates."""
        counts = self._counts(readings)
        terms = readings[self.leaves.levels_name].terms
        found = self._by_share if self.share is not None else self._extreme
        plausible = found(counts, terms, confidence)
        plausible[~plausible.any(axis=1)] = True
        first = plausible.argmax(axis=1)
        last = plausible.shape[1] - 1 - plausible[:, ::-1].argmax(axis=1)
        if self.top:
            first, last = self.leaves.count - 1 - last, self.leaves.count - 1 - first
        return self._reach(self._codes(readings, counts), first, last)

    def _by_share(self, counts: Floats, terms: Terms, confidence: float) -> Plausible:
        """The leaves that the value at a share of the rows may lie in."""
        share = float(self.share or 0)
        bounds = Bounds(self.leaves, terms, confidence, upto=1 - share, beyond=-share, top=False)
        over, slack = _above(counts, share * counts.sum(axis=1)), _slack(counts)
        return narrowed([bounds], lambda: _reached(over, bounds.values + slack) & _not_before(over, bounds.values + slack))

    def _extreme(self, counts: Floats, terms: Terms, confidence: float) -> Plausible:
        """The leaves that an extreme may lie in: by its rank where the group is sure to be large, by half of the rows where it is
        sure to be small; else the first that either reaches, which the last of three tests may fail as the first two do."""
        rank, miss, total, slack = self.rank(terms), 1 - confidence, counts.sum(axis=1), _slack(counts)
        beside = width_at(self.leaves, terms, min(1 - miss * _SIZE, _SUREST), self.leaves.count - 1, 1.0, 1.0) + slack
        large, small = total - beside > 2 * rank, total + beside < 2 * rank
        by_rank, by_half = _above(counts, np.full(len(total), rank)), _above(counts, total / 2)
        one, three = 1 - miss * (1 - _SIZE), 1 - miss * (1 - _SIZE) * 2 / 3
        alone = [self._outer(terms, one, half=half) for half in (False, True)]
        both = [] if (large | small).all() else [self._outer(terms, three, half=half) for half in (False, True)]

        def plausible() -> Plausible:
            found = np.where(
                small[:, None],
                _reached(by_half, alone[1].values + slack) & _not_before(by_half, alone[1].values + slack),
                _reached(by_rank, alone[0].values + slack) & _not_before(by_rank, alone[0].values + slack),
            )
            if both:
                ranks, halves = (each.values + slack for each in both)
                either = _reached(by_rank, ranks) | _reached(by_half, halves)
                either &= _not_before(by_rank, ranks) & _not_before(by_half, halves)
                found = np.where((large | small)[:, None], found, either)
            return found

        return narrowed([*(each for each, some in zip(alone, (large, small), strict=True) if some.any()), *both], plausible)

    def _outer(self, terms: Terms, confidence: float, *, half: bool) -> Bounds:
        """The half-widths of the rows up to each leaf from the extreme's own end, less half of all rows or not."""
        upto, beyond = (0.5, -0.5) if half else (1.0, 0.0)
        return Bounds(self.leaves, terms, confidence, upto=upto, beyond=beyond, top=self.top)

    def rank(self, terms: Terms) -> float:
        """How many rows reach an extreme: public, and at least the one that it is."""
        widths = usual_widths(self.leaves, terms, _HIDES, *((0.0, 1.0) if self.top else (1.0, 0.0)))
        return max(2.0 * float(widths.max()), 1.0)

    def _rank(self, terms: Terms, total: Floats) -> Floats:
        return np.minimum(self.rank(terms), np.maximum(total, 0.0) / 2)

    def _counts(self, readings: Mapping[str, Reading]) -> Floats:
        counts = self.counts(readings)
        return counts[:, ::-1] if self.top else counts

    def _codes(self, readings: Mapping[str, Reading], counts: Floats) -> Floats:
        plain = np.cumsum(counts, axis=1)
        rising = np.maximum.accumulate(plain, axis=1)
        coming = np.minimum.accumulate(plain[:, ::-1], axis=1)[:, ::-1]
        monotone = (rising + coming) / 2
        total = np.maximum(plain[:, -1], 0.0)
        terms = readings[self.leaves.levels_name].terms
        target = self._rank(terms, total) if self.share is None else float(self.share) * total
        reached = monotone >= target[:, None] - 1e-9
        leaf = np.where(reached.any(axis=1), reached.argmax(axis=1), self.leaves.count - 1)
        rows = np.arange(len(leaf))
        after = monotone[rows, leaf]
        ahead = np.where(leaf > 0, monotone[rows, np.maximum(leaf - 1, 0)], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.clip(np.where(after > ahead, (target - ahead) / (after - ahead), 0.5), 0.0, 1.0)
        if self.top:
            leaf, part = self.leaves.count - 1 - leaf, 1 - part
        stride = self.leaves.stride
        if stride == 1:
            return self._clipped(self.leaves.first(leaf))
        inside = self.leaves.first(leaf) - 0.5 + part * stride
        return self._clipped(inside if self.kind == "real" else np.rint(inside))


def _above(counts: Floats, target: Floats) -> Floats:
    """The rows up to each leaf less those that are wanted."""
    found: Floats = np.cumsum(counts, axis=1) - target[:, None]
    return found


def _slack(counts: Floats) -> float:
    """What rounding may do to sums of such counts."""
    return ROUNDING * (1 + float(np.abs(counts).sum(axis=1).max(initial=0.0)))


def _reached(over: Floats, widths: Floats) -> Plausible:
    """Where the wanted rows may be reached; at the last leaf they are."""
    passed = over >= -widths
    passed[:, -1] = True
    return np.asarray(passed)


def _not_before(over: Floats, widths: Floats) -> Plausible:
    """Where they may not be reached one leaf before."""
    before = np.ones(over.shape, dtype=bool)
    before[:, 1:] = over[:, :-1] <= widths[:-1]
    return before


@dataclass(frozen=True, kw_only=True)
class Frequent(OfLeaves):
    """The most frequent value: the leaf with the largest noisy count. It has no margin; `chances` says how sure it is."""

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""
        best = self.counts(readings).argmax(axis=1)
        return self._decoded(np.minimum(self.leaves.low + best, self.domain.high_code).astype(np.float64))

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """NaN: a value of a list has no half-width."""
        return np.full(len(readings[self.leaves.levels_name].values), np.nan)

    def chances(self, readings: Mapping[str, Reading]) -> Floats:
        """A lower bound, in each group, on the confidence that no other value is more frequent: 1 − Σ P(the noise in the
        difference makes up for the gap), with the tail of the difference of two continuous Laplace noises of at least that
        variance, which no other mixture here exceeds beyond two standard deviations. Another value that is more frequent is so
        by 1 at least, which pays for the steps of the discrete noises."""
        counts = np.sort(self.counts(readings)[:, : self.domain.high_code - self.domain.low_code + 1], axis=1)
        gaps = counts[:, -1:] - counts[:, :-1]
        squares = math.fsum(term.square for term in readings[self.leaves.levels_name].terms)
        one = squares * float(self.leaves.variances(1.0, 0.0)[0])  # of one leaf, after least squares
        scale = max(math.sqrt(one / 2), 1e-300)
        tails = (1 + gaps / (2 * scale)) * np.exp(-gaps / scale) / 2
        found: Floats = np.clip(1 - tails.sum(axis=1), 0.0, 1.0)
        return found


def _days(domain: Domain, code: float, low: float, high: float) -> float:
    """How many days lie between a date and the farther end of its interval; a code may be a month or a year."""
    shown, first, last = (domain.decode(round(each)) for each in (code, low, high))
    return float(max((shown - first).days, (last - shown).days, 0))


def kind_of(domain: Domain) -> Kind:
    """The kind of a column's values in an answer.

    >>> from cloister.tables import Category, Integer
    >>> kind_of(Integer(0, 9)), kind_of(Category(["a", "b"]))
    ('integer', 'text')
    """
    if domain.kind == "category":
        kinds: dict[type, Kind] = {str: "text", bool: "boolean", int: "integer"}
        return kinds[type(domain.decode(domain.low_code))]
    named: dict[str, Kind] = {"integer": "integer", "real": "real", "date": "date", "boolean": "boolean"}
    return named[domain.kind]
