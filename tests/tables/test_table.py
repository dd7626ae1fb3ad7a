"""Declarations of tables: everything wrong is found when they are written, from the schema alone."""

from __future__ import annotations

import datetime
import json
import warnings
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

from cloister.errors import CloisterError, EngineError, InvalidDeclaration, MissingBound, UnknownColumn
from cloister.privacy import PureDP
from cloister.query import Session
from cloister.tables import (
    Aggregate,
    Aggregation,
    Boolean,
    Category,
    Date,
    Identifier,
    Integer,
    PrivateTable,
    PublicTable,
    Real,
    Text,
    prepare,
)
from cloister.tables.sourcing import sources
from cloister.tables.sourcing.source_factory import recognise

ROWS: dict[str, list[Any]] = {
    "age": [39, 51, None],
    "name": ["Ann", "Bob", None],
    "pay": [1.5, None, 2.5],
    "ok": [True, False, None],
}
COLUMNS = {"age": Integer(0, 120), "name": Text(), "pay": Real(0, 10, step="0.5"), "ok": Boolean()}


def sums(source: Any) -> dict[str, int]:
    """Three exact numbers that every source of the same rows must give."""
    with prepare(PrivateTable(source, columns=COLUMNS)) as prepared:
        asked = (
            Aggregate("age", "sum", (("age", 0),)),
            Aggregate("pay", "sum", (("pay", 0),)),
            Aggregate("names", "values", (("name", 0),)),
        )
        groups = prepared.aggregate(Aggregation(prepared, aggregates=(*asked, Aggregate("ok", "sum", (("ok", 0),)))))
        return {name: int(values[0]) for name, values in groups.values.items()}


def test_every_source_gives_the_same_rows(tmp_path: Path) -> None:
    frame = pandas.DataFrame(ROWS)
    arrow = pyarrow.table(ROWS)
    csv, parquet, awkward = tmp_path / "rows.csv", tmp_path / "it's [a] * file.parquet", tmp_path / "semi.txt"
    csv.write_text('\ufeffage,name,pay,ok\r\n39,Ann,1.5,yes\r\n51,"Bob",,No\r\n,,2.5,\r\n', encoding="utf-8")
    awkward.write_text("age;name;pay;ok\n39;Ann;1.5;T\n51;Bob;NA;F\nNA;;2.5;NA\n", encoding="utf-8")
    pyarrow.parquet.write_table(arrow, parquet)
    import arro3.core

    sources = {
        "lists": ROWS,
        "arrays": {name: np.array(values, dtype=object) for name, values in ROWS.items()},
        "masked": {**ROWS, "age": np.ma.masked_array([39, 51, 7], [False, False, True])},
        "pandas": frame,
        "pandas nullable": frame.convert_dtypes(),
        "pandas categorical": frame.assign(name=frame["name"].astype("category")),
        "polars": polars.DataFrame(ROWS),
        "pyarrow": arrow,
        "arro3": arro3.core.Table.from_arrow(arrow),
        "reader": arrow.to_reader(),
        "csv": csv,
        "csv by name": str(csv),
        "semicolons": awkward,
        "parquet": parquet,
    }
    for name, source in sources.items():
        assert sums(source) == {"age": 90, "pay": 8, "names": 2, "ok": 1}, name


@pytest.mark.filterwarnings("ignore")
def test_ibis_tables_of_duckdb() -> None:
    import ibis

    table = ibis.duckdb.connect().create_table("rows", pyarrow.table(ROWS))
    for source in (table, table.filter(table.pay.isnull() | (table.pay > 0)), ibis.memtable(pyarrow.table(ROWS))):
        assert recognise(source).schema == {"age": "integer", "name": "text", "pay": "float", "ok": "boolean"}
        assert sums(source) == {"age": 90, "pay": 8, "names": 2, "ok": 1}


def test_a_pandas_frame_without_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pandas.DataFrame, "__arrow_c_stream__", refuse)
    assert sums(pandas.DataFrame(ROWS)) == {"age": 90, "pay": 8, "names": 2, "ok": 1}


