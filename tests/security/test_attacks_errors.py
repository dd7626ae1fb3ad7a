"""The error channel: expressions that fail, or turn to NaN, only for one person's row.

The naive twin answers in the world without that person and fails (or says NaN or infinity) in the world with them, so one free
question tells whether they are there. Ours answers in both with the same columns, types and rows, and the raws differ by no more
than what is charged for.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pytest

import cloister as cl
from cloister.anonymize import KAnonymity
from cloister.attacks import holds_rows
from cloister.compress import PCA, Scatter
from cloister.errors import CloisterError
from cloister.learn import DecisionTreeClassifier, GaussianNB, LogisticRegression
from cloister.noise import Random, SparseVector
from cloister.tables.expression.expressions import matches
from tests.security.losses import loss_of
from tests.security.naive import Naive

OTHERS: dict[str, list[Any]] = {
    "x": [1, 2, 3, 4] * 5,
    "y": [2.5, 3.5, 4.5, 5.5] * 5,
    "big": [10, 20, 30, 40] * 5,
    "digits": ["1", "2", "3", "4"] * 5,
    "day": ["2000-01-01", "2001-02-28", "2004-02-29", "2010-12-31"] * 5,
    "word": ["alpha", "beta", "gamma", "delta"] * 5,
}
ODD: dict[str, Any] = {"x": 0, "y": -1.0, "big": 2**59, "digits": "four", "day": "9999-12-31", "word": "a" * 20_000}
COLUMNS: dict[str, Any] = {
    "x": cl.Integer(-5, 10),
    "y": cl.Real(-2, 10, step="0.5"),
    "big": cl.Integer(0, 2**59),
    "digits": cl.Category(["1", "2", "3", "4", "four"]),
    "day": cl.Date("0001-01-01", "9999-12-31"),
    "word": cl.Text(),
}
# what is asked of ours, and what plain DuckDB is asked for the same thing
CASES = {
    "division by zero": ("SUM(CLAMP(100 / x, -100, 100))", "SUM(100 / x)"),
    "whole division by zero": ("SUM(TRUNC(CLAMP(100 / x, -100, 100)))", "SUM(100 // x)"),
    "remainder by zero": ("SUM(x % x)", "SUM(x % x)"),
    "a quotient of quotients": ("AVG(CLAMP(1 / CLAMP(1 / x, -1, 1), -9, 9))", "AVG(CAST(1 / (1 / x) - 1 / x AS INTEGER))"),
    "square root of a negative number": ("SUM(CLAMP(SQRT(y), 0, 5))", "SUM(SQRT(y))"),
    "logarithm of zero": ("SUM(CLAMP(LN(x), 0, 5))", "SUM(LN(x))"),
    "logarithm of a negative number": ("AVG(CLAMP(LN(y), -3, 3))", "AVG(LN(y))"),
    "a power of a negative number": ("SUM(CLAMP(POWER(y, 0.5), 0, 5))", "SUM(POWER(y, 0.5))"),
    "zero to a negative power": ("SUM(CLAMP(POWER(x, -1), -5, 5))", "SUM(POWER(x, -1))"),
    "an exponential that overflows": ("SUM(CLAMP(EXP(big), 0, 9))", "SUM(EXP(big))"),
    "a product that overflows": ("SUM(CLAMP(big * 8, 0, 9))", "SUM(big * 16)"),
    "a square that overflows": ("SUM(CLAMP(big * big, 0, 9))", "SUM(big * big)"),
    "a difference that overflows": ("SUM(CLAMP(big - big * big, -9, 9))", "SUM(big - big * big)"),
    "a text that is no number": ("SUM(CLAMP(CAST(digits AS INTEGER), 0, 9))", "SUM(CAST(digits AS INTEGER))"),
    "a number too large for its type": ("SUM(CLAMP(CAST(big AS INTEGER), 0, 9))", "SUM(CAST(big AS INTEGER))"),
    "a date after the end of time": (
        "COUNT(day + INTERVAL 30 YEAR)",
        "COUNT(CAST(day AS DATE) + INTERVAL (CASE WHEN day > '9000' THEN 300000 ELSE 1 END) YEAR)",
    ),
    "a date that is none": (
        "COUNT(CASE WHEN x = 0 THEN day END)",
        "COUNT(DISTINCT CAST(CASE WHEN x = 0 THEN '0000-99-99' ELSE day END AS DATE))",
    ),
    "a place before the text": (
        "COUNT(SUBSTRING(digits, 2, 1))",
        "COUNT(DISTINCT SUBSTR(digits, x - CASE WHEN x = 0 THEN 9000000000000000000 ELSE 1 END))",
    ),
}


@pytest.fixture(scope="module")
def worlds() -> Iterator[tuple[cl.Session, cl.Session]]:
    """With the odd person and without, under one ledger, so that both mean the same."""
    ledger = cl.Ledger()
    rows = {name: [*values, ODD[name]] for name, values in OTHERS.items()}
    tables = [cl.PrivateTable(each, columns=COLUMNS, version="1", population="all") for each in (rows, OTHERS)]
    budget = cl.PureDP(10**9)
    sessions = [cl.Session({"t": table}, budget=budget, ledger=ledger, random=Random.deterministic(5)) for table in tables]
    yield sessions[0], sessions[1]
    for session in sessions:
        session.close()
    ledger.close()


def says_nothing(answer: list[tuple[Any, ...]]) -> bool:
    """Whether an exact answer is a plain number: neither NaN nor infinite."""
    return all(math.isfinite(float(cell)) for row in answer for cell in row if not isinstance(cell, str))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_persons_row_fails_the_naive_twin_and_not_ours(case: str, worlds: tuple[cl.Session, cl.Session]) -> None:
    mine, plain = CASES[case]
    with Naive({"t": OTHERS}, scale=None) as naive:
        assert says_nothing(naive.rows(f"SELECT {plain} FROM t"))
    with Naive({"t": {name: [*values, ODD[name]] for name, values in OTHERS.items()}}, scale=None) as naive:
        try:
            gave_away = not says_nothing(naive.rows(f"SELECT {plain} FROM t"))
        except duckdb.Error:
            gave_away = True
    assert gave_away

    sql = f"SELECT {mine} AS a, COUNT(*) AS n FROM t"
    left, right = worlds
    found = loss_of(sql, left, right)
    assert not found.breaks, found
    shapes = []
    for session in worlds:
        answer = session.sql(sql, spend=1)
        kinds = {name: str(answer[name].dtype) for name in answer.column_names}
        shapes.append((answer.column_names, kinds, answer.num_rows, answer.notes, str(answer.cost), answer.provenance.mechanism))
        assert all(isinstance(value, int | float) for row in answer for value in row)
    assert shapes[0] == shapes[1]


def test_a_like_pattern_that_goes_back_and_forth_on_one_persons_text(worlds: tuple[cl.Session, cl.Session]) -> None:
    """A matcher that tries every place for every % needs some 10⁴⁰ steps on this text, and would never come back; ours goes
    through the text once. Regular expressions, which explode elsewhere, are refused."""
    pattern = "%" + "a_%" * 12 + "!"
    sql = f"SELECT COUNT(*) AS n FROM t WHERE word LIKE '{pattern}'"
    assert not loss_of(sql, *worlds).breaks
    assert [session.sql(sql, spend=1).num_rows for session in worlds] == [1, 1]
    for text in ("ab" * 12 + "!", "ab" * 11 + "!", "a!"):
        assert matches(text, pattern) == bool(re.fullmatch(pattern.replace("%", ".*?").replace("_", "."), text))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(SQRT(y)) AS a FROM t",
        "SELECT SUM(100 / x) AS a FROM t",
        "SELECT SUM(EXP(big)) AS a FROM t",
        "SELECT COUNT(*) AS a FROM t WHERE regexp_matches(word, '(a+)+$')",
        "SELECT COUNT(*) AS a FROM t WHERE word SIMILAR TO '(a+)+'",
        "SELECT COUNT(*) AS a FROM t WHERE ERROR(word) = 1",
        "SELECT SUM(CASE WHEN x = 0 THEN (SELECT 1 / 0) ELSE 1 END) AS a FROM t",
    ],
)
def test_what_is_refused_is_refused_alike_in_both_worlds(sql: str, worlds: tuple[cl.Session, cl.Session]) -> None:
    said = []
    for session in worlds:
        try:
            said.append(str(session.sql(sql, spend=1).column_names))
        except cl.CloisterError as refusal:
            said.append(f"{type(refusal).__name__} {refusal}")
    assert said[0] == said[1]


_SECRET = "a value of a row"
_GIVEN: dict[str, Any] = {
    "frame": pandas.DataFrame({"age": [39, 51], "name": [_SECRET, _SECRET]}),
    "column": pandas.Series([_SECRET, 39], name="age"),
    "polars": polars.DataFrame({"age": [39], "name": [_SECRET]}),
    "array": np.array([_SECRET, _SECRET] * 9, dtype=object),
    "records": [{"age": 39, "name": _SECRET}],
    "columns": {"age": [39], "name": [_SECRET]},
}


@pytest.mark.parametrize("given", list(_GIVEN))
def test_rows_in_place_of_a_number_or_a_name_are_not_shown(given: str) -> None:
    """A frame one argument too early ended in a refusal that printed it."""
    rows = _GIVEN[given]
    columns = {"age": cl.Integer(0, 120), "name": cl.Text()}
    tried: list[Callable[[], object]] = [
        lambda: cl.PureDP(rows),
        lambda: cl.Integer(rows, 120),
        lambda: cl.PrivateTable(columns, rows),  # type: ignore[arg-type]
        lambda: cl.PrivateTable({"age": [39], "name": ["x"]}, {"age": rows}),
        lambda: cl.PrivateTable({"age": [39], "name": ["x"]}, columns, unit="name", max_rows=rows),
        lambda: KAnonymity(rows),
        lambda: SparseVector(epsilon=1, threshold=1, hits=rows),
        lambda: cl.Session({"people": cl.PrivateTable({"age": [39]}, {"age": cl.Integer(0, 120)})}, budget=rows),
    ]
    for call in tried:
        with pytest.raises(CloisterError) as refused:
            call()
        assert _SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_text_among_numbers_is_not_shown_where_a_model_is_asked() -> None:
    X, y = np.random.default_rng(0).random((30, 2)), [0, 1] * 15
    wrong = X.astype(object)
    wrong[3, 1] = _SECRET
    tried: list[Callable[[], object]] = [
        partial(made(bounds=(0, 1), epsilon=5).fit(X, y).predict, wrong)
        for made in (LogisticRegression, GaussianNB, DecisionTreeClassifier)
    ]
    tried += [lambda: PCA(1).fit(wrong), lambda: PCA(1).fit(X).transform(wrong), lambda: Scatter.of_rows(wrong)]
    tried += [lambda: holds_rows(object(), wrong)]
    for call in tried:
        with pytest.raises(CloisterError, match="not a number") as refused:
            call()
        assert _SECRET not in "".join(traceback.format_exception(refused.value))
