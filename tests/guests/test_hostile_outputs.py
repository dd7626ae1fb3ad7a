"""Channels between runs, and ways to swell or to stay: a guest that tries each, in both sandboxes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloister.guests.sandbox.processes import ProcessSandbox
from cloister.guests.sandbox.wasm import Sandbox
from cloister.noise import Random
from tests.guests import test_processes, test_sandbox

HEAD = "import os, sys, time, json, base64\n"
BOMBS = {
    "a text that unpacks": "__import__('zlib').decompress(__import__('zlib').compress(b'0' * (1 << 28)))",
    "a text of escapes": "chr(0) * (1 << 20)",
    "a text of surrogates": "chr(0xD800) * (1 << 20)",
    "a number of many digits": "10 ** (1 << 18)",
    "lists in lists, each the same": "(lambda a: [a := [a] * 10 for _ in range(8)])([1])",
    "a list of itself": "(lambda a: (a.append(a), a)[1])([])",
    "many keys": "{str(k): k for k in range(10**6)}",
}
"""Small as code, large as what is returned, or as what reading it makes of it."""


def code_of(expression: str) -> str:
    """A guest that returns it."""
    return f"{HEAD}def f(rows):\n    return {expression}\n"


@pytest.fixture(scope="module")
def native() -> Iterator[ProcessSandbox]:
    test_processes.refused_here("python")
    with ProcessSandbox(code_of("1"), "f", seconds=1, memory=128 << 20, packages=test_processes.KNOWN) as sandbox:
        yield sandbox


@pytest.mark.parametrize("what", BOMBS)
def test_a_bomb_in_what_is_returned_is_one_failure_of_one_run(native: ProcessSandbox, what: str) -> None:
    server = native._server
    native._code = code_of(BOMBS[what])
    assert not native.run([{"age": [7]}]).done
    assert native._server is server
    with Sandbox(code_of(BOMBS[what]), "f", seconds=0.2) as sandbox:
        worker = sandbox._worker
        assert not sandbox.run([{"age": [7]}]).done
        assert sandbox._worker is worker


LOAD = """
def tried(look):
    try:
        return look()
    except BaseException:
        return None
def f(rows):
    import resource, select
    looks = [os.getloadavg, lambda: open("/proc/loadavg").read(), lambda: open("/proc/stat").read(),
             lambda: open("/proc/pressure/cpu").read(), lambda: open("/proc/vmstat").read(), lambda: os.listdir("/sys"),
             lambda: time.clock_gettime((~1 << 3) | 2), lambda: __import__("ctypes").CDLL(None).sysinfo(bytes(200)) == 0 or None,
             lambda: open("/sys/fs/cgroup/cpu.stat").read()]
    return [tried(look) for look in looks]
"""


def test_a_block_does_not_read_the_load_of_its_neighbour(native: ProcessSandbox) -> None:
    """Every number of the machine's load: absent in the same way while a neighbour keeps a processor, and while none does."""
    native._code = HEAD + LOAD
    quiet = native.run([{"age": [7]}])
    assert quiet.done, quiet.why
    neighbour = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
    try:
        busy = native.run([{"age": [7]}])
    finally:
        neighbour.kill()
        neighbour.wait()
    assert busy == quiet
    assert quiet.value == [None] * 9


def children_of(number: int) -> list[str]:
    """The processes below one, from the kernel."""
    return Path(f"/proc/{number}/task/{number}/children").read_text().split()


def gone(number: str) -> bool:
    """Whether a process ends by itself: with its parent it is killed, and somebody has to wait for it."""
    for _ in range(500):
        try:
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


ORPHANS = {
    "forks twice and leaves": "os.fork() or os.fork() or time.sleep(60)",
    "a daemon": "(os.fork(), os.setsid(), os.fork(), time.sleep(60))",
    "a program that stays": "os.posix_spawn('/bin/sleep', ['sleep', '60'], {})",
    "stays beyond its time": "time.sleep(60)",
    "a group of its own": "(os.setpgid(0, 0), time.sleep(60))",
    "ends its parent": "(os.kill(os.getppid(), 9), time.sleep(60))",
}


@pytest.mark.parametrize("what", ORPHANS)
def test_no_orphan_stays(what: str) -> None:
    test_processes.refused_here("python")
    with ProcessSandbox(code_of(ORPHANS[what]), "f", seconds=0.2) as sandbox:
        assert sandbox._server is not None
        [within] = children_of(sandbox._server.pid)
        assert not sandbox.run([{"age": [7]}]).done
        assert children_of(int(within)) == []
    assert gone(within)


def hostile(pieces: list[str], turn: int) -> str:
    """Three pieces in a seeded mixture; what each gave is returned."""
    chosen = [pieces[place] for place in Random.deterministic(turn).below(len(pieces), 3).tolist()]
    body = "".join(f"    try: told.append(repr({each})[:99])\n    except BaseException: pass\n" for each in chosen)
    return f"{HEAD}import ctypes, resource, fcntl, socket, select, builtins\ndef f(rows):\n    told = []\n{body}    return told\n"


def fuzz(turns: int, run: Callable[[str], object]) -> None:
    """So many hostile guests: none gives a value with what it was not given, none leaves a file."""
    pieces = [*test_processes.HOSTILE.values(), *test_processes.ENDLESS.values(), *BOMBS.values(), *ORPHANS.values()]
    before = set(Path("/tmp").iterdir())
    for turn in range(turns):
        assert not any(secret in str(run(hostile(pieces, turn))) for secret in ("root:", "canary"))
    assert not [each for each in set(Path("/tmp").iterdir()) - before if each.name in ("guest", "x", "left", "guest.R")]


@pytest.mark.parametrize("turns", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_hostile_guests_in_processes_leak_nothing_and_leave_nothing(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 by night: those that would never end are ended each after its time."""
    test_processes.refused_here("python")
    monkeypatch.setenv("CLOISTER_SECRET", "canary")
    with ProcessSandbox("def f(rows): return 1", "f", seconds=0.3, memory=64 << 20, packages=test_processes.KNOWN) as sandbox:
        server = sandbox._server
        assert server is not None
        [within] = children_of(server.pid)

        def run(code: str) -> object:
            sandbox._code = code
            found = sandbox.run([{"age": [7]}])
            assert children_of(int(within)) == []
            return found

        fuzz(turns, run)
        assert sandbox._server is server
        assert children_of(server.pid) == [within]
    assert gone(within)


@pytest.mark.slow
def test_the_same_hostile_guests_in_webassembly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of `test_sandbox` by day; here 500 of what is written for processes."""
    assert test_sandbox.HOSTILE
    monkeypatch.setenv("CLOISTER_SECRET", "canary")
    with Sandbox("def f(rows): return 1", "f", seconds=0.05) as sandbox:
        worker = sandbox._worker
        assert worker is not None

        def run(code: str) -> object:
            sandbox._about |= {"code": code}
            return sandbox.run([{"age": [7]}])

        fuzz(500, run)
        assert sandbox._worker is worker
        assert children_of(worker.pid) == []
    assert worker.poll() is not None
    assert os.environ["CLOISTER_SECRET"] == "canary"
