"""What a budget, and a part of it, mean for the people whom it protects: sentences to stand beside every number.

The arithmetic, with its theorems, is `privacy/inference.py`: about presence, and about a value of somebody who is in the data,
where ε counts twice. Here it is told.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from cloister.hub.guidance import FAMILY, guidance
from cloister.hub.web.languages import N_
from cloister.privacy import ZCDP, About, Guarantee, Inference, text_of
from cloister.privacy.precision import rounded_up
from cloister.session.questions.spend import amount_of

USUAL = (
    ("0.01 – 0.1", N_("one count among many, on thousands of people")),
    ("0.1 – 1", N_("a table of counts or means; or all that one person may spend")),
    ("1 – 3", N_("the whole budget of a sensitive population")),
    ("3 – 10", N_("the whole budget where much must be learned, and little harms")),
)
"""Usual ranges of ε, with what is bought for so much."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One sentence, and how grave it is: info, warn or bad."""

    text: str
    tone: str = "info"


def odds(guarantee: Guarantee, about: About = "presence") -> str:
    """The most that an attacker's odds become by one answer, where they were even, but with the chance that `Inference` says.

    >>> from cloister.privacy import ApproxDP, PureDP
    >>> odds(PureDP(1)), odds(PureDP(1), "value"), odds(PureDP(50)), odds(ZCDP("0.5")), odds(ApproxDP(1, "1e-6"))
    ('2.72 : 1', '7.39 : 1', 'more than a million : 1', '316.25 : 1', '5.44 : 1')
    """
    loss = Inference.of(guarantee, about=about).loss
    if loss is None or loss > 13:
        return N_("more than a million : 1")
    return f"{math.ceil(round(100 * math.exp(loss), 6)) / 100:.2f} : 1"


def number_of_questions(left: Guarantee) -> int:
    """How many questions of a usual cost are left.

    >>> from cloister.privacy import PureDP
    >>> number_of_questions(PureDP("0.95"))
    9
    """
    return int(amount_of(left) / Fraction("0.1"))


def advice(
    budget: Guarantee, people: int | None, max_delta: str, _: Callable[[str], str] = str, *, unit: str = "person"
) -> list[Advice]:
    """What a budget means for a population of about so many people, the gravest last. Where one member is a household or a group,
    all of it is protected as one, and nothing is to be said of a family.

    >>> from cloister.privacy import PureDP
    >>> for each in advice(PureDP(1), 40_000, "1e-5"):
    ...     print(each.text)
    Strength: strong: usual for health and income
    Presence: an attacker guesses whether a person is in the data with at most 73.2 % success, instead of 50 %
    Values: an attacker guesses which of two values a person in the data has with at most 88.1 % success: ε counts twice there
    All answers together turn even odds into at most 2.72 : 1 about presence, and into 7.39 : 1 about a value
    For a family of 4 as a whole: ε = 4 about their presence, ε = 8 about their values
    >>> [each.tone for each in advice(PureDP(20), None, "1e-5")]
    ['warn', 'info', 'info', 'info', 'info']
    >>> print(advice(ZCDP("0.1"), None, "1e-5")[3].text)
    All answers together turn even odds into more than 11.60 : 1 about presence with a chance of at most 0.0001 %, and ...
    >>> len(advice(PureDP(1), 40_000, "1e-5", unit="household"))
    4
    """
    found = guidance(budget, people, max_delta)
    weak = not isinstance(budget, ZCDP) and budget.epsilon > 10
    told = [Advice(text=_("Strength: {words}").format(words=_(found.strength)), tone="warn" if weak else "info")]
    presence = _("Presence: an attacker guesses whether a person is in the data with at most {right} % success, instead of 50 %")
    of_rho = _(
        "Values: an attacker guesses which of two values a person in the data has with at most {right} % success: ρ "
        "counts four times there"
    )
    of_epsilon = _(
        "Values: an attacker guesses which of two values a person in the data has with at most {right} % success: ε "
        "counts twice there"
    )
    value = of_rho if isinstance(budget, ZCDP) else of_epsilon
    told += [Advice(text=presence.format(right=found.odds)), Advice(text=value.format(right=found.value_odds))]
    told.append(Advice(text=_all_answers(budget, _)))
    family, values = found.family, Inference.of(budget, about="value", people=FAMILY).promise
    if family is not None and values is not None and unit == "person":
        text = _("For a family of {number} as a whole: {guarantee} about their presence, {values} about their values")
        told.append(Advice(text=text.format(number=FAMILY, guarantee=family, values=values)))
    if found.large_delta:
        text = _(
            "δ is more than a tenth of one person's share of the population: a whole row may be revealed with that probability"
        )
        told.append(Advice(text=text, tone="bad"))
    if found.over_max_delta:
        told.append(Advice(text=_("δ is larger than this hub lets any release have: {most}").format(most=max_delta), tone="bad"))
    return told


def _all_answers(budget: Guarantee, _: Callable[[str], str]) -> str:
    """What all answers together can do to the odds, and how seldom they do more."""
    presence, value = Inference.of(budget), Inference.of(budget, about="value")
    if presence.chance == 0:
        text = _("All answers together turn even odds into at most {presence} about presence, and into {value} about a value")
        return text.format(presence=_(odds(budget)), value=_(odds(budget, "value")))
    text = _(
        "All answers together turn even odds into more than {presence} about presence with a chance of at most {seldom} %, and "
        "into more than {value} about a value with a chance of at most {often} %"
    )
    seldom, often = (text_of(rounded_up(100 * each.chance, 2)) for each in (presence, value))
    return text.format(presence=_(odds(budget)), value=_(odds(budget, "value")), seldom=seldom, often=often)
