"""Which populations a rule means that names them.

A rule says "ward". Anyone who opens a population chooses its name, so a rule has to hold however the name is spelled: letters of
another width or case, and blanks more or less, make no other population of it. A window of a data set has a population of its
own, "ward 2026-Q1". A rule on "ward" governs each of them by itself, since each has a budget of its own and the promise is per
person and window.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WINDOW = re.compile(r"(.+) (?:\d{4}|\d{4}-q[1-4]|\d{4}-(?:0[1-9]|1[0-2]))", re.ASCII)


@lru_cache(maxsize=4096)
def alike(name: str) -> str:
    """A name in the one form in which names of populations are compared.

    >>> alike("WARD "), alike("ｗａｒｄ"), alike("Straße  2")
    ('ward', 'ward', 'strasse 2')
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


@lru_cache(maxsize=4096)
def among(population: str, names: frozenset[str]) -> bool:
    """Whether names of a rule mean a population: by its own name, or by the one whose window it is.

    >>> [among(each, frozenset({"ward"})) for each in ("ward", "WARD", "ward 2026-Q1", "wards", "ward b", "")]
    [True, True, True, False, False, False]
    >>> among("ward", frozenset({"ward 2026-Q1"}))
    False
    """
    wanted, found = {alike(each) for each in names}, alike(population)
    while found not in wanted:
        window = _WINDOW.fullmatch(found)
        if window is None:
            return False
        found = window[1]
    return True
