"""From a recoding to the table that is published: in the kind of frame that came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import one_writing
from cloister.anonymize.frames import Frame, need_polars
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.recoding import Recoded, RecodedColumn

__all__ = ["published", "starred"]


def published(
    frame: Frame,
    recoded: Recoded,
    *,
    sensitive: Sequence[str] = (),
    dropped: Sequence[str] = (),
    star: bool = False,
    replaced: Mapping[str, Any] | None = None,
    missing_values: Sequence[Any] = (),
    left_out: npt.NDArray[np.bool_] | None = None,
    order: npt.NDArray[np.int64] | None = None,
) -> Any:
    """The table with recoded columns, without those that identify.

    Suppressed rows are left out; with `star` they stay, and say nothing: quasi-identifiers and sensitive values are a star, and
    every other column is empty there.
    `missing_values` stand for a missing one; `left_out` are rows that are no part of the table; `order` is an order of the rows
    to publish them in, and then the labels of a pandas frame's rows stay behind: they say the old one.
    """
    pl = need_polars()
    hidden = recoded.suppressed
    columns = []
    for name in frame.names:
        if name in dropped:
            continue
        series = frame.data[name]
        if name in recoded.columns:
            series = _series(name, series, recoded.columns[name], missing_values)
        elif replaced is not None and name in replaced:
            series = pl.Series(name, replaced[name])
        elif name in sensitive:
            series = one_writing(series, missing_values)
        if star and hidden.any():
            watched = name in recoded.columns or name in sensitive
            series = starred(series, hidden) if watched else _emptied(series, hidden)
        columns.append(series)
    data = pl.DataFrame(columns)
    kept = np.arange(frame.rows) if order is None else np.asarray(order)
    if not star:
        kept = kept[~hidden[kept]]
    if left_out is not None:
        kept = kept[~left_out[kept]]
    if order is None and len(kept) == frame.rows:
        return frame.give_back(data)
    return frame.give_back(data[kept], kept, numbered=order is not None)


def _series(name: str, original: Any, column: RecodedColumn, missing_values: Sequence[Any]) -> Any:
    pl = need_polars()
    if column.intact:
        return one_writing(original, missing_values)
    labels = [None if label is None else label if isinstance(label, str) else text_of(label) for label in column.labels]
    return pl.Series(name, labels, dtype=pl.String).gather(column.codes)


def _emptied(series: Any, hidden: npt.NDArray[np.bool_]) -> Any:
    pl = need_polars()
    return pl.select(pl.when(pl.Series(hidden)).then(None).otherwise(series).alias(series.name)).to_series()


def starred(series: Any, hidden: npt.NDArray[np.bool_]) -> Any:
    """A column as text, in which suppressed rows say nothing. What is not a number is missing, and no text.

    >>> import polars as pl
    >>> starred(pl.Series([7.0, float("nan"), 8.5]), np.array([False, False, True])).to_list()
    ['7', None, '*']
    """
    pl = need_polars()
    texts = series
    if series.dtype != pl.String:
        plain = series.fill_nan(None) if series.dtype.is_float() else series
        found = [None if value is None else text_of(value) for value in plain.to_list()]
        texts = pl.Series(series.name, found, dtype=pl.String)
    return pl.select(pl.when(pl.Series(hidden)).then(pl.lit(STAR)).otherwise(texts).alias(series.name)).to_series()
