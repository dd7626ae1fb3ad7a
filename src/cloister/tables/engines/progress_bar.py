"""A connection of DuckDB that prints nothing.

Where Python is interactive (a notebook, a shell, `python -c`) DuckDB draws a bar on standard output for whatever takes long.
Progress on private rows is ours to tell, from public facts; and what a program prints for another to read has no bar in it.
"""

from __future__ import annotations

from typing import Any


def without_progress_bar(connection: Any) -> Any:
    """The connection, without DuckDB's own bar; its cursors never have one.

    >>> import duckdb
    >>> with without_progress_bar(duckdb.connect()) as connection:
    ...     connection.execute("SELECT current_setting('enable_progress_bar')").fetchone()
    (False,)
    """
    connection.execute("SET enable_progress_bar = false")
    return connection
