"""What people send: encrypted chunk by chunk as it arrives, checked on the way, there as a whole or not at all.

An upload is written into a folder that its process holds (`PrivateFolder`), and renamed into its place once it is complete and
on the disk. A sender who stops, an upload that is refused and a process that dies leave nothing that is found again: the folder
of a dead process is removed by the next one that looks. The one-time key of an upload travels wrapped, so any process of the hub
can go on where another one left off. A Parquet file is looked at as a whole, in memory.
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.crypto import EncryptedWriter, Keyring, decrypted, new_key
from cloister.errors import CloisterError
from cloister.hub.ids import new_id
from cloister.hub.storage.encodings import Recoder
from cloister.hub.storage.foreign import FOREIGN, Reading
from cloister.hub.storage.limits import KINDS, Limits, RefusedUpload
from cloister.hub.storage.spelling import Rewriter
from cloister.hub.storage.texts import TextCheck
from cloister.hub.web.languages import N_
from cloister.stored import flush
from cloister.tables.engines.connection import connected
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.sourcing.encrypted import MemoryFile
from cloister.tables.sourcing.sources import check_names


@dataclass(frozen=True, kw_only=True)
class Received:
    """An upload that arrived whole. Nothing in it is secret from whoever lacks the hub's keys: a database may keep it."""

    id: str
    kind: str
    digest: str
    """SHA-256 of what was sent, as `sha256sum` prints it."""
    length: int
    wrapped_key: bytes = field(repr=False)
    encoding: str = ""
    """Of a CSV file that was not in UTF-8: what it was."""


class Upload:
    """One that is arriving: `with` it, `write` what comes, `finish` at the end. Whatever else ends it leaves nothing."""

    def __init__(self, folder: Path, keys: Keyring, kind: str, limits: Limits, how: Reading) -> None:
        if kind not in (*KINDS, *FOREIGN):
            raise RefusedUpload("The upload is invalid", why=f"the hub does not read {kind!r}", instead="csv or parquet")
        if kind == "parquet" and not Rewriter(how).silent:
            raise RefusedUpload(
                "The upload is invalid",
                why="a Parquet file says itself how its values are written, and which are missing",
                instead="the same file without these options, or the table as CSV",
            )
        self._keys, self._kind, self._limits = keys, kind, limits
        self._id = new_id()
        self._place = folder / "uploads" / self._id
        self._key = new_key()
        self._text = TextCheck(limits) if kind == "csv" else None
        self._recoder = Recoder(named=how.lines == 1)
        self._rewriter = Rewriter(how)
        self._working = PrivateFolder(folder / "working")
        self._part = self._working.path / "part"
        self._file = self._part.open("xb")
        self._writer = EncryptedWriter(self._file, self._key)
        self._digest = hashlib.sha256()
        self._bytes = 0

    def write(self, chunk: bytes) -> None:
        """The next bytes; refused as soon as they can be."""
        self._bytes += len(chunk)
        self._limits.check("bytes", self._bytes, self._limits.bytes)
        self._digest.update(chunk)
        self._keep(chunk if self._text is None else self._rewriter.feed(self._recoder.feed(chunk), self._recoder.filled))

    def finish(self) -> Received:
        """Everything was written: checks what only the whole can show, and gives it its place, on the disk."""
        if not self._bytes:
            raise RefusedUpload("The upload is invalid", why="it is empty", instead="a file with a line of names and rows")
        if self._text is not None:
            self._keep(self._rewriter.feed(self._recoder.finish(), self._recoder.filled) + self._rewriter.finish())
            self._text.finish()
        _on_disk(self._end)
        if self._kind == "parquet":
            with in_memory(self._part, self._key) as file:
                check_parquet(file, self._limits)
        _on_disk(lambda: settle(self._part, self._place))
        return Received(
            id=self._id,
            kind=self._kind,
            digest=self._digest.hexdigest(),
            length=self._bytes,
            wrapped_key=self._keys.wrap(self._key, f"upload {self._id}"),
            encoding=self._recoder.encoding,
        )

    def _keep(self, chunk: bytes) -> None:
        if self._text is not None:
            self._text.feed(chunk)
        _on_disk(lambda: self._writer.write(chunk))

    def _end(self) -> None:
        self._writer.finish()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> Upload:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what was not written yet finds no room either
            self._file.close()
        self._working.remove()


NOT_KEPT = N_("The upload was not kept")
FULL_DISK = {
    "why": N_("the hub's disk is full, or cannot be written to"),
    "instead": N_("the same upload, once the hub's administrator has made room"),
}


def _on_disk(work: Callable[[], None]) -> None:
    guarded(NOT_KEPT, work, **FULL_DISK)


def in_memory(path: Path, key: bytes) -> MemoryFile:
    """The content of an encrypted file as a file in memory."""
    file = MemoryFile()
    with path.open("rb") as sealed:
        for chunk in decrypted(sealed, key):
            file.write(chunk)
    return file


def settle(part: Path, place: Path) -> None:
    """Renames a file that is on the disk, and has its new name on the disk too."""
    os.rename(part, place)
    flush(place.parent)


_TAIL = 8
_AGAIN = "the file written again: duckdb -c \"COPY 'people.parquet' TO 'again.parquet'\""


def check_parquet(file: MemoryFile, limits: Limits) -> None:
    """Refuses what is no Parquet file of plain columns within the limits.

    What the file says of itself is checked before anything is decompressed. It may lie: so it is then read to its end once, in
    a connection that has so much memory and no more, when it is written again in the encrypted form. Nothing of the sent file
    but its values comes into what questions read."""
    import duckdb

    _check_frame(Path(file.path), limits)
    with connected(settings={"memory_limit": limits.memory}) as connection:
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
