"""What a refusal carries: no history, and no frames that hold rows."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest

from cloister.errors import CloisterError, EngineError
from cloister.tables import Aggregation, Category, Integer, PrivateTable, PublicTable, Text, prepare
from cloister.tables.engines import connection, guard
from cloister.tables.engines.duckdb import DuckDBPrepared

SECRET = "Alice Secret"


class Odd:
    """A value whose text cannot be taken."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(SECRET)

    @property
    def dtype(self) -> Any:
        raise RuntimeError(SECRET)


class Torn:
    """A frame that breaks off in the middle of its rows."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError(SECRET)


class OddText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def torn_gzip(folder: Path) -> Path:
    path = folder / "torn.csv.gz"
    path.write_bytes(gzip.compress(b"k\n" + b"".join(b"Alice Secret %d\n" % i for i in range(9999)))[:-99])
    return path


def torn_parquet(folder: Path) -> Path:
    path = folder / "torn.parquet"
    path.write_text(SECRET)
    return path


def written(folder: Path, content: bytes) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(content)
    return path


def failing_answer(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[Any]:
        rows = [SECRET]
        try:
            raise ValueError(rows)
        except ValueError as error:
            raise RuntimeError(SECRET) from error

    monkeypatch.setattr(DuckDBPrepared, "_fetch", fail)
    with prepare(PrivateTable({"k": [SECRET]}, columns={"k": Text()})) as prepared:
        prepared.aggregate(Aggregation(prepared))


def odd_codes(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBPrepared, "_fetch", lambda *_: [[SECRET]])
    with prepare(PrivateTable({"k": [SECRET]}, columns={"k": Text()})) as prepared:
        prepared.aggregate(Aggregation(prepared))


REFUSALS: dict[str, Callable[[Path, pytest.MonkeyPatch], Any]] = {
    "torn gzip": lambda folder, _: prepare(PrivateTable(torn_gzip(folder), columns={"k": Text()})),
    "torn parquet": lambda folder, _: PrivateTable(torn_parquet(folder), columns={"k": Text()}),
    "header not UTF-8": lambda folder, _: PrivateTable(written(folder, b"\xffAlice Secret\n"), columns={"k": Text()}),
    "torn frame": lambda *_: PrivateTable(Torn(), columns={"k": Text()}),
    "odd source": lambda *_: PrivateTable({"k": Odd()}, columns={"k": Text()}),
    "odd value": lambda *_: PrivateTable({"k": [OddText(SECRET)]}, columns={"k": Text()}),
    "unequal lists": lambda *_: PrivateTable({"k": [SECRET], "j": []}, columns={"k": Text()}),
    "public": lambda *_: PublicTable({"k": [SECRET], "j": []}),
    "unknown column": lambda *_: PrivateTable({"k": [SECRET]}, columns={"j": Text()}),
    "wrong kind": lambda *_: PrivateTable({"k": [SECRET], "n": np.array([1])}, columns={"n": Category([SECRET[0]])}),
    "asked column": lambda *_: PrivateTable({"k": [SECRET]}, columns={"k": Text()}).column("j"),
    "wrong unit": lambda *_: PrivateTable({"k": [SECRET]}, columns={"k": Text()}, unit="j", max_rows=1),
    "failing answer": failing_answer,
    "odd codes": odd_codes,
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_carries_no_rows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CloisterError) as caught:
        REFUSALS[name](tmp_path, monkeypatch)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in str(error) + repr(error.args)
    frame = error.__traceback__
    while frame is not None:
        if Path(frame.tb_frame.f_code.co_filename).name != Path(__file__).name:
            for local, value in frame.tb_frame.f_locals.items():
                if local != "self":  # a table that could not be made has nothing to show, and no way to show it
                    assert SECRET not in repr(value), (frame.tb_frame.f_code.co_name, local)
        frame = frame.tb_next


def test_the_owner_may_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[BaseException] = []
    monkeypatch.setattr(guard, "owner_debug", said.append)
    with pytest.raises(EngineError, match="could not be read"):
        PrivateTable({"k": [OddText(SECRET)]}, columns={"k": Text()})
    assert [str(each) for each in said] == [SECRET]


def test_a_refusal_inside_a_refusal_keeps_its_own_words() -> None:
    def work() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise EngineError("This was refused", why="for a reason") from None

    with pytest.raises(EngineError, match="for a reason") as caught:
        guard.guarded("Another", work)
    assert caught.value.__context__ is None


def test_sources_know_the_object_and_the_state_they_came_from(tmp_path: Path) -> None:
    lists, frame = {"k": [1]}, pyarrow.table({"k": [1]})
    for given in (lists, frame):
        one, two = (PrivateTable(given, columns={"k": Integer(0, 9)}).source for _ in range(2))
        assert one.origin is two.origin is given
        assert one.state() is None
    path = written(tmp_path, b"k\n1\n")
    source = PrivateTable(path, columns={"k": Integer(0, 9)}).source
    before = source.state()
    assert source.origin is None
    assert before is not None
    assert before == source.state()
    written(tmp_path, b"k\n1\n2\n")
    assert before != source.state()
    path.unlink()
    assert source.state() is None


def test_every_database_is_opened_where_its_settings_are_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One place calls DuckDB, whose own settings would fetch extensions, and spill rows into the current folder."""
    package = Path(connection.__file__).parents[2]
    opening = [path.name for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text(encoding="utf-8")]
    assert opening == ["connection.py"]
    monkeypatch.chdir(tmp_path)
    with connection.connected(settings={"memory_limit": "8MB", "threads": 1}) as opened:
        names = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions", "enable_progress_bar")
        asked = ", ".join(f"current_setting('{name}')" for name in names)
        assert opened.execute(f"SELECT {asked}").fetchone() == (False,) * 4
        with pytest.raises(duckdb.OutOfMemoryException):
            opened.execute("CREATE TABLE t AS SELECT random() AS x FROM range(10_000_000) ORDER BY x")
    assert not list(tmp_path.iterdir()), "rows were spilled"


INTERRUPTED = """
import os, signal, threading
import duckdb
from cloister.tables.engines.guard import guarded

connection = duckdb.connect(config={"threads": 1})
clock = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
try:
    clock.start()
    guarded("It stopped", lambda: connection.execute("SELECT sum(sin(i)) FROM range(100000000) t(i)").fetchall())
    clock.join()  # the machine was quick: then it comes here
except KeyboardInterrupt as stopped:
    print("stopped", stopped.__cause__, stopped.__context__)
"""


def test_an_interruption_in_the_engine_is_one() -> None:
    """DuckDB says RuntimeError of it: a loop that goes on behind refusals went on behind the notebook's stop button."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False)
    assert done.stdout == "stopped None None\n", done.stderr
