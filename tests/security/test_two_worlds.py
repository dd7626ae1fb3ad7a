"""Two worlds that differ by one person and release the same numbers: all the rest is the same to the letter, and the noise pays.

Declarations, sources, rows and questions are drawn at random (`schemas.py`, `grammar.py`); a session is asked them in a world
without one person and again in the world with them, and everything that shows is compared (`transcripts.py`). Seeded faults of
the kinds that peers had must be caught.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.session.execution import answer, buying
from cloister.session.questions.threshold import Threshold
from tests.security.grammar import Grammar
from tests.security.schemas import Load, Schema, schema
from tests.security.transcripts import Question, Seen, Tape, lone, loss, on, watched
from tests.tiers import by_day_and_night

FAULTY = (202, 217)
"""Seeds whose person more has rows beyond the cap, and whose questions leave no row."""
KEYED = 50_003
"""A seed whose questions are by keys that nobody declared."""
KEY = b"the same secret in both worlds.."
BUDGETS: list[Any] = [cl.PureDP(10**6), cl.ApproxDP(10**6, "1e-2"), cl.ZCDP(10**6, delta="1e-2")]
SPENDS: dict[type, list[Any]] = {
    cl.PureDP: [1, "0.001", 40],
    cl.ApproxDP: [cl.ApproxDP(1, "1e-6"), cl.ApproxDP("0.01", "1e-9"), cl.ApproxDP(9, "1e-5")],
    cl.ZCDP: [cl.ZCDP("0.5", delta="1e-6"), cl.ZCDP("0.0001", delta="1e-6"), cl.ZCDP(30, delta="1e-6")],
}


@dataclass(frozen=True, kw_only=True)
class Walk:
    """One pair of worlds and what is asked there."""

    schema: Schema
    budget: Any
    questions: list[Question]
    seeded: bool
    """Whether the noise is that of a generator for tests; the system's own takes groups as the engine tells them."""


def walk(seed: int, count: int) -> Walk:
    """Questions about a random declaration; some are asked twice, some with a wanted margin, some at made-up rows."""
    drawn, draw = schema(seed), random.Random(seed + 10**6)
    budget = draw.choice(BUDGETS)
    questions: list[Question] = []
    for _ in range(count):
        sql = Grammar(drawn, draw).question()
        how: Question = {"sql": sql, "spend": draw.choice(SPENDS[type(budget)])}
        kind = draw.random()
        if kind < 0.1 and questions:
            how = {**draw.choice(questions), "fresh": draw.random() < 0.3}
        elif kind < 0.15:
            how = {"sql": sql, "within": draw.choice([5, 100.0]), "pilot": SPENDS[type(budget)][1]}
        questions.append(how)
    return Walk(schema=drawn, budget=budget, questions=questions, seeded=draw.random() < 0.5)


def seen(walk: Walk, tape: Tape, folder: Path, *, ghost: bool, load: Load | None = None) -> list[Seen]:
    """What one world shows."""
    stages: list[str] = []
    with (
        on(tape),
        Ledger(key=KEY) as ledger,
        cl.Session(
            walk.schema.tables(folder, ghost=ghost, load=load),
            budget=walk.budget,
            ledger=ledger,
            random=Random.deterministic(1) if walk.seeded else None,
            progress=stages.append,
        ) as session,
    ):
        return [
            watched(session, tape, stages, question, pictured=place % 4 == 0) for place, question in enumerate(walk.questions)
        ]


def compared(seed: int, count: int, folder: Path, *, load: Load | None = None) -> int:
    """Both worlds of a seed, compared; how many questions were answered."""
    asked = walk(seed, count)
    first = Tape()
    without = seen(asked, first, folder, ghost=False, load=load)
    with_ghost = seen(asked, Tape(plays=first), folder, ghost=True, load=load)
    most = asked.schema.max_rows or 1
    for question, mine, other in zip(asked.questions, without, with_ghost, strict=True):
        said = f"seed {seed}: {question}"
        for part in mine.parts | other.parts:
            assert mine.parts.get(part) == other.parts.get(part), f"{said}\n{part} differs"
        given = loss(mine.draws, other.draws)
        charged = mine.charged.get("all", cl.PureDP(0))
        assert given.within(charged), f"{said}\nloss {given}, charged {charged}"
        for persons in lone(mine.draws, other.draws):
            assert len(persons) <= most, said
            assert set(persons) <= {1}, said
    return sum(each.answered for each in without)


@by_day_and_night("worlds", 4, 12)
def test_two_worlds_look_alike_and_the_noise_pays_for_the_rest(tmp_path: Path, worlds: int) -> None:
    """A fixed selection; what is refused compares little, so most must be answered."""
    assert sum(compared(seed, 6, tmp_path) for seed in range(worlds)) >= 3 * worlds


