"""Where the rows of a table come from: files, dictionaries of lists, frames, Ibis tables, PostgreSQL and Spark.

`recognise` turns what the owner wrote into a `Source`, which knows the names and the kinds of its columns (its schema, from
which a declaration is checked) and the engine that will hold it. A CSV file is read as text throughout: guessing types from its
rows would make the schema depend on them; its first line is all that is read of it here (`lines.py`).

A list of Python objects, and a pandas column of them, has no type of its own: what it looks like hangs on single values. Hence a
value means the same in every kind that holds it: a list of several types becomes the texts of `spelled`, which declarations read
as they read the value itself, and which are the names of units (`preparation.py`) whatever the kind. A list whose values look
like a kind that its declaration does not take becomes such texts too (`Source.read_under`): each value is then read under the
declaration, and what does not fit is missing. So whether a table opens never depends on a row.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import datetime
import glob
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from cloister.errors import EngineError, InvalidDeclaration
from cloister.tables.engines.connection import connected, without_progress_bar
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.engines.ibis_compilers import sql_of
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.file_lineage import file_place, lineage_of
from cloister.tables.sourcing.lines import batches, malformed_sql, read_header, rows_sql
from cloister.tables.sourcing.reading import EPOCH, SPELT, START, representable, since_epoch, spelled

if TYPE_CHECKING:
    from cloister.tables.declaring.table import PrivateTable
    from cloister.tables.engines.abilities import Abilities
    from cloister.tables.engines.engine import Engine

Kind: TypeAlias = str
"""The kind of a source column: integer, huge, float, decimal, text, boolean, date, days, timestamp, timestamptz, null, other."""

_DUCKDB_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "integer"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "huge"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), "text"),
    "DECIMAL": "decimal",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"), "timestamptz"),
    '"NULL"': "null",
}
_RELATION = "cloister_source"
_FARTHEST = 10**300
"""A whole number beyond this counts as this: Python writes none of thousands of digits."""
_SQLITE_TYPES = {
    "integer": "CASE typeof({0}) WHEN 'integer' THEN {0} END",
    "float": "CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END",
    "boolean": "CASE WHEN {0} IN (0, 1) THEN {0} END",
    "text": "CAST(CAST({0} AS TEXT) AS BLOB)",
}
_SQLITE_ROWS = 10_000
_OTHER_PROGRAM, PLAIN = "a file that another program can open", "columns of common types, such as int64, float64 and texts"


class Source(ABC):
    """Names and kinds of the columns, and the engine that holds the rows."""

    engine: ClassVar[str] = "duckdb"
    """The engine's name. A source of another engine names it here and makes it in `make_engine`."""
    schema: dict[str, Kind]
    is_encrypted: bool = False
    """Whether its rows are encrypted at rest, so that nothing of them may go to a disk in plain."""
    origin: Any = None
    """The very object that the owner gave, where it was one in memory: the same object (`is`) is the same rows."""

    able_as: Abilities | None = None
    """What its tables can be asked where that is not what its engine can do: of rows that stand for those of another source."""

    delimiters: Mapping[str, str] = MappingProxyType({})
    """By column whose texts are as a CSV file has them: what stands between its fields."""

    made_of: Mapping[str, PrivateTable] = MappingProxyType({})
    """Tables whose rows these are, by population: whatever the table's own population is charged, each of them is too."""

    part: str = ""
    """Which of its rows are meant, where tables of several populations share it and each reads rows of its own (`during=`). The
    ledger then knows each by the source and the part; whoever gives one answers for that no row is of two."""

    @abstractmethod
    def describe(self) -> str:
        """What the source is, in a word that is safe to show."""

    def read_under(self, accepted: Mapping[str, Collection[Kind]]) -> Source:
        """The same rows, with the columns that have no type of their own as a declaration reads them: a kind that it accepts."""
        return self

    def make_engine(self) -> Engine:
        """The engine that prepares tables of this source."""
        from cloister.tables.engines.duckdb import DuckDBEngine

        return DuckDBEngine()

    @property
    def abilities(self) -> Abilities:
        """What that engine can be asked, or no more than `able_as` says."""
        return self.able_as or self.make_engine().abilities

    def identity(self) -> str | None:
        """A name by which the same source is known again, under whatever name of a table; None where there is none."""
        return None

    def lineage(self) -> frozenset[str]:
        """Names of all that its rows come from, as whoever holds them tells, looked up now: relations of a database by the names
        that its server gives them, a file by its place on the disk and by what is in it. Two sources that have one in common hold
        rows of the same people, however they are written. Empty where nothing can be told."""
        return frozenset()

    def state(self) -> str | None:
        """A text that changes when the owner writes the source again, looked up now; None where there is nothing to look at."""
        return None

    def attach(self, connection: Any) -> str:
        """Make the rows visible to a DuckDB connection; the SQL text that stands after FROM."""
        raise NotImplementedError

    def detach(self, connection: Any) -> None:
        """Let go of what `attach` made visible."""
        connection.unregister(_RELATION)

    def malformed(self, connection: Any) -> int:
        """How many lines of the source are no rows: for the owner only."""
        return 0

    @property
    def is_large(self) -> bool:
        """Whether the prepared rows should go to a file instead of memory."""
        return False

    @property
    def is_long(self) -> bool:
        """Whether it is known to have so many rows that an array of millions of counts is no detour."""
        return False


