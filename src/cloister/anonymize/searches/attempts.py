"""Parts about to be cut along one axis: where that would be, and by how much their rows would cover less of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.axes import Axis
from cloister.anonymize.searches.parts import BLOCK, Part
from cloister.anonymize.sorting import order_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_MOST = 0.75
"""Where more of the rows than this are asked for, all of them are looked at: picking some out costs more."""
_SPARSE = 4
"""Marks with more cells than this for each row are made by sorting."""


class Attempt:
    """Some parts, about to be cut along one axis."""

    def __init__(self, part: Part, parts: Ints, axis: int) -> None:
        self.part, self.parts, self.axis = part, parts, axis
        every = len(parts) == part.count
        self.sizes = part.sizes if every else part.sizes[parts]
        self.weighed = part.weighed if every else part.weighed[parts]
        self.low, self.high = (each[parts, axis].astype(np.int64) for each in (part.low, part.high))
        self.gains = np.full(len(parts), -np.inf)
        """By how much the rows of a part would cover less of the axis; minus infinity where it cannot be cut."""
        self.last = self.low.copy()
        """The last place of the left half."""
        self.share = np.zeros(len(parts), dtype=np.int64)
        """How many rows of the place after that go left as well."""

    @classmethod
    def of_open(cls, part: Part, asked: Bools, axis: int) -> Attempt:
        """For the parts that are asked for, or where that is nearly all, for all."""
        parts = np.flatnonzero(asked)
        if part.sizes[parts].sum() > _MOST * len(part.rows):
            parts = np.arange(part.count)
        return cls(part, parts, axis)

    def only(self, chosen: Bools) -> Attempt:
        """For some of its parts."""
        if chosen.all():
            return self
        some = Attempt(self.part, self.parts[chosen], self.axis)
        for name in ("low", "high", "gains", "last", "share"):
            setattr(some, name, getattr(self, name)[chosen])
        return some

    @cached_property
    def edges(self) -> Ints:
        """Where each part begins among the rows of these parts, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def where(self) -> Ints | slice:
        """Which rows of all parts those of these are."""
        if len(self.parts) == self.part.count:
            return slice(None)
        where = np.repeat(self.part.first[self.parts] - self.edges[:-1], self.sizes)
        where += np.arange(len(where))
        return where

    @cached_property
    def places(self) -> npt.NDArray[np.integer]:
        """Where the rows stand along the axis."""
        return self.part.places[self.axis][self.where]

    @cached_property
    def weights(self) -> Ints | None:
        """How many rows of the file each row stands for."""
        return None if self.part.weights is None else self.part.weights[self.where]

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """The rows."""
        return self.part.rows[self.where]

    def let_go(self) -> None:
        """Forget what can be read again: several attempts wait for their turn."""
        for name in ("where", "places", "weights", "rows", "edges"):
            self.__dict__.pop(name, None)

    def plan(self, axis: Axis, least: int, relaxed: bool) -> None:
        """Where to cut, and what that gains."""
        if axis.ladder is not None:
            self._plan_along(axis, least, relaxed)
            return
        place, below, upto, previous, following = self._median()
        total = self.weighed
        half = total // 2
        cuts: list[tuple[Ints, Ints, Ints, Ints, Ints | None]] = [
            (below, previous, place, previous, None),
            (upto, place, following, place, None),
        ]
        if relaxed:
            shared = np.minimum(half, upto) - below
            cuts.append((half, np.where(shared > 0, place, previous), np.where(upto > half, place, following), place - 1, shared))
        apart = self.high > self.low
        for left, end, begin, last, share in cuts:
            fits = np.flatnonzero(apart & (left >= max(least, 1)) & (total - left >= max(least, 1)))
            if not len(fits):
                continue
            lefts, whole, low, high = left[fits], total[fits], self.low[fits], self.high[fits]
            covered = lefts * axis.widths(low, end[fits]) + (whole - lefts) * axis.widths(begin[fits], high)
            gain = axis.widths(low, high) - covered / whole
            better = (gain > self.gains[fits]) & (gain > 0)
            fits = fits[better]
            self.gains[fits] = gain[better]
            self.last[fits] = last[fits]
            self.share[fits] = 0 if share is None else share[fits]

    def _plan_along(self, axis: Axis, least: int, relaxed: bool) -> None:
        self.low = np.minimum.reduceat(self.places, self.edges[:-1]).astype(np.int64)
        self.high = np.maximum.reduceat(self.places, self.edges[:-1]).astype(np.int64)
        cut = np.flatnonzero(self.high > self.low)
        if not len(cut):
            return
        chosen = np.zeros(len(self.parts), dtype=bool)
        chosen[cut] = True
        some = self.only(chosen)
        low, high, weighed, pieces = some.children(axis)
        first = np.cumsum(pieces) - pieces
        fits = weighed >= least
        whole = axis.widths(some.low, some.high)
        widths = axis.widths(low, high)
        if relaxed:  # what does not fit stays together under the label that all have now
            fits = without_scraps(weighed, fits, pieces, least)
            rest = np.add.reduceat(np.where(fits, 0, weighed), first)
            possible = np.logical_or.reduceat(fits, first) & ((rest == 0) | (rest >= least))
            widths = np.where(fits, widths, np.repeat(whole, pieces))
        else:
            possible = np.logical_and.reduceat(fits, first)
        gain = whole - np.add.reduceat(weighed * widths, first) / some.weighed
        self.gains[cut] = np.where(possible & (gain > 0), gain, -np.inf)

    def at_middle(self) -> tuple[Ints, Ints]:
        """In two, as planned."""
        right = self.places > np.repeat(self.last, self.sizes)
        if self.share.any():
            equal = self.places == np.repeat(self.last + 1, self.sizes)
            equal &= np.repeat(self.share > 0, self.sizes)
            counted = np.cumsum(equal if self.weights is None else equal * self.weights)
            before = np.concatenate([[0], counted])[self.edges[:-1]]
            right &= ~equal | (counted > np.repeat(before + self.share, self.sizes))
        return right.astype(np.int64), np.full(len(self.parts), 2)

    def along(self, axis: Axis) -> tuple[Ints, Ints]:
        """Into the children, in the hierarchy, of the smallest label that has them all."""
        level = axis.levels(self.low, self.high) - 1
        steps = np.stack(axis.steps)[np.repeat(level, self.sizes), self.places]
        return self._numbered(np.maximum(steps, np.repeat(self.low, self.sizes)))

    def children(self, axis: Axis) -> tuple[Ints, Ints, Ints, Ints]:
        """The pieces that `along` makes, without the rows of each: their first and last places that occur, the rows of the file
        in each, and how many pieces each part has. It asks once for each place that occurs in a part, and not for each row."""
        owner, place, rows = self._occurring()
        level = axis.levels(self.low, self.high) - 1
        steps = np.maximum(np.stack(axis.steps)[level[owner], place], self.low[owner])
        new = np.ones(len(steps), dtype=bool)
        new[1:] = (steps[1:] != steps[:-1]) | (owner[1:] != owner[:-1])
        begin = np.flatnonzero(new)
        last = np.append(begin[1:], len(steps)) - 1
        pieces = np.bincount(owner[begin], minlength=len(self.parts))
        return place[begin], place[last], np.add.reduceat(rows, begin), pieces

    def _occurring(self) -> tuple[Ints, Ints, Ints]:
        """Each place that occurs in a part, in order: the part, the place, and how many rows of the file stand there."""
        spans = self.high - self.low + 1
        base = np.cumsum(spans) - spans
        cell = np.repeat(base - self.low, self.sizes)
        cell += self.places
        width = int(spans.sum())
        if width <= _SPARSE * len(cell) + (1 << 12):
            weighed = self._weigh(cell, width)
            found = np.flatnonzero(weighed)
            weighed = weighed[found]
            owner = np.repeat(np.arange(len(spans)), spans)[found]
        else:
            found, number = np.unique(cell, return_inverse=True)
            weighed = self._weigh(number, len(found))
            owner = np.searchsorted(base, found, side="right") - 1
        return owner, found - (base - self.low)[owner], weighed

    def numbers(self, piece: Ints, pieces: Ints) -> tuple[Ints, Ints]:
        """The pieces of all parts numbered one after another, and how many rows of the file each has."""
        number = piece + np.repeat(np.cumsum(pieces) - pieces, self.sizes)
        return number, self._weigh(number, int(pieces.sum()))

    def gathered(self, piece: Ints, pieces: Ints, passed: Bools, owner: Ints) -> tuple[Ints, Ints, Ints]:
        """What failed the test as one piece, which keeps the label of its parent."""
        first = np.cumsum(pieces) - pieces
        failed = np.bincount(owner[~passed], minlength=len(pieces))
        good = pieces - failed
        before: Ints = np.cumsum(passed) - passed
        renumbered = np.where(passed, before - np.repeat(before[first], pieces), good[owner])
        pieces = good + (failed > 0)
        return renumbered[np.repeat(first, self.sizes) + piece], pieces, np.repeat(np.arange(len(pieces)), pieces)

    def _weigh(self, key: Ints, cells: int) -> Ints:
        """Rows of the file for each number of `key`."""
        if self.weights is None:
            return np.bincount(key, minlength=cells)
        return np.bincount(key, weights=self.weights, minlength=cells).astype(np.int64)

    def _median(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """For each part: the place of its median row, how many rows stand below that place, how many up to it, and the places
        that occur next to it (anything where there is none). `low` and `high` become those that occur."""
        spans = self.high - self.low + 1
        base = np.cumsum(spans) - spans
        cells = int(base[-1] + spans[-1])
        if cells <= (1 if self.weights is None else 2) * len(self.places) + (1 << 12):
            return self._median_of_tally(base - self.low, cells)
        return self._median_of_sorted(base - self.low, cells)

    def _median_of_tally(self, offset: Ints, cells: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """By counting how many rows stand where: a place plus the offset of its part is a cell."""
        upto = np.cumsum(self._tally(offset, cells))
        after = np.cumsum(self.weighed)
        start = after - self.weighed
        cell = np.searchsorted(upto, start + (self.weighed + 1) // 2)
        before, reached = np.where(cell > 0, upto[cell - 1], 0), upto[cell]
        self.low = np.searchsorted(upto, start, side="right") - offset
        self.high = np.searchsorted(upto, after) - offset
        previous, following = np.searchsorted(upto, before), np.searchsorted(upto, reached, side="right")
        return cell - offset, before - start, reached - start, *self._inside(previous - offset, following - offset)

    def _tally(self, offset: Ints, cells: int) -> Ints:
        if len(self.parts) == 1 and self.weights is None:
            tally = np.zeros(cells, dtype=np.int64)
            for begin in range(0, len(self.places), BLOCK):  # what is worked on stays in the cache
                tally += np.bincount(self.places[begin : begin + BLOCK] + offset, minlength=cells)
            return tally
        key = np.repeat(offset, self.sizes)
        key += self.places
        return self._weigh(key, cells)

    def _median_of_sorted(self, offset: Ints, cells: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """By sorting, where parts are small and their places many."""
        key: npt.NDArray[Any] = np.repeat(offset.astype(np.int32) if cells < 1 << 31 else offset, self.sizes)
        key += self.places
        start, half = self.edges[:-1], (self.weighed + 1) // 2
        if self.weights is None:
            key.sort()
            middle = start + half - 1
            found = key[middle]
        else:
            order = order_of(key, cells)
            key = key[order]
            weighed = np.concatenate([[0], np.cumsum(self.weights[order])])
            found = key[np.searchsorted(weighed, weighed[start] + half) - 1]
        self.low = key[start] - offset
        self.high = key[self.edges[1:] - 1] - offset
        left, right = np.searchsorted(key, found), np.searchsorted(key, found, side="right")
        previous, following = key[np.maximum(left - 1, 0)] - offset, key[np.minimum(right, len(key) - 1)] - offset
        if self.weights is not None:
            left, right, start = weighed[left], weighed[right], weighed[start]
        return found - offset, left - start, right - start, *self._inside(previous, following)

    def _inside(self, previous: Ints, following: Ints) -> tuple[Ints, Ints]:
        return np.maximum(previous, self.low), np.minimum(following, self.high)

    def _numbered(self, key: Ints) -> tuple[Ints, Ints]:
        """Each different key of a part as 0, 1, …; and how many there are in each part."""
        spans = self.high - self.low + 1
        base = np.cumsum(spans) - spans
        cell = key + np.repeat(base - self.low, self.sizes)
        width = int(spans.sum())
        if width <= _SPARSE * len(key) + (1 << 12):
            there = np.zeros(width, dtype=bool)
            there[cell] = True
            before = np.concatenate([[0], np.cumsum(there)])
            number, edges = before[cell], np.append(before[base], before[-1])
        else:
            distinct, number = np.unique(cell, return_inverse=True)
            edges = np.append(np.searchsorted(distinct, base), len(distinct))
        return number - np.repeat(edges[:-1], self.sizes), np.diff(edges)


def without_scraps(weighed: Ints, passed: Bools, pieces: Ints, least: int) -> Bools:
    """Where the pieces that did not pass are too few rows together to stay, the smallest that passed joins them."""
    first = np.cumsum(pieces) - pieces
    rest = np.add.reduceat(np.where(passed, 0, weighed), first)
    owner = np.repeat(np.arange(len(pieces)), pieces)
    smallest = np.lexsort((np.where(passed, weighed, np.iinfo(np.int64).max), owner))[first]
    kept = passed.copy()
    kept[smallest[(rest > 0) & (rest < least)]] = False
    return kept
