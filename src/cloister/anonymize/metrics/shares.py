"""Metrics that ask how much of its column each published cell covers: loss, certainty penalty, precision.

On a lattice each is a sum over columns of what a level costs, plus what the suppressed rows add to it. The first part is known
from the levels alone, before a row is counted, and never falls from one level to the next: it is the floor that searches rest
on.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.metrics.base import Counted, Floats, LatticeMetric, Metric, dot, leaves_of
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded, RecodedColumn


class ShareMetric(Metric):
    """A metric made of one number for each column: the mean over rows of what a cell covers; suppressed cells cover all, 1."""

    monotone: ClassVar[bool] = True

    @abstractmethod
    def covered(self, problem: Problem, name: str, column: RecodedColumn) -> Floats:
        """What each label covers."""

    def term(self, mean: Floats, weight: float) -> Floats:
        """What a column's mean adds to a sum over columns: a summand of the mean."""
        return np.asarray(weight * mean)

    def whole(self, total: Floats, weights: float) -> Floats:
        """One number from that sum, and the sum of the weights; it grows with every mean. The mean of them."""
        return np.asarray(total / weights)

    def at_level(self, problem: Problem, name: str, level: int) -> float | None:
        """What every label of a level covers, where that depends on nothing but the level."""
        return None

    def by_column(self, problem: Problem, recoded: Recoded) -> dict[str, float]:
        """The mean of each column."""
        weights = recoded.weights
        if not len(recoded.suppressed) or (weights is not None and not weights.sum()):
            return dict.fromkeys(recoded.columns, 0.0)
        found = {}
        for name, column in recoded.columns.items():
            alike = None if recoded.levels is None else self.at_level(problem, name, recoded.levels[name])
            covers = self.covered(problem, name, column) if alike is None else np.full(len(column.labels), alike)
            found[name] = float(np.average(np.where(recoded.suppressed, 1.0, covers[column.codes]), weights=weights))
        return found

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """The columns' means as one number."""
        means = self.by_column(problem, recoded)
        total = sum(self.term(np.array(means[name]), problem.weight(name)) for name in problem.quasi)
        return float(self.whole(np.asarray(total), sum(problem.weight(name) for name in problem.quasi)))

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """From what each label of each level covers."""
        return _Shares(self, problem)


class _Shares(LatticeMetric):
    by_levels: ClassVar[bool] = True

    def __init__(self, metric: ShareMetric, problem: Problem) -> None:
        self._metric = metric
        self._weights = [problem.weight(name) for name in problem.quasi]
        self._rows = max(problem.table.total, 1)
        self._covered: list[list[Floats]] = []
        self._terms: list[Floats] = []
        self._totals: list[list[float]] = []
        for name in problem.quasi:
            column, ladder = problem.table.columns[name], problem.ladders[name]
            # what a label covers does not depend on rows: each value once will do
            values = replace(column, codes=np.arange(len(column), dtype=np.int32), tally=column.counts)
            covers, means = [], []
            for level in range(ladder.height):
                alike = metric.at_level(problem, name, level)
                recoded = RecodedColumn.at(values, ladder, level)
                covered = metric.covered(problem, name, recoded) if alike is None else np.full(len(recoded.labels), alike)
                covers.append(covered)
                means.append(dot(covered[ladder.codes[level]], column.counts))
            self._covered.append(covers)
            # labels of a hierarchy may cover less than what they hold (a value that a file forgot): the floor must not fall
            self._totals.append(means)
            least = np.minimum.accumulate(np.array(means)[::-1])[::-1] / self._rows
            self._terms.append(metric.term(least, problem.weight(name)))

    def floors(self, axes: Sequence[npt.NDArray[np.intp]]) -> Floats:
        """With nothing suppressed: a suppressed cell covers no less than a published one."""
        total: Floats = np.array(0.0)
        for term, axis in zip(self._terms, axes, strict=True):
            total = total + term[axis]
        return self._metric.whole(total, sum(self._weights))

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """Levels, and what the suppressed rows add to them."""
        gone = np.flatnonzero(~kept)
        sizes = node.sizes[gone]
        means = 0.0
        for place, level in enumerate(node.levels):
            total = self._totals[place][level]
            if len(gone):
                total += dot(sizes, 1.0 - self._covered[place][level][node.codes(place, gone)])
            means += float(self._metric.term(np.array(total / self._rows), self._weights[place]))
        return float(self._metric.whole(np.array(means), sum(self._weights)))


@dataclass(frozen=True)
class Loss(ShareMetric):
    """How much of its hierarchy each cell covers (Iyengar 2002): 0 for the table as it was, 1 for nothing left.

    The columns' numbers become one by a geometric mean, as in ARX: (Π (1 + v))^(1/m) − 1. Weights are the exponents.

    >>> Loss().name, Loss.monotone
    ('loss', True)
    """

    name: ClassVar[str] = "loss"
    words: ClassVar[str] = "how much of its column each cell covers: 0 nothing lost, 1 nothing left"

    def covered(self, problem: Problem, name: str, column: RecodedColumn) -> Floats:
        """The share of the hierarchy's leaves, so that one leaf counts 0 and all count 1."""
        least = 1.0 / leaves_of(problem, name)
        return np.clip((column.shares - least) / (1.0 - least), 0.0, 1.0) if least < 1.0 else np.zeros(len(column.shares))

    def term(self, mean: Floats, weight: float) -> Floats:
        """An exponent of the geometric mean."""
        return np.asarray(weight * np.log1p(mean))

    def whole(self, total: Floats, weights: float) -> Floats:
        """The geometric mean."""
        return np.asarray(np.expm1(total / weights))


@dataclass(frozen=True)
class CertaintyPenalty(ShareMetric):
    """The normalised certainty penalty (Xu et al. 2006): the width of each published interval over the range of its column, or
    the share of the leaves under a category, as a weighted mean over all cells. 0: every cell is exact; 1: all are suppressed.

    >>> CertaintyPenalty().name
    'certainty penalty'
    """

    name: ClassVar[str] = "certainty penalty"
    words: ClassVar[str] = "how wide each cell is, over the range of its column"
    ranged: ClassVar[bool] = True

    def covered(self, problem: Problem, name: str, column: RecodedColumn) -> Floats:
        """Widths."""
        return np.clip(column.widths, 0.0, 1.0)


@dataclass(frozen=True)
class Precision(ShareMetric):
    """How high each cell stands in its hierarchy, as a share of the height (Sweeney 2002, where precision is 1 minus this).

    A cell of a local recoding stands on the lowest level that says as little as it does.

    >>> Precision().name
    'precision'
    """

    name: ClassVar[str] = "precision"
    words: ClassVar[str] = "how high each cell stands in its hierarchy: 0 as it was, 1 at the top"

    def at_level(self, problem: Problem, name: str, level: int) -> float:
        """The level over the highest."""
        return level / max(problem.ladders[name].height - 1, 1)

    def covered(self, problem: Problem, name: str, column: RecodedColumn) -> Floats:
        """The level over the highest, of the level that fits."""
        ladder = problem.ladders.get(name)
        if ladder is None or ladder.height == 1:
            return np.where(column.shares * leaves_of(problem, name) <= 1.0 + 1e-9, 0.0, column.shares)
        levels = np.full((ladder.height, len(column.shares)), np.inf)
        original = problem.table.columns[name].codes
        for level in range(ladder.height):
            np.minimum.at(levels[level], column.codes, ladder.shares(level)[ladder.codes[level]][original])
        enough = levels >= column.shares - 1e-9
        enough[-1] = True
        return np.asarray(enough.argmax(axis=0) / (ladder.height - 1), dtype=np.float64)
