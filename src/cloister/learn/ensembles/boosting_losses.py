"""The losses that boosting descends: of each row a whole-number gradient of bounded length, and how long a step may be.

Scores and gradients are whole numbers in declared steps. Exponentials are looked up in a table that was made once; everything
else is arithmetic of whole numbers. So what a row adds follows from that row and from released values alone, to the last bit, and
sums are exact in whatever order.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_FINE = 20
_HEAVY = 10.0
_STEPS = 10
_FAR = 16
_ROOM = 30


class Loss(Protocol):
    """What a round asks of a loss."""

    @property
    def unit(self) -> int:
        """What a row's shares sum to."""

    @property
    def one(self) -> int:
        """A gradient of 1."""

    @property
    def l1(self) -> int:
        """The most that the sizes of a row's gradient sum to."""

    @property
    def l2_squared(self) -> int:
        """The most that their squares sum to."""

    @property
    def curvature(self) -> float:
        """The most that the second derivative of the loss is."""

    @property
    def bits(self) -> int:
        """A score of 1 is 2^bits steps."""

    @property
    def eager(self) -> float:
        """What counts alone say, of one column, times this over the root of how many columns there are: they say it together."""

    @property
    def a_round(self) -> float:
        """Rounds² times this many people, in deviations of a count's noise: more rounds cost more than they bring (chosen by
        `benchmarks/learn_defaults.py`)."""

    @property
    def a_column(self) -> float:
        """How many people a column is worth, in deviations of a count's noise (by the same)."""

    @property
    def farthest(self) -> float:
        """The longest step of a leaf."""

    def shares(self) -> Integers:
        """What each row is counted as, before there is a model: numbers that are not negative."""

    def start(self, counts: Floats, whole: Floats, blur: Floats) -> Floats:
        """What leaves with these noisy counts say of the score, beside what all rows say; `blur` is the deviation of the noise of
        each leaf's numbers."""

    def step(self, gradients: Floats, size: Floats, blur: float) -> Floats:
        """How far leaves of this many rows go by these noisy sums of gradients; `blur` is the deviation of the noise of each."""

    def base(self, whole: Floats) -> Floats:
        """The score of everybody, from noisy counts of all rows."""

    def gradient(self, scores: Integers) -> Integers:
        """Of each row, downwards."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Logistic:
    """Two classes, one score: log-odds of the second.

    The gradient is y − p, of size at most 1. Curvature: p(1 − p) ≤ 1/4.
    """

    y: Integers
    classes: int = 2
    unit: ClassVar[int] = 1
    one: ClassVar[int] = 2**_FINE
    l1: ClassVar[int] = 2**_FINE
    l2_squared: ClassVar[int] = 4**_FINE
    curvature: ClassVar[float] = 0.25
    bits: ClassVar[int] = _STEPS
    farthest: ClassVar[float] = 4.0
    eager: ClassVar[float] = 1.3
    a_round: ClassVar[float] = 576
    a_column: ClassVar[float] = 60

    def shares(self) -> Integers:
        """One in the column of the row's class."""
        return np.asarray(self.y[:, None] == np.arange(self.classes), dtype=np.int64)

    def start(self, counts: Floats, whole: Floats, blur: Floats) -> Floats:
        """The difference of the two classes' naive Bayes terms."""
        terms = _terms(counts, whole, blur)
        return np.asarray(terms[:, 1:] - terms[:, :1])

    def base(self, whole: Floats) -> Floats:
        """Log-odds."""
        shares = _portions(whole)
        return np.asarray(np.log(shares[1:] / shares[:1]))

    def step(self, gradients: Floats, size: Floats, blur: float) -> Floats:
        """Newton's, with the largest curvature, held back as if the noise and ten people more were like all."""
        return np.asarray(gradients / (self.curvature * size + blur + _HEAVY)[:, None])

    def gradient(self, scores: Integers) -> Integers:
        """y − p, p from a table."""
        reach = _FAR * 2**_STEPS
        likely = _odds()[np.clip(scores[:, 0], -reach, reach) + reach]
        return np.asarray((self.y * self.one - likely)[:, None])


