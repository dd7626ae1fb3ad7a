"""A bound on memory: the same answers in pieces, spilled where they do not fit, refused uncharged where that is public."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.tables import MemoryExceeded, Workspace, prepare
from cloister.tables.engines import engine
from cloister.tables.engines.compiler import CompiledQuery
from cloister.tables.engines.duckdb import DuckDBPrepared

TOWNS = ["Delft"] * 400 + ["Leiden"] * 300 + [f"village {each}" for each in range(300)]
ROWS = {"town": TOWNS, "age": [20 + each % 50 for each in range(1000)], "who": [f"p{each // 2}" for each in range(1000)]}
COLUMNS = {"town": cl.Text(nullable=True), "age": cl.Integer(0, 120)}
BY_TOWN = "SELECT town, COUNT(*) AS n, SUM(age) AS ages FROM people GROUP BY town"
SPEND = cl.ApproxDP(10, "1e-6")


def session(table: cl.PrivateTable, **how: Any) -> cl.Session:
    return cl.Session({"people": table}, budget=cl.ApproxDP(1000, "1e-3"), **how)


@pytest.mark.parametrize("unit", [None, "who"])
def test_pieces_make_the_same_answer(monkeypatch: pytest.MonkeyPatch, unit: str | None) -> None:
    monkeypatch.setattr(engine, "PIECE", 7)
    found = []
    for limit in (None, "64MiB"):
        table = cl.PrivateTable(ROWS, columns=COLUMNS, unit=unit, max_rows=unit and 2, version="1")
        with session(table, memory_limit=limit, random=Random.deterministic(5)) as asked:
            found.append(asked.sql(BY_TOWN, spend=SPEND).to_pydict())
    assert found[0] == found[1]
    assert found[0]["town"] == ["Delft", "Leiden"]


def test_drawn_piece_by_piece_an_answer_has_the_same_keys_and_noise_of_the_same_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delft and Leiden pass their threshold but for a chance below 1e-9, and no village does."""
    monkeypatch.setattr(engine, "PIECE", 7)
    with session(cl.PrivateTable(ROWS, columns=COLUMNS), memory_limit="64MiB") as asked:
        answer = asked.sql(BY_TOWN, spend=SPEND)
    assert answer["town"].tolist() == ["Delft", "Leiden"]
    assert np.abs(np.asarray(answer["n"]) - [400, 300]).max() < 30


def test_nothing_to_tell_is_an_empty_answer() -> None:
    with session(cl.PrivateTable(ROWS, columns=COLUMNS), memory_limit="64MiB") as asked:
        assert asked.sql(f"{BY_TOWN.replace('GROUP', 'WHERE age > 100 GROUP')}", spend=SPEND).num_rows == 0


@pytest.mark.parametrize("columns", [["age"], ["age", "town"], ["town"]])
@pytest.mark.parametrize("number", [0, 1000])
def test_rows_in_pieces_are_the_same_rows(columns: list[str], number: int) -> None:
    rows = {name: values[:number] for name, values in ROWS.items()} if number else {"town": ["a"], "age": [None], "who": ["p"]}
    table = cl.PrivateTable(rows, columns={**COLUMNS, "age": cl.Integer(0, 120, nullable=True)})
    where = cl.tables.IsNull(cl.tables.Column("town")) if not number else None
    read = []
    for workspace in (Workspace(), Workspace(memory=64 * 2**20)):
        with prepare(table, workspace=workspace) as prepared:
            found = prepared.rows(columns, where=where)
            read.append(sorted(zip(*(found[name].tolist() for name in columns), strict=True)))
            assert all(found[name].dtype == (object if name == "town" else np.int64) for name in columns)
    assert read[0] == read[1]
    assert len(read[0]) == number


