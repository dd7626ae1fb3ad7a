"""The process beside bubblewrap's walls that has imported the packages before any row arrives, and forks once for each run.

It is process 1 of its namespace, and never reads a row or a guest's text: of each request it knows two files that came over its
socket, one to read and one of fixed size to write, and it hands both to the process that it forks. That process closes the
socket, moves into a file system of its own, gives up what it could do, and only then opens the request. When it ends, or its time
does, it is killed with whatever is left; the answer is the same for every end. The standard library alone, and `app.py`.
"""

import base64
import contextlib
import ctypes
import gc
import json
import math
import os
import pkgutil
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

_NEW_MOUNTS, _PRIVATE, _NOTHING_SPECIAL = 0x20000, (1 << 18) | (1 << 14), 2 | 4 | 8
_DUMPABLE, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _PARENT_DEATH = 4, 38, 22, 2, 1
_CAPSET = {"x86_64": 126, "aarch64": 91}
_RULESET, _RULE, _RESTRICT = 444, 445, 446
_CAPABILITIES_3 = 0x20080522
_READ, _WRITE = (1 << 0) | (1 << 2) | (1 << 3), (1 << 1) | (1 << 4) | (1 << 5) | (1 << 7) | (1 << 8)
_LIBC = ctypes.CDLL(None, use_errno=True)
_LEAST_PRINTED = 500
_LATE = {"narwhals"}
"""Packages that import their parts when they are first used. A run sees no file, so they are imported whole before. Data frames
reach scikit-learn by this one."""


def call(name: str, *arguments: Any) -> int:
    """A function of libc, or an error."""
    found: int = getattr(_LIBC, name)(*arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def own_file_system(scratch: int, *, empty: bool) -> None:
    """A mount namespace with a fresh /tmp in memory; for Python it is all that there is."""
    call("unshare", _NEW_MOUNTS)
    call("mount", b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None)
    about = f"size={scratch},nr_inodes=512,mode=700".encode()
    call("mount", b"tmpfs", b"/tmp", b"tmpfs", ctypes.c_ulong(_NOTHING_SPECIAL), about)
    if empty:
        os.chroot("/tmp")  # noqa: S108
        os.mkdir("/tmp")  # noqa: S108
    os.chdir("/tmp")  # noqa: S108


def landlock() -> int:
    """Beside the empty file system: to read and run what is there, to write in /tmp alone, no TCP, no signals and no abstract
    sockets beyond this process. Returns the kernel's version of it, 0 where there is none."""
    version: int = _LIBC.syscall(_RULESET, None, 0, 1)
    if version < 1:
        return 0
    every = (1 << (13 if version == 1 else 14 if version == 2 else 15 if version < 5 else 16)) - 1
    about = struct.pack("=QQQ", every, 3, 3)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = call("syscall", _RULESET, about, len(about), 0)
    for path, allowed in (("/", _READ), ("/tmp", _READ | _WRITE | every & (1 << 14))):  # noqa: S108
        folder = os.open(path, os.O_PATH)
        call("syscall", _RULE, ruleset, 1, struct.pack("=Qi", allowed, folder), 0)
        os.close(folder)
    call("syscall", _RESTRICT, ruleset, 0)
    os.close(ruleset)
    return version


def give_up(about: dict[str, Any], address_space: int) -> None:
    """Limits, no capability, no new privileges, and the filter of system calls: from here on nothing can be taken back."""
    limits = {
        resource.RLIMIT_AS: address_space,
        resource.RLIMIT_FSIZE: max(int(about["scratch"]), int(about["room"])),
        resource.RLIMIT_CPU: math.ceil(about["seconds"]) + 1,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_STACK: 8 << 20,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_NPROC: 1,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 16,
    }
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))
    call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    landlock()
    nothing = struct.pack("=6I", *[0] * 6)
    call("syscall", _CAPSET[os.uname().machine], struct.pack("=Ii", _CAPABILITIES_3, 0), nothing)
    program = base64.b64decode(about["filter"])
    held = ctypes.create_string_buffer(program)
    call("prctl", _SECCOMP, _FILTER, struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(held)), 0, 0)


