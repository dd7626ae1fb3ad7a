"""A function for each level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished, text_of
from cloister.errors import InvalidParameter


@dataclass(frozen=True)
class Mapped(Hierarchy):
    """Labels by functions; none at all: shown or not shown."""

    levels: tuple[Callable[[Any], Any], ...]

    def describe(self) -> str:
        """How many functions."""
        if not self.levels:
            return "shown or not shown"
        return f"{len(self.levels)} function{'s' if len(self.levels) > 1 else ''}"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """What the functions say of a column's values; a value that a function fails on is refused by name."""
        known = [value for value in column.values if value is not None]
        return finished(column, [[self._label(function, value, column.name) for value in known] for function in self.levels])

    def _label(self, function: Callable[[Any], Any], value: Any, name: str) -> str:
        try:
            return text_of(function(value))
        except Exception as error:
            raise InvalidParameter(
                f"The hierarchy of {name!r} is invalid",
                why=f"its function raised {type(error).__name__} for the value {value!r}",
                instead="a function that has a label for every value",
            ) from error
