"""Masked texts no longer than those that are published need: how long a text is that was left out is not told by the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cloister.anonymize.encoded import Encoded
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import MISSING, STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.hierarchies.masking import Masking
from cloister.anonymize.recoding import Recoded, RecodedColumn


def padded_as_published(recoded: Recoded, table: Encoded, hierarchies: Mapping[str, Hierarchy]) -> Recoded:
    """The same recoding, whose masks are as long as the longest text of a row that leaves."""
    kept = recoded.published
    columns: dict[str, RecodedColumn] = {}
    for name, column in recoded.columns.items():
        hierarchy = hierarchies.get(name)
        if not isinstance(hierarchy, Masking) or column.intact:
            continue
        values = table.columns[name].values
        leaving = np.bincount(table.columns[name].codes[kept], minlength=len(values)) > 0
        lengths = np.array([0 if value is None else len(text_of(value)) for value in values], dtype=np.int64)
        width, needed = int(lengths.max(initial=0)), int(lengths[leaving].max(initial=0))
        if 0 < needed < width:
            labels = [_shorter(label, hierarchy, width, needed) for label in column.labels]
            columns[name] = replace(column, labels=labels)
    return replace(recoded, columns={**recoded.columns, **columns}) if columns else recoded


def _shorter(label: Any, hierarchy: Masking, width: int, needed: int) -> Any:
    """A mask without the characters that fill it up for texts which do not leave; any other label, and any that shows more, as it
    is."""
    if not isinstance(label, str) or len(label) != width or label in (STAR, MISSING):
        return label
    rest = label[:needed] if hierarchy.side == "right" else label[width - needed :]
    gone = label[needed:] if hierarchy.side == "right" else label[: width - needed]
    return rest if set(gone) == {hierarchy.character} else label
