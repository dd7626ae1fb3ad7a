"""Sums over rows of short whole-number vectors that each follow from one row and public numbers: what a descent over rows needs.

A row becomes features in [−1, 1] by its declared columns, then whole steps inside a ball, and what it adds to a gradient is
residual ⊗ row, both cut. An engine that hands rows out leaves all this to the model; one whose rows stay where they are is asked
for the sums, as part of a request (`noised.py`).

Sensitivity: `RowSums.length`, for one row more or less, whatever public numbers it is asked with. *Proof.* What a row adds
follows from that row and from the request. Of the two parts of a gradient's term the row is at most `STEPS` long and the residual
at most the cut, both in whole steps and checked as such (`_inside`): a row or residual that is longer, which exact arithmetic
would never give and only floating point or absurd numbers of a request could, counts for nothing. Lengths multiply, so the term
is at most cut · STEPS long. A count y ≤ K adds (1 − y/K, y/K) · STEPS, parts of one whole, so at most STEPS long. Rounding is
towards 0 and so adds nothing to Δ₂; rounding to the nearest would add √d/2 steps to each part. A count of a class or of a length
is one 1. Sums are exact: products of pieces of 2¹⁶ rows stay below 2⁵³. ∎
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Real

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BITS = 14
STEPS: int = 2**BITS
"""A row as whole steps: the longest row has this length."""
RESIDUAL_BITS = 12
"""A residual is a whole number of steps of 2⁻¹²."""
EDGES = 2.0 ** (-np.arange(18, -1, -1) / 3)
"""The lengths of rows that are counted, in parts of the longest."""
_INTERCEPT = 0.5
"""The constant feature, over the radius of the others."""
SHARE_OF_INTERCEPT, SHARE_OF_REST = _INTERCEPT / math.hypot(1, _INTERCEPT), 1 / math.hypot(1, _INTERCEPT)
_CHUNK = 1 << 16
COUNT = 1 << 10
"""A row that is counted is so many steps: a share of its noise is wide enough then, whatever ρ is spent."""
COUNTED = ("classes", "lengths")
STAGES = ("classes", "counts", "lengths", "level", "centre", "gradient")
_LARGEST = 2.0**30
"""Of a public number that a request may name: more would be none of a descent's."""
MOST_CLASSES = 100
MOST_COUNTED = 1000
"""A count that is learned is at most so large: residuals have steps of 2⁻¹² of the largest."""


def bounds_of(domain: Domain) -> list[tuple[float, float]]:
    """The lowest and the highest value of each feature of a column.

    >>> bounds_of(Category(["F", "M"]))
    [(0.0, 1.0), (0.0, 1.0)]
    """
    if isinstance(domain, Category):
        return [(0.0, 1.0)] * len(domain.values())
    return [tuple(float(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))]  # type: ignore[list-item]


def features_of(domain: Domain, codes: npt.NDArray[np.int64]) -> Floats:
    """A column's features from its codes: one of 0 or 1 for each value of a category, else one number; NULL becomes NaN."""
    missing = codes == domain.null_code
    if isinstance(domain, Category):
        features = (codes[:, None] == np.arange(domain.low_code, domain.low_code + len(domain.values()))).astype(np.float64)
        features[missing] = np.nan
        return np.asarray(features, dtype=np.float64)
    numbers = float(domain.origin) + codes * float(domain.step)
    return np.asarray(np.where(missing, np.nan, numbers)[:, None], dtype=np.float64)


def centred(X: Floats, low: Floats, high: Floats) -> Floats:
    """Features clipped to their bounds and mapped to [−1, 1], the middle to 0."""
    width = high - low
    return np.clip((np.clip(X, low, high) - (low + high) / 2) * (2 / np.where(width > 0, width, 1.0)), -1.0, 1.0)


def ball_rows(X: Floats, radius: float, *, share: float = 1.0) -> Integers:
    """Rows cut to a length of at most `radius`, as whole steps of which the radius has `share` · STEPS; never longer than that.

    Cut towards 0, after a scaling that leaves a margin of 2⁻⁴⁰: so neither rounding nor floating point can lengthen a row.

    >>> ball_rows(np.array([[3.0, 4.0], [0.5, 0.0]]), 1.0).tolist()
    [[9830, 13107], [8191, 0]]
    """
    lengths = np.sqrt((X**2).sum(axis=1, keepdims=True))
    factors = share * (1 - 2.0**-40) / np.maximum(lengths, radius)
    return np.asarray(np.trunc(X * factors * STEPS), dtype=np.int64)


