"""The host's side of the sandbox: a worker, and runs of one guest in it, each from the same beginning."""

import json
import struct
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cloister.errors import CloisterError, EngineError
from cloister.guests.sandbox.grid import Grid
from cloister.guests.sandbox.image import image
from cloister.guests.sandbox.worker import receive, send

FUEL_A_SECOND = 1_000_000_000
"""Instructions that one second of a guest's time stands for: a tenth of what a quick machine does, so that slots are kept by code
that does the slowest of them, too (each of its steps another page of memory)."""
_PATIENCE = 20.0
_START = 0.1
"""Seconds of a step beside those of the guest: a new interpreter takes a time of its own, which is counted in no instructions."""
_FOR_ANSWERS = 1.0
"""Seconds beside them where it asks the host."""
_MOST_OUT = 1 << 20
_TRAPPED = "it ran out of time or memory, or touched what is not there: files, network, clock, chance"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What one run gave. `why` and `printed` are for an author who tries on made-up rows, and for nobody else."""

    value: Any = None
    done: bool = False
    why: str = _TRAPPED
    printed: str = ""


class Opened(ABC):
    """What both sandboxes are: runs of one guest, each from the same beginning."""

    grid: Grid

    @abstractmethod
    def run(self, arguments: list[Any], *, ask: Callable[[str], str] | None = None) -> Ran:
        """One run."""

    @abstractmethod
    def close(self) -> None:
        """End what runs it."""

    @abstractmethod
    def _started(self) -> object:
        """Begin what runs it, where it is not there yet."""

    def __enter__(self) -> Self:
        self._started()
        self.grid.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Sandbox(Opened):
    """A worker with one guest's text; each run is a new interpreter, with nothing of the run before. With `paced`, runs begin on
    the grid, and are killed within their steps: for runs that have rows.

    >>> with Sandbox("def f(x):\\n    return x + 1", "f") as sandbox:
    ...     sandbox.run([1]).value, sandbox.run(["one"]).done
    (2, False)
    """

    def __init__(self, code: str, entry: str, *, seconds: float = 1.0, memory: int = 256 << 20, paced: bool = False) -> None:
        self.grid, self._paced = Grid(seconds, paced=paced), paced
        self._about = {"code": code, "entry": entry, "fuel": int(seconds * FUEL_A_SECOND), "memory": memory}
        self._seconds, self._patience = seconds, _PATIENCE + 20 * seconds
        self._opened = False
        self._worker: subprocess.Popen[bytes] | None = None

    def run(self, arguments: list[Any], *, ask: Callable[[str], str] | None = None) -> Ran:
        """One run. A worker that dies or hangs is ended, and counts as a run that failed: the next run has a new one. One that
        asks is no fork of the worker: with `paced` the whole worker is ended when its time is over, however often it asks."""
        try:
            worker = self._started()
        except (CloisterError, OSError):
            if not self._opened:
                raise
            return Ran()  # one that can't be had again: an error here would say something about one run
        assert worker.stdin is not None
        assert worker.stdout is not None
        argument = json.dumps(arguments)
        until = self.grid.await_step() + (self._seconds + _START if self._paced else self._patience)
        hurried = self._paced and ask is not None
        patience = threading.Timer(self._seconds + _START + _FOR_ANSWERS if hurried else 2 * self._patience, worker.kill)
        patience.start()
        try:
            send(worker.stdin, {**self._about, "argument": argument, "ask": ask is not None, "until": until})
            while True:
                answer = receive(worker.stdout)
                if answer is None:
                    raise BrokenPipeError
                if "asked" not in answer:
                    return ran_of(answer["told"])
                assert ask is not None
                if hurried:
                    send(worker.stdin, {"answer": ask(answer["asked"])})
                    continue
                patience.cancel()
                reply = ask(answer["asked"])
                patience = threading.Timer(self._patience, worker.kill)
                patience.start()
                send(worker.stdin, {"answer": reply})
        except (OSError, ValueError, RecursionError, struct.error):
            self.close()
            return Ran()
        finally:
            patience.cancel()

    def close(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            worker.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._worker is None:
            program = Path(__file__).with_name("worker.py")
            self._worker = subprocess.Popen(  # noqa: S603 (our own program and arguments)
                [sys.executable, "-I", str(program), str(image())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                close_fds=True,
                start_new_session=True,
            )
            assert self._worker.stdout is not None
            if receive(self._worker.stdout) is None:
                self.close()
                raise EngineError("The sandbox was not opened", why="its process ended at once", instead="cloister guest build")
            self._opened = True
        return self._worker


def ran_of(told: str) -> Ran:
    """What a run says of itself. The guest holds the whole interpreter, so the text may be anything, and nothing that it says may
    raise an error here or cost a worker: either would be seen outside, and say about one block."""
    try:
        found = json.loads(told)
        printed = str(found.get("printed", ""))
        if "value" not in found:
            return Ran(why=str(found.get("failed", _TRAPPED)), printed=printed)
        text = found["value"]
        if len(text) > _MOST_OUT:
            return Ran(why=f"it returned more than {_MOST_OUT >> 20} MiB", printed=printed)
        return Ran(value=json.loads(text), done=True, why="", printed=printed)
    except Exception:  # a failure like any other
        return Ran()
