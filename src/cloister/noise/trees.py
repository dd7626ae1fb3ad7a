"""Trees and wavelets over one axis of cells, as strategies of the matrix mechanism that never write their matrix out.

Blocks of equal size and their means diagonalise AᵀA for both, so least squares over 10⁴ cells costs milliseconds, and so does
the exact error.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise._checks import whole

if TYPE_CHECKING:
    from cloister.noise.workloads import Factor, Matrix

_SAFE = 1 << 62


class _Blocks:
    """What trees and wavelets share: on functions that are constant on blocks of level l and average to zero on blocks of level
    l + 1,
    AᵀA multiplies by one number λ_l. So (AᵀA)⁻¹ is a weighted sum of block means."""

    cells: int
    branching: int
    weights: tuple[int, ...]

    @property
    def height(self) -> int:
        """The number of levels above the cells."""
        return len(self.weights) - 1

    @property
    def padded(self) -> int:
        """The cells filled up to a full tree; the added ones are known to be empty."""
        return int(self.branching**self.height)

    @property
    def l1(self) -> int:
        """Every cell lies in one block of each level."""
        return sum(self.weights)

    @property
    def l2_squared(self) -> int:
        """Every cell lies in one block of each level."""
        return sum(weight * weight for weight in self.weights)

    @property
    def largest(self) -> int:
        """Every entry is 0 or plus or minus the weight of its level."""
        return max(self.weights)

    def eigenvalues(self) -> list[int]:
        """λ_l for each level l."""
        raise NotImplementedError

    def energy(self, factor: Factor) -> float:
        """‖W A⁺‖²_F by levels."""
        return float(
            sum(
                part / value
                for part, value in zip(level_energies(factor, self.branching, self.height), self.eigenvalues(), strict=True)
            )
        )

    def coefficients(self, questions: Matrix) -> Matrix:
        """W A⁺ = (A (AᵀA)⁻¹ Wᵀ)ᵀ, over the padded cells."""
        return np.asarray(self.apply(self._solve(self._pad(questions.T.astype(np.float64)))).T)

    def apply(self, cells: Matrix) -> Matrix:
        """A · cells."""
        raise NotImplementedError

    def reconstruct(self, answers: Matrix) -> Matrix:
        """The least-squares cells."""
        return self._solve(self._transposed(answers.astype(np.float64)))[: self.cells]

    def _transposed(self, answers: Matrix) -> Matrix:
        raise NotImplementedError

    def _pad(self, cells: Matrix) -> Matrix:
        missing = self.padded - len(cells)
        return np.concatenate([cells, np.zeros((missing, *cells.shape[1:]), dtype=cells.dtype)]) if missing else cells

    def _solve(self, vector: Matrix) -> Matrix:
        result = np.zeros_like(vector)
        before = 0.0
        for level, value in enumerate(self.eigenvalues()):
            size = self.branching**level
            means = vector.reshape(len(vector) // size, size, *vector.shape[1:]).mean(axis=1)
            result += np.repeat(means * (1 / value - before), size, axis=0)
            before = 1 / value
        return result

    def _level_sums(self, cells: Matrix) -> list[Matrix]:
        sums = [self._pad(roomy(cells, self.padded * max(self.weights)))]
        for _ in range(self.height):
            sums.append(sums[-1].reshape(len(sums[-1]) // self.branching, self.branching, *cells.shape[1:]).sum(axis=1))
        return sums


@dataclass(frozen=True)
class Tree(_Blocks):
    """A hierarchy: the sums of all blocks of each level, level l weighted by `weights[l]` (0: not asked); level 0 are the cells.

    With weights (1, 0, …, 0) the identity; with `branching` = cells and weights (1, 1) the cells and their total (Hay et al.
    2010; Qardaji, Yang & Li 2013 for the branching).

    >>> tree = Tree(cells=4, branching=2, weights=(1, 1, 1))
    >>> tree.apply(np.array([1, 2, 3, 4])).tolist(), tree.l1
    ([1, 2, 3, 4, 3, 7, 10], 3)
    """

    cells: int
    branching: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        check_levels(self.cells, self.branching, self.weights)

    @property
    def rows(self) -> int:
        """The number of blocks asked."""
        return sum(self.padded // self.branching**level for level, weight in enumerate(self.weights) if weight)

    def eigenvalues(self) -> list[int]:
        """Level j sees a function of level l if j ≤ l, each block with its size: λ_l = Σ_{j≤l} w_j² bʲ."""
        values, total = [], 0
        for level, weight in enumerate(self.weights):
            total += weight * weight * self.branching**level
            values.append(total)
        return values

    def apply(self, cells: Matrix) -> Matrix:
        """Weighted block sums, from the cells up."""
        return np.concatenate(
            [total * weight for total, weight in zip(self._level_sums(cells), self.weights, strict=True) if weight]
        )

    def _transposed(self, answers: Matrix) -> Matrix:
        result, first = np.zeros((self.padded, *answers.shape[1:])), 0
        for level, weight in enumerate(self.weights):
            if weight:
                count = self.padded // self.branching**level
                result += weight * np.repeat(answers[first : first + count], self.branching**level, axis=0)
                first += count
        return result


@dataclass(frozen=True)
class Wavelet(_Blocks):
    """The Haar wavelet: for each node of a binary tree its left half less its right half, and the total; `weights[l]` for
    halves of level l.

    Weights are what Privelet calls W (Xiao, Wang & Gehrke 2011); the last one is the total's.

    >>> Wavelet(cells=4, weights=(1, 1, 1)).apply(np.array([1, 2, 3, 4])).tolist()
    [-1, -1, -4, 10]
    """

    cells: int
    weights: tuple[int, ...]
    branching = 2

    def __post_init__(self) -> None:
        check_levels(self.cells, 2, self.weights)
        if 0 in self.weights:
            raise InvalidParameter(
                "weights is invalid", why="without one level the cells cannot be put together", instead="weights of 1 and more"
            )

    @property
    def rows(self) -> int:
        """As many as cells, filled up to a power of two."""
        return self.padded

    def eigenvalues(self) -> list[int]:
        """A node's question has the squared length of its block: 2^(l+1) w_l², and 2^h w_h² for the total."""
        top = self.height
        return [self.weights[level] ** 2 * 2 ** min(level + 1, top) for level in range(top + 1)]

    def apply(self, cells: Matrix) -> Matrix:
        """Weighted differences, from the cells up, then the total."""
        sums = self._level_sums(cells)
        differences = [(total[0::2] - total[1::2]) * weight for total, weight in zip(sums[:-1], self.weights[:-1], strict=True)]
        return np.concatenate([*differences, sums[-1] * self.weights[-1]])

    def _transposed(self, answers: Matrix) -> Matrix:
        first = 0
        result: Matrix = np.zeros((self.padded, *answers.shape[1:])) + self.weights[-1] * answers[-1]
        for level, weight in enumerate(self.weights[:-1]):
            count = self.padded // 2 ** (level + 1)
            signed = np.stack([answers[first : first + count], -answers[first : first + count]], axis=1).reshape(
                2 * count, *answers.shape[1:]
            )
            result += weight * np.repeat(signed, 2**level, axis=0)
            first += count
        return result


