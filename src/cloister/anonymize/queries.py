"""SQL to DuckDB about files: names and texts quoted, questions that tell how far they are and that can be interrupted."""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.parsers import is_parquet

_GLANCE = 0.25
"""Seconds between two looks at how far a question is."""


def quoted(name: str) -> str:
    """A name in SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def table_function(duck: Any, source: str | Path) -> str:
    """A file as a table, or several by a pattern. What a CSV file is like is found out once, from all of it: a column of numbers
    that has a word in its last row is a column of words. Times of day, and whole numbers of more than 64 bits, stay texts."""
    import duckdb

    text = str(source)
    there = Path(text).exists()
    pattern = not there and any(mark in text for mark in "*?[")
    if there:  # a file of this very name is no pattern, whatever marks stand in it
        text = glob.escape(text)
    elif not pattern:
        raise InvalidParameter(
            f"{Path(text).name!r} is invalid", why="there is no such file", instead="the path of a CSV or Parquet file"
        )
    if is_parquet(text):
        if there:
            _refuse_alike(source, _names_in(source))
        return f"read_parquet({literal(text)})"
    if pattern:
        return f"read_csv({literal(text)}, sample_size = -1, allow_quoted_nulls = false)"
    try:
        asked = duck.execute(
            "SELECT Delimiter, Quote, Escape, SkipRows, HasHeader, Columns, DateFormat, TimestampFormat "
            f"FROM sniff_csv({literal(text)}, sample_size = -1)"
        )
        delimiter, quote, escape, skipped, header, columns, date, timestamp = asked.fetchall()[0]
    except duckdb.Error as error:
        raise _unreadable(source) from error
    if not columns:
        raise _unreadable(source)
    if header:
        _refuse_alike(source, _first_line(duck, text, delimiter, quote, escape, int(skipped)))
    settings = {"delim": delimiter, "quote": quote, "escape": escape, "dateformat": date, "timestampformat": timestamp}
    told = [f"{name} = {literal(value.replace(_EMPTY, ''))}" for name, value in settings.items() if value is not None]
    kinds = {column["name"]: "VARCHAR" if column["type"] in ("TIME", "HUGEINT") else column["type"] for column in columns}
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in kinds.items())
    told += [f"skip = {int(skipped)}", f"header = {bool(header)}", "auto_detect = false", "allow_quoted_nulls = false"]
    return f"read_csv({literal(text)}, {', '.join(told)}, columns = {{{types}}})"


def _names_in(source: str | Path) -> list[str]:
    """The columns of a Parquet file, as they are called there."""
    import polars as pl

    try:
        return list(pl.read_parquet_schema(source))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(source) from error


def _first_line(duck: Any, text: str, delimiter: str, quote: str, escape: str, skipped: int) -> list[str]:
    """The names in the first line of a CSV file, as they are called there."""
    settings = {"delim": delimiter, "quote": quote, "escape": escape}
    told = ", ".join(f"{name} = {literal(value.replace(_EMPTY, ''))}" for name, value in settings.items() if value is not None)
    query = f"SELECT * FROM read_csv({literal(text)}, {told}, skip = {skipped}, header = false, all_varchar = true) LIMIT 1"
    return [name for row in duck.execute(query).fetchall() for name in row if name]


def _refuse_alike(source: str | Path, names: Sequence[str]) -> None:
    """DuckDB would rename one of two columns whose names are alike, or differ in capitals alone: whoever named the one to be
    dropped would publish the other."""
    small = [name.lower() for name in names]
    twice = next((name for name in names if small.count(name.lower()) > 1), None)
    if twice is None:
        return
    same = names.count(twice) > 1
    raise InvalidParameter(
        f"{Path(str(source)).name!r} is invalid",
        why=f"two of its columns are called {twice!r}"
        + ("" if same else " but for capitals, and DuckDB tells them apart by no more"),
        instead="a file in which one of them has another name"
        + ("" if same else ", or fit_transform, which reads it into memory"),
    )


_EMPTY = "(empty)"
"""What DuckDB says where a CSV file quotes nothing."""


def _unreadable(source: str | Path) -> InvalidParameter:
    return InvalidParameter(
        f"{Path(str(source)).name!r} is invalid",
        why="it could not be read as a table",
        instead="a CSV file with a line of names, Parquet, or with connection= the name of a table",
    )


@contextmanager
def under_another_name(goal: Path) -> Iterator[Path]:
    """Where to write; what is there at the end takes the place of the goal at once."""
    handle, name = tempfile.mkstemp(suffix=goal.suffix, prefix=f".{goal.stem[:40]}-", dir=goal.parent)
    os.close(handle)
    path = Path(name)
    try:
        mask = os.umask(0)
        os.umask(mask)
        path.chmod(0o666 & ~mask)  # as any other file that is written here
        yield path
        path.replace(goal)
    finally:
        path.unlink(missing_ok=True)


def columns_of(duck: Any, rows: str, source: str | Path) -> list[str]:
    """The names of its columns."""
    import duckdb

    try:
        return [str(name) for name in duck.sql(f"SELECT * FROM {rows} LIMIT 0").columns]
    except duckdb.Error as error:
        raise _unreadable(source) from error


def kinds_of(duck: Any, rows: str) -> dict[str, str]:
    """The type of each column, as DuckDB calls it."""
    found = duck.sql(f"SELECT * FROM {rows} LIMIT 0")
    return {str(name): str(kind) for name, kind in zip(found.columns, found.types, strict=True)}


def watched(duck: Any) -> Any:
    """The connection, which says from now on how far it is, and prints nothing; if its settings are locked, it stays as it is."""
    import duckdb

    with suppress(duckdb.InvalidInputException):
        duck.execute("SET enable_progress_bar = true")
        duck.execute("SET enable_progress_bar_print = false")
    return duck


def run(
    duck: Any, query: str, stage: str, progress: Callable[[str, float], None], *, read: Callable[[Any], Any] | None = None
) -> Any:
    """What a question gives, as rows or as `read` makes of the relation. It is asked in a thread of its own, so that this one can
    tell how far it is, and that an interruption ends it at once. What DuckDB says of an error may hold values: it is not told."""
    import duckdb

    progress(stage, 0.0)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: duck.execute(query).fetchall() if read is None else read(duck.sql(query)))
        far = 0.0
        try:
            while not wait([asked], timeout=_GLANCE).done:
                far = max(far, min(float(duck.query_progress()) / 100, 1.0))
                progress(stage, far)
        except BaseException:
            duck.interrupt()
            raise
    try:
        found = asked.result()
    except duckdb.OutOfMemoryException:
        raise CloisterError(
            f"It was ended while {stage}",
            why="DuckDB needs more memory, or more room for what does not fit",
            instead='memory_limit="4GiB", or temporary_directory= a folder on a larger disk',
        ) from None
    except duckdb.Error as error:
        raise CloisterError(
            f"It was ended while {stage}",
            why=f"DuckDB could not go on ({type(error).__name__}): a broken line, a file that changed, or a full disk",
            instead="the same with a file that can be read to its end",
        ) from None
    progress(stage, 1.0)
    return found
