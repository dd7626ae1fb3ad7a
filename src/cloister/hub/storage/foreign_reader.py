"""Reads one foreign file and writes it as CSV: a program of its own, run by `foreign.py` and by nothing else.

The file is standard input, the rows are standard output, and what is wrong is one line of JSON on standard error with a code of
`foreign.py`. It takes its limits first: memory, processor time, no file of more than no bytes, no core. So nothing that a file
makes its reader do outlives this process, takes more than it may, or is written to a disk. It imports nothing of the hub: it
knows no key, and its environment holds no secret.

Formulas are not computed: the value that the program which saved the sheet had computed is read. Macros, links and outside
entities are never followed: the readers have nothing that would.
"""

import csv
import datetime
import encodings.cp437  # noqa: F401 - of names in archives: zipfile would load it when no file can be opened any more
import json
import os
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NoReturn

_STATISTICS = {
    "sav": "read_sav",
    "zsav": "read_sav",
    "por": "read_por",
    "dta": "read_dta",
    "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}
LABELS = "labels of "
"""Before the kind of a file of which not the rows are wanted, but what it says of its variables."""

NAME = "name in "
"""Before `gz` or `zip`: not what it holds is wanted, but the name of it."""

_PIECE = 2**16
_ROWS = 10_000


class Wrong(Exception):
    """What is wrong with the file, by a code."""

    def __init__(self, code: str, **where: Any) -> None:
        super().__init__(code)
        self.said = {"code": code, **where}


def main() -> None:
    """`foreign_reader.py KIND MEMORY SECONDS LINES SHEET NUMBERS`."""
    kind, memory, seconds, lines, sheet, numbers = sys.argv[1:7]
    for limit, most in (
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_CPU, int(seconds)),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    try:
        if kind.startswith(NAME):
            _open_no_more(3)
            sys.stdout.write(_name_in(kind.removeprefix(NAME), sys.stdin.buffer))
        elif kind in ("gz", "zip"):
            _open_no_more(3)
            _unpack(kind, sys.stdin.buffer, sys.stdout.buffer)
        else:
            _write(_rows(kind, sheet), int(lines), "," if numbers == "comma" else ".")
        sys.stdout.flush()
    except Wrong as error:
        _stop(error.said)
    except MemoryError:
        _stop({"code": "memory"})
    except ImportError:
        _stop({"code": "extra"})
    except BaseException:  # what a reader says may hold a value of a row
        _stop({"code": "damaged"})


def _stop(said: dict[str, Any]) -> NoReturn:
    sys.stderr.write(json.dumps(said))
    sys.stderr.flush()
    os._exit(1)  # a reader's own threads and buffers say nothing more


def _open_no_more(most: int) -> None:
    """From here on no further file and no socket can be opened: there are numbers for no more than so many."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _unpack(kind: str, packed: IO[bytes], plain: IO[bytes]) -> None:
    """What one compressed file holds, in pieces: whoever reads the output stops it when it is too much."""
    if kind == "gz":
        opened = zlib.decompressobj(wbits=31)
        while piece := packed.read(_PIECE):
            while piece:
                plain.write(opened.decompress(piece, _PIECE))
                piece = opened.unconsumed_tail
                if opened.eof and (piece := opened.unused_data):
                    opened = zlib.decompressobj(wbits=31)
        if not opened.eof:
            raise Wrong("damaged")
        return
    with zipfile.ZipFile(packed) as archive, archive.open(_only(archive)) as file:
        while piece := file.read(_PIECE):
            plain.write(piece)


def _only(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if len(files) != 1:
        raise Wrong("several")
    if files[0].flag_bits & 1:
        raise Wrong("password")
    return files[0]


def _name_in(kind: str, packed: IO[bytes]) -> str:
    """The name of the one file that a compressed one holds, where it says so."""
    if kind == "zip":
        with zipfile.ZipFile(packed) as archive:
            return _only(archive).filename
    start = packed.read(_PIECE)
    at = 10
    if start[3] & 4:  # RFC 1952: a field of its own length stands before the name
        at += 2 + int.from_bytes(start[at : at + 2], "little")
    return start[at : start.index(b"\0", at)].decode("latin-1") if start[3] & 8 else ""


def _rows(kind: str, sheet: str) -> Iterator[Sequence[Any]]:
    if kind.startswith(LABELS):
        return _of_labels(kind.removeprefix(LABELS))
    return _of_sheet(sheet) if kind in ("xlsx", "ods") else _of_statistics(kind)


def _of_sheet(sheet: str) -> Iterator[list[Any]]:
    from python_calamine import CalamineWorkbook, PasswordError

    _open_no_more(3)
    try:
        book = CalamineWorkbook.from_filelike(sys.stdin.buffer)
    except PasswordError:
        raise Wrong("password") from None
    names = book.sheet_names
    if not names:
        raise Wrong("empty")
    if sheet and sheet not in names:
        raise Wrong("no-sheet", sheets=names)
    if not sheet and len(names) > 1:
        raise Wrong("sheets", sheets=names)
    yield from book.get_sheet_by_name(sheet or names[0]).iter_rows()


def _of_statistics(kind: str) -> Iterator[list[Any]]:
    import pyreadstat

    read = getattr(pyreadstat, _STATISTICS[kind])
    start, first = 0, True
    while True:
        columns, about = read("/proc/self/fd/0", row_offset=start, row_limit=_ROWS, output_format="dict")
        names = list(about.column_names)
        if first:
            _open_no_more(4)  # the file is opened again for each piece of it
            yield list(names)
            first = False
        length = len(columns[names[0]]) if names else 0
        yield from (list(row) for row in zip(*(columns[name] for name in names), strict=True))
        if length < _ROWS:
            return
        start += length


def _of_labels(kind: str) -> Iterator[Sequence[str]]:
    from cloister.tables.declaring.labels import labels_in

    yield from labels_in("/proc/self/fd/0", kind)


def _write(rows: Iterable[Sequence[Any]], lines: int, mark: str) -> None:
    """The header, then every row that holds anything. Columns without a name and without a value go."""
    found = enumerate(rows, 1)
    head: list[list[str]] = []
    first = 0
    for line, row in found:
        first = line
        texts = [_text(value) for value in row]
        if head or any(texts):
            head.append(texts)
        if len(head) == lines:
            break
    if len(head) < lines:
        raise Wrong("empty")
    names = names_of(head)
    width = max((place for place, name in enumerate(names, 1) if name), default=0)
    if not width:
        raise Wrong("empty")
    for place, name in enumerate(names[:width], 1):
        if not name:
            raise Wrong("unnamed", line=first, column=place)
        if name.casefold() in (other.casefold() for other in names[: place - 1]):
            raise Wrong("twice", line=first, column=place)
    write = csv.writer(sys.stdout, lineterminator="\n").writerow
    write(names[:width])
    for line, row in found:
        texts = [_text(value, mark) for value in row]
        beyond = next((place for place, text in enumerate(texts[width:], width + 1) if text), 0)
        if beyond:
            raise Wrong("beyond", line=line, column=beyond)
        if any(texts):
            write((texts + [""] * width)[:width])


def names_of(head: list[list[str]]) -> list[str]:
    """One name a column; of several lines of names, an upper one holds for what stands to its right, as merged cells do.

    >>> names_of([["id", "age", ""], ["", "then", "now"]])
    ['id', 'age then', 'age now']
    """
    width = max(map(len, head))
    filled = [[name.strip() for name in line] + [""] * (width - len(line)) for line in head]
    for line in filled[:-1]:
        for place in range(1, width):
            line[place] = line[place] or (line[place - 1] if filled[-1][place] else "")
    return [" ".join(filter(None, column)) for column in zip(*filled, strict=True)]


def _text(value: Any, mark: str = ".") -> str:
    """A cell as CSV has it: on one line, a whole number without a point, a day as 2026-03-31; `mark` before decimals, as texts
    beside them were said to have it.

    >>> _text(3.0), _text(0.125, ","), _text(datetime.date(2026, 3, 31)), _text("two\\nlines"), _text(None)
    ('3', '0,125', '2026-03-31', 'two lines', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value:  # missing, as statistics packages have it
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value).replace(".", mark)
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return " ".join(str(value).replace("\0", "").splitlines()).strip()


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    main()
