"""The vault: what is stored answers as the plain file did, is never in plain on the disk, and goes with its key."""

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

from cloister.errors import CloisterError, EngineError
from cloister.hub.keys import Keys, WrongKey
from cloister.hub.storage import DamagedTable, Limits, RefusedUpload, StoredTable, Vault, rotated
from cloister.hub.storage import vault as vault_module
from cloister.tables import Date, Integer, PrivateTable, Real, Text, prepare
from tests.hub.storage.watch import Watch

KEYS = Keys(bytes(32))
OTHER = Keys(b"another master key of 32 bytes!!")
CSV = 'name,k,x\nCanaryBird,3,4.5\n"Bob, jr.",12,\n"torn,1,2\nonly one\n,,\nZoë,"7",1e2\n'.encode()
COLUMNS = {"name": Text(), "k": Integer(0, 9), "x": Real(0, 10, step="0.5")}


def stored_from(vault: Vault, content: bytes = CSV, kind: str = "csv") -> StoredTable:
    return vault.store(vault.receive([content], kind), about="test")


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
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault", KEYS)


def files(vault: Vault) -> list[str]:
    return sorted(str(path.relative_to(vault.folder)) for path in vault.folder.rglob("*") if path.is_file())


def test_a_stored_csv_file_answers_as_the_plain_one(vault: Vault, tmp_path: Path) -> None:
    plain = tmp_path / "people.csv"
    plain.write_bytes(CSV)
    stored = stored_from(vault)
    assert rows_of(vault.open(stored, name="people")) == rows_of(plain)
    assert files(vault) == [f"tables/{stored.file}"]
    assert stored.length == vault.path(stored).stat().st_size


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
        vault = Vault(Path(name) / "vault", KEYS)
        assert rows_of(vault.open(stored_from(vault, content), name="t"), columns) == rows_of(plain, columns)


def test_a_stored_parquet_file_answers_as_the_plain_one(vault: Vault, tmp_path: Path) -> None:
    content = parquet_of(
        "SELECT i::DECIMAL(9, 2) / 4 AS x, CASE WHEN i % 5 > 0 THEN i::SMALLINT END AS k, 'é🏔' || i AS name, "
        "DATE '2000-01-01' + i::INTEGER AS born, TIMESTAMPTZ '2000-01-01 00:00:00+02' AS at FROM range(40) t(i)"
    )
    plain = tmp_path / "people.parquet"
    plain.write_bytes(content)
    columns = COLUMNS | {"born": Date("2000-01-05", "2000-02-01"), "at": Date("1999-01-01", "2001-01-01")}
    source = vault.open(stored_from(vault, content, "parquet"), name="people")
    assert rows_of(source, columns) == rows_of(plain, columns)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_row_is_ever_on_the_disk_in_plain(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first byte that arrives to the last answer: everything that is written under the folder and the temporary folder
    is looked at all the time."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(scratch)
    monkeypatch.setattr("cloister.tables.encrypted.EncryptedSource.is_large", True)
    count = 300_000
    content = b"name,k,x\n" + b"CanaryBird,3,4.5\n" * count
    if kind == "parquet":
        table = pyarrow.table({"name": [f"CanaryBird{i}" for i in range(count)], "k": [3] * count, "x": [4.5] * count})
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file, compression=None, use_dictionary=False)
        content = file.getvalue()
    with Watch(tmp_path, b"CanaryBird", b"name") as watch:
        vault = Vault(tmp_path / "vault", KEYS)
        received = vault.receive((content[i : i + 2**16] for i in range(0, len(content), 2**16)), kind)
        vault.look(received, rows=5)
        stored = vault.store(received, about="test")
        rows = rows_of(vault.open(stored, name="people"), temporary_directory=scratch)
    assert len(rows) == count + 1
    assert {"part", "prepared.duckdb", stored.file} <= watch.seen
    assert watch.found == set()


def test_the_watch_would_see_it(tmp_path: Path) -> None:
    with Watch(tmp_path, b"CanaryBird") as watch:
        (tmp_path / "plain.csv").write_bytes(CSV)
        time.sleep(0.1)
        (tmp_path / "plain.csv").unlink()
    assert watch.found == {"plain.csv"}


