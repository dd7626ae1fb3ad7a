"""Public tables: what their columns are taken for, and which of their values equal a private one."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.errors import MissingBound, UnsupportedQuery
from cloister.tables import (
    Aggregation,
    Base,
    Boolean,
    Category,
    Date,
    Domain,
    Extended,
    Identifier,
    In,
    Integer,
    PrivateTable,
    PublicJoined,
    PublicTable,
    Real,
    Text,
    prepare,
    relate,
)
from cloister.tables.expression.scalars import Case, Const, Ref
from cloister.tables.relations import public, public_values
from cloister.tables.relations.public import exact_code, public_codes
from cloister.tables.sourcing.encrypted import EncryptedSource, write_encrypted

DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([3, 1, 2], Integer(1, 3)),
        ([3, None, 3], Integer(3, 3, nullable=True)),
        ([3.0, 1.0], Integer(1, 3)),
        ([0.25, -1.5], Real("-1.5", "0.25", step="0.01")),
        ([0.5], Real("0.5", "0.6", step="0.1")),
        (["b", "a", "b"], Category(["a", "b"])),
        (["02134", "10115"], Category(["02134", "10115"])),
        ([True, False], Boolean()),
        ([DAY, None, datetime.date(2020, 1, 1)], Date("2020-01-01", "2024-02-29", nullable=True)),
        ([datetime.datetime(2024, 2, 29, 12), datetime.datetime(2024, 2, 29)], Date("2024-02-29", "2024-02-29")),
        ([datetime.datetime(2024, 2, 29, 12), DAY], Category(["2024-02-29", "2024-02-29 12:00:00"])),  # of two types: texts
    ],
    ids=repr,
)
def test_what_the_values_are(values: list[Any], domain: Domain) -> None:
    table = PublicTable({"key": ["k"] * len(values), "x": values})
    [found] = public_codes("t", table, [(Category(["k"]), "key")], ["x"]).domains
    assert found.describe() == domain.describe()


@pytest.mark.parametrize(
    ("texts", "domain"),
    [
        (["3", "-1", ""], Integer(-1, 3, nullable=True)),
        (["3.50", "1"], Real(1, "3.5", step="0.1")),
        (["02134", "10115"], Category(["02134", "10115"])),
        (["2024-02-29", "2020-01-01"], Date("2020-01-01", "2024-02-29")),
        (["2024-02-30", "2020-01-01"], Category(["2020-01-01", "2024-02-30"])),
        (["1e3", "2"], Category(["1e3", "2"])),
    ],
    ids=repr,
)
def test_what_the_texts_of_a_csv_file_are(texts: list[str], domain: Domain, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("key,x\n" + "".join(f"k,{text}\n" for text in texts))
    write_encrypted(path, tmp_path / "t.sealed", bytes(32))
    for source in (path, EncryptedSource(tmp_path / "t.sealed", bytes(32))):
        [found] = public_codes("t", PublicTable(source), [(Category(["k"]), "key")], ["x"]).domains
        assert found.describe() == domain.describe()


@pytest.mark.parametrize("values", [[0.1234567], [1e300], [None, None]], ids=repr)
def test_what_must_be_declared(values: list[Any]) -> None:
    table = PublicTable({"key": ["k"] * len(values), "x": values})
    with pytest.raises(MissingBound, match="'x'") as caught:
        _ = public_codes("t", table, [(Category(["k"]), "key")], ["x"])
    assert "columns=" in caught.value.instead


def test_a_declared_column_is_read_as_declared() -> None:
    table = PublicTable(
        {"key": [1, 2, 3], "x": [0.1234567, 99.0, None]}, columns={"key": Integer(0, 9), "x": Real(0, 1, step="0.1")}
    )
    found = public_codes("t", table, [(Integer(0, 9), "key")], ["x"])
    assert found.payload[0].tolist() == [1, 10, 11]


@pytest.mark.parametrize(
    ("domain", "value", "code"),
    [
        (Integer(0, 120), 120, 120),
        (Integer(0, 120), 121, None),
        (Integer(0, 120), -1, None),
        (Integer(0, 120), 3.5, None),
        (Integer(0, 120), "7", 7),
        (Integer(0, 120), "seven", None),
        (Real(0, 1, step="0.1"), 0.3, 3),
        (Real(0, 1, step="0.1"), 0.31, None),
        (Real(0, 1, step="0.1"), 1, 10),
        (Real(0, 1, step="0.1"), 2, None),
        (Category(["a", "b"]), "b", 1),
        (Category(["a", "b"]), "B", None),
        (Category([1, 2]), 2, 1),
        (Category([1, 2]), 2.5, None),
        (Boolean(), True, 1),
        (Date("2020-01-01", "2024-12-31"), DAY, (DAY - datetime.date(1970, 1, 1)).days),
        (Date("2020-01-01", "2023-12-31"), DAY, None),
        (Text(), "a", "a"),
        (Text(), 7, None),
        (Identifier(), 7, "7"),
        (Identifier(), 7.0, "7"),
        (Identifier(), "v", "v"),
        (Integer(0, 120), None, None),
        (Integer(0, 120), float("nan"), None),
    ],
    ids=repr,
)
def test_only_exact_values_have_a_code(domain: Domain, value: Any, code: Any) -> None:
    assert exact_code(domain, value) == code


def test_rows_that_match_nothing_are_left_out_and_the_rest_is_numbered() -> None:
    table = PublicTable({"age": [400, 3, None, 3, 4], "sex": ["F", "F", "F", "F", "X"], "x": list("abcde")})
    found = public_codes("t", table, [(Integer(0, 120), "age"), (Category(["F", "M"]), "sex")], ["x"])
    assert (found.rows(), found.multiplicity) == ([(3, 0, 1, 1), (3, 0, 3, 2)], 2)


def test_a_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, key = PublicTable({"key": ["k"], "x": [1]}), [(Category(["k"]), "key")]
    first = public_codes("t", table, key, ["x"])
    assert public_codes("u", table, key, ["x"]) is first
    assert public_codes("t", PublicTable({"key": ["k"], "x": [1]}), key, ["x"]).digest == first.digest
    assert public_codes("t", PublicTable({"key": ["k"], "x": [2]}), key, ["x"]).digest != first.digest


def test_of_many_forms_of_one_table_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and where it was brought to the engine: a hub that asks for ever more forms fills neither."""
    monkeypatch.setattr("cloister.tables.relations.public._MOST_KNOWN", 3)
    monkeypatch.setattr("cloister.tables.engines.engine._MOST_PUBLIC", 3)
    towns = PublicTable({"name": [*"abcdef"], "people": [1, 2, 3, 4, 5, 6]})
    people = PrivateTable({"town": [*"abcdef"]}, {"town": Category([*"abcdef"])})
    with prepare(people) as rows:
        for last in range(1, 7):
            lived = Category([*"abcdef"[:last]])
            kept = Extended(
                source=Base(name="people", table=people),
                scalars=(("home", Case(((In("town", list(lived.options)), Ref("town")),), Const("a"))), ("n", Const(last))),
            )
            joined = PublicJoined(source=kept, name="towns", table=towns, on=(("home", "name"), ("n", "people")), columns=())
            assert relate(joined, {"people": rows}, {"towns": towns}).aggregate(Aggregation(None)).values["rows"][0] >= 1
        assert len([key for key in rows._sites if isinstance(key, str)]) == 3
        assert len(public._KNOWN[towns]) == 3