@pytest.mark.parametrize("seeded", [False, True])
def test_keys_that_nobody_declared_are_among_what_is_compared(
    seeded: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = replace(walk(KEYED, 4), seeded=seeded)
    tape = Tape()
    seen(asked, tape, tmp_path, ghost=False)
    assert any(draw.keys is not None for draw in tape.draws)
    monkeypatch.setattr("tests.security.test_two_worlds.walk", lambda seed, count: asked)
    assert compared(KEYED, 4, tmp_path) >= 3


def test_the_walks_that_catch_faults_hold_without_them(tmp_path: Path) -> None:
    assert all(compared(seed, 4, tmp_path) for seed in FAULTY)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10_000, 10_600))
def test_two_worlds_look_alike_all_night(seed: int, tmp_path: Path) -> None:
    compared(seed, 20, tmp_path)


def _one_row_more(patch: pytest.MonkeyPatch) -> None:
    """The cap counts one row more than it says."""
    inner = answer.aggregation_of

    def more(shape: Any, table: Any) -> Any:
        found = inner(shape, table)
        return found if found.max_rows is None else replace(found, max_rows=found.max_rows + 1)

    patch.setattr(answer, "aggregation_of", more)
    patch.setattr(buying, "aggregations_of", answer.aggregations_of)


def _half_the_noise(patch: pytest.MonkeyPatch) -> None:
    """Noise of half the scale that the charge is worth."""
    inner = answer.request_of

    def less(part: Any, *others: Any) -> Any:
        return inner(replace(part, noises={name: _halved(noise) for name, noise in part.noises.items()}), *others)

    patch.setattr(buying, "request_of", less)


def _halved(noise: Any) -> Any:
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(scale=noise.scale / 2, sensitivity=noise.sensitivity)
    if isinstance(noise, DiscreteGaussian):
        return DiscreteGaussian(scale_squared=noise.scale_squared / 4, sensitivity_squared=noise.sensitivity_squared)
    return noise


def _half_the_charge(patch: pytest.MonkeyPatch) -> None:
    """The ledger is charged half of what the noise gives away."""
    inner = Ledger.reserve

    def less(self: Ledger, costs: Any, **how: Any) -> Any:
        return inner(self, {name: _halved_cost(cost) for name, cost in costs.items()}, **how)

    patch.setattr(Ledger, "reserve", less)


def _halved_cost(cost: Any) -> Any:
    if isinstance(cost, cl.ZCDP):
        return cl.ZCDP(cost.rho / 2, delta=cost.delta)
    return cl.PureDP(cost.epsilon / 2) if isinstance(cost, cl.PureDP) else cl.ApproxDP(cost.epsilon / 2, cost.delta)


def _no_rows_matched(patch: pytest.MonkeyPatch) -> None:
    """A question of which no row is left says so."""

    def told(found: Mapping[str, Any]) -> None:
        if any(not np.any(values) for values in found.values()):
            raise cl.UnsupportedQuery("The query was refused", why="no rows matched", instead="another WHERE")

    _looking(patch, told)


def _a_line_in_the_log(patch: pytest.MonkeyPatch) -> None:
    """The engine writes down how much it found."""
    _looking(patch, lambda found: logging.getLogger("engine").warning("found %s", [each.sum() for each in found.values()]))


def _looking(patch: pytest.MonkeyPatch, told: Callable[[Mapping[str, Any]], None]) -> None:
    """Something beside the door is shown the exact aggregates."""
    inner = answer.measured

    def looked(part: Any, table: Any, *others: Any) -> Any:
        told(table.aggregate(answer.aggregations_of(part.shape, table)[0]).values)
        return inner(part, table, *others)

    patch.setattr(buying, "measured", looked)


def _a_threshold_that_follows_the_rows(patch: pytest.MonkeyPatch) -> None:
    """Which sentence stands under an answer depends on how many rows there are."""
    inner = answer.measured

    def noted(part: Any, table: Any, *others: Any) -> Any:
        total = sum(int(np.sum(each)) for each in table.aggregate(answer.aggregations_of(part.shape, table)[0]).values.values())
        return replace(inner(part, table, *others), threshold=Threshold(least=abs(total), delta=Fraction(1, 2)))

    patch.setattr(buying, "measured", noted)


FAULTS = [
    _one_row_more,
    _half_the_noise,
    _half_the_charge,
    _no_rows_matched,
    _a_line_in_the_log,
    _a_threshold_that_follows_the_rows,
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.__name__.strip("_") for fault in FAULTS])
def test_a_seeded_fault_is_caught(fault: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same walks that hold without the fault do not hold with it."""
    fault(monkeypatch)

    def hunt() -> None:
        for seed in FAULTY:
            compared(seed, 4, tmp_path)

    with pytest.raises(AssertionError):
        hunt()