class FileSource(Source):
    """A file of this machine."""

    _accepted: Mapping[str, Collection[Kind]] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        self.path = self.given = path
        """Where the file is, and the path by which it was named: of a link, the file that it led to and the link."""

    def read_under(self, accepted: Mapping[str, Collection[Kind]]) -> Source:
        """With numbers and days of a CSV file as people write them (`SPELT`)."""
        found = object.__new__(type(self))  # not by copy, which a source that holds a key refuses
        vars(found).update(vars(self), _accepted=accepted)
        return found

    def _read(self, connection: Any, relation: str) -> str:
        """The rows of a relation as a declaration reads them."""
        given = {quotation(name): (self._accepted.get(name, ()), by) for name, by in self.delimiters.items()}
        read = [f"{sql} AS {cell}" for cell, (kinds, by) in given.items() if (sql := spelt_sql(cell, kinds, by)) != cell]
        return f"(SELECT * REPLACE ({', '.join(read)}) FROM {relation}) AS spelt" if read else relation

    @property
    def is_long(self) -> bool:
        """More than 16 MiB."""
        return self._bytes() > 2**24

    def identity(self) -> str:
        """The path."""
        return f"file:{self.path}"

    def lineage(self) -> frozenset[str]:
        """Its place on the disk, and what is in it."""
        return lineage_of(self.path)

    def state(self) -> str | None:
        """Size and time of the last write."""
        found = tried(self.path.stat, OSError)
        return None if found is None else f"{found.st_size}:{found.st_mtime_ns}"

    def _bytes(self) -> int:
        found = tried(self.path.stat, OSError)
        return 0 if found is None else found.st_size


def spelt_sql(cell: str, kinds: Collection[Kind], delimiter: str) -> str:
    """SQL of a cell of a CSV file as a declaration that takes these kinds reads it (`SPELT`)."""
    found = cell
    for kind, between, sign, form, steps in SPELT:
        if kind in kinds and delimiter in between:
            read = cell
            for pattern, by in steps:
                read = f"regexp_replace({read}, '{pattern}', '{by.replace('g<1>', '1')}', 'g')"
            written = f"contains({cell}[:9], '{sign}') AND regexp_full_match({cell}, '{form}')"
            found = f"CASE WHEN {written} THEN {read} ELSE {found} END"
    return found


