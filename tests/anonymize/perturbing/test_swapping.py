"""Rank swapping, shuffling and record swapping: what stays exactly, what moves how far, and who finds no partner."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import RankSwap, RecordSwap, Shuffle
from cloister.anonymize.perturbing.swapping import _partners
from cloister.anonymize.sorting import dealt
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 60), percent=st.floats(0.5, 100), seed=st.integers(0, 99))
def test_no_rank_moves_further_than_it_may(count: int, percent: float, seed: int) -> None:
    values = [(each * 37) % 101 for each in range(count)]
    done = RankSwap(columns="x", percent=percent).apply({"x": values}, random=Random.deterministic(seed), shuffle=False)
    assert sorted(done.frame["x"]) == sorted(values)
    rank = {value: place for place, value in enumerate(sorted(values))}
    moves = [abs(rank[old] - rank[new]) for old, new in zip(values, done.frame["x"], strict=True)]
    assert max(moves, default=0) <= max(1, percent / 100 * count)


@pytest.mark.statistical
def test_partners_are_drawn_evenly_within_reach() -> None:
    """The lowest of nine ranks with a reach of four: each of the next four as often, chi-square at 1e-7."""
    from scipy import stats

    random = Random.deterministic(1)
    counts = Counter(int(_partners(9, 4, random)[0]) for _ in range(8000))
    assert set(counts) == {1, 2, 3, 4}
    assert stats.chisquare(list(counts.values())).pvalue > 1e-7


def test_nearly_all_move_and_correlations_stay_near() -> None:
    generator = np.random.default_rng(1)
    a = generator.normal(size=3000)
    table = {"a": a, "b": a + generator.normal(size=3000) * 0.3, "c": [f"t{value % 7}" for value in range(3000)]}
    done = RankSwap(columns=["a", "b"], percent=3).apply(table, random=Random.deterministic(1), shuffle=False)
    assert min(done.changed.values()) > 0.95
    before, after = np.corrcoef(table["a"], table["b"])[0, 1], np.corrcoef(done.frame["a"], done.frame["b"])[0, 1]
    assert 0.97 * before < after < before
    assert done.frame["c"] == table["c"]


def test_gaps_stay_where_they_are() -> None:
    table = {"x": [3, None, 1, None, 2, 5]}
    with pytest.raises(InvalidParameter, match="2 of its values are missing"):
        RankSwap(columns="x").apply(table, shuffle=False)
    done = RankSwap(columns="x", percent=100, missing="keep").apply(
        pl.DataFrame(table), random=Random.deterministic(1), shuffle=False
    )
    assert done.frame["x"].is_null().to_list() == [value is None for value in table["x"]]
    assert sorted(done.frame["x"].drop_nulls()) == [1, 2, 3, 5]


def test_shuffles_within_groups() -> None:
    table = pd.DataFrame({"town": list("aabbb") * 20, "pay": range(100), "tax": range(100)}, index=range(500, 600))
    done = (
        Shuffle(columns=["pay", "tax"], within="town")
        .apply(table, random=Random.deterministic(1), shuffle=False, keep_index=True)
        .frame
    )
    assert (done["pay"] == done["tax"]).all()
    for town in "ab":
        assert sorted(done.loc[done["town"] == town, "pay"]) == sorted(table.loc[table["town"] == town, "pay"])
    assert list(done.index) == list(range(500, 600))
    apart = Shuffle(columns=["pay", "tax"], together=False).apply(table, random=Random.deterministic(1), shuffle=False).frame
    assert (apart["pay"] != apart["tax"]).any()


@pytest.mark.statistical
def test_every_order_is_as_likely() -> None:
    """Six orders of three: chi-square at 1e-7."""
    from scipy import stats

    random, groups = Random.deterministic(2), np.zeros(3, dtype=np.int64)
    counts = Counter(tuple(dealt(groups, random).tolist()) for _ in range(3000))
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-7


@pytest.mark.parametrize("work", [RankSwap(columns="x"), Shuffle(columns="x"), RecordSwap(geography="x", risk="y")])
@pytest.mark.parametrize("x", [[], ["a"], [None, None], [7, 7, 7], ["🦆", "'; DROP", "ü"]])
def test_small_and_odd_columns(work: Any, x: list[Any]) -> None:
    if isinstance(work, RankSwap) and None in x:
        with pytest.raises(InvalidParameter, match="missing"):
            work.apply({"x": x, "y": x}, shuffle=False)
        return
    done = work.apply({"x": x, "y": x}, random=Random.deterministic(1), shuffle=False).frame
    assert Counter(done["x"]) == Counter(x)
    assert done["y"] == x


def people(n: int = 2000) -> dict[str, list[Any]]:
    generator = np.random.default_rng(3)
    region = generator.integers(0, 3, n)
    return {
        "region": region.tolist(),
        "town": (region * 10 + generator.integers(0, 5, n)).tolist(),
        "house": list(range(n)),
        "size": generator.integers(1, 4, n).tolist(),
        "job": generator.choice(["x", "y", "z", "judge", "pilot"], n, p=[0.5, 0.3, 0.194, 0.003, 0.003]).tolist(),
    }


def test_risky_records_move_and_places_keep_their_sizes() -> None:
    table = people()
    work = RecordSwap(geography=["region", "town"], risk="job", similar=["size"], k=3, rate=0.1)
    done = work.apply(table, random=Random.deterministic(1), shuffle=False)
    pairs = Counter(zip(table["region"], table["town"], table["size"], strict=True))
    assert Counter(zip(done.frame["region"], done.frame["town"], done.frame["size"], strict=True)) == pairs
    in_town = Counter(zip(table["town"], table["job"], strict=True))
    risky = [place for place, key in enumerate(zip(table["town"], table["job"], strict=True)) if in_town[key] < 3]
    assert len(risky) <= done.risky
    stayed = sum(done.frame["town"][place] == table["town"][place] for place in risky)
    assert stayed <= done.unmatched
    assert done.unmatched == 0
    moved = np.mean([new != old for new, old in zip(done.frame["town"], table["town"], strict=True)])
    assert moved == pytest.approx(done.swapped) == pytest.approx(0.1, abs=0.002)
    assert done.frame["job"] == table["job"]


def test_most_swaps_stay_in_the_region_where_only_the_town_tells() -> None:
    table = people()
    done = RecordSwap(geography=["region", "town"], risk="job", similar="size", k=0, rate=0.1).apply(
        table, random=Random.deterministic(1), shuffle=False
    )
    assert done.frame["region"] == table["region"]
    assert done.risky == 0


def test_households_move_as_one() -> None:
    table = people(900)
    table["house"] = [place // 3 for place in range(900)]
    for name in ("region", "town", "size"):
        table[name] = [table[name][place // 3 * 3] for place in range(900)]
    work = RecordSwap(geography=["region", "town"], risk="job", similar=[["size"], []], k=3, rate=0.1, household="house")
    done = work.apply(table, random=Random.deterministic(1), shuffle=False)
    places = {(house, town) for house, town in zip(table["house"], done.frame["town"], strict=True)}
    assert len(places) == 300
    assert done.unmatched == 0
    table["town"][0] += 1
    with pytest.raises(InvalidParameter, match="stands in two places"):
        work.apply(table, shuffle=False)


def test_who_finds_nobody_alike_is_said() -> None:
    table = {"town": ["a", "a", "b"], "size": [1, 2, 3], "job": ["x", "y", "z"]}
    done = RecordSwap(geography="town", risk="job", similar="size", k=2, rate=1).apply(table, shuffle=False)
    assert (done.risky, done.unmatched, done.swapped, done.frame) == (3, 3, 0.0, table)


@pytest.mark.parametrize("options", [{"rate": 2}, {"rate": float("nan")}, {"k": -1}, {"k": 1.5}])
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="is invalid"):
        RecordSwap(geography="x", risk="y", **options)
    for percent in (0, 101, float("nan")):
        with pytest.raises(InvalidParameter, match="percent="):
            RankSwap(columns="x", percent=percent)
    with pytest.raises(UnknownColumn, match="'z'"):
        Shuffle(columns="x", within="z").apply({"x": [1]}, shuffle=False)
