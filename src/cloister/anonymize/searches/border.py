"""Which nodes of a lattice are allowed: the whole picture, for drawing it and for choosing by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.problem import Problem
from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.judging import Judge, Judgement
from cloister.anonymize.searches.tagging import Tagged
from cloister.errors import InvalidParameter

__all__ = ["Border", "border"]

_MOST_NODES = 4_000_000


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
    is not
    (where suppression and the models let that be concluded; otherwise each node is counted)."""
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
    return Border(columns=problem.quasi, allowed=search.allowed, known=~search.left, judged=judge.judged)


class _Bordering(Tagged):
    """Tagging by what is allowed, with no eye for scores."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.allowed = np.zeros(self.heights, dtype=bool)

    def _look(self, levels: Levels) -> Judgement:
        judged = self.judge.judge(levels, -np.inf)
        self.allowed[levels] = judged.allowed
        self.left[levels] = False
        if judged.allowed and self.judge.monotone:
            above = tuple(slice(level, None) for level in levels)
            self.allowed[above] = True
            self.left[above] = False
        if judged.hopeless_below:
            self.left[tuple(slice(0, level + 1) for level in levels)] = False
        return judged
