"""ANY, SOME and ALL of arrays, against what they mean row by row."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import psycopg
import pytest

import cloister as cl
from cloister.pgwire.failures import Refused
from cloister.pgwire.inference import spelled_out
from cloister.pgwire.parameters import elements_of
from tests.pgwire.conftest import Running

KINDS = {"age": "int8", "sex": "text", "born": "date", "pay": "float8", "smoker": "bool"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age = ANY (ARRAY[1, 2])", "age IN (1, 2)"),
        ("age = SOME('{1,2}'::int[])", "age IN (1, 2)"),
        ("age = ANY('{1,NULL}')", "age IN (1, NULL)"),
        ("age <> ALL (ARRAY[1, 2]) AND sex = 'F'", "age NOT IN (1, 2) AND sex = 'F'"),
        ("age != ALL (ARRAY[1, NULL]::bigint[])", "age NOT IN (1, NULL)"),
        ("age = ANY('{}')", "FALSE"),
        ("NOT people.age = ANY(ARRAY[]::int[]) OR sex = 'F'", "NOT FALSE OR sex = 'F'"),
        ("sex = 'F' AND age + 1 <> ALL('{}')", "sex = 'F' AND TRUE"),
        ("age = ANY(NULL)", "age IN (NULL)"),
        ("age > ANY(ARRAY[1, 2])", "(age > 1 OR age > 2)"),
        ("age + 1 <= ALL(ARRAY[1, 2])", "(age + 1 <= 1 AND age + 1 <= 2)"),
        ("sex NOT LIKE ALL(ARRAY['F%', 'x'])", "(sex NOT LIKE 'F%' AND sex NOT LIKE 'x')"),
        ("CASE WHEN age = 1 THEN 2 ELSE 3 END = ANY('{}')", "FALSE"),
        ("(age = ANY('{}'))", "(FALSE)"),
        ('sex = ANY(\'{F,"it\'\'s, \\"x\\"",NULL,"NULL"}\')', "sex IN ('F', 'it''s, \"x\"', NULL, 'NULL')"),
        ("born = ANY(ARRAY['2020-01-31']::date[])", "born IN (DATE '2020-01-31')"),
        ("born = ANY('{2020-01-31}')", "born IN (DATE '2020-01-31')"),
        ("smoker = ANY('{t,f}')", "smoker IN (TRUE, FALSE)"),
        ("pay = ANY((ARRAY[1.5, '2']::float8[]))", "pay IN (1.5, 2.0)"),
        ("pay = ANY('{2.5}'::numeric(3,1)[])", "pay IN (2.5)"),
        ("pay = ANY('{2.5,2.55}'::numeric(3,1)[])", "pay = ANY('{2.5,2.55}'::numeric(3,1)[])"),
        ("pay = ANY(ARRAY[2.55]::numeric(3,1)[])", "pay = ANY(ARRAY[2.55]::numeric(3,1)[])"),
        ("sex = ANY('{FM}'::varchar(1)[])", "sex = ANY('{FM}'::varchar(1)[])"),
        ("age = ANY(SELECT size FROM towns)", "age = ANY(SELECT size FROM towns)"),
        ("age = ANY(sizes)", "age = ANY(sizes)"),
        ("SELECT ALL (age) FROM people", "SELECT ALL (age) FROM people"),
        ("a = 'age = ANY(ARRAY[1])'", "a = 'age = ANY(ARRAY[1])'"),
    ],
)
def test_an_array_is_written_out(text: str, told: str) -> None:
    assert spelled_out(text, KINDS) == told


@pytest.mark.parametrize("text", ["'{1,x}'", "'{1'", "'1,2'", "'{{1},{2}}'", "'{1,,2}'", "'{1}x'", "'{\"a}'"])
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is invalid") as refused:
        spelled_out(f"age = ANY({text})", KINDS)
    assert refused.value.code == "22P02"


def test_a_long_array_is_refused() -> None:
    with pytest.raises(Refused, match="at most 1,000"):
        elements_of("{" + ",".join("1" * 1001) + "}")
    with pytest.raises(Refused, match="too long"):
        spelled_out(f"{'a' * 1000} > ANY('{{{','.join('1' * 1000)}}}')", {})


def compared(operator: str, quantifier: str, left: int | None, right: list[int | None] | None) -> bool | None:
    """SQL's truth of `left operator quantifier (right)`."""
    if right is None:
        return None
    each = [
        None if left is None or value is None else {"=": left == value, "<>": left != value, ">": left > value}[operator]
        for value in right
    ]
    if quantifier == "ANY":
        return True if True in each else None if None in each else False
    return False if False in each else None if None in each else True


