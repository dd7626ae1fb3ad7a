"""Intervals of numbers: of equal widths, or between given borders."""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished
from cloister.errors import InvalidParameter

_MOST_LEAVES = 1_000_000


def interval_label(low: float | Fraction, high: float | Fraction, *, whole: bool) -> str:
    """What an interval is called: its last number is inside for whole numbers, and outside for others.

    >>> interval_label(20, 30, whole=True), interval_label(0, 0.5, whole=False), interval_label(-math.inf, 5, whole=True)
    ('20–29', '[0, 0.5)', 'under 5')
    """
    if low == -math.inf:
        return f"under {_written(high)}"
    if high == math.inf:
        return f"{_written(low)} and over"
    if whole and low == int(low) and high == int(high):
        return f"{int(low)}" if high - low == 1 else f"{int(low)}–{int(high) - 1}"
    return f"[{_written(low)}, {_written(high)})"


def _written(number: float | Fraction) -> str:
    """A border in few digits where these are the border, else in as many as tell it from every other."""
    short = f"{float(number):.12g}"
    if Fraction(short) == number:
        return short
    return str(int(number)) if number == int(number) else repr(float(number))


def _exact(number: Any) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(str(number))


@dataclass(frozen=True)
class Intervals(Hierarchy):
    """Intervals of widths that are multiples of one another."""

    widths: tuple[float, ...]
    origin: float = 0.0
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        wrong = next((width for width in self.widths if not math.isfinite(width) or width <= 0), None)
        if not self.widths or wrong is not None:
            raise InvalidParameter(
                f"The intervals {self.widths} are invalid",
                why="a width is not a positive number",
                instead="Hierarchy.intervals(5, 10, 20)",
            )
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            if wide <= narrow or abs(wide / narrow - round(wide / narrow)) > 1e-9:
                raise InvalidParameter(
                    f"The intervals {self.widths} are invalid",
                    why=f"{wide:g} is not a multiple of {narrow:g}, so an interval of one would lie in two of the other",
                    instead=f"Hierarchy.intervals({narrow:g}, {2 * narrow:g}, {4 * narrow:g})",
                )
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InvalidParameter(
                f"low={self.low}, high={self.high} is invalid",
                why="low is not under high",
                instead=f"low={self.high}, high={self.low}",
            )

    def describe(self) -> str:
        """Widths and bounds."""
        ends = f" from {self.low:g}" if self.low is not None else ""
        ends += f" to {self.high:g}" if self.high is not None else ""
        return f"intervals of {', '.join(f'{width:g}' for width in self.widths)}{ends}"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The intervals of a column's numbers."""
        values = _numbers(column)
        whole = column.kind == "integer"
        return finished(column, self._labels(values, whole=whole), self._leaves(values, whole=whole))

    def _leaves(self, values: Sequence[Any], *, whole: bool) -> list[list[Any]] | None:
        if self.low is None or self.high is None or not whole or self.high - self.low > _MOST_LEAVES:
            return None
        inside = set(range(math.ceil(self.low), math.floor(self.high) + 1)) | {int(value) for value in values}
        domain = sorted(inside)
        return [list(domain), *self._labels(domain, whole=True)]

    @cached_property
    def _steps(self) -> list[int]:
        """How many of the narrowest intervals one of each level holds."""
        steps = [1]
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            steps.append(steps[-1] * round(wide / narrow))
        return steps

    @cached_property
    def _narrowest(self) -> Fraction:
        return _exact(self.widths[-1]) / self._steps[-1]

    def _labels(self, values: Sequence[Any], *, whole: bool) -> list[list[str]]:
        """Of each level the label of each value."""
        under = "" if self.low is None else interval_label(-math.inf, self.low, whole=whole)
        over = "" if self.high is None else f"over {_written(self.high)}"
        beyond = [
            under if self.low is not None and value < self.low else over if self.high is not None and value > self.high else ""
            for value in values
        ]
        places = [self._place(value) for value in values]
        levels = []
        for step in self._steps:
            width, known = self._narrowest * step, dict[int, str]()
            for each in {place // step for place in places}:
                low = _exact(self.origin) + each * width
                known[each] = interval_label(low, low + width, whole=whole)
            levels.append([out or known[place // step] for out, place in zip(beyond, places, strict=True)])
        return levels

    def _place(self, value: Any) -> int:
        """Which of the narrowest intervals has it. Where floats would decide that by their own rounding, fractions do."""
        rough = (float(value) - self.origin) / float(self._narrowest)
        if abs(rough) < 1e6 and abs(rough - round(rough)) > 1e-6:
            return math.floor(rough)
        return math.floor((_exact(value) - _exact(self.origin)) / self._narrowest)


@dataclass(frozen=True)
class Cuts(Hierarchy):
    """Intervals between given borders; each level's borders are among those of the level below."""

    cuts: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for number, level in enumerate(self.cuts):
            if not level or any(math.isnan(cut) for cut in level) or list(level) != sorted(set(level)):
                raise InvalidParameter(
                    f"The borders {list(level)} are invalid", why="they do not rise", instead="cuts=[[18, 30, 45, 65], [45]]"
                )
            lost = sorted(set(level) - set(self.cuts[number - 1])) if number else []
            if lost:
                raise InvalidParameter(
                    f"The borders {list(level)} are invalid",
                    why=f"{lost[0]:g} is not a border of the level below, so an interval there would lie in two of this one",
                    instead="cuts=[[18, 30, 45, 65], [45]]",
                )

    def describe(self) -> str:
        """How many borders each level has."""
        return f"intervals between {', '.join(str(len(level)) for level in self.cuts)} borders"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The intervals of a column's numbers."""
        values = _numbers(column)
        whole = column.kind == "integer"
        levels = []
        for level in self.cuts:
            ends = [-math.inf, *level, math.inf]
            places = [bisect.bisect_right(level, value) for value in values]
            levels.append([interval_label(ends[place], ends[place + 1], whole=whole) for place in places])
        return finished(column, levels)


def _numbers(column: EncodedColumn) -> list[Any]:
    known = len(column) - (column.missing is not None)
    if column.kind not in ("integer", "real") and known:
        raise InvalidParameter(
            f"The intervals of {column.name!r} are invalid",
            why=f"its values are of the kind {column.kind}",
            instead="Hierarchy.dates(…), Hierarchy.masking() or Hierarchy.of({…})",
        )
    return column.values[:known]
