"""What a metric is: how much a recoding loses; smaller is better."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded

Floats = npt.NDArray[np.float64]


class Counted(Protocol):
    """The classes of a node of the lattice, as a search counts them."""

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of each quasi-identifier."""

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Rows of each class."""

    @property
    def squares(self) -> float:
        """Σ|E|²: how many rows each row looks like, summed."""

    def codes(self, column: int, among: npt.NDArray[np.intp] | None = None) -> npt.NDArray[np.int64]:
        """The label of each class in one quasi-identifier, as a code on its level; or of some classes, by their places."""


class LatticeMetric(ABC):
    """A metric made ready for many nodes of one problem.

    `floors` and `floor` bound from below what a node scores *and everything above it*: they rest on what grows with each level,
    so a search may skip all nodes above one whose floor is no better than what it has.
    """

    by_levels: ClassVar[bool] = False
    """Whether `floors` is worth asking."""
    by_classes: ClassVar[bool] = False
    """Whether `floor` is worth asking."""

    def floors(self, axes: Sequence[npt.NDArray[np.intp]]) -> Floats:
        """The bound from levels alone: one array of levels for each column, broadcast against each other. Here nothing is known
        without counting."""
        return np.zeros(np.broadcast_shapes(*(axis.shape for axis in axes)))

    def floor(self, node: Counted) -> float:
        """The bound from the classes of a node, before anything is suppressed."""
        return -np.inf

    def most_lost(self, best: float) -> float:
        """A node that suppresses more rows than this scores no less than `best`."""
        return np.inf

    @abstractmethod
    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """What a node scores whose classes are kept or suppressed."""


class Metric(ABC):
    """A measure of loss. A subclass is a frozen dataclass."""

    name: ClassVar[str]
    monotone: ClassVar[bool] = False
    """Whether a coarser recoding of whole columns, with nothing suppressed, never scores less."""
    words: ClassVar[str] = ""
    """What it measures, for a report."""
    ranged: ClassVar[bool] = False
    """Whether it measures by the range of values, those of rows that are left out among them."""

    @abstractmethod
    def score(self, problem: Problem, recoded: Recoded) -> float:
        """How much is lost: 0 is nothing."""

    def on_lattice(self, problem: Problem) -> LatticeMetric | None:
        """The same for nodes of a lattice, where classes are enough to score one; None: each is recoded and scored."""
        return None


def rows_of(recoded: Recoded) -> tuple[float, Any]:
    """How many rows a recoding stands for, and how many each of its rows does (None: one)."""
    if recoded.weights is None:
        return float(len(recoded.suppressed)), None
    return float(recoded.weights.sum()), recoded.weights


def leaves_of(problem: Problem, name: str) -> float:
    """How many leaves the hierarchy of a column has; without one, how many values."""
    ladder = problem.ladders.get(name)
    return float(ladder.total if ladder is not None else max(len(problem.table.columns[name]), 1))


def dot(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
    """Σ left · right. Not by BLAS: on a busy machine its threads wait for one another longer than all else takes."""
    return float(np.einsum("i,i->", left, right, dtype=np.float64))
