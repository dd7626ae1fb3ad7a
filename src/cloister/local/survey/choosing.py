"""Which level a respondent chose for each question, what that comes to, and whether the survey lets anybody give so much.

A level is chosen for a question that has not been seen yet. What the choice is worth to a watcher no ε bounds: so it must be made
while it can't depend on the answer, and the sum of all levels stays under the survey's cap.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.privacy.rational import text_of

if TYPE_CHECKING:
    from cloister.local.survey.composed import Level, Survey

Chosen = str | Mapping[str, str]
"""The name of one level for all questions, or that of a level for each question's name."""


def chosen_levels(survey: Survey, levels: Chosen) -> dict[str, Level]:
    """The level of each question, in the survey's order. Every question needs one: no answer is an answer like others.

    >>> from cloister.local.survey import Survey, YesNo
    >>> asked = [YesNo("copied", "Have you?"), YesNo("lent", "Did you?")]
    >>> survey = Survey("exam", "Exams", asked, levels={"careful": 1, "open": 3})
    >>> [each.name for each in chosen_levels(survey, {"lent": "open", "copied": "careful"}).values()]
    ['careful', 'open']
    """
    names = [question.name for question in survey.questions]
    if isinstance(levels, str):
        return dict.fromkeys(names, survey.level(levels))
    if not isinstance(levels, Mapping):
        raise _refused(survey, "they are neither the name of one level nor one for each question")
    if set(levels) - set(names):
        raise _refused(survey, "some are for questions that the survey does not ask")
    missing = [name for name in names if name not in levels]
    if missing:
        raise _refused(survey, f'"{missing[0]}" has none; it takes one also where it is left unanswered')
    return {name: survey.level(levels[name]) for name in names}


def spent_on(levels: Mapping[str, Level]) -> Fraction:
    """The sum of ε over all questions.

    >>> from cloister.local.survey import Level
    >>> spent_on({"a": Level("careful", Fraction(1, 10)), "b": Level("open", Fraction(2, 10))})
    Fraction(3, 10)
    """
    return sum((level.epsilon for level in levels.values()), Fraction(0))


def capped(survey: Survey, levels: Mapping[str, Level]) -> None:
    """Refuse levels that come to more than the survey lets anybody give."""
    total = spent_on(levels)
    if total > survey.cap:
        raise BudgetExceeded(
            f"ε = {text_of(total)} in all was refused",
            why=f"this survey lets nobody give more than ε = {text_of(survey.cap)}",
            instead="a more careful level for some of the questions",
        )


def _refused(survey: Survey, why: str) -> InvalidParameter:
    first, name = survey.questions[0].name, survey.levels[0].name
    return InvalidParameter("The levels are invalid", why=why, instead=f'"{name}", or {{"{first}": "{name}", …}}')
