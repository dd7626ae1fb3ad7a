"""Cutting a table into classes, all classes of a level at once.

Rows stand in the order of their parts, so that a part is a run of rows, and what a step does to one part it does to all of them
with a few operations on whole arrays. Once the parts are small, blocks of parts are cut to the end one after the other: what is
worked on then fits into the processor's cache, and memory does not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.axes import Axis

__all__ = ["Cutter", "Part", "Test"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.integer]

_BLOCK = 1 << 18
"""Rows that are cut together once parts are smaller than that."""
_SPARSE = 4
"""Tallies with more cells than this for each row are made by sorting."""

Test = Callable[[npt.NDArray[np.int32], Ints, Ints], Bools]
"""Which parts may stay: from rows of the table, the part of each, and how many rows of the file each part has."""


@dataclass(eq=False)
class Part:
    """Some parts: `rows[first[p]:first[p + 1]]` are the rows of part `p`, `places[axis]` where they stand, in the same order."""

    rows: npt.NDArray[np.int32]
    places: list[Places]
    weights: Ints | None
    first: Ints
    closed: Bools
    """By part and axis: where a cut would leave a side too small, so that it would in every piece of the part as well."""

    @property
    def count(self) -> int:
        """How many parts."""
        return len(self.first) - 1

    @property
    def sizes(self) -> Ints:
        """Rows of each part."""
        return np.diff(self.first)

    def weighed(self) -> Ints:
        """Rows of the file that stand in each part."""
        return self.sizes if self.weights is None else np.add.reduceat(self.weights, self.first[:-1])

    def take(self, order: npt.NDArray[np.integer], first: Ints, closed: Bools) -> Part:
        """Some of the rows in another order."""
        return Part(
            rows=self.rows[order],
            places=[each[order] for each in self.places],
            weights=None if self.weights is None else self.weights[order],
            first=first,
            closed=closed,
        )

    def halves(self) -> Iterator[Part]:
        """Itself, or where it is large and has several parts, two halves."""
        if self.count < 2 or len(self.rows) <= _BLOCK:
            yield self
            return
        middle = int(np.clip(np.searchsorted(self.first, len(self.rows) // 2), 1, self.count - 1))
        for begin, end in ((0, middle), (middle, self.count)):
            low, high = self.first[begin], self.first[end]
            yield Part(
                rows=self.rows[low:high],
                places=[each[low:high] for each in self.places],
                weights=None if self.weights is None else self.weights[low:high],
                first=self.first[begin : end + 1] - low,
                closed=self.closed[begin:end],
            )


@dataclass(eq=False, kw_only=True)
class Cutter:
    """How parts are cut. `least` is how many rows a part has at least where it passes the test; `relaxed` lets parts overlap."""

    axes: Sequence[Axis]
    weights: Sequence[float]
    test: Test
    least: int = 1
    relaxed: bool = False

    def cut(self, whole: Part, rows: int, *, stop: Callable[[], bool], progress: Callable[[float], None]) -> tuple[Ints, int]:
        """The class of each of so many rows, and how many classes there are. Stopped early, the parts so far are the classes."""
        of_row = np.zeros(rows, dtype=np.int64)
        found, done = 0, 0
        waiting = [whole] if len(whole.rows) else []
        while waiting:
            part = waiting.pop()
            ended, rest = (np.ones(part.count, dtype=bool), None) if stop() else self._level(part)
            if ended.any():
                inside = np.repeat(ended, part.sizes)
                number = np.repeat(found + np.cumsum(ended) - 1, part.sizes)
                of_row[part.rows[inside]] = number[inside]
                found += int(np.count_nonzero(ended))
                done += int(np.count_nonzero(inside))
                progress(done / rows)
            if rest is not None:
                waiting += reversed(list(rest.halves()))
        return of_row, found

    def _level(self, part: Part) -> tuple[Bools, Part | None]:
        """Which parts can be cut no further, and the pieces that the others fall into."""
        weighed = part.weighed()
        closed = part.closed | (weighed < 2 * self.least)[:, None]
        gains = np.full((part.count, len(self.axes)), -np.inf)
        attempts: list[_Attempt | None] = []
        for number, axis in enumerate(self.axes):
            parts = np.flatnonzero(~closed[:, number])
            attempt = _Attempt(part, parts, number, weighed[parts]) if len(parts) else None
            attempts.append(attempt)
            if attempt is not None:
                attempt.plan(axis, self.least, self.relaxed)
                gains[parts, number] = attempt.gains * self.weights[number]
        if not self.relaxed:  # along a hierarchy a piece may have other children than its part
            part.closed = np.isneginf(gains) & np.array([axis.ladder is None for axis in self.axes])
        ranking = np.argsort(-gains, axis=1, kind="stable")
        child = np.zeros(len(part.rows), dtype=np.int32)
        children = np.zeros(part.count, dtype=np.int64)
        for rank in range(len(self.axes)):
            best = ranking[:, rank]
            asked = (children == 0) & ~np.isneginf(gains[np.arange(part.count), best])
            if not asked.any():
                break
            for number, attempt in enumerate(attempts):
                chosen = asked & (best == number)
                if attempt is not None and chosen.any():
                    self._try(self.axes[number], attempt.only(chosen[attempt.parts]), child, children)
        ended = children == 0
        return ended, None if bool(ended.all()) else _fallen(part, child, children)

    def _try(self, axis: Axis, attempt: _Attempt, child: npt.NDArray[np.int32], children: Ints) -> None:
        """Cut some parts along an axis; where what they fall into passes the test, write down the piece of each row."""
        piece, pieces = attempt.along(axis) if axis.ladder is not None else attempt.at_middle()
        number, weighed = attempt.numbers(piece, pieces)
        passed = self._passed(attempt.rows, number, weighed)
        owner = np.repeat(np.arange(len(pieces)), pieces)
        if self.relaxed and axis.ladder is not None and not passed.all():
            passed = _without_scraps(weighed, passed, pieces, self.least)
            piece, pieces, owner = attempt.gathered(piece, pieces, passed, owner)
            number, weighed = attempt.numbers(piece, pieces)
            passed = self._passed(attempt.rows, number, weighed)
        met = pieces > 1
        met[owner[~passed]] = False
        if met.any():
            inside = np.repeat(met, attempt.sizes)
            child[attempt.where[inside]] = piece[inside]
            children[attempt.parts[met]] = pieces[met]

    def _passed(self, rows: npt.NDArray[np.int32], number: Ints, weighed: Ints) -> Bools:
        """Which pieces may stay: the cheap half of the test first."""
        passed = np.asarray(weighed >= self.least)
        if passed.any():
            inside = passed[number] if not passed.all() else slice(None)
            renumbered = np.cumsum(passed) - 1
            passed[passed] = self.test(rows[inside], renumbered[number[inside]], weighed[passed])
        return passed


class _Attempt:
    """Some parts, about to be cut along one axis."""

    def __init__(self, part: Part, parts: Ints, axis: int, weighed: Ints) -> None:
        self.parts, self.weighed = parts, weighed
        self.sizes = part.sizes[parts]
        self.edges = np.concatenate([[0], np.cumsum(self.sizes)])
        if len(parts) == part.count:
            self.where: Ints = np.arange(len(part.rows))
            self.rows, self.places, self.weights = part.rows, part.places[axis], part.weights
        else:
            self.where = np.arange(self.edges[-1]) + np.repeat(part.first[parts] - self.edges[:-1], self.sizes)
            self.rows, self.places = part.rows[self.where], part.places[axis][self.where]
            self.weights = None if part.weights is None else part.weights[self.where]
        self.low = np.minimum.reduceat(self.places, self.edges[:-1]).astype(np.int64)
        self.high = np.maximum.reduceat(self.places, self.edges[:-1]).astype(np.int64)
        self.gains = np.full(len(parts), -np.inf)
        """By how much the rows of a part would cover less of the axis; minus infinity where it cannot be cut."""
        self.last = self.low
        """The last place of the left half."""
        self.share = np.zeros(len(parts), dtype=np.int64)
        """How many rows of the place after that go left as well."""

    def only(self, chosen: Bools) -> _Attempt:
        """For some of its parts."""
        if chosen.all():
            return self
        some = _Attempt.__new__(_Attempt)
        inside = np.repeat(chosen, self.sizes)
        for name in ("parts", "weighed", "sizes", "low", "high", "gains", "last", "share"):
            setattr(some, name, getattr(self, name)[chosen])
        for name in ("where", "rows", "places"):
            setattr(some, name, getattr(self, name)[inside])
        some.weights = None if self.weights is None else self.weights[inside]
        some.edges = np.concatenate([[0], np.cumsum(some.sizes)])
        return some

    def plan(self, axis: Axis, least: int, relaxed: bool) -> None:
        """Where to cut, and what that gains."""
        if axis.ladder is not None:
            self._plan_along(axis, least, relaxed)
            return
        place, below, upto, previous, following = self._median()
        total, width = self.weighed, axis.widths(self.low, self.high)
        half = total // 2
        cuts = [
            (below, previous, place, previous, below * 0),
            (upto, place, following, place, below * 0),
        ]
        if relaxed:
            shared = np.minimum(half, upto) - below
            cuts.append((half, np.where(shared > 0, place, previous), np.where(upto > half, place, following), place - 1, shared))
        for left, end, begin, last, share in cuts:
            fits = (left >= least) & (total - left >= least) & (left > 0) & (left < total) & (self.high > self.low)
            end, begin = np.clip(end, self.low, self.high), np.clip(begin, self.low, self.high)
            covered = left * axis.widths(self.low, end) + (total - left) * axis.widths(begin, self.high)
            gain = np.where(fits, width - covered / total, -np.inf)
            better = (gain > self.gains) & (gain > 0)
            self.gains = np.where(better, gain, self.gains)
            self.last = np.where(better, last, self.last)
            self.share = np.where(better, share, self.share)

    def _plan_along(self, axis: Axis, least: int, relaxed: bool) -> None:
        cut = np.flatnonzero(self.high > self.low)
        if not len(cut):
            return
        chosen = np.zeros(len(self.parts), dtype=bool)
        chosen[cut] = True
        some = self.only(chosen)
        piece, pieces = some.along(axis)
        number, weighed = some.numbers(piece, pieces)
        order = np.argsort(number, kind="stable")
        edges = np.searchsorted(number[order], np.arange(len(weighed)))
        low = np.minimum.reduceat(some.places[order], edges)
        high = np.maximum.reduceat(some.places[order], edges)
        first = np.cumsum(pieces) - pieces
        fits = weighed >= least
        whole = axis.widths(some.low, some.high)
        widths = axis.widths(low, high)
        if relaxed:  # what does not fit stays together under the label that all have now
            fits = _without_scraps(weighed, fits, pieces, least)
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
        that occur next to it (anything where there is none)."""
        half = (self.weighed + 1) // 2
        start = np.cumsum(self.weighed) - self.weighed
        spans = self.high - self.low + 1
        if int(spans.sum()) <= _SPARSE * len(self.places) + (1 << 12):
            base = np.cumsum(spans) - spans
            tally = self._weigh(self.places + np.repeat(base - self.low, self.sizes), int(spans.sum()))
            upto = np.cumsum(tally)
            cell = np.searchsorted(upto, start + half)
            reached = upto[cell]
            before = reached - tally[cell]
            near = (np.searchsorted(upto, before), np.searchsorted(upto, reached, side="right"))
            return cell - base + self.low, before - start, reached - start, *(each - base + self.low for each in near)
        radix = int(self.high.max()) + 1
        key = np.repeat(np.arange(len(self.sizes)) * radix, self.sizes) + self.places
        if self.weights is None:
            key.sort()
            found = key[start + half - 1]
        else:
            order = np.argsort(key)
            key = key[order]
            upto = np.concatenate([[0], np.cumsum(self.weights[order])])
            found = key[np.searchsorted(upto, start + half) - 1]
        left, right = np.searchsorted(key, found), np.searchsorted(key, found, side="right")
        previous, following = key[np.maximum(left - 1, 0)] % radix, key[np.minimum(right, len(key) - 1)] % radix
        if self.weights is not None:
            left, right = upto[left], upto[right]
        return found % radix, left - start, right - start, previous, following

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


