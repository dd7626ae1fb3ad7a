"""Principal components and discriminants of rows that many owners keep, from sums of moments that nobody has seen.

An owner sends, of its rows scaled to [−1, 1] by declared bounds and counted in steps of 2^−fraction, whole numbers alone:

    R = Σ x xᵀ (the upper triangle, row by row),   V = Σ x (of each class, one after the other),   M = how many (of each class)

A class that it has no row of is noughts, so nobody sees who has which. The vectors are encrypted, added and blinded
(`BlindedSum`), and the circuit makes of the sum, whole and without a quotient, the scatter M·R − VVᵀ = M·S̄: its eigenvectors are
those of S̄. After Al-Rubaie, Wu, Chang and Kung, "Privacy-preserving PCA on horizontally-partitioned data", DSC 2017.

Discriminants are the generalised eigenvectors of (S_B, S̄ + ρI), ρ = `ridge`·tr S̄. S_B = GGᵀ has a column for each class, the root
of its share times how far its mean is from that of all, so its rank is classes − 1, and no matrix as large as S_B is decomposed:

    X = (S̄ + ρI)⁻¹ G,   K = GᵀX,   K u = λ u   ⇒   S_B (X u) = G K u = λ G u = λ (S̄ + ρI)(X u)

They span what LDA's span with the same ρ, in the same order (λ_LDA = λ/(1 − λ)). Of two classes X is one vector: then nothing is
decomposed. S̄ + ρI is reduced by pivots on the diagonal, which for a scatter are ρ or more.

Bounds: pivots lie between ρ and 2, a reduced scatter keeps its entries within [−1, 1], multipliers and reduced sides are at most
√(2/ρ), the solution 1/ρ. Numbers that no scatter has are clipped there (a party that lies may bring such), never cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.crypto.paillier import Slots
from cloister.errors import InvalidParameter
from cloister.together.circuits.eigenvectors import (
    LARGEST,
    MATRIX,
    filled,
    leading_eigenvectors,
    mirrored,
    orthonormal,
    scaled,
    squared,
    stacked,
)
from cloister.together.circuits.language import SecretArray, concatenate
from cloister.together.circuits.program import Program
from cloister.together.circuits.programs import BlindedSum

RIDGE = Fraction(1, 64)
_FINE, _MEAN = 26, 24
"""Bits behind the point of what is solved, and of means."""
_MOST_ROWS, _MOST_FRACTION, _MOST_CLASSES = 2**24, 16, 64


@dataclass(frozen=True, kw_only=True)
class Moments:
    """How rows become a vector of whole numbers, and what circuits make of the sum of such vectors.

    >>> from cloister.together.circuits import FixedPoint, Program
    >>> how = Moments(features=2, rows=100)
    >>> mine = how.of_rows([[1, 1], [2, 2], [3, 3.1]], low=0, high=4)
    >>> kind = FixedPoint(bits=how.bits, shape=(how.length,))
    >>> own = {"garbler": {"a": kind}, "evaluator": {"b": kind}}
    >>> program = Program(lambda a, b: how.together(2).components(a + b, 1), **own, bits=256)
    >>> abs(program.as_numbers(a=mine, b=mine)).round(2).ravel().tolist()
    [0.69, 0.72]
    """

    features: int
    rows: int
    """At most so many of one owner: public. An owner with more is refused, so that a sum is never cut."""
    classes: int = 0
    """None: rows have no class, and there are components alone."""
    fraction: int = 12

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("features", self.features, 2, LARGEST),
            ("rows", self.rows, 2, _MOST_ROWS),
            ("classes", self.classes, 0, _MOST_CLASSES),
            ("fraction", self.fraction, 4, _MOST_FRACTION),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidParameter(f"{name}={value!r} is invalid", why=f"it is from {low} to {high}", instead=f"{name}={low}")
        if self.classes == 1:
            raise InvalidParameter("classes=1 is invalid", why="nothing separates one class", instead="classes=2, or none")

    def together(self, owners: int) -> Moments:
        """What circuits make of the sum of so many owners' vectors."""
        if self.rows * owners > _MOST_ROWS:
            why = f"{owners} owners have at most {_MOST_ROWS} together"
            raise InvalidParameter(f"rows={self.rows} is invalid", why=why, instead=f"rows={max(_MOST_ROWS // owners, 2)}")
        return replace(self, rows=self.rows * owners)

    @property
    def length(self) -> int:
        """How many numbers a vector has."""
        groups = max(self.classes, 1)
        return self.features * (self.features + 1) // 2 + groups * (self.features + 1)

    @property
    def bits(self) -> int:
        """Of the largest of them."""
        return (self.rows << (2 * self.fraction)).bit_length() + 1

    def slots(self, owners: int) -> Slots:
        """How vectors lie in ciphertexts."""
        return Slots(bits=self.bits, terms=owners)

    def sums(self, owners: int) -> BlindedSum:
        """How the sum of so many owners' vectors goes into a circuit."""
        return BlindedSum(slots=self.slots(owners), terms=owners, length=self.length)

    def program(self, components: int, owners: int) -> Program:
        """So many components of the sum, or the discriminants of its classes: its `str` says gates, bytes and seconds."""
        whole = self.together(owners)
        made = whole.discriminants if whole.classes else lambda total: whole.components(total, components)
        return self.sums(owners).program(made, bits=256)

    def of_rows(
        self, rows: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, labels: Sequence[int] | npt.ArrayLike | None = None
    ) -> npt.NDArray[Any]:
        """One owner's vector; `labels` are whole numbers from 0. Rows beyond the bounds count as at them."""
        values = _array(rows, np.float64)
        fits = values.ndim == 2 and values.shape[1] == self.features and np.isfinite(values).all()
        if not fits or len(values) > self.rows:
            raise InvalidParameter(
                "The rows are invalid",
                why=f"they are finite numbers in {self.features} columns, at most {self.rows} rows",
                instead="an array of rows",
            )
        most = max(self.classes, 1)
        groups = np.zeros(len(values), dtype=np.int64) if labels is None else _array(labels, np.int64)
        if (labels is None) == bool(self.classes) or groups.shape != (len(values),) or not np.isin(groups, np.arange(most)).all():
            raise InvalidParameter(
                "The labels are invalid",
                why=f"{self.classes} classes were declared, each row has one of them, from 0",
                instead="labels=[0, 1, …]",
            )
        ends = np.broadcast_to(low, self.features), np.broadcast_to(high, self.features)
        unit = np.clip((values - ends[0]) / (ends[1] - ends[0]) * 2 - 1, -1, 1)
        steps = np.rint(unit * (1 << self.fraction)).astype(np.int64)  # products of 2·16 bits and 2^24 rows: within 57 bits
        products = (steps.T @ steps)[np.triu_indices(self.features)]
        sums = [steps[groups == each].sum(axis=0) for each in range(most)]
        counts = np.bincount(groups, minlength=most)
        found = [*products.tolist(), *np.concatenate(sums).tolist(), *counts.tolist()]
        return np.array([int(each) for each in found] or [], dtype=object)

    def components(self, total: SecretArray, components: int) -> SecretArray:
        """So many principal components of all rows, as columns: exact up to fixed point (`leading_eigenvectors`)."""
        return leading_eigenvectors(self.scatter(total), components)

    def discriminants(self, total: SecretArray, *, ridge: Fraction = RIDGE) -> SecretArray:
        """The classes − 1 discriminant components of all rows, as columns of length 1."""
        if self.classes < 2:
            raise InvalidParameter("The moments are invalid", why="rows have no classes", instead="Moments(classes=2, …)")
        if not isinstance(ridge, Fraction) or not Fraction(1, 1 << 10) <= ridge <= 1:
            raise InvalidParameter(f"ridge={ridge!r} is invalid", why="it is from 1/1024 to 1", instead="ridge=Fraction(1, 64)")
        between = self._between(total)
        matrix = scaled(self.scatter(total), self.features)[mirrored(self.features)]
        solved = _solved(matrix, between, ridge)
        if self.classes == 2:
            return orthonormal(solved)
        upper = np.triu_indices(self.classes)
        inner = between.T.dot(solved, fraction=_FINE)
        found = solved.dot(leading_eigenvectors(inner[upper], self.classes - 1), fraction=_FINE)
        return concatenate([orthonormal(found[:, place : place + 1]) for place in range(self.classes - 1)], axis=1)

    def scatter(self, total: SecretArray) -> SecretArray:
        """M·S̄ = M·R − VVᵀ, the upper triangle, exactly."""
        products, sums, counts = self._parts(total)
        rows, columns = np.triu_indices(self.features)
        of_all, count = sums.sum(0), counts.sum().clip(1, self.rows)
        return products * count - of_all[rows] * of_all[columns]

    def _parts(self, total: SecretArray) -> tuple[SecretArray, SecretArray, SecretArray]:
        """R, V by class, M by class, in whole steps: each as large as so many rows can make it."""
        side, groups = self.features, max(self.classes, 1)
        half = side * (side + 1) // 2
        most = self.rows << self.fraction
        products = total[:half].clip(-(most << self.fraction), most << self.fraction)
        sums = total[half : half + groups * side].clip(-most, most).reshape(groups, side)
        return products, sums, total[half + groups * side :].clip(0, self.rows)

    def _between(self, total: SecretArray) -> SecretArray:
        """G, a column a class, times a common power of two: of two classes the difference of their means alone."""
        _, sums, counts = self._parts(total)
        real, number = sums.ldexp(-self.fraction), counts.clip(1, self.rows)  # of an absent class: 0/1
        means = real.divide(number.reshape(-1, 1), fraction=_MEAN).clip(-1, 1)
        if self.classes == 2:
            columns = (means[1] - means[0]).reshape(-1, 1)
        else:
            every = counts.sum().clip(1, self.rows)
            mean = real.sum(0).divide(every, fraction=_MEAN).clip(-1, 1)
            shares = counts.divide(every, fraction=2 * _MEAN).clip(0, 1).sqrt(fraction=_MEAN)
            columns = (means - mean).multiply(shares.reshape(-1, 1), fraction=_MEAN).T
        return filled(columns, squared(columns).sum()).rounded(_FINE)


