"""What a spend means: to somebody who wants to know whether one person is in the data, and to a family in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.privacy import ZCDP, Guarantee

__all__ = ["Guidance", "guidance_of"]

_DELTA = "1e-6"
_FAMILY = 4
_MUCH = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """How often an attacker who would guess right every second time guesses right with the answer: about one person, and about
    whether a family of four is in the data; and how a spend of that size is usually looked at.
    """

    odds: float
    family: float
    usual: str
    """low, usual or high."""


def guidance_of(cost: Guarantee) -> Guidance:
    """The reading of a guarantee. Under ε a fair guess becomes right with probability at most e^ε / (1 + e^ε), and δ more.

    >>> from cloister.privacy import PureDP
    >>> found = guidance_of(PureDP("0.1"))
    >>> round(found.odds, 3), round(found.family, 3), found.usual
    (0.525, 0.599, 'usual')
    """
    approx = cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost
    epsilon = float(approx.epsilon)
    usual = "low" if approx.epsilon < Fraction(1, 100) else "usual" if approx.epsilon <= _MUCH else "high"
    return Guidance(odds=_right(epsilon, float(approx.delta)), family=_right(_FAMILY * epsilon, 0.0), usual=usual)


def _right(epsilon: float, delta: float) -> float:
    return min(1.0, 1 / (1 + math.exp(-min(epsilon, 700.0))) + delta)
