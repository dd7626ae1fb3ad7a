"""What a question touches, by brute force: without a column that it touches it cannot be planned, without any other it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.session.state.table_registry import with_columns
from tests.query.hospital import rows, tables

FURTHER = (
    "SELECT COUNT(*) FROM (SELECT patient, ward, cost FROM visits) v WHERE cost > 10",
    "SELECT COUNT(*) FROM (SELECT *, cost * 2 AS double, fee AS idle FROM visits) v WHERE double > 60",
    "SELECT AVG(n) FROM (SELECT patient, COUNT(*) AS n, MAX(fee) AS f FROM visits GROUP BY patient) x",
    "SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits WHERE ward = 'A') u WHERE cost > 3",
    "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY CUBE (sex, town)",
    "SELECT MEDIAN(age) AS m, MODE(town) AS t FROM people WHERE smoker",
    "SELECT COUNT(DISTINCT cost) AS d FROM visits",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n",
)
QUESTIONS = ((Path(__file__).parent / "questions.sql").read_text(encoding="utf-8").strip().splitlines(), FURTHER)


def plannable(declared: dict[str, Any], sql: str) -> bool:
    with cl.Session(declared, budget=cl.ApproxDP(10, "1e-6")) as session:
        try:
            session.explain(sql, spend=1)
        except cl.CloisterError:
            return False
    return True


@pytest.fixture(scope="module")
def declared() -> dict[str, Any]:
    return tables(rows())


@pytest.mark.parametrize("sql", [sql for part in QUESTIONS for sql in part])
def test_without_what_it_touches_it_cannot_be_planned_and_without_all_else_it_can(declared: dict[str, Any], sql: str) -> None:
    with cl.Session(declared, budget=cl.ApproxDP(10, "1e-6")) as session:
        touched = session.touched(sql)
        assert set(session.spent_by.values()) == {cl.ApproxDP(0, 0)}
    assert touched, "it is about some table"
    for name, table in declared.items():
        if not isinstance(table, cl.PrivateTable):
            continue
        read = touched.get(name, frozenset())
        assert read <= table.columns.keys()
        for column in read:
            fewer = {**declared, name: with_columns(table, [each for each in table.columns if each != column])}
            assert not plannable(fewer, sql), (name, column)
        kept = [each for each in table.columns if each in read] or list(table.columns)[:1]
        assert plannable({**declared, name: with_columns(table, kept)}, sql), name


def test_a_table_that_is_not_touched_can_be_left_out(declared: dict[str, Any]) -> None:
    for sql in QUESTIONS[0]:
        with cl.Session(declared, budget=cl.ApproxDP(10, "1e-6")) as session:
            touched = session.touched(sql)
        private = {name for name, table in declared.items() if isinstance(table, cl.PrivateTable)}
        rest = {name: table for name, table in declared.items() if name in touched or name not in private}
        assert plannable(rest, sql), sql


@pytest.mark.parametrize(
    ("sql", "columns", "joined"),
    [
        ("SELECT COUNT(*) FROM people", {"people": set()}, set()),
        ("SELECT SUM(pay) FROM people WHERE age > 30", {"people": {"pay", "age"}}, set()),
        ("SELECT SUM(dose) FROM drugs", {"drugs": {"dose"}, "visits": {"visit"}}, {"drugs", "visits"}),
        (
            "SELECT province, COUNT(*) FROM people JOIN towns ON people.town = towns.town GROUP BY province",
            {"people": {"town"}, "towns": {"town", "province"}},
            {"people", "towns"},
        ),
        (
            "SELECT COUNT(*) FROM patients WHERE patient IN (SELECT patient FROM visits WHERE cost > 50)",
            {"patients": set(), "visits": {"cost"}},
            {"patients", "visits"},
        ),
        (
            "SELECT AVG(t) FROM (SELECT patient, SUM(fee) AS t FROM visits GROUP BY patient, ward) x",
            {"visits": {"fee", "ward"}},
            set(),
        ),
        (
            "SELECT COUNT(*) FROM people WHERE town IN (SELECT town FROM towns)",
            {"people": {"town"}, "towns": {"town"}},
            set(),
        ),
        (
            "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(inhabitants) FROM towns WHERE province = 'ZH')",
            {"people": {"age"}, "towns": {"inhabitants", "province"}},
            set(),
        ),
        (
            "SELECT COUNT(*) FROM people WHERE town IN"
            " (SELECT town FROM towns WHERE inhabitants > (SELECT MIN(inhabitants) FROM towns))",
            {"people": {"town"}, "towns": {"town", "inhabitants"}},
            set(),
        ),
    ],
)
def test_what_is_named(declared: dict[str, Any], sql: str, columns: dict[str, set[str]], joined: set[str]) -> None:
    with cl.Session(declared, budget=cl.PureDP(10)) as session:
        touched = session.touched(sql)
    assert dict(touched) == columns
    assert touched.joined == joined


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM people WHERE town IN (SELECT town FROM towns WHERE province = 'ZH')",
        "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT MAX(inhabitants) FROM towns)",
        "WITH big AS (SELECT town FROM towns WHERE inhabitants > 80)"
        " SELECT COUNT(*) AS n FROM people WHERE town IN (SELECT town FROM big)",
        "SELECT province, COUNT(*) AS n FROM people JOIN towns ON people.town = towns.town GROUP BY province",
    ],
)
def test_who_sees_the_touched_tables_alone_can_ask(declared: dict[str, Any], sql: str) -> None:
    with cl.Session(declared, budget=cl.PureDP(10)) as session:
        touched = session.touched(sql)
        assert "towns" in touched
        ana = session.on_behalf("ana", tables=touched)
        assert ana.sql(sql, spend="0.1").num_rows
        assert ana.touched(sql) == touched
        with pytest.raises(cl.UnknownTable):
            session.on_behalf("bob", tables=[name for name in touched if name != "towns"]).sql(sql, spend="0.1")


class Raced(cl.Session):
    """A session in which another thread reads a text of its own right after each that is read here."""

    other: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, self.other if name == "_last_read" and self.other is not None else value)


def test_what_is_read_is_one_s_own_whatever_another_thread_reads_meanwhile(declared: dict[str, Any]) -> None:
    with Raced(declared, budget=cl.PureDP(10)) as session:
        assert set(session.touched("SELECT SUM(age) AS x FROM people")["people"]) == {"age"}
        session.other = session._last_read
        assert set(session.touched("SELECT SUM(pay) AS x FROM people")["people"]) == {"pay"}
        assert "sum(pay)" in session.explain("SELECT SUM(pay) AS x FROM people", spend=1).names.values()


def test_a_session_without_tables_says_so(tmp_path: Any) -> None:
    with (
        cl.Session({}, ledger=tmp_path / "ledger.db") as session,
        pytest.raises(cl.UnknownTable, match="the session knows no table"),
    ):
        session.touched("SELECT COUNT(*) FROM people")


def test_a_person_s_own_column_counts_only_where_it_is_a_value() -> None:
    visits = cl.PrivateTable(
        {"who": [1, 2], "cost": [3, 4]},
        columns={"who": cl.Integer(0, 9), "cost": cl.Integer(0, 9)},
        unit="who",
        max_rows=2,
    )
    with cl.Session({"visits": visits}, budget=cl.PureDP(10)) as session:
        assert session.touched("SELECT AVG(t) FROM (SELECT who, SUM(cost) AS t FROM visits GROUP BY who) x")["visits"] == {"cost"}
        assert session.touched("SELECT who, COUNT(*) FROM visits GROUP BY who")["visits"] == {"who"}
