"""Which values count as a number, a day or a truth value: the patterns that every engine shares, and the same rules in Python.

The patterns are written in what Python, RE2 (DuckDB), PostgreSQL and Java (Spark) read alike.
"""

import datetime
import math
import re
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

SPACE = " \t\n\v\f\r"
NUMBER = r"[ \t\n\x0b\f\r]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\n\x0b\f\r]*"
WHOLE = r"[ \t\n\x0b\f\r]*[+-]?[0-9]+[ \t\n\x0b\f\r]*"
PLAIN_INTEGER = r"0|-?[1-9][0-9]{0,17}"
ISO_DATE = r"[ ]*[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.Z+ -]*)?"
ISO_MOMENT = (
    r"[ ]*[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)([.][0-9]{1,9})?)?"
    r"(Z|[+-](0[0-9]|1[0-4])(:[0-5][0-9])?)?)?[ ]*"
)
_SPACES = r"[ \t\n\x0b\f\r]*"
_THOUSANDS = r"[1-9][0-9]{0,2}([.][0-9]{3})"
DOUBTFUL = f"{_SPACES}[+-]?{_THOUSANDS}{_SPACES}"
"""A number that is two thousand or two, where semicolons stand between fields."""
_YEAR_FIRST = (("^ *([0-9]+)[.]([0-9]+)[.]([0-9]+)", r"\3-0\2-0\1"), ("-0([0-9]{2})", r"-\1"), ("([ T])([0-9]:)", r"\g<1>0\2"))
SPELT = (
    ("decimal", (";",), "", rf"{_SPACES}[+-]?[0-9]*,[0-9]*([eE][+-]?[0-9]+)?{_SPACES}", ((",", "."),)),
    ("whole", (";",), ".", f"{_SPACES}[+-]?{_THOUSANDS}+(,0*)?{_SPACES}", (("[.]", ""), (",0*", ""))),
    ("date", (",", ";", "\t", "|"), ".", " *[0-9]{1,2}[.][0-9]{1,2}[.][0-9]{4}([ T][0-9:.Z+ -]*)?", _YEAR_FIRST),
)
"""What people write in a CSV file: in a column declared as one that takes this kind, where one of these signs stands between
fields, a cell whose beginning holds this and all of which looks so; and what stands for what in it. Spreadsheets write decimal
commas between semicolons; with points it is the day that comes first. 2.000 is two thousand where numbers are whole, else two:
so 2.000,5 is no number, lest it hide that."""
LONGEST_NUMBER = 300
TRUE_SPELLINGS = ("true", "t", "yes", "y", "1")
FALSE_SPELLINGS = ("false", "f", "no", "n", "0")
EPOCH, START = datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 1)
_LEAP = re.compile(r"(:[0-9]{2}):60(?=$|[.,Z+-])")


def representable(text: str) -> bool:
    """Whether every engine can hold the text: no NUL, no lone surrogate.

    >>> representable("Zürich 🏔"), representable("a\\0b")
    (True, False)
    """
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def read_plain(value: Any) -> Any:
    """A numpy scalar as the Python value that it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def spelled(item: Any) -> str | None:
    """The text of a value among values of other types: what it would be called, were it the name of a unit of its own kind.

    >>> spelled(1.0), spelled(True), spelled(0.5)
    ('1', 'true', '0.5')
    """
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        if not math.isfinite(item):
            return None
        return str(int(item)) if item.is_integer() and abs(item) < 2**62 else repr(float(item))
    since = since_epoch(item) if isinstance(item, datetime.date) else None
    if since is not None and isinstance(item, datetime.datetime):
        moment = START + since
        text = moment.isoformat(" ")
        return text.rstrip("0") if moment.microsecond else text
    if since is not None:
        return (EPOCH + since).isoformat()
    return str(item)


def spelt(text: str, kinds: Collection[str], delimiter: str) -> str:
    """A cell of a CSV file as a declaration that takes these kinds reads it (`SPELT`).

    >>> spelt("3,5", ("decimal",), ";"), spelt("2.000", ("whole",), ";"), spelt("1.2.2026", ("date",), ",")
    ('3.5', '2000', '2026-02-01')
    """
    for kind, between, sign, form, steps in SPELT:
        if kind in kinds and delimiter in between and sign in text[:9] and re.fullmatch(form, text):
            return reduce(lambda read, step: re.sub(step[0], step[1], read), steps, text)
    return text


def read_whole(value: object) -> int | None:
    """A whole number, or the text of one, exactly."""
    value = read_plain(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal):
        value = str(value)
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER and re.fullmatch(WHOLE, value):
        return int(value)
    return None


def read_number(value: object) -> float | None:
    """A finite number as a double; ±infinity for a finite number too large for one; None for what is not a finite number."""
    value = read_plain(value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | Decimal):
        text = str(value)
        if len(text) > LONGEST_NUMBER or not re.fullmatch(NUMBER, text):
            return None
        return float(text)
    if isinstance(value, int | Fraction):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return None


def read_truth(value: object) -> bool | None:
    """A truth value, the number 1 or 0, or a text that spells one."""
    if isinstance(value, str):
        spelled = value.strip(SPACE).lower()
        return True if spelled in TRUE_SPELLINGS else False if spelled in FALSE_SPELLINGS else None
    if isinstance(value, bool):
        return value
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def read_days(value: object) -> int | None:
    """Days since 1970-01-01 of a day, a time (in UTC, where it has a zone) or an ISO text of either."""
    value = read_plain(value)
    if isinstance(value, datetime.datetime):
        found = since_epoch(value)
        return None if found is None else found.days
    if isinstance(value, datetime.date):
        return (value - EPOCH).days
    if isinstance(value, str) and re.fullmatch(ISO_DATE, value):
        try:
            day = (datetime.date.fromisoformat(value.lstrip(" ")[:10]) - EPOCH).days
        except ValueError:
            return None
        seconds = read_seconds(value)
        first, last = ((end - EPOCH).days for end in (datetime.date.min, datetime.date.max))
        return day if seconds is None else min(max(seconds // 86_400, first), last)
    return None


def read_seconds(value: object) -> int | None:
    """Seconds since 1970-01-01 of a moment (in UTC, where it has a zone), a day (its first second) or an ISO text."""
    value = read_plain(value)
    if isinstance(value, str) and not re.fullmatch(ISO_MOMENT, value):
        return None
    found = since_epoch(value)
    return None if found is None else found // datetime.timedelta(seconds=1)


def since_epoch(value: object) -> datetime.timedelta | None:
    """The time since 1970-01-01 of a moment (in UTC, where it has a zone), a day or any ISO text, of which a leap second is the
    last second of its minute.

    >>> since_epoch("1972-06-30T23:59:60.5Z") == since_epoch("1972-06-30T23:59:59.5"), since_epoch("noon")
    (True, None)
    """
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(_LEAP.sub(r"\1:59", value.strip()))
        except ValueError:
            return None
    if not isinstance(value, datetime.date) or value != value:  # NaT of pandas is a datetime, which no moment equals
        return None
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None) - START - (value.utcoffset() or datetime.timedelta())
    return value - EPOCH
