"""Whose rows a file holds: by its place on the disk and by what is in it, under whatever name."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.session.state.lineage import SharedRows
from cloister.tables.sourcing.file_lineage import lineage_of
from cloister.tables.sourcing.sources import _tables_below

COLUMNS = {"age": cl.Integer(0, 120)}
ROWS = "age\n" + "".join(f"{20 + each % 60}\n" for each in range(200))


def table(path: str | Path, population: str | None = None) -> cl.PrivateTable:
    return cl.PrivateTable(path, columns=COLUMNS, population=population)


def hard_link(one: Path, other: Path) -> None:
    os.link(one, other)


def hard_link_and_more_rows(one: Path, other: Path) -> None:
    os.link(one, other)
    with one.open("a") as file:
        file.write("30\n")


def copy_in_another_folder(one: Path, other: Path) -> None:
    other.parent.mkdir(exist_ok=True)
    shutil.copy(one, other)


def moved(one: Path, other: Path) -> None:
    one.rename(other)


WAYS: list[Callable[[Path, Path], None]] = [
    hard_link,
    hard_link_and_more_rows,
    copy_in_another_folder,
    moved,
    lambda one, other: other.symlink_to(one),
]


@pytest.mark.parametrize("way", WAYS)
def test_another_name_of_a_file_is_no_other_budget(tmp_path: Path, way: Callable[[Path, Path], None]) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(ROWS)
    ledger = Ledger(tmp_path / "ledger.db")
    with cl.Session({"one": table(one, "p")}, budget=cl.PureDP(1), ledger=ledger):
        pass
    way(one, other)
    with pytest.raises(SharedRows, match="keeps what it has spent"):
        cl.Session({"other": table(other, "q")}, budget=cl.PureDP(1), ledger=ledger)
    with cl.Session({"other": table(other)}, ledger=ledger) as session:
        assert session.ledger.populations() == ["p"]
    assert ledger.verify() is True
    ledger.close()
    if one.exists():
        with pytest.raises(SharedRows):
            cl.Session({"one": table(one, "p"), "other": table(other, "q")}, budget=cl.PureDP(1))


def test_a_path_to_an_open_file_is_the_file(tmp_path: Path) -> None:
    path, link = tmp_path / "one.csv", tmp_path / "opened.csv"
    path.write_text(ROWS)
    with path.open("rb") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        tables = {"one": table(path, "p"), "other": table(link, "q")}
        with pytest.raises(SharedRows):
            cl.Session(tables, budget=cl.PureDP(1))


def test_a_compressed_file_has_copies_too(tmp_path: Path) -> None:
    import gzip

    one, other = tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"
    one.write_bytes(gzip.compress(ROWS.encode(), mtime=0))
    shutil.copy(one, other)
    with pytest.raises(SharedRows):
        cl.Session({"one": table(one, "p"), "other": table(other, "q")}, budget=cl.PureDP(1))


def test_another_file_is_another_population(tmp_path: Path) -> None:
    """Also one that is given the place on the disk of one that is gone."""
    ledger = Ledger(tmp_path / "ledger.db")
    for last, name in enumerate(("one", "two", "three")):
        path = tmp_path / f"{name}.csv"
        path.write_text(ROWS + f"{last}\n")
        with cl.Session({name: table(path)}, budget=cl.PureDP(1), ledger=ledger):
            path.unlink()
    assert ledger.populations() == ["one", "three", "two"]
    ledger.close()


def test_a_long_file_is_known_by_pieces_and_a_copy_of_it_by_all_of_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    one.write_bytes(os.urandom(2**20) * 17)
    shutil.copy(one, other)
    assert len(lineage_of(one) & lineage_of(other)) == 1
    with other.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"abc")
    assert not lineage_of(one) & lineage_of(other)


def test_of_a_long_file_no_more_is_read_the_longer_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opening looks at it: it must not take as long as to read a large table."""
    read: list[int] = []

    class Counted(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            found = super().read(-1 if size is None else size)
            read.append(len(found))
            return found

        def readinto(self, buffer: Any, /) -> int:
            read.append(super().readinto(buffer))
            return read[-1]

    path, sums = tmp_path / "long.csv", []
    path.write_text(ROWS)
    monkeypatch.setattr(Path, "open", lambda self, mode: Counted(self, mode))
    for size in (2**26, 2**28, 2**30):
        os.truncate(path, size)
        read.clear()
        assert lineage_of(path)
        sums.append(sum(read))
    assert 0 < sums[0] == sums[1] == sums[2] <= 2**24


def test_a_file_that_was_written_anew_is_bound_by_what_is_read(tmp_path: Path) -> None:
    """The rows that are prepared are those of the first question, not those of the moment at which the table was declared."""
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(ROWS)
    ledger = Ledger(tmp_path / "ledger.db")
    with cl.Session({"one": table(one)}, budget=cl.PureDP(1), ledger=ledger) as session:
        one.write_text(ROWS + "44\n")
        session.sql("SELECT COUNT(*) AS n FROM one", spend="0.1")
    shutil.copy(one, other)
    with pytest.raises(SharedRows):
        cl.Session({"other": table(other, "q")}, budget=cl.PureDP(1), ledger=ledger)
    with cl.Session({"one": table(one)}, ledger=ledger) as session:
        other.write_text(ROWS + "45\n")
        with cl.Session({"other": table(other, "q")}, budget=cl.PureDP(1), ledger=ledger):
            pass
        shutil.copy(other, one)
        with pytest.raises(SharedRows, match="another population's budget"):
            session.sql("SELECT SUM(age) AS n FROM one", spend="0.1")
        assert session.spent == cl.PureDP("0.1")
    ledger.close()


def test_the_ledger_holds_nothing_that_a_file_could_be_tried_against(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "one.csv"
    path.write_text(ROWS)
    ledger = Ledger(tmp_path / "ledger.db")
    with cl.Session({"one": table(path)}, budget=cl.PureDP(1), ledger=ledger):
        kept = [str(line.payload["source"]) for line in ledger.lines() if line.kind == "bound"]
    ledger.close()
    plain = {hashlib.sha256(each.encode()).hexdigest() for each in lineage_of(path)} | lineage_of(path)
    assert kept
    assert not plain & set(kept)


@pytest.mark.parametrize("form", ["age", "age\n", "\ufeffage\r\n\r\n"])
def test_an_empty_form_is_nobodys(tmp_path: Path, form: str) -> None:
    """Two files that hold a header and no row are two populations, until one is a copy of the other with rows in it."""
    ledger = Ledger(tmp_path / "ledger.db")
    paths = [tmp_path / f"{name}.csv" for name in ("one", "other")]
    for path in paths:
        path.write_text(form)
        with cl.Session({path.stem: table(path)}, budget=cl.PureDP(1), ledger=ledger):
            pass
    assert ledger.populations() == ["one", "other"]
    paths[0].write_text(ROWS)
    with cl.Session({"one": table(paths[0])}, ledger=ledger):
        pass
    shutil.copy(*paths)
    with pytest.raises(SharedRows):
        cl.Session({"other": table(paths[1])}, ledger=ledger)
    ledger.close()


def parquet_of(ages: list[int]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"age": pa.array(ages, pa.int64())}), file)
    return file.getvalue()


