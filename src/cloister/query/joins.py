"""From the sources of a FROM clause to one relation: along the unit, along a declared key, or with a public table.

Every private source is linked to the others by the person: by equality of the columns that say whose row a row is, or by a key
that its owner declared with `through=`. A table declared `through=` whose parent the question does not name is linked to it
anyway, since only then do its rows belong to people. Everything else that ON says of an inner join holds for the joined rows as
a condition, so it is given back as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cloister.errors import UnsupportedQuery
from cloister.query.conditions import conjuncts
from cloister.query.public_joins import public_join
from cloister.query.publics import PublicSource
from cloister.query.refusals import refused, shown, unsupported
from cloister.query.rows import Field, Rows, choose, named
from cloister.query.sources import Environment, Item, check_one_population, items_of
from cloister.tables import Base, KeyJoined, PrivateTable, Projected, PublicJoined, Relation, UnitJoined
from cloister.tables.expression.names import quoted, quoted_path

_EITHER = exp.to_identifier("either side")
"""What the person of a row is qualified by whose sides may both be missing: nobody can write it without quotes."""


@dataclass(kw_only=True)
class _Joining:
    """What has been joined so far."""

    items: Sequence[Item]
    relation: Relation
    members: list[int]
    columns: dict[int, str | None]
    """From a field (by identity) to the column that holds it now."""
    pairs: list[tuple[Field, Field]]
    rest: list[exp.Expression]
    used: frozenset[str] | None
    """The names that the question writes, in lower case; None where it takes all."""
    typed: str | None
    """The dialect that the question is written in."""
    hidden: set[int] = field(default_factory=set)
    using: dict[int, list[tuple[Field, Field]]] = field(default_factory=dict)
    """The equalities that USING makes, by source."""

    def of(self, item: int) -> list[Field]:
        return self.items[item].fields

    def where_is(self, found: Field) -> int:
        return next(place for place, item in enumerate(self.items) if any(each is found for each in item.fields))

    def key_pairs(self, item: int) -> list[tuple[Field, Field]]:
        """Equalities between what is joined and one more source: (field that is joined, field of the source)."""
        found = []
        for one, other in self.pairs:
            for left, right in ((one, other), (other, one)):
                if self.where_is(right) == item and self.where_is(left) in self.members:
                    found.append((left, right))
        return found


def joined(select: exp.Select, environment: Environment) -> tuple[Rows | None, list[exp.Expression], Item | None]:
    """The rows that a question's FROM describes, and the conditions that are left of ON and WHERE; or, where it reads nothing but
    public tables, their rows."""
    items = items_of(select, environment)
    where = select.args.get("where")
    conditions = [] if where is None else conjuncts(where.this)
    if len(items) > 1:
        conditions = [each for part in conditions for each in _factored(part)]
    if len(items) == 1 and items[0].relation is None:
        return None, conditions, items[0]
    if all(item.relation is None for item in items):
        public = public_join(select, items)
        label = " and ".join(dict.fromkeys(item.label for item in items))
        return None, conditions, Item(label=label, public=public, fields=public.fields())
    state = _begin(select, items, conditions, environment.typed)
    waiting = [place for place in range(len(items)) if place not in state.members]
    while waiting:
        ready = next((place for place in waiting if _reachable(state, place, waiting)), None)
        if ready is None:
            raise unlinked(state.relation, state.items[state.members[0]], state.items[waiting[0]])
        waiting.remove(ready)
        _attach(state, ready)
    relation = linked(state.relation, environment.tables, environment.until)
    state.rest += [_equality(state, pair) for pair in state.pairs]
    check_one_population([relation])
    fields = [
        replace(each, column=state.columns[id(each)], hidden=id(each) in state.hidden, unit=_is_unit(each, item, relation))
        for item in items
        for each in item.fields
        if id(each) in state.columns
    ]
    if any(item.full for item in items):
        fields = _of_either(state, fields, select)
    label = " and ".join(dict.fromkeys(item.label for item in items))
    return Rows(relation=relation, fields=fields, label=label), state.rest, None


def _of_either(state: _Joining, fields: list[Field], select: exp.Select) -> list[Field]:
    """The columns of a FULL JOIN: the person of either side may be missing. What USING names, and COALESCE of both, is the person
    of whichever a row has: the row's own."""
    pairs = [pair for found in state.using.values() for pair in found]
    if strange := next((left for left, _ in pairs if not left.unit), None):
        name = quoted(strange.name)
        raise refused(
            f"USING ({strange.name}) in a FULL JOIN is not supported",
            "it would be the column of whichever side a row has",
            f"ON a.{name} = b.{name}, and COALESCE(a.{name}, b.{name})",
        )
    using = {left.name for left, _ in pairs}
    sides = [[each for each in item.fields if each.unit] for item in state.items]
    for node in list(select.find_all(exp.Coalesce)):
        columns = [node.this, *node.expressions]
        if node.find_ancestor(exp.Select) is select and len(columns) == len(sides) and _are_units(columns, sides):
            node.replace(exp.column(exp.to_identifier(sides[0][0].name, quoted=True), table=_EITHER.copy()))
    found = [replace(each, unit=False, hidden=each.hidden or (each.unit and each.name in using)) for each in fields]
    found += [Field(name=name, column=None, unit=True) for name in sorted(using)]
    return [*found, *(Field(name=each.name, column=None, unit=True, qualifiers=((_EITHER,),), hidden=True) for each in sides[0])]


