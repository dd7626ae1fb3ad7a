"""The 22 questions of TPC-H on a few hundred customers: where a spend leaves no noise, we answer as plain DuckDB does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cloister as cl
from benchmarks._tpch import ORDERS_CAP, PRIVATE, PUBLIC, declare, generate, plain, write
from benchmarks._tpch_questions import ANSWERED, QUESTIONS, Question
from cloister.noise import Random

SCALE = 0.002
SILENT = 10**12  # so large a spend that the noise is nil


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write(generate(SCALE), tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def exact(paths: dict[str, Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    with plain(paths) as connection:
        yield connection


@pytest.fixture(scope="module")
def session(paths: dict[str, Path]) -> Iterator[cl.Session]:
    with cl.Session(declare(paths, SCALE), budget=cl.PureDP(10**20), random=Random.deterministic(1)) as opened:
        yield opened


def test_the_generator_repeats_itself_and_fills_the_schema() -> None:
    first, second = generate(SCALE), generate(SCALE)
    assert set(first) == {*PRIVATE, *PUBLIC}
    for name, rows in first.items():
        assert all((values == second[name][column]).all() for column, values in rows.items())
    lines, orders = first["lineitem"], first["orders"]
    assert set(lines["l_orderkey"]) == set(orders["o_orderkey"])
    assert len(set(orders["o_orderkey"])) == len(orders["o_orderkey"])
    assert not (orders["o_custkey"] % 3 == 0).any()
    assert 0 <= lines["l_discount"].min() <= lines["l_discount"].max() <= 0.1


def test_every_line_is_of_a_part_that_its_supplier_has() -> None:
    tables = generate(SCALE)
    supplied = set(zip(tables["partsupp"]["ps_partkey"].tolist(), tables["partsupp"]["ps_suppkey"].tolist(), strict=True))
    sold = set(zip(tables["lineitem"]["l_partkey"].tolist(), tables["lineitem"]["l_suppkey"].tolist(), strict=True))
    assert len(supplied) == len(tables["partsupp"]["ps_partkey"])
    assert sold <= supplied


def test_caps_and_bounds_touch_nobody_here(exact: duckdb.DuckDBPyConnection) -> None:
    """Else the answers below could not be the exact ones."""
    most = exact.execute("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY o_custkey)").fetchall()[0][0]
    assert most <= ORDERS_CAP


def test_all_are_there_and_each_says_what_became_of_it() -> None:
    assert [question.number for question in QUESTIONS] == list(range(1, 23))
    assert all(question.why for question in QUESTIONS if question.kind != "as written")
    assert [question.number for question in QUESTIONS if question.kind == "public"] == [2, 11, 16]


@pytest.mark.parametrize("question", ANSWERED, ids=lambda question: f"Q{question.number}")
def test_answers(question: Question, session: cl.Session, exact: duckdb.DuckDBPyConnection) -> None:
    first: Any = None
    for step in question.plain:
        statement = step.replace("{0}", str(first))
        release = session.sql(statement, spend=SILENT)
        expected = exact.execute(statement).fetchall()
        assert release.margin().column_names == release.column_names
        check(rows_of(release, question.keys), rows_of(expected, question.keys))
        first = next(iter(release))[0]


BOUNDED = [each for each in ANSWERED if each.bounded != each.plain]


@pytest.mark.parametrize("question", BOUNDED, ids=lambda question: f"Q{question.number}")
def test_what_is_said_of_a_customer_narrows_the_margins(question: Question, paths: dict[str, Path]) -> None:
    with cl.Session(declare(paths, SCALE), budget=cl.PureDP(1)) as session:  # one that knows no earlier answer
        wide, narrow = (
            session.explain(step.replace("{0}", "25"), spend=1).margin() for step in (question.plain[-1], question.bounded[-1])
        )
    assert narrow.column_names == wide.column_names
    measured = [(max(narrow[name]), max(wide[name])) for name in wide.column_names]
    assert measured
    assert all(bounded < declared or math.isinf(declared) for bounded, declared in measured)


@pytest.mark.parametrize("question", [each for each in QUESTIONS if each.refused], ids=lambda question: f"Q{question.number}")
def test_the_text_that_lists_single_customers_is_refused(question: Question, session: cl.Session) -> None:
    with pytest.raises(cl.CloisterError):
        session.sql(question.refused, spend=1)


@pytest.mark.parametrize(("number", "years"), [(7, {"1995", "1996"}), (8, {"1995", "1996"})])
def test_years_that_a_condition_below_the_groups_rules_out_are_not_shown(
    number: int, years: set[str], session: cl.Session
) -> None:
    question = QUESTIONS[number - 1]
    found = rows_of(session.sql(question.plain[-1], spend=SILENT), question.keys)
    assert {key[-1] for key in found} == years


def check(ours: dict[tuple[str, ...], list[float]], expected: dict[tuple[str, ...], list[float]]) -> None:
    """Every group of the exact answer is there with its numbers. A group that it lacks is empty, and so is one whose sum or mean
    is NULL there: ours says 0, or the middle of the bounds, since whether a group is empty is private."""
    assert set(expected) <= set(ours)
    for key, values in expected.items():
        for mine, exact in zip(ours[key], values, strict=True):
            assert math.isnan(exact) or mine == pytest.approx(exact, rel=1e-6, abs=1e-6)


def rows_of(rows: Any, keys: int) -> dict[tuple[str, ...], list[float]]:
    """Rows by what stands in their first columns; a day and its midnight are the same."""
    return {
        tuple(str(part).removesuffix(" 00:00:00") for part in row[:keys]): [
            math.nan if value is None else float(value) for value in row[keys:]
        ]
        for row in rows
    }
