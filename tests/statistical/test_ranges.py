"""Ranges measured together keep what they promise: audits of the sums that are noised, by their likelihood ratio.

The engine is asked once for each world, and its exact counts go the whole way of an answer in every run. Audits have the
confidence 1 − 1e-9, whatever the number of runs: by day there are fewer, and less power. All generators are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session import Count, Door, Question
from cloister.session.execution.answer import measured, request_of
from cloister.session.planning.blocks import rows_block
from cloister.session.planning.plan import Part
from cloister.session.workloads import range_family
from cloister.tables import Answering, Column, Compare, Groups, Literal
from cloister.tables.engines.noised import NoisedRequest, exact_integers
from tests.tiers import by_day_and_night

pytestmark = pytest.mark.statistical

DAY, NIGHT = 6_000, 30_000
OTHERS = [(f"m{n}", n % 17) for n in range(34)]
MINE = [("a", 2), ("a", 2)]  # both rows of one unit in one cell: nothing moves the sums farther
UNDER = [Question(table="t", where=Compare("<", Column("x"), Literal(end)), statistics=(Count(),)) for end in range(1, 17)]


class Answered:
    """Prepared rows that have been asked already."""

    noised = Answering.noised
    features = None

    def __init__(self, request: NoisedRequest, prepared: Answering) -> None:
        self.request = request
        self._groups = [prepared.aggregate(each) for each in request.asked]

    def aggregate(self, aggregation: Any, _: Any) -> Groups:
        """What they answered."""
        return self._groups[self.request.asked.index(aggregation)]

    @property
    def exact(self) -> Any:
        """The integers that are noised."""
        [values] = exact_integers(self.request, self._groups).values()
        return values.astype(np.float64)


def world(rows: list[tuple[str, int]], budget: Guarantee, spend: str) -> tuple[Part, Answered]:
    """The plan of the ranges' measurement, and what the engine answers to it."""
    table = cl.PrivateTable(
        {"unit": [unit for unit, _ in rows], "x": [value for _, value in rows]},
        columns={"x": cl.Integer(0, 16)},
        unit="unit",
        max_rows=2,
    )
    with Door({"t": table}, budget=budget, random=Random.deterministic(1)) as door:
        [part] = door.explain_workload(UNDER, spend).parts
        prepared = door.prepared("t")
        return part, Answered(request_of(part, 0, prepared), prepared)


def answers(budget: Guarantee, spend: str) -> Callable[[list[tuple[str, int]], int, Random], Any]:
    """A mechanism for the auditor: data are rows (unit, value); an output is the noisy sums."""

    def mechanism(data: list[tuple[str, int]], n: int, random: Random) -> Any:
        part, rows = world(data, budget, spend)
        asked = (rows.request, (None,) * len(rows.request.asked))
        runs = [measured(part, rows, random, asked, 1).readings for _ in range(n)]  # type: ignore[arg-type]
        return np.array([next(iter(readings.values())).values for readings in runs], dtype=np.float64)

    return mechanism


def likelihood(budget: Guarantee, spend: str) -> Callable[[Any], Any]:
    """What tells most of the two worlds: by how much nearer the sums lie to those of the one."""
    sums = []
    for data in (OTHERS + MINE, OTHERS):
        _, rows = world(data, budget, spend)
        sums.append(rows.exact)
    power = 1 if isinstance(budget, cl.PureDP) else 2
    unit = np.abs(sums[0] - sums[1]).max() ** power

    def feature(outputs: Any) -> Any:
        near, far = ((np.abs(outputs - each) ** power).sum(axis=1) for each in sums)
        return np.round((far - near) / unit, 1)

    return feature


def audited(budget: Guarantee, spend: str, seed: int, runs: int, **asked: Any) -> Any:
    return audit(
        answers(budget, spend),
        OTHERS + MINE,
        OTHERS,
        runs=runs,
        features={"likelihood": likelihood(budget, spend)},
        random=Random.deterministic(seed),
        **asked,
    )


@by_day_and_night("runs", DAY, NIGHT)
def test_the_sums_keep_their_epsilon(runs: int) -> None:
    found = audited(cl.PureDP(8), "2", 61, runs)
    assert not found.contradicts(cl.PureDP(2)), found
    assert found.epsilon > 1, found


@by_day_and_night("runs", DAY, NIGHT)
def test_the_sums_keep_their_rho(runs: int) -> None:
    found = audited(cl.ZCDP(8), "0.5", 62, runs, against=cl.ZCDP("0.5"))
    assert not found.contradicts(cl.ZCDP("0.5")), found


@pytest.mark.parametrize(("budget", "spend"), [(cl.PureDP(8), "2"), (cl.ZCDP(8), "0.5")], ids=["Laplace", "Gaussian"])
@by_day_and_night("runs", DAY, NIGHT)
def test_a_twin_of_half_the_sensitivity_is_caught(
    budget: Guarantee, spend: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = range_family.strategic_block
    monkeypatch.setattr(range_family, "strategic_block", lambda column, plan, _: right(column, plan, rows_block(1)))
    goal = cl.PureDP(spend) if isinstance(budget, cl.PureDP) else cl.ZCDP(spend)
    found = audited(budget, spend, 63, runs, against=goal)
    assert found.contradicts(goal), found
