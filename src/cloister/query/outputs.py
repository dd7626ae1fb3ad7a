"""The outermost SELECT: its keys, its statistics, and how its answer is laid out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any

from sqlglot import exp

from cloister import printable
from cloister.errors import CloisterError
from cloister.query.aggregates import Aggregates, holds_aggregate
from cloister.query.conditions import condition
from cloister.query.constants import constant, is_constant
from cloister.query.derived import resolved
from cloister.query.evaluation import holds
from cloister.query.layout import Layout, Ordering, Shown
from cloister.query.refusals import EXAMPLE, clipped, refused, shown, unsupported, whole
from cloister.query.rows import same
from cloister.query.scalars import Reader
from cloister.session.questions.question import Count, Largest, Mode, Quantile, Smallest, Statistic
from cloister.tables import Expression
from cloister.tables.expression.names import quoted

_MOST_SETS = 64
_LIKE = {"integer": 0, "real": 0, "boolean": True, "date": date.min, "category": "one", "text": "one"}
"""A value of each kind."""


@dataclass(kw_only=True)
class Outputs:
    """What a SELECT asks for: the keys of each question, the statistics of all, and the layout."""

    sets: list[tuple[str, ...]]
    statistics: dict[str, Statistic]
    layout: Layout


@dataclass(kw_only=True)
class _Reading:
    reader: Reader
    aggregates: Aggregates
    keys: dict[str, str] = field(default_factory=dict)
    """From the canonical text of a key to its column."""
    aliases: dict[str, exp.Expression] = field(default_factory=dict)

    def key(self, tree: exp.Expression) -> str | None:
        """The key that an expression is, if it is one."""
        inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if holds_aggregate(inner) or is_constant(inner):
            return None
        try:
            return self.keys.get(self.reader.rows.form(inner))
        except CloisterError:
            return None

    # what a condition on the answer is about: the part of `Operands`

    def column(self, tree: exp.Expression) -> str:
        """A key, what an alias stands for, or a statistic."""
        inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
        found = self.key(inner)
        if found is not None:
            return found
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            aliased = next((each for alias, each in self.aliases.items() if same(inner.this, alias)), None)
            if aliased is not None:
                return self.key(aliased) or self.aggregates.name(aliased)
        if isinstance(inner, exp.Column):
            name = self.reader.rows.column(inner)
            raise refused(
                f"The column {name!r} is not supported", "it is neither aggregated nor a key", f"… GROUP BY {quoted(name)}"
            )
        return self.aggregates.name(inner)

    def holds(self, column: str) -> str:
        found = self.aggregates.found.get(column)
        if found is None or isinstance(found, Mode | Quantile | Smallest | Largest):
            return self.reader.holds(column if found is None else found.column)
        return "real"

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        return self.reader.values(query)


def read_outputs(select: exp.Select, reader: Reader) -> Outputs:
    """Keys, statistics and layout of the outermost SELECT."""
    reading = _Reading(reader=reader, aggregates=Aggregates(reader=reader))
    reading.aliases = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
    sets = _sets(select, reading)
    distinct = select.args.get("distinct")
    if distinct is not None and select.args.get("group") is None and not any(map(holds_aggregate, select.expressions)):
        sets = [tuple(_key(part.unalias(), reading) for part in select.expressions if not is_constant(part.unalias()))]
    columns = _columns(select, reading, sets)
    if distinct is not None and {column.source for column in columns} & set(sets[0]) != set(sets[0]):
        raise refused("SELECT DISTINCT is not supported", "not every key is shown, so rows may only look the same", EXAMPLE)
    having = _having(select, reading)
    order = _order(select, reading, columns)
    if not reading.aggregates.found:
        if not any(sets):
            raise refused(
                "A question without an aggregate is not supported", "rows never leave; counts, sums and means do", EXAMPLE
            )
        reading.aggregates.found["count_star()"] = Count(name="count_star()")
    layout = Layout(
        columns=columns, having=having, order=order, limit=_number(select, "limit"), offset=_number(select, "offset") or 0
    )
    return Outputs(sets=sets, statistics=reading.aggregates.found, layout=layout)


def _key(target: exp.Expression, reading: _Reading) -> str:
    """The column of a key: by an alias only where no column is so called."""
    rows = reading.reader.rows
    target = target.unnest() if isinstance(target, exp.Paren) else target
    if holds_aggregate(target):
        raise refused(f"GROUP BY {shown(target)} is not supported", "it is an aggregate", EXAMPLE)
    if isinstance(target, exp.Column) and not target.args.get("table"):
        alias = next(
            (
                each
                for name, each in reading.aliases.items()
                if isinstance(target.this, exp.Identifier) and same(target.this, name)
            ),
            None,
        )
        if alias is not None and alias is not target:
            try:
                rows.field_of(target)
            except CloisterError:
                return _key(alias, reading)
    if isinstance(target, exp.Star) or (isinstance(target, exp.Column) and isinstance(target.this, exp.Star)):
        raise refused("SELECT * is not supported", "rows never leave; counts, sums and means do", EXAMPLE)
    if is_constant(target):
        raise refused(f"GROUP BY {shown(target)} is not supported", "it is a constant", EXAMPLE)
    name = reading.reader.column(target)
    reading.keys[rows.form(target)] = name
    return name


def _sets(select: exp.Select, reading: _Reading) -> list[tuple[str, ...]]:
    """The keys of each grouping set; one set where there is but GROUP BY."""
    group = select.args.get("group")
    if group is None:
        return [()]

    def keys(trees: Sequence[exp.Expression]) -> tuple[str, ...]:
        flat = [part for tree in trees for part in (tree.expressions if isinstance(tree, exp.Tuple) else [tree])]
        return tuple(_key(resolved(part, select.expressions), reading) for part in flat)

    def made(tree: exp.Expression, levels: Sequence[tuple[str, ...]] = ()) -> list[tuple[str, ...]]:
        """The sets of ROLLUP, CUBE or GROUPING SETS, also within GROUPING SETS, or of a list of keys."""
        if isinstance(tree, exp.GroupingSets):
            return [each for part in tree.expressions for each in made(part)]
        if not isinstance(tree, exp.Rollup | exp.Cube):
            return [keys([tree])]
        levels = [keys([part]) for part in tree.expressions] or levels
        if isinstance(tree, exp.Rollup):
            return [sum(levels[:count], ()) for count in range(len(levels), -1, -1)]
        if len(levels) > 6:
            raise refused(
                "CUBE is not supported", f"it makes more than {_MOST_SETS} questions", "GROUPING SETS ((sex, educ), (sex), ())"
            )
        chosen = product((True, False), repeat=len(levels))
        return [sum((level for level, kept in zip(levels, each, strict=True) if kept), ()) for each in chosen]

    plain = keys(group.expressions)
    trees = [tree for part in ("rollup", "cube", "grouping_sets") for tree in group.args.get(part) or ()]
    behind = any(not tree.expressions for tree in trees)  # GROUP BY sex, educ WITH ROLLUP
    factors: list[list[tuple[str, ...]]] = [[()] if behind else [plain]]
    factors += [made(tree, [(name,) for name in plain]) for tree in trees]
    found: list[tuple[str, ...]] = [()]
    for factor in factors:
        found = [(*one, *other) for one in found for other in factor]
        if len(found) > _MOST_SETS:
            raise refused(
                "The grouping sets are not supported",
                f"they make more than {_MOST_SETS} questions",
                "GROUPING SETS ((sex, educ), (sex), ())",
            )
    return list(dict.fromkeys(tuple(dict.fromkeys(each)) for each in found))


def _columns(select: exp.Select, reading: _Reading, sets: Sequence[tuple[str, ...]]) -> tuple[Shown, ...]:
    found: dict[str, Shown] = {}
    for expression in select.expressions:
        inner = expression.unalias()
        if isinstance(expression, exp.Alias) and not expression.alias:
            raise refused("An empty name is not supported", "no column of the answer can bear it", "… AS n")
        column = _column(expression, inner, reading, sets)
        if not isinstance(expression, exp.Alias):  # nobody chose the name, so it may have a number
            name, number = column.name, 0
            while name in found:
                number += 1
                name = f"{column.name}_{number}"
            column = replace(column, name=name)
        if column.name in found:
            raise refused(
                f"The name {clipped(column.name)} is not supported",
                "two columns of the answer would bear it",
                "… AS another_name",
            )
        found[column.name] = column
    return tuple(found.values())


def _column(expression: exp.Expression, inner: exp.Expression, reading: _Reading, sets: Sequence[tuple[str, ...]]) -> Shown:
    alias = expression.alias if isinstance(expression, exp.Alias) else ""
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        raise refused("SELECT * is not supported", "rows never leave; counts, sums and means do", EXAMPLE)
    if isinstance(inner, exp.Grouping):
        target = inner.expressions[0] if len(inner.expressions) == 1 else inner.this
        key = reading.key(target) if isinstance(target, exp.Expression) else None
        if key is None:
            raise refused(f"{shown(inner)} is not supported", "it does not name one key", "GROUPING(sex)")
        return Shown(name=alias or f"grouping({key})", fixed=tuple(int(key not in keys) for keys in sets))
    if is_constant(inner):
        value = constant(inner)
        if isinstance(value, int | Fraction) and not -(10**308) <= value <= 10**308:  # a condition may compare with it
            raise refused(f"The constant {shown(inner)} is invalid", "it is too long, too large or no number", "1e300")
        return Shown(name=alias or printable.shown(inner.sql(comments=False)), fixed=(value,) * len(sets))
    key = reading.key(inner)
    if key is not None:
        return Shown(name=alias or (inner.name if isinstance(inner, exp.Column) else key), source=key)
    if isinstance(inner, exp.Column):
        name = reading.reader.rows.column(inner)
        raise refused(f"The column {name!r} is not supported", "it is neither aggregated nor a key", f"… GROUP BY {quoted(name)}")
    if not holds_aggregate(inner):
        raise refused(f"{shown(inner)} is not supported", "it is neither aggregated nor a key", "GROUP BY the same expression")
    name = reading.aggregates.name(inner)
    return Shown(name=alias or printable.shown(name), source=name)


def _having(select: exp.Select, reading: _Reading) -> Expression | None:
    having = select.args.get("having")
    if having is None:
        return None
    found = condition(having.this, reading)
    holds(found, {name: _LIKE.get(reading.holds(name)) for name in found.columns()})  # two kinds are refused before the charge
    return found


def _order(select: exp.Select, reading: _Reading, columns: Sequence[Shown]) -> tuple[Ordering, ...]:
    order = select.args.get("order")
    found: list[Ordering] = []
    for item in order.expressions if order is not None else ():
        source = _ordered_by(item.this, reading, columns)
        if source is not None:
            found.append(
                Ordering(source=source, descending=bool(item.args.get("desc")), nulls_first=bool(item.args.get("nulls_first")))
            )
    return tuple(found)


def _ordered_by(target: exp.Expression, reading: _Reading, columns: Sequence[Shown]) -> str | None:
    """The key or statistic: by its place, by its name in the answer, or as itself; None for a constant, which orders nothing."""
    if isinstance(target, exp.Literal) and not target.is_string:
        place = whole(target.this) or 0
        if 1 <= place <= len(columns):
            return columns[place - 1].source
    elif isinstance(target, exp.Column) and isinstance(target.this, exp.Identifier):
        matches: list[Shown] = []
        if not target.args.get("table"):
            matches = [column for column in columns if column.name == target.name]
            matches = matches or [column for column in columns if same(target.this, column.name)]
        if len(matches) == 1:
            return matches[0].source
        key = reading.key(target) if not matches else None
        if key is not None:
            return key
        if target.args.get("table"):
            reading.reader.rows.column(target)
    elif not is_constant(target):
        return reading.column(target)
    raise unsupported(f"ORDER BY {shown(target)}", "ORDER BY a column of the answer, by its name")


def _number(select: exp.Select, part: str) -> int | None:
    limit = select.args.get(part)
    if limit is None:
        return None
    count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression  # FETCH FIRST and FETCH NEXT
    count = count.unnest() if isinstance(count, exp.Paren) else count
    rows = whole(count.this) if isinstance(count, exp.Literal) and not count.is_string else None
    if rows is None:
        raise unsupported(f"This {part.upper()}", f"{part.upper()} 10")
    return rows
