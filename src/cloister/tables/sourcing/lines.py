r"""CSV, one line one row: a line of the file can affect nothing but itself.

RFC 4180 lets a quoted field run over line ends. Then one stray quote swallows every row up to the next quote: adding one person's
line would remove hundreds of others, and no sensitivity would hold. So the file is cut at each newline first, and every line is
then taken apart by its own quotes alone. A quoted field cannot hold a line end; such data belong in Parquet.

Claim: adding or removing one line of the file (any bytes without a newline, after the header) adds or removes at most that one
row, and never fails. Proof: `batches` cuts at the byte 0x0A, where it gives a text or, for what is no text (not UTF-8, or longer
than `LONGEST_LINE` bytes), NULL; both are functions of the bytes of the line alone. A line that holds nothing (or one \r) is no
row. `rows_sql` gives the fields of a line if they are as many as the header names, else no row; it reads one line at a time, with
functions that are total on texts. Where chunks and batches end moves nothing, since a line is decided on only when it is whole.

A field that begins with a quote ends with one, with its inner quotes doubled; any other field is taken as it is written. An
empty field is NULL. The delimiter is the one of , ; tab | that the header holds most often outside quotes.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from cloister.errors import EngineError
from cloister.parsers import QUOTED, delimiter_of

LONGEST_LINE = 2**20
"""Bytes; a longer line is malformed, so that no line can take the memory that others need."""

_CHUNK = 2**22
_BOM = b"\xef\xbb\xbf"


class Openable(Protocol):
    """Where lines are: a path, or what opens as one does."""

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """The bytes, from the first one."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: its bytes, the names that it gives, and what stands between fields."""

    line: bytes
    names: tuple[str, ...]
    delimiter: str


def read_header(path: Path | Openable) -> Header:
    """Reads the first line and nothing after it; the names are empty where there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv"
    ...     _ = path.write_bytes(b'age;"name; first"\\r\\n39;Alice\\n')
    ...     read_header(path).names
    ('age', 'name; first')
    """
    with _open(path) as file:
        line = file.readline(LONGEST_LINE + 1)
    if len(line) > LONGEST_LINE:
        raise EngineError("The CSV file could not be read", why="its first line is too long", instead="a line of names")
    text = line.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r").decode()
    if "\r" in text:
        raise EngineError(
            "The CSV file could not be read",
            why="its first line holds a carriage return",
            instead="the file saved once more, with the line ends of Windows or Unix",
        )
    delimiter = delimiter_of(text)
    fields = fields_of(text, delimiter)
    if fields is None:
        raise EngineError("The CSV file could not be read", why="its first line has unbalanced quotes", instead='"age","name"')
    return Header(line, tuple(map(unquoted, fields)), delimiter)


def fields_of(line: str, delimiter: str) -> list[str] | None:
    """The fields of a line as they are written; None where its quotes do not close.

    >>> fields_of('1,"a, b",', ","), fields_of('1,"a', ",")
    (['1', '"a, b"', ''], None)
    """
    fields: list[str] = re.findall(_field(delimiter), delimiter + line) if line else []
    return fields if "".join(delimiter + field for field in fields) == (delimiter + line if line else "") else None


def unquoted(field: str) -> str:
    """What a field holds.

    >>> unquoted('"a, b"'), unquoted("a")
    ('a, b', 'a')
    """
    return field[1:-1].replace('""', '"') if field.startswith('"') else field


def batches(path: Path | Openable, header: Header) -> Any:
    """An Arrow stream with one column, `line`: a text for each line after the header that holds anything, NULL for no text."""
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

    schema = Schema([Field("line", DataType.utf8(), nullable=True)])

    def produce() -> Iterator[Any]:
        for lines in _lines(path, header):
            yield RecordBatch.from_arrays([Array(lines, DataType.utf8())], schema=schema)

    return RecordBatchReader.from_batches(schema, produce())


