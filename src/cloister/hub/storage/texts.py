"""Whether what arrives is a CSV file that can be read as it is meant: UTF-8, lines of a sane length, a header, rows.

The checks run on the stream, so a bomb is refused when it begins and not when the disk is full. `lines.py` reads past most of
what is refused here: a line that is no UTF-8 is not a row, and adds nothing. But a file of another encoding is a mistake of the
sender, who should hear of it before rows are missing. Nothing that is said quotes the file.

Whether a file is a table at all: prose, a log and a program are refused, a list of values is taken. Every text is a CSV file of
one column, so what is no table has to be told by how it is written. The first line decides most of it: a sentence, a date with
words behind it or a line of a program is no name of a column. Where it may be one, the lines below it decide: sentences, lines
that are indented, lines of a log. A name of one word above lines that are sentences is a column of texts, which is a table,
unless the sentences run on from line to line. Of a file of several columns, only sentences that have equally many commas by
chance are told from a table, where the first line is one too.

Only the first lines are looked at, at the upload, for whoever sent the file; what is said of them quotes nothing.
"""

import codecs
import io
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import IO, Literal

from cloister.errors import CloisterError
from cloister.hub.storage.foreign import letters
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.hub.web.languages import N_
from cloister.tables.sourcing.lines import LONGEST_LINE, Header, fields_of, read_header
from cloister.tables.sourcing.sources import check_names

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PARQUET = b"PAR1\x15"
"""How a Parquet file begins: its mark, and the first field of its first page. A column may be called PAR1."""
OTHERS = {
    PARQUET: (N_("it is a Parquet file"), N_("the same file, declared as parquet")),
    b"PK\x03\x04": (N_("it is a spreadsheet or a ZIP archive"), N_("the sheet saved as CSV UTF-8")),
    b"\x1f\x8b": (N_("it is compressed"), "gunzip people.csv.gz, then send people.csv"),
    b"\x28\xb5\x2f\xfd": (N_("it is compressed"), "unzstd people.csv.zst, then send people.csv"),
    b"BZh": (N_("it is compressed"), "bunzip2 people.csv.bz2, then send people.csv"),
    b"\xd0\xcf\x11\xe0": (N_("it is a spreadsheet"), N_("the sheet saved as CSV UTF-8")),
}
_SAMPLE = 2**16
_LOOKED_AT = 200
_FEWEST = 3
_NO_TEXT = re.compile(rb"\0\0|[\x01-\x08\x0e-\x1f\x7f\xff]")
_WITHOUT_NULS = "tr -d '\\000' < people.csv > people-clean.csv"
_FROM_UTF16 = "iconv -f UTF-16 -t UTF-8 people.csv > people-utf8.csv"
_FROM_LATIN = "iconv -f WINDOWS-1252 -t UTF-8 people.csv > people-utf8.csv"
_WORDS_OF_A_NAME = 8
_WORDS_OF_A_SENTENCE = 5
_FEWEST_ODD = 2
_LONG = 40
_ENDS = re.compile(r"[.!?]['\")]*$")
_NUMBER = re.compile(r"[-+]?[\d.]+")
_IDEOGRAPH = "[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]"
_STOP = re.compile(f"{_IDEOGRAPH}[。！？；]|{_IDEOGRAPH}.*[，：]$|[.!,;]$")
_SENTENCE_STOPS = re.compile(f"{_IDEOGRAPH}[，。！？；：]|[.!?;:]$")
_ABBREVIATIONS = re.compile(r"(?:\S+\.\s*)+|.*\b[A-Z][a-z]{0,3}\.")
_MOMENT = re.compile(r"\[?\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[T\d:.,+Z \]-]*|[A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2} ")
_PROGRAM = re.compile(
    r"<(?:[!?]|/?(?:html|head|body|div|p|script|style|svg|table|ul|ol|xml)\b)|\{|\[\s*(?:$|[{\[])|\"{3}|'{3}|/[*/]|#!|#include\b|```|---$|===|"
    r"(?:import|package|using|use) [\w.:]+;?$|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]"
)
_MARKUP = re.compile(r"(?:#{1,6}|[-*>+]|\d+[.)]) \S|```|<[!?a-zA-Z/]|\|")
_STATEMENT = re.compile(
    r"(?:def|class|import|return|if|for|while|else|try|with|from)\b.*|.*(?:[{};]|\):|\)\s*->.*:)$|[)\]}]+[,;]?$"
)


class Content:
    """Bytes in memory, opened as a file is."""

    suffix = ""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """The bytes."""
        return io.BytesIO(self._content)


