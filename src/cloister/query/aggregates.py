"""Aggregates over people: from SQL to statistics, and arithmetic on them to arithmetic on what is released.

Each aggregate becomes one statistic under a canonical name, so the same one written twice is measured once. `FILTER (WHERE …)`
and COUNT_IF become a CASE, whose other rows are NULL and so are not counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, get_args

from sqlglot import exp

from cloister.query.constants import NUMBERS, WHOLE, constant, counts_rows, is_constant
from cloister.query.refusals import EXAMPLE, refused, shown, unsupported
from cloister.query.scalars import Reader
from cloister.session import Arithmetic, Constant, Named, Operation
from cloister.session.questions.question import (
    Combined,
    Correlation,
    Count,
    Covariance,
    Distinct,
    Largest,
    Mean,
    Mode,
    Persons,
    Quantile,
    Regression,
    RegressionPart,
    Smallest,
    Statistic,
    Sum,
    Variance,
)

AGGREGATES = (exp.AggFunc, exp.WithinGroup, exp.Filter)
_DEEPEST = 100
_QUANTILES = ("QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE", "APPROX_PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC")
_SPREAD = {"VAR": (True, False), "VARP": (False, False), "STDEV": (True, True), "STDEVP": (False, True)}
_ANONYMOUS = frozenset({*_QUANTILES, *_SPREAD, "COUNTIF", "CLOISTER_SUM", "CLOISTER_AVG", "CLOISTER_COUNT"})
_VARIANCES: dict[type[exp.Expression], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}
_REGRESSIONS: dict[type[exp.Expression], RegressionPart] = {
    getattr(exp, f"Regr{part.capitalize()}"): part for part in get_args(RegressionPart)
}
_OPERATORS: dict[type[exp.Expression], str] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide"}


def is_aggregate(tree: exp.Expression) -> bool:
    """Whether a node aggregates over rows.

    >>> from sqlglot import parse_one
    >>> is_aggregate(parse_one("SUM(age)")), is_aggregate(parse_one("ABS(age)"))
    (True, False)
    """
    return isinstance(tree, AGGREGATES) or (isinstance(tree, exp.Anonymous) and tree.name.upper() in _ANONYMOUS)


def holds_aggregate(tree: exp.Expression) -> bool:
    """Whether an aggregate stands anywhere in it, questions within it not counted."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if is_aggregate(node):
            return True
        if not isinstance(node, exp.Query):
            waiting += list(node.iter_expressions())
    return False


def _depth(expression: Arithmetic) -> int:
    """How deep operations stand in one another."""
    layer: list[Arithmetic] = [expression]
    depth = 0
    while layer:
        layer = [part for each in layer if isinstance(each, Operation) for part in each.parts]
        depth += 1
    return depth


