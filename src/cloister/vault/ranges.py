"""Ranges as few nodes of a binary tree, in a shape that depends on the size of the range alone.

The leaves are the positions 0 … 2^levels − 1 of a declared domain. A value is filed under its leaf and all nodes above it; a
range is looked up under nodes whose leaves are exactly the range. The fewest such nodes (best range cover) differ in number and
levels between ranges of one size, so they tell where a range lies. The uniform range cover (Kiayias, Papadopoulos, Triandopoulos,
Zacharias 2013) splits nodes until each level from 0 to the highest has one or two.

Claim: the number of nodes on each level is a function of the size R. Proof: splitting keeps Σ n_i 2^i = R, and the n_i that
remain are digits 1 or 2 without a gap: the bijective base-2 numeral of R, of which each R has one.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.errors import InvalidDeclaration
from cloister.vault.values import is_number


@dataclass(frozen=True)
class Domain:
    """Numbers from low to high, in cells as wide as step.

    >>> Domain(0, 120, 1).levels, Domain(0, 120, 1).position(43)
    (7, 43)
    """

    low: int | float
    high: int | float
    step: int | float

    def __post_init__(self) -> None:
        if not all(is_number(each) for each in (self.low, self.high, self.step)) or self.low >= self.high or self.step <= 0:
            raise InvalidDeclaration(
                "Range is invalid",
                why="its bounds are two numbers, the lower one first, and its step is above 0",
                instead="Range(0, 120)",
            )
        if self.levels > 64:
            raise InvalidDeclaration("Range is invalid", why="it has more than 2^64 steps", instead="a larger step=")

    @property
    def levels(self) -> int:
        """Levels above the leaves."""
        return self.position(self.high).bit_length()

    def position(self, value: int | float) -> int:
        """The cell of a number."""
        if isinstance(value, int) and isinstance(self.low, int) and isinstance(self.step, int):
            return (value - self.low) // self.step
        return int((Fraction(value) - Fraction(self.low)) // Fraction(self.step))

    def holds(self, value: Any) -> bool:
        """Whether a value may be filed here."""
        return is_number(value) and self.low <= value <= self.high

    def path(self, value: int | float) -> list[tuple[int, int]]:
        """The nodes from a value's leaf to the root.

        >>> Domain(0, 3, 1).path(2)
        [(0, 2), (1, 1), (2, 0)]
        """
        leaf = self.position(value)
        return [(level, leaf >> level) for level in range(self.levels + 1)]

    def cover(self, first: int | float, last: int | float) -> list[tuple[int, int]]:
        """The nodes of the cells from one bound to the other, both included; none where the range misses the domain.

        >>> Domain(0, 7, 1).cover(1, 6), Domain(0, 7, 1).cover(2, 7)
        ([(0, 1), (0, 6), (1, 1), (1, 2)], [(0, 2), (0, 3), (1, 2), (1, 3)])
        """
        if last < self.low or first > self.high or first > last:
            return []
        return uniform_cover(self.position(max(first, self.low)), self.position(min(last, self.high)))


def uniform_cover(first: int, last: int) -> list[tuple[int, int]]:
    """Nodes (level, number) whose leaves are first … last, each once, sorted."""
    nodes: list[tuple[int, int]] = []
    level = 0
    while first <= last:
        if first & 1:
            nodes.append((level, first))
            first += 1
        if first <= last and not last & 1:
            nodes.append((level, last))
            last -= 1
        first, last, level = first >> 1, last >> 1, level + 1
    while True:
        used = {level for level, _ in nodes}
        gap = next((level for level in range(max(used)) if level not in used and level + 1 in used), None)
        if gap is None:
            return sorted(nodes)
        split = max(node for node in nodes if node[0] == gap + 1)
        nodes.remove(split)
        nodes += [(gap, 2 * split[1]), (gap, 2 * split[1] + 1)]
