"""A SELECT over people's rows, parted in two: a question for its keys and aggregates, and a query over its answer.

What WITH names travels with the question: each name that it uses, and those that these use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.aggregates import holds_aggregate, is_aggregate
from cloister.query.constants import is_constant
from cloister.query.derived import derive, resolved, rows_of
from cloister.query.dialect import canonical
from cloister.query.joins import joined
from cloister.query.postprocessing.periods import period_of
from cloister.query.postprocessing.queries import shown_name
from cloister.query.refusals import refused
from cloister.query.rows import same
from cloister.query.scalars import Reader
from cloister.query.sources import Environment, Tables
from cloister.tables.expression.names import quoted


@dataclass(frozen=True)
class Named:
    """A query that WITH names, with the names that it may use itself."""

    tree: exp.CTE
    known: Mapping[str, Named]


Known = Mapping[str, Named]


@dataclass
class Parting:
    """A SELECT over people's rows, on its way into a question and a query over its answer."""

    tables: Tables
    dialect: str | None
    query: exp.Select
    known: Known
    why: CloisterError
    keys: dict[str, str] = field(default_factory=dict)
    aggregates: dict[str, tuple[str, exp.Expression]] = field(default_factory=dict)
    key_trees: dict[str, exp.Expression] = field(default_factory=dict)
    shapes: dict[str, Callable[[exp.Expression], exp.Expression]] = field(default_factory=dict)
    """How a key is worked out from what is grouped by in its place."""

    def parts(self) -> tuple[exp.Select, exp.Select]:
        """The question, and the query over its answer."""
        query = self.query
        reader = self.reader_of_rows()
        group = query.args.get("group")
        if group is None and not any(map(holds_aggregate, self.of_answers(query))):
            raise self.why
        written = [each.copy() for each in query.expressions]
        if any(isinstance(each.unalias(), exp.Star) for each in written):
            raise self.why
        below_group = None if group is None else self._grouped(group.copy(), written, reader)
        self.reader = reader
        self.aliases = {each.alias.lower(): each.this for each in written if isinstance(each, exp.Alias)}
        above = exp.Select(expressions=[self._named(each) for each in written])
        having = query.args.get("having")
        if having is not None:
            above.set("where", exp.Where(this=self._over(having.this.copy())))
        for part in ("order", "qualify", "windows", "limit", "offset", "distinct"):
            clause = query.args.get(part)
            if isinstance(clause, list):
                above.set(part, [self._clause(each.copy()) for each in clause])
            elif clause is not None:
                above.set(part, self._clause(clause.copy()))
        below = exp.Select(
            expressions=[
                *(_aliased(tree, name) for name, tree in self.key_trees.items()),
                *(_aliased(tree, name) for name, tree in self.aggregates.values()),
            ]
        )
        for part in ("from_", "joins", "where"):
            clause = query.args.get(part)
            if clause is not None:
                below.set(part, [each.copy() for each in clause] if isinstance(clause, list) else clause.copy())
        if below_group is not None:
            below.set("group", below_group)
        if not below.expressions:
            raise self.why
        return below, above

    def of_answers(self, query: exp.Select) -> list[exp.Expression]:
        return [*query.expressions, *([query.args["having"].this] if query.args.get("having") is not None else [])]

    def reader_of_rows(self) -> Reader:
        """What reads the names of its rows, as the question will."""
        query = with_names(self.query, self.known)
        environment = Environment(tables=self.tables, derive=derive, typed=canonical(self.dialect)).inside(query)
        rows, rest, public = joined(query, environment)
        if rows is None or public is not None:
            raise self.why
        return rows_of(rows, rest, environment)[0]

    def _grouped(self, group: exp.Group, written: list[exp.Expression], reader: Reader) -> exp.Group:
        """GROUP BY with every key under a name of its own."""

        def key(tree: exp.Expression) -> exp.Expression:
            if isinstance(tree, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
                tree.set("expressions", [key(each) for each in tree.expressions])
                return tree
            inner = resolved(tree, written)
            inner = self._unaliased(inner, written, reader)
            if holds_aggregate(inner) or is_constant(inner):
                raise self.why
            form = reader.rows.form(inner)
            shaped = period_of(inner) if isinstance(inner, exp.TimeToStr) else None
            if form not in self.keys:
                name = self.keys[form] = f"k{len(self.keys)}"
                self.key_trees[name] = inner.copy() if shaped is None else shaped[0]
                if shaped is not None:
                    self.shapes[name] = shaped[1]
            return self.key_trees[self.keys[form]].copy()

        for part in ("expressions", "rollup", "cube", "grouping_sets"):
            if group.args.get(part):
                group.set(part, [key(each) for each in group.args[part]])
        return group

    @staticmethod
    def _unaliased(tree: exp.Expression, written: list[exp.Expression], reader: Reader) -> exp.Expression:
        """What an alias of the select list stands for, where no column is so called."""
        if isinstance(tree, exp.Column) and not tree.args.get("table") and isinstance(tree.this, exp.Identifier):
            try:
                reader.rows.field_of(tree)
            except CloisterError:
                for each in written:
                    if isinstance(each, exp.Alias) and same(tree.this, each.alias):
                        return each.this
        return tree

    def _named(self, written: exp.Expression) -> exp.Expression:
        """An expression of the select list over the answer, under the name that it would have had."""
        inner = written.unalias()
        if isinstance(written, exp.Alias) and not written.alias:
            raise refused("An empty name is not supported", "no column of the answer can bear it", "… AS n")
        name = written.alias if isinstance(written, exp.Alias) else inner.name if isinstance(inner, exp.Column) else ""
        name = name or shown_name(inner)
        return exp.Alias(this=self._over(inner), alias=exp.to_identifier(name, quoted=True))

    def _clause(self, tree: exp.Expression) -> exp.Expression:
        if isinstance(tree, exp.Order):
            for each in tree.expressions:
                target = each.this
                plain = isinstance(target, exp.Literal) or (
                    isinstance(target, exp.Column) and not target.args.get("table") and target.name.lower() in self.aliases
                )
                if not plain:
                    each.set("this", self._over(target))
            return tree
        if isinstance(tree, exp.Qualify):
            tree.set("this", self._over(tree.this))
            return tree
        if isinstance(tree, exp.Window):
            return self._within(tree)
        return tree

    def _over(self, tree: exp.Expression) -> exp.Expression:
        """The expression with its keys and aggregates as columns of the answer."""
        if isinstance(tree, exp.Query | exp.Subquery):
            return tree
        if isinstance(tree, exp.Window):
            return self._within(tree)
        if is_aggregate(tree) or isinstance(tree, exp.Grouping):
            form = f"{tree.sql(comments=False)} {' '.join(type(node).__name__ for node in tree.walk())}"
            name, _ = self.aggregates.setdefault(form, (f"a{len(self.aggregates)}", tree.copy()))
            return _column(name, tree)
        if not is_constant(tree):
            key = self._key(tree)
            if key is not None:
                return self.shapes[key](_column(key, tree)) if key in self.shapes else _column(key, tree)
        if isinstance(tree, exp.Column):
            alias = self.aliases.get(tree.name.lower()) if not tree.args.get("table") else None
            if alias is None or alias is tree or (isinstance(alias, exp.Column) and alias.name == tree.name):
                name = self.reader.rows.column(tree)
                raise refused(
                    f"The column {name!r} is not supported", "it is neither aggregated nor a key", f"… GROUP BY {quoted(name)}"
                )
            return self._over(alias.copy())
        return self._children(tree)

    def _within(self, tree: exp.Window) -> exp.Expression:
        """A window over the groups: its function is no aggregate over people, but what it is given may be."""
        function = tree.this
        if isinstance(function, exp.Filter):
            function.set("expression", self._children(function.expression))
            function = function.this
        if isinstance(function, exp.Expression) and not isinstance(function, exp.Identifier):
            self._children(function)
        for part in ("partition_by", "order"):
            value = tree.args.get(part)
            if isinstance(value, list):
                tree.set(part, [self._over(each) for each in value])
            elif isinstance(value, exp.Order):
                for each in value.expressions:
                    each.set("this", self._over(each.this))
        return tree

    def _children(self, tree: exp.Expression) -> exp.Expression:
        for part, value in list(tree.args.items()):
            if isinstance(value, list):
                tree.set(part, [self._over(each) if isinstance(each, exp.Expression) else each for each in value])
            elif isinstance(value, exp.Expression) and not isinstance(
                value, exp.Identifier | exp.DataType | exp.Var | exp.Interval
            ):
                tree.set(part, self._over(value))
        return tree

    def _key(self, tree: exp.Expression) -> str | None:
        try:
            return self.keys.get(self.reader.rows.form(tree))
        except CloisterError:
            return None


def with_names(query: exp.Select, known: Known) -> exp.Select:
    """The query with the names of WITH that it uses, and those that these use, each before what stands on it."""
    found: dict[str, exp.CTE] = {}
    tables: set[str] = set()

    def add(tree: exp.Expression, known: Known, within: str = "") -> None:
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            named = known.get(name) if not table.args.get("db") else None
            if named is None:
                tables.update({name} - {within})
            elif name not in found:
                add(named.tree.this, named.known, name)
                found[name] = named.tree
            elif found[name] is not named.tree:
                tables.add(name)

    add(query, known)
    twice = sorted(tables & found.keys())
    if twice:
        raise refused(f"The name {twice[0]!r} is not supported", "it means two things in this query", "another name in WITH")
    changed = query.copy()
    changed.set("with_", exp.With(expressions=[each.copy() for each in found.values()]) if found else None)
    return changed


def _aliased(tree: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=tree.copy(), alias=exp.to_identifier(name, quoted=True))


def _column(name: str, asked: exp.Expression) -> exp.Column:
    """A column of the answer; `asked` is what a refusal shows in its place."""
    column = exp.Column(this=exp.to_identifier(name, quoted=True))
    column.meta["asked"] = asked
    return column
