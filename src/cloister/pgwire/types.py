"""Types on the wire: their numbers, and how values are written in text and in binary.

Answers need whole numbers, real numbers, text, dates and truth values; catalogues a few more. Binary is what PostgreSQL's own
`typsend` writes, text what its output functions write with ISO dates.
"""

import math
import struct
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from cloister.pgwire.failures import Refused
from cloister.printable import json_of, shown
from cloister.session.releases.frames import Kind

_LARGEST = 2**63 - 1
WHOLE = {"int2": "!h", "int4": "!i", "int8": "!q", "oid": "!I"}
REAL = {"float4": "!f", "float8": "!d"}
"""Types of numbers, and how `struct` writes each."""
_EPOCH = date(2000, 1, 1)
_NEVER = datetime(2000, 1, 1)


CODECS = {
    "UTF8": "utf-8",
    "GBK": "gbk",
    "GB18030": "gb18030",
    "BIG5": "cp950",
    "SJIS": "cp932",
    "UHC": "cp949",
    "LATIN1": "latin-1",
    "LATIN9": "iso8859-15",
    **{f"WIN{number}": f"cp{number}" for number in (1250, 1251, 1252)},
}
"""The encodings that a client may speak, as PostgreSQL and as Python call them."""
SPOKEN = ContextVar("SPOKEN", default="UTF8")
"""The one that the client of this connection speaks."""


def encoded(text: str) -> bytes:
    """A text as the client reads it."""
    try:
        return text.encode(CODECS[SPOKEN.get()])
    except UnicodeEncodeError:
        raise Refused(
            "The answer was not sent",
            why=f"a character of it has no equal in {SPOKEN.get()}",
            instead="SET client_encoding = 'UTF8'",
            code="22P05",
        ) from None


def decoded(sent: bytes) -> str:
    """A text that the client wrote."""
    try:
        return sent.decode(CODECS[SPOKEN.get()])
    except UnicodeDecodeError:
        raise Refused(
            "The message is invalid",
            why=f"a text in it is not {SPOKEN.get()}",
            instead="SET client_encoding = 'UTF8'",
            code="22021",
        ) from None


@dataclass(frozen=True, kw_only=True)
class WireType:
    """A type by name and number, its size in binary (−1: it varies), and of an array the type of its elements.

    >>> TYPES["int8"].oid, named(1009).element
    (20, 'text')
    """

    name: str
    oid: int
    size: int
    element: str = ""


def _types() -> dict[str, WireType]:
    plain = {
        "bool": (16, 1, 1000),
        "bytea": (17, -1, 1001),
        "char": (18, 1, 1002),
        "name": (19, 64, 1003),
        "int8": (20, 8, 1016),
        "int2": (21, 2, 1005),
        "int4": (23, 4, 1007),
        "text": (25, -1, 1009),
        "oid": (26, 4, 1028),
        "json": (114, -1, 199),
        "float4": (700, 4, 1021),
        "float8": (701, 8, 1022),
        "bpchar": (1042, -1, 1014),
        "varchar": (1043, -1, 1015),
        "date": (1082, 4, 1182),
        "timestamp": (1114, 8, 1115),
        "timestamptz": (1184, 8, 1185),
        "numeric": (1700, -1, 1231),
    }
    found = {name: WireType(name=name, oid=oid, size=size) for name, (oid, size, _) in plain.items()}
    for name, (_, _, array) in plain.items():
        found[f"{name}[]"] = WireType(name=f"{name}[]", oid=array, size=-1, element=name)
    return {**found, "unknown": WireType(name="unknown", oid=705, size=-2)}


TYPES = _types()
OF_KIND: dict[Kind, str] = {"integer": "int8", "real": "float8", "text": "text", "date": "date", "boolean": "bool"}
_BY_OID = {each.oid: each for each in TYPES.values()}


FORMATS = {
    "bool": "boolean",
    "bpchar": "character",
    "char": '"char"',
    "float4": "real",
    "float8": "double precision",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "varchar": "character varying",
}
"""What SQL calls types that it calls otherwise than the wire does."""
_CALLED = {called: kind for kind, called in FORMATS.items() if kind != "char"}
_CALLED |= {"dec": "numeric", "decimal": "numeric", "float": "float8", "int": "int4"}


