"""Uploads: whole or not at all, never in plain, and bombs are refused with the line to write."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
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
from cloister.hub.storage import Limits, Reading, Received, RefusedUpload, TableStore
from cloister.hub.storage import texts as texts_module
from cloister.hub.storage.texts import TextCheck
from cloister.tables.sourcing.lines import LONGEST_LINE
from tests.hub.storage.watch import Watch

KEYS = hub_keyring(bytes(32))
CSV = b"age,name\n39,CanaryBird\n51,Bob\n"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def receive(folder: Path, content: bytes, kind: str = "csv", *, step: int = 2**20, limits: Limits | None = None) -> Received:
    chunks = (content[i : i + step] for i in range(0, len(content), step))
    return TableStore(folder, KEYS, limits=limits).receive(chunks, kind)


def parquet(table: Any = None, **options: Any) -> bytes:
    table = pyarrow.table({"age": [39, 51], "name": ["CanaryBird", "Bob"]}) if table is None else table
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    return file.getvalue()


def refusal(folder: Path, content: bytes, kind: str = "csv", **options: Any) -> str:
    """The words of the refusal; and nothing stays."""
    with pytest.raises(RefusedUpload) as caught:
        receive(folder, content, kind, **options)
    assert files(folder) == []
    assert caught.value.why
    assert caught.value.instead
    assert "CanaryBird" not in str(caught.value)
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("step", [1, 7, 2**20])
def test_what_arrives_is_whole_and_not_in_plain(tmp_path: Path, step: int) -> None:
    received = receive(tmp_path, CSV, step=step)
    assert received.digest == hashlib.sha256(CSV).hexdigest()
    assert received.length == len(CSV)
    assert files(tmp_path) == [f"uploads/{received.id}"]
    assert b"Canary" not in (tmp_path / "uploads" / received.id).read_bytes()
    assert "wrapped_key" not in repr(received)
    assert (tmp_path / "uploads").stat().st_mode & 0o077 == 0


def test_nothing_is_in_plain_while_it_arrives(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"age,name\n"
        for _ in range(30):
            yield b"39,CanaryBird\n" * 10_000
            time.sleep(0.002)

    with Watch(tmp_path, b"CanaryBird") as watch:
        TableStore(tmp_path, KEYS).receive(chunks(), "csv")
    assert "part" in watch.seen
    assert watch.found == set()


def test_a_sender_who_stops_leaves_nothing(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield CSV
        yield CSV[10:] * 200_000
        raise ConnectionError

    with pytest.raises(ConnectionError):
        TableStore(tmp_path, KEYS).receive(chunks(), "csv")
    assert files(tmp_path) == []
    with TableStore(tmp_path, KEYS).receiving("csv") as upload:
        upload.write(CSV)
        assert any("part" in name for name in files(tmp_path))
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "moment", ["cloister.hub.storage.uploads.EncryptedWriter.write", "cloister.hub.storage.uploads.os.fsync"]
)
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(moment, full)
    with pytest.raises(EngineError, match="disk is full"):
        receive(tmp_path, CSV)
    assert files(tmp_path) == []


def test_a_killed_process_leaves_what_the_next_one_removes_and_the_living_keep_theirs(tmp_path: Path) -> None:
    code = f"""
        import os, pathlib
        from cloister.hub.keys import hub_keyring
        from cloister.hub.storage import TableStore
        upload = TableStore(pathlib.Path({str(tmp_path)!r}), hub_keyring(bytes(32))).receiving("csv")
        upload.write(b"age\\n" + b"39\\n" * 10**6)
        os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    (dead,) = [name for name in files(tmp_path) if name.endswith("part")]
    store = TableStore(tmp_path, KEYS)
    assert files(tmp_path) == []
    with store.receiving("csv") as upload:
        upload.write(CSV)
        TableStore(tmp_path, KEYS)
        assert upload.finish().length == len(CSV)
    assert dead not in files(tmp_path)


