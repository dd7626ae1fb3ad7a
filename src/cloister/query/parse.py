"""From SQL text to a question: an allow-list. What is not on it is refused by name, with the line to write instead.

Supported: `SELECT keys, COUNT(*), COUNT(x), COUNT(DISTINCT unit), SUM(x), AVG(x) FROM table WHERE condition GROUP BY keys ORDER
BY … LIMIT n`, where a condition compares columns with constants (= <> < <= > >= IN BETWEEN LIKE IS NULL) under AND, OR and NOT.
ORDER BY and LIMIT act on the noisy answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from cloister.errors import CloisterError, UnknownTable, UnsupportedQuery
from cloister.query.conditions import condition
from cloister.query.grammar import EXAMPLE, check, check_words, clipped, shown, unsupported, whole
from cloister.session import Count, Mean, Persons, Question, Statistic, Sum, unknown_column
from cloister.tables import PrivateTable, PublicTable

_LONGEST = 50_000
_LONGEST_NAME = 60
_FILTERS = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A question, and how its answer is laid out: output name → name in the release, order, and number of rows.

    >>> from cloister.session import Count
    >>> Parsed(question=Question(table="people", statistics=(Count(),)), names={"n": "count"}).limit is None
    True
    """

    question: Question
    names: Mapping[str, str]
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None


def parse(sql: str, tables: Mapping[str, PrivateTable | PublicTable]) -> Parsed:
    """The question that one SELECT asks of one private table.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> parse("SELECT AVG(age) AS a FROM people WHERE age >= 18", {"people": people}).names
    {'a': 'avg(age)'}
    """
    refusal: CloisterError
    with _unheard():
        try:
            return _parse(sql, tables)
        except CloisterError as error:
            refusal = error
        except RecursionError:
            refusal = UnsupportedQuery("The question was refused", why="it is nested too deep to be read", instead=EXAMPLE)
        except Exception:  # sqlglot fails in many ways on text that is no SQL, and so may a reader of its trees
            refusal = UnsupportedQuery("The question was refused", why="it is not SQL that can be read", instead=EXAMPLE)
    raise refusal  # outside of the handler, so that nothing of what failed hangs on the refusal


def _parse(sql: str, tables: Mapping[str, PrivateTable | PublicTable]) -> Parsed:
    select = _select(sql)
    check(select)
    names = _table(select, tables)
    keys = _keys(select, names)
    statistics: dict[str, Statistic] = {}
    outputs: dict[str, str] = {}
    for expression in select.expressions:
        out, source = _output(expression, names, keys, statistics)
        if out in outputs:
            raise UnsupportedQuery(
                f"The name {clipped(out)} was refused", why="two columns of the answer would bear it", instead="… AS another_name"
            )
        outputs[out] = source
    if not statistics:
        raise UnsupportedQuery(
            "A question without an aggregate was refused", why="rows never leave; counts, sums and means do", instead=EXAMPLE
        )
    where = select.args.get("where")
    question = Question(
        table=names.name,
        by=tuple(keys),
        statistics=tuple(statistics.values()),
        where=None if where is None else condition(where.this, names.column, names.declaration),
    )
    return Parsed(question=question, names=outputs, order=_order(select, outputs, names), limit=_limit(select))


@contextmanager
def _unheard() -> Iterator[None]:
    """sqlglot logs what it can't read, and the text may hold what a log must not; other threads' records pass.

    The list of filters is replaced, never changed: a record of another thread may be on its way through it.
    """
    mine = threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return threading.get_ident() != mine

    logger = logging.getLogger("sqlglot")
    with _FILTERS:
        logger.filters = [*logger.filters, of_others]
    try:
        yield
    finally:
        with _FILTERS:
            logger.filters = [each for each in logger.filters if each is not of_others]


def _dialect() -> sqlglot.Dialect:
    """sqlglot's own, but NULL sorts as the largest value, as it does in the answers: ORDER BY … NULLS is checked against that."""
    dialect = sqlglot.Dialect()
    dialect.NULL_ORDERING = "nulls_are_large"
    return dialect


