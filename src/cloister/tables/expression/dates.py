"""Parts of dates, periods, shifts and differences: the proleptic Gregorian calendar, by arithmetic on days since 1970-01-01.

The engine says year, month and day of a date; all else is arithmetic on whole numbers. A shift by months keeps the day of the
month, or takes the last where the month is shorter (31 January + 1 month = 28 or 29 February). What would leave the years 1 to
9999 is NULL. A difference counts the boundaries between the two: `year` from 2025-12-31 to 2026-01-01 is 1. Weeks begin on
Monday; `dayofweek` counts from Sunday = 0, `isodow` from Monday = 1 to Sunday = 7.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.tables.declaring.moments import DAY
from cloister.tables.expression.computed import UNITS, day_of, period_of
from cloister.tables.expression.forms import Form, Interval, Listed, Moments, Nothing, Number, integers, joined
from cloister.tables.expression.operations import Operations
from cloister.tables.expression.scalar import Domains, Scalar
from cloister.tables.expression.scope import Scope
from cloister.tables.sourcing.reading import EPOCH, read_days

PARTS = ("year", "quarter", "month", "day", "dayofweek", "isodow", "dayofyear", "hour", "minute")
_FIRST_DAY, _LAST_DAY = ((day - EPOCH).days for day in (datetime.date.min, datetime.date.max))
_LIFT = 200_000  # weeks before 1970 that make every day positive
_POSITIVE = 7 * _LIFT * DAY  # and in seconds
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_OF_DAY = {"hour": (3600, 24), "minute": (60, 60)}
_BOUNDS = {"quarter": (1, 4), "month": (1, 12), "day": (1, 31), "dayofweek": (0, 6), "isodow": (1, 7), "dayofyear": (1, 366)}


def moments_form(scalar: Scalar, domains: Domains) -> Moments:
    """A part as a date; a text constant that is a day counts as one."""
    form = scalar.form(domains)
    if isinstance(form, Moments):
        return form
    if isinstance(form, Nothing):
        return Moments(unit="day", low=0, high=0, build=form.build)
    if isinstance(form, Listed) and len(form.options) == 1 and form.certain:
        days = read_days(form.options[0])
        if days is not None:
            return Moments(unit="day", low=days, high=days, certain=True, build=lambda scope: scope.operations.whole(days))
    raise UnsupportedQuery("A date function is not supported", why="its argument is not a date", instead="CAST(… AS DATE)")


def date_of(days: int) -> datetime.date:
    """The day, given in days since 1970-01-01."""
    return datetime.date.fromordinal(EPOCH.toordinal() + days)


def first_of_month(ops: Operations, month: Any) -> Any:
    """The first day of a month, given as 12 * year + month - 1 from the year 1 on: years begin in March, so that the leap day is
    the last of its year.
    """
    since = month - ops.whole(2)
    year = _over(ops, since, 12)
    days = year * ops.whole(365) + _over(ops, year, 4) - _over(ops, year, 100) + _over(ops, year, 400)
    of_year = _over(ops, ops.remainder(since, ops.whole(12)) * ops.whole(153) + ops.whole(2), 5)
    return days + of_year - ops.whole(719_468)


def _over(ops: Operations, x: Any, by: int) -> Any:
    return ops.quotient(x, ops.whole(by), wide=False)


def _month(ops: Operations, days: Any) -> Any:
    return ops.year(days) * ops.whole(12) + ops.month(days) - ops.whole(1)


def _period(ops: Operations, unit: str, days: Any) -> Any:
    if unit == "day":
        return days
    if unit == "week":
        return _over(ops, days + ops.whole(3 + 7 * _LIFT), 7) - ops.whole(_LIFT)
    if unit == "year":
        return ops.year(days)
    return _month(ops, days) if unit == "month" else _over(ops, _month(ops, days), 3)


def to_days(x: Moments) -> Moments:
    """Periods as their first days, seconds as the day in which they lie."""
    if x.unit == "day":
        return x

    def build(scope: Scope) -> Any:
        ops, period = scope.operations, x.build(scope)
        if x.unit == "second":
            return _over(ops, period + ops.whole(_POSITIVE), DAY) - ops.whole(_POSITIVE // DAY)
        if x.unit == "week":
            return period * ops.whole(7) - ops.whole(3)
        return first_of_month(ops, period * ops.whole(_MONTHS[x.unit]))

    low, high = (end // DAY if x.unit == "second" else day_of(x.unit, end) for end in (x.low, x.high))
    return replace(x, unit="day", low=low, high=high, build=build, weight=5 * x.weight + 24)


def to_periods(x: Moments, unit: str) -> Moments:
    """The periods in which days lie."""
    if x.unit == unit:
        return x
    days = to_days(x)
    if unit == "day":
        return days
    return replace(
        days,
        unit=unit,
        low=period_of(unit, days.low),
        high=period_of(unit, days.high),
        build=lambda scope: _period(scope.operations, unit, days.build(scope)),
        weight=2 * days.weight + 8,
    )


def _check_unit(unit: str, name: str, units: tuple[str, ...] = UNITS) -> None:
    if unit not in units:
        raise UnsupportedQuery(
            f"{name} of {unit!r} is not supported", why=f"known are {', '.join(units)}", instead=f"{name}('month', born)"
        )


@dataclass(frozen=True)
class DatePart(Scalar):
    """Year, quarter, month, day, dayofweek, isodow or dayofyear of a date, and of a moment the hour or minute, too.

    >>> from cloister.tables.declaring.columns import Date
    >>> from cloister.tables.expression.scalars import Ref
    >>> DatePart("month", Ref("born")).domain({"born": Date("2026-02-01", "2026-04-30")})
    Integer(low=2, high=4, nullable=False)
    """

    stored: ClassVar[str] = "datepart"

    part: str
    x: Scalar

    def __post_init__(self) -> None:
        _check_unit(self.part, "EXTRACT", PARTS)
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A whole number."""
        part = self.part
        if part in _OF_DAY:
            return self._of_day(moments_form(self.x, domains), *_OF_DAY[part])
        x = to_days(moments_form(self.x, domains))
        low, high = _part_bounds(self.part, x.low, x.high)

        def build(scope: Scope) -> Any:
            ops, days = scope.operations, x.build(scope)
            if part in ("dayofweek", "isodow"):
                shift, plus = (4, 0) if part == "dayofweek" else (3, 1)
                return ops.remainder(days + ops.whole(shift + 7 * _LIFT), ops.whole(7)) + ops.whole(plus)
            if part == "dayofyear":
                return days - first_of_month(ops, ops.year(days) * ops.whole(12)) + ops.whole(1)
            if part == "quarter":
                return _over(ops, ops.month(days) + ops.whole(2), 3)
            return {"year": ops.year, "month": ops.month, "day": ops.day}[part](days)

        return integers(low, high, build, x, weight=6 * x.weight + 24)

    def _of_day(self, x: Moments, seconds: int, within: int) -> Number:
        """How many times so many seconds have passed, of as many as there are until it begins again."""
        if x.unit != "second":
            raise UnsupportedQuery(
                "A part of a date is not supported", why="a date has no time of day", instead="the column as cl.Moment(…)"
            )
        low, high = (end // seconds for end in (x.low, x.high))
        low, high = (low % within, high % within) if high // within == low // within else (0, within - 1)

        def build(scope: Scope) -> Any:
            ops = scope.operations
            passed = _over(ops, x.build(scope) + ops.whole(_POSITIVE), seconds)
            return ops.remainder(passed, ops.whole(within))

        return integers(low, high, build, x, weight=x.weight + 4)


def _part_bounds(part: str, low: int, high: int) -> tuple[int, int]:
    first, last = date_of(low), date_of(high)
    if part == "year":
        return first.year, last.year
    if first.year == last.year and part in ("quarter", "month"):
        over = 3 if part == "quarter" else 1
        return (first.month - 1) // over + 1, (last.month - 1) // over + 1
    return _BOUNDS[part]


@dataclass(frozen=True)
class DateTrunc(Scalar):
    """The period in which a date lies, shown as its first day: a key of as many groups as there are periods.

    >>> from cloister.tables.declaring.columns import Date
    >>> from cloister.tables.expression.scalars import Ref
    >>> DateTrunc("month", Ref("born")).domain({"born": Date("2026-01-15", "2026-12-31")}).size
    12
    """

    stored: ClassVar[str] = "datetrunc"

    unit: str
    x: Scalar

    def __post_init__(self) -> None:
        _check_unit(self.unit, "DATE_TRUNC")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Periods."""
        return to_periods(moments_form(self.x, domains), self.unit)


@dataclass(frozen=True)
class DateShift(Scalar):
    """x moved by a whole number of days, weeks, months, quarters or years; NULL beyond the years 1 to 9999.

    >>> from cloister.tables.declaring.columns import Date
    >>> from cloister.tables.expression.scalars import Ref
    >>> DateShift(Ref("born"), 1, "month").domain({"born": Date("2026-01-31", "2026-12-31")})
    Date('2026-02-28', '2027-01-31')
    """

    stored: ClassVar[str] = "dateshift"

    x: Scalar
    count: int
    unit: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_unit(self.unit, "DATE_ADD")
        if isinstance(self.count, bool) or not isinstance(self.count, int) or abs(self.count) > 4_000_000:
            raise InvalidParameter(
                f"count={self.count!r} is invalid", why="it is not a whole number within ±4,000,000", instead="INTERVAL 3 MONTH"
            )

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Days; those that would leave the calendar are made NULL before they are moved."""
        x = moments_form(self.x, domains)
        if x.unit == "second":
            raise UnsupportedQuery(
                "A shift of a moment is not supported",
                why="only days are shifted",
                instead="CAST(at AS DATE) + INTERVAL '3' MONTH",
            )
        months, days = _MONTHS.get(self.unit, 0) * self.count, _DAYS.get(self.unit, 0) * self.count
        whole = _whole_periods(x.unit, self.unit, self.count)
        if whole is not None:
            return _shifted_periods(x, whole)
        kept = _kept(to_days(x), *(_movable(months) if months else (_FIRST_DAY - days, _LAST_DAY - days)))

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, kept.build(scope)
            if months == 0:
                return at + ops.whole(days)
            month = _month(ops, at) + ops.whole(months)
            same_day = first_of_month(ops, month) + ops.day(at) - ops.whole(1)
            return ops.least([same_day, first_of_month(ops, month + ops.whole(1)) - ops.whole(1)])

        low, high = (_moved(day, months) + days for day in (kept.low, kept.high))
        weight = (1 if months == 0 else 22) * kept.weight + 120
        return Moments(unit="day", low=low, high=high, build=build, **joined((kept,), weight))


def _kept(x: Moments, first: int, last: int) -> Moments:
    """The moments from the first to the last, NULL in place of others."""
    low, high = max(x.low, first), min(x.high, last)
    if low > high:
        raise UnsupportedQuery(
            "A shift is not supported", why="every day would leave the years 1 to 9999", instead="fewer of them"
        )
    if (low, high) == (x.low, x.high):
        return x

    def build(scope: Scope) -> Any:
        ops, at = scope.operations, x.build(scope)
        return ops.chosen([((at >= ops.whole(low)) & (at <= ops.whole(high)), at)], ops.nothing())

    return replace(x, low=low, high=high, build=build, certain=False, weight=3 * x.weight)


def _whole_periods(held: str, unit: str, count: int) -> int | None:
    """By how many of its own periods a shift moves what is held in periods; None where it does not move by whole ones."""
    sizes = _MONTHS if held in _MONTHS else _DAYS
    if held == "day" or unit not in sizes or count * sizes[unit] % sizes[held]:
        return None
    return count * sizes[unit] // sizes[held]


def _shifted_periods(x: Moments, count: int) -> Moments:
    kept = _kept(x, *(period_of(x.unit, day) - count for day in (_FIRST_DAY, _LAST_DAY)))

    def build(scope: Scope) -> Any:
        return kept.build(scope) + scope.operations.whole(count)

    return replace(kept, low=kept.low + count, high=kept.high + count, build=build, weight=3 * x.weight + 4)


def _movable(months: int) -> tuple[int, int]:
    first, after = max(12 - months, 12), min(120_000 - months, 120_000)
    if first >= after:
        return 1, 0
    last = _LAST_DAY if after == 120_000 else day_of("month", after) - 1
    return day_of("month", first), last


def _moved(days: int, months: int) -> int:
    if months == 0:
        return days
    day = date_of(days)
    month = 12 * day.year + day.month - 1 + months
    end = _LAST_DAY if month == 119_999 else day_of("month", month + 1) - 1
    return min(day_of("month", month) + day.day - 1, end)


@dataclass(frozen=True)
class DateDiff(Scalar):
    """How many boundaries of days, weeks (Mondays), months, quarters or years lie between two dates.

    >>> from cloister.tables.declaring.columns import Date
    >>> from cloister.tables.expression.scalars import Const, Ref
    >>> import datetime
    >>> DateDiff("year", Const(datetime.date(2026, 1, 1)), Ref("born")).domain({"born": Date("1990-01-01", "2025-12-31")})
    Integer(low=1, high=36, nullable=False)
    """

    stored: ClassVar[str] = "datediff"

    unit: str
    later: Scalar
    earlier: Scalar

    def __post_init__(self) -> None:
        _check_unit(self.unit, "DATE_DIFF")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The difference of the numbers of the periods."""
        later, earlier = (to_periods(moments_form(each, domains), self.unit) for each in (self.later, self.earlier))
        low, high = later.low - earlier.high, later.high - earlier.low
        return integers(low, high, lambda scope: later.build(scope) - earlier.build(scope), later, earlier)
