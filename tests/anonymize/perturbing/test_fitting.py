"""Best-fit noise: known families are found, types and bounds stay, relations are lost, and a missing scipy is told."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("scipy")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import BestFit
from cloister.errors import InvalidParameter, MissingDependency, UnknownColumn
from cloister.installed import install
from cloister.noise import Random

GENERATOR = np.random.default_rng(1)
SHAPES: dict[str, Any] = {
    "norm": GENERATOR.normal(50, 8, 1500),
    "gamma": GENERATOR.gamma(2.0, 10.0, 1500),
    "uniform": GENERATOR.uniform(3, 9, 1500),
    "laplace": GENERATOR.laplace(0, 4, 1500),
    "poisson": GENERATOR.poisson(4.0, 1500),
    "geom": GENERATOR.geometric(0.3, 1500),
}


@pytest.mark.parametrize("family", SHAPES)
@pytest.mark.parametrize("criterion", ["ks", "aic"])
def test_the_drawn_column_is_distributed_as_the_old_one(family: str, criterion: str) -> None:
    """Two samples of one law: Kolmogorov–Smirnov at 1e-7 between old and new, and no fit that is worse than the true family's."""
    from scipy import stats

    done = BestFit(columns="x", criterion=criterion).apply({"x": SHAPES[family]}, random=Random.deterministic(2), shuffle=False)
    fit = done.fits["x"]
    score = {each.family: each.distance if criterion == "ks" else each.aic for each in fit.candidates}
    assert fit.chosen is not None
    assert score[fit.chosen.family] == min(score.values()) <= score[family]
    assert fit.chosen.distance < 0.05
    assert stats.ks_2samp(done.frame["x"], SHAPES[family]).pvalue > 1e-7


def test_the_distance_is_scipys() -> None:
    from scipy import stats

    values = SHAPES["gamma"]
    for each in BestFit(columns="x").apply({"x": values}, shuffle=False).fits["x"].candidates:
        assert each.distance == pytest.approx(stats.kstest(values, each.family, args=each.parameters).statistic, abs=1e-9)


def test_types_bounds_and_other_columns() -> None:
    table = pd.DataFrame({"n": [1, 2, 2, 3, 9] * 20, "who": list("abcde") * 20}, index=range(5, 105))
    done = BestFit(columns="n").apply(table, random=Random.deterministic(1), shuffle=False)
    assert done.frame["n"].dtype.kind == "i"
    assert done.frame["n"].between(1, 9).all()
    assert done.fits["n"].looked_up
    assert done.frame["who"].tolist() == table["who"].tolist()
    wide = BestFit(columns="n", bounds={"n": (0, 20)}).apply(table, random=Random.deterministic(1), shuffle=False)
    assert (wide.fits["n"].bounds, wide.fits["n"].looked_up) == ((0, 20), False)
    with pytest.raises(InvalidParameter, match="outside of them"):
        BestFit(columns="n", bounds={"n": (2, 20)}).apply(table, shuffle=False)


def test_categories_by_their_frequencies_and_relations_gone() -> None:
    """Frequencies within five deviations; the two columns, equal before, agree as often as chance has it."""
    values = ["a'", "🐢"] * 4500 + ["ü"] * 1000
    done = BestFit(columns=["x"]).apply({"x": values, "y": values}, random=Random.deterministic(1), shuffle=False)
    counts = Counter(done.frame["x"])
    assert counts["ü"] == pytest.approx(1000, abs=5 * np.sqrt(900))
    assert done.fits["x"].frequencies == {"a'": 0.45, "ü": 0.1, "🐢": 0.45}
    agree = np.mean([new == old for new, old in zip(done.frame["x"], done.frame["y"], strict=True)])
    assert agree == pytest.approx(0.45**2 * 2 + 0.01, abs=0.03)


def test_gaps_constants_and_small_columns() -> None:
    with pytest.raises(InvalidParameter, match="missing"):
        BestFit(columns="x").apply({"x": [1.0, None]}, shuffle=False)
    kept = BestFit(columns=["x", "c"], missing="keep").apply(
        pl.DataFrame({"x": [1.0, None, 4.0, 2.0], "c": ["a", "b", None, "b"]}), random=Random.deterministic(1), shuffle=False
    )
    assert kept.frame["x"].is_null().to_list() == [False, True, False, False]
    assert kept.frame["c"].is_null().to_list() == [False, False, True, False]
    for x in ([], [7], [7.0] * 5, ["one"]):
        assert BestFit(columns="x").apply({"x": x}, shuffle=False).frame == {"x": x}
    assert BestFit(columns="x", missing="keep").apply({"x": [None, None]}, shuffle=False).frame == {"x": [None, None]}
    assert len(BestFit(columns="x").apply({"x": [1.0, 2.0]}, shuffle=False).frame["x"]) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"families": ["cauchy!"]},
        {"families": []},
        {"criterion": "p"},
        {"bounds": {"x": (1, 1)}},
        {"bounds": {"x": (0, float("inf"))}},
    ],
)
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"is invalid|are invalid"):
        BestFit(columns="x", **options)
    with pytest.raises(InvalidParameter, match="infinite"):
        BestFit(columns="x").apply({"x": [float("inf")]}, shuffle=False)
    with pytest.raises(UnknownColumn, match="'y'"):
        BestFit(columns="y").apply({"x": [1]}, shuffle=False)


def test_without_scipy_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingDependency, match=re.escape(install("learn"))):
        BestFit(columns="x").apply({"x": [1.0, 2.0, 3.0]}, shuffle=False)
