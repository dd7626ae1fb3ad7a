"""What sqlglot reads and the answer would not honour is refused by name, and nothing but a refusal comes out of `parse`."""

from __future__ import annotations

import logging
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.query import parse
from cloister.session import Count, Persons
from cloister.tables import Compare

TABLES: dict[str, cl.PrivateTable | cl.PublicTable] = {
    "t": cl.PrivateTable(
        {"age": [20], "sex": ["F"], "pay": [1], "who": ["x"], "town": ["Delft"], "born": ["1990-01-31"]},
        columns={
            "age": cl.Integer(17, 90),
            "sex": cl.Category(["F", "M"]),
            "pay": cl.Integer(0, 9),
            "town": cl.Text(),
            "born": cl.Date("1900-01-01", "2026-12-31"),
        },
        unit="who",
        max_rows=2,
    ),
    "census.Visits": cl.PrivateTable({"age": [20]}, columns={"age": cl.Integer(17, 90)}),
}


def refused(sql: str) -> cl.CloisterError:
    """The refusal, which hangs on nothing: no cause and no context could carry more than it says."""
    with pytest.raises(cl.CloisterError) as caught:
        parse(sql, TABLES)
    assert caught.value.instead
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT COUNT(age, pay) FROM t", "COUNT of several columns"),
        ("SELECT COUNT() FROM t", "COUNT of nothing"),
        ("SELECT COUNT(* EXCEPT (age)) FROM t", "What stands beside *"),
        ("SELECT COUNT(*) FROM t WHERE age BETWEEN SYMMETRIC 45 AND 25", "BETWEEN SYMMETRIC"),
        ("SELECT AVG(pay) FROM t AS p(pay, age)", "Renaming columns"),
        ("SELECT COUNT(*) FROM t@x", "@x"),
        ("SELECT COUNT(*) FROM t LIMIT 10 PERCENT", "PERCENT"),
        ("SELECT COUNT(*) FROM t LIMIT 10 ROWS WITH TIES", "TIES"),
        ("SELECT COUNT(*) FROM t LIMIT 1 BY sex", "LIMIT … BY"),
        ("SELECT COUNT(*) FROM t LIMIT '1'", "LIMIT"),
        ("SELECT COUNT(*) FROM t LIMIT ALL", "LIMIT"),
        ("SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY sex WITH FILL", "WITH"),
        ("SELECT SUM(age ORDER BY pay) FROM t", "ORDER BY within an aggregate"),
        ("SELECT COUNT(age IGNORE NULLS) FROM t", "IGNORE NULLS"),
        ("SELECT COUNT(*) OVER () FROM t", "OVER"),
        ("SELECT COUNT(*) FROM t WHERE age IN UNNEST(age)", "UNNEST"),
        ("SELECT COUNT(*) FROM t WHERE age IN (SELECT 1)", "nested query"),
        ("SELECT COUNT(*) FROM t WHERE town LIKE '_!%' ESCAPE '!'", "ESCAPE"),
        ("SELECT COUNT(*) FROM t WHERE sex COLLATE nocase = 'f'", "COLLATE"),
        ("SELECT COUNT(*) FROM t WHERE town = DATE '2026-02-30'", "2026-02-30"),
        ("SELECT COUNT(*) FROM t FOR UPDATE", "LOCKS"),
        ("SELECT /*+ MERGE */ COUNT(*) FROM t", "HINT"),
        ("SELECT COUNT(*) FROM t, t", "The join of 't' and 't'"),
        ("WITH t AS (SELECT 1) SELECT COUNT(*) FROM t", ""),
        ("SELECT COUNT(*) FROM t WHERE age->>'a' = 3", ""),
    ],
)
def test_a_part_that_would_be_passed_over_is_refused_by_name(sql: str, named: str) -> None:
    refusal = refused(sql)
    assert isinstance(refusal, cl.UnsupportedQuery)
    assert named in refusal.what


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(v.age) FROM t",
        "SELECT COUNT(*) FROM t WHERE zz.age > 3",
        "SELECT zz.sex, COUNT(*) FROM t GROUP BY sex",
        "SELECT sex, COUNT(*) FROM t GROUP BY zz.sex",
        "SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY zz.sex",
        "SELECT COUNT(DISTINCT zz.who) FROM t",
        "SELECT COUNT(db.t.age) FROM t",
        'SELECT COUNT("T".age) FROM t',
        'SELECT COUNT("P".age) FROM t AS p',
        "SELECT COUNT(other.Visits.age) FROM census.Visits",
        "SELECT COUNT(census.age) FROM census.Visits",
        'SELECT COUNT(*) FROM "T"',
    ],
)
def test_a_qualifier_must_be_the_table_or_its_alias(sql: str) -> None:
    assert isinstance(refused(sql), cl.UnknownTable)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(t.age) FROM t",
        "SELECT COUNT(T.AGE) FROM t",
        "SELECT COUNT(p.age) FROM t AS P",
        "SELECT COUNT(p.age) FROM t p",
        'SELECT COUNT("p"."age") FROM t AS p',
        "SELECT COUNT(visits.age) FROM census.visits",
        "SELECT COUNT(census.visits.age) FROM census.visits;",
        "SELECT COUNT(v.age) FROM Census.Visits AS v",
    ],
)
def test_the_tables_own_name_and_alias_are_qualifiers(sql: str) -> None:
    assert parse(sql, TABLES).question.statistics == (Count(column="age", name="count(age)"),)