@dataclass(frozen=True, kw_only=True, eq=False)
class Softmax(Logistic):
    """Several classes, a score each.

    The gradient is e_y − p, whose numbers other than y's are at most 0 and sum to −(1 − p_y): its sizes sum to 2(1 − p_y) ≤ 2 and
    its squares to at most (1 − p_y)² + (1 − p_y)² ≤ 2. In whole steps: those of the others are rounded towards 0, and y's is what
    they sum to, so both hold for what is rounded. Curvature: the matrix of second derivatives is at most 1/2 (Böhning 1992).
    """

    classes: int
    l1: ClassVar[int] = 2 * 2**_FINE
    l2_squared: ClassVar[int] = 2 * 4**_FINE
    curvature: ClassVar[float] = 0.5

    def start(self, counts: Floats, whole: Floats, blur: Floats) -> Floats:
        """Naive Bayes terms."""
        return _terms(counts, whole, blur)

    def base(self, whole: Floats) -> Floats:
        """Logarithms of the classes' shares."""
        return np.asarray(np.log(_portions(whole)))

    def gradient(self, scores: Integers) -> Integers:
        """e_y − p; exponentials from a table, in whole numbers."""
        behind = scores.max(axis=1, keepdims=True) - scores
        weights = _exponentials()[np.minimum(behind, _FAR * 2**_STEPS)]
        found = -((weights << _FINE) // weights.sum(axis=1, keepdims=True))
        rows = np.arange(len(self.y))
        found[rows, self.y] = 0
        found[rows, self.y] = -found.sum(axis=1)
        return np.asarray(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class Squared:
    """A number between declared bounds, written as −1 to 1: the gradient is the rest y − f, clipped to ±`clip`.

    A row's shares are (1 − y)/2 and (1 + y)/2: two numbers that sum to 1, whose sums by bin tell how many rows are there and
    what their mean is, at the price of a count alone. Curvature: 1 within the clip, 0 beyond (Huber's loss).
    """

    y: Integers
    """In steps of 2⁻²⁰."""
    clip: int
    """In such steps, too."""
    unit: ClassVar[int] = 2**_FINE
    one: ClassVar[int] = 2**_FINE
    curvature: ClassVar[float] = 1.0
    bits: ClassVar[int] = _FINE
    farthest: ClassVar[float] = 2.0
    eager: ClassVar[float] = 0.9
    a_round: ClassVar[float] = 30
    a_column: ClassVar[float] = 40

    @property
    def l1(self) -> int:
        """The clip."""
        return self.clip

    @property
    def l2_squared(self) -> int:
        """Its square."""
        return self.clip**2

    def shares(self) -> Integers:
        """Whole steps of which the two sum to 2²⁰."""
        above = (self.y + self.one) >> 1
        return np.stack([self.one - above, above], axis=1)

    def start(self, counts: Floats, whole: Floats, blur: Floats) -> Floats:
        """How far the mean of a leaf lies from that of its column, as far as that is not noise."""
        size = np.maximum(counts.sum(axis=1), 1.0)
        mean = np.clip((counts[:, 1] - counts[:, 0]) / size, -1.0, 1.0)
        apart = mean - (mean * size).sum() / size.sum()
        return believed(apart, math.sqrt(2) * blur / size, size)[:, None]

    def step(self, gradients: Floats, size: Floats, blur: float) -> Floats:
        """The mean of the rest, as far as it is not noise."""
        return believed(gradients[:, 0] / size, blur / size, size)[:, None]

    def base(self, whole: Floats) -> Floats:
        """The mean of all."""
        shares = _portions(whole)
        return np.asarray(shares[1:] - shares[:1])

    def gradient(self, scores: Integers) -> Integers:
        """What is left of y, clipped."""
        return np.asarray(np.clip(self.y[:, None] - scores, -self.clip, self.clip))


def believed(found: Floats, noise: Floats, size: Floats) -> Floats:
    """Means of leaves, drawn towards 0 by as much as their spread is that of noise, as Efron & Morris (1973) do: with a signal of
    variance τ² and an error of variance v, the share τ²/(τ² + v) of what was found. τ² is what the squares exceed the errors by,
    weighted by 1/v: from noisy numbers alone. Ten people more are as if they were like all.

    >>> believed(np.array([0.3, -0.3]), np.array([0.01, 0.01]), np.array([1000.0, 1000.0])).round(2).tolist()
    [0.3, -0.3]
    >>> believed(np.array([0.3, -0.3]), np.array([0.4, 0.4]), np.array([1000.0, 1000.0])).tolist()
    [0.0, -0.0]
    """
    errors = noise**2 + 1e-15
    signal = max(float(((found**2 - errors) / errors).sum() / (1 / errors).sum()), 0.0)
    return np.asarray(found * (signal / (signal + errors)) * size / (size + _HEAVY))


def _portions(whole: Floats) -> Floats:
    """Noisy counts of all rows as shares, none of them 0."""
    counts = np.maximum(whole, 1.0)
    return np.asarray(counts / counts.sum())


def _terms(counts: Floats, whole: Floats, blur: Floats) -> Floats:
    """log P(class | leaf) − log P(class), with ten people more, and as many as the noise is, who are like all."""
    shares, room = _portions(whole), blur[:, None] + _HEAVY
    held = np.maximum(counts, 0.0)
    return np.asarray(np.log((held + room * shares) / (held.sum(axis=1, keepdims=True) + room) / shares))


@cache
def _odds() -> Integers:
    """2²⁰·p by score, from −16 to 16."""
    scores = np.arange(-_FAR * 2**_STEPS, _FAR * 2**_STEPS + 1) / 2**_STEPS
    return np.asarray(np.rint(2.0**_FINE / (1 + np.exp(-scores))), dtype=np.int64)


@cache
def _exponentials() -> Integers:
    """2³⁰·e^(−x) by x, from 0 to 16: never 0, and shifted by 20 bits still within 64."""
    return np.asarray(np.rint(2.0**_ROOM * np.exp(-np.arange(_FAR * 2**_STEPS + 1) / 2**_STEPS)), dtype=np.int64)