def zipped(ages: list[int]) -> bytes:
    half = gzip.compress(b"age\n", mtime=0)  # two members, as programs write that append
    return half + gzip.compress("".join(f"{age}\n" for age in ages).encode(), mtime=0)


@pytest.mark.parametrize(("name", "written"), [("{}.parquet", parquet_of), ("[{}]*.parquet", parquet_of), ("{}.csv.gz", zipped)])
def test_whether_a_compressed_form_is_empty_does_not_show(
    tmp_path: Path, name: str, written: Callable[[list[int]], bytes]
) -> None:
    """With one person more the files differ and are two populations: so they are with nobody in them."""
    lines = []
    for ages in ([], [30]):
        ledger = Ledger(tmp_path / f"{len(ages)}.db")
        for number, content in (("one", written([])), ("other", written(ages))):
            path = tmp_path / f"{len(ages)}{name.format(number)}"
            path.write_bytes(content)
            with cl.Session({number: table(path)}, budget=cl.PureDP(1), ledger=ledger):
                pass
        assert ledger.populations() == ["one", "other"]
        lines.append([line.kind for line in ledger.lines()])
        ledger.close()
    assert lines[0] == lines[1]


def test_a_spark_server_is_known_by_its_addresses() -> None:
    from cloister.tables.engines.spark_connect import SparkConnectSource
    from cloister.tables.engines.spark_connection import SparkPlace

    def lineage(host: str, table: str = "People") -> frozenset[str]:
        source = object.__new__(SparkConnectSource)  # without a server to ask
        source.place = SparkPlace(host=host, port=15002, tls=False, token="", user="u")
        source.table = ("spark_catalog", "default", table)
        return source.lineage()

    assert lineage("localhost") & lineage("127.0.0.1", "people")
    assert not lineage("127.0.0.1") & lineage("127.0.0.1", "visits")
    assert lineage("no.such.host.invalid")


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_an_ibis_table_is_its_database_and_its_name(tmp_path: Path, engine: str) -> None:
    """However it is reached: through a link, another connection, an attached file, a filter. Another table is another."""
    import ibis

    file, link = tmp_path / "people.db", tmp_path / "link.db"
    link.symlink_to(file)

    def opened(path: Path) -> Any:
        return getattr(ibis, engine).connect(path)

    first = opened(file)
    for name in ("people", "others"):
        first.con.execute(f"CREATE TABLE {name} AS SELECT 30 AS age UNION ALL SELECT 40 AS age")
    if engine == "sqlite":
        first.con.commit()
    ledger = Ledger(tmp_path / "ledger.db")
    with cl.Session({"one": table(first.table("people"), "p")}, budget=cl.PureDP(1), ledger=ledger):
        pass
    first.disconnect()
    again = opened(link)
    people = again.table("people")
    for source in (people, people.filter(people.age > 35), people.mutate(age=people.age + 1)):
        with pytest.raises(SharedRows, match="'p'"):
            cl.Session({"two": table(source, "q")}, budget=cl.PureDP(1), ledger=ledger)
    with cl.Session({"three": table(again.table("others"), "r")}, budget=cl.PureDP(1), ledger=ledger):
        pass
    again.disconnect()
    if engine == "duckdb":
        attached = ibis.duckdb.connect()
        attached.attach(str(file), "elsewhere")
        with pytest.raises(SharedRows, match="'p'"):
            cl.Session(
                {"four": table(attached.table("people", database="elsewhere.main"), "q")}, budget=cl.PureDP(1), ledger=ledger
            )