def test_the_unit_is_counted_under_its_own_name_only() -> None:
    assert parse("SELECT COUNT(DISTINCT T.Who) FROM t", TABLES).question.statistics == (Persons(name="count_distinct(who)"),)
    assert isinstance(refused('SELECT COUNT(DISTINCT "WHO") FROM t'), cl.UnknownColumn)
    assert parse("SELECT COUNT(who) FROM t", TABLES).question.statistics == (Count(name="count_star()"),)
    assert "privacy unit" in refused("SELECT who, COUNT(*) FROM t GROUP BY who").why
    assert "privacy unit" in refused("SELECT SUM(who) FROM t").why


def ordered(sql: str) -> list[tuple[str, bool, bool]]:
    """What the answer is ordered by: key or statistic, descending, NULL first."""
    return [(part.source, part.descending, part.nulls_first) for part in parse(sql, TABLES).layout.order]


def test_order_names_one_column_of_the_answer() -> None:
    assert ordered('SELECT COUNT(*) AS n, SUM(pay) AS "N" FROM t ORDER BY "N" DESC') == [("sum(pay)", True, True)]
    assert ordered("SELECT sex AS s, COUNT(*) FROM t GROUP BY sex ORDER BY t.sex, 2 DESC") == [
        ("sex", False, False),
        ("count_star()", True, True),
    ]
    assert ordered("SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY sex NULLS FIRST") == [("sex", False, True)]
    assert ordered("SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY sex DESC NULLS LAST") == [("sex", True, False)]
    assert ordered("SELECT sex, COUNT(*) FROM t GROUP BY sex ORDER BY SUM(pay) DESC") == [("sum(pay)", True, True)]
    assert ordered("SELECT 1 AS one, COUNT(*) FROM t ORDER BY one") == []
    refused('SELECT COUNT(*) AS "Nn", SUM(pay) AS "NN" FROM t ORDER BY nn')
    refused("SELECT COUNT(*) AS n FROM t ORDER BY 3")
    refused("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY age")


def test_a_date_is_not_a_text() -> None:
    import datetime

    where = parse("SELECT COUNT(*) FROM t WHERE born = DATE '1990-01-31'", TABLES).question.where
    assert isinstance(where, Compare)
    assert where.right.value == datetime.date(1990, 1, 31)  # type: ignore[attr-defined]


