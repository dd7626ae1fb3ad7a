"""Conditions: canonical forms, exact thresholds, and refusals that name the column."""

from __future__ import annotations

import datetime
import json
import re
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.tables import (
    Aggregation,
    And,
    Between,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    In,
    Integer,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Prepared,
    PrivateTable,
    Real,
    Text,
    prepare,
)

AGE, PAY = Column("age"), Column("pay")


@pytest.fixture(scope="module")
def people() -> Any:
    rows = {
        "age": [17, 39, 90, None], "pay": [0.0, 0.3, 10.0, None], "sex": ["F", "M", None, "F"],
        "born": ["2000-01-01", "2001-05-05", None, "x"],
        "sick": [True, False, None, True], "note": ["a", "b", None, ""], "high": [20, 39, 80, 1], "level": ["10", "9", "9", "2"],
    }  # fmt: skip
    columns = {
        "age": Integer(17, 90), "pay": Real(0, 10, step="0.1"), "sex": Category(["F", "M"]),
        "born": Date("2000-01-01", "2010-01-01"),
        "sick": Boolean(), "note": Text(), "high": Real(0, 100, step="0.5"), "level": Category(["10", "9", "2"]),
    }  # fmt: skip
    with prepare(PrivateTable(rows, columns=columns)) as prepared:
        yield prepared


def count(people: Prepared, where: Any) -> int:
    return int(people.aggregate(Aggregation(people, where)).values["rows"][0])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Compare("=", AGE, Literal(39)), 1),
        (Compare("=", AGE, Literal(39.5)), 0),
        (Compare("!=", AGE, Literal(39.5)), 3),
        (Compare("<", AGE, Literal(39.5)), 2),
        (Compare(">=", AGE, Literal(-(10**40))), 3),
        (Compare("<=", AGE, Literal(16)), 0),
        (Not(Compare("<=", AGE, Literal(16))), 3),
        (Compare(">", AGE, Literal(10**40)), 0),
        (Compare("<", Literal(20), AGE), 2),
        (Compare("=", PAY, Literal(0.3)), 1),
        (Compare("=", PAY, Literal(Fraction(3, 10))), 1),
        (Compare("<", PAY, Literal(0.3)), 1),
        (Compare("=", AGE, Literal(None)), 0),
        (Not(Compare("=", AGE, Literal(None))), 0),
        (IsNull("age"), 1),
        (Not(IsNull("age")), 3),
        (Compare("=", Column("sex"), Literal("F")), 2),
        (Compare("!=", Column("sex"), Literal("F")), 1),
        (Compare("=", Column("sex"), Literal("?")), 0),
        (Compare("!=", Column("sex"), Literal("?")), 3),
        (Compare("<", Column("level"), Literal("2")), 1),  # text compares as text: '10' < '2'
        (Like("level", "1_"), 1),
        (Like("level", "%"), 4),
        (Not(Like("note", "a%")), 2),
        (In("age", [17, 90, 17.5, None]), 2),
        (Not(In("age", [17, None])), 0),
        (In("born", ["2000-01-01", datetime.date(2001, 5, 5)]), 2),
        (Compare(">", Column("born"), Literal("2000-06-01")), 1),
        (Between("age", 17, 39), 2),
        (Column("sick"), 2),
        (Not(Column("sick")), 1),
        (Compare("=", Column("sick"), Literal(False)), 1),
        (Compare("<=", AGE, Column("high")), 2),
        (Compare("=", AGE, Column("high")), 1),
        (Compare("=", Literal(1), Literal(1.0)), 4),
        (Compare("=", Literal(1), Literal(None)), 0),
        (And(Literal(True), Or(Literal(None), Literal(True))), 4),
        (And(Literal(True), Literal(None)), 0),
    ],
    ids=repr,
)
def test_what_a_condition_means(people: Prepared, where: Any, expected: int) -> None:
    assert count(people, where) == expected
    assert json.loads(json.dumps(where.describe())) == where.describe()
    assert hash(where) == hash(where)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (Compare("=", AGE, Literal("39")), "'age'.*not a number"),
        (Compare("=", AGE, Literal(True)), "'age'.*not a number"),
        (Compare("=", Column("sex"), Literal(1)), "'sex'.*values are text"),
        (Compare("=", Column("sick"), Literal(1)), "'sick'.*truth"),
        (Compare("<", Column("note"), Literal("a")), "'note'.*order text differently"),
        (Compare("=", Column("note"), Literal(3)), "'note'.*holds text"),
        (Compare("=", Column("born"), Literal("1 May")), "'born'.*YYYY-MM-DD"),
        (Compare("=", Column("born"), Literal("2001-02-30")), "'born'"),
        (Compare("=", AGE, Column("sex")), "'age'.*'sex' is category"),
        (Compare("=", AGE, Column("born")), "'age'.*'born' is date"),
        (Compare("=", Column("sex"), Column("level")), "categories differ"),
        (Compare("<", Column("note"), Column("note")), "'note'"),
        (Like("age", "1%"), "'age'.*LIKE needs text"),
        (In("sex", ["F", 3]), "'sex'"),
        (AGE, "'age'.*not a condition"),
        (Literal(3), "not a truth value"),
        (Compare("=", Literal(1), Literal("1")), "different types"),
    ],
    ids=repr,
)
def test_a_type_error_names_the_column_before_any_row_is_read(people: Prepared, where: Any, why: str) -> None:
    with pytest.raises(UnsupportedQuery, match=why):
        people.plan(Aggregation(people, where))


