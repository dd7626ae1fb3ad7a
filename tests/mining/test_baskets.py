"""Baskets from anything, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.mining import Baskets, frequent_itemsets, hide_rules, read_baskets
from cloister.mining.reading import read_with_shape

LISTS = [["tea", "milk"], ["tea"], [], ["milk", "jam", "milk"]]
LONG = {"basket": [7, 7, 8, 9, 5, 5, 5], "item": ["tea", "milk", "tea", None, "milk", "jam", "milk"]}
WIDE = {"tea": [True, True, False, False], "milk": [True, False, False, True], "jam": [False, False, False, True]}
HOSTILE = ["🧀", "'; DROP TABLE x; --", "a, b -> c", "", " ", "\x00", "é", "e\u0301", "<script>", "١"]


@pytest.mark.parametrize(
    "table",
    [
        {"basket": [1, 1, "1", 2], "item": ["tea", "jam", "tea", "jam"]},
        {"basket": [1, 1, 2, 2], "item": [7, "7", 7, "tea"]},
        {"basket": [1, 2], "item": [1.5, "1.5"]},
        {7: [True, False], "7": [False, True]},
    ],
)
def test_what_would_be_written_alike_is_refused(table: dict[Any, list[Any]]) -> None:
    """As one item or basket in what is written, two would bring a hidden rule back."""
    with pytest.raises(InvalidParameter, match=r"written alike|the same name"):
        read_baskets(table)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_every_kind_of_table_is_the_same_baskets(kind: Any, shape: str) -> None:
    source = kind(LONG if shape == "long" else WIDE)
    read = read_with_shape(source)
    assert [sorted(map(str, basket)) for basket in read.baskets.lists()] == [sorted(set(basket)) for basket in LISTS]
    assert read.shape == shape
    again = read_with_shape(read.written(read.baskets))
    assert again.baskets.lists() == read.baskets.lists()
    assert type(read.written(read.baskets)) is type(source)


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow"])
def test_whole_numbers_and_days_beside_a_missing_item_stay_what_they_are(kind: str) -> None:
    """NumPy's floats made two long numbers one item, and wrote each with ".0"; a day was a number of nanoseconds."""
    polars = pl.DataFrame({"basket": [1, 1, 2, 2], "item": [2**53, 2**53 + 1, 2**53 + 1, None]})
    numbers = pd.array([2**53, 2**53 + 1, 2**53 + 1, None], dtype="Int64")
    pandas = pd.DataFrame({"basket": [1, 1, 2, 2], "item": numbers})
    source = {"polars": polars, "pandas": pandas, "arrow": polars.to_arrow()}[kind]
    assert read_baskets(source).lists() == [[2**53, 2**53 + 1], [2**53 + 1]]
    found = hide_rules(source, [f"{2**53} → {2**53 + 1}"], min_support="0.5", min_confidence="0.5")
    assert found.effects.hiding_failure == 0
    days = pd.DataFrame({"basket": ["a", "b", "b"], "item": pd.to_datetime(["2026-01-02", None, "2026-01-02"])})
    assert [str(item) for item in read_baskets(days).items] == ["2026-01-02 00:00:00"]


def test_a_series_of_lists_is_a_list_of_baskets_and_a_missing_item_is_none() -> None:
    """Each was read as a table, and failed in Arrow's own words, which showed a row."""
    lists: list[Any] = [["tea", None], ["tea", float("nan"), "milk"]]
    for source in (pd.Series(lists), pl.Series([["tea", None], ["tea", "milk"]]), pa.array([["tea"], ["tea", "milk"]])):
        assert [sorted(each) for each in read_baskets(source).lists()] == [["tea"], ["milk", "tea"]]
    for wrong in (pd.Series([1, "secret"]), pl.DataFrame({"a": [True]}).lazy(), [[np.zeros(2)]]):
        with pytest.raises(InvalidParameter) as refused:
            read_baskets(wrong)
        assert "secret" not in str(refused.value)


def test_names_of_columns_can_be_said() -> None:
    renamed = {"order": LONG["basket"], "product": LONG["item"]}
    assert len(read_baskets(renamed, basket="order", item="product")) == 4
    with pytest.raises(UnknownColumn, match="order, product"):
        read_baskets(renamed, basket="order", item="thing")


def test_numbers_of_yes_and_no_are_taken_and_others_are_not() -> None:
    assert read_baskets(pd.DataFrame({"a": [1, 0], "b": [1.0, 0.0]})).lists() == [["a", "b"], []]
    with pytest.raises(InvalidParameter, match="row 2 of column 'a'"):
        read_baskets({"a": [1, 2]})
    with pytest.raises(InvalidParameter, match="differ in length"):
        read_baskets({"a": [True], "b": [True, False]})


@pytest.mark.parametrize(
    "source", ["tea", 7, None, ["tea", "milk"], [{"a": 1}], [[["tea"]]], [b"x"], {"basket": [None], "item": ["a"]}, {"a": "bc"}]
)
def test_what_holds_no_baskets_is_refused(source: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_baskets(source)
    assert refused.value.why
    assert refused.value.instead


def test_nothing_and_empty_baskets_are_baskets() -> None:
    assert len(read_baskets([])) == 0
    assert len(read_baskets({})) == 0
    assert read_baskets([[], []]).lists() == [[], []]
    assert len(frequent_itemsets([], min_support="0.1")) == 0
    assert len(frequent_itemsets([[]], min_support="0.1")) == 0
    assert [each.items for each in frequent_itemsets([["tea"]], min_support=1)] == [("tea",)]


def test_strange_items_stay_what_they_are() -> None:
    baskets = [HOSTILE[:6], HOSTILE, HOSTILE[3:]] * 2
    found = frequent_itemsets(baskets, min_support="0.9", max_size=1)
    assert {each.items[0] for each in found} == set(HOSTILE[3:6])
    result = hide_rules(baskets, [(HOSTILE[0], HOSTILE[1]), ("a, b -> c", "")], min_support="0.5", min_confidence="0.5")
    assert result.effects.hiding_failure == 0
    assert all(item in HOSTILE for basket in result.data for item in basket)


def test_a_basket_that_lost_everything_still_counts() -> None:
    source = {"basket": [1, 1, 2, 2, 3], "item": ["a", "b", "a", "b", "c"]}
    empty = read_with_shape(source)
    bare = empty.baskets.with_columns({0: np.zeros(3, np.bool_), 1: np.zeros(3, np.bool_)})
    assert bare.lists() == [[], [], ["c"]]
    assert len(read_baskets(empty.written(bare))) == 3


def test_bits_columns_and_lists_agree() -> None:
    lists = [[place for place in range(7) if (number * 7 + place) % 3 == 0] for number in range(131)]
    baskets = Baskets.of(lists)
    places = list(range(len(baskets.items)))
    assert np.bitwise_count(baskets.bits(places)).sum(axis=1).tolist() == baskets.counts.tolist()
    assert baskets.matrix(places).sum(axis=1).tolist() == baskets.counts.tolist()
    assert [sorted(basket) for basket in baskets.lists()] == lists
