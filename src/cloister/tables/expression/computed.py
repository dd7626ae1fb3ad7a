"""Domains that only computed columns have: whole multiples of a step, and periods of the calendar.

A computed number is `code * step` for a rational step and bounds that follow from the bounds of the columns, so the step may be
any fraction (a third of a euro) and the range may be a single value, which no owner would declare. A truncated date is the number
of its period, so months make a key of twelve groups a year and not of 365.
"""

import datetime
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import InvalidDeclaration
from cloister.privacy.rational import exact, text_of
from cloister.tables.declaring.columns import Domain
from cloister.tables.sourcing.reading import EPOCH, read_days, read_number

LARGEST_CODE = 2**62 - 2
"""The largest code of a computed column, as of a declared one."""

UNITS = ("day", "week", "month", "quarter", "year")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped(Domain):
    """The numbers code * step for the codes from `first` to `last`.

    >>> third = Stepped(first=0, last=30, step_size=Fraction(1, 3))
    >>> third.decode(3), third.size, third.encode(2), third.encode(100)
    (1.0, 31, 6, 30)
    """

    first: int
    last: int
    step_size: Fraction
    nullable: bool = False

    kind: ClassVar[str] = "real"

    def __post_init__(self) -> None:
        if self.first > self.last or self.step_size <= 0 or max(abs(self.first), abs(self.last)) > LARGEST_CODE:
            raise InvalidDeclaration(
                f"{type(self).__name__} is invalid",
                why="it needs first <= last within ±2^62 and a step greater than 0",
                instead="Stepped(first=0, last=10, step_size=Fraction(1, 2))",
            )

    @property
    def low_code(self) -> int:
        """The first code."""
        return self.first

    @property
    def high_code(self) -> int:
        """The last code."""
        return self.last

    @property
    def step(self) -> Fraction:
        """How far apart two neighbouring values are."""
        return self.step_size

    def encode(self, value: object) -> int | None:
        """The nearest step within the bounds (ties up); None for what is not a number."""
        number = read_number(value)
        if number is None:
            return None
        if not math.isfinite(number):
            return self.last if number > 0 else self.first
        given = exact(value) if isinstance(value, int | str | Fraction) else Fraction(number)
        return min(max(math.floor(given / self.step_size + Fraction(1, 2)), self.first), self.last)

    def decode(self, code: int) -> int | float:
        """code * step, as the nearest float."""
        return float(int(code) * self.step_size)

    def describe(self) -> dict[str, Any]:
        """Kind, exact bounds and step, and NULL handling."""
        return {
            "kind": self.kind,
            "low": text_of(self.first * self.step_size),
            "high": text_of(self.last * self.step_size),
            "step": text_of(self.step_size),
            "nullable": self.nullable,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedInteger(Stepped):
    """Whole numbers, all multiples of a whole step.

    >>> decades = SteppedInteger(first=1, last=9, step_size=Fraction(10))
    >>> decades.values()
    (10, 20, 30, 40, 50, 60, 70, 80, 90)
    """

    kind: ClassVar[str] = "integer"

    def decode(self, code: int) -> int:
        """code * step."""
        return int(int(code) * self.step_size)


@dataclass(frozen=True, slots=True)
class Periods(Domain):
    """Weeks (from Monday), months, quarters or years; a value is the first day of its period.

    The code counts periods: weeks since that of 1970-01-01; months, quarters and years since the year 0.

    >>> months = Periods("month", 2026 * 12, 2026 * 12 + 11)
    >>> months.size, months.decode(2026 * 12 + 1), months.encode("2026-02-17") == 2026 * 12 + 1
    (12, datetime.date(2026, 2, 1), True)
    """

    unit: str
    first: int
    last: int
    nullable: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        lowest, highest = (period_of(self.unit, (day - EPOCH).days) for day in (datetime.date.min, datetime.date.max))
        if self.unit not in UNITS[1:] or not lowest <= self.first <= self.last <= highest:
            raise InvalidDeclaration(
                f"Periods({self.unit!r}, …) is invalid",
                why="it needs a unit among week, month, quarter and year, and first <= last within the years 1 to 9999",
                instead='Periods("year", 1990, 2026)',
            )

    @property
    def low_code(self) -> int:
        """The first period."""
        return self.first

    @property
    def high_code(self) -> int:
        """The last period."""
        return self.last

    def encode(self, value: object) -> int | None:
        """The period in which a day lies, clamped into the bounds; None for what is not a day."""
        days = read_days(value)
        return None if days is None else min(max(period_of(self.unit, days), self.first), self.last)

    def decode(self, code: int) -> datetime.date:
        """The first day of the period."""
        return EPOCH + datetime.timedelta(days=day_of(self.unit, int(code)))

    def position(self, days: Fraction) -> Fraction:
        """Where a day lies on the scale of codes: at its period if it begins one, else halfway to the next.

        >>> Periods("year", 2020, 2026).position(Fraction(18262)), Periods("year", 2020, 2026).position(Fraction(18263))
        (Fraction(2020, 1), Fraction(4041, 2))
        """
        day = math.floor(days)
        period = period_of(self.unit, day)
        return Fraction(period) if day_of(self.unit, period) == days else Fraction(2 * period + 1, 2)

    def describe(self) -> dict[str, Any]:
        """Kind, unit, the first days of the first and the last period, and NULL handling."""
        return {
            "kind": "date",
            "unit": self.unit,
            "low": self.decode(self.first).isoformat(),
            "high": self.decode(self.last).isoformat(),
            "nullable": self.nullable,
        }


def period_of(unit: str, days: int) -> int:
    """The number of the period in which a day lies, given in days since 1970-01-01.

    >>> period_of("month", 0), period_of("quarter", 0), period_of("year", 0), period_of("week", 4), period_of("week", 3)
    (23640, 7880, 1970, 1, 0)
    """
    if unit not in _MONTHS:
        return (days + 3) // 7 if unit == "week" else days
    day = EPOCH + datetime.timedelta(days=days)
    return (12 * day.year + day.month - 1) // _MONTHS[unit]


def day_of(unit: str, period: int) -> int:
    """The first day of a period, in days since 1970-01-01.

    >>> day_of("week", 1), day_of("year", 1970), day_of("month", 1970 * 12 + 1)
    (4, 0, 31)
    """
    if unit not in _MONTHS:
        return 7 * period - 3 if unit == "week" else period
    year, month = divmod(period * _MONTHS[unit], 12)
    return (datetime.date(year, month + 1, 1) - EPOCH).days
