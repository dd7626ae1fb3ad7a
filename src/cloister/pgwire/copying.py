"""COPY (SELECT …) TO STDOUT: the rows of an answer as a stream, in text, CSV or binary, as fast readers want them.

It is a SELECT in another dress: asked, charged and refused as that is. Nothing is copied in, and no table is copied out.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from cloister.pgwire.failures import Refused
from cloister.pgwire.protocol import message
from cloister.pgwire.results import Column
from cloister.pgwire.statements import Copy, CopyFormat, Select
from cloister.pgwire.types import TYPES, decoded, encoded, to_binary, to_text
from cloister.pgwire.words import OPENERS, Rest, unquoted, words

_PIECE = 500
_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
_ESCAPES = str.maketrans({"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"})
_NO, _YES = ("false", "off", "0"), ("true", "on", "1")


def copy(text: str, rest: Rest) -> Copy:
    """COPY (question) TO STDOUT [[WITH] (options)], also as it was written before PostgreSQL 9.

    >>> from cloister.pgwire.words import words
    >>> text = "COPY (SELECT COUNT(*) FROM people) TO STDOUT (FORMAT csv, HEADER)"
    >>> found = copy(text, Rest(words(text)[1:], "copy"))
    >>> found.question.text, found.how.format, found.how.header
    ('SELECT COUNT(*) FROM people', 'csv', True)
    """
    if not rest.had("("):
        raise Refused("COPY of a table was refused", why="rows never leave, and nothing is written", instead=_LINE, code="25006")
    if not rest.says(*OPENERS):
        raise Refused("COPY of this was refused", why="nothing can be written here", instead=_LINE, code="25006")
    first, depth = rest.own[rest.at].start, 1
    while depth:
        word = rest.next()
        depth += 1 if word.says("(") else -1 if word.says(")") else 0
    inner = text[first : word.start].rstrip()
    rest.expect("to")
    if not rest.had("stdout"):
        raise Refused("COPY to a file was refused", why="the hub writes no files", instead=_LINE, code="42501")
    return Copy(Select(inner, tuple(words(inner))), _checked(_options(rest)))


_LINE = "COPY (SELECT …) TO STDOUT (FORMAT csv, HEADER)"


def _options(rest: Rest) -> CopyFormat:
    found = CopyFormat()
    rest.had("with")
    if not rest.had("("):
        while rest.at < len(rest.own):
            found = _old(rest, found)
        return found
    while not rest.had(")"):
        name = rest.name()
        if name == "format":
            found = replace(found, format=rest.next().text.strip("'\"").lower())  # type: ignore[arg-type]
        elif name in ("header", "freeze"):
            value = True if rest.says(",", ")") else _truth(rest)
            found = replace(found, header=value) if name == "header" else found
        elif name == "force_quote" and rest.had("*"):
            found = replace(found, force=True)
        elif name in ("delimiter", "null", "quote", "escape"):
            found = _with(found, name, _text(rest))
        elif name != "encoding" or _text(rest).lower().replace("-", "") not in ("utf8", "unicode"):
            raise Refused(
                f"The option {name[:63].upper()} of COPY is not supported", why="it is none of those read here", instead=_LINE
            )
        if not rest.says(")") and not rest.had(","):
            raise rest.refused()
    rest.end()
    return found


def _old(rest: Rest, found: CopyFormat) -> CopyFormat:
    """One option without parentheses."""
    if rest.had("binary"):
        return replace(found, format="binary")
    if rest.had("csv"):
        return replace(found, format="csv")
    if rest.had("header"):
        return replace(found, header=True)
    for name in ("delimiter", "null", "quote", "escape"):
        if rest.had(name):
            rest.had("as")
            return _with(found, name, _text(rest))
    raise rest.refused()


def _with(found: CopyFormat, name: str, text: str) -> CopyFormat:
    told: dict[str, Any] = {name: text}
    return replace(found, **told)


def _text(rest: Rest) -> str:
    word = rest.next()
    if word.kind != "string":
        raise rest.refused()
    plain = unquoted(word.text)
    return "\t" if plain == "\\t" else plain


def _truth(rest: Rest) -> bool:
    value = rest.next().text.strip("'").lower()
    if value not in (*_NO, *_YES):
        raise rest.refused()
    return value in _YES


def _checked(how: CopyFormat) -> CopyFormat:
    """Refuse what no reader could take apart again."""
    one = all(len(each) == 1 and each not in "\r\n" for each in (how.between, how.quote, how.escape or how.quote))
    plain = how.format == "csv" or (how.quote == '"' and not how.escape and not how.force)
    clear = how.between not in how.nothing and not set("\r\n") & set(how.nothing) and how.between != how.quote
    textual = how.format == "csv" or how.between not in "\\.abcdefghijklmnopqrstuvwxyz0123456789"
    bare = how.format != "binary" or how == CopyFormat(format="binary")
    if how.format not in ("text", "csv", "binary") or not (one and plain and clear and textual and bare):
        raise Refused("The options of COPY are invalid", why="they do not go together", instead=_LINE, code="22023")
    return how


def copied(columns: Sequence[Column], rows: Sequence[Sequence[Any]], how: CopyFormat) -> Iterator[bytes]:
    """The messages of a copy, each row in one of its own, as readers expect them.

    >>> from cloister.pgwire.results import Column
    >>> columns = [Column(name="sex", kind="text"), Column(name="n", kind="int8")]
    >>> messages = list(copied(columns, [("F", 3), (None, 4)], CopyFormat(format="csv", header=True)))
    >>> messages[1][5:], messages[2][5:9], messages[2][14:]
    (b'sex,n\\n', b'F,3\\n', b',4\\n')
    """
    binary = how.format == "binary"
    codes = [int(binary)] * len(columns)
    yield message("H", struct.pack(f"!bH{len(codes)}H", binary, len(codes), *codes))
    before = _SIGNATURE if binary else b""  # it goes with what comes first, as from PostgreSQL
    if how.header:
        yield message("d", _line([column.name for column in columns], how, alone=len(columns) == 1))
    for start in range(0, len(rows), _PIECE):
        written = [_row(columns, row, how) for row in rows[start : start + _PIECE]]
        written[0] = before + written[0]
        yield b"".join(message("d", each) for each in written)
        before = b""
    if binary:
        yield message("d", before + struct.pack("!h", -1))
    yield message("c")


def _row(columns: Sequence[Column], row: Sequence[Any], how: CopyFormat) -> bytes:
    kinds = [TYPES[column.kind] for column in columns]
    if how.format == "binary":
        sent = [to_binary(value, kind) for value, kind in zip(row, kinds, strict=True)]
        parts = [b"\xff\xff\xff\xff" if each is None else struct.pack("!i", len(each)) + each for each in sent]
        return struct.pack("!h", len(parts)) + b"".join(parts)
    texts = [to_text(value, kind) for value, kind in zip(row, kinds, strict=True)]
    return _line([None if each is None else decoded(each) for each in texts], how, alone=len(columns) == 1)


def _line(texts: Sequence[str | None], how: CopyFormat, *, alone: bool) -> bytes:
    written = [how.nothing if each is None else _written(each, how, alone=alone) for each in texts]
    return encoded(how.between.join(written) + "\n")


def _written(text: str, how: CopyFormat, *, alone: bool) -> str:
    """A value so that no reader takes a part of it for an end, or the whole for NULL."""
    if how.format == "text":
        escaped = text.translate(_ESCAPES)
        return escaped if how.between == "\t" else escaped.replace(how.between, "\\" + how.between)
    marks = {how.between, how.quote, "\r", "\n"}
    if not (how.force or text == how.nothing or marks & set(text) or (alone and text == "\\.")):
        return text
    escape = how.escape or how.quote
    inside = text.replace(escape, escape * 2) if escape != how.quote else text
    return how.quote + inside.replace(how.quote, escape + how.quote) + how.quote
