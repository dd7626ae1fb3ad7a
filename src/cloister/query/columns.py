"""The columns that the answer to a question will have, from its plan alone: names, kinds, and which of them are measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from cloister.query.layout import Layout
from cloister.session.planning.grid import Axis
from cloister.session.planning.shape import Shape
from cloister.session.releases.frames import Kind
from cloister.tables import Category

AnswerColumns = list[tuple[str, Kind, bool]]
"""For each column its name, its kind, and whether it is measured."""


def columns_of(layout: Layout, shapes: Sequence[Shape]) -> AnswerColumns:
    """Those of one question, or of one with grouping sets, a shape for each: a key that the first of these rolls up is a text."""
    first = shapes[0]
    keys: dict[str, Kind] = {axis.name: kind_of_key(axis) for axis in first.grid.axes}
    measured: dict[str, Kind] = {formula.name: formula.kind for formula in first.formulas}
    return [
        (column.name, kind_of_constant(column.fixed[0]), False)
        if column.source is None
        else (column.name, {**keys, **measured}.get(column.source, "text"), column.source in measured)
        for column in layout.columns
    ]


def kind_of_key(axis: Axis) -> Kind:
    """The kind of the values of a key."""
    if not isinstance(axis.key, str) or axis.size is None:
        return "text"
    if isinstance(axis.domain, Category):
        first = axis.domain.options[0]
        return "boolean" if isinstance(first, bool) else "integer" if isinstance(first, int) else "text"
    kinds: dict[str, Kind] = {"integer": "integer", "real": "real", "date": "date", "boolean": "boolean"}
    return kinds.get(axis.domain.kind, "text")


def kind_of_constant(value: object) -> Kind:
    """The kind of a constant.

    >>> kind_of_constant(True), kind_of_constant(Fraction(1, 2)), kind_of_constant("F")
    ('boolean', 'real', 'text')
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Fraction):
        return "integer" if value.denominator == 1 else "real"
    if isinstance(value, date):
        return "date"
    return "integer" if isinstance(value, int) else "real" if isinstance(value, float) else "text"
