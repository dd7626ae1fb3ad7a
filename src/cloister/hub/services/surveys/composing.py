"""From what somebody typed into the form of a question, or of levels, and from a draft to the survey that respondents get: the
library composes, and what it refuses is refused here."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.database import sound
from cloister.hub.ids import digest
from cloister.hub.web.forms import listed, ungrouped
from cloister.hub.web.languages import N_
from cloister.local import RandomizedResponse
from cloister.local.survey.composed import Survey, checked_levels
from cloister.local.survey.questions import question_of

_DRAFT = "draft"


def composed(title: str, draft: Mapping[str, Any], *, identity: str = "") -> Survey:
    """The survey of a draft, with every question's integers worked out: what has none is refused here, while it can be changed.
    Its name among reports follows from the row's id.

    >>> said = {"kind": "yes-no", "name": "copied", "text": "Have you ever copied?"}
    >>> composed("Exams", {"levels": [{"name": "middle", "epsilon": "1"}], "cap": "8", "questions": [said]}).id
    'draft'
    """
    levels = levels_of(draft)
    name = f"s-{digest(identity)[:24]}" if identity else _DRAFT
    survey = Survey(name, title, [question_of(each) for each in draft["questions"]], levels=levels, cap=draft["cap"])
    for question in survey.questions:
        for level in survey.levels:
            survey.channel(question, level)
    return survey


def levels_of(draft: Mapping[str, Any]) -> dict[str, str]:
    """The levels of a draft, as the library takes them; refused where it does not."""
    levels = {each["name"]: each["epsilon"] for each in draft["levels"]}
    if len(levels) != len(draft["levels"]):
        raise InvalidParameter("The levels are invalid", why="two have the same name", instead="a name of its own for each")
    checked_levels(levels)
    return levels


@lru_cache(maxsize=256)
def of_text(body: str) -> Survey:
    """The survey that was opened; a text is read once."""
    return Survey.from_json(sound(body))


def demonstrations(survey: Survey) -> dict[str, Any]:
    """For each level, the coins of a yes-or-no question: what the page shows before a level is chosen."""
    return {level.name: dict(RandomizedResponse(epsilon=level.epsilon).client) for level in survey.levels}


KINDS = {
    "yes-no": N_("Yes or no"),
    "choice": N_("One of several"),
    "several": N_("Several of several"),
    "scale": N_("A scale"),
    "number": N_("A number"),
    "place": N_("A place on a map"),
    "word": N_("A word"),
}
"""The kinds of question, in the order in which they are offered."""
FIELDS = {
    "yes-no": (),
    "choice": ("options",),
    "several": ("options", "most"),
    "scale": ("steps",),
    "number": ("low", "high", "want"),
    "place": ("south", "west", "north", "east", "rows", "columns"),
    "word": ("length",),
}
"""What each kind asks for besides a name and a text."""
_LISTS = ("options", "steps")
_WHOLE = ("most", "rows", "columns", "length")
_DEGREES = ("south", "west", "north", "east")


def question_typed(kind: str, typed: Mapping[str, str], *, no_answer: bool) -> dict[str, Any]:
    """A question as plain JSON, from the texts of its form. Options are a line each.

    >>> question_typed("choice", {"name": "pet", "text": "Which?", "options": "cat\\n\\n dog "}, no_answer=False)
    {'kind': 'choice', 'name': 'pet', 'text': 'Which?', 'no_answer': False, 'options': ['cat', 'dog']}
    """
    if kind not in FIELDS:
        raise InvalidParameter("The question is invalid", why="its kind is unknown", instead=", ".join(FIELDS))
    said: dict[str, Any] = {"kind": kind, "name": typed.get("name", ""), "text": typed.get("text", ""), "no_answer": no_answer}
    for name in FIELDS[kind]:
        text = typed.get(name, "").strip()
        if name == "most" and not text:
            continue
        said[name] = _read(name, text)
    return said


def options_typed(text: str) -> list[str]:
    """A list of a form: a line each; or all in one line, between commas, since a list of one is none.

    >>> options_typed("cat\\n\\n dog "), options_typed("猫，狗"), options_typed("yes, often\\nno")
    (['cat', 'dog'], ['猫', '狗'], ['yes, often', 'no'])
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return listed(text) if len(lines) == 1 else lines


def levels_typed(names: list[str], epsilons: list[str]) -> list[dict[str, str]]:
    """The levels of a form: those that have a name.

    >>> levels_typed(["more private", ""], ["0.5", "1"])
    [{'name': 'more private', 'epsilon': '0.5'}]
    """
    pairs = zip(names, epsilons, strict=False)
    found = [{"name": name.strip(), "epsilon": epsilon.strip()} for name, epsilon in pairs if name.strip()]
    if not found:
        raise InvalidParameter("The levels are invalid", why="a level is missing", instead="one level at least, with its ε")
    return found


def _read(name: str, text: str) -> Any:
    if name in _LISTS:
        return options_typed(text)
    if name in _WHOLE:
        return _number(name, text, int)
    return _number(name, text, float) if name in _DEGREES else ungrouped(text)


def _number(name: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(ungrouped(text))
    except ValueError:
        raise InvalidParameter(
            f"{name} is invalid", why="it is not a whole number" if kind is int else "it is not a number", instead=f"{name}=8"
        ) from None