@dataclass(kw_only=True)
class Aggregates:
    """The statistics that a question asks for, by name."""

    reader: Reader
    found: dict[str, Statistic] = field(default_factory=dict)

    def name(self, tree: exp.Expression) -> str:
        """The statistic that an aggregate, or arithmetic on aggregates, is."""
        inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if is_aggregate(inner):
            return self._aggregate(inner)
        expression = self.arithmetic(inner)
        if _depth(expression) > _DEEPEST:
            raise refused("The query is not supported", "it is nested too deep to be read", EXAMPLE)
        if isinstance(expression, Named):
            return expression.name
        return self._add(Combined(name=str(expression), expression=expression))

    def arithmetic(self, tree: exp.Expression) -> Arithmetic:
        """Arithmetic on statistics and constants: it is worked out on what is released."""
        tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if is_aggregate(tree):
            return Named(self._aggregate(tree))
        if is_constant(tree):
            value = constant(tree)
            if isinstance(value, int | Fraction) and not isinstance(value, bool):
                return Constant(value)
        if isinstance(tree, exp.Div):
            return self._quotient(tree)
        if type(tree) in _OPERATORS:
            return Operation(_OPERATORS[type(tree)], (self.arithmetic(tree.this), self.arithmetic(tree.expression)))  # type: ignore[arg-type]
        if isinstance(tree, exp.Neg):
            return Operation("negate", (self.arithmetic(tree.this),))
        if isinstance(tree, exp.Abs):
            return Operation("absolute", (self.arithmetic(tree.this),))
        if isinstance(tree, exp.Round):
            return self._rounded(tree)
        if isinstance(tree, exp.Coalesce | exp.Least | exp.Greatest):
            parts = tuple(self.arithmetic(part) for part in (tree.this, *tree.expressions))
            return Operation({exp.Coalesce: "coalesce", exp.Least: "least"}.get(type(tree), "greatest"), parts)  # type: ignore[arg-type]
        if isinstance(tree, exp.Cast) and tree.to.this in NUMBERS - WHOLE and not tree.to.expressions:
            return self.arithmetic(tree.this)
        if isinstance(tree, exp.Sqrt) and isinstance(tree.this, exp.Variance | exp.VariancePop):
            sample, _ = _VARIANCES[type(tree.this)]
            return Named(self._add(self._variance(tree.this.this, sample=sample, root=True)))
        raise unsupported(f"{shown(tree)} beside aggregates", "SUM(pay) / COUNT(*)")

    def _quotient(self, tree: exp.Div) -> Arithmetic:
        below = tree.expression.unnest()
        if isinstance(below, exp.Nullif) and is_constant(below.expression) and constant(below.expression) == 0:
            below = below.this
        return Operation("divide", (self.arithmetic(tree.this), self.arithmetic(below)))

    def _rounded(self, tree: exp.Round) -> Arithmetic:
        decimals = tree.args.get("decimals")
        digits = 0 if decimals is None else constant(decimals) if is_constant(decimals) else None
        if isinstance(digits, bool) or not isinstance(digits, int):
            raise refused(f"{shown(tree)} is not supported", "the number of digits is not a constant", "ROUND(AVG(age), 1)")
        return Operation("round", (self.arithmetic(tree.this),), digits=digits)

    def _add(self, statistic: Statistic) -> str:
        self.found.setdefault(statistic.name, statistic)
        return statistic.name

    def _aggregate(self, tree: exp.Expression) -> str:
        condition = None
        if isinstance(tree, exp.Filter):
            tree, condition = tree.this, tree.expression.this
        if isinstance(tree, exp.WithinGroup):
            return self._add(self._within_group(tree, condition))
        return self._add(self._statistic(tree, condition))

    def _statistic(self, tree: exp.Expression, condition: exp.Expression | None) -> Statistic:
        def of(target: Any) -> str:
            return self._column(tree, target, condition)

        if isinstance(tree, exp.Count):
            return self._count(tree, condition)
        if isinstance(tree, exp.CountIf) or (isinstance(tree, exp.Anonymous) and tree.name.upper() == "COUNTIF"):
            wanted = tree.this if isinstance(tree, exp.CountIf) else tree.expressions[0]
            both = wanted if condition is None else exp.and_(wanted.copy(), condition.copy())
            name = self._column(tree, exp.Literal.number(1), both)
            return Count(column=name, name=f"count({name})")
        if isinstance(tree, exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Median | exp.Mode):
            if isinstance(tree.this, exp.Distinct):
                raise refused(
                    f"DISTINCT in {tree.key.upper()} is not supported",
                    "a value counts as much if one person has it as if all do; take the values of enough rows",
                    f"SELECT {tree.key.upper()}(age) FROM (SELECT age, COUNT(*) AS n FROM people GROUP BY age) AS t WHERE n > 10",  # noqa: S608 - shown
                )
            column = of(tree.this)
            return _ONE[type(tree)](column)
        if type(tree) in _VARIANCES:
            sample, root = _VARIANCES[type(tree)]
            return self._variance(tree.this, sample=sample, root=root, condition=condition, tree=tree)
        if isinstance(tree, exp.Corr | exp.CovarPop | exp.CovarSamp) or type(tree) in _REGRESSIONS:
            return self._of_two(tree, of(tree.this), of(tree.expression))
        if isinstance(tree, exp.Quantile | exp.ApproxQuantile):
            return self._quantile(of(tree.this), tree.args["quantile"])
        if isinstance(tree, exp.PercentileCont | exp.PercentileDisc) and tree.expression is not None:
            return self._quantile(of(tree.this), tree.expression)
        if isinstance(tree, exp.Anonymous):
            return self._anonymous(tree, condition)
        raise unsupported(shown(tree), EXAMPLE)

    def _count(self, tree: exp.Count, condition: exp.Expression | None) -> Statistic:
        target = tree.this
        if not isinstance(target, exp.Expression):
            raise unsupported("COUNT of nothing", "COUNT(*)")
        rows = self.reader.rows
        if isinstance(target, exp.Distinct):
            for part in target.expressions:
                if isinstance(part, exp.Column):
                    rows.field_of(part)  # a name that is not known is refused as such
            if len(target.expressions) == 1 and rows.is_unit(target.expressions[0]):
                if condition is not None:
                    raise refused("FILTER is not supported", "it is applied to a count of people", "… WHERE condition")
                return Persons(name=f"count_distinct({rows.field_of(target.expressions[0]).name})")
            parts = list(target.expressions)
            if len(parts) == 1 and isinstance(parts[0], exp.Tuple):
                parts = [self._or_missing(part) for part in parts[0].expressions]
            if any(rows.is_unit(part) for part in parts):
                raise refused(f"{shown(tree)} is not supported", "one of its columns is the person", "COUNT(DISTINCT ward)")
            name = self._column(tree, _together(parts), condition)
            return Distinct(column=name, name=f"count_distinct({name})")
        if counts_rows(target) or rows.is_unit(target):
            if condition is None:
                return Count(name="count_star()")
            target = exp.Literal.number(1)
        name = self._column(tree, target, condition)
        return Count(column=name, name=f"count({name})")

    def _or_missing(self, part: exp.Expression) -> exp.Expression:
        """A part of a tuple, which is a value too where the part is NULL."""
        scalar = self.reader.scalar(part)
        if not scalar.domain(self.reader.domains(scalar)).nullable:
            return part
        return exp.Coalesce(this=_as_text(part), expressions=[exp.Literal.string("\x1e")])

    def _column(self, tree: exp.Expression, target: Any, condition: exp.Expression | None) -> str:
        if not isinstance(target, exp.Expression):
            raise unsupported(f"{tree.key.upper()} of nothing", f"{tree.key.upper()}(column)")
        if any(is_aggregate(part) for part in target.walk()):
            raise refused(
                f"{shown(tree)} is not supported",
                "an aggregate stands within an aggregate",
                "SELECT AVG(total) FROM (SELECT patient, SUM(cost) AS total …)",
            )
        if condition is not None:
            target = exp.Case(ifs=[exp.If(this=condition.copy(), true=target.copy())])
        return self.reader.column(target)

    def _variance(
        self,
        target: Any,
        *,
        sample: bool,
        root: bool,
        condition: exp.Expression | None = None,
        tree: exp.Expression | None = None,
    ) -> Statistic:
        if isinstance(target, exp.Distinct):
            raise unsupported("DISTINCT in a variance", "VAR_SAMP(column)")
        column = self._column(tree if tree is not None else exp.Variance(), target, condition)
        word = f"{'stddev' if root else 'var'}_{'samp' if sample else 'pop'}"
        return Variance(column=column, sample=sample, root=root, name=f"{word}({column})")

    def _of_two(self, tree: exp.Expression, first: str, second: str) -> Statistic:
        name = f"{tree.sql_name().lower()}({first}, {second})"
        if isinstance(tree, exp.Corr):
            return Correlation(x=first, y=second, name=name)
        if isinstance(tree, exp.CovarPop | exp.CovarSamp):
            return Covariance(x=first, y=second, sample=isinstance(tree, exp.CovarSamp), name=name)
        return Regression(x=second, y=first, part=_REGRESSIONS[type(tree)], name=name)

    def _quantile(self, column: str, share: exp.Expression, *, descending: bool = False) -> Statistic:
        at = constant(share) if is_constant(share) else None
        if isinstance(at, bool) or not isinstance(at, int | Fraction) or not 0 <= at <= 1:
            raise refused(
                "A quantile is not supported",
                "its share is not a constant from 0 to 1",
                "QUANTILE(age, 0.25), QUANTILE(age, 0.5)",
            )
        at = 1 - Fraction(at) if descending else Fraction(at)
        text = "median" if at == Fraction(1, 2) else f"quantile({at})"
        return Quantile(column=column, at=at, name=f"{text}({column})")

    def _within_group(self, tree: exp.WithinGroup, condition: exp.Expression | None) -> Statistic:
        function, order = tree.this, tree.expression
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if len(ordered) != 1:
            raise unsupported(f"{shown(tree)}", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)")
        column = self._column(tree, ordered[0].this, condition)
        if isinstance(function, exp.Mode) and function.this is None:
            return _ONE[exp.Mode](column)
        if isinstance(function, exp.PercentileCont | exp.PercentileDisc):
            return self._quantile(column, function.this, descending=bool(ordered[0].args.get("desc")))
        raise unsupported(shown(tree), "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)")

    def _anonymous(self, tree: exp.Anonymous, condition: exp.Expression | None) -> Statistic:
        name, given = tree.name.upper(), tree.expressions
        if name in _SPREAD and len(given) == 1:
            sample, root = _SPREAD[name]
            return self._variance(given[0], sample=sample, root=root, condition=condition, tree=tree)
        if name in _QUANTILES and len(given) == 2:
            return self._quantile(self._column(tree, given[0], condition), given[1])
        raise unsupported(shown(tree), "QUANTILE(age, 0.25)")


def _as_text(part: exp.Expression) -> exp.Expression:
    return exp.Cast(this=part.copy(), to=exp.DataType.build("TEXT"))


def _together(parts: list[exp.Expression]) -> exp.Expression:
    """Several columns as one text, different where any of them is, and NULL where one is: none holds the sign between them."""
    if len(parts) == 1:
        return parts[0]
    texts = list(map(_as_text, parts))
    whole: exp.Expression = texts[0]
    for each in texts[1:]:
        whole = exp.DPipe(
            this=exp.DPipe(this=whole, expression=exp.Literal.string("\x1f"), safe=True), expression=each, safe=True
        )
    return whole


_ONE: dict[type[exp.Expression], Callable[[str], Statistic]] = {
    exp.Sum: lambda column: Sum(column=column, name=f"sum({column})"),
    exp.Avg: lambda column: Mean(column=column, name=f"avg({column})"),
    exp.Min: lambda column: Smallest(column=column, name=f"min({column})"),
    exp.Max: lambda column: Largest(column=column, name=f"max({column})"),
    exp.Median: lambda column: Quantile(column=column, at=Fraction(1, 2), name=f"median({column})"),
    exp.Mode: lambda column: Mode(column=column, name=f"mode({column})"),
}
