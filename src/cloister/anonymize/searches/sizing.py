"""The sizes of the classes of a node, counted in one pass and without a table of them.

Most nodes are looked at once, and only to see that they are not allowed, or too dear. For that it is enough to know how large
the class of each state of a lower table is: the codes of a state become one number, numbers are tallied, and each state looks
up its own. Where there are more numbers than can be tallied they are mixed into fewer. Two classes may then share a tally: a
class looks larger than it is, never smaller, and what is too small is too small.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.anonymize.metrics.base import Floats, dot
from cloister.anonymize.searches.counting import Counter
from cloister.anonymize.searches.tables import Ints, Levels, Node

_GROUP = 3
_LARGEST_GROUP = 1 << 20
_EACH, _SURE = 64, 1 << 16
"""So many numbers for each state, and so many in any case, can be tallied as they are."""
_NEAR = 1 << 17
"""A tally of more numbers than this is far from the processor: it is made where mixing them left a doubt."""
_LOOKED_UP = 1 << 12
"""Where a group of columns has at most so many numbers more than a table has states, they are raised together."""
_MIXED_BITS = 16
_MIXER = 0x9E3779B97F4A7C15
"""2⁶⁴ over the golden ratio: multiples of it are spread evenly (Knuth, volume 3, section 6.4)."""


class Sized:
    """The classes of a node, as far as sizes say about them.

    It is what a metric wants to know of a node , where `exact`.
    """

    def __init__(self, levels: Levels, radices: Sequence[int], rows: Floats, tally: Floats, key: npt.NDArray[np.intp]) -> None:
        self.levels = levels
        self._radices, self._rows, self._tally, self._key = radices, rows, tally, key

    @property
    def exact(self) -> bool:
        """Whether no two classes share a tally."""
        return bool(self._radices)

    @cached_property
    def _totals(self) -> Floats:
        """The size of the class of each state."""
        return self._tally.take(self._key)

    def lost(self, k: int) -> int:
        """Rows in classes of fewer than k; no more than there are where not exact."""
        return int(dot(self._rows, (self._totals < k).astype(np.float64)))

    @cached_property
    def squares(self) -> float:
        """Σ|E|²: each row counts what its class counts."""
        return dot(self._rows, self._totals)

    @cached_property
    def _cells(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self._tally > 0)

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each class."""
        return self._tally[self._cells].astype(np.int64)

    def codes(self, column: int, among: npt.NDArray[np.intp] | None = None) -> Ints:
        """The label of each class, or of some, in one quasi-identifier."""
        cells = self._cells if among is None else self._cells[among]
        above = int(np.prod(self._radices[column + 1 :], dtype=np.int64))
        upto = cells // above if above > 1 else cells
        # a division by one number and a product are several times as fast as a remainder
        return upto - upto // self._radices[column] * self._radices[column] if column else upto


class Sizer:
    """Sizes the classes of nodes of one problem."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._groups = _groups([labels[level] for labels, level in zip(counter.labels, counter.low, strict=True)])

    def at(self, levels: Levels, *, exact: bool = False) -> Sized:
        """The sizes of a node's classes; `exact` where that can be had, else where it costs little."""
        node = self._counter.under(levels)
        parts = [self._joint(node, place, levels[begin:end]) for place, (begin, end) in enumerate(self._groups)]
        product = 1
        for _, radix in parts:
            product *= radix
        radices: list[int] = []
        if product > _EACH * len(node) + _SURE or (product > _NEAR and not exact):
            # about eight numbers for each state at least
            key = _mixed(parts, _MIXED_BITS + (len(node) * 8 >> _MIXED_BITS).bit_length())
        else:
            radices = self._counter.radices(levels)
            joined = parts[0][0]
            for codes, radix in parts[1:]:
                joined = joined * radix + codes
            key = joined.astype(np.intp)
        tally: Floats = np.asarray(np.bincount(key, weights=node.floats, minlength=1), dtype=np.float64)
        return Sized(levels, radices, node.floats, tally, key)

    def _joint(self, node: Node, place: int, levels: Levels) -> tuple[npt.NDArray[np.int32], int]:
        """The codes of a group of columns as one number, and how many there may be."""
        found = node.joint.get((place, levels))
        if found is None:
            begin, end = self._groups[place]
            own, counter = node.levels[begin:end], self._counter
            if not counter.huge and levels != own and self._product(place, own) <= _LOOKED_UP + len(node):
                codes = self._raised(place, own, levels).take(self._joint(node, place, own)[0])
            else:
                lifted = [node.lifted(column, level) for column, level in zip(range(begin, end), levels, strict=True)]
                codes = self._as_one(place, levels, lifted)
            found = node.joint[place, levels] = (codes, self._product(place, levels))
            counter.codes += len(codes)
        return found

    def _raised(self, place: int, low: Levels, high: Levels) -> npt.NDArray[np.int32]:
        """For each number that a group of columns may have, the number that it has on higher levels."""
        counter = self._counter
        found = counter.raised.get((place, low, high))
        if found is None:
            begin, _ = self._groups[place]
            mappings = [counter.mapping(begin + at, *step) for at, step in enumerate(zip(low, high, strict=True))]
            found = counter.raised[place, low, high] = self._as_one(place, high, np.ix_(*mappings)).ravel()
            counter.codes += len(found)
        return found

    def _as_one(self, place: int, levels: Levels, codes: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
        begin, _ = self._groups[place]
        joined = codes[0]
        for column, (here, level) in enumerate(zip(codes[1:], levels[1:], strict=True), begin + 1):
            joined = joined * self._counter.labels[column][level] + here
        return joined

    def _product(self, place: int, levels: Levels) -> int:
        begin, _ = self._groups[place]
        product = 1
        for column, level in enumerate(levels, begin):
            product *= max(self._counter.labels[column][level], 1)
        return product


def _mixed(parts: Sequence[tuple[npt.NDArray[np.int32], int]], bits: int) -> npt.NDArray[np.intp]:
    """Numbers of so many bits; different codes seldom have the same."""
    key, product = parts[0][0].astype(np.uint64), parts[0][1]
    for codes, radix in parts[1:]:
        product *= radix
        if product >> 64:  # mixed once before, so that what overflows is not what told codes apart
            key *= np.uint64(_MIXER)
            key ^= key >> np.uint64(32)
        key *= np.uint64(radix)
        key += codes.astype(np.uint64)
    key *= np.uint64(_MIXER)
    key ^= key >> np.uint64(32)
    key *= np.uint64(_MIXER)
    key >>= np.uint64(64 - bits)
    return key.astype(np.intp)


def _groups(labels: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring columns whose codes together are a small number."""
    groups: list[tuple[int, int]] = []
    product = 1
    for place, count in enumerate(labels):
        product *= max(count, 1)
        if not groups or product > _LARGEST_GROUP or place - groups[-1][0] == _GROUP:
            groups.append((place, place + 1))
            product = max(count, 1)
        else:
            groups[-1] = (groups[-1][0], place + 1)
    return groups
