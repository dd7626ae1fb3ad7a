"""`max_groups_contributed`, `max_rows_contributed` and `contribution_bounds_per_group`, as ZetaSQL means them.

Each person's rows are first brought together group by group: COUNT(*) becomes the sum of the person's counts, SUM(x) the sum of
the person's sums, clamped into the bounds that were given. Then at most so many of a person's groups count. It is the same
answer where nobody passes a bound, and less noise where the bounds are tighter than the rows that a person may have.

Without bounds for each group, a cap of groups loses more than the cap of rows that the table has: k groups of up to m rows each
are k·m rows, and the table lets no more than m count in all groups together. So sums and counts of rows then keep the cap of
rows, and a note says so; a count of people takes the cap of groups.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.aggregates import is_aggregate
from cloister.query.constants import constant, counts_rows, is_constant
from cloister.query.derived import resolved
from cloister.query.options import BOUNDED, Options
from cloister.query.refusals import refused, shown, unsupported
from cloister.query.rows import Field
from cloister.query.scalars import Reader
from cloister.tables import Capped, Expression, Extended, PerUnit, Relation, UnitAggregate

if TYPE_CHECKING:
    from cloister.tables.expression.scalars import Scalar

_LINE = "SUM(cost, contribution_bounds_per_group => (0, 100))"
_WHOLE = (exp.Column, exp.Identifier, exp.Alias, exp.Literal, exp.Order, exp.Ordered, exp.Having)
"""What no key can be, or what is a key already."""
NOT_NEEDED = "max_groups_contributed is not used: the cap of rows holds in all groups together, and so loses less"
_NAMES = {name: kind for kind, name in BOUNDED.items()}


def bounded(
    select: exp.Select, where: Expression | None, reader: Reader, options: Options
) -> tuple[exp.Select, Expression | None, tuple[str, ...]]:
    """The question over one row for each person and group, where it bounds what they contribute; else as it is. And what its
    analyst should know of it."""
    rows = reader.rows
    if options.rows is not None and rows.relation.unit is not None:
        if where is not None:
            rows.filter(where)
            where = None
        rows.become(Capped(source=rows.built(), rows=options.rows))
    marked = [node for node in select.find_all(exp.Anonymous) if node.name.upper() in _NAMES]
    if not marked and options.groups is None:
        return select, where, ()
    by_group = any(_bounds(node)[0] == "contribution_bounds_per_group" for node in marked)
    if rows.relation.unit is None or not (by_group or options.groups is not None):
        return _by_row(select), where, ()  # a person with one row has one group
    if not by_group and not _counts_people(select, reader):
        return _by_row(select), where, (NOT_NEEDED,)
    if where is not None:
        rows.filter(where)
    return _Grouping(reader=reader, select=select).grouped(options.groups), None, ()


def _counts_people(select: exp.Select, reader: Reader) -> bool:
    """Whether every aggregate is a count of people."""
    return all(
        isinstance(node, exp.Count)
        and isinstance(node.this, exp.Distinct)
        and len(node.this.expressions) == 1
        and reader.rows.is_unit(node.this.expressions[0])
        for node in select.walk()
        if is_aggregate(node)
    )


def _bounds(node: exp.Expression) -> tuple[str, Any, Any]:
    """Which bounds an aggregate names, and what they are."""
    given = [part for part in node.expressions if isinstance(part, exp.Kwarg)]
    ends = given[0].expression.expressions if len(given) == 1 and isinstance(given[0].expression, exp.Tuple) else []
    values = [constant(end) if is_constant(end) else None for end in ends]
    if (
        len(node.expressions) != 2
        or len(values) != 2
        or any(isinstance(v, bool) or not isinstance(v, int | Fraction) for v in values)
    ):
        raise refused(f"{shown(node)} is not supported", "its bounds are not two constant numbers", _LINE)
    return given[0].this.name.lower(), values[0], values[1]


def _by_row(select: exp.Select) -> exp.Select:
    """Bounds a row, and bounds a group where a person has one row: the value is clamped."""

    def change(node: exp.Expression) -> exp.Expression:
        kind = _NAMES.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
        if kind is None:
            return node
        _, low, high = _bounds(node)
        if kind == "COUNT":
            if low > 1 or high < 1:
                raise refused(f"{shown(node)} is not supported", "a person's one row does not fit the bounds", "COUNT(*)")
            return exp.Count(this=node.expressions[0].copy())
        value = exp.Anonymous(this="CLAMP", expressions=[node.expressions[0].copy(), _number(low), _number(high)])
        return exp.Sum(this=value) if kind == "SUM" else exp.Avg(this=value)

    return select.transform(change)


def _number(value: int | Fraction) -> exp.Expression:
    value = Fraction(value)
    parts = [exp.Literal.number(abs(value.numerator)), exp.Literal.number(value.denominator)]
    whole = parts[0] if value.denominator == 1 else exp.Paren(this=exp.Div(this=parts[0], expression=parts[1]))
    return exp.Neg(this=whole) if value < 0 else whole


@dataclass(kw_only=True)
class _Grouping:
    """The rewriting of one SELECT."""

    reader: Reader
    select: exp.Select
    found: dict[str, UnitAggregate] = field(default_factory=dict)
    clamps: dict[str, tuple[str, Any, Any]] = field(default_factory=dict)

    def grouped(self, groups: int | None) -> exp.Select:
        rows, select = self.reader.rows, self.select
        group = select.args.get("group")
        if group is not None and any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")):
            raise unsupported("GROUPING SETS with bounds on what a person contributes", "GROUP BY sex, educ")
        targets = [resolved(each, select.expressions) for each in (group.expressions if group is not None else ())]
        targets = [self._unaliased(each) for each in targets]
        keys = {rows.form(each): self.reader.column(each) for each in targets}
        changed = select.copy()
        for part in ("expressions", "having", "order"):
            value = changed.args.get(part)
            if value:
                changed.set(
                    part, [self._changed(each, keys) for each in value] if isinstance(value, list) else self._changed(value, keys)
                )
        own = tuple(dict.fromkeys(keys.values()))
        if group is not None:
            changed.set("group", exp.Group(expressions=[_named(name) for name in own]))
        relation = PerUnit(source=rows.built(), keys=own, aggregates=tuple(self.found.values()))
        from cloister.tables.expression.scalars import Clamp, Ref

        scalars: list[tuple[str, Scalar]] = [(name, Clamp(Ref(of), low, high)) for name, (of, low, high) in self.clamps.items()]
        whole: Relation = Extended(source=relation, scalars=tuple(scalars)) if scalars else relation
        if groups is not None and groups < (whole.max_rows or 1):
            whole = Capped(source=whole, rows=groups)
        rows.become(whole, renamed=True)
        units = [each for each in rows.fields if each.unit]
        known = [each for each in rows.fields if each.column in own]
        fresh = [name for name in whole.columns if not any(each.column == name for each in known)]
        rows.fields = [
            *(
                Field(name=each.name, column=None, unit=True, qualifiers=each.qualifiers)
                for each in units
                if each.column not in own
            ),
            *known,
            *(Field(name=name, column=name) for name in fresh),
        ]
        return changed

    def _unaliased(self, target: exp.Expression) -> exp.Expression:
        for each in self.select.expressions:
            if isinstance(each, exp.Alias) and isinstance(target, exp.Column) and each.alias.lower() == target.name.lower():
                known = [name.lower() for name in self.reader.rows.names]
                return target if target.name.lower() in known else each.this
        return target

    def _changed(self, tree: exp.Expression, keys: dict[str, str]) -> exp.Expression:
        def change(node: exp.Expression) -> exp.Expression:
            if is_aggregate(node):
                return self._aggregate(node)
            if keys and not isinstance(node, _WHOLE) and not any(is_aggregate(part) for part in node.walk()):
                try:
                    text = self.reader.rows.form(node)
                except CloisterError:  # a name that is no column here: it is refused where it is read
                    text = ""
                if text in keys:
                    return _named(keys[text])
            return node

        changed = tree.transform(change)
        if isinstance(tree, exp.Anonymous | exp.AggFunc) and not isinstance(changed, exp.Alias):
            name = _NAMES.get(tree.name.upper(), "") if isinstance(tree, exp.Anonymous) else ""
            inner = tree.expressions[0] if name else tree
            label = f"{name}({inner.sql(comments=False)})" if name else tree.sql(comments=False)
            return exp.alias_(changed, label.lower(), quoted=True)
        return changed

    def _aggregate(self, node: exp.Expression) -> exp.Expression:
        kind = _NAMES.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
        bounds: tuple[str, Any, Any] | None = None
        target: Any = node.this
        if kind is not None:
            bounds, target = _bounds(node), node.expressions[0]
            if bounds[0] == "contribution_bounds_per_row":
                target = exp.Anonymous(this="CLAMP", expressions=[target.copy(), _number(bounds[1]), _number(bounds[2])])
                bounds = None
        kind = kind or {exp.Sum: "SUM", exp.Avg: "AVG", exp.Count: "COUNT"}.get(type(node))
        rows = self.reader.rows
        if (
            kind == "COUNT"
            and isinstance(target, exp.Distinct)
            and len(target.expressions) == 1
            and rows.is_unit(target.expressions[0])
        ):
            return node
        if kind is None or isinstance(target, exp.Distinct) or not isinstance(target, exp.Expression):
            raise unsupported(f"{shown(node)} with bounds on what a person contributes", "COUNT(*), SUM(cost), AVG(cost)")
        if kind == "COUNT":
            return exp.Sum(this=_named(self._count(target, bounds)))
        column = self.reader.column(target)
        total = exp.Sum(this=_named(self._clamped(self._add("sum", column), bounds)))
        if kind == "SUM":
            return total
        return exp.Paren(this=exp.Div(this=total, expression=exp.Sum(this=_named(self._add("values", column)))))

    def _count(self, target: exp.Expression, bounds: tuple[str, Any, Any] | None) -> str:
        if counts_rows(target) or self.reader.rows.is_unit(target):
            return self._clamped(self._add("count", None), bounds)
        return self._clamped(self._add("values", self.reader.column(target)), bounds)

    def _add(self, kind: Any, column: str | None) -> str:
        name = f"{kind} of a person" if column is None else f"{kind} of a person's {column}"
        self.found.setdefault(name, UnitAggregate(name=name, kind=kind, column=column))
        return name

    def _clamped(self, name: str, bounds: tuple[str, Any, Any] | None) -> str:
        if bounds is None:
            return name
        clamped = f"{name}, from {bounds[1]} to {bounds[2]}"
        self.clamps[clamped] = (name, bounds[1], bounds[2])
        return clamped


def _named(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
