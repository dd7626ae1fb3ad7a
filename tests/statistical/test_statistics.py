"""Margins of curved statistics cover the truth at least as often as they say, for groups from 5 to 100,000 rows.

Each question is measured 20,000 times over at night, 5,000 by day, and 4,000 for quantiles. The share covered then has a
standard deviation of at most 0.0016 (0.0031, 0.0035), so a share below 0.95 − 0.0085 (0.95 − 0.017, 0.95 − 0.019) has a chance
below 1e-7 where the true coverage is 0.95; the generators are fixed besides. That margins are not simply infinite is tested where
groups are large: there they are within a third of what a normal law with the spread that is seen would give.
"""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import (
    Combined,
    Correlation,
    Count,
    Covariance,
    Largest,
    Mean,
    Operation,
    Quantile,
    Question,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
)
from cloister.session.questions.arithmetic import Named, ratio
from cloister.session.releases.linearised import half_widths
from cloister.session.releases.quantiles import Ordered
from cloister.session.releases.uncertainty import Term, half_width
from tests.statistical.replicas import replicas
from tests.tiers import by_day_and_night

pytestmark = pytest.mark.statistical

SLACK = {5_000: 0.017, 20_000: 0.0085}
FEW, FEW_SLACK = 4_000, 0.019


def people(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A skewed column and one that depends on it."""
    base = np.arange(rows)
    x = np.minimum((-np.log1p(-((base * 0.6180339887) % 1.0)) * 12).astype(np.int64), 100)
    y = np.clip((0.6 * x + 40 * ((base * 0.7548776662) % 1.0)).astype(np.int64), 0, 100)
    return x, y


@pytest.mark.parametrize("budget", [cl.PureDP(100), cl.ZCDP(100)], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("rows", [5, 50, 1000, 20_000, 100_000])
@by_day_and_night("copies", 5_000, 20_000)
def test_moments_are_covered(copies: int, rows: int, budget: cl.PureDP | cl.ZCDP) -> None:
    x, y = people(rows)
    table = cl.PrivateTable({"x": x, "y": y}, columns={"x": cl.Integer(0, 100), "y": cl.Integer(0, 100)})
    truth = truths(x.astype(float), y.astype(float))
    spend = "0.5" if isinstance(budget, cl.PureDP) else "0.05"
    for seed, statistics in enumerate(ASKED):
        question = Question(table="t", statistics=statistics)
        found = replicas(table, question, budget=budget, spend=spend, copies=copies, seed=31 + seed)
        for statistic in statistics:
            name = statistic.name
            assert found.covered(name, truth[name]) >= 0.95 - SLACK[copies], name
            if rows == 100_000:
                spread = 1.4826 * float(np.median(found.off(name, truth[name]))) * 1.96
                assert found.width(name) <= 1.35 * spread + 0.51, name


ASKED: tuple[tuple[Statistic, ...], ...] = (
    (
        Variance(column="x", name="variance"),
        Variance(column="x", root=True, sample=False, name="deviation"),
        Mean(column="x", name="mean"),
        Sum(column="x", name="sum"),
        Count(column="x", name="count"),
        Combined(name="ratio", expression=ratio("sum", "count")),
        Combined(name="square", expression=Operation("multiply", (Named("mean"), Named("mean")))),
    ),
    (Covariance(x="x", y="y", name="covariance"),),
    (
        Correlation(x="x", y="y", name="correlation"),
        *(Regression(x="x", y="y", part=part, name=part) for part in ("slope", "intercept", "r2", "sxx", "avgy")),  # type: ignore[arg-type]
    ),
)


def truths(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The exact answers."""
    slope, intercept = np.polyfit(x, y, 1)
    r = float(np.corrcoef(x, y)[0, 1])
    return {
        "variance": x.var(ddof=1),
        "deviation": x.std(),
        "mean": x.mean(),
        "sum": x.sum(),
        "count": len(x),
        "ratio": x.mean(),
        "square": x.mean() ** 2,
        "covariance": np.cov(x, y)[0, 1],
        "correlation": r,
        "slope": slope,
        "intercept": intercept,
        "r2": r * r,
        "sxx": x.var() * len(x),
        "avgy": y.mean(),
    }


@pytest.mark.parametrize("budget", [cl.PureDP(100), cl.ZCDP(100)], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("rows", [5, 200, 5000, 100_000])
def test_quantiles_are_covered(rows: int, budget: cl.PureDP | cl.ZCDP) -> None:
    x, _ = people(rows)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(value)) for value in x]
    table = cl.PrivateTable({"x": x, "day": days}, columns={"x": cl.Integer(0, 100), "day": cl.Date("2020-01-01", "2020-12-31")})
    statistics = (
        *(Quantile(column="x", at=share, name=share) for share in ("0.1", "0.5", "0.9")),
        Quantile(column="day", name="day"),
        Smallest(column="x"),
        Largest(column="x"),
    )
    spend = "0.5" if isinstance(budget, cl.PureDP) else "0.05"
    found = replicas(table, Question(table="t", statistics=statistics), budget=budget, spend=spend, copies=FEW, seed=41)
    rising = np.sort(x)
    for share in ("0.1", "0.5", "0.9"):
        assert found.covered(share, rising[int(np.ceil(float(share) * rows)) - 1]) >= 0.95 - FEW_SLACK, share
    first = datetime.date(2020, 1, 1).toordinal()
    assert found.covered("day", first + rising[int(np.ceil(rows / 2)) - 1]) >= 0.95 - FEW_SLACK
    for name, order in (("min_x", rising), ("max_x", rising[::-1])):
        formula = found.formulas[name]
        assert isinstance(formula, Ordered)
        rank = int(np.ceil(formula.rank(found.readings[formula.leaves.levels_name].terms)))
        if rank < rows / 2:
            assert found.covered(name, order[rank - 1]) >= 0.95 - FEW_SLACK, name
    if rows == 100_000:
        assert found.width("0.5") <= 1


def test_half_widths_of_many_sums_agree_with_the_noise() -> None:
    """Random weights over five noises of two laws: 200,000 sums each; the share inside has a standard deviation of 0.0005."""
    from cloister.noise import DiscreteGaussian, DiscreteLaplace

    random = Random.deterministic(51)
    noises = [DiscreteLaplace(scale=100), DiscreteLaplace(scale=300), DiscreteLaplace(scale=40), DiscreteGaussian(scale=90)]
    draws = [noise.sample(200_000, random=random) for noise in noises]
    terms = {str(place): (Term(1.0, noise),) for place, noise in enumerate(noises)}
    weights = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, -2, 5, 0], [0, 0.1, 3, 1], [2, 0.3, -4, 0.1], [0, 0, 0, 1]], dtype=float)
    for confidence in (0.8, 0.95, 0.999):
        found = half_widths({str(place): weights[:, place] for place in range(4)}, terms, confidence)
        for row, width in zip(weights, found, strict=True):
            total = np.abs(sum(factor * drawn for factor, drawn in zip(row, draws, strict=True)))
            assert float(np.mean(total <= width)) >= confidence - 5 * (confidence * (1 - confidence) / 200_000) ** 0.5
            exact = half_width(tuple(Term(factor, noise) for factor, noise in zip(row, noises, strict=True)), confidence)
            assert width <= 1.03 * exact
