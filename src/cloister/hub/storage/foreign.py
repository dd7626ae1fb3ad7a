"""Files of other programs, read in a process of their own and made a CSV file: sheets, statistics packages, compressed files.

A reader of such a file is large and old code, and the file is whatever somebody sends. So it runs in a process that has no key,
no secret in its environment, limits of memory and processor time, and cannot write to a disk (`foreign_reader.py`); what it
writes is counted as it comes, and it is killed when that is more, or takes longer, than it may. The file reaches it in memory,
from the encrypted upload, and its rows go through a pipe into another: at no moment is a plain byte on a disk.

What is said of a file is one of the texts below. Of the reader's own words nothing is shown: they may hold a value of a row. A
place is said as sheets do it: line 7, column D.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.hub.storage.foreign_reader import LABELS, NAME
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.hub.web.languages import N_
from cloister.installed import lacking
from cloister.parsers import json_from
from cloister.printable import shown
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.encrypted import MemoryFile

SHEETS = ("xlsx", "ods")
PACKED = ("gz", "zip")
STATISTICS = ("sav", "zsav", "por", "dta", "sas7bdat", "xpt")
FOREIGN = (*SHEETS, *PACKED, *STATISTICS)
"""Kinds of files that are read so, by the end of their name."""

_ARCHIVES = (*PACKED, "tar", "tgz", "bz2", "xz", "zst", "7z", "rar")
_MEMORY = 2**31
_SECONDS = 120
_PIECE = 2**20
_LONGEST_WORDS = 2**16
_MOST_SHEETS = 100
_TEXTS = {
    "damaged": (N_("it is damaged, or not what its name says"), N_("the file saved again, or the table saved as CSV UTF-8")),
    "memory": (N_("reading it takes more memory than it may"), N_("the table saved as CSV UTF-8")),
    "time": (N_("reading it takes longer than it may"), N_("the table saved as CSV UTF-8")),
    "password": (N_("a password protects it"), N_("the file without a password: the hub encrypts it under a key of its own")),
    "several": (N_("it does not hold exactly one file"), N_("one CSV file, compressed alone")),
    "nested": (N_("it holds a compressed file again"), N_("one file, compressed once")),
    "empty": (N_("it has no line of names"), N_("a sheet whose first line names the columns")),
    "extra": (
        N_("this hub has no reader for such files"),
        N_("the table saved as CSV UTF-8; an administrator installs the extra [files]"),
    ),
}  # fmt: skip


def accepted() -> str:
    """The ends of the names of files that can be uploaded here, as forms list them."""
    foreign = PACKED if lacking("files") else FOREIGN
    return ",".join([*(f".{end}" for end in ("csv", "txt", "tsv", "parquet", "pq", *foreign)), "text/csv"])


class SeveralSheets(RefusedUpload):
    """A workbook of which somebody has to say which sheet is meant. `sheets` are their names, for whoever sent it."""

    stored = "RefusedUpload"
    sheets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is to be read, as its sender says; nothing of it is guessed from the rows."""

    sheet: str = ""
    lines: int = 1
    """How many lines name the columns."""
    numbers: str = ""
    """`comma`: 1.234,5 and 1 234,5; `point`: 1,234.5; nothing: as programs write them."""
    dates: str = ""
    """The order of day (d), month (m) and year (y): `dmy`, `mdy`, `ymd`; nothing: 2026-03-31."""
    pivot: int | None = None
    """The last year of two digits that is of the 2000s: with 30, 30 is 2030 and 31 is 1931; None: years have four digits."""
    missing: tuple[str, ...] = ()
    """Texts that stand for a missing value, in every column; two quotes stand for a blank cell."""
    units: tuple[str, ...] = ()
    """What may stand before or behind a number, and is dropped: kg, €."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """How else values are written: f for Female."""
    short: bool = False
    """Whether lines may end early, or go on with empty fields."""


def read_labels(content: bytes, kind: str, limits: Limits) -> str:
    """What a file of a statistics package says of its variables, as a codebook of lines."""
    with MemoryFile() as file:
        file.write(content)
        with read_foreign(file, LABELS + kind, Reading(), limits) as pieces:
            return b"".join(pieces).decode()


def kind_inside(file: MemoryFile, kind: str, name: str, limits: Limits) -> str:
    """The kind of the one foreign file that a compressed file holds, by its name; nothing where that is a CSV file.

    Where a gz file does not say what it holds, `name`, its own, does: survey.sav.gz.
    """
    with read_foreign(file, NAME + kind, Reading(), limits) as pieces:
        inside = b"".join(pieces).decode("utf-8", "replace") or name.lower().removesuffix(f".{kind}")
    end = inside.lower().rpartition(".")[2]
    if end in _ARCHIVES:
        raise _refused("nested")
    return end if end in FOREIGN else ""


@contextmanager
def unpacked(file: MemoryFile, kind: str, limits: Limits) -> Iterator[MemoryFile]:
    """What one compressed file holds, as a file in memory."""
    with MemoryFile() as plain, read_foreign(file, kind, Reading(), limits) as pieces:
        for piece in pieces:
            plain.write(piece)
        yield plain


@contextmanager
def read_foreign(
    file: MemoryFile, kind: str, how: Reading, limits: Limits, *, seconds: int = _SECONDS, memory: int = _MEMORY
) -> Iterator[Iterator[bytes]]:
    """The rows as pieces of a CSV file (of a compressed file: what it holds), while this holds; the process ends with it."""
    program = Path(__file__).with_name("foreign_reader.py")
    command = [sys.executable, "-I", "-B", str(program), kind, str(memory), str(seconds), str(how.lines), how.sheet, how.numbers]
    quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
    with open(file.path, "rb") as given:
        running = subprocess.Popen(  # noqa: S603 - a program of ours, and no shell
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=quiet, cwd="/", close_fds=True
        )
    late = threading.Event()

    def kill() -> None:
        late.set()
        running.kill()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield _pieces(running, late, limits)
    finally:
        timer.cancel()
        running.kill()
        for end in (running.stdout, running.stderr):
            assert end is not None
            end.close()
        running.wait()


def _pieces(running: subprocess.Popen[bytes], late: threading.Event, limits: Limits) -> Iterator[bytes]:
    assert running.stdout is not None
    assert running.stderr is not None
    count = 0
    while piece := os.read(running.stdout.fileno(), _PIECE):
        count += len(piece)
        limits.check("bytes when it is decompressed", count, limits.bytes)
        yield piece
    words = running.stderr.read(_LONGEST_WORDS)
    if running.wait() == 0:
        return
    if late.is_set() or running.returncode in (-9, -24):  # SIGKILL and SIGXCPU: of us, or of the system at the limit
        raise _refused("time")
    found = tried(lambda: json_from(words, most=_LONGEST_WORDS), ValueError)
    raise _said(found if isinstance(found, dict) else {})


def _said(found: Mapping[str, Any]) -> RefusedUpload:
    """The refusal of what the reader found; of its words nothing but numbers and names of sheets is taken over."""
    code = found.get("code")
    if code in ("sheets", "no-sheet"):
        names = found.get("sheets")
        listed = [shown(str(name))[:200] for name in names[:_MOST_SHEETS]] if isinstance(names, list) else []
        why = N_("it has several sheets") if code == "sheets" else N_("it has no sheet of that name")
        error = SeveralSheets("The upload is invalid", why=why, instead=N_("the name of the sheet that holds the table"))
        error.sheets = tuple(listed)
        return error
    line, column = found.get("line"), found.get("column")
    if isinstance(line, int) and isinstance(column, int) and 0 < column <= 2**14:
        place = letters(column)
        instead = f"a name of its own in column {place}"
        if code == "unnamed":
            why = f"line {line}, column {place}: the column has no name"
            return RefusedUpload("The upload is invalid", why=why, instead=instead)
        if code == "twice":
            why = f"line {line}, column {place}: another column has the same name"
            return RefusedUpload("The upload is invalid", why=why, instead=instead)
        if code == "beyond":
            why = f"line {line}, column {place}: a value stands to the right of the last named column"
            return RefusedUpload("The upload is invalid", why=why, instead=instead)
    return _refused(code if code in _TEXTS else "damaged")


def _refused(code: str) -> RefusedUpload:
    why, instead = _TEXTS[code]
    return RefusedUpload("The upload is invalid", why=why, instead=instead)


def letters(column: int) -> str:
    """A column as sheets name it.

    >>> letters(1), letters(26), letters(27), letters(703)
    ('A', 'Z', 'AA', 'AAA')
    """
    found = ""
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(ord("A") + rest) + found
    return found
