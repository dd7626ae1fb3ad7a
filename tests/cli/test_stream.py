"""`cloister stream`: a line of JSON a step, and on after the last one that the ledger holds."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

from click.testing import CliRunner

from cloister import ZCDP, Category, PrivateTable, Session
from cloister.cli.main import cli
from cloister.cli.stream import by_the_clock
from cloister.errors import InvalidParameter
from cloister.ledger import Ledger

SQL = "SELECT room, COUNT(*) AS n FROM readings GROUP BY room"
HOW = ["--bounds", "room=hall|attic", "--every", "1 hour", "--since", "2026-01-01", "--rho", "50000000"]
LINES = "at,room,who\n2026-01-01T00:10,hall,a\n2026-01-01T01:10,hall,a\n2026-01-01T01:20,attic,b\nnoon,attic,b\nbroken\n"


def test_steps_are_lines_and_are_released_once(tmp_path: Path) -> None:
    book = ["--unit", "who", "--max-rows", "9", "--ledger", str(tmp_path / "budget.db"), "--until", "2026-01-01T03:00"]
    (tmp_path / "rows.csv").write_text(LINES)
    first = CliRunner().invoke(cli, ["stream", SQL, str(tmp_path / "rows.csv"), *HOW, *book])
    told = [json.loads(line) for line in first.output.splitlines()]
    assert [each["table"]["n"] for each in told] == [[1, 0], [1, 1], [0, 0]]
    assert told[2]["so_far"]["n"] == [2, 1]
    again = CliRunner().invoke(cli, ["stream", SQL, "-", *HOW, *book], input='{"at": 1, "room": "hall", "who": "a"}\n[]\n{\n')
    assert (again.output, again.exit_code) == ("", 0)
    with Ledger(str(tmp_path / "budget.db")) as ledger:
        assert str(ledger.spent("readings")) == "ρ = 50000000"


def test_steps_are_released_by_the_clock_though_no_reading_comes() -> None:
    now = int(time.time())
    table = PrivateTable({"room": []}, columns={"room": Category(["hall", "attic"])})

    def rows() -> Iterator[dict[str, Any]]:
        yield {"at": now, "room": "hall"}
        Event().wait()

    with Session({"readings": table}, ZCDP(1)) as session:
        watch = session.watch(SQL, at="at", every="1 second", since=now - 1, until=now + 1, spend=1, fed=True)
        by_the_clock(watch, rows())  # type: ignore[arg-type]
        assert watch.taken == 2


def test_a_forecast_reads_nothing_and_a_spend_is_needed(tmp_path: Path) -> None:
    said = CliRunner().invoke(cli, ["stream", SQL, "-", *HOW, "--until", "2026-01-02", "--forecast"]).output
    assert "once for all steps" in said
    assert '"n": [1.0, 1.0]' in said
    book = ["--until", "2026-01-02", "--ledger", str(tmp_path / "budget.db")]
    assert CliRunner().invoke(cli, ["stream", "SELECT colour FROM readings", "-", *HOW, *book]).exit_code
    with Ledger(str(tmp_path / "budget.db")) as ledger:
        assert list(ledger.populations()) == []
    refused = CliRunner().invoke(cli, ["stream", SQL, "-", *HOW[:-2], "--until", "2026-01-02"]).exception
    assert isinstance(refused, InvalidParameter)
