"""Runs of codes that states stand for, and how likely the values inside of a bin are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pieces:
    """Runs of codes that a state stands for: `low` to `high`, each with the place of its state. Sorted by state."""

    state: Integers
    low: Integers
    high: Integers
    weight: Floats | None = None
    """What part of its state each run has, where a shape tells it; None: by its number of codes."""

    def sizes(self, states: int) -> Floats:
        """How many codes each state has, or their weights.

        >>> Pieces(np.array([0, 1, 1]), np.array([0, 5, 8]), np.array([4, 6, 9])).sizes(2).tolist()
        [5.0, 4.0]
        """
        lengths = self.high - self.low + 1 if self.weight is None else self.weight
        return np.bincount(self.state, lengths, minlength=states).astype(np.float64)

    def within(self, codes: Integers) -> npt.NDArray[np.bool_]:
        """Which codes lie in one of the runs.

        >>> Pieces(np.array([0, 1]), np.array([0, 5]), np.array([2, 6])).within(np.array([2, 3, 5])).tolist()
        [True, False, True]
        """
        order = np.argsort(self.low)
        place = np.searchsorted(self.low[order], codes, side="right") - 1
        return np.asarray((place >= 0) & (codes <= self.high[order][place]))

    @cached_property
    def single(self) -> bool:
        """Whether each state has one code, so that nothing is left to draw."""
        return bool((self.low == self.high).all() and (np.diff(self.state) > 0).all())

    def at(self, chosen: npt.NDArray[Any], states: int, shares: npt.NDArray[np.float64] | None = None) -> Integers:
        """For each chosen state one of its codes: the one at this share, from 0 to 1, of the way through them; without
        shares the first.

        >>> Pieces(np.array([0, 1]), np.array([0, 5]), np.array([4, 9])).at(np.array([0, 1]), 2, np.array([0.5, 0.99])).tolist()
        [2, 9]
        """
        first = np.zeros(states, dtype=np.int64)
        first[self.state[::-1]] = self.low[::-1]
        if shares is None:
            return np.asarray(first[chosen])
        if self.weight is not None:
            return self._weighed(chosen, states, shares, self.weight)
        sizes, lengths = self.sizes(states).astype(np.int64), self.high - self.low + 1
        size = sizes[chosen]
        steps = np.minimum((shares * size).astype(np.int64), size - 1)
        if (np.diff(self.state) > 0).all():  # each state is one run
            steps += first[chosen]
            return np.asarray(steps)
        place, ends = (np.cumsum(sizes) - sizes)[chosen] + steps, np.cumsum(lengths)
        piece = np.searchsorted(ends, place, side="right")
        return np.asarray(self.low[piece] + place - (ends - lengths)[piece])

    def _weighed(self, chosen: npt.NDArray[Any], states: int, shares: Floats, weight: Floats) -> Integers:
        """The run by its weight, and any of its codes."""
        ends, sizes = np.cumsum(weight), self.sizes(states)
        wanted = (np.cumsum(sizes) - sizes)[chosen] + shares * sizes[chosen]
        every = np.arange(states)
        first, last = (np.searchsorted(self.state, every, side=side) for side in ("left", "right"))
        run = np.clip(np.searchsorted(ends, wanted, side="right"), first[chosen], last[chosen] - 1)
        steps = np.clip((wanted - (ends - weight)[run]) / weight[run], 0, 1) * (self.high - self.low + 1)[run]
        return np.asarray(np.minimum(self.low[run] + steps.astype(np.int64), self.high[run]))


@dataclass(frozen=True)
class Shape:
    """How likely values inside of bins are: from each code of `starts` to the next one they share a weight. `starts` begins with
    the least code, and ends one past the largest.

    >>> shape = Shape((0, 10, 100), (3.0, 1.0))
    >>> shape.weight(np.array([0, 5]), np.array([4, 54])).tolist(), shape.middle(np.array([0]), np.array([99])).tolist()
    ([1.5, 2.0], [17.0])
    """

    starts: tuple[int, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, told: Mapping[str, Any], low: int, high: int) -> Shape:
        """That of a file, for codes from low to high."""
        starts, weights = tuple(int(code) for code in told["starts"]), tuple(float(each) for each in told["weights"])
        fine = len(starts) == len(weights) + 1 and (starts[0], starts[-1]) == (low, high + 1)
        if not fine or not all(one < other for one, other in pairwise(starts)) or not all(0 < each < 1e18 for each in weights):
            raise ValueError
        return cls(starts, weights)

    def plain(self) -> dict[str, Any]:
        """As a file has it, with six digits."""
        return {"starts": list(self.starts), "weights": [float(f"{each:.6g}") for each in self.weights]}

    @cached_property
    def _ends(self) -> Integers:
        return np.array(self.starts, dtype=np.int64)

    @cached_property
    def _below(self) -> tuple[Floats, Floats, Floats]:
        """Before each start the sum of the weights, and of the codes by weight; the weight of one code of each run."""
        weights, lengths = np.array(self.weights), np.diff(self._ends)
        middles = (self._ends[:-1] + self._ends[1:] - 1) / 2
        before = [np.concatenate([[0.0], np.cumsum(each)]) for each in (weights, weights * middles)]
        return before[0], before[1], weights / lengths

    def weight(self, low: Integers, high: Integers) -> Floats:
        """Of the codes from low to high."""
        return self._until(high + 1)[0] - self._until(low)[0]

    def middle(self, low: Integers, high: Integers) -> Floats:
        """The mean code from low to high."""
        found = (self._until(high + 1)[1] - self._until(low)[1]) / self.weight(low, high)
        return np.asarray(np.clip(found, low, high))

    def _until(self, codes: Integers) -> tuple[Floats, Floats]:
        sums, moments, density = self._below
        run = np.clip(np.searchsorted(self._ends, codes, side="right") - 1, 0, len(self.weights) - 1)
        first = self._ends[run]
        over = (codes - first) * density[run]
        return np.asarray(sums[run] + over), np.asarray(moments[run] + over * (first + codes - 1) / 2)
