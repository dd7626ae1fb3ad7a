"""Which rows of a source are rows of a table: those whose day lies in a span of days. So one source can be several tables.

The day is read from the source itself, before it is clamped into anybody's bounds and before rows are counted against a cap: what
lies outside is no row of the table, on every engine and for every question, and takes no place of a row that is. A row whose day
is missing, or is none, lies in no span.

Spans that don't overlap have no row in common, and a row is a row of the one in whose days it lies by its own date alone: no
other row, and nobody's question, has a say in it. That is what makes windows of time blocks of their own
(`hub/platform/catalogue/windows.py`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidDeclaration, UnknownColumn
from cloister.tables.declaring.columns import Date

if TYPE_CHECKING:
    from cloister.tables.sourcing.sources import Source

DATED = ("date", "days", "timestamp", "timestamptz", "text", "null")
"""Kinds of columns of a source in which a day can stand."""
_INSTEAD = 'during=("visited", "2026-01-01", "2026-03-31")'


@dataclass(frozen=True, slots=True)
class During:
    """A column of the source that says the day of a row, and the first and the last day that count. A time counts by its day, one
    with a time zone by its day in UTC, whether it is a time or the text of one.

    >>> During("visited", "2026-01-01", "2026-03-31").plain()
    ['visited', '2026-01-01', '2026-03-31']
    >>> During("day", "2026-03-31", "2026-01-01")
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: during=('day', '2026-03-31', '2026-01-01') is invalid: these are not a first and last day.
      Instead: during=("visited", "2026-01-01", "2026-03-31")
    """

    column: str
    first: datetime.date
    last: datetime.date

    def __init__(self, column: str, first: str | datetime.date, last: str | datetime.date) -> None:
        try:
            days: Date | None = Date(first, last)
        except InvalidDeclaration:
            days = None
        if days is None:
            raise _refused((column, first, last), "these are not a first and last day")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "first", days.low)
        object.__setattr__(self, "last", days.high)

    @classmethod
    def of(cls, given: object, source: Source) -> During:
        """What is declared, where the source has such a column."""
        if isinstance(given, During):
            found = given
        elif isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 3:
            found = cls(*given)
        else:
            raise _refused(given, "it is not a column with a first and a last day")
        instead = "the name of the column that says the day, as the source writes it"
        if kind_in(f"during={found.plain()!r} is unknown", found.column, source, instead=instead) not in DATED:
            raise _refused(found.plain(), "the column holds no dates")
        return found

    @property
    def domain(self) -> Date:
        """These days, as the declaration of a column."""
        return Date(self.first, self.last)

    def plain(self) -> list[Any]:
        """As plain data, of which `of` makes the same again."""
        return [self.column, self.first.isoformat(), self.last.isoformat()]


def kind_in(what: str, column: object, source: Source, *, instead: str) -> str:
    """The kind of a column of a source; refused where it has none of this name."""
    if not isinstance(column, str) or column not in source.schema:
        why = f"the source has only {', '.join(map(repr, source.schema))}"
        raise UnknownColumn(what, why=why, instead=instead)
    return source.schema[column]


def _refused(given: object, why: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"during={given!r} is invalid", why=why, instead=_INSTEAD)
