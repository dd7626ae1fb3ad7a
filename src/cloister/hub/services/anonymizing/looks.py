"""Twenty rows as they are and as they would leave, side by side, and what each level of a column looks like: for the owner alone.

Rows are taken evenly from the whole table. They are a part of a trial, so they are encrypted with it, gone after a week, and
decided on at each look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.anonymize.frames import Frame
    from cloister.anonymize.hierarchies.ladder import Ladder
    from cloister.anonymize.recoding import Recoded

ROWS, MOST_COLUMNS = 20, 12
_LONGEST = 60


def places_of(rows: int) -> list[int]:
    """Which rows are looked at.

    >>> places_of(3), places_of(39)[:3], len(places_of(1000))
    ([0, 1, 2], [0, 2, 4], 20)
    """
    few = min(rows, ROWS)
    return [place * (rows - 1) // max(few - 1, 1) for place in range(few)]


def rows_before(frame: Frame, columns: Sequence[str]) -> dict[str, Any]:
    """The rows as they are, in the columns that leave: quasi-identifiers first."""
    shown = list(columns)[:MOST_COLUMNS]
    places = places_of(frame.rows)
    lines = [[_text(frame.data[name][place]) for name in shown] for place in places]
    return {"columns": shown, "rows": lines, "more": len(columns) - len(shown)}


def rows_after(frame: Frame, recoded: Recoded, columns: Sequence[str]) -> list[list[str | None] | None]:
    """The same rows as they would leave; None for one that is suppressed."""
    lines: list[list[str | None] | None] = []
    for place in places_of(frame.rows):
        if recoded.suppressed[place]:
            lines.append(None)
            continue
        found = []
        for name in list(columns)[:MOST_COLUMNS]:
            column = recoded.columns.get(name)
            found.append(_text(frame.data[name][place] if column is None else column.labels[column.codes[place]]))
        lines.append(found)
    return lines


def levels_in_words(ladders: Mapping[str, Ladder]) -> dict[str, list[str]]:
    """What a value looks like at each level of a column: one of its labels, from the middle. Level 0 is the values themselves."""
    return {
        name: [(_text(labels[len(labels) // 2]) or "") if len(labels) else "" for labels in ladder.labels[: ladder.height]]
        for name, ladder in ladders.items()
    }


def _text(value: Any) -> str | None:
    from cloister.anonymize.hierarchies.levels import text_of

    if value is None:
        return None
    told = value if isinstance(value, str) else text_of(value)
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"