def test_uploads_that_nobody_fetched_go_after_a_day(tmp_path: Path) -> None:
    old, new = receive(tmp_path, CSV), receive(tmp_path, CSV)
    yesterday = time.time() - 25 * 3600
    os.utime(tmp_path / "uploads" / old.id, (yesterday, yesterday))
    store = TableStore(tmp_path, KEYS)
    assert files(tmp_path) == [f"uploads/{new.id}"]
    with pytest.raises(RefusedUpload, match="not here"):
        store.look(old)
    store.discard(new)
    store.discard(new)
    assert files(tmp_path) == []


def test_an_upload_is_read_with_its_own_keys_only(tmp_path: Path) -> None:
    received = receive(tmp_path, CSV)
    with pytest.raises(WrongKey):
        TableStore(tmp_path, hub_keyring(bytes(31) + b"x")).look(received)
    other = receive(tmp_path, CSV)
    with pytest.raises(WrongKey):  # the key of one upload does not open another
        TableStore(tmp_path, KEYS).look(Received(id=received.id, kind="csv", digest="", length=0, wrapped_key=other.wrapped_key))


@pytest.mark.parametrize("name", ["../tables/x", "/etc/passwd", "", "a" * 22 + "/", "a" * 21 + "."])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    wrapped = KEYS.wrap(bytes(32), f"upload {name}")
    received = Received(id=name, kind="csv", digest="", length=0, wrapped_key=wrapped)
    store = TableStore(tmp_path, KEYS)
    for work in (store.look, partial(store.add, about="test"), store.discard):
        with pytest.raises(CloisterError, match="name"):
            work(received)


def test_too_much_is_refused_when_it_is_too_much(tmp_path: Path) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b"age\n"
        for _ in itertools.count():
            sent += 1
            yield b"39\n" * 1000

    with pytest.raises(RefusedUpload, match="more than 10,000 bytes"):
        TableStore(tmp_path, KEYS, limits=Limits(bytes=10_000)).receive(endless(), "csv")
    assert sent <= 4
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"age,name\n", "no rows"),
        (b"age,name", "no rows"),
        (b"age,name\r\n\r\n\n\n", "no rows"),
        (b"\n39\n", "no columns"),
        (b"age,age\n1,2\n", "line 1, column B: another column"),
        ("größe,GRÖSSE,Größe\n1,2,3\n".encode(), "line 1, column B: another"),
        (b"age,,pay\n1,2,3\n", "line 1, column B: the column has no name"),
        (b'"age,name\n1,2\n', "unbalanced quotes"),
        (b"age\rname\n1,2\n", "carriage return"),
        (b"age,name\n1,\0\n", "NUL"),
        (b"a\0e,name\n1,2\n", "NUL"),
        ("年龄,姓名\n39,二\n".encode("utf-16-le"), "NUL"),
        ("age,name\n39,Zoë\n".encode() + "40,Zoë\n".encode("latin-1"), "not in UTF-8"),
        (b"age,name\n39,Zo\x81\n", "not in UTF-8"),
        ("年龄,性别\n30,男\n".encode() + "40,女\n".encode()[:-2] + b"\n", "not in UTF-8"),
        (b"age,name\n39,Zo\xc3", "ends within a letter"),
        (gzip.compress(CSV), "compressed"),
        (b"PK\x03\x04" + bytes(100), "spreadsheet or a ZIP"),
        (parquet(), "Parquet file"),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("step", [1000, 2])
def test_what_is_no_csv_file_of_a_table(tmp_path: Path, content: bytes, why: str, step: int) -> None:
    if step == 2 and why in ("compressed", "spreadsheet or a ZIP", "Parquet file"):
        step = 4
    assert why in refusal(tmp_path, content, step=step)


