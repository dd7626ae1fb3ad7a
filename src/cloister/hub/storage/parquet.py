"""Whether a Parquet file is one that the hub takes: whole, flat, not encrypted, and no larger inside than outside allows.

What the file says of itself is checked before anything is decompressed. It may lie: so it is then read to its end once, in a
connection that has so much memory and no more, when it is written again in the encrypted form. Nothing of the sent file but its
values comes into what questions read.
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from cloister.errors import CloisterError
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.encrypted import ONLY_MEMORY, MemoryFile
from cloister.tables.sourcing.sources import check_names

_TAIL = 8
_AGAIN = "the file written again: duckdb -c \"COPY 'people.parquet' TO 'again.parquet'\""


def check_parquet(file: MemoryFile, limits: Limits) -> None:
    """Refuses what is no Parquet file of plain columns within the limits."""
    import duckdb

    _check_frame(Path(file.path), limits)
    with duckdb.connect(":memory:", config={**ONLY_MEMORY, "memory_limit": limits.memory}) as connection:
        said = tried(lambda: _said(connection, file.path, limits), duckdb.Error)
    if said is None:
        raise _refused("it is damaged, or not a Parquet file that DuckDB reads", _AGAIN)
    rows, groups, expanded, names, schema = said
    if rows < 0 or groups < 0 or expanded < 0:
        raise _refused("what it says of its own length cannot be", _AGAIN)
    limits.check("rows", rows, limits.rows)
    limits.check("row groups", groups, limits.row_groups)
    limits.check("bytes when it is decompressed", expanded, limits.expanded)
    nested = [name for name, kind in schema if _is_nested(kind)]
    if nested:
        raise _refused(f"column {nested[0]!r} is nested", "one column for each value: SELECT field.* or unnest(…)")
    _check_names(names)
    if not rows:
        raise _refused("it has no rows", "a file with rows")


def _check_names(names: list[str]) -> None:
    error: CloisterError
    try:
        return check_names(names)
    except CloisterError as found:
        error = found
    raise _refused(error.why, error.instead)


def _check_frame(path: Path, limits: Limits) -> None:
    """Magic bytes at both ends, and a footer that is within the file."""
    length = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(0, length - _TAIL))
        tail = file.read(_TAIL)
    if start == b"PARE" or tail.endswith(b"PARE"):
        raise _refused("it is encrypted", "the file in plain: the hub encrypts it under a key of its own")
    if start != b"PAR1" or not tail.endswith(b"PAR1") or length < 12:
        raise _refused("it is not a Parquet file, or it is incomplete", "a file that ends in .parquet, or the kind csv")
    (footer,) = struct.unpack("<I", tail[:4])
    if footer > length - 12:
        raise _refused("it is not a Parquet file, or it is incomplete", _AGAIN)
    limits.check("bytes in its footer", footer, limits.footer)


def _said(connection: Any, path: str, limits: Limits) -> tuple[int, int, int, list[str], list[tuple[str, str]]]:
    """Rows, row groups, bytes when decompressed, names and types: what the footer says. The names are its own: DuckDB would give
    new ones to those that are there twice."""
    rows, groups = connection.execute(f"SELECT num_rows, num_row_groups FROM parquet_file_metadata('{path}')").fetchone()
    (elements,) = connection.execute(f"SELECT COUNT(*) FROM parquet_schema('{path}')").fetchone()
    limits.check("columns", elements - 1, limits.columns)
    names = [name for (name,) in connection.execute(f"SELECT name FROM parquet_schema('{path}')").fetchall()[1:]]
    limits.check("row groups", groups, limits.row_groups)
    (expanded, least, inside) = connection.execute(
        "SELECT COALESCE(SUM(total_uncompressed_size), 0), COALESCE(MIN(total_uncompressed_size), 0), "
        f"COALESCE(MAX(row_group_num_rows), 0) FROM parquet_metadata('{path}')"
    ).fetchone()
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()
    length = int(expanded) if least >= 0 else -1
    return max(int(rows), int(inside)), int(groups), length, names, [(name, kind) for name, kind, *_ in described]


def _is_nested(kind: str) -> bool:
    return kind.startswith(("STRUCT", "MAP", "UNION", "LIST", "VARIANT", "GEOMETRY")) or kind.endswith("]")


def _refused(why: str, instead: str) -> RefusedUpload:
    return RefusedUpload("The upload is invalid", why=why, instead=instead)
