"""Window streams in a ledger: charged once, killed at any moment, and after each step as if nothing had happened."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import BudgetExceeded, InvalidParameter, LedgerError, LedgerTampered, LedgerUnavailable
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.traces import (
    Absorption,
    Adaptive,
    Changes,
    Decreasing,
    Distribution,
    GroupMean,
    Increasing,
    LastRelease,
    LocalLevel,
    ModelAverage,
    Sampled,
    StoredWindowStream,
    Threshold,
    Uniform,
    WindowStream,
)

KEY = bytes(range(32))
POLICIES: list[Callable[[], Any]] = [
    Uniform,
    lambda: Sampled(every=3),
    lambda: Decreasing(Fraction(2, 3)),
    lambda: Increasing(0.5),
    lambda: Threshold(above="40.5", most=2),
    Distribution,
    Absorption,
    Changes,
    Adaptive,
    lambda: Adaptive((0.5, 0.9)),
]
ESTIMATORS: list[Callable[[int], Any]] = [
    LastRelease,
    LocalLevel,
    ModelAverage,
    GroupMean,
    lambda cells: GroupMean(cells, width=2.5),
]

WORKER = """
import os, sys
from cloister.ledger import Ledger
from cloister.traces import StoredWindowStream

where, out = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Ledger(where, key=bytes(range(32))) as ledger:
    stream = StoredWindowStream.resume(ledger, "visitors", "rooms")
    os.write(1, b"ready")
    while True:
        table = stream.step([stream.taken % 50, 700])
        os.write(out, f"{stream.taken} {table.tolist()!r}\\n".encode())  # the step leaves
