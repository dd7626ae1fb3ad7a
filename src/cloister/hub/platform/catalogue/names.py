"""Names in questions, and texts that people read: what passes."""

from __future__ import annotations

import re

from cloister.errors import InvalidParameter
from cloister.printable import is_text

NAME = r"[a-z][a-z0-9_]{0,62}"
_WORDS = frozenset(
    """
    all analyze and any array as asc between both by case cast check collate column constraint create cross current_date
    current_time current_timestamp current_user default delete desc describe distinct do drop else end except exists
    explain false fetch first for foreign from full grant group having if ilike in index inner insert intersect interval
    into is join lateral leading left like limit natural not null offset on only or order outer over partition placing
    primary qualify references returning right row rows select session_user set show similar some symmetric table then to
    trailing true union unique unnest update user using values when where window with
    """.split()  # noqa: SIM905  (a list of ninety words, to read)
)


def plain_word(name: str) -> bool:
    """Whether a name may stand in a question as it is.

    >>> plain_word("visits_2026"), plain_word("select"), plain_word("Größe")
    (True, False, False)
    """
    return re.fullmatch(NAME, name) is not None and name not in _WORDS


def in_sql(name: str) -> str:
    """A name as every offered question has it: as it is where it is a plain word, in quotes otherwise.

    >>> in_sql("age"), in_sql("Birth year"), in_sql('a"b')
    ('age', '"Birth year"', '"a""b"')
    """
    return name if plain_word(name) else '"' + name.replace('"', '""') + '"'


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
