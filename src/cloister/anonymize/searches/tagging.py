"""The nodes of a lattice that are still to be looked at, and how the rest was ruled out.

A node is ruled out when it was judged, when a node above it is not allowed (and nothing below such a node is), when a node
below it has a floor no better than the best score, or when its own levels alone cost as much. What is left is walked in chains:
from a node up and down through nodes that are left, then by bisection to where a chain becomes allowed or too dear. Most chains
rule out two cones.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.judging import Judge, Judgement

__all__ = ["Tagged"]

_PROGRESS_EVERY = 64


class Tagged:
    """One search through a lattice that fits in memory."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.heights = judge.heights
        self.nodes = int(np.prod([float(height) for height in self.heights]))
        self._left = bytearray(b"\x01") * self.nodes
        self.left = np.frombuffer(self._left, dtype=np.bool_).reshape(self.heights)
        self.strides = [int(np.prod(self.heights[place + 1 :])) for place in range(len(self.heights))]
        self.best: Judgement | None = None
        self.seen: dict[int, Judgement] = {}
        self._from_above = False
        self.floors: npt.NDArray[np.float64] | None = None
        if judge.metric.by_levels:
            self.floors = np.broadcast_to(judge.floors(_axes(self.heights)), self.heights)

    @property
    def limit(self) -> float:
        """What has to be beaten."""
        return np.inf if self.best is None else self.best.score

    def run(self, until: float | None, low: Levels, first: Iterable[Levels] = ()) -> bool:
        """Search what stands over `low` until nothing is left (True), or it is to stop (False); `first` before all others."""
        problem = self.judge.problem
        first = list(first)
        # with a good node at hand, and floors that need no counting, few of those left are allowed: each that is not, the highest
        # first, rules out all below it
        self._from_above = bool(first) and self.judge.metric.by_levels
        over = np.zeros(self.heights, dtype=bool)
        over[_above(low)] = True
        self.left &= over
        for levels in (tuple(height - 1 for height in self.heights), *first):
            self._look(levels)
        for rounds, start in enumerate(self._starts()):
            if rounds % _PROGRESS_EVERY == 0:
                problem.progress("searching the lattice", 1 - float(np.count_nonzero(self.left)) / max(self.nodes, 1))
            while self._left[start]:
                if problem.stop() or (until is not None and time.monotonic() > until):
                    return False
                if self._from_above:
                    self._look(self._levels(start))
                else:
                    self._bisect(self._chain(start, rounds))
        problem.progress("searching the lattice", 1.0)
        return True

    def bound(self) -> float:
        """A number that no node scores below: of those that were judged, and of those that are left."""
        lowest = self.limit
        if not self.left.any():
            return lowest
        known = np.full(self.heights, -np.inf) if self.floors is None else np.array(self.floors)
        for judged in self.seen.values():
            if np.isfinite(judged.floor):
                cone = _above(judged.levels)
                known[cone] = np.maximum(known[cone], judged.floor)
        return min(lowest, float(known[self.left].min()))

    def _starts(self) -> Iterator[int]:
        """Nodes by how many stand below them; for chains by how many stand both above and below."""
        axes = _axes(self.heights)
        rank = sum(np.log(axis + 1.0) for axis in axes)
        if not self._from_above:
            above = sum(np.log(height - axis) for axis, height in zip(axes, self.heights, strict=True))
            rank = np.minimum(rank, above)
        order = np.argsort(-np.asarray(rank), axis=None, kind="stable")
        for place in order.tolist():
            if self._left[place]:
                yield place

    def _chain(self, start: int, turn: int) -> list[int]:
        """A path through nodes that are left, from one with none left below to one with none left above."""
        up = self._walk(start, 1, turn)
        return [*reversed(self._walk(start, -1, turn)[1:]), *up]

    def _walk(self, place: int, direction: int, turn: int) -> list[int]:
        path = [place]
        levels = list(self._levels(place))
        columns = len(levels)
        left, strides, heights = self._left, self.strides, self.heights
        while True:
            for step in range(columns):
                column = (turn + step) % columns
                level = levels[column] + direction
                if 0 <= level < heights[column] and left[place + direction * strides[column]]:
                    place += direction * strides[column]
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
            judged = self._look(self._levels(chain[middle]))
            if judged.allowed or judged.floor >= self.limit:
                high = middle
            else:
                low = middle + 1
            while low < high and not self._left[chain[low]]:
                low += 1
            while low < high and not self._left[chain[high - 1]]:
                high -= 1

    def _look(self, levels: Levels) -> Judgement:
        place = sum(level * stride for level, stride in zip(levels, self.strides, strict=True))
        judged = self.seen.get(place)
        if judged is not None:
            return judged
        judged = self.judge.judge(levels, self.limit)
        self.seen[place] = judged
        if judged.allowed and (self.best is None or judged.key < self.best.key):
            self._improve(judged)
        self._left[place] = 0
        if judged.hopeless_below:
            self.left[_below(levels)] = False
        if judged.floor >= self.limit:
            self.left[_above(levels)] = False
        return judged

    def _improve(self, judged: Judgement) -> None:
        self.best = judged
        if self.floors is not None:
            self.left &= self.floors < judged.score
        for other in self.seen.values():
            if other.floor >= judged.score:
                self.left[_above(other.levels)] = False

    def _levels(self, place: int) -> Levels:
        found = []
        for stride in self.strides:
            level, place = divmod(place, stride)
            found.append(level)
        return tuple(found)


def _axes(heights: Levels) -> list[npt.NDArray[np.intp]]:
    """The levels of each column, as arrays that span the lattice together."""
    return list(np.ix_(*(np.arange(height) for height in heights)))


def _below(levels: Levels) -> tuple[slice, ...]:
    return tuple(slice(0, level + 1) for level in levels)


def _above(levels: Levels) -> tuple[slice, ...]:
    return tuple(slice(level, None) for level in levels)
