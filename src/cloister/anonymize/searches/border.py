"""Which nodes of a lattice are allowed: the whole picture, for drawing it and for choosing by hand."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.problem import Problem
from cloister.anonymize.searches.cones import Cones
from cloister.anonymize.searches.judging import Judge, Judgement
from cloister.anonymize.searches.tables import Levels
from cloister.errors import InvalidParameter

_MOST_NODES = 4_000_000
_PROGRESS_EVERY = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Border:
    """The allowed nodes of a lattice.

    `allowed[levels]` says whether the models are met there without suppressing more rows than may be; `known[levels]` is False
    where the search was ended before it came to that node.
    """

    columns: tuple[str, ...]
    allowed: npt.NDArray[np.bool_]
    known: npt.NDArray[np.bool_]
    judged: int
    """How many nodes were counted; what holds of the others follows."""

    @property
    def count(self) -> int:
        """How many nodes are allowed."""
        return int(np.count_nonzero(self.allowed))

    @property
    def lowest(self) -> list[Levels]:
        """Allowed nodes under which none is: what a choice should begin with."""
        lowest = self.allowed.copy()
        for axis in range(lowest.ndim):
            upper = [slice(None)] * lowest.ndim
            lower = list(upper)
            upper[axis], lower[axis] = slice(1, None), slice(None, -1)
            lowest[tuple(upper)] &= ~self.allowed[tuple(lower)]
        return [tuple(int(level) for level in levels) for levels in np.argwhere(lowest)]


def border(problem: Problem) -> Border:
    """Which nodes are allowed, by predictive tagging: what is above an allowed node is allowed, what is below one that is not
    is not (where suppression and the models let that be concluded; otherwise each node is counted)."""
    judge = Judge(problem)
    nodes = float(np.prod([float(height) for height in judge.heights]))
    if nodes > _MOST_NODES:
        raise InvalidParameter(
            "The lattice was not drawn",
            why=f"it has {nodes:,.0f} nodes",
            instead=f"fewer columns or levels, for at most {_MOST_NODES:,} nodes",
        )
    search = _Bordering(judge)
    until = None if problem.seconds is None else time.monotonic() + problem.seconds
    search.run(until, judge.lowest())
    return Border(columns=problem.quasi, allowed=search.allowed, known=~search.left.marks(), judged=judge.judged)


class _Bordering:
    """Nodes are walked in chains: from a node that is left up and down through others that are, then by bisection to where the
    chain becomes allowed. Most chains rule out two cones."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.heights = judge.heights
        self.allowed = np.zeros(self.heights, dtype=bool)
        self.left = Cones(self.heights)

    def run(self, until: float | None, low: Levels) -> None:
        """Until nothing is left, or it is to stop."""
        problem, left = self.judge.problem, self.left
        over = np.zeros(self.heights, dtype=bool)
        over[tuple(slice(level, None) for level in low)] = True
        left.keep(over)
        self._look(tuple(height - 1 for height in self.heights))
        for turn, start in enumerate(self._starts()):
            if turn % _PROGRESS_EVERY == 0:
                problem.progress("searching the lattice", 1 - left.count / left.nodes)
            while left.has(start):
                if problem.stop() or (until is not None and time.monotonic() > until):
                    return
                up, down = (self._walk(start, direction, turn) for direction in (1, -1))
                self._bisect([*reversed(down[1:]), *up])  # a path of nodes that are left, between two with none left beyond
        problem.progress("searching the lattice", 1.0)

    def _starts(self) -> Iterator[int]:
        """Nodes by how many stand both above and below them."""
        axes = np.ix_(*(np.arange(height) for height in self.heights))
        below = sum(np.log(axis + 1.0) for axis in axes)
        above = sum(np.log(height - axis) for axis, height in zip(axes, self.heights, strict=True))
        for place in np.argsort(-np.minimum(below, above), axis=None, kind="stable").tolist():
            if self.left.has(place):
                yield place

    def _walk(self, place: int, direction: int, turn: int) -> list[int]:
        path = [place]
        left, heights = self.left, self.heights
        levels = list(left.levels(place))
        columns = len(levels)
        while True:
            for step in range(columns):
                column = (turn + step) % columns
                level = levels[column] + direction
                if 0 <= level < heights[column] and left.has(place + direction * left.strides[column]):
                    place += direction * left.strides[column]
                    levels[column] = level
                    path.append(place)
                    turn += 1 + step
                    break
            else:
                return path

    def _bisect(self, chain: list[int]) -> None:
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            if self._look(self.left.levels(chain[middle])).allowed:
                high = middle
            else:
                low = middle + 1
            while low < high and not self.left.has(chain[low]):
                low += 1
            while low < high and not self.left.has(chain[high - 1]):
                high -= 1

    def _look(self, levels: Levels) -> Judgement:
        judged = self.judge.judge(levels, -np.inf)
        self.allowed[levels] = judged.allowed
        self.left.remove(levels)
        if judged.allowed and self.judge.monotone:
            self.allowed[tuple(slice(level, None) for level in levels)] = True
            self.left.remove_above(levels)
        if judged.hopeless_below:
            self.left.remove_below(levels)
        return judged