def test_numpy_kinds() -> None:
    source = {
        "u": np.array([1, 2**63], dtype=np.uint64),
        "i": np.array([1, -128], dtype=np.int8),
        "f": np.array([0.5, np.nan], dtype=np.float32),
        "d": np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]"),
        "t": np.array(["a", "b"]),
        "big": [10**30, None],
        "mixed": [1, 2.5],
    }
    table = PrivateTable(
        source,
        columns={
            "u": Integer(0, 9), "i": Integer(-9, 9), "f": Real(0, 1), "d": Date("2019-01-01", "2021-01-01"),
            "t": Category(["a"]), "big": Integer(0, 9),
            "mixed": Real(0, 9, step="0.5"),
        },
    )  # fmt: skip
    with prepare(table) as prepared:
        rows = {name: codes.tolist() for name, codes in prepared.rows(list(table.columns)).items()}
    assert sorted(rows["u"]) == [1, 9]
    assert sorted(rows["i"]) == [-9, 1]
    assert sorted(rows["f"]) == [500_000, 1_000_001]
    assert sorted(rows["d"]) == [18262, 18629]
    assert sorted(rows["t"]) == [0, 1]
    assert sorted(rows["big"]) == [9, 10]
    assert sorted(rows["mixed"]) == [2, 5]


DECLARED = {
    "integer": Integer(0, 100),
    "real": Real(0, 10, step="0.5"),
    "date": Date("2000-01-01", "2026-12-31"),
    "boolean": Boolean(),
    "texts": Category(["a", "2020-01-01", "1"]),
    "numbers": Category([1, 2]),
    "truths": Category([True, False]),
    "text": Text(),
}
ONE_ROW = (datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 9), 1, 1.5, "a", True, Decimal("1.5"), 10**400, object(), [1])


FRAMES = pytest.mark.parametrize(
    "frame", [dict, lambda rows: pandas.DataFrame({k: pandas.Series(v, dtype=object) for k, v in rows.items()})]
)


@cache
def codes_beside_other_types(name: str, place: int) -> frozenset[int]:
    """What the column gives where one value of `ONE_ROW` stands beside values of other types: the same for every frame."""
    rows = {"x": [None, ONE_ROW[place], "among texts", 17.25, datetime.date(1900, 1, 1)]}
    with prepare(PrivateTable(rows, columns={"x": DECLARED[name]})) as prepared:
        return frozenset(prepared.rows(["x"])["x"].tolist())


@FRAMES
@pytest.mark.parametrize("name", DECLARED)
def test_whether_a_column_of_objects_opens_does_not_depend_on_a_row(name: str, frame: Any) -> None:
    """Two worlds: a value is there or missing. It is read as it is beside values of other types."""
    declared = {"columns": {"x": DECLARED[name]}}
    nobody = PrivateTable(frame({"x": [None, None]}), **declared)
    for place, value in enumerate(ONE_ROW):
        table = PrivateTable(frame({"x": [None, value]}), **declared)
        assert table.describe() == nobody.describe()
        with prepare(table) as prepared:
            codes = prepared.rows(["x"])["x"].tolist()
        assert set(codes) <= codes_beside_other_types(name, place), value


@FRAMES
@pytest.mark.parametrize("value", ONE_ROW, ids=lambda value: type(value).__name__)
def test_whether_a_unit_or_a_day_of_objects_opens_does_not_depend_on_a_row(value: Any, frame: Any) -> None:
    columns = {"x": Integer(0, 9)}
    PrivateTable(frame({"x": [1, 2], "p": [None, value]}), columns=columns, unit="p", max_rows=1)
    PrivateTable(frame({"x": [1, 2], "day": [None, value]}), columns=columns, during=("day", "2020-01-01", "2020-12-31"))


