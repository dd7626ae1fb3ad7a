"""Tables in encrypted files: they answer as the plain ones do, and neither rows nor keys are found anywhere on the disk."""

from __future__ import annotations

import datetime
import logging
import os
import pickle
import threading
import traceback
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import CloisterError, EngineError, UnsupportedQuery
from cloister.tables import (
    Aggregate,
    Aggregation,
    Base,
    Date,
    Integer,
    PrivateTable,
    Real,
    Text,
    UnitJoined,
    prepare,
    relate,
)
from cloister.tables.sourcing.encrypted import EncryptedSource, write_encrypted
from cloister.tables.sourcing.source_factory import recognise
from tests.tables.test_lines import LINE

KEY = b"a key that nobody has ever seen!"
CANARY = "CanaryBird"
SECRET = "00" * 16
COLUMNS = {"name": Text(), "k": Integer(0, 9), "x": Real(0, 10, step="0.5")}


def rows_of(source: Any, folder: Path | None = None, **declared: Any) -> list[tuple[Any, ...]]:
    """The prepared codes, sorted."""
    table = PrivateTable(source, **({"columns": COLUMNS} | declared))
    with prepare(table, secret=SECRET, temporary_directory=folder) as prepared:
        found = prepared.rows(list(table.columns))
    return sorted(zip(*(found[name].tolist() for name in table.columns), strict=True), key=repr)


def sealed(source: Any, folder: Path, name: str = "rows.sealed", **options: Any) -> EncryptedSource:
    write_encrypted(source, folder / name, KEY)
    return EncryptedSource(folder / name, KEY, **options)


