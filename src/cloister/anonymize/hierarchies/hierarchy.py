"""`Hierarchy`: a rule by which values become coarser, and the ways to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished, text_of
from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    from cloister.anonymize.hierarchies.table import Written


class Hierarchy(ABC):
    """How the values of a column become coarser, level by level, until nothing is said ("*").

    A hierarchy is a rule; `ladder` works it out for the values of a column, checks that every level only joins what the level
    below holds apart, and names the value that is in the way.

    >>> from cloister.anonymize.encoded import encode
    >>> from cloister.anonymize.frames import read_frame
    >>> column = encode(read_frame({"age": [31, 34, 58]}), ["age"]).columns["age"]
    >>> ladder = Hierarchy.intervals(10, 20, 40).ladder(column)
    >>> [ladder.labels[level] for level in range(ladder.height)]
    [[31, 34, 58], ['30–39', '50–59'], ['20–39', '40–59'], ['0–39', '40–79'], ['*']]
    """

    @abstractmethod
    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The hierarchy of a column's values; `table` is for hierarchies that learn from the other columns."""

    @abstractmethod
    def describe(self) -> str:
        """What it is, in a line."""

    @staticmethod
    def intervals(
        *widths: float,
        cuts: Sequence[Sequence[float]] = (),
        origin: float = 0,
        low: float | None = None,
        high: float | None = None,
    ) -> Hierarchy:
        """Intervals of numbers, each width a multiple of the one before; or `cuts`, a list of borders for each level.

        With `low` and `high` values outside of them are joined from the first level on ("under 18", "90 and over"), and for whole
        numbers every number between them counts as a leaf, whether it occurs or not.

        >>> print(Hierarchy.intervals(5, 10, low=18, high=90).describe())
        intervals of 5, 10 from 18 to 90
        """
        from cloister.anonymize.hierarchies.intervals import Cuts, Intervals

        if cuts:
            return Cuts(cuts=tuple(tuple(cut if isinstance(cut, int) else float(cut) for cut in level) for level in cuts))
        return Intervals(widths=tuple(float(width) for width in widths), origin=float(origin), low=low, high=high)

    @staticmethod
    def dates(*steps: str) -> Hierarchy:
        """Dates by month, quarter, half, year, decade, century, in that order or some of them.

        >>> print(Hierarchy.dates("month", "year").describe())
        dates by month, year
        """
        from cloister.anonymize.hierarchies.dates import Dates

        return Dates(steps=steps or ("month", "quarter", "year", "decade"))

    @staticmethod
    def masking(*shown: int, side: str = "right", character: str = "*") -> Hierarchy:
        """Texts of which fewer and fewer characters are shown: `masking(4, 3, 1)` shows 4, then 3, then 1; all but one, all but
        two, … when nothing is said. `side` is the side that is masked.

        >>> print(Hierarchy.masking(3, 2).describe())
        masked from the right: 3, 2 characters shown
        """
        from cloister.anonymize.hierarchies.masking import Masking

        return Masking(shown=shown, side=side, character=character)

    @staticmethod
    def function(*levels: Callable[[Any], Any]) -> Hierarchy:
        """A function for each level, from a value to its label.

        >>> print(Hierarchy.function(lambda town: town[0]).describe())
        1 function
        """
        return Mapped(levels=levels)

    @staticmethod
    def of(levels: Mapping[Any, Sequence[Any] | Any] | Iterable[Sequence[Any]]) -> Written:
        """Levels written down: a dictionary from each value to its labels, or rows that begin with the value.

        >>> pets = Hierarchy.of({"cat": ["mammal", "*"], "dog": ["mammal", "*"], "owl": ["bird", "*"]})
        >>> print(pets.describe())
        3 values on 3 levels
        """
        from cloister.anonymize.hierarchies.table import Written

        return Written.of(levels)

    @staticmethod
    def read_csv(path: str | Path, *, delimiter: str | None = None) -> Written:
        """Levels from a CSV file in ARX's layout: a line for each value, the value first, then its labels, coarser and coarser.

        Commas, semicolons and tabs are told apart; a first line that begins with `level_0` is a heading.
        """
        from cloister.anonymize.hierarchies.table import Written, read_lines

        return Written.of(read_lines(Path(path), delimiter))

    @staticmethod
    def learnt(*about: str, groups: Sequence[int] = ()) -> Hierarchy:
        """Groups of categories that behave alike in the columns `about` (all other quasi-identifiers when left out).

        >>> print(Hierarchy.learnt("income", groups=(8, 4, 2)).describe())
        learnt groups (8, 4, 2) that keep what is known of income
        """
        from cloister.anonymize.hierarchies.learnt import Learnt

        return Learnt(about=about, groups=tuple(groups))

    @staticmethod
    def flat() -> Hierarchy:
        """Shown, or not shown.

        >>> print(Hierarchy.flat().describe())
        shown or not shown
        """
        return Mapped(levels=())


@dataclass(frozen=True)
class Mapped(Hierarchy):
    """Labels by functions, one for each level; none at all: shown or not shown."""

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
