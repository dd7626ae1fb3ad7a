"""The survey of the demonstration: three questions, and the randomised reports of people who are made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.noise import Random

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_TITLE = "Sleep and screens"
_PEOPLE = 150
_QUESTIONS = (
    {"kind": "yes-no", "name": "bed", "text": "Do you look at a screen in bed?"},
    {
        "kind": "choice",
        "name": "which",
        "text": "Which screen most?",
        "options": ["phone", "computer", "television"],
    },
    {"kind": "number", "name": "hours", "text": "How many hours did you sleep last night?", "low": "0", "high": "12"},
)
_LEVELS = (
    {"name": "more private", "epsilon": "0.5"},
    {"name": "middle", "epsilon": "1"},
    {"name": "more useful", "epsilon": "2"},
)


def demo_survey(hub: Hub, researcher: Caller) -> str:
    """The id of an open survey of the researcher: the one that is there, or a new one with some answers."""
    from cloister.hub.services.surveys import drafts

    with hub.database.begin() as db:
        found = next((row for row in drafts.surveys_of(db, researcher) if row.state == "open"), None)
        if found is not None:
            return found.id
        row = drafts.make_survey(db, hub, researcher, title=_TITLE, purpose="a study of sleep")
        introduction = "Everything here is made up, and you may answer as you like."
        drafts.rewrite(db, hub, researcher, row.id, introduction=introduction, levels=_LEVELS, hoped=_PEOPLE)
        drafts.ask_these(db, hub, researcher, row.id, _QUESTIONS)
        number = drafts.open_survey(db, hub, researcher, row.id).id
    _answered(hub, number)
    return number


def _answered(hub: Hub, number: str) -> None:
    """People who are made up answer: most at one level for all questions, some at a level for each."""
    from cloister.hub.services.surveys.composing import of_text
    from cloister.hub.services.surveys.counting import asked, receive
    from cloister.local.survey import respond

    with hub.database.reading() as db:
        survey = of_text(asked(db, number).body)
    drawn = Random.deterministic(7)
    for place in range(_PEOPLE):
        in_bed = place % 3 != 0
        answers = {
            "bed": in_bed,
            "which": ("phone", "phone", "computer", "television")[place % 4],
            "hours": 6.5 if in_bed else 7.5,
        }
        turns = (place, place + 1, place) if place % 5 == 0 else (place, place, place)
        levels = {name: _LEVELS[turn % len(_LEVELS)]["name"] for name, turn in zip(answers, turns, strict=True)}
        receive(hub, number, respond(survey, answers, levels, random=drawn).to_dict())
