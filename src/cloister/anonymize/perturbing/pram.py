"""PRAM, the post-randomisation method: each record's category is drawn again, with probabilities that the analyst knows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns
from cloister.anonymize.perturbing.noise.laws import uniforms
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random
from cloister.noise.mechanism import check_confidence
from cloister.privacy.rational import Exact

Floats = npt.NDArray[np.float64]

MISSING = ("refuse", "keep", "value")

_STEP = 2.0**-52
"""A draw has 53 bits, and a sum of probabilities is right to about as many: no probability is drawn more finely than that."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Frequencies:
    """Estimated counts of the original categories, in the order of `values`."""

    values: tuple[Any, ...]
    counts: Floats
    covariance: Floats

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """Half-widths of the intervals of the counts in the table before PRAM, each by itself, by the normal law."""
        z = NormalDist().inv_cdf(0.5 + float(check_confidence(confidence)) / 2)
        return np.asarray(z * np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Postrandomized:
    """A table after PRAM, and the channel that it went through."""

    frame: Any
    column: str
    values: tuple[Any, ...]
    matrix: Floats
    """Row: the old category, column: the new one."""
    epsilon: float
    """ln of the largest ratio within a column of the matrix: how much better a report can tell two old categories apart. It is
    the ε of local differential privacy where the matrix was given; not where it was made from the table's own frequencies, and
    infinite where missing values are kept: who has none is seen. Draws
    have 53 bits: what a probability may be off by is counted in, and one below 10⁻¹⁵ counts as none."""
    looked_up: bool
    """Whether the matrix was made from the table's own frequencies."""
    invariant: bool

    def estimate(self) -> Frequencies:
        """The counts before PRAM, estimated from this table.

        With an invariant matrix the new counts are themselves unbiased; else the matrix is inverted.
        """
        columns = Columns.of(self.frame)
        coded = columns.coded(self.column, apart=True)
        counts = dict(zip(coded.values, coded.counts.tolist(), strict=True))
        seen = np.array([counts.get(value, 0) for value in self.values], dtype=np.float64)
        return estimate_frequencies(seen, self.matrix, values=self.values, invariant=self.invariant)


@dataclass(frozen=True, kw_only=True)
class PRAM:
    """Draw each record's category again, out of the row of a matrix that belongs to its old category.

    Protects: a published category may be wrong, and nobody can tell whether it is; by how much, `epsilon` of the result says.
    Does not protect: the other columns; the same person in several releases; a rare category that is seldom left. With a
    given `matrix` each category is randomised with a local ε for this column alone; with the default matrix, which is
    made from the table's frequencies, it is not differentially private.

    Left out, the matrix keeps a category with probability `stay`, and else draws one with the table's own frequencies. It is
    invariant: expected frequencies after PRAM are those before (Gouweleeuw, Kooiman, Willenborg & De Wolf 1998), so that tables
    of counts need no correction. A given `matrix` (rows and columns in the order of `values`) is taken as it is, or with
    `invariant=True` made invariant, which draws twice. Missing values are refused; with `missing="keep"` they stay; with
    "value" they are a category of their own.

    >>> jobs = {"job": ["care"] * 500 + ["craft"] * 300 + ["sales"] * 200}
    >>> done = PRAM(column="job", stay=0.7).apply(jobs, random=Random.deterministic(1))
    >>> done.matrix.round(2).tolist()
    [[0.85, 0.09, 0.06], [0.15, 0.79, 0.06], [0.15, 0.09, 0.76]]
    >>> found = done.estimate()
    >>> found.counts.tolist(), found.margin(0.95).round().tolist()
    ([520.0, 289.0, 191.0], [22.0, 20.0, 18.0])
    """

    column: str
    stay: float = 0.8
    matrix: Sequence[Sequence[float]] | None = None
    values: Sequence[Any] | None = None
    invariant: bool | None = None
    missing: str = "refuse"

    def __post_init__(self) -> None:
        if not 0 < self.stay < 1:
            raise InvalidParameter(
                f"stay={self.stay} is invalid",
                why="it is the probability to keep a category, between 0 and 1",
                instead="stay=0.8",
            )
        check_one_of(
            self.missing, "missing", MISSING, why='it is not one of "refuse", "keep", "value"', instead='missing="refuse"'
        )
        if (self.matrix is None) != (self.values is None):
            raise InvalidParameter(
                "matrix= is invalid",
                why="a matrix is given with the list of its categories",
                instead='values=["F", "M"], matrix=…',
            )
        if self.matrix is not None and self.values is not None:
            _checked(self.matrix, len(self.values))

    def apply(
        self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False
    ) -> Postrandomized:
        """The table with the column drawn again."""
        columns, _, source = Columns.leaving(frame, self.column, random, shuffle=shuffle, keep_index=keep_index)
        if self.missing == "refuse":
            columns.refuse_missing(self.column, 'missing="keep" (they stay) or missing="value" (a category of its own)')
        coded = columns.coded(self.column, apart=True)
        own = coded.values if self.missing == "value" else [value for value in coded.values if value is not None]
        values = tuple(own) if self.values is None else tuple(self.values)
        strangers = [value for value in own if value not in values]
        if strangers:
            raise InvalidParameter(
                f"The column {self.column!r} is invalid",
                why=f"the table has {strangers[0]!r}, which values= lacks",
                instead="values= with every category that may occur",
            )
        counts = dict(zip(coded.values, coded.counts.tolist(), strict=True))
        old = np.array([counts.get(value, 0) for value in values], dtype=np.float64)
        if self.matrix is None:
            matrix, invariant = _staying(old, self.stay), True
        else:
            invariant = bool(self.invariant)
            given = _checked(self.matrix, len(values))
            matrix = invariant_matrix(given, old) if invariant else given
        places = np.array([values.index(value) if value in own else -1 for value in coded.values], dtype=np.int64)[coded.codes]
        fresh = _drawn(places, matrix, source)
        out = columns.same_type(self.column, [values[place] if place >= 0 else None for place in fresh.tolist()])
        return Postrandomized(
            frame=columns.replaced({self.column: out}, apart=True),
            column=self.column,
            values=values,
            matrix=matrix,
            epsilon=math.inf if self.missing == "keep" else _epsilon(matrix),
            looked_up=self.matrix is None or invariant,
            invariant=invariant,
        )


def invariant_matrix(matrix: npt.ArrayLike, counts: npt.ArrayLike) -> Floats:
    """The matrix R = P·Q with counts·R = counts, where Q draws an old category back out of the new one, by Bayes.

    >>> invariant_matrix([[0.8, 0.2], [0.2, 0.8]], [90, 10]).round(3).tolist()
    [[0.917, 0.083], [0.748, 0.252]]
    """
    first = np.asarray(matrix, dtype=np.float64)
    old = np.asarray(counts, dtype=np.float64)
    if not old.size or not old.sum():
        return first
    joint = old[:, None] * first
    reached = joint.sum(axis=0)
    back = np.divide(joint.T, reached[:, None], out=np.eye(len(old)), where=reached[:, None] > 0)
    return np.asarray(first @ back)


def estimate_frequencies(
    counts: npt.ArrayLike, matrix: npt.ArrayLike, *, values: Sequence[Any] = (), invariant: bool = False
) -> Frequencies:
    """The counts before PRAM from those after it: unbiased, with the covariance that PRAM's own chance makes.

    counts·P⁻¹, with covariance P⁻ᵀ·(Σᵢ tᵢ·(diag Pᵢ − PᵢᵀPᵢ))·P⁻¹ at the estimated tᵢ (Kooiman, Willenborg & Gouweleeuw 1997).

    >>> found = estimate_frequencies([620.0, 380.0], [[0.8, 0.2], [0.2, 0.8]])
    >>> found.counts.round().tolist(), found.margin(0.95).round().tolist()
    ([700.0, 300.0], [41.0, 41.0])
    """
    seen = np.asarray(counts, dtype=np.float64)
    channel = _checked(matrix, len(seen))
    back = np.eye(len(seen)) if invariant else _inverse(channel)
    found = seen @ back
    held = np.maximum(found, 0.0)
    chance = np.diag(held @ channel) - (channel.T * held) @ channel
    return Frequencies(
        values=tuple(values) or tuple(range(len(seen))), counts=np.asarray(found), covariance=np.asarray(back.T @ chance @ back)
    )


def _inverse(matrix: Floats) -> Floats:
    if not len(matrix):
        return matrix
    if np.linalg.cond(matrix) > 1e10:
        raise InvalidParameter(
            "The counts were not estimated",
            why="the matrix cannot be inverted: some categories became alike",
            instead="a matrix that keeps each category with probability over 1/2",
        )
    return np.asarray(np.linalg.inv(matrix))


def _staying(counts: Floats, stay: float) -> Floats:
    """Stay, or be drawn from the table's frequencies: counts·matrix = stay·counts + (1 − stay)·counts."""
    shares = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / max(len(counts), 1))
    return stay * np.eye(len(counts)) + (1 - stay) * np.tile(shares, (len(counts), 1))


