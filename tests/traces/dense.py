"""The matrices of the room written out, one row a step, by feeding one reading at a time: what structured code is compared
with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cloister.traces.square_root import Bins, SquareRoot
from cloister.traces.tree import BinaryTree


def square_root(matrix: SquareRoot) -> npt.NDArray[np.int64]:
    """C̃ of a square root."""
    found = np.zeros((matrix.steps, matrix.steps), dtype=np.int64)
    for column in range(matrix.steps):
        bins = Bins(matrix, np.int64)
        for step in range(matrix.steps):
            bins.begin_step(step)
            bins.sums[0] = int(step == column)
            found[step, column] = matrix.row(bins.sums)
    return found


def tree(steps: int) -> npt.NDArray[np.int64]:
    """The nodes of a tree."""
    found = np.zeros((steps, steps), dtype=np.int64)
    for column in range(steps):
        node = BinaryTree(steps)
        found[:, column] = [node.close(step + 1, int(step == column)) for step in range(steps)]
    return found
