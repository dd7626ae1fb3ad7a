"""One quantile by a choice and a ladder: its intervals are covered, and the whole answer keeps what it promises.

Coverage: 4,000 copies a case at night, 1,000 by day. A share of 95 % then has a standard deviation of at most 0.0035 (0.0069),
and the slack of 0.022 (0.044) is more than six of them: a false alarm over all cases has a probability below 1e-7. Audits have
the confidence 1 − 1e-9, whatever the number of runs. All generators are fixed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random
from cloister.session import Door, Quantile, Question
from cloister.session.planning.zoom import HALF, cuts_around
from tests.statistical.replicas import replicas
from tests.tiers import by_day_and_night, some_by_day

pytestmark = pytest.mark.statistical

SLACK = {1000: 0.044, 4000: 0.022}
LEAVES, GROUPS = 128, 4000
DAY, NIGHT = 8_000, 24_000


SPENDS = ("0.05", "0.5", "5")
ROWS = (3, 300, 30_000)
LAWS = {"Laplace": cl.PureDP(100), "Gaussian": cl.ZCDP(100)}


def by_day(case: tuple[int, str, str]) -> bool:
    """Each number of rows and each spend once for each law: six of eighteen."""
    rows, spend, law = case
    return (ROWS.index(rows) + SPENDS.index(spend)) % 3 == ["Laplace", "Gaussian"].index(law)


@some_by_day("rows,spend,law", itertools.product(ROWS, SPENDS, LAWS), by_day)
@by_day_and_night("copies", 1000, 4000)
def test_intervals_are_covered(copies: int, rows: int, spend: str, law: str) -> None:
    budget = LAWS[law]
    rng = np.random.default_rng(rows)
    x = np.minimum(rng.lognormal(5, 1, rows).astype(int), 1999)
    table = cl.PrivateTable({"x": x}, columns={"x": cl.Integer(0, 1999)})
    for share in ("0.5", "0.9"):
        question = Question(table="t", statistics=(Quantile(column="x", at=share, name="x"),))
        found = replicas(table, question, budget=budget, spend=spend, copies=copies, seed=41)
        truth = np.sort(x)[int(np.ceil(float(share) * rows - 1e-9)) - 1]
        for confidence in (0.95, 0.8):
            assert found.covered("x", truth, confidence) >= confidence - SLACK[copies] * (1 if confidence > 0.9 else 2)
        few = (spend, law, share) == ("0.05", "Laplace", "0.9")  # a ladder of 1.2 % of this cannot tell 3,000 rows from none
        if rows == 30_000 and not few:
            assert found.width("x") < 1000


def answers(budget: cl.PureDP | cl.ZCDP, spend: str, leaves: int = 2) -> Callable[[list[tuple[str, int]], int, Random], Any]:
    """A mechanism for the auditor: data are the rows (unit, value) of one group; an output is the choice and the rungs of one."""

    def mechanism(data: list[tuple[str, int]], n: int, random: Random) -> Any:
        found = []
        for first in range(0, n, GROUPS):
            groups = min(GROUPS, n - first)
            table = cl.PrivateTable(
                {
                    "group": np.repeat(np.arange(groups), len(data)),
                    "unit": [f"{place} {unit}" for place in range(groups) for unit, _ in data],
                    "x": [value for _, value in data] * groups,
                },
                columns={"group": cl.Integer(0, GROUPS - 1), "x": cl.Integer(0, leaves - 1)},
                unit="unit",
                max_rows=2,
            )
            with Door({"t": table}, budget=budget, random=random) as door:
                release = door.measure(Question(table="t", by=("group",), statistics=(Quantile(column="x"),)), spend=spend)
            [reading] = release.readings.values()
            found.append(reading.values[:groups])
        return np.concatenate(found).astype(np.float64)

    return mechanism


# the choice has nearly all of the spend: the unit's two rows lie where the others' quantile is not, in the tail of its law
OTHERS = [(f"m{n}", 0) for n in range(3)]
MINE = [("a", 1), ("a", 1)]


# half of the spend in the ladder: most rows in the middle hold the choice there in both worlds; the unit's lie at the end
MIDDLE = [(f"m{n}", LEAVES // 2) for n in range(9)]
END = [("a", LEAVES - 1), ("a", LEAVES - 1)]


def chosen(outputs: Any) -> Any:
    """What tells most of the two worlds."""
    return outputs[:, 0].astype(np.int64)


def at_the_end(outputs: Any) -> Any:
    """What tells most where the ladder has half: the rows in the rung of the last leaf, and whether the choice lies beyond the
    middle."""
    leaf = chosen(outputs)
    rung = (cuts_around(leaf, LEAVES) < LEAVES).sum(axis=1)
    return 2 * np.clip(outputs[np.arange(len(outputs)), rung], 0, 2) + np.sign(leaf - LEAVES // 2)


@by_day_and_night("runs", DAY, NIGHT)
def test_the_whole_answer_keeps_its_epsilon(runs: int) -> None:
    found = audit(
        answers(cl.PureDP(8), "2"),
        OTHERS + MINE,
        OTHERS,
        runs=runs,
        features={"chosen": chosen},
        random=Random.deterministic(51),
    )
    assert not found.contradicts(cl.PureDP(2)), found
    assert found.epsilon > 1, found


@by_day_and_night("runs", DAY, NIGHT)
def test_the_whole_answer_keeps_its_rho(runs: int) -> None:
    goal = cl.ZCDP("0.5")
    found = audit(
        answers(cl.ZCDP(8), "0.5"),
        OTHERS + MINE,
        OTHERS,
        runs=runs,
        against=goal,
        features={"chosen": chosen},
        random=Random.deterministic(52),
    )
    assert not found.contradicts(goal), found


@by_day_and_night("runs", DAY, NIGHT)
def test_what_is_bought_for_a_margin_keeps_its_epsilon(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import cloister.session.planning.builder as builder

    monkeypatch.setattr(builder, "ladder_part", lambda **_: HALF)
    found = audit(
        answers(cl.PureDP(8), "2", LEAVES),
        MIDDLE + END,
        MIDDLE,
        runs=runs,
        features={"end": at_the_end},
        random=Random.deterministic(54),
    )
    assert not found.contradicts(cl.PureDP(2)), found
    assert found.epsilon > 1, found


@by_day_and_night("runs", 2 * DAY, NIGHT)
def test_a_twin_of_half_the_sensitivity_is_caught(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import cloister.session.planning.blocks as blocks
    import cloister.session.planning.builder as builder

    twin = lambda leaves, share, max_rows, ladder: blocks.zoom_block(leaves, share, 1, ladder)  # noqa: E731
    monkeypatch.setattr(builder, "zoom_block", twin)
    found = audit(
        answers(cl.PureDP(8), "2"),
        OTHERS + MINE,
        OTHERS,
        runs=runs,
        features={"chosen": chosen},
        random=Random.deterministic(53),
    )
    assert found.contradicts(cl.PureDP(2)), found
