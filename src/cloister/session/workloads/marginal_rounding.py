"""Marginals that agree, rounded to whole numbers that still agree.

Rounding each table by itself is best where the sums still agree, and may break them. Then the finest table is rounded and the
others are summed from it, in an order in which the errors do not pile up: with the cells in a row, each running total is
rounded, and a cell is the difference of two. So a cell moves by less than 1, and every run of consecutive cells, however long,
by at most 1: where each wanted table keeps the first few of the axes (ROLLUP), all its cells are such runs. Tables that cut
across the order (CUBE) are then brought nearer by single steps up or down, each of which lowers the sum of squared errors over
all wanted cells.

It is post-processing, of estimates that are public already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.session.workloads.marginals import Floats, Marginal, cells, check_marginals, effects_from, spread_out, union

_MOST_CELLS = 10_000_000
_MOST_REPAIRED = 20_000
_LARGEST = float(2**62)

Whole = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def rounded(sizes: Sequence[int], tables: Mapping[Marginal, Floats]) -> dict[Marginal, Whole]:
    """Whole numbers near the tables, whose sums agree exactly. The tables must agree up to rounding error (`consistent`).

    Where no table keeps all axes, the finest is taken to be what the wanted ones say of it and no more.

    >>> tables = {(): np.array(2.7), (0,): np.array([0.9, 0.9, 0.9])}
    >>> {axes: table.tolist() for axes, table in rounded((3,), tables).items()}
    {(): 3, (0,): [1, 1, 1]}
    """
    check_marginals(sizes, tables.keys(), "tables")
    axes = union(tables)
    if cells(sizes, axes) > _MOST_CELLS:
        raise InvalidParameter(
            "The tables were not rounded",
            why=f"together they have {cells(sizes, axes):,} cells, and whole numbers that agree are found through all of them",
            instead="fewer keys in one question, or the estimates as they are",
        )
    nearest = {kept: _whole_numbers(np.rint(table)) for kept, table in tables.items()}
    if _agree(nearest):
        return nearest
    finest = spread_out(sizes, axes, effects_from(sizes, tables))
    order = sorted(range(len(axes)), key=lambda place: -sum(axes[place] in kept for kept in tables))
    chosen: Any = np.transpose(_in_a_row(np.transpose(finest, order)), np.argsort(order))
    if not _nested(tables) and chosen.size <= _MOST_REPAIRED:
        chosen = _repaired(chosen, axes, tables)
    return {kept: _summed(chosen, axes, kept) for kept in tables}


def _whole_numbers(table: Floats) -> Whole:
    if np.abs(table).sum() < _LARGEST:
        return np.asarray(table).astype(np.int64)
    return np.array([int(value) for value in np.asarray(table).reshape(-1)], dtype=object).reshape(np.shape(table))


def _agree(tables: Mapping[Marginal, Whole]) -> bool:
    """Whether each two tables have the same sums over the axes that they share."""
    names = list(tables)
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            shared = tuple(sorted(set(one) & set(other)))
            if not np.array_equal(_summed(tables[one], one, shared), _summed(tables[other], other, shared)):
                return False
    return True


def _in_a_row(table: Floats) -> Whole:
    """Differences of rounded running totals; whole parts are set aside, so that large numbers keep their last digits."""
    base = np.floor(table)
    running = np.rint(np.cumsum((table - base).reshape(-1)))
    steps = np.diff(running, prepend=0.0).astype(np.int64).reshape(table.shape)
    if np.abs(base).sum() < _LARGEST:
        return np.asarray(base.astype(np.int64) + steps)
    large = np.array([int(value) for value in base.reshape(-1)], dtype=object).reshape(table.shape)
    return np.asarray(large + steps)


def _nested(tables: Collection[Marginal]) -> bool:
    ordered = sorted(tables, key=len)
    return all(set(one) <= set(other) for one, other in pairwise(ordered))


def _repaired(chosen: Whole, axes: Marginal, tables: Mapping[Marginal, Floats]) -> Whole:
    """Step by step the cell whose change by 1 lowers Σ (error)² the most, as long as one does.

    A step up in a cell adds 2·error + 1 for each wanted cell that it is part of, so the gain of every cell is one number, and a
    step changes it where cells share a wanted cell.
    """
    chosen = chosen.copy()
    slope, shapes = np.zeros(chosen.shape), []
    for kept, table in tables.items():
        error = _summed(chosen, axes, kept).astype(np.float64) - table
        slope += np.asarray(error).reshape([size if axis in kept else 1 for axis, size in zip(axes, chosen.shape, strict=True)])
        shapes.append([axis in kept for axis in axes])
    for _ in range(4 * chosen.size):
        high, low = int(np.argmax(slope)), int(np.argmin(slope))
        step, place = (-1, high) if slope.flat[high] >= -slope.flat[low] else (1, low)
        if 2 * abs(float(slope.flat[place])) <= len(shapes) * (1 + 1e-9):
            break
        cell = np.unravel_index(place, chosen.shape)
        chosen[cell] += step
        for kept_axes in shapes:
            slope[tuple(where if kept else slice(None) for where, kept in zip(cell, kept_axes, strict=True))] += step
    return chosen


def _summed(table: Whole, axes: Marginal, kept: Marginal) -> Any:
    return np.asarray(table.sum(axis=tuple(place for place, axis in enumerate(axes) if axis not in kept)))
