"""The letters of a CSV file: UTF-8, UTF-16, GB 18030 and Windows-1252 (Latin-1) are told apart as the bytes come, and become
UTF-8.

UTF-16 says itself by its first two bytes; without them, by the zero that every other byte of plain letters is. What is no UTF-8,
and was plain ASCII until then, is GB 18030, which sheets in Chinese write, where that makes common ideographs, and Windows-1252
otherwise: a file in UTF-8 whose letters are broken half-way is not taken for one, and stays refused. What the file was is said to
its sender, who alone can see whether the letters are right.

A file with no newline, whose lines end with carriage returns alone, gets newlines in their place. As long as the first newline
has not come, nobody knows: what came is held, up to the length of the longest line.

Names that are missing at the end of the first line, as sheets leave them, are filled in. Lines below that lack those fields get
them too (`spelling.py`).
"""

import codecs
import re
from itertools import islice

from cloister.hub.storage.texts import OTHERS
from cloister.parsers import delimiter_of
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.lines import LONGEST_LINE

_ENOUGH = 5
_LOOKED_AT = 64
_LETTERS = 4096
_ASCII = bytes(range(128))
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARK_OF_EXCEL = re.compile(rb"(?:\xef\xbb\xbf)?sep=[,;\t|]\r?")
"""A first line that tells Excel what divides fields; it names no column, and is left out."""


class Recoder:
    """Takes a file in pieces of any length, and gives UTF-8. `encoding` is what the file was, once it is known.

    >>> latin = Recoder()
    >>> (latin.feed("name,town,\\nZoë,Köln,\\n".encode("latin-1")) + latin.finish()).decode(), latin.encoding
    ('name,town,column_3\\nZoë,Köln,\\n', 'Windows-1252')
    """

    def __init__(self, *, named: bool = True) -> None:
        self.encoding = ""
        self.filled = 0
        """How many names were filled in."""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._plain = self._text = True
        self._start: bytes | None = b""
        self._held: bytearray | None = bytearray()
        self._returns = False  # whether carriage returns alone end its lines
        self._first: bytearray | None = bytearray() if named else None

    def feed(self, chunk: bytes) -> bytes:
        """The next piece; bytes that are no text of these stay as they are, and are refused by whoever reads them."""
        if self._start is not None:
            self._start += chunk
            if len(self._start) < _ENOUGH:
                return b""
            chunk = self._begin()
        return self._with_names(self._with_newlines(self._decoded(chunk, final=False), final=False))

    def _begin(self) -> bytes:
        start, self._start = self._start or b"", None
        if start[:2] in _MARKS:
            self.encoding, self._decoder = "UTF-16", codecs.getincrementaldecoder("utf-16")()
        elif letters := _without_mark(start):
            self.encoding, self._decoder = "UTF-16", codecs.getincrementaldecoder(letters)()
        self._text = self._decoder is not None or not (b"\0" in start or start.startswith(tuple(OTHERS)))
        return start

    def finish(self) -> bytes:
        """Nothing comes any more."""
        rest = self._with_names(self._with_newlines(self._decoded(self._begin(), final=True), final=True))
        first, self._first = self._first, None
        return rest if first is None else self._named(bytes(first)) + rest

    def _decoded(self, chunk: bytes, *, final: bool) -> bytes:
        if self._decoder is not None:
            decoder = self._decoder
            text = tried(lambda: decoder.decode(chunk, final), UnicodeError)
            return b"\xff" if text is None else text.encode("utf-8", "replace")
        if not self._plain or not self._text:
            return chunk
        pending = self._utf8.getstate()[0]
        if tried(lambda: self._utf8.decode(chunk, final), UnicodeDecodeError) is not None:
            whole, begun = pending + chunk, len(self._utf8.getstate()[0])  # a letter that is begun is not handed on yet
            self._plain = whole[: len(whole) - begun].isascii()
            return whole[: len(whole) - begun] if self._plain else whole  # from here on all is handed on as it comes
        whole = pending + chunk
        chinese = is_chinese(whole)
        if not final and (chinese or whole.decode("utf-8", "ignore").isascii()):  # a file that ends within a letter was cut off
            name, letters = ("GB 18030", "gb18030") if chinese else ("Windows-1252", "cp1252")
            decoder = codecs.getincrementaldecoder(letters)()
            text = tried(lambda: decoder.decode(whole, final), UnicodeDecodeError)
            if text is not None:
                self.encoding, self._decoder = name, decoder
                return text.encode()
        self._plain = False
        return whole

    def _with_newlines(self, text: bytes, *, final: bool) -> bytes:
        if self._held is not None:
            self._held += text
            if b"\n" not in text and len(self._held) <= LONGEST_LINE and not final:
                return b""
            text, self._held = bytes(self._held), None
            self._returns = self._text and b"\n" not in text and b"\r" in text[:-1]
        return text.replace(b"\r", b"\n") if self._returns else text

    def _with_names(self, text: bytes) -> bytes:
        if self._first is None:
            return text
        self._first += text
        if b"\n" not in text and len(self._first) <= LONGEST_LINE:
            return b""
        first, self._first = bytes(self._first), None
        line, end, rest = first.partition(b"\n")
        if _MARK_OF_EXCEL.fullmatch(line):
            self._first = bytearray()
            return self._with_names(rest)
        return self._named(line) + end + rest

    def _named(self, line: bytes) -> bytes:
        named, self.filled = _named(line)
        return named


