"""Counters in a ledger: charged once, killed at any moment, never drawn twice."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cloister.errors import BudgetExceeded, InvalidParameter, LedgerError, LedgerTampered, LedgerUnavailable, MissingBound
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import ZCDP, PureDP
from cloister.traces import StoredCounter, WindowLevel
from tests.tiers import by_day_and_night

KEY = bytes(range(32))

WORKER = """
import os, sys
from cloister.errors import LedgerError
from cloister.ledger import Ledger
from cloister.traces import StoredCounter

where, out = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Ledger(where, key=bytes(range(32))) as ledger:
    counter = StoredCounter.resume(ledger, "visitors", "door")
    os.write(1, b"ready")
    for _ in range(100_000):
        total = counter.step([1, 1, 1])
        os.write(out, f"{counter.taken} {total!r}\\n".encode())  # the step leaves
"""


@pytest.fixture
def ledger_path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "budget.db", key=KEY) as ledger:
        ledger.open("visitors", ZCDP(10), who="owner")
        StoredCounter.open(ledger, "visitors", "door", who="ada", rho="0.1", steps=2**20, most=2)
    return tmp_path / "budget.db"


@by_day_and_night("lives", 3, 5)
def test_killed_at_any_moment_no_step_is_drawn_twice(ledger_path: Path, lives: int) -> None:
    out = ledger_path.with_name("left")
    for attempt in range(lives):
        arguments = [sys.executable, "-c", WORKER, str(ledger_path), str(out)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as worker:
            assert worker.stdout is not None
            assert worker.stdout.read(5) == b"ready"
            time.sleep(0.05 + attempt * 104_729 % 97 / 400)
            worker.send_signal(signal.SIGKILL)
        with Ledger(ledger_path, key=KEY) as ledger:
            assert ledger.verify() is True
            kept = [json.loads(found.release) for found in ledger.find("door", ["visitors"])[1:]]
            assert [step["step"] for step in kept] == list(range(1, len(kept) + 1))
            totals = {step["step"]: step["total"] for step in kept}
            left = [line.split() for line in out.read_text().splitlines()] if out.exists() else []
            assert all(totals[int(step)] == float(total) for step, total in left)
            assert len({step for step, _ in left}) == len(left) >= len(kept) - (attempt + 1)
            counter = StoredCounter.resume(ledger, "visitors", "door")
            assert (counter.taken, counter.total) == (len(kept), kept[-1]["total"] if kept else 0.0)
            assert ledger.spent("visitors") == ZCDP("0.4")
    assert left


def test_a_resumed_counter_continues_the_same_sums() -> None:
    ledger = Ledger()
    ledger.open("visitors", PureDP(10**7), who="owner")
    opened = StoredCounter.open(
        ledger, "visitors", "door", who="ada", epsilon=10**6, steps=50, most=1, random=Random.deterministic(1)
    )
    values = np.random.default_rng(1).integers(0, 9, 50)
    for taken, value in enumerate(values.tolist()):
        assert round(opened.step([1] * value)) == values[: taken + 1].sum()
        opened = StoredCounter.resume(ledger, "visitors", "door", random=Random.deterministic(taken))
    with pytest.raises(BudgetExceeded):
        opened.step(1)


def test_the_population_is_charged_its_line_for_a_person_once() -> None:
    ledger = Ledger()
    ledger.open("visitors", PureDP(5), who="owner")
    window = StoredCounter.open(ledger, "visitors", "a", who="ada", epsilon="0.5", steps=30, level=WindowLevel(10))
    assert ledger.spent("visitors") == window.person == PureDP("1.5")
    for _ in range(30):
        window.step(1)
    assert ledger.spent("visitors") == PureDP("1.5")
    with pytest.raises(BudgetExceeded, match="remains"):
        StoredCounter.open(ledger, "visitors", "b", who="ada", epsilon=4, steps=30, most=1)
    with pytest.raises(LedgerError, match="was not opened"):
        StoredCounter.open(ledger, "visitors", "a", who="ada", epsilon="0.1", steps=30, most=1)
    with pytest.raises(MissingBound, match="bounds how many readings"):
        StoredCounter.open(ledger, "visitors", "c", who="ada", epsilon="0.1", steps=30)
    assert ledger.spent("visitors") == PureDP("1.5")


def test_of_two_that_hold_one_counter_the_second_is_refused_its_step(ledger_path: Path) -> None:
    with Ledger(ledger_path, key=KEY) as one, Ledger(ledger_path, key=KEY) as other:
        first, second = (StoredCounter.resume(ledger, "visitors", "door") for ledger in (one, other))
        first.step(1)
        with pytest.raises(LedgerError, match="another process released it"):
            second.step(1)
        with pytest.raises(LedgerError, match="in this process"):
            second.step(1)
        assert StoredCounter.resume(other, "visitors", "door").total == first.total


def test_after_a_backup_was_restored_the_counter_is_closed_and_a_new_one_is_charged(ledger_path: Path) -> None:
    backup = ledger_path.with_name("backup.db")
    with Ledger(ledger_path, key=KEY) as ledger:
        StoredCounter.resume(ledger, "visitors", "door").step(1)
    shutil.copy(ledger_path, backup)
    with Ledger(ledger_path, key=KEY) as ledger:
        StoredCounter.resume(ledger, "visitors", "door").step(1)
    for stale in ledger_path.parent.glob("budget.db-*"):
        stale.unlink()
    shutil.copy(backup, ledger_path)
    with Ledger(ledger_path, key=KEY) as ledger:
        assert ledger.frozen is not None
        with pytest.raises(LedgerError, match="frozen"):
            StoredCounter.resume(ledger, "visitors", "door")
        ledger.restore(ledger.frozen.losses, who="owner", why="the disk failed")
        with pytest.raises(LedgerError, match="restored from a backup since"):
            StoredCounter.resume(ledger, "visitors", "door")
        before = ledger.spent("visitors")
        StoredCounter.open(ledger, "visitors", "second door", who="ada", rho="0.1", steps=2**20, most=2).step(1)
        assert ledger.spent("visitors") == ZCDP("0.4") + before


def test_a_process_that_was_there_before_a_backup_was_restored_goes_no_further(ledger_path: Path) -> None:
    """The other one published a second step that the backup does not know: none may leave again with other noise."""
    with Ledger(ledger_path, key=KEY) as stale, closing(sqlite3.connect(ledger_path.with_name("backup.db"))) as backup:
        counter = StoredCounter.resume(stale, "visitors", "door")
        counter.step(1)
        with closing(sqlite3.connect(ledger_path)) as live:
            live.backup(backup)
        with Ledger(ledger_path, key=KEY) as ledger:
            StoredCounter.resume(ledger, "visitors", "door").step(1)
        with closing(sqlite3.connect(ledger_path)) as live:
            backup.backup(live)
        with Ledger(ledger_path, key=KEY) as ledger:
            assert ledger.frozen is not None
            ledger.restore(ledger.frozen.losses, who="owner", why="the disk failed")
        with pytest.raises(LedgerError, match="restored from a backup since"):
            counter.step(1)


@pytest.mark.parametrize("change", ["content", "step"])
def test_a_state_that_was_changed_or_put_back_is_found(ledger_path: Path, change: str) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        counter = StoredCounter.resume(ledger, "visitors", "door")
        counter.step(1)
        with sqlite3.connect(ledger_path) as database:
            (row,) = database.execute("SELECT id, last, step, content FROM steps").fetchall()
        counter.step(1)
    with sqlite3.connect(ledger_path) as database:
        if change == "content":
            database.execute("UPDATE steps SET content = ?", (row[3],))
        else:
            database.execute("UPDATE steps SET last = ?, step = ?, content = ?", row[1:])
    with Ledger(ledger_path, key=KEY) as ledger, pytest.raises(LedgerTampered, match="its last line speaks of"):
        StoredCounter.resume(ledger, "visitors", "door")


def test_exact_sums_do_not_lie_open_in_the_database(ledger_path: Path) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        released = StoredCounter.resume(ledger, "visitors", "door").step([1] * 123_457)
    everything = b"".join(path.read_bytes() for path in ledger_path.parent.glob("budget.db*"))
    everything = everything.replace(b'"total":%s' % repr(released).encode(), b"")  # in one run of thirteen it begins with the sum
    assert not re.search(rb"(?<![0-9a-f])123457(?![0-9a-f])", everything)  # hashes are in it, which may hold any six digits
    assert b"sums" not in everything


def test_a_step_whose_commit_fails_does_not_leave(ledger_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        counter = StoredCounter.resume(ledger, "visitors", "door")
        with pytest.raises(InvalidParameter, match="must be numbers"):
            counter.step("one")  # type: ignore[arg-type]
        counter.step(1)

        def fail(*given: object) -> None:
            raise LedgerUnavailable("Nothing was answered")

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "add_step", fail)
            with pytest.raises(LedgerUnavailable):
                counter.step(1)
        with pytest.raises(LedgerError, match="in this process"):
            counter.step(1)
        assert StoredCounter.resume(ledger, "visitors", "door").taken == 1


def test_noise_of_a_test_is_not_kept_for_good(ledger_path: Path) -> None:
    with Ledger(ledger_path, key=KEY) as ledger:
        random = Random.deterministic(1)
        with pytest.raises(LedgerError, match="can be predicted"):
            StoredCounter.open(ledger, "visitors", "b", who="ada", rho="0.1", steps=8, most=1, random=random)
        with pytest.raises(LedgerError, match="can be predicted"):
            StoredCounter.resume(ledger, "visitors", "door", random=random)
        assert ledger.spent("visitors") == ZCDP("0.4")


def test_what_was_never_opened_is_said_to_be_missing() -> None:
    ledger = Ledger()
    ledger.open("visitors", ZCDP(1), who="owner")
    ledger.settle(ledger.reserve({"visitors": ZCDP("0.1")}, who="ada", what="a plan"), b"an answer")
    for name in ("door", "a plan"):
        with pytest.raises(LedgerError, match="was not found"):
            StoredCounter.resume(ledger, "visitors", name)
