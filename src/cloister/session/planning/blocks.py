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
NULL; with it COUNT(*) is (A + B)/W + C. `moments.py` does the same for squares and products, `leaves.py` for quantiles.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.session.planning.leaves import Leaves
from cloister.session.planning.zoom import HALF, Zoom
from cloister.session.releases.uncertainty import Planned
from cloister.tables import Aggregate
from cloister.tables.engines.noised import Combination, RangeSums

Whole = npt.NDArray[np.int64] | npt.NDArray[np.object_]
BEYOND = Aggregate("beyond", "rows")
"""The rows up to one place more than the cap."""


@dataclass(frozen=True, kw_only=True)
class Raw:
    """One integer for each group: Σ coefficient × aggregate; `width` is the most that one row can move it, for the block's
    norms."""

    name: str
    parts: tuple[tuple[str, int], ...]
    width: int = 1
    middle: Fraction = Fraction(1)
    """What a row adds on average when values are spread evenly over the declared range: public, for margins said in advance."""

    @cached_property
    def map(self) -> Combination | RangeSums:
        """How an engine makes the exact integers from its aggregates."""
        return Combination(self.parts, self.width)

    def exact(self, aggregates: Mapping[str, Whole]) -> Whole:
        """The exact integers from the exact aggregates."""
        return self.map.exact(aggregates)


@dataclass(frozen=True, kw_only=True)
class Block:
    """Raws that share one spend, the aggregates they are made from, and how far a unit moves them (in widths)."""

    name: str
    raws: tuple[Raw, ...]
    aggregates: tuple[Aggregate, ...]
    l1: int
    l2_squared: int
    leaves: Leaves | None = None
    """Where the raws are the sums of a hierarchy over the values of a column, and not aggregates."""
    share: Fraction | None = None
    """Where one quantile is found by a choice and a ladder of counts around it (`zoom.py`), from the leaves."""
    ladder: Fraction = HALF
    """The ladder's part of the spend then."""

    @property
    def split_l1(self) -> int:
        """The L1 norm as it counts when a spend is split: a ladder of half the spend has twice the noise."""
        return 2 * self.l1 if self.share is not None and self.ladder == HALF else self.l1

    @property
    def split_l2_squared(self) -> int:
        """The squared L2 norm as it counts when a spend is split."""
        return 2 * self.l2_squared if self.share is not None and self.ladder == HALF else self.l2_squared

    def laplace(self, epsilon: Fraction) -> tuple[Planned, ...]:
        """The noise of each raw for ε-DP of the block."""
        if self.leaves is not None and self.share is not None:
            zoom = {"leaves": self.leaves.count, "rows": self.l1}
            return (Zoom.laplace(**zoom, share=self.share, epsilon=epsilon, ladder=self.ladder),)
        return tuple(DiscreteLaplace(scale=raw.width * self.l1 / epsilon, sensitivity=raw.width * self.l1) for raw in self.raws)

    def gaussian(self, rho: Fraction) -> tuple[Planned, ...]:
        """The noise of each raw for ρ-zCDP of the block; σ² is rational, so the block spends exactly ρ."""
        if self.leaves is not None and self.share is not None:
            zoom = {"leaves": self.leaves.count, "rows": self.l1}
            return (Zoom.gaussian(**zoom, share=self.share, rho=rho, ladder=self.ladder),)
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


def hierarchy_block(leaves: Leaves, max_rows: int, *, nulls: bool) -> Block:
    """The sums of a hierarchy over the values of a column (`leaves.py` has the sensitivity), and with `nulls` the rows without
    a value: such a row moves that raw by 1 and no other, and every level weighs at least as much."""
    tree, column = leaves.tree, leaves.column
    raws = [Raw(name=name, parts=((name, 1),)) for name in (leaves.levels_name, *([leaves.total_name] if leaves.total else []))]
    aggregates: tuple[Aggregate, ...] = ()
    if nulls:
        raws.append(nulls_raw(column))
        aggregates = (Aggregate(f"values:{column}", "values", ((column, 0),)), Aggregate("rows", "rows"))
    return Block(
        name=f"hierarchy:{column}/{leaves.stride}",
        raws=tuple(raws),
        aggregates=aggregates,
        l1=tree.l1 * max_rows,
        l2_squared=tree.l2_squared * max_rows**2,
        leaves=leaves,
    )


