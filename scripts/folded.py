"""Rows that say nearly the same, written once: how docs/benchmarks.md stays readable.

Neighbours whose words repeat stand under one line, which has what their names begin with and what their details share; `…` in it
are the places that each row fills, in order. `unfolded` is the exact opposite, so no word of a result is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache

__all__ = ["Row", "folded", "unfolded"]

Row = tuple[str, str, str, str]
"""Name, measured, limit, detail."""
HOLE, BETWEEN, EMPTY = "…", " · ", "–"
_MOST = 40
"""The most rows under one line."""
_MARKS = re.compile(r"[^\s,;:]+(?:[,;:]+[^\s,;:]+)*|[,;:]+")


def folded(rows: Sequence[Row]) -> list[Row]:
    """The rows, with a line of no measurement over those that share words: the fewest words in all."""
    best: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(rows) + 1):
        ways = []
        for start in range(max(0, end - _MOST), end):
            part = _together(tuple(rows[start:end]))
            if part is not None:
                ways.append((best[start][0] + sum(len(" | ".join(row).split()) for row in part), start))
        best.append(min(ways))
    cuts = [len(rows)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    found: list[Row] = []
    for start, end in zip(cuts[:0:-1], cuts[-2::-1], strict=True):
        found += _together(tuple(rows[start:end])) or ()
    return found


def unfolded(lines: Sequence[Row]) -> Iterator[Row]:
    """The rows as they were."""
    head, shared = "", ""
    for name, measured, limit, detail in lines:
        if not measured:
            head, shared = name.strip("*"), detail
        elif name.startswith(HOLE):
            yield head.removesuffix(HOLE) + name.removeprefix(HOLE), measured, limit, _filled(shared, detail)
        else:
            yield name, measured, limit, detail


@cache
def _together(rows: tuple[Row, ...]) -> tuple[Row, ...] | None:
    """Rows under one line; nothing where they cannot stand under one and be read back."""
    if len(rows) == 1:
        return rows
    names = [row[0].split(" ") for row in rows]
    same = 0
    while all(len(name) > same + 1 and name[same] == names[0][same] for name in names):
        same += 1
    shared, details = _parted([row[3] for row in rows]) if same else ("", [])
    if not details:
        return None
    found = [(f"**{' '.join(names[0][:same])} {HOLE}**", "", "", shared)]
    for name, row, detail in zip(names, rows, details, strict=True):
        found.append((HOLE + " ".join(name[same:]), row[1], row[2], detail))
    return tuple(found) if list(unfolded(found)) == list(rows) else None


def _parted(texts: list[str]) -> tuple[str, list[str]]:
    """What texts share, with `…` for the rest, and the rest of each; no rest at all where it cannot be put back."""
    parts = [_MARKS.findall(text) for text in texts]
    shared = _shared(parts)
    fills = [_fills(part, shared) for part in parts]
    return _joined(shared), [BETWEEN.join(fill) for fill in fills if fill is not None] if None not in fills else []


def _shared(parts: list[list[str]]) -> list[str]:
    """The words of the first that all have, in order, with `…` for the rest; a single word between others is in the rest."""
    first = parts[0]
    kept = [True] * len(first)
    for other in parts[1:]:
        here = [False] * len(first)
        for block in SequenceMatcher(None, first, other, autojunk=False).get_matching_blocks():
            here[block.a : block.a + block.size] = [True] * block.size
        kept = [before and now for before, now in zip(kept, here, strict=True)]
    found: list[str] = []
    place = 0
    while place < len(first):
        end = place
        while end < len(first) and kept[end]:
            end += 1
        if end - place >= 2 or (place == 0 and end == len(first)):
            found += first[place:end]
        elif not found or found[-1] != HOLE:
            found.append(HOLE)
        place = max(end, place + 1)
    longer = any(part[-1:] != found[-1:] for part in parts)
    return [*found, HOLE] if longer and found[-1:] != [HOLE] else found


def _fills(detail: list[str], shared: list[str]) -> list[str] | None:
    """What one row has in the places; nothing where it has not the words between them."""
    runs: list[list[str]] = [[]]
    for word in shared:
        if word == HOLE:
            runs.append([])
        else:
            runs[-1].append(word)
    if detail[: len(runs[0])] != runs[0]:
        return None
    place, found = len(runs[0]), []
    for number, run in enumerate(runs[1:], 1):
        if number == len(runs) - 1:
            at = len(detail) - len(run)
        else:
            at = next((at for at in range(place, len(detail)) if detail[at : at + len(run)] == run), -1)
        if at < place or detail[at : at + len(run)] != run:
            return None
        found.append(_joined(detail[place:at]) or EMPTY)
        place = at + len(run)
    return found if place == len(detail) else None


def _filled(shared: str, detail: str) -> str:
    fills = iter(detail.split(BETWEEN))
    words: list[str] = []
    for word in _MARKS.findall(shared):
        if word == HOLE:
            fill = next(fills, "")
            words += [] if fill == EMPTY else _MARKS.findall(fill)
        else:
            words.append(word)
    return _joined(words)


def _joined(words: Sequence[str]) -> str:
    return re.sub(r" ([,;:]+)(?= |$)", r"\1", " ".join(words))
