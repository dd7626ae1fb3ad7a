"""A query as a form has it: what is measured, by what, of which rows. A form is a `Question`; one of this shape is a form.

What a form says stands in a `Draft` as it was typed; `question_of` makes the question from it and the declarations, `draft_of`
the draft from a question. A question that no form shows (OR, two columns compared) is refused by name, for the SQL editor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any

from cloister.errors import CloisterError, InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.hub.web.forms import Form, ungrouped
from cloister.hub.web.languages import N_
from cloister.privacy.rational import exact, text_of
from cloister.query.writing import step_of, stepped
from cloister.session import Count, Distinct, Largest, Mean, Mode, Quantile, Question, Smallest, Statistic, Sum, Variance
from cloister.tables import (
    And,
    Base,
    Between,
    Column,
    Compare,
    Domain,
    Expression,
    Extended,
    In,
    IsNull,
    Literal,
    Not,
    Place,
    PrivateTable,
)
from cloister.tables.expression.scalars import DatePart, DateTrunc, GridCell, Lattice, Ref, RegionOf, Scalar
from cloister.tables.sourcing.reading import read_seconds

MEASURES: Mapping[str, tuple[str, Callable[[str], Statistic]]] = {
    "mean": (N_("Mean"), lambda column: Mean(column=column)),
    "median": (N_("Median"), lambda column: Quantile(column=column)),
    "sum": (N_("Sum"), lambda column: Sum(column=column)),
    "spread": (N_("Standard deviation"), lambda column: Variance(column=column, root=True)),
    "least": (N_("Smallest value"), lambda column: Smallest(column=column)),
    "most": (N_("Largest value"), lambda column: Largest(column=column)),
    "mode": (N_("Most frequent value"), lambda column: Mode(column=column)),
    "distinct": (N_("Number of different values"), lambda column: Distinct(column=column)),
    "known": (N_("Count of rows with a value"), lambda column: Count(column=column)),
}
HOUR = "hour"
"""The one part of a moment that the form counts by."""
UNITS: Mapping[str, str] = {
    "day": N_("day"),
    "week": N_("week"),
    "month": N_("month"),
    "quarter": N_("quarter"),
    "year": N_("year"),
}
MOST_MEASURES, MOST_KEYS = 4, 3
_LONG = 500
_MOST_VALUES = 1000


@dataclass(frozen=True, kw_only=True)
class Only:
    """Which rows count, by one column: some values, a range with both ends, rows with or without a value."""

    values: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    present: str = ""
    """"yes": only rows with a value; "no": only rows without."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A query as a form has it.

    >>> Draft(table="people", measures=(("mean", "age"),), keys=(("sex", ""),)).count
    False
    """

    table: str
    count: bool = False
    measures: tuple[tuple[str, str], ...] = ()
    """What, of which column."""
    keys: tuple[tuple[str, str], ...] = ()
    """A column, and the width of its steps, or the period of its dates."""
    only: Mapping[str, Only] = field(default_factory=dict)

    @property
    def kept(self) -> tuple[tuple[str, Only], ...]:
        """The conditions that say something."""
        return tuple((name, only) for name, only in self.only.items() if only != Only())


def draft_in(form: Form, table: PrivateTable) -> Draft:
    """What a form says of a table."""
    only = {}
    for place, (name, domain) in enumerate(table.columns.items()):
        empty = domain.kind == "category" and "" in domain.values()  # which is a value like others there
        values = tuple(value for value in form.all(f"in-{place}")[:_MOST_VALUES] if value or empty)
        ends = [form.text(f"{end}-{place}", most=_LONG) for end in ("low", "high", "present")]
        only[name] = Only(values=values, low=ends[0], high=ends[1], present=ends[2])
    measures = [(form.text(f"what-{place}", most=20), form.text(f"of-{place}", most=_LONG)) for place in range(MOST_MEASURES)]
    keys = [form.text(f"by-{place}", most=_LONG) for place in range(MOST_KEYS)]
    steps = {name: _step(form, place, table.columns.get(name)) for place, name in enumerate(keys) if name}
    return Draft(
        table=form.text("table", most=_LONG),
        count=form.flag("count"),
        measures=tuple(dict.fromkeys(each for each in measures if each[0] and each[1])),
        keys=tuple(steps.items()),
        only=only,
    )


def _step(form: Form, place: int, domain: Domain | None) -> str:
    """How a key is cut: numbers and grids have widths, dates and moments have periods."""
    kind = "" if domain is None else domain.kind
    name = {"integer": "width", "real": "width", "place": "width", "date": "period", "moment": "period"}.get(kind)
    return form.text(f"{name}-{place}", most=40) if name else ""


def question_of(draft: Draft, table: PrivateTable) -> Question:
    """The question that a draft asks.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30], "sex": ["F"]}, columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
    >>> draft = Draft(table="people", count=True, keys=(("age", "10"),), only={"sex": Only(values=("F",))})
    >>> question = question_of(draft, people)
    >>> question.by, question.where
    (('age_from',), In(column=Column(name='sex'), values=('F',)))
    """
    statistics: list[Statistic] = [Count()] if draft.count else []
    for what, column in draft.measures:
        if what not in MEASURES:
            raise InvalidParameter("The measure is invalid", why="the form has no such measure", instead="choose one of the list")
        _domain(table, column)
        statistics.append(MEASURES[what][1](column))
    if not statistics:
        raise InvalidParameter(
            "The query is invalid", why="it measures nothing", instead="tick “Count of rows”, or choose a measure and a column"
        )
    by: list[str] = []
    scalars: list[tuple[str, Scalar]] = []
    for column, step in draft.keys:
        domain = _domain(table, column)
        if domain.kind == "place":
            by.append(_free(f"{column}_{'cell' if step else 'region'}", table))
            scalars.append((by[-1], _of_place(column, step, domain)))
        elif not step:
            by.append(column)
        elif domain.kind == "moment" and step == HOUR:
            by.append(_free(f"{column}_{step}", table))
            scalars.append((by[-1], DatePart(step, Ref(column))))
        elif domain.kind in ("date", "moment"):
            if step not in UNITS:
                raise InvalidParameter(
                    f"The period {step!r} is invalid", why="dates have no such period", instead="choose one of the list"
                )
            by.append(_free(f"{column}_{step}", table))
            scalars.append((by[-1], DateTrunc(step, Ref(column))))
        else:
            width = _number(step, column)
            if width <= 0:
                raise InvalidParameter(f"The width of {column!r} is invalid", why="it is not greater than 0", instead="10")
            by.append(_free(f"{column}_from", table))
            scalars.append((by[-1], stepped(column, width)))
    source = Extended(source=Base(name=draft.table, table=table), scalars=tuple(scalars)) if scalars else draft.table
    parts = [part for name, only in draft.kept for part in _conditions(name, only, _domain(table, name))]
    where = None if not parts else parts[0] if len(parts) == 1 else And(*parts)
    return Question(table=source, by=tuple(by), statistics=tuple(statistics), where=where)


def _of_place(column: str, metres: str, domain: Domain) -> Scalar:
    """The cell of a grid, or where no side is typed the region."""
    x = Ref(column)
    if metres:
        return GridCell(x, Fraction(_number(metres, column)))
    if isinstance(domain, Place) and domain.regions:
        return RegionOf(x, Lattice("column", x), Lattice("row", x))
    raise InvalidParameter(f"The width of {column!r} is invalid", why="it is empty, and the place has no regions", instead="1000")


def _domain(table: PrivateTable, column: str) -> Domain:
    if column not in table.columns:
        raise UnknownColumn(
            f"The column {column!r} is unknown",
            why=f"the table declares {', '.join(table.columns)}",
            instead="choose one of the list",
        )
    return table.columns[column]


def _free(name: str, table: PrivateTable) -> str:
    while name in table.columns:
        name += "_"
    return name


def _conditions(name: str, only: Only, domain: Domain) -> list[Expression]:
    column, found = Column(name), list[Expression]()
    if only.values:
        texts = only.values
        if domain.kind == "boolean":
            found.append(Compare("=", column, Literal(texts[0] == "true")))
        elif domain.kind == "category":
            found.append(In(column, tuple(_of_category(name, text, domain) for text in texts)))
        else:
            found.append(Compare("=", column, Literal(texts[0])))
    low, high = (None if not text else _constant(text, name, domain) for text in (only.low, only.high))
    if low is not None and high is not None:
        found.append(Between(column, low, high))
    elif low is not None:
        found.append(Compare(">=", column, Literal(low)))
    elif high is not None:
        found.append(Compare("<=", column, Literal(high)))
    if only.present:
        found.append(IsNull(column) if only.present == "no" else Not(IsNull(column)))
    return found


def _of_category(name: str, text: str, domain: Any) -> Any:
    """The declared value that a form writes as this text."""
    found = [value for value in domain.values() if str(value) == text]
    if not found:
        raise InvalidParameter(
            f"A value of {name!r} is invalid", why="the declaration has no such value", instead="choose some of the list"
        )
    return found[0]


def _constant(text: str, name: str, domain: Domain) -> Any:
    if domain.kind == "moment":
        if read_seconds(text) is None:
            why = "it is not a day with a time of day"
            raise InvalidParameter(f"A moment of {name!r} is invalid", why=why, instead="2026-01-31T14:30")
        return text
    if domain.kind != "date":
        return _number(text, name)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(f"A day of {name!r} is invalid", why="it is not a date", instead="2026-01-31") from None


def _number(text: str, name: str) -> int | Fraction:
    try:
        value = exact(ungrouped(text), name)
    except CloisterError:
        raise InvalidParameter(f"A number for {name!r} is invalid", why="it is not a number", instead="10 or 0.5") from None
    return int(value) if value.denominator == 1 else value


def draft_of(question: Question, table: PrivateTable) -> Draft:
    """The draft that asks a question; refused where a form does not show it.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> draft = Draft(table="people", count=True, keys=(("age", "10"),), only={"age": Only(low="18", high="65")})
    >>> draft_of(question_of(draft, people), people) == draft
    True
    """
    source = question.table
    scalars = dict(source.scalars) if isinstance(source, Extended) else {}
    name = source if isinstance(source, str) else source.bases()[0]
    only: dict[str, Only] = {}
    where = question.where
    for part in () if where is None else where.parts if isinstance(where, And) else (where,):
        column, said = _only(part, table)
        if column in only and any(getattr(only[column], each) for each in said):
            raise _not_shown(f"it has no field for two conditions about {column!r}")
        only[column] = replace(only.get(column, Only()), **said)
    told = [(_measure(each), getattr(each, "column", None) or "") for each in question.statistics]
    measured = tuple(each for each in told if each != ("count", ""))
    if len(measured) > MOST_MEASURES:
        raise _not_shown(f"it has fields for {MOST_MEASURES} measures, and the query has {len(measured)}")
    if len(question.by) > MOST_KEYS:
        raise _not_shown(f"it has fields for {MOST_KEYS} keys, and the query has {len(question.by)}")
    return Draft(
        table=name,
        count=("count", "") in told,
        measures=measured,
        keys=tuple(_key(key, scalars) for key in question.by if isinstance(key, str)),
        only={column: only[column] for column in table.columns if column in only},
    )


def _measure(statistic: Statistic) -> str:
    if isinstance(statistic, Count) and statistic.column is None:
        return "count"
    column = getattr(statistic, "column", None)
    for what, (_, made) in MEASURES.items() if column is not None else ():
        if replace(made(str(column)), name="it") == replace(statistic, name="it"):
            return what
    raise _not_shown(f"it has no field for the measure {statistic.name!r}")


def _key(key: str, scalars: Mapping[str, Any]) -> tuple[str, str]:
    scalar = scalars.get(key)
    if scalar is None:
        return key, ""
    step = step_of(scalar)
    if step is not None:
        return step[0], text_of(Fraction(step[1]))
    if isinstance(scalar, DateTrunc) and isinstance(scalar.x, Ref) and scalar.unit in UNITS:
        return scalar.x.name, scalar.unit
    if isinstance(scalar, DatePart) and isinstance(scalar.x, Ref) and scalar.part == HOUR:
        return scalar.x.name, scalar.part
    if isinstance(scalar, GridCell | RegionOf) and isinstance(scalar.x, Ref):
        return scalar.x.name, text_of(scalar.metres) if isinstance(scalar, GridCell) else ""
    raise _not_shown(f"it has no field for the key {key!r}")


def _only(part: Expression, table: PrivateTable) -> tuple[str, dict[str, Any]]:
    """The column of a condition, and what it says of it in a form."""
    inner = part.part if isinstance(part, Not) else part
    if isinstance(inner, IsNull):
        return inner.column.name, {"present": "no" if inner is part else "yes"}
    if isinstance(part, In) and table.columns[part.column.name].kind == "category":
        return part.column.name, {"values": tuple(str(value) for value in part.values)}
    if isinstance(part, Between):
        return part.column.name, {"low": _text(part.low.value), "high": _text(part.high.value)}
    if isinstance(part, Compare) and isinstance(part.left, Column) and isinstance(part.right, Literal):
        name, value = part.left.name, part.right.value
        kind = table.columns[name].kind if name in table.columns else ""
        if kind in ("integer", "real", "date", "moment") and part.op in ("<=", ">=", "="):
            ends: Sequence[str] = {"<=": ("high",), ">=": ("low",), "=": ("low", "high")}[part.op]
            return name, dict.fromkeys(ends, _text(value))
        if kind in ("category", "text", "boolean") and part.op == "=" and value is not None:
            return name, {"values": (str(value).lower() if kind == "boolean" else str(value),)}
    raise _not_shown("it has no field for one of its conditions")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.isoformat() if isinstance(value, date) else text_of(Fraction(value))


def _not_shown(why: str) -> UnsupportedQuery:
    return UnsupportedQuery("The form does not show this query", why=why, instead="edit it as SQL")
