"""Counts over ranges of one ordered column, measured together: which questions of a workload they are, and how they are read.

`COUNT(*)` under conditions that agree but for those on one column, which leave a contiguous run of its codes each, are sums of
one vector: the counts of the column's values (rows without a value are one more, after the last). What is noised is not that
vector but the sums of it that the matrix mechanism finds best for these ranges (`ranges.py`), all in one raw; least squares puts
the ranges together from it. So nested ranges agree with each other, but for the rounding of each to a whole number.

Guarantee: that of a block (`blocks.py`). Neighbours: one unit's rows added or removed; it has at most m rows. Every row is in one
cell of the vector x, or in none, so x moves by a difference d with ‖d‖₁ ≤ m, a sum of at most m unit steps. The raw is A·x for
the integer matrix A of the strategy: exact integers. A unit step moves it by a column of A, of L1 norm at most l1(A) and L2 norm
at most l2(A); by the triangle inequality ‖A·d‖₁ ≤ m·l1(A) and ‖A·d‖₂² ≤ m²·l2²(A). That is what one noise for all entries is
scaled to (Li, Miklau, Hay, McGregor & Rastogi 2015); the ranges are post-processing. Which strategy it is follows from the
conditions and the declared domain alone.

The strategy is a part of the digest: readings of different strategies are never mixed. It is found by a search in floating point,
so the same workload on a machine that rounds otherwise may be bought again.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.session.planning.blocks import Block, Raw
from cloister.session.planning.grid import Axis, Grid
from cloister.session.planning.shape import Shape, digested
from cloister.session.questions.narrowing import conjuncts
from cloister.session.questions.question import Count
from cloister.session.questions.spend import Measure
from cloister.session.releases.formulas import Formula, Reading
from cloister.session.releases.uncertainty import Term, Terms
from cloister.session.workloads.marginal_terms import Copies, gathered
from cloister.session.workloads.ranges import RangePlan, fits, range_plan
from cloister.tables import And, Domain, Expression
from cloister.tables.engines.noised import RangeSums
from cloister.tables.expression import wording
from cloister.tables.expression.evaluate import allowed_codes

Range: TypeAlias = tuple[int, int]
Kin: TypeAlias = tuple[str, str, tuple[str, ...]]

_ORDERED = ("integer", "real", "date")
_MOST_CODES = 100_000
_LEAST_RANGES = 3
_LEAST_GAIN = 1.2
_SAME = 1e-9  # weights that differ by less than this part of the largest count as equal


@dataclass(frozen=True, kw_only=True)
class Sums(Raw):
    """The strategy's answers to the exact counts of the column's values: A·x, where every other raw is a number a group."""

    plan: RangePlan

    @cached_property
    def map(self) -> RangeSums:
        """The strategy on the counts of the atoms."""
        return RangeSums("rows", self.plan.atoms, self.plan.strategy)


@dataclass(frozen=True, kw_only=True)
class Strategic(Block):
    """A block of `Sums`. Its norms are those of the strategy, whose numbers may be large; beside other blocks it counts as what
    its ranges come to: the norm of a single number of the ranges' mean variance."""

    spread: float
    """The mean, over the ranges, of the sum of squared weights of the noises in one."""

    @property
    def split_l1(self) -> int:
        """The L1 norm as it counts when a spend is split."""
        return max(1, round(self.l1 * math.sqrt(self.spread)))

    @property
    def split_l2_squared(self) -> int:
        """The squared L2 norm as it counts when a spend is split."""
        return max(1, round(self.l2_squared * self.spread))


