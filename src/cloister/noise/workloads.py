"""Workloads: many linear questions about one table of counts, written so that 10⁴ cells are no burden.

A *factor* is a list of linear questions about one axis. A *product* of factors, one an axis, asks every combination of their
questions; a `Workload` is a union of products. What a strategy needs of a factor is small: its Gram matrix WᵀW, and how much of
it lies in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import whole

Matrix: TypeAlias = npt.NDArray[Any]
_MOST_DENSE = 1 << 25


class Factor(Protocol):
    """Linear questions about one axis: a matrix W with a row for each question and a column for each cell."""

    @property
    def cells(self) -> int:
        """The number of columns."""

    @property
    def rows(self) -> int:
        """The number of questions."""

    def dense(self) -> Matrix:
        """W itself."""

    def part(self, first: int, last: int) -> Matrix:
        """The rows from `first` up to, not including, `last`."""

    def gram(self) -> Matrix:
        """WᵀW."""

    def apply(self, cells: Matrix) -> Matrix:
        """W · cells, along the first axis."""

    def block_energy(self, size: int) -> float:
        """Σ ‖W·1_B‖² over the blocks B of `size` consecutive cells, the last one perhaps cut short."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Any matrix of questions.

    >>> Questions([[1, 1, 0], [0, 1, 1]]).apply(np.array([5, 6, 7])).tolist()
    [11, 13]
    """

    matrix: Any

    def __post_init__(self) -> None:
        array = np.asarray(self.matrix)
        if array.ndim != 2 or array.dtype.kind not in "iuf" or array.size == 0 or not np.isfinite(array).all():
            raise InvalidParameter(
                "matrix is invalid",
                why="questions are the rows of one finite matrix",
                instead="Questions([[1, 1, 0], [0, 1, 1]])",
            )
        object.__setattr__(self, "matrix", array)

    @property
    def cells(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @property
    def rows(self) -> int:
        """The number of questions."""
        return int(self.matrix.shape[0])

    def dense(self) -> Matrix:
        """W itself."""
        return np.asarray(self.matrix)

    def part(self, first: int, last: int) -> Matrix:
        """Some rows."""
        return np.asarray(self.matrix[first:last])

    def gram(self) -> Matrix:
        """WᵀW."""
        exactly = self.matrix.astype(np.float64)
        return np.asarray(exactly.T @ exactly)

    def apply(self, cells: Matrix) -> Matrix:
        """W · cells."""
        return np.asarray(self.matrix @ cells)

    def block_energy(self, size: int) -> float:
        """Σ ‖W·1_B‖² over blocks."""
        sums = np.add.reduceat(self.matrix.astype(np.float64), np.arange(0, self.cells, size), axis=1)
        return float((sums**2).sum())


@dataclass(frozen=True)
class _Regular:
    cells: int

    def __post_init__(self) -> None:
        whole(self.cells, "cells", least=1)

    def _blocks(self, size: int) -> tuple[Matrix, Matrix]:
        starts = np.arange(0, self.cells, size, dtype=np.float64)
        return starts, np.minimum(size, self.cells - starts)

    @property
    def rows(self) -> int:
        """The number of questions: one for each cell, where nothing else is said."""
        return self.cells

    def dense(self) -> Matrix:
        """W itself."""
        if self.rows * self.cells > _MOST_DENSE:
            raise _too_many()
        return self.part(0, self.rows)

    def part(self, first: int, last: int) -> Matrix:
        """Some rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class Each(_Regular):
    """Every cell by itself: the identity.

    >>> Each(3).block_energy(2)
    3.0
    """

    def part(self, first: int, last: int) -> Matrix:
        """Rows of the identity matrix."""
        return np.eye(last - first, self.cells, first, dtype=np.int64)

    def gram(self) -> Matrix:
        """The identity matrix."""
        return np.eye(self.cells)

    def apply(self, cells: Matrix) -> Matrix:
        """The cells."""
        return cells

    def block_energy(self, size: int) -> float:
        """The number of cells."""
        return float(self.cells)


@dataclass(frozen=True)
class Total(_Regular):
    """All cells together.

    >>> Total(3).apply(np.array([1, 2, 3])).tolist()
    [6]
    """

    @property
    def rows(self) -> int:
        """One."""
        return 1

    def part(self, first: int, last: int) -> Matrix:
        """A row of ones."""
        return np.ones((last - first, self.cells), dtype=np.int64)

    def gram(self) -> Matrix:
        """A matrix of ones."""
        return np.ones((self.cells, self.cells))

    def apply(self, cells: Matrix) -> Matrix:
        """The sum."""
        return np.asarray(cells.sum(axis=0, keepdims=True))

    def block_energy(self, size: int) -> float:
        """Σ |B|²."""
        return float((self._blocks(size)[1] ** 2).sum())


