"""PRAM: matrices that keep frequencies, estimates with margins that hold, and an ε that is the matrix's own."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import PRAM, estimate_frequencies, invariant_matrix
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random

WARNER = {"values": ["no", "yes"], "matrix": [[0.75, 0.25], [0.25, 0.75]]}


@settings(max_examples=100, deadline=None)
@given(size=st.integers(1, 7), seed=st.integers(0, 10_000))
def test_invariant_matrices_keep_every_frequency(size: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    first, counts = generator.dirichlet(np.ones(size), size=size), generator.integers(0, 50, size)
    made = invariant_matrix(first, counts)
    assert counts @ made == pytest.approx(counts)
    assert made.sum(axis=1) == pytest.approx(np.ones(size))
    assert (made >= 0).all()


@pytest.mark.statistical
@pytest.mark.parametrize("options", [WARNER, WARNER | {"invariant": True}, {"stay": 0.6}])
def test_draws_follow_the_matrix(options: dict[str, Any]) -> None:
    """Chi-square at 1e-7 for each old category."""
    from scipy import stats

    table = {"x": ["yes"] * 20_000 + ["no"] * 60_000}
    done = PRAM(column="x", **options).apply(table, random=Random.deterministic(1), shuffle=False)
    for place, (value, rows) in enumerate((("no", slice(20_000, None)), ("yes", slice(0, 20_000)))):
        assert done.values[place] == value
        counts = Counter(done.frame["x"][rows])
        seen = [counts[each] for each in done.values]
        assert stats.chisquare(seen, done.matrix[place] * sum(seen)).pvalue > 1e-7


@pytest.mark.parametrize("options", [WARNER, {"stay": 0.6}])
def test_estimates_are_unbiased_and_margins_hold(options: dict[str, Any]) -> None:
    """150 releases: the mean error within five of its deviations; 95 % margins hold in 90 to 99.5 of 100."""
    table = {"x": ["yes"] * 150 + ["no"] * 350}
    random, errors, held = Random.deterministic(3), [], []
    for _ in range(150):
        found = PRAM(column="x", **options).apply(table, random=random, shuffle=False).estimate()
        errors.append(found.counts - [350, 150])
        held.append(np.abs(errors[-1]) <= found.margin(0.95))
    assert np.abs(np.mean(errors, axis=0)).max() < 5 * np.std(errors, axis=0).max() / np.sqrt(150)
    assert 0.90 < np.mean(held) < 0.995


def test_the_ratio_of_the_matrix_is_said() -> None:
    table = {"x": ["yes", "no"] * 5}
    assert PRAM(column="x", **WARNER).apply(table, shuffle=False).epsilon == pytest.approx(math.log(3))
    assert not PRAM(column="x", **WARNER).apply(table, shuffle=False).looked_up
    assert PRAM(column="x", values=["no", "yes"], matrix=[[1, 0], [0.5, 0.5]]).apply(table, shuffle=False).epsilon == math.inf
    assert PRAM(column="x").apply(table, shuffle=False).looked_up


def test_a_probability_that_is_never_drawn_counts_as_none() -> None:
    """A draw has 53 bits: beside 1, a probability of 10⁻¹⁸ is no probability, whatever the matrix says."""
    table = {"x": ["yes", "no"] * 5}
    for rare, least in ((1e-18, math.inf), (1e-12, math.log(0.5e12))):
        epsilon = (
            PRAM(column="x", values=["no", "yes"], matrix=[[1 - rare, rare], [0.5, 0.5]]).apply(table, shuffle=False).epsilon
        )
        assert least <= epsilon <= least * 1.0001


def test_ours_at_a_given_matrix_is_as_private_as_it_says() -> None:
    """Counted, not computed: the shares of reports from two inputs have no larger ratio than e^ε, within chance."""
    done = PRAM(column="x", **WARNER).apply(
        {"x": ["yes"] * 100_000 + ["no"] * 100_000}, random=Random.deterministic(4), shuffle=False
    )
    seen = Counter(done.frame["x"][:100_000]), Counter(done.frame["x"][100_000:])
    for value in ("yes", "no"):
        ratio = seen[0][value] / seen[1][value]
        assert abs(math.log(ratio)) == pytest.approx(done.epsilon, abs=0.05)


def test_frames_types_and_gaps() -> None:
    table = {"n": [3, 1, 2, 1] * 10, "🐝": ["a'", None, '"b"', "ü"] * 10}
    done = PRAM(column="n").apply(pd.DataFrame(table), random=Random.deterministic(1), shuffle=False)
    assert done.frame["n"].dtype.kind == "i"
    assert done.values == (1, 2, 3)
    with pytest.raises(InvalidParameter, match="10 of its values are missing"):
        PRAM(column="🐝").apply(table, shuffle=False)
    kept = PRAM(column="🐝", missing="keep").apply(pl.DataFrame(table), random=Random.deterministic(1), shuffle=False)
    assert kept.frame["🐝"].is_null().to_list() == [value is None for value in table["🐝"]]
    own = PRAM(column="🐝", missing="value", stay=0.3).apply(table, random=Random.deterministic(1), shuffle=False)
    assert None in own.values
    assert [value is None for value in own.frame["🐝"]] != [value is None for value in table["🐝"]]
    assert own.estimate().counts.sum() == pytest.approx(40)


def test_empty_one_row_and_one_category() -> None:
    empty = PRAM(column="x").apply({"x": []}, shuffle=False)
    assert (empty.frame, empty.epsilon, empty.estimate().counts.tolist()) == ({"x": []}, 0.0, [])
    one = PRAM(column="x").apply({"x": ["a"]}, shuffle=False)
    assert (one.frame, one.matrix.tolist()) == ({"x": ["a"]}, [[1.0]])
    declared = PRAM(column="x", **WARNER).apply({"x": []}, shuffle=False)
    assert declared.estimate().counts.tolist() == [0, 0]
    for table in ({"x": ["yes", "no"]}, {"x": ["yes", None]}):  # whether somebody has none is seen, whoever is there
        assert PRAM(column="x", missing="keep", **WARNER).apply(table, shuffle=False).epsilon == math.inf
    none = PRAM(column="x", missing="keep").apply({"x": [None, None]}, shuffle=False)
    assert none.frame == {"x": [None, None]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stay": 1}, "stay="),
        ({"stay": 0}, "stay="),
        ({"missing": "drop"}, "missing="),
        ({"values": ["a"]}, "list of its categories"),
        ({"values": ["a", "b"], "matrix": [[1, 0]]}, "2 rows of 2"),
        ({"values": ["a", "b"], "matrix": [[1, 0], [0.5, 0.6]]}, "sum 1"),
        ({"values": ["a", "b"], "matrix": [[1, 0], [-1, 2]]}, "probabilities"),
        ({"values": ["a", "b"], "matrix": [[1], [0, 1]]}, "2 rows"),
        ({"values": ["a", "c"], "matrix": [[1, 0], [0, 1]]}, "'b', which values= lacks"),
    ],
)
def test_refusals(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        PRAM(column="x", **options).apply({"x": ["a", "b"]}, shuffle=False)


def test_a_matrix_that_forgets() -> None:
    with pytest.raises(InvalidParameter, match="inverted"):
        estimate_frequencies([1, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(UnknownColumn, match="'y'"):
        PRAM(column="y").apply({"x": ["a"]}, shuffle=False)


def test_every_declared_value_is_drawn_again_whatever_it_looks_like() -> None:
    """ "NA" and an empty text read as missing, and "1.0" as 1, in some programs: here each is the value that it is."""
    values = ["no", "NA", "", "1", "1.0", "no "]
    matrix = np.full((6, 6), 0.1) + np.eye(6) * 0.4
    done = PRAM(column="x", values=values, matrix=matrix).apply(
        {"x": values * 2_000}, random=Random.deterministic(5), shuffle=False
    )
    for value in values:
        stayed = sum(old == new == value for old, new in zip(values * 2_000, done.frame["x"], strict=True))
        assert 700 < stayed < 1_300  # 1,000 of 2,000, within 13 standard deviations
    assert done.epsilon == pytest.approx(math.log(5))
    assert done.estimate().counts.sum() == pytest.approx(12_000)