def canaries(folder: Path, *wanted: bytes) -> list[str]:
    """Files under a folder that hold one of the texts."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(each in path.read_bytes() for each in wanted or (CANARY.encode(),))
    ]


def test_a_csv_file_answers_as_it_did_in_plain(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'name,k,x\nAnn,3,4.5\n"Bob, jr.",12,\n,x,1e2\n"torn,1,2\n\xff,1,2\n,,\n')
    source = sealed(path, tmp_path)
    assert source.schema == recognise(path).schema
    assert rows_of(source) == rows_of(path)
    reports = [prepare(PrivateTable(each, columns=COLUMNS)).owner_report() for each in (path, source)]
    assert reports[0] == reports[1]
    assert reports[0].rows_malformed == 2


@settings(max_examples=15)
@given(st.lists(LINE, max_size=6))
def test_any_csv_file_answers_as_it_did_in_plain(lines: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(b"a,b\n" + b"\n".join(lines))
        columns = {"a": Text(), "b": Integer(0, 9)}
        assert rows_of(sealed(path, Path(folder)), columns=columns) == rows_of(path, columns=columns)


def test_every_kind_of_column_keeps_its_kind_and_its_values(tmp_path: Path) -> None:
    path = tmp_path / "kinds.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i::TINYINT a, i::UBIGINT b, i::DOUBLE / 3 c, i::REAL d, (i / 7)::DECIMAL(20, 3) e, 'é🏔' || i f, "
            "i % 2 = 0 g, DATE '2000-01-01' + i::INTEGER h, TIMESTAMP '2000-01-01' + to_seconds(i) i, "
            "(TIMESTAMP '2000-01-01' + to_seconds(i))::TIMESTAMP_NS j, TIMESTAMPTZ '2000-01-01 00:00:00+02' k, uuid() l, "
            f"NULL::INTEGER m, CASE WHEN i % 3 = 0 THEN NULL ELSE i END n FROM range(100) t(i)) TO '{path}' (FORMAT parquet)"
        )
    source = sealed(path, tmp_path)
    assert source.schema == recognise(path).schema
    with duckdb.connect() as connection:
        plain = connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM '{path}' ORDER BY f").fetchall()
        assert connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {source.attach(connection)} ORDER BY f").fetchall() == plain
        source.detach(connection)


def test_frames_and_dictionaries_too(tmp_path: Path) -> None:
    lists: dict[str, list[Any]] = {
        "d": [datetime.date(2000, 1, 2), None, datetime.date(1900, 3, 4)],
        "m": [1, "two", 3.5],
        "n": [None, None, None],
        "z": [Decimal("1.25"), None, Decimal(3)],
    }
    source = sealed(lists, tmp_path)
    assert source.schema == recognise(lists).schema
    columns = {"d": Date("1900-01-01", "2026-12-31"), "m": Text(), "n": Integer(0, 1), "z": Real(0, 9, step="0.25")}
    assert rows_of(source, columns=columns) == rows_of(lists, columns=columns)


def test_a_source_of_another_database_is_refused(tmp_path: Path) -> None:
    class Elsewhere(EncryptedSource):
        engine = "postgres"

        def __init__(self) -> None:
            self.schema = {"a": "integer"}

    with pytest.raises(UnsupportedQuery, match="own database"):
        write_encrypted(Elsewhere(), tmp_path / "rows.sealed", KEY)
    assert list(tmp_path.iterdir()) == []


def test_keys_and_rows_show_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    source = sealed({"name": [CANARY], "k": [1], "x": [0.5]}, tmp_path)
    table = PrivateTable(source, columns=COLUMNS)
    with prepare(table, temporary_directory=tmp_path) as prepared:
        prepared.aggregate(Aggregation(prepared))
        settings = prepared._connection.cursor().execute("SELECT * FROM duckdb_settings()").fetchall()  # type: ignore[attr-defined]
    shown = [repr(source), str(source), source.describe(), source.identity(), source.state(), repr(table.describe()), caplog.text]
    with pytest.raises(EngineError) as caught:
        EncryptedSource(source.path, bytes(32))
    shown += ["".join(traceback.format_exception(caught.value)), repr(settings)]
    for secret in (repr(KEY)[2:-1], KEY.hex(), CANARY):
        assert secret not in "\n".join(map(str, shown))
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(source)
    assert canaries(tmp_path, KEY, CANARY.encode()) == []


def test_the_same_rows_are_known_again(tmp_path: Path) -> None:
    source = sealed({"a": [1]}, tmp_path)
    assert source.identity() == f"file:{tmp_path / 'rows.sealed'}"
    assert source.state() == EncryptedSource(source.path, KEY).state()
    named = EncryptedSource(source.path, KEY, identity="hub:people")
    assert named.identity() == "hub:people"
    before = named.state()
    source.path.unlink()
    assert source.state() is None
    assert sealed({"a": [1]}, tmp_path).state() not in (None, before)


def make(path: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT '{CANARY}' || (range // 3) AS name, range % 100 AS k FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )


def test_a_large_one_is_prepared_and_spills_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "rows.parquet"
    make(plain, 900_000)
    source = sealed(plain, tmp_path)
    plain.unlink()
    monkeypatch.setenv("CLOISTER_MEMORY_LIMIT", "60MB")
    monkeypatch.setattr(EncryptedSource, "is_large", True)
    folder = tmp_path / "private"
    folder.mkdir()
    spilled: set[str] = set()
    find = DuckDBFiles(folder, spilled)
    table = PrivateTable(source, columns={"name": Text(), "k": Integer(0, 99)}, unit="name", max_rows=2)
    with find, prepare(table, temporary_directory=folder) as prepared:
        (kept,) = folder.rglob("prepared.duckdb")
        assert kept.stat().st_size > 2**20
        found = prepared.aggregate(
            Aggregation(prepared, keys=("k",), aggregates=(Aggregate("n", "rows"), Aggregate("u", "units")))
        )
        assert int(found.values["n"].sum()) == 600_000
        prepared.owner_report()
        assert canaries(tmp_path) == []
    assert find.canaries == []
    assert any(name.startswith("duckdb_temp") for name in spilled)
    assert list(folder.iterdir()) == []


class DuckDBFiles:
    """Looks into every file of a folder again and again, in a thread of its own, while DuckDB works there."""

    def __init__(self, folder: Path, seen: set[str]) -> None:
        self.folder, self.seen, self.canaries = folder, seen, list[str]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.is_set():
            try:
                found = list(self.folder.rglob("*"))
            except OSError:  # a folder went away meanwhile
                continue
            for path in found:
                try:
                    content = path.read_bytes()
                except OSError:
                    continue
                if content:
                    self.seen.add(path.name)
                if CANARY.encode() in content:
                    self.canaries.append(path.name)
            self._stop.wait(0.005)

    def __enter__(self) -> DuckDBFiles:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_the_canary_would_be_found_in_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: the same rows from a plain file are seen in the prepared file."""
    plain = tmp_path / "rows.parquet"
    make(plain, 300_000)
    monkeypatch.setattr("cloister.tables.sourcing.sources.ParquetSource.is_large", True)
    folder = tmp_path / "private"
    folder.mkdir()
    with prepare(PrivateTable(plain, columns={"name": Text(), "k": Integer(0, 99)}), temporary_directory=folder) as prepared:
        prepared._connection.execute("CHECKPOINT")  # type: ignore[attr-defined]
        assert canaries(folder) != []


