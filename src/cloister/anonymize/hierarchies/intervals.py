"""Intervals of numbers: of equal widths, or between given borders."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished
from cloister.errors import InvalidParameter

_MOST_LEAVES = 1_000_000


def interval_label(low: float, high: float, *, whole: bool) -> str:
    """What an interval is called: its last number is inside for whole numbers, and outside for others.

    >>> interval_label(20, 30, whole=True), interval_label(0, 0.5, whole=False), interval_label(-math.inf, 5, whole=True)
    ('20–29', '[0, 0.5)', 'under 5')
    """
    if math.isinf(low):
        return f"under {high:.12g}"
    if math.isinf(high):
        return f"{low:.12g} and over"
    if whole and float(low).is_integer() and float(high).is_integer():
        return f"{low:.0f}" if high - low == 1 else f"{low:.0f}–{high - 1:.0f}"
    return f"[{low:.12g}, {high:.12g})"


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
        levels = [[self._label(value, width, whole=whole) for value in values] for width in self.widths]
        return finished(column, levels, self._leaves(values, whole=whole))

    def _leaves(self, values: Sequence[float], *, whole: bool) -> list[list[Any]] | None:
        if self.low is None or self.high is None or not whole or self.high - self.low > _MOST_LEAVES:
            return None
        inside = set(range(math.ceil(self.low), math.floor(self.high) + 1)) | {int(value) for value in values}
        domain = sorted(inside)
        return [list(domain), *([self._label(value, width, whole=True) for value in domain] for width in self.widths)]

    def _label(self, value: float, width: float, *, whole: bool) -> str:
        if self.low is not None and value < self.low:
            return interval_label(-math.inf, self.low, whole=whole)
        if self.high is not None and value > self.high:
            return f"over {self.high:.12g}"
        place = math.floor((value - self.origin) / width)
        return interval_label(self.origin + place * width, self.origin + (place + 1) * width, whole=whole)


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


def _numbers(column: EncodedColumn) -> list[float]:
    known = len(column) - (column.missing is not None)
    if column.kind not in ("integer", "real") and known:
        raise InvalidParameter(
            f"The intervals of {column.name!r} are invalid",
            why=f"{column.values[0]!r} is not a number",
            instead="Hierarchy.dates(…), Hierarchy.masking() or Hierarchy.of({…})",
        )
    return [float(value) for value in column.numbers[:known]]