def test_what_cannot_be_written() -> None:
    for wrong in (
        lambda: In("a", []),
        lambda: And(),
        lambda: Or(1),
        lambda: Literal(float("nan")),
        lambda: Like("a", 3),
        lambda: Compare("=", Not(AGE), AGE),
    ):
        with pytest.raises(UnsupportedQuery):
            wrong()
    with pytest.raises(InvalidParameter, match="not a comparison"):
        Compare("~", AGE, PAY)


def test_an_unknown_column_is_refused(people: Prepared) -> None:
    for where in (Compare("=", Column("agee"), Literal(1)), IsNull("agee"), Like("agee", "x")):
        with pytest.raises(UnknownColumn, match="agee"):
            people.plan(Aggregation(people, where))


def test_canonical_forms() -> None:
    one, two, three = (Compare("=", AGE, Literal(i)) for i in (1, 2, 3))
    assert Or(one, Or(two, three)).describe() == Or(three, Or(two, one), one).describe()
    assert Or(one, two).describe() != And(one, two).describe()
    assert And(one).describe() == one.describe()
    assert Not(Not(one)).describe() == one.describe()
    assert Compare("<", AGE, Literal(1)).describe() == Compare(">", Literal(1), AGE).describe()
    assert Compare("<", AGE, PAY).describe() == Compare(">", PAY, AGE).describe()
    assert In("age", [2, 1, 1]).describe() == In("age", [1, 2]).describe()
    assert Literal(1).describe() == Literal(1.0).describe() != Literal(True).describe()
    assert Between("age", 1, 2).describe() == And(Compare("<=", AGE, Literal(2)), Compare(">=", AGE, Literal(1))).describe()
    assert And(one, Or(Compare("=", PAY, AGE), IsNull("sex"))).columns() == {"age", "pay", "sex"}


def test_equal_looking_literals_are_different_questions(people: Prepared) -> None:
    """1 == True in Python; kept plans must not mix them up."""
    assert count(people, Compare("=", Literal(1), Literal(1))) == 4
    assert count(people, Compare("=", Column("sick"), Literal(True))) == 2
    with pytest.raises(UnsupportedQuery):
        count(people, Compare("=", Column("sick"), Literal(1)))


def test_like_takes_no_time_that_grows_with_its_percents() -> None:
    """A matcher that goes back to every % would not end within the age of the universe."""
    hostile = ["%_" * 60 + "!", "%a" * 60 + "!", "%a%" * 60 + "b", "%" + "_%" * 60 + "!"]
    text = "a" * 500
    columns = {"word": Category([text, "b"]), "note": Text()}
    with prepare(PrivateTable({"word": [text, "b"], "note": [text, "b"]}, columns=columns)) as prepared:
        for pattern in hostile:
            for name in columns:
                assert count(prepared, Like(name, pattern)) == 0
                assert count(prepared, Like(name, pattern.replace("!", "a").replace("b", "a"))) == 1


def test_like_on_text_and_on_a_category_agree() -> None:
    words = ["", "a", "b", "ab", "ba", "a.b", "a\\b", "a\nb", "aXbXc", "abc", "ca", "é", "a^b$", "(a", "🏔b"]
    patterns = [
        "",
        "%",
        "_",
        "a%b",
        "%a%b%",
        "_%b",
        "a_b",
        "%.%",
        "a\\%",
        "%%a%_",
        "_\n_",
        "%X%X%",
        "%$",
        "(%_",
        "__",
        "%_b%",
        "a%b%c",
    ]
    columns = {"word": Category(words), "note": Text()}
    with prepare(PrivateTable({"word": words, "note": words}, columns=columns)) as prepared:
        for pattern in patterns:
            wanted = re.compile("".join({"%": ".*", "_": "."}.get(each, re.escape(each)) for each in pattern), re.DOTALL)
            expected = sum(wanted.fullmatch(word) is not None for word in words)
            assert [count(prepared, Like(name, pattern)) for name in columns] == [expected, expected], pattern


@pytest.mark.parametrize("kind", [And, Or])
def test_many_parts_are_one_condition(people: Prepared, kind: Any) -> None:
    parts = [Compare("!=" if kind is And else "=", PAY, Literal(Fraction(i % 20 + 4, 10))) for i in range(1400)]
    chain = parts[0]
    for part in parts[1:]:
        chain = kind(chain, part)
    assert chain == kind(*parts)
    assert count(people, kind(*parts)) == count(people, chain) == (3 if kind is And else 0)
    assert chain.describe() == kind(*parts[:20]).describe()


def test_conditions_too_deep_or_too_many_are_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="inside one another"):
        reduce(lambda deep, _: Not(Or(deep, PAY)), range(5000), AGE)  # type: ignore[arg-type,return-value]
    with pytest.raises(UnsupportedQuery, match="more than 4000 parts"):
        Or(*[And(AGE, PAY)] * 2001)
    with pytest.raises(UnsupportedQuery, match="longer than 1000"):
        Like("note", "%" * 1001)
    with pytest.raises(UnsupportedQuery, match="must be a condition"):
        Not("sick")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"where": "age > 3"}, "not a condition"),
        ({"where": 3}, "not a condition"),
        ({"keys": (3,)}, "neither a column nor bins"),
        ({"aggregates": ("rows",)}, "not an Aggregate"),
    ],
)
def test_what_is_no_expression_is_refused(people: Prepared, wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        people.aggregate(Aggregation(people, **wrong))
