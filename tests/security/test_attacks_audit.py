"""Whole answers audited on worst-case neighbours, a run a group, from SQL to the released table; and broken twins, caught.

Each group of a world is one run: persons belong to one group each, so the groups are independent. The audit's confidence is
1 − 1e-9, so that a false alarm over all tests here has a probability below 1e-7; the generators are fixed besides.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random
from cloister.session.planning import blocks, plan
from cloister.session.questions import threshold
from cloister.session.questions.threshold import Threshold
from tests.tiers import by_day_and_night, some_by_day

pytestmark = pytest.mark.statistical

DAY, NIGHT = 20_000, 60_000
EPSILON = cl.PureDP(1)
NOT_SHOWN = -1_000_000
Person = tuple[str, list[int]]
"""A person's sex and the cost of each visit."""


def tables(persons: list[Person], n: int) -> dict[str, cl.PrivateTable]:
    """n groups that all hold the same persons, under names of their own."""
    names = [f"{group} {place}" for group in range(n) for place in range(len(persons))]
    costs = [costs for _ in range(n) for _, costs in persons]
    who = [name for name, each in zip(names, costs, strict=True) for _ in each]
    groups = [group for group in range(n) for _ in persons]
    return {
        "persons": cl.PrivateTable(
            {
                "person": names or ["nobody"],
                "grp": groups or [None],
                "sex": [sex for _ in range(n) for sex, _ in persons] or [None],
            },
            columns={"grp": cl.Integer(0, n - 1), "sex": cl.Category(["F", "M"])},
            unit="person",
            max_rows=1,
            population="all",
        ),
        "visits": cl.PrivateTable(
            {
                "person": who or ["nobody"],
                "cost": np.array([cost for each in costs for cost in each] or [0]),
                "word": [f"word {name.split()[0]}" for name in who] or [None],
            },
            columns={"cost": cl.Integer(0, 3), "word": cl.Text()},
            unit="person",
            max_rows=2,
            population="all",
        ),
    }


def answered(
    sql: str, spend: Any, read: Callable[[cl.Session, str, Any, int], Any]
) -> Callable[[list[Person], int, Random], Any]:
    """A mechanism for the auditor: data are the persons of one group; an output is what one group's part of the answer says."""

    def mechanism(data: list[Person], n: int, random: Random) -> Any:
        with cl.Session(tables(data, n), budget=spend, random=random) as session:
            return read(session, sql, spend, n)

    return mechanism


def raws(session: cl.Session, sql: str, spend: Any, n: int) -> Any:
    """All noisy numbers behind the answer: more than the analyst sees."""
    release = session.sql(sql, spend=spend)
    return np.column_stack([np.asarray(reading.values, dtype=np.float64).reshape(n, -1) for reading in release.readings.values()])


def by_group(session: cl.Session, sql: str, spend: Any, n: int) -> Any:
    """The released rows of each group: one column for each set and sex."""
    shown = session.sql(sql, spend=spend).to_pydict()
    found = np.zeros((n, 3))
    column = {"F": 0, "M": 1, None: 2}
    for group, sex, count in zip(shown["grp"], shown["sex"], shown["n"], strict=True):
        found[group, column[sex]] = count
    return found


def by_word(session: cl.Session, sql: str, spend: Any, n: int) -> Any:
    """The noisy count of each word, or that it is not shown."""
    shown = session.sql(sql, spend=spend).to_pydict()
    found = np.full((n, 1), NOT_SHOWN)
    for word, count in zip(shown["word"], shown["n"], strict=True):
        found[int(word.split()[1])] = count
    return found


OTHERS: list[Person] = [("F", [0]), ("M", [2, 1])]
GHOST: Person = ("F", [3, 3, 3])
CASES: dict[str, tuple[str, Callable[[cl.Session, str, Any, int], Any]]] = {
    "join": (
        "SELECT grp, COUNT(*) AS n, AVG(cost) AS a FROM persons AS p JOIN visits AS v ON p.person = v.person GROUP BY grp",
        raws,
    ),
    "quantile": (
        "SELECT grp, MEDIAN(cost) AS m FROM persons AS p JOIN visits AS v ON p.person = v.person GROUP BY grp",
        raws,
    ),
    "grouping sets": ("SELECT grp, sex, COUNT(*) AS n FROM persons GROUP BY GROUPING SETS ((grp, sex), (grp))", by_group),
    "sums per person": (
        "SELECT grp, SUM(total) AS s FROM persons AS p JOIN (SELECT person, SUM(cost) AS total FROM visits GROUP BY person) AS t"
        " ON p.person = t.person GROUP BY grp",
        raws,
    ),
}


@by_day_and_night("runs", DAY, NIGHT)
@some_by_day("case", CASES, lambda case: case in ("join", "grouping sets"))
def test_a_whole_answer_keeps_its_epsilon_and_a_twin_with_half_the_noise_does_not(
    case: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, read = CASES[case]
    mechanism = answered(sql, EPSILON, read)
    found = audit(mechanism, [*OTHERS, GHOST], OTHERS, runs=runs, random=Random.deterministic(41))
    assert not found.contradicts(EPSILON), found
    assert found.epsilon > 0.3, found

    true = blocks.Block.laplace
    monkeypatch.setattr(blocks.Block, "laplace", lambda block, epsilon: true(block, 2 * epsilon))
    caught = audit(mechanism, [*OTHERS, GHOST], OTHERS, runs=runs, random=Random.deterministic(42))
    assert caught.contradicts(EPSILON), caught


UNDECLARED = "SELECT word, COUNT(DISTINCT person) AS n FROM visits GROUP BY word"
PROMISED = cl.ApproxDP(1, "0.01")


@by_day_and_night("runs", DAY, NIGHT)
@pytest.mark.parametrize("others", [0, 8], ids=["alone", "among others"])
def test_undeclared_keys_keep_epsilon_and_delta(others: int, runs: int) -> None:
    """A word that the ghost alone has, and one that eight others have too: shown with probability about one half."""
    rest: list[Person] = [("F", [1])] * others
    found = audit(
        answered(UNDECLARED, PROMISED, by_word),
        [*rest, GHOST],
        rest,
        runs=runs,
        against=PROMISED,
        random=Random.deterministic(43),
    )
    assert not found.contradicts(PROMISED), found


@by_day_and_night("runs", DAY, NIGHT)
def test_a_twin_with_a_lower_threshold_is_caught(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    true = threshold.threshold_for

    def lower(noise: Any, keys: int, delta: Fraction) -> Threshold:
        return Threshold(least=true(noise, keys, delta).least - 6, delta=delta)

    monkeypatch.setattr(plan, "threshold_for", lower)
    mechanism = answered(UNDECLARED, PROMISED, by_word)
    found = audit(mechanism, [GHOST], [], runs=runs, against=PROMISED, random=Random.deterministic(44))
    assert found.contradicts(PROMISED), found
