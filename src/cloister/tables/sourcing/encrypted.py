"""A table in an encrypted file: written from any source that DuckDB reads, and a source itself for anyone who has the key.

The file is an encrypted stream (`crypto/encrypted_file.py`) of a short head (names and kinds of the columns) and a Parquet file.
It is opened into memory: the decrypted Parquet file lies in a file without a name that belongs to this process and is on no disk
(`memfd_create`), from which DuckDB reads while the rows are prepared, and which is gone right after. So a load needs as
much memory as the file is long, besides what the plain file would take. Memory may be swapped out: a machine that swaps should
encrypt its swap space.

Why not DuckDB's own encryption: DuckDB 2.0 alone reads encrypted files and does not write them well, whether its own or Parquet;
it wants an extension from the network for that, and says of what it writes without that it is "NOT securely encrypted". What it
means is that its nonces and the key of its spill files come of 64 random bits each. So nothing that stays is written by it. The
prepared rows of an encrypted source, and what spills while it is asked, are: they live as long as the process (`folder.py`), and
`ENCRYPTED_SCRATCH` has DuckDB encrypt them, the rows under a random key of ours (256 bits). What remains: whoever copies spill
files off the disk can read them by 2^64 trials.
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cloister.crypto import CHUNK, EncryptedWriter, decrypted, salt_of
from cloister.errors import EngineError, UnsupportedQuery
from cloister.tables.engines.connection import connected
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.engines.workspace import Workspace
from cloister.tables.sourcing.source_factory import recognise
from cloister.tables.sourcing.sources import FileSource, Source, check_names

_LENGTH = 4
_GROUPS = 16
"""A group of rows is held several times while it is written."""


class MemoryFile:
    """A file in the memory of this process, without a name on any disk; gone when it is closed or forgotten.

    >>> with MemoryFile() as file:
    ...     file.write(b"rows")
    ...     Path(file.path).read_bytes()
    b'rows'
    """

    def __init__(self) -> None:
        self._number = -1
        if not hasattr(os, "memfd_create"):
            raise EngineError(
                "An encrypted table is not supported",
                why="this operating system has no files in memory",
                instead="a hub on Linux",
            )
        self._number = os.memfd_create("cloister", os.MFD_CLOEXEC)

    @property
    def path(self) -> str:
        """A path by which this process, and nobody else, opens it."""
        return f"/proc/self/fd/{self._number}"

    def write(self, data: bytes) -> None:
        """Adds to the end."""
        with memoryview(data) as rest:
            done = 0
            while done < len(rest):
                done += os.write(self._number, rest[done:])

    def close(self) -> None:
        """Closing twice is harmless."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def __enter__(self) -> MemoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class EncryptedSource(FileSource):
    """A file that `write_encrypted` wrote, and its key of 32 bytes, which shows itself nowhere.

    Only the head is read here; every byte is authenticated while the rows are prepared. `identity` is the name by which the same
    rows are known again wherever their file lies; None takes the path.
    """

    is_encrypted = True

    def __init__(self, path: str | Path, key: bytes, *, identity: str | None = None) -> None:
        super().__init__(Path(path).resolve())
        self._key = key
        self._identity = identity
        self._opened: dict[int, MemoryFile] = {}
        head = guarded(
            "The encrypted table could not be read", self._head, why="it cannot be opened, or is not an encrypted table"
        )
        self.schema = dict(head["schema"])
        self._malformed = int(head["malformed"])
        self.delimiters = head.get("delimiters", {})
        check_names(list(self.schema))

    def describe(self) -> str:
        """`encrypted`."""
        return "encrypted"

    def identity(self) -> str:
        """The name that was given, or the path."""
        return super().identity() if self._identity is None else self._identity

    def lineage(self) -> frozenset[str]:
        """Of a file that is known by a name that was given: nothing more, since one file may be served to several tables, each of
        which reads rows of its own."""
        return super().lineage() if self._identity is None else frozenset()

    def state(self) -> str | None:
        """A text that is drawn again each time the file is written."""
        return tried(self._salt, OSError, EngineError)

    @property
    def is_large(self) -> bool:
        """More than 128 MiB."""
        return self._bytes() > 2**27

    def attach(self, connection: Any) -> str:
        """A `read_parquet` of the decrypted file, in memory."""
        file = MemoryFile()
        with self.path.open("rb") as sealed:
            chunks = decrypted(sealed, self._key)
            _, first = _head_of(chunks)
            file.write(first)
            for chunk in chunks:
                file.write(chunk)
        self._opened[id(connection)] = file
        return self._read(connection, f"read_parquet('{file.path}', utf8_validation='replace')")

    def detach(self, connection: Any) -> None:
        """Forgets the decrypted file."""
        file = self._opened.pop(id(connection), None)
        if file is not None:
            file.close()

    def malformed(self, connection: Any) -> int:
        """How many lines of the source that it was written from were no rows."""
        return self._malformed

    def _head(self) -> dict[str, Any]:
        with self.path.open("rb") as sealed:
            head, _ = _head_of(decrypted(sealed, self._key))
        return head

    def _salt(self) -> str:
        with self.path.open("rb") as sealed:
            return salt_of(sealed)

    def __repr__(self) -> str:
        return "<EncryptedSource>"

    def __reduce__(self) -> str:
        raise TypeError("an encrypted source holds a key, and is not pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedRows:
    """What was written: SHA-256 of the encrypted file, and its length."""

    digest: str
    bytes: int


def write_encrypted(source: Any, path: str | Path, key: bytes, *, memory_limit: str | None = None) -> EncryptedRows:
    """Write all columns of a source to an encrypted file that is not there yet, and have it on the disk when this returns.

    Rows go from DuckDB through a pipe into the cipher: no plain byte of them is on a disk at any moment. When it fails, nothing
    stays. The file says of a table what the source says: the same names, kinds and rows, so the same answers.
    """
    found, path = recognise(source), Path(path)
    if found.engine != "duckdb":
        raise UnsupportedQuery(
            f"A source of {found.describe()} is not supported",
            why="its rows stay in its own database",
            instead="a file or a frame",
        )
    file = guarded("The encrypted table could not be written", lambda: path.open("xb"), why="its file could not be made")
    done = False
    try:
        with file:
            written = guarded(
                "The encrypted table could not be written",
                lambda: _write(found, file, key, memory_limit),
                why="the source could not be read to its end, or the disk is full",
            )
        done = True
        return written
    finally:
        if not done:
            path.unlink(missing_ok=True)


def _write(source: Source, file: IO[bytes], key: bytes, memory_limit: str | None) -> EncryptedRows:
    workspace = Workspace.of(memory_limit) if memory_limit else Workspace()
    writer = EncryptedWriter(file, key)
    with connected(settings={"preserve_insertion_order": False, **workspace.settings()}) as connection:
        malformed = source.malformed(connection)
        said = {"schema": list(source.schema.items()), "malformed": malformed, "delimiters": dict(source.delimiters)}
        head = json.dumps(said).encode()
        writer.write(len(head).to_bytes(_LENGTH, "big") + head)
        relation = source.attach(connection)
        try:
            for chunk in _parquet(connection, relation, workspace.memory):
                writer.write(chunk)
        finally:
            source.detach(connection)
    writer.finish()
    file.flush()
    os.fsync(file.fileno())
    return EncryptedRows(digest=writer.digest, bytes=writer.bytes)


def _parquet(connection: Any, relation: str, memory: int | None) -> Iterator[bytes]:
    """The relation as a Parquet file, as DuckDB writes it into a pipe: in groups of rows of which each fits into memory."""
    groups = "" if memory is None else f", ROW_GROUP_SIZE_BYTES {memory // _GROUPS}"
    reading, writing = os.pipe()
    failed: list[bool] = []

    def produce() -> None:
        sql = f"COPY (SELECT * FROM {relation}) TO '/proc/self/fd/{writing}' (FORMAT parquet, USE_TMP_FILE false{groups})"
        try:
            connection.execute(sql)
        except Exception:  # what the engine says may hold a row; that it failed is enough
            failed.append(True)
        finally:
            os.close(writing)

    thread = threading.Thread(target=produce, name="cloister-write-encrypted", daemon=True)
    thread.start()
    try:
        while chunk := os.read(reading, CHUNK):
            yield chunk
    finally:
        os.close(reading)  # when the reader gave up, the writer's next write fails
        thread.join()
    if failed:
        raise EngineError("The encrypted table could not be written", why="the source could not be read to its end")


def _head_of(chunks: Iterator[bytes]) -> tuple[dict[str, Any], bytes]:
    """The head, and what its last chunk holds of the Parquet file."""
    start = b""
    for chunk in chunks:
        start += chunk
        end = _LENGTH + int.from_bytes(start[:_LENGTH], "big")
        if len(start) >= end > _LENGTH:
            return json.loads(start[_LENGTH:end]), start[end:]
    raise EngineError("The encrypted table could not be read", why="it is sealed, but no table")
