"""The usual columns as codes, in less time than it takes to find their distinct values first: few texts, and whole numbers that
are near one another. What is said is what would be found by sorting the distinct values; where that is in doubt, nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.frames import need_polars

Codes = npt.NDArray[np.int32]

_HASH_BITS, _FEW_TEXTS, _MANY_ROWS = 16, 1 << 10, 1 << 11
"""In a column of so many rows, and no more different texts, these are told apart by so many bits of their hash."""


def few_texts(series: Any) -> tuple[Codes, list[Any]] | None:
    """The codes and distinct values of a column of few different texts; None where there are many, or too few rows to gain.

    Rows are told apart by bits of their hash, and compared with what they were taken for: where two texts share these bits,
    nothing is said.
    """
    pl = need_polars()
    if len(series) < _MANY_ROWS:
        return None
    bucket = (series.hash().to_numpy() >> np.uint64(64 - _HASH_BITS)).astype(np.intp)
    row = np.full(1 << _HASH_BITS, -1, dtype=np.int64)
    row[bucket] = np.arange(len(bucket))
    there = np.flatnonzero(row >= 0)
    if len(there) > _FEW_TEXTS:
        return None
    texts = series.gather(row[there])
    values = texts.to_list()
    # Python orders texts by code point, as polars orders them by bytes of UTF-8
    order = sorted(range(len(values)), key=lambda place: (values[place] is None, values[place]))
    codes_of = np.zeros(1 << _HASH_BITS, dtype=np.int32)
    codes_of[there[order]] = np.arange(len(order), dtype=np.int32)
    codes: Codes = codes_of[bucket]
    in_order = texts.gather(order)
    if not in_order.gather(pl.Series(codes)).equals(series, null_equal=True):
        return None
    return codes, [value for value in in_order.to_list() if value is not None]


def near_numbers(series: Any) -> tuple[Codes, list[Any]] | None:
    """The same for a column of whole numbers of which none is missing: they are looked up in a table of marks.

    >>> import polars as pl
    >>> codes, values = near_numbers(pl.Series([7, 5, 7, 9]))
    >>> codes.tolist(), values
    ([1, 0, 1, 2], [5, 7, 9])
    """
    if series.null_count() or not len(series):
        return None
    numbers = series.to_numpy()
    if numbers.dtype.kind not in "iu":
        return None
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= max(4 * len(numbers), 1 << 16) or last >= 1 << 63:
        return None
    above = numbers.astype(np.int64) - first
    marked = np.zeros(last - first + 1, dtype=bool)
    marked[above] = True
    codes: Codes = (np.cumsum(marked, dtype=np.int32) - np.int32(1))[above]
    return codes, (np.flatnonzero(marked) + first).tolist()
