"""What a value is read as follows from the value and its declaration: never from what stands beside it. Else one person's value
would move everybody's rows, by as much as there are people, whatever noise is added."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import arro3.core
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cloister as cl
from cloister.tables.engines.compiler import RELATION
from cloister.tables.engines.duckdb import DuckDBEngine
from cloister.tables.engines.workspace import Workspace
from cloister.tables.sourcing.sources import from_lists

DOMAINS: dict[str, Any] = {
    "whole": cl.Integer(0, 10),
    "wide": cl.Integer(0, 2**60),
    "real": cl.Real(0, 10),
    "truth": cl.Boolean(),
    "word": cl.Category(["1", "x", "2024-05-01", "2024-05-01 12:30:00", "true", "1.5", "0.1", "1.50"]),
    "code": cl.Category([0, 1, 5]),
    "day": cl.Date("2000-01-01", "2030-01-01"),
    "moment": cl.Moment("2024-05-01T00:00:00", "2024-05-02T00:00:00"),
    "text": cl.Text(),
}
EAST = dt.timezone(dt.timedelta(hours=5))
ALIKE: dict[str, list[Any]] = {
    "integers": [1, 0, 5, 2**53 + 1],
    "huge integers": [1, 2**63, 10**30, 10**5_000],
    "floats": [1.0, 1.5, 0.1, -0.0, 1e22, 1e-7, 2.5],
    "truths": [True, False],
    "texts": ["1", "x", "2024-05-01", "2024-05-01 12:30:00", " 1 ", "yes"],
    "decimals": [Decimal("1.50"), Decimal(1), Decimal("0.1")],
    "days": [dt.date(2024, 5, 1), dt.date.min, dt.date.max],
    "moments": [dt.datetime(2024, 5, 1, 12, 30), dt.datetime(2024, 5, 1, 12, 30, 0, 500)],
    "moments in zones": [dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=EAST)],
    "numpy": [np.float32(0.1), np.int8(1), np.bool_(True)],
}
INTRUDERS: list[Any] = ["x", b"\xff", Decimal(10) ** 60, dt.datetime(2024, 5, 1, 0, 30), 1.5, 10**5_000]
FEWER = INTRUDERS[:3]
MORE: list[Any] = [True, dt.date(2024, 5, 1), Decimal("1.5"), 7, dt.time(1), Fraction(1, 2), float("inf"), None, "\ud800", [1]]
MORE += [pd.Timestamp("2024-05-01 12:30"), dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=5)))]


def read(items: list[Any], kind: str) -> list[Counter[str]]:
    """What each domain makes of the items, in any order; and whose rows they are, were the items people's names."""
    lists = dict.fromkeys(DOMAINS, items)
    source: Any = lists if kind == "lists" else pd.DataFrame({name: pd.Series(items, dtype=object) for name in lists})
    named = {"who": items, "k": [1] * len(items)}
    units: Any = named if kind == "lists" else pd.DataFrame({"who": pd.Series(items, dtype=object), "k": 1})
    found = []
    for table in (cl.PrivateTable(source, DOMAINS), cl.PrivateTable(units, {"k": cl.Integer(0, 2)}, unit="who", max_rows=3)):
        prepared = DuckDBEngine().prepare(table, workspace=Workspace(), secret="s" * 32)
        names = ["unit"] if table.unit else [f"c{place}" for place in range(len(DOMAINS))]
        rows = prepared._connection.execute(f"SELECT {', '.join(names)} FROM {RELATION}").fetchall()
        found += [Counter(map(str, column)) for column in zip(*rows, strict=True)] or [Counter[str]() for _ in names]
        prepared.close()
    return found


READ: dict[tuple[int, str], list[Counter[str]]] = {}


def by_itself(intruder: Any, kind: str) -> list[Counter[str]]:
    """What an intruder is read as alone; read once."""
    key = (id(intruder), kind)
    if key not in READ:
        READ[key] = read([intruder], kind)
    return READ[key]


