"""A written file, read again: its classes are those that were checked against the models, row for row."""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import EncodedColumn, tally_of
from cloister.anonymize.frames import Frame
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.queries import run
from cloister.anonymize.recoding import Recoded
from cloister.errors import CloisterError
from cloister.tables.expression.names import literal, quotation

Ints = npt.NDArray[np.int64]


def check_written(
    duck: Any,
    rows: str,
    frame: Frame,
    recoded: Recoded,
    sensitive: Mapping[str, EncodedColumn],
    *,
    star: bool,
    outside: npt.NDArray[np.bool_] | None,
    progress: Callable[[str, float], None],
) -> None:
    """Raise where the classes of the file's `rows`, counted by DuckDB, are not those that were found valid.

    Compared are how many rows and classes there are, the smallest class, and the sum of the squares of their sizes; then the same
    of each class together with one value of a sensitive column, for each such column.
    """
    quasi = list(recoded.columns)
    for column, values in [(None, None), *sensitive.items()]:
        expected = _expected(frame, recoded, values, star=star, outside=outside)
        found = _found(duck, rows, quasi if column is None else [*quasi, column], progress)
        if found != expected:
            why = "counted again, it has {:,} rows in {:,} classes, not {:,} in {:,}".format(*found[:2], *expected[:2])
            if column is not None:
                why = f"counted again, its classes have other values of {column!r} than those that were checked"
            raise CloisterError(
                "The anonymised file was withheld",
                why=why,
                instead="the same again, with a source that does not change meanwhile",
            )


def rows_of(path: Path, names: Sequence[str]) -> str:
    """A written file as a table of DuckDB's: a CSV file's cells as texts, under their names to the letter."""
    if path.suffix == ".csv":
        as_written = "delim = ',', quote = '\"', escape = '\"', comment = '', allow_quoted_nulls = false, auto_detect = false"
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
        return f"read_csv({literal(glob.escape(str(path)))}, {as_written}, header = true, columns = {{{columns}}})"
    return f"read_parquet({literal(str(path))})"


def _expected(
    frame: Frame, recoded: Recoded, values: EncodedColumn | None, *, star: bool, outside: npt.NDArray[np.bool_] | None
) -> tuple[int, int, int, int]:
    codes = [column.codes for column in recoded.columns.values()]
    labels = [column.labels for column in recoded.columns.values()]
    if values is not None:
        codes, labels = [*codes, values.codes], [*labels, values.values]
    weights = np.ones(frame.rows, dtype=np.int64) if frame.weights is None else frame.weights
    there = np.ones(frame.rows, dtype=bool) if outside is None else ~outside
    kept = there & ~recoded.suppressed
    number, count = alike([each[kept] for each in codes], [len(each) for each in labels]) if kept.any() else (None, 0)
    sizes = np.zeros(0, dtype=np.int64) if number is None else tally_of(number, count, weights[kept])
    gone = int(weights[there & recoded.suppressed].sum())
    if star and gone:
        # suppressed rows look like a class whose labels all say nothing, where there is one
        silent = kept.copy()
        for code, names in zip(codes, labels, strict=True):
            silent &= np.array([name == STAR for name in names], dtype=bool)[code] if names else False
        like = np.zeros(0, dtype=np.int64) if number is None else np.unique(number[silent[kept]])
        if len(like):
            sizes[like] += gone
        else:
            sizes = np.append(sizes, gone)
    squares = sum(int(size) * int(size) * int(often) for size, often in zip(*np.unique(sizes, return_counts=True), strict=True))
    return int(sizes.sum()), len(sizes), int(sizes.min()) if len(sizes) else 0, squares


def _found(duck: Any, rows: str, quasi: Sequence[str], progress: Callable[[str, float], None]) -> tuple[int, int, int, int]:
    columns = ", ".join(quotation(name) for name in quasi)
    query = (
        "SELECT coalesce(sum(n), 0), count(*), coalesce(min(n), 0), coalesce(sum(n::HUGEINT * n), 0) "
        f"FROM (SELECT count(*) AS n FROM {rows} GROUP BY {columns})"
    )
    [(total, count, least, squares)] = run(duck, query, "counting classes again", progress)
    return int(total), int(count), int(least), int(squares)
