"""Forms of peers' grammar, each with DuckDB's answer to the same rows: as DuckDB writes them in `forms.sql`, and below as other
dialects do, with what DuckDB would be asked instead."""

from __future__ import annotations

import math
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
DAYS = "SELECT RPAD(DAYNAME(day), 9, ' '), COUNT(*) FROM visits GROUP BY 1"
SHORT = "SELECT UPPER(strftime(day, '%a')), COUNT(*) FROM visits GROUP BY 1"
LOW = "SELECT LOWER(MONTHNAME(day)), COUNT(*) FROM visits GROUP BY 1"
ISO = "SELECT strftime(day, '%G-%V'), COUNT(*) FROM visits GROUP BY 1"
QUARTERS = "SELECT YEAR(day) || '-Q' || QUARTER(day), COUNT(*) FROM visits GROUP BY 1"
SINCE_MARCH = "SELECT COUNT(*) FROM visits WHERE day >= DATE '2026-03-01'"
WEEKS = "SELECT date_trunc('week', day), COUNT(*) FROM visits GROUP BY 1"
QUANTILES = "SELECT quantile_disc(age, 0.26), quantile_disc(age, 0.51), quantile_disc(age, 0.77) FROM people"
SEVENTH = "SELECT quantile_disc(age, 1 / 7) FROM people"
SOME = " HAVING COUNT(*) > 0.5"
OTHERS: list[tuple[str | None, str, str]] = [
    ("bigquery", "SELECT FORMAT_DATE('%Y-%m', day) AS m, COUNT(*) FROM visits GROUP BY m", MONTHS),
    ("postgres", "SELECT TO_CHAR(day, 'YYYY-MM') AS m, COUNT(*) FROM visits GROUP BY m", MONTHS),
    ("postgres", f"SELECT TO_CHAR(day, 'Day') AS d, COUNT(*) FROM visits GROUP BY d{SOME}", DAYS),
    ("oracle", f"SELECT TO_CHAR(day, 'DY') AS d, COUNT(*) FROM visits GROUP BY TO_CHAR(day, 'DY'){SOME}", SHORT),
    ("postgres", f"SELECT TO_CHAR(day, 'fmmonth') AS d, COUNT(*) FROM visits GROUP BY d{SOME}", LOW),
    ("redshift", f"SELECT TO_CHAR(day, 'IYYY-IW') AS d, COUNT(*) FROM visits GROUP BY d{SOME}", ISO),
    ("postgres", f"SELECT TO_CHAR(day, 'YYYY\"-Q\"Q') AS d, COUNT(*) FROM visits GROUP BY d{SOME}", QUARTERS),
    ("bigquery", f"SELECT FORMAT_DATE('%Y-Q%Q', day) AS d, COUNT(*) FROM visits GROUP BY d{SOME}", QUARTERS),
    (
        "postgres",
        f"SELECT TO_CHAR(day, '\"day \"D') AS d, COUNT(*) FROM visits WHERE TO_CHAR(day, 'DDD') > '100' GROUP BY d{SOME}",
        "SELECT 'day ' || (EXTRACT(DOW FROM day) + 1), COUNT(*) FROM visits WHERE strftime(day, '%j') > '100' GROUP BY 1",
    ),
    (
        "postgres",
        "SELECT COUNT(*) FROM people WHERE town SIMILAR TO '(D|G)%_t'",
        "SELECT COUNT(*) FROM people WHERE town LIKE 'D%t'",
    ),
    (
        "snowflake",
        "SELECT LISTAGG(town) WITHIN GROUP (ORDER BY town) AS t FROM towns",
        "SELECT STRING_AGG(town, '' ORDER BY town) FROM towns",
    ),
    (
        "oracle",
        "SELECT LISTAGG(town, '-') WITHIN GROUP (ORDER BY town) AS t FROM towns",
        "SELECT STRING_AGG(town, '-' ORDER BY town) FROM towns",
    ),
    (
        "bigquery",
        "SELECT TIME_TRUNC(PARSE_TIME('%H:%M', '10:20'), HOUR) AS t, TIME_DIFF(TIME '10:00:00', TIME(9, 30, 0), MINUTE) AS d,"
        " TIME_ADD(TIME '23:30:00', INTERVAL 45 MINUTE) AS s, COUNT(*) AS n FROM people",
        "SELECT '10:00:00', 30, '00:15:00', COUNT(*) FROM people",
    ),
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
    (
        "bigquery",
        "SELECT APPROX_QUANTILES(age, 100, contribution_bounds_per_row => (45, 60))[OFFSET(26)] AS n FROM people",
        "SELECT quantile_disc(LEAST(GREATEST(age, 45), 60), 0.26) FROM people",
    ),
    (
        "bigquery",
        "SELECT SAFE.LN(COUNT(*)) AS n, SAFE.SUBSTR(town, 1, 2) AS t FROM people GROUP BY t",
        "SELECT LN(COUNT(*)), SUBSTRING(town, 1, 2) FROM people WHERE town IS NOT NULL GROUP BY 2",
    ),
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
        "SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000000000, kappa = 9) ward,"
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
        "SELECT INITCAP(LOWER(town) || '-a bC') AS s, COUNT(*) FROM people GROUP BY s",
        "SELECT town || '-A Bc' AS s, COUNT(*) FROM people WHERE town IS NOT NULL GROUP BY s",
    ),
    (
        "spark",
        "SELECT INITCAP(LOWER(town) || '-a bC') AS s, COUNT(*) FROM people GROUP BY s",
        "SELECT town || '-a Bc' AS s, COUNT(*) FROM people WHERE town IS NOT NULL GROUP BY s",
    ),
    *(
        (
            dialect,
            "SELECT INITCAP(CONCAT(LOWER(town), '-a bC')) AS s FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town) t",
            f"SELECT DISTINCT town || '{capitals}' AS s FROM people WHERE town IS NOT NULL",
        )
        for dialect, capitals in (("postgres", "-A Bc"), ("bigquery", "-A Bc"), ("spark", "-a Bc"))
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
        (None, "SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(town, '(De)*t')", "REGEXP_MATCHES"),
        (None, "SELECT COUNT(*) FROM people WHERE town SIMILAR TO '100%'", "SIMILAR TO"),
        ("mysql", "SELECT COUNT(*) FROM people WHERE town SIMILAR TO 'D.*'", "SIMILAR TO"),
        (None, "SELECT sex, STRING_AGG(town, ',') FROM people GROUP BY sex", "STRING_AGG"),
        (None, "SELECT LISTAGG(age, ',') WITHIN GROUP (ORDER BY age) FROM people", "STRING_AGG"),
        (None, "SELECT STRING_AGG(town, ',') OVER () FROM towns", "OVER"),
        (None, "SELECT STRING_AGG(town, province) FROM towns", "separator"),
        (None, "SELECT COUNT(*) FROM people WHERE town LIKE '%a!_%e' ESCAPE '!'", "ESCAPE"),
        (None, "SELECT COUNT(DISTINCT patient) FILTER (WHERE patient = 7) FROM visits", "FILTER"),
        (None, "SELECT COUNT(DISTINCT patient) FILTER (WHERE cost > 9) AS n FROM visits HAVING COUNT(*) > 3", "FILTER"),
        (None, "SELECT ward, COUNT(DISTINCT patient) FILTER (WHERE ward = 'A') AS n FROM visits GROUP BY ward", "FILTER"),
        (None, "SELECT SUM(DISTINCT age) FROM people", "DISTINCT in SUM"),
        (None, "SELECT 1 + QUANTILE_CONT(age, [0.25, 0.5]) AS q FROM people", "ARRAY"),
        (None, "SELECT QUANTILE_CONT(age, [0.25, 0.5])[3] AS q FROM people", "place in a list"),
        (None, "SELECT COUNT(*) FROM patients LEFT JOIN (visits v JOIN drugs d USING (visit)) USING (patient)", "parentheses"),
        (None, "SELECT CONCAT_WS(sex, town, sex) AS s, COUNT(*) FROM people GROUP BY s", "separator"),
        ("snowflake", "SELECT INITCAP(town, '-') AS s, COUNT(*) FROM people GROUP BY s", "second argument"),
        (None, "SELECT REVERSE(town || 'e\u0301') AS s, COUNT(*) FROM people GROUP BY s", "several characters"),
        (None, "SELECT COUNT(*) FROM people AS p(a, a)", "two columns would have the same name"),
        (None, "SELECT sex, COUNT(*) FROM people GROUP BY sex UNION BY NAME SELECT town, 1 AS n FROM towns", "same names"),
        (None, "SELECT COUNT(*) FROM (SELECT cost FROM visits UNION ALL BY NAME SELECT fee FROM visits) t", "same names"),
        ("bigquery", "SELECT TIME(day) AS t, COUNT(*) FROM visits GROUP BY t", "time of day"),
        ("bigquery", "SELECT PARSE_TIME('%H', 'ten') AS t, COUNT(*) FROM visits", "A time is invalid"),
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


WHERE_NULLS_ARE = (
    "SELECT COUNT(*) FROM stays a FULL JOIN stays b ON a.who = b.who AND a.x = b.y WHERE a.x = b.y",
    "SELECT COUNT(*) FROM stays a LEFT JOIN stays b ON a.who = b.who AND a.x = b.y WHERE a.x = b.y",
    "SELECT COUNT(*) FROM folk f WHERE NOT (EXISTS (SELECT 1 FROM places t WHERE t.town = f.town AND t.people < 9) AND age > 20)",
    "SELECT COUNT(*) FROM folk WHERE (EXISTS (SELECT 1 FROM places t WHERE t.town = folk.town AND t.people > 30)) = FALSE",
    "SELECT COUNT(*) FROM folk WHERE EXISTS (SELECT 1 FROM places t WHERE t.town = folk.town AND t.province = 'ZH') OR age > 35",
    "SELECT COUNT(*), SUM(x) FROM (SELECT DISTINCT ON (who) who, 5 - x AS x FROM stays ORDER BY who, x DESC NULLS LAST) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (who, k) who, COALESCE(k, 'A') AS k FROM stays ORDER BY who, k) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT who, s FROM (SELECT who, k, SUM(y) AS s FROM stays GROUP BY who, k) t) u",
    "SELECT COUNT(*) FROM (SELECT who, AVG(y) AS s FROM stays GROUP BY who) t WHERE s IS NULL",
)
"""A condition of WHERE beside that of an outer join, NULL where EXISTS says no, a name given anew, sums of nothing."""


@pytest.mark.parametrize("sql", WHERE_NULLS_ARE)
def test_nulls_are_where_duckdb_has_them(sql: str) -> None:
    stays = {
        "who": [1, 1, 1, 2, 2, 3, 4, 4],
        "k": ["A", "B", None, "A", "A", "B", "C", "A"],
        "x": [5, 2, None, 3, 3, 0, 4, 1],
        "y": [None, 1, 2, 3, None, 0, 1, 4],
    }
    folk = {"who": [1, 2, 3, 4, 5], "town": ["Delft", None, "Gouda", "Leiden", "Delft"], "age": [30, 40, 25, 60, 50]}
    places = {
        "town": ["Delft", "Gouda", "Leiden", None, "Utrecht"],
        "province": ["ZH", "ZH", None, "UT", "UT"],
        "people": [100, 20, 50, 7, None],
    }
    step, town = cl.Integer(0, 5, nullable=True), cl.Category(["Delft", "Gouda", "Leiden"], nullable=True)
    kinds = {"k": cl.Category(["A", "B", "C"], nullable=True), "x": step, "y": step}
    made = {
        "stays": cl.PrivateTable(stays, columns=kinds, unit="who", max_rows=4, population="all"),
        "folk": cl.PrivateTable(folk, columns={"town": town, "age": cl.Integer(0, 90)}, unit="who", max_rows=1, population="all"),
        "places": cl.PublicTable(places),
    }
    with cl.Session(made, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        found = session.sql(sql, spend=10**9).to_pydict()
    engine = duckdb.connect()
    for name, columns in {"stays": stays, "folk": folk, "places": places}.items():
        types = ", ".join(f"{each} {'VARCHAR' if each in ('k', 'town', 'province') else 'BIGINT'}" for each in columns)
        engine.execute(f"CREATE TABLE {name} ({types})")
        marks = ", ".join("?" * len(columns))
        engine.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row) for row in zip(*columns.values(), strict=True)])
    assert [values[0] for values in found.values()] == list(engine.execute(sql).fetchone() or ())


