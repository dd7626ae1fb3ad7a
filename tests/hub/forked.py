"""Programs in Python that tests start, kill and wait for, as forks of one process that has imported a hub already:

    process = forked.python("-m", "cloister", "worker", "--data", folder, stdout=subprocess.PIPE)

A hub, a worker or a site imports for two seconds before it does anything. Here that is done once for each process of tests. What
is started is a process of its own in a session of its own, with its own environment and streams; it ends as Python does, with its
last thread. The process that forks has one thread and has opened nothing. It ends with the tests, and what it started with it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO

from cloister import hub

ROOT = Path(__file__).resolve().parents[2]
USED = (
    "cloister.cli.hub cloister.cli.hub cloister.cli.site cloister.cli.csp cloister.learn.bayesian cloister.compress uvloop"
    " cloister.tables.engines.duckdb cloister.session.releases.wire cloister.session.workloads.sheets psycopg"
    " httpx ibis.backends.sql.compilers.duckdb anyio._backends._asyncio"
)
"""What the programs import when they need it, beside the modules of a hub."""
_LOCK = threading.Lock()
_FORKING: list[socket.socket] = []
"""Where the process that forks is asked; it is started for the first program."""


class Forked:
    """A program that runs: what tests use of `subprocess.Popen`. Text streams; no input."""

    def __init__(self, pid: int, report: IO[str], stdout: IO[str] | None, stderr: IO[str] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._report = report

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        if self.returncode is None and select.select([self._report], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To it, where it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        with self._report:
            self.returncode = int(self._report.read())


def python(
    *words: str,
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    env: Mapping[str, str] | None = None,
) -> Forked:
    """Start `python -m MODULE …` or `python -c CODE …` at the root of the tree. A stream is a file, PIPE, or that of tests."""
    (report, reported), streams, kept = os.pipe(), [], list[IO[str] | None]()
    for given, usual in ((stdout, 1), (stderr, 2)):
        if given == subprocess.PIPE:
            ours, theirs = os.pipe()
            kept.append(os.fdopen(ours))
        else:
            theirs = os.dup(usual if given is None else given if isinstance(given, int) else given.fileno())
            kept.append(None)
        streams.append(theirs)
    asked = json.dumps({"words": words, "environment": dict(os.environ if env is None else env)}).encode()
    socket.send_fds(_forking(), [asked], [reported, *streams])
    for each in (reported, *streams):
        os.close(each)
    told = os.fdopen(report)
    return Forked(int(told.readline()), told, *kept)


def _forking() -> socket.socket:
    with _LOCK:
        if not _FORKING:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
            subprocess.Popen(
                [sys.executable, "-m", "tests.hub.forked", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env={**os.environ, **one_thread},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            theirs.close()
            _FORKING.append(ours)
        return _FORKING[0]


def main(control: int) -> None:
    """Fork for whoever asks, and tell how each ended, until nobody can ask any more."""
    for name in (*USED.split(), *(found.name for found in pkgutil.walk_packages(hub.__path__, f"{hub.__name__}."))):
        importlib.import_module(name)
    gc.freeze()
    atexit.register(gc.unfreeze)  # what is frozen would be called leaked by extension modules
    running: dict[int, tuple[int, int]] = {}
    asking = socket.socket(fileno=control)
    while True:
        ready, _, _ = select.select([control, *running], [], [])
        for ended in running.keys() & set(ready):
            pid, report = running.pop(ended)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(report, str(status).encode())
            os.close(report)
            os.close(ended)
        if control not in ready:
            continue
        asked, given, _, _ = socket.recv_fds(asking, 1 << 20, 3)
        if not asked:
            return
        report, *streams = given
        if len(os.listdir("/proc/self/task")) > 1:
            sys.exit("what was imported started a thread: nothing may be forked")
        pid = os.fork()
        if not pid:
            asking.close()
            for each in (report, *running, *(report for _, report in running.values())):
                os.close(each)
            run(*streams, **json.loads(asked))
            return
        for each in streams:
            os.close(each)
        os.write(report, f"{pid}\n".encode())
        running[os.pidfd_open(pid)] = pid, report


def run(*streams: int, words: list[str], environment: dict[str, str]) -> None:
    """Become that program."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: no child outlives the tests
    os.setsid()
    for number, each in enumerate(streams, 1):
        os.dup2(each, number)
        os.close(each)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # it is looked for anew, in this environment
    how, what, *sys.argv[1:] = words
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = ModuleType("__main__")
        exec(what, vars(sys.modules["__main__"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
