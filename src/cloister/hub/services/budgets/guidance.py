"""What a budget, and a part of it, mean for the people whom it protects: sentences to stand beside every number.

The arithmetic of the best guess, of a family and of δ is the catalogue's (`catalogue/guidance.py`, with its theorems); here it is
told. Besides, e^ε : 1 is the most by which any answer can change an attacker's odds about one person, whatever they knew before
(for (ε, δ), but for a chance of δ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from cloister.hub.services.catalogue.guidance import FAMILY, best_odds, guidance
from cloister.hub.web.languages import N_
from cloister.privacy import ZCDP, Guarantee
from cloister.session.spend import amount_of

__all__ = ["USUAL", "Advice", "advice", "factor", "number_of_questions", "odds"]

USUAL = (
    ("0.01 – 0.1", N_("one count among many, on thousands of people")),
    ("0.1 – 1", N_("a table of counts or means; or all that one person may draw")),
    ("1 – 3", N_("the whole budget of a sensitive population")),
    ("3 – 10", N_("the whole budget where much must be learned, and little harms")),
)
"""Usual ranges of ε, with what is bought for so much."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One sentence, and how grave it is: info, warn or bad."""

    text: str
    tone: str = "info"


def factor(epsilon: Fraction) -> float:
    """e^ε, rounded up to two digits after the point: the most by which odds change.

    >>> factor(Fraction(1)), factor(Fraction(0)), factor(Fraction(10**6))
    (2.72, 1.0, inf)
    """
    try:
        return math.ceil(round(100 * math.exp(epsilon), 6)) / 100
    except OverflowError:
        return math.inf


def odds(guarantee: Guarantee) -> str:
    """An attacker's best odds, having had an even chance before; under ρ those of the same best guess.

    >>> from cloister.privacy import PureDP
    >>> odds(PureDP(1)), odds(PureDP(50)), odds(ZCDP("0.5"))
    ('2.72 : 1', 'more than a million : 1', '3.00 : 1')
    """
    if isinstance(guarantee, ZCDP):
        right = best_odds(guarantee) / 100
        most = right / (1 - right) if right < 1 else math.inf
    else:
        most = factor(guarantee.epsilon)
    return "more than a million : 1" if most > 10**6 else f"{most:.2f} : 1"


def number_of_questions(left: Guarantee, each: str = "0.1") -> int:
    """How many questions of a usual cost are left.

    >>> from cloister.privacy import PureDP
    >>> number_of_questions(PureDP("0.95"))
    9
    """
    return int(amount_of(left) / Fraction(each))


def advice(
    budget: Guarantee, people: int | None, delta_floor: str, _: Callable[[str], str] = str, *, unit: str = "person"
) -> list[Advice]:
    """What a budget means for a population of about so many people, the gravest last. Where one member is a household or a group,
    all of it is protected as one, and nothing is to be said of a family.

    >>> from cloister.privacy import PureDP
    >>> for each in advice(PureDP(1), 40_000, "1e-5"):
    ...     print(each.tone, "-", each.text)
    info - Strength: strong: usual for health and income
    info - An attacker's best odds about one person: 2.72 : 1 (a guess that is right in 73.2 % of cases, where a coin is in 50 %)
    info - For a family of 4 together: ε = 4
    >>> [each.tone for each in advice(PureDP(20), None, "1e-5")]
    ['warn', 'info', 'info']
    >>> len(advice(PureDP(1), 40_000, "1e-5", unit="household"))
    2
    """
    found = guidance(budget, people, delta_floor)
    weak = not isinstance(budget, ZCDP) and budget.epsilon > 10
    told = [Advice(text=_("Strength: {words}").format(words=_(found.strength)), tone="warn" if weak else "info")]
    sentence = _(
        "An attacker's best odds about one person: {odds} (a guess that is right in {right} % of cases, where a coin is in 50 %)"
    )
    told.append(Advice(text=sentence.format(odds=odds(budget), right=found.odds)))
    if found.family is not None and unit == "person":
        told.append(
            Advice(text=_("For a family of {number} together: {guarantee}").format(number=FAMILY, guarantee=found.family))
        )
    if found.large_delta:
        text = _("δ is more than a tenth of one person's share of the population: a whole row may leave with that chance")
        told.append(Advice(text=text, tone="bad"))
    if found.over_floor:
        told.append(
            Advice(text=_("δ is larger than this hub lets any release have: {most}").format(most=delta_floor), tone="bad")
        )
    return told
