"""What a question's names mean, and the relation that grows while the question is read.

`Rows` holds the relation that FROM describes and the columns that can be named in it. An expression that is more than a column
becomes a computed column: it is kept under a canonical text, so that the same expression written twice is one column, and a
condition on it stands on its codes. `built()` gives the relation with all of them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlglot import exp

from cloister.errors import UnknownTable
from cloister.query.refusals import EXAMPLE, clipped, refused, shown, unsupported
from cloister.session import unknown_column
from cloister.tables import Domain, Expression, Extended, Filtered, Relation
from cloister.tables.expression.names import quoted, quoted_path

if TYPE_CHECKING:
    from cloister.tables.expression.scalars import Scalar

_LONGEST_NAME = 100
_MOST_COMPUTED = 500
_WORDS = ("true", "false", "null")
"""Columns of these names are quoted in a canonical text, so that none is taken for a constant."""

Qualifier = tuple[exp.Expression, ...]
"""What stands before a column: `schema.table`, an alias, or nothing."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """A name that a question can write: a column of the relation, or the unit, which may be no column."""

    name: str
    column: str | None
    unit: bool = False
    qualifiers: tuple[Qualifier, ...] = ()
    hidden: bool = False
    """Whether it is only found with its qualifier, and not shown by *: the other side of a join on equal columns."""
    origin: tuple[str, str] | None = None
    """The private table and its column that this is, unchanged."""


def in_common(fields: Iterable[Field], names: Iterable[str], instead: str) -> list[str]:
    """What NATURAL JOIN compares: of the names of its right side those that the left side shows, too."""
    before = {each.name.lower() for each in fields if not each.hidden}
    found = list(dict.fromkeys(name for name in names if name.lower() in before))
    if not found:
        raise refused("NATURAL JOIN is not supported", "no column of both sides has the same name", instead)
    return found


def places_by_name(first: Iterable[str], names: Iterable[str]) -> list[int]:
    """Where the columns of a part of UNION BY NAME stand, in the order of the first part."""
    wanted, found = ([name.lower() for name in each] for each in (first, names))
    if sorted(wanted) != sorted(found) or len(set(found)) < len(found):
        raise refused(
            "UNION BY NAME is not supported",
            "its parts have not the same names of columns, each once",
            "SELECT a, b … UNION ALL BY NAME SELECT b, a …",
        )
    return [found.index(name) for name in wanted]


@dataclass(kw_only=True)
class Rows:
    """A relation that is being read from SQL."""

    relation: Relation
    fields: list[Field]
    label: str
    """What the rows are called in a refusal."""
    computed: dict[str, Scalar] = field(default_factory=dict)
    _texts: dict[tuple[str, Scalar], str] = field(default_factory=dict)
    _found: dict[str, Domain] = field(default_factory=dict)

    def field_of(self, tree: exp.Expression) -> Field:
        """The field that a part of the question names."""
        return choose(self.fields, tree, self.label)

    def column(self, tree: exp.Expression) -> str:
        """The column that a part of the question names; a unit that is no column is refused."""
        found = self.field_of(tree)
        if found.column is None:
            raise refused(
                f"The column {found.name!r} is not supported",
                "it names the privacy unit, which can be joined on and counted, never shown or computed with",
                f"COUNT(DISTINCT {quoted(found.name)})",
            )
        return found.column

    def is_unit(self, tree: exp.Expression) -> bool:
        """Whether it names the privacy unit, declared as a column or not."""
        return isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier) and self._unit(tree)

    def _unit(self, tree: exp.Column) -> bool:
        matches = named(self.fields, tree)
        return bool(matches) and all(found.unit for found in matches)

    @property
    def names(self) -> list[str]:
        """The columns that a question may write, for refusals."""
        return [each.name for each in self.fields if each.column is not None] or [each.name for each in self.fields]

    def domain(self, column: str) -> Domain:
        """What a column may hold, declared or computed."""
        return self._found[column] if column in self._found else self.relation.column(column)

    def add(self, scalar: Scalar, text: str) -> str:
        """The computed column of that text; made where it is new."""
        if (text, scalar) in self._texts:
            return self._texts[text, scalar]
        name = text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}… {sha256(text.encode()).hexdigest()[:8]}"
        if len(self.computed) >= _MOST_COMPUTED:
            raise refused(
                "The query is not supported", f"it computes more than {_MOST_COMPUTED} columns", "a CASE, or several questions"
            )
        while name in self.relation.columns or name in self.computed:
            name += "'"
        self._found[name] = scalar.domain(ChainMap(self._found, dict(self.relation.columns)))  # refuses what has no bounds
        self._texts[text, scalar] = name
        self.computed[name] = scalar
        return name

    def text(self, tree: exp.Expression) -> str:
        """The canonical text of an expression: columns by their names in the relation, all else as sqlglot writes it."""
        return str(self._canonical(tree).sql(comments=False))

    def form(self, tree: exp.Expression) -> str:
        """The canonical text with the kinds of its nodes: equal only for the same expression, however sqlglot writes it."""
        canonical = self._canonical(tree)
        return " ".join([str(canonical.sql(comments=False)), *(type(node).__name__ for node in canonical.walk())])

    def _canonical(self, tree: exp.Expression) -> exp.Expression:
        def change(node: exp.Expression) -> exp.Expression:
            if isinstance(node, exp.Query):
                return node.copy()  # another node, which is not entered: its names are not ours
            if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
                found = self.field_of(node)
                name = found.column or found.name
                return exp.column(exp.to_identifier(name, quoted=True if name.lower() in _WORDS else None))
            return node

        return tree.copy().transform(change)

    def filter(self, where: Expression) -> None:
        """Keep the rows for which a condition is true."""
        self.become(Filtered(source=self.built(), where=where))

    def become(self, relation: Relation, *, renamed: bool = False) -> None:
        """Go on with another relation, in which what was computed is a column; `renamed`: under names of its own."""
        self.relation, self.computed, self._found = relation, {}, {}
        if renamed:
            self._texts = {}

    def built(self) -> Relation:
        """The relation with the computed columns, each on those that it is made of."""
        relation, waiting = self.relation, dict(self.computed)
        while waiting:
            ready = {name: scalar for name, scalar in waiting.items() if not scalar.columns() & waiting.keys()}
            relation = Extended(source=relation, scalars=tuple(ready.items()))
            waiting = {name: scalar for name, scalar in waiting.items() if name not in ready}
        return relation


def named(fields: Sequence[Field], tree: exp.Column) -> list[Field]:
    """The fields that a column may mean: by the letter where one is so called, else whatever their case."""
    qualifier = tuple(tree.parts[:-1])
    if qualifier:
        fields = [each for each in fields if any(_ends_with(known, qualifier) for known in each.qualifiers)]
    else:
        fields = [each for each in fields if not each.hidden]
    return [each for each in fields if each.name == tree.name] or [each for each in fields if same(tree.this, each.name)]


def _called(fields: Sequence[Field]) -> list[str]:
    """The names that the question gives its tables."""
    return list(dict.fromkeys(".".join(part.name for part in each.qualifiers[-1]) for each in fields if each.qualifiers))


def choose(fields: Sequence[Field], tree: exp.Expression, label: str) -> Field:
    """The one field that a column means."""
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        raise unsupported(f"{shown(tree)} in place of a column", EXAMPLE)
    if not fields:
        raise refused("The query is not supported", "it names no table", EXAMPLE)
    matches = named(fields, tree)
    if len(matches) == 1:
        return matches[0]
    known = list(dict.fromkeys(each.name for each in fields if not each.hidden))
    qualifier = tuple(tree.parts[:-1])
    if qualifier and not any(_ends_with(source, qualifier) for each in fields for source in each.qualifiers):
        before = ".".join(part.name for part in qualifier)
        raise UnknownTable(
            f"The qualifier {clipped(before)} is unknown",
            why=f"the question reads from {', '.join(_called(fields)) or label!r}",
            instead=quoted(known[0]) if known else "column",
        )
    if len({(each.column, each.unit) for each in matches}) > 1:
        where = next((".".join(part.name for part in each.qualifiers[-1]) for each in matches if each.qualifiers), "table")
        raise refused(
            f"The column {clipped(tree.name)} is not supported",
            "more than one table has it",
            f"{quoted_path(where)}.{quoted(tree.name[:_LONGEST_NAME])}",
        )
    if matches:
        return matches[0]
    raise unknown_column(tree.name[:60], label, known or ["column"])


def same(written: exp.Expression, name: str) -> bool:
    """Whether an identifier means the name: to the letter when quoted, whatever its case when not."""
    return written.name == name or (not written.args.get("quoted") and written.name.lower() == name.lower())


def _ends_with(source: Qualifier, qualifier: Qualifier) -> bool:
    """Whether `b.t` before a column is the end of the table's name `a.b.t`."""
    ends = source[-len(qualifier) :]
    return len(ends) == len(qualifier) and all(
        same(left, right.name) and same(right, left.name) for left, right in zip(qualifier, ends, strict=True)
    )