class CsvSource(FileSource):
    """A CSV file with a header line, every other line one row (`lines.py`), every field read as text. An empty field is NULL."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.header = guarded(
            "The CSV file could not be read",
            lambda: read_header(path),
            why="its first line is not text, or nothing can be read",
            instead="the file saved once more, as CSV in UTF-8",
        )
        check_names(self.header.names)
        self.schema = dict.fromkeys(self.header.names, "text")
        self.delimiters = dict.fromkeys(self.header.names, self.header.delimiter)

    def describe(self) -> str:
        """`csv`."""
        return "csv"

    @property
    def is_large(self) -> bool:
        """More than 256 MiB, or 64 when compressed."""
        return self._bytes() > (2**26 if self.path.suffix.lower() == ".gz" else 2**28)

    def attach(self, connection: Any) -> str:
        """Registers a stream of the lines; the SELECT takes them apart."""
        connection.register(_RELATION, batches(self.path, self.header))
        rows = rows_sql(_RELATION, self.header, list(map(quotation, self.schema)))
        return self._read(connection, f"({rows}) AS rows_of_lines")

    def malformed(self, connection: Any) -> int:
        """Lines with unbalanced quotes, with too few or too many fields, not in UTF-8, or too long."""
        connection.register(_RELATION, batches(self.path, self.header))
        [(count,)] = connection.execute(malformed_sql(_RELATION, self.header)).fetchall()
        self.detach(connection)
        return int(count)


class ParquetSource(FileSource):
    """A Parquet file; its own schema says the kinds."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.schema = _described(self, "The Parquet file")
        with opened_for(self) as connection:
            query = "SELECT name, coalesce(num_children, 0) FROM parquet_schema(?) OFFSET 1"
            found = connection.execute(query, [glob.escape(str(path))]).fetchall()
            check_names(_outermost(found))  # DuckDB renames what is called alike

    def describe(self) -> str:
        """`parquet`."""
        return "parquet"

    @property
    def is_large(self) -> bool:
        """More than 128 MiB."""
        return self._bytes() > 2**27

    def attach(self, connection: Any) -> str:
        """A `read_parquet`; bytes that are no text stand as "?", since one such value would keep the whole table from opening."""
        path = glob.escape(str(self.path)).replace("'", "''")
        return f"read_parquet('{path}', utf8_validation='replace')"

    def detach(self, connection: Any) -> None:
        """Nothing was registered."""


class FrameSource(Source):
    """An Arrow table in memory (from pandas, polars, pyarrow, arro3 or a dictionary of lists).

    `untyped` are the columns of Python objects, whose kind is only what their values look like."""

    def __init__(
        self, table: Any, name: str, kinds: Mapping[str, Kind] | None = None, untyped: Collection[str] = frozenset()
    ) -> None:
        self.name = name
        self._untyped = frozenset(untyped)
        names = list(table.schema.names)
        self._coarse = [place for place in range(len(names)) if _is_coarse(table.column(place).type)]
        self.table = table
        check_names(names)
        self.schema = {**_described(self, f"The {name}"), **(kinds or {})} if names else {}

    def describe(self) -> str:
        """The kind of frame."""
        return self.name

    def read_under(self, accepted: Mapping[str, Collection[Kind]]) -> Source:
        """With the texts of those columns of Python objects that look like another kind."""
        import arro3.core

        others = {name for name, kinds in accepted.items() if name in self._untyped and self.schema[name] not in kinds}
        if not others:
            return self
        arrays: dict[str, Any] = {}
        for name in self.table.schema.names:
            values = self.table.column(name)
            if name in others:
                texts = [_text_or_missing(item, self.schema[name]) for item in values.to_pylist()]
                values = arro3.core.Array(texts, arro3.core.DataType.utf8())
            arrays[name] = values
        kinds = {name: kind for name, kind in self.schema.items() if name not in others}
        found = FrameSource(arro3.core.Table.from_pydict(arrays), self.name, kinds, self._untyped)
        found.origin, found.part = self.origin, self.part
        return found

    def attach(self, connection: Any) -> str:
        """Registers the Arrow table under a fixed name. Moments in seconds or milliseconds become those in microseconds one by
        one: DuckDB takes none of a column with a zone where one value is too far away."""
        from arro3.core import DataType

        table, names = self.table, [quotation(self.table.schema.names[place]) for place in self._coarse]
        for place in self._coarse:
            column, unit = table.column(place), table.column(place).type.time_unit
            table = table.set_column(place, table.schema.names[place], column.cast(DataType.timestamp(unit)))
        connection.register(_RELATION, table)
        if not names:
            return _RELATION
        moments = ", ".join(f"TRY_CAST(TRY_CAST({name} AS TIMESTAMP) AS TIMESTAMPTZ) AS {name}" for name in names)
        return f"(SELECT * REPLACE ({moments}) FROM {_RELATION}) AS finer"


