"""Noise on columns: its law, its covariance, the types that come back, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import AdditiveNoise, MultiplicativeNoise, NoiseLaw
from cloister.anonymize.perturbing.noise.laws import normal_below, uniforms
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random

ROWS = 40_000


@pytest.mark.statistical
@pytest.mark.parametrize("shape", ["normal", "laplace", "uniform"])
def test_draws_follow_their_law(shape: str) -> None:
    """Kolmogorov–Smirnov at 1e-7 for the shape, and the scale within 5 deviations of its estimate."""
    from scipy import stats

    law = NoiseLaw(shape=shape, scale=3.0, mean=1.0)
    drawn = law.draw(ROWS, Random.deterministic(1))
    assert stats.kstest(drawn, lambda x: law.below(x)).pvalue > 1e-7
    kurtosis = {"normal": 3.0, "laplace": 6.0, "uniform": 1.8}[shape]
    assert abs(drawn.std() / 3 - 1) < 5 * np.sqrt((kurtosis - 1) / 4 / ROWS)


def test_the_normal_law_is_scipys() -> None:
    from scipy import stats

    z = np.linspace(-8, 8, 101)
    assert normal_below(z) == pytest.approx(stats.norm.cdf(z), rel=1e-12)
    assert uniforms(1000, Random.deterministic(2)).min() > 0


@pytest.mark.parametrize("shape", ["normal", "laplace", "uniform"])
def test_means_of_the_law_over_a_bin(shape: str) -> None:
    law = NoiseLaw(shape=shape, scale=3.0, mean=1.0)
    for low, high in ((-20.0, -2.0), (-1.0, 2.5), (4.0, 30.0)):
        points = low + (np.arange(20_000) + 0.5) / 20_000 * (high - low)
        assert law.below_mean(low, high) == pytest.approx(law.below(points).mean(), rel=1e-6)


def columns(covariance: list[list[float]]) -> dict[str, Any]:
    drawn = np.random.default_rng(1).multivariate_normal([10, 50], covariance, ROWS)
    return {"a": drawn[:, 0], "b": drawn[:, 1]}


@pytest.mark.parametrize(("kind", "factor"), [("correlated", 1.25), ("kim", 1.0)])
def test_correlated_noise_keeps_correlations(kind: str, factor: float) -> None:
    """Within five deviations of a covariance's estimate, some √(2/n) of it."""
    table = columns([[4.0, 5.0], [5.0, 9.0]])
    before = np.cov(table["a"], table["b"])
    done = AdditiveNoise(columns=["a", "b"], ratio=0.5, kind=kind).apply(table, random=Random.deterministic(2), shuffle=False)
    after = np.cov(done.frame["a"], done.frame["b"])
    assert after / before == pytest.approx(np.full((2, 2), factor), abs=5 * 1.5 * np.sqrt(2 / ROWS))
    assert done.covariance == pytest.approx(0.25 * before, rel=1e-3)
    assert done.looked_up
    assert np.mean(done.frame["a"]) == pytest.approx(np.mean(table["a"]), abs=5 * np.sqrt(1.0 / ROWS))


def test_independent_noise_weakens_correlations_as_it_must() -> None:
    table = columns([[4.0, 5.0], [5.0, 9.0]])
    done = AdditiveNoise(columns=["a", "b"], scale={"a": 2.0, "b": 3.0}).apply(
        table, random=Random.deterministic(2), shuffle=False
    )
    expected = np.cov(table["a"], table["b"]) + np.diag([4.0, 9.0])
    assert np.cov(done.frame["a"], done.frame["b"]) == pytest.approx(expected, abs=0.4)
    assert not done.looked_up


