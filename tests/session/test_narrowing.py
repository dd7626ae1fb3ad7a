"""Conditions narrow the groups of a declared key, from public facts alone; rows without a value are measured and not shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Question
from cloister.tables import And, Base, Between, Column, Compare, Expression, Extended, In, IsNull, Literal, Not, Or
from cloister.tables.expression.scalars import Add, Const, DatePart, Divide, Floor, Multiply, Ref

ROWS = {
    "age": [20, 30, 40, None, 200] * 20,
    "sex": ["F", "M", None, "F", "other"] * 20,
    "day": ["2024-01-05", "2024-02-29", "2025-03-01", None, "2024-12-31"] * 20,
}
PEOPLE = cl.PrivateTable(
    ROWS,
    columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "day": cl.Date("2024-01-01", "2025-12-31")},
)
DERIVED = Extended(
    source=Base(name="people", table=PEOPLE),
    scalars=(
        ("decade", Multiply(Floor(Divide(Ref("age"), Const(10))), Const(10))),
        ("middle", Add(Multiply(Floor(Divide(Ref("age"), Const(10))), Const(10)), Const(5))),
        ("month", DatePart("month", Ref("day"))),
        ("year", DatePart("year", Ref("day"))),
    ),
)


def _groups(by: str, where: Expression | None) -> list[object]:
    table = DERIVED if by in ("decade", "middle", "month", "year") else "people"
    with Door({"people": PEOPLE}, budget=cl.PureDP(10), random=Random.deterministic(3)) as door:
        answer = door.measure(Question(table=table, by=(by,), statistics=(Count(),), where=where), spend=1)
        return list(answer.to_pydict()[by])


@pytest.mark.parametrize(
    ("by", "where", "expected"),
    [
        ("sex", None, ["F", "M"]),
        ("sex", Compare("=", Column("sex"), Literal("M")), ["M"]),
        ("age", Between("age", 88, 200), [88, 89, 90]),
        ("age", And(Between("age", 20, 25), Compare("!=", Column("age"), Literal(22))), [20, 21, 23, 24, 25]),
        ("age", Or(And(In("age", [30, 31]), Compare("=", Column("sex"), Literal("F"))), In("age", [40])), [30, 31, 40]),
        ("age", And(In("age", [30, 31]), Compare("=", Column("sex"), Literal("F"))), [30, 31]),
        ("age", And(Or(In("age", [30]), In("age", [33])), Not(IsNull("age"))), [30, 33]),
        ("decade", Compare("<", Column("age"), Literal(35)), [10, 20, 30]),
        ("middle", None, [15, 25, 35, 45, 55, 65, 75, 85, 95]),
        ("month", Between("day", "2024-02-10", "2024-04-01"), [2, 3, 4]),
        ("year", Compare(">=", Column("day"), Literal("2025-01-01")), [2025]),
    ],
)
def test_the_groups_are_those_that_the_condition_can_let_through(
    by: str, where: Expression | None, expected: list[object]
) -> None:
    assert _groups(by, where) == expected


VISITS = cl.PrivateTable(
    {"who": [1, 1, 2], "day": ["2024-01-05", "2024-02-29", "2025-03-01"], "ward": ["A", "B", "A"]},
    columns={"day": cl.Date("2024-01-01", "2025-12-31"), "ward": cl.Category(["A", "B"])},
    unit="who",
    max_rows=2,
    population="p",
)
TESTS = cl.PrivateTable(
    {"who": [1, 2], "day": ["2024-02-01", "2024-03-01"], "ward": ["A", "B"]},
    columns={"day": cl.Date("2024-01-01", "2025-12-31"), "ward": cl.Category(["A", "B"])},
    unit="who",
    max_rows=2,
    population="p",
)
SPRING = "day BETWEEN DATE '2024-02-10' AND DATE '2024-04-01'"
MONTHS = f"SELECT who, EXTRACT(MONTH FROM day) AS m, ward, day AS ward_day FROM visits WHERE {SPRING}"


COUNTED = "COUNT(*) AS n"
BOTH = "ON tests.who = t.who GROUP BY k"
NUMBERED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY day) AS r FROM visits"
SWAPPED = "SELECT other AS ward FROM (SELECT ward AS other, ward FROM visits WHERE ward = 'A') t"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT m AS k, {COUNTED} FROM ({MONTHS}) t GROUP BY m", [2, 3, 4]),
        (
            f"SELECT m AS k, {COUNTED} FROM (SELECT MONTH(day) AS m, day AS d FROM visits) t WHERE d < '2024-02-01' GROUP BY m",
            [1],
        ),
        (f"SELECT m AS k, {COUNTED} FROM (SELECT who, m, {COUNTED} FROM ({MONTHS}) t GROUP BY who, m) u GROUP BY m", [2, 3, 4]),
        (f"SELECT t.m AS k, {COUNTED} FROM ({MONTHS}) t JOIN tests {BOTH}", [2, 3, 4]),
        (f"SELECT t.m AS k, {COUNTED} FROM tests JOIN ({MONTHS}) t {BOTH}", [2, 3, 4]),
        # what has no partner passed no condition
        (f"SELECT t.m AS k, {COUNTED} FROM tests LEFT JOIN ({MONTHS}) t {BOTH}", [*range(1, 13), None]),
        # the condition is on the other table's day, or on a column that has taken the name
        (f"SELECT MONTH(tests.day) AS k, {COUNTED} FROM tests JOIN ({MONTHS}) t {BOTH}", [*range(1, 13)]),
        (f"SELECT ward AS k, {COUNTED} FROM ({SWAPPED}) u GROUP BY ward", ["A"]),
        (
            f"SELECT a.ward k, {COUNTED} FROM (SELECT * FROM visits WHERE ward = 'A') b JOIN visits a USING (who) GROUP BY k",
            ["A", "B"],
        ),
        (f"SELECT r AS k, {COUNTED} FROM ({NUMBERED}) t WHERE r >= 2 GROUP BY r", [2]),
    ],
)
def test_conditions_are_read_through_subqueries_and_joins_under_their_own_names(sql: str, expected: list[object]) -> None:
    with cl.Session({"visits": VISITS, "tests": TESTS}, budget=cl.PureDP(10), random=Random.deterministic(3)) as session:
        answer: Any = session.sql(sql, spend=1).to_arrow()
        assert sorted(answer["k"].to_pylist(), key=str) == sorted(expected, key=str)


def test_a_question_may_ask_for_every_group() -> None:
    """As a fit does: a condition empties groups, and they are measured, under a digest that is that of no other answer."""
    adults = Compare(">=", Column("age"), Literal(30))
    narrow = Question(table="people", by=("age",), statistics=(Count(),), where=adults)
    whole = replace(narrow, every_group=True)
    with Door({"people": PEOPLE}, budget=cl.PureDP(10), random=Random.deterministic(3)) as door:
        found = [door.measure(each, spend=1).to_pydict()["age"] for each in (narrow, whole)]
        assert [list(each) for each in found] == [[*range(30, 91)], [*range(17, 91)]]
        assert door.explain(narrow, 1).digest != door.explain(whole, 1).digest
        # where nothing is narrowed both are one question, so that what was bought before the field was is still found
        plain = replace(narrow, where=None)
        assert door.explain(plain, 1).digest == door.explain(replace(plain, every_group=True), 1).digest


def test_a_condition_on_another_column_narrows_nothing() -> None:
    assert len(_groups("age", Compare("=", Column("sex"), Literal("F")))) == 74


def test_a_condition_on_two_columns_narrows_nothing() -> None:
    either = Or(Compare("=", Column("sex"), Literal("F")), Compare("=", Column("age"), Literal(30)))
    assert _groups("sex", either) == ["F", "M"]


def test_a_condition_that_leaves_no_value_is_refused_by_name() -> None:
    with pytest.raises(
        cl.UnsupportedQuery, match="Grouping by 'age' is not supported: the condition leaves none of its declared values"
    ):
        _groups("age", Compare(">", Column("age"), Literal(500)))


def test_only_rows_without_a_value_are_left_and_the_key_is_not_nullable() -> None:
    with pytest.raises(cl.UnsupportedQuery, match="leaves none of its declared values"):
        _groups("sex", IsNull("sex"))


def test_narrowing_does_not_depend_on_the_rows() -> None:
    empty = cl.PrivateTable({name: values[:0] for name, values in ROWS.items()}, columns=dict(PEOPLE.columns))
    question = Question(table="people", by=("age",), statistics=(Count(),), where=Between("age", 20, 22))
    with Door({"people": empty}, budget=cl.PureDP(10), random=Random.deterministic(3)) as door:
        assert door.measure(question, spend=1).to_pydict()["age"] == [20, 21, 22]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (In("cat", ["B", "D"]), [("x", "B", 200)]),
        (In("cat", ["B", "C"]), [("x", "B", 200)]),
        (None, [("x", "B", 200)]),
    ],
)
def test_a_narrowed_key_beside_an_undeclared_one_keeps_its_labels(where: Expression | None, expected: list[object]) -> None:
    table = cl.PrivateTable(
        {"town": ["x"] * 200, "cat": ["B"] * 200}, columns={"town": cl.Text(), "cat": cl.Category(["A", "B", "C", "D"])}
    )
    with Door({"t": table}, budget=cl.ApproxDP(100, "1e-3"), random=Random.deterministic(3)) as door:
        question = Question(table="t", by=("town", "cat"), statistics=(Count(),), where=where)
        answer = door.measure(question, spend=cl.ApproxDP(50, "1e-4"))
    assert list(zip(*answer.to_pydict().values(), strict=True)) == expected
