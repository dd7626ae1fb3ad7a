"""Sums of squares and products, measured as the sides of a bounded column one degree higher.

A *Bernstein block* of degree d for a column with codes in [low, low + W], with t the code less low, measures for i = 0 … d

    Bᵢ = Σ C(d, i) tⁱ (W − t)^(d−i)      over the rows with a value.

Degree 1 is the split block, degree 2 is (W − t)², 2t(W − t), t². For two columns x and y it measures all products of a part
of x and a part of y, over the rows in which both have a value: four raws for a covariance, nine for a correlation.

Sensitivity. By the binomial theorem the parts of one row are non-negative and add up to W^d (for two columns to Wx^dx ·
Wy^dy), whatever the row: in units of that width a row moves the raws by a vector b with bᵢ ≥ 0 and Σ bᵢ = 1. So ‖b‖₁ = 1, and
‖b‖₂² ≤ ‖b‖₁ · max bᵢ ≤ 1, which is reached where one part is everything: at the ends of the range (at p = t/W, degree 2, it
is (1 − p)⁴ + 4p²(1 − p)² + p⁴, which is 1 at p = 0 and p = 1). A unit with m rows moves the sum by at most m in either norm,
by the triangle inequality: l1 = m and l2² = m². The rows without a value are counted beside them for nothing, as in the split
block: such a row moves one raw of width 1 by 1 and no other.

All moments follow from these raws without error: with p = t/W, Σ pᵃ = Σᵢ C(i, a)/C(d, a) · Bᵢ/W^d, since pᵃ is Σᵢ C(i,
a)/C(d, a) · C(d, i) pⁱ (1 − p)^(d−i). So n, Σp and Σp² are had for the price of one count.

Which block. In units of the noise's variance at the full spend, degree 2 gives the count with variance 3 and the centred sum
Σ(p − ½) with ½; the split block gives 2 and ½. A mean next to a variance from one quadratic block is therefore as sharp as
from a split block at the full spend (its error in the middle of the range is that of the centred sum), while two blocks, each
with half, would make everything four times as noisy. Likewise Σ(p − ½)(q − ½) has variance ¼ from the four products of degree
(1, 1) and from the nine of degree (2, 2) alike. So each column, or pair, has one block, of the least degrees from which all
that is asked follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np

from cloister.session.planning.blocks import Block, Raw, nulls_raw
from cloister.session.releases.formulas import Reading
from cloister.session.releases.linearised import Floats, Weights, weighed
from cloister.tables import Aggregate


@dataclass(frozen=True, kw_only=True)
class Side:
    """One column of a block: its name, its lowest code, its width in codes, and the degree."""

    column: str
    low: int
    width: int
    degree: int


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Which raws hold the moments of one column, or of two.

    >>> moments = Moments(sides=(Side(column="age", low=17, width=73, degree=2),))
    >>> moments.raw((1,)), moments.width, moments.block(1, nulls=False).l1
    ('age^1/2', 5329, 1)
    """

    sides: tuple[Side, ...]

    @property
    def name(self) -> str:
        """What the block is called."""
        return "moments:" + " × ".join(sorted(f"{side.column}^{side.degree}" for side in self.sides))

    @property
    def columns(self) -> str:
        """The columns, in words that name the rows in which all have a value."""
        return ",".join(sorted(side.column for side in self.sides))

    @property
    def width(self) -> int:
        """What the parts of one row add up to."""
        product = 1
        for side in self.sides:
            product *= side.width**side.degree
        return product

    @property
    def places(self) -> list[tuple[int, ...]]:
        """The index of each raw."""
        found: list[tuple[int, ...]] = [()]
        for side in self.sides:
            found = [(*place, part) for place in found for part in range(side.degree + 1)]
        return found

    def raw(self, place: Sequence[int]) -> str:
        """The name of a raw: the same in whichever order the columns are named."""
        parts = [f"{side.column}^{part}/{side.degree}" for side, part in zip(self.sides, place, strict=True)]
        return " × ".join(sorted(parts))

    def block(self, max_rows: int, *, nulls: bool) -> Block:
        """The block with its raws and the power sums that they are made from."""
        raws = [
            Raw(name=self.raw(place), parts=self._parts(place), width=self.width, middle=Fraction(self.width, len(self.places)))
            for place in self.places
        ]
        aggregates = [self._power_sum(power) for power in self.places]
        if nulls:
            raws.append(nulls_raw(self.columns))
            aggregates.append(Aggregate("rows", "rows"))
        return Block(name=self.name, raws=tuple(raws), aggregates=tuple(aggregates), l1=max_rows, l2_squared=max_rows**2)

    def values(self, readings: Mapping[str, Reading]) -> dict[tuple[int, ...], Floats]:
        """Σ pᵃ qᵇ over the rows of each group, for all degrees that the block holds."""
        found: dict[tuple[int, ...], Floats] = {}
        for power in self.places:
            found[power] = np.asarray(
                sum(readings[name].values.astype(np.float64) * weight for name, weight in self.coefficients(power).items())
            )
        return found

    def weights(self, polynomial: Mapping[tuple[int, ...], Floats]) -> dict[str, Floats]:
        """The weights of the raws' noises in Σ over the rows of a polynomial in p and q, whose coefficients may differ by
        group."""
        parts: list[tuple[Floats | float, Weights]] = [
            (factor, {name: np.asarray(weight) for name, weight in self.coefficients(power).items()})
            for power, factor in polynomial.items()
        ]
        return weighed(parts)

    def coefficients(self, power: tuple[int, ...]) -> dict[str, float]:
        """The weights of the raws in Σ pᵃ qᵇ."""
        return dict(_coefficients(self, power))

    def _parts(self, place: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """C(d, i) tⁱ (W − t)^(d−i) = Σⱼ C(d, i) C(d−i, j) (−1)ʲ W^(d−i−j) t^(i+j), and for two columns the products."""
        terms: dict[tuple[int, ...], int] = {(): 1}
        for side, part in zip(self.sides, place, strict=True):
            rest = side.degree - part
            expanded: dict[tuple[int, ...], int] = {}
            for power, coefficient in terms.items():
                for j in range(rest + 1):
                    factor = comb(side.degree, part) * comb(rest, j) * (-1) ** j * side.width ** (rest - j)
                    expanded[*power, part + j] = coefficient * factor
            terms = expanded
        return tuple((self._power_sum(power).name, coefficient) for power, coefficient in terms.items() if coefficient)

    def _power_sum(self, power: tuple[int, ...]) -> Aggregate:
        if not any(power):
            return Aggregate(f"values:{self.columns}", "values", tuple((side.column, 0) for side in self.sides))
        factors = tuple(
            (side.column, side.low) for side, exponent in zip(self.sides, power, strict=True) for _ in range(exponent)
        )
        absent = tuple(side.column for side, exponent in zip(self.sides, power, strict=True) if not exponent)
        lows = ",".join(f"{side.column}^{exponent}" for side, exponent in zip(self.sides, power, strict=True))
        return (
            Aggregate(f"powers:{lows}", "sum", factors, present=absent) if absent else Aggregate(f"powers:{lows}", "sum", factors)
        )


def centred(one: Floats, other: Floats | None) -> dict[tuple[int, ...], Floats]:
    """(p − μ)² or, with two columns, (p − μ)(q − ν), as a polynomial.

    >>> {power: each.tolist() for power, each in centred(np.array([0.5]), None).items()}
    {(2,): [1.0], (1,): [-1.0], (0,): [0.25]}
    """
    unit = np.ones_like(one)
    if other is None:
        return {(2,): unit, (1,): -2 * one, (0,): one * one}
    return {(1, 1): unit, (1, 0): -other, (0, 1): -one, (0, 0): one * other}


def lowered(degree: int, low: int, high: int, column: str) -> Side:
    """The side of a column; a constant one is given the width of one step.

    >>> lowered(2, 5, 5, "x").width
    1
    """
    return Side(column=column, low=low, width=max(high - low, 1), degree=degree)


@lru_cache(maxsize=1024)
def _coefficients(moments: Moments, power: tuple[int, ...]) -> tuple[tuple[str, float], ...]:
    """The weights that are not nil; margins ask for the same ones over and over."""
    found = []
    for place in moments.places:
        share = Fraction(1, moments.width)
        for side, part, exponent in zip(moments.sides, place, power, strict=True):
            share *= Fraction(comb(part, exponent), comb(side.degree, exponent))
        if share:
            found.append((moments.raw(place), float(share)))
    return tuple(found)
