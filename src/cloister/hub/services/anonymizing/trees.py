"""Hierarchies as people see and change them: as trees, and as lines in ARX's layout."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from cloister.hub.services.anonymizing.order import MOST_LEVELS, hierarchy_of

if TYPE_CHECKING:
    from cloister.anonymize.hierarchies.ladder import Ladder

MOST_LEAVES = 400
"""A tree of more values is no picture any more."""


def tree_of(ladder: Ladder, about: str = "") -> dict[str, Any]:
    """A hierarchy: as a tree, and as lines that can be edited; of very many values only how many. `about`: how it was chosen."""
    values = len(ladder.labels[0])
    small = values <= MOST_LEAVES and ladder.height <= MOST_LEVELS
    return {
        "about": about,
        "values": values,
        "height": ladder.height,
        "lines": _lines(ladder) if small else "",
        "tree": _branches(ladder) if small else [],
    }


def tree_of_lines(name: str, text: str) -> dict[str, Any]:
    """The same of lines that somebody wrote: no row is read. Lines that contradict themselves are refused.

    >>> [each["label"] for each in tree_of_lines("pet", "cat;mammal;*\\ndog;mammal;*\\nowl;bird;*")["tree"][0]["below"]]
    ['bird', 'mammal']
    """
    from cloister.anonymize.hierarchies.ladder import Ladder

    written = hierarchy_of(text)
    lines = list(dict.fromkeys(written.lines))
    levels = [[line[number] for line in lines] for number in range(1, written.height)]
    return tree_of(Ladder.of(name, [line[0] for line in lines], levels), written.describe())


def _lines(ladder: Ladder) -> str:
    from cloister.anonymize.hierarchies.levels import text_of

    text = io.StringIO()
    levels, values = range(ladder.height), range(len(ladder.labels[0]))
    rows = [[text_of(ladder.labels[level][ladder.codes[level][place]]) for level in levels] for place in values]
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()


def _branches(ladder: Ladder) -> list[dict[str, Any]]:
    """Labels with those below them, from the top."""
    from cloister.anonymize.hierarchies.levels import text_of

    below: list[dict[str, Any]] = [{"label": text_of(label), "below": []} for label in ladder.labels[0]]
    for level in range(1, ladder.height):
        above: list[dict[str, Any]] = [{"label": text_of(label), "below": []} for label in ladder.labels[level]]
        for code, parent in enumerate(ladder.parents[level - 1].tolist()):
            above[parent]["below"].append(below[code])
        below = above
    return below