def _are_units(columns: Sequence[exp.Expression], sides: Sequence[Sequence[Field]]) -> bool:
    """Whether the columns name the person of each side, in any order."""
    if not all(isinstance(each, exp.Column) and isinstance(each.this, exp.Identifier) for each in columns):
        return False
    means = [{place for place, side in enumerate(sides) if named(side, each)} for each in columns]
    return means in ([{0}, {1}], [{1}, {0}])


def _factored(part: exp.Expression) -> list[exp.Expression]:
    """(link AND a) OR (link AND b) as link and (a OR b): what each branch of an OR equates links the tables."""
    inner = part.unnest() if isinstance(part, exp.Paren) else part
    if not isinstance(inner, exp.Or):
        return [part]
    branches = [{each.sql(): each for each in conjuncts(branch)} for branch in conjuncts(inner, exp.Or)]
    first, *rest = branches
    common = {text: each for text, each in first.items() if isinstance(each, exp.EQ) and all(text in other for other in rest)}
    if not common:
        return [part]
    others = [[each.copy() for text, each in branch.items() if text not in common] for branch in branches]
    if not all(others):
        return list(common.values())
    return [*common.values(), exp.or_(*(exp.and_(*each, copy=False) for each in others), copy=False)]


def _begin(select: exp.Select, items: list[Item], conditions: list[exp.Expression], typed: str | None) -> _Joining:
    names = _joined_names(items)
    for item in items:
        if item.relation is not None:
            _rename(item, names)
    inner = [place for place, item in enumerate(items) if item.relation is not None and not item.outer]
    if not inner or (items[0].relation is None and any(item.outer for item in items[: inner[0] + 1])):
        raise refused(
            "LEFT JOIN from a public table is not supported",
            "it would keep rows that belong to no person, which no guarantee covers",
            "FROM people JOIN towns …",
        )
    relations = {place: items[place].relation for place in inner}
    start = next((place for place in inner if getattr(relations[place], "through", None) is None), inner[0])
    if items[0].relation is not None and any(item.outer for item in items) and items[0].relation.through is None:
        start = 0
    first = items[start].relation
    assert first is not None
    state = _Joining(
        items=items,
        relation=first,
        members=[start],
        columns={id(each): each.column for each in items[start].fields},
        pairs=[],
        rest=[],
        used=_names_written(select),
        typed=typed,
    )
    everything = [each for item in items for each in item.fields]
    for item in items:
        if not item.outer:
            for part in conjuncts(item.on) if item.on is not None else ():
                _sort(part, everything, state)
    for place, item in enumerate(items):
        state.using[place] = _using(place, item, items, state)
        if not item.outer:
            state.pairs += state.using[place]
    for part in conditions:
        if len(items) > 1:
            _sort(part, everything, state)
        else:
            state.rest.append(part)
    return state


