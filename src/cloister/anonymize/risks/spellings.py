"""Values of a sensitive column that are one value in several spellings: "gout", "Gout", "gout ".

What looks the same is counted as one value (`readings`). What can be seen to differ is not, so two spellings of one disease look
like two diseases: a class may meet ℓ-diversity, and tell the disease of everybody in it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

from cloister.anonymize.readings import seen


def one_spelling(text: str) -> str:
    """A text without blanks at its ends, doubled blanks, capitals, and other ways to write the same letters (NFKC).

    >>> one_spelling(" Ｇout  arthritis\\u00a0"), one_spelling("Straße") == one_spelling("STRASSE")
    ('gout arthritis', True)
    """
    return seen(unicodedata.normalize("NFKC", text).casefold())


def spelt_alike(values: Iterable[Any]) -> int:
    """How many of different values fall together with another when written in one spelling.

    >>> spelt_alike(["gout", "gout ", "Gout", "flu", 7]), spelt_alike(["gout", "flu"])
    (3, 0)
    """
    times = Counter(one_spelling(value) for value in values if isinstance(value, str))
    return sum(count for count in times.values() if count > 1)


def advice(column: str, count: int) -> str:
    """What is wrong with them, and what to write; no value is named. Nothing where no two fall together.

    >>> advice("ill", 2).partition(":")[0]
    "2 values of 'ill' differ in blanks, capitals or the form of their letters alone"
    >>> advice("ill", 0)
    ''
    """
    if not count:
        return ""
    return (
        f"{count:,} values of {column!r} differ in blanks, capitals or the form of their letters alone: models count them as "
        f"different, and may be met by spelling alone. Write them in one way first: table[{column!r}] = "
        f'table[{column!r}].str.normalize("NFKC").str.strip().str.casefold()'
    )
