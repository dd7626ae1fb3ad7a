"""Texts of days as keys: rows are grouped by the period that a text stands for, and the text is written over the groups.

`strftime(day, '%Y-%m')` has one text for each month, so the question is grouped by the month; a weekday's name has one for each
day of the week. A format that mixes what is no period (a day of the month without its month, a time) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

Shape = Callable[[exp.Expression], exp.Expression]
_DIRECTIVE = re.compile(r"%-?([A-Za-z%])")
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
_MONTHS += ["September", "October", "November", "December"]
_WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_OF_YEAR, _OF_MONTH, _OF_DAY = frozenset("Y"), frozenset("YmBb"), frozenset("YmBbdjFAa")


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
    used = frozenset(_DIRECTIVE.findall(written.this)) - {"%"}
    day = tree.this
    while isinstance(day, exp.TsOrDsToDate | exp.Paren) or (isinstance(day, exp.Cast) and day.to.this == exp.DataType.Type.DATE):
        day = day.this  # a day is one already
    tells_days = bool(used & set("jF")) or ("d" in used and bool(used & set("mBb")))
    unit = "YEAR" if used <= _OF_YEAR else "MONTH" if used <= _OF_MONTH else "DAY"
    if used & set("YF") and used <= _OF_DAY and (unit != "DAY" or tells_days) and "%-" not in written.this:
        below = day if unit == "DAY" else exp.DateTrunc(this=day, unit=exp.Literal.string(unit))
        return below.copy(), lambda key: exp.TimeToStr(this=key, format=written.copy())
    if used and used <= frozenset("mBb"):
        return _named(day, "MONTH", range(1, 13), written.this)
    if used and used <= frozenset("Aa"):
        return _named(day, "DOW", range(7), written.this)
    return None


def _named(day: exp.Expression, part: str, numbers: range, written: str) -> tuple[exp.Expression, Shape]:
    """A part of a day, and its text: a CASE over the few numbers that it has."""

    def text(number: int) -> str:
        names = {"m": f"{number:02}", "d": f"{number:02}", "%": "%"}
        if part == "MONTH":
            names |= {"B": _MONTHS[number - 1], "b": _MONTHS[number - 1][:3]}
        elif part == "DOW":
            names |= {"A": _WEEKDAYS[number], "a": _WEEKDAYS[number][:3]}
        return _DIRECTIVE.sub(lambda found: names[found[1]].lstrip("0") if "-" in found[0] else names[found[1]], written)

    def shape(key: exp.Expression) -> exp.Expression:
        cases = [exp.If(this=exp.Literal.number(number), true=exp.Literal.string(text(number))) for number in numbers]
        return exp.Case(this=key, ifs=cases)

    return exp.Extract(this=exp.var(part), expression=day.copy()), shape


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
    pieces: list[exp.Expression] = []
    for piece in re.split(r"(%-?[A-Za-z%])", text):
        letter = piece[-1:]
        if not piece.startswith("%"):
            found: exp.Expression | None = exp.Literal.string(piece) if piece else None
        elif piece == "%Y":
            found = exp.Cast(this=exp.Extract(this=exp.var("YEAR"), expression=day.copy()), to=exp.DataType.build("TEXT"))
        elif letter in "mBb":
            found = _shaped(_named(day, "MONTH", range(1, 13), piece))
        elif letter in "Aa":
            found = _shaped(_named(day, "DOW", range(7), piece))
        elif letter == "d":
            found = _shaped(_named(day, "DAY", range(1, 32), piece))
        else:
            return tree
        pieces += [found] if found is not None else []
    whole = pieces[0] if pieces else tree
    for each in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=each, safe=True)
    return exp.Paren(this=whole) if len(pieces) > 1 else whole


def _shaped(found: tuple[exp.Expression, Shape]) -> exp.Expression:
    below, shape = found
    return shape(below)
