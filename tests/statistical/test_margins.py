"""Margins cover the truth as often as they say: 95 % ± 0.5, through the real door, a hundred thousand cells at a time.

With 10⁵ independent cells the share covered has a standard deviation of 0.0007, so ±0.005 is more than seven of them: the
chance of a false alarm is below 1e-11, and a margin that is 5 % too narrow (coverage 0.94) is seen with near certainty. The
generators are fixed besides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Question, Release, Sum

pytestmark = pytest.mark.statistical

CELLS = 100_000
ROWS_EACH = 4
LOW, HIGH, VALUES = 0, 1000, (300, 420, 700, 980)


@pytest.fixture(scope="module")
def table() -> cl.PrivateTable:
    """Every cell holds the same four values, so the truth is known everywhere."""
    cells = np.repeat(np.arange(CELLS), ROWS_EACH)
    return cl.PrivateTable(
        {"cell": cells, "x": np.tile(VALUES, CELLS)}, columns={"cell": cl.Integer(0, CELLS - 1), "x": cl.Integer(LOW, HIGH)}
    )


def covered(release: Release, name: str, truth: float, confidence: float) -> float:
    return float(np.mean(np.abs(release[name] - truth) <= release.margin(confidence)[name]))


@pytest.mark.parametrize("budget", [cl.PureDP(1), cl.ZCDP(1)], ids=["Laplace", "Gaussian"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_counts_and_sums(table: cl.PrivateTable, budget: cl.PureDP | cl.ZCDP, confidence: float) -> None:
    spend = "0.002" if isinstance(budget, cl.PureDP) else "0.000004"  # scales of 500 and more: steps of the law below 0.001
    with Door({"t": table}, budget=budget, random=Random.deterministic(21)) as door:
        alone = door.measure(Question(table="t", by=("cell",), statistics=(Count(),)), spend=spend)
        shared = door.measure(
            Question(table="t", by=("cell",), statistics=(Count(), Sum(column="x"), Count(column="x"), Mean(column="x"))),
            spend=spend,
        )
        twice = door.measure(Question(table="t", by=("cell",), statistics=(Count(),)), spend=2 * float(spend))
    for release, name, truth in (
        (alone, "count", ROWS_EACH),
        (shared, "count", ROWS_EACH),
        (shared, "count_x", ROWS_EACH),
        (shared, "sum_x", sum(VALUES)),
        (twice, "count", ROWS_EACH),
    ):
        assert covered(release, name, truth, confidence) == pytest.approx(confidence, abs=0.005), name


def test_means_of_groups_large_enough_to_tell() -> None:
    """200 rows a cell at ε = 1: the interval is well inside the range, its two arms nearly equal."""
    cells, each = 20_000, 200
    table = cl.PrivateTable(
        {"cell": np.repeat(np.arange(cells), each), "x": np.tile(np.array(VALUES), cells * each // 4)},
        columns={"cell": cl.Integer(0, cells - 1), "x": cl.Integer(LOW, HIGH)},
    )
    with Door({"t": table}, budget=cl.PureDP(1), random=Random.deterministic(22)) as door:
        release = door.measure(Question(table="t", by=("cell",), statistics=(Mean(column="x"),)), spend=1)
    assert covered(release, "mean_x", float(np.mean(VALUES)), 0.95) == pytest.approx(
        0.95, abs=0.005 + 5 * (0.95 * 0.05 / cells) ** 0.5
    )
    assert float(release.margin()["mean_x"].mean()) < 0.1 * (HIGH - LOW)


def test_means_of_small_groups_are_covered_at_least_as_often(table: cl.PrivateTable) -> None:
    """Four rows a cell in strong noise: the interval is the longer arm of Fieller's on both sides, so it may only cover more."""
    with Door({"t": table}, budget=cl.PureDP(1), random=Random.deterministic(23)) as door:
        release = door.measure(Question(table="t", by=("cell",), statistics=(Mean(column="x"),)), spend=1)
    assert covered(release, "mean_x", float(np.mean(VALUES)), 0.95) >= 0.945


def test_joint_margins_hold_for_all_cells_at_once(table: cl.PrivateTable) -> None:
    """2,000 releases of 50 cells: all 50 inside in 95 % of them."""
    with Door({"t": table}, budget=cl.PureDP(1), random=Random.deterministic(24)) as door:
        release = door.measure(Question(table="t", by=("cell",), statistics=(Count(),)), spend="0.02")
    width = replace(release, cells=50).margin(0.95, joint=True)["count"][0]
    inside = (np.abs(release["count"] - ROWS_EACH) <= width).reshape(-1, 50).all(axis=1)
    assert float(inside.mean()) == pytest.approx(0.95, abs=5 * (0.95 * 0.05 / len(inside)) ** 0.5 + 0.002)
