"""The DuckDB engine's own promises: shut off, tidy, concurrent, fair, and content with the base dependencies."""

from __future__ import annotations

import gzip
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pytest

from cloister.errors import EngineError, InvalidParameter, UnknownColumn
from cloister.tables import (
    Aggregate,
    Aggregation,
    And,
    Category,
    Column,
    Compare,
    In,
    Integer,
    Literal,
    Not,
    PrivateTable,
    Real,
    Text,
    prepare,
)
from cloister.tables.engines import engine as engine_module
from cloister.tables.engines.compiler import CompiledQuery
from cloister.tables.engines.duckdb import DuckDBEngine, DuckDBPrepared
from cloister.tables.engines.order import PRIME, parts_of
from cloister.tables.engines.workspace import Workspace


def small(**options: Any) -> PrivateTable:
    return PrivateTable(
        {"k": [0, 1, 1], "x": [1.0, 2.0, None]}, columns={"k": Integer(0, 9), "x": Real(0, 10, step="0.5")}, **options
    )


def test_the_connection_can_reach_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with prepare(small()) as prepared:
        assert isinstance(prepared, DuckDBPrepared)
        for sql in (
            f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')",
            f"COPY cloister_prepared_rows TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'other.db'}'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '1TB'",
        ):
            with pytest.raises(duckdb.Error):
                prepared._connection.cursor().execute(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_spilling_files_are_private_and_gone_at_close(tmp_path: Path) -> None:
    prepared = prepare(small(), temporary_directory=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    prepared.close()
    prepared.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EngineError, match="closed"):
        prepared.aggregate(Aggregation(prepared))


def test_what_a_dead_process_left_is_removed_and_the_living_is_not(tmp_path: Path) -> None:
    code = f"""
        import os, pathlib
        from cloister.tables import Integer, PrivateTable, prepare
        prepared = prepare(PrivateTable({{"k": [1]}}, columns={{"k": Integer(0, 9)}}), temporary_directory={str(tmp_path)!r})
        os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    (left,) = tmp_path.iterdir()
    with prepare(small(), temporary_directory=tmp_path) as living:
        assert not left.exists()
        with prepare(small(), temporary_directory=tmp_path):
            assert len(list(tmp_path.iterdir())) == 2
        assert living.aggregate(Aggregation(living)).values["rows"].tolist() == [3]
    assert list(tmp_path.iterdir()) == []


def test_a_failed_preparation_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "torn.csv.gz"
    path.write_bytes(gzip.compress(b"k\n" + b"".join(b"Secret %d\n" % i for i in range(10_000)))[:-100])
    with pytest.raises(EngineError) as caught:
        prepare(PrivateTable(path, columns={"k": Integer(0, 9)}), temporary_directory=tmp_path)
    assert "Secret" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["torn.csv.gz"]


def test_a_large_source_goes_to_a_file_and_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range // 3 AS p, range % 100 AS k FROM range(600000)) TO '{path}' (FORMAT parquet)")
    monkeypatch.setenv("CLOISTER_MEMORY_LIMIT", "60MB")
    monkeypatch.setattr("cloister.tables.sourcing.sources.ParquetSource.is_large", True)
    folder = tmp_path / "private"
    folder.mkdir()
    with prepare(PrivateTable(path, columns={"k": Integer(0, 99)}, unit="p", max_rows=2), temporary_directory=folder) as prepared:
        assert (next(folder.iterdir()) / "prepared.duckdb").exists()
        found = prepared.aggregate(
            Aggregation(prepared, keys=("k",), aggregates=(Aggregate("n", "rows"), Aggregate("u", "units")))
        )
        assert int(found.values["n"].sum()) == 400_000
    assert list(folder.iterdir()) == []


def test_eight_threads_ask_at_once() -> None:
    numbers = np.arange(50_000)
    with prepare(
        PrivateTable({"k": numbers % 7, "x": numbers}, columns={"k": Integer(0, 6), "x": Integer(0, 50_000)})
    ) as prepared:

        def ask(limit: int) -> int:
            below = Compare("<", Column("x"), Literal(limit))
            return int(prepared.aggregate(Aggregation(prepared, below, ("k",))).values["rows"].sum())

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, range(0, 4000, 50))) == list(range(0, 4000, 50))


def test_cancel_ends_what_runs_in_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with prepare(small()) as prepared:
        endless = CompiledQuery(
            "SELECT COUNT(*) FROM range(1000000) AS a, range(1000000) AS b WHERE a.range * b.range % 7 = 3", ("whole",)
        )
        monkeypatch.setattr(prepared, "plan", lambda _: endless)
        failed: list[BaseException] = []

        def ask() -> None:
            try:
                prepared.aggregate(Aggregation(prepared))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive():
            prepared.cancel()
            time.sleep(0.01)
        thread.join()
        assert [type(error) for error in failed] == [EngineError]


def test_a_connection_serves_the_next_question_unless_it_failed_or_was_stopped() -> None:
    with prepare(small()) as prepared:
        assert isinstance(prepared, DuckDBPrepared)
        for _ in range(3):
            prepared.aggregate(Aggregation(prepared))
        [kept] = prepared._idle
        with pytest.raises(EngineError):
            prepared._reading(lambda: prepared._fetch(CompiledQuery("SELECT nothing FROM nowhere", ("whole",))))
        assert prepared._idle == []
        with prepared._cursor(kept=True) as cursor:
            assert cursor is not kept
            prepared.cancel()  # may reach it after it was handed on
        assert (prepared._idle, prepared._stopped, prepared._running) == ([], set(), {})
        prepared.aggregate(Aggregation(prepared))
        with prepared._cursor() as cursor:  # it may hold what was registered with it
            assert cursor not in prepared._idle
        assert len(prepared._idle) == 1
    assert prepared._idle == []


@pytest.mark.parametrize("columns", [("k", "x"), ("who",), ("k", "who")])
def test_a_kept_connection_serves_any_question_after_any_other(columns: tuple[str, ...]) -> None:
    """DuckDB refuses a relation on a connection with rows of an answer left to fetch."""
    source = {"k": [0, 1, 1], "x": [1.0, 2.0, None], "who": ["ann", "bo", "cy"]}
    table = PrivateTable(source, columns={"k": Integer(0, 9), "x": Real(0, 10, step="0.5"), "who": Text()})
    with DuckDBEngine().prepare(table, workspace=Workspace(memory=64 * 2**20), secret="s" * 32) as prepared:
        assert isinstance(prepared, DuckDBPrepared)
        prepared._holds = False  # as of a long table
        total = Aggregation(prepared, aggregates=(Aggregate("n", "rows"), Aggregate("s", "sum", (("x", 0),))))
        for ask in (lambda: prepared.aggregate(total), lambda: prepared.rows(["k"]), lambda: prepared.rows(["who"])):
            ask()
            assert len(prepared._idle) == 1
            assert {name: len(values) for name, values in prepared.rows(columns).items()} == dict.fromkeys(columns, 3)


def test_a_question_that_ends_while_it_is_stopped_keeps_nothing_open() -> None:
    with prepare(small()) as prepared:
        assert isinstance(prepared, DuckDBPrepared)
        folder, ended = prepared._folder.path, prepared._connection.cursor()
        prepared._running[ended] = 1
        ended.close()
    assert not folder.exists()
    with pytest.raises(duckdb.ConnectionException):
        prepared._connection.execute("SELECT 1")


def test_idle_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.tables.engines.duckdb._MOST_IDLE", 2)
    with prepare(small()) as prepared, ExitStack() as stack:
        assert isinstance(prepared, DuckDBPrepared)
        for _ in range(5):
            stack.enter_context(prepared._cursor(kept=True))
        stack.close()
        assert len(prepared._idle) == 2


def test_a_question_of_one_shape_compiles_once() -> None:
    with prepare(small()) as prepared:
        first = prepared.plan(Aggregation(prepared, keys=("k",)))
        assert prepared.plan(Aggregation(prepared, keys=("k",))) is first
        assert prepared.plan(Aggregation(prepared, keys=())) is not first


def test_questions_that_differ_in_numbers_share_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    build = engine_module.compile_aggregation
    monkeypatch.setattr(
        engine_module, "compile_aggregation", lambda *args, **options: compiled.append(1) or build(*args, **options)
    )
    numbers = list(range(-50, 50))
    table = PrivateTable({"x": numbers, "t": ["4199000000000000000"] * 100}, columns={"x": Integer(-50, 50), "t": Text()})
    with prepare(table) as prepared:
        for limit in range(-60, 60, 7):
            between = And(Compare(">=", Column("x"), Literal(limit)), Not(In("x", [limit + 3, limit + 5])))
            expected = sum(x >= limit and x not in (limit + 3, limit + 5) for x in numbers)
            assert prepared.aggregate(Aggregation(prepared, between)).values["rows"].tolist() == [expected]
        assert len(compiled) <= 4  # the IN list has none, one or two values within the bounds
        marked = And(Compare("<", Column("x"), Literal(0)), Compare("=", Column("t"), Literal("4199000000000000000")))
        assert prepared.aggregate(Aggregation(prepared, marked)).values["rows"].tolist() == [50]


def test_versions() -> None:
    with prepare(small(version="2026-01")) as named, prepare(small()) as drawn, prepare(small()) as again:
        assert named.version == "2026-01"
        assert drawn.version != again.version
        assert named.materialised


def test_the_cap_is_declared_unless_the_request_says_less() -> None:
    table = PrivateTable({"x": [1] * 10, "p": [7] * 10}, columns={"x": Integer(0, 9)}, unit="p", max_rows=4)
    with prepare(table) as prepared:
        assert prepared.aggregate(Aggregation(prepared)).values["rows"].tolist() == [4]
        assert prepared.aggregate(Aggregation(prepared, max_rows=1)).values["rows"].tolist() == [1]
        assert len(prepared.rows(["x"])["x"]) == 4
    with prepare(small()) as prepared, pytest.raises(InvalidParameter, match="one row is one person"):
        prepared.aggregate(Aggregation(prepared, max_rows=3))


def test_rows_give_null_as_the_null_code_and_units_as_numbers() -> None:
    with prepare(small()) as prepared:
        rows = prepared.rows(["x"], unit=True, where=Compare("=", Column("k"), Literal(1)))
        assert sorted(rows["x"].tolist()) == [4, 21]
        assert rows["unit"].tolist() == [0, 1]
        with pytest.raises(UnknownColumn):
            prepared.rows(["nothing"])


def test_units_that_differ_at_the_very_end_are_two_persons() -> None:
    """numpy's own texts lose characters of code 0 at their end."""
    source = polars.DataFrame({"p": ["a", "a\0", "a\0\0", "a"], "x": [1, 2, 3, 4]})
    with prepare(PrivateTable(source, columns={"x": Integer(0, 9)}, unit="p", max_rows=2)) as prepared:
        rows = prepared.rows(["x"], unit=True)
    unit = dict(zip(rows["x"].tolist(), rows["unit"].tolist(), strict=True))
    assert unit[1] == unit[4]
    assert len({unit[1], unit[2], unit[3]}) == 3


@pytest.mark.parametrize("unit", ["number", "text"])
def test_each_of_a_persons_rows_is_as_likely_to_count(unit: str) -> None:
    """Twelve months a person, three may count: those that do are spread as chance would (chi-square, 11 degrees of freedom)."""
    persons, months = 20_000, 12
    who = np.repeat(np.arange(persons), months)
    source = {"p": who if unit == "number" else [f"person {i}" for i in who], "month": np.tile(np.arange(months), persons)}
    for secret in ("00", "7f3a"):
        table = PrivateTable(source, columns={"month": Integer(0, 11)}, unit="p", max_rows=3)
        with prepare(table, secret=secret) as prepared:
            kept = np.bincount(prepared.rows(["month"])["month"], minlength=months)
        expected = persons * 3 / months
        # the secrets are fixed, so this never flickers; 46 is the quantile of 1 - 3e-6 of independent draws, and ours vary less
        assert float(((kept - expected) ** 2 / expected).sum()) < 46


def test_the_rank_cannot_leave_64_bits() -> None:
    assert all(PRIME % divisor for divisor in range(2, int(PRIME**0.5) + 1))
    assert PRIME % 3 == 2
    top = PRIME - 1
    assert top * top % PRIME * top < 2**63
    assert (PRIME - 1) * 2**31 + PRIME - 1 < 2**63
    assert [part.below for part in parts_of("v", 2**64)] == [2**30, 2**30, 16]
    wide = {f"c{i}": Integer(-(2**62) + 2, 2**62 - 2, nullable=True) for i in range(8)}
    extremes = [-(2**62) + 2, 2**62 - 2, None, 0]
    source = {**dict.fromkeys(wide, extremes), "p": [-(2**63), -(2**63), 2**63 - 1, None]}
    with prepare(PrivateTable(source, columns=wide, unit="p", max_rows=9)) as prepared:
        assert len(prepared.rows(["c0"])["c0"]) == 3


def test_base_dependencies_suffice() -> None:
    """With pandas, pyarrow and polars out of reach, a dictionary and a CSV still work."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text("age,name\n39,Ann\nx,Bob\n")
        code = f"""
            import sys
            for name in ("pandas", "pyarrow", "polars", "psycopg", "pyspark", "scipy"):
                sys.modules[name] = None
            from cloister.tables import Aggregation, Integer, PrivateTable, Text, prepare
            for source in ({str(path)!r}, {{"age": [39, None], "name": ["Ann", "Bob"]}}):
                with prepare(PrivateTable(source, columns={{"age": Integer(0, 120, nullable=True), "name": Text()}})) as prepared:
                    groups = prepared.aggregate(Aggregation(prepared, keys=("age", "name")))
                    print(sorted(zip(groups.keys[0].tolist(), groups.keys[1].tolist())))
        """
        said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert said.stdout.splitlines() == ["[(39, 'Ann'), (121, 'Bob')]"] * 2, said.stderr


def test_importing_tables_loads_no_engine() -> None:
    engines = ("duckdb", "ibis", "pandas", "pyarrow", "arro3")
    code = f"import sys, cloister.tables; print([name for name in {engines} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_categories_and_texts_of_hostile_content_in_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'"a, b","c""d"\n"x\'; DROP TABLE y; --","tab\tbreak"\n,""\n')
    table = PrivateTable(path, columns={"a, b": Category(["x'; DROP TABLE y; --"], nullable=True), 'c"d': Text(nullable=True)})
    with prepare(table) as prepared:
        groups = prepared.aggregate(Aggregation(prepared, keys=("a, b", 'c"d')))
    assert {(int(a), b) for a, b in zip(*groups.keys, strict=True)} == {(0, "tab\tbreak"), (1, None)}
