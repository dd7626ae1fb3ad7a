"""What people send: encrypted chunk by chunk as it arrives, checked on the way, there as a whole or not at all.

An upload is written into a folder that its process holds (`PrivateFolder`), and renamed into its place once it is complete and
on the disk. A sender who stops, an upload that is refused and a process that dies leave nothing that is found again: the folder
of a dead process is removed by the next one that looks. The one-time key of an upload travels wrapped, so any process of the hub
can go on where another one left off. A Parquet file is looked at as a whole, in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cloister.crypto import EncryptedWriter, Keyring, decrypted, new_key
from cloister.hub.ids import new_id
from cloister.hub.storage.limits import KINDS, Limits, RefusedUpload
from cloister.hub.storage.parquet import check_parquet
from cloister.hub.storage.texts import TextCheck
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.engines.guard import guarded
from cloister.tables.sourcing.encrypted import MemoryFile


@dataclass(frozen=True, kw_only=True)
class Received:
    """An upload that arrived whole. Nothing in it is secret from whoever lacks the hub's keys: a database may keep it."""

    id: str
    kind: str
    digest: str
    """SHA-256 of what was sent, as `sha256sum` prints it."""
    length: int
    wrapped_key: bytes = field(repr=False)


class Upload:
    """One that is arriving: `with` it, `write` what comes, `finish` at the end. Whatever else ends it leaves nothing."""

    def __init__(self, folder: Path, keys: Keyring, kind: str, limits: Limits) -> None:
        if kind not in KINDS:
            raise RefusedUpload("The upload is invalid", why=f"the hub does not read {kind!r}", instead="csv or parquet")
        self._keys, self._kind, self._limits = keys, kind, limits
        self._id = new_id()
        self._place = folder / "uploads" / self._id
        self._key = new_key()
        self._text = TextCheck(limits) if kind == "csv" else None
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
        if self._text is not None:
            self._text.feed(chunk)
        self._digest.update(chunk)
        _on_disk(lambda: self._writer.write(chunk))

    def finish(self) -> Received:
        """Everything was written: checks what only the whole can show, and gives it its place, on the disk."""
        if not self._bytes:
            raise RefusedUpload("The upload is invalid", why="it is empty", instead="a file with a line of names and rows")
        if self._text is not None:
            self._text.finish()
        _on_disk(self._end)
        if self._text is None:
            with in_memory(self._part, self._key) as file:
                check_parquet(file, self._limits)
        _on_disk(lambda: settle(self._part, self._place))
        return Received(
            id=self._id,
            kind=self._kind,
            digest=self._digest.hexdigest(),
            length=self._bytes,
            wrapped_key=self._keys.wrap(self._key, f"upload {self._id}"),
        )

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


def _on_disk(work: Callable[[], None]) -> None:
    guarded(
        "The upload was not kept",
        work,
        why="the hub's disk is full, or cannot be written to",
        instead="the same upload, once the hub's administrator has made room",
    )


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
    number = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