def test_a_table_of_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_values, "_MOST_ROWS", 2)
    with pytest.raises(UnsupportedQuery, match="more than 2 rows"):
        public_codes("t", PublicTable({"key": ["k"] * 3}), [(Category(["k"]), "key")], [])


@pytest.mark.parametrize("sealed", [False, True])
def test_decimals_too_fine_for_steps_stay_texts(tmp_path: Path, sealed: bool) -> None:
    """Where a place lies says nothing against a question about its name."""
    (tmp_path / "towns.csv").write_text("town,longitude\nDelft,4.3570677001\nGouda,4.7\n", encoding="utf-8")
    source: Any = str(tmp_path / "towns.csv")
    if sealed:
        write_encrypted(source, tmp_path / "towns.sealed", bytes(32))
        source = EncryptedSource(tmp_path / "towns.sealed", bytes(32))
    people = cl.PrivateTable({"town": ["Delft", "Gouda", "Gouda"]}, columns={"town": cl.Category(["Delft", "Gouda"])})
    with cl.Session({"people": people, "towns": cl.PublicTable(source)}, budget=cl.PureDP(10**9)) as session:
        found = session.sql("SELECT longitude, COUNT(*) AS n FROM people JOIN towns USING (town) GROUP BY longitude", spend=10**6)
    assert found.to_pydict() == {"longitude": ["4.3570677001", "4.7"], "n": [1, 2]}