def _select(sql: str) -> exp.Select:
    if not isinstance(sql, str) or not sql.strip():
        raise UnsupportedQuery("An empty question was refused", why="there is nothing to answer", instead=EXAMPLE)
    if len(sql) > _LONGEST:
        raise UnsupportedQuery("The question was refused", why=f"its text is longer than {_LONGEST} characters", instead=EXAMPLE)
    dialect = _dialect()
    check_words(dialect.tokenize(sql))
    statements = sqlglot.parse(sql, dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    found = [statement for statement in statements if statement is not None and not isinstance(statement, exp.Semicolon)]
    if len(found) != 1:
        raise UnsupportedQuery("The question was refused", why="it must be exactly one statement", instead=EXAMPLE)
    if not isinstance(found[0], exp.Select):
        raise unsupported(found[0].key.upper(), EXAMPLE)
    return found[0]


def _table(select: exp.Select, tables: Mapping[str, PrivateTable | PublicTable]) -> _Names:
    source = select.args.get("from_")
    table = None if source is None else source.this
    if not isinstance(table, exp.Table):
        raise UnsupportedQuery("The question was refused", why="it names no table", instead=EXAMPLE)
    parts = table.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise unsupported("A function in FROM", EXAMPLE)
    wanted = ".".join(part.name for part in parts)
    matches = [name for name in tables if name == wanted]
    if not matches and not any(part.args.get("quoted") for part in parts):
        matches = [name for name in tables if name.lower() == wanted.lower()]
    if len(matches) != 1:
        raise UnknownTable(
            f"The table {clipped(wanted)} was refused",
            why=f"the session knows {', '.join(tables)}",
            instead=f"FROM {next(iter(tables), 'people')}",
        )
    declaration = tables[matches[0]]
    if not isinstance(declaration, PrivateTable):
        raise unsupported(f"A question about the public table {matches[0]!r} alone", "read it directly: it is not protected")
    return _Names(table=table, name=matches[0], declaration=declaration)


@dataclass(frozen=True, kw_only=True)
class _Names:
    """What the names in a question mean: those of one table's columns, alone or after the table's name or alias."""

    table: exp.Table
    name: str
    declaration: PrivateTable

    def column(self, tree: exp.Expression) -> str:
        """The declared column that a part of the question names."""
        known = list(self.declaration.columns)
        written = self._written(tree)
        matches = [name for name in known if name == written.name] or [name for name in known if _same(written, name)]
        if len(matches) != 1:
            raise unknown_column(written.name[:_LONGEST_NAME], self.name, known)
        return matches[0]

    def is_unit(self, tree: exp.Expression) -> bool:
        """Whether it names the privacy unit, declared as a column or not."""
        return self.declaration.unit is not None and _same(self._written(tree), self.declaration.unit)

    def _written(self, tree: exp.Expression) -> exp.Identifier:
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
            raise unsupported(f"{shown(tree)} in place of a column", EXAMPLE)
        alias = self.table.args.get("alias")
        sources = [self.table.parts] if alias is None else [self.table.parts, [alias.this]]
        qualifier = tree.parts[:-1]
        if qualifier and not any(_ends_with(source, qualifier) for source in sources):
            before = ".".join(part.name for part in qualifier)
            raise UnknownTable(
                f"The table {clipped(before)} before the column {clipped(tree.name)} was refused",
                why=f"the question reads from {self.name!r}",
                instead=f"{self.name}.{next(iter(self.declaration.columns), 'column')}",
            )
        return tree.this


def _same(written: exp.Expression, name: str) -> bool:
    """Whether an identifier means the name: to the letter when quoted, whatever its case when not."""
    return written.name == name or (not written.args.get("quoted") and written.name.lower() == name.lower())


def _ends_with(source: list[exp.Expression], qualifier: list[exp.Expression]) -> bool:
    """Whether `b.t` before a column is the end of the table's name `a.b.t`."""
    ends = source[-len(qualifier) :]
    return len(ends) == len(qualifier) and all(
        _same(left, right.name) and _same(right, left.name) for left, right in zip(qualifier, ends, strict=True)
    )


def _keys(select: exp.Select, names: _Names) -> list[str]:
    group = select.args.get("group")
    keys = []
    for expression in group.expressions if group is not None else ():
        target = expression
        if isinstance(expression, exp.Literal) and not expression.is_string:
            place = whole(expression.this) or 0
            if not 1 <= place <= len(select.expressions):
                raise UnsupportedQuery(
                    f"GROUP BY {clipped(expression.this)} was refused", why="no such column is selected", instead="GROUP BY 1"
                )
            target = select.expressions[place - 1].unalias()
        keys.append(names.column(target))
    return list(dict.fromkeys(keys))


def _output(expression: exp.Expression, names: _Names, keys: list[str], statistics: dict[str, Statistic]) -> tuple[str, str]:
    inner = expression.unalias()
    if isinstance(expression, exp.Alias) and not expression.alias:
        raise UnsupportedQuery("An empty name was refused", why="no column of the answer can bear it", instead="… AS n")
    if isinstance(inner, exp.Star):
        raise UnsupportedQuery("SELECT * was refused", why="rows never leave; counts, sums and means do", instead=EXAMPLE)
    if isinstance(inner, exp.Column):
        name = names.column(inner)
        if name not in keys:
            raise UnsupportedQuery(
                f"The column {name!r} was refused", why="it is neither aggregated nor a key", instead=f"… GROUP BY {name}"
            )
        return expression.alias or inner.name, name
    statistic = _statistic(inner, names)
    statistics[statistic.name] = statistic
    return expression.alias or statistic.name, statistic.name


def _statistic(inner: exp.Expression, names: _Names) -> Statistic:
    target = inner.this
    if not isinstance(inner, exp.Count | exp.Sum | exp.Avg):
        raise unsupported(shown(inner), EXAMPLE)
    if not isinstance(target, exp.Expression):
        raise unsupported(f"{inner.key.upper()} of nothing", "COUNT(*)")
    if isinstance(inner, exp.Count):
        if isinstance(target, exp.Star) or (isinstance(target, exp.Literal) and not target.is_string):
            return Count(name="count_star()")
        if isinstance(target, exp.Distinct):
            if (
                len(target.expressions) == 1
                and isinstance(target.expressions[0], exp.Column)
                and names.is_unit(target.expressions[0])
            ):
                return Persons(name=f"count_distinct({names.declaration.unit})")
            raise unsupported("COUNT(DISTINCT …) of a column that is not the privacy unit", "COUNT(*)")
        name = names.column(target)
        return Count(column=name, name=f"count({name})")
    if isinstance(target, exp.Distinct):
        raise unsupported("DISTINCT in a sum or a mean", "SUM(column)")
    name = names.column(target)
    return Sum(column=name, name=f"sum({name})") if isinstance(inner, exp.Sum) else Mean(column=name, name=f"avg({name})")


def _order(select: exp.Select, outputs: Mapping[str, str], names: _Names) -> tuple[tuple[str, bool], ...]:
    order = select.args.get("order")
    found: list[tuple[str, bool]] = []
    for item in order.expressions if order is not None else ():
        descending = bool(item.args.get("desc"))
        if bool(item.args.get("nulls_first")) != descending:
            raise unsupported(
                f"NULLS {'LAST' if descending else 'FIRST'} with {'DESC' if descending else 'ASC'}",
                "ORDER BY sex, in which a missing value sorts as the largest",
            )
        found.append((_ordered_by(item.this, outputs, names), descending))
    return tuple(found)


def _ordered_by(target: exp.Expression, outputs: Mapping[str, str], names: _Names) -> str:
    """The column of the answer: by its place, by its name there, or by that of the key that it shows."""
    if isinstance(target, exp.Literal) and not target.is_string:
        place = whole(target.this) or 0
        if 1 <= place <= len(outputs):
            return list(outputs)[place - 1]
    elif isinstance(target, exp.Column) and isinstance(target.this, exp.Identifier):
        matches: list[str] = []
        if not target.args.get("table"):
            matches = [out for out in outputs if out == target.name] or [out for out in outputs if _same(target.this, out)]
        if not matches and (target.args.get("table") or any(_same(target.this, source) for source in outputs.values())):
            key = names.column(target)
            matches = [out for out, source in outputs.items() if source == key][:1]
        if len(matches) == 1:
            return matches[0]
    raise unsupported(f"ORDER BY {shown(target)}", "ORDER BY a column of the answer, by its name")


def _limit(select: exp.Select) -> int | None:
    limit = select.args.get("limit")
    if limit is None:
        return None
    count = limit.expression
    rows = whole(count.this) if isinstance(count, exp.Literal) and not count.is_string else None
    if rows is None:
        raise unsupported("This LIMIT", "LIMIT 10")
    return rows