@pytest.mark.parametrize(
    ("dialect", "letters"),
    [("oracle", "fmMonth DD"), (None, "fmMonth DD"), ("spark", "DD"), ("databricks", "yyyy-mm")],
)
def test_letters_that_mean_another_thing_in_a_dialect_are_refused(session: cl.Session, dialect: str | None, letters: str) -> None:
    with pytest.raises(cl.UnsupportedQuery):
        session.sql(f"SELECT TO_CHAR(day, '{letters}') AS d, COUNT(*) FROM visits GROUP BY 1", spend=1, dialect=dialect)


TIMES = [
    (
        "bigquery",
        "SELECT TIME_TRUNC(TIME(came), HOUR) AS h, COUNT(*) FROM t GROUP BY h",
        "SELECT strftime(came, '%H:00:00'), COUNT(*)",
    ),
    (
        "bigquery",
        "SELECT FORMAT_TIME('%H:%M', TIME(came)) AS h, COUNT(*) FROM t GROUP BY h",
        "SELECT strftime(came, '%H:%M'), COUNT(*)",
    ),
    ("bigquery", "SELECT COUNT(*) FROM t WHERE TIME(came) >= TIME '10:30:00'", "SELECT COUNT(*) FILTER (came::TIME >= '10:30')"),
    (None, "SELECT COUNT(*) FROM t WHERE came::TIME < '10:30' AND TIME '08:00' <= came::TIME", ""),
    (None, "SELECT EXTRACT(HOUR FROM came::TIME) AS h, COUNT(*) FROM t GROUP BY h", ""),
]


