"""Strategies of the matrix mechanism: which questions to ask with noise, such that the wanted ones can be put together from the
answers.

A strategy is an integer matrix A of full column rank. Its sensitivities are exact; its answers to integer cells are exact
integers; least squares with (AᵀA)⁻¹Aᵀ is post-processing. The structured ones never write A out: blocks of equal size and their
means diagonalise AᵀA for trees and wavelets alike, so 10⁴ cells cost milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.trees import Tree, Wavelet, roomy
from cloister.noise.workloads import Factor, Matrix, along_axes

__all__ = ["Product", "Strategy", "Tree", "Wavelet", "Written"]

_CHUNK = 1 << 22


class Strategy(Protocol):
    """What the matrix mechanism asks of a strategy A; arrays are handled along their first axis."""

    @property
    def cells(self) -> int:
        """The number of columns of A."""

    @property
    def rows(self) -> int:
        """The number of questions asked."""

    @property
    def l1(self) -> int:
        """The largest sum of absolute values of a column: how far one unit in one cell moves the answers, in L1."""

    @property
    def l2_squared(self) -> int:
        """The largest sum of squares of a column."""

    @property
    def largest(self) -> int:
        """The largest absolute value of an entry."""

    def apply(self, cells: Matrix) -> Matrix:
        """A · cells, exact for integers."""

    def reconstruct(self, answers: Matrix) -> Matrix:
        """The least-squares cells, (AᵀA)⁻¹Aᵀ · answers."""

    def energy(self, factor: Factor) -> float:
        """‖W A⁺‖²_F: the sum of the variances of all questions of a factor, for noise of variance 1."""

    def coefficients(self, questions: Matrix) -> Matrix:
        """W A⁺ for some questions, a row each: with what weights the noises add up."""


@dataclass(frozen=True, eq=False)
class Written:
    """Any integer matrix of full column rank, written out: what the gradient search finds, rounded to a grid.

    >>> Written([[1, 0], [0, 1], [1, 1]]).l1
    2
    """

    matrix: Any

    def __post_init__(self) -> None:
        array = np.asarray(self.matrix)
        if array.ndim != 2 or array.dtype.kind != "i" or not 0 < array.shape[1] <= array.shape[0]:
            raise InvalidParameter(
                "matrix is invalid",
                why="a strategy is an integer matrix of full column rank",
                instead="Written([[1, 0], [0, 1]])",
            )
        if np.linalg.matrix_rank(array.astype(np.float64)) < array.shape[1]:
            raise InvalidParameter(
                "matrix is invalid", why="its columns are not independent", instead="Written([[1, 0], [0, 1]])"
            )
        object.__setattr__(self, "matrix", array.astype(np.int64))

    @property
    def cells(self) -> int:
        """The number of columns of A."""
        return int(self.matrix.shape[1])

    @property
    def rows(self) -> int:
        """The number of questions asked."""
        return int(self.matrix.shape[0])

    @cached_property
    def l1(self) -> int:
        """The largest sum of absolute values of a column."""
        columns: list[list[int]] = self.matrix.T.tolist()
        return max(sum(abs(item) for item in column) for column in columns)

    @cached_property
    def l2_squared(self) -> int:
        """The largest sum of squares of a column."""
        columns: list[list[int]] = self.matrix.T.tolist()
        return max(sum(item * item for item in column) for column in columns)

    @cached_property
    def largest(self) -> int:
        """The largest absolute value of an entry."""
        return max(int(self.matrix.max()), -int(self.matrix.min()))

    @cached_property
    def _longest(self) -> int:
        """The largest sum of absolute values of a row, in Python's integers: a sum that wrapped would let answers wrap."""
        rows: list[list[int]] = self.matrix.tolist()
        return max(sum(abs(item) for item in row) for row in rows)

    @cached_property
    def _inverse(self) -> Matrix:
        return np.asarray(np.linalg.pinv(self.matrix.astype(np.float64)))

    def apply(self, cells: Matrix) -> Matrix:
        """A · cells."""
        room = roomy(cells, self._longest)
        return np.asarray(self.matrix.astype(room.dtype) @ room)

    def reconstruct(self, answers: Matrix) -> Matrix:
        """The least-squares cells."""
        return np.asarray(self._inverse @ answers.astype(np.float64))

    def energy(self, factor: Factor) -> float:
        """‖W A⁺‖²_F."""
        return float(np.einsum("ij,ij->", self._inverse @ self._inverse.T, factor.gram()))

    def coefficients(self, questions: Matrix) -> Matrix:
        """W A⁺."""
        return np.asarray(questions @ self._inverse)


@dataclass(frozen=True)
class Product:
    """A strategy for each axis, and every combination of their questions: the Kronecker product. Sensitivities multiply.

    >>> Product((Tree(3, 3, (1, 1)), Tree(2, 2, (1, 1)))).l1
    4
    """

    factors: tuple[Strategy, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each axis."""
        return tuple(factor.cells for factor in self.factors)

    @property
    def l1(self) -> int:
        """The product of the axes' L1 sensitivities."""
        return prod(factor.l1 for factor in self.factors)

    @property
    def l2_squared(self) -> int:
        """The product of the axes' squared L2 sensitivities."""
        return prod(factor.l2_squared for factor in self.factors)

    @property
    def largest(self) -> int:
        """The product of the axes' largest entries."""
        return prod(factor.largest for factor in self.factors)

    @property
    def rows(self) -> int:
        """The number of questions asked."""
        return prod(factor.rows for factor in self.factors)

    def apply(self, cells: Matrix) -> Matrix:
        """The answers to exact cells, as a table with an axis for each factor's questions."""
        return along_axes([factor.apply for factor in self.factors], cells.reshape(self.shape))

    def reconstruct(self, answers: Matrix) -> Matrix:
        """The least-squares table."""
        return along_axes([factor.reconstruct for factor in self.factors], answers)

    def energy(self, product: Sequence[Factor]) -> float:
        """‖W A⁺‖²_F of a product of questions: the product of the axes' own."""
        return prod(mine.energy(factor) for mine, factor in zip(self.factors, product, strict=True))

    def moments(self, product: Sequence[Factor]) -> tuple[Matrix, Matrix]:
        """For each question Σc² and Σc⁴ over its weights c on the noises; for products both multiply."""
        second, fourth = np.ones(1), np.ones(1)
        for mine, factor in zip(self.factors, product, strict=True):
            squares, quads = [], []
            step = max(1, _CHUNK // mine.rows)
            for first in range(0, factor.rows, step):
                weights = mine.coefficients(factor.part(first, min(factor.rows, first + step)).astype(np.float64))
                squares.append((weights**2).sum(axis=1))
                quads.append((weights**4).sum(axis=1))
            second = np.outer(second, np.concatenate(squares)).ravel()
            fourth = np.outer(fourth, np.concatenate(quads)).ravel()
        return second, fourth
