"""Levels written down: by hand, or in a CSV file in ARX's layout."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import MISSING, STAR, Ladder
from cloister.anonymize.hierarchies.levels import text_of
from cloister.errors import InvalidParameter

_ABSENT = ("", "null", "NULL", MISSING)


@dataclass(frozen=True)
class Written(Hierarchy):
    """A line for each value: the value, then its label on each level.

    >>> pets = Written.of({"cat": ["mammal", "*"], "owl": ["bird", "*"]})
    >>> pets.lines
    (('cat', 'mammal', '*'), ('owl', 'bird', '*'))
    """

    lines: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if not self.lines or not self.lines[0]:
            raise InvalidParameter(
                "The hierarchy is invalid", why="it has no value", instead='Hierarchy.of({"cat": ["mammal", "*"]})'
            )
        height = len(self.lines[0])
        seen: dict[str, tuple[str, ...]] = {}
        for line in self.lines:
            if len(line) != height:
                raise InvalidParameter(
                    "The hierarchy is invalid",
                    why=f"{line[0]!r} has {len(line) - 1} levels, and {self.lines[0][0]!r} has {height - 1}",
                    instead="a label for each value on each level",
                )
            if seen.setdefault(line[0], line) != line:
                raise InvalidParameter(
                    "The hierarchy is invalid",
                    why=f"{line[0]!r} stands there twice, with different labels",
                    instead="each value once",
                )

    @classmethod
    def of(cls, levels: Mapping[Any, Sequence[Any] | Any] | Iterable[Sequence[Any]]) -> Written:
        """From a dictionary or from rows."""
        if isinstance(levels, Mapping):
            rows: list[list[Any]] = [
                [value, *(labels if isinstance(labels, list | tuple) else [labels])] for value, labels in levels.items()
            ]
        else:
            rows = [list(row) for row in levels]
        return cls(tuple(tuple("" if each is None else text_of(each) for each in row) for row in rows))

    def write_csv(self, path: str | Path, *, delimiter: str = ";") -> None:
        """Write it as ARX reads it: no heading, semicolons."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(self.lines)

    @property
    def height(self) -> int:
        """How many levels, the values included."""
        return len(self.lines[0])

    def describe(self) -> str:
        """How many values and levels."""
        return f"{len(self.lines)} values on {self.height} levels"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """The levels of a column's values; a value that has no line is refused by name."""
        found = {line[0]: line for line in self.lines}
        tops = {line[-1] for line in self.lines}
        picked: list[tuple[str, ...]] = []
        for value in column.values:
            line = found.get(text_of(value)) if value is not None else None
            if value is None:
                line = next((found[name] for name in _ABSENT if name in found), None) or self._absent(tops)
            if line is None:
                raise InvalidParameter(
                    f"The hierarchy of {column.name!r} is invalid",
                    why=f"it has no line for the value {value!r}",
                    instead=f"a line that begins with {text_of(value)!r}",
                )
            picked.append(line)
        levels = [[line[number] for line in picked] for number in range(1, self.height)]
        leaves: list[list[Any]] = [[line[number] for line in self.lines] for number in range(self.height)]
        by_text = {text_of(value): value for value in column.values if value is not None}
        leaves[0] = [by_text.get(name, name) for name in leaves[0]]
        if column.missing is not None and not any(name in found for name in _ABSENT):
            absent = self._absent(tops)
            leaves = [[*level, absent[number] if number else None] for number, level in enumerate(leaves)]
        return Ladder.of(column.name, column.values, levels, leaf_levels=leaves)

    def _absent(self, tops: set[str]) -> tuple[str, ...]:
        top = next(iter(tops)) if len(tops) == 1 else STAR
        return ("", *([MISSING] * (self.height - 2)), top) if self.height > 1 else ("",)


def read_lines(path: Path, delimiter: str | None = None) -> list[list[str]]:
    """The lines of a hierarchy's file, without its heading."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameter(
            f"The hierarchy {path.name!r} is invalid",
            why="it could not be read as a text in UTF-8",
            instead="Hierarchy.read_csv(path)",
        ) from error
    return lines_of(text, delimiter)


def lines_of(text: str, delimiter: str | None = None) -> list[list[str]]:
    """The same from the text of such a file. Its mark is one that parts every line into as many cells.

    >>> lines_of("cat;mammal\\nowl;bird"), lines_of("0,5;0,25–1,5\\n1;0,25–1,5")
    ([['cat', 'mammal'], ['owl', 'bird']], [['0,5', '0,25–1,5'], ['1', '0,25–1,5']])
    """

    def parted(mark: str) -> list[list[str]]:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark) if row]

    first, marks = text.partition("\n")[0], ";,\t；，"
    even = (mark for mark in marks if mark in first and len({len(row) for row in parted(mark)}) == 1)
    rows = parted(delimiter or next(even, None) or max(marks, key=first.count))
    return rows[1:] if rows and rows[0][0].strip().lower() == "level_0" else rows
