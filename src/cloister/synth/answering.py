"""A question to a synthetic model: which columns it reads, what the model says of them, and which kind of interval that has.

The model's value of a count is n·Σ_x f(x)·P(x) over the grid of the columns that are read, in closed form. Where measured tables
hold all of these columns, their own best linear reading is answered instead, which is unbiased and has a margin
(`released.py`); elsewhere the model's value, with bounds that follow from measured tables, a typical interval (`typical.py`), or
none. All of it is post-processing of one release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import UnknownTable, UnsupportedQuery
from cloister.session import Count, Mean, Question, Sum, unknown_column
from cloister.session.planning.grid import Grid, grid_of
from cloister.session.releases.spreads import spreads
from cloister.session.releases.uncertainty import check_confidence
from cloister.synth.answer import Answer, Statistic
from cloister.synth.cutting import Cut, cut, objects
from cloister.synth.mixture import Mixture
from cloister.synth.released import Evidence, Reading, bounds, functional, projected, read, width
from cloister.synth.typical import LEAST_SIGNAL, MANY, half_widths, refits
from cloister.tables import And, Domain, Integer, PrivateTable, Real
from cloister.tables.expression.evaluate import holds

if TYPE_CHECKING:
    from cloister.synth.model import SyntheticModel

Floats = npt.NDArray[np.float64]

_MOST_COMBINATIONS = 1_000_000
_AT_ONCE = 4_000_000
_CLAIMED = 0.95


def answered(model: SyntheticModel, question: str | Question, confidence: float, progress: Callable[[str], None]) -> Answer:
    """The answer to a text, or to a question."""
    check_confidence(confidence)
    if isinstance(question, Question):
        return _Asked(model, question, confidence, progress).answer()
    from cloister.query import parse

    parsed = parse(question, {model.table: _declaration(model)})
    if len(parsed.questions) > 1:
        raise UnsupportedQuery("GROUPING SETS are not supported", why="each is an answer of its own", instead="two queries")
    found = _Asked(model, parsed.question, confidence, progress).answer()
    layout = parsed.layout
    if any(column.source is None for column in layout.columns):
        raise UnsupportedQuery("A constant column is not supported", why="the model answers statistics", instead="COUNT(*) AS n")
    if layout.chooses or layout.order:
        plain = found.table.to_pydict()
        chosen = [row for _, row in layout.rows([{name: plain[name] for name in layout.needed()}])]
        found = found.take(chosen)
    names = layout.names
    return Answer(
        keys={out: found.keys[source] for out, source in names.items() if source in found.keys},
        statistics={out: found.statistics[source] for out, source in names.items() if source in found.statistics},
        confidence=confidence,
        cost=found.cost,
        population=found.population,
        marked=found.marked,
        notes=found.notes,
        order=tuple(names),
    )


def _declaration(model: SyntheticModel) -> PrivateTable:
    """The model's columns as a table without rows, for the parser."""
    return PrivateTable({each.name: [] for each in model.columns}, {each.name: each.domain for each in model.columns})


