"""The groups of an answer: the product of the keys' declared domains, or what a threshold lets through.

With declared keys every combination appears, in declared order, occupied or not: the shape of the answer is fixed by the plan.
Conditions on a key's own column, joined by AND, narrow its domain in advance (`narrowing.py`), unless a question asks for
`every_group`. Rows without a value of a key that is not declared nullable are measured as a group of their own, which no answer
shows: it costs nothing, since no row is in two groups, and with it the sum over all groups is the total, so that a coarser answer
follows from a finer one. A Text key has no declared domain; then only the groups that pass the noisy threshold appear, in the
order of their keys.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.session.questions.declared import Declared, table_name
from cloister.session.questions.narrowing import narrowed
from cloister.session.questions.question import Question, key_name, unknown_column
from cloister.session.releases.frames import Kind, Series
from cloister.tables import Domain, Key
from cloister.tables.engines.noised import Cells, KeyCodes

_MOST_CELLS = 5_000_000
_KINDS: dict[str, Kind] = {"integer": "integer", "real": "real", "text": "text", "date": "date", "boolean": "boolean"}
_TYPES: dict[type, Kind] = {str: "text", int: "integer", bool: "boolean"}

Places = npt.NDArray[np.int64]

_GROUPED = {"place": "grid({0}, 500) or region({0})", "moment": "hour({0}), weekday({0}), or CAST({0} AS DATE)"}


@dataclass(frozen=True)
class Axis:
    """One key: its declared domain, the code of its first group, and how many groups it makes (None: not declared)."""

    key: str | Key
    domain: Domain
    first: int
    whole: int | None
    """How many groups the declared domain makes, that of rows without a value included; None where it is not declared."""
    kept: tuple[int, ...] | None = None
    """The places of those groups that the condition lets through; None: all."""

    @property
    def size(self) -> int | None:
        """How many groups are measured."""
        return self.whole if self.kept is None else len(self.kept)

    @property
    def shown(self) -> int | None:
        """How many groups are shown: without that of rows that have no value, unless the owner declared it."""
        if self.size is None or self.domain.nullable or self.whole is None:
            return self.size
        last = self.whole - 1
        return self.size - (self.kept is None or last in self.kept)

    @property
    def complete(self) -> bool:
        """Whether every row that the condition lets through is in one of the groups."""
        return self.whole is not None and (isinstance(self.key, str) or not self.domain.nullable)

    @cached_property
    def codes(self) -> KeyCodes:
        """The codes of its groups, as an engine is asked for them."""
        return KeyCodes(self.first, self.whole or 0, self.kept)

    def place(self, codes: npt.NDArray[Any]) -> Places:
        """The place of each code among the groups; -1 where the condition lets it through nowhere."""
        return self.codes.place(codes)

    @property
    def name(self) -> str:
        """What the column of the answer is called."""
        return key_name(self.key)

    def series(self, places: Places) -> Series:
        """The labels of groups, by their places from 0; the place after the last label is NULL."""
        if self.kept is not None:
            places = np.asarray(self.kept, dtype=np.int64)[places]
        if isinstance(self.key, str):
            domain = self.domain
            labels: list[Any] = [domain.decode(self.first + int(place)) for place in range(domain.size or 0)]
            kind = _TYPES[type(labels[0])] if domain.kind == "category" else _KINDS[domain.kind]
        else:
            labels, kind = list(self.key.labels(self.domain)), "text"
        labels.append(None)
        if kind in ("text", "date") or self.domain.nullable:
            found = np.empty(len(labels), dtype=object)
            found[:] = labels
            return Series(kind, found[places])
        return Series(kind, np.asarray(labels[:-1])[places])

    def describe(self) -> Any:
        """A canonical form for digests."""
        key = ["column", self.key] if isinstance(self.key, str) else [self.key.describe()]
        return [*key, self.domain.describe(), *([] if self.kept is None else [list(self.kept)])]


@dataclass(frozen=True)
class Grid:
    """All keys of a question."""

    axes: tuple[Axis, ...]

    @cached_property
    def declared(self) -> bool:
        """Whether all groups are known in advance."""
        return all(axis.size is not None for axis in self.axes)

    @cached_property
    def cells(self) -> int:
        """How many groups are measured; of undeclared keys, 1."""
        return math.prod(1 if axis.size is None else axis.size for axis in self.axes)

    @property
    def shown(self) -> int:
        """How many groups an answer shows; of undeclared keys, 1."""
        return math.prod(1 if axis.shown is None else axis.shown for axis in self.axes)

    def visible(self) -> Places:
        """The cells that an answer shows, in order."""
        cells = np.zeros(1, dtype=np.int64)
        for axis in self.axes:
            cells = (cells[:, None] * (axis.size or 0) + np.arange(axis.shown or 0, dtype=np.int64)[None, :]).reshape(-1)
        return cells

    @cached_property
    def asked(self) -> Cells | None:
        """The cells as an engine is asked for them; None where they are not known in advance."""
        return Cells(tuple(axis.codes for axis in self.axes)) if self.declared else None

    def labels(self) -> dict[str, Series]:
        """The key columns of the cells that are shown."""
        cells = self.visible()
        found: dict[str, Series] = {}
        for axis in reversed(self.axes):
            cells, place = np.divmod(cells, axis.size or 1)
            found[axis.name] = axis.series(place)
        return dict(reversed(found.items()))

    def labels_of(self, keys: tuple[npt.NDArray[Any], ...]) -> dict[str, Series]:
        """The key columns of groups that were found, for undeclared keys."""
        return {
            axis.name: Series("text", codes) if axis.size is None else axis.series(axis.place(codes))
            for axis, codes in zip(self.axes, keys, strict=True)
        }

    def describe(self) -> list[Any]:
        """A canonical form for digests."""
        return [axis.describe() for axis in self.axes]

    def words(self) -> str:
        """The groups in words."""
        if not self.axes:
            return "one, all rows"
        names = " × ".join(
            f"{axis.name} ({axis.shown:,})" if axis.shown is not None else f"{axis.name} (undeclared)" for axis in self.axes
        )
        return (
            f"{names}, {self.shown:,} in all, empty ones included" if self.declared else f"{names}, those above a noisy threshold"
        )


def grid_of(question: Question, declaration: Declared) -> Grid:
    """The groups of a question, from declarations alone."""
    axes = []
    for key in question.by:
        name = key if isinstance(key, str) else key.name
        if name not in declaration.columns:
            raise unknown_column(name, table_name(question.table), list(declaration.columns))
        domain = declaration.columns[name]
        _check_key(name, domain)
        size = domain.size if isinstance(key, str) else key.size(domain)
        if size is not None:
            size += 1
        first = 0 if size is None or not isinstance(key, str) else domain.low_code
        kept = None if size is None or question.every_group else narrowed(key, size, question.where, declaration)
        axes.append(Axis(key=key, domain=domain, first=first, whole=size, kept=kept))
    grid = Grid(tuple(axes))
    if grid.cells > _MOST_CELLS:
        widest = max(grid.axes, key=lambda axis: axis.size or 0)
        raise UnsupportedQuery(
            f"Grouping by {', '.join(axis.name for axis in axes)} is not supported",
            why=f"it makes {grid.cells:,} groups, and at most {_MOST_CELLS:,} are answered",
            instead=f'Binned("{widest.name}", edges)',
        )
    return grid


def _check_key(name: str, domain: Domain) -> None:
    """Refuse as a key what has a group for each second or each step of a lattice."""
    line = _GROUPED.get(domain.kind)
    if line is not None:
        raise UnsupportedQuery(
            f"Groups of {name!r} are not supported",
            why=f"it is declared as {domain.kind}, which has more values than there could be groups",
            instead=line.format(name),
        )