def test_tables_in_memory_have_no_name() -> None:
    import ibis

    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE people AS SELECT 30 AS age")
    assert table(backend.table("people")).source.lineage() == frozenset()
    assert table(ibis.memtable({"age": [30]})).source.lineage() == frozenset()


def test_a_server_of_ibis_is_known_by_its_address_and_not_by_who_asks() -> None:
    import ibis

    made = ibis.table({"age": "int64"}, name="people")

    def lineage(**given: Any) -> set[str]:
        from ibis.expr.operations import DatabaseTable, Namespace

        class Backend:
            name, _con_kwargs, current_database = "mysql", given, "clinic"

        class Given:
            def get_backend(self) -> Backend:
                return found.source

            def op(self) -> DatabaseTable:
                return found

        found = DatabaseTable(name="people", schema=made.schema(), source=Backend(), namespace=Namespace())
        return set(_tables_below(Given()))

    ada = lineage(host="db.example.org", port=3306, user="ada", password="secret", database="clinic")
    assert ada == lineage(host="DB.example.org", port=3306, user="bob", password="other", database="clinic")
    assert ada.isdisjoint(lineage(host="db2.example.org", port=3306, user="ada", password="secret", database="clinic"))
    assert not any("secret" in each or "ada" in each for each in ada)
    assert lineage() == set()
