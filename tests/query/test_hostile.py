"""Texts that try to get at rows, files, the network or the engine, or to stop the reader: refused, quickly, in few words."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.query import parse
from tests.query.hospital import rows, tables

TABLES = tables(rows())

INJECTIONS = """
SELECT COUNT(*) FROM people; DROP TABLE people
SELECT COUNT(*) FROM people WHERE sex = 'F'' OR 1=1' ; SELECT 1
SELECT COUNT(*) FROM people UNION SELECT age FROM people
SELECT COUNT(*) FROM people INTO OUTFILE '/tmp/x'
SELECT * INTO copied FROM people
SELECT COUNT(*) FROM read_csv('/etc/passwd')
SELECT COUNT(*) FROM read_parquet('s3://bucket/x')
SELECT COUNT(*) FROM '/etc/passwd'
SELECT COUNT(*) FROM "/etc/passwd"
SELECT COUNT(*) FROM duckdb_tables()
SELECT COUNT(*) FROM information_schema.columns
SELECT COUNT(*) FROM pg_catalog.pg_class
SELECT COUNT(*) FROM sqlite_master
SELECT COUNT(*) FROM people, LATERAL (SELECT 1) AS x
SELECT COUNT(*) FROM people, UNNEST([1, 2]) AS x
SELECT COUNT(*) FROM generate_series(1, 10)
SELECT COUNT(*) FROM VALUES (1)
SELECT pg_sleep(10), COUNT(*) FROM people
SELECT getenv('HOME'), COUNT(*) FROM people
SELECT current_user, COUNT(*) FROM people
SELECT @@version, COUNT(*) FROM people
SELECT COUNT(*) FROM people WHERE age = error('x')
SELECT COUNT(*) FROM people WHERE sex SIMILAR TO '(a+)+'
SELECT COUNT(*) FROM people WHERE sex REGEXP '(a+)+'
SELECT COUNT(*) FROM people WHERE sex RLIKE '(a+)+'
SELECT SUM(age) OVER (ORDER BY age) FROM people
SELECT age FROM people QUALIFY ROW_NUMBER() OVER () = 1
SELECT COUNT(*) FROM people PIVOT (COUNT(age) FOR sex IN ('F'))
SELECT LIST(age) FROM people
SELECT HISTOGRAM(age) FROM people
SELECT ARG_MAX(age, pay) FROM people
SELECT COUNT(*) FROM people FOR UPDATE
SELECT COUNT(*) FROM people AS OF TIMESTAMP '2020-01-01'
SELECT COUNT(*) FROM people WHERE age = ?
SELECT COUNT(*) FROM people WHERE age = :age
SELECT COUNT(*) FROM people WHERE age = $1
SELECT COUNT(*) FROM people WHERE age = {{ age }}
SELECT /*+ SET_VAR(x=1) */ COUNT(*) FROM people
SELECT COUNT(*) FROM реорle
SELECT COUNT(*) FROM people WHERE аge > 3
SELECT COUNT(*) FROM 🦆
SELECT 🦆 FROM people
COPY people TO '/tmp/x'
COPY (SELECT * FROM people) TO '/tmp/x'
ATTACH 'x.db'
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
SET enable_external_access = true
CALL pragma_version()
EXPORT DATABASE '/tmp/x'
CREATE TABLE x AS SELECT * FROM people
INSERT INTO people VALUES (1)
UPDATE people SET age = 3
DELETE FROM people
EXPLAIN SELECT COUNT(*) FROM people
DESCRIBE people
SUMMARIZE people
SHOW TABLES
FROM people
VALUES (1)
TABLE people
(SELECT age FROM people)
WITH x AS (INSERT INTO people VALUES (1) RETURNING *) SELECT COUNT(*) FROM people
WITH x AS (COPY people TO '/tmp/x') SELECT COUNT(*) FROM people
WITH x AS (SELECT 1) DELETE FROM people
WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT 1 FROM x) SELECT COUNT(*) FROM x
WITH people AS (SELECT * FROM people), people AS (SELECT 1) SELECT COUNT(*) FROM nobody
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT inhabitants FROM towns)
SELECT COUNT(*) FROM people WHERE (age, sex) IN ((20, 'F', 1))
"""


@pytest.mark.parametrize("sql", INJECTIONS.strip().splitlines())
def test_nothing_but_questions_is_read(sql: str) -> None:
    with pytest.raises(cl.CloisterError) as refusal:
        parse(sql, TABLES)
    assert refusal.value.instead
    assert len(str(refusal.value)) < 600
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)


def test_comments_change_nothing() -> None:
    plain = parse("SELECT COUNT(*) FROM people WHERE age > 30", TABLES)
    assert parse("SELECT/**/COUNT(*)/* ; DROP TABLE people */FROM people -- x\nWHERE age > 30 --", TABLES) == plain
    assert parse("SELECT COUNT(*) /*+ hint */ FROM people WHERE age > 30", TABLES) == plain


DEEP = {
    "functions": "SELECT SUM(" + "ABS(" * 55 + "age" + ")" * 56 + " FROM people",
    "more functions": "SELECT SUM(" + "ABS(" * 3000 + "age" + ")" * 3001 + " FROM people",
    "CASE": "SELECT SUM(" + "CASE WHEN age > 3 THEN " * 100 + "1" + " END" * 100 + ") FROM people",
    "CASE in conditions": "SELECT SUM(" + "CASE WHEN " * 100 + "smoker" + " THEN TRUE END" * 99 + " THEN 1 END) FROM people",
    "subqueries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 50 + "people" + ")" * 50,
    "IN": "SELECT COUNT(*) FROM people WHERE " + "town IN (SELECT town FROM towns WHERE " * 40 + "TRUE" + ")" * 40,
    "arithmetic": "SELECT SUM(" + "(age + " * 58 + "1" + ")" * 58 + ") FROM people",
    "a long sum": "SELECT SUM(" + " + ".join(["age"] * 5000) + ") FROM people",
    "a long product": "SELECT SUM(" + " * ".join(["age"] * 500) + ") FROM people",
    "types": "SELECT SUM(" + "CAST(" * 50 + "age" + " AS DECIMAL(9, 2))" * 50 + ") FROM people",
    "arrays": "SELECT COUNT(*) FROM people WHERE age = " + "[" * 40 + "1" + "]" * 40,
    "dates": "SELECT COUNT(*) FROM people WHERE born = " + "DATE(" * 40 + "'2026-01-01'" + ")" * 40,
    "NOT": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 5000 + "smoker",
    "powers": "SELECT SUM(" + "POWER(" * 20 + "age" + ", 16)" * 20 + ") FROM people",
    "constants": "SELECT COUNT(*) FROM people WHERE age = " + "9" * 300 + " * 9" * 500,
    "an interval": "SELECT COUNT(*) FROM people WHERE born > DATE '2026-01-01' + INTERVAL '999999999' YEAR",
    "WITH": "WITH t0 AS (SELECT * FROM visits)"
    + "".join(f", t{k + 1} AS (SELECT patient, cost FROM t{k} UNION ALL SELECT patient, cost FROM t{k})" for k in range(30))
    + " SELECT COUNT(*) FROM t30",
    "joins": "SELECT COUNT(*) FROM visits v0" + "".join(f" JOIN visits v{k} USING (patient)" for k in range(1, 40)),
    "cubes": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(["CUBE (age, sex, pay, smoker, born, town)"] * 2),
    "sets": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(["GROUPING SETS ((age), (sex), ())"] * 9),
    "columns": "SELECT " + ", ".join(f"SUM(age + {k}) AS s{k}" for k in range(1500)) + " FROM people",
    "a bucket": "SELECT COUNT(*) FROM people GROUP BY WIDTH_BUCKET(age, 0, 1, 1000000000)",
    "many dates": "SELECT COUNT(*) FROM people WHERE born IN ("
    + ", ".join(["DATE(" * 5 + "'2026-01-01'" + ")" * 5] * 1000)
    + ")",
    "many arrays": "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(["ARRAY[" * 5 + "1" + "]" * 5] * 1000) + ")",
    "types in types": "SELECT COUNT(*) FROM people WHERE CAST(age AS " + "ARRAY<" * 200 + "INT" + ">" * 200 + ") = 3",
    "length": "SELECT COUNT(*) FROM people WHERE sex = '" + "x" * 60_000 + "'",
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_deep_long_or_wide_is_answered_or_refused(name: str) -> None:
    """Each ends: what would not, the test run's own limit of time would end."""
    try:
        parse(DEEP[name], TABLES)
    except cl.CloisterError as refusal:
        assert len(str(refusal)) < 600  # noqa: PT017 - either outcome is right; a refusal must be short


def test_a_name_that_looks_like_sql_is_a_name() -> None:
    strange = {
        "; DROP TABLE x --": cl.Integer(0, 9),
        "age + 1": cl.Integer(0, 9),
        "true": cl.Integer(0, 9),
        "🦆": cl.Integer(0, 9),
    }
    table = cl.PrivateTable({name: [1] for name in strange}, columns=strange)
    for name in strange:
        question = parse(f'SELECT SUM("{name}") AS s, SUM("{name}" + 1) AS t FROM x', {"x": table}).question
        assert question.statistics[0].column == name  # type: ignore[union-attr]
        assert question.statistics[1].column not in list(strange)  # type: ignore[operator, union-attr]
    both = parse('SELECT SUM("age + 1") AS s, SUM("true" + 1) AS t, SUM(CASE WHEN TRUE THEN 1 END) AS u FROM x', {"x": table})
    assert len({statistic.column for statistic in both.question.statistics}) == 3  # type: ignore[union-attr]
