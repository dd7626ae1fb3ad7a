"""Computed columns worked out three ways: by an engine, by arrays, and by a reference that shares no arithmetic with either.

The reference works on values (fractions, texts, days), not on codes. From the code under test it takes only the grid that a
quotient is rounded to, since that is a choice and not a result.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import ibis
import numpy as np

from cloister.tables import Boolean, Category, Date, Domain, Integer, Real, Text, prepare
from cloister.tables.engines.compiler import RELATION, CompiledQuery
from cloister.tables.engines.engine import Prepared
from cloister.tables.expression import scalars as s
from cloister.tables.expression.computed import Periods, Stepped
from cloister.tables.expression.evaluate import evaluate

HUGE = 2**62 - 2
COLUMNS = {
    "row": Integer(0, 999), "a": Integer(-5, 10), "b": Integer(0, 7), "huge": Integer(-HUGE, HUGE),
    "r": Real(-1, "2.5", step="0.25"),
    "o": Real("3.1", "9.6", step="0.5"), "n": Integer(-3, 3, nullable=True), "c": Category(["a", "B", "🎉", "ß", " b ", "A"]),
    "code": Category(["10", "2.5", "x", "-3", "1e2"]), "level": Category([30, 10, 20]), "d": Date("2019-12-30", "2020-03-05"),
    "e": Date("0001-01-01", "9999-12-31"), "t": Boolean(), "w": Text(),
}  # fmt: skip
DAYS = ["0001-01-01", "0001-02-28", "0004-02-29", "1582-10-10", "1900-02-28", "1900-03-01", "1969-12-31", "1970-01-01",
        "2000-02-29", "2019-12-31", "2020-01-31", "2020-02-29", "2023-01-30", "2024-12-30", "9999-11-30",
        "9999-12-31"]  # fmt: skip


def nasty() -> dict[str, list[Any]]:
    """Rows with NULL everywhere, zeros, ends of ranges, month ends and leap days."""
    count = 64
    texts = ["", "a", "éa\u0301🎉x", "'; --", "\\", "%_", "${x}", "long " * 9]
    made: dict[str, list[Any]] = {
        "row": list(range(count)),
        "a": [i % 16 - 5 for i in range(count)],
        "b": [i * 3 % 8 for i in range(count)],
        "huge": [[HUGE, -HUGE, 0, 1, -1, 2**53 + 1, -(2**61) - 1, 3][i % 8] for i in range(count)],
        "r": [(i * 7 % 15) / 4 - 1 for i in range(count)],
        "o": [3.1 + (i * 5 % 14) / 2 for i in range(count)],
        "n": [i % 7 - 3 for i in range(count)],
        "c": [list(COLUMNS["c"].values())[i % 6] for i in range(count)],
        "code": [list(COLUMNS["code"].values())[i % 5] for i in range(count)],
        "level": [[30, 10, 20][i % 3] for i in range(count)],
        "d": [(datetime.date(2019, 12, 30) + datetime.timedelta(days=i)).isoformat() for i in range(count)],
        "e": [DAYS[i % len(DAYS)] for i in range(count)],
        "t": [i % 2 == 0 for i in range(count)],
        "w": [texts[i % len(texts)] for i in range(count)],
    }
    for place, name in enumerate(list(made)[1:]):
        for i in range(count):
            if (i + place) % 11 == 0:
                made[name][i] = None
    return made


EPOCH = datetime.date(1970, 1, 1)
FIRST, LAST = datetime.date.min, datetime.date.max


class Rows:
    """Prepared rows, with the number of each."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.domains: Mapping[str, Domain] = prepared.declaration.columns
        self.columns = self.computed([s.Ref(name) for name in self.domains])
        self.codes = dict(zip(self.domains, self.columns, strict=True))

    def computed(self, scalars: Sequence[s.Scalar]) -> list[np.ndarray]:
        """The codes of computed columns in the order of the column "row", None for NULL."""
        layout = self.prepared.layout
        table = ibis.table(layout.schema(), name=RELATION)
        scope = layout.scope(table, self.prepared.dialect)
        chosen = {f"x{i}": scalar.code(scope) for i, scalar in enumerate(scalars)}
        sql = str(ibis.to_sql(table.select(row_=scope.code("row"), **chosen), dialect=self.prepared.dialect, pretty=False))
        found = self.prepared._fetch(CompiledQuery(sql, ()))
        order = np.argsort(np.asarray(found[0]).astype(np.int64))
        return [_objects(column)[order] for column in found[1:]]

    def by_arrays(self, scalar: s.Scalar) -> list[Any]:
        """The same without the engine."""
        return evaluate(scalar, self.domains, self.codes).tolist()

    def by_reference(self, scalar: s.Scalar) -> list[Any]:
        """The exact values."""
        values = {name: [exact(self.domains[name], code) for code in column] for name, column in self.codes.items()}
        return [
            reference(scalar, self.domains, dict(zip(values, row, strict=True))) for row in zip(*values.values(), strict=True)
        ]


