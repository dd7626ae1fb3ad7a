"""The groups of an answer: the product of the keys' declared domains, or what a threshold lets through.

With declared keys every combination appears, in declared order, occupied or not: the shape of the answer is fixed by the plan.
A Text key has no declared domain; then only the groups that pass the noisy threshold appear, in the order of their keys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.session.frames import Kind, Series
from cloister.session.question import Question, key_name, unknown_column
from cloister.tables import Domain, Groups, Key, PrivateTable

_MOST_CELLS = 10_000_000
_KINDS: dict[str, Kind] = {"integer": "integer", "real": "real", "text": "text", "date": "date", "boolean": "boolean"}
_TYPES: dict[type, Kind] = {str: "text", int: "integer", bool: "boolean"}

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """One key: its declared domain, the code of its first group, and how many groups it makes (None: not declared)."""

    key: str | Key
    domain: Domain
    first: int
    size: int | None

    @property
    def name(self) -> str:
        """What the column of the answer is called."""
        return key_name(self.key)

    def series(self, places: Places) -> Series:
        """The labels of groups, by their places from 0; the place after the last label is NULL."""
        if isinstance(self.key, str):
            domain = self.domain
            labels: list[Any] = [domain.decode(self.first + int(place)) for place in range(domain.size or 0)]
            kind = _TYPES[type(labels[0])] if domain.kind == "category" else _KINDS[domain.kind]
        else:
            labels, kind = list(self.key.labels(self.domain)), "text"
        if self.domain.nullable:
            labels.append(None)
        if kind in ("text", "date") or self.domain.nullable:
            found = np.empty(len(labels), dtype=object)
            found[:] = labels
            return Series(kind, found[places])
        return Series(kind, np.asarray(labels)[places])

    def describe(self) -> Any:
        """A canonical form for digests."""
        return (
            ["column", self.key, self.domain.describe()]
            if isinstance(self.key, str)
            else [self.key.describe(), self.domain.describe()]
        )


@dataclass(frozen=True)
class Grid:
    """All keys of a question."""

    axes: tuple[Axis, ...]

    @property
    def declared(self) -> bool:
        """Whether all groups are known beforehand."""
        return all(axis.size is not None for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many groups there are; of undeclared keys, 1."""
        return math.prod(axis.size or 1 for axis in self.axes)

    def place(self, groups: Groups) -> Places:
        """The cell of each group that the engine found."""
        places = np.zeros(len(groups), dtype=np.int64)
        for axis, codes in zip(self.axes, groups.keys, strict=True):
            assert axis.size is not None
            places = places * axis.size + (codes.astype(np.int64) - axis.first)
        return places

    def spread(self, values: npt.NDArray[Any], places: Places) -> npt.NDArray[Any]:
        """The engine's values in their cells, zero in every other."""
        full = np.zeros(self.cells, dtype=np.int64) if values.dtype == np.int64 else np.full(self.cells, 0, dtype=object)
        full[places] = values
        return full

    def labels(self) -> dict[str, Series]:
        """The key columns of all cells."""
        cells = np.arange(self.cells, dtype=np.int64)
        found: dict[str, Series] = {}
        for axis in reversed(self.axes):
            cells, place = np.divmod(cells, axis.size or 1)
            found[axis.name] = axis.series(place)
        return dict(reversed(found.items()))

    def labels_of(self, keys: tuple[npt.NDArray[Any], ...]) -> dict[str, Series]:
        """The key columns of groups that were found, for undeclared keys."""
        return {
            axis.name: Series("text", codes) if axis.size is None else axis.series(codes.astype(np.int64) - axis.first)
            for axis, codes in zip(self.axes, keys, strict=True)
        }

    def describe(self) -> list[Any]:
        """A canonical form for digests."""
        return [axis.describe() for axis in self.axes]

    def words(self) -> str:
        """The groups in words."""
        if not self.axes:
            return "one, all rows"
        names = " × ".join(f"{axis.name} ({axis.size:,})" if axis.size else f"{axis.name} (undeclared)" for axis in self.axes)
        return (
            f"{names}, {self.cells:,} in all, empty ones included" if self.declared else f"{names}, those above a noisy threshold"
        )


def grid_of(question: Question, declaration: PrivateTable) -> Grid:
    """The groups of a question, from declarations alone."""
    axes = []
    for key in question.by:
        name = key if isinstance(key, str) else key.name
        if name not in declaration.columns:
            raise unknown_column(name, question.table, list(declaration.columns))
        domain = declaration.columns[name]
        size = domain.size if isinstance(key, str) else key.size(domain)
        if size is not None:
            size += domain.nullable
        first = 0 if size is None or not isinstance(key, str) else domain.low_code
        axes.append(Axis(key=key, domain=domain, first=first, size=size))
    grid = Grid(tuple(axes))
    if grid.cells > _MOST_CELLS:
        widest = max(grid.axes, key=lambda axis: axis.size or 0)
        raise UnsupportedQuery(
            f"Grouping by {', '.join(axis.name for axis in axes)} was refused",
            why=f"it makes {grid.cells:,} groups, and at most {_MOST_CELLS:,} are answered",
            instead=f'Binned("{widest.name}", edges)',
        )
    return grid