DIGITS = "9" * 19_000
DEEP = 3_000


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM t LIMIT {DIGITS}",
        f"SELECT sex, COUNT(*) FROM t GROUP BY {DIGITS}",
        f"SELECT COUNT(*) FROM t ORDER BY {DIGITS}",
        f"SELECT COUNT(*) FROM t WHERE age = {DIGITS}",
        "SELECT COUNT(*) FROM t WHERE age = 1e999999999",
        "SELECT COUNT(*) FROM t LIMIT ²",
        "SELECT COUNT(*) FROM t WHERE age" + "::int" * DEEP + " = 3",
        "SELECT COUNT(*) FROM t WHERE " + "a." * DEEP + "a = 3",
        "SELECT " + "a." * DEEP + "a FROM t",
        "SELECT COUNT(*) FROM t WHERE age = " + "- " * DEEP + "3",
        "SELECT COUNT(*) FROM t WHERE age = " + "(" * DEEP + "3" + ")" * DEEP,
        "SELECT COUNT(*) FROM t ORDER BY age" + "::int" * DEEP,
        "SELECT COUNT(*) FROM t WHERE age ->> '$[' = 3",
        "SELECT COUNT(*) FROM t WHERE age -> '$.a[?(@' = 3",
        "SELECT " + "f(" * DEEP + ")" * DEEP + " FROM t",
        "SELECT COUNT(*) FROM " + "a." * DEEP + "a",
        "SELECT COUNT(*) FROM t\0",
        "\ud800",
        "SELECT SUM() FROM t",
        "SELECT AVG() FROM t",
        "SELECT COUNT(DISTINCT) FROM t",
        'SELECT COUNT(*) AS "" FROM t',
    ],
)
def test_every_failure_is_a_short_refusal(sql: str) -> None:
    assert len(str(refused(sql))) < 600


