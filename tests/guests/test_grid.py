"""When runs begin and end and answers come: moments of declarations alone. By a clock of the test's own: nobody waits for it."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.guests.blocks import Blocks
from cloister.guests.declared import Declared
from cloister.guests.sandbox import grid, wasm
from cloister.guests.sandbox.grid import Grid, padding, slot_of
from cloister.guests.sandbox.wasm import Ran, Sandbox
from cloister.noise import Random
from cloister.privacy import PureDP

START = wasm._START
"""As it is: tests that look at no time have more."""
BULK = "def f(x):\n    return sum(len(bytes(10**8)) for _ in range(10**6))\n"
"""Each step of it is one instruction that fills 100 MB: fuel is counted by tens of them, in seconds of the clock."""


class Clock:
    """It goes on where somebody waits, and where a run uses time."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        patched.setattr(grid.time, "monotonic", lambda: self.now)
        patched.setattr(grid.time, "sleep", self.sleep)

    def sleep(self, far: float) -> None:
        assert far >= 0
        self.now += far


class Worker:
    """Answers when the test says: what is sent to it is kept."""

    def __init__(self, clock: Clock, used: list[float]) -> None:
        self.stdin, self.stdout, self.clock, self.used = io.BytesIO(), self, clock, iter(used)

    def read(self, n: int) -> bytes:
        told = b'{"told": ""}'
        if n == 4:
            self.clock.now += next(self.used)
            return struct.pack(">I", len(told))
        return told

    def kill(self) -> None: ...

    def communicate(self) -> None: ...


def sent(worker: Worker) -> list[dict[str, Any]]:
    """The requests."""
    worker.stdin.seek(0)
    found = []
    while (each := wasm.receive(worker.stdin)) is not None:
        found.append(each)
    return found


def test_steps_begin_and_are_ended_at_the_same_moments_whatever_runs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends at once, one that is killed when its time is over, and a mixture by rows."""
    told: dict[str, list[float]] = {}
    monkeypatch.setattr(wasm, "Grid", Grid)
    monkeypatch.setattr(wasm, "_START", 0.1)
    for name, used in {"quick": [0.0] * 4, "killed": [1.1] * 4, "by rows": [0.0, 1.1, 0.4, 1.1]}.items():
        with monkeypatch.context() as patched:
            clock = Clock(patched)
            sandbox = Sandbox("def f(x): ...", "f", seconds=1.0, paced=True)
            worker = Worker(clock, used)
            patched.setattr(sandbox, "_started", lambda worker=worker: worker)
            sandbox.grid.begin()
            assert [sandbox.run([1]) for _ in range(4)] == [Ran()] * 4
            ends = [each["until"] for each in sent(worker)]
            sandbox.grid.await_end(slot_of(4, 1.0))
            told[name] = [round(each - 100, 6) for each in [*ends, clock.now]]
    assert told["quick"] == told["killed"] == told["by rows"] == [1.1, 2.25, 3.4, 4.55, 9.2]


def test_every_end_lies_within_its_step() -> None:
    assert 0 < START < grid.SLACK


def test_rows_are_read_within_the_slot_and_a_machine_too_slow_for_it_is_told_by_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for read in (0.0, 0.3, 2.0):
        with monkeypatch.context() as patched:
            clock, found = Clock(patched), Grid(0.05, paced=True)
            found.begin()
            clock.now += read  # seconds that rows take
            steps = [round(found.await_step() - 100, 6) for _ in range(10)]
            assert steps == [round(steps[0] + 0.2 * place, 6) for place in range(10)]
            found.await_end(slot_of(10, 0.05))
            ends.append(round(clock.now - 100, 6))
    assert ends == [2.8, 2.8, 5.6]
    assert [padding(used, 5) + used for used in (0.1, 4.9, 5.1, 9, 15.1)] == [5, 5, 10, 10, 20]


class Kept:
    """A sandbox that returns what it is told, and keeps which slot was waited for."""

    def __init__(self, tell: Callable[[int], Ran]) -> None:
        self.grid, self.slots, self._tell, self._turn = self, [], tell, 0  # type: ignore[var-annotated]

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def await_end(self, slot: float) -> None:
        self.slots.append(slot)

    def run(self, _: list[Any], *, ask: Any = None) -> Ran:
        self._turn += 1
        return self._tell(self._turn)


@pytest.mark.parametrize("people", [0, 1, 500])
@pytest.mark.parametrize("tell", [lambda _: Ran(), lambda _: Ran(value=[1], done=True), lambda k: Ran(value=k, done=k % 2 == 0)])
def test_the_answer_waits_for_a_slot_of_declarations_alone(people: int, tell: Callable[[int], Ran]) -> None:
    table = cl.PrivateTable({"age": [1] * people}, {"age": cl.Integer(0, 100)})
    rows = {"unit": np.arange(people), "age": np.ones(people, dtype=np.int64)}
    about: dict[str, Any] = {"code": "", "entry": "f", "digest": "", "inputs": ("age",), "output": cl.Vector([(0, 1)])}
    about |= {"seconds": 0.5, "memory": 1 << 28}
    for made, slot in ((Blocks(**about, blocks=7), slot_of(7, 0.5)), (Declared(**about), slot_of(1, 0.5) + 1)):
        kept = Kept(tell)
        replace(made, opened=kept).release(rows, table, PureDP(1), Random.deterministic(1))
        assert kept.slots == [slot]


def test_a_block_that_does_not_come_back_is_killed_and_the_next_has_the_same_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new worker would take longer than a step: the blocks behind would be late by what one of them did."""
    with Sandbox(BULK, "f", seconds=60, memory=1 << 28, paced=True) as sandbox:
        worker = sandbox._worker
        monkeypatch.setattr(wasm, "_START", 0.5 - 60)  # half a second for what would last an hour
        assert [sandbox.run([1]) for _ in range(2)] == [Ran(), Ran()]
        monkeypatch.setattr(wasm, "_START", 60.0)
        sandbox._about |= {"code": "def f(x):\n    return x\n"}
        assert sandbox.run([7]).value == 7
        assert sandbox._worker is worker


def test_one_that_asks_is_ended_too_however_often_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def f(x):\n    while True:\n        noise('laplace', 1)\n        bytes(10**8)\n"
    with Sandbox(code, "f", seconds=60, memory=1 << 28, paced=True) as sandbox:
        monkeypatch.setattr(wasm, "_START", 0.5 - 61)
        assert sandbox.run([1], ask=lambda _: '{"noise": 1}') == Ran()