def _objects(column: Any) -> np.ndarray:
    items = column.tolist() if isinstance(column, np.ndarray) else list(column)
    made = np.empty(len(items), dtype=object)
    made[:] = [item if item is None or isinstance(item, str) else int(item) for item in items]
    return made


def check(rows: Rows, *scalars: s.Scalar) -> None:
    """The engine, the arrays and the reference agree, and the codes lie in the domain."""
    for scalar, codes in zip(scalars, rows.computed(scalars), strict=True):
        domain = scalar.domain(rows.domains)
        assert rows.by_arrays(scalar) == codes.tolist(), scalar
        assert [exact(domain, code) for code in codes] == rows.by_reference(scalar), scalar


def exact(domain: Domain, code: Any) -> Any:
    """The value of a code, with no double in between."""
    if code is None:
        return None
    if domain.kind == "text":
        return code
    if domain.kind in ("integer", "real"):
        assert domain.low_code <= code <= domain.high_code, (domain, code)
        return domain.origin + code * domain.step
    if isinstance(domain, Periods | Stepped) or domain.size is not None:
        assert domain.low_code <= code <= domain.high_code, (domain, code)
    return domain.decode(code)


def reference(x: s.Scalar, domains: Mapping[str, Domain], row: Mapping[str, Any], within: Any = None) -> Any:
    """The exact value of a computed column in one row; None for NULL."""

    def part(inner: s.Scalar, bounds: Any = None) -> Any:
        value = reference(inner, domains, row, bounds)
        return Fraction(value) if type(value) is int else value

    def nearest(value: Fraction) -> Fraction:
        grid = x.form(domains, within).grid
        return math.floor(value / grid + Fraction(1, 2)) * grid if grid else Fraction(0)

    match x:
        case s.Ref():
            return row[x.name]
        case s.Const():
            return Fraction(x.value) if x.kind in ("integer", "number") else x.value
        case s.Clamp():
            inner = (x.low, x.high) if within is None else tuple(min(max(end, within[0]), within[1]) for end in (x.low, x.high))
            value = part(x.x, inner)
            return None if value is None else min(max(value, x.low), x.high)
        case s.Coalesce():
            return next((value for value in (part(each, within) for each in x.parts) if value is not None), None)
        case s.LeastOf() | s.GreatestOf():
            present = [value for value in (part(each, within) for each in x.parts) if value is not None]
            return (min if isinstance(x, s.LeastOf) else max)(present) if present else None
        case s.NullIf():
            left = part(x.left)
            return None if left == part(x.right) else left
        case s.Case():
            for condition, value in x.branches:
                if holds(condition, row, domains):
                    return part(value, within)
            return None if x.otherwise is None else part(x.otherwise, within)
        case s.Truth():
            return holds(x.condition, row, domains)
    if isinstance(x, s.Power) and x.exponent.denominator == 1:
        base = part(x.x)
        if base is None or (base == 0 and x.exponent < 0):
            return None
        return nearest(base**x.exponent) if x.exponent < 0 else base**x.exponent
    bounds = passed_on(x, within)
    parts = [part(inner, bounds) for inner in operands(x)]
    if any(value is None for value in parts):
        return None
    match x:
        case s.Cast():
            return cast(parts[0], x.kind)
        case s.TextFunction():
            return spelled(x.name, *parts)
        case s.Add():
            return parts[0] + parts[1]
        case s.Subtract():
            return parts[0] - parts[1]
        case s.Multiply():
            return parts[0] * parts[1]
        case s.Divide():
            return nearest(parts[0] / parts[1]) if parts[1] else None
        case s.Modulo():
            if not parts[1]:
                return None
            left = abs(parts[0]) % abs(parts[1])
            return -left if parts[0] < 0 else left
        case s.Negate():
            return -parts[0]
        case s.Absolute():
            return abs(parts[0])
        case s.Sign():
            return Fraction((parts[0] > 0) - (parts[0] < 0))
        case s.Floor():
            return Fraction(math.floor(parts[0]))
        case s.Ceiling():
            return Fraction(math.ceil(parts[0]))
        case s.Round():
            return to_whole(parts[0] * Fraction(10) ** x.digits, x.mode) / Fraction(10) ** x.digits
        case s.DatePart():
            day = parts[0]
            return Fraction(
                {
                    "year": day.year, "month": day.month, "day": day.day, "quarter": (day.month + 2) // 3,
                    "dayofweek": day.isoweekday() % 7, "isodow": day.isoweekday(), "dayofyear": day.timetuple().tm_yday,
                }[x.part]
            )  # fmt: skip
        case s.DateTrunc():
            return truncated(x.unit, parts[0])
        case s.DateShift():
            return moved(parts[0], x.count, x.unit)
        case s.DateDiff():
            return Fraction(number(x.unit, parts[0]) - number(x.unit, parts[1]))
    raise AssertionError(x)


