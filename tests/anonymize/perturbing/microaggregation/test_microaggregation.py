"""Whole tables: every kind of frame, orders and names, gaps, and k counted in what comes out."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import Microaggregation
from cloister.errors import InvalidParameter, UnknownColumn

TABLE = {
    "age": [21, 23, 24, 60, 61, 65, 62],
    "pay": [900.0, 950, 940, 2000, 2400, 2200, 2100],
    "school": ["none", "some", "some", "much", "much", "none", "much"],
    "sex": ["F", "F", "M", "M", "M", "M", "F"],
    "🦆 'name'": ["a", "b", "c", "d", "e", "f", "g"],
}
ORDER = {"school": ["none", "some", "much"]}


def rows_of(frame: Any, names: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[name] for name in names), strict=True))


@pytest.mark.parametrize("method", ["auto", "mdav", "vmdav", "blocks"])
@pytest.mark.parametrize("replace", ["mean", "median", "mode", {"age": "median"}])
def test_k_holds_in_what_comes_out(method: str, replace: Any) -> None:
    names = ["age", "pay", "school", "sex"]
    done = Microaggregation(columns=names, k=3, method=method, replace=replace, orders=ORDER).apply(TABLE, shuffle=False)
    counts = Counter(rows_of(done.frame, names))
    assert min(counts.values()) == done.k >= 3
    assert done.frame["🦆 'name'"] == TABLE["🦆 'name'"]
    assert set(done.frame["school"]) <= set(ORDER["school"])
    assert 0 < done.loss < 1
    assert set(done.changed) == {"sex"}


def test_means_are_the_groups_means() -> None:
    done = Microaggregation(columns=["age", "pay"], k=3, method="mdav").apply(TABLE, shuffle=False)
    assert done.frame["age"] == pytest.approx([68 / 3] * 3 + [248 / 4] * 4)
    assert np.mean(done.frame["pay"]) == pytest.approx(np.mean(TABLE["pay"]))


def test_every_kind_of_frame_comes_back_as_it_came() -> None:
    work = Microaggregation(columns=["age", "school"], k=3, replace="median", orders=ORDER)
    plain = work.apply(TABLE, shuffle=False).frame
    panda = pd.DataFrame(TABLE, index=list("tuvwxyz"))
    done = work.apply(panda, shuffle=False, keep_index=True).frame
    assert isinstance(done, pd.DataFrame)
    assert list(done.index) == list("tuvwxyz")
    assert list(done.columns) == list(TABLE)
    assert done["age"].dtype.kind == "i"
    assert done["age"].tolist() == plain["age"]
    bear = work.apply(pl.DataFrame(TABLE).with_columns(pl.col("age").cast(pl.Int8)), shuffle=False).frame
    assert bear["age"].dtype == pl.Int8
    assert bear["age"].to_list() == plain["age"]
    assert bear["school"].to_list() == plain["school"]
    assert panda["age"].tolist() == TABLE["age"]  # the caller's own frame is as it was


def test_each_column_by_itself_is_the_best_and_says_that_records_are_not_alike() -> None:
    generator = np.random.default_rng(5)
    table = {"a": generator.normal(size=60), "b": generator.normal(size=60)}
    done = Microaggregation(columns=["a", "b"], k=4, by="column").apply(table, shuffle=False)
    for name in table:
        assert min(Counter(list(done.frame[name])).values()) >= 4
    assert done.k == 1
    with pytest.raises(InvalidParameter, match="orders="):
        Microaggregation(columns="sex", k=3, by="column").apply(TABLE, shuffle=False)
    ranks = Microaggregation(columns="school", k=2, by="column", orders=ORDER).apply(TABLE, shuffle=False)
    assert min(Counter(ranks.frame["school"]).values()) >= 2


def test_dates_keep_being_dates() -> None:
    days = [datetime.date(2020, 1, day) for day in (1, 2, 3, 20, 21, 22)]
    done = Microaggregation(columns="day", k=3).apply({"day": days}, shuffle=False)
    assert done.frame["day"] == [days[1]] * 3 + [days[4]] * 3


def test_gaps_are_refused_or_grouped_among_themselves() -> None:
    table = {"a": [1.0, 2, 3, None, None, None, 9, 8, None], "b": [1, 2, 3, 4, 5, 6, 7, None, None]}
    with pytest.raises(InvalidParameter, match="4 of its values are missing"):
        Microaggregation(columns=["a", "b"], k=2).apply(table, shuffle=False)
    done = Microaggregation(columns=["a", "b"], k=2, missing="own").apply(table, shuffle=False)
    assert done.k >= 2
    assert done.frame["a"][3:6] == [None] * 3
    assert done.frame["b"][3:6] == [5.0] * 3
    assert done.frame["a"][7:] == done.frame["b"][7:] == [None, None]  # the pattern of one record joined the wholly empty one
    with pytest.raises(InvalidParameter, match="share what is missing"):
        Microaggregation(columns=["a", "b"], k=3, missing="own").apply(table, shuffle=False)
    alone = Microaggregation(columns=["a", "b"], k=2, missing="own", by="column").apply(table, shuffle=False)
    assert [value is None for value in alone.frame["a"]] == [value is None for value in table["a"]]


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_nothing_but_gaps(gap: Any) -> None:
    work = Microaggregation(columns="a", k=2, missing="own")
    assert work.apply({"a": [gap, gap]}, shuffle=False).frame["a"] in ([None, None], [gap, gap])
    assert work.apply(pl.DataFrame({"a": [gap] * 3}), shuffle=False).frame["a"].fill_nan(None).null_count() == 3


def test_empty_one_row_and_too_few() -> None:
    empty = Microaggregation(columns="a", k=5).apply({"a": []}, shuffle=False)
    assert (empty.frame, empty.k, empty.loss) == ({"a": []}, 0, 0.0)
    with pytest.raises(InvalidParameter, match="the table has 1 records"):
        Microaggregation(columns="a", k=2).apply({"a": [1]}, shuffle=False)
    assert Microaggregation(columns="a", k=1).apply({"a": [1]}, shuffle=False).frame == {"a": [1.0]}


def test_huge_and_constant_numbers() -> None:
    done = Microaggregation(columns=["a", "b"], k=2).apply(
        {"a": [1e300, -1e300, 1e300, -1e300], "b": [7, 7, 7, 7]}, shuffle=False
    )
    assert done.frame["a"] == [1e300, -1e300, 1e300, -1e300]
    assert done.loss == 0.0


@pytest.mark.parametrize(
    ("options", "table", "said"),
    [
        ({"columns": "a"}, {"a": [1.0, float("inf")]}, "infinite"),
        ({"columns": []}, {"a": [1.0]}, "names no column"),
        ({"columns": ["a", "a"]}, {"a": [1.0]}, "twice"),
        ({"columns": "a", "orders": {"a": ["x"]}}, {"a": ["x", "y"]}, "'y', which it lacks"),
        ({"columns": "a", "orders": {"a": ["x", "x", "y"]}}, {"a": ["x", "y"]}, "twice"),
        ({"columns": "a"}, {"a": [f"name {each}" for each in range(300)]}, "300 names"),
        ({"columns": "a"}, {"a": [1, "x"]}, "several types"),
        ({"columns": "a"}, [1, 2], "it is a list"),
        ({"columns": "a"}, {"a": [1], "b": [1, 2]}, "different lengths"),
    ],
)
def test_tables_that_are_refused(options: dict[str, Any], table: Any, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        Microaggregation(k=1, **options).apply(table, shuffle=False)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "magic"},
        {"by": "row"},
        {"replace": "max"},
        {"replace": {"a": "sum"}},
        {"missing": "zero"},
        {"weights": {"a": 0}},
    ],
)
def test_choices_that_do_not_exist(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="is invalid"):
        Microaggregation(columns="a", **options)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(UnknownColumn, match="'b'"):
        Microaggregation(columns="b").apply({"a": [1]}, shuffle=False)


def test_weights_make_a_column_count_more() -> None:
    generator = np.random.default_rng(4)
    table = {"a": generator.normal(size=200).tolist(), "b": generator.normal(size=200).tolist()}
    plain = Microaggregation(columns=["a", "b"], k=5).apply(table, shuffle=False).frame
    heavy = Microaggregation(columns=["a", "b"], k=5, weights={"a": 100}).apply(table, shuffle=False).frame
    assert np.square(np.subtract(heavy["a"], table["a"])).sum() < np.square(np.subtract(plain["a"], table["a"])).sum() / 5


@pytest.mark.parametrize("replace", ["mean", "median", "mode"])
def test_groups_that_have_nothing_in_a_column_do_not_shift_the_others(replace: str) -> None:
    table = {"a": ["x", "x", None, None, "z", "z"], "b": [None, None, "u", "u", "v", "v"], "n": [1.0, 1.0, 2.0, 2.0, None, None]}
    for names in (["a", "b"], ["n", "b"], ["b", "n", "a"]):
        done = Microaggregation(columns=names, k=2, missing="own", replace=replace).apply(table, shuffle=False)
        assert {name: done.frame[name] for name in names} == {name: table[name] for name in names}
        assert done.k == 2