def is_chinese(piece: bytes) -> bool:
    """Whether what is beyond ASCII reads as common ideographs: those of the first level of GB 2312, of which Chinese is written.

    Small letters with accents, where two follow each other, would be of its second level.

    >>> is_chinese("年龄,性别".encode("gb18030")), is_chinese("Größe,Zoë,Köln".encode("latin-1"))
    (True, False)
    """
    decoder = codecs.getincrementaldecoder("gb18030")()
    text = tried(lambda: decoder.decode(piece), UnicodeDecodeError) or ""
    beyond = [letter.encode("gb2312", "ignore") for letter in islice((each for each in text if not each.isascii()), _LETTERS)]
    common = sum(b"\xb0" <= letter[:1] <= b"\xd7" for letter in beyond)
    if len(beyond) < 2 or 2 * common <= len(beyond) or 10 * beyond.count(b"") > len(beyond):
        return False
    as_utf8 = piece.decode("utf-8", "ignore").encode().translate(None, _ASCII)  # some pairs are letters of UTF-8, too
    return 2 * len(as_utf8) < len(piece.translate(None, _ASCII))


def _without_mark(start: bytes) -> str:
    """Which UTF-16 a text of plain letters is in that does not say so itself."""
    for letters, zero in (("utf-16-le", 1), ("utf-16-be", 0)):
        if len(start) >= _ENOUGH and not start[zero:_LOOKED_AT:2].strip(b"\0") and b"\0" not in start[1 - zero : _LOOKED_AT : 2]:
            return letters
    return ""


def _named(line: bytes) -> tuple[bytes, int]:
    """The first line with a name in the place of each that is missing at its end, and how many those are."""
    body = line.removesuffix(b"\r")
    end = line[len(body) :]
    text = tried(body.decode, UnicodeDecodeError)
    if not text or (not text.isprintable() and "\t" not in text):
        return line, 0
    delimiter = delimiter_of(text)
    whole = text.rstrip(delimiter)
    missing = len(text) - len(whole)
    if not missing or not whole:
        return line, 0
    at = (
        whole.count(delimiter) + 1
    )  # of a name in quotes that holds a delimiter, the number is greater; it stays a name of its own
    return (whole + "".join(f"{delimiter}column_{at + place}" for place in range(1, missing + 1))).encode() + end, missing
