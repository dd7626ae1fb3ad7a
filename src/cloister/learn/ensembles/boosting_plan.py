"""How many columns, bins and rounds of boosting a promise can carry: from public facts and released counts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.noise.allowance import Allowance

_MOST_ROUNDS, _MOST_BINS, _FEWEST_BINS = 4, 64, 4
_A_ROUND = (
    576  # rounds² times this many persons, in deviations of a count's noise: more rounds cost more than they bring (measured)
)
_A_COLUMN, _A_BIN = 40, 8
_PLAIN = 5.0  # without noise, bins are as wide as if counts had this deviation: chance has one of its own


@dataclass(frozen=True, kw_only=True)
class BoostingPlan:
    """What is done. Counts take one part of the budget, each round two."""

    columns: int
    bins: int
    rounds: int

    @property
    def counts(self) -> Fraction:
        """The portion of what is left that counts take.

        >>> BoostingPlan(columns=3, bins=8, rounds=2).counts
        Fraction(1, 5)
        """
        return Fraction(1, 1 + 2 * self.rounds)


def plan_of(
    *,
    columns: int,
    persons: float,
    allowance: Allowance | None,
    max_features: int | None = None,
    bins: int | None = None,
    rounds: int | None = None,
) -> BoostingPlan:
    """What was asked for, and else what so many people can carry under this allowance.

    >>> from cloister.privacy import PureDP
    >>> plan_of(columns=14, persons=32_000, allowance=Allowance(PureDP(1)))
    BoostingPlan(columns=14, bins=64, rounds=1)
    >>> plan_of(columns=30, persons=500, allowance=Allowance(PureDP(1)))
    BoostingPlan(columns=8, bins=5, rounds=0)
    """
    most = max(columns if max_features is None else min(max_features, columns), 1)
    few = most
    if max_features is None and allowance is not None and allowance.currency == "epsilon":
        few = min(max(int(persons / _A_COLUMN / _blur(1, allowance)), 1), most)
    firm = max(persons, 1.0) / (_PLAIN if allowance is None else _blur(few, allowance))
    if bins is None:
        bins = int(min(max(firm / _A_BIN, _FEWEST_BINS), _MOST_BINS))
    if rounds is None:
        rounds = _MOST_ROUNDS if allowance is None else int(min(math.sqrt(firm / _A_ROUND), _MOST_ROUNDS))
    return BoostingPlan(columns=few, bins=bins, rounds=rounds)


def _blur(columns: int, allowance: Allowance) -> float:
    """The deviation of the noise of so many columns' counts, if they took everything."""
    if allowance.currency == "epsilon":
        return math.sqrt(2) * columns / float(allowance.size)
    return math.sqrt(columns / float(allowance.size * (2 if allowance.currency == "rho" else 1)))
