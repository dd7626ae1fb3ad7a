"""The table store: what is stored answers as the plain file did, is never in plain on the disk, and goes with its key."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import WrongKey
from cloister.errors import CloisterError, EngineError
from cloister.hub.keys import hub_keyring
from cloister.hub.storage import DamagedTable, Limits, Reading, RefusedUpload, StoredTable, TableStore, table_store
from cloister.tables import Category, Date, Integer, PrivateTable, Real, Text, prepare
from tests.hub.storage.watch import Watch

KEYS = hub_keyring(bytes(32))
OTHER = hub_keyring(b"another master key of 32 bytes!!")
CSV = 'name,k,x\nCanaryBird,3,4.5\n"Bob, jr.",12,\n"torn,1,2\nonly one\n,,\nZoë,"7",1e2\n'.encode()
COLUMNS = {"name": Text(), "k": Integer(0, 9), "x": Real(0, 10, step="0.5")}


def stored_from(store: TableStore, content: bytes = CSV, kind: str = "csv") -> StoredTable:
    return store.add(store.receive([content], kind), about="test")


def rows_of(source: Any, columns: Any = COLUMNS, **options: Any) -> list[tuple[Any, ...]]:
    """The prepared codes, sorted."""
    with prepare(PrivateTable(source, columns=columns), secret="00" * 16, **options) as prepared:
        found = prepared.rows(list(columns))
        report = prepared.owner_report()
    rows = sorted(zip(*(found[name].tolist() for name in columns), strict=True), key=repr)
    return [*rows, (report,)]


def parquet_of(sql: str) -> bytes:
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "t.parquet"
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
        return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path / "vault", KEYS)


def files(store: TableStore) -> list[str]:
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file())


def test_a_stored_csv_file_answers_as_the_plain_one(store: TableStore, tmp_path: Path) -> None:
    plain = tmp_path / "people.csv"
    plain.write_bytes(CSV)
    stored = stored_from(store)
    assert rows_of(store.open(stored, name="people")) == rows_of(plain)
    assert files(store) == [f"tables/{stored.file}"]
    assert stored.length == store.path(stored).stat().st_size


def test_a_stored_file_of_a_spreadsheet_answers_as_the_plain_one(store: TableStore, tmp_path: Path) -> None:
    """Decimal commas between semicolons, days with points; what is said of a column stands above it."""
    plain, columns = tmp_path / "pay.csv", {"pay": Real(0, 2_000_000, step="0.5"), "born": Date("1900-01-01", "2030-12-31")}
    plain.write_text("pay;born\n3,5;31.12.2026\n1234,5;1.2.1984\n1,25e2;2001-02-03\n2.000;3/4/2001\n", encoding="utf-8")
    stored = stored_from(store, plain.read_bytes())
    found = rows_of(store.open(stored, name="pay"), columns)
    assert found == rows_of(plain, columns)
    assert {row[0] for row in found[:-1]} == {7, 2469, 250, 4}
    shown = store.look(store.receive([plain.read_bytes()[:40]], "csv"), rows=9)
    assert [each.suggested for each in shown.columns] == ["Real", "Date"]
    said = {"pay": Reading(numbers="point"), "born": Reading(missing=("3/4/2001",))}
    for source in (
        store.open(stored, name="pay", how=said),
        store.open(store.respelled(stored, said, about="test"), name="pay"),
    ):
        *rows, (report,) = rows_of(source, columns)
        assert (report.columns["pay"].nulled, report.columns["born"].nulled) == (3, 0)
        assert {row[1] for row in rows} >= {20818, 5144, 11356}


def test_what_is_said_of_all_numbers_of_an_upload_stands_above_its_semicolons(store: TableStore) -> None:
    with store.receiving("csv", Reading(numbers="point")) as upload:
        upload.write(b'pay;name\n1.234;a\tb\n3,5;"c;d"\n2,345;e\n')
        stored = store.add(upload.finish(), about="test")
    *rows, (report,) = rows_of(store.open(stored, name="pay"), {"pay": Integer(0, 9999), "name": Category(["a\tb", "c;d", "e"])})
    assert sorted(rows, key=repr)[0] == (1, 0)
    assert (report.rows, report.columns["pay"].nulled, report.columns["name"].nulled) == (3, 1, 0)
    assert (2345, 2) in rows


FIELDS = st.sampled_from(["", "a", "7", '"', '""', '"a,b"', "é", "\r", "\\", "'", " 7", "1e3", "\x1f", "\u2028", '"7"'])
LINES = st.lists(FIELDS, max_size=4).map(",".join)


@settings(max_examples=25)
@given(st.lists(LINES, max_size=6))
def test_any_csv_file_that_is_taken_answers_as_the_plain_one(lines: list[str]) -> None:
    content = "\n".join(["a,b", *lines, "1,2"]).encode()
    columns = {"a": Text(), "b": Integer(0, 9)}
    with TemporaryDirectory() as name:
        plain = Path(name) / "plain.csv"
        plain.write_bytes(content)
        store = TableStore(Path(name) / "vault", KEYS)
        try:
            stored = stored_from(store, content)
        except RefusedUpload as refusal:
            assert "most lines" in str(refusal)  # noqa: PT017
            return
        assert rows_of(store.open(stored, name="t"), columns) == rows_of(plain, columns)


def test_a_stored_parquet_file_answers_as_the_plain_one(store: TableStore, tmp_path: Path) -> None:
    content = parquet_of(
        "SELECT i::DECIMAL(9, 2) / 4 AS x, CASE WHEN i % 5 > 0 THEN i::SMALLINT END AS k, 'é🏔' || i AS name, "
        "DATE '2000-01-01' + i::INTEGER AS born, TIMESTAMPTZ '2000-01-01 00:00:00+02' AS at FROM range(40) t(i)"
    )
    plain = tmp_path / "people.parquet"
    plain.write_bytes(content)
    columns = COLUMNS | {"born": Date("2000-01-05", "2000-02-01"), "at": Date("1999-01-01", "2001-01-01")}
    source = store.open(stored_from(store, content, "parquet"), name="people")
    assert rows_of(source, columns) == rows_of(plain, columns)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_row_is_ever_on_the_disk_in_plain(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first byte that arrives to the last answer: everything that is written under the folder and the temporary folder
    is looked at all the time."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(scratch)
    monkeypatch.setattr("cloister.tables.sourcing.encrypted.EncryptedSource.is_large", True)
    count = 300_000
    content = b"name,k,x\n" + b"CanaryBird,3,4.5\n" * count
    if kind == "parquet":
        table = pyarrow.table({"name": [f"CanaryBird{i}" for i in range(count)], "k": [3] * count, "x": [4.5] * count})
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file, compression=None, use_dictionary=False)
        content = file.getvalue()
    with Watch(tmp_path, b"CanaryBird", b"name") as watch:
        store = TableStore(tmp_path / "vault", KEYS)
        received = store.receive((content[i : i + 2**16] for i in range(0, len(content), 2**16)), kind)
        store.look(received, rows=5)
        stored = store.add(received, about="test")
        rows = rows_of(store.open(stored, name="people"), temporary_directory=scratch)
    assert len(rows) == count + 1
    assert {"part", "prepared.duckdb", stored.file} <= watch.seen
    assert watch.found == set()


def test_the_watch_would_see_it(tmp_path: Path) -> None:
    with Watch(tmp_path, b"CanaryBird") as watch:
        (tmp_path / "plain.csv").write_bytes(CSV)
        time.sleep(0.1)
        (tmp_path / "plain.csv").unlink()
    assert watch.found == {"plain.csv"}


def test_nothing_shows_a_key_or_a_row(store: TableStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    received = store.receive([CSV], "csv")
    header = store.look(received, rows=3)
    stored = store.add(received, about="test")
    source = store.open(stored, name="people", identity="data set 7")
    key = KEYS.unwrap(stored.wrapped_key or b"", stored.about)
    shown = " ".join(map(repr, (store, received, header, stored, source, source.identity(), source.describe()))) + caplog.text
    for secret in (key.hex(), repr(key)[2:-1], "CanaryBird", repr(stored.wrapped_key)[2:-1]):
        assert secret not in shown
    assert source.identity() == "data set 7"


def test_the_owner_sees_names_kinds_and_some_rows(store: TableStore) -> None:
    content = (
        b'id,sex,pay,born,smoker,note,none\n1,F,1.5,1990-01-02,yes,"a, b",\n2,M,2,1990-01-03,no,c,\n3,F,7,1990-01-03,no,d,\n'
    )
    received = store.receive([content], "csv")
    header = store.look(received, rows=3)
    suggested = {column.name: column.suggested for column in header.columns}
    assert suggested == {
        "id": "Integer",
        "sex": "Category",
        "pay": "Real",
        "born": "Date",
        "smoker": "Boolean",
        "note": "Text",
        "none": "Text",
    }
    assert header.rows[0] == ("1", "F", "1.5", "1990-01-02", "yes", "a, b", None)
    without = store.look(received)
    assert without.rows == ()
    assert {column.suggested for column in without.columns} == {"Text"}  # nothing of the rows
    assert {column.kind for column in header.columns} == {"text"}


def test_the_kinds_of_a_parquet_file(store: TableStore) -> None:
    content = parquet_of(
        "SELECT 1 AS a, 1.5::DOUBLE AS b, DATE '2000-01-01' AS c, true AS d, 'x' AS e, TIME '10:00' AS f, 1::DECIMAL(4, 2) AS g"
    )
    header = store.look(store.receive([content], "parquet"), rows=1)
    assert [(column.kind, column.suggested) for column in header.columns] == [
        ("integer", "Integer"),
        ("float", "Real"),
        ("date", "Date"),
        ("boolean", "Boolean"),
        ("text", "Text"),
        ("other", ""),
        ("decimal", "Real"),
    ]
    assert header.rows[0][2] == "2000-01-01"


def test_every_version_has_a_key_of_its_own(store: TableStore) -> None:
    one, other = stored_from(store), stored_from(store)
    keys = {KEYS.unwrap(each.wrapped_key or b"", each.about) for each in (one, other)}
    assert len(keys) == 2
    with pytest.raises(WrongKey):
        store.open(replace(one, wrapped_key=other.wrapped_key), name="people")


def test_a_key_opens_only_what_it_is_bound_to(store: TableStore) -> None:
    stored = stored_from(store)
    bound = store.bound(stored, f"data set 1 version 1 file {stored.file}")
    assert rows_of(store.open(bound, name="people")) == rows_of(store.open(stored, name="people"))
    for about in ("", stored.about, f"data set 2 version 1 file {stored.file}", f"data set 1 version 2 file {stored.file}"):
        with pytest.raises(WrongKey):
            store.open(replace(bound, about=about), name="people")


@pytest.mark.parametrize("at", [0, 20, 60, 200, -1])
def test_a_changed_file_is_named(store: TableStore, at: int) -> None:
    stored = stored_from(store)
    path = store.path(stored)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedTable) as caught:
        store.open(stored, name="people")
    assert "'people'" in str(caught.value)
    assert "not what was stored" in caught.value.why
    assert stored.file in caught.value.instead
    assert isinstance(caught.value, EngineError)


def test_a_file_that_was_exchanged_truncated_or_lost_is_named(store: TableStore) -> None:
    one, other = stored_from(store), stored_from(store)
    content = store.path(one).read_bytes()
    store.path(one).write_bytes(store.path(other).read_bytes())
    with pytest.raises(DamagedTable, match="not what was stored"):
        store.open(one, name="people")
    store.path(one).write_bytes(content[:-1])
    with pytest.raises(DamagedTable, match="not what was stored"):
        store.open(one, name="people")
    store.path(one).unlink()
    with pytest.raises(DamagedTable, match="missing"):
        store.open(one, name="people")


def test_a_file_that_changes_after_it_was_opened_gives_no_answer(store: TableStore) -> None:
    stored = stored_from(store)
    source = store.open(stored, name="people")
    content = bytearray(store.path(stored).read_bytes())
    content[-20] ^= 1
    store.path(stored).write_bytes(content)
    with pytest.raises(EngineError, match="could not be read"):
        rows_of(source)


def test_a_new_master_key_opens_what_was_stored_and_the_old_one_no_more(store: TableStore) -> None:
    stored = stored_from(store)
    assert stored.wrapped_key is not None
    before = store.path(stored).read_bytes()
    turned = replace(stored, wrapped_key=OTHER.wrap(KEYS.unwrap(stored.wrapped_key, stored.about), stored.about))
    assert rows_of(TableStore(store.folder, OTHER).open(turned, name="people")) == rows_of(store.open(stored, name="people"))
    assert store.path(stored).read_bytes() == before
    with pytest.raises(WrongKey):
        store.open(turned, name="people")


def test_the_key_is_destroyed_before_the_file(store: TableStore) -> None:
    stored = stored_from(store)
    there: list[bool] = []
    store.destroy(stored, lambda: there.append(store.path(stored).exists()))
    assert there == [True]
    assert files(store) == []
    with pytest.raises(DamagedTable, match="destroyed"):
        store.open(replace(stored, wrapped_key=None), name="people")
    store.destroy(stored, lambda: None)  # again is harmless


def test_a_key_that_could_not_be_destroyed_keeps_its_file(store: TableStore) -> None:
    stored = stored_from(store)

    def fails() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.destroy(stored, fails)
    assert rows_of(store.open(stored, name="people"))
    assert [path.name for path in (store.folder / "tables").iterdir()] == [stored.file]


def test_a_failed_store_leaves_the_upload_and_nothing_else(store: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    received = store.receive([CSV], "csv")
    before = files(store)

    def full(*_: object, **__: object) -> Iterator[None]:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("cloister.tables.sourcing.encrypted.os.fsync", full)
        with pytest.raises(EngineError, match="disk is full"):
            store.add(received, about="test")
    assert files(store) == before
    with monkeypatch.context() as patch:
        patch.setattr(table_store, "settle", full)
        with pytest.raises(OSError, match="no space"):
            store.add(received, about="test")
    assert files(store) == before
    assert rows_of(store.open(store.add(received, about="test"), name="people"))


@pytest.mark.parametrize("moment", ["cloister.tables.sourcing.encrypted.os.fsync", "cloister.hub.storage.table_store.settle"])
def test_a_process_killed_while_it_stores_leaves_the_upload(tmp_path: Path, moment: str) -> None:
    code = f"""
        import os, pathlib, unittest.mock
        from cloister.hub.keys import hub_keyring
        from cloister.hub.storage import TableStore
        store = TableStore(pathlib.Path({str(tmp_path)!r}), hub_keyring(bytes(32)))
        received = store.receive([{CSV!r}], "csv")
        print(received.id, received.wrapped_key.hex(), flush=True)
        with unittest.mock.patch({moment!r}, lambda *_: os.kill(os.getpid(), 9)):
            store.add(received, about="test")
    """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True).stdout
    number, wrapped = said.split()
    store = TableStore(tmp_path, KEYS)
    assert files(store) == [f"uploads/{number}"]
    received = table_store.Received(id=number, kind="csv", digest="", length=0, wrapped_key=bytes.fromhex(wrapped))
    assert rows_of(store.open(store.add(received, about="test"), name="people"))
    with pytest.raises(RefusedUpload, match="not here"):
        store.add(received, about="test")


def test_no_file_stays_open(store: TableStore) -> None:
    stored = stored_from(store)
    rows_of(store.open(stored, name="people"))
    before = len(os.listdir("/proc/self/fd"))
    for kind, content in (("csv", CSV), ("parquet", parquet_of("SELECT 1 AS k"))):
        stored_from(store, content, kind)
        with pytest.raises(CloisterError):
            store.receive([b"\0"], kind)
    assert len(os.listdir("/proc/self/fd")) == before


def test_two_hubs_over_one_folder(tmp_path: Path) -> None:
    one, other = TableStore(tmp_path, KEYS), TableStore(tmp_path, KEYS, limits=Limits(bytes=10**6))
    received = one.receive([CSV], "csv")
    assert other.look(received).columns[0].name == "name"
    assert rows_of(one.open(other.add(received, about="test"), name="people"))
