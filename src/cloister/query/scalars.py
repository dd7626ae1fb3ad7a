"""Expressions over rows: from SQL to computed columns, and to conditions on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from cloister.query.conditions import condition
from cloister.query.constants import constant, is_constant
from cloister.query.functions import ANONYMOUS, FUNCTIONS
from cloister.query.refusals import EXAMPLE, refused, shown, unsupported
from cloister.query.rows import Rows
from cloister.tables import Expression
from cloister.tables.scalars import Const, Ref, Scalar, Truth

__all__ = ["CONDITIONS", "Reader"]

CONDITIONS = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)
_DEEPEST = 60


def _no_queries(query: exp.Query) -> tuple[Any, ...]:
    raise unsupported(f"The question within a question {shown(query)}", EXAMPLE)


@dataclass(kw_only=True)
class Reader:
    """What reads the expressions of one SELECT over its rows.

    >>> import cloister as cl
    >>> from sqlglot import parse_one
    >>> from cloister.query.rows import Field
    >>> from cloister.tables import Base
    >>> people = Base(name="people", table=cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)}))
    >>> rows = Rows(relation=people, fields=[Field(name="age", column="age")], label="people")
    >>> Reader(rows=rows).column(parse_one("FLOOR(AGE / 10) * 10")), rows.domain("FLOOR(age / 10) * 10").size
    ('FLOOR(age / 10) * 10', 9)
    """

    rows: Rows
    dialect: str | None = None
    queries: Callable[[exp.Query], tuple[Any, ...]] = _no_queries
    """What answers a question about public tables within this one."""
    _depth: int = 0

    def condition(self, tree: exp.Expression) -> Expression:
        """The condition that an expression is."""
        return condition(tree, self)

    def column(self, tree: exp.Expression) -> str:
        """The column that an expression is: its own where it is one, else a computed one."""
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if isinstance(tree, exp.Column):
            return self.rows.column(tree)
        return self.rows.add(self.scalar(tree), self.rows.text(tree))

    def is_boolean(self, column: str) -> bool:
        """Whether a column may stand where a condition is wanted."""
        return self.rows.domain(column).kind == "boolean"

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        """The values of a question about public tables."""
        return self.queries(query)

    def kind(self, scalar: Scalar) -> str:
        """Which kind of values a scalar has; nothing where its bounds are still to be given by what stands around it."""
        from cloister.errors import MissingBound

        if isinstance(scalar, Const):
            return {"integer": "integer", "number": "real", "day": "date", "truth": "boolean"}.get(scalar.kind, scalar.kind)
        try:
            return scalar.domain({name: self.rows.domain(name) for name in scalar.columns()}).kind
        except MissingBound:
            return ""

    def scalar(self, tree: exp.Expression) -> Scalar:
        """The computed column that an expression describes."""
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if self._depth >= _DEEPEST:
            raise refused("An expression was refused", f"it is nested deeper than {_DEEPEST}", "two steps, one in a subquery")
        self._depth += 1
        try:
            return self._scalar(tree)
        finally:
            self._depth -= 1

    def _scalar(self, tree: exp.Expression) -> Scalar:
        if isinstance(tree, exp.Column):
            return Ref(self.rows.column(tree))
        if is_constant(tree) and not isinstance(tree, exp.Interval):
            return Const(constant(tree))
        if isinstance(tree, CONDITIONS):
            return Truth(self.condition(tree))
        if isinstance(tree, exp.Subquery):
            found = self.values(tree.unnest())
            if len(found) > 1:
                raise refused(f"{shown(tree)} was refused", "it has more than one value", "x IN (SELECT …)")
            return Const(found[0] if found else None)
        if isinstance(tree, exp.Anonymous) and tree.name.upper() in ANONYMOUS:
            return ANONYMOUS[tree.name.upper()](tree.expressions, self)
        make = FUNCTIONS.get(type(tree))
        if make is None:
            raise unsupported(shown(tree), "arithmetic, CASE, or a function of the reference, of declared columns")
        return make(tree, self)
