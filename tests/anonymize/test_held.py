"""What polars cannot hold is refused in words of ours, before polars panics (which is no `Exception`, and prints values)."""

from __future__ import annotations

import contextlib
import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, KAnonymity, risk
from cloister.anonymize.perturbing import PRAM, Microaggregation
from cloister.errors import CloisterError, InvalidParameter

REFUSED: dict[str, tuple[list[Any], str]] = {
    "infinite decimal": ([Decimal("Infinity"), Decimal(1)], "infinite values"),
    "long decimal": ([Decimal(10) ** 400, Decimal(1)], "more than 38 digits"),
    "fine decimal": ([Decimal(10) ** -400, Decimal(1)], "more than 38 digits"),
    "wide decimals": ([Decimal("0." + "1" * 30), Decimal(10) ** 30], "more than 38 digits"),
    "long": ([10**400, 1], "more than 64 bits"),
    "128 bits": ([2**128, 1], "more than 64 bits"),
    "65 bits": ([-(2**64), 1], "more than 64 bits"),
    "long and fractional": ([10**400, 1.5], "more than 64 bits"),
    "half of a character": (["\ud800", "a"], "half of a character"),
    "half within": (["a\udc80b", None], "half of a character"),
    "bytes": ([b"a", b"b"], "Binary"),
    "lists": ([[1], [2]], "List"),
    "objects": ([object(), object()], "Object"),
    "fractions": ([Fraction(1, 3), 1], "several types"),
    "long times": ([datetime.timedelta(days=999999999), datetime.timedelta(1)], "timedelta"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_refused_in_own_words(case: str, kind: Any, capfd: pytest.CaptureFixture[str]) -> None:
    values, words = REFUSED[case]
    table = kind({"x": values if kind is dict else pd.Series(values, dtype=object), "y": [1, 2]})
    works: list[Any] = [
        lambda: risk(table, quasi=["x"]),
        lambda: risk(table, quasi=["y"], sensitive=["x"]),
        lambda: Anonymizer(["x"], models=[KAnonymity(1)]).fit_transform(table),
        lambda: PRAM(column="x").apply(table),
        lambda: Microaggregation(columns="x", k=2).apply(table),
    ]
    for work in works[:2]:
        with pytest.raises(InvalidParameter, match=words):
            work()
    for work in works[2:]:  # where one can do without order or type, nothing else than a refusal comes out of it
        with contextlib.suppress(CloisterError):
            work()
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), Decimal("-NaN123")])
def test_a_decimal_that_is_not_a_number_is_missing(kind: Any, value: Decimal) -> None:
    found = risk(kind({"x": pd.Series([value, None, Decimal("1.5")], dtype=object).tolist(), "y": [1, 1, 1]}), ["y"], ["x"])
    assert found.l == 2
    assert found.digest


def test_what_stands_for_a_missing_value_may_be_anything() -> None:
    strange = [10**400, "\ud800", Decimal("sNaN"), float("nan"), -1]
    table = {"age": [30, 30, -1, -1], "town": ["a", "a", "b", "b"]}
    asked = Anonymizer(["age", "town"], models=[KAnonymity(2)], suppression=0, missing_values=strange)
    assert asked.fit_transform(table)["age"].count(-1) == 2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments_of_any_unit_with_gaps(unit: Any) -> None:
    moments = pl.Series("x", [datetime.datetime(2020, 1, 1), None, datetime.datetime(2020, 1, 2)], dtype=pl.Datetime(unit))
    assert risk(pl.DataFrame({"x": moments}), quasi=["x"]).classes == 3
    numbers = np.array(["2020", "NaT", "2021", "NaT"], dtype=f"M8[{unit}]")
    assert risk({"x": numbers}, quasi=["x"]).classes == 3


def test_columns_that_csv_does_not_hold_have_a_digest() -> None:
    table = {"age": [30, 30], "memo": [[1], [2]], "bytes": [b"a", b"b"]}
    asked = Anonymizer(["age"], models=[KAnonymity(2)], suppression=0)
    with pytest.warns(UserWarning, match="'memo'"):
        released = asked.fit_transform(table)
    assert len(asked.certificate(released, learning=False).digest) == 64


@pytest.mark.parametrize("table", [{"age": 5}, {"age": None}, {"age": "ab"}, {"age": b"ab"}])
def test_what_is_no_column(table: Any) -> None:
    with pytest.raises(InvalidParameter, match="not a list of values"):
        risk(table, quasi=["age"])


def test_broken_files_and_frames(tmp_path: Any) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more PAR1")
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe\x00a,b\n\x00")
    (tmp_path / "folder.csv").mkdir()
    for name in ("broken.parquet", "folder.csv"):
        with pytest.raises(InvalidParameter, match="could not be read as a table"):
            risk(tmp_path / name, quasi=["a"])
    with pytest.raises(CloisterError):
        risk(tmp_path / "broken.csv", quasi=["a"])
    with pytest.raises(InvalidParameter, match="could not collect"):
        risk(pl.LazyFrame({"a": ["x"]}).select(pl.col("a").str.to_integer()), quasi=["a"])