@pytest.mark.parametrize("text", [None, 3, b"SELECT", ["SELECT"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    refused(text)


def test_a_failure_inside_sqlglot_is_a_refusal_without_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise AttributeError("secret text of the question")

    monkeypatch.setattr("sqlglot.Parser.parse", fail)
    assert "secret" not in str(refused("SELECT COUNT(*) FROM t"))


@pytest.mark.parametrize("kind", ["DECIMAL(", "a::DECIMAL(", "CAST(a AS DECIMAL(", "ARRAY[", "{", "DATE(", "STRUCT("])
def test_what_sqlglot_reads_in_exponential_time_is_refused_before(kind: str) -> None:
    """Without the refusal this would not end: sqlglot doubles its work at each level."""
    assert "deeper than 5" in refused("SELECT COUNT(*) FROM t WHERE " + kind * 60).why


@pytest.mark.parametrize(
    "sql",
    [
        " COPY SELECT COUNT(1 ] ) FROM t WHERE :p",
        "/* first */ COPY COUNT(1 ~ ~",
        "WITH x AS COPY (SELECT 1) SELECT COUNT(*) FROM t HAVING CASE 2",
        "SELECT COUNT(*) FROM (WITH x AS (COPY a ~ ~) SELECT 1)",
        "SELECT COUNT(*) FROM t; COPY COUNT(1 ~ ~",
    ],
)
def test_what_sqlglot_reads_for_ever_is_refused_before(sql: str) -> None:
    """Its reader of COPY does not come to an end on these."""
    assert isinstance(refused(sql), cl.UnsupportedQuery)


@pytest.mark.parametrize("deep", ["(", "ABS(", "(1 + "])
def test_as_many_parentheses_as_the_page_says_are_read(deep: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text(encoding="utf-8")
    (most,) = map(int, re.findall(r"^\| nested parentheses \| (\d+);", page, re.MULTILINE))
    within = most - 1  # SUM opens one
    assert parse(f"SELECT SUM({deep * within}age{')' * within}) AS n FROM t", TABLES).names.keys() == {"n"}
    assert f"deeper than {most}" in refused(f"SELECT SUM({deep * most}age{')' * most}) AS n FROM t").why


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_chain_of_five_hundred_is_long_and_not_deep(word: str) -> None:
    chain = f" {word} ".join(f"age <> {number}" for number in range(500))
    where = parse(f"SELECT COUNT(*) FROM t WHERE {chain}", TABLES).question.where
    assert len(where.parts) == 500  # type: ignore[union-attr]


def test_a_mixed_chain_of_five_hundred() -> None:
    chain = " OR ".join(f"age = {number} AND pay = 1" for number in range(250))
    where = parse(f"SELECT COUNT(*) FROM t WHERE {chain}", TABLES).question.where
    assert len(where.parts) == 250  # type: ignore[union-attr]


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_chain_of_two_thousand_is_refused_before_it_is_read(word: str) -> None:
    chain = f" {word} ".join(f"age <> {number}" for number in range(2_000))
    assert "500 conditions" in str(refused(f"SELECT COUNT(*) FROM t WHERE {chain}"))


def test_a_constant_beyond_every_bound_is_still_a_constant() -> None:
    assert parse("SELECT COUNT(*) FROM t WHERE age < 1e400", TABLES).question.where.right.value == 10**400  # type: ignore[union-attr]


def test_sqlglot_logs_nothing_of_the_question_and_goes_on_logging_for_others(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("sqlglot")
    before = list(logger.filters)
    with caplog.at_level(logging.DEBUG, logger="sqlglot"):
        refused("ALTER SESSION SET my_secret_word = 1")
        refused("SELECT COUNT(*) FROM t WHERE age ->> '$[my_secret_word' = 3")
        assert "my_secret_word" not in caplog.text
        logger.warning("the host's own line")
    assert "the host's own line" in caplog.text
    assert logger.filters == before


def test_other_threads_are_heard_while_a_question_is_read(caplog: pytest.LogCaptureFixture) -> None:
    from cloister.query.words import unheard

    logger = logging.getLogger("sqlglot")
    with caplog.at_level(logging.WARNING, logger="sqlglot"), unheard():
        logger.warning("mine")
        other = threading.Thread(target=lambda: logger.warning("another thread's"))
        other.start()
        other.join()
    assert "another thread's" in caplog.text
    assert "mine" not in caplog.text


def test_a_question_is_read_with_little_stack_left() -> None:
    def deep(levels: int) -> str:
        if levels:
            return deep(levels - 1)
        try:
            return type(parse("SELECT COUNT(*) FROM t WHERE " + "(" * 30 + "age = 1" + ")" * 30, TABLES)).__name__
        except cl.CloisterError as refusal:
            return type(refusal).__name__

    assert deep(sys.getrecursionlimit() - 300) in ("Parsed", "UnsupportedQuery")


@pytest.mark.parametrize("sql", ["VALUES (1), (2)", "TABLE people", "(TABLE people)", "DELETE FROM people"])
def test_another_statement_is_refused_by_name(sql: str) -> None:
    with pytest.raises(cl.UnsupportedQuery, match="only SELECT is answered"):
        parse(sql, {"people": cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})})


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT , COUNT(*) FROM t", "'SELECT'"),
        ("SELECT all, COUNT(*) FROM t", "'all'"),
        ("SELECT DISTINCT, COUNT(*) FROM t", "'DISTINCT'"),
        ("SELECT sex,, COUNT(*) FROM t GROUP BY sex", "','"),
        ("SELECT COUNT(*) FROM , t", "'FROM'"),
        ("SELECT COUNT(*) FROM t GROUP BY , sex", "'GROUP BY'"),
        ("SELECT COUNT(*) FROM t GROUP BY", "'GROUP BY'"),
        ("SELECT AVG(n) FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY) AS u", "'GROUP BY'"),
        ("SELECT COUNT(*) FROM t GROUP BY HAVING COUNT(*) > 1", "'GROUP BY'"),
        ("SELECT COUNT(*) FROM t WHERE sex IN (, 'F')", "'('"),
    ],
)
def test_a_list_without_its_first_part_is_refused(sql: str, named: str) -> None:
    """sqlglot reads it as a list without that part."""
    assert refused(sql).what == f"{named} is invalid"


def test_a_comma_may_stand_last_and_a_column_be_called_all() -> None:
    for sql in ("SELECT sex, COUNT(*), FROM t GROUP BY sex,", "SELECT COUNT(*) FROM t GROUP BY GROUPING SETS ((), (sex))"):
        assert parse(sql, TABLES)
    assert parse('SELECT sex AS "all", COUNT(*) FROM t GROUP BY "all"', TABLES)
