"""Texts of days as keys: rows are grouped by the period that a text stands for, and the text is written over the groups.

`strftime(day, '%Y-%m')` has one text for each month, so the question is grouped by the month; a weekday's name has one for each
day of the week, and `TO_CHAR(day, 'IYYY-IW')` one for each week. A format that mixes what is no period (a day of the month
without its month, a time) is not read.

Beside the letters of strftime `%Q` is the quarter and `%o` the day of the week from 1 for Sunday. What TO_CHAR does to a name
stands before its letter: UPPER, LOWER, and PADDED with blanks to nine signs.
"""

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from cloister.query.spellings import iso_week, thursday_of

Shape = Callable[[exp.Expression], exp.Expression]
UPPER, LOWER, PADDED = "\ue001", "\ue002", "\ue003"
"""Signs that no text that is asked has: their area of Unicode is for private use."""
_FLAGS = f"[-{UPPER}{LOWER}{PADDED}]*"
_DIRECTIVE = re.compile(f"%({_FLAGS})([A-Za-z%])")
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
_MONTHS += ["September", "October", "November", "December"]
_WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_PARTS = {"m": "MONTH", "B": "MONTH", "b": "MONTH", "A": "DOW", "a": "DOW", "w": "DOW", "u": "DOW", "o": "DOW"}
_PARTS |= {"d": "DAY", "j": "DOY", "V": "WEEK", "Q": "QUARTER"}
"""The part of a day that a letter stands for, where it has few values."""
_NUMBERS = {"MONTH": range(1, 13), "DOW": range(7), "DAY": range(1, 32), "DOY": range(1, 367), "WEEK": range(1, 54)}
_NUMBERS |= {"QUARTER": range(1, 5)}
_NATIVE = frozenset("YmBbdjFAaGVuw%")
"""What the engine's strftime writes as others do."""


def period_of(tree: exp.TimeToStr) -> tuple[exp.Expression, Shape] | None:
    """What to group by in the place of a text of a day, and how the text follows from that.

    >>> import sqlglot
    >>> below, shape = period_of(sqlglot.parse_one("STRFTIME(day, '%Y-%m')", read="duckdb"))
    >>> below.sql(), shape(exp.column("k")).sql(dialect="duckdb")
    ("DATE_TRUNC('MONTH', day)", "STRFTIME(k, '%Y-%m')")
    """
    written = tree.args.get("format")
    if not isinstance(written, exp.Literal) or not written.is_string:
        return None
    used = frozenset(letter for _, letter in _DIRECTIVE.findall(written.this)) - {"%"}
    day = tree.this
    while isinstance(day, exp.TsOrDsToDate | exp.Paren) or (isinstance(day, exp.Cast) and day.to.this == exp.DataType.Type.DATE):
        day = day.this  # a day is one already
    whole = single_part(written.this)
    if whole is not None:
        return _named(day, whole, written.this)
    unit = _unit(used)
    if unit is None:
        return None
    below = day.copy() if unit == "DAY" else exp.DateTrunc(this=day.copy(), unit=exp.Literal.string(unit))
    below.meta["iso"] = True
    if used <= _NATIVE and not any(flags for flags, _ in _DIRECTIVE.findall(written.this)):
        return below, lambda key: exp.TimeToStr(this=key, format=written.copy())
    if isinstance(written_out(tree), exp.TimeToStr):
        return None
    return below, lambda key: written_out(exp.TimeToStr(this=key, format=written.copy()))


def single_part(written: str) -> str | None:
    """The one part of a day of which a format tells; None where it has several, or a year.

    >>> single_part("%d."), single_part("%A"), single_part("%Y-%m")
    ('DAY', 'DOW', None)
    """
    parts = {_PARTS.get(letter) for _, letter in _DIRECTIVE.findall(written) if letter != "%"}
    return parts.pop() if len(parts) == 1 else None


