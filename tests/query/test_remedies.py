"""Every refusal is provoked, and speaks of the tables that were asked: its line names no other table and no column that they do
not have."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot

import cloister as cl
from cloister import query
from cloister.query import parse, refusals
from cloister.query.views import row_condition
from cloister.session import Question, Sum
from tests.query.test_pages import REFUSALS

RENAMED = {
    "people": "staff", "age": "level", "sex": "grade", "pay": "wage", "town": "site", "born": "hired", "smoker": "senior",
    "educ": "grade", "patients": "guests", "visits": "stays", "patient": "guest", "cost": "nights", "ward": "wing",
    "day": "since",
    "fee": "bill", "towns": "places", "inhabitants": "size", "province": "region", "census": "house",
}  # fmt: skip
MORE = """
SELECT level, COUNT(*)
SELECT , COUNT(*) FROM staff
SELECT COUNT（*） FROM staff WHERE grade ＝ 'a'
SELECT COUNT(*) FROM staff WHERE level > ANY (SELECT 1)
SELECT SUM(level) OVER () FROM staff
SELECT COUNT(*) FROM staff WHERE level BETWEEN SYMMETRIC 1 AND 2
SELECT COUNT(*) FROM staff WHERE site ILIKE 'd%'
SELECT COUNT(*) FROM staff AS s(a)
SELECT grade, level + 1, COUNT(*) FROM staff GROUP BY grade
WITH t AS (DELETE FROM staff) SELECT COUNT(*) FROM staff
SELECT COUNT(*) FROM staff WHERE hired > MAKE_DATE(2026, 2, 31)
SELECT DATE_TRUNC('century', hired) AS c, COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE site LIKE 'a' ESCAPE '!'
SELECT COUNT(*) FROM staff WHERE site LIKE grade
SELECT COUNT(*) FROM staff WHERE level + 1
SELECT COUNT(*) FROM staff WHERE level IS 3
SELECT ARRAY_AGG(level) FROM staff
SELECT FIRST(level), LAST(level) FROM staff
SELECT LAST(level) FROM staff
SELECT ANY_VALUE(grade) FROM staff
SELECT BOOL_OR(senior) FROM staff
SELECT BOOL_AND(senior) FROM staff
SELECT STRING_AGG(grade) FROM staff
SELECT APPROX_QUANTILES(level, 1000) FROM staff
SELECT QUANTILE_CONT(level, [0.5])[2] FROM staff
SELECT 1 + APPROX_QUANTILES(level, 4) FROM staff
SELECT MAX(level, wage) FROM staff
SELECT COUNT(*) FROM guests AS g LEFT JOIN (stays AS s JOIN trips AS t ON t.guest = s.guest) ON g.guest = s.guest
SELECT COUNT(DISTINCT (guest, wing)) FROM stays
SELECT COUNT(*) FROM (SELECT *, RANK() OVER (PARTITION BY wing ORDER BY nights) AS r FROM stays) AS t
SELECT COUNT(*) FROM (SELECT SUM(nights) OVER (PARTITION BY guest ORDER BY since) AS r FROM stays) AS t
SELECT COUNT(*) FROM (SELECT wing, COUNT(*), RANK() OVER (PARTITION BY guest) AS r FROM stays GROUP BY wing) AS t
SELECT COUNT(*) FROM (SELECT wing FROM stays EXCEPT SELECT wing FROM stays) AS t
SELECT COUNT(*) FROM (SELECT wing FROM stays UNION SELECT wing FROM stays) AS t
SELECT COUNT(*) FROM (SELECT * EXCEPT (nothing) FROM stays) AS t
SELECT COUNT(* EXCEPT (level)) FROM staff
SELECT CONCAT_WS(grade, site), COUNT(*) FROM staff GROUP BY 1
SELECT REVERSE(grade || 'e\u0301'), COUNT(*) FROM staff GROUP BY 1
SELECT INITCAP(grade, '-'), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff AS s(a, a)
SELECT COUNT(*) FROM (SELECT wing FROM stays UNION ALL BY NAME SELECT nights FROM stays) AS t
SELECT COUNT(*) FROM (SELECT wing FROM stays UNION ALL BY NAME ON (wing) SELECT wing FROM stays) AS t
SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade UNION ALL BY NAME SELECT grade, COUNT(*) AS m FROM staff GROUP BY grade
SELECT TIME(hired), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE CAST(hired AS TIME) = TIME '10:30'
SELECT COUNT(*) FROM staff WHERE hired > TIME '25:30'
SELECT PARSE_TIME('ten', '%H') AS t, COUNT(*) FROM staff
SELECT NTILE(0) OVER (ORDER BY n) FROM (SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade) AS t
SELECT STRING_AGG(grade, ',') OVER () FROM (SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade) AS t
SELECT COUNT(*) FROM staff WHERE level > (SELECT MAX(size) + size FROM places)
SELECT STRING_AGG(grade, grade) FROM (SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade) AS t
SELECT COUNT(*) FROM (SELECT RANK() AS r FROM stays) AS t
SELECT QUANTILE(level, 2) FROM staff
SELECT QUANTILE(level, level) FROM staff
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY level, wage) FROM staff
SELECT SUM(MIN(level)) FROM staff
SELECT SUM(DISTINCT level) FROM staff
SELECT COUNT(DISTINCT level, wage) FROM staff
SELECT COUNT() FROM staff
SELECT SUM() FROM staff
SELECT ROUND(AVG(level), level) FROM staff
SELECT FLOOR(AVG(level)) FROM staff
SELECT SUM(EXTRACT(CENTURY FROM hired)) FROM staff
SELECT SUM(DATE_TRUNC('decade', hired)) FROM staff
SELECT DATE_DIFF('hour', hired, hired), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE hired + level > DATE '2026-01-01'
SELECT SUM(WIDTH_BUCKET(level, wage, 3, 4)) FROM staff
SELECT SUM(WIDTH_BUCKET(level, 9, 3, 4)) FROM staff
SELECT SUM(POWER(2, level)) FROM staff
SELECT SUM(LOG(-1, level)) FROM staff
SELECT SUM(CLAMP(level, wage, 3)) FROM staff
SELECT GRID(level, wage), COUNT(*) FROM staff GROUP BY 1
SELECT GRID(level, 500), COUNT(*) FROM staff GROUP BY 1
SELECT REGION(level, 3), COUNT(*) FROM staff GROUP BY 1
SELECT REGION(level), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE ST_WITHIN(level, wage)
SELECT COUNT(*) FROM staff WHERE ST_WITHIN(level, 'a')
SELECT COUNT(*) FROM staff WHERE ST_WITHIN(level, ST_MAKEENVELOPE(4, 52, wage, 53))
SELECT ST_MAKEENVELOPE(4, 52, 5, 53), COUNT(*) FROM staff GROUP BY 1
SELECT ST_POINT(4, 52), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE ST_DWITHIN(level, 500)
SELECT COUNT(*) FROM staff WHERE ST_DWITHIN(level, ST_POINT(4, 52), wage)
SELECT COUNT(*) FROM staff WHERE ST_DWITHIN(level, ST_POINT(4, 52), 500)
SELECT NEAREST(level, 3), COUNT(*) FROM staff GROUP BY 1
SELECT NEAREST(level), COUNT(*) FROM staff GROUP BY 1
SELECT WEEKDAY(), COUNT(*) FROM staff GROUP BY 1
SELECT HOUR(hired), COUNT(*) FROM staff GROUP BY 1
SELECT SUM(ROUND(level, wage)) FROM staff
SELECT SUM(wage // 2) FROM staff
SELECT SUM(grade + 1) FROM staff
SELECT SUM(hired) FROM staff
SELECT SUM(hired + hired) FROM staff
SELECT SUM(1 / level) FROM staff
SELECT SUM(EXP(level)) FROM staff
SELECT SUM(POWER(level, -2)) FROM staff
SELECT SUM(CAST(hired AS INTEGER)) FROM staff
SELECT CAST(grade AS CHAR(2)), COUNT(*) FROM staff GROUP BY 1
SELECT CAST(wage AS TEXT), COUNT(*) FROM staff GROUP BY 1
SELECT SUM(CAST(level AS JSON)) FROM staff
SELECT TRIM(BOTH 'x' FROM site), COUNT(*) FROM staff GROUP BY 1
SELECT UPPER(level), COUNT(*) FROM staff GROUP BY 1
SELECT CASE WHEN level > 2 THEN 'a' ELSE 3 END, COUNT(*) FROM staff GROUP BY 1
SELECT COALESCE(level, grade), COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff WHERE level > CAST(2.5 AS INTEGER)
SELECT COUNT(*) FROM staff WHERE hired > DATE '2026-02-31'
SELECT COUNT(*) FROM staff WHERE hired > hired + INTERVAL '3' HOUR
SELECT COUNT(*) FROM staff WHERE level = 'x'
SELECT COUNT(*) FROM staff WHERE grade > 3
SELECT COUNT(*) FROM staff WHERE grade = TRUE
SELECT COUNT(*) FROM staff WHERE 1e999 < level
SELECT level FROM staff
SELECT *, COUNT(*) FROM staff
SELECT DISTINCT ON (grade) grade FROM staff
SELECT DISTINCT ON (grade) grade FROM staff QUALIFY 1 = 1
SELECT grade FROM staff GROUP BY ALL
SELECT grade, COUNT(*) FROM staff GROUP BY COUNT(*)
SELECT grade, COUNT(*) FROM staff GROUP BY 1, 9
SELECT GROUPING(level), COUNT(*) FROM staff GROUP BY ROLLUP (grade)
SELECT COUNT(*) FROM staff GROUP BY CUBE (grade, site, senior, level, hired, wage, grade, site, senior, level)
SELECT COUNT(*) FROM staff ORDER BY level
SELECT 1e400 AS c, COUNT(*) FROM staff
SELECT grade, COUNT(*) FROM staff GROUP BY grade HAVING level > 3
SELECT COUNT(*) FROM staff LIMIT level
SELECT COUNT(*) FROM staff QUALIFY 1 = 1
SELECT COUNT(*) FROM staff TABLESAMPLE (10)
SELECT COUNT(*) FROM staff AS s (a, b)
SELECT COUNT(*) FROM nowhere
SELECT COUNT(*) FROM staff, stays
SELECT COUNT(*) FROM places
SELECT COUNT(*) FROM places LEFT JOIN staff ON staff.site = places.site
SELECT COUNT(*) FROM stays NATURAL JOIN places
SELECT * FROM (SELECT COUNT(*) AS n FROM staff) a NATURAL JOIN (SELECT COUNT(*) AS m FROM staff) b
SELECT COUNT(*) FROM staff JOIN places ON staff.level > places.size
SELECT COUNT(*) FROM staff FULL JOIN places ON staff.site = places.site
SELECT COUNT(*) FROM guests FULL JOIN stays USING (guest) JOIN trips USING (guest)
SELECT COUNT(*) FROM guests JOIN stays USING (guest) RIGHT JOIN trips USING (guest)
SELECT COUNT(*) FROM trips FULL JOIN things ON things.stay = trips.stay
SELECT COUNT(*) FROM guests FULL JOIN (SELECT guest, level FROM named) AS n USING (guest, level)
SELECT COUNT(*) FROM guests FULL JOIN stays ON guests.guest = stays.guest AND stays.nights > 3
SELECT TO_CHAR(hired, 'HH24') AS h, COUNT(*) FROM staff GROUP BY h
SELECT COUNT(*) FROM staff JOIN (SELECT site, MAX(size) AS m FROM places GROUP BY ROLLUP (site)) AS x ON x.site = staff.site
SELECT COUNT(*) FROM staff JOIN (SELECT site, size, COUNT(*) AS m FROM places GROUP BY site) AS x ON x.site = staff.site
SELECT COUNT(*) FROM staff JOIN (SELECT site FROM places GROUP BY site HAVING MAX(size) > 3) AS x ON x.site = staff.site
SELECT COUNT(*) FROM guests JOIN stays JOIN places ON stays.site = places.site ON guests.guest = stays.guest
SELECT COUNT(*) FROM guests LEFT JOIN stays ON guests.guest = stays.guest AND guests.level > 3
SELECT COUNT(*) FROM guests WHERE guest IN (SELECT nights FROM stays)
SELECT COUNT(*) FROM guests WHERE guest IN (SELECT guest FROM stays LIMIT 3)
SELECT COUNT(*) FROM guests WHERE EXISTS (SELECT 1 FROM stays)
SELECT guest, COUNT(*) FROM stays GROUP BY guest
SELECT SUM(guest) FROM stays
SELECT AVG(t) FROM (SELECT wing, SUM(nights) AS t FROM stays GROUP BY wing) AS x
SELECT AVG(t) FROM (SELECT guest, MEDIAN(nights) AS t FROM stays GROUP BY guest) AS x
SELECT COUNT(*) FROM (SELECT DISTINCT wing FROM stays) AS x
SELECT COUNT(*) FROM (SELECT nights, nights FROM stays) AS x
SELECT COUNT(*) FROM (SELECT guest, nights FROM stays UNION SELECT guest, nights FROM stays) AS x
SELECT COUNT(*) FROM (SELECT guest, nights FROM stays UNION ALL SELECT guest FROM stays) AS x
SELECT COUNT(*) FROM staff UNION ALL SELECT COUNT(*) FROM staff
WITH Staff AS (SELECT level FROM staff) SELECT COUNT(*) FROM Staff
SELECT COUNT(*) FROM staff; SELECT 1
DELETE FROM staff
SELECT COUNT(* FROM staff
WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) FROM t
WITH t (a) AS (SELECT nights FROM stays) SELECT COUNT(*) FROM t
SELECT staff.nothing FROM staff
SELECT other.level FROM staff
SELECT COUNT(nothing) FROM staff
SELECT RAND(), COUNT(*) FROM staff
SELECT FROBNICATE(level) FROM staff
SELECT SUM(level, contribution_bounds_per_group => (0)) FROM staff
SELECT SUM(level, other => 3) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = x) COUNT(*) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (nonsense = 3) COUNT(*) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (privacy_unit_column = level) COUNT(*) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) MEDIAN(nights) FROM stays
SELECT COUNT(*) FROM staff WHERE level IN (SELECT nights FROM stays)
SELECT COUNT(*) FROM staff WHERE level > (SELECT size FROM places)
SELECT COUNT(*) FROM staff WHERE level IN (SELECT SUM(size) OVER () FROM places)
SELECT SUM(REPEAT(grade, 2)) FROM staff
SELECT SUM(level) FROM staff PIVOT (SUM(level) FOR grade IN ('a'))
SELECT UNNEST(level) FROM staff
SELECT COUNT(*) FROM (VALUES (1)) AS t
SELECT SUM(level ORDER BY level) FROM staff
SELECT COUNT(*) FROM staff WHERE site ~ 'a.*'
SELECT grade, COUNT(*) FROM staff GROUP BY grade LIMIT 10 PERCENT
SELECT * FROM staff
SELECT COUNT(DISTINCT guest) FILTER (WHERE nights > 3) FROM stays
SELECT VARIANCE(DISTINCT level) FROM staff
SELECT SUM(level) WITHIN GROUP (ORDER BY level) FROM staff
SELECT QUANTILE_CONT(level) FROM staff
SELECT COUNT(*) FROM staff WHERE level IN (SELECT size, region FROM places)
SELECT COUNT(*) FROM staff WHERE level > (SELECT size FROM many)
SELECT AVG(level + (SELECT size FROM many)) FROM staff
SELECT COUNT(*) FROM staff WHERE level > 3 || 4
SELECT COUNT(*) FROM staff WHERE level > 3 + TRUE
SELECT COUNT(*) FROM staff WHERE hired > 3 + INTERVAL '1' DAY
SELECT COUNT(*) FROM staff WHERE hired > DATE '2026-01-01' + INTERVAL '999999' YEAR
SELECT COUNT(*) FROM (SELECT guest FROM stays EXCEPT SELECT guest FROM guests) AS x
SELECT COUNT(*) FROM staff WHERE level > (SELECT 3)
SELECT COUNT(*) FROM staff JOIN (SELECT site, COUNT(*) AS n FROM places GROUP BY site) AS p ON staff.site = p.site
SELECT COUNT(*) FROM staff JOIN (SELECT site, size FROM places WHERE size > 100) AS p ON staff.site = p.site
SELECT AVG(nights) FROM (SELECT guest, nights FROM stays HAVING nights > 3) AS x
SELECT COUNT(*) FROM (SELECT t.* FROM stays) AS x
SELECT AVG(t) FROM (SELECT guest, SUM(nights) AS t FROM stays GROUP BY ROLLUP (guest)) AS x
SELECT COUNT(*) FROM (SELECT guest, nights FROM stays UNION ALL BY NAME SELECT guest, nights FROM stays) AS x
SELECT COUNT(*) FROM (SELECT site FROM places UNION ALL SELECT site FROM places) AS x
SELECT COUNT(*) FROM (SELECT guest, nights FROM stays UNION ALL SELECT guest, level FROM named) AS x
[tsql] SELECT SUM(ROUND(wage, 1, level)) FROM staff
[mysql] SELECT SUM(CAST(grade AS SIGNED)) FROM staff
SELECT QUANTILE(level, share => 3) FROM staff
SELECT COUNT(*) FROM stays LEFT JOIN places ON stays.guest = places.site
SELECT COUNT(*) FROM guests g LEFT JOIN stays s ON g.guest = s.guest LEFT JOIN stays t ON s.guest = t.guest
SELECT COUNT(*) FROM things JOIN guests ON things.stay = guests.level
SELECT SUM(ROUND(wage / 10, 1)) FROM staff
[redshift] SELECT SUM(ROUND(wage / 10, 1)) FROM staff
SELECT COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) guest FROM stays) AS x
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS COUNT(*) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon) COUNT(*) FROM staff
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 0) COUNT(*) FROM staff
SELECT DISTINCT grade FROM staff GROUP BY grade, site
SELECT 3 FROM staff
SELECT *, COUNT(*) FROM staff GROUP BY 1
SELECT COUNT(*) FROM staff GROUP BY 'a'
SELECT COUNT(*) FROM staff GROUP BY ROLLUP (grade, site, senior), ROLLUP (hired, level), ROLLUP (wage), CUBE (grade, site, senior)
SELECT COUNT(*) AS "" FROM staff
SELECT 'a
SELECT SUM(level - 1 % 3) FROM staff
SELECT COUNT(*) FROM staff JOIN (SELECT a.site FROM many a JOIN many b ON a.region = b.region) AS x ON x.site = staff.site
SELECT COUNT(*) FROM staff WHERE level IN (SELECT a.size FROM places a JOIN many b ON a.size = b.region)
SELECT COUNT(*) FROM staff WHERE level IN (SELECT size FROM places WHERE size + 1 > 3)
SELECT COUNT(*) FROM staff WHERE level IN (SELECT size FROM places ORDER BY size)
SELECT COUNT(*) FROM staff JOIN (SELECT site, size AS site FROM places) AS x ON x.site = staff.site
SELECT COUNT(*) FROM staff JOIN (SELECT site, MAX(size) AS m FROM places) AS x ON x.site = staff.site
SELECT COUNT(*) FROM staff WHERE level > (SELECT SUM(region) FROM places)
SELECT COUNT(nights) FROM stays a JOIN stays b USING (guest)
SELECT SUM(EXISTS (SELECT 1 FROM places)) FROM staff
SELECT COUNT(*)
SELECT COUNT(*) FROM staff ASOF JOIN places ON staff.site = places.site
SELECT COUNT(*) FROM staff INNER JOIN places
SELECT COUNT(*) FROM guests JOIN others ON guests.guest = others.guest
SELECT COUNT(*) FROM stays_q1 JOIN stays_q2 ON stays_q1.guest = stays_q2.guest
SELECT AVG(t) FROM (SELECT guest, SUM(DISTINCT nights) AS t FROM stays GROUP BY guest) AS x
SELECT AVG(t) FROM (SELECT guest, COUNT(DISTINCT guest) AS t FROM stays GROUP BY guest) AS x
SELECT COUNT(*) AS "a\tb" FROM staff
SELECT SUM(DATE(DATE(DATE(DATE(DATE(DATE(hired))))))) FROM staff
SELECT COUNT(*) FROM orphans
SELECT COUNT(*) FROM trips LEFT JOIN things ON things.stay = trips.stay AND things.pieces = trips.miles
SELECT COUNT(*) FROM trips WHERE stay NOT IN (SELECT stay FROM things)
SELECT COUNT(*) FROM staff WHERE level IN (SELECT size FROM many WHERE size > region)
SELECT SUM(BROUND()) FROM staff
[postgres] SELECT DATE_TRUNC('hour', hired), COUNT(*) FROM staff GROUP BY 1
[tsql] SELECT COUNT(*) FROM staff WHERE DATETRUNC(week, hired) = '2020-01-05'
[duckdb] SELECT COUNT(*) FROM staff WHERE DATE_DIFF('week', hired, DATE '2020-01-05') = 1
[spark] SELECT COUNT(*) FROM staff WHERE SUBSTR(grade, 0, 2) = 'ab'
[sqlite] SELECT SUM(COALESCE(wage, level) / (level + 1)) FROM staff
SELECT COUNT(*) FROM (SELECT guest, UPPER(t.*) FROM stays AS t) AS x
SELECT MODE() FROM staff
SELECT PERCENTILE_CONT(0.5) FROM staff
SELECT COUNT(*) FROM guests LEFT JOIN stays ON guests.guest = stays.guest AND stays.nights > (SELECT 3)
SELECT COUNT(*) FROM staff WHERE level IN (SELECT size FROM numbers)
""".strip().splitlines()
LONG = [
    f"SELECT {'- ' * 120}COUNT(*) FROM staff",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) wing, "
    "SUM(nights, contribution_bounds_per_group => (0, 30)), VARIANCE(nights) FROM stays GROUP BY wing",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) grade, "
    "COUNT(*, contribution_bounds_per_group => (2, 3)) FROM staff GROUP BY grade",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) wing, "
    "SUM(nights, contribution_bounds_per_group => (0, 30)) FROM stays GROUP BY ROLLUP (wing)",
    "SELECT COUNT(*) FROM staff WHERE CAST(level AS ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>>>>) = 3",
    f"SELECT COUNT(*) FROM staff WHERE level > {' * '.join(['9' * 150] * 3)}",
    f"SELECT COUNT(*) FROM staff WHERE {' OR '.join(f'level = {n}' for n in range(600))}",
    f"SELECT COUNT(*) FROM staff WHERE {'(' * 70}level > 3{')' * 70}",
    f"SELECT COUNT(*) FROM staff WHERE {'NOT ' * 400}level > 3",
    f"SELECT SUM({' + '.join(['level'] * 200)}) FROM staff",
    f"SELECT COUNT(*) FROM staff{' ' * 60_000}",
    f"SELECT COUNT(*) FROM {'(SELECT * FROM ' * 20}staff{') AS t' * 20}",
    f"SELECT COUNT(*) FROM staff {' '.join(f'JOIN places p{n} ON p{n}.site = staff.site' for n in range(9))}",
    f"SELECT COUNT(*) FROM {' UNION ALL '.join(['SELECT * FROM staff'] * 65)}".replace("FROM SELECT", "FROM (SELECT", 1)
    + ") AS t",
    f"SELECT {', '.join(f'SUM(level+{n})' for n in range(1, 510))} FROM staff",
    f"SELECT SUM({'+'.join(['a'] * 20_100)}) FROM staff",
]
OWN = {"staff", "guests", "stays", "places", "trips", "named", "things", "others", "many", "numbers", "stays_q1", "stays_q2"}


def renamed(sql: str) -> str:
    return re.sub(r"[A-Za-z_]+", lambda found: RENAMED.get(found[0], found[0]), sql)


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    town = cl.Category(["Aa", "Bo"])
    staff = cl.PrivateTable(
        {"level": [1], "wage": [2.5], "grade": ["q"], "site": ["Aa"], "hired": ["2026-01-31"], "senior": [True]},
        columns={"level": cl.Integer(0, 9), "wage": cl.Real(0, 100, step="0.5"), "grade": cl.Category(["q", "r"]), "site": town,
                 "hired": cl.Date("2026-01-01", "2026-12-31"), "senior": cl.Boolean()},
    )  # fmt: skip
    guests = cl.PrivateTable(
        {"guest": [1], "grade": ["q"], "level": [4], "site": ["Aa"]},
        columns={"grade": cl.Category(["q", "r"]), "level": cl.Integer(1, 9), "site": town},
        unit="guest", max_rows=1, population="guests",
    )  # fmt: skip
    stays = cl.PrivateTable(
        {"guest": [1], "wing": ["A"], "nights": [5], "since": ["2026-03-01"], "bill": [2.5]},
        columns={"wing": cl.Category(["A", "B"]), "nights": cl.Integer(0, 30), "since": cl.Date("2026-01-01", "2026-12-31"),
                 "bill": cl.Real(0, 50, step="0.25")},
        unit="guest", max_rows=4, population="guests",
    )  # fmt: skip
    places = cl.PublicTable({"site": ["Aa"], "region": ["N"], "size": [9]})
    of_guests: dict[str, Any] = {"unit": "guest", "max_rows": 2, "population": "guests"}
    miles, pieces = {"stay": cl.Identifier(), "miles": cl.Integer(0, 9)}, {"pieces": cl.Integer(0, 9)}
    tables: dict[str, Any] = {
        "staff": staff,
        "guests": guests,
        "stays": stays,
        "places": places,
        "trips": cl.PrivateTable({"guest": [1], "stay": [1], "miles": [3]}, columns=miles, **of_guests),
        "named": cl.PrivateTable({"guest": ["a"], "level": [1]}, columns={"guest": cl.Identifier(), "level": cl.Integer(0, 9)},
                                 **of_guests),
        "things": cl.PrivateTable({"stay": [1], "pieces": [1]}, columns=pieces, unit="stay", max_rows=2, through="trips.stay",
                                  population="guests"),
        "orphans": cl.PrivateTable({"stay": [1], "pieces": [1]}, columns=pieces, unit="stay", max_rows=2, through="nowhere.stay",
                                   population="guests"),
        "others": cl.PrivateTable({"guest": [1], "level": [1]}, columns={"level": cl.Integer(0, 9)}, unit="guest", max_rows=1),
        "many": cl.PublicTable({"region": ["N"] * 2_000, "size": list(range(2_000)), "site": ["Aa"] * 2_000}),
        "numbers": cl.PublicTable({"size": list(range(10_001))}),
    }  # fmt: skip
    for name, span in {"stays_q1": ("2026-01-01", "2026-03-31"), "stays_q2": ("2026-04-01", "2026-06-30")}.items():
        columns: dict[str, Any] = {"nights": cl.Integer(0, 30), "since": cl.Date("2026-01-01", "2026-12-31")}
        data = {"guest": [1], "since": ["2026-03-01"], "nights": [5]}
        tables[name] = cl.PrivateTable(data, columns=columns, unit="guest", max_rows=2, population=name, during=("since", *span))
    with cl.Session(tables, budget=cl.PureDP(10)) as opened:
        yield opened


def asked_with(session: cl.Session, sql: str, dialect: str | None = None) -> cl.CloisterError | None:
    try:
        session.explain(sql, spend=1, dialect=dialect)
    except cl.CloisterError as error:
        return error
    return None


def of_dialect(line: str) -> tuple[str, str | None]:
    """The question, and the dialect that stands before it in brackets."""
    found = re.match(r"\[(\w+)\] ", line)
    return (line, None) if found is None else (line[found.end() :], found[1])


def refusing() -> set[tuple[str, int, int]]:
    """Every place of the room that refuses a text: file, first and last line; `writing.py` refuses questions (test_writing)."""
    found = set()
    for path in Path(query.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", None) if isinstance(node, ast.Call) else None
            if name in ("refused", "unsupported", "UnsupportedQuery") and path.stem not in ("refusals", "writing"):
                found.add((path.name, node.lineno, node.end_lineno or node.lineno))
    return found


def known(session: cl.Session, name: str) -> bool:
    """Whether a table has a column."""
    table, column = name.split(".")
    found = session.tables[table]
    return column in (found.names if isinstance(found, cl.PublicTable) else (*found.columns, found.unit))


def test_every_line_is_in_the_askers_words(session: cl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over tables that share no name with ours, nothing of ours appears; and a line that is a whole question is answered."""
    sites: set[tuple[str, int]] = set()
    before = cl.UnsupportedQuery.__init__

    def noted(self: Any, *arguments: Any, **named: Any) -> None:
        frame = inspect.currentframe()
        while frame is not None and (frame.f_code is noted.__code__ or frame.f_globals.get("__name__") == refusals.__name__):
            frame = frame.f_back
        if frame is not None:
            sites.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
        before(self, *arguments, **named)

    monkeypatch.setattr(cl.UnsupportedQuery, "__init__", noted)
    ours = re.compile(rf"\b({'|'.join(set(RENAMED) - {'day', 'cost'})}|x|numerator|divisor|later|earlier|drugs|dose)\b")
    refused = 0
    wrong: list[object] = []
    for written in [*(renamed(sql) for sql, _ in REFUSALS if "drug" not in sql), *MORE, *LONG]:
        sql, dialect = of_dialect(written.replace("\\t", "\t"))
        error = asked_with(session, sql, dialect)
        if error is None:
            continue
        refused += 1
        assert error.why, sql
        assert error.instead, sql
        line = re.sub(r"'[^']*'", "", error.instead)
        foreign = [word for word in ours.findall(line) if not re.search(rf"\b{word}\b", sql)]
        foreign += [
            each for each in re.findall(r"\b(\w+\.\w+)\b", line) if each.startswith(tuple(OWN)) and not known(session, each)
        ]
        wrong += [(sql, error.instead)] if foreign else []
        if re.match(r"(SELECT|WITH)\b", error.instead) and "…" not in error.instead:
            again = asked_with(session, error.instead, dialect)
            wrong += [(sql, error.instead, str(again))] if again is not None else []
            tables = {table.name for table in sqlglot.parse_one(error.instead).find_all(sqlglot.exp.Table)}
            assert tables <= OWN | {"totals"}
        for column, table in re.findall(r"\(SELECT (\w+) FROM (\w+)\)", error.instead):
            wrong += [] if known(session, f"{table}.{column}") else [(sql, error.instead)]
    assert not wrong
    assert refused > 225
    staff = session.tables["staff"]
    assert isinstance(staff, cl.PrivateTable)
    for condition in ("level + 1 > 3", "staff.level > 3", "level IN (SELECT 3)", "level >", "level > 3) GROUP BY (level"):
        with pytest.raises(cl.UnsupportedQuery) as raised:
            row_condition(condition, "staff", staff)
        assert raised.value.instead == "age >= 18 AND sex = 'F'"
    for sql, dialect in (("", None), ("SELECT 1", "klingon")):
        with pytest.raises(cl.UnsupportedQuery):
            parse(sql, session.tables, dialect)
    rolled = "SELECT grade, COUNT(*) AS n FROM staff GROUP BY ROLLUP(grade)"
    with pytest.raises(cl.UnsupportedQuery, match="more than one grouping"):
        session.watch(rolled, at="hired", every="1 day", since=0, until=86_400, spend="0.1")
    never = {site for site in refusing() if not any(file == site[0] and site[1] <= line <= site[2] for file, line in sites)}
    assert not never, "these refuse nothing that was asked here: ask it, or take them away"


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT SUM(grade) FROM staff", "SELECT COUNT(grade) FROM staff"),
        ("[mysql] SELECT AVG(`grade`) FROM staff", "SELECT COUNT(grade) FROM staff"),
        ("SELECT CORR(level, level) FROM staff", "SELECT VARIANCE(level) FROM staff"),
        ("SELECT MAX(grade) FROM staff", "SELECT MODE(grade) FROM staff"),
        ("SELECT MODE(wage), COUNT(*) FROM staff", "SELECT WIDTH_BUCKET(wage, "),
        ("SELECT wage, hired, level, level + 1, COUNT(*) FROM staff GROUP BY 1, 2, 3, 4", "SELECT EXTRACT(YEAR FROM hired)"),
        ("SELECT MODE(grade) + 1 FROM staff", "SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade"),
        ("SELECT SUM(UPPER(grade)) FROM staff", "SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade"),
        ("SELECT AVG(t) FROM (SELECT guest, SUM(wing) AS t FROM stays GROUP BY guest) AS x", "SELECT "),
        ("SELECT SUM(g.grade) FROM (SELECT grade, COUNT(*) AS n FROM staff GROUP BY grade UNION ALL "
         "SELECT SUM(grade), 1 FROM staff) AS g", "SELECT "),
    ],
)  # fmt: skip
def test_what_a_plan_refuses_of_a_text_is_told_in_sql(session: cl.Session, sql: str, line: str) -> None:
    text, dialect = of_dialect(sql)
    how: dict[str, Any] = {"dialect": dialect}
    for ask in (
        lambda: session.explain(text, 1, **how),
        lambda: session.sql(text, spend=1, **how),
        lambda: session.sql(sql=text, spend=1, **how),
        lambda: session.workload([text, "SELECT COUNT(*) AS n FROM stays"], 1, **how),
        lambda: session.stored(text, **how),
        lambda: session.touched(text, **how),
        lambda: session.columns(text, **how),
    ):
        with pytest.raises(cl.CloisterError) as refused:
            ask()
        assert refused.value.instead.startswith(line)
        assert asked_with(session, refused.value.instead, dialect) is None
    assert not session.ledger.charges("staff")


