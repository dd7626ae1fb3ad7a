"""Records as points: how far two of them are from one another, when columns are numbers, orders and names.

Each column gets the same say: the mean squared distance of two random records is 2 in each of them, which for numbers is
standardising. An order counts by ranks. Two names are equal or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.perturbing.columns import Columns
from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]

_MOST_NAMES = 256


def places(
    columns: Columns, names: Sequence[str], *, orders: Mapping[str, Sequence[Any]], weights: Mapping[str, float]
) -> Floats:
    """The point of each record; NaN where a value is missing.

    >>> rows = Columns.of({"age": [20, 40], "sex": ["F", "M"]})
    >>> places(rows, ["age", "sex"], orders={}, weights={}).round(2).tolist()
    [[-1.0, 1.41, 0.0], [1.0, 0.0, 1.41]]
    """
    parts = []
    for name in names:
        weight = float(np.sqrt(weights.get(name, 1.0)))
        numbers = numbers_or_ranks(columns, name, orders.get(name))
        part = _names(columns.coded(name)) if numbers is None else standardised(numbers)[:, None]
        parts.append(weight * part)
    return np.hstack(parts) if parts else np.zeros((columns.rows, 0))


def numbers_or_ranks(columns: Columns, name: str, order: Sequence[Any] | None) -> Floats | None:
    """The column as numbers: its own, or ranks in the given order or in that of dates; None where it holds mere names."""
    if order is None and (columns.numeric(name) or columns.rows == 0):
        return columns.numbers(name)
    coded = columns.coded(name)
    if order is None:
        return coded.numbers[coded.codes] if coded.kind == "date" else None
    given = list(order)
    strangers = [value for value in coded.values if value is not None and value not in given]
    if strangers or len(set(map(repr, given))) != len(given):
        raise InvalidParameter(
            f"The order of {name!r} is invalid",
            why=f"the table has {strangers[0]!r}, which it lacks" if strangers else "it names a value twice",
            instead=f"orders={{{name!r}: [the values, lowest first]}}",
        )
    ranks = np.array([np.nan if value is None else float(given.index(value)) for value in coded.values])
    return ranks[coded.codes]


def standardised(numbers: Floats) -> Floats:
    """With mean 0 and variance 1 over the values that are there; a constant column is 0.

    >>> standardised(np.array([2.0, 4.0, 6.0, np.nan])).round(3).tolist()
    [-1.225, 0.0, 1.225, nan]
    """
    there = numbers[~np.isnan(numbers)]
    if not there.size:
        return numbers.copy()
    largest = max(float(np.abs(there).max()), np.finfo(np.float64).tiny)
    scaled = there / largest  # so that squares of huge numbers stay finite
    middle, spread = float(scaled.mean()), float(scaled.std())
    if spread <= 1e-13:
        return np.asarray(numbers * 0.0)
    return np.asarray((numbers / largest - middle) / spread)


def _names(column: EncodedColumn) -> Floats:
    """One axis a name, so scaled that two random records are 2 apart in the mean of squares."""
    there = column.codes >= 0 if column.missing is None else column.codes != column.missing
    names = len(column) - (column.missing is not None)
    if names > _MOST_NAMES:
        raise InvalidParameter(
            f"The column {column.name!r} is invalid",
            why=f"it holds {names} names, and distances between so many mean nothing",
            instead="fewer, wider categories; an order (orders=); or the table without that column",
        )
    shares = column.counts[:names] / max(1, int(there.sum()))
    unlike = 1.0 - float((shares**2).sum())
    out = np.zeros((len(column.codes), max(names, 1)))
    out[~there] = np.nan
    if unlike > 0:
        out[np.flatnonzero(there), column.codes[there]] = 1 / np.sqrt(unlike)
    return out
