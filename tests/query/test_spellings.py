"""Forms of peers' grammar, each with DuckDB's answer to the same rows: as DuckDB writes them in `forms.sql`, and below as other
dialects do, with what DuckDB would be asked instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import cloister as cl
from cloister.noise import Random
from tests.query.hospital import plain, rows, tables
from tests.query.test_against_duckdb import alike, cells

FORMS = [
    line for line in (Path(__file__).parent / "forms.sql").read_text(encoding="utf-8").splitlines() if not line.startswith("--")
]
MONTHS = "SELECT strftime(day, '%Y-%m'), COUNT(*) FROM visits GROUP BY 1"
SINCE_MARCH = "SELECT COUNT(*) FROM visits WHERE day >= DATE '2026-03-01'"
WEEKS = "SELECT date_trunc('week', day), COUNT(*) FROM visits GROUP BY 1"
QUANTILES = "SELECT quantile_disc(age, 0.26), quantile_disc(age, 0.51), quantile_disc(age, 0.77) FROM people"
SEVENTH = "SELECT quantile_disc(age, 1 / 7) FROM people"
SOME = " HAVING COUNT(*) > 0.5"
OTHERS: list[tuple[str | None, str, str]] = [
    ("bigquery", "SELECT FORMAT_DATE('%Y-%m', day) AS m, COUNT(*) FROM visits GROUP BY m", MONTHS),
    ("postgres", "SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM visits GROUP BY m", MONTHS),
    ("sqlite", "SELECT strftime('%Y-%m', day) AS m, COUNT(*) FROM visits GROUP BY m", MONTHS),
    ("tsql", "SELECT FORMAT(day, 'yyyy-MM') AS m, COUNT(*) FROM visits GROUP BY FORMAT(day, 'yyyy-MM')", MONTHS),
    (
        "tsql",
        "SELECT DATENAME(month, day) AS m, COUNT(*) FROM visits GROUP BY DATENAME(month, day)",
        "SELECT MONTHNAME(day), COUNT(*) FROM visits GROUP BY 1",
    ),
    ("postgres", "SELECT COUNT(*) FROM visits WHERE day >= TO_DATE('2026-03-01', 'YYYY-MM-DD')", SINCE_MARCH),
    ("bigquery", "SELECT COUNT(*) FROM visits WHERE day >= PARSE_DATE('%d/%m/%Y', '01/03/2026')", SINCE_MARCH),
    ("spark", "SELECT COUNT(*) FROM visits WHERE day >= to_date('2026-03-01')", SINCE_MARCH),
    ("tsql", "SELECT COUNT(*) FROM visits WHERE day >= DATEFROMPARTS(2026, 3, 1)", SINCE_MARCH),
    ("bigquery", f"SELECT DATE_TRUNC(day, ISOWEEK) AS m, COUNT(*) FROM visits GROUP BY m{SOME}", WEEKS),
    ("bigquery", f"SELECT DATE_TRUNC(day, WEEK(MONDAY)) AS m, COUNT(*) FROM visits GROUP BY m{SOME}", WEEKS),
    (
        "bigquery",
        f"SELECT DATE_TRUNC(day, WEEK) AS m, COUNT(*) FROM visits GROUP BY m{SOME}",
        "SELECT date_trunc('week', day + 1) - INTERVAL 1 DAY, COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "bigquery",
        f"SELECT DATE_TRUNC(day, WEEK(THURSDAY)) AS m, COUNT(*) FROM visits GROUP BY m{SOME}",
        "SELECT date_trunc('week', day - 3) + INTERVAL 3 DAY, COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "bigquery",
        f"SELECT EXTRACT(ISOWEEK FROM day) AS m, COUNT(*) FROM visits GROUP BY m{SOME}",
        "SELECT week(day), COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "spark",
        f"SELECT weekofyear(day) AS m, COUNT(*) FROM visits GROUP BY m{SOME}",
        "SELECT week(day), COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "spark",
        f"SELECT trunc(day, 'MM') AS m, COUNT(*) FROM visits GROUP BY m{SOME}",
        "SELECT date_trunc('month', day), COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "tsql",
        f"SELECT EOMONTH(day) AS m, COUNT(*) FROM visits GROUP BY EOMONTH(day){SOME}",
        "SELECT last_day(day), COUNT(*) FROM visits GROUP BY 1",
    ),
    ("redshift", "SELECT DATEDIFF(day, MIN(day), MAX(day)) FROM visits", "SELECT max(day) - min(day) FROM visits"),
    (
        "mysql",
        "SELECT WEEKDAY(day) AS w, COUNT(*) FROM visits GROUP BY w",
        "SELECT isodow(day) - 1, COUNT(*) FROM visits GROUP BY 1",
    ),
    ("mysql", "SELECT STD(age) FROM people", "SELECT stddev_pop(age) FROM people"),
    (None, "SELECT sex, STD(age) AS s FROM people GROUP BY sex", "SELECT sex, stddev(age) FROM people GROUP BY sex"),
    ("sqlite", "SELECT TOTAL(cost) FROM visits", "SELECT sum(cost) FROM visits"),
    (
        "trino",
        "SELECT geometric_mean(age), approx_distinct(town) FROM people",
        "SELECT geomean(age), count(DISTINCT town) FROM people",
    ),
    (None, "SELECT APPROX_COUNT_DISTINCT(patient) FROM visits", "SELECT COUNT(DISTINCT patient) FROM visits"),
    (None, "SELECT COUNT(DISTINCT sex, town) FROM people", "SELECT COUNT(DISTINCT (sex, town)) FROM people"),
    (None, "SELECT QUANTILE_DISC(age, [0.26, 0.51, 0.77]) FROM people", QUANTILES),
    (
        "postgres",
        "SELECT PERCENTILE_DISC(ARRAY[0.26, 0.51, 0.77]) WITHIN GROUP (ORDER BY age) FROM people",
        QUANTILES,
    ),
    ("spark", "SELECT percentile_approx(age, array(0.26, 0.51, 0.77)) FROM people", QUANTILES),
    ("trino", "SELECT approx_percentile(age, ARRAY[0.26, 0.51, 0.77]) FROM people", QUANTILES),
    ("bigquery", "SELECT APPROX_QUANTILES(age, 7)[OFFSET(1)] AS n FROM people", SEVENTH),
    ("bigquery", "SELECT APPROX_QUANTILES(age, 7)[ORDINAL(2)] AS n FROM people", SEVENTH),
    ("duckdb", "SELECT quantile_disc(age, [0.142857, 0.5])[1] AS n FROM people", SEVENTH),
    (None, "SELECT QUANTILE_DISC(age, [0.142857, 0.5])[1] AS n FROM people", SEVENTH),
    (
        "bigquery",
        "SELECT SAFE_MULTIPLY(SUM(cost), 2), SAFE_ADD(COUNT(*), 1),"
        " SAFE_SUBTRACT(COUNT(*), 1), SAFE_NEGATE(SUM(fee)) FROM visits",
        "SELECT 2 * SUM(cost), COUNT(*) + 1, COUNT(*) - 1, -SUM(fee) FROM visits",
    ),
    ("bigquery", "SELECT SUM(SAFE_ADD(cost, 2)) FROM visits", "SELECT SUM(cost + 2) FROM visits"),
    (
        "bigquery",
        "SELECT RANGE_BUCKET(age, [20, 40, 60]) AS g, COUNT(*) FROM people GROUP BY g",
        "SELECT CASE WHEN age < 20 THEN 0 WHEN age < 40 THEN 1 WHEN age < 60 THEN 2 ELSE 3 END, COUNT(*) FROM people GROUP BY 1",
    ),
    (
        "bigquery",
        "SELECT COUNT(*) FROM people WHERE age IN UNNEST([30, 31])",
        "SELECT COUNT(*) FROM people WHERE age IN (30, 31)",
    ),
    ("postgres", "SELECT COUNT(*) FROM people WHERE town ~* '^d'", "SELECT COUNT(*) FROM people WHERE town ILIKE 'd%'"),
    (
        "bigquery",
        "SELECT COUNT(*) FROM people WHERE REGEXP_CONTAINS(town, 'e')",
        "SELECT COUNT(*) FROM people WHERE town LIKE '%e%'",
    ),
    (
        "oracle",
        "SELECT DECODE(sex, 'F', 'w', 'm') AS g, COUNT(*) FROM people GROUP BY DECODE(sex, 'F', 'w', 'm')",
        "SELECT if(sex = 'F', 'w', 'm'), COUNT(*) FROM people GROUP BY 1",
    ),
    (
        "redshift",
        "SELECT NVL2(smoker, 1, 0) AS s, COUNT(*) FROM people GROUP BY 1",
        "SELECT if(smoker IS NULL, 0, 1), COUNT(*) FROM people GROUP BY 1",
    ),
    (
        "snowflake",
        "SELECT town, RATIO_TO_REPORT(COUNT(*)) OVER () AS s FROM people GROUP BY town",
        "SELECT town, COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY town",
    ),
    ("bigquery", "SELECT * EXCEPT (inhabitants) FROM towns", "SELECT town, province FROM towns"),
    (
        "bigquery",
        "SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000000, kappa = 9) ward,"
        " ANON_COUNT(*), ANON_SUM(fee CLAMPED BETWEEN 10 AND 40) FROM visits GROUP BY ward",
        "SELECT ward, SUM(n), SUM(LEAST(GREATEST(s, 10), 40))"
        " FROM (SELECT patient, ward, COUNT(*) AS n, SUM(fee) AS s FROM visits GROUP BY ALL) GROUP BY ward",
    ),
    (
        "bigquery",
        "SELECT VAR_POP(age, contribution_bounds_per_row => (30, 60)) AS v FROM people",
        "SELECT VAR_POP(LEAST(GREATEST(age, 30), 60)) FROM people",
    ),
    (
        "bigquery",
        "SELECT PERCENTILE_CONT(age, 0.26, contribution_bounds_per_row => (45, 60)) AS n FROM people",
        "SELECT quantile_disc(LEAST(GREATEST(age, 45), 60), 0.26) FROM people",
    ),
    (
        None,
        "SELECT sex, a.n, b.m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) a FULL JOIN"
        " (SELECT town AS sex, COUNT(*) AS m FROM patients GROUP BY town) b USING (sex)",
        "SELECT sex, a.n, b.m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) a FULL JOIN"
        " (SELECT town AS sex, COUNT(*) AS m FROM patients GROUP BY town) b USING (sex)",
    ),
    (
        None,
        "SELECT town, n FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a RIGHT JOIN towns t USING (town)",
        "SELECT town, n FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a RIGHT JOIN towns t USING (town)",
    ),
    (
        None,
        "SELECT t.town FROM towns t ANTI JOIN (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a USING (town)",
        "SELECT t.town FROM towns t ANTI JOIN (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a USING (town)",
    ),
    (
        None,
        "SELECT a.town, n FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a SEMI JOIN towns t USING (town)",
        "SELECT a.town, n FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) a SEMI JOIN towns t USING (town)",
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """So much budget that the noise is nil."""
    with cl.Session(tables(rows()), budget=cl.PureDP(10**15), random=Random.deterministic(1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with plain(rows()) as connection:
        yield connection


def close(left: object, right: object) -> bool:
    """Moments and quotients come from noisy sums: they agree to a thousandth."""
    if isinstance(left, float) and isinstance(right, int | float):
        return abs(left - right) <= 1e-3 * max(1, abs(right))
    return alike(left, right)


@pytest.mark.parametrize(("dialect", "sql", "expected"), [*((None, sql, sql) for sql in FORMS), *OTHERS])
def test_the_answer_is_duckdbs(
    session: cl.Session, engine: duckdb.DuckDBPyConnection, dialect: str | None, sql: str, expected: str
) -> None:
    mine, theirs = cells(session.sql(sql, spend=10**9, dialect=dialect)), cells(engine.execute(expected).fetchall())
    assert theirs
    mine, theirs = sorted(mine, key=repr), sorted(theirs, key=repr)
    assert [len(row) for row in mine] == [len(row) for row in theirs]
    for left, right in zip(mine, theirs, strict=True):
        assert all(map(close, left, right)), (left, right)


@pytest.mark.parametrize(
    ("dialect", "sql", "named"),
    [
        ("mysql", "SELECT WEEK(day) AS w, COUNT(*) FROM visits GROUP BY w", "WEEK"),
        ("bigquery", "SELECT EXTRACT(WEEK FROM day) AS w, COUNT(*) FROM visits GROUP BY w", "WEEK"),
        ("mysql", "SELECT COUNT(*) FROM people WHERE town REGEXP '^d'", "regular expression"),
        (None, "SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(town, 'D.*t')", "REGEXP_MATCHES"),
        (None, "SELECT COUNT(*) FROM people WHERE town LIKE '%a!_%e' ESCAPE '!'", "ESCAPE"),
        (None, "SELECT SUM(DISTINCT age) FROM people", "DISTINCT in SUM"),
        (None, "SELECT 1 + QUANTILE_CONT(age, [0.25, 0.5]) AS q FROM people", "ARRAY"),
        (None, "SELECT QUANTILE_CONT(age, [0.25, 0.5])[3] AS q FROM people", "place in a list"),
        (None, "SELECT COUNT(*) FROM patients LEFT JOIN (visits v JOIN drugs d USING (visit)) USING (patient)", "parentheses"),
        (None, "SELECT CONCAT_WS('-', sex, town) AS s, COUNT(*) FROM people GROUP BY s", "CONCAT_WS"),
        ("bigquery", "SELECT TIME_TRUNC(PARSE_TIME('%H', '10'), HOUR) AS t, COUNT(*) FROM visits GROUP BY t", "time of day"),
        (None, "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY age) AS r FROM visits) t WHERE r < 9", "each person"),
        (None, "SELECT COUNT(*) FROM (SELECT *, RANK() OVER (PARTITION BY ward ORDER BY cost) r FROM visits) t", "each person"),
        (None, "SELECT COUNT(*) FROM (SELECT SUM(cost) OVER (PARTITION BY patient ORDER BY day) s FROM visits) t", "window"),
        (
            None,
            "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY visit) r FROM visits) t",
            "'visit'",
        ),
        (None, "SELECT cost, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS r FROM visits", "OVER"),
        (None, "SELECT COUNT(*) FROM (SELECT town FROM people UNION SELECT town FROM people) t", "UNION"),
        (None, "SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM visits WHERE cost > 9) t", "EXCEPT"),
        (
            None,
            "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.ward = v.ward AND w.cost > v.cost)",
            "EXISTS",
        ),
        (
            None,
            "SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(cost) FROM visits w WHERE w.ward = v.ward)",
            "nested query",
        ),
        (None, "SELECT * EXCEPT (nothing) FROM towns", "nothing"),
        (None, "FROM people", "rows never leave"),
    ],
)
def test_what_is_unsafe_or_means_two_things_is_refused(session: cl.Session, dialect: str | None, sql: str, named: str) -> None:
    before = session.spent_by
    with pytest.raises(cl.CloisterError, match=named):
        session.sql(sql, spend=1, dialect=dialect)
    assert session.spent_by == before


def test_a_number_bounds_the_noise() -> None:
    """With at most two rows of a person, a count needs half the noise of one with four."""
    with cl.Session(tables(rows()), budget=cl.PureDP(10)) as session:
        one = "SELECT COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS r FROM visits) AS t"

        def margin(sql: str) -> float:
            return float(session.explain(sql, spend=1).margin()["n"][0])

        assert margin(f"{one} WHERE r <= 2") < 0.6 * margin(one)
        assert margin(f"{one} WHERE r = 1") < 0.35 * margin(one)
        same = "w.patient = v.patient AND w.ward = v.ward"
        exists = f"SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE {same})"
        assert margin(exists) == margin("SELECT COUNT(*) AS n FROM visits")


def test_the_columns_of_a_list_are_named_by_their_shares(session: cl.Session) -> None:
    sql = "SELECT sex, QUANTILE_CONT(age, [0.025, 0.5]) AS q, APPROX_QUANTILES(pay, 2) AS p FROM people GROUP BY sex"
    assert session.sql(sql, spend=10).column_names == ["sex", "q_2_5", "q_50", "p_0", "p_50", "p_100"]
