"""Values as bytes: what a document may hold, one text for each value, and the padding that hides its length.

A value is JSON with marks for what JSON lacks: `{"$bytes": …}`, `{"$date": …}`, `{"$time": …}`, `{"$int": …}`. No key of a
document may begin with `$`, so a mark can't be forged by a document, and an operator can't get in where a value belongs.

Padding: one byte 0x80, then zeros, up to the next length that PADMÉ allows (Nikitin et al. 2019), at least 32. Of a text of L
bytes it shows O(log log L) bits, and it adds at most 12 % beyond 32 bytes.
"""

import base64
import json
import math
from datetime import MAXYEAR, UTC, date, datetime
from typing import Any

from cloister.errors import InvalidParameter
from cloister.printable import SPLIT

LEAST = 32
"""Bytes of the shortest padded value: 30 ASCII letters and their quotes look like a number."""
LARGEST = 16 * 2**20
"""Bytes of the largest document, as in MongoDB."""
DEEPEST = 100
"""Levels of the deepest document, as in MongoDB."""
_EXACT = 2**63
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MARKS = ("$bytes", "$date", "$time", "$int")


def encode(value: Any) -> bytes:
    """The bytes of a value.

    >>> encode({"born": date(1990, 5, 1), "towns": ["Basel", None]})
    b'{"born":{"$date":"1990-05-01"},"towns":["Basel",null]}'
    """
    return _ENCODER.encode(_plain(value, 0)).encode("ascii")


def decode(encoded: bytes) -> Any:
    """The value of these bytes.

    >>> decode(encode([2**80, b"raw", 1.5])) == [2**80, b"raw", 1.5]
    True
    """
    return _DECODER.decode(encoded.decode("utf-8", "surrogatepass"))


def padded(text: bytes, whole: int | None = None) -> bytes:
    """The text with padding, of a length that many texts share; or of this length, for texts that are shorter.

    >>> [len(padded(b"x" * length)) for length in (1, 31, 32, 1000)]
    [32, 32, 36, 1024]
    """
    length = whole or max(LEAST, len(text) + 1)
    if not whole and length > LEAST:
        free = length.bit_length() - 1
        low = (1 << (free - free.bit_length())) - 1
        length = (length + low) & ~low
    return text + b"\x80" + bytes(length - len(text) - 1)


def unpadded(text: bytes) -> bytes:
    """The text without its padding."""
    return text[: text.rindex(b"\x80")]


def comparable(value: Any) -> bytes:
    """The bytes that two values share if they are equal, following MongoDB: 1 and 1.0 are equal, True and 1 are not. A
    moment is the same in every time zone.

    >>> comparable(1) == comparable(1.0), comparable(True) == comparable(1)
    (True, False)
    """
    return encode(_normal(value, 0))


def is_number(value: Any) -> bool:
    """Whether a value is a finite number: NaN and infinities can be kept, but not compared or added.

    >>> is_number(3), is_number(True), is_number(float("nan"))
    (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))


def check_document(document: Any) -> dict[str, Any]:
    """A document, or an error that does not repeat what is in it."""
    if not isinstance(document, dict):
        raise InvalidParameter("The document is invalid", why="it is not a dict", instead='{"name": "Ada"}')
    for key in document:
        if not isinstance(key, str) or not key or key.startswith("$") or "." in key or SPLIT.search(key):
            raise InvalidParameter(
                "The document is invalid",
                why="a field's name is a text that is not empty, does not begin with $ and has no dot",
                instead="another name, or update_one with $set for operators",
            )
    return document


def _plain(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise InvalidParameter("The document is invalid", why=f"it has more than {DEEPEST} levels", instead="a flatter document")
    if isinstance(value, str) and SPLIT.search(value):
        raise _another("a text has a character in two halves", "the character whole")
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value < _EXACT else {"$int": hex(value)}  # hexadecimal: a decimal text of it may be refused
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, date):
        text = value.isoformat()
        try:
            same = type(value) in (date, datetime) or type(value).fromisoformat(text) == value == datetime.fromisoformat(text)
        except ValueError:
            same = False
        if not same:  # pandas.NaT, or a Timestamp of nanoseconds
            raise _another("a moment is missing, or finer than microseconds", "None, or a datetime")
        return {"$time" if isinstance(value, datetime) else "$date": text}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, dict):
        if any(not isinstance(key, str) or key.startswith("$") or SPLIT.search(key) for key in value):
            raise InvalidParameter(
                "The document is invalid",
                why="a key inside it is not a text, or begins with $",
                instead="keys that are texts and do not look like an operator",
            )
        return {key: _plain(each, depth + 1) for key, each in value.items()}
    raise InvalidParameter(
        "The document is invalid",
        why="it holds a value of a type that is not stored",
        instead="None, bool, int, float, str, bytes, date, datetime, list and dict",
    )


def _another(why: str, instead: str) -> InvalidParameter:
    """What would be read as another value than was written: the store would be blamed for it."""
    return InvalidParameter("The document is invalid", why=why, instead=instead)


def _normal(value: Any, depth: int) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime) and value.utcoffset() is not None and 1 < value.year < MAXYEAR:  # at the ends UTC has no text
        return value.astimezone(UTC)
    if isinstance(value, list | tuple) and depth <= DEEPEST:
        return [_normal(each, depth + 1) for each in value]
    if isinstance(value, dict) and depth <= DEEPEST:
        return {key: _normal(each, depth + 1) for key, each in value.items()}
    return value


def _marked(found: dict[str, Any]) -> Any:
    if len(found) != 1:
        return found
    ((key, value),) = found.items()
    if key not in _MARKS:
        return found
    if key == "$bytes":
        return base64.b64decode(value)
    if key == "$int":
        return int(value, 16)
    return date.fromisoformat(value) if key == "$date" else datetime.fromisoformat(value)


_DECODER = json.JSONDecoder(object_hook=_marked)
