"""Names in questions, and texts that people read: what passes."""

from __future__ import annotations

import re

from cloister.errors import InvalidParameter
from cloister.printable import is_text
from cloister.tables.expression.names import needs_quotes

NAME = r"[a-z][a-z0-9_]{0,62}"


def plain_word(name: str) -> bool:
    """Whether a name may stand in a question as it is.

    >>> plain_word("visits_2026"), plain_word("select"), plain_word("Größe")
    (True, False, False)
    """
    return re.fullmatch(NAME, name) is not None and not needs_quotes(name)


def checked_text(name: str, text: str, most: int, *, empty: bool = False, lines: bool = False) -> str:
    """A text that people read: printable, of bounded length.

    >>> checked_text("title", " Visits 2026 🏥 ", 200)
    'Visits 2026 🏥'
    """
    found = text.strip()
    if not (is_text(found, most, lines=lines) or (empty and not found)):
        least = 0 if empty else 1
        raise InvalidParameter(
            f"The {name} is invalid", why=f"it is not a text of {least} to {most} characters", instead="Visits 2026"
        )
    return found
