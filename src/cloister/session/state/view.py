"""What one person may see of a registry: some of its tables, some of their columns, some of their rows.

A view acts on questions, never on their text: `applied` turns a question as that person asks it into the question that is
answered. A table that is asked alone gets the view's condition joined by AND to the question's own; inside a relation every
`Base` becomes `Filtered` over it, and `Projected` to the columns that may be seen, wherever it stands: in a join, a subquery, a
semi-join, a union, under a public join. A question has no other way to a table than these two, so none sees the other rows.

Guarantee. The view's question is an ordinary one, and is planned, noised and charged as one. A condition on a row's own declared
values keeps or drops each row by itself: two neighbouring tables, which differ in the rows of one unit, still differ in rows of
that unit alone after it, and in no more of them (it is 1-stable; McSherry, Privacy Integrated Queries, SIGMOD 2009, section 3).
The unit's cap is taken before, in `Base` and by the engine, from the unit's own rows; so which rows of a unit count does not
depend on the view, and the bound on them holds after it. Columns that cannot be seen are never read but by that condition, whose
text is the owner's.

The digest of a question is taken of what is answered: the condition is in its `where`, or in the description of its relation, so
it differs from that of the same question without the view (over all rows), and a stored release of the one is never served for
the other. It is equal where somebody else writes the same condition out: these are the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.session.planning.plan import Part
from cloister.session.planning.shape import Shape
from cloister.session.questions.narrowing import conjuncts, without
from cloister.session.questions.question import OverCap, Question, unknown_column
from cloister.session.questions.touched import columns_read
from cloister.session.state.table_registry import TableRegistry
from cloister.session.state.table_snapshot import Table, TableSnapshot, unknown_table
from cloister.tables import And, Base, Expression, Filtered, PrivateTable, Projected, PublicJoined, Relation
from cloister.tables.engines.compiler import Layout


@dataclass(frozen=True, kw_only=True)
class View:
    """The names that may be seen (None: all), and by table the condition on its rows and the columns.

    >>> View(names=frozenset({"people"})).within(View(names=frozenset({"towns"}))).names
    frozenset()
    """

    names: frozenset[str] | None = None
    rows: Mapping[str, Expression] = field(default_factory=dict)
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def within(self, other: View) -> View:
        """What may be seen through both: nobody widens a view by looking through another."""
        names = self.names if other.names is None else other.names if self.names is None else self.names & other.names
        rows = dict(other.rows)
        for name, condition in self.rows.items():
            rows[name] = _all([other.rows.get(name), condition])
        columns = {**other.columns, **{name: mine & other.columns.get(name, mine) for name, mine in self.columns.items()}}
        return View(names=names, rows=rows, columns=columns)


class Seen:
    """The tables of one moment through a view."""

    def __init__(self, view: View, snapshot: TableSnapshot, registry: TableRegistry) -> None:
        self.view, self.snapshot = view, snapshot
        self.tables: Mapping[str, Table] = snapshot.tables
        if view != View():
            found: dict[str, Table] = {}
            for name, table in snapshot.tables.items():
                shown = _narrowed(name, table, view, registry) if view.names is None or name in view.names else None
                if shown is not None:
                    found[name] = shown
            self.tables = found

    @property
    def populations(self) -> list[str]:
        """Those of the tables that may be seen, each once."""
        return list(dict.fromkeys(entry.population for name, entry in self.snapshot.entries.items() if name in self.tables))

    def check(self, name: str) -> None:
        """Refuses a table that may not be seen in the words for one that does not exist."""
        if not isinstance(name, str) or name not in self.tables:
            raise unknown_table(name, [each for each, table in self.tables.items() if isinstance(table, PrivateTable)])

    def check_columns(self, name: str, columns: Iterable[str]) -> None:
        """The same for columns of a table of which only some may be seen."""
        table = self.tables.get(name)
        if name in self.view.columns and table is not None:
            for column in sorted(columns):
                if column not in (table.columns or ()):
                    raise unknown_column(column, name, list(table.columns or ()))

    def applied(self, question: Question) -> Question:
        """The question that is answered."""
        if not isinstance(question, Question) or self.view == View():
            return question
        if isinstance(question.table, Base):
            self._base(question.table)
            question = replace(question, table=question.table.name)
        if isinstance(question.table, str):
            return self._alone(question, question.table)
        for name in question.table.publics():
            self.check(name)
        return replace(question, table=rebuilt(question.table, self._base))

    def shown(self, shape: Shape) -> Shape:
        """The shape of a question with only the condition that the analyst wrote: a view's is the owner's."""
        table = shape.question.table
        hidden = self.view.rows.get(table) if isinstance(table, str) else None
        return replace(shape, question=replace(shape.question, where=without(shape.question.where, hidden)))

    def worded(self, part: Part) -> Part:
        """The part of a plan, in words that leave out the view's condition."""
        table = part.shape.question.table
        narrowed = not self.view.rows.keys().isdisjoint([table] if isinstance(table, str) else table.bases())
        return replace(part, told=self.shown(part.shape).question.where, narrowed=narrowed)

    def _alone(self, question: Question, name: str) -> Question:
        self.check(name)
        if name in self.view.columns:
            self.check_columns(name, columns_read(question))
        condition = self.view.rows.get(name)
        if condition is None:
            return question
        if any(isinstance(each, OverCap) for each in question.statistics):
            raise UnsupportedQuery(
                "The number of units over their cap is not supported",
                why="a cap acts on all rows of a unit, and some of them are not to be seen here",
                instead="answer.margin(), or the whole table",
            )
        return replace(question, where=_all([condition, question.where]))

    def _base(self, base: Base) -> Relation:
        self.check(base.name)
        if base.table is not self.tables[base.name]:
            raise InvalidParameter(
                f"A relation over {base.name!r} is invalid",
                why="it was made of another declaration than the session's",
                instead="session.tables",
            )
        found: Relation = Base(name=base.name, table=self.snapshot.entry(base.name).declaration)
        if base.name in self.view.rows:
            found = Filtered(source=found, where=self.view.rows[base.name])
        if len(base.columns) < len(found.columns):
            found = Projected(source=found, names=tuple((name, name) for name in base.columns))
        return found