def test_each_value_of_a_column_of_objects_is_read_under_its_declaration() -> None:
    rows = {"day": [None, 20200101, True], "sex": [1, 2, None], "n": [datetime.date(2020, 1, 1), None, None]}
    table = PrivateTable(
        rows, columns={"day": Date("2000-01-01", "2026-12-31"), "sex": Category(["1", "F"]), "n": Integer(0, 100)}
    )
    with prepare(table) as prepared:
        codes = {name: values.tolist() for name, values in prepared.rows(list(rows)).items()}
    missing = {name: domain.high_code + 1 for name, domain in table.columns.items()}
    assert codes["sex"] == [0, missing["sex"], missing["sex"]]
    assert codes["day"] == [missing["day"]] * 3
    assert codes["n"] == [missing["n"]] * 3


def test_kinds_of_columns_that_a_frame_alone_has() -> None:
    """A column of nothing in polars; half floats and periods in pandas, a period as the moment when it begins."""
    nothing = polars.DataFrame({"x": [None, None], "y": [1, 2]})
    for declared in (Integer(0, 9), Category(["a"]), Date("2020-01-01", "2021-01-01"), Boolean()):
        session = Session({"t": PrivateTable(nothing, columns={"x": declared, "y": Integer(0, 9)})}, budget=PureDP(10**9))
        assert [*map(tuple, session.sql("SELECT COUNT(*), COUNT(x), SUM(y) FROM t", spend=10**8))] == [(2, 0, 3)]
    odd = pandas.DataFrame(
        {"half": np.array([1, 2.5, np.nan], dtype="float16"), "month": pandas.PeriodIndex(["2020-02", None, "2020-05"], freq="M")}
    )
    columns = {"half": Real(0, 9), "month": Date("2020-01-01", "2021-01-01")}
    session = Session({"t": PrivateTable(odd, columns=columns)}, budget=PureDP(10**9))
    asked = "SELECT COUNT(half), COUNT(month), COUNT(*) FILTER (WHERE month = DATE '2020-05-01') FROM t"
    assert [*map(tuple, session.sql(asked, spend=10**8))] == [(2, 2, 1)]
    with pytest.raises(InvalidDeclaration, match="the source holds times"):
        PrivateTable(odd, columns={"month": Integer(0, 900)})


TYPED = polars.DataFrame(ROWS)
WRONG: list[tuple[dict[str, Any], type[CloisterError], str]] = [
    ({"columns": {}}, InvalidDeclaration, "no columns"),
    ({"columns": {"agee": Integer(0, 1)}}, UnknownColumn, "only 'age'"),
    ({"columns": {"age": Integer}}, InvalidDeclaration, "not a declaration"),
    ({"columns": {"age": "integer"}}, InvalidDeclaration, "not a declaration"),
    ({"columns": {"age": Text()}, "source": TYPED}, InvalidDeclaration, "declared text and the source holds whole numbers"),
    ({"columns": {"age": Date("2020-01-01", "2021-01-01")}, "source": TYPED}, InvalidDeclaration, "declared date"),
    ({"columns": {"ok": Integer(0, 1)}, "source": TYPED}, InvalidDeclaration, "truth values"),
    ({"columns": {"pay": Category(["1.5"])}, "source": TYPED}, InvalidDeclaration, "declared category"),
    ({"columns": {"age": Category(["39"])}, "source": TYPED}, InvalidDeclaration, "declared category"),
    ({"columns": {"ok": Category([1])}, "source": TYPED}, InvalidDeclaration, "declared category"),
    ({"unit": "who", "max_rows": 3}, UnknownColumn, "who"),
    ({"unit": "name"}, MissingBound, "max_rows=10"),
    ({"unit": "name", "max_rows": 0}, InvalidDeclaration, "max_rows"),
    ({"unit": "name", "max_rows": -1}, InvalidDeclaration, "max_rows"),
    ({"unit": "name", "max_rows": 2.0}, InvalidDeclaration, "max_rows"),
    ({"unit": "name", "max_rows": True}, InvalidDeclaration, "max_rows"),
    ({"max_rows": 3}, InvalidDeclaration, "one row is one person"),
    ({"size": -1}, InvalidDeclaration, "size"),
    ({"population": ""}, InvalidDeclaration, "population"),
    ({"version": 3}, InvalidDeclaration, "version"),
]


