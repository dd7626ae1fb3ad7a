"""A question to a synthetic model: which columns it reads, what the model says of them, and which kind of interval that has.

The model's value of a count is n·Σ_x f(x)·P(x) over the grid of the columns that are read, in closed form. Where measured tables
hold all of these columns, their own best linear reading is answered instead, which is unbiased and has a margin
(`released.py`); elsewhere the model's value, with bounds that follow from measured tables, or none: what columns do together
beyond what was measured is the model's assumption, and nothing says how far off that is. (Two fair coins and whether they differ
are independent in pairs, and never in threes.) All of it is post-processing of one release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cloister.errors import UnknownTable, UnsupportedQuery
from cloister.session import Count, Mean, Question, Sum, unknown_column
from cloister.session.planning.grid import grid_of
from cloister.session.releases.uncertainty import check_confidence
from cloister.synth.answer import Answer, Statistic
from cloister.synth.cutting import cut, scope_of, truth
from cloister.synth.measuring import Floats
from cloister.synth.mixture import Mixture
from cloister.synth.pieces import Integers
from cloister.synth.released import Evidence, Reading, Truths, bounds, functional, projected, read
from cloister.tables import And, Integer, PrivateTable, Real
from cloister.tables.expression.names import quoted

if TYPE_CHECKING:
    from cloister.synth.model import SyntheticModel

_MOST_COMBINATIONS = 1_000_000
_AT_ONCE = 4_000_000
_SEEN = 5
"""How many deviations of a cell's noise all rows must be for bounds that follow from several cells to be told."""


def answered(model: SyntheticModel, question: str | Question, confidence: float, dialect: str | None) -> Answer:
    """The answer to a text, or to a question."""
    check_confidence(confidence)
    declaration = model.declaration
    if isinstance(question, Question):
        return _Asked(model, declaration, question, confidence).answer()
    from cloister.query import parse

    parsed = parse(question, {model.table: declaration}, dialect, cut=False)
    if len(parsed.questions) > 1:
        raise UnsupportedQuery("GROUPING SETS are not supported", why="each is an answer of its own", instead="two queries")
    found, layout = _Asked(model, declaration, parsed.question, confidence).answer(), parsed.layout
    if any(column.source is None for column in layout.columns):
        raise UnsupportedQuery("A constant column is not supported", why="the model answers statistics", instead="COUNT(*) AS n")
    if layout.chooses or layout.order:
        plain = found.table.to_pydict()
        found = found.take([row for _, row in layout.rows([{name: plain[name] for name in layout.needed()}])])
    names = layout.names
    return replace(
        found,
        keys={out: found.keys[source] for out, source in names.items() if source in found.keys},
        statistics={out: found.statistics[source] for out, source in names.items() if source in found.statistics},
        order=tuple(names),
    )


