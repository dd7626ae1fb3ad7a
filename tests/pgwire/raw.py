"""A client of the protocol that can also be rude: it sends what it is told to, and reads messages one by one."""

from __future__ import annotations

import socket
import struct
from typing import Any, Self


def text(value: str) -> bytes:
    """A text with its zero byte."""
    return value.encode() + b"\0"


def message(letter: str, body: bytes = b"") -> bytes:
    """One message."""
    return letter.encode() + struct.pack("!i", len(body) + 4) + body


def startup(**settings: str) -> bytes:
    """The first message."""
    body = struct.pack("!i", 196608) + b"".join(text(name) + text(value) for name, value in settings.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def parse(sql: str, name: str = "", types: tuple[int, ...] = ()) -> bytes:
    """Parse."""
    return message("P", text(name) + text(sql) + struct.pack(f"!h{len(types)}I", len(types), *types))


def bind(values: tuple[bytes | None, ...] = (), *, portal: str = "", name: str = "", binary: bool = False) -> bytes:
    """Bind, with text values."""
    sent = b"".join(struct.pack("!i", -1) if each is None else struct.pack("!i", len(each)) + each for each in values)
    body = text(portal) + text(name) + struct.pack("!h", 0) + struct.pack("!h", len(values)) + sent
    return message("B", body + struct.pack("!hh", 1, int(binary)))


def describe(kind: str, name: str = "") -> bytes:
    """Describe S or P."""
    return message("D", kind.encode() + text(name))


def execute(portal: str = "", most: int = 0) -> bytes:
    """Execute."""
    return message("E", text(portal) + struct.pack("!i", most))


SYNC = message("S")


class Raw:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.key = (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *messages: bytes) -> None:
        """Sends all of it at once."""
        self.socket.sendall(b"".join(messages))

    def exactly(self, size: int) -> bytes:
        """So many bytes."""
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            if not more:
                raise EOFError
            found += more
        return found

    def read(self) -> tuple[str, bytes]:
        """One message."""
        head = self.exactly(5)
        return chr(head[0]), self.exactly(int.from_bytes(head[1:], "big") - 4)

    def until(self, letter: str = "Z") -> list[tuple[str, bytes]]:
        """All messages up to one with a letter; settings and notices left out."""
        found = []
        while True:
            kind, body = self.read()
            if kind == "K":
                self.key = struct.unpack("!iI", body)
            if kind not in "SN":
                found.append((kind, body))
            if kind == letter:
                return found

    def log_in(self, user: str = "ada", token: str = "a-long-token", **settings: str) -> Self:
        """Up to the first ReadyForQuery."""
        self.send(startup(user=user, database="hub", **settings))
        assert self.read() == ("R", struct.pack("!i", 3))
        self.send(message("p", text(token)))
        self.until()
        return self

    def ask(self, *messages: bytes) -> list[tuple[str, bytes]]:
        """Sends messages and reads up to ReadyForQuery."""
        self.send(*messages)
        return self.until()

    def query(self, sql: str) -> list[tuple[str, bytes]]:
        """The simple protocol."""
        return self.ask(message("Q", text(sql)))

    def ended(self) -> bool:
        """Whether the server closes the connection, after whatever it still says."""
        try:
            while True:
                self.read()
        except (EOFError, ConnectionError):
            return True


def letters(messages: list[tuple[str, bytes]]) -> str:
    """The letters of messages."""
    return "".join(letter for letter, _ in messages)


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def error(messages: list[tuple[str, bytes]]) -> dict[str, str]:
    """The first error among messages."""
    return fields(next(body for letter, body in messages if letter == "E"))


def values(body: bytes) -> list[Any]:
    """The values of a row, as bytes."""
    [count], at, found = struct.unpack("!h", body[:2]), 2, []
    for _ in range(count):
        [size] = struct.unpack("!i", body[at : at + 4])
        found.append(None if size < 0 else body[at + 4 : at + 4 + size])
        at += 4 + max(size, 0)
    return found


def rows(messages: list[tuple[str, bytes]]) -> list[list[Any]]:
    """All rows among messages."""
    return [values(body) for letter, body in messages if letter == "D"]
