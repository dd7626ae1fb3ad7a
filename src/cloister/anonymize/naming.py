"""Labels of learnt groups after a search: they name values of rows that are published, and no other.

A learnt group is named after its categories, and some of them may stand only in rows that are suppressed: a label with their
names would publish that somebody has them. Which rows share a label stays as it was, so classes, models and losses are the same.
A public list is known: its rows are named too, or a label would say who of the list is not in the table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import MISSING, STAR, Ladder
from cloister.anonymize.hierarchies.learnt import group_label
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.recoding import Recoded, RecodedColumn


def named_by_what_is_published(recoded: Recoded, table: Encoded, ladders: Mapping[str, Ladder]) -> Recoded:
    """The same recoding, in which labels of learnt columns (`ladders` are theirs) name only values of rows that are published.

    >>> column = EncodedColumn(name="pet", codes=np.array([0, 0, 1], dtype=np.int32), values=["cat", "dog"], kind="text")
    >>> one = np.ones(1)
    >>> found = RecodedColumn(codes=np.zeros(3, dtype=np.int32), labels=["cat | dog"], shares=one, widths=one)
    >>> recoded = Recoded(columns={"pet": found}, suppressed=np.array([False, False, True]))
    >>> ladder = Ladder.of("pet", ["cat", "dog"], [["cat | dog", "cat | dog"]])
    >>> named_by_what_is_published(recoded, Encoded(rows=3, columns={"pet": column}), {"pet": ladder}).columns["pet"].labels
    ['cat']
    """
    kept = ~recoded.suppressed
    if kept.all():
        return recoded
    columns = dict(recoded.columns)
    for name, ladder in ladders.items():
        if not columns[name].intact:
            columns[name] = replace(columns[name], labels=_labels(columns[name], table.columns[name], ladder, kept))
    return replace(recoded, columns=columns)


def _labels(recoded: RecodedColumn, column: EncodedColumn, ladder: Ladder, kept: npt.NDArray[np.bool_]) -> list[Any]:
    """A label for each code: as it was where all that it names is published, made of what is published where it is not."""
    pairs = np.unique(recoded.codes[kept].astype(np.int64) * len(column) + column.codes[kept])
    codes, values = pairs // len(column), pairs % len(column)
    shown = np.bincount(codes, minlength=len(recoded.labels)).tolist()
    sizes = _sizes(ladder)
    published = [code for code, count in enumerate(shown) if count]
    of_all = {code for code in published if sizes.get(recoded.labels[code]) == {shown[code]}}  # as many values as it names
    named = {code: label for code in published if (label := recoded.labels[code]) in (STAR, MISSING, None) or code in of_all}
    taken = set(named.values())
    for code in published:
        if code in named:
            continue
        label = group_label([text_of(column.values[value]) for value in values[codes == code].tolist()], code)
        if label in taken:  # another level has a group of just these: two labels that read alike would be one class
            label = next(each for each in _general(shown[code], code) if each not in taken)
        named[code] = label
        taken.add(label)
    return [named.get(code, STAR) for code in range(len(recoded.labels))]


def _sizes(ladder: Ladder) -> dict[Any, set[int]]:
    """How many values each label of a hierarchy names."""
    found: dict[Any, set[int]] = {}
    for codes, labels in zip(ladder.codes, ladder.labels, strict=True):
        for label, size in zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True):
            found.setdefault(label, set()).add(size)
    return found


def _general(values: int, code: int) -> Iterable[str]:
    """Names that say which group, and no value."""
    for number in count(code + 1):
        yield f"… ({values} value{'s' if values > 1 else ''}, group {number})"
