"""Query-set size: a statistic of too few people, or of all but too few, is refused.

Not differential privacy. What it stops: asking about one person directly, or about everybody else. What it does not: the tracker
(Denning, Denning & Schwartz 1979). With any set T between 2k and n − 2k, the forbidden count of C is count(C or T) + count(C or
not T) − n, and all of these are allowed. And the refusal is not simulatable: it says that fewer than k people (or all but fewer)
pass, which is a bit about the rows.
"""

from __future__ import annotations

import numpy as np

from cloister.errors import AccessDenied
from cloister.query.controls.masks import Mask


def size_allowed(persons: Mask, least: int) -> bool:
    """Whether k ≤ |set| ≤ n − k.

    >>> size_allowed(np.array([True, True, False, False]), 2), size_allowed(np.array([True, True, True, False]), 2)
    (True, False)
    """
    inside = int(np.count_nonzero(persons))
    return least <= inside <= len(persons) - least


def too_small(least: int) -> AccessDenied:
    """The refusal; one text, whichever side is too small."""
    return AccessDenied(
        "The query was refused",
        why=f"its set, or what the set leaves out, has fewer than {least} people",
        instead="a wider condition",
    )
