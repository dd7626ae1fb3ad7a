"""Top-down specialisation: labels are split one after the other, each into what stands under it, as long as the models allow.

Unlike the lattice, labels of one column may stand on different levels: "manual work" can be split into its trades while "office
work" stays. Every row with the same value has the same label, so a published column reads as one list of labels without
overlaps.
"""

import heapq
import time
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import EncodedColumn, tally_of
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Proof, Recoded, RecodedColumn
from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.greedy import descend
from cloister.anonymize.searches.judging import Judge
from cloister.anonymize.searches.unmet import unmet

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Split:
    """A label of a column that may be split: the values under it, and what they would be called."""

    column: int
    level: int
    """The level of the new labels."""
    values: Ints
    gain: float


@dataclass(frozen=True, kw_only=True)
class TopDown(Search):
    """Top-down specialisation (Fung, Wang and Yu 2005), with suppression, every model, and any metric.

    It starts with each column on its highest level, and again from a node of the lattice that a greedy search finds. The next
    split is the one that gains most for each row that it costs: what is gained is how much less of their column the cells cover
    (`target`: how much the split says about that column, in bits), and what is lost are the rows that would be suppressed. A
    split that asks for more suppressed rows than are left is not tried again. The steps end where no split is allowed; of all
    steps the one that scores best is returned, so with a target the last one.

    The result is good, not proved; each value keeps one label, on whatever level that is.

    >>> TopDown(target="income").name
    'topdown'
    """

    name: ClassVar[str] = "topdown"
    target: str | None = None

    def find(self, problem: Problem) -> Recoded:
        """Split until nothing more may be split."""
        top = tuple(problem.ladders[name].height - 1 for name in problem.quasi)
        begun = time.monotonic()
        best, score = _Specialising(problem, top, self.target, begun).run()
        if self.target is None and problem.metric.monotone:
            for levels in descend(Judge(problem), None if problem.seconds is None else begun + problem.seconds):
                other, least = _Specialising(problem, levels, None, begun).run()
                if least < score:
                    best, score = other, least
        return best