def _checked(matrix: npt.ArrayLike, size: int) -> Floats:
    try:
        found = np.asarray(matrix, dtype=np.float64)
    except ValueError:
        found = np.empty((0, 1))  # rows of unequal length
    if size == 0:
        return np.empty((0, 0))
    if found.shape != (size, size) or not (found >= 0).all() or not np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise InvalidParameter(
            "matrix= is invalid",
            why=f"it must be {size} rows of {size} probabilities, each row with the sum 1",
            instead="matrix=[[0.9, 0.1], [0.2, 0.8]]",
        )
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _drawn(places: npt.NDArray[np.int64], matrix: Floats, random: Random) -> npt.NDArray[np.int64]:
    """Each record's new place; every record uses one draw, whether its category stays or goes."""
    chance = uniforms(len(places), random)
    fresh = np.full(len(places), -1, dtype=np.int64)
    below = np.cumsum(matrix, axis=1)
    for place in range(len(matrix)):
        rows = np.flatnonzero(places == place)
        reached = np.searchsorted(below[place], chance[rows] * below[place, -1], side="right")
        fresh[rows] = np.minimum(reached, len(matrix) - 1)
    return fresh


def _epsilon(matrix: Floats) -> float:
    if not matrix.size:
        return 0.0
    used = matrix[:, matrix.max(axis=0) > 0]
    off = (len(matrix) + 2) * _STEP
    if not (used > off).all():
        return math.inf
    return float(np.log((used.max(axis=0) + off) / (used.min(axis=0) - off)).max())
