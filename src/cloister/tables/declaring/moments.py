"""A column of moments: a day with a time of day, within declared bounds.

A moment is what the clock of the source shows; one with a time zone is first turned to UTC, as a `Date` is. Fractions of a
second are cut off, and a leap second is the last second of its minute. What lies before the first or after the last moment has
no code: a reading put at the edge would be counted at an hour at which nothing happened.
"""

import datetime
from dataclasses import dataclass
from typing import Any, ClassVar

from cloister.errors import InvalidDeclaration
from cloister.tables.declaring.columns import Domain, check_nullable
from cloister.tables.sourcing.reading import read_days, read_seconds

DAY = 86_400
"""Seconds."""
_INSTEAD = 'cl.Moment("2026-01-01", "2026-03-31")'
_START, _SECOND = datetime.datetime(1970, 1, 1), datetime.timedelta(seconds=1)


@dataclass(frozen=True, slots=True, init=False)
class Moment(Domain):
    """A moment within [low, high], given as ISO text, `datetime.date` or `datetime.datetime`; a day for `high` is meant whole.

    >>> at = Moment("2026-01-01", "2026-03-31")
    >>> at.decode(at.encode("2026-02-03T14:05:59.9")), at.encode("2026-04-01"), at.encode("2026-02-30T10:00")
    (datetime.datetime(2026, 2, 3, 14, 5, 59), None, None)
    >>> at.encode("2026-02-03T01:30+02:00") == at.encode("2026-02-02T23:30Z")
    True
    """

    low: datetime.datetime
    high: datetime.datetime
    nullable: bool

    kind: ClassVar[str] = "moment"

    def __init__(self, low: str | datetime.date, high: str | datetime.date, *, nullable: bool = False) -> None:
        written = f"Moment({low!r}, {high!r})"
        first, last = read_seconds(low), read_seconds(high)
        for name, seconds in (("low", first), ("high", last)):
            if seconds is None:
                raise InvalidDeclaration(f"{written} is invalid", why=f"{name} is not a moment", instead=_INSTEAD)
        assert first is not None
        assert last is not None
        if _is_day(high):
            last += DAY - 1
        if first > last:
            raise InvalidDeclaration(
                f"{written} is invalid", why="the lower bound is above the upper", instead=f"cl.Moment({high!r}, {low!r})"
            )
        check_nullable(nullable)
        object.__setattr__(self, "low", moment_of(first))
        object.__setattr__(self, "high", moment_of(last))
        object.__setattr__(self, "nullable", nullable)

    @property
    def low_code(self) -> int:
        """Seconds from 1970-01-01 to low."""
        return (self.low - _START) // _SECOND

    @property
    def high_code(self) -> int:
        """Seconds from 1970-01-01 to high."""
        return (self.high - _START) // _SECOND

    def encode(self, value: object) -> int | None:
        """Seconds since 1970-01-01; None for what is no moment, or none within the bounds."""
        seconds = read_seconds(value)
        return seconds if seconds is not None and self.low_code <= seconds <= self.high_code else None

    def decode(self, code: int) -> datetime.datetime:
        """The moment."""
        return moment_of(int(code))

    def describe(self) -> dict[str, Any]:
        """Kind, bounds and NULL handling."""
        return {"kind": "moment", "low": self.low.isoformat(), "high": self.high.isoformat(), "nullable": self.nullable}

    def __repr__(self) -> str:
        nullable = ", nullable=True" if self.nullable else ""
        return f"Moment({self.low.isoformat()!r}, {self.high.isoformat()!r}{nullable})"


def _is_day(value: object) -> bool:
    if isinstance(value, str):
        return len(value.strip(" ")) == len("2026-01-31") and read_days(value) is not None
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def moment_of(seconds: int) -> datetime.datetime:
    """The moment, given in seconds since 1970-01-01.

    >>> moment_of(86_399)
    datetime.datetime(1970, 1, 1, 23, 59, 59)
    """
    return _START + datetime.timedelta(seconds=seconds)
