"""Constants: what a question writes with no column in it, worked out exactly, once, before any row is read."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import Dialect, exp

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy import exact
from cloister.query.refusals import clipped, refused, shown, unsupported, whole

if TYPE_CHECKING:
    from cloister.query.numbers import Rules


def _types(*names: str) -> frozenset[exp.DataType.Type]:
    return frozenset(exp.DataType.Type[name] for name in names)


TEXTS = _types("TEXT", "VARCHAR", "CHAR", "NVARCHAR", "NCHAR")
WHOLE = _types("INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT128", "UINT")
NUMBERS = WHOLE | _types("DOUBLE", "FLOAT", "DECIMAL")
_MOMENTS = _types("DATETIME", "DATETIME2", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_LINE = "a number, a text in single quotes, TRUE or DATE '2026-01-31'"
_PARTS: tuple[type[exp.Expression], ...] = (
    exp.Literal,
    exp.Neg,
    exp.Paren,
    exp.Boolean,
    exp.Null,
    exp.Cast,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Interval,
)
_PARTS += (exp.Var, exp.DataType, exp.DataTypeParam, exp.Date, exp.TsOrDsToDate, exp.Concat, exp.DPipe, exp.DateAdd, exp.DateSub)


def is_constant(tree: exp.Expression) -> bool:
    """Whether no column, and nothing but arithmetic, stands in it.

    >>> from sqlglot import parse_one
    >>> is_constant(parse_one("2 * (3 - 1)")), is_constant(parse_one("age + 1"))
    (True, False)
    """
    return all(isinstance(part, _PARTS) or _is_unit(part) for part in tree.walk())


def counts_rows(tree: Any) -> bool:
    """Whether COUNT of it counts every row: `*`, or a constant other than NULL.

    >>> from sqlglot import parse_one
    >>> [counts_rows(parse_one(text)) for text in ("1", "NULL", "age")]
    [True, False, False]
    """
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Expression) and is_constant(tree) and constant(tree) is not None)


def constant(tree: exp.Expression) -> Any:
    """The value: a whole number, a fraction, a text, a day, a truth value or None.

    >>> from sqlglot import parse_one
    >>> constant(parse_one("2 * (3 - 1) / 8")), constant(parse_one("DATE '2026-01-31' + INTERVAL '1' MONTH"))
    (Fraction(1, 2), datetime.date(2026, 2, 28))
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Literal):
        return tree.this if tree.is_string else number_of(tree.this)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Neg):
        value = constant(tree.this)
        if isinstance(value, Fraction | int) and not isinstance(value, bool):
            return -value
    if isinstance(tree, exp.Date | exp.TsOrDsToDate):
        inner = constant(tree.this)
        return inner if isinstance(inner, datetime.date) else _day(tree, tree.this)
    if isinstance(tree, exp.Cast):
        return _cast(tree)
    if isinstance(tree, exp.Concat | exp.DPipe):
        parts = [constant(part) for part in (tree.expressions or (tree.this, tree.expression))]
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _arithmetic(tree)
    if isinstance(tree, exp.DateAdd | exp.DateSub):
        return _shift(tree, constant(tree.this), tree.expression, negative=isinstance(tree, exp.DateSub))
    raise unsupported(f"{shown(tree)} in place of a constant", _LINE)


def shifted(interval: exp.Expression, unit: exp.Expression | None = None) -> tuple[int, str]:
    """How many of which unit an interval is.

    >>> from sqlglot import parse_one
    >>> shifted(parse_one("INTERVAL '3' MONTH")), shifted(parse_one("INTERVAL '90' DAY (3)"))
    ((3, 'month'), (90, 'day'))
    """
    count: Any = interval
    if isinstance(interval, exp.Interval):
        count, unit = interval.this, interval.args.get("unit")
    word, digits_allowed = _unit_of(unit)
    text, sign = count, 1
    if isinstance(text, exp.Neg):
        text, sign = text.this, -1
    number = None
    if isinstance(text, exp.Literal):
        digits = text.this.strip()
        number = whole(digits.removeprefix("-"))
        sign = -sign if digits.startswith("-") else sign
    if number is None or number > 1_000_000 or len(str(number)) > digits_allowed or word not in {*_MONTHS, *_DAYS}:
        raise unsupported(f"The interval {shown(interval)}", "INTERVAL '3' MONTH")
    return sign * number, word


