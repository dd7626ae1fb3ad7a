"""The letters of a CSV file: UTF-8, UTF-16 and Windows-1252 (Latin-1) are told apart as the bytes come, and become UTF-8.

UTF-16 says itself by its first two bytes. What is no UTF-8, and was plain ASCII until then, is Windows-1252: a file in UTF-8
whose letters are broken half-way is not taken for one, and stays refused. What the file was is said to its sender, who alone can
see whether the letters are right.

Names that are missing at the end of the first line, as sheets leave them, are filled in: every line has as many fields as before.
"""

from __future__ import annotations

import codecs

from cloister.hub.storage.texts import OTHERS
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.lines import LONGEST_LINE, delimiter_of

_ENOUGH = 4
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Recoder:
    """Takes a file in pieces of any length, and gives UTF-8. `encoding` is what the file was, once it is known.

    >>> latin = Recoder()
    >>> (latin.feed("name,town,\\nZoë,Köln,\\n".encode("latin-1")) + latin.finish()).decode(), latin.encoding
    ('name,town,column_3\\nZoë,Köln,\\n', 'Windows-1252')
    """

    def __init__(self, *, named: bool = True) -> None:
        self.encoding = ""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._plain = self._text = True
        self._start: bytes | None = b""
        self._first: bytearray | None = bytearray() if named else None

    def feed(self, chunk: bytes) -> bytes:
        """The next piece; bytes that are no text of these stay as they are, and are refused by whoever reads them."""
        if self._start is not None:
            self._start += chunk
            if len(self._start) < _ENOUGH:
                return b""
            chunk = self._begin()
        return self._with_names(self._decoded(chunk, final=False))

    def _begin(self) -> bytes:
        start, self._start = self._start or b"", None
        if start[:2] in _MARKS:
            self.encoding, self._decoder = "UTF-16", codecs.getincrementaldecoder("utf-16")()
        self._text = self._decoder is not None or not (b"\0" in start or start.startswith(tuple(OTHERS)))
        return start

    def finish(self) -> bytes:
        """Nothing comes any more."""
        rest = self._with_names(self._decoded(self._begin(), final=True))
        first, self._first = self._first, None
        return rest if first is None else _named(bytes(first)) + rest

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
            whole = whole[: len(whole) - begun]
            self._plain = whole.isascii()
            return whole
        whole = pending + chunk
        if not final and whole.decode("utf-8", "ignore").isascii():  # a file that ends within a letter was cut off
            decoder = codecs.getincrementaldecoder("cp1252")()
            text = tried(lambda: decoder.decode(whole, final), UnicodeDecodeError)
            if text is not None:
                self.encoding, self._decoder = "Windows-1252", decoder
                return text.encode()
        self._plain = False
        return whole

    def _with_names(self, text: bytes) -> bytes:
        if self._first is None:
            return text
        self._first += text
        if b"\n" not in text and len(self._first) <= LONGEST_LINE:
            return b""
        first, self._first = bytes(self._first), None
        line, end, rest = first.partition(b"\n")
        return _named(line) + end + rest


def _named(line: bytes) -> bytes:
    """The first line with a name in the place of each that is missing at its end."""
    body = line.removesuffix(b"\r")
    end = line[len(body) :]
    text = tried(body.decode, UnicodeDecodeError)
    if not text or (not text.isprintable() and "\t" not in text):
        return line
    delimiter = delimiter_of(text)
    whole = text.rstrip(delimiter)
    missing = len(text) - len(whole)
    if not missing or not whole:
        return line
    at = (
        whole.count(delimiter) + 1
    )  # of a name in quotes that holds a delimiter, the number is greater; it stays a name of its own
    return (whole + "".join(f"{delimiter}column_{at + place}" for place in range(1, missing + 1))).encode() + end