def view_of(
    seen: Seen, tables: Iterable[str] | None, rows: Mapping[str, Expression], columns: Mapping[str, Iterable[str]]
) -> View:
    """A view within what is seen already; refuses a condition or a column that its table does not have.

    >>> from cloister.session.examples import small_door
    >>> from cloister.tables import Column, Compare, Literal
    >>> with small_door() as door:
    ...     view_of(door.seen, None, {"people": Compare(">", Column("age"), Literal(35))}, {"people": ["sex"]}).columns
    {'people': frozenset({'sex'})}
    """
    if isinstance(tables, str):
        raise InvalidParameter(f"tables={tables!r} is invalid", why="it is one text, not names", instead=f'tables=["{tables}"]')
    limited: dict[str, frozenset[str]] = {}
    for name, condition in rows.items():
        table = _private(seen, name)
        if not isinstance(condition, Expression):
            raise InvalidParameter(
                f"The condition on {name!r} is invalid", why="it is not a condition", instead=f'rows={{"{name}": "…"}}'
            )
        for column in sorted(condition.columns()):
            _known(name, table, column)
        Layout(table.columns, table.unit is not None).shape(condition, "duckdb")  # refuses what cannot be compared
    for name, chosen in columns.items():
        table, given = _private(seen, name), [chosen] if isinstance(chosen, str) else list(chosen)
        for column in given:
            _known(name, table, column)
        if not given:
            raise InvalidParameter(
                f"columns={{{name!r}: ()}} is invalid", why="nothing of the table would be seen", instead="tables= without it"
            )
        limited[name] = frozenset(given)
    names = None if tables is None else frozenset(tables)
    return View(names=names, rows=dict(rows), columns=limited).within(seen.view)


def _private(seen: Seen, name: str) -> PrivateTable:
    seen.check(name)
    return seen.snapshot.entry(name).declaration if name not in seen.view.columns else _declared(seen.tables[name])


def _declared(table: Table) -> PrivateTable:
    assert isinstance(table, PrivateTable)
    return table


def _known(name: str, table: PrivateTable, column: str) -> None:
    if column not in table.columns:
        raise unknown_column(column, name, list(table.columns))


def _narrowed(name: str, table: Table, view: View, registry: TableRegistry) -> Table | None:
    """The table as it may be seen; none where it was replaced by one that the view no longer fits."""
    if not isinstance(table, PrivateTable) or not (name in view.rows or name in view.columns):
        return table
    if name in view.rows and not view.rows[name].columns() <= table.columns.keys():
        return None
    kept = tuple(column for column in table.columns if column in view.columns.get(name, table.columns))
    if len(kept) == len(table.columns):
        return table
    return registry.narrowed(table, kept) if kept else None


def _all(conditions: Iterable[Expression | None]) -> Expression:
    """All of them, as one flat AND: the same condition has the same form, whoever wrote which part of it."""
    parts = [part for condition in conditions for part in conjuncts(condition)]
    return parts[0] if len(parts) == 1 else And(*parts)


def rebuilt(relation: Relation, change: Callable[[Base], Relation]) -> Relation:
    """The same relation over other tables."""
    if isinstance(relation, Base):
        return change(relation)
    if isinstance(relation, PublicJoined):
        source = rebuilt(relation.source, change)
        return PublicJoined(
            source=source, name=relation.name, table=relation.table, on=relation.on, columns=relation.taken, outer=relation.outer
        )
    changed: dict[str, Any] = {}
    for each in fields(relation):  # type: ignore[arg-type]
        value = getattr(relation, each.name)
        if isinstance(value, Relation):
            changed[each.name] = rebuilt(value, change)
        elif isinstance(value, tuple) and value and all(isinstance(part, Relation) for part in value):
            changed[each.name] = tuple(rebuilt(part, change) for part in value)
    return replace(relation, **changed)  # type: ignore[type-var]