class StreamSource(Source):
    """An Ibis table of any backend that is not pushed down: read as a stream of Arrow batches when it is prepared."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.schema = {name: kind_of_ibis(dtype) for name, dtype in table.schema().items()}
        if table.get_backend().name == "sqlite":
            self.schema = {name: kind if kind in _SQLITE_TYPES else "text" for name, kind in self.schema.items()}
        check_names(list(self.schema))

    def describe(self) -> str:
        """`ibis`."""
        return "ibis"

    def lineage(self) -> frozenset[str]:
        """The tables that it reads, each by the place of its database and by its name there. Nothing of a database in memory, of
        a text of SQL, and of what is below a view."""
        return tried(lambda: frozenset(_tables_below(self.table)), Exception) or frozenset()

    def attach(self, connection: Any) -> str:
        """Registers a reader of the backend's own batches."""
        import arro3.core

        connection.register(_RELATION, arro3.core.RecordBatchReader.from_stream(self._stream()))
        return _RELATION

    def _stream(self) -> Any:
        backend = self.table.get_backend()
        if backend.name not in ("duckdb", "sqlite"):
            return self.table.to_pyarrow_batches()
        backend._run_pre_execute_hooks(self.table)  # makes in-memory tables visible, as Ibis does before it executes
        if backend.name == "sqlite":
            return self._of_sqlite(backend)
        # asked of DuckDB itself: Ibis 12 calls methods that DuckDB 2 no longer has
        return backend.con.sql(sql_of(self.table, "duckdb"))

    def _of_sqlite(self, backend: Any) -> Any:
        """SQLite holds any value in any column: what is not of the column's type is missing, whatever Ibis would make of it."""
        from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

        made = {"integer": DataType.int64, "float": DataType.float64, "boolean": DataType.bool, "text": DataType.utf8}
        types = [made[kind]() for kind in self.schema.values()]
        schema = Schema([Field(name, dtype, nullable=True) for name, dtype in zip(self.schema, types, strict=True)])
        values = ", ".join(_SQLITE_TYPES[kind].format(quotation(name)) for name, kind in self.schema.items())
        rows = backend.con.execute(f"SELECT {values} FROM ({sql_of(self.table, 'sqlite')}) AS given")
        batches = []  # all of them now: DuckDB reads in threads of its own, and SQLite answers the one that asked
        while some := rows.fetchmany(_SQLITE_ROWS):
            lists = [
                [_from_sqlite(kind, value) for value in column]
                for kind, column in zip(self.schema.values(), zip(*some, strict=True), strict=True)
            ]
            batches.append(RecordBatch.from_arrays(list(map(Array, lists, types)), schema=schema))
        return RecordBatchReader.from_batches(schema, batches)


def _from_sqlite(kind: Kind, value: Any) -> Any:
    """A truth, or a text, whose bytes may be none."""
    if value is None or kind not in ("boolean", "text"):
        return value
    return bool(value) if kind == "boolean" else tried(value.decode, UnicodeDecodeError)


def kind_of_ibis(dtype: Any) -> Kind:
    """The kind of an Ibis type."""
    if dtype.is_uint64():
        return "huge"
    if dtype.is_timestamp():
        return "timestamptz" if dtype.timezone else "timestamp"
    alike = ("integer", "decimal", "boolean", "date", "null")
    named = dict(zip(alike, alike, strict=True)) | {"floating": "float", "string": "text", "uuid": "text"}
    return next((kind for name, kind in named.items() if getattr(dtype, f"is_{name}")()), "other")


def _tables_below(table: Any) -> Iterator[str]:
    import ibis.expr.operations as ops

    backend = table.get_backend()
    in_files = backend.name in ("duckdb", "sqlite")
    if in_files:
        files = {name: file for _, name, file in backend.con.execute("PRAGMA database_list").fetchall() if file}
    else:
        parts = ("host", "account", "project_id", "port", "database", "path")
        server = " ".join(str(backend._con_kwargs.get(name) or "") for name in parts)
    for each in table.op().find(ops.DatabaseTable):
        catalog = each.namespace.catalog or getattr(backend, "current_catalog", None) or "main"
        schema = each.namespace.database or getattr(backend, "current_database", None) or "main"
        if backend.name == "sqlite":  # what it calls a database is what others call a catalogue
            catalog, schema = schema, "main"
        if in_files:
            place = file_place(Path(files[catalog])) if catalog in files else None
            catalog = ""  # the file may be attached under any name
        else:
            place = server if server.strip() else None
        if place is not None:
            yield f"{backend.name} {place} {catalog}.{schema}.{each.name}".casefold()


def _is_coarse(dtype: Any) -> bool:
    """Moments in a zone, in seconds or milliseconds."""
    return bool(dtype.is_timestamp(dtype)) and dtype.tz is not None and dtype.time_unit in ("s", "ms")