"""


def values(steps: int) -> Any:
    return np.random.default_rng(1).integers(0, 500, (steps // 4 + 1, 2)).repeat(4, axis=0)[:steps]


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "budget.db", key=KEY) as ledger:
        ledger.open("visitors", PureDP(50_000), who="owner")
        StoredWindowStream.open(ledger, "visitors", "rooms", who="ada", epsilon=1, window=20, steps=2**19, cells=2)
    return tmp_path / "budget.db"


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("policy", POLICIES)
def test_resumed_after_each_step_it_goes_on_as_if_it_had_not_stopped(policy: Any, estimator: Any) -> None:
    """One generator for both: the same draws, the same shares, the same tables."""
    how: dict[str, Any] = {"epsilon": 2, "window": 6, "steps": 40, "cells": 2, "reach": 2}
    ledger, random = Ledger(), Random.deterministic(5)
    ledger.open("visitors", PureDP(100), who="owner")
    whole = WindowStream(**how, policy=policy(), estimator=estimator(2), random=Random.deterministic(5))
    stream = StoredWindowStream.open(
        ledger, "visitors", "rooms", who="ada", **how, policy=policy(), estimator=estimator(2), random=random
    )
    for table in values(40):
        assert np.array_equal(stream.step(table), whole.step(table))
        stream = StoredWindowStream.resume(ledger, "visitors", "rooms", random=random)
        assert stream.last is not None
        assert (stream.margin(), str(stream)) == (whole.margin(), f"rooms: {whole}")
    with pytest.raises(BudgetExceeded, match="declared for 40 steps"):
        stream.step([1, 1])
    assert ledger.spent("visitors") == stream.person == PureDP(14)


def test_killed_at_any_moment_no_step_leaves_twice(ledger_path: Path) -> None:
    out = ledger_path.with_name("left")
    for attempt in range(4):
        arguments = [sys.executable, "-c", WORKER, str(ledger_path), str(out)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.read(5) == b"ready"
            time.sleep(0.05 + attempt * 104_729 % 97 / 400)
            worker.send_signal(signal.SIGKILL)
        with Ledger(ledger_path, key=KEY) as ledger:
            assert ledger.verify() is True
            kept = [json.loads(found.release) for found in ledger.find("rooms", ["visitors"])[1:]]
            assert [step["step"] for step in kept] == list(range(1, len(kept) + 1))
            tables = {step["step"]: step["table"] for step in kept}
            left = [line.split(" ", 1) for line in out.read_text().splitlines()] if out.exists() else []
            assert all(tables[int(step)] == json.loads(table) for step, table in left)
            assert len({step for step, _ in left}) == len(left) >= len(kept) - (attempt + 1)
            stream = StoredWindowStream.resume(ledger, "visitors", "rooms")
            assert stream.taken == len(kept)
            assert ledger.spent("visitors") == PureDP(-(-(2**19) // 20))
    assert left


def test_the_population_is_charged_its_line_for_a_person_once() -> None:
    ledger = Ledger()
    ledger.open("visitors", PureDP(5), who="owner")
    stream = StoredWindowStream.open(ledger, "visitors", "a", who="ada", epsilon="0.5", window=10, steps=35)
    assert ledger.spent("visitors") == stream.person == PureDP(2)
    stream.step(3)
    assert ledger.spent("visitors") == PureDP(2)
    assert stream.guarantee == PureDP("0.5")
    few = StoredWindowStream.open(ledger, "visitors", "b", who="ada", epsilon="0.5", window=10, steps=1000, most=2)
    assert few.person == PureDP(1)
    with pytest.raises(BudgetExceeded, match="remains"):
        StoredWindowStream.open(ledger, "visitors", "c", who="ada", epsilon=1, window=10, steps=100)
    with pytest.raises(LedgerError, match="was not opened"):
        StoredWindowStream.open(ledger, "visitors", "a", who="ada", epsilon="0.1", window=10, steps=10)
    with pytest.raises(LedgerError, match="was not found"):
        StoredWindowStream.resume(ledger, "visitors", "d")


def test_a_policy_of_ones_own_is_refused_before_the_charge() -> None:
    class Own(Uniform):
        pass

    ledger = Ledger()
    ledger.open("visitors", PureDP(5), who="owner")
    with pytest.raises(InvalidParameter, match="of this library"):
        StoredWindowStream.open(ledger, "visitors", "a", who="ada", epsilon="0.5", window=10, steps=10, policy=Own())
    assert ledger.spent("visitors") == PureDP(0)


def test_of_two_that_hold_one_stream_the_second_is_refused_its_step(ledger_path: Path) -> None:
    with Ledger(ledger_path, key=KEY) as one, Ledger(ledger_path, key=KEY) as other:
        first, second = (StoredWindowStream.resume(ledger, "visitors", "rooms") for ledger in (one, other))
        table = first.step([1, 2])
        with pytest.raises(LedgerError, match="another process released it"):
            second.step([1, 2])
        with pytest.raises(LedgerError, match="in this process"):
            second.step([1, 2])
        again = StoredWindowStream.resume(other, "visitors", "rooms")
        assert again.last is not None
        assert again.last.tolist() == table.tolist()


def test_after_a_backup_was_restored_the_stream_is_closed_and_a_new_one_is_charged(ledger_path: Path) -> None:
    backup = ledger_path.with_name("backup.db")
    with Ledger(ledger_path, key=KEY) as ledger:
        StoredWindowStream.resume(ledger, "visitors", "rooms").step([1, 2])
    shutil.copy(ledger_path, backup)
    with Ledger(ledger_path, key=KEY) as ledger:
        StoredWindowStream.resume(ledger, "visitors", "rooms").step([1, 2])
    for stale in ledger_path.parent.glob("budget.db-*"):
        stale.unlink()
    shutil.copy(backup, ledger_path)
    with Ledger(ledger_path, key=KEY) as ledger:
        assert ledger.frozen is not None
        ledger.restore(ledger.frozen.losses, who="owner", why="the disk failed")
        with pytest.raises(LedgerError, match="restored from a backup since"):
            StoredWindowStream.resume(ledger, "visitors", "rooms")
        before = ledger.spent("visitors")
        StoredWindowStream.open(ledger, "visitors", "again", who="ada", epsilon=1, window=20, steps=20).step(3)
        assert ledger.spent("visitors") == before + PureDP(1)


def test_a_state_that_was_changed_is_found(ledger_path: Path) -> None:
    import sqlite3

    with Ledger(ledger_path, key=KEY) as ledger:
        stream = StoredWindowStream.resume(ledger, "visitors", "rooms")
        with sqlite3.connect(ledger_path) as database:
            (row,) = database.execute("SELECT content FROM steps").fetchall()
        stream.step([1, 2])
    with sqlite3.connect(ledger_path) as database:
        database.execute("UPDATE steps SET content = ?", row)
    with Ledger(ledger_path, key=KEY) as ledger, pytest.raises(LedgerTampered, match="its last line speaks of"):
        StoredWindowStream.resume(ledger, "visitors", "rooms")


def test_a_step_whose_commit_fails_does_not_leave(ledger_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        stream = StoredWindowStream.resume(ledger, "visitors", "rooms")
        with pytest.raises(InvalidParameter, match="totals of a step"):
            stream.step([float("nan"), 1])
        stream.step([1, 2])

        def fail(*given: object) -> None:
            raise LedgerUnavailable("Nothing was answered")

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "add_step", fail)
            with pytest.raises(LedgerUnavailable):
                stream.step([1, 2])
        with pytest.raises(LedgerError, match="in this process"):
            stream.step([1, 2])
        assert StoredWindowStream.resume(ledger, "visitors", "rooms").taken == 1


def test_noise_of_a_test_is_not_kept_for_good(ledger_path: Path) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        with pytest.raises(LedgerError, match="can be predicted"):
            StoredWindowStream.open(
                ledger, "visitors", "b", who="ada", epsilon=1, window=2, steps=2, random=Random.deterministic(1)
            )
        with pytest.raises(LedgerError, match="can be predicted"):
            StoredWindowStream.resume(ledger, "visitors", "rooms", random=Random.deterministic(1))
