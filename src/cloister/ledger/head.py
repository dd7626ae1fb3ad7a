"""The head, copied to a second file after each commit: what a rolled-back database is found by.

A chain cannot tell that its own last lines are gone. So after each commit, and before the caller hears of it, a record is
appended to the head file: how many lines there are, the hash of the last, and what the populations touched had then spent. When
a ledger is opened, the database must contain the line that the newest record names. If it doesn't, the ledger is frozen, and
the records say what loss is the least that its owner may enter.

- The record is written *after* the commit is durable, so the head never leads: a crash between the two leaves it behind, which
  is no alarm.
- It is appended with one `write` to a file opened for appending, so several processes may write at once; the record with the
  highest count counts. It is in the kernel's hands before the caller is answered, so that killing the process loses nothing. It
  is pushed to the disk when none was for a second, and on closing: so a lone charge is on both files, and of a burst a power cut
  may take the records of its last second (or of as long as the kernel keeps them, some half a minute), which hides a rollback
  only to a copy made within that time.
- A record that names accounts ends in a keyed BLAKE2b under the ledger's key, since an owner will rely on its sums. The hash in
  the others is an HMAC itself. What is torn or does not verify is as good as absent.
- When the file has grown, a process that holds the database's write lock replaces it by one record of the whole state. A record
  that another process appends to the replaced file at that moment is of a commit that the new one already covers.

An owner who keeps the head file where the database's administrator can't write is protected against that administrator too.
"""

import contextlib
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from typing import Any, NamedTuple

from cloister.stored import flush

_GROWN = 256 * 1024  # bytes; then the file is written again
_SYNC_SECONDS = 1.0
_PLAIN = re.compile(rb"[0-9]{1,18} [0-9a-f]{64} \.")


class Account(NamedTuple):
    """What the head remembers of a population: its budget, its spending in units, and whether it is still bounded."""

    budget: list[str]
    spent: tuple[int, int]
    unbounded: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """The newest thing that is known: number of lines, hash of the last, and the populations' accounts by then."""

    count: int
    hash: str
    accounts: Mapping[str, Account] = field(default_factory=dict)


class HeadFile:
    """The second file. One object a process; every method but `read` is called by one thread at a time."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        secret = hashlib.sha256(b"head:" + key).digest()  # another than the chain's, for another purpose
        self._keyed = hashlib.blake2b(key=secret, digest_size=32)
        self._descriptor: int | None = None
        self._size = 0
        self._limit = _GROWN
        self._synced = 0.0
        self.grown = False

    def read(self) -> Head | None:
        """The newest known head; None where the file is missing or no record in it verifies."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        count, last = -1, ""
        accounts: dict[str, tuple[int, Account]] = {}
        for number, end, seen in self._records(text):
            if number > count:
                count, last = number, end
            for name, (budget, spent, slack, unbounded) in seen.items():
                if name not in accounts or number >= accounts[name][0]:
                    found = Account(budget=budget.split(" "), spent=(int(spent, 16), int(slack, 16)), unbounded=bool(unbounded))
                    accounts[name] = (number, found)
        return (
            Head(count=count, hash=last, accounts={name: account for name, (_, account) in accounts.items()})
            if count >= 0
            else None
        )

    def append(self, head: Head) -> None:
        """One record more, after a commit."""
        data = self._record(head)
        descriptor = self._reopen() if self._descriptor is None else self._descriptor
        if os.write(descriptor, data) != len(data):
            raise OSError("a short write")
        self._size += len(data)
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            os.fsync(descriptor)
            self._synced = now
            self.look_again()
        self.grown = self._size > self._limit

    def look_again(self) -> None:
        """See whether another process replaced the file, or made it grow.

        Not before each record: a file system that was asked for a file's times must journal the next write's, and the database's
        own push to the disk then waits for that (it took half as long again). So the writer asks for it when another process
        has written to the ledger, and once a second.
        """
        if self._descriptor is None:
            return
        self._size = os.fstat(self._descriptor).st_size
        if not self.path.exists() or not os.path.samestat(os.fstat(self._descriptor), self.path.stat()):
            self._reopen()

    def begin(self) -> None:
        """A new file for a new ledger, unless there is one: made before the database, so that a database without one is
        suspect."""
        draft = self._draft(Head(count=0, hash="0" * 64))
        with contextlib.suppress(FileExistsError):
            os.link(draft, self.path)
        draft.unlink()
        self._sync_folder()

    def replace(self, head: Head) -> None:
        """The whole state in one record instead of all earlier ones; atomic, and durable before it returns."""
        draft = self._draft(head)
        os.replace(draft, self.path)
        self._sync_folder()
        self._limit = max(_GROWN, 4 * self.path.stat().st_size)
        self.grown = False
        self.look_again()

    def close(self) -> None:
        """Push what was written to the disk, and let go of the file."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _reopen(self) -> int:
        """The file that has the name now: another process replaces it when it has grown."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(descriptor).st_size
        return descriptor

    def _record(self, head: Head) -> bytes:
        """Count, hash, and the sealed accounts or a full stop; on a line of its own, whatever torn record stands before it."""
        if not head.accounts:
            return f"\n{head.count} {head.hash} .".encode("ascii")
        text = f"{head.count} {head.hash} {_written(head.accounts)}".encode("ascii")
        return b"\n%s %s" % (text, self._seal(text))

    def _records(self, data: bytes) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """What can be read: a whole record, and a seal that fits where there is one."""
        for row in data.split(b"\n"):
            text, _, end = row.rpartition(b" ")
            if end == b"." and _PLAIN.fullmatch(row):
                count, last, _ = row.decode("ascii").split(" ")
                yield int(count), last, {}
            elif text and hmac.compare_digest(end, self._seal(text)):
                count, last, accounts = text.decode("ascii").split(" ", 2)
                yield int(count), last, json.loads(accounts)

    def _seal(self, text: bytes) -> bytes:
        code = self._keyed.copy()
        code.update(text)
        return code.hexdigest().encode("ascii")

    def _draft(self, head: Head) -> Path:
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.{id(self):x}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            data = self._record(head)
            if os.write(descriptor, data) != len(data):
                raise OSError("a short write")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return draft

    def _sync_folder(self) -> None:
        with contextlib.suppress(OSError):
            flush(self.path.parent)


def _written(accounts: Mapping[str, Account]) -> str:
    """The accounts as JSON. Budgets are digits and points, so only names need quoting."""
    rows = [
        f'{_quoted(name)}:["{" ".join(budget)}","{first:x}","{second:x}",{unbounded:d}]'
        for name, (budget, (first, second), unbounded) in accounts.items()
    ]
    return f"{{{','.join(rows)}}}"