@cache
def _database(process: int) -> Any:
    """A database in memory in which frames are described, opened once by each process: to open one takes sixteen times as long
    as to describe a frame, and a child that was forked has none of its threads. A frame is seen by its own cursor alone, until
    that closes.
    """
    return connected(settings={"threads": 1})


def opened_for(source: Source) -> Any:
    """Where a source can be attached: a cursor of a database that stays for frames, and for files, of which nothing is kept, one
    of its own."""
    return without_progress_bar(_database(os.getpid()).cursor()) if isinstance(source, FrameSource) else connected()


def _described(source: Source, what: str) -> dict[str, Kind]:
    import duckdb

    with opened_for(source) as connection:
        rows = tried(lambda: connection.execute(f"DESCRIBE SELECT * FROM {source.attach(connection)}").fetchall(), duckdb.Error)
    if rows is None:
        raise unreadable(what, PLAIN if isinstance(source, FrameSource) else _OTHER_PROGRAM)
    schema = {name: _DUCKDB_KINDS.get(kind.partition("(")[0], "other") for name, kind, *_ in rows}
    check_names([name for name, *_ in rows])
    return schema


def _outermost(columns: Sequence[tuple[str, int]]) -> list[str]:
    """The names that are not within another, of a tree in which each says how many follow within it.

    >>> _outermost([("age", 0), ("place", 2), ("lon", 0), ("lat", 0), ("sex", 0)])
    ['age', 'place', 'sex']
    """
    names, within = [], 0
    for name, children in columns:
        if not within:
            names.append(name)
        within = max(within - 1, 0) + children
    return names


def check_names(names: Sequence[str]) -> None:
    if not names:
        raise InvalidDeclaration(
            "The source is invalid", why="it has no columns", instead="a file whose first line names the columns"
        )
    for name in names:
        if name == "":
            raise InvalidDeclaration(
                "The source is invalid",
                why="one of its columns has no name",
                instead="a name for each; in CSV the names come first, with no title above them and no index of pandas",
            )
        if not isinstance(name, str) or not representable(name):
            raise InvalidDeclaration(f"The column name {name!r} is invalid", why="it is not plain text", instead='"age"')
    folded = [name.casefold() for name in names]
    for name, key in zip(names, folded, strict=True):
        if folded.count(key) > 1:
            other = next(each for each in reversed(names) if each.casefold() == key)
            raise InvalidDeclaration(
                "The source is invalid",
                why=f"two of its columns are named {name!r}"
                + (f" and {other!r}: names differ in more than case" if other != name else ""),
                instead="a name of its own for each",
            )


def from_lists(source: Mapping[Any, Any], what: str, typed: Mapping[str, Any] = MappingProxyType({})) -> Source:
    """The source of columns as lists or arrays; `typed` are columns of Arrow, which have a type of their own."""
    import arro3.core

    check_names([*source, *typed])
    arrays: dict[str, Any] = dict(typed)
    kinds, lengths = {}, {len(column) for column in typed.values()}
    untyped = [name for name, values in source.items() if getattr(getattr(values, "dtype", None), "kind", "O") == "O"]
    for name, values in source.items():
        if isinstance(values, str | bytes) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
            raise InvalidDeclaration(
                f"Column {name!r} is invalid", why="it is not a list of values", instead=f'{{"{name}": [1, 2, 3]}}'
            )
        arrays[name], kind = _array(name, values)
        if kind is not None:
            kinds[name] = kind
        lengths.add(len(values))
    if len(lengths) > 1:
        raise InvalidDeclaration("The source is invalid", why="its columns are of unequal length", instead="lists of one length")
    return FrameSource(arro3.core.Table.from_pydict(arrays), what, kinds, untyped)