@pytest.mark.parametrize("alike", ALIKE)
@pytest.mark.parametrize(
    ("kind", "intruders"),
    [
        ("lists", INTRUDERS),
        ("pandas", FEWER),
        pytest.param("lists", MORE, marks=pytest.mark.slow),
        pytest.param("pandas", INTRUDERS[3:] + MORE, marks=pytest.mark.slow),
    ],
)
def test_no_value_moves_another(kind: str, intruders: list[Any], alike: str) -> None:
    alone = read(ALIKE[alike], kind)
    for intruder in intruders:
        beside, itself = read([*ALIKE[alike], intruder], kind), by_itself(intruder, kind)
        for name, one, other, own in zip([*DOMAINS, "unit"], alone, beside, itself, strict=True):
            assert other == one + own, (name, intruder)


def test_no_column_of_a_frame_moves_another() -> None:
    moments = pd.Series(pd.date_range("2024-05-01", periods=40, freq="min", tz="UTC"))
    for beside in (["k"] * 40, ["k"] * 39 + [b"\xff"], ["k"] * 39 + [Decimal(10) ** 60], [{}] * 40, [object()] * 40):
        frame = pd.DataFrame({"who": moments, "x": pd.Series(beside, dtype=object), "n": range(40)})
        table = cl.PrivateTable(frame, {"n": cl.Integer(0, 40)}, unit="who", max_rows=1)
        with cl.Session({"t": table}, budget=cl.PureDP(10**6)) as session:
            found = session.sql("SELECT COUNT(*) AS n, SUM(n) AS s FROM t", spend=10**5).to_pydict()
        assert found == {"n": [40], "s": [780]}


def test_frames_hold_what_lists_hold() -> None:
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 3]}, index=[5, 6, 7])
    frame["c"] = pd.Categorical(["u", "v", "u"])
    frame["c"] = frame["c"].to_numpy()
    for given in (frame, pl.from_pandas(frame.reset_index(drop=True))):
        kinds = {"a": cl.Category(["x", "y"], nullable=True), "b": cl.Integer(0, 5), "c": cl.Category(["u", "v"])}
        with cl.Session({"t": cl.PrivateTable(given, kinds)}, budget=cl.PureDP(10**6)) as session:
            found = session.sql("SELECT COUNT(a) AS a, SUM(b) AS b, COUNT(*) FILTER (WHERE c = 'u') AS c FROM t", spend=10**5)
        assert found.to_pydict() == {"a": [2], "b": [6], "c": [2]}


@pytest.mark.parametrize("kind", ["polars", "pandas", "parquet"])
def test_moments_with_a_zone_are_read_whatever_their_unit(kind: str, tmp_path: Path) -> None:
    moments = [dt.datetime(2026, 1, 1, 0, 30), dt.datetime(1969, 12, 31, 23, 59, 59, 999_000), None]
    read = []
    for unit in ("ms", "us", "ns"):
        given: Any = pl.DataFrame({"at": pl.Series(moments, dtype=pl.Datetime(unit, "Asia/Shanghai")), "n": [1, 2, 3]})  # type: ignore[arg-type]
        if kind == "parquet":
            given.write_parquet(tmp_path / f"{unit}.parquet")
            given = tmp_path / f"{unit}.parquet"
        given = given.to_pandas() if kind == "pandas" else given
        table = cl.PrivateTable(given, {"at": cl.Moment("1960-01-01", "2027-01-01")}, unit="at", max_rows=1)
        with cl.Session({"t": table}, budget=cl.PureDP(10**6)) as session:
            hours = session.sql("SELECT EXTRACT(HOUR FROM at) AS h, COUNT(*) AS n FROM t GROUP BY h", spend=10**4)
            read.append(hours.to_pydict())
        with cl.Session({"t": cl.PublicTable(given)}, budget=cl.PureDP(1)) as session:
            read[-1]["days"] = session.sql("SELECT at FROM t ORDER BY at", spend=1).to_pydict()["at"]
    assert read[0] == read[1] == read[2]


