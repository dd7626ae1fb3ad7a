"""Mondrian: the table is cut in two, and each half again, as long as both sides meet the models.

Each class is cut near a median, along the quasi-identifier where that makes its rows cover least; where a side would not meet
the models, along the next. What is left are the classes: rectangles, small where there are many rows, large where there are few.

A cut that gains most now may leave a side that no model lets be cut again. So where there are models besides k, the table is cut
once more, each class along what it covers most of (the published way), and the classes that lose less are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches.axes import Axis, axes_of
from cloister.anonymize.searches.partition import Cutter
from cloister.anonymize.searches.parts import Cut, Part, places_of
from cloister.anonymize.searches.regions import check_aggregates, regions
from cloister.errors import InvalidParameter

Ints = npt.NDArray[np.int64]

_SAMPLE = 1 << 16
_REPEATED = 0.5
"""Where a row has fewer rows like it than this, on average, each is cut on its own."""


@dataclass(frozen=True, kw_only=True)
class Mondrian(Search):
    """Cut the table into classes, each as small as the models allow.

    Every model of the problem is part of the test that a cut has to pass, not only k. The result is a local recoding: the same
    age may be "20–35" in one row and "31–38" in another, so it loses much less than one level for a whole column; whoever works
    with the table has intervals that overlap in columns, though not in classes.

    Parameters
    ----------
    relaxed
        Strict (the default): classes do not overlap. Relaxed: rows that have the median itself are shared out between both
        sides, and along a hierarchy those children that are too small stay together under their parent's label; there are more
        cuts, and a row's class cannot be told from its values.
    categories
        "hierarchy": along their hierarchy where the problem has one, from a label to those below it; else, or with "order", like
        numbers, the most frequent first (the alphabet with more than 64), and a class is called by the set of what it has.
    aggregates
        What stands for a class, by column: "range" (left out), "set", "mean", "median" or "mode".

    References
    ----------
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan (2006). Mondrian multidimensional k-anonymity. ICDE.
    K. LeFevre, D. J. DeWitt, R. Ramakrishnan (2006). Workload-aware anonymization. KDD.

    >>> from cloister.anonymize.encoded import encode
    >>> from cloister.anonymize.frames import read_frame
    >>> from cloister.anonymize.metrics import metric_of
    >>> table = encode(read_frame({"age": [20, 21, 50, 52], "sex": ["F", "F", "M", "F"]}), ["age", "sex"])
    >>> problem = Problem(
    ...     table=table, quasi=("age", "sex"), ladders={}, models=(KAnonymity(2),), metric=metric_of("loss"), limit=0
    ... )
    >>> found = Mondrian().find(problem).columns
    >>> [found["age"].labels[code] for code in found["age"].codes], [found["sex"].labels[code] for code in found["sex"].codes]
    (['20–21', '20–21', '50–52', '50–52'], ['F', 'F', '*', '*'])
    """

    relaxed: bool = False
    categories: str = "hierarchy"
    aggregates: Mapping[str, str] = field(default_factory=dict)
    name: ClassVar[str] = "mondrian"
    uses_hierarchies: ClassVar[bool] = False
    """It needs none; those that the problem has are used."""

    def __post_init__(self) -> None:
        check_aggregates(self.aggregates)
        if self.categories not in ("hierarchy", "order"):
            raise InvalidParameter(
                f"categories={self.categories!r} is invalid",
                why="it is neither hierarchy nor order",
                instead='categories="hierarchy"',
            )

    def find(self, problem: Problem) -> Recoded:
        """The classes; where the problem says stop, those that have been reached by then."""
        axes = axes_of(problem.table, problem.quasi, problem.ladders if self.categories == "hierarchy" else {})
        cut, of_row = self._cut(problem, axes)
        return Recoded(
            columns=regions(axes, of_row, cut.count, aggregates=self.aggregates, weights=problem.table.weights, cut=cut),
            suppressed=np.zeros(problem.table.rows, dtype=bool),
            sensitive=problem.sensitive_columns,
            research=problem.research,
            weights=problem.table.weights,
        )

    def classes(self, problem: Problem, axes: list[Axis]) -> tuple[npt.NDArray[np.int32], int]:
        """The class of each row, and how many there are."""
        cut, of_row = self._cut(problem, axes)
        return of_row, cut.count

    def _cut(self, problem: Problem, axes: list[Axis]) -> tuple[Cut, npt.NDArray[np.int32]]:
        refuse_the_unsatisfiable(problem)
        if problem.table.rows == 0:
            return Cut.of([], 0, axes), np.zeros(0, dtype=np.int32)
        problem.progress("counting rows that are equal", 0.0)
        distinct = distinct_rows(problem, alone=self.relaxed)
        rows = problem.table.rows if distinct.rows is None else len(distinct.rows)
        ways = (False, True) if distinct.models else (False,)
        cuts = [self._cut_by(problem, axes, distinct, rows, way, len(ways)) for way in ways]
        cut = min(cuts, key=lambda each: _lost(each, axes, problem, distinct))
        return cut, cut.of_row if distinct.of_row is None else cut.of_row[distinct.of_row]

    def _cut_by(self, problem: Problem, axes: list[Axis], distinct: Distinct, rows: int, widest: bool, ways: int) -> Cut:
        cutter = Cutter(
            axes=axes,
            weights=[problem.weight(name) for name in problem.quasi],
            test=distinct.test if distinct.models else None,
            least=distinct.least,
            relaxed=self.relaxed,
            widest=widest,
        )
        whole = Part.of(
            np.arange(rows, dtype=np.int32),
            places_of(axes, distinct.rows),
            distinct.weights,
            np.array([0, rows], dtype=np.int64),
            axes,
        )
        return cutter.cut(
            whole, rows, stop=problem.stop, progress=lambda done: problem.progress("cutting", (done + widest) / ways)
        )


def _lost(cut: Cut, axes: list[Axis], problem: Problem, distinct: Distinct) -> float:
    """How much of the axes the rows of a table cover, each in its class."""
    sizes = np.bincount(cut.of_row, weights=distinct.weights, minlength=cut.count)
    wide = [
        problem.weight(name) * axis.widths(cut.low[:, number], cut.high[:, number])
        for number, (name, axis) in enumerate(zip(problem.quasi, axes, strict=True))
    ]
    return float(sizes @ np.sum(wide, axis=0))


def refuse_the_unsatisfiable(problem: Problem) -> None:
    """Where not even the whole table as one class meets a model, no classes of all its rows do."""
    table = problem.table
    if table.rows == 0:
        return
    whole = Classes.of(
        np.zeros(table.rows, dtype=np.int8),
        1,
        sensitive=problem.sensitive_columns,
        research=problem.research,
        weights=table.weights,
    )
    for model in problem.models:
        for column in model.columns_of(problem.sensitive):
            if not model.satisfied(whole, column).all():
                about = f" of {column!r}" if column else ""
                raise InvalidParameter(
                    f"{model.name}{about} is invalid",
                    why=f"not even the whole table as one class meets it: it has {model.attained(whole, column).reached}",
                    instead="a weaker model, or a table with more rows",
                )


@dataclass(eq=False, kw_only=True)
class Distinct:
    """Rows that differ, and the test of parts of them."""

    rows: npt.NDArray[np.integer] | None
    """One row of the table for each; None: every row of the table is one."""
    of_row: npt.NDArray[np.integer] | None
    """Which of them a row of the table is; None: each is itself."""
    weights: Ints | None
    least: int
    models: tuple[PrivacyModel, ...]
    sensitive: Mapping[str, EncodedColumn]
    research: npt.NDArray[np.bool_] | None

    def test(self, rows: npt.NDArray[np.int32], part: Ints, weighed: Ints) -> npt.NDArray[np.bool_]:
        """Which parts meet the models that are about more than size."""
        met = np.ones(len(weighed), dtype=bool)
        if not self.models:
            return met
        sensitive = {
            name: EncodedColumn(name=name, codes=column.codes[rows], values=column.values, kind=column.kind, tally=column.counts)
            for name, column in self.sensitive.items()
        }
        classes = Classes(
            of_row=part,
            sizes=weighed,
            sensitive=sensitive,
            research=None if self.research is None else self.research[rows],
            weights=None if self.weights is None else self.weights[rows],
        )
        for model in self.models:
            for column in model.columns_of(sensitive):
                met &= model.satisfied(classes, column)
        return met


def distinct_rows(problem: Problem, *, alone: bool = False, apart: tuple[Ints, int] | None = None) -> Distinct:
    """Rows that differ in what the models and cuts look at; with `alone` each row is kept for itself, in an order that does not
    depend on the order of the table. `apart` are numbers, and how many there are: rows that differ there differ."""
    table = problem.table
    least = max((model.k for model in problem.models if type(model) is KAnonymity), default=1)
    models = tuple(model for model in problem.models if type(model) is not KAnonymity)
    columns = [table.columns[name] for name in dict.fromkeys([*problem.quasi, *(problem.sensitive if models else ())])]
    codes: list[npt.NDArray[np.integer]] = [column.codes for column in columns]
    sizes = [len(column) for column in columns]
    if problem.research is not None and models:
        codes, sizes = [*codes, problem.research.astype(np.int8)], [*sizes, 2]
    if apart is not None:
        codes, sizes = [*codes, apart[0]], [*sizes, apart[1]]
    rows: npt.NDArray[np.integer] | None
    weights: Ints | None
    if not alone and _hardly_repeated(codes, sizes, table.weights):
        rows, of_row, weights = None, None, table.weights
    elif alone:
        rows = np.lexsort(codes[::-1])
        of_row = np.empty(table.rows, dtype=np.int32)
        of_row[rows] = np.arange(table.rows, dtype=np.int32)
        weights = None if table.weights is None else table.weights[rows]
    else:
        numbers, count = alike(codes, sizes)
        of_row = numbers.astype(np.int32)
        rows = np.empty(count, dtype=np.int32)
        rows[of_row[::-1]] = np.arange(table.rows - 1, -1, -1, dtype=np.int32)
        if count == table.rows and table.weights is None:
            weights = None
        else:
            counted = np.bincount(of_row, weights=table.weights, minlength=count)
            weights = counted.astype(np.int64)
    some: npt.NDArray[np.integer] | slice = slice(None) if rows is None else rows
    sensitive = problem.sensitive_columns if models else {}
    return Distinct(
        rows=rows,
        of_row=of_row,
        weights=weights,
        least=least,
        models=models,
        sensitive={
            name: EncodedColumn(name=name, codes=column.codes[some], values=column.values, kind=column.kind, tally=column.counts)
            for name, column in sensitive.items()
        },
        research=problem.research[some] if problem.research is not None and models else None,
    )


def _hardly_repeated(codes: list[npt.NDArray[np.integer]], sizes: list[int], weights: Ints | None) -> bool:
    """Whether so few rows are equal that finding them would cost more than it saves. It guesses from rows here and there: which
    way it goes says how long a search takes, never what it finds."""
    rows = len(codes[0])
    if rows <= _SAMPLE:
        return False
    step = rows // _SAMPLE
    numbers, count = alike([each[::step] for each in codes], sizes)
    often = np.bincount(numbers, minlength=count)
    pairs = float((often * (often - 1)).sum()) / (len(numbers) * (len(numbers) - 1))
    return pairs * rows < _REPEATED
