"""Where in a question a refusal points: the first name that it quotes and that stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloister.errors import CloisterError

_QUOTED = re.compile(r"'([^']{1,60}?)…?'|\"([^\"]{1,60}?)…?\"|\b([A-Z][A-Z_]{2,}(?:\([^)]*\))?)")


@dataclass(frozen=True, kw_only=True)
class ErrorPosition:
    """A part of a text, by line and column from 1."""

    line: int
    column: int
    text: str
    whole: str
    """The line in which it stands."""


def error_position(sql: str, error: CloisterError) -> ErrorPosition | None:
    """The part of a question that a refusal names; None where it names none.

    >>> from cloister.errors import UnknownColumn
    >>> error_position("SELECT a,\\n  b FROM t", UnknownColumn("The column 'b' is not known", why="declared are 'a'"))
    ErrorPosition(line=2, column=3, text='b', whole='  b FROM t')
    """
    for match in _QUOTED.finditer(error.what):
        word = next(each for each in match.groups() if each)
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sql, re.IGNORECASE)
        if found is not None:
            before = sql[: found.start()]
            start = before.rfind("\n") + 1
            end = sql.find("\n", found.start())
            whole = sql[start : len(sql) if end < 0 else end]
            return ErrorPosition(line=before.count("\n") + 1, column=found.start() - start + 1, text=found[0], whole=whole[:200])
    return None
