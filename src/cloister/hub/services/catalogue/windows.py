"""A growing data set, cut into windows of time: each window is a data set of its own, with a population and a budget of its own.

The promise is then per person *and* window. Somebody whose rows lie in n windows is protected by the sum of n budgets (sequential
composition), and the pages say so. What this buys is that a data set which grows doesn't die of its budget.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy import Guarantee

__all__ = ["EVERY", "base_of", "check_window", "current", "following", "over", "window_name", "window_population"]

EVERY = ("year", "quarter", "month")
_SHAPES = {"year": r"(\d{4})", "quarter": r"(\d{4})-Q([1-4])", "month": r"(\d{4})-(0[1-9]|1[0-2])"}
_EXAMPLES = {"year": "2026", "quarter": "2026-Q1", "month": "2026-03"}


def check_window(every: str, label: str) -> dict[str, Any]:
    """The window as the data set keeps it.

    >>> check_window("quarter", "2026-Q1")
    {'every': 'quarter', 'window': '2026-Q1'}
    """
    if every not in EVERY:
        raise InvalidParameter("The windows were refused", why="there are none of that length", instead=", ".join(EVERY))
    if not re.fullmatch(_SHAPES[every], label, re.ASCII):
        raise InvalidParameter(
            "The window was refused", why=f"its name is none of a {every}", instead=f"such as {_EXAMPLES[every]}"
        )
    return {"every": every, "window": label}


def window_name(name: str, label: str) -> str:
    """The name in questions of one window of a data set.

    >>> window_name("visits", "2026-Q1")
    'visits_2026_q1'
    """
    return f"{name}_{label.lower().replace('-', '_')}"


def window_population(population: str, label: str) -> str:
    """The population of one window.

    >>> window_population("patients", "2026-Q1")
    'patients 2026-Q1'
    """
    return f"{population} {label}"


def current(every: str, now: datetime) -> str:
    """The name of the window in which a moment lies.

    >>> current("quarter", datetime(2026, 5, 1)), current("month", datetime(2026, 5, 1)), current("year", datetime(2026, 5, 1))
    ('2026-Q2', '2026-05', '2026')
    """
    return {
        "year": f"{now.year:04}",
        "quarter": f"{now.year:04}-Q{(now.month + 2) // 3}",
        "month": f"{now.year:04}-{now.month:02}",
    }[every]


def following(every: str, label: str) -> str:
    """The window after one.

    >>> following("quarter", "2026-Q4"), following("month", "2026-03"), following("year", "2026")
    ('2027-Q1', '2026-04', '2027')
    """
    found = re.fullmatch(_SHAPES[every], label, re.ASCII)
    assert found is not None
    year = int(found[1])
    if every == "year":
        return f"{year + 1:04}"
    last = 4 if every == "quarter" else 12
    part = int(found[2]) % last + 1
    year += part == 1
    return f"{year:04}-Q{part}" if every == "quarter" else f"{year:04}-{part:02}"


def over(budget: Guarantee, windows: int) -> Guarantee | None:
    """What so many windows promise somebody who is in all of them: the sum. None where it promises nothing.

    >>> from cloister.privacy import PureDP
    >>> over(PureDP("0.5"), 4)
    PureDP(epsilon='2')
    """
    try:
        return budget * windows
    except CloisterError:
        return None


def base_of(window: Mapping[str, Any]) -> str:
    """The name that the windows of one data set share.

    >>> base_of({"every": "year", "window": "2026", "of": "visits"}), base_of({})
    ('visits', '')
    """
    return str(window.get("of", ""))