class _Asked:
    """One question to one model."""

    def __init__(self, model: SyntheticModel, declaration: PrivateTable, question: Question, confidence: float) -> None:
        self.model, self.question, self.confidence = model, question, confidence
        self.domains = declaration.columns
        self.places = {each.name: place for place, each in enumerate(model.columns)}
        if isinstance(question.table, str) and question.table != model.table:
            raise UnknownTable(
                f"The table {question.table!r} is unknown", why=f"the model is of {model.table!r}", instead=model.table
            )
        if question.table != model.table:
            raise UnsupportedQuery(
                "The query is not supported",
                why="it joins tables or computes columns, and the model answers of its own columns alone",
                instead=f"conditions and keys on the columns of {model.table}",
            )
        self.grid = grid_of(question, declaration)
        keys = [axis.name for axis in self.grid.axes]
        if len(set(keys)) < len(keys):
            raise UnsupportedQuery("Two keys of one column are not supported", why="one groups the other", instead="one of them")
        self.read = (*keys, *sorted(question.where.columns() - set(keys) if question.where is not None else ()))
        self._check(*self.read)
        obeyed = model.ruled.conditions(self.read)
        self.where = And(*(each for each in (question.where, *obeyed) if each is not None)) if obeyed else question.where

    def answer(self) -> Answer:
        """All statistics of it."""
        shown, found = self.grid.visible(), dict[str, Statistic]()
        for statistic in self.question.statistics:
            match statistic:
                case Count(column=column):
                    found[statistic.name] = self._total(self._present(column), count=True)
                case Sum(column=column):
                    found[statistic.name] = self._total(self._sum(column), count=False)
                case Mean(column=column):
                    found[statistic.name] = self._mean(column)
                case _:
                    raise UnsupportedQuery(
                        f"{statistic.name} is not supported",
                        why="a synthetic model answers counts, sums and means",
                        instead="COUNT(*), SUM(column) or AVG(column); for others, model.sample()",
                    )
        notes = [] if self.model.measured else ["the model's file holds no measured tables: no margin is known"]
        if self.model.rules:
            breaking = f"rows of the table that break {', '.join(self.model.unmapped)} were measured as they are"
            notes.append(
                (breaking if self.model.unmapped else "counted are rows that obey the rules, each as the rules mend it")
                + f"; what is not measured is the mixture's own, of which {self.model.acceptance:.1%} obeys them"
            )
        return Answer(
            keys=self.grid.labels(),
            statistics={name: one.take(shown) for name, one in found.items()},
            confidence=self.confidence,
            cost=self.model.cost,
            population=self.model.population,
            marked=self.model.marked,
            notes=(*notes, *self.model.said),
        )

    def _total(self, one: _Weighed, *, count: bool) -> Statistic:
        """A count, or a sum of a number."""
        found, floor = Statistic.unknown(one.model()), 0.0 if count else -np.inf
        if self.model.measured is None:
            return found
        least, most, told = one.bounds(self.confidence)
        least, most = np.maximum(least, floor), np.maximum(most, floor)
        found.tell("sure", told, least, most)
        exact, sums, margin = one.measured(self.confidence)
        found.tell("measured", exact, np.maximum(sums - margin, floor), np.maximum(sums + margin, floor), sums)
        return found

    def _mean(self, column: str) -> Statistic:
        """A mean of a number: a ratio, solved by Fieller's theorem where both sums are measured."""
        one, count = self._sum(column), self._present(column, always=True)
        inside = (one.reading.group >= 0) & (count.low > 0)  # a missing value is none of those
        least, most = np.full(one.reading.number, np.inf), np.full(one.reading.number, -np.inf)
        np.minimum.at(least, one.reading.group[inside], one.low[inside])
        np.maximum.at(most, one.reading.group[inside], one.high[inside])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = Statistic.unknown(one.model() / count.model())
        if self.model.measured is None:
            return found
        halved = (1 + self.confidence) / 2  # of two bounds each may fail with half of what is left
        under, over, _ = one.bounds(halved)
        fewest, largest, _ = count.bounds(halved)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(under >= 0, under / largest, under / fewest)
            last = np.where(over >= 0, over / fewest, over / largest)
        told = (fewest > 0) & ((first > least) | (last < most))
        found.tell("sure", told, np.maximum(first, least), np.minimum(last, most))
        ratio, start, end, exact = _fieller(one, count, self.confidence)
        ratio = np.where(np.isnan(ratio), found.value, ratio)
        # were means left out of which the noise tells nothing, those that stay would be the ones it moved up
        exact &= ~np.isnan(ratio) & ~(told & np.isinf(start))
        found.tell("measured", exact, *(np.clip(each, least, most) for each in (start, end, ratio)))
        return found

    def _present(self, column: str | None, *, always: bool = False) -> _Weighed:
        """How many rows there are, or have a value of a column."""
        if column is not None:
            self._check(column)
        if column is None or not (always or self.domains[column].nullable):
            reading = self._reading(None)
            there = np.ones(len(reading.group))
        else:
            reading = self._reading(column)
            codes = reading.cuts[self.places[column]].code
            there = reading.spread(self.places[column], (codes != self.domains[column].null_code).astype(np.float64))
        return _Weighed(self, reading, there, there, there)

    def _sum(self, column: str) -> _Weighed:
        """The sum of a column: of a bin that hides its values from the least to the largest of them."""
        self._check(column)
        domain, place = self.domains[column], self.places[column]
        if not isinstance(domain, Integer | Real):
            raise UnsupportedQuery(
                f"A sum of {column!r} is not supported", why="it is no number", instead=f"COUNT(*) with GROUP BY {quoted(column)}"
            )
        reading, ends = self._reading(column), []
        one = reading.cuts[place]
        for codes in (one.code, one.last, one.middle):
            numbers = float(domain.origin) + np.minimum(codes, domain.high_code) * float(domain.step)
            ends.append(reading.spread(place, np.where(one.code == domain.null_code, 0.0, numbers)))
        return _Weighed(self, reading, *ends)

    def _check(self, *columns: str) -> None:
        for name in columns:
            if name not in self.places:
                raise unknown_column(name, self.model.table, list(self.places))

    def _reading(self, column: str | None) -> Reading:
        """The grid of all columns that are read, with the group of each combination."""
        names = self.read if column is None or column in self.read else (*self.read, column)
        axes = {axis.name: axis for axis in self.grid.axes}
        cuts = {}
        for place in sorted(self.places[name] for name in names):
            states = self.model.columns[place]
            cuts[place] = cut(states, axes.get(states.name), self.where, self.domains, summed=states.name == column)
        grid = Reading(tuple(cuts), cuts, np.zeros(0, dtype=np.int64), self.grid.cells)
        combinations = int(np.prod(grid.shape, dtype=np.float64))
        if combinations > _MOST_COMBINATIONS:
            raise UnsupportedQuery(
                "The query is not supported",
                why=f"its columns have {combinations:,} combinations of values, and at most {_MOST_COMBINATIONS:,} are read",
                instead="fewer keys and conditions, or model.sample()",
            )
        group, out = np.zeros(combinations, dtype=np.int64), np.zeros(combinations, dtype=bool)
        for axis in self.grid.axes:
            along = grid.spread(self.places[axis.name], cuts[self.places[axis.name]].group)
            group, out = group * (axis.size or 1) + along, out | (along < 0)
        if self.where is not None:
            codes = {name: grid.spread(self.places[name], cuts[self.places[name]].code) for name in self.where.columns()}
            said = truth(self.where, scope_of(self.domains, codes))
            out |= said.null | ~said.values.astype(bool)
        return replace(grid, group=np.where(out, -1, group))


