"""What a party keeps of its rounds: on disk before a message leaves, so that a process that was stopped goes on where it was.

A text is complete or absent: it is written under another name, flushed to the disk, and renamed. A text that is dropped is
overwritten first; on a disk that copies what it writes (a solid-state disk, a snapshot, a journal of the file system) that is
a courtesy and no promise, and Python can't wipe its own memory. The folder belongs to its owner alone.
"""

from __future__ import annotations

import os
from pathlib import Path


class Journal:
    """Texts by name: in a folder, or without one in memory.

    >>> journal = Journal().of("round 1")
    >>> journal.put("keys", b"text")
    >>> journal.get("keys"), journal.get("other"), Journal().of("round 1").get("keys")
    (b'text', None, None)
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._texts: dict[str, bytes] = {}
        self._rounds: dict[str, Journal] = {}

    def of(self, name: str) -> Journal:
        """The journal of one round."""
        if self._folder is None:
            return self._rounds.setdefault(name, Journal())
        folder = self._folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Journal(folder)

    def get(self, name: str) -> bytes | None:
        """The text of this name, if there is one."""
        if self._folder is None:
            return self._texts.get(name)
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, text: bytes) -> None:
        """Keeps a text in place of what was there; when this returns it is on the disk."""
        if self._folder is None:
            self._texts[name] = bytes(text)
            return
        draft = self._folder / f"{os.getpid()}.draft"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path(name))
        self._flush_folder()

    def drop(self, name: str) -> None:
        """Forgets a text."""
        self._texts.pop(name, None)
        if self._folder is None or not self._path(name).exists():
            return
        with self._path(name).open("r+b") as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            file.flush()
            os.fsync(file.fileno())
        self._path(name).unlink()
        self._flush_folder()

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / name.replace(" ", "-")

    def _flush_folder(self) -> None:
        assert self._folder is not None
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