class _Asked:
    """One question to one model."""

    def __init__(self, model: SyntheticModel, question: Question, confidence: float, progress: Callable[[str], None]) -> None:
        self.model, self.question, self.confidence, self.progress = model, question, confidence, progress
        self.domains: Mapping[str, Domain] = {each.name: each.domain for each in model.columns}
        self.places = {each.name: place for place, each in enumerate(model.columns)}
        if question.table != model.table:
            if isinstance(question.table, str):
                raise UnknownTable(
                    f"The table {question.table!r} is unknown", why=f"the model is of {model.table!r}", instead=model.table
                )
            raise UnsupportedQuery(
                "The query is not supported",
                why="it joins tables or computes columns, and the model answers of its own columns alone",
                instead=f"conditions and keys on the columns of {model.table}",
            )
        self.grid: Grid = grid_of(question, _declaration(model))
        keys = [axis.name for axis in self.grid.axes]
        if len(set(keys)) < len(keys):
            raise UnsupportedQuery("Two keys of one column are not supported", why="one groups the other", instead="one of them")
        reads = [] if question.where is None else sorted(question.where.columns())
        for name in reads:
            if name not in self.places:
                raise unknown_column(name, model.table, list(self.places))
        self.read = tuple(dict.fromkeys([*keys, *reads]))
        obeyed = model.ruled.conditions(self.read)
        self.where = And(*(each for each in (question.where, *obeyed) if each is not None)) if obeyed else question.where

    def answer(self) -> Answer:
        """All statistics of it."""
        shown = self.grid.visible()
        found: dict[str, Statistic] = {}
        for statistic in self.question.statistics:
            match statistic:
                case Count():
                    found[statistic.name] = self.counted(statistic.column)
                case Sum():
                    found[statistic.name] = self.summed(statistic.column)
                case Mean():
                    found[statistic.name] = self.mean(statistic.column)
                case _:
                    raise UnsupportedQuery(
                        f"{statistic.name} is not supported",
                        why="a synthetic model answers counts, sums and means",
                        instead="COUNT(*), SUM(column) or AVG(column); for others, model.sample()",
                    )
        return Answer(
            keys=self.grid.labels(),
            statistics={name: one.take(shown) for name, one in found.items()},
            confidence=self.confidence,
            cost=self.model.cost,
            population=self.model.population,
            marked=self.model.marked,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        """What else has to be known of an answer."""
        found = [] if self.model.measured else ["the model's file holds no measured tables: no margin is known"]
        if self.model.rules:
            found.append(
                "counted are rows that obey the rules, each as the rules mend it; what is not measured is the mixture's own, of "
                f"which {self.model.acceptance:.1%} obeys them"
            )
        return tuple(found)

    def counted(self, column: str | None) -> Statistic:
        """A count of rows, or of those with a value of a column."""
        if column is not None:
            self._check(column, numbers=False)
        needed = column is not None and self.domains[column].nullable
        reading = self.reading(column if needed else None)
        weights = self.present(reading, column) if needed and column is not None else np.ones(len(reading.group))
        one = _Weighed(self, reading, weights, weights, weights)
        value, low, high = one.model(), np.full(reading.number, np.nan), np.full(reading.number, np.nan)
        kind = np.full(reading.number, "not known", dtype=object)
        if self.model.measured is None:
            return Statistic(value, low, high, kind)
        least, most, told = one.bounds(self.confidence)
        least, most = np.maximum(least, 0.0), np.maximum(most, 0.0)
        kind[told], low[told], high[told] = "sure", least[told], most[told]
        typical, reach = one.typical(value)
        better = typical & ~(told & (most - least <= 2 * reach))
        kind[better], low[better], high[better] = "typical", np.maximum(value - reach, 0.0)[better], (value + reach)[better]
        exact, sums, margin = one.measured(self.confidence)
        kind[exact], value[exact] = "measured", sums[exact]
        low[exact], high[exact] = np.maximum(sums - margin, 0.0)[exact], np.maximum(sums + margin, 0.0)[exact]
        return Statistic(value, low, high, kind)

    def summed(self, column: str) -> Statistic:
        """A sum of a number."""
        reading, one, _ = self._of(column)
        value, low, high = one.model(), np.full(reading.number, np.nan), np.full(reading.number, np.nan)
        kind = np.full(reading.number, "not known", dtype=object)
        if self.model.measured is None:
            return Statistic(value, low, high, kind)
        least, most, told = one.bounds(self.confidence)
        kind[told], low[told], high[told] = "sure", least[told], most[told]
        exact, sums, margin = one.measured(self.confidence)
        kind[exact], value[exact] = "measured", sums[exact]
        low[exact], high[exact] = (sums - margin)[exact], (sums + margin)[exact]
        return Statistic(value, low, high, kind)

    def mean(self, column: str) -> Statistic:
        """A mean of a number: a ratio, solved by Fieller's theorem where both sums are measured."""
        reading, one, count = self._of(column)
        inside = reading.group >= 0
        least, most = np.full(reading.number, np.inf), np.full(reading.number, -np.inf)
        np.minimum.at(least, reading.group[inside], one.ranges[0][inside])
        np.maximum.at(most, reading.group[inside], one.ranges[1][inside])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = one.model() / count.model()
        low, high = np.full(reading.number, np.nan), np.full(reading.number, np.nan)
        kind = np.full(reading.number, "not known", dtype=object)
        if self.model.measured is None:
            return Statistic(value, low, high, kind)
        halved = (1 + self.confidence) / 2  # of two bounds each may fail with half of what is left
        under, over, _ = one.bounds(halved)
        fewest, largest, _ = count.bounds(halved)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(under >= 0, under / largest, under / fewest)
            last = np.where(over >= 0, over / fewest, over / largest)
        told = (fewest > 0) & ((first > least) | (last < most))
        kind[told], low[told], high[told] = "sure", np.maximum(first, least)[told], np.minimum(last, most)[told]
        ratio, start, end, exact = _fieller(one, count, self.confidence)
        kind[exact], value[exact] = "measured", np.clip(ratio, least, most)[exact]
        low[exact], high[exact] = np.clip(start, least, most)[exact], np.clip(end, least, most)[exact]
        return Statistic(value, low, high, kind)

    def reading(self, column: str | None) -> Reading:
        """The grid of all columns that are read, with the group of each combination."""
        names = self.read if column is None or column in self.read else (*self.read, column)
        axes = {axis.name: axis for axis in self.grid.axes}
        where, places = self.where, tuple(sorted(self.places[name] for name in names))
        cuts: dict[int, Cut] = {}
        for place in places:
            states = self.model.columns[place]
            cuts[place] = cut(states, axes.get(states.name), where, self.domains, summed=states.name == column)
        shape = [len(cuts[place].of) for place in places]
        combinations = int(np.prod(shape, dtype=np.float64))
        if combinations > _MOST_COMBINATIONS:
            raise UnsupportedQuery(
                "The query is not supported",
                why=f"its columns have {combinations:,} combinations of values, and at most {_MOST_COMBINATIONS:,} are read",
                instead="fewer keys and conditions, or model.sample()",
            )
        group = np.zeros(shape, dtype=np.int64)
        out = np.zeros(shape, dtype=bool)
        for axis in self.grid.axes:
            along = _along(cuts[self.places[axis.name]].group, places.index(self.places[axis.name]), len(shape))
            group = group * (axis.size or 1) + along
            out |= along < 0
        if where is not None:
            out |= ~self._through(places, cuts)
        return Reading(places, cuts, np.where(out, -1, group).ravel(), self.grid.cells)

    def present(self, reading: Reading, column: str) -> Floats:
        """1 where the column has a value."""
        one = reading.cuts[self.places[column]]
        return self._spread(reading, column, (one.code != self.domains[column].null_code).astype(np.float64))

    def _through(self, places: Sequence[int], cuts: Mapping[int, Cut]) -> npt.NDArray[np.bool_]:
        """Where the condition holds, over the combinations of the columns that it reads."""
        where = self.where
        assert where is not None
        read = [place for place in places if self.model.columns[place].name in where.columns()]
        lanes: dict[str, Any] = {}
        shape = [len(cuts[place].of) for place in read]
        for axis, place in enumerate(read):
            states = self.model.columns[place]
            values = objects(cuts[place].code, states.domain)
            lanes[states.name] = np.broadcast_to(_along(values, axis, len(read)), shape).ravel()
        found = holds(where, self.domains, lanes)
        if not read:
            return np.asarray(np.broadcast_to(found, [1] * len(places)))
        return found.reshape([len(cuts[place].of) if place in read else 1 for place in places])

    def _of(self, column: str) -> tuple[Reading, _Weighed, _Weighed]:
        """The sum of a column, and how many rows have it."""
        self._check(column, numbers=True)
        reading, domain = self.reading(column), self.domains[column]
        one = reading.cuts[self.places[column]]
        missing = one.code == domain.null_code
        ends = [np.where(missing, 0.0, _numbers(domain, np.minimum(each, domain.high_code))) for each in (one.code, one.last)]
        low, high = (self._spread(reading, column, each) for each in ends)
        there = self.present(reading, column)
        return reading, _Weighed(self, reading, low, (low + high) / 2, high), _Weighed(self, reading, there, there, there)

    def _check(self, column: str, *, numbers: bool) -> None:
        if column not in self.places:
            raise unknown_column(column, self.model.table, list(self.places))
        if numbers and not isinstance(self.domains[column], Integer | Real):
            raise UnsupportedQuery(
                f"A sum of {column!r} is not supported", why="it is no number", instead=f"COUNT(*) with GROUP BY {column}"
            )

    def _spread(self, reading: Reading, column: str, values: Floats) -> Floats:
        """What each piece of a column has, over all combinations."""
        axis = reading.places.index(self.places[column])
        shape = [len(reading.cuts[place].of) for place in reading.places]
        return np.broadcast_to(_along(values, axis, len(shape)), shape).ravel()


class _Weighed:
    """A sum of weights over rows: the model's value of it, what was measured of it, and what follows from that."""

    def __init__(self, asked: _Asked, reading: Reading, low: Floats, middle: Floats, high: Floats) -> None:
        self.asked, self.reading, self.ranges, self.middle = asked, reading, (low, high), middle

    def model(self) -> Floats:
        """n·Σ f·P for each group."""
        return self.under(self.asked.model.mixture, max(self.asked.model.rows, 0.0))

    def under(self, mixture: Mixture, rows: float) -> Floats:
        """The same under another mixture."""
        inside = self.reading.group >= 0
        chances = _chances(mixture, self.reading)
        found = np.bincount(self.reading.group[inside], (chances * self.middle)[inside], minlength=self.reading.number)
        return np.asarray(found * rows, dtype=np.float64)

    @cached_property
    def evidence(self) -> Evidence | None:
        """The measured marginal of all columns that are read."""
        found = self.asked.model.measured
        return None if found is None else read(found, self.reading.places, self.reading.cuts)

    @cached_property
    def weights(self) -> tuple[Any, Any, Any]:
        """By group and cell of the classes the weights of a sum that is measured."""
        return projected(self.reading, self.reading.places, self.ranges[1], largest=True)

    @cached_property
    def exact(self) -> npt.NDArray[np.bool_]:
        """For which groups the sum is one of measured counts: no bin is cut, and no value hidden in one."""
        if self.evidence is None:
            return np.zeros(self.reading.number, dtype=bool)
        size, told = self.evidence.counts.size, []
        for cells, groups, weights in (
            self.weights,
            projected(self.reading, self.reading.places, self.ranges[0], largest=False),
        ):
            told.append((groups * size + cells, weights))
        keys = np.unique(np.concatenate([each[0] for each in told]))
        apart = np.zeros(len(keys))
        for (places, weights), sign in zip(told, (1, -1), strict=True):
            apart[np.searchsorted(keys, places)] += sign * weights
        return np.asarray(np.bincount(keys // size, apart != 0, minlength=self.reading.number) == 0)

    def measured(self, confidence: float) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
        """Where it is measured, the sums, and their half-widths."""
        if self.evidence is None:
            return self.exact, np.zeros(self.reading.number), np.zeros(self.reading.number)
        sums = functional(self.evidence, *self.weights, self.reading.number)
        return self.exact, sums.value, width(sums, confidence)

    def bounds(self, confidence: float) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Sure bounds, and whether they say more than the number of rows does."""
        found, reading = self.asked.model.measured, self.reading
        assert found is not None
        low, high = self.ranges
        whole = bool((low == high).all() and np.isin(low, (0.0, 1.0)).all())
        least, most = bounds(found, reading, low, high, confidence, counts=whole)
        everybody = read(found, (), reading.cuts)
        assert everybody is not None
        trivial = [
            functional(everybody, *projected(reading, (), each, largest=largest), reading.number).value
            for each, largest in ((low, False), (high, True))
        ]
        return least, most, (least > trivial[0]) | (most < trivial[1])

    def typical(self, value: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
        """For which counts a typical interval is claimed, and its half-width."""
        model, reading = self.asked.model, self.reading
        nothing = np.zeros(reading.number, dtype=bool), np.zeros(reading.number)
        found = model.measured
        if found is None or len(reading.places) != 3 or self.asked.confidence != _CLAIMED or found.signal() < LEAST_SIGNAL:
            return nothing
        if found.rounds:  # refits to redrawn noise would choose other tables
            return nothing
        if model.ruled.touch([model.columns[place].name for place in reading.places]):  # refits know no rules
            return nothing
        pairs = [reading.places[:axis] + reading.places[axis + 1 :] for axis in range(3)]
        if any(read(found, pair, reading.cuts) is None for pair in pairs):
            return nothing
        cells, groups, weights = self.weights
        sizes = np.ones(())
        for place in reading.places:
            sizes = np.multiply.outer(sizes, reading.cuts[place].sizes())
        whole = _whole(reading)
        number = np.bincount(groups, weights * sizes.ravel()[cells], minlength=reading.number)
        noise = max(table.variance for table in found.tables.values()) ** 0.5
        claimed = whole & ((number == 1) | (value > max(MANY, noise)))
        if not claimed.any():
            return nothing
        others = [self.under(mixture, rows) for rows, mixture in refits(found, model.mixture, self.asked.progress)]
        return claimed, half_widths(value, others)


def _whole(reading: Reading) -> npt.NDArray[np.bool_]:
    """Which groups cut no state."""
    cut_ = np.zeros(len(reading.group), dtype=bool)
    shape = [len(reading.cuts[place].of) for place in reading.places]
    for axis, place in enumerate(reading.places):
        cut_ |= np.broadcast_to(_along(reading.cuts[place].share < 1, axis, len(shape)), shape).ravel()
    inside = reading.group >= 0
    return np.asarray(np.bincount(reading.group[inside], cut_[inside], minlength=reading.number) == 0)


def _chances(mixture: Mixture, reading: Reading) -> Floats:
    """The probability of each combination, some components at a time."""
    if not reading.places:
        return np.ones(1)
    columns = [
        reading.cuts[place].merged(mixture.columns[place], 1)[:, reading.cuts[place].of] * reading.cuts[place].share
        for place in reading.places
    ]
    size = int(np.prod([column.shape[1] for column in columns]))
    step = max(1, _AT_ONCE // size)
    found = np.zeros(size)
    for start in range(0, len(mixture.weights), step):
        part = slice(start, start + step)
        some = Mixture(mixture.weights[part], tuple(column[part] for column in columns))
        found += some.marginal(range(len(columns))).ravel()
    return found


def _fieller(one: _Weighed, count: _Weighed, confidence: float) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """The ratio of two measured sums, the ends of its interval, and where there is one."""
    number = one.reading.number
    evidence = one.evidence
    nothing = np.full(number, np.nan)
    if evidence is None:
        return nothing, nothing, nothing, np.zeros(number, dtype=bool)
    size = evidence.counts.size
    if number * size > _AT_ONCE:
        return nothing, nothing, nothing, np.zeros(number, dtype=bool)
    f, c, cells = np.zeros((number, size)), np.zeros((number, size)), evidence.cells.ravel()
    for weights, (places, groups, told) in ((f, one.weights), (c, count.weights)):
        weights[groups, places] = told
    counts = evidence.counts.ravel()
    top, under = f @ counts, c @ counts
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(under > 0, top / under, np.nan)
    safe = np.nan_to_num(ratio)
    off = np.abs(f - safe[:, None] * c)
    square = evidence.variance * ((off**2) @ cells)
    share = np.divide(evidence.largest * (off**2).max(axis=1), square, out=np.zeros(number), where=square > 0)
    kurtosis = np.divide(evidence.fourth * ((off**4) @ cells), square**2, out=np.zeros(number), where=square > 0)
    z2 = spreads(share, kurtosis, evidence.confidence(confidence)) ** 2 * evidence.variance
    vff, vfc, vcc = (f * f) @ cells, (f * c) @ cells, (c * c) @ cells
    a, b, rest = under**2 - z2 * vcc, top * under - z2 * vfc, top**2 - z2 * vff
    inner = b**2 - a * rest
    exact = one.exact & count.exact & (under > 0) & (a > 0) & (inner >= -1e-9 * b**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(inner, 0.0))
        return ratio, (b - root) / a, (b + root) / a, exact


def _numbers(domain: Domain, codes: npt.NDArray[np.int64]) -> Floats:
    """The numbers that codes stand for."""
    if isinstance(domain, Real):
        return np.asarray(float(domain.origin) + codes * float(domain.step))
    return codes.astype(np.float64)


def _along(values: npt.NDArray[Any], axis: int, axes: int) -> npt.NDArray[Any]:
    return values.reshape([-1 if each == axis else 1 for each in range(axes)])
