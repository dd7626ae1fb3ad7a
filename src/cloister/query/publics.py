"""Questions within a question about public tables: they are answered here, at once, since anybody may see their rows.

A column for `IN (SELECT …)`, one value for a comparison, or rows for FROM; of one table, or of several that are joined
(`public_joins.py`). Their WHERE is the same small language of conditions; what comes out enters the private question as a list of
constants or as a public table.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from sqlglot import exp

from cloister.query.aggregates import holds_aggregate
from cloister.query.conditions import anded, condition
from cloister.query.constants import constant, is_constant
from cloister.query.evaluation import holds, plain
from cloister.query.refusals import refused, shown, unsupported, whole
from cloister.query.rows import Field, Qualifier, choose
from cloister.tables import Domain, PublicTable, Text
from cloister.tables.relations.public_values import domain_of, read

_LINE = "town IN (SELECT town FROM towns)"
_AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Min: "min",
    exp.Max: "max",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Count: "count",
}
_OPERATIONS: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}
Worked = Callable[[Sequence[Mapping[str, Any]]], Any]
Queries = Callable[[exp.Query], tuple[Any, ...]]
"""What answers a question about public tables within another."""


class PublicRows(Protocol):
    """Rows that anybody may see: of a public table, or of several that are joined."""

    @property
    def name(self) -> str:
        """What they are called in a refusal."""

    @property
    def conditions(self) -> tuple[exp.Expression, ...]:
        """What ON says of them beside WHERE."""

    def fields(self) -> list[Field]:
        """Their columns."""

    def is_boolean(self, column: str) -> bool:
        """Whether a column may stand where a condition is wanted."""

    def lists(self, columns: Sequence[str]) -> list[list[Any]]:
        """The values of some of the columns."""


@dataclass(frozen=True, kw_only=True)
class PublicSource:
    """A public table, under the name and the alias by which a question reads it."""

    name: str
    table: PublicTable
    qualifiers: tuple[Qualifier, ...] = ()
    conditions: tuple[exp.Expression, ...] = ()
    names: tuple[str, ...] = ()
    """What the question calls its columns, where it renames them."""
    noted: dict[str, set[str]] = field(default_factory=dict, compare=False)
    """Where what is read is noted, by table: an answer that becomes a constant leaves no other trace in a question."""

    def fields(self) -> list[Field]:
        """Its columns."""
        called = self.names or self.table.names
        return [
            Field(name=name, column=column, qualifiers=self.qualifiers)
            for name, column in zip(called, self.table.names, strict=True)
        ]

    def is_boolean(self, column: str) -> bool:
        """Whether its values are truth values."""
        return self.table.source.schema[column] == "boolean"

    def lists(self, columns: Sequence[str]) -> list[list[Any]]:
        """The values as a join would see them: those of the declared domain, or of the one that they make."""
        self.noted.setdefault(self.name, set()).update(columns)
        found = read(self.name, self.table.source, columns)
        return [self._values(column, values) for column, values in zip(columns, found, strict=True)]

    def _values(self, column: str, values: Sequence[Any]) -> list[Any]:
        declared = self.table.columns
        domain: Domain
        if declared is not None:
            domain = declared[column]
        elif self.table.source.delimiters:
            domain = domain_of(self.name, column, values, texts=True)
        else:
            return list(values)
        if isinstance(domain, Text):
            return [value if isinstance(value, str) else None for value in values]
        codes = [domain.encode(value) for value in values]
        return [None if code is None else domain.decode(code) for code in codes]


@dataclass(frozen=True, kw_only=True)
class _PublicOperands:
    """The columns of public rows, in a condition."""

    source: PublicRows
    used: dict[str, None]
    queries: Queries
    worked: dict[str, Worked] = field(default_factory=dict)
    """Arithmetic on aggregates, by the name that it bears."""

    def value(self, kind: str, column: str, rows: Sequence[Mapping[str, Any]]) -> Any:
        """An aggregate of some rows, or arithmetic on several."""
        return self.worked[column](rows) if kind == "worked" else _aggregate(kind, column, rows)

    def column(self, tree: exp.Expression) -> str:
        inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if not isinstance(inner, exp.Column):
            raise unsupported(f"{shown(tree)} in a question about a public table", _LINE)
        name = str(choose(self.source.fields(), inner, self.source.name).column)
        self.used[name] = None
        return name

    def holds(self, column: str) -> str:
        return "boolean" if self.source.is_boolean(column) else ""  # evaluation.py sees the values themselves

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        return self.queries(query)


def public_values(select: exp.Select, source: PublicRows, queries: Queries) -> tuple[Any, ...]:
    """The values of the one column that a question about public rows selects, each once, in their first order."""
    if len(select.expressions) != 1 or isinstance(select.expressions[0].unalias(), exp.Star):
        raise refused("A nested query is not supported", "it does not select exactly one column", _LINE)
    names, rows = public_rows(select, source, queries)
    return tuple(dict.fromkeys(row[names[0]] for row in rows))


def public_rows(select: exp.Select, source: PublicRows, queries: Queries) -> tuple[list[str], list[Mapping[str, Any]]]:
    """The names and the rows that a question about public rows selects."""
    for part, value in select.args.items():
        if value and part not in ("expressions", "from_", "joins", "where", "group", "distinct"):
            raise unsupported(f"{part.strip('_').upper()} in a question about a public table", _LINE)
    used: dict[str, None] = {}
    operands = _PublicOperands(source=source, used=used, queries=queries)
    chosen: dict[str, tuple[str, str]] = {}
    for expression in select.expressions:
        for out, kind, column in _selected(expression, operands):
            if out in chosen:
                raise refused(f"The name {out!r} is not supported", "two columns would bear it", "… AS another_name")
            chosen[out] = (kind, column)
    keys = _keys(select, chosen, operands)
    where = select.args.get("where")
    wanted = anded([condition(part, operands) for part in (*([] if where is None else [where.this]), *source.conditions)])
    names = [str(each.column) for each in source.fields()]
    columns = [name for name in names if name in used] or names[:1]
    lists = source.lists(columns)
    rows: list[dict[str, Any]] = [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]
    kept = [row for row in rows if wanted is None or holds(wanted, row)]
    found: list[Mapping[str, Any]]
    if keys is not None or any(kind for kind, _ in chosen.values()):
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {} if keys else {(): []}
        for row in kept:
            groups.setdefault(tuple(plain(row[each]) for each in keys or ()), []).append(row)
        found = [
            {out: operands.value(kind, column, rows) if kind else rows[0][column] for out, (kind, column) in chosen.items()}
            for rows in groups.values()
        ]
    else:
        found = [{out: row[column] for out, (_, column) in chosen.items()} for row in kept]
    if select.args.get("distinct"):
        found = list({tuple(map(repr, row.values())): row for row in found}.values())
    return list(chosen), found


def _keys(select: exp.Select, chosen: Mapping[str, tuple[str, str]], operands: _PublicOperands) -> list[str] | None:
    """The columns of GROUP BY; None where there is none."""
    group = select.args.get("group")
    if group is None:
        keys = None
    elif any(value for part, value in group.args.items() if part != "expressions"):
        raise unsupported("ROLLUP, CUBE or GROUPING SETS in a question about a public table", "GROUP BY the column")
    else:
        places = [whole(each.this) if isinstance(each, exp.Literal) else None for each in group.expressions]
        keys = [
            operands.column(
                each if place is None or not 1 <= place <= len(select.expressions) else select.expressions[place - 1].unalias()
            )
            for each, place in zip(group.expressions, places, strict=True)
        ]
    grouped = keys is not None or any(kind for kind, _ in chosen.values())
    strange = next((out for out, (kind, column) in chosen.items() if grouped and not kind and column not in (keys or ())), None)
    if strange is not None:
        raise refused(f"The column {strange!r} is not supported", "it is neither grouped nor aggregated", "GROUP BY the column")
    return keys


def _selected(expression: exp.Expression, operands: _PublicOperands) -> list[tuple[str, str, str]]:
    """Output name, aggregate or nothing, and column."""
    inner = expression.unalias()
    if isinstance(inner, exp.Star):
        left_out = {each.name.lower() for each in inner.args.get("except_") or ()}
        shown_ = [each for each in operands.source.fields() if not each.hidden and each.name.lower() not in left_out]
        operands.used.update(dict.fromkeys(str(each.column) for each in shown_))
        return [(each.name, "", str(each.column)) for each in shown_]
    if type(inner.unnest()) in _OPERATIONS and holds_aggregate(inner):
        name = expression.alias or shown(inner)
        operands.worked[name] = _arithmetic(inner, operands)
        return [(name, "worked", name)]
    kind = _AGGREGATES.get(type(inner), "")
    if kind == "count" and isinstance(inner.this, exp.Star):
        return [(expression.alias or "count", kind, "")]
    column = operands.column(inner.this if kind else inner)
    written = inner.this if kind else inner
    return [(expression.alias or (f"{kind}_{written.name}" if kind else written.name), kind, column)]


def _arithmetic(tree: exp.Expression, operands: _PublicOperands) -> Worked:
    """Arithmetic on aggregates and numbers: exact, and NULL where it divides by 0."""
    tree = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if is_constant(tree):
        value = constant(tree)
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return lambda rows: value
    if type(tree) in _AGGREGATES:
        everything = isinstance(tree.this, exp.Star)
        kind, column = _AGGREGATES[type(tree)], "" if everything else operands.column(tree.this)
        return lambda rows: _aggregate(kind, column, rows)
    if type(tree) not in _OPERATIONS or tree.args.get("typed"):  # where whole numbers have a whole quotient
        raise unsupported(f"{shown(tree)} in a question about a public table", _LINE)
    left, right, work = _arithmetic(tree.this, operands), _arithmetic(tree.expression, operands), _OPERATIONS[type(tree)]

    def worked(rows: Sequence[Mapping[str, Any]]) -> Any:
        sides = [side(rows) for side in (left, right)]
        if None in sides or any(isinstance(side, bool) or not isinstance(side, int | Fraction) for side in sides):
            return None
        return None if isinstance(tree, exp.Div) and sides[1] == 0 else work(Fraction(sides[0]), Fraction(sides[1]))

    return worked


def _aggregate(kind: str, column: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    if not column:
        return len(rows)
    values = [value for value in (plain(row[column]) for row in rows) if value is not None]
    if kind == "count":
        return len(values)
    if not values:
        return None
    if kind in ("min", "max"):
        return min(values) if kind == "min" else max(values)
    if any(isinstance(value, bool) or not isinstance(value, int | Fraction) for value in values):
        raise refused(f"The {kind} of {column!r} is not supported", "its values are not numbers", f"MAX({column})")
    total = Fraction(sum(values))
    return total if kind == "sum" else total / len(values)
