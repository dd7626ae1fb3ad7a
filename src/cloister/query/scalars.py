"""Expressions over rows: from SQL to computed columns, and to conditions on them.

A question of declared columns alone has nothing computed in it, so the functions of rows are imported with the first expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from cloister.errors import CloisterError, MissingBound, UnsupportedQuery
from cloister.query.conditions import condition, kind_of
from cloister.query.constants import constant, is_constant, is_double
from cloister.query.refusals import EXAMPLE, refused, shown, unsupported
from cloister.query.rows import Rows
from cloister.tables import Domain, Expression

if TYPE_CHECKING:
    from cloister.query.numbers import NumberKind
    from cloister.tables.expression.scalars import Scalar

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
    raise unsupported(f"The nested query {shown(query)}", EXAMPLE)


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
        scalar = self.scalar(tree)
        try:
            return self.rows.add(scalar, self.rows.text(tree))
        except (MissingBound, UnsupportedQuery) as error:
            refusal = self._of_piece(error, scalar, tree)
        raise refusal

    def _of_piece(self, error: CloisterError, scalar: Scalar, tree: exp.Expression) -> CloisterError:
        """A refusal of what is not bounded, with the expression that it is about, and with that expression bounded."""
        from cloister.tables.expression.scalars import Clamp

        is_what = "needs bounds" if isinstance(error, MissingBound) else "is not supported"
        what = error.what if "'" in error.what else f"{shown(tree)} {is_what}"
        try:
            Clamp(scalar, Fraction(0), Fraction(100)).domain(self.domains(scalar))
        except CloisterError:
            return type(error)(what, why=error.why, instead=error.instead)
        return type(error)(what, why=error.why, instead=f"CLAMP({tree.sql(comments=False)}, 0, 100)")

    def holds(self, column: str) -> str:
        """Of what kind the values of a column are."""
        return kind_of(self.rows.domain(column))

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        """The values of a question about public tables."""
        return self.queries(query)

    def named(self, scalar: Scalar, text: str) -> Scalar:
        """A scalar as a column that others are made of."""
        from cloister.tables.expression.scalars import Ref

        return Ref(self.rows.add(scalar, text))

    def kind(self, scalar: Scalar) -> str:
        """Which kind of values a scalar has; nothing where its bounds are still to be given by what stands around it."""
        from cloister.tables.expression.scalars import Const

        if isinstance(scalar, Const):
            return {"integer": "integer", "number": "real", "day": "date", "truth": "boolean"}.get(scalar.kind, scalar.kind)
        try:
            return scalar.domain(self.domains(scalar)).kind
        except MissingBound:
            return ""

    def domains(self, scalar: Scalar) -> dict[str, Domain]:
        """What the columns that a scalar reads may hold."""
        return {name: self.rows.domain(name) for name in scalar.columns()}

    def number_kind(self, scalar: Scalar) -> NumberKind | None:
        """Which kind of number a scalar is in the dialect; None where that is not known."""
        from cloister.query.numbers import RULES, kind_of

        return kind_of(scalar, self._column_kind, RULES[self.dialect or "ansi"])

    def _column_kind(self, name: str) -> NumberKind | None:
        from cloister.query.numbers import RULES, kind_in

        if name in self.rows.computed:
            return self.number_kind(self.rows.computed[name])
        return kind_in(self.rows.relation, name, RULES[self.dialect or "ansi"])

    def scalar(self, tree: exp.Expression) -> Scalar:
        """The computed column that an expression describes."""
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if self._depth >= _DEEPEST:
            raise refused(
                "An expression is not supported", f"it is nested deeper than {_DEEPEST}", "two steps, one in a subquery"
            )
        self._depth += 1
        try:
            return self._scalar(tree)
        finally:
            self._depth -= 1

    def _scalar(self, tree: exp.Expression) -> Scalar:
        from cloister.query.functions import ANONYMOUS, FUNCTIONS
        from cloister.query.numbers import RULES
        from cloister.tables.expression.scalars import Cast, Const, Ref, Truth

        if isinstance(tree, exp.Column):
            return Ref(self.rows.column(tree))
        if is_constant(tree) and not isinstance(tree, exp.Interval):
            value = Const(constant(tree))
            return Cast(value, "real") if is_double(tree, RULES[self.dialect or "ansi"]) else value
        if isinstance(tree, CONDITIONS):
            return Truth(self.condition(tree))
        if isinstance(tree, exp.Subquery):
            found = self.values(tree.unnest())
            if len(found) > 1:
                raise refused(f"{shown(tree)} is not supported", "it has more than one value", "x IN (SELECT …)")
            return Const(found[0] if found else None)
        if isinstance(tree, exp.Anonymous) and tree.name.upper() in ANONYMOUS:
            return ANONYMOUS[tree.name.upper()](tree.expressions, self)
        make = FUNCTIONS.get(type(tree))
        if make is None:
            raise unsupported(shown(tree), "arithmetic, CASE, or a function of the reference, of declared columns")
        return make(tree, self)
