"""The source behind what an owner wrote: a path, a frame, lists, a table of Ibis, an address; whichever engine holds the rows."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cloister.errors import InvalidDeclaration
from cloister.parsers import is_parquet
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.sourcing.sources import (
    PLAIN,
    CsvSource,
    FrameSource,
    ParquetSource,
    Source,
    StreamSource,
    from_lists,
    unreadable,
)

_TURNED = {
    "Series": "series.to_frame()",
    "LazyFrame": "frame.collect()",
    "list": '{"age": [39, 50], "sex": ["F", "M"]}',
    "ndarray": '{"age": array[:, 0], "pay": array[:, 1]}',
}
"""What is written for a source of such a type."""


def recognise(source: Any) -> Source:
    """The source behind what an owner wrote. A refusal carries nothing of the rows: no history, no frames that hold them.

    >>> recognise({"age": [39, None], "name": ["Ann", "Bob"]}).schema
    {'age': 'integer', 'name': 'text'}
    """
    if isinstance(source, Source):
        return source
    given = [source]
    del source  # whoever prints the names in the frames of a refusal must not find the rows
    return guarded("The source could not be read", lambda: _held(given.pop()), why="it failed when it was opened")


def _held(source: Any) -> Source:
    found = _recognised(source)
    if not isinstance(source, str | Path):
        found.origin = source
    return found


def _recognised(source: Any) -> Source:
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        from cloister.tables.engines.postgres import PostgresSource

        return PostgresSource.from_url(source)
    if isinstance(source, str) and source.startswith("sc://"):
        from cloister.tables.engines.spark_connect import SparkConnectSource

        return SparkConnectSource.from_url(source)
    if isinstance(source, str | Path):
        return _file(Path(source))
    if isinstance(source, Mapping):
        return from_lists(source, "dictionary of lists")
    module = type(source).__module__.partition(".")[0]
    if module == "pyspark":
        from cloister.tables.engines.spark import SparkSource

        return SparkSource(source)
    if module == "ibis":
        return _from_ibis(source)
    if hasattr(source, "__arrow_c_stream__") and (hasattr(source, "columns") or hasattr(source, "schema")):  # no single column
        import arro3.core

        if module == "pandas":
            return _of_pandas(source)
        empty = [name for name, dtype in source.schema.items() if str(dtype) == "Null"] if module == "polars" else []
        given = source.cast(dict.fromkeys(empty, float)) if empty else source  # polars' own form of them is not Arrow's
        frame = tried(lambda: arro3.core.Table.from_arrow(given), Exception)
        if frame is None:
            raise unreadable(f"The {module} frame", PLAIN)
        return FrameSource(frame, f"{module} frame", dict.fromkeys(empty, "null"))
    raise InvalidDeclaration(
        f"A source of type {type(source).__name__} is invalid",
        why="it is not a path, a dictionary of lists, a frame, an Ibis table, a postgresql:// or an sc:// address",
        instead=_TURNED.get(type(source).__name__, 'cl.PrivateTable("people.csv", columns={…})'),
    )


def _of_pandas(frame: Any) -> Source:
    """Each column by itself, those of Python objects value by value: else what one value looks like would say how its column is
    read, or all of them."""
    import arro3.core

    lists, typed = {}, {}
    for place, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, [place]].reset_index(drop=True)
        dtype = column.dtypes.iloc[0]
        found = None
        if str(dtype).startswith("period["):  # else its number of months or days since 1970
            column = column.iloc[:, 0].dt.to_timestamp().to_frame()
        if str(getattr(getattr(dtype, "categories", None), "dtype", dtype)) not in ("object", "float16"):
            found = tried(partial(arro3.core.Table.from_arrow, column), Exception)
        if found is None:
            lists[name] = column.iloc[:, 0].to_numpy()
        else:
            typed[name] = found.column(0)
    return from_lists(lists, "pandas frame", typed)


def _from_ibis(table: Any) -> Source:
    backend = tried(table.get_backend, Exception)
    if backend is None:
        raise InvalidDeclaration("The Ibis table is invalid", why="it belongs to no backend", instead="backend.table('people')")
    if backend.name == "postgres":
        from cloister.tables.engines.postgres import PostgresSource

        return PostgresSource.from_ibis(table, backend)
    if backend.name == "pyspark":
        from cloister.tables.engines.spark import SparkSource

        return SparkSource.from_ibis(table, backend)
    return StreamSource(table)


def _file(path: Path) -> Source:
    if not path.is_file():
        instead = "the path of a file that is there"
        raise InvalidDeclaration(f"The source {path.name!r} is invalid", why="there is no such file", instead=instead)
    parquet = is_parquet(path)
    if parquet or any(suffix.lower() in (".csv", ".tsv", ".txt") for suffix in path.suffixes[-2:]):
        found = (ParquetSource if parquet else CsvSource)(path.resolve())
        found.given = path.absolute()
        return found
    why = "its name ends in neither .csv nor .parquet"
    raise InvalidDeclaration(f"The source {path.name!r} is invalid", why=why, instead='a path like "people.csv"')