@dataclass(frozen=True, eq=False)
class _Weighed:
    """A sum of weights over rows: the model's value of it, what was measured of it, and what follows from that."""

    asked: _Asked
    reading: Reading
    low: Floats
    """The least weight of each combination, and the largest: they differ where a bin hides values."""
    high: Floats
    mean: Floats

    def model(self) -> Floats:
        """n·Σ f·P for each group."""
        inside, told = self.reading.group >= 0, _chances(self.asked.model.mixture, self.reading) * self.mean
        sums = np.bincount(self.reading.group[inside], told[inside], minlength=self.reading.number)
        return np.asarray(sums * max(self.asked.model.rows, 0.0), dtype=float)

    @cached_property
    def evidence(self) -> Evidence | None:
        """The measured marginal of all columns that are read."""
        found = self.asked.model.measured
        return None if found is None else read(found, self.reading.places, self.reading.cuts)

    @cached_property
    def weights(self) -> tuple[Integers, Integers, Floats]:
        """By group and cell of the classes the weights of a sum that is measured."""
        return projected(self.reading, self.reading.places, self.high, largest=True)

    @cached_property
    def exact(self) -> Truths:
        """For which groups the sum is one of measured counts: no bin is cut, and no value hidden in one."""
        if self.evidence is None:
            return np.zeros(self.reading.number, dtype=bool)
        least = projected(self.reading, self.reading.places, self.low, largest=False)
        cells, groups, weights = (np.concatenate(each) for each in zip(self.weights, (*least[:2], -least[2]), strict=True))
        unique, place = np.unique(groups * self.evidence.counts.size + cells, return_inverse=True)
        apart = np.bincount(place, weights) != 0
        return np.asarray(np.bincount(unique // self.evidence.counts.size, apart, minlength=self.reading.number) == 0)

    def measured(self, confidence: float) -> tuple[Truths, Floats, Floats]:
        """Where it is measured, the sums, and their half-widths."""
        if self.evidence is None:
            return self.exact, np.zeros(self.reading.number), np.zeros(self.reading.number)
        sums = functional(self.evidence, *self.weights, self.reading.number)
        return self.exact, sums.value, sums.width(confidence)

    def bounds(self, confidence: float) -> tuple[Floats, Floats, Truths]:
        """Sure bounds, and whether they are told: where they say more than the number of rows does.

        If noise hides the rows, it also decides where they say more, and those told would be the ones that it moved too far. So
        none are told unless there are several times as many rows as the noise of a cell is wide.
        """
        found, reading = self.asked.model.measured, self.reading
        assert found is not None
        whole = bool((self.low == self.high).all() and np.isin(self.low, (0.0, 1.0)).all())
        least, most = bounds(found, reading, self.low, self.high, confidence, counts=whole)
        everybody = read(found, (), reading.cuts)
        assert everybody is not None
        fewest, largest = (
            functional(everybody, *projected(reading, (), each, largest=up), reading.number).value
            for each, up in ((self.low, False), (self.high, True))
        )
        seen = found.signal() >= _SEEN
        return least, most, seen & ((least > fewest) | (most < largest))


def _chances(mixture: Mixture, reading: Reading) -> Floats:
    """The probability of each combination, some components at a time."""
    if not reading.places:
        return np.ones(1)
    columns = [
        reading.cuts[place].merged(mixture.columns[place], 1)[:, reading.cuts[place].of] * reading.cuts[place].share
        for place in reading.places
    ]
    size = len(reading.group)
    step, found = max(1, _AT_ONCE // size), np.zeros(size)
    for start in range(0, len(mixture.weights), step):
        part = slice(start, start + step)
        some = Mixture(mixture.weights[part], tuple(column[part] for column in columns))
        found += some.marginal(range(len(columns))).ravel()
    return found


def _fieller(one: _Weighed, count: _Weighed, confidence: float) -> tuple[Floats, Floats, Floats, Truths]:
    """The ratio of two measured sums, the ends of its interval (none where the divisor may be 0), and where both are measured."""
    number, evidence = one.reading.number, one.evidence
    if evidence is None or number * evidence.counts.size > _AT_ONCE:
        nothing = np.full(number, np.nan)
        return nothing, nothing, nothing, np.zeros(number, dtype=bool)
    f, c = (np.zeros((number, evidence.counts.size)) for _ in range(2))
    for dense, (cells, groups, weights) in ((f, one.weights), (c, count.weights)):
        dense[groups, cells] = weights
    counts, sizes = evidence.counts.ravel(), evidence.cells.ravel()
    top, under = f @ counts, c @ counts
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(under > 0, top / under, np.nan)
    off = f - np.nan_to_num(ratio)[:, None] * c
    groups, cells = np.nonzero(off)
    noise = functional(evidence, cells, groups, off[groups, cells], number)
    with np.errstate(divide="ignore", invalid="ignore"):
        z2 = np.nan_to_num(noise.width(confidence) ** 2 / noise.square) * evidence.variance
    vff, vfc, vcc = (f * f) @ sizes, (f * c) @ sizes, (c * c) @ sizes
    a, b, rest = under**2 - z2 * vcc, top * under - z2 * vfc, top**2 - z2 * vff
    bounded, root = (under > 0) & (a > 0), np.sqrt(np.maximum(b**2 - a * rest, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.where(bounded, (b - root) / a, -np.inf), np.where(bounded, (b + root) / a, np.inf)
    return ratio, low, high, one.exact & count.exact
