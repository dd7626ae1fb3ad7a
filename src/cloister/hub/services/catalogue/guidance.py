"""What a number means where one is asked for: what ε does to an attacker's best odds, what it does for a family, which δ is too
large.

*Odds.* An attacker who knows everything but whether one person's rows are in the table, and holds both for equally likely,
guesses right with probability (1 + TV) / 2, where TV is the total variation between the two laws of the answers. For (ε, δ) TV is
at most (e^ε − 1 + 2δ) / (e^ε + 1) (Kairouz, Oh & Viswanath 2015). For ρ it is at most √(ρ/2) (Pinsker) and √(1 − e^(−ρ))
(Bretagnolle & Huber 1979), since the Kullback–Leibler divergence is at most ρ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.hub.policy import check_amount
from cloister.hub.web.languages import N_
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.groups import for_groups
from cloister.privacy.rational import exact

__all__ = ["FAMILY", "Guidance", "best_odds", "budget_of", "guidance", "usual"]

FAMILY = 4
_CERTAIN = Fraction(700)
"""From here on e^−ε is nothing, and the best guess is right."""
_RANGES = (
    (Fraction(1, 10), N_("very strong: for data that could ruin somebody")),
    (Fraction(1), N_("strong: usual for health and income")),
    (Fraction(3), N_("fair: usual for statistics that many rely on")),
    (Fraction(10), N_("weak: for data that hurt nobody")),
)
_NONE = N_("hardly more than a formality")
_USUAL = ("0.1", "0.5", "1", "2", "5", "10")


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """What a budget means. `strength` is an English text that the page translates."""

    odds: float
    """The probability, in percent, that an attacker's best guess about one person is right; 50 is a coin."""
    strength: str
    family: Guarantee | None
    """What the budget promises four people together; None where no theorem says so."""
    family_odds: float
    large_delta: bool
    """δ is more than 1 / (10 · size)."""
    over_floor: bool
    """δ is more than the hub lets a release have."""


def best_odds(budget: Guarantee) -> float:
    """The probability with which the best guess about one person is right, in percent, rounded up.

    >>> best_odds(PureDP(0)), best_odds(PureDP(1)), best_odds(ApproxDP(1, "0.1")), best_odds(ZCDP("0.5")), best_odds(PureDP(8))
    (50.0, 73.2, 75.8, 75.0, 99.97)
    """
    slack = float(budget.delta)
    if isinstance(budget, ZCDP):
        rho = float(min(budget.rho, _CERTAIN))
        apart = min(1.0, math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho))) + slack
    else:
        ratio = math.exp(-float(min(budget.epsilon, _CERTAIN)))
        apart = (1 - ratio + 2 * slack * ratio) / (1 + ratio)
    percent = 50 * (1 + min(apart, 1.0))
    finer = 10 if percent < 99.5 else 100
    return min(100.0, math.ceil(round(finer * percent, 6)) / finer)


def usual() -> list[tuple[PureDP, float, str]]:
    """Usual budgets, with the odds and the words for them.

    >>> [(str(budget), odds) for budget, odds, _ in usual()][2]
    ('ε = 1', 73.2)
    """
    return [(PureDP(text), best_odds(PureDP(text)), _strength(PureDP(text))) for text in _USUAL]


def guidance(budget: Guarantee, people: int | None, delta_floor: str) -> Guidance:
    """What a budget means for a population of about so many.

    >>> found = guidance(ApproxDP(1, "1e-5"), 40_000, "1e-5")
    >>> found.odds, found.large_delta, found.over_floor, found.family.epsilon
    (73.2, True, False, Fraction(4, 1))
    """
    try:
        family: Guarantee | None = for_groups(budget, FAMILY)
    except CloisterError:
        family = None
    return Guidance(
        odds=best_odds(budget),
        strength=_strength(budget),
        family=family,
        family_odds=100.0 if family is None else best_odds(family),
        large_delta=people is not None and budget.delta > Fraction(1, 10 * people),
        over_floor=budget.delta > exact(delta_floor, "delta_floor"),
    )


def budget_of(epsilon: str = "", delta: str = "", rho: str = "") -> Guarantee:
    """The budget that is typed: ε, or ε and δ, or ρ (with or without a δ).

    >>> budget_of("1"), budget_of("1", "1e-6"), budget_of(rho="0.1")
    (PureDP(epsilon='1'), ApproxDP(epsilon='1', delta='0.000001'), ZCDP(rho='0.1'))
    """
    if not epsilon and not rho:
        raise MissingBound("The budget was refused", why="neither ε nor ρ is said", instead="epsilon=1")
    if epsilon and rho:
        raise InvalidParameter("The budget was refused", why="it says both ε and ρ", instead="one of them")
    if rho:
        found: Guarantee = ZCDP(rho, delta or 0)
    else:
        found = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    if (found.rho if isinstance(found, ZCDP) else found.epsilon) == 0:
        raise InvalidParameter("The budget was refused", why="with 0 nothing can be asked", instead="epsilon=1")
    check_amount(found, "The budget")
    return found


def _strength(budget: Guarantee) -> str:
    """In words, by the ε of the same odds."""
    if isinstance(budget, ZCDP):
        odds = min(best_odds(budget), 99.99) / 100
        epsilon = Fraction(math.log(odds / (1 - odds))).limit_denominator(1000)
    else:
        epsilon = budget.epsilon
    return next((words for most, words in _RANGES if epsilon <= most), _NONE)
