"""Dates by month, quarter, half, year, decade, century."""

import datetime
from dataclasses import dataclass

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished
from cloister.errors import InvalidParameter

STEPS = ("day", "month", "quarter", "half", "year", "decade", "century")


@dataclass(frozen=True)
class Dates(Hierarchy):
    """Dates that become coarser by the calendar.

    >>> Dates(steps=("month", "decade")).label(datetime.date(1987, 5, 4), "decade")
    '1980s'
    """

    steps: tuple[str, ...]

    def __post_init__(self) -> None:
        wrong = next((step for step in self.steps if step not in STEPS), None)
        if wrong is not None:
            raise InvalidParameter(
                f"The step {wrong!r} is invalid",
                why="it is not one of " + ", ".join(STEPS),
                instead='Hierarchy.dates("month", "year")',
            )
        if list(self.steps) != sorted(set(self.steps), key=STEPS.index):
            raise InvalidParameter(
                f"The steps {self.steps} are invalid",
                why="they do not become coarser",
                instead=f"Hierarchy.dates({', '.join(repr(step) for step in sorted(set(self.steps), key=STEPS.index))})",
            )

    def describe(self) -> str:
        """Its steps."""
        return f"dates by {', '.join(self.steps)}"

    def label(self, date: datetime.date, step: str) -> str:
        """What a date is called."""
        match step:
            case "day":
                return date.isoformat()[:10]
            case "month":
                return f"{date.year:04}-{date.month:02}"
            case "quarter":
                return f"{date.year:04} Q{(date.month - 1) // 3 + 1}"
            case "half":
                return f"{date.year:04} H{(date.month - 1) // 6 + 1}"
            case "year":
                return f"{date.year:04}"
            case "decade":
                return f"{date.year // 10 * 10:04}s"
            case _:
                return f"{date.year // 100 * 100:04}–{date.year // 100 * 100 + 99:04}"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The steps of a column's dates."""
        known = [value for value in column.values if value is not None]
        if column.kind != "date" and known:
            raise InvalidParameter(
                f"The dates of {column.name!r} are invalid",
                why=f"its values are of the kind {column.kind}",
                instead="a column of dates, or Hierarchy.masking()",
            )
        return finished(column, [[self.label(value, step) for value in known] for step in self.steps])
