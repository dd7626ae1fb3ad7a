"""The nodes of a lattice that are still to be looked at, and how the rest was ruled out.

A node is ruled out when it was judged, when a node above it is not allowed (and nothing below such a node is) or suppresses so
many rows that these alone cost as much as the best, when a node below it has a floor no better than the best score, or when its
own levels alone cost as much.

Nodes are looked at in an order that makes these cones large. Where floors follow from the levels, few nodes that are left are
allowed, and each that is not rules out all below it: the highest first. Where floors have to be counted, what the floor of a
node will be is guessed: those that may just be cheap enough come first, the dearest of them first, since most of them are
neither allowed nor cheap and end both ways; then the others, the cheapest first. Guesses decide on the order, and on nothing
else.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.cones import Cones
from cloister.anonymize.searches.judging import Judge, Judgement
from cloister.anonymize.searches.tables import Levels

_PROGRESS_EVERY = 64
_AGAIN = 60
"""After so many nodes guesses are made again from all that is known by then, and then after four times as many."""
_SLACK, _DOUBT = 0.3, 3.0
"""How far above the best score a guess may be to come first: in steps of a level, or in errors of guesses, whichever is more."""


class Tagged:
    """One search through a lattice that fits in memory."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.heights = judge.heights
        self.best: Judgement | None = None
        self.seen: dict[Levels, Judgement] = {}
        self.floors: npt.NDArray[np.float64] | None = None
        if judge.metric.by_levels:
            self.floors = np.broadcast_to(judge.floors(_axes(self.heights)), self.heights)
        self.left: Cones | None = None
        self._guessed = False
        self._never_fewer = judge.problem.absorbing
        """Whether a node suppresses at least as many rows as any above it."""
        self._most_lost = np.inf

    @property
    def limit(self) -> float:
        """What has to be beaten."""
        return np.inf if self.best is None else self.best.score

    def run(self, until: float | None, low: Levels, first: Iterable[Judgement] = ()) -> bool:
        """Search what stands over `low` until nothing is left (True), or it is to stop (False); `first` were judged before."""
        problem = self.judge.problem
        for judged in first:
            self._learn(judged)
        self._look(tuple(height - 1 for height in self.heights))
        self._begin(low)
        assert self.left is not None
        rounds, again = 0, _AGAIN
        while (place := self.left.next()) is not None:
            if rounds % _PROGRESS_EVERY == 0:
                problem.progress("searching the lattice", 1 - self.left.count / self.left.nodes)
            if rounds == again and self._guessed:
                self._begin(low, self.left.marks())
                again *= 4
            rounds += 1
            if problem.stop() or (until is not None and time.monotonic() > until):
                return False
            self._look(self.left.levels(place))
        problem.progress("searching the lattice", 1.0)
        return True

    def bound(self) -> float:
        """A number that no node scores below: of those that were judged, and of those that are left."""
        assert self.left is not None
        left = self.left.marks()
        if not left.any():
            return self.limit
        known = np.full(self.heights, -np.inf)
        for judged in self.seen.values():
            known[judged.levels] = max(known[judged.levels], judged.floor)
        for axis in range(known.ndim):
            np.maximum.accumulate(known, axis=axis, out=known)
        if self.floors is not None:
            known = np.maximum(known, self.floors)
        return min(self.limit, float(known[left].min()))

    def _begin(self, low: Levels, left: npt.NDArray[np.bool_] | None = None) -> None:
        """All nodes over `low` that are left, in order."""
        self.left = Cones(self.heights, self._order())
        if left is not None:
            self.left.keep(left)
            return
        over = np.zeros(self.heights, dtype=bool)
        over[tuple(slice(level, None) for level in low)] = True
        if self.floors is not None:
            over &= self.floors < self.limit
        self.left.keep(over)
        for judged in self.seen.values():
            self._rule_out(judged)

    def _order(self) -> npt.NDArray[np.intp]:
        axes = _axes(self.heights)
        if self.judge.metric.by_classes and not self.judge.metric.by_levels:
            self._guessed = True
            found = guesses(self.heights, [(judged.levels, judged.floor) for judged in self.seen.values()], self.limit)
            if found is not None:
                return _from(found.guess, found.aim + max(_SLACK * found.step, _DOUBT * found.error))
        # highest first: by how many stand below them
        rank = sum(np.log(axis + 1.0) for axis in axes)
        return np.argsort(-np.broadcast_to(rank, self.heights), axis=None, kind="stable")

    def _look(self, levels: Levels) -> None:
        if levels not in self.seen:
            self._learn(self.judge.judge(levels, self.limit))

    def _learn(self, judged: Judgement) -> None:
        self.seen[judged.levels] = judged
        better = judged.allowed and (self.best is None or judged.key < self.best.key)
        if better:
            self.best = judged
            self._most_lost = self.judge.metric.most_lost(judged.score)
        if self.left is None:
            return
        self._rule_out(judged)
        if better:
            if self.floors is not None:
                self.left.keep(self.floors < judged.score)
            for other in self.seen.values():
                if other.floor >= judged.score:
                    self.left.remove_above(other.levels)
                if self._hopeless(other):
                    self.left.remove_below(other.levels)

    def _hopeless(self, judged: Judgement) -> bool:
        """Whether nothing under a node is worth looking at: it is not allowed, or the rows that it loses cost too much."""
        return judged.hopeless_below or (self._never_fewer and judged.suppressed > self._most_lost)

    def _rule_out(self, judged: Judgement) -> None:
        assert self.left is not None
        if self._hopeless(judged):
            self.left.remove_below(judged.levels)
        else:
            self.left.remove(judged.levels)
        if judged.floor >= self.limit:
            self.left.remove_above(judged.levels)