def cast(value: Any, kind: str) -> Any:
    """A value as another kind."""
    if kind == "text":
        return str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "date":
        return datetime.date.fromisoformat(str(value))
    if kind == "boolean":
        return None if isinstance(value, str) else value != 0  # none of the texts in the rows spells a truth value
    try:
        number = Fraction(value)
    except ValueError:
        return None
    if kind == "integer" and isinstance(value, str) and not value.lstrip("-").isdigit():
        return None
    return to_whole(number, "half even") if kind == "integer" else number


def to_whole(number: Fraction, mode: str) -> Fraction:
    """The whole number next to one, by comparing with both of its neighbours."""
    below = number.numerator // number.denominator
    neighbours = [below, below if number.denominator == 1 else below + 1]
    if mode == "half away":
        return Fraction(min(neighbours, key=lambda each: (abs(number - each), -abs(each))))
    if mode == "half even":
        return Fraction(min(neighbours, key=lambda each: (abs(number - each), each % 2)))
    return Fraction({"floor": min, "ceiling": max, "truncate": min if number >= 0 else max}[mode](neighbours))


def spelled(name: str, text: Any, *others: Any) -> Any:
    """A text function in Python."""
    match name, [other if isinstance(other, str) else int(other) for other in others]:
        case "substring", [start, count]:
            return "".join(letter for place, letter in enumerate(text, 1) if start <= place < start + count)
        case "left", [count]:
            return text[:count]
        case "right", [count]:
            return text[len(text) - count :] if count < len(text) else text
        case "replace", [old, new]:
            return text.replace(old, new)
        case "concat", others_:
            return text + "".join(others_)
        case "length", []:
            return Fraction(len(text))
    return {"upper": text.upper, "lower": text.lower, "trim": text.strip}[name]()


def operands(x: s.Scalar) -> list[s.Scalar]:
    """What it is made of, in order."""
    if isinstance(x, s.TextFunction):
        return [x.x, *x.arguments]
    return [getattr(x, each.name) for each in dataclasses.fields(x) if isinstance(getattr(x, each.name), s.Scalar)]


def passed_on(x: s.Scalar, within: Any) -> Any:
    """The bounds that a clamp around x gives to what is in x."""
    if within is None or not isinstance(x, s.Round | s.Floor | s.Ceiling | s.Negate | s.Absolute):
        return None
    if isinstance(x, s.Negate | s.Absolute):
        return (-within[1], -within[0] if isinstance(x, s.Negate) else within[1])
    step = Fraction(10) ** -x.digits if isinstance(x, s.Round) else 1
    return (within[0] - step, within[1] + step)


def truncated(unit: str, day: datetime.date) -> datetime.date:
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())
    month = {"day": day.month, "month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return day if unit == "day" else datetime.date(day.year, month, 1)


def number(unit: str, day: datetime.date) -> int:
    start = truncated(unit, day)
    return {
        "day": (start - EPOCH).days, "week": (start - EPOCH).days // 7, "month": start.year * 12 + start.month,
        "quarter": start.year * 4 + start.month // 3, "year": start.year,
    }[unit]  # fmt: skip


def moved(day: datetime.date, count: int, unit: str) -> datetime.date | None:
    if unit in ("day", "week"):
        place = day.toordinal() + count * (7 if unit == "week" else 1)
        return datetime.date.fromordinal(place) if FIRST.toordinal() <= place <= LAST.toordinal() else None
    year, month = divmod(day.year * 12 + day.month - 1 + count * {"month": 1, "quarter": 3, "year": 12}[unit], 12)
    for last in (day.day, 30, 29, 28):
        if 1 <= year <= 9999 and last <= day.day:
            try:
                return datetime.date(year, month + 1, last)
            except ValueError:
                continue
    return None


def holds(condition: Any, row: Mapping[str, Any], domains: Mapping[str, Domain]) -> bool | None:
    """A comparison of a column with a literal, or IS NULL."""
    from cloister.tables import Compare, IsNull

    if isinstance(condition, IsNull):
        return row[condition.column.name] is None
    assert isinstance(condition, Compare)
    left, right = row[condition.left.name], condition.right.value
    if left is None or right is None:
        return None
    return {"<": left < right, "=": left == right, ">=": left >= right}[condition.op] if condition.op != "=" else left == right


def prepared_rows(source: Any, columns: Mapping[str, Domain]) -> Prepared:
    """The rows of a source, prepared."""
    from cloister.tables import PrivateTable

    return prepare(PrivateTable(source, columns=columns), secret="0")