def _joined_names(items: Sequence[Item]) -> dict[int, str]:
    """A name for each column of each source in the joined relation: its own, or with its table's where two have it."""
    taken: set[str] = set()
    found: dict[int, str] = {}
    for item in items:
        for each in item.fields:
            if each.column is None:
                continue
            name = each.column if each.column not in taken else f"{item.label}.{each.column}"
            while name in taken:
                name += "'"
            taken.add(name)
            found[id(each)] = name
    return found


def _rename(item: Item, names: Mapping[int, str]) -> None:
    assert item.relation is not None
    wanted = [(names[id(each)], each.column) for each in item.fields if each.column is not None]
    pairs = tuple((new, old) for new, old in wanted if old is not None)
    if any(new != old for new, old in pairs) or len(pairs) < len(item.relation.columns):
        item.relation = Projected(source=item.relation, names=pairs)
    item.fields = [replace(each, column=names.get(id(each))) for each in item.fields]


def _names_written(select: exp.Select) -> frozenset[str] | None:
    if any(part.is_star and not isinstance(part.unalias(), exp.Count) for part in select.expressions):
        return None
    return frozenset(part.name.lower() for part in select.find_all(exp.Column))


def _sort(part: exp.Expression, everything: Sequence[Field], state: _Joining) -> None:
    """An equality of columns of two sources links them; everything else stays a condition."""
    inner = part.unnest() if isinstance(part, exp.Paren) else part
    if isinstance(inner, exp.EQ):
        sides = inner.this.unnest(), inner.expression.unnest()
        if all(isinstance(side, exp.Column) and isinstance(side.this, exp.Identifier) for side in sides):
            left, right = (choose(everything, side, _label(state)) for side in sides)
            if state.where_is(left) != state.where_is(right):
                state.pairs.append((left, right))
                return
    if not (isinstance(inner, exp.Boolean) and inner.this):
        state.rest.append(part)


def _using(place: int, item: Item, items: Sequence[Item], state: _Joining) -> list[tuple[Field, Field]]:
    found = []
    for name in item.using:
        before = [each for other in items[:place] for each in other.fields if id(each) not in state.hidden]
        column = exp.Column(this=name)
        left, right = choose(before, column, _label(state)), choose(item.fields, column, item.label)
        state.hidden.add(id(right))
        found.append((left, right))
    return found


def _label(state: _Joining) -> str:
    return " and ".join(dict.fromkeys(item.label for item in state.items))


def _reachable(state: _Joining, place: int, waiting: Sequence[int]) -> bool:
    item = state.items[place]
    if not item.outer:
        pairs = state.key_pairs(place)
        return any(_links(state, item, left, right) for left, right in pairs)
    before = [other for other in waiting if other < place and not state.items[other].outer]
    return not before


def _links(state: _Joining, item: Item, left: Field, right: Field) -> bool:
    """Whether an equality ties a source to what is joined: any does for a public table."""
    if item.relation is None:
        return left.column is not None or not left.unit
    if right.unit and _parent(item.relation, left):
        return True
    return right.unit and left.unit and item.relation.through == state.relation.through


def _parent(child: Relation, key: Field) -> bool:
    """Whether a field is the very column that a child's units are values of."""
    return child.through is not None and key.origin is not None and child.through == ".".join(key.origin)


def _attach(state: _Joining, place: int) -> None:
    item = state.items[place]
    own = [*state.using[place], *_of_outer(state, item)] if item.outer else state.key_pairs(place)
    if item.relation is None:
        _attach_public(state, item, own)
    else:
        _attach_private(state, item, item.relation, own)
    state.members.append(place)
    if item.outer:  # what WHERE says drops the rows without a partner
        return
    done = {(id(one), id(other)) for one, other in own}
    state.pairs = [
        (one, other) for one, other in state.pairs if (id(one), id(other)) not in done and (id(other), id(one)) not in done
    ]


