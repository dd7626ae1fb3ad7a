"""Aggregates of one person's rows: what a subquery that is grouped by the person can compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from cloister.query.constants import counts_rows
from cloister.query.refusals import refused, shown, unsupported
from cloister.query.scalars import Reader
from cloister.tables.relations.perunit import UnitAggregate, UnitKind

AGGREGATES = (exp.AggFunc, exp.WithinGroup, exp.Filter)
_KINDS: dict[type[exp.Expression], UnitKind] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "values",
}
_LINE = "FROM (SELECT patient, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY patient) AS t"


@dataclass(kw_only=True)
class UnitAggregates:
    """The aggregates that a subquery's select list and HAVING name, each once."""

    reader: Reader
    found: dict[str, UnitAggregate] = field(default_factory=dict)

    def replaced(self, tree: exp.Expression, keys: Mapping[str, str]) -> exp.Expression:
        """The expression with columns in the place of aggregates, and of the expressions that are grouped by."""
        alias = tree.alias if isinstance(tree, exp.Alias) else ""

        def change(node: exp.Expression) -> exp.Expression:
            if isinstance(node, AGGREGATES):
                return _named(self._name(node))
            if keys and not isinstance(node, exp.Column | exp.Identifier | exp.Literal | exp.Alias | exp.Having):
                text = self._text(node)
                if text in keys:
                    return _named(keys[text])
            return node

        changed = tree.copy().transform(change)
        if not alias and not isinstance(tree, exp.Column | exp.Having) and isinstance(changed, exp.Column):
            return exp.alias_(changed, changed.name, quoted=True)
        return changed

    def _text(self, node: exp.Expression) -> str:
        if any(isinstance(part, AGGREGATES) for part in node.walk()):
            return ""
        try:
            return self.reader.rows.form(node)
        except Exception:  # a name that is no column: it is refused where it is read
            return ""

    def _name(self, node: exp.Expression) -> str:
        condition = None
        if isinstance(node, exp.Filter):
            node, condition = node.this, node.expression.this
        kind, target = _KINDS.get(type(node)), node.this
        if kind is None or not isinstance(target, exp.Expression) or node.expressions:
            raise unsupported(f"{shown(node)} in a subquery", _LINE)
        if isinstance(target, exp.Distinct):
            if kind != "values" or len(target.expressions) != 1 or condition is not None:
                raise unsupported(f"{shown(node)} in a subquery", "COUNT(DISTINCT ward)")
            kind, target = "distinct", target.expressions[0]
        rows = self.reader.rows
        counted = isinstance(target, exp.Star) or (kind == "values" and counts_rows(target))
        if kind in ("values", "distinct") and not counted and rows.is_unit(target):
            if kind == "distinct":
                raise refused(
                    f"{shown(node)} in a subquery is not supported", "the subquery has one person in each row", "COUNT(*)"
                )
            counted = True
        if condition is not None:
            value = exp.Literal.number(1) if counted else target
            target, counted = exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]), False
        if counted:
            return self._add("count(*)", "count", None)
        column = self.reader.column(target)
        return self._add(f"{'count' if kind == 'values' else kind}({column})", kind, column)

    def _add(self, name: str, kind: UnitKind, column: str | None) -> str:
        self.found.setdefault(name, UnitAggregate(name=name, kind=kind, column=column))
        return name


def _named(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
