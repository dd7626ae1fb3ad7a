"""How many rows stand in each class of a node of the lattice, without going back to the rows.

A node's classes are those of any node under it, joined. So a few nodes are kept as tables, from the distinct rows of the table
upwards, each joined from the one before, and every other node is counted from the highest of these that stands under it. Which
nodes those are follows from how much each level says: on the way up a column a table is worth keeping where another bit of what
the column told is gone, since it has then about half as many states.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.models.base import PrivacyModel, satisfied_by
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Problem
from cloister.anonymize.searches.tables import Levels, Node, table_of

__all__ = ["Counter", "Levels", "Node"]

Ints = npt.NDArray[np.int64]

_MOST_KEPT = 24_000_000
"""How many states are kept in all tables together, and how many codes made of them, before they are let go."""
_SMALL = 800
"""From a table of so few states everything is counted at once: a smaller one would save less than it costs."""
_BITS = ((2.0, 2), (0.8, 8))
"""How much of a column has to be gone from one kept level to the next, coarsely first, then more finely; and the how-manieth
question makes such a table."""
_HUGE, _BITS_OF_HUGE = 4_000_000, ((2.0, 2), (1.0, 2), (0.5, 6))
"""In lattices of more nodes than this the nodes that are asked for lie far apart, and with sensitive columns tables are larger:
other ones are worth keeping."""


class Counter:
    """Counts nodes of one problem, and keeps the tables that others are counted from.

    `extras` are the columns that models ask for; None stands for the mark of the rows that δ-presence is about. Without `spread`
    there are none, whatever the models ask: classes have sizes, and that is all. `low` is a node under which nothing will be
    asked for.
    """

    def __init__(self, problem: Problem, low: Levels | None = None, *, spread: bool = True) -> None:
        self.problem = problem
        self.low = low if low is not None else (0,) * len(problem.quasi)
        self.heights = tuple(problem.ladders[name].height for name in problem.quasi)
        self.largest_k = max([model.k for model in problem.models if type(model) is KAnonymity], default=None)
        self.only_k = all(type(model) is KAnonymity for model in problem.models)
        self.extras: list[str | None] = []
        if spread and not self.only_k:
            self.extras = list(
                dict.fromkeys(name for model in problem.models for name in model.columns_of(problem.sensitive) if name)
            )
            if problem.research is not None:
                self.extras.append(None)
        self.labels = [[len(each) for each in problem.ladders[name].labels] for name in problem.quasi]
        self._maps: dict[tuple[int, int, int], npt.NDArray[np.int32]] = {}
        self._steps: dict[tuple[int, int, int, int], Ints] = {}
        self.raised: dict[tuple[int, Levels, Levels], npt.NDArray[np.int32]] = {}
        """What numbers of groups of columns become on higher levels, as they were asked for."""
        self.huge = prod(self.heights) > _HUGE
        """Whether a question is seldom like the one before it."""
        self._bits = _BITS_OF_HUGE if self.huge or self.extras else _BITS
        self._stops = _stops(problem, self.low, [gone for gone, _ in self._bits])
        self._root = self._bottom()
        self._let_go()

    def _let_go(self) -> None:
        self._kept: dict[Levels, Node] = {}
        self._asked: dict[Levels, int] = {}
        self._states = 0
        self.codes = 0
        """How many codes are held beside the states of tables."""

    def radices(self, levels: Levels) -> list[int]:
        """How many codes each field may have."""
        found = [labels[level] for labels, level in zip(self.labels, levels, strict=True)]
        return found + [2 if name is None else len(self.problem.table.columns[name]) for name in self.extras]

    def mapping(self, column: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """The label on a higher level of each label of a lower one."""
        key = (column, low, high)
        if key not in self._maps:
            ladder = self.problem.ladders[self.problem.quasi[column]]
            found = np.zeros(len(ladder.labels[low]), dtype=np.int32)
            found[ladder.codes[low]] = ladder.codes[high]
            self._maps[key] = found
        return self._maps[key]

    def step(self, column: int, low: int, high: int, shift: int) -> Ints:
        """What to add to a packed state, by its label in the column that goes up."""
        key = (column, low, high, shift)
        if key not in self._steps:
            mapping = self.mapping(column, low, high).astype(np.int64)
            self._steps[key] = (mapping - np.arange(len(mapping))) << shift
        return self._steps[key]

    def _bottom(self) -> Node:
        problem = self.problem
        columns: list[npt.NDArray[np.int32]] = [
            problem.ladders[name].codes[level][problem.table.columns[name].codes]
            for name, level in zip(problem.quasi, self.low, strict=True)
        ]
        columns += [_marks(problem) if extra is None else problem.table.columns[extra].codes for extra in self.extras]
        weights = problem.table.weights if problem.table.weights is not None else np.ones(problem.table.rows, dtype=np.int64)
        return table_of(self, self.low, columns, weights)

    def under(self, levels: Levels) -> Node:
        """A table to count a node from: of those that are kept, or worth keeping from now on."""
        if self._states > _MOST_KEPT:
            self._let_go()
        if self.codes > _MOST_KEPT:
            self.codes = 0
            self.raised.clear()
            for table in (self._root, *self._kept.values()):
                table.forget()
        node = self._root
        for stops, (_, worth) in zip(self._stops, self._bits, strict=True):
            if len(node) <= _SMALL:
                break
            place = tuple([stop[level] for stop, level in zip(stops, levels, strict=True)])
            if place == node.levels:
                continue
            found = self._kept.get(place)
            if found is None:
                asked = self._asked[place] = self._asked.get(place, 0) + 1
                if asked < worth:
                    break
                found = self._kept[place] = node.raised(place)
                self._states += len(found)
            node = found
        return node

    def node(self, levels: Levels) -> Node:
        """The classes of a node."""
        return self.under(levels).raised(levels)

    def satisfied(self, node: Node, models: Sequence[PrivacyModel] | None = None) -> npt.NDArray[np.bool_]:
        """Which classes meet the models."""
        if self.only_k:
            return node.sizes >= (self.largest_k or 1)
        return satisfied_by(self.problem.models if models is None else models, node.classes())


def _marks(problem: Problem) -> npt.NDArray[np.int32]:
    assert problem.research is not None
    return problem.research.astype(np.int32)


def _stops(problem: Problem, low: Levels, bits: Sequence[float]) -> list[list[list[int]]]:
    """For each coarseness, column and level: the highest level from there down on which tables are kept."""
    told_by = []
    for name in problem.quasi:
        ladder, counts = problem.ladders[name], problem.table.columns[name].counts
        told_by.append([_bits(np.bincount(codes, weights=counts)) for codes in ladder.codes])
    stops = []
    allowed = [list(range(len(each))) for each in told_by]
    for gone in sorted(bits):
        chosen = []
        for told, least, levels in zip(told_by, low, allowed, strict=True):
            kept = [least]
            for level in levels:
                if level > kept[-1] and told[kept[-1]] - told[level] >= gone:
                    kept.append(level)
            chosen.append(kept)
        # the coarser ones are some of the finer, so that each table is joined from the one before
        allowed = chosen
        stops.append(
            [
                [max([stop for stop in kept if stop <= level], default=least) for level in range(len(told))]
                for kept, told, least in zip(chosen, told_by, low, strict=True)
            ]
        )
    return stops[::-1]


def _bits(counts: npt.NDArray[Any]) -> float:
    there = counts[counts > 0]
    total = float(there.sum())
    return float(np.log2(total) - (there * np.log2(there)).sum() / total) if total else 0.0