def _array(name: str, values: Any) -> tuple[Any, Kind | None]:
    """An Arrow array and, where DuckDB's own type does not say it, the kind."""
    from arro3.core import Array, DataType

    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        if values.ndim != 1:
            raise InvalidDeclaration(
                f"Column {name!r} is invalid", why="it has more than one dimension", instead="one list a column"
            )
        if values.dtype.kind in "iufb" and values.dtype.itemsize <= 8 and values.dtype != np.float16:
            return Array.from_numpy(np.ascontiguousarray(values)), None
        if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in ("Y", "M", "W", "D"):
            moments = values.astype("datetime64[us]").astype(np.int64).tolist()
            return _moments([None if at == np.iinfo(np.int64).min else at for at in moments]), None
        if values.dtype.kind == "M":
            days = values.astype("datetime64[D]").astype(np.int64).tolist()
            return Array([None if day == np.iinfo(np.int64).min else day for day in days], DataType.int64()), "days"
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    alike = _of_one_type(items)
    if alike is not None:
        return alike, None
    items = [min(max(item, -_FARTHEST), _FARTHEST) if type(item) is int else item for item in items]
    missing = [_is_missing(item) for item in items]
    present = [item for item, gone in zip(items, missing, strict=True) if not gone]
    kinds = {_python_kind(item) for item in present}
    if kinds == {int, float} and all(not isinstance(item, int) or abs(item) <= 2**53 for item in present):
        kinds = {float}
    if len(kinds) > 1:  # as text, which the declaration then reads value by value
        kinds = {str}
        items = [None if gone else spelled(item) for item, gone in zip(items, missing, strict=True)]
        missing = [item is None for item in items]
    kind = kinds.pop() if kinds else float if any(isinstance(item, float) for item in items) else None
    if kind is None:
        return Array([None] * len(items), DataType.float64()), "null"
    if kind is datetime.date:
        days = [None if gone else _since_epoch(item).days for item, gone in zip(items, missing, strict=True)]
        return Array(days, DataType.int64()), "days"
    if kind is datetime.datetime:
        one = datetime.timedelta(microseconds=1)
        return _moments([None if gone else _since_epoch(item) // one for item, gone in zip(items, missing, strict=True)]), None
    if kind is int and any(not -(2**63) <= item < 2**63 for item in present):
        kind = str
        items = [str(item) for item in items]
    if kind is str:
        texts = [None if gone or not representable(str(item)) else str(item) for item, gone in zip(items, missing, strict=True)]
        return Array(texts, DataType.utf8()), None
    dtype = {bool: DataType.bool(), int: DataType.int64(), float: DataType.float64()}[kind]
    return Array([None if gone else kind(item) for item, gone in zip(items, missing, strict=True)], dtype), None


def _of_one_type(items: list[Any]) -> Any:
    """What `_array` makes of a list, where each item is a plain text, float or integer and no more need be asked of any; None for
    another list. Most columns are such a one, and to look at each value costs more than to store it.
    """
    from arro3.core import Array, DataType

    types = {*map(type, items)}
    if types == {str} and {*items} != {"NaT"}:
        lost = {text for text in {*items} if text == "NaT" or not representable(text)}
        return Array([None if text in lost else text for text in items] if lost else items, DataType.utf8())
    if types == {float}:
        return Array([None if math.isnan(item) else item for item in items], DataType.float64())
    if types == {int} and min(items) >= -(2**63) and max(items) < 2**63:
        return Array(items, DataType.int64())
    return None


def _text_or_missing(item: Any, kind: Kind) -> str | None:
    """The text of an item of an Arrow column that was made of Python objects."""
    if item is not None and kind == "days":
        item = EPOCH + datetime.timedelta(days=item)
    text = None if _is_missing(item) else spelled(item)
    return text if text is not None and representable(text) else None


def _python_kind(item: Any) -> Any:
    from decimal import Decimal

    for kind in (bool, int, float, str):
        if isinstance(item, kind):
            return kind
    if isinstance(item, Decimal):
        return str
    if isinstance(item, datetime.datetime):
        return datetime.datetime
    return datetime.date if isinstance(item, datetime.date) else None


def _is_missing(item: Any) -> bool:
    """None, NaN, the frames' own marks, and every object that is no value at all: of the wrong type, so NULL."""
    if isinstance(item, float):
        return math.isnan(item)
    if _python_kind(item) is None or str(item) == "NaT":
        return True
    if not isinstance(item, datetime.datetime) or item.tzinfo is None:
        return False
    return tried(lambda: START + _since_epoch(item), OverflowError) is None  # in UTC it is in no year that has a name


def _since_epoch(value: datetime.date) -> datetime.timedelta:
    """Of a day or a moment; in UTC where it has a zone, as engines read it."""
    found = since_epoch(value)
    assert found is not None
    return found


def _moments(microseconds: list[int | None]) -> Any:
    from arro3.core import Array, DataType

    return Array(microseconds, DataType.int64()).cast(DataType.timestamp("us"))


def unreadable(what: str, instead: str) -> Exception:
    """The refusal of a source that no engine reads."""
    return EngineError(f"{what} could not be read", why="the engine refused it", instead=instead)