class Mean:
    """Reads rows; what it says of them does not matter here."""

    columns = ("age",)

    def describe(self) -> dict[str, Any]:
        return {}

    def guarantee(self, spend: Guarantee, declaration: cl.PrivateTable) -> Guarantee:
        return spend

    def release(
        self, rows: Mapping[str, Any], declaration: cl.PrivateTable, cost: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        return {"n": 0}


def test_what_cannot_fit_by_public_facts_is_refused_before_its_charge() -> None:
    columns = {"age": cl.Integer(0, 120), "code": cl.Integer(0, 999_999)}
    rows = {"age": [30, 40], "code": [1, 2]}
    with session(cl.PrivateTable(rows, columns=columns, size=2_000_000), memory_limit="32MiB") as asked:
        with pytest.raises(cl.UnsupportedQuery, match="2,000,000 rows of 1 columns, as declared, do not fit"):
            asked.run(Mean(), "people", spend=1)
        with pytest.raises(cl.UnsupportedQuery, match="there is memory for 524,288"):
            asked.sql("SELECT code, COUNT(*) AS n FROM people GROUP BY code", spend=1)
        assert list(asked.ledger.charges("people")) == []
    with pytest.raises(cl.InvalidParameter, match="not an amount of memory"):
        session(cl.PrivateTable(rows, columns=columns), memory_limit="a lot")


def test_what_only_the_rows_decide_is_charged_and_says_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    said = set()
    for number in (3_000_000, 2_500_000):
        rows = {"age": np.arange(number) % 100}
        with session(cl.PrivateTable(rows, columns={"age": cl.Integer(0, 120)}), memory_limit="64MiB") as asked:
            with pytest.raises(cl.EngineError, match="more memory than is set for it") as refusal:
                asked.run(Mean(), "people", spend=1)
            assert asked.spent.epsilon == 1
            said.add(str(refusal.value))
            assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
    assert len(said) == 1
    assert not any(character.isdigit() for character in said.pop())


@pytest.mark.parametrize("error", [MemoryError(), duckdb.OutOfMemoryException("12345 rows")])
def test_an_engine_without_memory_is_said_in_the_one_text(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(self: DuckDBPrepared, plan: CompiledQuery) -> list[Any]:
        raise error

    with session(cl.PrivateTable(ROWS, columns=COLUMNS)) as asked:
        monkeypatch.setattr(DuckDBPrepared, "_fetch", fail)
        with pytest.raises(MemoryExceeded) as refusal:
            asked.sql("SELECT MAX(age) AS n FROM people", spend=1)
    assert "12345" not in str(refusal.value)


def test_a_question_waits_for_its_turn_before_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    real = DuckDBPrepared._stream

    def slow(self: DuckDBPrepared, plan: CompiledQuery) -> Generator[list[Any]]:
        entered.set()
        assert go_on.wait(60)
        yield from real(self, plan)

    with session(cl.PrivateTable(ROWS, columns=COLUMNS), memory_limit="32MiB") as asked:
        monkeypatch.setattr(DuckDBPrepared, "_stream", slow)
        waiting = threading.Event()
        other = asked.on_behalf("eve", progress=lambda stage: waiting.set() if stage == "preparing the tables" else None)
        charged = threading.Event()
        other.tell_charges(lambda *_: charged.set())
        first = threading.Thread(target=asked.sql, args=(BY_TOWN,), kwargs={"spend": SPEND})
        first.start()
        assert entered.wait(60)
        second = threading.Thread(
            target=other.sql, args=(BY_TOWN + " HAVING COUNT(*) > 5",), kwargs={"spend": SPEND, "fresh": True}
        )
        second.start()
        assert waiting.wait(60)
        assert not charged.wait(0.3)
        go_on.set()
        first.join(60)
        second.join(60)
        assert not first.is_alive()
        assert not second.is_alive()


def test_nobody_waits_for_ever_and_who_gets_no_turn_is_not_charged() -> None:
    """Also when a question has failed: its turn is given back."""
    with session(cl.PrivateTable(ROWS, columns=COLUMNS), memory_limit="32MiB") as asked:
        asked.sql("SELECT COUNT(*) AS n FROM people", spend=SPEND)
        turn = asked.registry.snapshot.prepare("people").turn()
        assert turn is not None
        turn.acquire()
        charged: list[object] = []
        hasty = asked.on_behalf("eve", time_limit=0.05)
        hasty.tell_charges(lambda *what: charged.append(what))
        spent = asked.spent
        for ask in (lambda: hasty.sql(BY_TOWN, spend=SPEND), lambda: hasty.run(Mean(), "people", spend=1)):
            with pytest.raises(cl.EngineError, match="nothing was charged"):
                ask()
        assert (asked.spent, charged) == (spent, [])
        turn.release()

        class Failing(Mean):
            def release(self, *_: Any) -> Mapping[str, Any]:
                raise ValueError

        with suppress(cl.CloisterError, ValueError):
            asked.run(Failing(), "people", spend=1)
        assert asked.run(Mean(), "people", spend=1)


def test_a_bound_leaves_few_threads_and_small_arrays() -> None:
    small = Workspace(memory=32 * 2**20)
    assert (small.threads(64), small.questions(1), small.settings()["memory_limit"]) == (1, 1, f"{32 * 2**20}B")
    assert Workspace().settings() == {}
    with prepare(cl.PrivateTable(ROWS, columns=COLUMNS), workspace=small) as prepared:
        [found] = prepared._connection.execute("SELECT current_setting('threads')").fetchone()
        assert found == 1
        prepared._connection.execute(prepared._all_threads)
        assert prepared._connection.execute("SELECT current_setting('threads')").fetchone() == (1,)


def test_the_peak_stays_near_the_bound(tmp_path: Path) -> None:
    """Many keys that nobody declared: their texts alone are more than all that may be held."""
    with duckdb.connect() as connection:
        rows = "SELECT 'somebody who is number ' || hash(i) AS town FROM range(600000) r(i)"
        connection.execute(f"COPY ({rows}) TO '{tmp_path / 'rows.parquet'}' (FORMAT parquet)")
    code = f"""
        import cloister as cl

        def peak():
            return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

        table = cl.PrivateTable({str(tmp_path / "rows.parquet")!r}, columns={{"town": cl.Text()}})
        with cl.Session({{"people": cl.PrivateTable({{"town": ["a"]}}, columns={{"town": cl.Text()}})}},
                        budget=cl.ApproxDP(9, "1e-3")) as small:
            small.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town", spend=cl.ApproxDP(1, "1e-6"))
        before = peak()
        with cl.Session({{"people": table}}, budget=cl.ApproxDP(9, "1e-3"), memory_limit="48MiB",
                        temporary_directory={str(tmp_path)!r}) as session:
            session.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town", spend=cl.ApproxDP(1, "1e-6"))
        print(peak() - before)
    """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert int(said.stdout) < 48 + 64
    with suppress(FileNotFoundError):
        assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]
