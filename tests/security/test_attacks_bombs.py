"""Questions that would cost time or memory without end: refused by public limits before a row is read, or answered in bounds.

No test here asserts a time; each would not come back, or would be killed, if its limit were missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

import cloister as cl
from cloister.tables import Base, UnitJoined

N = 200
COLUMNS = {
    "x": cl.Integer(0, 3000),
    "y": cl.Integer(0, 3000),
    "z": cl.Integer(0, 3000),
    "big": cl.Integer(0, 999_999),
    "g": cl.Category([str(n) for n in range(5000)]),
    "word": cl.Text(),
    "day": cl.Date("2000-01-01", "2030-01-01"),
}
ROWS = {
    **{name: list(range(N)) for name in ("x", "y", "z", "big")},
    "g": [str(n) for n in range(N)],
    "word": ["a" * 1000] * N,
    "day": ["2020-01-01"] * N,
}


def nested(times: int, x: str, y: str) -> str:
    """A subquery within a subquery, each with two columns made of the two before."""
    query = "SELECT x, y FROM t"
    for number in range(times):
        query = f"SELECT {x} AS x, {y} AS y FROM ({query}) AS q{number}"
    return query


def doubled(first: str, step: str, times: int) -> str:
    """WITH a0 …, a1 made of a0 twice, a2 of a1 twice: 2^times tables in a short text."""
    parts = [f"a0 AS ({first})", *(f"a{n} AS ({step.format(before=f'a{n - 1}')})" for n in range(1, times))]
    return f"WITH {', '.join(parts)} SELECT COUNT(*) AS n FROM a{times - 1}"


def listed(template: str, number: int, joint: str = ", ") -> str:
    """Many of the same."""
    return joint.join(template.format(n) for n in range(number))


REFUSED = {
    "four thousand ORs": f"SELECT COUNT(*) AS n FROM t WHERE {listed('x = {}', 4_000, ' OR ')}",
    "groups beyond 10^7": "SELECT x, y, z, COUNT(*) FROM t GROUP BY x, y, z",
    "groups of days and numbers": "SELECT day, x, COUNT(*) FROM t GROUP BY day, x",
    "a cube of many keys": f"SELECT COUNT(*) FROM t GROUP BY CUBE ({', '.join(f'x % {n}' for n in range(2, 14))})",
    "two hundred keys": f"SELECT COUNT(*) FROM t GROUP BY {listed('x > {}', 200)}",
    "a cross product of categories": "SELECT COUNT(g || g) FROM t",
    "categories joined four times": "SELECT CONCAT(g, g, g, g) AS k, COUNT(*) FROM t GROUP BY k",
    "a number with a huge exponent": "SELECT COUNT(*) FROM t WHERE x > 1e999999999",
    "a number with a tiny exponent": "SELECT SUM(x * 1e-99999999) FROM t",
    "a number of 40,000 digits": f"SELECT COUNT(*) FROM t WHERE x > {'9' * 40_000}",
    "a huge limit": "SELECT x, COUNT(*) FROM t GROUP BY x LIMIT 1e99999999",
    "a huge power": "SELECT SUM(x + POWER(10, 1000000000)) FROM t",
    "a huge interval": "SELECT COUNT(day + INTERVAL 999999999999 YEAR) FROM t",
    "a quantile at 10^-10^9": "SELECT QUANTILE(x, 1e-999999999) FROM t",
    "an epsilon of 10^-10^9": "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-999999999) COUNT(*) FROM t",
    "a thousand million bins": "SELECT WIDTH_BUCKET(x, 0, 1, 1000000000) AS b, COUNT(*) FROM t GROUP BY b",
    "two thousand computed columns": f"SELECT {listed('SUM(x + {})', 2000)} FROM t",
    "forty questions in one another": f"SELECT COUNT(*) FROM ({nested(40, 'x + y', 'x - y')}) AS t",
    "a join that doubles": doubled(
        "SELECT p, x FROM v", "SELECT l.p, l.x FROM {before} AS l JOIN {before} AS r ON l.p = r.p", 30
    ),
    "a union that doubles": doubled("SELECT x FROM t", "SELECT x FROM {before} UNION ALL SELECT x FROM {before}", 40),
    "four joins of a thousand rows": "SELECT COUNT(*) FROM v AS a JOIN v AS b ON a.p = b.p JOIN v AS c ON a.p = c.p"
    " JOIN v AS d ON a.p = d.p",
    "a pattern of 40,000 characters": f"SELECT COUNT(*) FROM t WHERE word LIKE '{'%a_' * 13_000}'",
    "five thousand terms": f"SELECT SUM({'+'.join(['x'] * 5000)}) FROM t",
    "a hundred factors": f"SELECT SUM(CLAMP({'*'.join(['x'] * 100)}, 0, 9)) FROM t",
    "ten thousand parentheses": f"SELECT COUNT(*) FROM t WHERE {'(' * 10_000}x = 1{')' * 10_000}",
    "nine thousand NOTs": f"SELECT COUNT(*) FROM t WHERE {'NOT ' * 9_000}x = 1",
    "nine thousand minus signs": f"SELECT SUM({'- ' * 9_000}x) FROM t",
    "CASE in CASE": f"SELECT SUM({'CASE WHEN x > 1 THEN ' * 200}1{' ELSE 0 END' * 200}) FROM t",
    "a text of ten megabytes": f"SELECT COUNT(*) FROM t WHERE word = '{'a' * 10**7}'",
    "types in types": "SELECT " + "DATE(" * 40 + "day" + ")" * 40 + ", COUNT(*) FROM t",
    "the mode of a million": "SELECT MODE(big) FROM t",
}
ANSWERED = {
    "a list of 8,000": f"SELECT COUNT(*) AS n FROM t WHERE big IN ({listed('{}', 8_000)})",
    "five hundred ORs": f"SELECT COUNT(*) AS n FROM t WHERE {listed('x = {}', 500, ' OR ')}",
    "a list of texts": f"SELECT COUNT(*) AS n FROM t WHERE word IN ({listed(chr(39) + '{}' + chr(39), 5_000)})",
    "a long pattern": f"SELECT COUNT(*) AS n FROM t WHERE word LIKE '{'%a_' * 300}b'",
    "a thousand quantiles": f"SELECT {listed('QUANTILE(big, {}/500)', 500)} FROM t",
    "a thousand branches": f"SELECT SUM(CASE {listed('WHEN x = {0} THEN {0}', 800, ' ')} END) AS n FROM t",
    "a cube of six keys": f"SELECT COUNT(*) AS n FROM t GROUP BY CUBE ({', '.join(f'x % {n}' for n in range(2, 8))})",
    "a huge power of a count": "SELECT POWER(COUNT(*), 1000000000) AS n FROM t",
    "rounding to 10^9 digits": "SELECT ROUND(AVG(x), 999999999) FROM t",
    "an exponential": "SELECT SUM(CLAMP(EXP(x * 1000000), 0, 1)) AS n FROM t",
    "fifteen questions in one another": (
        f"SELECT x, COUNT(*) AS n FROM ({nested(12, 'CLAMP(x + y, 0, 9)', 'CLAMP(x - y, 0, 9)')}) AS t WHERE x > 3 GROUP BY x"
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """One row a person, and a table whose persons have up to a thousand rows."""
    tables = {
        "t": cl.PrivateTable(ROWS, columns=COLUMNS, version="1"),
        "v": cl.PrivateTable(
            {"p": ["a"] * 50, "x": [1] * 50}, columns={"x": cl.Integer(0, 9)}, unit="p", max_rows=1000, version="1"
        ),
    }
    with cl.Session(tables, budget=cl.PureDP(1000)) as opened:
        yield opened


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_a_bomb_is_refused_and_costs_nothing(session: cl.Session, sql: str) -> None:
    before = session.spent
    with pytest.raises(cl.CloisterError) as refused:
        session.sql(sql, spend=1)
    assert session.spent == before
    assert len(str(refused.value)) < 2_000


@pytest.mark.parametrize("sql", ANSWERED.values(), ids=ANSWERED)
def test_a_large_question_is_answered(session: cl.Session, sql: str) -> None:
    assert session.sql(sql, spend=1).num_rows >= 1


def test_a_relation_that_doubles_is_refused_without_sql() -> None:
    table = cl.PrivateTable({"p": ["a"], "x": [1]}, columns={"x": cl.Integer(0, 9)}, unit="p", max_rows=2, version="1")
    relation = Base(name="t", table=table)
    from cloister.tables import Projected

    def double(relation: UnitJoined | Base, times: int) -> UnitJoined | Base:
        for number in range(times):
            other = Projected(source=relation, names=((f"x{number}", next(iter(relation.columns))),))
            relation = UnitJoined(left=relation, right=other)
        return relation

    assert double(relation, 3).max_rows == 2**8
    with pytest.raises(cl.UnsupportedQuery):
        double(relation, 40)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is that of Linux")
def test_a_million_groups_are_answered_within_bounded_memory() -> None:
    """Address space of the process bounded to 4 GiB: what is not refused must fit."""
    script = textwrap.dedent(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        import cloister as cl
        table = cl.PrivateTable({"x": [1, 2]}, columns={"x": cl.Integer(0, 999_999)}, version="1")
        with cl.Session({"t": table}, budget=cl.PureDP(1)) as session:
            print(session.sql("SELECT x, COUNT(*) AS n FROM t GROUP BY x", spend=1).num_rows)
        """
    )

    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "CLOISTER_MEMORY_LIMIT": "500MB"},
    )
    assert done.stdout.strip() == "1000000", done.stderr[-2_000:]
