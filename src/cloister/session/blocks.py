"""From statistics to the integers that are noised.

A *block* is a small group of integer vectors (one integer a group of rows) that are noised together under one share of the
spend. It asks the engine for exact aggregates, combines them into its *raws*, and knows how far one unit can move them.
Everything that is released later is a formula of noisy raws.

Guarantee of a block. Neighbours: one unit's rows added or removed; a unit has at most m rows (m = 1 where a row is a unit). Raw
j has a public width w_j, and the rows of one unit move the raws by v with Σ_j ‖v_j‖₁ / w_j ≤ l1 and Σ_j ‖v_j‖₂² / w_j² ≤ l2².
With discrete Laplace noise of scale w_j·l1/ε the density ratio of two neighbours is at most exp(Σ_j ‖v_j‖₁·ε/(w_j·l1)) ≤ e^ε
(Dwork et al. 2006; Ghosh, Roughgarden & Sundararajan 2009); with discrete Gaussian noise of σ_j² = w_j²·l2²/2ρ the Rényi
divergence of order α is at most α·Σ_j‖v_j‖₂²/2σ_j² ≤ αρ (Canonne, Kamath & Steinke 2020, Theorem 14).

The *split* block. Sums and means of a column x in [low, high] are not measured as a sum and a count, each with half the budget,
but as A = Σ(x − low) and B = Σ(high − x): every row adds non-negative parts that make up the width W = high − low together, so
both are had for the price of one: l1 = m with w = W. The count is (A + B)/W, the sum low·(A + B)/W + A, the mean low + W·A/(A +
B). A third raw, C = the number of rows in which x is NULL (w = 1), costs nothing more, since a row has either a value or a
NULL; with it COUNT(*) is (A + B)/W + C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.tables import Aggregate

Whole = npt.NDArray[np.int64] | npt.NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class Raw:
    """One integer for each group: Σ coefficient × aggregate; `width` is the most that one row can move it, for the block's
    norms."""

    name: str
    parts: tuple[tuple[str, int], ...]
    width: int = 1

    def exact(self, aggregates: Mapping[str, Whole]) -> Whole:
        """The exact integers, in Python integers where 64 bits might not do."""
        if len(self.parts) == 1 and self.parts[0][1] == 1:
            return aggregates[self.parts[0][0]]
        return sum(aggregates[name].astype(object) * coefficient for name, coefficient in self.parts)  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Block:
    """Raws that share one spend, the aggregates they are made from, and how far a unit moves them (in widths)."""

    name: str
    raws: tuple[Raw, ...]
    aggregates: tuple[Aggregate, ...]
    l1: int
    l2_squared: int

    def laplace(self, epsilon: Fraction) -> tuple[DiscreteLaplace, ...]:
        """The noise of each raw for ε-DP of the block."""
        return tuple(DiscreteLaplace(scale=raw.width * self.l1 / epsilon, sensitivity=raw.width * self.l1) for raw in self.raws)

    def gaussian(self, rho: Fraction) -> tuple[DiscreteGaussian, ...]:
        """The noise of each raw for ρ-zCDP of the block; σ² is rational, so the block spends exactly ρ."""
        return tuple(
            DiscreteGaussian(
                scale_squared=raw.width**2 * self.l2_squared / (2 * rho), sensitivity_squared=raw.width**2 * self.l2_squared
            )
            for raw in self.raws
        )


def rows_block(max_rows: int) -> Block:
    """How many rows: a unit adds at most `max_rows`."""
    return Block(
        name="rows",
        raws=(Raw(name="rows", parts=(("rows", 1),)),),
        aggregates=(Aggregate("rows", "rows"),),
        l1=max_rows,
        l2_squared=max_rows**2,
    )


def values_block(column: str, max_rows: int) -> Block:
    """How many rows in which the column is not NULL."""
    name = f"values:{column}"
    return Block(
        name=name,
        raws=(Raw(name=name, parts=((name, 1),)),),
        aggregates=(Aggregate(name, "values", ((column, 0),)),),
        l1=max_rows,
        l2_squared=max_rows**2,
    )


def units_block(max_groups: int) -> Block:
    """How many units: one adds 1 to each of at most `max_groups` groups, so ‖v‖₁ = ‖v‖₂² = that number."""
    return Block(
        name="units",
        raws=(Raw(name="units", parts=(("units", 1),)),),
        aggregates=(Aggregate("units", "units"),),
        l1=max_groups,
        l2_squared=max_groups,
    )


def over_cap_block() -> Block:
    """How many units have a row beyond the cap. Counting rows up to one place more, less the rows up to the cap, gives 1 for
    each such unit and 0 for every other, so one unit moves it by at most 1."""
    return Block(
        name="over_cap",
        raws=(Raw(name="over_cap", parts=(("rows", 1),)),),
        aggregates=(Aggregate("rows", "rows"),),
        l1=1,
        l2_squared=1,
    )


def sum_block(column: str, low: int, high: int, max_rows: int) -> Block:
    """The sum of codes in [low, high]: a row moves it by at most the larger of their sizes."""
    name = f"sum:{column}"
    return Block(
        name=name,
        raws=(Raw(name=name, parts=((name, 1),), width=max(abs(low), abs(high), 1)),),
        aggregates=(Aggregate(name, "sum", ((column, 0),)),),
        l1=max_rows,
        l2_squared=max_rows**2,
    )


def split_block(column: str, low: int, high: int, max_rows: int, *, nulls: bool) -> Block:
    """The two sides of a bounded column, and with `nulls` the rows without a value (see the top of this file)."""
    high = max(high, low + 1)  # a constant column still has a count: its A is 0 and its B the number of values
    total, values, width = f"sum:{column}", f"values:{column}", high - low
    raws = [
        Raw(name=f"above:{column}", parts=((total, 1), (values, -low)), width=width),
        Raw(name=f"below:{column}", parts=((total, -1), (values, high)), width=width),
    ]
    aggregates = [Aggregate(total, "sum", ((column, 0),)), Aggregate(values, "values", ((column, 0),))]
    if nulls:
        raws.append(Raw(name=f"nulls:{column}", parts=(("rows", 1), (values, -1))))
        aggregates.append(Aggregate("rows", "rows"))
    return Block(name=f"split:{column}", raws=tuple(raws), aggregates=tuple(aggregates), l1=max_rows, l2_squared=max_rows**2)
