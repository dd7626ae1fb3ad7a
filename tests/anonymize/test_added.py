"""Columns that were named in no role: what they add to the risk is said in numbers, whatever share of values is distinct."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize import Anonymizer, HiddenRows, KAnonymity, risk
from cloister.noise import Random


def people(distinct: int, rows: int = 400) -> dict[str, list[Any]]:
    return {"age": [20 + place % 4 for place in range(rows)], "pay": [place % distinct for place in range(rows)]}


def test_a_column_with_85_per_cent_of_distinct_values() -> None:
    """Below the nine tenths from which on there once was a word."""
    table = people(343)
    asked = Anonymizer(["age"], models=[KAnonymity(5)])
    with pytest.warns(
        HiddenRows, match=r"the column 'pay' stays as it is: if others also know it, \d+ of 400 rows are the only"
    ) as told:
        released = asked.fit_transform(table)
    kinds = Counter(zip(released["age"], released["pay"], strict=True))
    alone = sum(count for count in kinds.values() if count == 1)
    assert alone > 280
    assert f"{alone} of 400 rows" in str(told[0].message)
    [added] = asked.report_.risk.added
    assert (added.alone, added.k, added.k_before) == (alone, 1, 100)
    paper = asked.certificate(released, learning=False)
    for text in (str(paper), paper.to_html(), str(asked.report_), asked.report_.to_html(), str(risk(released, ["age"]))):
        assert f"{alone} of 400 rows are the only ones of their kind" in text
    assert paper.to_dict()["risk"]["added"] == asked.report_.to_dict()["risk"]["added"] == [added.to_dict()]


def test_a_file_that_is_larger_is_counted_alike(tmp_path: Any) -> None:
    table = {**people(343), "team": [place % 2 for place in range(400)]}
    pl.DataFrame(table).write_parquet(tmp_path / "people.parquet")
    inside, outside = Anonymizer(["age"], models=[KAnonymity(5)]), Anonymizer(["age"], models=[KAnonymity(5)])
    with pytest.warns(HiddenRows, match="'pay'"):
        inside.fit_transform(table)
    with pytest.warns(HiddenRows, match="'pay'"):
        outside.transform_file(tmp_path / "people.parquet", tmp_path / "out.parquet")
    assert inside.report_.risk.added == outside.report_.risk.added
    assert [each.columns for each in inside.report_.risk.added] == [("pay",), ("team",), ("pay", "team")]


def test_a_column_that_tells_nobody_apart_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Anonymizer(["age"], models=[KAnonymity(5)]).fit_transform({**people(343), "pay": ["eur"] * 400})
        Anonymizer(["age"], models=[KAnonymity(5)]).fit_transform(
            {"age": [30] * 40, "pay": [100.0] * 20 + [100.0] * 20},
        )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["drop", "star"]))
def test_each_number_is_that_of_the_published_table(seed: int, suppressed: str) -> None:
    random = Random.deterministic(seed)
    table: dict[str, list[Any]] = {name: random.below(9, 40).tolist() for name in ("age", "a", "b")}
    table["b"] = [[each] for each in table["b"]]
    asked = Anonymizer(["age"], models=[KAnonymity(3)], suppression="0.2", suppressed=suppressed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = asked.fit_transform(table)
    rows = [row for row in zip(released["age"], released["a"], map(str, released["b"]), strict=True) if row[1] is not None]
    for added, chosen in zip(asked.report_.risk.added, ((0, 1), (0, 2), (0, 1, 2)), strict=True):
        kinds = Counter(tuple(row[place] for place in chosen) for row in rows)
        assert (added.rows, added.k) == (len(rows), min(kinds.values()))
        assert added.alone == sum(1 for count in kinds.values() if count == 1)