def distinct_block(column: str, max_rows: int, values: int | None, groups: int | None) -> Block:
    """How many different values of a column a group holds.

    A unit with m rows adds or removes at most as many values as it has rows in the group, and in each group at most all `values`
    that the column may hold. Over all groups that is at most m, so ‖v‖₁ ≤ m; in one group it is at most c = min(m, values), so
    ‖v‖₂² ≤ c·m; and with a known number of groups ‖v‖₁ ≤ c·groups.
    """
    most = max_rows if values is None else min(max_rows, max(values, 1))
    l1 = max_rows if groups is None else min(max_rows, most * max(groups, 1))
    name = f"distinct:{column}"
    return Block(
        name=name,
        raws=(Raw(name=name, parts=((name, 1),)),),
        aggregates=(Aggregate(name, "distinct", ((column, 0),)),),
        l1=l1,
        l2_squared=most * l1,
    )


def zoom_block(leaves: Leaves, share: Fraction, max_rows: int, ladder: Fraction) -> Block:
    """One quantile of a column: the exact counts of its leaves, which `Zoom` turns into a choice and a ladder around it."""
    return Block(
        name=f"quantile:{leaves.column}/{leaves.stride}/{share}",
        raws=(Raw(name=leaves.levels_name, parts=((leaves.levels_name, 1),)),),
        aggregates=(),
        l1=max_rows,
        l2_squared=max_rows**2,
        leaves=leaves,
        share=share,
        ladder=ladder,
    )


def over_cap_block(parts: int) -> Block:
    """How many units have a row beyond the cap. Counting rows up to one place more (`BEYOND`), less the rows up to the cap,
    gives 1 for each such unit and 0 for every other, so one unit moves it by at most 1 in each of the parts that its rows may
    be in."""
    return Block(
        name="over_cap",
        raws=(Raw(name="over_cap", parts=((BEYOND.name, 1), ("rows", -1))),),
        aggregates=(Aggregate("rows", "rows"),),
        l1=parts,
        l2_squared=parts**2,
    )


def sum_block(column: str, low: int, high: int, max_rows: int) -> Block:
    """The sum of codes in [low, high]: a row moves it by at most the larger of their sizes."""
    name = f"sum:{column}"
    return Block(
        name=name,
        raws=(Raw(name=name, parts=((name, 1),), width=max(abs(low), abs(high), 1), middle=Fraction(low + high, 2)),),
        aggregates=(Aggregate(name, "sum", ((column, 0),)),),
        l1=max_rows,
        l2_squared=max_rows**2,
    )


def nulls_raw(columns: str) -> Raw:
    """How many rows have no value in the column (or in one of several, joined by commas); needs the aggregates `rows` and
    `values:columns`."""
    return Raw(name=f"nulls:{columns}", parts=(("rows", 1), (f"values:{columns}", -1)), middle=Fraction(0))


def split_block(column: str, low: int, high: int, max_rows: int, *, nulls: bool) -> Block:
    """The two sides of a bounded column, and with `nulls` the rows without a value (see the top of this file)."""
    high = max(high, low + 1)  # a constant column still has a count: its A is 0 and its B the number of values
    total, values, width = f"sum:{column}", f"values:{column}", high - low
    raws = [
        Raw(name=f"above:{column}", parts=((total, 1), (values, -low)), width=width, middle=Fraction(width, 2)),
        Raw(name=f"below:{column}", parts=((total, -1), (values, high)), width=width, middle=Fraction(width, 2)),
    ]
    aggregates = [Aggregate(total, "sum", ((column, 0),)), Aggregate(values, "values", ((column, 0),))]
    if nulls:
        raws.append(nulls_raw(column))
        aggregates.append(Aggregate("rows", "rows"))
    return Block(name=f"split:{column}", raws=tuple(raws), aggregates=tuple(aggregates), l1=max_rows, l2_squared=max_rows**2)
