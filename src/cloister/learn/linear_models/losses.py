"""Losses of linear scores: their residuals, how much of one person they let through, and how curved they are.

A linear model has one score for each column: a single one for two classes or a count, and one for each class otherwise. What a
person adds to a gradient is residual ⊗ features, so what a mechanism must know of a loss is how long a residual can be; what it
must know for the objective's Jacobian is the trace of the second derivative by the scores.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from cloister.tables.engines.row_sums import logistic_residuals, poisson_residuals, softmax, softmax_residuals

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Loss(Protocol):
    """A convex loss of scores, with a continuous first derivative."""

    @property
    def columns(self) -> int:
        """How many scores a person has."""

    @property
    def separate(self) -> bool:
        """Whether no column's slope depends on another column's score."""

    @property
    def reach(self) -> float:
        """The most that the sizes of one person's residuals can sum to."""

    @property
    def length(self) -> float:
        """The largest Euclidean length of one person's residuals."""

    @property
    def trace(self) -> float:
        """The largest trace of the second derivative by one person's scores."""

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of it."""

    def value(self, scores: Floats, classes: Integers) -> float:
        """The sum over people."""

    def residuals(self, scores: Floats, classes: Integers) -> Floats:
        """The derivative by the scores, a row for each person."""

    def bent(self, scores: Floats, classes: Integers, directions: Floats) -> Floats:
        """The second derivative times directions, a row for each person."""


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """log(1 + e^m) of the negative margin m, for two classes; its slope stops growing at `slope`, from where on it is a line.

    A slope below 1 lets less of one person through: the sensitivity of a gradient falls by as much, and only people far on the
    wrong side count less.

    >>> Logistic(slope=0.5).residuals(np.array([[5.0], [-5.0]]), np.array([0, 0])).round(3).ravel().tolist()
    [0.5, 0.007]
    """

    slope: float = 1.0
    columns: ClassVar[int] = 1
    separate: ClassVar[bool] = True
    trace: ClassVar[float] = 0.25
    """p(1 − p) is at most a quarter."""
    curvature: ClassVar[float] = 0.25

    @property
    def reach(self) -> float:
        """The slope."""
        return self.slope

    @property
    def length(self) -> float:
        """The slope."""
        return self.slope

    def value(self, scores: Floats, classes: Integers) -> float:
        """The sum over people."""
        wrong = -_signs(classes) * scores[:, 0]
        bend = math.log(self.slope / (1 - self.slope)) if self.slope < 1 else math.inf
        near = np.minimum(wrong, bend)
        return float((np.logaddexp(0, near) + self.slope * (wrong - near)).sum())

    def residuals(self, scores: Floats, classes: Integers) -> Floats:
        """p − y, cut at the slope."""
        return logistic_residuals(scores, classes, self.slope)

    def bent(self, scores: Floats, classes: Integers, directions: Floats) -> Floats:
        """p(1 − p) where the slope still grows."""
        p = 1 / (1 + np.exp(np.clip(_signs(classes) * scores[:, 0], -700, 700)))
        return np.asarray(np.where(p < self.slope, p * (1 - p), 0.0)[:, None] * directions)


@dataclass(frozen=True, kw_only=True)
class Softmax:
    """The multinomial logistic loss, one score a class.

    >>> Softmax(classes=3).residuals(np.zeros((1, 3)), np.array([1])).round(2).tolist()
    [[0.33, -0.67, 0.33]]
    """

    classes: int
    separate: ClassVar[bool] = False
    """Shares sum to 1."""
    reach: ClassVar[float] = 2.0
    """Σ|p − e| = 2(1 − p) at the own class."""
    length: ClassVar[float] = math.sqrt(2)
    """‖p − e‖ is at most √2."""
    curvature: ClassVar[float] = 0.5
    """The eigenvalues of diag(p) − ppᵀ are at most a half (Böhning 1992)."""

    @property
    def columns(self) -> int:
        """One a class."""
        return self.classes

    @property
    def trace(self) -> float:
        """Σp(1 − p) is at most 1 − 1/k."""
        return 1 - 1 / self.classes

    def value(self, scores: Floats, classes: Integers) -> float:
        """The sum over people."""
        top = scores.max(axis=1)
        own = scores[np.arange(len(classes)), classes]
        return float((np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - own).sum())

    def residuals(self, scores: Floats, classes: Integers) -> Floats:
        """p − e of the own class."""
        return softmax_residuals(scores, classes)

    def bent(self, scores: Floats, classes: Integers, directions: Floats) -> Floats:
        """(diag(p) − ppᵀ) times each direction."""
        p = softmax(scores)
        return np.asarray(p * (directions - (p * directions).sum(axis=1, keepdims=True)))


@dataclass(frozen=True, kw_only=True)
class HuberHinge:
    """The hinge loss with its corner rounded over ±`width` (Chaudhuri, Monteleoni & Sarwate 2011, section 3.4.2).

    0 beyond a margin of 1 + h, 1 − z before 1 − h, (1 + h − z)²/4h between. Several classes: each against the rest, k scores.

    >>> HuberHinge(classes=2).residuals(np.array([[2.0], [1.0], [-1.0]]), np.array([1, 1, 1])).ravel().tolist()
    [-0.0, -0.5, -1.0]
    """

    classes: int
    width: float = 0.5
    separate: ClassVar[bool] = True
    """Each against the rest."""

    @property
    def columns(self) -> int:
        """One for two classes, else one a class."""
        return 1 if self.classes == 2 else self.classes

    @property
    def reach(self) -> float:
        """At most 1 a column."""
        return float(self.columns)

    @property
    def length(self) -> float:
        """At most 1 a column."""
        return math.sqrt(self.columns)

    @property
    def trace(self) -> float:
        """1/2h a column."""
        return self.columns * self.curvature

    @property
    def curvature(self) -> float:
        """1/2h."""
        return 1 / (2 * self.width)

    def value(self, scores: Floats, classes: Integers) -> float:
        """The sum over people and columns."""
        missing = np.clip(1 + self.width - self._margins(scores, classes), 0, None)
        near = np.minimum(missing, 2 * self.width)
        return float((near**2 / (4 * self.width) + (missing - near)).sum())

    def residuals(self, scores: Floats, classes: Integers) -> Floats:
        """Minus the sign where the margin is short, rising linearly over the rounded corner."""
        missing = 1 + self.width - self._margins(scores, classes)
        return np.asarray(-self._sides(classes) * np.clip(missing / (2 * self.width), 0, 1))

    def bent(self, scores: Floats, classes: Integers, directions: Floats) -> Floats:
        """1/2h within the rounded corner."""
        return np.asarray(np.where(np.abs(1 - self._margins(scores, classes)) < self.width, self.curvature, 0.0) * directions)

    def _sides(self, classes: Integers) -> Floats:
        if self.columns == 1:
            return _signs(classes)[:, None]
        return np.asarray(2.0 * (classes[:, None] == np.arange(self.classes)) - 1.0)

    def _margins(self, scores: Floats, classes: Integers) -> Floats:
        return np.asarray(self._sides(classes) * scores)


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """(e^s − ys)/K of a count y up to K with the rate e^s; from the rate K on it is a line, so that no residual is above 1."""

    highest: float
    curvature: float = 1.0
    """At the rate K; a mean rate over K is what the second derivative is on average."""
    columns: int = 1
    separate: bool = True
    reach: float = 1.0
    length: float = 1.0
    trace: float = 1.0

    def value(self, scores: Floats, classes: Integers) -> float:
        """The sum over people."""
        near = np.minimum(scores[:, 0], math.log(self.highest))
        return float(((np.exp(near) - classes * scores[:, 0]) / self.highest + scores[:, 0] - near).sum())

    def residuals(self, scores: Floats, classes: Integers) -> Floats:
        """(e^s − y)/K, with e^s cut at K."""
        return poisson_residuals(scores, classes, self.highest)

    def bent(self, scores: Floats, classes: Integers, directions: Floats) -> Floats:
        """e^s/K where the rate still grows."""
        top = math.log(self.highest)
        return np.asarray(np.where(scores < top, np.exp(np.minimum(scores, top)) / self.highest, 0.0) * directions)


def _signs(classes: Integers) -> Floats:
    return np.asarray(2.0 * classes - 1.0)