@dataclass(frozen=True)
class RangeFamily:
    """Questions that are ranges of one column: by their places among all questions, with the row of the plan that each is.

    >>> from cloister.session.examples import small_door
    >>> from cloister.session import Question
    >>> from cloister.tables import Column, Compare, Literal
    >>> under = [Compare("<", Column("age"), Literal(age)) for age in (30, 40, 50)]
    >>> with small_door() as door:
    ...     plan = door.explain_workload([Question(table="people", where=each, statistics=(Count(),)) for each in under], "0.5")
    >>> [(words, margins["count"]) for words, margins in plan.wanted]
    [('age < 30', 6.0), ('age < 40', 8.0), ('age < 50', 10.0)]
    """

    wanted: Mapping[int, int]
    plan: RangePlan
    shape: Shape
    """What is measured: one block, whose raw is a vector of sums."""

    @property
    def measured(self) -> tuple[Shape, ...]:
        """What is measured."""
        return (self.shape,)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """The part of the family's spend that each measurement takes: there is one."""
        return (Fraction(1),)

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each measurement finds."""
        return (self.plan.strategy.rows,)

    def words(self, shape: Shape) -> str:
        """What tells one of the questions from the others."""
        return "all rows" if shape.question.where is None else wording.in_words(shape.question.where)

    def answers(
        self, shapes: Sequence[Shape], found: Sequence[Mapping[str, Reading]]
    ) -> dict[int, tuple[tuple[Formula, ...], dict[str, Reading]]]:
        """For each wanted question its formulas and the reading of its rows: W A⁺ · answers, with W A⁺ for the weights of the
        noises. Whole numbers are rounded each by itself."""
        [reading] = found[0].values()
        answers = reading.values.astype(np.float64)
        values = self.plan.coefficients @ answers
        [rows] = {raw.name for place in self.wanted for block in shapes[place].blocks for raw in block.raws}
        return {
            place: (shapes[place].formulas, {rows: Reading(values[row : row + 1], self._terms(row, reading.terms))})
            for place, row in self.wanted.items()
        }

    def _terms(self, row: int, terms: Terms) -> Terms:
        copies = [
            Copies(Term(weight * term.weight, term.noise), number) for weight, number in self._weights[row] for term in terms
        ]
        return gathered(copies)

    @cached_property
    def _weights(self) -> tuple[tuple[tuple[float, int], ...], ...]:
        """The sizes of the weights in each range, and how often each occurs: noises are symmetric."""
        found = []
        for row in np.abs(self.plan.coefficients):
            steps, numbers = np.unique(np.rint(row / (row.max() * _SAME)), return_counts=True)
            sizes = (steps * row.max() * _SAME).tolist()
            found.append(tuple((size, number) for size, number in zip(sizes, numbers.tolist(), strict=True) if size > 0))
        return tuple(found)


def range_families(places: Sequence[int], shapes: Sequence[Shape], measure: Measure) -> list[RangeFamily]:
    """Those of the questions that are better measured together as ranges, the largest families first."""
    groups = _groups([place for place in places if _counts_rows(shapes[place])], shapes)
    families: list[RangeFamily] = []
    taken: set[int] = set()
    for (_, column, _), ranges in sorted(groups.items(), key=lambda each: -len(each[1])):
        mine = {place: span for place, span in ranges.items() if place not in taken}
        family = _family(column, mine, shapes, measure)
        if family is not None:
            families.append(family)
            taken |= set(mine)
    return families


def _counts_rows(shape: Shape) -> bool:
    return not shape.grid.axes and [raw.name for block in shape.blocks for raw in block.raws] == ["rows"]


def _groups(places: Sequence[int], shapes: Sequence[Shape]) -> dict[Kin, dict[int, Range]]:
    """Questions about the same rows but for one column, with the range of that column that each asks for."""
    groups: dict[Kin, dict[int, Range]] = {}
    for place in places:
        shape = shapes[place]
        parts = tuple(conjuncts(shape.question.where))
        for column in sorted({name for part in parts for name in part.columns() if part.columns() == {name}}):
            domain = shape.declaration.columns.get(column)
            if domain is not None and domain.kind in _ORDERED and domain.size is not None and domain.size <= _MOST_CODES:
                span = _range_of(column, domain, tuple(part for part in parts if part.columns() == {column}))
                if span is not None:
                    rest = [part for part in parts if part.columns() != {column}]
                    groups.setdefault((_kin(shape), column, _described(rest)), {})[place] = span
    for place in places:  # those that ask for all values of the column, and for the rows without one
        shape = shapes[place]
        whole = (_kin(shape), _described(tuple(conjuncts(shape.question.where))))
        for (kin, column, others), ranges in groups.items():
            if (kin, others) == whole:
                ranges[place] = (0, _cells(shape, column))
    return groups


def _cells(shape: Shape, column: str) -> int:
    """The values of the column, and one place more for the rows without one."""
    return (shape.declaration.columns[column].size or 0) + 1


def _kin(shape: Shape) -> str:
    return repr((shape.population, shape.version, shape.fingerprint, shape.blocks[0].l1, shape.blocks[0].l2_squared))


def _described(parts: Sequence[Expression]) -> tuple[str, ...]:
    return tuple(sorted({str(part.describe()) for part in parts}))


@lru_cache(maxsize=8192)
def _range_of(column: str, domain: Domain, conditions: tuple[Expression, ...]) -> Range | None:
    """The places of the values that the conditions let through, NULL after the last; None where they are not one run."""
    through = allowed_codes(column, domain, conditions)
    inside = np.flatnonzero([] if through is None else through)
    if not len(inside) or inside[-1] - inside[0] + 1 != len(inside):
        return None
    return int(inside[0]), int(inside[-1]) + 1


def _family(column: str, ranges: Mapping[int, Range], shapes: Sequence[Shape], measure: Measure) -> RangeFamily | None:
    """The family, where it is worth it. The order of the questions is put aside, so that it does not change what is measured."""
    if len(ranges) < _LEAST_RANGES or not fits(list(ranges.values())):
        return None
    places = sorted(ranges, key=lambda place: (ranges[place], place))
    shape = shapes[places[0]]
    plan = _planned(_cells(shape, column), tuple(ranges[place] for place in places), measure != "zcdp")
    if plan.gain <= _LEAST_GAIN:
        return None
    return RangeFamily({place: row for row, place in enumerate(places)}, plan, _shape(column, plan, shape))


@lru_cache(maxsize=64)
def _planned(size: int, ranges: tuple[Range, ...], pure: bool) -> RangePlan:
    return range_plan(size, ranges, pure=pure)


def _shape(column: str, plan: RangePlan, shape: Shape) -> Shape:
    """What is measured: the counts of the column's values under the conditions that all questions share, as the strategy sums
    them."""
    rest = sorted(
        (part for part in conjuncts(shape.question.where) if part.columns() != {column}), key=lambda part: str(part.describe())
    )
    where = None if not rest else rest[0] if len(rest) == 1 else And(*rest)
    domain = shape.declaration.columns[column]
    axis = Axis(key=column, domain=domain, first=domain.low_code, whole=_cells(shape, column))
    question = replace(shape.question, by=(column,), where=where, statistics=(Count(name="rows of each range"),), hidden=())
    block = strategic_block(column, plan, shape.blocks[0])
    return digested(replace(shape, question=question, grid=Grid((axis,)), blocks=(block,), formulas=()))


def strategic_block(column: str, plan: RangePlan, rows: Block) -> Block:
    """The block of a plan's strategy, from the block that counts rows: both of its norms are multiplied (see the top).

    >>> from cloister.session.planning.blocks import rows_block
    >>> plan = range_plan(74, [(0, 10), (10, 20), (10, 74)], pure=True)
    >>> block = strategic_block("age", plan, rows_block(3))
    >>> plan.strategy.l1, block.l1, block.l2_squared
    (1, 3, 9)
    >>> block.raws[0].exact({"rows": np.ones(74, dtype=np.int64)}).tolist()
    [10, 10, 54]
    """
    name = f"{plan.strategy.rows:,} sums over {len(plan.atoms):,} ranges of {column} ({_fingerprint(plan)})"
    return Strategic(
        name=name,
        raws=(Sums(name=name, parts=(("rows", 1),), plan=plan, middle=Fraction(0)),),
        aggregates=rows.aggregates,
        l1=rows.l1 * plan.strategy.l1,
        l2_squared=rows.l2_squared * plan.strategy.l2_squared,
        spread=float((plan.coefficients**2).sum(axis=1).mean()),
    )


def _fingerprint(plan: RangePlan) -> str:
    """A digest of the atoms and of the strategy's matrix, by what it makes of numbers that tell its columns apart."""
    probe: npt.NDArray[np.object_] = np.empty(len(plan.atoms), dtype=object)
    probe[:] = [int.from_bytes(hashlib.sha256(str(atom).encode()).digest()) for atom in range(len(plan.atoms))]
    answers = [int(answer) for answer in np.asarray(plan.strategy.apply(probe)).reshape(-1)]
    return hashlib.sha256(repr((plan.atoms, answers)).encode()).hexdigest()[:16]
