"""Questions within a question whose rows still belong to people: a choice of rows and columns, sums per person, UNION ALL.

A question that aggregates over people is no such thing: its answer would have to be released before it could be read on.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.conditions import anded
from cloister.query.joins import joined
from cloister.query.numbering import numbered
from cloister.query.public_joins import public_join
from cloister.query.publics import PublicRows, PublicSource, public_rows, public_values
from cloister.query.refusals import EXAMPLE, clipped, refused, shown, unsupported, whole
from cloister.query.rows import Field, Rows, places_by_name, same
from cloister.query.scalars import Reader
from cloister.query.semijoins import semijoined
from cloister.query.sources import Environment, Item, check_one_population, items_of
from cloister.query.within import AGGREGATES, UnitAggregates
from cloister.tables import (
    Column,
    Filtered,
    IsNull,
    PerUnit,
    Projected,
    PublicTable,
    Relation,
    Stacked,
    UnitAggregate,
    UnitJoined,
)

_PER_PERSON = "SELECT AVG(total) FROM (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient) AS t"
_PARTS = {
    "order": ("ORDER BY in a subquery", "an order of rows means nothing to an aggregate", "ORDER BY at the end of the question"),
    "limit": ("LIMIT in a subquery", "row order depends on other people's rows", "LIMIT at the end of the question"),
    "offset": ("OFFSET in a subquery", "row order depends on other people's rows", "OFFSET at the end of the question"),
}


def derive(query: exp.Query, environment: Environment) -> Item:
    """The rows that a question within a question describes."""
    inside = environment.inside(query)
    _check_parts(query)
    if isinstance(query, exp.Subquery):
        return derive(query.this, inside)
    if isinstance(query, exp.Union):
        return _stacked(query, inside)
    if isinstance(query, exp.Except | exp.Intersect):
        return _compared(query, inside)
    assert isinstance(query, exp.Select), "no other question is understood"
    rows, rest, public = joined(query, inside)
    if public is not None:
        return _public(query, public, inside)
    assert rows is not None
    reader, rest = rows_of(rows, rest, inside)
    where = anded([reader.condition(part) for part in rest])
    if where is not None:
        rows.filter(where)
    return _selected(query, reader)


def rows_of(rows: Rows, conditions: Sequence[exp.Expression], environment: Environment) -> tuple[Reader, list[exp.Expression]]:
    """What reads a question's expressions over its rows, and the conditions that are left: those that ask whether the person has
    rows elsewhere become joins."""
    left = [part for part in conditions if not semijoined(part, rows, environment)]
    reader = Reader(rows=rows, dialect=environment.typed, queries=lambda query: public_answers(query, environment))
    return reader, left


def public_answers(query: exp.Query, environment: Environment) -> tuple[Any, ...]:
    """The values that a question about public tables has; one about people is refused."""
    if isinstance(query, exp.Select):
        inside = environment.inside(query)
        if query.args.get("from_") is None:
            raise refused(f"The nested query {shown(query)} is not supported", "it names no table", "IN (SELECT town FROM towns)")
        rows = _only_public(query, inside)
        if rows is not None:
            return public_values(query, rows, lambda nested: public_answers(nested, inside))
    raise refused(
        f"The nested query {shown(query)} is not supported",
        "it reads people's rows, and its answer would be used before it is released",
        "a join on the person, or two questions",
    )


def _only_public(query: exp.Select, environment: Environment) -> PublicRows | None:
    items = items_of(query, environment)
    if any(item.public is None for item in items):
        return None
    return items[0].public if len(items) == 1 else public_join(query, items)


def _check_parts(query: exp.Query) -> None:
    for part, (what, why, line) in _PARTS.items():
        if query.args.get(part) is not None:
            raise refused(f"{what} is not supported", why, line)


def _public(query: exp.Select, item: Item, environment: Environment) -> Item:
    """A question about public tables, as a public table of its own."""
    assert item.public is not None
    if query.args.get("having") is not None:
        raise unsupported("HAVING in a question about a public table", "a public table that holds the groups")
    if isinstance(item.public, PublicSource) and _is_whole(query):
        return item
    names, rows = public_rows(query, item.public, lambda nested: public_answers(nested, environment))
    if not rows:
        raise refused(
            f"The subquery of {item.label!r} is not supported", "no row of the public table passes it", "another condition"
        )
    table = PublicTable({name: [row[name] for row in rows] for name in names})
    source = PublicSource(name=item.public.name, table=table)
    return Item(label=item.label, public=source, fields=source.fields())


def _is_whole(query: exp.Select) -> bool:
    whole = len(query.expressions) == 1 and isinstance(query.expressions[0], exp.Star) and query.args.get("where") is None
    return whole and not query.expressions[0].args.get("except_")


def _selected(query: exp.Select, reader: Reader) -> Item:
    """The select list, after grouping by the person where there is an aggregate."""
    rows, group = reader.rows, query.args.get("group")
    expressions = list(query.expressions)
    having, qualify = query.args.get("having"), query.args.get("qualify")
    windows = [node for part in (*expressions, qualify) if part is not None for node in part.find_all(exp.Window)]
    if windows:
        if group is not None or having is not None or query.args.get("distinct") is not None:
            raise unsupported("OVER beside GROUP BY or DISTINCT in a subquery", "a subquery that numbers rows, and one around it")
        expressions, qualify = numbered(expressions, qualify, reader)
    if qualify is not None:
        reader.rows.filter(reader.condition(qualify.this))
    aggregated = any(isinstance(node, AGGREGATES) for part in expressions for node in part.walk())
    if group is not None or aggregated:
        expressions, having = _grouped(query, reader, expressions, having)
    elif query.args.get("distinct") is not None:
        expressions = _distinct(query, reader, expressions)
    elif having is not None:
        raise refused("HAVING is not supported", "nothing is grouped in this subquery", "WHERE …")
    if having is not None:
        reader.rows.filter(reader.condition(having.this))
    fields, names = _outputs(expressions, reader)
    relation = rows.built()
    if [(new, old) for new, old in names] != [(name, name) for name in relation.columns]:
        relation = Projected(source=relation, names=tuple(names))
    return Item(label=rows.label, relation=relation, fields=fields)


def _outputs(expressions: Sequence[exp.Expression], reader: Reader) -> tuple[list[Field], list[tuple[str, str]]]:
    fields: list[Field] = []
    for expression in expressions:
        inner = expression.unalias()
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            fields += _starred(inner, reader)
            continue
        if isinstance(inner, exp.Column):
            found = reader.rows.field_of(inner)
            name = expression.alias or found.name
            fields.append(replace(found, name=name, hidden=False))
            continue
        column = reader.column(inner)
        fields.append(Field(name=expression.alias or column, column=column))
    taken: set[str] = set()
    for each in fields:
        if not each.name or each.name in taken:
            raise refused(
                f"The name {clipped(each.name)} is not supported", "two columns of a subquery would bear it", "… AS another_name"
            )
        taken.add(each.name)
    names = [(each.name, each.column) for each in fields if each.column is not None]
    return [replace(each, column=None if each.column is None else each.name) for each in fields], names


def _starred(star: exp.Expression, reader: Reader) -> list[Field]:
    fields = [each for each in reader.rows.fields if not each.hidden]
    if isinstance(star, exp.Column):
        qualifier = exp.Column(this=exp.to_identifier("x"), **{part: star.args.get(part) for part in ("table", "db", "catalog")})
        wanted = tuple(qualifier.parts[:-1])
        fields = [
            each
            for each in reader.rows.fields
            if any(
                tuple(p.name.lower() for p in known[-len(wanted) :]) == tuple(p.name.lower() for p in wanted)
                for known in each.qualifiers
            )
        ]
        if not fields:
            raise refused(f"{shown(star)} is not supported", "the question reads from no such table", "SELECT * FROM …")
    left_out = excepted(star, [each.name for each in fields])
    return list({(each.name, each.column): each for each in fields if each.name not in left_out}.values())


def excepted(star: exp.Expression, names: Sequence[str]) -> frozenset[str]:
    """The columns that `* EXCEPT (a, b)` or `* EXCLUDE (a, b)` leaves out."""
    inner = star if isinstance(star, exp.Star) else star.this
    found: set[str] = set()
    for each in inner.args.get("except_") or ():
        alike = [name for name in names if same(each.this if isinstance(each, exp.Column) else each, name)]
        if not alike:
            raise refused(f"{shown(each)} beside * is not supported", "it is not a column that * stands for", "SELECT * FROM …")
        found.update(alike)
    return frozenset(found)


def group_targets(query: exp.Select, expressions: Sequence[exp.Expression]) -> list[exp.Expression]:
    """What GROUP BY lists, with places and aliases put for what they stand for."""
    group = query.args.get("group")
    return [resolved(each, expressions) for each in (group.expressions if group is not None else ())]


def resolved(target: exp.Expression, expressions: Sequence[exp.Expression]) -> exp.Expression:
    """The expression that a place in the select list means."""
    if isinstance(target, exp.Literal) and not target.is_string:
        place = whole(target.this) or 0
        if not 1 <= place <= len(expressions):
            raise refused(f"GROUP BY {clipped(target.this)} is not supported", "no such column is selected", "GROUP BY 1")
        return expressions[place - 1].unalias()
    return target.unnest() if isinstance(target, exp.Paren) else target


def _grouped(
    query: exp.Select, reader: Reader, expressions: list[exp.Expression], having: exp.Expression | None
) -> tuple[list[exp.Expression], exp.Expression | None]:
    """One row for each person and key: the aggregates become columns, and the expressions read those."""
    group = query.args.get("group")
    if group is not None and any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets")):
        raise unsupported("ROLLUP, CUBE or GROUPING SETS in a subquery", _PER_PERSON)
    rows = reader.rows
    targets = [_of_alias(each, expressions, reader) for each in group_targets(query, expressions)]
    units = [each for each in targets if isinstance(each, exp.Column) and rows.is_unit(each)]
    if not units:
        raise refused(
            "An aggregate in a subquery is not supported",
            "it is not grouped by the person, so it would have to be released before it is read on",
            _PER_PERSON,
        )
    aggregates = UnitAggregates(reader=reader)
    keys: dict[str, str] = {}
    for each in targets:
        found = rows.field_of(each) if isinstance(each, exp.Column) else None
        if found is None or found.column is not None:
            keys[rows.form(each)] = reader.column(each)
    expressions = [aggregates.replaced(part, keys) for part in expressions]
    having = None if having is None else aggregates.replaced(having, keys)
    own = list(dict.fromkeys(keys.values()))
    rows.become(PerUnit(source=rows.built(), keys=tuple(own), aggregates=tuple(aggregates.found.values())), renamed=True)
    kept = [each for each in rows.fields if each.column in own or (each.unit and each.column is None)]
    kept += [Field(name=name, column=name) for name in own if not any(each.column == name for each in kept)]
    rows.fields = kept + [Field(name=name, column=name) for name in aggregates.found]
    return expressions, having


def _of_alias(target: exp.Expression, expressions: Sequence[exp.Expression], reader: Reader) -> exp.Expression:
    """An alias of the select list, where no column is so called."""
    if not isinstance(target, exp.Column) or target.args.get("table"):
        return target
    try:
        reader.rows.field_of(target)
    except CloisterError:
        for each in expressions:
            if isinstance(each, exp.Alias) and each.alias.lower() == target.name.lower():
                return each.this
    return target


def _distinct(query: exp.Select, reader: Reader, expressions: list[exp.Expression]) -> list[exp.Expression]:
    """SELECT DISTINCT person, x is one row for each person and value."""
    columns = [part.unalias() for part in expressions]
    if query.args["distinct"].args.get("on") is not None or not any(
        isinstance(part, exp.Column) and reader.rows.is_unit(part) for part in columns
    ):
        raise refused(
            "SELECT DISTINCT in a subquery is not supported",
            "DISTINCT compares rows of different people",
            "FROM (SELECT DISTINCT patient, ward FROM visits) AS t",
        )
    grouped = query.copy()
    grouped.set("distinct", None)
    grouped.set("group", exp.Group(expressions=[part.copy() for part in columns]))
    return _grouped(grouped, reader, expressions, None)[0]


def _compared(query: exp.Except | exp.Intersect, environment: Environment) -> Item:
    """The people of one question that are among those of another, or are not: a join with at most one row of each person."""
    sides = [
        derive(each.unnest() if isinstance(each, exp.Subquery) else each, environment) for each in (query.this, query.expression)
    ]
    if not query.args.get("distinct") or any(side.relation is None or not _is_one_per_person(side) for side in sides):
        raise refused(
            f"{query.key.upper()} within a question is not supported",
            "only the people themselves can be compared so",
            "SELECT patient FROM … EXCEPT SELECT patient FROM …",
        )
    left, right = (side.relation for side in sides)
    assert left is not None
    assert right is not None
    check_one_population([left, right])
    once = PerUnit(source=Projected(source=left, names=()))
    there = PerUnit(source=Projected(source=right, names=()), aggregates=(UnitAggregate(name="rows", kind="count"),))
    without = isinstance(query, exp.Except)
    found: Relation = UnitJoined(left=once, right=there, outer=without)
    if without:
        found = Filtered(source=found, where=IsNull(Column("rows")))
    fields = [replace(sides[0].fields[0], column=None, origin=None)]
    return Item(label=sides[0].label, relation=Projected(source=found, names=()), fields=fields)


def _is_one_per_person(item: Item) -> bool:
    return len(item.fields) == 1 and item.fields[0].unit and item.fields[0].column is None


def _stacked(query: exp.Union, environment: Environment) -> Item:
    by_name = bool(query.args.get("by_name"))
    if query.args.get("on"):
        raise unsupported("ON in a UNION", "UNION ALL")
    parts: list[Item] = []
    waiting: list[exp.Expression] = [query.expression, query.this]
    while waiting:
        each = waiting.pop()
        each = each.unnest() if isinstance(each, exp.Subquery) else each
        if isinstance(each, exp.Union) and not each.args.get("distinct") and bool(each.args.get("by_name")) == by_name:
            waiting += [each.expression, each.this]
        elif isinstance(each, exp.Query):
            parts.append(derive(each, environment))
    relations: list[Relation] = []
    first = parts[0].fields
    for part in parts:
        if part.relation is None:
            raise unsupported("A public table under UNION ALL", EXAMPLE)
        mine = part.fields
        if by_name:
            mine = [mine[place] for place in places_by_name((each.name for each in first), (each.name for each in mine))]
        if len(mine) != len(first) or [each.unit for each in mine] != [each.unit for each in first]:
            raise refused(
                "UNION ALL is not supported",
                "its parts have not the same columns, in the same order",
                "SELECT a, b … UNION ALL SELECT a, b …",
            )
        names = [(one.name, each.column) for one, each in zip(first, mine, strict=True) if each.column is not None]
        if len(names) != sum(each.column is not None for each in first):
            raise refused(
                "UNION ALL is not supported", "the person is a declared column in one part only", "the same declaration in both"
            )
        pairs = tuple((new, str(old)) for new, old in names)
        same = pairs == tuple((name, name) for name in part.relation.columns)
        relations.append(part.relation if same else Projected(source=part.relation, names=pairs))
    check_one_population(relations)
    relation = Stacked(sources=tuple(relations))
    fields = [replace(each, column=None if each.column is None else each.name, origin=None) for each in first]
    if query.args.get("distinct"):
        if not any(each.unit for each in fields):
            raise refused("UNION is not supported", "it compares rows of different people", "UNION ALL")
        keys = tuple(each.column for each in fields if each.column is not None)
        return Item(label=parts[0].label, relation=PerUnit(source=relation, keys=keys), fields=fields)
    return Item(label=parts[0].label, relation=relation, fields=fields)
