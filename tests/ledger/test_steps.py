"""Series of releases under one charge: a step, its release and its state are committed together, in every kind of store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import BudgetExceeded, LedgerError, LedgerTampered
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from tests.ledger.conftest import Place


def opened(ledger: Ledger, what: str = "door", cost: str = "0.5") -> int:
    return ledger.open_steps("people", PureDP(cost), who="ada", what=what, words="a counter", state=b"state 0")


def test_steps_cost_nothing_and_are_found_again(ledger: Ledger) -> None:
    ledger.open("people", PureDP(1), who="owner")
    opening = opened(ledger)
    for step in range(1, 4):
        ledger.add_step(opening, step, b"release %d" % step, b"state %d" % step)
    assert ledger.last_step("people", "door") == (opening, 3, b"state 3")
    assert [found.release for found in ledger.find("door", ["people"])] == [b"door", b"release 1", b"release 2", b"release 3"]
    assert ledger.spent("people") == PureDP("0.5")
    assert {charge.state for charge in ledger.charges("people")} == {"settled"}
    assert ledger.verify() is True


def test_a_budget_that_is_spent_does_not_stop_steps_that_are_charged(ledger: Ledger) -> None:
    ledger.open("people", PureDP("0.5"), who="owner")
    opening = opened(ledger)
    with pytest.raises(BudgetExceeded):
        opened(ledger, "another", "0.1")
    ledger.add_step(opening, 1, b"release", b"state")


def test_steps_come_in_order_once_each(ledger: Ledger) -> None:
    ledger.open("people", PureDP(1), who="owner")
    opening = opened(ledger)
    ledger.add_step(opening, 1, b"release", b"state 1")
    for wrong in (1, 3, 0):
        with pytest.raises(LedgerError, match="was not released"):
            ledger.add_step(opening, wrong, b"another", b"state")
    with pytest.raises(LedgerError, match="was not released"):
        ledger.add_step(opening + 100, 1, b"another", b"state")
    assert ledger.last_step("people", "door").state == b"state 1"
    assert len(ledger.find("door", ["people"])) == 2


def test_a_name_is_used_once_and_one_that_is_not_there_is_said_so(ledger: Ledger) -> None:
    ledger.open("people", PureDP(1), who="owner")
    with pytest.raises(LedgerError, match="was not found"):
        ledger.last_step("people", "door")
    opened(ledger)
    with pytest.raises(LedgerError, match="was not opened"):
        opened(ledger)
    ledger.reserve({"people": PureDP("0.1")}, who="ada", what="a plan")
    with pytest.raises(LedgerError, match="was not found"):
        ledger.last_step("people", "a plan")
    assert ledger.spent("people") == PureDP("0.6")


def test_it_outlives_its_process_and_a_changed_state_is_found(durable: Place, sql: Callable[..., list[Any]]) -> None:
    with durable.open() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.add_step(opened(ledger), 1, b"release", b"state 1")
    with durable.open() as ledger:
        assert ledger.last_step("people", "door").state == b"state 1"
        sql("UPDATE steps SET content = ?", b"state 0")
        with pytest.raises(LedgerTampered, match="its last line speaks of"):
            ledger.last_step("people", "door")


def test_after_a_restore_it_goes_no_further(tmp_path: Path) -> None:
    path, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    with Ledger(path) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        opening = opened(ledger)
    shutil.copy(path, backup)
    with Ledger(path) as ledger:
        ledger.add_step(opening, 1, b"release", b"state 1")
    for beside in tmp_path.glob("ledger.db-*"):
        beside.unlink()
    shutil.copy(backup, path)
    with Ledger(path) as ledger:
        assert ledger.frozen is not None
        with pytest.raises(LedgerError, match="frozen"):
            ledger.add_step(opening, 1, b"another", b"another state")
        ledger.restore(ledger.frozen.losses, who="owner", why="the disk failed")
        with pytest.raises(LedgerError, match="restored from a backup since"):
            ledger.last_step("people", "door")
