"""One value of another type changes how a list is held, and nothing else: neither codes nor the places of other units' rows."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow
import pytest

from cloister.tables import Boolean, Category, Date, Domain, Integer, PrivateTable, Real, prepare
from cloister.tables.engines.duckdb import DuckDBPrepared
from cloister.tables.sourcing.source_factory import recognise

UNITS = [unit for unit in range(200) for _ in range(4)]
VALUES = [i % 4 + 10 * (i % 3) for i in range(len(UNITS))]


def kept(units: list[Any], values: list[int], secret: str = "00ff") -> dict[str, int]:
    """The one row of each unit that counts, by the unit's text."""
    table = PrivateTable({"who": units, "x": values}, columns={"x": Integer(0, 99)}, unit="who", max_rows=1)
    with prepare(table, secret=secret) as prepared:
        assert isinstance(prepared, DuckDBPrepared)
        cursor = prepared._connection.cursor()
        return dict(cursor.execute('SELECT "unit"::VARCHAR, c0 FROM cloister_prepared_rows WHERE place = 1').fetchall())


@pytest.mark.parametrize(
    "newcomer",
    [2**63, 2**70, 4.5, 1e300, "x", True, Decimal("1.50"), datetime.date(2020, 1, 1), float("inf"), -0.5],
    ids=str,
)
def test_a_new_unit_moves_no_other(newcomer: Any) -> None:
    before, after = kept(UNITS, VALUES), kept([*UNITS, newcomer], [*VALUES, 7])
    assert len(before) == 200
    assert {unit: after[unit] for unit in before} == before


@pytest.mark.parametrize(
    ("units", "newcomer"),
    [
        ([0.5, 2.0, -0.0, 1e16, 1e300, -(2.0**61), 1e-7], "x"),
        ([datetime.date(2020, 1, day) for day in range(1, 8)], "x"),
        ([True, False], "x"),
        ([True, False], 3),
        ([2**53 + 1, 2**62 + 1, 5], 4.5),
        ([2**53 + 1, 2**62 + 1, 5], 2**64),
        ([10**18 - 1, 10**18, -(10**18), 1 - 10**18, -(2**63), 2**63 - 1, -1, 0], "x"),
    ],
)
def test_a_new_type_moves_no_other(units: list[Any], newcomer: Any) -> None:
    many = [unit for unit in units for _ in range(9)]
    values = [i % 9 for i in range(len(many))]
    before, after = kept(many, values), kept([*many, newcomer], [*values, 7])
    assert len(before) == len(units)
    assert {unit: after[unit] for unit in before} == before


def test_equal_units_of_every_kind_have_one_place() -> None:
    """In a frame the type is the frame's own, and still says nothing."""
    columns = {"x": Integer(0, 99)}
    found = []
    for dtype in (
        pyarrow.int16(),
        pyarrow.int64(),
        pyarrow.uint64(),
        pyarrow.float32(),
        pyarrow.float64(),
        pyarrow.decimal128(22, 3),
        pyarrow.string(),
    ):
        units = pyarrow.array(UNITS).cast(pyarrow.int64()).cast(dtype)
        table = PrivateTable(pyarrow.table({"who": units, "x": VALUES}), columns=columns, unit="who", max_rows=1)
        with prepare(table, secret="00ff") as prepared:
            found.append(prepared.rows(["x"])["x"].tolist())
    assert all(sorted(each) == sorted(found[0]) for each in found)


DOMAINS: list[tuple[Domain, list[Any]]] = [
    (Integer(0, 99), [1, 2.5, 7.0, "8", 400, -1]),
    (Integer(-(2**62) + 2, 2**62 - 2), [1, 2**53 + 1, 2.0**60, 2**80, 1e300, 2.5]),
    (Real(0, 10, step="0.25"), [1, 0.375, 2**63, 1e300, "1e1"]),
    (Category([1, 2, 3], nullable=True), [1, 2.0, 2.5, 3, 2**63, "1"]),
    (Boolean(nullable=True), [1, 0.0, 0.5, 1.0, 2, True, False, "yes"]),
    (Category([True, False], nullable=True), [1, 0.0, 2, True, False]),
    (Date("2000-01-01", "2030-01-01"), [datetime.date(2020, 5, 6), datetime.datetime(2020, 5, 6, 23), "2020-05-06"]),
]


@pytest.mark.parametrize(("domain", "values"), DOMAINS, ids=repr)
def test_a_value_has_one_code_whatever_stands_beside_it(domain: Domain, values: list[Any]) -> None:
    def codes(listed: list[Any]) -> list[int]:
        with prepare(PrivateTable({"x": listed}, columns={"x": domain})) as prepared:
            return sorted(prepared.rows(["x"])["x"].tolist())

    alone = []
    for value in values:
        if recognise({"x": [value]}).schema["x"] == "boolean" and isinstance(domain, Integer):
            continue
        alone += codes([value])
        assert codes([value]) == [domain.null_code if domain.encode(value) is None else domain.encode(value)], value
    assert codes(values) == sorted(alone)
    assert codes([*values, "odd"]) == sorted([*alone, domain.null_code])


def test_the_texts_of_floats_are_those_of_the_engine() -> None:
    """A float among texts is the text that it would be among floats."""
    import duckdb

    generator = np.random.Generator(np.random.PCG64(1))
    floats = generator.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    floats = floats[np.isfinite(floats)]
    with duckdb.connect() as connection:
        connection.register("given", pyarrow.table({"x": floats}))
        texts = [text for (text,) in connection.execute("SELECT x::VARCHAR FROM given").fetchall()]
    assert texts == [repr(each) for each in floats.tolist()]
