"""Connections of DuckDB, all made here: they print nothing, fetch nothing, and write nothing to disk that nobody asked for.

Where Python is interactive (a notebook, a shell, `python -c`) DuckDB draws a bar on standard output for whatever takes long.
Progress on private rows is ours to tell, from public facts; and what a program prints for another to read has no bar in it. By
itself DuckDB would fetch extensions by their names, spill rows into the current folder, and start eight threads for files that
are far away.
"""

from __future__ import annotations

from typing import Any

SAFE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "async_threads": 0,
    "temp_directory": "",
}


def connected(place: str = ":memory:", settings: dict[str, Any] | None = None) -> Any:
    """A database, in memory or in a file of ours, with these settings beside the safe ones.

    >>> with connected() as connection:
    ...     connection.execute("SELECT current_setting('enable_progress_bar'), current_setting('temp_directory')").fetchone()
    (False, '')
    """
    import duckdb

    return without_progress_bar(duckdb.connect(place, config=SAFE | (settings or {})))


def without_progress_bar(connection: Any) -> Any:
    """The connection, without DuckDB's own bar; its cursors never have one."""
    connection.execute("SET enable_progress_bar = false")
    return connection
