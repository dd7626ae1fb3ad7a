"""What somebody wants to know: the question, what it may cost, and what it is for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.policy.strict import only
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.platform.access import contradicted, named_algorithm
from cloister.privacy import Guarantee
from cloister.session.planning.within import lone_pilot
from cloister.stored import Stored

_LONGEST = 50_000
_MOST = 50


@dataclass(frozen=True, kw_only=True)
class QuestionRequest:
    """A question as it was sent, not yet looked at.

    >>> QuestionRequest(sql="SELECT COUNT(*) FROM people", spend="0.1").spend
    '0.1'
    """

    sql: str
    more: tuple[str, ...] = ()
    """Further questions that are answered together with it, under one charge."""
    spend: str | Guarantee = ""
    within: float | None = None
    pilot: str = ""
    most: str = ""
    """What a wanted margin may cost at most, its pilot counted in; empty: no more is said of it."""
    confidence: float = 0.95
    purpose: str = ""
    project: str = ""
    """The project in which it is asked: its name, or its id."""
    algorithm: str = ""
    """Under which it is asked: its name, or its id."""
    dialect: str | None = None
    fresh: bool = False

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every question of the wish."""
        return self.sql, *self.more

    def __post_init__(self) -> None:
        texts = self.texts
        if not all(map(str.strip, texts)) or "\0" in "".join(texts):  # PostgreSQL keeps no text with a character of code 0
            why = "it is empty, or has a character of code 0"
            raise InvalidParameter("The query is invalid", why=why, instead="a SELECT over your data sets")
        if max(map(len, texts)) > _LONGEST or len(self.more) >= _MOST:
            raise InvalidParameter(
                "The query is invalid",
                why=f"it is longer than {_LONGEST:,} characters, or there are more than {_MOST} of them",
                instead="a shorter query",
            )
        if self.within is not None and (self.spend or self.more):
            raise InvalidParameter(
                "The query is invalid",
                why="it names both a spend and a wanted margin, or a margin for several queries",
                instead='spend="0.1", or within=50 for one question',
            )
        if self.pilot and self.within is None:
            raise lone_pilot()
        check_purpose(self.purpose)


WISH = Stored(
    QuestionRequest,
    "Wish",
    *("sql", "more", "spend", "within", "pilot", "most", "confidence", "purpose", "project", "algorithm", "dialect", "fresh"),
)
"""As a job holds it, and as the digest of a form that was sent has it."""


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
    """The id of the algorithm that a wish names; refused where it is missing, or asks something else. Empty for none.

    `{"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"}` is that very text and no other, in the hub's own SQL: the
    same words spaced otherwise, or read as another dialect, may be another question. Without settings the algorithm is asking
    as such, whatever the question."""
    if not wish.algorithm:
        return ""
    row = named_algorithm(hub, db, caller, wish.algorithm, NAME)
    text = row.settings.get("sql")
    if text is not None and (wish.dialect or any(each.strip() != text.strip() for each in wish.texts)):
        raise contradicted(row, "The query is invalid", text)
    return row.id
