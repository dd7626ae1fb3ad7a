"""What an upload is, for its owner: names and kinds of columns, some rows, and a declaration with the bounds left out.

Kinds are those that `PrivateTable` recognises; a CSV file is text throughout. A suggestion is what a column may be declared as.
Bounds and categories are never filled in: one that is copied from the data tells of the rows. Where rows are shown, what is
suggested for a text follows from the rows that are shown, and is for anyone who may see these.
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

from cloister.crypto import DecryptedReader, decrypted
from cloister.hub.storage.texts import Content
from cloister.hub.storage.uploads import in_memory
from cloister.printable import json_of
from cloister.tables.engines.guard import guarded
from cloister.tables.sourcing.encrypted import ONLY_MEMORY, MemoryFile
from cloister.tables.sourcing.lines import Openable
from cloister.tables.sourcing.reading import read_days, read_number, read_truth, read_whole
from cloister.tables.sourcing.sources import CsvSource, ParquetSource, Source

_BY_KIND = {
    **dict.fromkeys(("integer", "huge"), "Integer"),
    **dict.fromkeys(("float", "decimal"), "Real"),
    **dict.fromkeys(("date", "days", "timestamp", "timestamptz"), "Date"),
    "boolean": "Boolean",
    "other": "",
}
_BY_VALUE = (("Integer", read_whole), ("Real", read_number), ("Date", read_days), ("Boolean", read_truth))
_SHAPES = {
    "Integer": "cl.Integer(…, …)",
    "Real": "cl.Real(…, …, step=…)",
    "Date": 'cl.Date("…", "…")',
    "Boolean": "cl.Boolean()",
    "Category": "cl.Category([…])",
    "Text": "cl.Text()",
    "": "",
}
_LONGEST_CATEGORY = 40
_START = 3  # chunks: the first two lines of any CSV file that was received are in them


@dataclass(frozen=True, kw_only=True)
class HeaderColumn:
    """One column: its name, its kind, and what it may be declared as, for the owner to fill in; nothing where nothing fits."""

    name: str
    kind: str
    suggested: str

    @property
    def line(self) -> str:
        """The line to fill in.

        >>> HeaderColumn(name="age", kind="text", suggested="Integer").line
        '"age": cl.Integer(…, …),'
        >>> print(HeaderColumn(name='a "b"', kind="text", suggested="Text").line)
        "a \\"b\\"": cl.Text(),
        """
        shape = _SHAPES[self.suggested]
        return f"{json_of(self.name)}: {shape}," if shape else ""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The columns of an upload, and the first rows where they were asked for: these are for the owner only, and never logged."""

    columns: tuple[HeaderColumn, ...]
    rows: tuple[tuple[str | None, ...], ...] = field(default=(), repr=False)


class SealedPlace:
    """A sealed file, opened as the content that it holds."""

    suffix = ""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """The content from its first byte."""
        return io.BufferedReader(DecryptedReader(self._path.open("rb"), self._key), 2**20)


class UploadedCsv(CsvSource):
    """A CSV file that is no file: what `lines.py` says of rows holds for it word by word."""

    def __init__(self, place: Openable) -> None:
        super().__init__(place)  # type: ignore[arg-type]

    def identity(self) -> None:  # type: ignore[override]
        """None: what is not stored yet has no name."""

    def state(self) -> None:
        """None."""

    def lineage(self) -> frozenset[str]:
        """Nothing."""
        return frozenset()

    @property
    def is_long(self) -> bool:
        """Not known."""
        return False

    is_large = is_long


def header(path: Path, key: bytes, kind: str, rows: int) -> Header:
    """What a received upload is, with so many of its first rows."""
    if kind == "csv":
        with path.open("rb") as sealed:
            start = b"".join(islice(decrypted(sealed, key), _START))
        return _header(UploadedCsv(Content(start)), rows)
    with in_memory(path, key) as file:
        return _header(_parquet(file), rows)


def suggestion(kind: str, values: Sequence[str | None]) -> str:
    """What a column of the kind may be declared as, by the texts that are shown of it.

    >>> suggestion("integer", []), suggestion("text", []), suggestion("text", ["39", None]), suggestion("text", ["F", "M", "F"])
    ('Integer', 'Text', 'Integer', 'Category')
    """
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    shown = [value for value in values if value is not None]
    if not shown:
        return "Text"
    for name, read in _BY_VALUE:
        if all(read(value) is not None for value in shown):
            return name
    repeats = len(set(shown)) < len(shown)
    return "Category" if repeats and max(map(len, shown)) <= _LONGEST_CATEGORY else "Text"


def _header(source: Source, rows: int) -> Header:
    shown = guarded("The upload could not be read", lambda: _rows(source, rows), why="its first rows are damaged") if rows else ()
    columns = [
        HeaderColumn(name=name, kind=kind, suggested=suggestion(kind, [row[i] for row in shown]))
        for i, (name, kind) in enumerate(source.schema.items())
    ]
    return Header(columns=tuple(columns), rows=shown)


def _rows(source: Source, count: int) -> tuple[tuple[str | None, ...], ...]:
    import duckdb

    with duckdb.connect(":memory:", config=ONLY_MEMORY | {"preserve_insertion_order": True}) as connection:
        relation = source.attach(connection)
        found: list[Any] = connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {relation} LIMIT {int(count)}").fetchall()
        source.detach(connection)
    return tuple(found)


def _parquet(file: MemoryFile) -> ParquetSource:
    return ParquetSource(Path(file.path))
