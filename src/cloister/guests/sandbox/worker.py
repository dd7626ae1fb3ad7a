"""The process in which guests run: a program of its own, started without environment, keys or open files.

It reads requests from its input and writes answers to its output, each a length of four bytes and JSON. Every run begins at the
same state of the image, with so much fuel (instructions) and memory; whatever ends otherwise than by a value is one and the same
failure. A run that doesn't ask is a fork of this process, which has one thread, and is killed at the moment `until`: fuel and
epochs are looked at between instructions, and one instruction may fill a gigabyte. Nothing of cloister is imported here but the
fork.
"""

import contextlib
import ctypes
import json
import mmap
import os
import resource
import struct
import sys
import time
from importlib import import_module
from typing import IO, Any

_MOST = 64 << 20
_ROOM = _MOST // 16
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38


def config() -> Any:
    """How images are compiled and run."""
    from wasmtime import Config

    found = Config()
    found.consume_fuel = True
    return found


def send(file: IO[bytes], message: dict[str, Any]) -> None:
    """One message."""
    raw = json.dumps(message).encode()
    file.write(struct.pack(">I", len(raw)) + raw)
    file.flush()


def receive(file: IO[bytes]) -> dict[str, Any] | None:
    """One message; None where there are no more, or one that is none of ours."""
    head = file.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack(">I", head)
    raw = file.read(length) if length <= _MOST else b""
    if len(raw) < length or not raw:
        return None
    found = json.loads(raw)
    return found if isinstance(found, dict) else None


def close_doors() -> None:
    """No core dumps, no files to write, no new programs' privileges, no look from other processes of this user."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.chdir("/")


def main(path: str) -> None:
    """Load the image, then run whatever is asked until the input ends."""
    from wasmtime import Engine, Store
    from wasmtime.component import Component, Linker

    into, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever prints by mistake speaks to nobody
    engine = Engine(config())
    image = Component.deserialize_file(engine, path)
    linker = Linker(engine)
    asks = [False]

    def ask(_store: Any, question: str) -> str:
        if not asks[0] or len(question) > _MOST // 64:
            raise PermissionError
        send(out, {"asked": question})
        answer = receive(into)
        if answer is None:
            raise PermissionError
        return str(answer["answer"])

    with linker.root() as root:
        root.add_func("ask", ask)
    close_doors()

    def ran(request: dict[str, Any]) -> bytes:
        store = Store(engine)
        store.set_fuel(int(request["fuel"]))
        store.set_limits(memory_size=int(request["memory"]), memories=8, tables=64, instances=64, table_elements=1 << 20)
        try:
            run = linker.instantiate(store, image).get_func(store, "run")
            assert run is not None
            told = str(run(store, request["code"], request["entry"], request["argument"])).encode()
        except Exception:  # a trap, an end of fuel, a refusal: one failure
            told = b""
        return told if len(told) < _ROOM else b""

    def forked(request: dict[str, Any]) -> bytes:
        with mmap.mmap(-1, 4 + _ROOM) as reply:  # shared with the fork, and with no other run

            def write() -> None:
                told = ran(request)
                reply[4 : 4 + len(told)] = told
                reply[:4] = struct.pack(">I", len(told))

            fork.run(request["until"] - time.monotonic(), write)
            (length,) = struct.unpack(">I", reply[:4])
            return reply[4 : 4 + length]

    sys.path.append(os.path.dirname(__file__))
    fork = import_module("fork_server")
    ran({"code": "def f(): pass", "entry": "f", "argument": "[]", "fuel": 10**9, "memory": 1 << 28})  # forks find it ready
    send(out, {"ready": True})
    while (request := receive(into)) is not None:
        asks[0] = bool(request["ask"])
        send(out, {"told": (ran if asks[0] else forked)(request).decode(errors="replace")})


if __name__ == "__main__":
    main(sys.argv[1])
