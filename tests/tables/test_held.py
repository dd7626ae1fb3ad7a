"""Rows of a short table that are counted in arrays: the same numbers as the engine's own, and only where it is sure."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import EngineError, UnknownColumn
from cloister.tables import (
    Aggregate,
    Aggregation,
    And,
    Between,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Expression,
    In,
    Integer,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    PrivateTable,
    Real,
    Text,
    prepare,
)
from cloister.tables.engines import held as holding
from cloister.tables.engines.engine import Answering, Prepared

ROWS = 300
COLUMNS = {
    "age": Integer(0, 50),
    "pay": Integer(-10, 40, nullable=True),
    "size": Real(0, 5, step="0.25", nullable=True),
    "sex": Category(["F", "M", "X"], nullable=True),
    "well": Boolean(nullable=True),
    "born": Date("2000-01-01", "2000-02-20", nullable=True),
    "note": Text(),
}


def source(unit: bool) -> dict[str, list[Any]]:
    """Rows with values missing here and there."""
    rows: dict[str, list[Any]] = {
        "age": [n * 7 % 60 - 2 for n in range(ROWS)],
        "pay": [None if n % 5 == 0 else n * 11 % 60 - 15 for n in range(ROWS)],
        "size": [None if n % 7 == 0 else (n * 13 % 23) / 4 for n in range(ROWS)],
        "sex": [None if n % 4 == 0 else "FMXQ"[n * 3 % 4] for n in range(ROWS)],
        "well": [None if n % 3 == 0 else n % 2 == 0 for n in range(ROWS)],
        "born": [None if n % 6 == 0 else f"2000-01-{1 + n % 31:02}" for n in range(ROWS)],
        "note": [f"note {n % 3}" for n in range(ROWS)],
    }
    return {**rows, "person": [n // 4 for n in range(ROWS)]} if unit else rows


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "units"])
def table(request: pytest.FixtureRequest) -> Iterator[Prepared]:
    """A short table, as declared."""
    whose: dict[str, Any] = {"unit": "person", "max_rows": 3} if request.param else {}
    with prepare(PrivateTable(source(request.param), columns=COLUMNS, size=ROWS, **whose)) as prepared:
        yield prepared


OPS = ["=", "!=", "<", "<=", ">", ">="]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "age": st.integers(-5, 60) | st.just(2.5) | st.none(),
    "pay": st.integers(-20, 60) | st.none(),
    "size": st.sampled_from([0.0, 0.25, 0.3, 1.0, 2.5, 5.0, 7.0]),
    "sex": st.sampled_from(["F", "M", "X", "Q"]),
    "well": st.booleans(),
    "born": st.sampled_from(["1999-05-05", "2000-01-15", "2000-03-01"]),
}
LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.sampled_from(list(VALUES)).flatmap(
        lambda name: st.builds(Compare, st.sampled_from(OPS), st.just(Column(name)), VALUES[name].map(Literal))
    ),
    st.builds(Compare, st.sampled_from(OPS), st.just(Column("age")), st.sampled_from([Column("pay"), Column("size")])),
    st.builds(In, st.just("pay"), st.lists(st.integers(-20, 60) | st.none(), min_size=1, max_size=5)),
    st.builds(In, st.just("sex"), st.lists(st.sampled_from(["F", "M", "Q"]), min_size=1, max_size=3)),
    st.builds(Between, st.just("age"), st.integers(-5, 60), st.integers(-5, 60)),
    st.builds(IsNull, st.sampled_from(list(VALUES))),
    st.builds(Like, st.just("sex"), st.sampled_from(["F%", "%", "_"])),
    st.just(Column("well")),
    st.sampled_from([True, False, None]).map(Literal),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.builds(Not, inner), st.builds(And, inner, inner), st.builds(Or, inner, inner)),
    max_leaves=8,
)


def both(table: Prepared, aggregation: Aggregation) -> tuple[int, int]:
    """What the arrays give, and what the engine gives."""
    [name] = [each.name for each in aggregation.aggregates]
    mine, theirs = table.aggregate(aggregation).values[name], Answering.aggregate(table, aggregation).values[name]
    assert mine.dtype == theirs.dtype == np.int64
    assert mine.shape == theirs.shape == (1,)
    return int(mine[0]), int(theirs[0])


@settings(max_examples=60, deadline=None)
@given(where=CONDITIONS, cap=st.sampled_from([None, 1, 2, 4]))
def test_every_condition_counts_the_rows_that_the_engine_counts(table: Prepared, where: Expression, cap: int | None) -> None:
    asked = Aggregation(None, where=where, max_rows=cap if table.declared.unit else None)
    mine, theirs = both(table, asked)
    assert mine == theirs
    held = table._hold()  # type: ignore[attr-defined]
    assert held.count(where, None) is not None, "it was the arrays that counted"


def test_all_rows_are_counted_up_to_the_cap(table: Prepared) -> None:
    mine, theirs = both(table, Aggregation(None))
    assert mine == theirs == (225 if table.declared.unit else ROWS)


@pytest.mark.parametrize(
    "where",
    [
        Compare("=", Column("note"), Literal("note 1")),
        Like("note", "%2"),
        And(IsNull("note"), Compare(">", Column("age"), Literal(3))),
        Or(*(Compare("=", Column("age"), Literal(each)) for each in range(40))),
    ],
)
def test_what_is_not_spelled_for_arrays_is_the_engines(table: Prepared, where: Expression) -> None:
    mine, theirs = both(table, Aggregation(None, where=where))
    assert mine == theirs
    assert table._hold().count(where, None) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "aggregates",
    [
        (Aggregate("s", "sum", (("age", 0),)),),
        (Aggregate("n", "rows", present=("pay",)),),
        (Aggregate("n", "rows"), Aggregate("s", "sum", (("age", 0),))),
    ],
)
def test_other_aggregates_are_the_engines(table: Prepared, aggregates: tuple[Aggregate, ...]) -> None:
    asked = Aggregation(None, aggregates=aggregates)
    assert not holding.countable(asked)
    mine, theirs = table.aggregate(asked), Answering.aggregate(table, asked)
    assert {name: each.tolist() for name, each in mine.values.items()} == {
        name: each.tolist() for name, each in theirs.values.items()
    }


def test_refusals_are_the_engines(table: Prepared) -> None:
    with pytest.raises(UnknownColumn):
        table.aggregate(Aggregation(None, where=Compare(">", Column("nothing"), Literal(3))))


def test_a_table_whose_size_nobody_declared_is_not_held() -> None:
    """How many rows it has in truth must not decide how it is answered."""
    with prepare(PrivateTable({"age": [1, 2, 3]}, columns={"age": Integer(0, 9)})) as prepared:
        assert prepared.aggregate(Aggregation(None)).values["rows"].tolist() == [3]
        assert prepared._held is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("declared", "rows", "held"),
    [(12, 12, True), (12, 13, True), (12, 50, True), (12, 51, False), (13, 12, False), (13, 3, False)],
)
def test_what_was_declared_decides_whether_memory_is_meant_for_the_rows(
    monkeypatch: pytest.MonkeyPatch, declared: int, rows: int, held: bool
) -> None:
    """One person more or fewer does not, as far as the declared number is near the true one: it would be seen by the clock."""
    monkeypatch.setattr("cloister.tables.engines.duckdb.MOST_BYTES", 100)
    with prepare(PrivateTable({"age": [1] * rows}, columns={"age": Integer(0, 9)}, size=declared)) as prepared:
        assert prepared.aggregate(Aggregation(None)).values["rows"].tolist() == [rows]
        assert (prepared._hold() is not None) is held  # type: ignore[attr-defined]


def test_a_closed_table_counts_nothing() -> None:
    prepared = prepare(PrivateTable({"age": [1, 2, 3]}, columns={"age": Integer(0, 9)}, size=3))
    assert prepared.aggregate(Aggregation(None)).values["rows"].tolist() == [3]
    prepared.close()
    with pytest.raises(EngineError):
        prepared.aggregate(Aggregation(None))
    assert prepared._held is None  # type: ignore[attr-defined]


def test_threads_that_come_together_read_the_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.tables.engines.duckdb import DuckDBPrepared

    read, reading = [], DuckDBPrepared._read_held

    def counted(self: DuckDBPrepared) -> holding.Held | None:
        read.append(1)
        return reading(self)

    monkeypatch.setattr(DuckDBPrepared, "_read_held", counted)
    with prepare(PrivateTable({"age": [1, 2, 3] * 50}, columns={"age": Integer(0, 9)}, size=150)) as prepared:
        found: list[list[int]] = []
        asked = Aggregation(None, where=Compare(">=", Column("age"), Literal(2)))
        threads = [
            threading.Thread(target=lambda: found.append(prepared.aggregate(asked).values["rows"].tolist())) for _ in "12345678"
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert found == [[100]] * 8
    assert read == [1]
