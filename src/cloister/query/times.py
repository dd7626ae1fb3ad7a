"""Times of day: constants are worked out where they are read; of a moment they are the texts that its hour and minute make.

TIME '10:30', PARSE_TIME('%H:%M', '10:30'), TIME(10, 30, 0)    → '10:30:00'
TIME_TRUNC(TIME '10:30', HOUR), TIME_ADD(…, INTERVAL 5 MINUTE) → '10:00:00', '10:35:00'
TIME_TRUNC(TIME(at), HOUR), FORMAT_TIME('%H:%M', TIME(at))     → LPAD(CAST(EXTRACT(HOUR FROM at) AS TEXT), 2, '0') || ':00:00', …
CAST(at AS TIME) >= TIME '10:30', EXTRACT(HOUR FROM TIME(at))  → EXTRACT(HOUR FROM at) * 60 + EXTRACT(MINUTE FROM at) >= 630, …

A time is written as a text, hh:mm:ss, since an answer has no column of times. Seconds of a moment are not told apart.
"""

import datetime
import re

from sqlglot import exp

from cloister.query.refusals import refused, shown

_TIME = exp.DataType.Type.TIME
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_READABLE = frozenset("HMSTRp")
_TEXT = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_LINE = "EXTRACT(HOUR FROM at)"
_SHARP = (exp.GTE, exp.LT)
"""Comparisons of a time with a whole minute that do not ask for its seconds."""
_TURNED: dict[type[exp.Expression], type[exp.Expression]] = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}


def constant_time(tree: exp.Expression | None) -> int | None:
    """The seconds since midnight of a time that is written out; None where it is none.

    >>> import sqlglot
    >>> constant_time(sqlglot.parse_one("PARSE_TIME('%H:%M', '10:20')", read="bigquery")), constant_time(exp.column("at"))
    (37200, None)
    """
    if isinstance(tree, exp.Paren):
        return constant_time(tree.this)
    if isinstance(tree, exp.Cast) and tree.to.this is _TIME:
        found = _TEXT.fullmatch(tree.this.this) if _is_text(tree.this) else None
        return None if found is None else _seconds(*(int(each or 0) for each in found.groups()))
    if isinstance(tree, exp.TimeFromParts):
        parts = [tree.args.get(part) for part in ("hour", "min", "sec")]
        numbers = [
            int(each.this) for each in parts if isinstance(each, exp.Literal) and not each.is_string and each.this.isdecimal()
        ]
        return _seconds(*numbers) if len(numbers) == 3 else None
    if isinstance(tree, exp.ParseTime) and _is_text(tree.this) and _is_text(tree.args.get("format")):
        written = tree.args["format"].this
        if not set(re.findall("%(.)", written)) <= _READABLE or len(written) + len(tree.this.this) > 100:
            return None
        try:
            read = datetime.datetime.strptime(tree.this.this, written)
        except ValueError:
            raise refused("A time is invalid", "it does not have the form that its format says", "TIME '10:30:00'") from None
        return _seconds(read.hour, read.minute, read.second)
    if isinstance(tree, exp.TimeTrunc):
        inner, step = constant_time(tree.this), _SECONDS.get(_unit(tree))
        return None if inner is None or step is None else inner // step * step
    if isinstance(tree, exp.TimeAdd | exp.TimeSub):
        inner, step, count = constant_time(tree.this), _SECONDS.get(_unit(tree)), tree.expression
        if inner is None or step is None or not isinstance(count, exp.Literal) or not str(count.this).isdecimal():
            return None
        return (inner + (step if isinstance(tree, exp.TimeAdd) else -step) * int(count.this)) % 86_400
    return None


def timed(node: exp.Expression) -> exp.Expression | None:
    """What a time of day, or a condition on one, is made of; None where the node is neither.

    >>> import sqlglot
    >>> timed(sqlglot.parse_one("TIME_TRUNC(TIME '10:20:00', HOUR)", read="bigquery")).sql()
    "'10:00:00'"
    >>> timed(sqlglot.parse_one("CAST(at AS TIME) < TIME '08:30'")).sql()
    '(EXTRACT(HOUR FROM at) * 60 + EXTRACT(MINUTE FROM at) < 510)'
    """
    known = constant_time(node)
    if known is not None and not isinstance(node, exp.Paren):
        return exp.Literal.string(f"{known // 3600:02}:{known // 60 % 60:02}:{known % 60:02}")
    if isinstance(node, exp.TimeDiff):
        return _difference(node)
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        return _compared(node)
    if isinstance(node, exp.Extract) and node.this.name.upper() in _SECONDS:
        seconds, at = constant_time(node.expression), _moment(node.expression)
        if seconds is not None:
            return exp.Literal.number(
                seconds // _SECONDS[node.this.name.upper()] % (24 if node.this.name.upper() == "HOUR" else 60)
            )
        return None if at is None else exp.Extract(this=node.this, expression=at)
    if isinstance(node, exp.TimeTrunc | exp.DateTrunc | exp.TimestampTrunc) and _unit(node) in ("HOUR", "MINUTE"):
        at = _moment(node.this)
        return None if at is None else _text_of(at, "%H:00:00" if _unit(node) == "HOUR" else "%H:%M:00")
    if isinstance(node, exp.TimeToStr) and _is_text(node.args.get("format")):
        at, written = _moment(node.this), node.args["format"].this
        used = set(re.findall("%(.)", written))
        if at is not None and used and used <= {"H", "M"} and len(written) <= 20:
            return _text_of(at, written)
    return None


