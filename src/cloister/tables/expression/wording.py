"""Conditions in words, for plans: SQL as a person would write it."""

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cloister.privacy.rational import exact, text_of
from cloister.tables.expression.expressions import And, Between, Column, Compare, Expression, In, IsNull, Like, Literal, Not, Or


def in_words(condition: Expression, name: Callable[[str], str] = str) -> str:
    """The condition as text; `name` says how a column is written.

    >>> in_words(And(Compare(">=", Column("age"), Literal(18)), Not(In("sex", ["F", None]))))
    "age >= 18 AND NOT (sex IN ('F', NULL))"
    """
    if isinstance(condition, Column):
        return name(condition.name)
    if isinstance(condition, Literal):
        return _constant(condition.value)
    if isinstance(condition, Compare):
        return f"{in_words(condition.left, name)} {condition.op} {in_words(condition.right, name)}"
    if isinstance(condition, Between):
        return f"{name(condition.column.name)} BETWEEN {in_words(condition.low, name)} AND {in_words(condition.high, name)}"
    if isinstance(condition, In):
        return f"{name(condition.column.name)} IN ({', '.join(_constant(value) for value in condition.values)})"
    if isinstance(condition, Like):
        return f"{name(condition.column.name)} LIKE {_constant(condition.pattern)}"
    if isinstance(condition, IsNull):
        return f"{name(condition.column.name)} IS NULL"
    if isinstance(condition, Not):
        return f"NOT ({in_words(condition.part, name)})"
    if isinstance(condition, And | Or):
        sign = " AND " if isinstance(condition, And) else " OR "
        return sign.join(
            f"({in_words(part, name)})" if isinstance(part, And | Or) else in_words(part, name) for part in condition.parts
        )
    return repr(condition)


def _constant(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    return text_of(value if isinstance(value, Fraction) else exact(value))
