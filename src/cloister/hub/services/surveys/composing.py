"""From a draft to the survey that respondents get: the library composes, and what it refuses is refused here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.ids import digest
from cloister.local import RandomizedResponse
from cloister.local.survey import Survey
from cloister.local.survey.question import Question
from cloister.local.survey.questions import question_of

_DRAFT = "draft"


def question_from(said: Mapping[str, Any]) -> Question:
    """A question as the library knows it.

    >>> question_from({"kind": "yes-no", "name": "copied", "text": "Have you ever copied?"}).name
    'copied'
    """
    return question_of(said)


def composed(title: str, draft: Mapping[str, Any], *, identity: str = "") -> Survey:
    """The survey of a draft, with every question's integers worked out: what has none is refused here, while it can be changed.
    Its name among reports follows from the row's id.

    >>> said = {"kind": "yes-no", "name": "copied", "text": "Have you ever copied?"}
    >>> composed("Exams", {"levels": [{"name": "middle", "epsilon": "1"}], "cap": "8", "questions": [said]}).id
    'draft'
    """
    levels = {each["name"]: each["epsilon"] for each in draft["levels"]}
    if len(levels) != len(draft["levels"]):
        raise InvalidParameter("The levels are invalid", why="two have the same name", instead="a name of its own for each")
    name = f"s-{digest(identity)[:24]}" if identity else _DRAFT
    survey = Survey(name, title, [question_of(each) for each in draft["questions"]], levels=levels, cap=draft["cap"])
    for question in survey.questions:
        for level in survey.levels:
            survey.channel(question, level)
    return survey


@lru_cache(maxsize=256)
def of_text(body: str) -> Survey:
    """The survey that was opened; a text is read once."""
    return Survey.from_json(body)


def demonstrations(survey: Survey) -> dict[str, Any]:
    """For each level, the coins of a yes-or-no question: what the page shows before a level is chosen."""
    return {level.name: dict(RandomizedResponse(epsilon=level.epsilon).client) for level in survey.levels}