@dataclass(frozen=True)
class Prefixes(_Regular):
    """All cells up to each one: the cumulative distribution.

    >>> Prefixes(3).apply(np.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """

    def part(self, first: int, last: int) -> Matrix:
        """Rows of a lower triangle of ones."""
        return np.tri(last - first, self.cells, first, dtype=np.int64)

    def gram(self) -> Matrix:
        """n − max(i, j)."""
        i = np.arange(self.cells)
        return np.asarray(self.cells - np.maximum.outer(i, i), dtype=np.float64)

    def apply(self, cells: Matrix) -> Matrix:
        """Cumulative sums."""
        return np.cumsum(cells, axis=0)

    def block_energy(self, size: int) -> float:
        """A block of s cells from a on is met by its first 1 … s cells once each, and whole by the n − a − s later prefixes."""
        a, s = self._blocks(size)
        return float((s * (s + 1) * (2 * s + 1) / 6 + s**2 * (self.cells - a - s)).sum())


@dataclass(frozen=True)
class Ranges(_Regular):
    """Every run of consecutive cells: n(n+1)/2 questions.

    >>> Ranges(2).dense().tolist()
    [[1, 0], [1, 1], [0, 1]]
    """

    @property
    def rows(self) -> int:
        """The number of questions."""
        return self.cells * (self.cells + 1) // 2

    def part(self, first: int, last: int) -> Matrix:
        """Rows by first cell, then by last."""
        if self.rows > _MOST_DENSE:
            raise _too_many()
        starts, ends = np.triu_indices(self.cells)
        place = np.arange(self.cells)
        return ((place >= starts[first:last, None]) & (place <= ends[first:last, None])).astype(np.int64)

    def gram(self) -> Matrix:
        """(min(i, j) + 1)(n − max(i, j))."""
        i = np.arange(self.cells, dtype=np.float64)
        return np.asarray((np.minimum.outer(i, i) + 1) * (self.cells - np.maximum.outer(i, i)))

    def apply(self, cells: Matrix) -> Matrix:
        """Differences of cumulative sums."""
        sums = np.concatenate([np.zeros((1, *cells.shape[1:]), dtype=cells.dtype), np.cumsum(cells, axis=0)])
        first, last = np.triu_indices(self.cells)
        return np.asarray(sums[last + 1] - sums[first])

    def block_energy(self, size: int) -> float:
        """By how ranges meet a block: over both its ends, over one, or within."""
        a, s = self._blocks(size)
        left, right = a + 1, self.cells - a - s + 1  # ways to begin at or before its first cell, to end at or after its last
        partly = (s - 1) * s * (2 * s - 1) / 6  # Σ j² for j < s
        inside = np.array(
            [float((np.arange(1, k - 1) ** 2 * (k - 1 - np.arange(1, k - 1))).sum()) for k in s.astype(int)[[0, -1]]]
        )
        within = np.where(s == s[0], inside[0], inside[1])  # runs of j cells that touch neither end: (s − 1 − j) of them
        return float((s**2 * left * right + partly * (left + right) + within).sum())


@dataclass(frozen=True)
class Workload:
    """A union of products of factors over the axes of one table.

    >>> ages_by_sex = Workload.of(Prefixes(100), Each(2)) + Workload.of(Total(100), Each(2))
    >>> ages_by_sex.shape, ages_by_sex.rows
    ((100, 2), 202)
    """

    products: tuple[tuple[Factor, ...], ...]

    def __post_init__(self) -> None:
        shapes = {tuple(factor.cells for factor in product) for product in self.products}
        if len(shapes) != 1 or () in shapes:
            raise InvalidParameter(
                "The workload is invalid",
                why="its products are about different tables",
                instead="Workload.of(Prefixes(100), Each(2))",
            )

    @classmethod
    def of(cls, *factors: Factor) -> Workload:
        """One product, a factor for each axis.

        >>> Workload.of(Each(3)).cells
        3
        """
        return cls((factors,))

    def __add__(self, other: Workload) -> Workload:
        return Workload(self.products + other.products)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each axis."""
        return tuple(factor.cells for factor in self.products[0])

    @property
    def cells(self) -> int:
        """The number of cells of the table."""
        return prod(self.shape)

    @property
    def rows(self) -> int:
        """The number of questions."""
        return sum(prod(factor.rows for factor in product) for product in self.products)

    def answers(self, cells: Matrix) -> Matrix:
        """The answers to all questions from (noisy or public) cells, in the order of products and of their questions.

        >>> Workload.of(Prefixes(2), Each(2)).answers(np.array([[1, 2], [3, 4]])).tolist()
        [1, 2, 4, 6]
        """
        table = np.asarray(cells).reshape(self.shape)
        return np.concatenate([along_axes([factor.apply for factor in product], table).ravel() for product in self.products])


def along_axes(maps: Sequence[Any], table: Matrix) -> Matrix:
    """Apply one linear map to each axis of a table.

    >>> along_axes([Total(2).apply, Each(2).apply], np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6]]
    """
    for axis, linear in enumerate(maps):
        front = np.moveaxis(table, axis, 0)
        result = linear(front.reshape(front.shape[0], -1))
        table = np.moveaxis(result.reshape(result.shape[0], *front.shape[1:]), 0, axis)
    return table


def _too_many() -> InvalidParameter:
    return InvalidParameter(
        "The questions were not written out",
        why="their matrix would not fit in memory",
        instead="Questions of the rows that matter",
    )
