"""The binary tree of running sums, for ε without δ: one noisy number a step, and a sum of a few of them as the running sum.

At step t = 1, 2, 3, … one node closes: the sum of the last 2^i steps, where 2^i is the largest power of two that divides t.
The running sum at t adds the nodes of the binary digits of t (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011).

Claim: a reading is in at most `levels` published nodes, one a level, where `levels` is the number of binary digits of
`steps`. Proof: nodes of one level are disjoint, and one of level i closes within `steps` steps only if 2^i ≤ steps. The
first step is in the nodes that close at 1, 2, 4, 8, …, one of every level, so the claim is tight. ∎
"""

from typing import Any, ClassVar

import numpy as np


class BinaryTree:
    """Both sides of a tree. What is private: for each level, the exact sum of the node that is open or was closed last. What is
    public: the noisy nodes whose sum is the running sum. Of numbers, or of whole vectors at once.

    >>> tree = BinaryTree(8)
    >>> [tree.close(step, 1) for step in range(1, 9)]
    [1, 2, 1, 4, 1, 2, 1, 8]
    >>> [tree.read(step, node) for step, node in enumerate([1, 2, 1, 4, 1], 1)]
    [1, 2, 3, 4, 5]
    """

    __slots__ = ("levels", "nodes", "sums")
    changes: ClassVar[tuple[str, ...]] = ("sums", "nodes")

    def __init__(self, steps: int) -> None:
        self.levels = steps.bit_length()
        self.sums: list[Any] = [0] * self.levels
        self.nodes: list[Any] = [0] * self.levels

    def close(self, step: int, value: Any) -> Any:
        """The exact sum of the node that closes at this step."""
        return _closed(self.sums, step, sum(self.sums[: lowest(step)]) + value)

    def read(self, step: int, node: Any) -> Any:
        """The running sum, once the node of this step is published."""
        _closed(self.nodes, step, node)
        return self.sum

    @property
    def sum(self) -> Any:
        """The running sum so far."""
        return sum(self.nodes)

    def state(self) -> list[Any]:
        """All of it, as plain JSON."""
        return [[each.tolist() if isinstance(each, np.ndarray) else each for each in side] for side in (self.sums, self.nodes)]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state; one of an earlier version tells the running sum besides."""
        self.sums, self.nodes = (
            [np.array(each, dtype=object) if isinstance(each, list) else each for each in side] for side in state[:2]
        )


def _closed(levels: list[Any], step: int, node: Any) -> Any:
    """Put a node in the place of all that are below it."""
    level = lowest(step)
    levels[:level] = [0] * level
    levels[level] = node
    return node


def lowest(step: int) -> int:
    """The exponent of the largest power of two that divides a step.

    >>> [lowest(step) for step in (1, 2, 3, 8, 12)]
    [0, 1, 0, 3, 2]
    """
    return (step & -step).bit_length() - 1
