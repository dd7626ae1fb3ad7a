"""FROM: tables, subqueries and names from WITH, each as rows or as a public table, before they are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cloister.errors import UnknownTable, nearest
from cloister.query.publics import PublicRows, PublicSource
from cloister.query.refusals import EXAMPLE, clipped, refused, unsupported
from cloister.query.rows import Field, Qualifier, in_common, same
from cloister.tables import Base, PrivateTable, PublicTable, Relation
from cloister.tables.expression.names import quoted_path

Tables = Mapping[str, PrivateTable | PublicTable]

_MOST_SOURCES = 64
_MOST_JOINS = 8
_DEEPEST = 16


@dataclass(kw_only=True)
class Environment:
    """What a name in FROM may mean, at one place of a question."""

    tables: Tables
    derive: Callable[[exp.Query, Environment], Item]
    """How a question within the question becomes rows."""
    typed: str | None = None
    """The dialect that the question is written in."""
    named: Mapping[str, tuple[exp.CTE, Environment]] = field(default_factory=dict)
    depth: int = 0
    count: list[int] = field(default_factory=lambda: [0])
    """How many sources the whole question has read: a name from WITH counts each time."""
    read: dict[str, set[str]] = field(default_factory=dict)
    """The columns of public tables whose values were read to find constants."""
    until: str | None = None
    """The column whose values the rows of this question belong to; None where they belong to people."""
    wanted: str | None = None
    """The same for the question within it that is read next."""

    def inside(self, query: exp.Query) -> Environment:
        """The environment of a question, with the names that its own WITH adds, each of which may stand on those before it."""
        if self.depth >= _DEEPEST:
            raise refused("The query is not supported", f"questions are nested deeper than {_DEEPEST}", EXAMPLE)
        found = replace(self, depth=self.depth + 1, until=self.wanted, wanted=None)
        with_ = query.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            alias = cte.args["alias"]
            found.named = {**found.named, alias.this.name: (cte, _frozen(found))}
        return found


def _frozen(environment: Environment) -> Environment:
    """The environment as it is now, without the names that are still to come."""
    return replace(environment, named=dict(environment.named), until=None, wanted=None)


@dataclass(kw_only=True)
class Item:
    """One source of a FROM clause: rows that belong to people, or a public table."""

    label: str
    relation: Relation | None = None
    public: PublicRows | None = None
    fields: list[Field] = field(default_factory=list)
    on: exp.Expression | None = None
    using: tuple[exp.Expression, ...] = ()
    outer: bool = False
    full: bool = False
    """Whether rows of it that fit none of the other side stay, too."""

    @property
    def called(self) -> str:
        """The name that the question gives it."""
        known = [each.qualifiers[-1] for each in self.fields if each.qualifiers]
        return ".".join(part.name for part in known[0]) if known else self.label

    def qualified(self, qualifiers: tuple[Qualifier, ...], label: str) -> Item:
        """The same source under an alias."""
        fields = [replace(each, qualifiers=qualifiers) for each in self.fields if not each.hidden]
        public = self.public
        if isinstance(public, PublicSource):
            public = replace(public, qualifiers=qualifiers)
        return Item(label=label, relation=self.relation, public=public, fields=fields)


def items_of(select: exp.Select, environment: Environment) -> list[Item]:
    """The sources of a FROM clause in their order, with how each is joined to those before it."""
    source = select.args.get("from_")
    if source is None:
        raise refused("The query is not supported", "it names no table", EXAMPLE)
    items = [_item(source.this, environment)]
    joins = [*(source.this.args.get("joins") or ()), *(select.args.get("joins") or ())]
    if len(joins) > _MOST_JOINS:
        raise refused(
            "The joins are not supported", f"there are more than {_MOST_JOINS}", "a table that holds the columns of several"
        )
    for join in joins:
        if join.this.args.get("joins"):
            instead = "FROM a JOIN b USING (patient) JOIN c USING (patient)"
            raise refused(
                "A join within a join is not supported", "its parts are read in the order in which they are written", instead
            )
        item = _item(join.this, environment)
        item.full = str(join.args.get("side") or "").upper() == "FULL"
        _check_kind(join, item, items, alone=len(joins) == 1)
        item.on, item.using = join.args.get("on"), tuple(join.args.get("using") or ())
        if str(join.args.get("method") or "").upper() == "NATURAL":
            item.using = _in_common(items, item)
        item.outer = item.full or join.args.get("side") == "LEFT"
        if join.args.get("side") == "RIGHT":
            items[0].on, items[0].using, items[0].outer = item.on, item.using, True
            item.on, item.using = None, ()
            items.insert(0, item)
        else:
            items.append(item)
    return items


def _check_kind(join: exp.Join, item: Item, items: Sequence[Item], *, alone: bool) -> None:
    line = f"JOIN {quoted_path(item.label)} ON a.patient = b.patient"
    method, side, kind = (str(join.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    natural = method == "NATURAL"
    if (method and not natural) or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise unsupported(f"{method or kind} JOIN", line)
    if item.full and any(each.relation is None for each in (*items, item)):
        raise refused(
            "FULL JOIN with a public table is not supported",
            "its rows without a partner belong to no person, and whether one has a partner is private",
            f"LEFT {line}",
        )
    if item.full and not alone:
        raise refused("FULL JOIN is not supported", "it stands beside another join", f"FROM (… FULL {line}) AS t {line}")
    if side == "RIGHT" and len(items) > 1:
        raise refused(
            "RIGHT JOIN is not supported",
            "rows on the left that belong to no person would be kept, and no guarantee covers them",
            f"LEFT {line}",
        )
    if (side or kind == "INNER") and not natural and join.args.get("on") is None and not join.args.get("using"):
        raise refused("A join is not supported", "no column of both sides is compared", line)


def _in_common(items: Sequence[Item], item: Item) -> tuple[exp.Expression, ...]:
    """What NATURAL JOIN compares: the columns of a name that both sides have."""
    shown_names = [each.name for each in item.fields if not each.hidden]
    before = [each for other in items for each in other.fields]
    names = in_common(before, shown_names, f"JOIN {quoted_path(item.label)} ON a.patient = b.patient")
    return tuple(exp.to_identifier(name, quoted=True) for name in names)


def _item(tree: exp.Expression, environment: Environment) -> Item:
    environment.count[0] += 1
    if environment.count[0] > _MOST_SOURCES:
        raise refused("The query is not supported", f"it reads more than {_MOST_SOURCES} tables", "fewer parts")
    alias = tree.args.get("alias")
    name = None if alias is None else alias.this
    if isinstance(tree, exp.Subquery):
        inner = tree.this
        if not isinstance(inner, exp.Query) or isinstance(inner, exp.Table):
            raise unsupported("A join in parentheses", "FROM a JOIN b USING (patient) JOIN c USING (patient)")
        found = environment.derive(inner, environment)
        found = found.qualified(() if name is None else ((name,),), name.name if name is not None else found.label)
        return found if alias is None else renamed(found, alias)
    assert isinstance(tree, exp.Table), "nothing else that is understood stands in FROM"
    parts = tuple(tree.parts)
    qualifiers: tuple[Qualifier, ...] = (parts,) if name is None else ((name,),)  # an alias takes the name's place
    if len(parts) == 1:
        for known, (cte, where) in reversed(list(environment.named.items())):
            if same(parts[0], known):
                found = renamed(environment.derive(cte.this, where).qualified(qualifiers, known), cte.args["alias"])
                return found if alias is None else renamed(found, alias)
    found = _table(parts, qualifiers, environment)
    return found if alias is None else renamed(found, alias)


def renamed(item: Item, alias: exp.TableAlias) -> Item:
    """A source whose first columns have other names: `AS t (a, b)`; the rest keep theirs."""
    if not alias.columns:
        return item
    given = [each.name for each in alias.columns]
    names = [*given, *(each.name for each in item.fields[len(given) :])]
    if len(given) > len(item.fields) or len({name.lower() for name in names}) < len(names):
        raise refused(
            "Renaming columns is not supported",
            "there are more names than columns, or two columns would have the same name",
            "FROM (SELECT age AS a, sex AS b FROM people) AS t",
        )
    if isinstance(item.public, PublicSource):
        public = replace(item.public, names=tuple(names))
        return replace(item, public=public, fields=public.fields())
    fields = [replace(each, name=name) for each, name in zip(item.fields, names, strict=True)]
    return replace(item, fields=fields)


def table_named(parts: Qualifier, tables: Tables) -> str:
    """The name of the one table that a part of FROM means."""
    wanted = ".".join(part.name for part in parts)
    quoted = any(part.args.get("quoted") for part in parts)
    matches = [name for name in tables if name == wanted]
    if not matches and not quoted:
        matches = [name for name in tables if name.lower() == wanted.lower()]
    if not matches and len(parts) == 1:
        matches = [name for name in tables if same(parts[0], name.rpartition(".")[2])]
    if len(matches) != 1:
        raise UnknownTable(
            f"The table {clipped(wanted)} is unknown",
            why=f"the session knows {', '.join(tables) or 'no table'}",
            instead=f"FROM {quoted_path(nearest(wanted, tables, 'people'))}",
        )
    return matches[0]


def _table(parts: Qualifier, qualifiers: tuple[Qualifier, ...], environment: Environment) -> Item:
    name = table_named(parts, environment.tables)
    table = environment.tables[name]
    if isinstance(table, PublicTable):
        public = PublicSource(name=name, table=table, qualifiers=qualifiers, noted=environment.read)
        return Item(label=name, public=public, fields=public.fields())
    fields = [
        Field(name=each, column=each, unit=each == table.unit, qualifiers=qualifiers, origin=(name, each))
        for each in table.columns
    ]
    if table.unit is not None and table.unit not in table.columns:
        fields.append(Field(name=table.unit, column=None, unit=True, qualifiers=qualifiers))
    return Item(label=name, relation=Base(name=name, table=table), fields=fields)


def check_one_population(relations: list[Relation]) -> None:
    """Tables that are put together speak of the same people, and so name the same population."""
    tables = {name: table for relation in relations for name, table in relation.tables().items()}
    persons = {name: table for name, table in tables.items() if table.through is None}
    populations = {name: table.population or name for name, table in persons.items()}
    if len(set(populations.values())) > 1 and len({id(table) for table in persons.values()}) > 1:
        (first, one), (second, other) = next(
            pair for pair in zip(populations.items(), list(populations.items())[1:], strict=False) if pair[0][1] != pair[1][1]
        )
        if all(table.during is not None and table.population is not None for table in (tables[first], tables[second])):
            raise refused(
                f"{first!r} and {second!r} are not supported together",
                "they hold the rows of two windows of time, each with a budget of its own, and a question reads one of them",
                "one query for each table, whose answers you add up yourself",
            )
        raise refused(
            f"{first!r} and {second!r} are not supported together",
            f"they are of the populations {one!r} and {other!r}, whose people are counted apart",
            f'one query for each table; where both have the same population, cl.PrivateTable(…, population="{one}") for both',
        )
