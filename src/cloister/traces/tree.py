"""The binary tree of running sums, for ε without δ: one noisy number a step, and a sum of a few of them as the running sum.

At step t = 1, 2, 3, … one node closes: the sum of the last 2^i steps, where 2^i is the largest power of two that divides t.
The running sum at t adds the nodes of the binary digits of t (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011).

Claim: a reading is in at most `levels` published nodes, one a level, where `levels` is the number of binary digits of
`steps`. Proof: nodes of one level are disjoint, and one of level i closes within `steps` steps only if 2^i ≤ steps. The
first step is in the nodes that close at 1, 2, 4, 8, …, one of every level, so the claim is tight. ∎
"""

from __future__ import annotations

from typing import ClassVar


class BinaryTree:
    """What is private of a tree: for each level, the exact sum of the node that is open or was closed last.

    >>> tree = BinaryTree(8)
    >>> [tree.close(step, 1) for step in range(1, 9)]
    [1, 2, 1, 4, 1, 2, 1, 8]
    """

    __slots__ = ("levels", "sums")
    changes: ClassVar[tuple[str, ...]] = ("sums",)

    def __init__(self, steps: int) -> None:
        self.levels = steps.bit_length()
        self.sums = [0] * self.levels

    def close(self, step: int, value: int) -> int:
        """The exact sum of the node that closes at this step."""
        level = lowest(step)
        total = sum(self.sums[:level]) + value
        self.sums[:level] = [0] * level
        self.sums[level] = total
        return total


class TreeReader:
    """What is public of a tree: the noisy nodes whose sum is the running sum.

    >>> reader = TreeReader(8)
    >>> [reader.read(step, node) for step, node in enumerate([1, 2, 1, 4, 1], 1)]
    [1, 2, 3, 4, 5]
    """

    __slots__ = ("nodes",)
    changes: ClassVar[tuple[str, ...]] = ("nodes",)

    def __init__(self, steps: int) -> None:
        self.nodes = [0] * steps.bit_length()

    def read(self, step: int, node: int) -> int:
        """The running sum, once the node of this step is published."""
        level = lowest(step)
        self.nodes[:level] = [0] * level
        self.nodes[level] = node
        return sum(self.nodes)


def lowest(step: int) -> int:
    """The exponent of the largest power of two that divides a step.

    >>> [lowest(step) for step in (1, 2, 3, 8, 12)]
    [0, 1, 0, 3, 2]
    """
    return (step & -step).bit_length() - 1