@pytest.mark.parametrize(("wrong", "kind", "why"), WRONG)
def test_a_wrong_table_is_refused_when_it_is_declared(wrong: dict[str, Any], kind: type[CloisterError], why: str) -> None:
    with pytest.raises(kind, match=why) as caught:
        PrivateTable(**{"source": ROWS, "columns": COLUMNS, **wrong})
    assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        (pandas.Series([39], name="age"), "series.to_frame()"),
        (polars.Series("age", [39]), "series.to_frame()"),
        (TYPED.lazy(), "frame.collect()"),
        ([{"age": 39}], '{"age": [39, 50], "sex": ["F", "M"]}'),
        (
            polars.DataFrame({"age": polars.Series([39], dtype=polars.Int128)}),
            "columns of common types, such as int64, float64 and texts",
        ),
    ],
)
def test_a_source_that_is_nearly_one_is_refused_with_the_line_that_makes_it_one(source: Any, instead: str) -> None:
    with pytest.raises(CloisterError) as caught:
        PrivateTable(source, columns={"age": Integer(0, 99)})
    assert caught.value.instead == instead


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({}, "no columns"),
        ({"a": [1], "b": [1, 2]}, "unequal length"),
        ({"a": 3}, "not a list"),
        ({"a": "abc"}, "not a list"),
        ({"a": np.zeros((2, 2))}, "one dimension"),
        ({"a": [1], "A": [2]}, "two of its columns"),
        ({"": [1]}, "no name"),
        (3, "type int"),
        ("no/such/file.csv", "'file.csv' is invalid: there is no such file"),
        ("postgresql://u@h/db", "names no table"),
    ],
)
def test_a_wrong_source_is_refused(source: Any, why: str) -> None:
    with pytest.raises(InvalidDeclaration, match=why):
        recognise(source)


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("not parquet")
    with pytest.raises(EngineError, match="could not be read"):
        recognise(tmp_path / "x.parquet")
    for names in (["a", "a"], ["age", "Age", "AGE_1"]):
        twice = pyarrow.Table.from_arrays([pyarrow.array([1])] * len(names), names=names)
        pyarrow.parquet.write_table(twice, tmp_path / "twice.parquet")
        with pytest.raises(InvalidDeclaration, match=f"two of its columns are named '{names[0]}'"):
            recognise(tmp_path / "twice.parquet")
    (tmp_path / "x.csv").write_text("a,a\n1,2\n")
    with pytest.raises(InvalidDeclaration, match="two of its columns"):
        recognise(tmp_path / "x.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidDeclaration, match="no columns"):
        recognise(tmp_path / "empty.csv")
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(InvalidDeclaration, match=r"\.csv nor \.parquet"):
        recognise(tmp_path / "x.xlsx")


def test_a_csv_schema_does_not_depend_on_its_rows(tmp_path: Path) -> None:
    numbers, words = tmp_path / "numbers.csv", tmp_path / "words.csv"
    numbers.write_text("a,b\n1,2\n")
    words.write_text("a,b\nx,'y'\n")
    assert recognise(numbers).schema == recognise(words).schema == {"a": "text", "b": "text"}


def test_a_description_is_public_and_plain(tmp_path: Path) -> None:
    path = tmp_path / "secret-place.csv"
    path.write_text("age,p\n39,Ann\n")
    table = PrivateTable(
        path, columns={"age": Integer(0, 120)}, unit="p", max_rows=2, population="staff", size=100, version="2026"
    )
    told = json.dumps(table.describe())
    assert json.loads(told) == table.describe()
    assert "secret-place" not in told + repr(table)
    assert "Ann" not in told + repr(table)
    with pytest.raises(AttributeError, match="frozen"):
        table.max_rows = 99


def test_an_undeclared_column_of_a_table_is_unknown() -> None:
    with pytest.raises(UnknownColumn, match="declared are 'age'"):
        PrivateTable(ROWS, columns={"age": Integer(0, 9)}).column("name")


def test_public_tables() -> None:
    towns = PublicTable({"town": ["Delft"], "people": [106_000]})
    assert towns.names == ("town", "people")
    assert json.loads(json.dumps(towns.describe()))["schema"] == {"town": "text", "people": "integer"}
    assert PublicTable({"town": ["Delft"], "x": [1]}, columns={"town": Text()}).names == ("town",)
    with pytest.raises(UnknownColumn):
        PublicTable({"town": ["Delft"]}, columns={"twon": Text()})


def test_a_list_of_several_types_is_read_value_by_value() -> None:
    source = {"x": [1, None, 2.5, "7", "no", True, object(), float("nan"), float("inf"), 10**30, 400]}
    with prepare(PrivateTable(source, columns={"x": Integer(0, 120)}), secret="0") as prepared:
        null = Integer(0, 120).null_code
        assert sorted(prepared.rows(["x"])["x"].tolist()) == [1, 3, 7, 120, 120, *[null] * 6]


@pytest.mark.parametrize(
    "values",
    [
        ["a", ""],
        ["NaT", "x"],
        ["NaT"],
        ["\0", "ok"],
        ["\ud800"],
        [2**63 - 1, -(2**63)],
        [2**63, 1],
        [1.5, float("nan"), float("-inf"), -0.0],
        [float("nan")],
        [True, False],
        [None, "a"],
        [],
    ],
    ids=repr,
)
def test_a_list_of_one_type_is_read_as_value_by_value(values: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, kind = sources._array("x", values)
    monkeypatch.setattr(sources, "_of_one_type", lambda items: None)
    one_by_one, same = sources._array("x", values)
    assert (kind, at_once.type, repr(at_once.to_pylist())) == (same, one_by_one.type, repr(one_by_one.to_pylist()))


def test_whole_and_real_numbers_together_stay_numbers() -> None:
    assert recognise({"x": [1, None, 2.5]}).schema == {"x": "float"}


@pytest.mark.parametrize("unit", [[], [None, None]])
def test_a_unit_column_without_a_value_is_a_table_without_persons(unit: list[None]) -> None:
    table = PrivateTable({"who": unit, "x": [1] * len(unit)}, columns={"x": Integer(0, 9)}, unit="who", max_rows=2)
    with prepare(table) as prepared:
        assert prepared.aggregate(Aggregation(prepared)).values["rows"].tolist() == [0]


def test_the_same_file_is_known_again(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    assert recognise(path).identity() == recognise(str(tmp_path / "link.csv")).identity() is not None
    assert recognise({"x": [1]}).identity() is None


def test_a_table_of_events_is_warned_of_by_name() -> None:
    """An identifier and no unit: each row would be protected, and not whoever has several."""
    rows = {"visit": ["a", "a", "b"], "who": ["p", "p", "q"]}
    with pytest.warns(UserWarning, match="'visit' may name events.*row_is_person=True"):
        PrivateTable(rows, columns={"visit": Identifier()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = PrivateTable(rows, columns={"visit": Identifier()}, row_is_person=True)
        PrivateTable(rows, columns={"visit": Identifier()}, unit="who", max_rows=2)
        PrivateTable(rows, columns={"visit": Text()})
        with Session({"visits": table}, budget=PureDP(1)) as session:
            session.sql("SELECT COUNT(*) AS n FROM visits", spend="0.5")
            session.sql("SELECT COUNT(*) AS n FROM visits", spend="0.5", rehearse=True)


@pytest.mark.parametrize(("unit", "expected"), [(None, {"visit": (2, 3)}), ("who", {"who": (3, 2), "visit": (2, 3)})])
def test_the_owner_learns_how_many_units_there_are_and_how_full_the_fullest_is(
    unit: str | None, expected: dict[str, tuple[int, int]]
) -> None:
    """As the rows were given, before the cap; what names nobody is counted nowhere."""
    rows = {"visit": ["a", "a", "b", None, "a"], "who": ["p", "p", "q", "r", None]}
    whose: dict[str, Any] = {"row_is_person": True} if unit is None else {"unit": unit, "max_rows": 1}
    with prepare(PrivateTable(rows, columns={"visit": Identifier()}, **whose)) as prepared:
        report = prepared.owner_report()
    assert {name: (each.units, each.fullest) for name, each in report.units.items()} == expected
