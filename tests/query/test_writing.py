"""A question is written as SQL and read again, and it is the same question."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloister as cl
from cloister.errors import UnknownTable, UnsupportedQuery
from cloister.query import read_sql, write_sql
from cloister.query.writing import stepped
from cloister.session import (
    Combined,
    Constant,
    Correlation,
    Count,
    Covariance,
    Distinct,
    Largest,
    Mean,
    Mode,
    Named,
    Operation,
    Persons,
    Quantile,
    Question,
    Regression,
    Smallest,
    Sum,
    Variance,
    histogram,
)
from cloister.tables import And, Base, Between, Column, Compare, Extended, In, IsNull, Like, Literal, Not, Or
from cloister.tables.expression.scalars import DatePart, DateTrunc, Ref

COLUMNS = {
    "age": cl.Integer(17, 90),
    "Pay grade": cl.Real(0, 100, step="0.5"),
    "order": cl.Category(["it's", 'a "b"', "c"]),
    "born": cl.Date("1990-01-01", "2026-12-31"),
    "smoker": cl.Boolean(),
}
ROW: dict[str, list[Any]] = {
    "age": [30],
    "Pay grade": [1.5],
    "order": ["c"],
    "born": ["2000-01-01"],
    "smoker": [True],
    "who": ["a"],
}
VISITS = cl.PrivateTable(ROW, columns=COLUMNS, unit="who", max_rows=3)
TABLES = {"Visits": VISITS}

numbers = st.sampled_from(["age", "Pay grade"])
shares = st.fractions(0, 1, max_denominator=12)
one_column = st.one_of(
    *(st.builds(kind, column=numbers) for kind in (Sum, Mean, Smallest, Largest, Count)),
    st.builds(Variance, column=numbers, sample=st.booleans(), root=st.booleans()),
    st.builds(Quantile, column=numbers, at=shares),
    st.builds(Mode, column=st.just("order")),
    st.builds(Distinct, column=st.just("order")),
)
two_columns = st.one_of(
    st.builds(Correlation, x=numbers, y=numbers),
    st.builds(Covariance, x=numbers, y=numbers, sample=st.booleans()),
    st.builds(Regression, x=numbers, y=numbers, part=st.sampled_from(["slope", "intercept", "r2", "count", "sxy"])),
)
statistics = st.lists(
    st.one_of(st.just(Count()), st.just(Persons()), one_column, two_columns),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.name,
)
literals = st.one_of(st.integers(-99, 99), st.fractions(-9, 9, max_denominator=7).filter(lambda each: each.denominator > 1)).map(
    Literal
)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
simple = st.one_of(
    st.builds(Compare, signs, numbers.map(Column), literals),
    st.builds(Compare, signs, literals, numbers.map(Column)),
    st.builds(Between, numbers, literals, literals),
    st.builds(In, st.just("order"), st.lists(st.sampled_from(["it's", 'a "b"', "c"]), min_size=1).map(tuple)),
    st.builds(Like, st.just(Column("order")), st.just("%b\"_'")),
    st.builds(
        lambda day: Compare(">=", Column("born"), Literal(day)), st.dates(datetime.date(1990, 1, 1), datetime.date(2026, 1, 1))
    ),
    st.just(Compare("=", Column("smoker"), Literal(True))),
    st.builds(IsNull, numbers.map(Column)),
)


def joined(inner: Any) -> Any:
    """AND in OR, and the other way; one in itself is read as one."""
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(
            lambda parts: And(
                *(part for part in parts if not isinstance(part, And)), IsNull(Column("age")), IsNull(Column("born"))
            )
        ),
        several.map(
            lambda parts: Or(*(part for part in parts if not isinstance(part, Or)), IsNull(Column("age")), IsNull(Column("born")))
        ),
        inner.map(Not),
    )


conditions = st.none() | st.recursive(simple, joined, max_leaves=6)
computed = st.dictionaries(
    st.sampled_from(["since", "Age from", "part"]),
    st.one_of(
        st.builds(stepped, numbers, st.sampled_from([5, Fraction(5, 2)])),
        st.builds(DateTrunc, st.sampled_from(["year", "quarter", "month", "week"]), st.just("born").map(Ref)),
        st.builds(DatePart, st.sampled_from(["year", "month"]), st.just("born").map(Ref)),
    ),
    max_size=2,
)


@st.composite
def questions(draw: Any) -> Question:
    drawn = draw(computed)
    scalars = {name: scalar for scalar, name in {scalar: name for name, scalar in drawn.items()}.items()}
    table = Extended(source=Base(name="Visits", table=VISITS), scalars=tuple(scalars.items())) if scalars else "Visits"
    by = (*draw(st.lists(st.sampled_from(["order", "smoker"]), unique=True)), *scalars)
    measured = draw(statistics)
    if draw(st.booleans()):
        share = Operation(
            "divide", (Operation("multiply", (Constant(Fraction(-1, 3)), Named(measured[0].name))), Named(measured[-1].name))
        )
        measured.append(
            Combined(name="share", expression=Operation("round", (Operation("coalesce", (share, Constant(0))),), digits=2))
        )
    return Question(table=table, statistics=tuple(measured), by=by, where=draw(conditions))


@settings(max_examples=80, deadline=None)
@given(question=questions())
def test_what_is_written_is_read_as_the_same_question(question: Question):
    text = write_sql(question, TABLES)
    assert read_sql(text, TABLES) == question
    assert write_sql(read_sql(text, TABLES), TABLES) == text


def test_what_a_statistic_stands_on_is_read_without_being_shown():
    text = 'SELECT SUM(age) / COUNT(*) AS mean\nFROM "Visits"'
    question = read_sql(text, TABLES)
    assert question.hidden == ("sum(age)", "count_star()")
    assert write_sql(question, TABLES) == text


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ('SELECT COUNT(*) AS n FROM "Visits" GROUP BY smoker', "every key"),
        ('SELECT smoker AS s, COUNT(*) AS n FROM "Visits" GROUP BY smoker', "under its own name"),
        ('SELECT smoker, COUNT(*) AS n FROM "Visits" GROUP BY smoker ORDER BY n', "ORDER BY"),
        ('SELECT COUNT(*) AS n, COUNT(*) AS m FROM "Visits"', "twice"),
        ('SELECT 1 AS one, COUNT(*) AS m FROM "Visits"', "constants"),
        ('SELECT COUNT(*) AS n FROM (SELECT who, SUM(age) AS a FROM "Visits" GROUP BY who) AS t', "derived"),
    ],
)
def test_what_says_more_than_a_question_is_refused_by_name(sql: str, why: str):
    with pytest.raises(UnsupportedQuery, match=why):
        read_sql(sql, TABLES)


def test_what_has_no_sql_is_refused_by_name():
    with pytest.raises(UnsupportedQuery, match="chosen edges"):
        write_sql(histogram("Visits", "age", [20, 30]), TABLES)
    with pytest.raises(UnknownTable, match="known are Visits"):
        write_sql(Question(table="people", statistics=(Count(),)), TABLES)