def type_called(name: str) -> WireType | None:
    """The type that SQL calls so, where the wire speaks it.

    >>> type_called("integer").name, type_called("double precision[]").name, type_called("point")
    ('int4', 'float8[]', None)
    """
    element = name.removesuffix("[]")
    return TYPES.get(_CALLED.get(element, element) + name[len(element) :])


def named(oid: int) -> WireType | None:
    """The type with a number, where the wire speaks it."""
    return _BY_OID.get(oid)


def to_text(value: Any, kind: WireType) -> bytes | None:
    """A value as PostgreSQL prints it; None is NULL.

    >>> to_text(True, TYPES["bool"]), to_text(0.1, TYPES["float8"]), to_text(["a b", None], TYPES["text[]"])
    (b't', b'0.1', b'{"a b",NULL}')
    """
    value = _plain(value, kind)
    return None if value is None else encoded(_printed(value, kind))


def to_binary(value: Any, kind: WireType) -> bytes | None:
    """A value as PostgreSQL sends it in binary; None is NULL.

    >>> to_binary(1, TYPES["int8"]).hex(), to_binary(date(2000, 1, 2), TYPES["date"]).hex()
    ('0000000000000001', '00000001')
    >>> to_binary(Decimal("-12345.678"), TYPES["numeric"]).hex()
    '0003000140000003000109291a7c'
    """
    value = _plain(value, kind)
    if value is None:
        return None
    if kind.element:
        return _array(value, TYPES[kind.element])
    sender = _SENDERS.get(kind.name)
    return encoded(_printed(value, kind)) if sender is None else sender(value)


def _plain(value: Any, kind: WireType) -> Any:
    """As a Python value of the type: what was described is what is sent."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return None
    if kind.name == "int8" and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return min(max(round(value), -_LARGEST), _LARGEST)
    if kind.name in ("float4", "float8"):
        return float(value)
    return value


def _printed(value: Any, kind: WireType) -> str:
    if kind.element:
        return "{" + ",".join(_element(each, TYPES[kind.element]) for each in value) + "}"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dict | list):
        return json_of(value)
    return format(value, "f") if isinstance(value, Decimal) else shown(str(value), lines=True)


def _element(value: Any, kind: WireType) -> str:
    if value is None:
        return "NULL"
    text = _printed(value, kind)
    if text and text.lower() != "null" and not any(sign in text for sign in '{}",\\ \t\n\r\v\f'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _array(values: list[Any], kind: WireType) -> bytes:
    missing = any(each is None for each in values)
    head = struct.pack("!iiI", 1 if values else 0, missing, kind.oid) + (struct.pack("!ii", len(values), 1) if values else b"")
    sent = [to_binary(each, kind) for each in values]
    return head + b"".join(b"\xff\xff\xff\xff" if each is None else struct.pack("!i", len(each)) + each for each in sent)


def _numeric(value: Any) -> bytes:
    """Digits in base 10,000: how many, the weight of the first, the sign, the places behind the point, the digits."""
    number = Decimal(value)
    if number.is_nan():
        return struct.pack("!hhHH", 0, 0, 0xC000, 0)
    if number.is_infinite():
        return struct.pack("!hhHH", 0, 0, 0xD000 if number > 0 else 0xF000, 0)
    text = format(abs(number), "f")
    whole, _, part = text.partition(".")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    digits = whole + part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int(digits[place : place + 4]) for place in range(0, len(digits), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups, weight = groups[1:], weight - 1
    while groups and groups[-1] == 0:
        groups = groups[:-1]
    sign = 0x4000 if number < 0 else 0
    return struct.pack(f"!hhHH{len(groups)}h", len(groups), weight if groups else 0, sign, len(part), *groups)


def _microseconds(value: datetime) -> bytes:
    since = value.replace(tzinfo=None) - _NEVER
    return struct.pack("!q", (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_SENDERS: dict[str, Callable[[Any], bytes]] = {
    "bool": lambda value: b"\x01" if value else b"\x00",
    "bytea": bytes,
    **{name: partial(struct.pack, form) for name, form in (WHOLE | REAL).items()},
    "date": lambda value: struct.pack("!i", value.toordinal() - _EPOCH.toordinal()),
    "timestamp": _microseconds,
    "timestamptz": _microseconds,
    "numeric": _numeric,
}