def test_the_rows_of_a_join_stay_where_files_are_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = sealed({"p": ["a", "a", "b"], "name": [CANARY, CANARY, "x"]}, tmp_path)
    plain = tmp_path / "visits.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 'a' AS p, 3 AS cost) TO '{plain}' (FORMAT parquet)")
    monkeypatch.setattr("cloister.tables.sourcing.sources.ParquetSource.is_large", True)
    visits = PrivateTable(plain, columns={"cost": Integer(0, 9)}, unit="p", max_rows=1)
    people = PrivateTable(hidden, columns={"name": Text()}, unit="p", max_rows=2)
    joined = UnitJoined(left=Base(name="visits", table=visits), right=Base(name="people", table=people))
    with prepare(visits) as left, prepare(people) as right:
        found = relate(joined, {"visits": left, "people": right})
        assert found.home is right
        assert found.aggregate(Aggregation(None, aggregates=(Aggregate("n", "rows"),))).values["n"].tolist() == [2]
        assert left.beside(right) is None


def test_a_failed_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torn = tmp_path / "torn.parquet"
    make(torn, 400_000)
    content = bytearray(torn.read_bytes())
    content[1000:200_000] = bytes(199_000)
    torn.write_bytes(content)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CloisterError) as caught:
        write_encrypted(torn, tmp_path / "rows.sealed", KEY)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None
    assert [path.name for path in tmp_path.iterdir()] == ["torn.parquet"]

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("cloister.crypto.EncryptedWriter.write", full)
    make(torn, 400_000)
    with pytest.raises(EngineError, match="disk is full"):
        write_encrypted(torn, tmp_path / "rows.sealed", KEY)
    assert [path.name for path in tmp_path.iterdir()] == ["torn.parquet"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    source = sealed({"a": [1]}, tmp_path)
    before = source.path.read_bytes()
    with pytest.raises(EngineError, match="could not be made"):
        write_encrypted({"a": [2]}, source.path, KEY)
    assert source.path.read_bytes() == before


@pytest.mark.parametrize("place", [10, 100, -100, -1])
def test_a_changed_file_is_refused_and_leaves_no_file_open(tmp_path: Path, place: int) -> None:
    plain = tmp_path / "rows.parquet"
    make(plain, 300_000)
    source = sealed(plain, tmp_path)
    table = PrivateTable(source, columns={"k": Integer(0, 99)})
    content = bytearray(source.path.read_bytes())
    content[place] ^= 1
    source.path.write_bytes(content)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EngineError, match="encrypted file could not be read"):
        prepare(table, temporary_directory=tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_nothing_stays_open_when_preparing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = sealed({"k": [1]}, tmp_path)
    monkeypatch.setattr("cloister.tables.engines.duckdb.prepared_sql", lambda *_: "SELECT nothing")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EngineError):
        prepare(PrivateTable(source, columns={"k": Integer(0, 9)}), temporary_directory=tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_table_of_many_columns(tmp_path: Path) -> None:
    """The head is longer than a chunk of the file."""
    names = [*(f"{'c' * 2000}{i}" for i in range(700)), "last"]  # names that nobody declares may be of any length
    source = sealed({name: np.arange(2) for name in names}, tmp_path)
    assert list(source.schema) == names
    assert rows_of(source, columns={names[-1]: Integer(0, 9)}) == [(0,), (1,)]
