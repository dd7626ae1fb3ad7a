"""WHERE, ON, HAVING and CASE: from SQL to the condition language of `tables`, in which nothing can overflow, fail to cast or
raise on one row.

What stands on either side of a comparison is read by `Operands`: over rows it becomes a column, declared or computed; over the
answer it becomes a key or a statistic.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from sqlglot import exp

from cloister.query.constants import constant, is_constant
from cloister.query.refusals import refused, shown, unsupported
from cloister.tables import And, Between, Category, Column, Compare, Domain, Expression, In, IsNull, Like, Literal, Not, Or

_COMPARISONS = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MOST_VALUES = 10_000


class Operands(Protocol):
    """What a condition is about."""

    def column(self, tree: exp.Expression) -> str:
        """The name of the column that an expression is, or becomes."""

    def holds(self, column: str) -> str:
        """Of what kind the values of a column are: "integer", "real", "boolean", "date", or another."""

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        """The values of a question about public tables."""


def condition(tree: exp.Expression, operands: Operands) -> Expression:
    """The condition that a WHERE clause writes."""

    def inner(part: exp.Expression) -> Expression:
        return condition(part, operands)

    if isinstance(tree, exp.Paren):
        return inner(tree.this)
    if isinstance(tree, exp.And | exp.Or):
        kind = type(tree)
        parts = tuple(inner(part) for part in conjuncts(tree, kind))
        return And(*parts) if kind is exp.And else Or(*parts)
    if isinstance(tree, exp.Not):
        return Not(inner(tree.this))
    if type(tree) in _COMPARISONS:
        return _compare(_COMPARISONS[type(tree)], tree.this, tree.expression, operands)
    if isinstance(tree, exp.NullSafeEQ | exp.NullSafeNEQ):
        same = _null_safe(tree, operands)
        return same if isinstance(tree, exp.NullSafeEQ) else Not(same)
    if isinstance(tree, exp.Is):
        return _is(tree, operands)
    if isinstance(tree, exp.In):
        return _in(tree, operands)
    if isinstance(tree, exp.Between):
        return _between(tree, operands)
    if isinstance(tree, exp.Like):
        pattern = constant(tree.expression) if is_constant(tree.expression) else None
        if not isinstance(pattern, str):
            raise unsupported("LIKE with a pattern that is not text", "town LIKE 'D%'")
        return Like(Column(operands.column(tree.this)), pattern)
    if isinstance(tree, exp.Boolean | exp.Null):
        return Literal(constant(tree))
    if isinstance(tree, exp.Column | exp.Case | exp.If | exp.Coalesce) or _is_within(tree):
        name = operands.column(tree)
        if operands.holds(name) == "boolean":
            return Compare("=", Column(name), Literal(True))
    raise unsupported(f"{shown(tree)} in WHERE", "WHERE age >= 18 AND sex = 'F'")


def _is_within(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.upper() in ("ST_WITHIN", "ST_DWITHIN")


def conjuncts(tree: exp.Expression, kind: type[exp.Expression] = exp.And) -> list[exp.Expression]:
    """AND and OR chains as flat lists, without recursion: a chain of ten thousand is long, not deep.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in conjuncts(parse_one("a AND (b AND c) AND (d OR e)"))]
    ['a', 'b', 'c', '(d OR e)']
    """
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        inside = part.unnest() if isinstance(part, exp.Paren) else part
        if isinstance(inside, kind):
            waiting += [inside.expression, inside.this]
        else:
            found.append(part)
    return found


def _literal(tree: exp.Expression, operands: Operands) -> Literal | None:
    """A constant, or the one value of a question about public tables."""
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if isinstance(inner, exp.Subquery):
        found = operands.values(inner.unnest())
        if len(found) > 1:
            raise refused(f"{shown(inner)} is not supported", "it has more than one value", "x IN (SELECT …)")
        return Literal(found[0] if found else None)
    return Literal(constant(inner)) if is_constant(inner) else None


def _compare(sign: str, left: exp.Expression, right: exp.Expression, operands: Operands) -> Expression:
    first: Literal | Column = _literal(left, operands) or Column(operands.column(left))
    second: Literal | Column = _literal(right, operands) or Column(operands.column(right))
    if isinstance(first, Literal) and isinstance(second, Column):
        first = Literal(_beside(first.value, second, operands))
    if isinstance(second, Literal) and isinstance(first, Column):
        second = Literal(_beside(second.value, first, operands))
    return Compare(sign, first, second)


def kind_of(domain: Domain) -> str:
    """Of what kind the values of a domain are, also of listed ones."""
    option = domain.options[0] if isinstance(domain, Category) else None
    return "boolean" if isinstance(option, bool) else "integer" if isinstance(option, int) else domain.kind


_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,40}(\.[0-9]{1,40})?\s*")
_TRUTH = {**dict.fromkeys(("t", "true", "yes", "on", "1"), True), **dict.fromkeys(("f", "false", "no", "off", "0"), False)}


def _beside(value: Any, column: Column, operands: Operands) -> Any:
    """A constant beside a column, as SQL has it: a text in quotes is a number, a truth value or a day where the column holds
    these and it is one; 1 and 0 are truth values there."""
    kind = operands.holds(column.name) if type(value) in (str, int) else ""
    if kind == "boolean":
        return _TRUTH.get(str(value).strip().lower(), value)
    if kind in ("integer", "real") and isinstance(value, str) and _NUMBER.fullmatch(value):
        number = Fraction(value.strip())
        return int(number) if number.denominator == 1 else number
    return value[:10] if kind == "date" and str(value)[10:] in (" 00:00:00", "T00:00:00", " 00:00", "T00:00") else value


def _null_safe(tree: exp.Binary, operands: Operands) -> Expression:
    """IS NOT DISTINCT FROM: equal, or both NULL; never NULL."""
    sides = [(part, _literal(part, operands)) for part in (tree.this, tree.expression)]
    missing: list[Expression] = []
    for part, literal in sides:
        missing.append(Literal(literal.value is None) if literal is not None else IsNull(Column(operands.column(part))))
    equal = _compare("=", tree.this, tree.expression, operands)
    return Or(And(*missing), And(*(Not(each) for each in missing), equal))


def _is(tree: exp.Is, operands: Operands) -> Expression:
    if isinstance(tree.expression, exp.Null):
        return IsNull(Column(operands.column(tree.this)))
    if isinstance(tree.expression, exp.Boolean):
        column = Column(operands.column(tree.this))
        return And(Compare("=", column, Literal(bool(tree.expression.this))), Not(IsNull(column)))
    raise unsupported(f"{shown(tree)} in WHERE", "x IS NULL")


def _in(tree: exp.In, operands: Operands) -> Expression:
    query = tree.args.get("query")
    if query is None:
        if not all(is_constant(part) for part in tree.expressions):
            return Or(*(_compare("=", tree.this, part, operands) for part in tree.expressions))
        column = Column(operands.column(tree.this))
        return In(column, tuple(_beside(constant(part), column, operands) for part in tree.expressions))
    found = operands.values(query.unnest())
    if len(found) > _MOST_VALUES:
        raise refused("IN is not supported", f"its list has more than {_MOST_VALUES} values", "a join with the public table")
    column = Column(operands.column(tree.this))
    return In(column, found) if found else Compare("=", Literal(0), Literal(1))


def _between(tree: exp.Between, operands: Operands) -> Expression:
    low, high = (_literal(tree.args[end], operands) for end in ("low", "high"))
    if low is not None and high is not None:
        column = Column(operands.column(tree.this))
        return Between(column, *(_beside(end.value, column, operands) for end in (low, high)))
    return And(*(_compare(sign, tree.this, tree.args[end], operands) for sign, end in ((">=", "low"), ("<=", "high"))))


def anded(parts: Sequence[Expression]) -> Expression | None:
    """All of the conditions; None where there is none."""
    return None if not parts else parts[0] if len(parts) == 1 else And(*parts)
