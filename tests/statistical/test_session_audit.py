"""The real path, from rows to noisy integers, audited as a whole on worst-case neighbours, a run a group.

Every group of the two worlds is one run: the groups are independent, and in each of them the right world has one unit less. The
audit's confidence is 1 − 1e-9, so a false alarm over all of these tests has a probability below 1e-7; the generators are fixed
besides. What fewer runs cost is power, never a false alarm: by day each audit has a fifth of the runs of the night.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Persons, Question, Statistic, Sum
from tests.tiers import by_day_and_night

pytestmark = pytest.mark.statistical

DAY, NIGHT = 20_000, 100_000
FOUND = {DAY: 0.2, NIGHT: 0.25}
"""How much of ε = 1 an audit of so many runs must find at least."""
TIGHT = {DAY: 0.85, NIGHT: 0.9}
"""The same, where the noise is tight."""
Rows = list[tuple[str, Any]]


def raws_of(statistics: tuple[Statistic, ...], budget: cl.PureDP | cl.ZCDP, spend: str) -> Callable[[Rows, int, Random], Any]:
    """A mechanism for the auditor: data are the rows (unit, value) of one group; an output is the noisy raws of one group."""

    def mechanism(data: Rows, n: int, random: Random) -> Any:
        group = np.repeat(np.arange(n), len(data))
        table = cl.PrivateTable(
            {
                "group": group,
                "unit": [f"{place} {unit}" for place in range(n) for unit, _ in data],
                "x": np.array([value for _, value in data] * n, dtype=object),
            },
            columns={"group": cl.Integer(0, n - 1), "x": cl.Integer(-2, 3)},
            unit="unit",
            max_rows=2,
        )
        with Door({"t": table}, budget=budget, random=random) as door:
            release = door.measure(Question(table="t", by=("group",), statistics=statistics), spend=spend)
        return np.column_stack([reading.values.astype(np.float64) for reading in release.readings.values()])

    return mechanism


WORLDS: list[tuple[str, tuple[Statistic, ...], Rows]] = [
    ("count", (Count(),), [("a", 1), ("a", 1), ("a", 1)]),
    ("persons", (Persons(),), [("a", 1), ("a", 1)]),
    ("sum high", (Sum(column="x"),), [("a", 3), ("a", 99)]),
    ("mean high", (Count(), Mean(column="x")), [("a", 3), ("a", 3)]),
    ("mean low", (Count(), Mean(column="x")), [("a", -2), ("a", -2)]),
    ("mean null", (Count(), Mean(column="x")), [("a", None), ("a", None)]),
    ("mean mixed", (Count(), Mean(column="x"), Persons()), [("a", 3), ("a", None)]),
]


@pytest.mark.parametrize(("statistics", "mine"), [world[1:] for world in WORLDS], ids=[world[0] for world in WORLDS])
@by_day_and_night("runs", DAY, NIGHT)
def test_pure_releases_keep_their_epsilon(statistics: tuple[Statistic, ...], mine: Rows, runs: int) -> None:
    others: Rows = [("b", 0), ("c", 1)]
    mechanism = raws_of(statistics, cl.PureDP(2), "1")
    found = audit(mechanism, others + mine, others, runs=runs, random=Random.deterministic(31))
    assert not found.contradicts(cl.PureDP(1)), found
    assert found.epsilon > FOUND[runs], found


@by_day_and_night("runs", DAY, NIGHT)
def test_the_audit_has_power_where_the_noise_is_tight(runs: int) -> None:
    found = audit(
        raws_of((Count(),), cl.PureDP(2), "1"),
        [("b", 1), ("a", 1), ("a", 1)],
        [("b", 1)],
        runs=runs,
        random=Random.deterministic(32),
    )
    assert TIGHT[runs] < found.epsilon <= 1


@pytest.mark.parametrize(("statistics", "mine"), [world[1:] for world in WORLDS[:4]], ids=[world[0] for world in WORLDS[:4]])
@by_day_and_night("runs", DAY, NIGHT)
def test_concentrated_releases_keep_their_rho(statistics: tuple[Statistic, ...], mine: Rows, runs: int) -> None:
    others: Rows = [("b", 0), ("c", 1)]
    budget = cl.ZCDP(2)
    found = audit(
        raws_of(statistics, budget, "0.5"),
        others + mine,
        others,
        runs=runs,
        against=cl.ZCDP("0.5"),
        random=Random.deterministic(33),
    )
    assert not found.contradicts(cl.ZCDP("0.5")), found


@by_day_and_night("runs", DAY, NIGHT)
def test_a_door_that_forgets_the_cap_is_caught(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same audit, of a twin that noises two rows a person as if they were one."""
    import cloister.session.planning.blocks as blocks
    import cloister.session.planning.builder as builder

    monkeypatch.setattr(builder, "rows_block", lambda max_rows: blocks.rows_block(1))
    found = audit(
        raws_of((Count(),), cl.PureDP(2), "1"),
        [("b", 1), ("a", 1), ("a", 1)],
        [("b", 1)],
        runs=runs,
        random=Random.deterministic(34),
    )
    assert found.contradicts(cl.PureDP(1))
