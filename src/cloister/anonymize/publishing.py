"""From a recoding to the table that is published: in the kind of frame that came in."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import one_writing
from cloister.anonymize.frames import Frame, need_polars
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.recoding import Recoded, RecodedColumn


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
    read: npt.NDArray[np.bool_] | None = None,
    rows: npt.NDArray[np.int64],
    keep_index: bool = False,
) -> Any:
    """The table with recoded columns, without those that identify.

    Suppressed rows are left out; with `star` they stay, and say nothing: quasi-identifiers and sensitive values are a star, and
    every other column is empty there.
    `missing_values` stand for a missing one; `left_out` are rows that are no part of the table, and those that are not in `read`
    were never looked at. `rows` is the order to publish them in; the labels of a pandas frame's rows stay behind, unless they are
    kept.
    """
    pl = need_polars()
    hidden = recoded.suppressed
    columns = []
    for name in frame.names:
        if name in dropped:
            continue
        series = frame.data[name]
        if read is not None and (name in recoded.columns or name in sensitive):
            series = _of_read(series, read)
        if name in recoded.columns:
            series = _series(name, series, recoded.columns[name], missing_values)
        elif replaced is not None and name in replaced:
            series = pl.Series(name, replaced[name])
        elif name in sensitive:
            series = one_writing(series, missing_values, told=True)
        if star and hidden.any():
            watched = name in recoded.columns or name in sensitive
            series = starred(series, hidden) if watched else _emptied(series, hidden)
        columns.append(series)
    kept = leaving(recoded, rows, star=star, left_out=left_out)
    return frame.give_back(pl.DataFrame(columns)[kept], kept if keep_index else None)


def leaving(
    recoded: Recoded, rows: npt.NDArray[np.int64], *, star: bool = False, left_out: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.int64]:
    """Which rows leave, in the order in which they do."""
    kept = rows if star else rows[~recoded.suppressed[rows]]
    return kept if left_out is None else kept[~left_out[kept]]


def _of_read(series: Any, read: npt.NDArray[np.bool_]) -> Any:
    """The column with a value of somebody else in the rows that nobody looked at: how these are spelt decides nothing."""
    pl = need_polars()
    if read.all() or not read.any():
        return series
    places = np.where(read, np.arange(len(read)), int(np.argmax(read)))
    return series.gather(pl.Series(places, dtype=pl.UInt32))


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
