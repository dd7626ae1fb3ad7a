"""The nearest centre and the distance from the mean as computed columns: what an engine works out in a round of k-means.

Everything here is made of declarations and of released values; no row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.tables import Domain, Extended, Relation
from cloister.tables.expression.scalars import (
    Add,
    Clamp,
    Coalesce,
    Const,
    Floor,
    GreatestOf,
    Modulo,
    Multiply,
    Ref,
    Scalar,
    Subtract,
)

Floats = npt.NDArray[np.float64]

_SCORE_BITS = 44
_FINE = 12
"""A moved feature has 2^12 steps across its bounds, or its own where these are finer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """The rows as the rounds see them: a relation with one number a feature, and what is released about where they lie."""

    relation: Relation
    names: tuple[str, ...]
    """Of the features that can vary."""
    active: npt.NDArray[np.bool_]
    """Which of all features these are."""
    size: float
    mean: Floats
    """Of all features, within their bounds."""
    variances: Floats
    """Of the features, between a hundredth of the greatest possible and that."""
    lost: Floats
    """What the squared distances may add up to of values farther off than `reach` deviations that noise alone made too few."""
    low: Floats
    high: Floats

    @property
    def spread(self) -> float:
        """The mean squared distance from the mean."""
        return float(self.variances[self.active].sum())


def nearest_cell(sight: Sight, centres: Floats) -> Scalar:
    """The number of the nearest centre, as a column that any engine can work out.

    |x − c|² is least where c·x − |c|²/2 is greatest. Each of these linear forms is rounded to whole coefficients of the features'
    steps; then times the number of centres plus the centre's own number, so that the greatest of all says by its remainder which
    one it was, and a tie is one centre's by rule. A row's cell is thus a function of whole numbers: the same on every engine.
    """
    count = len(centres)
    coefficients, constants, grids = _whole_forms(sight, centres)
    forms: list[Scalar] = []
    for place in range(count):
        terms: list[Scalar] = [Const(int(constants[place]) * count + place)]
        for name, coefficient, grid in zip(sight.names, coefficients[place], grids, strict=True):
            if coefficient:
                terms.append(Multiply(Const(Fraction(int(coefficient) * count) / grid), Ref(name)))
        forms.append(_sum(terms))
    return Floor(Modulo(GreatestOf(tuple(forms)), Const(count))) if count > 1 else Const(0)


def nearest_in_steps(sight: Sight, centres: Floats, rows: Floats) -> npt.NDArray[np.int64]:
    """What `nearest_cell` gives for rows that lie on the steps of the features: the same whole numbers, without an engine."""
    coefficients, constants, grids = _whole_forms(sight, centres)
    steps = np.rint(rows / np.array([float(grid) for grid in grids])).astype(np.int64).astype(object)
    scores = steps @ coefficients.T.astype(object) + constants.astype(object)
    return np.asarray((scores * len(centres) + np.arange(len(centres))).argmax(axis=1), dtype=np.int64)


def _whole_forms(sight: Sight, centres: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[Fraction]]:
    """Whole coefficients and constants of the linear forms over the features' steps, none of them below 0."""
    grids = [_grid(name, sight.relation.columns[name]) for name in sight.names]
    domains = [sight.relation.columns[name] for name in sight.names]
    size = np.array([float(grid) for grid in grids])
    ends = np.array([[float(_value(domain, code)) for code in (domain.low_code, domain.high_code)] for domain in domains])
    mean = sight.mean[sight.active]
    slopes, heights = centres * size, -(centres @ mean) - (centres**2).sum(axis=1) / 2
    steps = np.abs(ends).max(axis=1) / size
    widest = float((np.abs(slopes) @ steps + np.abs(heights)).max())
    unit = max(widest, 1e-300) * 2.0**-_SCORE_BITS
    coefficients = np.rint(slopes / unit).astype(np.int64)
    coefficients -= coefficients.min(axis=0)  # the same is added to all forms, and the products with numbers below 0 are saved
    constants = np.rint(heights / unit).astype(np.int64)
    furthest = np.abs(coefficients).astype(object) @ np.ceil(steps).astype(np.int64).astype(object)
    return coefficients, constants + int((furthest + np.abs(constants).astype(object)).max()), grids


def _grid(name: str, domain: Domain) -> Fraction:
    """The step of which all values of a column are whole multiples."""
    form = Ref(name).form({name: domain})
    found = getattr(form, "grid", None)
    if not isinstance(found, Fraction) or found <= 0:
        raise UnsupportedQuery(
            f"The feature {name!r} is not supported", why="its values are not numbers in steps", instead='method="lloyd"'
        )
    return found


def _value(domain: Domain, code: int) -> Fraction:
    assert domain.step is not None
    return Fraction(domain.origin + code * domain.step)


def moved_columns(sight: Sight, reach: float) -> list[tuple[str, Scalar]]:
    """Each feature from its mean, within `reach` deviations: on steps of its own or, where these are coarse, on finer ones."""
    pairs = zip(sight.names, moved_ranges(sight, reach), strict=True)
    return [(f"moved {name}", Clamp(Subtract(Ref(name), Const(middle)), -wide, wide)) for name, (middle, wide) in pairs]


def moved_ranges(sight: Sight, reach: float) -> list[tuple[Fraction, Fraction]]:
    """Of each feature that varies the middle that it is moved by (the mean, on its steps), and how far it may be from it."""
    found = []
    for name, mean, square in zip(sight.names, sight.mean[sight.active], sight.variances[sight.active], strict=True):
        domain = sight.relation.columns[name]
        grid = _grid(name, domain)
        low, high = _value(domain, domain.low_code), _value(domain, domain.high_code)
        step = grid / 2 ** max(0, _FINE - ((high - low) / grid).__ceil__().bit_length() + 1)
        middle = min(max(round(Fraction(float(mean)) / step) * step, low), high)
        far = max(math.ceil(reach * math.sqrt(square) / float(step)), 1) * step
        found.append((middle, min(far, max(high - middle, middle - low))))
    return found


def present_columns(relation: Relation, names: Sequence[str]) -> tuple[Relation, list[str]]:
    """The same numbers under names of their own, declared as never missing: the rows in which one is were left out."""
    scalars: list[tuple[str, Scalar]] = []
    for name in names:
        domain = relation.columns[name]
        scalar: Scalar = Ref(name)
        scalars.append((f"{name}!", Coalesce((scalar, Const(_value(domain, domain.low_code)))) if domain.nullable else scalar))
    return Extended(source=relation, scalars=tuple(scalars)), [name for name, _ in scalars]


def _sum(terms: Sequence[Scalar]) -> Scalar:
    """As flat a tree as can be: only so many scalars may stand inside one another."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return Add(_sum(terms[:half]), _sum(terms[half:]))
