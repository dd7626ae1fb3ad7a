"""Functions of dates: parts, periods, differences and shifts, brought from each dialect's spelling to one meaning."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlglot import exp

from cloister.query.constants import constant, is_constant, shifted
from cloister.query.numbers import NumberKind
from cloister.query.refusals import refused, shown
from cloister.tables import Domain, Expression
from cloister.tables.expression.scalars import Add, Const, DateDiff, DatePart, DateShift, DateTrunc, Scalar

_UNITS = ("year", "quarter", "month", "week", "day")
_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "isodow": "isodow",
    "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
    "doy": "dayofyear",
    "dayofyear": "dayofyear",
    "hour": "hour",
    "minute": "minute",
}
FROM_SUNDAY_1 = ("bigquery", "mysql", "spark", "databricks", "tsql")
"""Where the function DAYOFWEEK, or the part DAYOFWEEK, counts from Sunday = 1."""

_WHOLE_UNITS = ("spark", "databricks", "trino", "mysql")
"""Where a difference counts whole months, not ends of months."""

FROM_MONDAY_0 = ("mysql", "spark", "databricks")
"""Where the function WEEKDAY counts from Monday = 0."""


class ScalarReader(Protocol):
    """What a function's parts are read by."""

    dialect: str | None

    def scalar(self, tree: exp.Expression) -> Scalar:
        """The scalar that an expression is."""

    def condition(self, tree: exp.Expression) -> Expression:
        """The condition that an expression is."""

    def column(self, tree: exp.Expression) -> str:
        """The column that an expression is, or becomes."""

    def named(self, scalar: Scalar, text: str) -> Scalar:
        """A scalar as a column that others are made of."""

    def kind(self, scalar: Scalar) -> str:
        """Which kind of values a scalar has."""

    def number_kind(self, scalar: Scalar) -> NumberKind | None:
        """Which kind of number a scalar is in the dialect; None where that is not known."""

    def domains(self, scalar: Scalar) -> Mapping[str, Domain]:
        """What the columns that a scalar reads may hold."""


Make = Callable[[Any, ScalarReader], Scalar]


def _part(word: str, day: exp.Expression, tree: exp.Expression, reader: ScalarReader) -> Scalar:
    word = "isodow" if word.lower() in ("dow", "day_of_week") and reader.dialect == "trino" else word
    part = _PARTS.get(word.lower())
    if part is None:
        raise refused(
            f"{shown(tree)} is not supported", f"known parts are {', '.join(dict.fromkeys(_PARTS))}", "EXTRACT(MONTH FROM born)"
        )
    found: Scalar = DatePart(part, reader.scalar(day))
    from_1 = word.lower() == "dayofweek" or (word.lower() == "dow" and reader.dialect in ("spark", "databricks"))
    return Add(found, Const(1)) if from_1 and reader.dialect in FROM_SUNDAY_1 else found


def _named_part(part: str) -> Make:
    return lambda tree, reader: _part(part, tree.this, tree, reader)


def _truncation(tree: exp.DateTrunc | exp.TimestampTrunc, reader: ScalarReader) -> Scalar:
    unit = _unit(tree.args.get("unit"), tree)
    if unit == "week" and reader.dialect == "tsql":
        raise refused(f"{shown(tree)} is not supported", "where a week begins is set at each server", "DATETRUNC(MONTH, born)")
    return DateTrunc(unit, reader.scalar(tree.this))


def _difference(tree: exp.DateDiff, reader: ScalarReader) -> Scalar:
    given = tree.args.get("unit")
    unit = "day" if given is None else _unit(given, tree)
    if unit != "day" and (reader.dialect in _WHOLE_UNITS or (unit == "week" and reader.dialect in ("duckdb", "tsql"))):
        raise refused(
            f"{shown(tree)} is not supported",
            f"{reader.dialect} does not count how many {unit}s begin between two days, as other engines do",
            "the difference in days",
        )
    return DateDiff(unit, reader.scalar(tree.this), reader.scalar(tree.expression))


def _shift(sign: int) -> Make:
    def make(tree: exp.Expression, reader: ScalarReader) -> Scalar:
        count, unit = shifted(tree.expression, tree.args.get("unit"))
        return DateShift(reader.scalar(tree.this), sign * count, unit)

    return make


def _months(tree: exp.AddMonths, reader: ScalarReader) -> Scalar:
    return DateShift(reader.scalar(tree.this), whole_number(tree.expression, "ADD_MONTHS(born, 3)"), "month")


def _unit(tree: exp.Expression | None, whole: exp.Expression) -> str:
    word = "" if tree is None else str(tree.name).lower().removesuffix("s")
    if word not in _UNITS:
        line = f"{word.upper()}(at), beside CAST(at AS DATE)" if word in ("hour", "minute") else "DATE_TRUNC('month', born)"
        raise refused(f"{shown(whole)} is not supported", f"its unit is not one of {', '.join(_UNITS)}", line)
    return word


def whole_number(tree: exp.Expression | None, line: str) -> int:
    """A constant whole number among the arguments of a function."""
    value = constant(tree) if tree is not None and is_constant(tree) else None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 1_000_000:
        raise refused("A function is not supported", "an argument must be a constant whole number", line)
    return value


DATES: dict[type[exp.Expression], Make] = {
    exp.Extract: lambda tree, reader: _part(tree.this.name, tree.expression, tree, reader),
    exp.Year: _named_part("year"),
    exp.Quarter: _named_part("quarter"),
    exp.Month: _named_part("month"),
    exp.Day: _named_part("day"),
    exp.DayOfWeek: _named_part("dayofweek"),
    exp.DayOfWeekIso: _named_part("isodow"),
    exp.DayOfYear: _named_part("doy"),
    exp.Hour: _named_part("hour"),
    exp.Minute: _named_part("minute"),
    exp.DateTrunc: _truncation,
    exp.TimestampTrunc: _truncation,
    exp.DateDiff: _difference,
    exp.DateAdd: _shift(1),
    exp.TsOrDsAdd: _shift(1),
    exp.TimestampAdd: _shift(1),
    exp.DateSub: _shift(-1),
    exp.AddMonths: _months,
}
"""By the kind of the node."""
