"""Parameters of the extended protocol: each value is read by its type and spelled into the text as a literal.

The spelling is made here, never taken over: a number is printed again, a text gets its quotes doubled. So a value can't end its
literal, whatever it holds. Types that are not listed are refused by name.
"""

import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial

from cloister.pgwire.failures import Refused
from cloister.pgwire.types import REAL, TYPES, WHOLE, decoded, encoded, named
from cloister.pgwire.words import Word
from cloister.tables.expression.names import literal

_TEXTS = ("text", "varchar", "bpchar", "name", "char", "unknown")
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")
_TRUTHS = {"t": "TRUE", "true": "TRUE", "1": "TRUE", "on": "TRUE", "f": "FALSE", "false": "FALSE", "0": "FALSE", "off": "FALSE"}
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}) ?(?:[+-]\d{2}(?::?\d{2})?|Z)")
"""A day with the zone that it is a day of, which PostgreSQL reads over."""
_MOST = 1_000


def count_of(words: Sequence[Word]) -> int:
    """How many parameters a statement has.

    >>> from cloister.pgwire.words import words
    >>> count_of(words("SELECT $2, $1, '$3'"))
    2
    """
    highest = 0
    for word in words:
        if word.kind == "parameter":
            number = int(word.text[1:7])
            if not 0 < number <= _MOST or len(word.text) > 6:
                raise Refused("There is no such parameter", why=f"they are $1 to ${_MOST}", instead="$1", code="42P02")
            highest = max(highest, number)
    return highest


def bound(text: str, words: Sequence[Word], literals: Sequence[str]) -> str:
    """The text with literals in place of its parameters; spaces keep them apart from what stands beside them.

    >>> from cloister.pgwire.words import words
    >>> bound("SELECT 1-$1", words("SELECT 1-$1"), ["-2"])
    'SELECT 1- -2 '
    """
    pieces, at = [], 0
    for word in words:
        if word.kind == "parameter":
            number = int(word.text[1:])
            if number > len(literals):
                raise Refused(f"{word.text} was not bound", why="fewer values came", instead="one value each", code="08P01")
            pieces += [text[at : word.start], " ", literals[number - 1], " "]
            at = word.end
    return "".join([*pieces, text[at:]])


def example(oid: int) -> str:
    """A literal of a type, for a plan that is made before any value is known.

    >>> example(20), example(25)
    ('1', 'NULL')
    """
    kind = named(oid)
    if kind is not None and (kind.name in WHOLE or kind.name in REAL or kind.name == "numeric"):
        return "1"
    return {"date": "DATE '2000-01-01'", "bool": "TRUE"}.get("" if kind is None else kind.name, "NULL")


def spell(value: bytes | None, oid: int, binary: bool, place: int) -> str:
    """A bound value as a literal.

    >>> spell(b"it's", 25, False, 1), spell(b"-7", 23, False, 2), spell(None, 0, False, 3)
    ("'it''s'", '-7', 'NULL')
    """
    kind = TYPES["text"] if oid in (0, TYPES["unknown"].oid) else named(oid)
    if kind is None:
        raise _refused(place, f"the type with number {oid} is not spoken here", "a number, a text, a date or a truth value")
    if value is None:
        return "NULL"
    try:
        if kind.element:
            return _array(value, kind.element, binary, place)
        return _literal(value, kind.name, binary)
    except (ValueError, KeyError, InvalidOperation, struct.error, OverflowError):
        raise _refused(place, f"it is no value of the type {kind.name}", "a value of that type") from None


def _literal(value: bytes, name: str, binary: bool) -> str:
    if name in _TEXTS:
        text = decoded(value)
        if "\0" in text:
            raise ValueError
        return literal(text)
    if name in _READ:
        return _READ[name](value) if binary else _spelled(value.decode("ascii").strip(), name)
    raise ValueError


def _spelled(text: str, name: str) -> str:
    if name in WHOLE:
        return str(int(text))
    if name in REAL or name == "numeric":
        if not _NUMBER.fullmatch(text):
            raise ValueError
        return format(Decimal(text), "f") if name == "numeric" else _real(float(text))
    if name == "date":
        day = _DAY.fullmatch(text)
        return f"DATE '{date.fromisoformat(day.group(1) if day else text).isoformat()}'"
    if name in ("timestamp", "timestamptz"):
        return _spelled_moment(datetime.fromisoformat(text), name)
    return _TRUTHS[text.lower()]