def _is_unit(part: exp.Expression) -> bool:
    return part.arg_key == "unit" and isinstance(part.parent, exp.Interval)


def _unit_of(unit: exp.Expression | None) -> tuple[str, int]:
    """The unit, and how many digits the number may have: `DAY (3)` is read as a function of 3, and means three."""
    if not isinstance(unit, exp.Expression):
        return "day", 7
    if isinstance(unit, exp.Day | exp.Month | exp.Year | exp.Quarter | exp.Week):
        return unit.key, (whole(unit.name) if isinstance(unit.this, exp.Literal) else None) or 0
    return unit.name.lower().removesuffix("s"), 7


def number_of(text: str) -> Fraction | int:
    """The number that a text of digits is.

    >>> number_of("1e3")
    Fraction(1000, 1)
    """
    try:
        value = exact(text, "constant")
    except InvalidParameter:
        value = None
    if value is None:
        raise refused(f"The constant {clipped(text)} is invalid", "it is too long, too large or no number", "age >= 18")
    return int(value) if text.isdecimal() else value


def is_double(tree: exp.Expression, rules: Rules) -> bool:
    """Whether a constant is a double in the dialect: written with an exponent, cast to one, or a quotient that is one there.

    >>> from cloister.query.numbers import RULES
    >>> from sqlglot import parse_one
    >>> texts = ("2.5", "-2.5e0", "CAST(2 AS DOUBLE)", "1 / 2", "3 * (1 + 1e0)")
    >>> [is_double(parse_one(text), RULES["duckdb"]) for text in texts]
    [False, True, True, True, True]
    """
    while isinstance(tree, exp.Neg | exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Div):
        sides = (tree.this, tree.expression)
        if any(is_double(side, rules) for side in sides):
            return True
        if not isinstance(tree, exp.Div):
            return False
        whole_sides = all(isinstance(constant(side), int) for side in sides)
        return (rules.quotient if whole_sides else rules.decimal_quotient) == "double"
    if isinstance(tree, exp.Cast):
        return tree.to.this in NUMBERS - WHOLE - {exp.DataType.Type.DECIMAL}
    exponent = isinstance(tree, exp.Literal) and not tree.is_string and "e" in tree.this.lower()
    return exponent and rules.exponent == "double"


def _cast(tree: exp.Cast) -> Any:
    kind = tree.to.this
    if kind in _MOMENTS or kind is exp.DataType.Type.DATE:
        return (_moment(tree.this) if kind in _MOMENTS else None) or _day(tree, tree.this)
    value = constant(tree.this)
    number = isinstance(value, int | Fraction) and not isinstance(value, bool)
    if kind in NUMBERS and number:
        size = [whole(part.name) for part in tree.to.expressions]
        places = 0 if kind in WHOLE or len(size) == 1 else size[1] if size else None
        if places is None or (Fraction(value) * 10**places).denominator == 1:  # halves go where the dialect says
            return int(value) if kind in WHOLE else Fraction(value)
    if kind in TEXTS and isinstance(value, str) and not tree.to.expressions:
        return value
    raise unsupported(f"{shown(tree)} in place of a constant", _LINE)


def _moment(written: exp.Expression) -> str | datetime.date | None:
    """`TIMESTAMP '2026-01-31 12:00:00+08:00'`: what a moment is compared with: a text in UTC, or a day. None: no time."""
    text = written.this if isinstance(written, exp.Literal) and written.is_string else ""
    zone = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
    with suppress(ValueError, OverflowError):
        if re.fullmatch(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.0+)?)?{zone}", text):
            found = datetime.datetime.fromisoformat(re.sub(r"\.0+", "", text))
            found = found.replace(tzinfo=None) - (found.utcoffset() or datetime.timedelta())
            return found.isoformat(" ") if found.time() != datetime.time() else found.date()
    return None