def _unit(used: frozenset[str]) -> str | None:
    """The period that has one text, and no other has: all days of it agree in what the letters tell, which tells it."""
    if not used <= {*_PARTS, "Y", "F", "G"}:
        return None
    if "F" in used or ("Y" in used and ("j" in used or ("d" in used and used & set("mBb")))):
        return "DAY"
    if {"G", "V"} <= used:
        return "WEEK" if used == {"G", "V"} else "DAY" if used & set("AaVuwo") - {"V"} else None
    if "Y" in used and used <= set("YmBbQ"):
        return "MONTH" if used & set("mBb") else "QUARTER" if "Q" in used else "YEAR"
    return None


def _named(day: exp.Expression, part: str, written: str) -> tuple[exp.Expression, Shape]:
    """A part of a day, and its text: a CASE over the few numbers that it has."""

    def text(number: int) -> str:
        names = {"%": "%"}
        if part == "MONTH":
            names |= {"m": f"{number:02}", "B": _MONTHS[number - 1], "b": _MONTHS[number - 1][:3]}
        elif part == "DOW":
            names |= {"A": _WEEKDAYS[number], "a": _WEEKDAYS[number][:3], "w": str(number)}
            names |= {"u": str(number or 7), "o": str(number + 1)}
        else:
            names |= {"d": f"{number:02}", "V": f"{number:02}", "j": f"{number:03}", "Q": str(number)}
        return _DIRECTIVE.sub(lambda found: _flagged(names[found[2]], found[1]), written)

    def shape(key: exp.Expression) -> exp.Expression:
        numbers = _NUMBERS[part]
        cases = [exp.If(this=exp.Literal.number(number), true=exp.Literal.string(text(number))) for number in numbers]
        return exp.Case(this=key, ifs=cases)

    if part == "WEEK":
        return iso_week(day.copy()), shape
    return exp.Extract(this=exp.var(part), expression=day.copy()), shape


def _flagged(name: str, flags: str) -> str:
    changes: dict[str, Callable[[str], str]] = {"-": lambda text: text.lstrip("0"), UPPER: str.upper, LOWER: str.lower}
    changes[PADDED] = lambda text: f"{text:<9}"
    for each in flags:
        name = changes[each](name)
    return name


def written_out(tree: exp.TimeToStr) -> exp.Expression:
    """A text of a day as what its parts make, for conditions on rows; the text itself where a part is none that is known.

    >>> import sqlglot
    >>> written_out(sqlglot.parse_one("STRFTIME(day, '%A')", read="duckdb")).sql()[:52]
    "CASE EXTRACT(DOW FROM day) WHEN 0 THEN 'Sunday' WHEN"
    >>> written_out(sqlglot.parse_one("STRFTIME(day, '%Y-%m-%d')", read="duckdb")).sql()
    'CAST(day AS TEXT)'
    """
    written = tree.args.get("format")
    if not isinstance(written, exp.Literal) or not written.is_string:
        return tree
    text = written.this.replace("%F", "%Y-%m-%d")
    day = tree.this
    if text == "%Y-%m-%d":
        return exp.Cast(this=day.copy(), to=exp.DataType.build("TEXT"))
    whole = single_part(text)
    if whole is not None:
        return _shaped(_named(day, whole, text))
    pieces: list[exp.Expression] = []
    for piece in re.split(f"(%{_FLAGS}[A-Za-z%])", text):
        letter = piece[-1:]
        if not piece.startswith("%"):
            found: exp.Expression | None = exp.Literal.string(piece) if piece else None
        elif piece in ("%Y", "%G"):
            of = day.copy() if piece == "%Y" else thursday_of(day.copy())
            found = exp.Cast(this=exp.Extract(this=exp.var("YEAR"), expression=of), to=exp.DataType.build("TEXT"))
        elif letter in _PARTS:
            found = _shaped(_named(day, _PARTS[letter], piece))
        elif piece == "%%":
            found = exp.Literal.string("%")
        else:
            return tree
        pieces += [found] if found is not None else []
    return _together(pieces) if pieces else tree


def _together(pieces: Sequence[exp.Expression]) -> exp.Expression:
    whole = pieces[0]
    for each in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=each, safe=True)
    return exp.Paren(this=whole) if len(pieces) > 1 else whole


def _shaped(found: tuple[exp.Expression, Shape]) -> exp.Expression:
    below, shape = found
    return shape(below)
