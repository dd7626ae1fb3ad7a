"""Which nodes of a lattice are left: a bit for each, in the order in which they are to be looked at.

What is ruled out is a cone, all nodes over one or all under one. Both are made of one row of bits for each column and level
(whether a node stands no higher in that column), so that a cone is a few passes over as many words as there are nodes / 64.
"""

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.tables import Levels

Words = npt.NDArray[np.uint64]

_WORD = 2**64 - 1


class Cones:
    """The nodes that are left.

    >>> left = Cones((2, 3), np.array([5, 4, 3, 2, 1, 0]))
    >>> left.remove_above((0, 2))
    >>> left.levels(left.next()), left.count
    ((1, 1), 4)
    >>> left.remove_below((1, 1))
    >>> left.next() is None
    True
    """

    def __init__(self, heights: Levels, order: npt.NDArray[np.intp] | None = None) -> None:
        self.heights = heights
        self.nodes = int(np.prod(heights, dtype=np.int64))
        self._order = order
        self.strides = [int(np.prod(heights[place + 1 :], dtype=np.int64)) for place in range(len(heights))]
        self._words = self._packed(np.ones(self.nodes, dtype=bool))
        self._look = self._words.data
        self._at = 0
        self._turn: npt.NDArray[np.intp] | None = None
        self._no_higher: dict[tuple[int, int], Words] = {}

    @staticmethod
    def _packed(marks: npt.NDArray[np.bool_]) -> Words:
        octets = np.packbits(marks, bitorder="little")
        return np.concatenate([octets, np.zeros(-len(octets) % 8, dtype=np.uint8)]).view(np.uint64)

    def _ordered(self, marks: npt.NDArray[np.bool_]) -> Words:
        flat = np.broadcast_to(marks, self.heights).ravel()
        return self._packed(flat if self._order is None else flat[self._order])

    def _row(self, column: int, level: int) -> Words:
        found = self._no_higher.get((column, level))
        if found is None:
            shape = [1] * len(self.heights)
            shape[column] = self.heights[column]
            marks = (np.arange(self.heights[column]) <= level).reshape(shape)
            found = self._no_higher[column, level] = self._ordered(marks)
        return found

    def remove_below(self, levels: Levels) -> None:
        """A node and all under it."""
        rows = [self._row(column, level) for column, level in enumerate(levels) if level + 1 < self.heights[column]]
        if not rows:
            self._words[:] = 0
            return
        cone = rows[0].copy()
        for row in rows[1:]:
            cone &= row
        np.invert(cone, out=cone)
        self._words &= cone

    def remove_above(self, levels: Levels) -> None:
        """A node and all over it."""
        rows = [self._row(column, level - 1) for column, level in enumerate(levels) if level]
        if not rows:
            self._words[:] = 0
            return
        others = rows[0].copy()
        for row in rows[1:]:
            others |= row
        self._words &= others

    def keep(self, marks: npt.NDArray[np.bool_]) -> None:
        """Of an array over the lattice those that are marked."""
        self._words &= self._ordered(marks)

    def place(self, levels: Levels) -> int:
        """Where a node is in the array of all."""
        return sum([level * stride for level, stride in zip(levels, self.strides, strict=True)])

    def levels(self, place: int) -> Levels:
        """The node that stands there."""
        found = []
        for stride in self.strides:
            level, place = divmod(place, stride)
            found.append(level)
        return tuple(found)

    def turn(self, place: int) -> int:
        """When a node is to be looked at."""
        if self._order is None:
            return place
        if self._turn is None:
            self._turn = np.empty(self.nodes, dtype=np.intp)
            self._turn[self._order] = np.arange(self.nodes)
        return int(self._turn[place])

    def has(self, place: int) -> bool:
        """Whether a node is left."""
        turn = self.turn(place)
        return bool(self._look[turn >> 6] >> (turn & 63) & 1)

    def remove(self, levels: Levels) -> None:
        """One node."""
        turn = self.turn(self.place(levels))
        self._look[turn >> 6] &= ~(1 << (turn & 63)) & _WORD

    def next(self) -> int | None:
        """The place of the first node in order that is left."""
        look = self._look
        while self._at < len(look):
            word = look[self._at]
            if word:
                turn = (self._at << 6) + (word & -word).bit_length() - 1
                return turn if self._order is None else int(self._order[turn])
            self._at += 1
        return None

    @property
    def count(self) -> int:
        """How many are left."""
        return int(np.bitwise_count(self._words).sum())

    def marks(self) -> npt.NDArray[np.bool_]:
        """An array over the lattice: which nodes are left."""
        bits = np.unpackbits(self._words.view(np.uint8), count=self.nodes, bitorder="little").astype(bool)
        found = bits
        if self._order is not None:
            found = np.empty_like(bits)
            found[self._order] = bits
        return found.reshape(self.heights)