class TextCheck:
    """Takes a CSV file in pieces of any length; `finish` when there are no more."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._begun = bytearray()
        self._header: Header | None = None
        self._first = ""
        self._open = 0  # bytes of the line that is not ended yet
        self._lines = 0
        self._started = self._filled = False
        self._sample: bytearray | None = bytearray()

    def feed(self, chunk: bytes) -> None:
        """The next piece."""
        if not chunk:
            return
        self._kind_of(chunk)
        if b"\0" in chunk:
            self._refuse_nul(bytes(self._begun) + chunk)
        if not _decodes(self._decoder, chunk, final=False):
            raise _refused("it is not in UTF-8", _FROM_LATIN)
        self._measure(chunk)
        if self._header is None:
            self._begun += chunk
            if b"\n" not in chunk:
                return
            chunk = self._begin()
        self._filled = self._filled or bool(chunk.strip(b"\r\n"))
        self._look(chunk)

    def finish(self) -> None:
        """Nothing comes any more."""
        if not _decodes(self._decoder, b"", final=True):
            raise _refused("it is not in UTF-8, or ends within a letter", _FROM_LATIN)
        if self._header is None:
            self._begin()
        if not self._filled:
            raise _refused("it has a line of names and no rows", "a file with rows")
        if self._sample is not None:
            self._look_over(bytes(self._sample).split(b"\n"))

    def _kind_of(self, chunk: bytes) -> None:
        if self._started:
            return
        self._started = True
        if chunk.startswith(_UTF16):
            raise _refused("it is in UTF-16", _FROM_UTF16)
        for start, (why, instead) in OTHERS.items():
            if chunk.startswith(start):
                raise _refused(why, instead)

    def _refuse_nul(self, start: bytes) -> None:
        stray = _NO_TEXT.search(start) is None  # in a text; without its NULs, any other file would be broken for good
        raise _refused("it has NUL bytes, so it is not text", _WITHOUT_NULS if stray else N_("the table saved as CSV UTF-8"))

    def _look(self, chunk: bytes) -> None:
        if self._sample is not None:
            self._sample += chunk
            if len(self._sample) > _SAMPLE:
                lines, self._sample = bytes(self._sample).split(b"\n")[:-1], None
                self._look_over(lines)

    def _look_over(self, lines: list[bytes]) -> None:
        """Whether it is a table at all: its first lines have as many fields as there are names, most of them."""
        assert self._header is not None
        width = len(self._header.names)
        counted, ragged = 0, []
        for number, line in enumerate(lines[:_LOOKED_AT], 2):
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            if text:
                fields = fields_of(text, self._header.delimiter)
                counted += 1
                if fields is None or len(fields) != width:
                    ragged.append((number, 0 if fields is None else len(fields)))
        if width == 1 and self._is_prose(lines, {number for number, _ in ragged}):
            raise _refused(
                "line 1, column A: it is prose, and not the name of a column", "a table whose first line names its columns"
            )
        if width > 1 and self._header.delimiter == "," and not ragged and are_sentences(self._first, _texts(lines)):
            raise _refused("line 1: it is prose, and not the names of columns", "a table whose first line names its columns")
        if counted >= _FEWEST and 2 * len(ragged) > counted:
            number, found = ragged[0]
            instead = "one field for each name in every line, or lines that may end early"
            if not found:
                raise _refused(f"line {number}: its quotes do not close, as in most lines", instead)
            raise _refused(f"line {number} has {found} fields and line 1 has {width} names, and most lines are so", instead)

    def _is_prose(self, lines: list[bytes], ragged: set[int]) -> bool:
        assert self._header is not None
        texts = _texts(lines)
        return is_prose(self._header.names[0], texts, [number in ragged for number in range(2, 2 + len(texts))])

    def _measure(self, chunk: bytes) -> None:
        at = 0
        while (end := chunk.find(b"\n", at, at + LONGEST_LINE + 1 - self._open)) >= 0:
            # the longest lines matter, not each: skip to the last line end that is near enough
            end = chunk.rfind(b"\n", end, at + LONGEST_LINE + 1 - self._open)
            self._lines += chunk.count(b"\n", at, end + 1)
            self._open, at = 0, end + 1
        self._open += len(chunk) - at
        if self._open > LONGEST_LINE:
            raise _refused(f"one of its lines is longer than {LONGEST_LINE:,} bytes", "one row a line")
        self._limits.check("rows", self._lines - 1, self._limits.rows)

    def _begin(self) -> bytes:
        """Reads the first line, which has come; what came after it."""
        first, _, rest = bytes(self._begun).partition(b"\n")
        self._header, self._first = header_of(first, self._limits), first.decode("utf-8", "replace")
        self._begun.clear()
        return rest


def header_of(start: bytes, limits: Limits) -> Header:
    """The header of the CSV file that starts so.

    >>> header_of("name,Größe,🏔\\n".encode(), Limits()).names
    ('name', 'Größe', '🏔')
    """
    error: CloisterError | None = None
    try:
        header = read_header(Content(start))
        limits.check("columns", len(header.names), limits.columns)
        _check_places(header.names)
        check_names(header.names)
        return header
    except CloisterError as found:
        error = found
    raise RefusedUpload("The upload is invalid", why=error.why, instead=error.instead)


def _check_places(names: Sequence[str]) -> None:
    """Says of names what sheets would: in which column one is missing, or is there again."""
    folded = [name.casefold() for name in names]
    for place, name in enumerate(folded):
        if not name.strip():
            raise _refused(f"line 1, column {letters(place + 1)}: the column has no name", "a name of its own for each column")
        if name in folded[:place]:
            raise _refused(
                f"line 1, column {letters(place + 1)}: another column has the same name", "a name of its own for each column"
            )


def _texts(lines: Sequence[bytes]) -> list[str]:
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines[:_LOOKED_AT]]


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _refused(why: str, instead: str) -> RefusedUpload:
    return RefusedUpload("The upload is invalid", why=why, instead=instead)


def is_prose(name: str, lines: Sequence[str], ragged: Sequence[bool]) -> bool:
    """Whether a first line and the lines below it are no column of values; `ragged` says which have more than one field.

    >>> is_prose("An old silent pond", ["A frog jumps into the pond", "Splash! Silence again."], [False, False])
    True
    >>> is_prose("Town", ["Frankfurt am Main", "Santa Cruz de Tenerife", "St. Ives"], [False] * 3)
    False
    """
    words = name.split()
    if len(words) > _WORDS_OF_A_NAME or _is_no_name(name.strip(), words):
        return True
    written = [(line, odd) for line, odd in zip(lines, ragged, strict=True) if line.strip()]
    if len(words) == 1 and not _MARKUP.match(name):
        return _runs_on([line for line, _ in written])
    odd = [line for line, more in written if more or _is_odd(line)]
    return len(odd) >= _FEWEST_ODD and 2 * len(odd) >= len(written) and 2 * len(set(odd)) > len(odd)


def are_sentences(first: str, lines: Sequence[str]) -> bool:
    """Whether a first line and those below it, each with several commas, are sentences and no rows.

    >>> are_sentences("Dear Ada, it was nice, as ever.", ["We met on Monday, had lunch, and talked."])
    True
    >>> are_sentences("full name of the person, age, comment", ["Ada, 36, It was very nice to see her."])
    False
    """
    words = first.split()
    if len(words) <= _WORDS_OF_A_NAME and not (len(words) >= _WORDS_OF_A_SENTENCE and _is_no_name(first.strip(), words)):
        return False
    written = [line.strip() for line in (first, *lines) if line.strip()]
    if any(mark in line for line in written for mark in ('"', "\t", ";", "|")):
        return False
    parts = [line.split(",") for line in written]
    if any(part[:1] not in ("", " ") or _NUMBER.fullmatch(part.strip()) for line in parts for part in line[1:]):
        return False
    return len(written) >= _FEWEST_ODD and 2 * sum(_ENDS.search(line) is not None for line in written) >= len(written)


def _is_no_name(name: str, words: Sequence[str]) -> bool:
    if _PROGRAM.match(name) or _log(name):
        return True
    stops = _STOP.search(name)
    return stops is not None and (not name.isascii() or len(words) > 1) and not _ABBREVIATIONS.fullmatch(name)


def _log(line: str) -> bool:
    """A moment with words behind it."""
    begins = _MOMENT.match(line)
    return begins is not None and len(re.findall(r"[^\W\d_]{2,}", line[begins.end() :])) > 1


def _is_odd(line: str) -> bool:
    """Whether a line is no value that a list would have."""
    words, text = line.split(), line.strip()
    if line[:1] in ("\t", " ") and line[:2].isspace() and len(words) > 1:
        return True
    if text.startswith('"'):
        return False
    stops = _SENTENCE_STOPS.search(text)
    sentence = len(words) >= _WORDS_OF_A_SENTENCE or (stops is not None and (len(words) > 2 or not text.isascii()))
    return sentence or bool(_MARKUP.match(text)) or bool(_STATEMENT.fullmatch(text)) or _log(text)


def _runs_on(lines: Sequence[str]) -> bool:
    """Whether sentences go on in the next line, or lines are those of a program."""
    goes = sum(
        len(line) > _LONG and not _SENTENCE_STOPS.search(line.rstrip()) and after[:1].islower() and " " in after.strip()
        for line, after in pairwise(lines)
    )
    program = sum(line[:2].isspace() and len(line.split()) > 1 for line in lines)
    return max(goes, program) >= _FEWEST_ODD and 4 * max(goes, program) >= len(lines)