def child(about: dict[str, Any], files: list[int], address_space: int) -> None:
    """One run, in a process that nobody used before and nobody uses after."""
    request, reply = files
    for low, high in (
        (3, min(files)),
        (min(files) + 1, max(files)),
        (max(files) + 1, 1024),
    ):  # first of all: the socket that files come by
        os.closerange(low, high)
    call("prctl", _PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    for place in (0, 1, 2):  # opened again: the flags of an inherited one would be seen by later runs
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, place)
        os.close(null)
    os.environ.clear()
    in_r = about["language"] == "r"
    own_file_system(int(about["scratch"]), empty=not in_r)
    if in_r:
        os.dup2(reply, 1)
    give_up(about, address_space)
    raw = b""
    while part := os.read(request, 1 << 20):
        raw += part
    told = json.loads(raw)
    if in_r:
        with open("/tmp/guest.R", "w", encoding="utf-8") as script:  # noqa: S108
            script.write(told["code"])
        home = str(about["program"])
        words = [f"{home}/bin/exec/R", "--no-echo", "--no-restore", "--vanilla", "--file=/tmp/guest.R"]
        os.execve(words[0], words, {"R_HOME": home, "LD_LIBRARY_PATH": f"{home}/lib", "TMPDIR": "/tmp", **about["environment"]})  # noqa: S108, S606
    text = import_module("app").WitWorld().run(told["code"], told["entry"], told["argument"])
    if len(text) > about["room"]:  # what is printed takes no room of the value
        found = json.loads(text)
        text = json.dumps({**found, "printed": found["printed"][:_LEAST_PRINTED]})
    if len(text) <= about["room"]:
        os.pwrite(reply, text.encode(errors="replace"), 0)


def run(seconds: float, work: Callable[[], None]) -> None:
    """Fork for the work, wait until it ends or its time does, and leave nothing of it: a killed process finishes no instruction.
    Both sandboxes end a run here; the worker of the other one forks an interpreter that nobody used."""
    number = os.fork()
    if not number:
        try:
            work()
        finally:
            os._exit(0)
    watched = os.pidfd_open(number)
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.poll(max(seconds, 0) * 1000)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(watched, signal.SIGKILL)
    os.close(watched)
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # everything in this namespace but this process
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> None:
    """Import what was named, say so, and fork for each pair of files until the socket is closed."""
    if os.getpid() != 1:
        raise SystemExit("this program belongs inside the walls that processes.py builds")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # with a handler, process 1 could be ended from within
    about = json.loads(sys.argv[1])
    host = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(null, place)
    os.close(null)
    os.chdir("/")
    call("prctl", _DUMPABLE, 0, 0, 0, 0)
    missing = []
    if about["language"] == "python":
        sys.path[:] = [about["parts"], *sys.path, about["packages_at"]]
        import_module("app")
        for codec in ("ascii", "latin_1", "cp1252", "utf_16", "idna"):
            import_module(f"encodings.{codec}")
        for name in about["packages"]:
            try:
                import_module(name)
            except Exception:  # a package's own words are for whoever installs it
                missing.append(name)
        for name in _LATE & {*sys.modules}:
            for found in pkgutil.walk_packages(sys.modules[name].__path__, f"{name}."):
                with contextlib.suppress(Exception):  # parts for packages that are not there
                    import_module(found.name)
    gc.collect()
    gc.freeze()
    host.send(json.dumps({"missing": missing}).encode())
    while True:
        message, files, _, _ = socket.recv_fds(host, 64, 2)
        if len(files) != 2:
            break
        run(about["seconds"], partial(child, about, files, struct.unpack("=Q", message)[0]))
        for each in files:
            os.close(each)
        host.send(b"over")


if __name__ == "__main__":
    main()
