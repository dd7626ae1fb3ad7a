"""From releases to the table that was asked for: names, constants, conditions on noisy values, order. Post-processing, all of
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.query.layout import Layout
from cloister.query.parse import Parsed
from cloister.session import Release
from cloister.session.releases.frames import Kind, Series

CHOSEN = "the rows were chosen by their noisy values: margin(joint=True) holds for them; a single margin held before the choice"


def laid_out(answers: Sequence[Release], parsed: Parsed) -> Release:
    """The answer in the columns and the order that the question asks for."""
    layout = parsed.layout
    asked = [_with_columns(answer, layout, number) for number, answer in enumerate(answers)]
    if len(asked) == 1 and not (layout.chooses or layout.order):  # every row, where it stands
        return replace(asked[0], notes=(*asked[0].notes, *parsed.notes)) if parsed.notes else asked[0]
    needed = layout.needed()
    known = [_values(answer, needed) for answer in answers]
    places = layout.rows(known)
    if len(asked) == 1:
        answer, rows = asked[0], [row for _, row in places]
        answer = answer if rows == list(range(answer.num_rows)) else answer.take(rows)
    else:
        from cloister.session.workloads.sheets import sheets

        answer = sheets(asked, places)
    chosen = layout.chooses and _reads_noise(layout, answers[0])
    return replace(answer, notes=(*answer.notes, *([CHOSEN] if chosen else []), *parsed.notes))


def _values(answer: Release, needed: Sequence[str]) -> dict[str, list[Any]]:
    """The needed columns of one answer; without any, one that says how many rows there are."""
    everything = replace(answer, names={})
    table = everything.select({name: name for name in needed if name in everything.column_names}).table
    return {name: series.tolist() for name, series in table.columns.items()} or {"": [None] * answer.num_rows}


def _with_columns(answer: Release, layout: Layout, number: int) -> Release:
    """The columns that are shown, constants and rolled-up keys included, in order."""
    groups = dict(answer.groups)
    known = {*groups, *(formula.name for formula in answer.formulas)}
    constants = layout.constants(number)
    names: dict[str, str] = {}
    for column in layout.columns:
        source = column.source
        if source is None:
            source = f"constant {column.name}"
            groups[source] = _constant(constants[column.name], answer.num_rows)
        elif source not in known:
            groups[source] = Series("text", np.full(answer.num_rows, None, dtype=object))
        names[column.name] = source
    return replace(answer, groups=groups, names=names)


def _constant(value: Any, rows: int) -> Series:
    if isinstance(value, Fraction):
        value = int(value) if value.denominator == 1 else float(value)
    kinds: dict[type, Kind] = {bool: "boolean", int: "integer", float: "real", str: "text", date: "date"}
    kind = kinds.get(type(value), "text")
    values = np.full(rows, value, dtype=None if kind in ("boolean", "integer", "real") else object)
    return Series(kind, values)


def _reads_noise(layout: Layout, answer: Release) -> bool:
    """Whether a condition or an order, under a limit, looks at released numbers."""
    measured = set(replace(answer, names={}).statistics())
    read = [part.source for part in layout.order] + ([] if layout.having is None else sorted(layout.having.columns()))
    return any(name in measured for name in read)
