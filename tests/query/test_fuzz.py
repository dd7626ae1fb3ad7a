"""Thousands of mutated questions, the same on every run: each is read or refused, none is charged, none is repeated in a log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.query import Parsed, parse
from tests.tiers import by_day_and_night

SEEDS = (
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex ORDER BY n DESC LIMIT 3",
    "SELECT COUNT(DISTINCT who) FROM people AS p WHERE p.age BETWEEN 20 AND 30 OR NOT (sex = 'F' AND smoker)",
    "SELECT SUM(pay), COUNT(pay) FROM people WHERE age IN (20, 30, -4) AND town LIKE 'D%' AND born >= DATE '1990-01-31'",
    'SELECT "sex" AS "s s", COUNT(1) FROM "people" WHERE smoker IS NOT TRUE AND pay IS NULL GROUP BY 1 ORDER BY 2 NULLS LAST',
    "WITH t AS (SELECT who, sex, SUM(pay) AS total FROM people GROUP BY who, sex) SELECT sex, AVG(total) FROM t GROUP BY sex",
    "SELECT FLOOR(age / 10) * 10 AS d, MEDIAN(pay), ROUND(SUM(pay) / COUNT(*), 1) FROM people GROUP BY ROLLUP (d, sex)",
    "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 3 ORDER BY AVG(age) LIMIT 3",
    "SELECT COUNT(*) FROM people AS p JOIN towns AS t ON p.age = t.a LEFT JOIN people q ON p.who = q.who WHERE t.a IS NOT NULL",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT a FROM towns WHERE a > 0) AND who NOT IN (SELECT who FROM people)",
    "SELECT SUM(CASE WHEN age > 30 THEN LEAST(pay, 3) ELSE CLAMP(pay / age, 0, 1) END) FILTER (WHERE smoker) FROM people",
    "SELECT SUM(v) FROM (SELECT who, pay AS v FROM people UNION ALL SELECT who, age + 1 AS v FROM people WHERE age < 40) AS u",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) sex, SUM(pay, contribution_bounds_per_group => (0, 5)) FROM people",
    "WITH x AS (SELECT 1) SELECT f(age::INT) OVER (PARTITION BY sex) FROM people JOIN towns USING (a) HAVING COUNT(*) > 2",
    "SELECT COUNT(*) FILTER (WHERE age ->> '$.a' = 1) FROM people TABLESAMPLE (10 PERCENT) FETCH FIRST 3 ROWS WITH TIES",
    "ALTER SESSION SET secretword = 1",
)
SIGNS = "'\"`\0é²🦆#;()[]{}<>~!\\?$@:"
WORDS = """
    \ud800 \u202e １２ 1e400 -1e-400 0x1F 1. .5 NaN $1 :p @x {{ }} {% -- /* */ ->> -> :: ::INT || <=> @> $$ N'a' E'\\x' x'41' ''
    secretword NULL TRUE INTERVAL SYMMETRIC DISTINCT ALL ANY SOME CASE END STRUCT< DECIMAL( UNNEST( LATERAL PIVOT WINDOW QUALIFY
    UNION EXCEPT VALUES EXISTS COLLATE ESCAPE PERCENT COMMENT COMMAND CREATE SHOW COPY PRAGMA CALL EXPLAIN MERGE age sex 3 p t
"""
LONG = ("9" * 5_000, "(" * 300, ")" * 300, "NOT " * 400, "- " * 300, "a." * 300, "age" + "::int" * 300, "/* " * 200, "f(" * 40)
ODD = [*SIGNS, *WORDS.split(), *LONG, "NULLS FIRST", "IGNORE NULLS", "AT TIME ZONE", "/*+ a */"]
CASES = (700, 6_000)
"""By day and at night."""
DIALECTS = ("", "", "", "duckdb", "postgres", "bigquery", "snowflake", "tsql", "mysql", "spark", "sqlite")


class Mutations:
    """Questions made of the seeds' tokens: some left out, doubled, swapped, replaced, or broken by what is odd."""

    def __init__(self, seed: int) -> None:
        self.random = Random.deterministic(seed)

    def below(self, bound: int) -> int:
        return int(self.random.below(bound, 1)[0])

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.below(len(choices))]

    def question(self) -> str:
        tokens = re.findall(r"\w+|\s+|'[^']*'|.", self.pick(SEEDS))
        if self.below(2):  # half of them stay close to SQL: words for words
            words = [at for at, token in enumerate(tokens) if re.fullmatch(r"\w+", token)]
            for _ in range(self.below(3)):
                tokens[words[self.below(len(words))]] = self.pick(re.findall(r"\w+", self.pick(SEEDS)))
            return "".join(tokens)
        for _ in range(1 + self.below(3)):
            at = self.below(len(tokens)) if tokens else 0
            act = self.below(8)
            if act == 0:
                del tokens[at : at + 1 + self.below(3)]
            elif act == 1:
                tokens[at:at] = tokens[at : at + 1 + self.below(8)]
            elif act == 2 and tokens:
                other = self.below(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            elif act == 3:
                tokens[at : at + 1] = [self.pick(ODD)]
            elif act in (4, 5):
                tokens[at:at] = [" ", self.pick(ODD), " "]
            elif act == 6:
                tokens[at : at + 1] = re.findall(r"\w+|\s+|.", self.pick(SEEDS))[: self.below(30)]
            else:
                text = "".join(tokens)
                cut = self.below(len(text) + 1)
                tokens = [text[:cut] + self.pick([chr(1 + self.below(0x2FF)), "", text[cut : cut + 9]]) + text[cut + 1 :]]
        return "".join(tokens)


@pytest.fixture
def session() -> Iterator[cl.Session]:
    """One with a ledger in memory, in which a charge would show."""
    people = cl.PrivateTable(
        {"who": ["x"], "age": [20], "sex": ["F"], "pay": [1.5], "smoker": [True], "born": ["1990-01-31"], "town": ["Delft"]},
        columns={
            "age": cl.Integer(17, 90),
            "sex": cl.Category(["F", "M"]),
            "pay": cl.Real(0, 10, step="0.5"),
            "smoker": cl.Boolean(),
            "born": cl.Date("1900-01-01", "2026-12-31"),
            "town": cl.Text(),
        },
        unit="who",
        max_rows=2,
    )
    tables: dict[str, cl.PrivateTable | cl.PublicTable] = {"people": people, "towns": cl.PublicTable({"a": [1]})}
    with cl.Session(tables, budget=cl.PureDP(10), random=Random.deterministic(1)) as opened:
        yield opened


def outcome(ask: Callable[[str], object], sql: str) -> object:
    """What came of a question: an answer or a refusal; anything else fails the test with the question's text."""
    try:
        return ask(sql)
    except cl.CloisterError as refusal:
        return refusal
    except Exception as error:
        kind = type(error).__name__
    return pytest.fail(f"{kind} from {ascii(sql)[:400]}", pytrace=False)


@by_day_and_night("cases", *CASES)
def test_every_question_is_read_or_refused(session: cl.Session, caplog: pytest.LogCaptureFixture, cases: int) -> None:
    mutations, read, refused = Mutations(2026), 0, 0
    before = session.spent_by
    caplog.set_level(logging.DEBUG)
    for _ in range(cases):
        sql = mutations.question()
        found = outcome(partial(parse, tables=session.tables, dialect=mutations.pick(DIALECTS) or None), sql)
        if isinstance(found, Parsed):
            read += 1
            if read % 4 == 0:
                outcome(lambda text: session.explain(text, spend=1), sql)
            continue
        assert isinstance(found, cl.CloisterError)
        refused += 1
        assert found.instead, ascii(sql)
        assert (found.__cause__, found.__context__) == (None, None), ascii(sql)
        assert len(str(found)) < 1_000, ascii(sql)
    assert read > cases // 20, "too few are read: the mutations test only the parser's refusals"
    assert refused > cases // 4
    assert session.spent_by == before
    assert "secretword" not in caplog.text


def test_the_mutations_are_the_same_on_every_run() -> None:
    first, second = Mutations(7), Mutations(7)
    assert [first.question() for _ in range(20)] == [second.question() for _ in range(20)]