def _from(guess: npt.NDArray[np.float64], aim: float) -> npt.NDArray[np.intp]:
    """The places of all nodes: those up to the aim, falling; then the others, rising."""
    order = np.argsort(guess, axis=None, kind="stable")
    cheap = int(np.count_nonzero(guess < aim))
    return np.concatenate([order[:cheap][::-1], order[cheap:]])


def _axes(heights: Levels) -> list[npt.NDArray[np.intp]]:
    """The levels of each column, as arrays that span the lattice together."""
    return list(np.ix_(*(np.arange(height) for height in heights)))


_FEWEST = 5
_STIFF = 1e-6
"""How much a step without any measured node is held to the usual one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Guesses:
    """For each node a guess of its floor, on some scale on which going up a level adds.

    Were columns independent, the number of pairs of rows that look alike would be a product of one factor for each column and
    level; it is nearly so in real tables. The factors are fitted to the nodes that were judged on the way to a first good one."""

    guess: npt.NDArray[np.float64]
    aim: float
    """The score to be beaten, on the same scale."""
    step: float
    """What a level adds, in the mean."""
    error: float
    """How far guesses are from what is known, in the mean square; what is near to the aim counts most."""


def guesses(heights: Levels, known: Sequence[tuple[Levels, float]], limit: float) -> Guesses | None:
    """By least squares, weighted; None where too little is known."""
    known = [(levels, floor) for levels, floor in known if isfinite(floor)]
    if len(known) < _FEWEST or not np.isfinite(limit):
        return None
    floors = np.array([floor for _, floor in known])
    products = bool((floors > 0).all() and limit > 0)
    height = np.log(floors) if products else floors
    steps = sum(heights) - len(heights)
    if not steps or not np.ptp(height) > 0:
        return None
    # a column for each step from a level to the next, and one for the bottom
    levels = np.array([levels for levels, _ in known])
    passed = [levels[:, column] > step for column, tall in enumerate(heights) for step in range(tall - 1)]
    design = np.column_stack([*passed, np.ones(len(known))]).astype(np.float64)
    # nearer to what has to be beaten counts more
    aim = float(np.log(limit)) if products else float(limit)
    near = 1.0 / (1.0 + np.abs(height - aim) / np.ptp(height) * steps)
    usual = np.ptp(height) / steps
    # the normal equations are small, and need no threads that wait for one another
    weighted = design * near[:, None]
    square = np.einsum("ij,ik->jk", weighted, weighted) + np.diag([*[_STIFF] * steps, 0.0])
    found = np.linalg.solve(square, np.einsum("ij,i->j", weighted, height * near) + np.array([*[_STIFF * usual] * steps, 0.0]))
    off = (design @ found - height) * near
    error = float(np.sqrt(np.einsum("i,i->", off, off) / np.einsum("i,i->", near, near)))
    guess = np.full((1,) * len(heights), found[-1])
    begin = 0
    for column, tall in enumerate(heights):
        shape = [1] * len(heights)
        shape[column] = tall
        up = np.maximum(found[begin : begin + tall - 1], 0.0)
        guess = guess + np.concatenate([[0.0], np.cumsum(up)]).reshape(shape)
        begin += tall - 1
    return Guesses(guess=guess, aim=aim, step=usual, error=error)
