"""Connections of DuckDB, all made here: they print nothing, fetch nothing, and write nothing to disk that nobody asked for.

Where Python is interactive (a notebook, a shell, `python -c`) DuckDB draws a bar on standard output for whatever takes long.
Progress on private rows is ours to tell, from public facts; and what a program prints for another to read has no bar in it. By
itself DuckDB would fetch extensions by their names, spill rows into the current folder, and start eight threads for files that
are far away.

SQL that somebody else wrote, over rows that this person may see, is run on a connection that is `locked`: it has no files, no
network, no extensions and no names of Python objects; its settings are locked; its memory is limited, and it works in one thread.
Who runs a text in it limits rows and time, and lets no text in that was not read against a list.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

SAFE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "async_threads": 0,
    "temp_directory": "",
}
_LOCKED = ("SET python_enable_replacements = false", "SET enable_external_access = false", "SET threads = 1")
_MOST_IDLE = 4


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


def locked(*, memory: str, first: Sequence[str] = ()) -> Any:
    """A database in memory that can reach nothing else; `first` are statements of ours that are run before it is locked.

    >>> with locked(memory="64MB") as connection:
    ...     connection.execute("SELECT 1 + 1").fetchall()
    [(2,)]
    """
    connection = connected()
    for line in (*first, *_LOCKED, f"SET memory_limit = '{memory}'", "SET lock_configuration = true"):
        connection.execute(line)
    return connection


class Locked:
    """Locked databases for one text after another: to open one takes longer than most texts. Each use has one for itself, by a
    connection with which all goes that it made: temporary tables and macros, nothing else. What failed is closed, not used again.

    >>> one_after_another = Locked(memory="64MB")
    >>> for number in (1, 2):
    ...     with one_after_another.connection() as connection:
    ...         _ = connection.execute(f"CREATE TEMP TABLE numbers AS SELECT {number} AS n")
    ...         connection.execute("FROM numbers").fetchall()
    [(1,)]
    [(2,)]
    """

    def __init__(self, *, memory: str, first: Sequence[str] = ()) -> None:
        self._memory, self._first = memory, first
        self._idle: dict[int, list[Any]] = {}  # by process: a fork has none of its own yet

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A database that nobody else uses."""
        idle = self._idle.setdefault(os.getpid(), [])
        try:
            database = idle.pop()
        except IndexError:
            database = locked(memory=self._memory, first=self._first)
        try:
            with database.cursor() as connection:
                yield connection
        except BaseException:
            database.close()
            raise
        if len(idle) < _MOST_IDLE:
            idle.append(database)
        else:
            database.close()
