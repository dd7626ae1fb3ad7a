"""Metrics: the published formulas on tables worked by hand, recodings of cells, weights, names, and the task."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import pytest

from cloister.anonymize.metrics import METRICS, metric_of, task_accuracy
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded, RecodedColumn
from cloister.errors import InvalidParameter
from cloister.noise import Random
from tests.anonymize.problems import problem_of, random_problem, recoded_at


def by_hand() -> Problem:
    """Six rows; ages 20, 21, 30, 40 in decades and two halves."""
    return problem_of(
        {"age": [20, 20, 21, 30, 40, 40], "sex": list("FFFMMM")},
        {"age": [["2x", "2x", "3x", "4x"], ["low", "low", "high", "high"]], "sex": [["*", "*"]]},
        [KAnonymity(2)],
        limit=1,
    )


def test_a_table_worked_by_hand() -> None:
    problem = by_hand()
    recoded = recoded_at(problem, (1, 0))  # classes (2x, F) of 3 and (4x, M) of 2; (3x, M) is suppressed
    assert sorted(recoded.classes.sizes.tolist()) == [2, 3]

    def score(name: str) -> float:
        return metric_of(name).score(problem, recoded)

    assert score("discernibility") == 3**2 + 2**2 + 1 * 6
    assert score("average class size") == 6 / (2 * 2)
    # shares of leaves: 2x covers 2 of 4, 3x and 4x one; suppressed cells cover all
    age = (3 * (2 / 4) + 2 * (1 / 4) + 1 - 6 / 4) / (6 - 6 / 4)
    sex = (5 * (1 / 2) + 1 - 6 / 2) / (6 - 6 / 2)
    assert score("loss") == pytest.approx(((1 + age) * (1 + sex)) ** 0.5 - 1)
    assert score("certainty penalty") == pytest.approx(((3 * (1 / 20) + 2 * 0 + 1) / 6 + (5 * 0 + 1) / 6) / 2)
    assert score("precision") == pytest.approx(((5 * (1 / 2) + 1) / 6 + (5 * 0 + 1) / 6) / 2)
    assert score("entropy") == pytest.approx(2 * log2(3 / 2) + 1 * log2(3))
    assert score("ambiguity") == pytest.approx((3 * (2 / 4) * (1 / 2) + 2 * (1 / 4) * (1 / 2) + 1) / 6)
    # of how many its class's rows a row's own combination is, over what an even spread would say; 2x with F are two combinations
    bits = 2 * log2(2 / (3 / 2)) + log2(1 / (3 / 2)) + 2 * log2(2 / 2) + log2(1 / (1 / 8))
    assert score("divergence") == pytest.approx(bits / 6)


@pytest.mark.parametrize("name", METRICS)
def test_nothing_lost_and_everything_lost(name: str) -> None:
    problem = random_problem(3, [KAnonymity(1)], metric=name)
    metric = problem.metric
    least = metric.score(problem, recoded_at(problem, (0, 0, 0)))
    gone = replace(recoded_at(problem, (0, 0, 0)), suppressed=np.ones(problem.table.rows, dtype=bool))
    most = metric.score(problem, gone)
    for levels in ((1, 0, 0), (2, 1, 0), (1, 1, 2), (2, 1, 3)):
        assert least <= metric.score(problem, recoded_at(problem, levels)) + 1e-12
        assert metric.score(problem, recoded_at(problem, levels)) <= most + 1e-9 or name == "entropy"
    if name in ("loss", "certainty penalty", "precision"):
        assert least == 0.0
        assert most == pytest.approx(1.0)
    if name in ("entropy", "divergence"):
        assert least == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.monotone])
def test_a_coarser_recoding_never_scores_less(name: str) -> None:
    problem = random_problem(9, [KAnonymity(1)], metric=name)
    for levels in np.ndindex(3, 2, 4):
        for column, level in enumerate(levels):
            if level:
                lower = (*levels[:column], level - 1, *levels[column + 1 :])
                below = problem.metric.score(problem, recoded_at(problem, lower))
                assert below <= problem.metric.score(problem, recoded_at(problem, levels)) + 1e-9


@pytest.mark.parametrize("name", METRICS)
def test_rows_that_are_counted_once(name: str) -> None:
    """A table that keeps equal rows once, with how many they are, scores as the table itself."""
    problem = random_problem(2, [KAnonymity(2)], metric=name, limit=40)
    recoded = recoded_at(problem, (1, 1, 1))
    twice = np.repeat(np.arange(40), 2)
    doubled = replace(problem, table=problem.table.take(twice))
    whole = Recoded(
        columns={name: replace(column, codes=column.codes[twice]) for name, column in recoded.columns.items()},
        suppressed=recoded.suppressed[twice],
    )
    weights = np.full(40, 2)
    table = replace(problem.table, weights=weights).take(np.arange(40))
    counted = replace(problem, table=table)
    once = Recoded(columns=recoded.columns, suppressed=recoded.suppressed, weights=weights)
    assert problem.metric.score(counted, once) == pytest.approx(problem.metric.score(doubled, whole))


def test_cells_of_a_local_recoding() -> None:
    """The same age may be a value here and an interval there: bits are counted by what stands behind a label."""
    problem = problem_of({"age": [20, 20, 30, 30]}, {"age": [["*", "*"]]}, [KAnonymity(1)])
    column = RecodedColumn(
        codes=np.array([0, 1, 1, 2], dtype=np.int32),
        labels=["20", "20–30", "30"],
        shares=np.array([0.5, 1.0, 0.5]),
        widths=np.array([0.0, 1.0, 0.0]),
    )
    recoded = Recoded(columns={"age": column}, suppressed=np.zeros(4, dtype=bool))
    assert metric_of("entropy").score(problem, recoded) == pytest.approx(2.0)
    assert metric_of("loss").score(problem, recoded) == pytest.approx(0.5)
    assert metric_of("certainty penalty").score(problem, recoded) == pytest.approx(0.5)
    assert metric_of("precision").score(problem, recoded) == pytest.approx(0.5)
    without = replace(problem, ladders={})
    for metric in METRICS.values():
        assert metric.score(without, recoded) == pytest.approx(metric.score(problem, recoded))


@pytest.mark.parametrize("name", ["loss", "entropy", "certainty penalty", "precision"])
def test_weights(name: str) -> None:
    problem = by_hand()
    only_age = recoded_at(problem, (2, 0))
    light = metric_of(name).score(replace(problem, weights={"age": 0.1}), only_age)
    heavy = metric_of(name).score(replace(problem, weights={"age": 10.0}), only_age)
    assert light < metric_of(name).score(problem, only_age) < heavy


def test_names() -> None:
    assert metric_of("Average-Class_Size").name == "average class size"
    assert metric_of("ncp") is METRICS["certainty penalty"]
    assert metric_of(METRICS["loss"]) is METRICS["loss"]
    with pytest.raises(InvalidParameter) as refused:
        metric_of("lose")
    for name in METRICS:
        assert repr(name) in refused.value.why


def told(rows: int) -> Problem:
    """A table whose sensitive column follows from the age, but for one row in ten."""
    draw = np.random.default_rng(5)
    age = draw.integers(20, 60, rows)
    flip = draw.random(rows) < 0.1
    values: dict[str, Any] = {"age": age.tolist(), "noise": draw.integers(0, 3, rows).tolist()}
    values["ill"] = [str(bool((one >= 40) != turned)) for one, turned in zip(age, flip, strict=True)]
    ages = sorted(set(values["age"]))
    return problem_of(
        values,
        {"age": [["young" if one < 40 else "old" for one in ages], ["*" for _ in ages]], "noise": [["*"] * 3]},
        [KAnonymity(2)],
        sensitive=["ill"],
    )


def test_a_task_before_and_after() -> None:
    problem = told(400)
    kept = task_accuracy(problem, recoded_at(problem, (1, 0)), "ill", folds=3, random=Random.deterministic(1))
    lost = task_accuracy(problem, recoded_at(problem, (2, 1)), "ill", folds=3, random=Random.deterministic(1))
    assert kept.before > 0.85
    assert kept.after > 0.85
    assert kept.kept > 0.9
    assert lost.after < lost.baseline + 0.05
    assert lost.before - lost.after > 3 * lost.margin() > 0
    assert "'ill' is predicted rightly" in str(kept)
    gone = replace(recoded_at(problem, (1, 0)), suppressed=np.ones(400, dtype=bool))
    nothing = task_accuracy(problem, gone, "ill", folds=3, random=Random.deterministic(1))
    assert nothing.after == pytest.approx(lost.baseline, abs=0.1)


def test_a_task_that_tells_no_difference_is_not_certain_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was "certain to ±0.0%" wherever both tables were right about the same rows, however few there were."""
    monkeypatch.setattr("cloister.anonymize.metrics.task._right", lambda columns, truth, gone, folds: truth == truth[0])
    problem = told(40)
    same = task_accuracy(problem, recoded_at(problem, (1, 0)), "ill", folds=3, random=Random.deterministic(1))
    assert same.before == same.after
    assert same.margin() == pytest.approx(1.96 / 42, rel=1e-3)


def test_tasks_that_are_refused() -> None:
    problem = told(40)
    recoded = recoded_at(problem, (1, 0))
    for target in ("age", "nothing"):
        with pytest.raises(InvalidParameter):
            task_accuracy(problem, recoded, target)
    with pytest.raises(InvalidParameter, match="folds"):
        task_accuracy(problem, recoded, "ill", folds=1)