def _array(given: npt.ArrayLike, kind: Any) -> npt.NDArray[Any]:
    """What was given as numbers of that kind, none of them cut; empty where it is none, and refused for its shape then."""
    try:
        found = np.asarray(given)
        with np.errstate(invalid="ignore"):
            made = found.astype(kind)
        return made if found.dtype.kind in "biufO" and (made == found)[np.isfinite(made)].all() else np.empty((0, 0, 0))
    except (TypeError, ValueError, OverflowError):
        return np.empty((0, 0, 0))


def _solved(matrix: SecretArray, sides: SecretArray, ridge: Fraction) -> SecretArray:
    """(A + ρI)⁻¹ times each side, for a scaled scatter A and ρ = ridge·tr A, by elimination of one column after the other."""
    run, count = matrix.run, len(matrix)
    diagonal = np.arange(count)
    floor = ridge / 4  # the trace of a scaled scatter is 7/16 or more
    limit = 1 << (-(-(2 / floor).__ceil__().bit_length() // 2))
    rho = matrix[diagonal, diagonal].sum().multiply(ridge, fraction=MATRIX).clip(floor, 2 * count)
    reduced: list[tuple[SecretArray, SecretArray, SecretArray]] = []
    while True:
        pivot = (matrix[0, 0] + rho).clip(floor, 2 * count + 1)
        inverse = run.public(1, 0).divide(pivot, fraction=_FINE)
        reduced.append((inverse, matrix[0], sides[0]))
        if len(matrix) == 1:
            break
        right = matrix[0, 1:]
        factor = right.multiply(inverse, fraction=_FINE).clip(-limit, limit)
        rows, columns = np.triu_indices(len(right))
        rest = matrix[1:, 1:][rows, columns] - factor[rows].multiply(right[columns], fraction=MATRIX)
        sides = sides[1:] - factor.reshape(-1, 1).multiply(sides[0].reshape(1, -1), fraction=_FINE)
        matrix, sides = rest.clip(-1, 1)[mirrored(len(right))], sides.clip(-limit, limit)
    found: list[SecretArray] = []
    for inverse, row, top in reversed(reduced):
        if found:
            top = top - row[1:].dot(stacked(found[::-1]), fraction=_FINE)
        found.append(top.multiply(inverse, fraction=_FINE).clip(-(limit**2), limit**2))
    return stacked(found[::-1])
