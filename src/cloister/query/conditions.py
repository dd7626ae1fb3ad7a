"""WHERE: from SQL to the condition language of `tables`, in which nothing can overflow, fail to cast or raise on one row."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.query.grammar import clipped, shown, unsupported
from cloister.tables import And, Between, Column, Compare, Expression, In, IsNull, Like, Literal, Not, Or, PrivateTable

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 200

Resolve = Callable[[exp.Expression], str]


def condition(tree: exp.Expression, resolve: Resolve, declaration: PrivateTable, depth: int = 0) -> Expression:
    """The condition that a WHERE clause writes."""
    if depth > _DEEPEST:
        raise UnsupportedQuery("The condition was refused", why=f"it is nested deeper than {_DEEPEST}", instead="x IN (1, 2, 3)")

    def inner(part: exp.Expression) -> Expression:
        return condition(part, resolve, declaration, depth + 1)

    if isinstance(tree, exp.Paren):
        return inner(tree.this)
    if isinstance(tree, exp.And | exp.Or):
        kind = type(tree)
        parts = tuple(inner(part) for part in _flat(tree, kind))
        return And(*parts) if kind is exp.And else Or(*parts)
    if isinstance(tree, exp.Not):
        return Not(inner(tree.this))
    if type(tree) in _COMPARISONS:
        return _compare(tree, resolve)
    if isinstance(tree, exp.Is):
        return _is(tree, resolve)
    if isinstance(tree, exp.In) and tree.expressions:
        return In(Column(resolve(tree.this)), tuple(_constant(part) for part in tree.expressions))
    if isinstance(tree, exp.Between):
        return Between(Column(resolve(tree.this)), _constant(tree.args["low"]), _constant(tree.args["high"]))
    if isinstance(tree, exp.Like):
        pattern = _constant(tree.expression)
        if not isinstance(pattern, str):
            raise unsupported("LIKE with a pattern that is no text", "town LIKE 'D%'")
        return Like(Column(resolve(tree.this)), pattern)
    if isinstance(tree, exp.Column) and declaration.columns[resolve(tree)].kind == "boolean":
        return Compare("=", Column(resolve(tree)), Literal(True))
    raise unsupported(f"{shown(tree)} in WHERE", "WHERE age >= 18 AND sex = 'F'")


def _flat(tree: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    """AND and OR chains as flat lists, without recursion: a chain of ten thousand is long, not deep."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, kind):
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _compare(tree: exp.Expression, resolve: Resolve) -> Expression:
    sign = _COMPARISONS[type(tree)]
    left, right = tree.this.unnest(), tree.expression.unnest()
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return Compare(sign, Column(resolve(left)), Column(resolve(right)))
    if isinstance(left, exp.Column):
        return Compare(sign, Column(resolve(left)), Literal(_constant(right)))
    if isinstance(right, exp.Column):
        return Compare(_FLIPPED[sign], Column(resolve(right)), Literal(_constant(left)))
    raise unsupported(f"{shown(tree)} in WHERE", "a comparison of a column with a constant")


def _is(tree: exp.Is, resolve: Resolve) -> Expression:
    column = Column(resolve(tree.this))
    if isinstance(tree.expression, exp.Null):
        return IsNull(column)
    if isinstance(tree.expression, exp.Boolean):
        return And(Compare("=", column, Literal(bool(tree.expression.this))), Not(IsNull(column)))
    raise unsupported(f"{shown(tree)} in WHERE", "x IS NULL")


def _constant(tree: exp.Expression) -> Any:
    tree = tree.unnest()
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return tree.this
        return _number(tree.this)
    if isinstance(tree, exp.Neg):
        value = _constant(tree.this)
        if isinstance(value, Fraction | int) and not isinstance(value, bool):
            return -value
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.DATE:
        return _day(tree)
    raise unsupported(f"{shown(tree)} in place of a constant", "a number, a text in single quotes, TRUE or DATE '2026-01-31'")


def _day(tree: exp.Cast) -> datetime.date:
    """`DATE '2026-01-31'`: a date and no text, so that comparing it with a column of text is refused."""
    text = tree.this.this if isinstance(tree.this, exp.Literal) and tree.this.is_string else ""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise UnsupportedQuery(f"{shown(tree)} was refused", why="it is no day of the calendar", instead="DATE '2026-01-31'")


def _number(text: str) -> Fraction | int:
    from cloister.privacy import exact

    try:
        value = exact(text, "constant")
    except InvalidParameter:
        value = None
    if value is None:
        raise UnsupportedQuery(
            f"The constant {clipped(text)} was refused", why="it is too long, too large or no number", instead="age >= 18"
        )
    return int(value) if value.denominator == 1 else value