def test_times_of_day_are_those_of_moments() -> None:
    came = [f"2026-01-{1 + place % 28:02}T{place * 7 % 24:02}:{place * 31 % 60:02}:{place % 60:02}" for place in range(120)]
    table = cl.PrivateTable({"came": came}, {"came": cl.Moment("2026-01-01", "2026-01-31")})
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t (came TIMESTAMP)")
    connection.executemany("INSERT INTO t VALUES (?)", [[each] for each in came])
    with connection, cl.Session({"t": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        for dialect, sql, expected in TIMES:
            groups = " GROUP BY 1" if "GROUP" in sql else ""
            theirs = connection.execute(f"{expected} FROM t{groups}" if expected else sql).fetchall()
            mine = [row for row in cells(session.sql(sql, spend=10**6, dialect=dialect)) if row[-1]]
            assert sorted(mine) == sorted(cells(theirs)), sql
        for condition in ("came::TIME > '10:30'", "came::TIME >= '10:30:30'", "came::TIME = '10:30'"):
            with pytest.raises(cl.UnsupportedQuery, match="by >= and < with a whole minute"):
                session.explain(f"SELECT COUNT(*) FROM t WHERE {condition}", spend=1)


def test_a_list_of_texts_is_known_as_far_as_its_parts_are(session: cl.Session) -> None:
    groups = "(SELECT town, COUNT(*) AS n FROM people WHERE age < 61 GROUP BY town) AS t"
    for text, known in (("town, ','", True), ("town, ',' ORDER BY n", False), ("town || n, ','", False)):
        found = session.sql(f"SELECT STRING_AGG({text}) AS t FROM {groups}", spend=1)
        assert list(found.statistics()) == ([] if known else ["t"])
        assert known or math.isnan(found.margin()["t"][0])
    with pytest.raises(cl.CloisterError, match="a list of them"):
        session.sql(
            "SELECT STRING_AGG(a.town || b.town || c.town || d.town || e.town || f.town || g.town, ',') FROM "
            + ", ".join(f"towns {each}" for each in "abcdefg"),
            spend=1,
        )


def test_a_query_of_very_many_parts_is_refused_before_it_is_read(session: cl.Session) -> None:
    columns = ", ".join(f"SUM({'*'.join(['age'] * 38)}) AS c{place}" for place in range(200))
    with pytest.raises(cl.UnsupportedQuery, match="more than 15,000 parts"):
        session.explain(f"SELECT {columns} FROM people", spend=1)


def test_a_moment_is_compared_with_a_timestamp_and_refusals_name_its_hour() -> None:
    table = cl.PrivateTable(
        {"came": ["2026-01-05 09:30:00", "2026-01-05 09:30:01", "2026-01-06 00:00:00"], "town": ["a", "b", "c"]},
        {"came": cl.Moment("2026-01-01", "2026-01-31"), "town": cl.Category(["a", "b", "c"])},
    )
    session = cl.Session({"visits": table}, budget=cl.PureDP(10**9), random=Random.deterministic(1))
    for condition, wanted in {
        "came > TIMESTAMP '2026-01-05 09:30:00'": 2,
        "came >= TIMESTAMP '2026-01-05T09:30'": 3,
        "came < CAST('2026-01-06' AS TIMESTAMP)": 2,
        "came BETWEEN TIMESTAMP '2026-01-05 09:30:01' AND TIMESTAMP '2026-01-05 23:59:59.0'": 1,
        "came > TIMESTAMP '2026-01-05 17:30:00+08:00'": 2,
        "came > CAST('2026-01-05T09:30:00Z' AS TIMESTAMPTZ)": 2,
        "came >= TIMESTAMPTZ '2026-01-06 08:00+08'": 1,
        "came >= TIMESTAMP WITH TIME ZONE '2026-01-06 08:00+08'": 1,
        "came >= CAST('2026-01-06 08:00+08' AS TIMESTAMP WITH TIME ZONE)": 1,
        "CAST(came AS DATE) = TIMESTAMP '2026-01-05 19:00:00-05:00'": 1,
    }.items():
        found = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", spend=10**4)
        assert found.to_pydict()["n"] == [wanted], condition
    for dialect in ("duckdb", "bigquery", "spark", "snowflake"):
        text = "SELECT COUNT(*) AS n FROM visits WHERE came > TIMESTAMP '2026-01-05 09:30:00'"
        assert session.sql(text, spend=10**4, dialect=dialect).to_pydict()["n"] == [2], dialect
    for text, line in {
        "SELECT COUNT(*) FROM visits WHERE came < TIMESTAMP '2026-02-30 01:00:00'": "DATE '2026-01-31'",
        "SELECT COUNT(*) FROM visits WHERE came < TIMESTAMP '0001-01-01 01:00:00+08:00'": "DATE '2026-01-31'",
        "SELECT DATE_TRUNC('hour', came) AS h, COUNT(*) AS n FROM visits GROUP BY 1": "HOUR(came)",
        "SELECT AVG(DATE_DIFF('minute', TIMESTAMP '2026-01-01', came)) AS n FROM visits": "MINUTE(came)",
        "SELECT MIN(came) AS first FROM visits": "CAST(came AS DATE), or hour(came)",
    }.items():
        with pytest.raises(cl.UnsupportedQuery) as refused:
            session.sql(text, spend=1)
        assert line in refused.value.instead, text