class _Specialising:
    def __init__(self, problem: Problem, start: Levels, target: str | None, begun: float) -> None:
        self.problem, self.start = problem, start
        self.target = None if target is None else problem.table.columns[target]
        self.ladders = [problem.ladders[name] for name in problem.quasi]
        self.columns = [problem.table.columns[name] for name in problem.quasi]
        self.levels = [np.full(len(column), level) for column, level in zip(self.columns, start, strict=True)]
        self.rows = problem.table.rows
        self.weights = problem.table.weights
        self.until = None if problem.seconds is None else begun + problem.seconds

    def run(self) -> tuple[Recoded, float]:
        """All steps; the best recoding that was met, and its score."""
        problem = self.problem
        groups, classes = self._groups()
        kept = self._kept(groups, classes)
        if self._lost(kept) > problem.limit:
            raise unmet(problem)
        best = self._recoded(kept)
        score, steps, number = problem.metric.score(problem, best), 0, count()
        # what a split costs only grows, so what it promised when it was last tried is the most that it can hold
        queue = [(-split.gain, next(number), split) for column in range(len(self.columns)) for split in self._splits(column)]
        heapq.heapify(queue)
        while queue and not self._ended():
            _, _, split = heapq.heappop(queue)
            tried, tried_classes = self._tried(groups, classes, split)
            tried_kept = self._kept(tried, tried_classes)
            lost = self._lost(tried_kept)
            if lost > problem.limit:
                continue
            worth = split.gain / (max(lost - self._lost(kept), 0) + 1)
            if queue and -queue[0][0] > worth:
                heapq.heappush(queue, (-worth, next(number), split))
                continue
            groups, classes, kept = tried, tried_classes, tried_kept
            self.levels[split.column][split.values] = split.level
            for new in self._splits(split.column, split.values):
                heapq.heappush(queue, (-new.gain, next(number), new))
            steps += 1
            problem.progress("splitting labels", steps / (steps + len(queue)))
            here = self._recoded(kept)
            now = problem.metric.score(problem, here)
            if now <= score or self.target is not None:
                best, score = here, now
        problem.progress("splitting labels", 1.0)
        what = f"{steps} labels were split, each time the one that gained most for each row that it cost"
        return replace(best, proof=Proof(optimal=False, what=what)), score

    def _ended(self) -> bool:
        return self.problem.stop() or (self.until is not None and time.monotonic() > self.until)

    def _groups(self) -> tuple[Ints, int]:
        if not self.rows:
            return np.zeros(0, dtype=np.int64), 0
        codes, sizes = [], []
        for column, ladder, start in zip(self.columns, self.ladders, self.start, strict=True):
            codes.append(ladder.codes[start][column.codes])
            sizes.append(len(ladder.labels[start]))
        return alike(codes, sizes)

    def _tried(self, groups: Ints, count: int, split: _Split) -> tuple[Ints, int]:
        ladder, column = self.ladders[split.column], self.columns[split.column]
        part = np.zeros(len(column), dtype=np.int64)
        labels, numbers = np.unique(ladder.codes[split.level][split.values], return_inverse=True)
        part[split.values] = numbers + 1
        return alike([groups, part[column.codes]], [count, len(labels) + 1])

    def _kept(self, groups: Ints, count: int) -> npt.NDArray[np.bool_]:
        """Which rows are in classes that meet the models."""
        problem = self.problem
        classes = Classes.of(groups, count, sensitive=problem.sensitive_columns, research=problem.research, weights=self.weights)
        return problem.satisfied(classes)[classes.of_row] if classes.count else np.zeros(0, dtype=bool)

    def _lost(self, kept: npt.NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(~kept) if self.weights is None else self.weights[~kept].sum())

    def _splits(self, column: int, values: Ints | None = None) -> list[_Split]:
        """For each label that these values have now: its split into the labels of the next level that has more than one."""
        ladder = self.ladders[column]
        mine = np.arange(len(self.columns[column])) if values is None else values
        if not len(mine):
            return []
        found = []
        level = int(self.levels[column][mine[0]])
        now = ladder.codes[level][mine]
        for label in np.unique(now):
            under = mine[now == label]
            lower = level - 1
            while lower >= 0 and len(np.unique(ladder.codes[lower][under])) < 2:
                lower -= 1
            # as low as the values under it have one label: that says more, and makes no class smaller
            self.levels[column][under] = lower + 1
            if lower >= 0:
                gain = self._gain(column, under, lower + 1, lower)
                found.append(_Split(column=column, level=lower, values=under, gain=gain))
        return found

    def _gain(self, column: int, under: Ints, level: int, lower: int) -> float:
        ladder, encoded = self.ladders[column], self.columns[column]
        weight = self.problem.weight(self.problem.quasi[column])
        if self.target is None:
            less = ladder.shares(level)[ladder.codes[level][under]] - ladder.shares(lower)[ladder.codes[lower][under]]
            return weight * float(less @ encoded.counts[under])
        there = np.isin(encoded.codes, under)
        weights = None if self.weights is None else self.weights[there]
        target = self.target.codes[there]
        parts = ladder.codes[lower][encoded.codes[there]].astype(np.int64)
        whole = _bits(tally_of(target, len(self.target), weights)[None, :])
        table = tally_of(parts * len(self.target) + target, len(ladder.labels[lower]) * len(self.target), weights)
        return weight * (whole - _bits(table.reshape(-1, len(self.target))))

    def _recoded(self, kept: npt.NDArray[np.bool_]) -> Recoded:
        problem = self.problem
        columns = {
            name: _cut(column, ladder, levels)
            for name, column, ladder, levels in zip(problem.quasi, self.columns, self.ladders, self.levels, strict=True)
        }
        used = [np.unique(levels) for levels in self.levels]
        whole = all(len(each) <= 1 for each in used)
        return Recoded(
            columns=columns,
            suppressed=~kept,
            sensitive=problem.sensitive_columns,
            levels={name: int(each.sum()) for name, each in zip(problem.quasi, used, strict=True)} if whole else None,
            research=problem.research,
            weights=self.weights,
        )


def _cut(column: EncodedColumn, ladder: Ladder, levels: npt.NDArray[np.intp]) -> RecodedColumn:
    """A column whose values stand on levels of their own. Labels of one name are one label, whatever levels they are from."""
    if not len(column):
        return RecodedColumn.at(column, ladder, 0)
    labels: list[Any] = []
    shares: list[float] = []
    widths: list[float] = []
    place: dict[Any, int] = {}
    codes = np.zeros(len(column), dtype=np.int32)
    for level in np.unique(levels):
        here = RecodedColumn.at(column, ladder, int(level))
        for label in np.unique(ladder.codes[level][levels == level]):
            name = here.labels[label]
            if name not in place:
                place[name] = len(labels)
                labels.append(name)
                shares.append(0.0)
                widths.append(0.0)
            shares[place[name]] = min(shares[place[name]] + float(here.shares[label]), 1.0)
            widths[place[name]] = min(widths[place[name]] + float(here.widths[label]), 1.0)
            codes[(levels == level) & (ladder.codes[level] == label)] = place[name]
    return RecodedColumn(
        codes=codes[column.codes], labels=labels, shares=np.array(shares), widths=np.array(widths), intact=not levels.any()
    )


def _bits(table: Ints) -> float:
    """Σ over rows of a table of counts: rows times entropy, in bits."""
    totals = table.sum(axis=1, keepdims=True)
    shares = table / np.maximum(totals, 1)
    return float(-(table * np.log2(np.where(shares > 0, shares, 1.0))).sum())