def test_types_stay() -> None:
    table = {"n": [1, 2, 3], "x": [1.5, 2.5, 3.5], "🦆": ["a", "b", "c"]}
    work = AdditiveNoise(columns=["n", "x"], scale=100)
    done = work.apply(pd.DataFrame(table, index=[7, 8, 9]), random=Random.deterministic(1), shuffle=False, keep_index=True)
    assert (done.frame["n"].dtype.kind, done.frame["x"].dtype.kind, list(done.frame.index)) == ("i", "f", [7, 8, 9])
    assert (done.laws["n"].step, done.laws["x"].step) == (1.0, 0.0)
    small = work.apply(pl.DataFrame(table, schema_overrides={"n": pl.UInt8}), random=Random.deterministic(1), shuffle=False)
    assert small.frame["n"].dtype == pl.Int64  # below 0 and above 255 there is no room in the old type
    plain = AdditiveNoise(columns="n", scale=100, rounded=False).apply(table, random=Random.deterministic(1), shuffle=False).frame
    assert all(isinstance(value, float) for value in plain["n"])


def test_gaps_stay_or_are_refused() -> None:
    table = {"a": [1.0, None, 3.0], "b": [1, None, 3]}
    with pytest.raises(InvalidParameter, match="1 of its values is missing"):
        AdditiveNoise(columns="a", scale=1).apply(table, shuffle=False)
    done = AdditiveNoise(columns=["a", "b"], scale=1, missing="keep").apply(table, shuffle=False)
    assert done.frame["a"][1] is None
    assert done.frame["b"][1] is None
    with pytest.raises(InvalidParameter, match="no covariance"):
        AdditiveNoise(columns=["a", "b"], ratio=1, kind="kim", missing="keep").apply(table, shuffle=False)


@pytest.mark.parametrize("work", [AdditiveNoise(columns="a", scale=1), MultiplicativeNoise(columns="a", scale=1)])
def test_empty_one_row_and_no_numbers(work: Any) -> None:
    assert work.apply({"a": []}, shuffle=False).frame == {"a": []}
    assert len(work.apply({"a": [5.0]}, shuffle=False).frame["a"]) == 1
    for refused, said in (({"a": ["x"]}, "numbers are needed"), ({"a": [float("inf")]}, "infinite"), ({"a": [True]}, "Boolean")):
        with pytest.raises(InvalidParameter, match=said):
            work.apply(refused, shuffle=False)
    with pytest.raises(UnknownColumn, match="'a'"):
        work.apply({"b": [1]}, shuffle=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 1, "ratio": 1},
        {"scale": 0},
        {"scale": float("nan")},
        {"scale": {"b": 1}},
        {"ratio": -1},
        {"ratio": 0.1},
        {"scale": 1, "law": "cauchy"},
        {"scale": 1, "kind": "magic"},
        {"scale": 1, "kind": "kim"},
        {"ratio": 1, "kind": "kim", "law": "laplace"},
        {"ratio": 1, "kind": "kim"},
        {"scale": 1, "missing": "zero"},
    ],
)
def test_refusals(options: dict[str, Any]) -> None:
    """A ratio of a constant column is no noise, too."""
    with pytest.raises(InvalidParameter, match="invalid"):
        AdditiveNoise(columns="a", **options).apply({"a": [5.0, 5.0, 5.0]}, shuffle=False)


@pytest.mark.parametrize("scale", [0, -1, 6, float("nan")])
def test_factors_of_no_size(scale: float) -> None:
    with pytest.raises(InvalidParameter, match="scale="):
        MultiplicativeNoise(columns="a", scale=scale)


def test_factors_keep_totals_signs_and_zeros() -> None:
    values = np.concatenate([np.full(ROWS, 100.0), np.zeros(10), np.full(10, -5.0)])
    done = MultiplicativeNoise(columns="a", scale=0.5).apply({"a": values}, random=Random.deterministic(1), shuffle=False)
    fresh = np.array(done.frame["a"])
    assert fresh[:ROWS].mean() == pytest.approx(100, abs=5 * 100 * 0.54 / np.sqrt(ROWS))
    assert (fresh[ROWS : ROWS + 10] == 0).all()
    assert (fresh[ROWS + 10 :] < 0).all()