def opened(source: Any, column: str, domain: Any) -> int:
    """How many values of a column fit; a table that does not open fails here."""
    with cl.Session({"t": cl.PrivateTable(source, {column: domain})}, budget=cl.PureDP(10**6)) as session:
        return int(session.sql(f"SELECT COUNT({column}) AS n FROM t", spend=10**5).to_pydict()["n"][0])


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_moment_too_far_away_is_missing(unit: Any, zone: str | None) -> None:
    moments = pa.array([0, 60, None, 2**62, -(2**62)], pa.timestamp(unit, zone))
    known = cl.Moment("1969-12-31T00:00:00", "1970-01-02T00:00:00", nullable=True)
    assert opened(pa.table({"m": moments, "n": list(range(5))}), "m", known) == 2


def test_a_moment_too_far_away_is_missing_beside_days_that_are_declared_as_numbers() -> None:
    moments = pa.array([0, 60, None, 2**62, -(2**62)], pa.timestamp("s", "Europe/Berlin"))
    source = from_lists(
        {"x": [dt.date(2024, 5, 1)] * 5}, "frame", {"m": arro3.core.Table.from_arrow(pa.table({"m": moments})).column(0)}
    )
    kinds: dict[str, Any] = {
        "m": cl.Moment("1970-01-01T00:00:00", "1970-01-01T00:01:00", nullable=True),
        "x": cl.Integer(0, 9, nullable=True),
    }
    with cl.Session({"t": cl.PrivateTable(source, kinds)}, budget=cl.PureDP(10**6)) as session:
        assert session.sql("SELECT COUNT(m) AS n FROM t", spend=10**5).to_pydict() == {"n": [2]}


def test_bytes_that_are_no_text_are_no_option(tmp_path: Path) -> None:
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(np.arange(4, dtype=np.int32)), pa.py_buffer(b"a\xffb"))
    pq.write_table(pa.table({"t": texts}), tmp_path / "t.parquet")
    for source in (pa.table({"t": texts}), tmp_path / "t.parquet"):
        assert opened(source, "t", cl.Category(["a", "b"], nullable=True)) == 2


SQLITE: dict[str, tuple[str, Any, list[Any], list[Any]]] = {
    "whole": ("INTEGER", cl.Integer(0, 10), [1, None, 10], ["x", 1.5, b"\xff", "2024-05-01"]),
    "real": ("REAL", cl.Real(0, 10), [1.5, 2, None], ["x", b"1"]),
    "word": ("TEXT", cl.Category(["a", "5"]), ["a", 5], [b"\xff", "b", 6]),
    "day": ("DATE", cl.Date("2000-01-01", "2030-01-01"), ["2024-05-01"], ["never", 7, b"\xff"]),
    "moment": ("TIMESTAMP", cl.Moment("2024-05-01T00:00:00", "2024-05-02T00:00:00"), ["2024-05-01 10:00:00"], ["x", 1e300]),
    "truth": ("BOOLEAN", cl.Boolean(), [0, 1, True, None], ["x", 2]),
    "tenth": ("DECIMAL(5, 2)", cl.Real(0, 10), [1.25, 3], ["n"]),
}


@pytest.mark.parametrize("name", SQLITE)
def test_sqlite_holds_any_value_in_any_column(name: str, tmp_path: Path) -> None:
    kind, domain, fitting, strange = SQLITE[name]
    with closing(sqlite3.connect(tmp_path / "any.db")) as server:
        server.execute(f"CREATE TABLE people (x {kind})")
        server.executemany("INSERT INTO people VALUES (?)", [(value,) for value in (*fitting, *strange)])
        server.commit()
    backend = ibis.sqlite.connect(tmp_path / "any.db")
    people = backend.table("people")
    for source in (people, people.mutate(y=1)):
        assert opened(source, "x", domain) == len([value for value in fitting if value is not None])
    backend.disconnect()
