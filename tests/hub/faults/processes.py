"""Hubs, workers and clients as processes of their own, which a test starts, kills and waits for by their numbers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.hub import forked
from tests.hub.faults.prepared import Prepared
from tests.hub.forked import ROOT

PATIENCE = 200.0
"""Seconds after which a process that is not ready, or does not end, has failed; no test measures by it."""


class Process:
    """A running program; what it says goes to a file, for whoever looks why a test failed."""

    def __init__(
        self, name: str, words: Sequence[str], log: Path, *, ready: str = "", environment: Mapping[str, str] | None = None
    ):
        self.name = name
        self.log = log.open("ab")
        out, env = subprocess.PIPE if ready else self.log, {**os.environ, **(environment or {})}
        self.popen: forked.Forked | subprocess.Popen[str]
        if words[0] == sys.executable:
            self.popen = forked.python(*words[1:], stdout=out, stderr=self.log, env=env)
        else:
            self.popen = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=self.log,
                cwd=ROOT,
                env=env,
                text=True,
                start_new_session=True,
            )
        if ready:
            self._wait_for(ready, log)

    def _wait_for(self, ready: str, log: Path) -> None:
        assert self.popen.stdout is not None
        alarm = threading.Timer(PATIENCE, self.popen.kill)
        alarm.start()
        try:
            for line in self.popen.stdout:
                if ready in line:
                    return
        finally:
            alarm.cancel()
        raise AssertionError(f"{self.name} ended before it was ready:\n{log.read_text()[-3000:]}")

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: int) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.popen.kill()
        self._gone()

    def end(self) -> int:
        """SIGTERM, and how it ended."""
        if self.alive:
            self.popen.terminate()
        return self.wait()

    def wait(self) -> int:
        status = self.popen.wait(PATIENCE)
        self._gone()
        return status

    def _gone(self) -> None:
        self.popen.wait()
        if self.popen.stdout is not None:
            self.popen.stdout.close()
        self.log.close()


class Hall:
    """The processes of one test around one hub's folder; leaving it, none is left."""

    def __init__(self, place: Prepared, tmp: Path) -> None:
        self.place = place
        self.tmp = tmp
        self._started: list[Process] = []
        self._hubs = 0

    def start(self, name: str, words: Sequence[str], **more: Any) -> Process:
        process = Process(name, words, self.tmp / f"{name}.log", **more)
        self._started.append(process)
        return process

    def hub(self, port: int, **settings: str) -> Process:
        """`cloister hub` on a port."""
        words = [sys.executable, "-m", "cloister", "hub", "--data", str(self.place.folder), "--port", str(port)]
        return self.start(f"hub-{port}", words, ready=" is at ", environment=self._environment(settings))

    def worker(self) -> Process:
        """`cloister worker`, two jobs at once."""
        words = [sys.executable, "-m", "cloister", "worker", "--data", str(self.place.folder), "--jobs", "2", "--grace", "0"]
        return self.start("worker", words, ready="ready", environment=self._environment({}))

    def clients(self, address: str, **what: Any) -> Clients:
        """People who ask, in a process of their own."""
        number = len(self._started)
        asked = {"address": address, "tokens": list(self.place.tokens), "out": str(self.tmp / f"received-{number}"), **what}
        file = self.tmp / f"clients-{number}.json"
        file.write_text(json.dumps(asked))
        process = self.start(f"clients-{number}", [sys.executable, "-m", "tests.hub.faults.clients", str(file)])
        return Clients(process, Path(asked["out"]))

    def close(self) -> None:
        for process in self._started:
            if process.alive:
                process.kill()

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        given = {"workers": "0", "database": self.place.database, "ledger": self.place.database, **settings}
        return {"CLOISTER_DEBUG": "1"} | {f"CLOISTER_HUB_{name.upper()}": value for name, value in given.items()}


class Clients:
    """The process of the people who ask, and what they received."""

    def __init__(self, process: Process, out: Path) -> None:
        self.process = process
        self._out = out

    def received(self) -> list[dict[str, Any]]:
        """What they have until now, a line a question that was answered or refused for good."""
        text = self._out.read_text() if self._out.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def wait_for_more(self, number: int) -> None:
        """Until some more answers have come: the moment that follows is one of full load."""
        wanted = len(self.received()) + number
        while len(self.received()) < wanted:
            assert self.process.alive, "the clients ended"
            time.sleep(0.02)

    def ended(self) -> list[dict[str, Any]]:
        """Everything, after their last."""
        status = self.process.popen.wait(240)
        self.process.wait()
        assert status == 0, f"the clients failed: {Path(self.process.log.name).read_text()[-3000:]}"
        return self.received()


@contextlib.contextmanager
def hall(place: Prepared, tmp: Path) -> Iterator[Hall]:
    """Processes for the length of a `with`."""
    made = Hall(place, tmp)
    try:
        yield made
    finally:
        made.close()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