def counted_lengths(X: Floats) -> Integers:
    """How many rows are of each of the lengths of `EDGES`."""
    lengths = np.sqrt((X**2).sum(axis=1)) / (math.sqrt(X.shape[1]) * 2)
    places = np.minimum(np.searchsorted(EDGES, lengths), len(EDGES) - 1)
    return np.bincount(places, minlength=len(EDGES)).astype(np.int64)


def levels(X: Floats) -> Floats:
    """The mean of each row's features, at the length that a row of equal features has."""
    return np.asarray(X.sum(axis=1, keepdims=True) / math.sqrt(X.shape[1]))


def exact_scores(rows: Floats, weights: Floats, fine: int) -> Floats:
    """Exact scores of weights that are rounded to 2⁻¹⁶, and cut where a score would no longer be an exact float."""
    steps = np.clip(np.rint(weights * 2.0**16), -(2.0**fine), 2.0**fine)
    return np.asarray(rows @ steps / (STEPS * 2.0**16))


def fine_bits(dimension: int) -> int:
    """How many bits a weight may have for scores of so many features to be exact floats."""
    return 52 - BITS - math.ceil(math.log2(dimension))


def cut(residuals: Floats, clip: float) -> Integers:
    """Residuals at most `clip` long, in steps, cut towards 0.

    >>> cut(np.array([[0.6, -0.8]]), 0.5).tolist()
    [[1228, -1638]]
    """
    lengths = np.sqrt((residuals**2).sum(axis=1, keepdims=True))
    factors = np.where(lengths > clip, clip / np.maximum(lengths, 1e-300), 1.0) * (1 - 2.0**-40)
    return np.asarray(np.trunc(residuals * factors * 2.0**RESIDUAL_BITS), dtype=np.int64)


def longest_residual(clip: float) -> int:
    """The length of the longest residual that is cut to `clip`, in steps."""
    return math.ceil(clip * 2.0**RESIDUAL_BITS)


def gradient_sum(rows: Floats, residuals: Integers) -> Integers:
    """Σ row ⊗ residual, exactly: in float64 products of pieces, which stay below 2⁵³."""
    total = np.zeros((rows.shape[1], residuals.shape[1]), dtype=np.int64)
    for first in range(0, len(rows), _CHUNK):
        part = slice(first, first + _CHUNK)
        total += np.rint(rows[part].T @ residuals[part].astype(np.float64)).astype(np.int64)
    return total


def logistic_residuals(scores: Floats, classes: Integers, slope: float) -> Floats:
    """p − y of two classes, cut at the slope.

    >>> logistic_residuals(np.array([[0.0]]), np.array([1]), 1.0).tolist()
    [[-0.5]]
    """
    signs = 2.0 * classes - 1.0
    wrong = 1 / (1 + np.exp(np.clip(signs * scores[:, 0], -700, 700)))
    return np.asarray(-signs * np.minimum(wrong, slope))[:, None]


def poisson_residuals(scores: Floats, counts: npt.NDArray[Any], highest: float) -> Floats:
    """e^s − y, over the highest count, which is also the highest rate: within ±1.

    >>> poisson_residuals(np.array([[0.0], [99.0]]), np.array([3, 0]), 4).tolist()
    [[-0.5], [1.0]]
    """
    rates = np.minimum(np.exp(np.minimum(scores, math.log(highest))), highest)
    return np.asarray((rates - counts[:, None]) / highest)


def softmax_residuals(scores: Floats, classes: Integers) -> Floats:
    """p − e of the own class."""
    p = softmax(scores)
    p[np.arange(len(classes)), classes] -= 1
    return p