@pytest.mark.parametrize(
    ("text", "letters", "said"),
    [
        ("姓名,备注\n朱镕基,“好”，没问题。\n", "gb18030", "GB 18030"),
        ("Größe,Straße,Zoë\n1,2,ÄÖÜ\n", "latin-1", "Windows-1252"),
        ("GRÖßE,x\n1,2\n", "latin-1", "Windows-1252"),
        ("année,créée\n1,éé\n", "latin-1", "Windows-1252"),
        ("年龄,性别\n30,男\n", "utf-8", ""),
    ],
)
def test_which_letters_a_file_is_in_is_told_apart_and_said(tmp_path: Path, text: str, letters: str, said: str) -> None:
    got = receive(tmp_path, text.encode(letters))
    assert got.encoding == said
    head = TableStore(tmp_path, KEYS).look(got, rows=1)
    names, row, *_ = text.split("\n")
    assert ([each.name for each in head.columns], [*head.rows[0]]) == (names.split(","), row.split(","))


def test_how_a_parquet_file_is_written_is_not_said_in_vain(tmp_path: Path) -> None:
    with pytest.raises(RefusedUpload, match="a Parquet file says itself how its values are written"):
        TableStore(tmp_path, KEYS).receiving("parquet", Reading(missing=("-99",)))
    assert files(tmp_path) == []


def test_the_line_to_write(tmp_path: Path) -> None:
    assert "iconv -f WINDOWS-1252 -t UTF-8" in refusal(tmp_path, b"name\nZo\x81\n")
    assert "tr -d" in refusal(tmp_path, b"name\nZo\0\n")
    for binary in (b"$FL2@(#) SPSS\0\0\0\x02", b"name\nZo\0\0\n", b"a\n\x01\0"):  # what loses its NULs is lost
        assert "tr -d" not in refusal(tmp_path, binary)
    assert "gunzip" in refusal(tmp_path, gzip.compress(CSV))


def test_a_line_of_100_000_columns(tmp_path: Path) -> None:
    content = ",".join(f"c{i}" for i in range(100_000)).encode() + b"\n1\n"
    assert "more than 1,000 columns" in refusal(tmp_path, content)


def test_one_endless_line(tmp_path: Path) -> None:
    assert "longer than" in refusal(tmp_path, b"a,b\n" + b"x" * (LONGEST_LINE + 1))
    assert "longer than" in refusal(tmp_path, b"x" * (LONGEST_LINE + 1))
    assert receive(tmp_path, b"a,b\n1,2\n" + b"x" * LONGEST_LINE + b"\n").length > LONGEST_LINE


def test_too_many_rows(tmp_path: Path) -> None:
    assert "more than 3 rows" in refusal(tmp_path, b"a\n1\n2\n3\n4\n", limits=Limits(rows=3))
    assert receive(tmp_path, b"a\n1\n2\n3\n", limits=Limits(rows=3)).kind == "csv"


@given(st.lists(st.integers(0, 40).map(lambda n: b"x" * n), min_size=1, max_size=12), st.integers(1, 50), st.integers(5, 30))
def test_lines_are_measured_however_they_are_cut(lines: list[bytes], step: int, longest: int) -> None:
    content = b"a\n1\n" + b"\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts_module, "LONGEST_LINE", longest)
        check = TextCheck(Limits())
        refused = False
        try:
            for i in range(0, len(content), step):
                check.feed(content[i : i + step])
            check.finish()
        except RefusedUpload:
            refused = True
    assert refused == any(len(line) > longest for line in lines)


def test_names_of_any_letters(tmp_path: Path) -> None:
    received = receive(tmp_path, '🏔,Größe,"a ""b"", c",select\n1,2,3,4\n'.encode())
    columns = TableStore(tmp_path, KEYS).look(received).columns
    assert [column.name for column in columns] == ["🏔", "Größe", 'a "b", c', "select"]


@pytest.mark.parametrize("kind", ["xls", "", "CSV", "../csv"])
def test_other_kinds(tmp_path: Path, kind: str) -> None:
    assert "does not read" in refusal(tmp_path, CSV, kind)


# Parquet


