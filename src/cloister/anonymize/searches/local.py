"""Local recoding: from one level for a whole column to the lowest labels that each class can bear.

The search starts from the best full-domain recoding. Rows that it suppressed are recoded among themselves, again and again, as
long as some of them can be kept (ARX calls that local transformation). Then each class is cut along the hierarchies, as Mondrian
would cut it, and says the smallest label that all its rows have in common.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches.axes import axes_of
from cloister.anonymize.searches.mondrian import distinct_rows
from cloister.anonymize.searches.partition import Cutter
from cloister.anonymize.searches.parts import Part, places_of
from cloister.anonymize.searches.regions import regions
from cloister.anonymize.sorting import order_of
from cloister.errors import InvalidParameter

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class LocalRecoding(Search):
    """Start from a recoding of whole columns, and refine it class by class.

    Never worse than its start, by construction: a cut only lowers labels and parts classes, a row that was suppressed can only be
    kept, and where the metric still prefers the start (one that counts how often a label occurs may), the start is the result.
    All labels come from the hierarchies, but not all of a column from one level.

    Parameters
    ----------
    start
        The search of whole columns: "optimal", "greedy" or "topdown", or one with settings.
    relaxed
        Where some children of a label are too small to stand alone, the others may: what is left keeps the label.
    rounds
        How often suppressed rows are tried again.

    Examples
    --------
    >>> from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
    >>> ages = {"age": [21, 22, 23, 24, 31, 38, 45, 59]}
    >>> arguments = {"quasi": ["age"], "models": [KAnonymity(2)], "suppression": 0}
    >>> levels = {"age": Hierarchy.intervals(2, 10, 40)}
    >>> sorted(Anonymizer(**arguments, hierarchies=levels).fit_transform(ages)["age"])
    ['0–39', '0–39', '0–39', '0–39', '0–39', '0–39', '40–79', '40–79']
    >>> sorted(Anonymizer(**arguments, hierarchies=levels, search="local").fit_transform(ages)["age"])
    ['20–29', '20–29', '22–23', '22–23', '30–39', '30–39', '40–79', '40–79']
    """

    start: str | Search = "optimal"
    relaxed: bool = True
    rounds: int = 20
    name: ClassVar[str] = "local"
    uses_hierarchies: ClassVar[bool] = True

    def find(self, problem: Problem) -> Recoded:
        """The refined recoding, or the start where that scores better."""
        from cloister.anonymize.searches.named import search_of

        search = search_of(self.start)
        start = search.find(problem)
        if start.levels is None:
            raise InvalidParameter(
                f"start={search.name!r} is invalid",
                why="it does not recode whole columns",
                instead='LocalRecoding(start="optimal")',
            )
        if problem.table.rows == 0:
            return start
        of_row, count = self._kept_after_all(problem, search, start)
        if count == 0:  # all rows are suppressed: there is nothing to refine
            return start
        recoded = self._refined(problem, of_row, count)
        better = problem.metric.score(problem, recoded) <= problem.metric.score(problem, start)
        return recoded if better and bool(problem.satisfied(recoded.classes).all()) else start

    def _kept_after_all(self, problem: Problem, search: Search, start: Recoded) -> tuple[Ints, int]:
        """The class of each row, −1 where it stays suppressed: suppressed rows are a table of their own."""
        of_row = start.classes.of_row.copy()
        count = start.classes.count
        for round_ in range(self.rounds):
            left = np.flatnonzero(of_row < 0)
            if not len(left) or problem.stop():
                break
            problem.progress("suppressed rows, once more", round_ / self.rounds)
            rest = _part_of(problem, left)
            try:
                classes = search.find(rest).classes
            except InvalidParameter:  # not even as one class
                break
            if classes.count == 0:
                break
            of_row[left] = np.where(classes.of_row >= 0, classes.of_row + count, -1)
            count += classes.count
        return of_row, count

    def _refined(self, problem: Problem, of_row: Ints, count: int) -> Recoded:
        table = problem.table
        axes = axes_of(table, problem.quasi, problem.ladders, numbers_along=True)
        distinct = distinct_rows(problem, apart=(of_row + 1, count + 1))
        rows = np.arange(table.rows) if distinct.rows is None else distinct.rows
        group = of_row[rows]
        order = order_of(group + 1, count + 1)
        order = order[np.searchsorted(group[order], 0) :]
        part = Part.of(
            order,
            places_of(axes, rows[order]),
            None if distinct.weights is None else distinct.weights[order],
            np.searchsorted(group[order], np.arange(count + 1)).astype(np.int64),
            axes,
        )
        weights = [problem.weight(name) for name in problem.quasi]
        cutter = Cutter(
            axes=axes,
            weights=weights,
            test=distinct.test if distinct.models else None,
            least=distinct.least,
            relaxed=self.relaxed,
        )
        cut = cutter.cut(part, len(rows), stop=problem.stop, progress=lambda done: problem.progress("refining classes", done))
        suppressed = of_row < 0
        numbers = cut.of_row if distinct.of_row is None else cut.of_row[distinct.of_row]
        return _published(problem, numbers, cut.count, suppressed)


def _part_of(problem: Problem, rows: npt.NDArray[np.intp]) -> Problem:
    """The problem of some of the rows, all of which may be suppressed; what an attacker knows of everybody stays the same."""
    table = problem.table.take(rows)
    columns = {
        name: replace(column, tally=problem.table.columns[name].counts) if name in problem.sensitive else column
        for name, column in table.columns.items()
    }
    research = None if problem.research is None else problem.research[rows]
    return replace(problem, table=replace(table, columns=columns), research=research, limit=table.total)


def _published(problem: Problem, of_row: npt.NDArray[np.integer], count: int, suppressed: Bools) -> Recoded:
    """Labels for the rows that are kept; those of the others are never shown."""
    kept = ~suppressed
    axes = axes_of(problem.table.take(kept), problem.quasi, problem.ladders, numbers_along=True)
    weights = None if problem.table.weights is None else problem.table.weights[kept]
    columns = regions(axes, of_row[kept], count, weights=weights)
    shown = Recoded(columns=columns, suppressed=np.zeros(np.count_nonzero(kept), dtype=bool)).among(kept, problem.table.weights)
    return replace(shown, sensitive=problem.sensitive_columns, research=problem.research)
