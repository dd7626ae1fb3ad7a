"""Requests: bins, the width of sums, and what is refused before an engine is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.tables import (
    Aggregate,
    Aggregation,
    Binned,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Integer,
    Key,
    Literal,
    Real,
    Strided,
    Text,
)

DOMAINS = {"x": Integer(-(2**40), 2**40), "y": Real(0, 1), "t": Text(), "c": Category(["a"])}


@pytest.mark.parametrize(
    ("request_", "kind", "why"),
    [
        (Aggregation(None, keys=("z",)), UnknownColumn, "'z'"),
        (Aggregation(None, where=Compare("=", Column("z"), Literal(1))), UnknownColumn, "'z'"),
        (Aggregation(None, aggregates=(Aggregate("s", "sum", (("z", 0),)),)), UnknownColumn, "'z'"),
        (Aggregation(None, aggregates=(Aggregate("s", "sum", (("t", 0),)),)), UnsupportedQuery, "'t'.*text"),
        (Aggregation(None, aggregates=(Aggregate("n", "rows"), Aggregate("n", "units"))), InvalidParameter, "name of its own"),
        (Aggregation(None, aggregates=()), InvalidParameter, "name of its own"),
        (Aggregation(None, aggregates=(Aggregate("s", "sum", (("x", 0), ("x", 0), ("y", 0))),)), UnsupportedQuery, "126 bits"),
        (Aggregation(None, aggregates=(Aggregate("s", "sum", (("y", 2**90),)),)), UnsupportedQuery, "126 bits"),
    ],
    ids=repr,
)
def test_what_is_refused(request_: Any, kind: Any, why: str) -> None:
    with pytest.raises(kind, match=why):
        request_.check(DOMAINS)


def test_sums_up_to_the_limit_are_taken() -> None:
    Aggregation(None, aggregates=(Aggregate("s", "sum", (("x", 0), ("x", 0))),)).check(DOMAINS)
    assert Aggregate("s", "sum", (("x", 1),)).largest(DOMAINS) == 2**40 + 1
    assert Aggregate("n", "rows").largest(DOMAINS) == 1


@pytest.mark.parametrize("wrong", [("s", "sum"), ("n", "rows", (("x", 0),)), ("n", "median"), ("v", "values")])
def test_aggregates_that_make_no_sense(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        Aggregate(*wrong)


def test_requests_are_hashable_and_plain() -> None:
    request = Aggregation(
        None, Compare("=", Column("x"), Literal(1)), ("c", Binned("y", [0, "0.5", 1])), (Aggregate("s", "sum", ("x",)),), 3
    )
    assert hash(request) == hash(request)
    assert json.loads(json.dumps(request.describe())) == request.describe()
    assert request.aggregates[0].factors == (("x", 0),)


def test_bins() -> None:
    pay = Real(0, 9, step="0.3")
    bins = Binned("pay", [0, "0.1", 1, 9])
    assert isinstance(bins, Key)
    assert bins.size(pay) == 3
    assert bins.starts(pay) == (0, 1, 4, 31)
    assert bins.labels(pay) == ("[0, 0.1)", "[0.1, 1)", "[1, 9]")
    days = Binned("born", ["2020-01-01", "2020-02-01", "2021-01-01"])
    assert days.labels(Date("2020-01-01", "2020-12-31")) == ("[2020-01-01, 2020-02-01)", "[2020-02-01, 2021-01-01]")
    assert Binned("age", [-(10**30), 18, 10**30]).starts(Integer(0, 120)) == (0, 18, 121)


@pytest.mark.parametrize(
    ("edges", "domain", "kind", "why"),
    [
        ([0], Integer(0, 9), InvalidParameter, "two edges"),
        (None, Integer(0, 9), InvalidParameter, "not numbers or days"),
        ([0, 0], Integer(0, 9), InvalidParameter, "increase"),
        ([3, 1], Integer(0, 9), InvalidParameter, "increase"),
        ([0, "x"], Integer(0, 9), InvalidParameter, "finite number"),
        ([0, 1], Text(), UnsupportedQuery, "text"),
        ([0, 1], Category([1]), UnsupportedQuery, "category"),
        ([0, 1], Boolean(), UnsupportedQuery, "boolean"),
        ([0, 1], Date("2020-01-01", "2020-01-02"), UnsupportedQuery, "YYYY-MM-DD"),
        ([[0], [1]], Integer(0, 9), InvalidParameter, "not numbers"),
    ],
)
def test_bins_that_are_refused(edges: Any, domain: Any, kind: Any, why: str) -> None:
    with pytest.raises(kind, match=why):
        Binned("x", edges).starts(domain)


def test_strides_are_bins_of_neighbouring_values() -> None:
    days = Date("2024-01-30", "2024-02-02")
    for key, domain, labels in (
        (Strided("x", 2), Integer(-1, 3), ("[-1, 1)", "[1, 3)", "[3, 3]")),
        (Strided("y", 5), Real(0, 1, step="0.1"), ("[0, 0.5)", "[0.5, 1)", "[1, 1]")),
        (Strided("d", 3), days, ("[2024-01-30, 2024-02-02)", "[2024-02-02, 2024-02-02]")),
    ):
        starts = key.starts(domain)
        assert isinstance(key, Key)
        assert key.labels(domain) == labels
        assert (len(starts), starts[0], starts[-1]) == (key.size(domain) + 1, domain.low_code, domain.high_code + 1)
    for wrong in (Text(), Category(["a"]), Boolean(), Integer(-(2**61), 2**61)):
        with pytest.raises(UnsupportedQuery, match="'x'"):
            Strided("x", 2).size(wrong)
    for stride in (0, -1, True, 2.0):
        with pytest.raises(InvalidParameter, match="stride="):
            Strided("x", stride)  # type: ignore[arg-type]


def test_presence_is_part_of_what_is_asked() -> None:
    plain, restricted = Aggregate("n", "rows"), Aggregate("n", "rows", present=("y", "x", "y"))
    assert restricted.present == ("x", "y")
    described = [json.dumps(Aggregation(None, aggregates=(each,)).describe()) for each in (plain, restricted)]
    assert described[0] != described[1]
    assert Aggregation(None, aggregates=(plain,)).describe()["aggregates"] == [["n", "rows", []]]
    with pytest.raises(UnknownColumn, match="'z'"):
        Aggregation(None, aggregates=(Aggregate("n", "rows", present=("z",)),)).check(DOMAINS)
