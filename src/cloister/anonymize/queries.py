"""SQL to DuckDB about files: names and texts quoted, questions that tell how far they are and that can be interrupted."""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

import glob
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cloister.anonymize.frames import LOOKS, refuse_unnamed
from cloister.errors import CloisterError, InvalidParameter
from cloister.parsers import is_parquet, separator_of
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.expression.names import literal, quotation

_GLANCE = 0.25
"""Seconds between two looks at how far a question is."""


def table_function(duck: Any, source: str | Path) -> str:
    """A file as a table, or several by a pattern. What a CSV file is like is found out once, from all of it: a column of numbers
    that has a word in its last row is a column of words. Times of day, and whole numbers of more than 64 bits, stay texts. Parts
    have the same columns, in any order; one whose type differs from part to part stays text."""
    text = str(source)
    there = Path(text).exists()  # a file of this very name is no pattern, whatever marks stand in it
    paths = [text] if there else sorted(glob.glob(text, recursive=True))
    if not paths:
        raise InvalidParameter(
            f"{Path(text).name!r} is invalid", why="there is no such file", instead="the path of a CSV or Parquet file"
        )
    if is_parquet(text):
        for path in paths:
            _refuse_alike(path, _names_in(path))
        return f"read_parquet([{', '.join(literal(glob.escape(path)) for path in paths)}])"
    parts = [_sniffed(duck, path) for path in paths]
    kinds = dict(parts[0].kinds)
    for part in parts[1:]:
        if part.kinds.keys() != kinds.keys():
            first, other = Path(parts[0].path).name, Path(part.path).name
            raise InvalidParameter(
                f"{Path(text).name!r} is invalid",
                why=f"the columns of {other!r} are not those of {first!r}",
                instead="files whose first lines have the same names",
            )
        for name, kind in kinds.items():  # what a column is that one part has in one type, and another in another
            if kind != (second := part.kinds[name]):
                kinds[name] = ("DOUBLE" if {kind[0], second[0]} == {"BIGINT", "DOUBLE"} else "VARCHAR", "")
    read = [part.read(kinds) for part in parts]
    return read[0] if len(read) == 1 else "(" + " UNION ALL BY NAME ".join(f"SELECT * FROM {each}" for each in read) + ")"


_Kind = tuple[str, str]
"""A type of DuckDB's, and the form in which days or times are written."""
_TEXT: _Kind = ("VARCHAR", "")


@dataclass(frozen=True, kw_only=True)
class _Sniffed:
    """What one CSV file is like."""

    path: str
    settings: Sequence[str]
    kinds: Mapping[str, _Kind]

    def read(self, kinds: Mapping[str, _Kind]) -> str:
        """The file as a table, its columns of these types."""
        types = ", ".join(f"{literal(name)}: {literal(kinds[name][0])}" for name in self.kinds)
        told = ", ".join(self.settings)
        return f"read_csv({literal(glob.escape(self.path))}, {told}, {_AS_TOLD}, columns = {{{types}}})"


_AS_TOLD = "comment = '', auto_detect = false, allow_quoted_nulls = false"
"""Nothing is guessed, and a line that begins with "#" is a row."""


def _sniffed(duck: Any, path: str) -> _Sniffed:
    import duckdb

    text, by = literal(glob.escape(path)), separator_of(Path(path))
    try:
        asked = duck.execute(
            "SELECT Escape, SkipRows, Columns, DateFormat, TimestampFormat "
            f"FROM sniff_csv({text}, sample_size = -1, comment = '', header = true, delim = {literal(by)}, quote = '\"')"
        )
        escape, skipped, columns, date, timestamp = asked.fetchall()[0]
    except duckdb.Error as error:
        raise _unreadable(path) from error
    with (gzip.open if path.lower().endswith(".gz") else open)(path, "rb") as file:
        before = list(islice(file, int(skipped)))  # a title; where it is names, a row would stand for them
        if any(by.encode() in line for line in before):
            why = "its first line has another number of cells than its rows"
            raise InvalidParameter(f"{Path(path).name!r} is invalid", why=why, instead="a name for each column in the first line")
    settings = {"delim": by, "quote": '"', "escape": escape, "dateformat": date, "timestampformat": timestamp}
    told = [f"{name} = {literal(value.replace('(empty)', ''))}" for name, value in settings.items() if value is not None]
    first = f"SELECT * FROM read_csv({text}, {', '.join(told[:3])}, skip = {int(skipped)}, header = false, all_varchar = true)"
    [names] = duck.execute(f"{first} LIMIT 1").fetchall() or [()]
    refuse_unnamed(Path(path), names)
    _refuse_alike(path, names)
    told += [f"skip = {int(skipped)}", "header = true"]
    forms = {"DATE": date or "", "TIMESTAMP": timestamp or ""}
    kinds = {name: (column["type"], forms.get(column["type"], "")) for name, column in zip(names, columns, strict=True)}
    sniffed = _Sniffed(path=path, settings=told, kinds=kinds)
    if guessed := {name: _looking_so(quotation(name), kind) for name, (kind, _) in kinds.items() if kind != "VARCHAR"}:
        texts = sniffed.read(dict.fromkeys(kinds, _TEXT))
        [found] = duck.execute(f"SELECT {', '.join(guessed.values())} FROM {texts}").fetchall()
        kinds |= {name: _TEXT for name, right in zip(guessed, found, strict=True) if not right}
    return sniffed


def _looking_so(cell: str, kind: str) -> str:
    """As SQL, whether a column looks like what DuckDB takes it for."""
    match = f"(regexp_full_match({cell}, "
    ways = (f"bool_and{match}{literal(each)})) AND bool_or{match}{literal(one)}))" for each, one in LOOKS.get(kind, []))
    return f"coalesce({' OR '.join(ways) or 'bool_and(false)'}, true)"


def _names_in(source: str | Path) -> list[str]:
    """The columns of a Parquet file, as they are called there."""
    import polars as pl

    try:
        return list(pl.read_parquet_schema(source))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(source) from error


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


def _unreadable(source: str | Path) -> InvalidParameter:
    return InvalidParameter(
        f"{Path(str(source)).name!r} is invalid",
        why="it could not be read as a table",
        instead="a CSV file with a line of names, Parquet, or with connection= the name of a table",
    )


@contextmanager
def under_another_name(goal: Path) -> Iterator[Path]:
    """Where to write; what is there at the end takes the place of the goal at once. What a process that was killed had written
    there goes with the next one."""
    with PrivateFolder(goal.parent) as folder:
        yield folder / goal.name
        (folder / goal.name).replace(goal)


def kinds_of(duck: Any, rows: str, source: str | Path) -> dict[str, str]:
    """The type of each column, as DuckDB calls it."""
    import duckdb

    try:
        found = duck.sql(f"SELECT * FROM {rows} LIMIT 0")
    except duckdb.Error as error:
        raise _unreadable(source) from error
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