def rows_sql(relation: str, header: Header, names: Sequence[str]) -> str:
    """The SELECT that gives the rows of well-formed lines, one text column a name. `names` are quoted already."""
    fields = ", ".join(f"{_value(f'fields[{i}]')} AS {name}" for i, name in enumerate(names, 1))
    return f"SELECT {fields} FROM ({_split(relation, header)}) AS split WHERE {_whole(header, len(names))}"


def malformed_sql(relation: str, header: Header) -> str:
    """How many lines are not rows: for the owner only."""
    whole = _whole(header, len(header.names))
    return f"SELECT COUNT(*) FROM ({_split(relation, header)}) AS split WHERE ({whole}) IS NOT TRUE"


def _open(path: Path | Openable) -> IO[bytes]:
    if isinstance(path, Path) and path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


def _lines(path: Path | Openable, header: Header) -> Iterator[list[str | None]]:
    with _open(path) as file:
        if file.readline(LONGEST_LINE + 1) != header.line:
            raise EngineError("The CSV file is not supported", why="its first line has changed", instead="a new cl.PrivateTable")
        begun, overlong = b"", False  # the line that the last chunk left open; whether it is too long already
        while chunk := file.read(_CHUNK):
            end = chunk.rfind(b"\n")
            if end < 0:
                begun += chunk
                if overlong or len(begun) > LONGEST_LINE:
                    begun, overlong = b"", True
                continue
            block, begun = begun + chunk[:end], chunk[end + 1 :]
            if overlong:
                _, _, block = block.partition(b"\n")
                overlong = False
                yield [None]
            yield _texts(block)
        yield [None] if overlong else _texts(begun)


def _texts(block: bytes) -> list[str | None]:
    """The lines of a block, decoded together where that is the same as decoding each."""
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return _one_by_one(block)
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    lines: list[str | None] = [line for line in text.split("\n") if line]
    if max((len(line) for line in lines if line), default=0) > LONGEST_LINE // 8:  # may be too long in bytes
        return _one_by_one(block)
    return lines


def _one_by_one(block: bytes) -> list[str | None]:
    lines: list[str | None] = []
    for whole in block.split(b"\n"):
        if line := whole.removesuffix(b"\r"):
            try:
                lines.append(line.decode() if len(whole) <= LONGEST_LINE else None)
            except UnicodeDecodeError:
                lines.append(None)
    return lines


def _field(delimiter: str) -> str:
    """The pattern of a delimiter and a field; RE2 and Python read it alike."""
    return rf'{re.escape(delimiter)}({QUOTED}|[^"{delimiter}][^{delimiter}]*|)'


def _split(relation: str, header: Header) -> str:
    delimiter = f"'{header.delimiter}'"
    split, extracted = (
        f"string_split(line, {delimiter})",
        f"regexp_extract_all({delimiter} || line, '{_field(header.delimiter)}', 1)",
    )
    return (
        f"SELECT line, CASE WHEN NOT contains(line, '\"') OR regexp_full_match(line, '{_plain(header.delimiter)}') THEN {split} "
        f"ELSE {extracted} END AS fields FROM {relation}"
    )


def _plain(delimiter: str) -> str:
    """The pattern of a line in which no quotes enclose a delimiter or a quote: cutting it at each delimiter gives its fields.

    Matching without capturing is ten times as fast as taking fields out.
    """
    field = rf'(?:"[^"{delimiter}]*"|[^"{delimiter}][^{delimiter}]*|)'
    return f"{field}(?:{re.escape(delimiter)}{field})*"


def _whole(header: Header, count: int) -> str:
    """As many fields as names, and nothing of the line between them: a pattern skips what it cannot match."""
    joined = f"array_to_string(fields, '{header.delimiter}')"
    return f"len(fields) = {count} AND CASE WHEN contains(line, '\"') THEN {joined} = line ELSE TRUE END"


def _value(field: str) -> str:
    inner = f"replace(substr({field}, 2, length({field}) - 2), '\"\"', '\"')"
    return f"nullif(CASE WHEN starts_with({field}, '\"') THEN {inner} ELSE {field} END, '')"
