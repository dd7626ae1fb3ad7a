"""Several questions about the same rows, measured together: what is measured for them, and how they are read from it.

Questions about the same rows and statistics that differ in their declared keys alone are *marginals* of one table. Not they
themselves are measured, but those marginals from which all of them follow with the least error (`marginal_shares.py`); least
squares then makes the answers agree with each other (`marginals.py`), and whole numbers are rounded so that they still add up
(`rounded`). Counts over ranges of one column are put together too (`range_family.py`). Questions of other kinds in
the same workload are measured as they are, under the same charge.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.session.execution.answer import additive, cellwise, released_from, released_part
from cloister.session.execution.history import History
from cloister.session.planning.grid import Axis
from cloister.session.planning.plan import Plan, Together
from cloister.session.planning.shape import Shape
from cloister.session.questions.question import Question
from cloister.session.questions.spend import Measure
from cloister.session.releases.formulas import Formula, Linear, Reading, Rounded, together
from cloister.session.releases.release import Release
from cloister.session.releases.stored_kinds import written
from cloister.session.workloads.marginal_shares import alike, best_shares
from cloister.session.workloads.marginals import (
    Floats,
    Marginal,
    cells,
    check_marginals,
    consistent,
    effects_from,
    spread_out,
    union,
)
from cloister.session.workloads.range_family import RangeFamily, range_families

_MOST_AXES = 6
_MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class Family:
    """Questions that are marginals of one table: by their places among all questions, with the axes that they keep."""

    wanted: Mapping[int, Marginal]
    axes: tuple[Axis, ...]
    example: Question
    shares: Mapping[Marginal, Fraction]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many groups each axis has."""
        return tuple(axis.size or 0 for axis in self.axes)

    @property
    def measured(self) -> tuple[Question, ...]:
        """What is measured."""
        return tuple(replace(self.example, by=tuple(self.axes[number].key for number in kept)) for kept in self.shares)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """The part of the family's spend that each measurement takes."""
        return tuple(self.shares.values())

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each measurement finds."""
        return tuple(int(np.prod([self.sizes[number] for number in kept], dtype=np.int64)) for kept in self.shares)

    def words(self, shape: Shape) -> str:
        """What tells one of the questions from the others."""
        return " × ".join(axis.name for axis in shape.grid.axes) or "all rows"

    def answers(
        self, shapes: Sequence[Shape], found: Sequence[Mapping[str, Reading]]
    ) -> dict[int, tuple[tuple[Formula, ...], dict[str, Reading]]]:
        """For each wanted question the formulas and the readings that its answer is made of, from the readings of what was
        measured."""
        raws: dict[str, dict[Marginal, Reading]] = {}
        for name in found[0]:
            tables = {
                kept: (reading[name].values.reshape(tuple(self.sizes[number] for number in kept)), reading[name].terms)
                for kept, reading in zip(self.shares, found, strict=True)
            }
            agreed = consistent(self.sizes, tables, list(dict.fromkeys(self.wanted.values())))
            raws[name] = {kept: Reading(values, terms) for kept, (values, terms) in agreed.items()}
        answers: dict[int, tuple[tuple[Formula, ...], dict[str, Reading]]] = {}
        wholes = _wholes(self, shapes[next(iter(self.wanted))].formulas, raws)
        for place, kept in self.wanted.items():
            readings = {name: by[kept] for name, by in raws.items()}
            formulas: list[Formula] = []
            for formula in shapes[place].formulas:
                if isinstance(formula, Linear) and formula.name in wholes:
                    readings[_whole(formula.name)], slack = wholes[formula.name][kept]
                    coefficients = ((_whole(formula.name), 1.0),)
                    formula = Rounded(name=formula.name, kind=formula.kind, coefficients=coefficients, slack=slack)
                formulas.append(formula)
            order = _order(self, shapes[place], kept)
            flat = {name: Reading(np.transpose(each.values, order).reshape(-1), each.terms) for name, each in readings.items()}
            answers[place] = (tuple(formulas), flat)
        return answers


@dataclass(frozen=True)
class Workload:
    """What is measured for several questions, with the part of the spend that each measurement takes."""

    families: tuple[Family | RangeFamily, ...]
    alone: tuple[int, ...]
    """The places of the questions that are measured as they are."""
    measured: tuple[Question | Shape, ...]
    weights: tuple[Fraction, ...]

    def place(self, family: int) -> int:
        """Where the measurements of a family begin."""
        return sum(len(each.weights) for each in self.families[:family])


def workload_of(questions: Sequence[Question], shapes: Sequence[Shape], measure: Measure) -> Workload:
    """Questions that share a table put together, and the best measurements for them."""
    groups: dict[str, list[int]] = {}
    for number, shape in enumerate(shapes):
        groups.setdefault(_kin(shape) if _is_marginal(shape) else f"alone {number}", []).append(number)
    families: list[Family | RangeFamily] = []
    for places in groups.values():
        family = _family(places, questions, shapes, measure) if len(places) > 1 else None
        if family is not None:
            families.append(family)
    joined = {place for family in families for place in family.wanted}
    families += range_families([number for number in range(len(shapes)) if number not in joined], shapes, measure)
    joined = {place for family in families for place in family.wanted}
    alone = tuple(number for number in range(len(shapes)) if number not in joined)
    whole = Fraction(len(shapes))
    measured = [each for family in families for each in family.measured] + [questions[number] for number in alone]
    weights = [share * len(family.wanted) / whole for family in families for share in family.weights]
    return Workload(tuple(families), alone, tuple(measured), (*weights, *(1 / whole for _ in alone)))


def _wholes(
    family: Family, formulas: Sequence[Formula], raws: Mapping[str, Mapping[Marginal, Reading]]
) -> dict[str, dict[Marginal, tuple[Reading, float]]]:
    """The counts and sums that are whole numbers, rounded so that those of one table are sums of those of another; and how much
    further that moved a cell of each table than rounding it alone."""
    found: dict[str, dict[Marginal, tuple[Reading, float]]] = {}
    for formula in formulas:
        if not isinstance(formula, Linear) or formula.kind != "integer":
            continue
        exact = replace(formula, kind="real")
        tables, terms = {}, {}
        for kept in dict.fromkeys(family.wanted.values()):
            readings = {name: raws[name][kept] for name in formula.raws}
            tables[kept] = exact.series(readings).values
            terms[kept] = formula.terms(readings)
        found[formula.name] = {
            kept: (Reading(table, terms[kept]), _further(table, tables[kept]))
            for kept, table in rounded(family.sizes, tables).items()
        }
    return found


def _further(whole: npt.NDArray[Any], estimate: npt.NDArray[np.float64]) -> float:
    """How much more than half a unit rounding has moved a cell of the table, at most: in whole units."""
    moved = float(np.abs(whole.astype(np.float64) - estimate).max(initial=0.0))
    return float(max(0, math.ceil(moved - 0.5 - 1e-9)))


def _whole(name: str) -> str:
    return f"whole:{name}"


def _order(family: Family, shape: Shape, kept: Marginal) -> tuple[int, ...]:
    """The axes of a marginal as the question has them."""
    described = [str(family.axes[number].describe()) for number in kept]
    return tuple(described.index(str(axis.describe())) for axis in shape.grid.axes)


def _is_marginal(shape: Shape) -> bool:
    """Whether the raws of its groups add up to those of coarser groups, every row being in exactly one group."""
    return shape.grid.declared and cellwise(shape) and additive(shape) and all(axis.complete for axis in shape.grid.axes)


def _kin(shape: Shape) -> str:
    where = shape.question.where
    blocks = [(block.name, block.l1, block.l2_squared) for block in shape.blocks]
    formulas = [written(formula) for formula in shape.formulas]
    condition = None if where is None else where.describe()
    return repr((shape.population, shape.version, shape.fingerprint, condition, blocks, formulas))


def _family(places: Sequence[int], questions: Sequence[Question], shapes: Sequence[Shape], measure: Measure) -> Family | None:
    axes = {str(axis.describe()): axis for place in places for axis in shapes[place].grid.axes}
    names = list(axes)
    wanted = {place: tuple(sorted(names.index(str(axis.describe())) for axis in shapes[place].grid.axes)) for place in places}
    sizes = tuple(axis.size or 0 for axis in axes.values())
    finest = int(np.prod([float(size) for size in sizes]))
    if len(axes) > _MOST_AXES or finest > _MOST_CELLS or len(set(wanted.values())) < 2:
        return None
    shares = _shares(sizes, tuple(dict.fromkeys(wanted.values())), measure)
    return Family(wanted, tuple(axes.values()), questions[places[0]], shares)


def assembled_workload(workload: Workload, shapes: Sequence[Shape], plan: Plan, history: History, *, who: str) -> list[Release]:
    """The releases of questions that were measured together, in their order."""
    released: dict[int, Release] = {}
    for number, family in enumerate(workload.families):
        first = workload.place(number)
        parts = [[stored.parts[first + offset].readings for stored in history.stored] for offset in range(len(family.weights))]
        found = [together(part) for part in parts]
        for place, (formulas, readings) in family.answers(shapes, found).items():
            released[place] = released_from(shapes[place], formulas, readings, history, who=who, repeated=plan.repeated)
    start = len(plan.parts) - len(workload.alone)
    for offset, place in enumerate(workload.alone):
        released[place] = released_part(plan, start + offset, history, who=who)
    return [released[place] for place in range(len(shapes))]


def expected_workload(workload: Workload, shapes: Sequence[Shape], plan: Plan, *, shown: Sequence[Shape]) -> tuple[Together, ...]:
    """For each question of a family its words, as those of `shown`, and what its answer is made of, before anything is
    measured."""
    found: list[Together] = []
    for number, family in enumerate(workload.families):
        first = workload.place(number)
        readings = [
            {name: Reading(np.zeros(length), reading.terms) for name, reading in plan.parts[first + offset].blanks().items()}
            for offset, length in enumerate(family.lengths)
        ]
        for place, (formulas, known) in family.answers(shapes, readings).items():
            one = {name: Reading(reading.values[:1], reading.terms) for name, reading in known.items()}
            found.append(Together(words=family.words(shown[place]), shape=shapes[place], formulas=formulas, readings=one))
    return tuple(found)


@lru_cache(maxsize=256)
def _shares(sizes: tuple[int, ...], wanted: tuple[Marginal, ...], measure: Measure) -> dict[Marginal, Fraction]:
    """The best measurements, where every wanted table counts alike, however many cells it has."""
    return best_shares(sizes, wanted, measure, weights=alike(sizes, wanted))


_MOST_ROUNDED = 10_000_000
_MOST_REPAIRED = 20_000
_LARGEST = float(2**62)

Whole = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def rounded(sizes: Sequence[int], tables: Mapping[Marginal, Floats]) -> dict[Marginal, Whole]:
    """Whole numbers near the tables, whose sums agree exactly. The tables must agree up to rounding error (`consistent`).

    Rounding each table by itself is best where the sums still agree, and may break them. Then the finest table is rounded and
    the others are summed from it, in an order in which the errors do not pile up: with the cells in a row, each running total
    is rounded, and a cell is the difference of two. So a cell moves by less than 1, and every run of consecutive cells, however
    long, by at most 1: where each wanted table keeps the first few of the axes (ROLLUP), all its cells are such runs. Tables
    that cut across the order (CUBE) are then brought nearer by single steps up or down, each of which lowers the sum of squared
    errors over all wanted cells.

    It is post-processing, of estimates that are public already.

    Where no table keeps all axes, the finest is taken to be what the wanted ones say of it and no more.

    >>> tables = {(): np.array(2.7), (0,): np.array([0.9, 0.9, 0.9])}
    >>> {axes: table.tolist() for axes, table in rounded((3,), tables).items()}
    {(): 3, (0,): [1, 1, 1]}
    """
    check_marginals(sizes, tables.keys(), "tables")
    axes = union(tables)
    if cells(sizes, axes) > _MOST_ROUNDED:
        raise InvalidParameter(
            "The tables were not rounded",
            why=f"together they have {cells(sizes, axes):,} cells, and whole numbers that agree are found through all of them",
            instead="fewer keys in one question, or the estimates as they are",
        )
    nearest = {kept: _whole_numbers(np.rint(table)) for kept, table in tables.items()}
    if _agree(nearest):
        return nearest
    finest = spread_out(sizes, axes, effects_from(sizes, tables))
    order = sorted(range(len(axes)), key=lambda place: -sum(axes[place] in kept for kept in tables))
    chosen: Any = np.transpose(_in_a_row(np.transpose(finest, order)), np.argsort(order))
    if not _nested(tables) and chosen.size <= _MOST_REPAIRED:
        chosen = _repaired(chosen, axes, tables)
    return {kept: _summed(chosen, axes, kept) for kept in tables}


def _whole_numbers(table: Floats) -> Whole:
    if np.abs(table).sum() < _LARGEST:
        return np.asarray(table).astype(np.int64)
    return np.array([int(value) for value in np.asarray(table).reshape(-1)], dtype=object).reshape(np.shape(table))


def _agree(tables: Mapping[Marginal, Whole]) -> bool:
    """Whether each two tables have the same sums over the axes that they share."""
    names = list(tables)
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            shared = tuple(sorted(set(one) & set(other)))
            if not np.array_equal(_summed(tables[one], one, shared), _summed(tables[other], other, shared)):
                return False
    return True


def _in_a_row(table: Floats) -> Whole:
    """Differences of rounded running totals; whole parts are set aside, so that large numbers keep their last digits."""
    base = np.floor(table)
    running = np.rint(np.cumsum((table - base).reshape(-1)))
    steps = np.diff(running, prepend=0.0).astype(np.int64).reshape(table.shape)
    if np.abs(base).sum() < _LARGEST:
        return np.asarray(base.astype(np.int64) + steps)
    large = np.array([int(value) for value in base.reshape(-1)], dtype=object).reshape(table.shape)
    return np.asarray(large + steps)


def _nested(tables: Collection[Marginal]) -> bool:
    ordered = sorted(tables, key=len)
    return all(set(one) <= set(other) for one, other in pairwise(ordered))


def _repaired(chosen: Whole, axes: Marginal, tables: Mapping[Marginal, Floats]) -> Whole:
    """Step by step the cell whose change by 1 lowers Σ (error)² the most, as long as one does.

    A step up in a cell adds 2·error + 1 for each wanted cell that it is part of, so the gain of every cell is one number, and a
    step changes it where cells share a wanted cell.
    """
    chosen = chosen.copy()
    slope, shapes = np.zeros(chosen.shape), []
    for kept, table in tables.items():
        error = _summed(chosen, axes, kept).astype(np.float64) - table
        slope += np.asarray(error).reshape([size if axis in kept else 1 for axis, size in zip(axes, chosen.shape, strict=True)])
        shapes.append([axis in kept for axis in axes])
    for _ in range(4 * chosen.size):
        high, low = int(np.argmax(slope)), int(np.argmin(slope))
        step, place = (-1, high) if slope.flat[high] >= -slope.flat[low] else (1, low)
        if 2 * abs(float(slope.flat[place])) <= len(shapes) * (1 + 1e-9):
            break
        cell = np.unravel_index(place, chosen.shape)
        chosen[cell] += step
        for kept_axes in shapes:
            slope[tuple(where if kept else slice(None) for where, kept in zip(cell, kept_axes, strict=True))] += step
    return chosen


def _summed(table: Whole, axes: Marginal, kept: Marginal) -> Any:
    return np.asarray(table.sum(axis=tuple(place for place, axis in enumerate(axes) if axis not in kept)))