def test_what_a_plan_refuses_of_a_question_is_told_in_python(session: cl.Session) -> None:
    with pytest.raises(cl.UnsupportedQuery) as refused:
        session.measure(Question(table="staff", statistics=(Sum(column="grade"),)), spend=1)
    assert refused.value.instead == 'Count(column="grade")'
    table = cl.PrivateTable({"Name": ["x"]}, columns={"Name": cl.Text()})
    with cl.Session({"Staff": table}, budget=cl.PureDP(1)) as other:
        refusal = asked_with(other, 'SELECT MIN("Name") FROM "Staff"')
        assert refusal is not None
        assert refusal.instead == 'SELECT COUNT("Name") FROM "Staff"', "no mode is found among values that nobody declared"
        assert asked_with(other, refusal.instead) is None


@pytest.mark.parametrize(
    "wide",
    ["SELECT sex，COUNT（*） FROM people GROUP BY sex；", "SELECT COUNT(*) FROM people WHERE sex ＝ “（F”　AND age >= １８"],
)
def test_signs_of_a_chinese_keyboard_are_named_and_the_line_is_written_with_plain_ones(wide: str) -> None:
    people = cl.PrivateTable({"age": [30], "sex": ["F"]}, columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "(F"])})
    with pytest.raises(cl.UnsupportedQuery, match="full-width signs") as refused:
        parse(wide, {"people": people})
    assert parse(str(refused.value.instead), {"people": people}).questions
    with pytest.raises(cl.CloisterError) as within:
        parse("SELECT nope FROM people WHERE sex = '（F'", {"people": people})
    assert "full-width" not in str(within.value), "within quotes they stay"


@pytest.mark.parametrize("sql", ["SELECT level, COUNT(*)", "SELECT staff.level", "SELECT COUNT(*) WHERE level > 3", "SELECT 1"])
def test_a_question_without_from_is_told_so(sql: str) -> None:
    table = cl.PrivateTable({"level": [1]}, columns={"level": cl.Integer(0, 9)})
    with cl.Session({"staff": table}, budget=cl.PureDP(1)) as session, pytest.raises(cl.UnsupportedQuery, match="names no table"):
        session.explain(sql, spend=1)
