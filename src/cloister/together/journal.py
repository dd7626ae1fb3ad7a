"""What a party keeps of its rounds: on disk before a message leaves, so that a process that was stopped goes on where it was.

A text is complete or absent: it is written under another name, flushed to the disk, and renamed. A text that is written `once`
is linked to its name, which fails where it is taken, also where another process was quicker. Who answers a message holds the
lock of its round meanwhile, among threads and processes alike: two answers at once would be two draws of noise under one charge.
A text that is dropped is overwritten first; on a disk that copies what it writes (a solid-state disk, a snapshot, a journal of
the file system) that is a courtesy and no promise, and Python can't wipe its own memory. The folder belongs to its owner alone.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloister.stored import flush

READING = "reading"
"""What stands where rows were read, until the answer does."""
_NEWEST = 64
"""In memory so many rounds are kept; of older ones that ended only that their rows were read, so that none is begun again."""
_MOST = 256
"""Rounds that are kept in memory before their end: of many more the hub let go."""
_LAST = "signatures"
"""The last message of a round."""
_LOCK, _DRAFT = "lock", ".draft"


class Journal:
    """Texts by name in a folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Journal(folder).of("round 1").put("keys", b"text")
    ...     Journal(folder).of("round 1").get("keys"), Journal(folder).of("round 2").get("keys")
    (b'text', None)
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def of(self, name: str) -> Journal:
        """The journal of one round."""
        folder = self._folder / name
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flush(self._folder)  # or the power fails, and what is in it on the disk is in no folder
        return type(self)(folder)

    def has(self, name: str) -> bool:
        """Whether there is a journal of that round."""
        return (self._folder / name).is_dir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with this journal: other threads and processes wait. The system lets go of the lock of a process that ends."""
        descriptor = os.open(self._folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for draft in self._folder.glob(f"*{_DRAFT}"):  # of a process that was stopped
                self._wipe(draft)
            yield
        finally:
            os.close(descriptor)

    def get(self, name: str) -> bytes | None:
        """The text of this name, if there is one."""
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, text: bytes, *, once: bool = False) -> None:
        """Keeps a text in place of what was there, or `once`: FileExistsError where something was. When this returns it is on
        the disk."""
        descriptor, draft = tempfile.mkstemp(suffix=_DRAFT, dir=self._folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if once:
            try:
                os.link(draft, self._path(name))
            finally:
                Path(draft).unlink()
        else:
            Path(draft).replace(self._path(name))
        flush(self._folder)

    def names(self) -> list[str]:
        """Of what texts there are, in their order; a space in a name is given as a hyphen."""
        kept = (path.name for path in self._folder.iterdir() if path.is_file())
        return sorted(name for name in kept if name != _LOCK and not name.endswith(_DRAFT))

    def drop(self, name: str) -> None:
        """Forgets a text."""
        if self._path(name).exists():
            self._wipe(self._path(name))
            flush(self._folder)

    def _wipe(self, path: Path) -> None:
        with path.open("r+b") as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / name.replace(" ", "-")


class MemoryJournal(Journal):
    """A journal that ends with its process: for parties that do too, with their keys and their ledger.

    >>> journal = MemoryJournal()
    >>> journal.of("round 1").put("keys", b"text")
    >>> journal.of("round 1").get("keys"), journal.of("round 2").get("keys")
    (b'text', None)
    """

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._rounds: dict[str, MemoryJournal] = {}
        self._newest: deque[str] = deque()
        self._lock, self._rounds_lock = threading.Lock(), threading.Lock()

    def of(self, name: str) -> MemoryJournal:
        """The journal of one round."""
        with self._rounds_lock:
            if name not in self._rounds:
                self._rounds[name] = MemoryJournal()
                self._newest.append(name)
            if len(self._newest) > _NEWEST:
                self._forget()
            return self._rounds[name]

    def has(self, name: str) -> bool:
        """Whether there is a journal of that round."""
        return name in self._rounds

    def _forget(self) -> None:
        """The oldest round that was answered to its end; one that goes on only where very many do."""
        ended = [name for name in self._newest if _LAST in self._rounds[name]._texts]
        if ended or len(self._newest) > _MOST:
            oldest = ended[0] if ended else self._newest[0]
            self._newest.remove(oldest)
            self._rounds[oldest]._texts = {READING: b""}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with this journal: other threads wait."""
        with self._lock:
            yield

    def get(self, name: str) -> bytes | None:
        """The text of this name, if there is one."""
        return self._texts.get(name)

    def put(self, name: str, text: bytes, *, once: bool = False) -> None:
        """Keeps a text in place of what was there, or `once`: FileExistsError where something was."""
        if once and name in self._texts:
            raise FileExistsError(name)
        self._texts[name] = bytes(text)

    def names(self) -> list[str]:
        """Of what texts there are, in their order."""
        return sorted(self._texts)

    def drop(self, name: str) -> None:
        """Forgets a text."""
        self._texts.pop(name, None)