def _is_text(tree: object) -> bool:
    return isinstance(tree, exp.Literal) and bool(tree.is_string)


def _unit(tree: exp.Expression) -> str:
    unit = tree.args.get("unit")
    return "" if not isinstance(unit, exp.Expression) else str(unit.name).upper()


def _seconds(hour: int, minute: int, second: int) -> int:
    if hour > 23 or minute > 59 or second > 59:
        raise refused("A time is invalid", "it is not one of a day", "TIME '10:30:00'")
    return hour * 3600 + minute * 60 + second


def _moment(tree: exp.Expression) -> exp.Expression | None:
    """That of which a time is taken."""
    found = tree
    while isinstance(found, exp.Paren | exp.TsOrDsToTime) or (isinstance(found, exp.Cast) and found.to.this is _TIME):
        found = found.this
    while isinstance(found, exp.Cast | exp.TsOrDsToTimestamp) and not isinstance(found.this, exp.Literal):
        found = found.this
    is_time = any(
        isinstance(each, exp.TsOrDsToTime) or (isinstance(each, exp.Cast) and each.to.this is _TIME) for each in tree.walk()
    )
    return found.copy() if isinstance(found, exp.Column) and is_time else None


def _part(part: str, at: exp.Expression) -> exp.Expression:
    return exp.Extract(this=exp.var(part), expression=at.copy())


def _text_of(at: exp.Expression, written: str) -> exp.Expression:
    """The text of an hour and a minute in a form."""
    pieces: list[exp.Expression] = []
    for piece in re.split("(%[HM])", written):
        if piece in ("%H", "%M"):
            number = exp.Cast(this=_part("HOUR" if piece == "%H" else "MINUTE", at), to=exp.DataType.build("TEXT"))
            two = exp.Literal.number(2)
            pieces.append(exp.Pad(this=number, expression=two, fill_pattern=exp.Literal.string("0"), is_left=True))
        elif piece:
            pieces.append(exp.Literal.string(piece))
    whole = pieces[0]
    for each in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=each, safe=True)
    return exp.Paren(this=whole)


def _time_of(tree: exp.Expression) -> int | None:
    """A constant beside a time: a text is one, too; before this it may have become one."""
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if _is_text(inner):
        found = _TEXT.fullmatch(inner.this)
        return None if found is None else _seconds(*(int(each or 0) for each in found.groups()))
    return constant_time(inner)


def _compared(node: exp.Binary) -> exp.Expression | None:
    kind: type[exp.Expression] = type(node)
    left, right = node.this, node.expression
    if _moment(left) is None and _moment(right) is not None:
        kind, left, right = _TURNED.get(type(node), type(node)), right, left
    at = _moment(left)
    if at is None:
        return None
    seconds = _time_of(right)
    if seconds is None or seconds % 60 or kind not in _SHARP:
        raise refused(
            f"{shown(node)} is not supported",
            "a time of day is compared by >= and < with a whole minute that is written out",
            "CAST(at AS TIME) >= TIME '10:30'",
        )
    hours = exp.Mul(this=_part("HOUR", at), expression=exp.Literal.number(60))
    minutes = exp.Add(this=hours, expression=_part("MINUTE", at))
    return exp.Paren(this=kind(this=minutes, expression=exp.Literal.number(seconds // 60)))


def _difference(node: exp.TimeDiff) -> exp.Expression | None:
    first, second, step = constant_time(node.this), constant_time(node.expression), _SECONDS.get(_unit(node))
    if first is None or second is None or step is None:
        return None
    found = first // step - second // step  # the boundaries that lie between, as ZetaSQL counts
    number = exp.Literal.number(abs(found))
    return exp.Neg(this=number) if found < 0 else number