def changed(content: bytes, at: int, value: bytes) -> bytes:
    at = at % len(content)
    return content[:at] + value + content[at + len(value) :]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (CSV, "not a Parquet file"),
        (b"PAR1", "not a Parquet file"),
        (b"PAR1PAR1", "not a Parquet file"),
        (b"PAR1\0\0\0\0PAR1", "damaged"),
        (parquet()[:-1], "incomplete"),
        (parquet()[: len(parquet()) // 2], "incomplete"),
        (changed(parquet(), -8, b"\xff\xff\xff\x7f"), "incomplete"),
        (changed(parquet(), -500, bytes(300)), "damaged"),
        (changed(parquet(), -4, b"PARE"), "encrypted"),
        (parquet(pyarrow.table({"a": [[1, 2]]})), "nested"),
        (parquet(pyarrow.table({"a": [{"b": 1}]})), "nested"),
        (parquet(pyarrow.table({"a": pyarrow.array([[(1, 2)]], pyarrow.map_(pyarrow.int64(), pyarrow.int64()))})), "nested"),
        (parquet(pyarrow.table({"age": pyarrow.array([], pyarrow.int64())})), "no rows"),
        (parquet(pyarrow.table([[1], [2]], names=["age", "Age"])), "two of its columns"),
        (parquet(pyarrow.table([[1], [2]], names=["age", "age"])), "two of its columns"),
        (parquet(pyarrow.table([[1], [2]], names=["age", ""])), "one of its columns has no name"),
    ],
    ids=itertools.count(),
)
def test_what_is_no_parquet_file_of_a_table(tmp_path: Path, content: bytes, why: str) -> None:
    assert why in refusal(tmp_path, content, "parquet")


def test_parquet_bombs(tmp_path: Path) -> None:
    zeros = parquet(pyarrow.table({"a": ["0" * 1000] * 50_000}), compression="zstd", use_dictionary=False)
    assert len(zeros) < 100_000
    assert "decompressed" in refusal(tmp_path, zeros, "parquet", limits=Limits(expanded=2**20))
    wide = parquet(pyarrow.table({f"c{i}": [1] for i in range(1500)}))
    assert "more than 1,000 columns" in refusal(tmp_path, wide, "parquet")
    many = parquet(pyarrow.table({"a": list(range(300))}), row_group_size=1)
    assert "row groups" in refusal(tmp_path, many, "parquet", limits=Limits(row_groups=100))
    assert "rows" in refusal(tmp_path, many, "parquet", limits=Limits(rows=299))
    assert "footer" in refusal(tmp_path, wide, "parquet", limits=Limits(columns=2000, footer=1000))
    assert receive(tmp_path, many, "parquet").kind == "parquet"


def test_a_page_that_is_larger_than_the_footer_says(tmp_path: Path) -> None:
    """The footer passes; what the pages really hold is met by the memory that the connection has, when it is stored."""
    with duckdb.connect() as connection:
        path = tmp_path / "bomb.parquet"
        connection.execute(f"COPY (SELECT repeat('0', 200000000) AS a) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    content = path.read_bytes()
    path.unlink()
    assert len(content) < 100_000
    folder = tmp_path / "vault"
    limits = Limits(memory="100MB")
    received = receive(folder, content, "parquet", limits=limits)
    before = files(folder)
    with pytest.raises(CloisterError, match="could not be written"):
        TableStore(folder, KEYS, limits=limits).add(received, about="test")
    assert files(folder) == before


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=8))
def test_a_damaged_parquet_file_is_read_or_refused_and_nothing_else(at: int, value: bytes) -> None:
    content = changed(parquet(), at, value)
    with TemporaryDirectory() as name:
        folder = Path(name)
        with suppress(CloisterError):
            received = receive(folder, content, "parquet")
            TableStore(folder, KEYS).look(received, rows=2)
            TableStore(folder, KEYS).add(received, about="test")
        assert len(files(folder)) <= 1
