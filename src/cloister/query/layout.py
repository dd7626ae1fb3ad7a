"""How an answer is laid out: names, constants, HAVING, ORDER BY, LIMIT. All of it acts on what was released, so it costs nothing.

A question with GROUPING SETS has several answers, one for each set; a key that a set rolls up is NULL in its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.query.evaluation import holds, plain
from cloister.session.planning.grid import Axis
from cloister.session.planning.shape import Shape
from cloister.session.releases.frames import Kind, Series
from cloister.tables import Category, Expression

_MOST_GROUPS = 100_000


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A column of the answer: a key or a statistic by its name there; or, without a source, a constant for each question.

    >>> Shown(name="n", source="count_star()").fixed
    ()
    """

    name: str
    source: str | None = None
    fixed: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ordering:
    """One part of ORDER BY: the key or statistic, which way, and where NULL stands."""

    source: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Columns, a condition on the released rows, their order, and how many of them.

    >>> columns = (Shown(name="s", source="sex"), Shown(name="n", source="count"))
    >>> layout = Layout(columns=columns, order=(Ordering(source="count"),))
    >>> layout.rows([{"sex": ["F", "M"], "count": [9, 4]}])
    [(0, 1), (0, 0)]
    """

    columns: tuple[Shown, ...]
    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def names(self) -> dict[str, str]:
        """Output name → key or statistic, constants left out."""
        return {column.name: column.source for column in self.columns if column.source is not None}

    @property
    def chooses(self) -> bool:
        """Whether rows may be left out, or their order depends on released values."""
        return self.having is not None or self.limit is not None or bool(self.offset)

    def needed(self) -> tuple[str, ...]:
        """The keys and statistics that the layout reads, each once."""
        condition = () if self.having is None else sorted(self.having.columns())
        return tuple(dict.fromkeys([*self.names.values(), *condition, *(part.source for part in self.order)]))

    def rows(self, answers: Sequence[Mapping[str, Sequence[Any]]]) -> list[tuple[int, int]]:
        """Which rows the answer has, in order: pairs of (question, row). Each answer maps the needed names to their values; a key
        that it lacks is rolled up, and so NULL.
        """
        needed = self.needed()
        found: list[tuple[int, int]] = []
        values: dict[tuple[int, int], dict[str, Any]] = {}
        for number, answer in enumerate(answers):
            length = len(next(iter(answer.values()), ()))
            for row in range(length):
                here = {name: answer[name][row] if name in answer else None for name in needed}
                if self.having is None or holds(self.having, here):
                    found.append((number, row))
                    values[number, row] = here
        for part in reversed(self.order):
            gone = {place for place in found if plain(values[place][part.source]) is None}  # NaN would undo the order of the rest
            present = [place for place in found if place not in gone]
            missing = [place for place in found if place in gone]
            present.sort(key=lambda place, name=part.source: values[place][name], reverse=part.descending)  # type: ignore[misc]
            found = [*missing, *present] if part.nulls_first else [*present, *missing]
        end = None if self.limit is None else self.offset + self.limit
        return found[self.offset : end]


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


def rows_of(layout: Layout, shapes: Sequence[Shape]) -> dict[str, Series]:
    """The rows of an answer, where their keys are known in advance: keys and constants, and no number that is released."""
    grids = [each.grid for each in shapes]
    if layout.chooses or not all(each.declared for each in grids) or sum(each.shown for each in grids) > _MOST_GROUPS:
        return {}
    keys, found = [each.labels() for each in grids], dict[str, Series]()
    for column, (name, kind, _) in zip(layout.columns, columns_of(layout, shapes), strict=True):
        values: list[Any] = []
        for number, grid in enumerate(grids):
            fixed = constant(column.fixed[number] if column.source is None else None, grid.shown)
            values += keys[number].get(column.source or "", fixed).tolist()
        found[name] = Series(kind, np.array(values, dtype=object))
    return found


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
    if isinstance(value, Fraction | int):
        return "integer" if value.denominator == 1 and -(2**63) < value < 2**63 else "real"
    return "date" if isinstance(value, date) else "real" if isinstance(value, float) else "text"


def constant(value: Any, rows: int) -> Series:
    """A column of one value."""
    kind = kind_of_constant(value)
    if kind in ("integer", "real"):
        value = int(value) if kind == "integer" else float(value)
    return Series(kind, np.full(rows, value, dtype=None if kind in ("boolean", "integer", "real") else object))
