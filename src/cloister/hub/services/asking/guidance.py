"""What a spend means: to somebody who asks whether one person is in the data, or what is true of them, and to a family in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.hub.services.catalogue.guidance import FAMILY, best_odds
from cloister.privacy import ZCDP, Guarantee

__all__ = ["Guidance", "guidance_of"]

_DELTA = "1e-6"
_MUCH = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """How often, in percent, an attacker who would guess right every second time guesses right with the answer: whether one
    person, or a family of four, is in the data, and which of two values they have; and how a spend of that size is usually seen.
    """

    odds: float
    value: float
    family: float
    family_value: float
    usual: str
    """low, usual or high."""


def guidance_of(cost: Guarantee) -> Guidance:
    """The reading of a guarantee, by the arithmetic that a budget is read by.

    >>> from cloister.privacy import PureDP
    >>> found = guidance_of(PureDP("0.1"))
    >>> found.odds, found.value, found.family, found.family_value, found.usual
    (52.5, 55.0, 59.9, 69.0, 'usual')
    """
    approx = cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost
    usual = "low" if approx.epsilon < Fraction(1, 100) else "usual" if approx.epsilon <= _MUCH else "high"
    return Guidance(
        odds=best_odds(cost),
        value=best_odds(cost, about="value"),
        family=best_odds(cost, people=FAMILY),
        family_value=best_odds(cost, about="value", people=FAMILY),
        usual=usual,
    )
