"""Which file a path leads to: its place on the disk, and what is in it.

A path is one of many names of a file. A symbolic link, `/proc/self/fd/3` and a bind mount lead to the same device and number
(inode); so does a hard link, which no path gives away. A copy has another number and the same content. Both are looked up, so
that under whichever name a file comes, its rows have one budget.

- *The number* is given to another file once its file is gone, so the moment at which the file was made stands beside it. A system
  that does not tell that moment is asked for the number of a file with several names only.
- *The content* is told by its length and a digest: of all of it up to 16 MiB, and of its beginning, its end and 64 pieces between
  of a longer one, so that opening a large table takes no second reading of it. Two long files of one length that agree in all of
  these are copies of one another, or a copy with a few values changed: the same people either way. A text of one line is a
  header, and no row, compressed or not, and so is a Parquet file of no rows: many an empty form looks like it, and it is
  nobody's. Such a file has a name too, from its path, so that the ledger has as many lines of a table without rows as of one
  with a row.
"""

import ctypes
import glob
import gzip
import hashlib
import io
import os
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from cloister.tables.engines.connection import connected

_WHOLE = 2**24
_EDGE = 2**22
_PIECES = 64
_PIECE = 2**16
_AT_FDCWD, _STATX_BTIME, _BTIME_AT = -100, 0x800, 0x50
"""As `linux/stat.h` and `linux/fcntl.h` have them: the flag, and where the moment of birth is in the answer."""


def lineage_of(path: Path) -> frozenset[str]:
    """The names of a file; none of one that cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, link, copy = (Path(folder) / name for name in ("one.csv", "link.csv", "copy.csv"))
    ...     _ = one.write_text("age\\n39"), copy.write_text("age\\n39"), link.hardlink_to(one)
    ...     lineage_of(one) == lineage_of(link), len(lineage_of(one) & lineage_of(copy))
    (True, 1)
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            content = _digest(path, file, found.st_size) or hashlib.sha256(os.fsencode(path.absolute())).hexdigest()
    except OSError:
        return frozenset()
    place = _place(path, found)
    return frozenset({f"content {found.st_size} {content}", *([] if place is None else [place])})


def file_place(path: Path) -> str | None:
    """The name of its place on the disk alone, which stays whatever is written into the file; else its path. None where there is
    no file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     file_place(Path(file.name)) == file_place(Path(f"/proc/self/fd/{file.fileno()}"))
    True
    """
    try:
        return _place(path, path.stat()) or f"file {path.resolve()}"
    except OSError:
        return None


def _place(path: Path, found: os.stat_result) -> str | None:
    born = getattr(found, "st_birthtime", None) or _born(path)
    if born is None and found.st_nlink <= 1:
        return None
    return f"file {found.st_dev}:{found.st_ino}:{'' if born is None else born}"


def _digest(path: Path, file: Any, size: int) -> str | None:
    """None of a file without a row."""
    if size <= _WHOLE:
        content = file.read()
        return None if _is_empty(path, content) else hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    between = size - 2 * _EDGE - _PIECE
    places = [(0, _EDGE), *((_EDGE + between * each // (_PIECES - 1), _PIECE) for each in range(_PIECES)), (size - _EDGE, _EDGE)]
    for place, length in places:
        file.seek(place)
        digest.update(file.read(length))
    return digest.hexdigest()


def _is_empty(path: Path, content: bytes) -> bool:
    """Whether there is no row in it, as far as can be told."""
    if content[:4] == b"PAR1":
        return len(content) <= _EDGE and _rows_of_parquet(path) == 0
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as inner:
                content = inner.read(_EDGE)
        except (OSError, EOFError, zlib.error):
            return False
    return b"\0" not in content[:_EDGE] and len(content.strip().splitlines()) <= 1


def _rows_of_parquet(path: Path) -> int | None:
    """As its footer says; None where it cannot be read."""
    import duckdb

    try:
        with connected() as connection:
            found = connection.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [glob.escape(str(path))]).fetchone()
    except duckdb.Error:
        return None
    return None if found is None or found[0] is None else int(found[0])


@cache
def _statx() -> Any:
    """The system's own call, which Python does not have; None where there is none."""
    try:
        found = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return found


def _born(path: Path) -> str | None:
    """The moment at which a file was made, where the system and its disk tell it."""
    call = _statx()
    answer = ctypes.create_string_buffer(256)
    if call is None or call(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, answer) != 0:
        return None
    told = ctypes.c_uint32.from_buffer(answer).value
    return answer.raw[_BTIME_AT : _BTIME_AT + 12].hex() if told & _STATX_BTIME else None
