"""`cloister stream`: a line of JSON a step, and on from the last one that the ledger holds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import CliRunner

from cloister import ZCDP, Category, PrivateTable, Session
from cloister.cli.main import cli
from cloister.cli.stream import by_the_clock, queued
from cloister.errors import InvalidParameter
from cloister.ledger import Ledger

SQL = "SELECT room, COUNT(*) AS n FROM readings GROUP BY room"
HOW = ["--bounds", "room=hall|attic", "--every", "1 hour", "--since", "2026-01-01", "--rho", "50000000"]
LINES = "at,room,who\n2026-01-01T00:10,hall,a\n2026-01-01T01:10,hall,a\n2026-01-01T01:20,attic,b\nnoon,attic,b\nbroken\n"


class Begun(Thread):
    """One that has ended as soon as it starts, so that nothing depends on which of two is quicker."""

    def start(self) -> None:
        super().start()
        self.join()


def test_steps_are_lines_and_are_released_once(tmp_path: Path) -> None:
    book = ["--unit", "who", "--max-rows", "9", "--ledger", str(tmp_path / "budget.db"), "--until", "2026-01-01T03:00"]
    (tmp_path / "rows.csv").write_text(LINES)
    first = CliRunner().invoke(cli, ["stream", SQL, str(tmp_path / "rows.csv"), *HOW, *book])
    told = [json.loads(line) for line in first.output.splitlines()]
    assert [each["table"]["n"] for each in told] == [[1, 0], [1, 1], [0, 0]]
    assert told[2]["so_far"]["n"] == [2, 1]
    again = CliRunner().invoke(cli, ["stream", SQL, "-", *HOW, *book], input='{"at": 1, "room": "hall", "who": "a"}\n[]\n{\n')
    assert (again.output, again.exit_code) == (first.output.splitlines(keepends=True)[2], 0)  # none after it, and no other noise
    with Ledger(str(tmp_path / "budget.db")) as ledger:
        assert str(ledger.spent("readings")) == "ρ = 50000000"


def test_a_step_whose_line_nobody_read_is_printed_by_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text(LINES)
    how = ["stream", SQL, str(tmp_path / "rows.csv"), *HOW, "--until", "2026-01-01T03:00", "--ledger", f"{tmp_path}/budget.db"]
    read: list[str] = []

    def head(text: str) -> None:
        if read:
            raise BrokenPipeError
        read.append(text)

    with monkeypatch.context() as cut:
        cut.setattr("cloister.cli.stream.click.echo", head)
        assert isinstance(CliRunner().invoke(cli, how).exception, BrokenPipeError)
    rest = CliRunner().invoke(cli, how)
    assert [json.loads(line)["step"] for line in [*read, *rest.output.splitlines()]] == [1, 2, 3]


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.cli.stream._GRACE", 0)


def test_the_persons_of_a_declared_population_have_one_budget(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(LINES)
    told = {"population": "town", "columns": {"room": {"kind": "category", "values": ["hall", "attic"]}}}
    (tmp_path / "bounds.json").write_text(json.dumps(told))
    with Ledger(str(tmp_path / "budget.db")) as ledger:
        ledger.open("town", ZCDP(1), who="ada")
    book = ["--ledger", str(tmp_path / "budget.db"), "--until", "2026-01-01T03:00"]
    words = ["stream", SQL, str(tmp_path / "rows.csv"), *HOW, "--bounds", str(tmp_path / "bounds.json")]
    refused = CliRunner().invoke(cli, [*words, *book])
    assert refused.exit_code == 1, refused.output
    assert CliRunner().invoke(cli, [*words, *book, "--rho", "0.75"]).exit_code == 0
    with Ledger(str(tmp_path / "budget.db")) as ledger:
        assert (list(ledger.populations()), str(ledger.spent("town"))) == (["town"], "ρ = 0.75")


def test_steps_are_released_by_the_clock_though_no_reading_comes() -> None:
    now = int(time.time())
    table = PrivateTable({"room": []}, columns={"room": Category(["hall", "attic"])})

    def rows() -> Iterator[dict[str, Any]]:
        yield {"at": now, "room": "hall"}
        Event().wait()

    with Session({"readings": table}, ZCDP(1)) as session:
        watch = session.watch(SQL, at="at", every="1 second", since=now - 1, until=now + 1, spend=1, fed=True)
        by_the_clock(watch, queued(rows))  # type: ignore[arg-type]
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("time,room,who\n2026-01-01T00:10,hall,a\n", "its header has not each of the columns at, who, room once"),
        ("at,room\n2026-01-01T00:10,hall\n", "its header has not each of the columns at, who, room once"),
        ("at,room,who,at\n2026-01-01T00:10,hall,a,x\n", "its header has not each of the columns at, who, room once"),
        ("at,Room,who\n2026-01-01T00:10,hall,a\n", "its header has not each of the columns at, who, room once"),
        ("2026-01-01T00:10,hall,a\n", "its header has not each of the columns at, who, room once"),
        pytest.param("\0" * 200_000, "its header has not each of the columns at, who, room once", id="too long a field"),
        ('[{"at": 1, "room": "hall", "who": "a"}]', "JSON has an object in each line"),
        ('{\n"at": 1, "room": "hall", "who": "a"}', "JSON has an object in each line"),
    ],
)
@pytest.mark.parametrize("live", [[], ["--live"]])
def test_a_header_without_what_is_declared_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str, live: list[str]
) -> None:
    monkeypatch.setattr("cloister.cli.stream.Thread", Begun)
    (tmp_path / "rows").write_text(text)
    how = [*HOW, "--unit", "who", "--max-rows", "9", "--until", "2026-01-02", "--ledger", str(tmp_path / "budget.db"), *live]
    refused = CliRunner().invoke(cli, ["stream", SQL, str(tmp_path / "rows"), *how]).exception
    assert isinstance(refused, InvalidParameter)
    assert refused.why == why
    assert not (tmp_path / "budget.db").exists()


def test_a_header_that_is_refused_later_ends_the_clock() -> None:
    waiting, table = Queue[Any](), PrivateTable({"room": []}, columns={"room": Category(["hall", "attic"])})
    waiting.put(InvalidParameter("The stream is invalid", why="its header lacks a column"))
    with Session({"readings": table}, ZCDP(1)) as session:
        watch = session.watch(SQL, at="at", every="1 hour", since="2026-01-01", until="2100-01-01", spend=1, fed=True)
        with pytest.raises(InvalidParameter, match="its header lacks a column"):
            by_the_clock(watch, waiting)  # type: ignore[arg-type]


@pytest.mark.parametrize("by", [";", "\t", ","])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_readings_are_read_with_any_separator_and_any_mark(tmp_path: Path, by: str, mark: str) -> None:
    (tmp_path / "rows.csv").write_text(mark + "\n" + LINES.replace(",", by), encoding="utf-8")
    lines = '{"at": "2026-01-01T00:10", "room": "hall"}\n{"room": "hall"}\n{}\n'  # who has no moment is at none
    (tmp_path / "rows.jsonl").write_text(mark + lines, encoding="utf-8")
    for name, n in (("rows.csv", [2, 1]), ("rows.jsonl", [1, 0])):
        said = CliRunner().invoke(cli, ["stream", SQL, str(tmp_path / name), *HOW, "--until", "2026-01-01T02:00"]).output
        assert json.loads(said.splitlines()[-1])["so_far"]["n"] == n


def test_days_and_numbers_of_a_spreadsheet_are_read_as_a_table_reads_them(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "at;heat\n1.1.2026 0:10;1,5\n01.01.2026 00:20;2,25\n2026-01-01T00:30;0.25\n", encoding="utf-8"
    )
    how = ["--bounds", "heat=0.0:9.0", *HOW[2:], "--until", "2026-01-01T01:00"]
    said = CliRunner().invoke(cli, ["stream", "SELECT SUM(heat) AS n FROM readings", str(tmp_path / "rows.csv"), *how]).output
    assert round(json.loads(said)["table"]["n"][0], 1) == 4.0


def test_a_file_of_json_without_any_moment_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"room": "hall"}\n' * 3, encoding="utf-8")
    said = CliRunner().invoke(cli, ["stream", SQL, str(tmp_path / "rows.jsonl"), *HOW, "--until", "2026-01-01T02:00"])
    assert [json.loads(line)["table"]["n"] for line in said.output.splitlines()] == [[0, 0]] * 2


def test_a_live_stream_ends_well_while_its_sender_lives() -> None:
    words = [sys.executable, "-m", "cloister", "stream", SQL, "--live", *HOW, "--until", "2026-01-01T02:00"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdin is not None
        ran.stdin.write("at,room\n")
        ran.stdin.flush()
        assert ran.wait(60) == 0
        assert ran.stdout is not None
        assert len(ran.stdout.readlines()) == 2
