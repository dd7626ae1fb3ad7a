"""What the engines of a session may take of a machine: how much memory, and which folder for what does not fit.

DuckDB keeps to the bound by itself where it has few enough threads, and few enough questions at once, for what each of them
holds at the least; it spills the rest into the folder. What is copied out of an engine (the rows for a method, the groups of
undeclared keys) is read in pieces and counted on the way. A bound is a public fact. So whatever follows from it and from
declarations alone is refused before it is charged; what only the rows decide fails afterwards, in one fixed text.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloister.crypto import new_key
from cloister.errors import EngineError, InvalidParameter, UnsupportedQuery

_FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt])i?b?", re.IGNORECASE)
_THREAD = 32 * 2**20
"""With less a thread, DuckDB gives up on groups that it could have spilled."""
_QUESTION = 32 * 2**20
_PLACE = 24
"""Bytes of a group in such an array."""
_COPIES = 4
"""A method that is handed rows makes some copies of them."""
_NUMBER = 64
"""Bytes of one noisy number on its way into an answer: exact, noised, stored, written."""

ENCRYPTED_SCRATCH: dict[str, Any] = {"force_mbedtls_unsafe": "true", "temp_file_encryption": "true"}
"""Settings of a DuckDB connection that may write rows of an encrypted source to disk for a while."""


class MemoryExceeded(EngineError):
    """The work does not fit into the memory that was set. One fixed text: how much was missing depends on rows."""

    stored = "MemoryExceeded"


def memory_exceeded(what: str = "The query was not answered") -> MemoryExceeded:
    """The refusal.

    >>> print(memory_exceeded().why)
    it needs more memory than is set for it; what was reserved for it, if anything, stays charged
    """
    return MemoryExceeded(
        what,
        why="it needs more memory than is set for it; what was reserved for it, if anything, stays charged",
        instead="a query with fewer groups, rows or columns, or a larger memory limit from the person who runs this",
    )


def bytes_of(text: str) -> int | None:
    """An amount of memory in bytes; None where it is none. Thousands and 1024s are alike here.

    >>> bytes_of("80MiB"), bytes_of("1.5 gb"), bytes_of("much")
    (83886080, 1610612736, None)
    """
    found = _FORM.fullmatch(text.strip())
    return None if found is None else int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower()))


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A bound on memory, in bytes, and on how many tables are prepared at once; None: none. And where to spill; None: the
    system's temporary folder.

    >>> Workspace(memory=256 * 2**20).questions(threads=2)
    2
    """

    memory: int | None = None
    folder: Path | None = None
    tables: int | None = None

    @classmethod
    def of(cls, memory: str | None = None, folder: str | Path | None = None, tables: int | None = None) -> Workspace:
        """As somebody writes it: the memory as "1GiB"; None is what the environment says, where it does.

        >>> Workspace.of("2GiB").memory
        2147483648
        """
        text = memory if memory is not None else os.environ.get("CLOISTER_MEMORY_LIMIT") or None
        found = None if text is None else bytes_of(text) if isinstance(text, str) else None
        if text is not None and not found:
            raise InvalidParameter(
                f"A memory limit of {text!r} is invalid", why="it is not an amount of memory", instead='memory_limit="2GiB"'
            )
        if tables is not None and tables < 1:
            raise InvalidParameter(f"prepared_tables={tables} is invalid", why="no table fits", instead="prepared_tables=64")
        return cls(memory=found, folder=None if folder is None else Path(folder), tables=tables)

    def settings(self) -> dict[str, Any]:
        """DuckDB's."""
        return {} if self.memory is None else {"memory_limit": f"{self.memory}B", "threads": self.threads(os.cpu_count() or 1)}

    def threads(self, most: int) -> int:
        """How many threads DuckDB may have: as many as there is memory for, and no more than so many."""
        return most if self.memory is None else max(1, min(most, self.memory // _THREAD))

    def questions(self, threads: int) -> int | None:
        """How many questions DuckDB works on at once; the others wait before they are charged. None: any number."""
        return None if self.memory is None else max(1, self.memory // (_QUESTION + threads * _THREAD))

    def places(self, most: int, least: int) -> int:
        """Bits of the arrays in which DuckDB may count dense groups, one a thread: of these its own bound knows nothing."""
        if self.memory is None:
            return most
        fits = self.memory // (_COPIES * _PLACE * self.threads(os.cpu_count() or 1))
        return max(least, min(most, fits.bit_length() - 1))

    @property
    def copies(self) -> int | None:
        """How many bytes may be copied out of an engine for one question."""
        return None if self.memory is None else self.memory // _COPIES

    def check_numbers(self, numbers: int) -> None:
        """Refuses, before anything is charged, an answer of so many noisy numbers that it would not fit."""
        most = numbers if self.memory is None else self.memory // _NUMBER
        if numbers > most:
            raise UnsupportedQuery(
                "The query is not supported",
                why=f"it makes {numbers:,} noisy numbers in all its groups, and there is memory for {most:,}",
                instead="fewer or coarser keys, fewer statistics, or two queries",
            )

    def check_rows(self, table: str, size: int | None, columns: int) -> None:
        """Refuses, before anything is charged, to copy a table whose declared size would not fit."""
        if self.copies is not None and size is not None and 8 * size * columns > self.copies:
            raise UnsupportedQuery(
                f"The rows of {table!r} are not supported",
                why=f"{size:,} rows of {columns} columns, as declared, do not fit into the memory limit",
                instead="fewer columns, a method that learns from sums, or a larger memory limit from the person who runs this",
            )

    def room(self) -> Room:
        """What one question may copy out of an engine."""
        return Room(self.copies)


class Room:
    """Bytes that are left for copies.

    >>> Room(100).take(101)
    Traceback (most recent call last):
    cloister.tables.engines.workspace.MemoryExceeded: The query was not answered: ...
    """

    def __init__(self, left: int | None) -> None:
        self._left = left

    def take(self, size: int) -> None:
        """So many bytes more are held."""
        if self._left is not None:
            self._left -= size
            if self._left < 0:
                raise memory_exceeded()


def attach_scratch(connection: Any, path: Path, name: str) -> None:
    """A new DuckDB database for prepared rows, encrypted under a random key that only this connection knows."""
    key = base64.b64encode(new_key()).decode()
    place = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{place}' AS {name} (ENCRYPTION_KEY $key, ENCRYPTION_CIPHER 'GCM')", {"key": key})