def level_energies(factor: Factor, branching: int, height: int) -> list[float]:
    """tr of WᵀW on each level: the functions constant on blocks of level l and of mean zero on those of level l + 1.

    >>> from cloister.noise.workloads import Total
    >>> level_energies(Total(4), 2, 2)
    [0.0, 0.0, 4.0]
    """
    means = [factor.block_energy(branching**level) / branching**level for level in range(height + 1)] + [0.0]
    return [max(0.0, here - above) for here, above in pairwise(means)]


def height_of(cells: int, branching: int) -> int:
    """The least h with branching^h ≥ cells.

    >>> height_of(9, 2), height_of(1, 2)
    (4, 0)
    """
    height, size = 0, 1
    while size < cells:
        height, size = height + 1, size * branching
    return height


def check_levels(cells: int, branching: int, weights: tuple[int, ...]) -> None:
    """Refuse a tree whose weights don't fit its height.

    >>> check_levels(4, 2, (1, 1, 1))
    """
    whole(cells, "cells", least=1)
    whole(branching, "branching", least=2)
    height = height_of(cells, branching)
    if (
        len(weights) != height + 1
        or not all(isinstance(item, int) and item >= 0 for item in weights)
        or weights[0] < 1
        or gcd(*weights) < 1
    ):
        raise InvalidParameter(
            f"weights={weights} is invalid",
            why=f"a tree over {cells} cells has {height + 1} levels, each with a whole weight, the cells' at least 1",
            instead=f"weights={(1,) * (height + 1)}",
        )


def roomy(cells: Matrix, factor: int) -> Matrix:
    """Integer cells in a type in which sums of that many can't overflow; floats as they are.

    >>> roomy(np.array([2**40]), 2**30).dtype
    dtype('O')
    """
    if cells.dtype.kind == "f" or cells.dtype == object or cells.size == 0:
        return cells
    largest = max(abs(int(cells.max())), abs(int(cells.min())))
    return cells.astype(object) if largest * factor >= _SAFE else cells.astype(np.int64)