def _day(tree: exp.Expression, written: exp.Expression) -> datetime.date:
    """`DATE '2026-01-31'`: a date and no text, so that comparing it with a column of text is refused. A time must be midnight."""
    text = written.this if isinstance(written, exp.Literal) and written.is_string else ""
    with suppress(ValueError):
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]00:00(:00(\.0+)?)?)?", text):
            return datetime.date.fromisoformat(text[:10])
    raise refused(f"{shown(tree)} is invalid", "it is not a day of the calendar", "DATE '2026-01-31'")


def _arithmetic(tree: exp.Binary) -> Any:
    left = constant(tree.this)
    if isinstance(tree, exp.Add | exp.Sub) and isinstance(tree.expression, exp.Interval):
        return _shift(tree, left, tree.expression, negative=isinstance(tree, exp.Sub))
    right = constant(tree.expression)
    if left is None or right is None:
        return None
    if type(left) is datetime.date and type(right) is int and isinstance(tree, exp.Add | exp.Sub):
        days = exp.Interval(this=exp.Literal.string(str(right)), unit=exp.var("DAY"))
        return _shift(tree, left, days, negative=isinstance(tree, exp.Sub))
    if any(isinstance(side, bool) or not isinstance(side, int | Fraction) for side in (left, right)):
        raise unsupported(f"{shown(tree)} in place of a constant", _LINE)
    if isinstance(tree, exp.Div):
        value = None if right == 0 else Fraction(left) / Fraction(right)
        if value is not None and tree.args.get("typed") and isinstance(left, int) and isinstance(right, int):
            value = Fraction(abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1))
    else:
        value = Fraction(
            left + right if isinstance(tree, exp.Add) else left - right if isinstance(tree, exp.Sub) else left * right
        )
    if value is None:
        return None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 1_000:
        raise refused(f"The constant {shown(tree)} is invalid", "it is too long, too large or no number", "age >= 18")
    whole_sides = isinstance(left, int) and isinstance(right, int)
    return int(value) if whole_sides and value.denominator == 1 else value


def _shift(tree: exp.Expression, day: Any, interval: exp.Expression, *, negative: bool) -> datetime.date:
    if isinstance(day, str):
        day = _day(tree, exp.Literal.string(day))
    if not isinstance(day, datetime.date):
        raise unsupported(f"{shown(tree)} in place of a constant", _LINE)
    count, unit = shifted(interval, tree.args.get("unit"))
    count = -count if negative else count
    try:
        if unit in _DAYS:
            return day + datetime.timedelta(days=count * _DAYS[unit])
        months = day.year * 12 + day.month - 1 + count * _MONTHS[unit]
        year, month = divmod(months, 12)
        last = (datetime.date(year + (month == 11), (month + 1) % 12 + 1, 1) - datetime.timedelta(days=1)).day
        return datetime.date(year, month + 1, min(day.day, last))
    except (ValueError, OverflowError):
        pass
    raise UnsupportedQuery(f"{shown(tree)} is invalid", why="it is not a day of the calendar", instead="DATE '2026-01-31'")


def between_words(tree: exp.Initcap) -> str | None:
    """The signs between the words of INITCAP, as a regular expression has them in brackets; None: all but letters and digits.

    >>> import sqlglot
    >>> between_words(sqlglot.parse_one("INITCAP(town)", dialect="spark")), between_words(sqlglot.parse_one("INITCAP(town)"))
    (' ', None)
    """
    signs = tree.args.get("expression")
    if signs is None or signs.name == Dialect.INITCAP_DEFAULT_DELIMITER_CHARS:
        return None
    if not any(signs.name == each.INITCAP_DEFAULT_DELIMITER_CHARS for each in Dialect.classes.values()):
        raise refused("INITCAP with a second argument is not supported", "each dialect has a default of its own", "INITCAP(town)")
    return str(signs.name)