def test_nothing_shows_a_key_or_a_row(vault: Vault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    received = vault.receive([CSV], "csv")
    header = vault.look(received, rows=3)
    stored = vault.store(received, about="test")
    source = vault.open(stored, name="people", identity="data set 7")
    key = KEYS.unwrap(stored.wrapped_key or b"", stored.about)
    shown = " ".join(map(repr, (vault, received, header, stored, source, source.identity(), source.describe()))) + caplog.text
    for secret in (key.hex(), repr(key)[2:-1], "CanaryBird", repr(stored.wrapped_key)[2:-1]):
        assert secret not in shown
    assert source.identity() == "data set 7"


def test_the_owner_sees_names_kinds_and_some_rows(vault: Vault) -> None:
    content = (
        b'id,sex,pay,born,smoker,note,none\n1,F,1.5,1990-01-02,yes,"a, b",\n2,M,2,1990-01-03,no,c,\n3,F,7,1990-01-03,no,d,\n'
    )
    received = vault.receive([content], "csv")
    header = vault.look(received, rows=3)
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
    assert header.columns[2].line == '"pay": cl.Real(…, …, step=…),'
    without = vault.look(received)
    assert without.rows == ()
    assert {column.suggested for column in without.columns} == {"Text"}  # nothing of the rows
    assert {column.kind for column in header.columns} == {"text"}


def test_the_kinds_of_a_parquet_file(vault: Vault) -> None:
    content = parquet_of(
        "SELECT 1 AS a, 1.5::DOUBLE AS b, DATE '2000-01-01' AS c, true AS d, 'x' AS e, TIME '10:00' AS f, 1::DECIMAL(4, 2) AS g"
    )
    header = vault.look(vault.receive([content], "parquet"), rows=1)
    assert [(column.kind, column.suggested) for column in header.columns] == [
        ("integer", "Integer"),
        ("float", "Real"),
        ("date", "Date"),
        ("boolean", "Boolean"),
        ("text", "Text"),
        ("other", ""),
        ("decimal", "Real"),
    ]
    assert header.columns[5].line == ""
    assert header.rows[0][2] == "2000-01-01"


def test_every_version_has_a_key_of_its_own(vault: Vault) -> None:
    one, other = stored_from(vault), stored_from(vault)
    keys = {KEYS.unwrap(each.wrapped_key or b"", each.about) for each in (one, other)}
    assert len(keys) == 2
    with pytest.raises(WrongKey):
        vault.open(replace(one, wrapped_key=other.wrapped_key), name="people")


def test_a_key_opens_only_what_it_is_bound_to(vault: Vault) -> None:
    stored = stored_from(vault)
    bound = vault.bound(stored, f"data set 1 version 1 file {stored.file}")
    assert rows_of(vault.open(bound, name="people")) == rows_of(vault.open(stored, name="people"))
    for about in ("", stored.about, f"data set 2 version 1 file {stored.file}", f"data set 1 version 2 file {stored.file}"):
        with pytest.raises(WrongKey):
            vault.open(replace(bound, about=about), name="people")


@pytest.mark.parametrize("at", [0, 20, 60, 200, -1])
def test_a_changed_file_is_named(vault: Vault, at: int) -> None:
    stored = stored_from(vault)
    path = vault.path(stored)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedTable) as caught:
        vault.open(stored, name="people")
    assert "'people'" in str(caught.value)
    assert "not what was stored" in caught.value.why
    assert stored.file in caught.value.instead
    assert isinstance(caught.value, EngineError)


def test_a_file_that_was_exchanged_truncated_or_lost_is_named(vault: Vault) -> None:
    one, other = stored_from(vault), stored_from(vault)
    content = vault.path(one).read_bytes()
    vault.path(one).write_bytes(vault.path(other).read_bytes())
    with pytest.raises(DamagedTable, match="not what was stored"):
        vault.open(one, name="people")
    vault.path(one).write_bytes(content[:-1])
    with pytest.raises(DamagedTable, match="not what was stored"):
        vault.open(one, name="people")
    vault.path(one).unlink()
    with pytest.raises(DamagedTable, match="missing"):
        vault.open(one, name="people")


def test_a_file_that_changes_after_it_was_opened_gives_no_answer(vault: Vault) -> None:
    stored = stored_from(vault)
    source = vault.open(stored, name="people")
    content = bytearray(vault.path(stored).read_bytes())
    content[-20] ^= 1
    vault.path(stored).write_bytes(content)
    with pytest.raises(EngineError, match="could not be read"):
        rows_of(source)