def softmax(scores: Floats) -> Floats:
    """Scores as probabilities, a row for each person.

    >>> softmax(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What is learned by all sums of one descent: what an owner is asked about, once.

    >>> Fit(features=(("age", 1), ("sex", 2)), target="income", classes=2, slope=0.7, most=Fraction(1, 2)).dimension
    4
    """

    features: tuple[tuple[str, int], ...]
    """Columns, and how many numbers each of them is."""
    target: str
    classes: int
    slope: float
    """Where the residual of two classes is cut."""
    most: Fraction
    """All sums together cost a person at most this ρ."""
    highest: float = 0.0
    """What a count is at most, where counts are learned (and `classes` is 1); 0 where classes are."""

    @property
    def dimension(self) -> int:
        """Features, and the constant one of the intercept."""
        return sum(size for _, size in self.features) + 1

    @property
    def first(self) -> str:
        """What is asked first."""
        return "counts" if self.highest else "classes"

    @property
    def columns(self) -> int:
        """Scores of a row."""
        return 1 if self.classes == 2 else self.classes

    @classmethod
    def of(cls, columns: Mapping[str, Domain], features: tuple[str, ...], target: str, *, slope: float, most: Fraction) -> Fit:
        """Of declared columns."""
        domain = columns[target]
        sizes = tuple((name, len(bounds_of(columns[name]))) for name in features)
        return cls(features=sizes, target=target, classes=classes_in(domain), slope=slope, most=most)

    def plain(self) -> Any:
        """As plain data."""
        told = {"features": [list(each) for each in self.features], "target": self.target, "classes": self.classes}
        counts = {"highest": self.highest} if self.highest else {}
        return {**told, "slope": self.slope, "most": str(self.most), **counts}

    def why_not(self, columns: Mapping[str, Domain]) -> str:
        """Why it is none of a table with these columns; nothing where it is one."""
        names = [name for name, _ in self.features]
        for name in [*names, self.target]:
            if name not in columns:
                return "it is about a column that is not declared"
        if not names or len({*names, self.target}) <= len(names):
            return "its features are not different columns, or the target is among them"
        for name, size in self.features:
            domain = columns[name]
            if not isinstance(domain, Integer | Real | Category | Date | Boolean) or size != len(bounds_of(domain)):
                return f"the column {name!r} is not {size} numbers"
        domain = columns[self.target]
        if self.highest:
            whole = isinstance(domain, Integer | Boolean) and 0 <= domain.low_code < domain.high_code == self.highest
            if not whole or self.classes != 1 or self.highest > MOST_COUNTED:
                return f"the column {self.target!r} holds no counts up to {self.highest:g}"
        elif not isinstance(domain, Integer | Category | Boolean | Date | Real) or self.classes != classes_in(domain):
            return f"the column {self.target!r} has not {self.classes} classes"
        if not (self.highest or 2 <= self.classes <= MOST_CLASSES) or not 0 < self.slope <= 1 or not self.most > 0:
            return "its classes, slope or cost are none of a descent"
        return ""


def classes_in(domain: Domain) -> int:
    """How many values a target may have."""
    return domain.high_code - domain.low_code + 1


