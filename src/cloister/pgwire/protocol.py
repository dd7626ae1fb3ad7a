"""Messages of PostgreSQL's protocol, version 3: how they are read from a stream, and how each answer is spelled.

A message is a letter, a length and a body; the first one of a connection has no letter. Bodies come from anybody, so a `Body`
refuses what it cannot read as a breach of the protocol, and no length is believed before it was compared with a limit.
"""

import asyncio
import struct
from collections.abc import Iterable, Sequence

from cloister.pgwire.failures import Failure, Refused
from cloister.pgwire.types import CODECS, SPOKEN, WireType, decoded, encoded, to_binary, to_text
from cloister.printable import shown

CANCEL, TLS, GSS, VERSION_3 = 80877102, 80877103, 80877104, 3
LARGEST_STARTUP = 10_000


def breach(what: str) -> Refused:
    """A message that the protocol does not allow: the connection ends."""
    return Refused("The message is invalid", why=what, instead="a client of protocol version 3", code="08P01", fatal=True)


class Body:
    """The fields of one message, read from left to right.

    >>> body = Body(b"name\\0" + bytes([0, 2]))
    >>> body.text(), body.int16()
    ('name', 2)
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def text(self) -> str:
        """A text that ends with a zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise breach("a text in it does not end")
        found, self._at = self._data[self._at : end], end + 1
        return decoded(found)

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size < 0 or self._at + size > len(self._data):
            raise breach("it is shorter than it says")
        self._at += size
        return self._data[self._at - size : self._at]

    def int16(self) -> int:
        """A signed number of two bytes."""
        return int(struct.unpack("!h", self.take(2))[0])

    def int32(self) -> int:
        """A signed number of four bytes."""
        return int(struct.unpack("!i", self.take(4))[0])

    def oid(self) -> int:
        """An unsigned number of four bytes."""
        return int(struct.unpack("!I", self.take(4))[0])

    def count(self) -> int:
        """How many fields follow; never fewer than none."""
        found = self.int16()
        if found < 0:
            raise breach("it counts fewer than no fields")
        return found

    def value(self) -> bytes | None:
        """A value with its length before it; −1 is NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def formats(self) -> list[int]:
        """A list of format codes: 0 is text, 1 is binary."""
        found = [self.int16() for _ in range(self.count())]
        if any(code not in (0, 1) for code in found):
            raise breach("it names a format that is neither text nor binary")
        return found

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._data):
            raise breach("it is longer than its fields")


async def read_startup(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The code and the body of a message without a letter."""
    [size] = struct.unpack("!i", await reader.readexactly(4))
    if not 8 <= size <= LARGEST_STARTUP:
        raise breach("its length is out of range")
    [code] = struct.unpack("!i", await reader.readexactly(4))
    return int(code), await reader.readexactly(size - 8)


async def read_message(reader: asyncio.StreamReader, largest: int) -> tuple[str, Body]:
    """The letter and the body of a message."""
    head = await reader.readexactly(5)
    letter, size = chr(head[0]), int.from_bytes(head[1:], "big", signed=True)
    if size < 4:
        raise breach("its length is out of range")
    if size > largest:
        raise Refused(
            "The message was refused",
            why=f"it is longer than {largest:,} bytes",
            instead="a shorter statement",
            code="54000",
            fatal=True,
        )
    return letter, Body(await reader.readexactly(size - 4))


def message(letter: str, body: bytes = b"") -> bytes:
    """One message.

    >>> message("Z", b"I")
    b'Z\\x00\\x00\\x00\\x05I'
    """
    return letter.encode() + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    """A text with its zero byte, and with ? for what the client's encoding lacks."""
    return shown(value, lines=True).encode(CODECS[SPOKEN.get()], "replace") + b"\0"


AUTHENTICATED = message("R", struct.pack("!i", 0))
ASK_PASSWORD = message("R", struct.pack("!i", 3))
PARSED, BOUND, CLOSED = message("1"), message("2"), message("3")
NO_DATA, SUSPENDED, EMPTY = message("n"), message("s"), message("I")


def parameter_status(name: str, value: str) -> bytes:
    """A setting that the client learns."""
    return message("S", text(name) + text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a request to cancel must bring."""
    return message("K", struct.pack("!iI", process, secret))


def ready(state: str) -> bytes:
    """I: idle; T: in a transaction; E: in a failed one."""
    return message("Z", state.encode())


def complete(tag: str) -> bytes:
    """A statement is done."""
    return message("C", text(tag))


def failed(failure: Failure, *, notice: bool = False) -> bytes:
    """An error, or a notice with the same fields."""
    fields = {"S": failure.severity, "V": failure.severity, "C": failure.code, "M": failure.message, "H": failure.hint}
    body = b"".join(letter.encode() + text(value) for letter, value in fields.items() if value)
    return message("N" if notice else "E", body + b"\0")


def parameters(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message("t", struct.pack(f"!H{len(types)}I", len(types), *types))


def description(columns: Iterable[tuple[str, WireType]], formats: Sequence[int]) -> bytes:
    """Names and types of the columns that follow."""
    told = [
        encoded(shown(name, lines=True)) + struct.pack("!xIhIhih", 0, 0, kind.oid, kind.size, -1, binary)
        for (name, kind), binary in zip(columns, formats, strict=True)
    ]
    return message("T", struct.pack("!H", len(told)) + b"".join(told))


def row(values: Sequence[object], types: Sequence[WireType], formats: Sequence[int]) -> bytes:
    """One row."""
    parts = [struct.pack("!H", len(types))]
    for value, kind, binary in zip(values, types, formats, strict=True):
        sent = to_binary(value, kind) if binary else to_text(value, kind)
        parts.append(b"\xff\xff\xff\xff" if sent is None else struct.pack("!i", len(sent)) + sent)
    return message("D", b"".join(parts))
