"""What a spend means: to somebody who wants to know whether one person is in the data, and to a family in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import CloisterError
from cloister.hub.services.catalogue.guidance import FAMILY, best_odds
from cloister.privacy import ZCDP, Guarantee
from cloister.privacy.groups import for_groups

__all__ = ["Guidance", "guidance_of"]

_DELTA = "1e-6"
_MUCH = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """How often, in percent, an attacker who would guess right every second time guesses right with the answer: about one person,
    and about whether a family of four is in the data; and how a spend of that size is usually looked at.
    """

    odds: float
    family: float
    usual: str
    """low, usual or high."""


def guidance_of(cost: Guarantee) -> Guidance:
    """The reading of a guarantee, by the arithmetic that a budget is read by.

    >>> from cloister.privacy import PureDP
    >>> found = guidance_of(PureDP("0.1"))
    >>> found.odds, found.family, found.usual
    (52.5, 59.9, 'usual')
    """
    approx = cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost
    usual = "low" if approx.epsilon < Fraction(1, 100) else "usual" if approx.epsilon <= _MUCH else "high"
    return Guidance(odds=best_odds(cost), family=_of_family(cost), usual=usual)


def _of_family(cost: Guarantee) -> float:
    """Where no theorem speaks of four persons at once, nothing is promised to them together."""
    try:
        return best_odds(for_groups(cost, FAMILY))
    except CloisterError:
        return 100.0
