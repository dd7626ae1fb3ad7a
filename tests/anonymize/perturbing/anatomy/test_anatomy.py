"""Anatomy: groups in which no value stands twice, tables that tell no more than they should, and counts read of them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import Anatomy, estimate_count, largest_share
from cloister.anonymize.perturbing.anatomy.anatomy import diverse_groups
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random


def table(counts: dict[Any, int]) -> dict[str, list[Any]]:
    values = [value for value, count in counts.items() for _ in range(count)]
    return {"age": list(range(len(values))), "town": ["x"] * len(values), "disease": values}


@settings(max_examples=80, deadline=None)
@given(counts=st.lists(st.integers(0, 12), min_size=1, max_size=9), ell=st.integers(2, 5), seed=st.integers(0, 99))
def test_every_eligible_table_is_grouped_and_no_other(counts: list[int], ell: int, seed: int) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    work = Anatomy(quasi="age", sensitive="disease", l=ell)
    given_table = {"age": list(range(len(codes))), "disease": [f"d{code}" for code in codes.tolist()]}
    if codes.size and max(counts) * ell > len(codes):
        with pytest.raises(InvalidParameter, match=f"'d{int(np.argmax(counts))}' has {max(counts)} of {len(codes)} records"):
            work.apply(given_table)
        return
    pieces = work.apply(given_table, random=Random.deterministic(seed), shuffle=False)
    assert pieces.probability <= Fraction(1, ell)
    held = Counter(zip(pieces.quasi["group"], given_table["disease"], strict=True))
    published = dict(
        zip(zip(pieces.sensitive["group"], pieces.sensitive["disease"], strict=True), pieces.sensitive["count"], strict=True)
    )
    assert held == published
    assert set(published.values()) <= {1}


def test_the_order_of_the_sensitive_table_says_nothing() -> None:
    pieces = Anatomy(quasi="age", sensitive="disease", l=2).apply(table({"b": 5, "a": 5}))
    assert pieces.sensitive["disease"] == ["a", "b"] * 5
    assert pieces.sensitive["group"] == sorted(pieces.sensitive["group"])


def test_what_a_program_reads_as_one_value_counts_as_one() -> None:
    """A reader of CSV takes 01 for 1."""
    with pytest.raises(InvalidParameter, match="'1' has 4 of 4 records"):
        Anatomy(quasi="age", sensitive="disease", l=2).apply(table({"01": 2, "1": 2}))
    pieces = Anatomy(quasi="age", sensitive="disease", l=2).apply(table({"01": 1, "1": 1, "2": 2}))
    assert (set(pieces.sensitive["disease"]), pieces.probability) == ({"1", "2"}, Fraction(1, 2))
    alike = {"group": [0, 0, 0], "x": ["a", "a ", "b"], "count": [1, 1, 1]}
    assert largest_share({"group": [0, 0, 0]}, alike) == Fraction(2, 3)


@pytest.mark.statistical
def test_partners_are_drawn_evenly() -> None:
    """Of 4 + 4 records the first one's partner is each of the other four equally often: chi-square at 1e-7."""
    from scipy import stats

    codes = np.repeat([0, 1], 4)
    random = Random.deterministic(1)
    partners = Counter()
    for _ in range(4000):
        groups = diverse_groups(codes, 2, random)
        partners[int(np.flatnonzero(groups == groups[0])[1])] += 1
    assert set(partners) == {4, 5, 6, 7}
    assert stats.chisquare(list(partners.values())).pvalue > 1e-7


def test_frames_come_back_as_they_came() -> None:
    plain = table({"flu": 2, None: 2, "🤒 'x'": 2})
    work = Anatomy(quasi=["age", "town"], sensitive="disease", l=3)
    panda = work.apply(pd.DataFrame(plain, index=list("uvwxyz")))
    assert isinstance(panda.quasi, pd.DataFrame)
    assert panda.quasi.columns.tolist() == ["age", "town", "group"]
    assert panda.sensitive["count"].tolist() == [1] * 6
    bear = work.apply(pl.DataFrame(plain))
    assert bear.sensitive["disease"].null_count() == 2
    with pytest.raises(InvalidParameter, match="2 of its values are missing"):
        Anatomy(quasi="age", sensitive="disease", missing="refuse").apply(plain)


def test_counts_are_right_where_values_fall_by_chance() -> None:
    """Quasi-identifiers that say nothing of the value: the 95 % interval holds in about 95 of 100 trials (at least 85: a
    false alarm below 1e-4 is fixed by the seed)."""
    generator = np.random.default_rng(1)
    random = Random.deterministic(2)
    held = 0
    for _ in range(100):
        ages = generator.integers(0, 100, 600)
        codes = generator.permutation(np.repeat([0, 1, 2, 3], 150))
        pieces = Anatomy(quasi="age", sensitive="disease", l=3).apply({"age": ages, "disease": codes}, random=random)
        asked = estimate_count(pieces.quasi, pieces.sensitive, rows=np.array(pieces.quasi["age"]) < 30, values=[0, 1])
        truth = int(((ages < 30) & (codes < 2)).sum())
        assert asked.lowest <= truth <= asked.highest
        held += abs(asked.value - truth) <= asked.margin(0.95)
    assert held >= 85


