"""A question as SQL, and SQL as a question: both ways, for whatever a `Question` about one private table says.

`write_sql` gives the text that asks a question, `read_sql` the question that a text asks, under the names that the text gives.
What only one of the two can say is refused by name: bins with chosen edges have no SQL of their own, and ORDER BY, LIMIT and
HAVING arrange an answer, which a `Question` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cloister.errors import UnknownTable, nearest
from cloister.privacy.rational import text_of
from cloister.query.parse import Parsed, parse
from cloister.query.refusals import EXAMPLE, clipped, refused
from cloister.query.sources import Tables
from cloister.session import Arithmetic, Constant, Named, Operation, Question
from cloister.session.questions.question import (
    Combined,
    Correlation,
    Count,
    Covariance,
    Distinct,
    Largest,
    Mean,
    Mode,
    OverCap,
    Persons,
    Quantile,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
)
from cloister.tables import (
    And,
    Base,
    Between,
    Column,
    Compare,
    Expression,
    Extended,
    In,
    IsNull,
    Like,
    Not,
    Or,
    PrivateTable,
    Relation,
)
from cloister.tables.expression.names import quoted
from cloister.tables.expression.scalars import (
    Const,
    DatePart,
    DateTrunc,
    Divide,
    Floor,
    GridCell,
    Multiply,
    NearestRegion,
    Ref,
    RegionOf,
    Scalar,
)
from cloister.tables.expression.wording import in_words

_OF_COLUMN: dict[type[Any], str] = {Sum: "SUM", Mean: "AVG", Smallest: "MIN", Largest: "MAX", Mode: "MODE"}


def stepped(column: str, step: int | Fraction) -> Scalar:
    """A number in steps of one width, by the beginning of the step: the key that a histogram in SQL has.

    >>> write_scalar(stepped("age", 10))
    'FLOOR(age / 10) * 10'
    """
    width = Const(int(step) if Fraction(step).denominator == 1 else step)
    return Multiply(Floor(Divide(Ref(column), width)), width)


def step_of(scalar: Scalar) -> tuple[str, int | Fraction] | None:
    """The column and the width of such a key; None for any other.

    >>> step_of(stepped("age", 10)), step_of(Ref("age"))
    (('age', 10), None)
    """
    if not (isinstance(scalar, Multiply) and isinstance(scalar.left, Floor) and isinstance(scalar.left.x, Divide)):
        return None
    inner, width = scalar.left.x, scalar.right
    if (
        isinstance(inner.left, Ref)
        and isinstance(width, Const)
        and inner.right == width
        and scalar == stepped(inner.left.name, width.value)
    ):
        return inner.left.name, width.value
    return None


def write_scalar(scalar: Scalar) -> str:
    """A computed key as SQL: a number in steps, a period or a part of a date, a cell or a region of a place."""
    step = step_of(scalar)
    if step is not None:
        width = text_of(Fraction(step[1]))
        return f"FLOOR({quoted(step[0])} / {width}) * {width}"
    if isinstance(scalar, DateTrunc) and isinstance(scalar.x, Ref):
        return f"DATE_TRUNC('{scalar.unit.upper()}', {quoted(scalar.x.name)})"
    if isinstance(scalar, DatePart) and isinstance(scalar.x, Ref):
        return f"EXTRACT({scalar.part.upper()} FROM {quoted(scalar.x.name)})"
    if isinstance(scalar, GridCell) and isinstance(scalar.x, Ref):
        return f"GRID({quoted(scalar.x.name)}, {text_of(scalar.metres)})"
    if isinstance(scalar, RegionOf) and isinstance(scalar.x, Ref):
        return f"REGION({quoted(scalar.x.name)})"
    if isinstance(scalar, NearestRegion) and isinstance(scalar.x, Ref):
        return f"NEAREST({quoted(scalar.x.name)})"
    raise refused(
        "The computed column is not supported",
        "only steps of numbers, periods of dates, cells and regions are written",
        "session.measure(question)",
    )


def write_sql(question: Question, tables: Tables) -> str:
    """The SQL that asks a question.

    >>> import cloister as cl
    >>> from cloister.session import Count, Mean
    >>> from cloister.tables import Column, Compare, Literal
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> adults = Compare(">=", Column("age"), Literal(18))
    >>> question = Question(table="people", statistics=(Count(name="n"), Mean(column="age")), where=adults)
    >>> print(write_sql(question, {"people": people}))
    SELECT COUNT(*) AS n, AVG(age) AS mean_age
    FROM people
    WHERE age >= 18
    """
    wanted, computed = _source(question.table)
    table = tables.get(wanted)
    if not isinstance(table, PrivateTable):
        raise UnknownTable(
            f"The table {wanted!r} is unknown",
            why=f"known are {', '.join(tables)}",
            instead=f'"{nearest(wanted, tables, "people")}"',
        )
    texts = {each: write_scalar(scalar) for each, scalar in computed.items()}
    keys = [_key(each) for each in question.by]
    measured = {each.name: each for each in question.statistics}
    columns = [
        f"{texts[key]} AS {quoted(key)}" if key in texts and texts[key] != key else texts.get(key, quoted(key)) for key in keys
    ]
    for each in question.statistics:
        if each.name not in question.hidden:
            text = _statistic(each, measured, table)
            bare = isinstance(each, Combined) and text.startswith("(")  # an operation that stands alone needs no parentheses
            columns.append(f"{text[1:-1] if bare else text} AS {quoted(each.name)}")
    lines = [f"SELECT {', '.join(columns)}", f"FROM {quoted(wanted)}"]
    if question.where is not None:
        lines.append(f"WHERE {in_words(question.where, lambda each: texts.get(each) or quoted(each))}")
    if keys:
        lines.append(f"GROUP BY {', '.join(texts.get(key, quoted(key)) for key in keys)}")
    return "\n".join(lines)


def _source(table: str | Relation) -> tuple[str, Mapping[str, Scalar]]:
    if isinstance(table, str):
        return table, {}
    if isinstance(table, Extended) and isinstance(table.source, Base) and table.source.through is None:
        return table.source.name, dict(table.scalars)
    if isinstance(table, Base) and table.through is None:
        return table.name, {}
    raise refused(
        "The question is not supported",
        "it is about several tables, or about rows that were derived",
        'Question(table="people", …)',
    )


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise refused(
        f"Bins of {clipped(key.name)} are not supported",
        "SQL has no word for bins with chosen edges",
        "steps of one width: FLOOR(age / 10) * 10",
    )


def _statistic(statistic: Statistic, known: Mapping[str, Statistic], table: PrivateTable) -> str:
    if isinstance(statistic, Combined):
        return _arithmetic(statistic.expression, lambda name: _statistic(known[name], known, table))
    if isinstance(statistic, Count):
        return f"COUNT({'*' if statistic.column is None else quoted(statistic.column)})"
    if isinstance(statistic, Persons):
        return "COUNT(*)" if table.unit is None else f"COUNT(DISTINCT {quoted(table.unit)})"
    if isinstance(statistic, OverCap):
        raise refused("A count over the cap is not supported", "SQL has no word for it", "session.measure(question)")
    if isinstance(statistic, Correlation):
        return f"CORR({quoted(statistic.x)}, {quoted(statistic.y)})"
    if isinstance(statistic, Covariance):
        return f"COVAR_{'SAMP' if statistic.sample else 'POP'}({quoted(statistic.x)}, {quoted(statistic.y)})"
    if isinstance(statistic, Regression):
        return f"REGR_{statistic.part.upper()}({quoted(statistic.y)}, {quoted(statistic.x)})"
    column = quoted(statistic.column)
    if isinstance(statistic, Distinct):
        return f"COUNT(DISTINCT {column})"
    if isinstance(statistic, Variance):
        return f"{'STDDEV' if statistic.root else 'VAR'}_{'SAMP' if statistic.sample else 'POP'}({column})"
    if isinstance(statistic, Quantile):
        return f"MEDIAN({column})" if statistic.share == Fraction(1, 2) else f"QUANTILE({column}, {text_of(statistic.share)})"
    return f"{_OF_COLUMN[type(statistic)]}({column})"


def _arithmetic(expression: Arithmetic, written: Callable[[str], str]) -> str:
    """As `str` writes it, with what a name stands for in its place."""
    if isinstance(expression, Named):
        return written(expression.name)
    if isinstance(expression, Constant):
        text = str(expression)
        return f"({text})" if "/" in text or text.startswith("-") else text
    marks = tuple(Named(f"\x00{place}\x00") for place in range(len(expression.parts)))
    parts = [_arithmetic(part, written) for part in expression.parts]
    return re.sub("\x00([0-9]+)\x00", lambda found: parts[int(found[1])], str(replace(expression, parts=marks)))


def read_sql(sql: str, tables: Tables, dialect: str | None = None) -> Question:
    """The question that a text asks; its statistics and computed keys bear the names that the text gives them.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> read_sql("SELECT AVG(age) AS a FROM people", {"people": people})
    Question(table='people', statistics=(Mean(column='age', name='a'),), by=(), where=None, hidden=(), every_group=False)
    """
    parsed = parse(sql, tables, dialect, cut=False)
    question, names = parsed.question, _names(parsed)
    _source(question.table)
    by = tuple(_key(key) for key in question.by)
    if set(by) - set(names):
        raise refused("The query is not supported", "it does not show every key by which it groups", EXAMPLE)
    table, renamed = question.table, {key: names[key] for key in by if names[key] != key}
    if isinstance(table, Extended):
        table = replace(table, scalars=tuple((renamed.get(name, name), scalar) for name, scalar in table.scalars))
    plain = sorted(
        set(renamed) - ({name for name, _ in question.table.scalars} if isinstance(question.table, Extended) else set())
    )
    if plain:
        raise refused(
            f"Another name for {clipped(plain[0])} is not supported",
            "a question shows a declared column under its own name",
            quoted(plain[0]),
        )
    return Question(
        table=table,
        by=tuple(renamed.get(key, key) for key in by),
        statistics=tuple(_renamed(each, names) for each in question.statistics),
        where=None if question.where is None else _with_names(question.where, renamed),
        hidden=question.hidden,
    )


def _names(parsed: Parsed) -> dict[str, str]:
    """What the text calls each key and each statistic that it shows; refused where it says more than a question does."""
    layout = parsed.layout
    if len(parsed.questions) > 1 or any(column.source is None for column in layout.columns):
        raise refused("The query is not supported", "it has grouping sets, or shows constants", EXAMPLE)
    if layout.having is not None or layout.order or layout.limit is not None or layout.offset or parsed.spend is not None:
        raise refused(
            "The query is not supported", "it has ORDER BY, LIMIT, HAVING or OPTIONS, which a question has not", EXAMPLE
        )
    if len({column.source for column in layout.columns}) < len(layout.columns):
        raise refused("The query is not supported", "it shows the same number twice", EXAMPLE)
    return {str(column.source): column.name for column in layout.columns}


def _renamed(statistic: Statistic, names: Mapping[str, str]) -> Statistic:
    name = names.get(statistic.name, statistic.name)
    if isinstance(statistic, Combined):
        return Combined(name=name, expression=_with_statistics(statistic.expression, names))
    return replace(statistic, name=name)


def _with_statistics(expression: Arithmetic, names: Mapping[str, str]) -> Arithmetic:
    if isinstance(expression, Named):
        return Named(names.get(expression.name, expression.name))
    if isinstance(expression, Operation):
        return replace(expression, parts=tuple(_with_statistics(part, names) for part in expression.parts))
    return expression


def _with_names(condition: Expression, names: Mapping[str, str]) -> Expression:
    """A condition on columns that are called otherwise."""

    def of(parts: Sequence[Expression]) -> list[Expression]:
        return [_with_names(part, names) for part in parts]

    if isinstance(condition, And | Or):
        return type(condition)(*of(condition.parts))
    if isinstance(condition, Not):
        return Not(_with_names(condition.part, names))
    if isinstance(condition, Compare):
        return Compare(condition.op, *of((condition.left, condition.right)))
    if isinstance(condition, Between | In | Like | IsNull):
        column = Column(names.get(condition.column.name, condition.column.name))
        if isinstance(condition, Between):
            return Between(column, condition.low, condition.high)
        if isinstance(condition, In):
            return In(column, condition.values)
        return Like(column, condition.pattern) if isinstance(condition, Like) else IsNull(column)
    return Column(names.get(condition.name, condition.name)) if isinstance(condition, Column) else condition
