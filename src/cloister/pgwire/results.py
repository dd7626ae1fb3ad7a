"""What a statement gives back: columns, rows, a tag, and what the client is told beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloister.pgwire.backend import AnswerColumn, Asking, Explained, FreeAnswer
from cloister.pgwire.failures import IN_SQL
from cloister.pgwire.statements import CopyFormat
from cloister.pgwire.types import OF_KIND
from cloister.printable import finite, json_of, margin_text
from cloister.session import Release


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column's name, and its type by name.

    >>> Column(name="n", kind="int8")
    Column(name='n', kind='int8')
    """

    name: str
    kind: str


@dataclass(frozen=True)
class Source:
    """Where rows came from: the question as it went to the door, and how it was asked; an empty text is the catalogue."""

    text: str
    how: Asking


@dataclass(frozen=True, kw_only=True)
class Result:
    """The answer to one statement; without columns, only its tag is sent."""

    columns: tuple[Column, ...] | None = None
    rows: Sequence[tuple[Any, ...]] = ()
    tag: str
    notices: tuple[str, ...] = ()
    source: Source | None = None
    binary: bool = False
    """A cursor's own wish, where the protocol states none."""
    copy: CopyFormat | None = None
    """The rows go as a copy in this format."""


def weight(rows: Sequence[tuple[Any, ...]]) -> int:
    """About how many bytes rows take.

    >>> weight([("abc", 1), (None, ["x"])])
    85
    """
    return sum(
        16 + (len(value) if isinstance(value, str | bytes) else 16 * len(value) if isinstance(value, list) else 1)
        for row in rows
        for value in row
    )


PLAN = Column(name="QUERY PLAN", kind="text")


def columns_of_shape(shape: Sequence[AnswerColumn], *, margins: bool) -> tuple[Column, ...]:
    """The columns of an answer, each measured one followed by its margin where margins are asked for.

    >>> shape = [AnswerColumn("sex", "text", False), AnswerColumn("n", "integer", True)]
    >>> [column.name for column in columns_of_shape(shape, margins=True)]
    ['sex', 'n', 'n_margin']
    """
    found = []
    for each in shape:
        found.append(Column(name=each.name, kind=OF_KIND[each.kind]))
        if margins and each.measured:
            found.append(Column(name=f"{each.name}_margin", kind="float8"))
    return tuple(found)


def of_release(release: Release, *, how: Asking, source: Source | None = None) -> Result:
    """A release as rows, and its cost as a notice.

    >>> from cloister.session.examples import small_release
    >>> found = of_release(small_release(), how=Asking(margins=True))
    >>> [column.name for column in found.columns], found.rows[0][0], found.rows[0][2], found.tag
    (['sex', 'count', 'count_margin'], 'F', 6.0, 'SELECT 2')
    """
    table, measured = release.table, release.statistics()
    shape = [AnswerColumn(name, series.kind, name in measured) for name, series in table.columns.items()]
    widths = release.margin(how.confidence) if how.margins else None
    lists: list[list[Any]] = []
    for name, series in table.columns.items():
        lists.append(series.tolist())
        if widths is not None and name in measured:
            lists.append([None if _unknown(width) else width for width in widths.columns[name].tolist()])
    told = [release.paid, *_margins(release, how), *map(IN_SQL.told, release.notes)]
    if release.marked:
        told.append("the noise came from a test's generator and protects nobody")
    return Result(
        columns=columns_of_shape(shape, margins=how.margins),
        rows=list(zip(*lists, strict=True)),
        tag=f"SELECT {release.num_rows}",
        notices=("; ".join(told),),
        source=source,
    )


def _margins(release: Release, how: Asking) -> list[str]:
    """The margins of error of each measured column, for whoever has no columns for them."""
    if how.margins:
        return []
    widths, told = release.margin(how.confidence), []
    for name in release.statistics():
        known = sorted(float(each) for each in widths.columns[name].tolist() if not _unknown(each))
        ends = dict.fromkeys(map(margin_text, (*known[:1], *known[-1:])))
        told += [f"{name} ± {' to '.join(ends)}"] if ends else []
    return [f"with {100 * how.confidence:g} % confidence {', '.join(told)}"] if told else []


def of_free(answer: FreeAnswer, source: Source) -> Result:
    """Rows that are not a release, and what is said of them as a notice."""
    columns = [AnswerColumn(name, series.kind, False) for name, series in answer.table.columns.items()]
    lists = [[None if _unknown(value) else value for value in series.tolist()] for series in answer.table.columns.values()]
    told = "; ".join((answer.paid, *map(IN_SQL.told, answer.notes)))
    rows = list(zip(*lists, strict=True))
    shape = columns_of_shape(columns, margins=False)
    return Result(columns=shape, rows=rows, tag=f"SELECT {len(rows)}", notices=(told,), source=source)


def of_plan(plan: Explained, *, as_json: bool, confidence: float, example: bool) -> Result:
    """A plan as lines of text, or as JSON.

    >>> from cloister.session.examples import small_plan
    >>> found = of_plan(small_plan(), as_json=False, confidence=0.95, example=False)
    >>> found.columns[0].name, found.rows[-1][0]
    ('QUERY PLAN', 'nothing was spent and no row was read')
    """
    note = "no spend is set, so this is an example: SET cloister.spend = '0.1'"
    lines = [*([note] if example else []), *str(plan).splitlines()]
    if not as_json:
        return of_texts("QUERY PLAN", lines, tag="EXPLAIN")
    widths = {name: series.tolist()[0] for name, series in plan.margin(confidence).columns.items()}
    body = {
        "Node Type": "Private answer",
        "Cost": str(plan.cost),
        "Example": example,
        "Confidence": confidence,
        "Margins": finite(widths),
        "Lines": lines,
    }
    text = json_of([{"Plan": body}], indent=2)
    return Result(columns=(Column(name="QUERY PLAN", kind="json"),), rows=[(text,)], tag="EXPLAIN")


def of_texts(name: str, lines: Sequence[str], *, tag: str) -> Result:
    """Lines of text in one column.

    >>> of_texts("QUERY PLAN", ["a"], tag="EXPLAIN").rows
    [('a',)]
    """
    return Result(columns=(Column(name=name, kind="text"),), rows=[(line,) for line in lines], tag=tag)


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
