"""Whether the same person has rows elsewhere: `patient IN (SELECT patient FROM visits WHERE …)`, EXISTS, and their negations.

They are joins on the unit with at most one row a person, so they neither add rows nor look at anybody else's. The same holds
along a declared key: `EXISTS (SELECT * FROM drugs WHERE drugs.visit = visits.visit)` joins each visit with at most one row, which
says that the visit has drugs; `KeyJoined` argues why a person's rows then change with that person alone.

In EXISTS a name means what it means in the question inside, and only where it means nothing there, what it means around it.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from cloister.errors import UnsupportedQuery
from cloister.query.conditions import conjuncts
from cloister.query.refusals import refused
from cloister.query.rows import Field, Rows, named
from cloister.query.sources import Environment, Item, check_one_population, items_of
from cloister.query.within import AGGREGATES
from cloister.tables import Column, Filtered, Identifier, IsNull, KeyJoined, PerUnit, Projected, UnitAggregate, UnitJoined

_LINE = "patient IN (SELECT patient FROM visits WHERE cost > 100)"
_EXISTS = "EXISTS (SELECT 1 FROM visits AS v WHERE v.patient = p.patient)"


def semijoined(tree: exp.Expression, rows: Rows, environment: Environment) -> bool:
    """Whether a condition was such a question about the person, and has become a join."""
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    negated = isinstance(inner, exp.Not)
    inner = inner.this.unnest() if negated else inner
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        return _in(inner, rows, environment, negated=negated)
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Select):
        outside, query = _decorrelated(inner.this, rows, environment)
        item = _of_units(query, _kind(outside, rows), environment)
        if item is None or not _is_of_units(item, _kind(outside, rows)):
            raise _not_the_same("the column that is compared does not say whose row a row is")
        _join(rows, item, outside, negated=negated)
        return True
    return False


def _in(tree: exp.In, rows: Rows, environment: Environment, *, negated: bool) -> bool:
    outside = tree.this.unnest()
    if not rows.is_unit(outside) and not _is_key(outside, rows):
        return False
    item = _of_units(tree.args["query"].unnest(), _kind(outside, rows), environment)
    if item is None:
        return False
    if not _is_of_units(item, _kind(outside, rows)):
        raise refused("IN is not supported", "the question within it does not select the person alone", _LINE)
    if negated and not rows.is_unit(outside):
        raise refused(
            "NOT IN is not supported", "along a key that may be NULL it is not the same as NOT EXISTS", "NOT EXISTS (SELECT …)"
        )
    _join(rows, item, outside, negated=negated)
    return True


def _is_key(tree: exp.Expression, rows: Rows) -> bool:
    """Whether it names a column of identifiers, to which another table's rows may belong."""
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return False
    matches = [each for each in named(rows.fields, tree) if not each.unit]
    columns = {each.column for each in matches}
    column = columns.pop() if len(columns) == 1 else None
    return column is not None and isinstance(rows.domain(column), Identifier)


def _kind(outside: exp.Expression, rows: Rows) -> str | None:
    """The column to whose values the rows inside must belong; None for people."""
    if rows.is_unit(outside):
        return rows.relation.through
    origins = rows.relation.origins(rows.column(outside))
    return next(iter(origins)) if len(origins) == 1 else ""


def _of_units(query: exp.Query, kind: str | None, environment: Environment) -> Item | None:
    """The rows of a question within the question; none where it is about public tables."""
    select = query if isinstance(query, exp.Select) and query.args.get("from_") is not None else None
    if select is not None and all(item.relation is None for item in items_of(select, environment.inside(select))):
        return None
    item = environment.derive(query, replace(environment, wanted=kind))
    return item if item.relation is not None else None


def _is_of_units(item: Item, kind: str | None) -> bool:
    assert item.relation is not None
    return len(item.fields) == 1 and item.fields[0].unit and item.relation.through == kind


def _join(rows: Rows, item: Item, outside: exp.Expression, *, negated: bool) -> None:
    assert item.relation is not None
    key = None if rows.is_unit(outside) else rows.column(outside)
    left = rows.built()
    check_one_population([left, item.relation])
    bare = Projected(source=item.relation, names=())
    name = "rows elsewhere"
    while name in left.columns:
        name += "'"
    once = PerUnit(source=bare, aggregates=(UnitAggregate(name=name, kind="count"),))
    whole = (
        UnitJoined(left=left, right=once, outer=negated)
        if key is None
        else KeyJoined(left=once, right=left, left_key=str(once.unit), right_key=key, outer=negated)
    )
    kept = tuple((each, each) for each in left.columns)
    relation = Filtered(source=whole, where=IsNull(Column(name))) if negated else whole
    rows.become(Projected(source=relation, names=kept))


def _decorrelated(query: exp.Select, rows: Rows, environment: Environment) -> tuple[exp.Expression, exp.Select]:
    """The person, or the key, of the question around, and SELECT person … without the equality of the two."""
    if query.args.get("from_") is None:
        raise _not_the_same("it reads no table")
    if query.args.get("group") is None and any(part.find(*AGGREGATES) for part in query.expressions):
        raise refused("EXISTS is not supported", "an aggregate without GROUP BY has a row whatever it counts", _EXISTS)
    own = [each for item in items_of(query, environment.inside(query)) for each in item.fields]
    where = query.args.get("where")
    parts = [] if where is None else conjuncts(where.this)
    link = next((found for part in parts if (found := _link(part, own, rows)) is not None), None)
    if link is None:
        raise _not_the_same()
    part, outside, inside = link
    rest = [each.copy() for each in parts if each is not part]
    if any(_from_around(column, own, rows) for each in rest for column in _columns(each)):
        raise _not_the_same("beside the person it compares another column of the question around it")
    changed = query.copy()
    changed.set("expressions", [inside.copy()])
    changed.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    return outside, changed


def _link(part: exp.Expression, own: Sequence[Field], rows: Rows) -> tuple[exp.Expression, exp.Expression, exp.Expression] | None:
    """The condition, the person or key around and the column inside, where it is their equality."""
    inner = part.unnest() if isinstance(part, exp.Paren) else part
    if not isinstance(inner, exp.EQ):
        return None
    sides = inner.this.unnest(), inner.expression.unnest()
    if not all(isinstance(side, exp.Column) and isinstance(side.this, exp.Identifier) for side in sides):
        return None
    for outside, inside in (sides, sides[::-1]):
        if _from_around(outside, own, rows) and named(own, inside) and (rows.is_unit(outside) or _is_key(outside, rows)):
            return part, outside, inside
    return None


def _from_around(column: exp.Column, own: Sequence[Field], rows: Rows) -> bool:
    """Whether a name means nothing in the question inside, and something around it."""
    return not named(own, column) and bool(named(rows.fields, column))


def _columns(tree: exp.Expression) -> list[exp.Column]:
    """The names in a condition, but for those of questions within it, which have their own."""
    walked = tree.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in walked if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)]


def _not_the_same(why: str = "it does not ask for rows of the same person") -> UnsupportedQuery:
    return refused("EXISTS is not supported", why, _EXISTS)
