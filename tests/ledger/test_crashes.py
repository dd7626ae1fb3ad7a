"""Killed, full, read-only, forked: never an answer without a charge, and the chain still verifies."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from cloister.errors import LedgerError, LedgerUnavailable
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from tests.ledger.conftest import KEY
from tests.tiers import by_day_and_night

COST = PureDP("0.001")
ROOT = Path(__file__).resolve().parents[2]

WORKER = """
import os, sys
from pathlib import Path
from cloister.ledger import Ledger
from cloister.privacy import PureDP

key, name, answers, where, head = bytes(range(32)), sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
out = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Ledger(where if "://" in where else Path(where), key=key, head=head) as ledger:
    ledger.open("people", PureDP(1_000_000), who="owner")
    os.write(1, b"ready")
    for number in range(1_000_000):
        what = f"{name}-{number}"
        reservation = ledger.reserve({"people": PureDP("0.001")}, who=name, what=what)
        ledger.settle(reservation, what.encode())
        os.write(out, f"{what}\\n".encode())  # the answer leaves
"""


def kill_and_look(durable, times: int, *, seed: int) -> None:
    """Start two clients, kill both at some moment, and look at what they left; over and over in one ledger."""
    answers = durable.folder / "answers"
    for attempt in range(times):
        names = [f"{attempt}-{client}" for client in range(2)]
        arguments = [str(answers), str(durable.where), str(durable.head)]
        workers = [
            subprocess.Popen([sys.executable, "-c", WORKER, name, *arguments], stdout=subprocess.PIPE, start_new_session=True)
            for name in names
        ]
        if attempt % 4:  # every fourth time, while they start
            for worker in workers:
                assert worker.stdout.read(5) == b"ready"
        time.sleep((seed * 7919 + attempt * 104729) % 997 / 997 * 0.15)
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            worker.wait()
            worker.stdout.close()
        with durable.open() as ledger:
            assert ledger.frozen is None
            assert ledger.verify() is True
            if "people" not in ledger.populations():
                continue
            charges = {charge.what: charge.state for charge in ledger.charges("people")}
            left = answers.read_text().splitlines() if answers.exists() else []
            assert all(charges[what] == "settled" for what in left)
            assert all(ledger.find(what, ["people"])[0].release == what.encode() for what in left[-3:])
            settled = {what for what, state in charges.items() if state == "settled"}
            assert len(settled - set(left)) <= 2 * (attempt + 1)  # at most the one answer that each was about to give
            assert ledger.spent("people") == PureDP(COST.epsilon * len(charges))
    assert len(left) > times


@by_day_and_night("times", 4, 8)
def test_killed_at_any_moment(durable, times):
    kill_and_look(durable, times, seed=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_a_hundred_times(durable, seed):
    kill_and_look(durable, 50, seed=seed)


class TestFullDisk:
    def test_a_file_that_may_not_grow(self, tmp_path):
        """As on a full disk: each write beyond the limit fails, and nothing that failed is there afterwards."""
        ledger = Ledger(tmp_path / "budget.db")
        ledger.open("people", PureDP(1000), who="owner")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        charged, answered = 0, 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, before[1]))
        try:
            with pytest.raises(LedgerUnavailable, match="Nothing was answered"):  # noqa: PT012  (which of them fails is not known)
                for number in range(1000):
                    reservation = ledger.reserve({"people": COST}, who="ada", what=f"plan {number}")
                    charged += 1
                    ledger.settle(reservation, b"x" * 5000)
                    answered += 1
            for _ in range(3):
                with pytest.raises(LedgerUnavailable):
                    ledger.settle(ledger.reserve({"people": COST}, who="ada", what="another plan"), b"x" * 20_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        assert 3 < answered <= charged
        assert ledger.verify() is True
        settled = [row for row in ledger.charges("people") if row.state == "settled"]
        assert len(settled) == answered
        ledger.settle(ledger.reserve({"people": COST}, who="ada", what="once there is room"), b"answer")
        assert ledger.verify() is True
        ledger.close()
        with Ledger(tmp_path / "budget.db") as again:
            assert again.frozen is None
            assert again.verify() is True

    def test_a_database_that_may_not_grow(self, tmp_path):
        with Ledger(tmp_path / "budget.db") as ledger:
            ledger.open("people", PureDP(1000), who="owner")
            pages = ledger._store.execute("PRAGMA page_count").fetchone()[0]
            ledger._store.execute(f"PRAGMA max_page_count = {pages + 3}")
            with pytest.raises(LedgerUnavailable, match="full"):  # noqa: PT012  (which of them fails is not known)
                for number in range(1000):
                    ledger.settle(ledger.reserve({"people": COST}, who="ada", what=f"plan {number}"), b"x" * 500)
            assert ledger.verify() is True
            spent = ledger.spent("people")
            assert spent == PureDP(COST.epsilon * len(ledger.charges("people")))
            ledger._store.execute("PRAGMA max_page_count = 1000000")
            ledger.reserve({"people": COST}, who="ada", what="once there is room")
            assert ledger.verify() is True

    def test_a_head_that_cannot_be_copied(self, tmp_path):
        """The charge stands, and the caller is told nothing but that there is no answer."""
        with Ledger(tmp_path / "budget.db") as ledger:
            ledger.open("people", PureDP(1), who="owner")
            reservation = ledger.reserve({"people": COST}, who="ada", what="plan")
            write = os.write
            try:
                os.write = _full  # type: ignore[assignment]
                with pytest.raises(LedgerUnavailable, match="head"):
                    ledger.settle(reservation, b"answer")
            finally:
                os.write = write
            assert [row.state for row in ledger.charges("people")] == ["settled"]
            assert ledger.find("plan", ["people"])[0].release == b"answer"
            ledger.reserve({"people": COST}, who="ada", what="another plan")
            assert ledger.verify() is True


def _full(*_: object) -> int:
    raise OSError(28, "No space left on device")


class TestReadOnly:
    @pytest.fixture
    def shelf(self):
        """A folder that this process may only read, whoever it runs as."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            with Ledger(root / "budget.db", key=KEY) as ledger:
                ledger.open("people", PureDP(1), who="owner")
                ledger.settle(ledger.reserve({"people": COST}, who="ada", what="plan"), b"answer")
            for path in root.iterdir():
                path.chmod(0o444)
            root.chmod(0o555)
            user = os.geteuid()
            if user == 0:
                os.seteuid(65534)
            try:
                yield root
            finally:
                os.seteuid(user)
                root.chmod(0o755)

    def test_nothing_is_charged(self, shelf):
        assert not stat.S_IMODE((shelf / "budget.db").stat().st_mode) & 0o222
        with pytest.raises(LedgerUnavailable) as refusal, Ledger(shelf / "budget.db", key=KEY) as ledger:
            ledger.reserve({"people": COST}, who="ada", what="another plan")
        assert "may only be read" in str(refusal.value) or "could not be opened" in str(refusal.value)

    def test_a_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(LedgerUnavailable):
            Ledger(tmp_path / "nowhere" / "budget.db")

    def test_a_file_that_is_no_ledger(self, tmp_path):
        (tmp_path / "budget.db").write_bytes(b"This is a shopping list, not a database. " * 100)
        with pytest.raises(LedgerError) as refusal:
            Ledger(tmp_path / "budget.db", key=KEY)
        assert "shopping" not in str(refusal.value)


class TestForks:
    @staticmethod
    def said(*about: str) -> list[str]:
        command = [sys.executable, "-m", "tests.ledger.forking", *about]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    def test_a_child_charges_the_same_file_by_connections_of_its_own(self, durable):
        assert self.said(str(durable.where), str(durable.head)) == ["child was charged", "child parent True"]

    def test_a_child_has_no_part_in_a_ledger_in_memory(self):
        assert self.said("memory") == ["child was refused", "parent True"]
