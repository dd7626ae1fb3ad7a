"""What a person may see, as its owner writes it: a condition in SQL on the declared columns of one table.

It is read by the parser of WHERE, over columns alone: no expression that would be a computed column, no aggregate, no question
within it, no unit that is no column. What it means for questions, and why it keeps the guarantee, stands in
`session/state/view.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.conditions import condition, kind_of
from cloister.query.grammar import check
from cloister.query.precedence import check_precedence
from cloister.query.refusals import refused, shown, unsupported
from cloister.query.rows import Field, choose
from cloister.query.words import statement, unheard
from cloister.tables import Expression, PrivateTable

_LINE = "age >= 18 AND sex = 'F'"
_MOST_KNOWN = 1024
_KNOWN: WeakKeyDictionary[PrivateTable, dict[tuple[str, str], Expression]] = WeakKeyDictionary()
"""What was read before, as long as the table lives: a view is made for every request."""


@dataclass(frozen=True)
class _Columns:
    """The declared columns of a table, in a condition."""

    name: str
    table: PrivateTable

    def column(self, tree: exp.Expression) -> str:
        inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
        if not isinstance(inner, exp.Column):
            raise unsupported(f"{shown(tree)} in a condition on the rows of a table", _LINE)
        if len(inner.parts) > 1:
            raise refused(
                f"{shown(inner)} is not supported", "the condition is about one table, and names its columns alone", _LINE
            )
        return str(choose([Field(name=each, column=each) for each in self.table.columns], inner, self.name).column)

    def holds(self, column: str) -> str:
        return kind_of(self.table.columns[column])

    def values(self, query: exp.Query) -> tuple[Any, ...]:
        raise unsupported("A question within the condition on the rows of a table", _LINE)


def row_condition(text: str, name: str, table: PrivateTable) -> Expression:
    """The condition that a text writes on the rows of a table.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> row_condition("age >= 18", "people", people).describe()
    ['compare', '>=', ['column', 'age'], ['literal', 'number', '18']]
    >>> row_condition("age + 1 > 18", "people", people)
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: 'age + 1' in a condition on the rows of a table is not supported: ...
    """
    known = _KNOWN.setdefault(table, {})
    if (name, text) not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[name, text] = _read(text, _Columns(name, table))
    return known[name, text]


def row_conditions(rows: Mapping[str, str | Expression], tables: Mapping[str, object]) -> dict[str, Expression]:
    """The conditions by table, each read over the columns that may be seen; a name that is no private table is left to the view
    to refuse."""
    found: dict[str, Expression] = {}
    for name, given in rows.items():
        table = tables.get(name)
        found[name] = row_condition(given, name, table) if isinstance(given, str) and isinstance(table, PrivateTable) else given  # type: ignore[assignment]
    return found


def _read(text: str, columns: _Columns) -> Expression:
    refusal: CloisterError
    with unheard():
        try:
            return condition(_tree(text), columns)
        except CloisterError as error:
            refusal = error
        except Exception:  # sqlglot fails in many ways on text that is no SQL
            refusal = refused("The condition on the rows of a table is not supported", "it is not SQL that can be read", _LINE)
    refusal.__cause__ = refusal.__context__ = None
    raise refusal


def _tree(text: str) -> exp.Expression:
    query, _ = statement(f"SELECT COUNT(*) FROM rows WHERE (\n{text}\n)", None)  # noqa: S608 - it is read, never run
    check(query)
    check_precedence(query)
    written = {part for part, value in query.args.items() if value}
    where = query.args.get("where")
    if written != {"expressions", "from_", "where"} or where is None or not isinstance(where.this, exp.Paren):
        raise refused("The condition on the rows of a table is not supported", "it is more than a condition", _LINE)
    inner: exp.Expression = where.this.this
    return inner