def _of_outer(state: _Joining, item: Item) -> list[tuple[Field, Field]]:
    """The equalities in the ON of a LEFT JOIN; a condition on the right side alone is applied to it before."""
    known = [each for place in state.members for each in state.of(place)]
    own: list[tuple[Field, Field]] = []
    for part in conjuncts(item.on) if item.on is not None else ():
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        columns = list(inner.find_all(exp.Column))
        fields = [choose([*known, *item.fields], column, _label(state)) for column in columns]
        mine = [any(each is found for each in item.fields) for found in fields]
        if (
            isinstance(inner, exp.EQ)
            and len(columns) == 2
            and sum(mine) == 1
            and all(isinstance(side.unnest(), exp.Column) for side in (inner.this, inner.expression))
        ):
            own.append((fields[0], fields[1]) if mine[1] else (fields[1], fields[0]))
        elif mine and all(mine) and item.relation is not None and not item.full:
            from cloister.query.scalars import Reader

            rows = Rows(relation=item.relation, fields=item.fields, label=item.label)
            rows.filter(Reader(rows=rows, dialect=state.typed).condition(part))
            kept = tuple((name, name) for name in item.relation.columns)
            item.relation = (
                rows.relation
                if list(rows.relation.columns) == [name for name, _ in kept]
                else Projected(source=rows.relation, names=kept)
            )
        else:
            raise refused(
                f"{shown(part)} in the ON of a LEFT JOIN is not supported",
                "it is neither an equality of columns of both sides nor a condition on the private right side",
                "the condition in WHERE",
            )
    return own


def _attach_public(state: _Joining, item: Item, own: Sequence[tuple[Field, Field]]) -> None:
    assert isinstance(item.public, PublicSource)
    names = _names_of_public(state, item)
    on: list[tuple[str, str]] = []
    for left, right in own:
        column = state.columns[id(left)]
        if column is None:
            raise refused(
                f"A join on {left.name!r} is not supported",
                "it names the privacy unit, and a public table must not",
                "a join on another column",
            )
        assert right.column is not None
        on.append((column, right.column))
        if not item.outer:
            state.columns[id(right)] = column
    if not on:
        raise unlinked(state.relation, state.items[state.members[0]], item)
    wanted = [each for each in item.fields if state.used is None or each.name.lower() in state.used]
    taken = [each for each in wanted if id(each) not in state.columns]
    for each in taken:
        state.columns[id(each)] = names[id(each)]
    state.relation = PublicJoined(
        source=state.relation,
        name=item.public.name,
        table=item.public.table,
        on=tuple(dict.fromkeys(on)),
        columns=tuple((names[id(each)], str(each.column)) for each in taken),
        outer=item.outer,
    )


def _names_of_public(state: _Joining, item: Item) -> dict[int, str]:
    taken = {name for other in state.items if other.relation is not None for name in other.relation.columns}
    taken |= {name for name in state.columns.values() if name is not None} | set(state.relation.columns)
    found: dict[int, str] = {}
    for each in item.fields:
        name = str(each.column) if each.column not in taken else f"{item.label}.{each.column}"
        while name in taken:
            name += "'"
        taken.add(name)
        found[id(each)] = name
    return found


def _attach_private(state: _Joining, item: Item, relation: Relation, own: Sequence[tuple[Field, Field]]) -> None:
    check_one_population([state.relation, relation])
    for left, right in own:
        if left.unit and right.unit and any(each.outer and any(left is one for one in each.fields) for each in state.items):
            label, name = quoted_path(item.label), quoted(left.name)
            raise refused(
                f"The join of {item.label!r} is not supported",
                "it is tied to the right side of a LEFT JOIN, which a row may lack",
                f"JOIN {label} ON the {name} of the first table",
            )
    others = [(left, right) for left, right in own if not (right.unit and (left.unit or _parent(relation, left)))]
    keys = [(left, right) for left, right in own if right.unit and _parent(relation, left)]
    for each in item.fields:
        state.columns[id(each)] = each.column
    if keys and not keys[0][0].unit:
        if item.full:
            raise refused(
                "FULL JOIN along a key is not supported",
                "rows whose key no other row has belong to nobody",
                f"LEFT JOIN {quoted_path(item.label)}",
            )
        left, right = keys[0]
        key = state.columns[id(left)]
        assert key is not None
        assert relation.unit is not None
        state.relation = KeyJoined(left=relation, right=state.relation, left_key=relation.unit, right_key=key, outer=item.outer)
        if state.columns[id(right)] is None and not item.outer:
            state.columns[id(right)] = key
        state.rest += [_equality(state, pair) for pair in others]
        if others and item.outer:
            raise unsupported("A further equality in a LEFT JOIN on a key", "the condition in WHERE")
        return
    if not any(left.unit and right.unit for left, right in own):
        raise unlinked(state.relation, state.items[state.members[0]], item)
    on = []
    for left, right in others:
        pair = state.columns[id(left)], right.column
        if pair[0] is None or pair[1] is None:
            raise unlinked(state.relation, state.items[state.members[0]], item)
        on.append((pair[0], pair[1]))
    state.relation = UnitJoined(left=state.relation, right=relation, on=tuple(on), outer=item.outer, full=item.full)