def test_a_new_master_key_opens_what_was_stored_and_the_old_one_no_more(vault: Vault) -> None:
    tables = [stored_from(vault), stored_from(vault), replace(stored_from(vault), wrapped_key=None)]
    before = [vault.path(each).read_bytes() for each in tables]
    turned = rotated(tables, KEYS, OTHER)
    assert [vault.path(each).read_bytes() for each in tables] == before
    later = Vault(vault.folder, OTHER)
    assert rows_of(later.open(turned[0], name="people")) == rows_of(vault.open(tables[0], name="people"))
    with pytest.raises(WrongKey):
        vault.open(turned[0], name="people")
    assert turned[2].wrapped_key is None
    assert rotated(turned, KEYS, OTHER) == turned  # once more changes nothing


def test_a_rotation_that_stopped_half_way_is_done_again(vault: Vault) -> None:
    tables = [stored_from(vault), stored_from(vault)]
    half = [*rotated(tables[:1], KEYS, OTHER), tables[1]]
    whole = rotated(half, KEYS, OTHER)
    assert whole[0] == half[0]
    for each in whole:
        assert Vault(vault.folder, OTHER).open(each, name="people").schema == {"name": "text", "k": "text", "x": "text"}
    with pytest.raises(WrongKey):
        rotated(tables, Keys(bytes(31) + b"?"), OTHER)


def test_the_key_is_destroyed_before_the_file(vault: Vault) -> None:
    stored = stored_from(vault)
    there: list[bool] = []
    vault.destroy(stored, lambda: there.append(vault.path(stored).exists()))
    assert there == [True]
    assert files(vault) == []
    with pytest.raises(DamagedTable, match="destroyed"):
        vault.open(replace(stored, wrapped_key=None), name="people")
    vault.destroy(stored, lambda: None)  # again is harmless


def test_a_key_that_could_not_be_destroyed_keeps_its_file(vault: Vault) -> None:
    stored = stored_from(vault)

    def fails() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        vault.destroy(stored, fails)
    assert rows_of(vault.open(stored, name="people"))
    assert vault.unknown([stored.file]) == []
    assert vault.unknown([]) == [stored.file]


def test_a_failed_store_leaves_the_upload_and_nothing_else(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    received = vault.receive([CSV], "csv")
    before = files(vault)

    def full(*_: object, **__: object) -> Iterator[None]:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("cloister.tables.encrypted.os.fsync", full)
        with pytest.raises(EngineError, match="disk is full"):
            vault.store(received, about="test")
    assert files(vault) == before
    with monkeypatch.context() as patch:
        patch.setattr(vault_module, "settle", full)
        with pytest.raises(OSError, match="no space"):
            vault.store(received, about="test")
    assert files(vault) == before
    assert rows_of(vault.open(vault.store(received, about="test"), name="people"))


@pytest.mark.parametrize("moment", ["cloister.tables.encrypted.os.fsync", "cloister.hub.storage.vault.settle"])
def test_a_process_killed_while_it_stores_leaves_the_upload(tmp_path: Path, moment: str) -> None:
    code = f"""
        import os, pathlib, unittest.mock
        from cloister.hub.keys import Keys
        from cloister.hub.storage import Vault
        vault = Vault(pathlib.Path({str(tmp_path)!r}), Keys(bytes(32)))
        received = vault.receive([{CSV!r}], "csv")
        print(received.id, received.wrapped_key.hex(), flush=True)
        with unittest.mock.patch({moment!r}, lambda *_: os.kill(os.getpid(), 9)):
            vault.store(received, about="test")
    """
    said = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True).stdout
    number, wrapped = said.split()
    vault = Vault(tmp_path, KEYS)
    assert files(vault) == [f"uploads/{number}"]
    received = vault_module.Received(id=number, kind="csv", digest="", length=0, wrapped_key=bytes.fromhex(wrapped))
    assert rows_of(vault.open(vault.store(received, about="test"), name="people"))
    with pytest.raises(RefusedUpload, match="not here"):
        vault.store(received, about="test")


def test_no_file_stays_open(vault: Vault) -> None:
    stored = stored_from(vault)
    rows_of(vault.open(stored, name="people"))
    before = len(os.listdir("/proc/self/fd"))
    for kind, content in (("csv", CSV), ("parquet", parquet_of("SELECT 1 AS k"))):
        stored_from(vault, content, kind)
        with pytest.raises(CloisterError):
            vault.receive([b"\0"], kind)
    assert len(os.listdir("/proc/self/fd")) == before


def test_two_hubs_over_one_folder(tmp_path: Path) -> None:
    one, other = Vault(tmp_path, KEYS), Vault(tmp_path, KEYS, limits=Limits(bytes=10**6))
    received = one.receive([CSV], "csv")
    assert other.look(received).columns[0].name == "name"
    assert rows_of(one.open(other.store(received, about="test"), name="people"))
