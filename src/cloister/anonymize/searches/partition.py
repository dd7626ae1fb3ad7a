"""Cutting a table into classes, all classes of a level at once.

Rows are in the order of their parts, so that a part is a run of rows, and what a step does to one part it does to all of them
with a few operations on whole arrays. Once the parts are small, blocks of parts are cut on their own: what is worked on then fits
into the processor's cache, memory does not grow, and several blocks are cut at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.attempts import Attempt, without_scraps
from cloister.anonymize.searches.axes import Axis
from cloister.anonymize.searches.parts import BLOCK, Cut, Ended, Part
from cloister.anonymize.sorting import order_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

Test = Callable[[npt.NDArray[np.int32], Ints, Ints], Bools]
"""Which parts may stay: from rows of the table, the part of each, and how many rows of the file each part has."""

_Path = tuple[int, ...]
"""Which half was taken each time: what is cut first depends on the threads, the numbers of the classes do not."""

_THREADS = 4


@dataclass(eq=False, kw_only=True)
class Cutter:
    """How parts are cut. `least` is how many rows a part has at least where it passes the test (None: that is the test);
    `relaxed` lets parts overlap. A part is cut where its rows then cover least; `widest`: along what it covers most of."""

    axes: Sequence[Axis]
    weights: Sequence[float]
    test: Test | None
    least: int = 1
    relaxed: bool = False
    widest: bool = False

    def cut(self, whole: Part, rows: int, *, stop: Callable[[], bool], progress: Callable[[float], None]) -> Cut:
        """The classes of a table of so many rows. Stopped early, the parts so far are the classes."""
        ended: list[tuple[_Path, Ended]] = []
        done, asked = 0, len(whole.rows)
        waiting: list[tuple[_Path, Part]] = [((), whole)] if asked else []
        del whole  # each part is let go as soon as it is cut
        with _Workers(asked) as workers:
            while waiting or workers.busy:
                if waiting and not workers.full:
                    path, part = waiting.pop()
                    if stop():
                        found: list[tuple[_Path, Ended, Part | None]] = [(path, part.ended(self.axes), None)]
                    else:
                        found = workers.start(path, self._level, part)
                    del part
                else:
                    found = workers.finished()
                for path, classes, rest in found:
                    if len(classes.sizes):
                        ended.append((path, classes))
                        done += len(classes.rows)
                        progress(done / asked)
                    if rest is not None:
                        waiting += reversed([((*path, half), part) for half, part in enumerate(rest.halves())])
        ended.sort(key=lambda each: each[0])
        return Cut.of([classes for _, classes in ended], rows, self.axes)

    def _level(self, part: Part) -> tuple[Ended, Part | None]:
        """What can be cut no further, and the pieces that the others fall into."""
        open_ = ~part.closed & (part.weighed >= 2 * self.least)[:, None]
        gains = np.full((part.count, len(self.axes)), -np.inf)
        attempts: list[Attempt | None] = []
        for number, axis in enumerate(self.axes):
            attempt = Attempt.of_open(part, open_[:, number], number) if open_[:, number].any() else None
            attempts.append(attempt)
            if attempt is not None:
                attempt.plan(axis, self.least, self.relaxed)
                gained = attempt.gains
                if self.widest:
                    gained = np.where(np.isneginf(gained), gained, axis.widths(attempt.low, attempt.high))
                gains[attempt.parts, number] = gained * self.weights[number]
                part.low[attempt.parts, number], part.high[attempt.parts, number] = attempt.low, attempt.high
                attempt.let_go()
        gains[~open_] = -np.inf
        if not self.relaxed:  # along a hierarchy a piece may have other children than its part
            part.closed = np.isneginf(gains) & np.array([axis.ladder is None for axis in self.axes])
        if self.test is None and not self.relaxed and all(axis.ladder is None for axis in self.axes):
            return self._halved(part, gains, attempts)
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
        if not children.any():
            return part.ended(self.axes), None
        return self._fallen(part, child, children)

    def _halved(self, part: Part, gains: npt.NDArray[np.float64], attempts: list[Attempt | None]) -> tuple[Ended, Part | None]:
        """Where every cut that was planned passes, each part is cut at once where that gains most."""
        best = gains.argmax(axis=1)
        cut = ~np.isneginf(gains[np.arange(part.count), best])
        if not cut.any():
            return part.ended(self.axes), None
        right: Bools | None = None
        for attempt in attempts:
            if attempt is None:
                continue
            chosen = cut[attempt.parts] & (best[attempt.parts] == attempt.axis)
            if not chosen.any():
                continue
            column = part.places[attempt.axis]
            last = np.full(part.count, np.iinfo(column.dtype).max, dtype=column.dtype)
            last[attempt.parts[chosen]] = attempt.last[chosen]
            here = column > (last if part.count == 1 else np.repeat(last, part.sizes))
            right = here if right is None else np.logical_or(right, here, out=right)
        assert right is not None
        return self._parted(part, right, cut)

    def _parted(self, part: Part, right: Bools, cut: Bools) -> tuple[Ended, Part | None]:
        """Left halves and right halves, those that are cut no further apart from those that may be."""
        begin, small = part.first[:-1], 2 * self.least
        sizes = np.empty((2, part.count), dtype=np.int64)
        sizes[1] = np.add.reduceat(right, begin, dtype=np.int64)
        sizes[0] = part.sizes - sizes[1]
        weighed = sizes
        if part.weights is not None:
            heavy = np.add.reduceat(np.where(right, part.weights, 0), begin)
            weighed = np.stack([part.weighed - heavy, heavy])
        stays = cut & (weighed >= small)
        sides = (~right, right)
        whole = np.flatnonzero(~cut)
        ends = [_rows_of(part, ~cut)] if len(whole) else []
        ends += [_rows_of(part, cut & ~stays[side], sides[side]) for side in (0, 1) if (cut & ~stays[side]).any()]
        ended = part.ended(
            self.axes,
            np.concatenate([np.empty(0, dtype=np.int64), *ends]),
            np.concatenate([part.sizes[whole], *(sizes[side][cut & ~stays[side]] for side in (0, 1))]),
        )
        if not stays.any():
            return ended, None
        order = np.concatenate([_rows_of(part, stays[side], sides[side]) for side in (0, 1)])
        first = np.concatenate([[0], np.cumsum(sizes[stays])])
        return ended, part.take(order, first, np.concatenate([np.flatnonzero(stays[side]) for side in (0, 1)]))

    def _fallen(self, part: Part, child: npt.NDArray[np.int32], children: Ints) -> tuple[Ended, Part | None]:
        """The pieces as parts; those that cannot be cut again as classes."""
        if int(children.max()) <= 2:
            return self._parted(part, child.astype(bool), children > 0)
        pieces = np.maximum(children, 1)
        owner = np.repeat(np.arange(part.count), pieces)
        number = np.repeat(np.cumsum(pieces) - pieces, part.sizes) + child
        sizes = np.bincount(number, minlength=len(owner))
        weighed = sizes
        if part.weights is not None:
            weighed = np.bincount(number, weights=part.weights, minlength=len(owner)).astype(np.int64)
        stays = (children > 0)[owner] & (weighed >= 2 * self.least)
        order = order_of(number, len(owner))
        inside = np.repeat(stays, sizes)
        ended = part.ended(self.axes, order[~inside], sizes[~stays])
        if not stays.any():
            return ended, None
        return ended, part.take(order[inside], np.concatenate([[0], np.cumsum(sizes[stays])]), owner[stays])

    def _try(self, axis: Axis, attempt: Attempt, child: npt.NDArray[np.int32], children: Ints) -> None:
        """Cut some parts along an axis; where what they fall into passes the test, write down the piece of each row."""
        piece, pieces = attempt.along(axis) if axis.ladder is not None else attempt.at_middle()
        number, weighed = attempt.numbers(piece, pieces)
        passed = self._passed(attempt.rows, number, weighed)
        owner = np.repeat(np.arange(len(pieces)), pieces)
        if self.relaxed and axis.ladder is not None and not passed.all():
            passed = without_scraps(weighed, passed, pieces, self.least)
            piece, pieces, owner = attempt.gathered(piece, pieces, passed, owner)
            number, weighed = attempt.numbers(piece, pieces)
            passed = self._passed(attempt.rows, number, weighed)
        met = pieces > 1
        met[owner[~passed]] = False
        if met.all():
            child[attempt.where] = piece
        elif met.any():
            where = np.arange(len(child)) if isinstance(attempt.where, slice) else attempt.where
            inside = np.repeat(met, attempt.sizes)
            child[where[inside]] = piece[inside]
        children[attempt.parts[met]] = pieces[met]

    def _passed(self, rows: npt.NDArray[np.int32], number: Ints, weighed: Ints) -> Bools:
        """Which pieces may stay: the cheap half of the test first."""
        passed = np.asarray(weighed >= self.least)
        if self.test is not None and passed.any():
            inside = passed[number] if not passed.all() else slice(None)
            renumbered = np.cumsum(passed) - 1
            passed[passed] = self.test(rows[inside], renumbered[number[inside]], weighed[passed])
        return passed


def _rows_of(part: Part, asked: Bools, side: Bools | None = None) -> Ints:
    """The rows of some of the parts, or what stands on one side of them."""
    if side is not None and asked.all():
        return np.flatnonzero(side)
    inside = np.repeat(asked, part.sizes)
    return np.flatnonzero(inside if side is None else inside & side)


_Found = list[tuple[_Path, Ended, Part | None]]


class _Workers:
    """Threads that cut parts; none for a table that is small."""

    def __init__(self, rows: int) -> None:
        threads = min(_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        self._threads = threads if rows > BLOCK else 1
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._running: dict[Future[tuple[Ended, Part | None]], _Path] = {}

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def busy(self) -> bool:
        """Whether something is being cut."""
        return bool(self._running)

    @property
    def full(self) -> bool:
        """Whether more would have to wait."""
        return len(self._running) >= self._threads

    def start(self, path: _Path, cut: Callable[[Part], tuple[Ended, Part | None]], part: Part) -> _Found:
        """Cut a part; without threads what comes of it."""
        if self._pool is None:
            return [(path, *cut(part))]
        self._running[self._pool.submit(cut, part)] = path
        return []

    def finished(self) -> _Found:
        """What comes of those that are done, at least of one."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(each), *each.result()) for each in done]
