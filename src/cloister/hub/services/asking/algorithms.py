"""What the settings of an algorithm mean where a question is asked: its text.

`{"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"}` is that very text and no other, in the hub's own SQL: the same
words spaced otherwise, or read as another dialect, may be another question. Without settings the algorithm is asking as such,
whatever the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidDeclaration
from cloister.hub.policy.strict import only
from cloister.hub.services.access import contradicted, named_algorithm

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.asking.question_request import QuestionRequest

NAME = "asking"
"""Of this service."""


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings under which no question could be asked.

    >>> check_settings({"sql": "SELECT COUNT(*) AS n FROM people"})
    >>> check_settings({"sql": 3})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: settings is invalid: sql is not a text.
      Instead: {"sql": "SELECT …"}
    """
    only(settings, "settings", ("sql",))
    text = settings.get("sql", "SELECT")
    if not isinstance(text, str) or not text.strip():
        raise InvalidDeclaration("settings is invalid", why="sql is not a text", instead='{"sql": "SELECT …"}')


def settled(hub: Hub, db: Db, caller: Caller, wish: QuestionRequest) -> str:
    """The id of the algorithm that a wish names; refused where it is missing, or asks something else. Empty for none."""
    if not wish.algorithm:
        return ""
    row = named_algorithm(hub, db, caller, wish.algorithm, NAME)
    text = row.settings.get("sql")
    if text is not None and (wish.dialect or any(each.strip() != text.strip() for each in wish.texts)):
        raise contradicted(row, "The query is invalid", text)
    return row.id