def _real(number: float) -> str:
    if not math.isfinite(number):
        raise ValueError
    return repr(number)


def _whole(form: str) -> Callable[[bytes], str]:
    return lambda value: str(struct.unpack(form, value)[0])


def _floating(form: str) -> Callable[[bytes], str]:
    return lambda value: _real(struct.unpack(form, value)[0])


def _day(value: bytes) -> str:
    found = date(2000, 1, 1) + timedelta(days=struct.unpack("!i", value)[0])
    return f"DATE '{found.isoformat()}'"


def _moment(name: str, value: bytes) -> str:
    return _spelled_moment(datetime(2000, 1, 1) + timedelta(microseconds=struct.unpack("!q", value)[0]), name)


def _spelled_moment(moment: datetime, name: str) -> str:
    if name == "timestamptz":
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return f"TIMESTAMP WITH TIME ZONE '{moment.isoformat(sep=' ')}'"
    if moment.tzinfo is not None:
        raise ValueError
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"


def _decimal(value: bytes) -> str:
    count, weight, sign, places = struct.unpack("!hhHH", value[:8])
    digits = struct.unpack(f"!{count}h", value[8:])
    if sign not in (0, 0x4000) or abs(weight) > 100 or places > 400 or any(not 0 <= digit < 10_000 for digit in digits):
        raise ValueError
    whole = tuple(int(sign) for digit in digits for sign in f"{digit:04}")
    return format(Decimal((1 if sign else 0, whole, 4 * (weight - count + 1))), "f")  # exact: no context rounds it


_READ: dict[str, Callable[[bytes], str]] = {
    **{name: _whole(form) for name, form in WHOLE.items()},
    **{name: _floating(form) for name, form in REAL.items()},
    "numeric": _decimal,
    "date": _day,
    **{name: partial(_moment, name) for name in ("timestamp", "timestamptz")},
    "bool": {b"\0": "FALSE", b"\1": "TRUE"}.__getitem__,
}


def _array(value: bytes, element: str, binary: bool, place: int) -> str:
    """A list of one dimension."""
    oid = TYPES[element].oid
    if binary:
        dimensions, _, _ = struct.unpack("!iiI", value[:12])
        if dimensions == 0:
            return "ARRAY[]"
        count, at, found = struct.unpack("!i", value[12:16])[0], 20, []
        if dimensions != 1 or not 0 <= count <= _MOST:
            raise ValueError
        for _ in range(count):
            [size] = struct.unpack("!i", value[at : at + 4])
            found.append(spell(None if size < 0 else value[at + 4 : at + 4 + size], oid, True, place))
            at += 4 + max(size, 0)
        return f"ARRAY[{', '.join(found)}]"
    found = [spell(None if each is None else encoded(each), oid, False, place) for each in elements_of(decoded(value))]
    return f"ARRAY[{', '.join(found)}]"


def elements_of(text: str) -> list[str | None]:
    """The elements of an array of one dimension, from the text that PostgreSQL writes it as.

    >>> elements_of('{a,"b c",NULL,"NULL"}'), elements_of("{}")
    (['a', 'b c', None, 'NULL'], [])
    """
    inside = text.strip()
    if inside[:1] != "{" or inside[-1:] != "}" or len(inside) < 2:
        raise _no_array()
    inside, at = inside[1:-1], 0
    if not inside.strip():
        return []
    found: list[str | None] = []
    while True:
        match = _ELEMENT.match(inside, at)
        if match is None or len(found) == _MOST:
            raise _no_array()
        quoted, plain = match.groups()
        text = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if plain is None else plain
        found.append(None if plain is not None and plain.upper() == "NULL" else text)
        at = match.end()
        if at == len(inside):
            return found
        if inside[at] != ",":
            raise _no_array()
        at += 1


_ELEMENT = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s{},"\\](?:[^{},"\\]*[^\s{},"\\])?))\s*+', re.DOTALL)


def _no_array() -> Refused:
    why = f"it is no array of one dimension with at most {_MOST:,} elements"
    return Refused("The array is invalid", why=why, instead="'{1,2,3}'", code="22P02")


def _refused(place: int, why: str, instead: str) -> Refused:
    return Refused(f"The parameter ${place} is invalid", why=why, instead=instead, code="22P02")
