"""What a number means where one is asked for: what ε does to an attacker's best odds about somebody's presence, and about a value
of theirs, what it does for a family, which δ is too large. The arithmetic is `privacy/inference.py`; here it is told in per cent.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import InvalidParameter, MissingBound
from cloister.hub.decisions.policy import check_amount
from cloister.hub.web.languages import N_
from cloister.privacy import ZCDP, About, ApproxDP, Guarantee, Inference, PureDP, advantage, exact

FAMILY = 4
_RANGES = (
    (Fraction(1, 10), N_("very strong: for data that could ruin a person")),
    (Fraction(1), N_("strong: usual for health and income")),
    (Fraction(3), N_("fair: usual for statistics that many rely on")),
    (Fraction(10), N_("weak: for data that harm no one")),
)
_NONE = N_("hardly more than a formality")
_DELTA = "1e-6"
_MUCH = Fraction(1)
_USUAL = ("0.1", "0.5", "1", "2", "5", "10")


@dataclass(frozen=True, kw_only=True)
class Guidance:
    """What a budget means. `strength` is an English text that the page translates."""

    odds: float
    """The probability, in per cent, that an attacker's best guess whether one person is in the data is right; 50 is a coin."""
    value_odds: float
    """The same of a guess between two values of somebody who is in the data."""
    strength: str
    family: Guarantee | None
    """What the budget promises four people together about their presence; None where no theorem says so."""
    family_odds: float
    family_value_odds: float
    large_delta: bool
    """δ is more than 1 / (10 · size)."""
    over_max_delta: bool
    """δ is more than the hub lets a release have."""


def best_odds(budget: Guarantee, *, about: About = "presence", people: int = 1) -> float:
    """The probability with which the best guess is right, in per cent, rounded up.

    >>> best_odds(PureDP(0)), best_odds(PureDP(1)), best_odds(ApproxDP(1, "0.1")), best_odds(ZCDP("0.5")), best_odds(PureDP(8))
    (50.0, 73.2, 75.8, 75.0, 99.97)
    >>> best_odds(PureDP(1), about="value"), best_odds(PureDP(1), people=FAMILY), best_odds(PureDP(10))
    (88.1, 98.3, 99.996)
    """
    right = 100 * (1 + advantage(budget, about=about, people=people)) / 2
    finer = 10 if right < Fraction(199, 2) else next((10**each for each in range(2, 9) if 10**each * (100 - right) >= 1), 100)
    return min(100.0, math.ceil(finer * right - Fraction(1, 10**9)) / finer)


def usual() -> list[tuple[PureDP, float, float, str]]:
    """Usual budgets, with the odds of presence, those of a value, and the words for them.

    >>> [(str(budget), presence, value) for budget, presence, value, _ in usual()][2]
    ('ε = 1', 73.2, 88.1)
    """
    budgets = [PureDP(text) for text in _USUAL]
    return [(each, best_odds(each), best_odds(each, about="value"), _strength(each)) for each in budgets]


def guidance(budget: Guarantee, people: int | None, max_delta: str) -> Guidance:
    """What a budget means for a population of about so many.

    >>> found = guidance(ApproxDP(1, "1e-5"), 40_000, "1e-5")
    >>> found.odds, found.value_odds, found.large_delta, found.over_max_delta, found.family.epsilon
    (73.2, 88.1, True, False, Fraction(4, 1))
    """
    return Guidance(
        odds=best_odds(budget),
        value_odds=best_odds(budget, about="value"),
        strength=_strength(budget),
        family=Inference.of(budget, people=FAMILY).promise,
        family_odds=best_odds(budget, people=FAMILY),
        family_value_odds=best_odds(budget, about="value", people=FAMILY),
        large_delta=people is not None and budget.delta > Fraction(1, 10 * people),
        over_max_delta=budget.delta > exact(max_delta, "delta_floor"),
    )


def budget_of(epsilon: str = "", delta: str = "", rho: str = "") -> Guarantee:
    """The budget that is typed: ε, or ε and δ, or ρ (with or without a δ).

    >>> budget_of("1"), budget_of("1", "1e-6"), budget_of(rho="0.1")
    (PureDP(epsilon='1'), ApproxDP(epsilon='1', delta='0.000001'), ZCDP(rho='0.1'))
    """
    if not epsilon and not rho:
        raise MissingBound("The budget is incomplete", why="ε or ρ is missing", instead="epsilon=1")
    if epsilon and rho:
        raise InvalidParameter("The budget is invalid", why="it has both ε and ρ", instead="one of them")
    if rho:
        found: Guarantee = ZCDP(rho, delta or 0)
    else:
        found = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    if (found.rho if isinstance(found, ZCDP) else found.epsilon) == 0:
        raise InvalidParameter("The budget is invalid", why="with 0 nothing can be asked", instead="epsilon=1")
    check_amount(found, "The budget")
    return found


@dataclass(frozen=True, kw_only=True)
class SpendGuidance:
    """How often, in per cent, an attacker who would guess right every second time guesses right with the answer: whether one
    person, or a family of four, is in the data, and which of two values they have; and how a spend of that size is usually seen.
    """

    odds: float
    value: float
    family: float
    family_value: float
    usual: str
    """low, usual or high."""


def guidance_of(cost: Guarantee) -> SpendGuidance:
    """The reading of a guarantee, by the arithmetic that a budget is read by.

    >>> from cloister.privacy import PureDP
    >>> found = guidance_of(PureDP("0.1"))
    >>> found.odds, found.value, found.family, found.family_value, found.usual
    (52.5, 55.0, 59.9, 69.0, 'usual')
    """
    approx = cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost
    usual = "low" if approx.epsilon < Fraction(1, 100) else "usual" if approx.epsilon <= _MUCH else "high"
    return SpendGuidance(
        odds=best_odds(cost),
        value=best_odds(cost, about="value"),
        family=best_odds(cost, people=FAMILY),
        family_value=best_odds(cost, about="value", people=FAMILY),
        usual=usual,
    )


def _strength(budget: Guarantee) -> str:
    """In words, by the ε of the same odds."""
    if isinstance(budget, ZCDP):
        odds = min(best_odds(budget), 99.99) / 100
        epsilon = Fraction(math.log(odds / (1 - odds))).limit_denominator(1000)
    else:
        epsilon = budget.epsilon
    return next((words for most, words in _RANGES if epsilon <= most), _NONE)
