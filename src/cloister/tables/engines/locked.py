"""An engine in memory for SQL that somebody else wrote, over rows that this person may see: it can reach nothing else.

It has no files, no network, no extensions and no names of Python objects; its settings are locked; its memory is limited, and it
works in one thread. Who runs a text in it limits rows and time, and lets no text in that was not read against a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.tables.engines.connection import connected

_LOCKED = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET threads = 1",
)


def locked(*, memory: str, first: Sequence[str] = ()) -> Any:
    """A connection of its own; `first` are statements of ours that are run before it is locked.

    >>> with locked(memory="64MB") as connection:
    ...     connection.execute("SELECT 1 + 1").fetchall()
    [(2,)]
    """
    connection = connected()
    for line in (*first, *_LOCKED, f"SET memory_limit = '{memory}'", "SET lock_configuration = true"):
        connection.execute(line)
    return connection