def test_counts_are_those_of_three_valued_logic() -> None:
    ages = [30] * 100 + [40] * 100 + [None] * 100
    people = cl.PrivateTable({"age": ages}, columns={"age": cl.Integer(17, 90, nullable=True)})
    arrays: list[list[int | None] | None] = [[], [30], [30, 40], [30, None], [None], None, [99]]
    with cl.Session({"people": people}, budget=cl.PureDP(10**9)) as session:
        for operator, quantifier, array, negated in itertools.product(["=", "<>", ">"], ("ANY", "ALL"), arrays, (False, True)):
            written = "NULL" if array is None else "ARRAY[" + ", ".join("NULL" if x is None else str(x) for x in array) + "]"
            where = spelled_out(f"{'NOT ' if negated else ''}age {operator} {quantifier} ({written})", {"age": "int8"})
            truths = [compared(operator, quantifier, age, array) for age in ages]
            exact = sum(truth is (not negated) for truth in truths)
            asked = f"SELECT COUNT(*) AS n FROM people WHERE {where}"
            answer = session.sql(asked, spend=10**5, dialect="postgres", fresh=True)  # off by one below exp(-10**5)
            assert answer.to_pydict() == {"n": [exact]}, (where, array)


VALUES: list[tuple[str, list[Any], str]] = [
    ("age", [30, 40], "(30, 40)"),
    ("age", [30, None], "(30, NULL)"),
    ("sex", ["F", 'it\'s, "x" \\'], "('F', 'it''s, \"x\" \\')"),
    ("born", [datetime.date(1980, 1, 1)], "(DATE '1980-01-01')"),
    ("pay", [1.5, 2.0], "(1.5, 2.0)"),
    ("smoker", [True], "(TRUE)"),
]


@pytest.mark.parametrize("place", ["%s", "%b", "client", "%s::cast"])
@pytest.mark.parametrize(("column", "values", "written"), VALUES)
def test_drivers_send_lists(running: Running, column: str, values: list[Any], written: str, place: str) -> None:
    kind = {"int8": "bigint[]", "float8": "float8[]", "text": "text[]", "date": "date[]", "bool": "boolean[]"}[KINDS[column]]
    mark = {"client": "%s", "%s::cast": f"%s::{kind}"}.get(place, place)
    cursor_factory = psycopg.ClientCursor if place == "client" else psycopg.Cursor
    with running.connect(cursor_factory=cursor_factory) as connection:
        connection.execute("SET cloister.spend = 9")
        asked = f"SELECT COUNT(*) AS n FROM people WHERE {column} = ANY({mark})"
        found = connection.execute(asked, (values,)).fetchall()
        assert connection.execute(f"SELECT COUNT(*) AS n FROM people WHERE {column} IN {written}").fetchall() == found
    assert running.charges == 1, "it is the same question"


def test_an_empty_list_is_nobody_also_after_finer_answers(running: Running) -> None:
    """A condition that reads no column is one all the same."""
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 30")  # off by one below 2 exp(-30)
        asked = "SELECT COUNT(*) AS n FROM people WHERE age = ANY(%s)"
        everybody = connection.execute("SELECT COUNT(*) AS n FROM people").fetchone()
        nobody = connection.execute(asked, ([],)).fetchone()
        assert (everybody, nobody) == ((300,), (0,))
        assert connection.execute("SELECT COUNT(*) AS n FROM people WHERE age <> ALL(%s)", ([],)).fetchone() == (300,)


def test_a_value_in_a_list_cannot_end_its_literal(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 10")  # off by a hundred below exp(-1000)
        for rude in ("F') OR TRUE --", "{", '"', "\\", "F,M", "$$", "')::text[]) OR TRUE --"):
            found = connection.execute("SELECT COUNT(*) AS n FROM people WHERE sex = ANY(%s)", ([rude],)).fetchone()
            assert found is not None
            assert abs(found[0]) < 100