def _without_scraps(weighed: Ints, passed: Bools, pieces: Ints, least: int) -> Bools:
    """Where the pieces that did not pass are too few rows together to stay, the smallest that passed joins them."""
    first = np.cumsum(pieces) - pieces
    rest = np.add.reduceat(np.where(passed, 0, weighed), first)
    owner = np.repeat(np.arange(len(pieces)), pieces)
    smallest = np.lexsort((np.where(passed, weighed, np.iinfo(np.int64).max), owner))[first]
    kept = passed.copy()
    kept[smallest[(rest > 0) & (rest < least)]] = False
    return kept


def _fallen(part: Part, child: npt.NDArray[np.int32], children: Ints) -> Part:
    """The pieces as parts, in the order of the parts that they come from; parts that were not cut are left out."""
    closed = np.repeat(part.closed, children, axis=0)
    if int(children.max()) > 2:
        begin = np.cumsum(children) - children
        inside = np.flatnonzero(np.repeat(children > 0, part.sizes))
        number = np.repeat(begin, part.sizes)[inside] + child[inside]
        lengths = np.bincount(number, minlength=int(children.sum()))
        order = inside[np.argsort(number, kind="stable")]
        return part.take(order, np.concatenate([[0], np.cumsum(lengths)]), closed)
    right = child.astype(bool)
    before = np.cumsum(right, dtype=np.int64)
    edges, sizes, cut = part.first[:-1], part.sizes, children > 0
    start = before[edges] - right[edges]
    rights = before[part.first[1:] - 1] - start
    first = np.concatenate([[0], np.cumsum(np.stack([sizes - rights, rights], axis=1)[cut].ravel())])
    begin = np.zeros(part.count, dtype=np.int64)
    begin[cut] = first[:-1:2]
    # left rows go after the left ones before them, right rows after all left ones and the right ones before them
    place = np.arange(len(part.rows))
    target = np.where(
        right,
        before + np.repeat(begin + sizes - rights - start - 1, sizes),
        place - before + np.repeat(begin - edges + start, sizes),
    )
    order = np.empty(int(first[-1]), dtype=np.int32)
    if cut.all():
        order[target] = place
    else:
        inside = np.flatnonzero(np.repeat(cut, sizes))
        order[target[inside]] = inside
    return part.take(order, first, closed)
