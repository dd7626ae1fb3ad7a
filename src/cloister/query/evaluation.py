"""Conditions over values that anybody may see: rows of a public table, rows of an answer that was released. In plain Python, with
SQL's three truth values.
"""

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.tables.expression.expressions import (
    OPERATORS,
    And,
    Between,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    matches,
)


class MixedKinds(UnsupportedQuery):
    """Values of two kinds are compared: so they are however the query is read."""

    stored = "UnsupportedQuery"


def holds(condition: Expression, row: Mapping[str, Any]) -> bool | None:
    """Whether the condition is true of a row of values; None where SQL says NULL.

    >>> n = Column("n")
    >>> holds(And(Compare(">", n, Literal(3)), Not(IsNull(n))), {"n": 4.5}), holds(Compare("=", n, Literal(1)), {"n": None})
    (True, None)
    """
    if isinstance(condition, And | Or):
        found = [holds(part, row) for part in condition.parts]
        decisive = isinstance(condition, Or)
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(condition, Not):
        inner = holds(condition.part, row)
        return None if inner is None else not inner
    if isinstance(condition, Compare):
        return _compared(condition.op, _value(condition.left, row), _value(condition.right, row))
    if isinstance(condition, Between):
        value = plain(row[condition.column.name])
        both = [_compared(op, value, plain(end.value)) for op, end in ((">=", condition.low), ("<=", condition.high))]
        return False if False in both else None if None in both else True
    if isinstance(condition, In):
        value = plain(row[condition.column.name])
        found = [_compared("=", value, plain(each)) for each in condition.values]
        return True if True in found else None if None in found else False
    if isinstance(condition, IsNull):
        return plain(row[condition.column.name]) is None
    if isinstance(condition, Like):
        text = plain(row[condition.column.name])
        return None if _compared("=", text, "letters") is None else matches(text, condition.pattern)
    if isinstance(condition, Literal):
        value = condition.value
        return value if isinstance(value, bool) else None
    assert isinstance(condition, Column), "there is no other kind of condition"
    value = plain(row[condition.name])
    return value if isinstance(value, bool) else None


def plain(value: Any) -> Any:
    """A value as it is compared: exact numbers, days, texts, truth values; None for everything that is missing.

    >>> plain(0.1), plain(Decimal("1.50")), plain(float("nan"))
    (Fraction(1, 10), Fraction(3, 2), None)
    """
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    if isinstance(value, datetime.datetime):
        return value.date()
    return value


def _value(part: Expression, row: Mapping[str, Any]) -> Any:
    if isinstance(part, Column):
        return plain(row[part.name])
    return plain(part.value) if isinstance(part, Literal) else None


def _compared(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    left, right = _day_beside(left, right), _day_beside(right, left)
    if kind_of(left) != kind_of(right):
        raise MixedKinds(
            "A comparison is not supported",
            why=f"{kind_of(left)} are compared with {kind_of(right)}",
            instead="values of one kind",
        )
    return OPERATORS[op](left, right)


def _day_beside(value: Any, other: Any) -> Any:
    """A text beside a day is that day, where it is one."""
    if isinstance(value, str) and isinstance(other, datetime.date):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return value
    return value


def kind_of(value: Any) -> str:
    """What values of its kind are called; values of two kinds are not compared.

    >>> kind_of(Fraction(1, 2)), kind_of("Delft"), kind_of(True)
    ('numbers', 'texts', 'truth values')
    """
    if isinstance(value, bool):
        return "truth values"
    return "texts" if isinstance(value, str) else "days" if isinstance(value, datetime.date) else "numbers"