@dataclass(frozen=True, kw_only=True)
class RowSums:
    """One sum of a descent. It is of rows by class or length, counts, their level or centre, or terms of a gradient."""

    fit: Fit
    stage: str
    centre: tuple[float, ...] = ()
    radius: float = 0.0
    weights: tuple[float, ...] = ()
    """Of the features, then of the constant, each for all scores."""
    clip: float = 0.0
    step: int = 0
    steps: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers."""
        if self.stage == "gradient":
            return self.fit.dimension, self.fit.columns
        sizes = {"classes": self.fit.classes, "counts": 2, "lengths": len(EDGES), "level": 1, "centre": self.fit.dimension - 1}
        return (sizes[self.stage],)

    @property
    def length(self) -> int:
        """How far one row moves the numbers, in L2: the theorem at the top."""
        if self.stage == "gradient":
            return longest_residual(self.clip) * STEPS
        return COUNT if self.stage in COUNTED else STEPS

    def exact(self, rows: FeatureRows) -> Integers:
        """The exact sum over these rows."""
        with np.errstate(all="ignore"):  # an overflow may say something about a row
            return self._exact(rows)

    def _exact(self, rows: FeatureRows) -> Integers:
        if self.stage == "classes":
            return np.bincount(rows.y, minlength=self.fit.classes)[: self.fit.classes].astype(np.int64) * COUNT
        if self.stage == "counts":
            part = np.clip(rows.y, 0, self.fit.highest) / self.fit.highest
            return np.asarray(_inside(np.trunc(np.stack([1 - part, part], axis=1) * STEPS).astype(np.int64), STEPS).sum(axis=0))
        if self.stage == "lengths":
            return counted_lengths(rows.X - np.asarray(self.centre) if self.centre else rows.X) * COUNT
        if self.stage in ("level", "centre"):
            seen = levels(rows.X) if self.stage == "level" else rows.X
            return np.asarray(_inside(ball_rows(seen, self.radius), STEPS).sum(axis=0))
        ready = rows.ready(self.centre, self.radius)
        weights = np.asarray(self.weights).reshape(self.shape)
        scores = exact_scores(ready, weights, fine_bits(self.fit.dimension))
        if self.fit.highest:
            residuals = poisson_residuals(scores, rows.y, self.fit.highest)
        elif self.fit.classes == 2:
            residuals = logistic_residuals(scores, rows.y, self.fit.slope)
        else:
            residuals = softmax_residuals(scores, rows.y)
        return gradient_sum(ready, _inside(cut(residuals, self.clip), longest_residual(self.clip)))

    def plain(self) -> Any:
        """As plain data."""
        told: dict[str, Any] = {"map": "row sums", "fit": self.fit.plain(), "stage": self.stage}
        told |= {"centre": list(self.centre), "radius": self.radius, "weights": list(self.weights), "clip": self.clip}
        return {**told, "step": self.step, "steps": self.steps}

    def why_not(self, columns: Mapping[str, Domain]) -> str:
        """Why a table with these columns has no such sum over rows; empty where it has."""
        if self.stage not in STAGES:
            return f"it has no stage {self.stage!r}"
        why = self.fit.why_not(columns)
        if why:
            return why
        numbers = [*self.centre, *self.weights, self.radius, self.clip]
        if any(type(each) is not float or not abs(each) <= _LARGEST for each in numbers):
            return "a public number of it is none, or too large"
        features, gradient = self.fit.dimension - 1, self.stage == "gradient"
        if (self.stage in ("classes", "counts")) != (self.stage == self.fit.first):
            return "it asks for classes where counts are learned, or for counts where classes are"
        sizes = {"lengths": (0, features), "gradient": (features,)}
        if len(self.centre) not in sizes.get(self.stage, (0,)):
            return "its centre has another size than a row"
        if len(self.weights) != (self.fit.dimension * self.fit.columns if gradient else 0):
            return "its weights have another size than a row's scores"
        if (self.radius > 0) != (self.stage in ("level", "centre", "gradient")) or self.radius < 0:
            return "its radius is not one"
        if not (0 < self.clip <= 2 if gradient else self.clip == 0):
            return "its residuals are not cut"
        if not (1 <= self.step <= self.steps <= _MOST_STEPS if gradient else self.step == self.steps == 0):
            return f"it is no step of at most {_MOST_STEPS:,}"
        return ""


_MOST_STEPS = 1000


@dataclass(eq=False)
class FeatureRows:
    """Rows as features in [−1, 1], and the number of their class or their count; those with a missing value are not in it."""

    X: Floats
    y: npt.NDArray[Any]
    _ready: tuple[tuple[tuple[float, ...], float], Floats] | None = field(default=None, init=False)

    @classmethod
    def of(cls, fit: Fit, columns: Mapping[str, Domain], rows: Mapping[str, npt.NDArray[Any]]) -> FeatureRows:
        """From a table's codes.

        >>> columns = {"age": Integer(17, 90), "sick": Boolean()}
        >>> fit = Fit.of(columns, ("age",), "sick", slope=1.0, most=Fraction(1))
        >>> found = FeatureRows.of(fit, columns, {"age": np.array([17, 90]), "sick": np.array([1, 0])})
        >>> found.X.tolist(), found.y.tolist()
        ([[-1.0], [1.0]], [1, 0])
        """
        domains = [columns[name] for name, _ in fit.features]
        names = [name for name, _ in fit.features]
        X = np.concatenate(
            [features_of(domain, np.asarray(rows[name])) for name, domain in zip(names, domains, strict=True)], axis=1
        )
        pairs = np.asarray([pair for domain in domains for pair in bounds_of(domain)])
        target, codes = columns[fit.target], np.asarray(rows[fit.target])
        kept = ~np.isnan(X).any(axis=1) & (codes != target.null_code)
        first = 0 if fit.highest else target.low_code
        return cls(centred(X[kept], pairs[:, 0], pairs[:, 1]), (codes - first)[kept].astype(np.int64))

    def ready(self, centre: tuple[float, ...], radius: float) -> Floats:
        """Whole steps in the unit ball, with the constant: the same for all steps of a descent, and so kept."""
        if self._ready is None or self._ready[0] != (centre, radius):
            rows = ball_rows(self.X - np.asarray(centre), radius, share=SHARE_OF_REST)
            constant = np.full((len(rows), 1), math.floor(STEPS * SHARE_OF_INTERCEPT), dtype=np.int64)
            self._ready = (centre, radius), _inside(np.concatenate([rows, constant], axis=1), STEPS).astype(np.float64)
        return self._ready[1]


def _inside(vectors: Integers, length: int) -> Integers:
    """The vectors that are no longer than that, and nothing in place of others: exact, as their squares are below 2⁵³."""
    too_long = (vectors.astype(np.float64) ** 2).sum(axis=1) > float(length) ** 2
    return np.where(too_long[:, None], 0, vectors)
