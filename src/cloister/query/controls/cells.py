"""The groups of a frequency table, from the declarations: every declared value of every key, whether it occurs or not."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.query.controls.masks import Mask
from cloister.query.controls.records import Records
from cloister.session import unknown_column
from cloister.tables import Key, PrivateTable

Place = tuple[int, ...]

_MOST_CELLS = 10_000


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One key: its column, and the label and the column codes of each group (from `first` up to, not including, `last`)."""

    column: str
    labels: tuple[Any, ...]
    bounds: tuple[tuple[int, int], ...]

    def groups(self, records: Records) -> npt.NDArray[np.int64]:
        """The group of each record, −1 for none."""
        codes = records.codes[self.column].astype(np.int64)
        found = np.full(len(codes), -1, dtype=np.int64)
        for group, (first, last) in enumerate(self.bounds):
            found[(codes >= first) & (codes < last)] = group
        return found


def axes_of(by: tuple[str | Key, ...], table: str, declaration: PrivateTable) -> tuple[Axis, ...]:
    """The keys of a table; refuses, from declarations alone, what has no declared list of groups.

    >>> from cloister.tables import Category
    >>> people = PrivateTable({"sex": ["F"]}, columns={"sex": Category(["F", "M"])})
    >>> axes_of(("sex",), "people", people)[0].labels
    ('F', 'M')
    """
    axes = []
    for key in by:
        name = key if isinstance(key, str) else key.name
        if name not in declaration.columns:
            raise unknown_column(name, table, list(declaration.columns))
        domain = declaration.columns[name]
        if domain.size is None:
            raise UnsupportedQuery(
                f"Grouping by {name!r} is not supported", why="its values are not declared", instead=f'"{name}": cl.Category([…])'
            )
        if isinstance(key, str):
            first, count = domain.low_code, domain.size
            labels: tuple[Any, ...] = domain.values() if count <= _MOST_CELLS else ()
            bounds = [(first + place, first + place + 1) for place in range(len(labels))]
        else:
            count, labels, starts = key.size(domain), key.labels(domain), key.starts(domain)
            bounds = list(itertools.pairwise(starts))
        if domain.nullable:
            labels, bounds = (*labels, None), [*bounds, (domain.null_code, domain.null_code + 1)]
        if count > _MOST_CELLS:
            labels, bounds = tuple(range(count)), []  # refused below, with the true number of groups
        axes.append(Axis(column=name, labels=labels, bounds=tuple(bounds)))
    cells = math.prod(len(axis.labels) for axis in axes)
    if cells > _MOST_CELLS:
        raise UnsupportedQuery(
            f"Grouping by {', '.join(axis.column for axis in axes)} is not supported",
            why=f"it makes {cells:,} groups, and at most {_MOST_CELLS:,} are answered",
            instead=f'Binned("{axes[0].column}", edges)',
        )
    return tuple(axes)


def cells_of(axes: tuple[Axis, ...], records: Records, chosen: Mask, *, totals: bool) -> list[tuple[tuple[int, ...], Mask]]:
    """Each cell with its place and its records, in the order of the table; with `totals`, its lines' totals behind them."""
    groups = [axis.groups(records) for axis in axes]
    inside = chosen & np.logical_and.reduce([group >= 0 for group in groups]) if groups else chosen
    lengths = [len(axis.labels) + totals for axis in axes]
    return [
        (
            place,
            inside & np.logical_and.reduce([_in(group, at, axis) for group, at, axis in zip(groups, place, axes, strict=True)]),
        )
        if axes
        else (place, inside)
        for place in itertools.product(*(range(length) for length in lengths))
    ]


def _in(group: npt.NDArray[np.int64], at: int, axis: Axis) -> Mask:
    return np.asarray(group >= 0) if at == len(axis.labels) else np.asarray(group == at)