def test_the_certain_bounds_hold_where_the_estimate_is_wrong() -> None:
    """The value follows from the quasi-identifier: estimates lean towards independence, as the docstring says."""
    rows = {"sex": ["F"] * 50 + ["M"] * 50, "disease": ["a"] * 50 + ["b"] * 50}
    pieces = Anatomy(quasi="sex", sensitive="disease", l=2).apply(rows)
    asked = estimate_count(pieces.quasi, pieces.sensitive, rows=np.array(pieces.quasi["sex"]) == "F", values=["a"])
    assert asked.value == 25
    assert asked.lowest <= 50 <= asked.highest
    everything = estimate_count(pieces.quasi, pieces.sensitive, rows=np.ones(100, dtype=bool), values=["a"])
    assert (everything.value, everything.lowest, everything.highest, everything.margin()) == (50, 50, 50, 0)


def test_empty_table() -> None:
    pieces = Anatomy(quasi="age", sensitive="disease", l=2).apply({"age": [], "disease": []})
    assert (pieces.groups, pieces.probability, pieces.quasi) == (0, 0, {"age": [], "group": []})
    nothing = estimate_count(pieces.quasi, pieces.sensitive, rows=np.zeros(0, dtype=bool), values=["a"])
    assert (nothing.value, nothing.variance, nothing.highest) == (0, 0, 0)


def test_a_broken_pair_is_seen() -> None:
    quasi, sensitive = {"group": [0, 0, 1]}, {"group": [0, 1], "x": ["a", "b"], "count": [2, 1]}
    assert largest_share(quasi, sensitive) == 1
    with pytest.raises(InvalidParameter, match="differ in size"):
        largest_share({"group": [0, 0]}, sensitive)
    with pytest.raises(InvalidParameter, match="differ in size"):
        estimate_count({"group": [0, 0]}, sensitive, rows=[True, True], values=["a"])
    with pytest.raises(InvalidParameter, match="mask"):
        estimate_count(quasi, sensitive, rows=[0, 1, 1], values=["a"])
    with pytest.raises(InvalidParameter, match="beside group and count"):
        estimate_count(quasi, {"group": [0, 1], "count": [2, 1]}, rows=[True] * 3, values=["a"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"l": 1}, "at least 2"),
        ({"l": True}, "at least 2"),
        ({"l": 2.5}, "at least 2"),
        ({"missing": "drop"}, "neither"),
        ({"quasi": ["disease"]}, "also a quasi-identifier"),
        ({"quasi": ["group"]}, "'group' is the name"),
    ],
)
def test_refusals(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        Anatomy(**{"quasi": "age", "sensitive": "disease"} | options)


def test_one_row_and_columns_that_are_not_there() -> None:
    with pytest.raises(InvalidParameter, match="has 1 of 1 records"):
        Anatomy(quasi="age", sensitive="disease", l=2).apply({"age": [1], "disease": ["flu"]})
    with pytest.raises(UnknownColumn, match="'x'"):
        Anatomy(quasi="x", sensitive="disease", l=2).apply({"age": [1], "disease": ["flu"]})


@pytest.mark.parametrize("n", [5, 6, 8, 20])
def test_the_margin_of_one_person_holds_by_the_exact_law(n: int) -> None:
    """One of n has the flu, each with the same chance: over all of them, 95 % of the truths are within the margin."""
    quasi = {"age": list(range(n)), "group": [0] * n}
    held = {"group": [0, 0], "ill": ["flu", "none"], "count": [1, n - 1]}
    found = estimate_count(quasi, held, rows=[True] + [False] * (n - 1), values=["flu"])
    within = [abs(found.value - truth) <= found.margin(0.95) for truth in [1] + [0] * (n - 1)]
    assert np.mean(within) >= 0.95
    assert found.law is not None
    assert found.law == pytest.approx([1 - 1 / n, 1 / n])


def test_the_law_of_many_groups_is_the_convolution_of_theirs() -> None:
    draw, n, groups = np.random.default_rng(1), 6, 7
    quasi = {"age": list(range(n * groups)), "group": np.repeat(range(groups), n).tolist()}
    held = {"group": np.repeat(range(groups), 2).tolist(), "ill": ["flu", "none"] * groups, "count": [2, 4] * groups}
    rows = np.tile([True, True, True, False, False, False], groups)
    found = estimate_count(quasi, held, rows=rows, values=["flu"])
    counts = [sum((draw.permutation(n)[:2] < 3).sum() for _ in range(groups)) for _ in range(20_000)]
    assert found.law is not None
    for k, chance in enumerate(found.law.tolist(), found.lowest):
        assert abs(np.mean(np.array(counts) == k) - chance) < 5 * (chance * (1 - chance) / 20_000) ** 0.5 + 1e-4
    assert abs(found.law @ np.arange(found.lowest, found.highest + 1) - found.value) < 1e-9
