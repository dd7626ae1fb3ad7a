"""The best recoding in which each column has one level: proved, because every other was judged or ruled out."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Proof, Recoded
from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.greedy import explore
from cloister.anonymize.searches.judging import Judge, Judgement, recode
from cloister.anonymize.searches.tagging import Tagged
from cloister.anonymize.searches.unmet import interrupted, unmet

_SMALL = 50_000
"""In lattices of more nodes than this the first node is searched for with more care."""


@dataclass(frozen=True, kw_only=True)
class OptimalLattice(Search):
    """The best node of the lattice of levels: globally optimal full-domain recoding (as in Incognito, OLA and Flash, with
    bounds).

    Every node gives each quasi-identifier one level of its hierarchy. A node is allowed when the rows of its classes that miss
    a model are no more than may be suppressed. Nodes are ruled out in cones: all below one that is not allowed (where the
    models let that be concluded), and all above one whose floor is no better than the best score so far. Counts are rolled up
    from node to node and never from rows. No column stands higher than the score is worth: of two nodes of the same score, one
    over the other, the lower one is taken.

    Lattices of more than `most_nodes` nodes are searched by dividing them into boxes, best bound first. With a time budget
    (`Problem.seconds`) the best node so far is returned, and its proof says how far from the best it may be.

    >>> OptimalLattice().name
    'optimal'
    """

    name: ClassVar[str] = "optimal"
    most_nodes: int = 4_000_000

    def find(self, problem: Problem) -> Recoded:
        """The best node, recoded."""
        until = None if problem.seconds is None else time.monotonic() + problem.seconds
        judge = Judge(problem)
        low = judge.lowest()
        nodes = float(np.prod([float(height) for height in judge.heights]))
        search: Tagged | Boxes = Tagged(judge) if nodes <= self.most_nodes else Boxes(judge)
        _, met = explore(judge, until, 3 if nodes > _SMALL else 1)
        whole = search.run(until, low, met)
        if search.best is None:
            raise unmet(problem) if whole else interrupted(problem)
        return recode(problem, _settled(judge, search.best).levels, _proof(search, whole, nodes))


def _settled(judge: Judge, best: Judgement) -> Judgement:
    """The same score on lower levels, where there is one below: nothing is made coarser for no gain."""
    for column in range(len(best.levels)):
        while level := best.levels[column]:
            lower = judge.judge((*best.levels[:column], level - 1, *best.levels[column + 1 :]))
            if not lower.allowed or lower.score > best.score:
                break
            best = lower
    return best


def _proof(search: Tagged | Boxes, whole: bool, nodes: float) -> Proof:
    assert search.best is not None
    score, judged, ranged = search.best.score, search.judge.judged, search.judge.problem.metric.ranged
    if whole:
        return Proof(optimal=True, bound=score, what=f"{judged:,} of {nodes:,.0f} nodes were judged, all others ruled out")
    return Proof.near(score, min(search.bound(), score), f"{judged:,} of {nodes:,.0f} nodes were judged in the time", ranged)


_MOST_OPEN = 2_000_000
"""How many boxes may be open; then the search ends, with the bound that it has."""


class Boxes:
    """One search by boxes.

    Lattices that are too large to hold: divided into boxes, the one with the lowest bound first.

    A box is all nodes between a lowest and a highest one. Nothing in it scores less than the floor of its lowest node; nothing
    in it is allowed where its highest node is not, and models let that be concluded. What is open when time is up is what the
    best may be better by."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.heights = judge.heights
        self.best: Judgement | None = None
        self._open: list[tuple[float, int, Levels, Levels]] = []
        self._number = count()
        self._hopeless = np.zeros((0, len(self.heights)), dtype=np.int16)
        self._floors: dict[Levels, float] = {}
        self._seen: dict[Levels, bool] = {}
        self._bound = -np.inf

    @property
    def limit(self) -> float:
        """What has to be beaten."""
        return np.inf if self.best is None else self.best.score

    def run(self, until: float | None, low: Levels, first: Iterable[Judgement] = ()) -> bool:
        """Divide what stands over `low` until nothing is open (True), or it is to stop (False)."""
        problem = self.judge.problem
        top = tuple(height - 1 for height in self.heights)
        for judged in first:
            self._learn(judged)
        self._look(top)
        self._add(low, top)
        rounds = 0
        while self._open:
            floor, _, low, high = self._open[0]
            self._bound = floor
            if floor >= self.limit:
                self._open.clear()
                break
            if rounds % 32 == 0:
                problem.progress("searching the lattice", _progress(floor, self.limit))
            rounds += 1
            if problem.stop() or (until is not None and time.monotonic() > until) or len(self._open) > _MOST_OPEN:
                return False
            heapq.heappop(self._open)
            if low != high:
                self._divide(low, high)
        problem.progress("searching the lattice", 1.0)
        return True

    def bound(self) -> float:
        """The lowest floor of what is open."""
        return min(self._bound, self.limit)

    def _add(self, low: Levels, high: Levels) -> None:
        if (self._hopeless >= np.array(high, dtype=np.int16)).all(axis=1).any() or not self._look(high):
            return  # nothing in a box below this node may be allowed
        floor = self._floor(low)
        if floor < self.limit:
            heapq.heappush(self._open, (floor, next(self._number), low, high))

    def _divide(self, low: Levels, high: Levels) -> None:
        column = self._column(low, high)
        middle = (low[column] + high[column]) // 2
        self._add(low, (*high[:column], middle, *high[column + 1 :]))
        self._add((*low[:column], middle + 1, *low[column + 1 :]), high)

    def _column(self, low: Levels, high: Levels) -> int:
        """Where dividing raises the bound of the upper half most; the widest where bounds need counting."""
        widths = [above - below for below, above in zip(low, high, strict=True)]
        if not self.judge.metric.by_levels:
            return int(np.argmax(widths))
        columns = [place for place, width in enumerate(widths) if width]
        halves = np.repeat(np.array(low)[None, :], len(columns), axis=0)
        for row, place in enumerate(columns):
            halves[row, place] = (low[place] + high[place]) // 2 + 1
        return columns[int(np.argmax(self.judge.floors(list(halves.T))))]

    def _floor(self, low: Levels) -> float:
        found = self._floors.get(low)
        if found is None:
            found = -np.inf
            if self.judge.metric.by_levels:
                found = float(self.judge.floors([np.array(level) for level in low]))
            if self.judge.metric.by_classes:
                self._look(low)
                found = max(found, self._floors[low])
            self._floors[low] = found
        return found

    def _look(self, levels: Levels) -> bool:
        if levels in self._seen:
            return self._seen[levels]
        return self._learn(self.judge.judge(levels, self.limit))

    def _learn(self, judged: Judgement) -> bool:
        levels = judged.levels
        if self.judge.metric.by_classes:
            self._floors[levels] = judged.floor
        if judged.allowed and (self.best is None or judged.key < self.best.key):
            self.best = judged
        if judged.hopeless_below:
            covered = (self._hopeless <= np.array(levels, dtype=np.int16)).all(axis=1)
            self._hopeless = np.vstack([self._hopeless[~covered], np.array(levels, dtype=np.int16)[None, :]])
        self._seen[levels] = not judged.hopeless_below
        return self._seen[levels]


def _progress(floor: float, limit: float) -> float:
    return float(min(max(floor / limit, 0.0), 1.0)) if np.isfinite(limit) and limit > 0 and floor > 0 else 0.0
