"""A folder for rows that do not fit in memory: readable by its owner alone, and removed even when the process that made it died.

A living process holds a lock on a file in its folder. Anyone who makes a folder first removes those beside it that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from cloister.errors import InvalidParameter

_PREFIX = "cloister-rows-"
_LOCK = "in-use"


class PrivateFolder:
    """Made on construction with mode 0700; removed by `remove` or `with`, at exit, or by the next one made beside it."""

    def __init__(self, parent: str | Path | None = None) -> None:
        if not (where := Path(tempfile.gettempdir() if parent is None else parent)).is_dir():
            why = "there is no such folder"
            raise InvalidParameter(f"The folder {str(where)!r} is invalid", why=why, instead="a folder that is there")
        sweep(where)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            with suppress(OSError):  # without locks on its disk it works, and is not swept after a kill
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock).st_nlink:
                break
            os.close(self._lock)  # somebody who swept came between the file and its lock, and took it away
        self.remove = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def _remove(path: Path, lock: int, process: int) -> None:
    if os.getpid() == process:  # a fork must not remove its parent's rows
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)


def sweep(where: Path) -> None:
    """Removes the folders in it whose processes have died."""
    for path in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