def _equality(state: _Joining, pair: tuple[Field, Field]) -> exp.Expression:
    sides = []
    for each in pair:
        qualifier = each.qualifiers[-1] if each.qualifiers else ()
        sides.append(
            exp.Column(
                this=exp.to_identifier(each.name, quoted=True), **dict(zip(("table", "db"), reversed(qualifier), strict=False))
            )
        )
    return exp.EQ(this=sides[0], expression=sides[1])


def _is_unit(each: Field, item: Item, relation: Relation) -> bool:
    """Whether a field still names the person: that of a table declared `through=` has become a key, and that of the right side of
    a LEFT JOIN may be missing."""
    return each.unit and not item.outer and (item.relation is None or item.relation.through == relation.through)


def linked(relation: Relation, tables: Mapping[str, object], until: str | None = None) -> Relation:
    """Rows whose units are values of another table's column, joined with that table, again and again, until they are people's, or
    belong to the values of the one column that is named."""
    while relation.through not in (None, until):
        name, _, key = relation.through.rpartition(".")
        parent = tables.get(name)
        if not isinstance(parent, PrivateTable):
            raise refused(
                f"The table of {relation.through!r} is not supported",
                "the rows belong to people through it, and the session knows no private table of that name",
                f'cl.Session({{"{name}": …}})',
            )
        new = f"{name}.{key}"
        while new in relation.columns:
            new += "'"
        assert relation.unit is not None
        right = Projected(source=Base(name=name, table=parent), names=((new, key),))
        columns = tuple((each, each) for each in relation.columns)
        whole = KeyJoined(left=relation, right=right, left_key=relation.unit, right_key=new)
        relation = Projected(source=whole, names=columns)
    return relation


def unlinked(relation: Relation, first: Item, item: Item) -> UnsupportedQuery:
    """The refusal of a source that nothing ties to those before it."""
    one, other = quoted_path(first.called), quoted_path(item.called)
    join = f"JOIN {quoted_path(item.label)}{f' AS {other}' if item.called != item.label else ''} ON"
    if item.relation is None:
        return refused(
            f"The join with {item.label!r} is not supported", "no column of both is compared", f"{join} {one}.town = {other}.town"
        )
    bare = next((each for each in (first, item) if each.relation is not None and each.relation.unit is None), None)
    if bare is not None:
        return refused(
            f"The join of {first.label!r} and {item.label!r} is not supported",
            f"private tables are joined on the column that says whose row a row is, and {bare.label!r} declares none",
            'cl.PrivateTable(…, unit="person", max_rows=1)',
        )
    if item.relation.through is not None and relation.through is None:
        return refused(
            f"The join of {first.label!r} and {item.label!r} is not supported",
            f"the rows of {item.label!r} belong to values of {item.relation.through!r}, which is not compared",
            f"{join} {quoted_path(item.relation.through)} = {other}.{quoted(item.relation.unit or '')}",
        )
    return refused(
        f"The join of {first.label!r} and {item.label!r} is not supported",
        "private tables are joined on the column that says whose row a row is, or along a declared through=",
        f"{join} {one}.{quoted(relation.unit or '')} = {other}.{quoted(item.relation.unit or '')}",
    )
