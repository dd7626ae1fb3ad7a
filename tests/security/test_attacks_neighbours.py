"""The whole path against its own declarations: nobody may move a raw further than its block says, whatever the question is.

Worlds and questions are drawn at random (`worlds.py`, `questions.py`); each question is answered in a world with and without one
person, by the door's own code with silent noise (`losses.py`). Then no block may move by more than its l1 and its l2, no plan's
loss may exceed what it charges, and no more groups may be seen in one world alone than a person has rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

import cloister as cl
from cloister.errors import EngineError
from cloister.session.planning import blocks, builder
from cloister.tables import Base, Identifier, KeyJoined
from tests.security.losses import Loss, loss_of
from tests.security.questions import SOURCES, From, question
from tests.security.worlds import World, world
from tests.tiers import by_day_and_night

BUDGETS: list[Any] = [cl.PureDP(10**6), cl.ApproxDP(10**6, "1e-2"), cl.ZCDP(10**6, delta="1e-2")]
SPENDS: dict[type, Any] = {cl.PureDP: 1, cl.ApproxDP: cl.ApproxDP(1, "1e-6"), cl.ZCDP: cl.ZCDP("0.5", delta="1e-6")}


@contextmanager
def neighbours(pair: World, budget: Any) -> Iterator[tuple[cl.Session, cl.Session]]:
    """A session with the ghost and one without, under one ledger: the same secret orders the rows of both."""
    with (
        cl.Ledger() as ledger,
        cl.Session(pair.tables(), budget=budget, ledger=ledger) as left,
        cl.Session(pair.without().tables(), budget=budget, ledger=ledger) as right,
    ):
        yield left, right


def tried(sql: str, left: cl.Session, right: cl.Session, budget: Any) -> Loss | str:
    """The loss of a question, or the refusal, which must be the same in both worlds and no engine's failure."""
    said: list[str] = []
    try:
        return loss_of(sql, left, right, spend=SPENDS[type(budget)])
    except EngineError as failure:
        raise AssertionError(f"the engine failed: {sql}") from failure
    except cl.CloisterError as refusal:
        said.append(f"{type(refusal).__name__} {refusal}")
    for session in (left, right):
        with pytest.raises(cl.CloisterError) as refused:
            session.explain(sql, spend=SPENDS[type(budget)])
        said.append(f"{type(refused.value).__name__} {refused.value}")
    assert said[0] == said[1] == said[2], sql
    return said[0]


@cache
def hunt(seed: int, questions: int, sources: tuple[From, ...] = SOURCES) -> tuple[dict[str, float], int]:
    """How much of each kind of block's L1 was used at most by questions about one pair of worlds; and how many were answered."""
    draw, used, answered = random.Random(seed), dict[str, float](), 0
    budget = draw.choice(BUDGETS)
    with neighbours(world(seed), budget) as (left, right):
        for number in range(questions):
            sql = question(draw, sources[(seed * questions + number) % len(sources)])
            found = tried(sql, left, right, budget)
            if isinstance(found, str):
                continue
            answered += 1
            assert not found.breaks, f"seed {seed}: {sql}\n{found}"
            for each in found.moved:
                kind = each.block.partition(":")[0]
                used[kind] = max(used.get(kind, 0.0), each.share)
    return used, answered


@pytest.mark.parametrize("seed", range(12))
@by_day_and_night("questions", 6, 18)
def test_nobody_moves_more_than_is_declared(questions: int, seed: int) -> None:
    """Some seventy questions over twelve pairs of worlds, and at night two hundred."""
    _, answered = hunt(seed, questions)
    assert answered >= questions // 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_150))
def test_nobody_moves_more_than_is_declared_over_thousands_of_questions(seed: int) -> None:
    hunt(seed, 25)


def test_the_hunt_is_tight() -> None:
    """Each kind of block is moved all the way to its bound by somebody: a bound that is half of it would be caught.

    In the worlds of the hunt above, which are walked once for both tests."""
    used: dict[str, float] = {}
    for seed in range(12):
        for kind, share in hunt(seed, 6)[0].items():
            used[kind] = max(used.get(kind, 0.0), share)
    assert {kind for kind, share in used.items() if share == 1.0} >= {"rows", "split", "units", "hierarchy"}


TWINS: list[tuple[str, Any, str]] = [
    ("rows_block", lambda rows: blocks.rows_block(max(rows - 1, 1)), "SELECT COUNT(*) AS n FROM visits"),
    (
        "units_block",
        lambda groups: blocks.units_block(max(groups - 1, 1)),
        "SELECT cost, COUNT(DISTINCT person) AS n FROM visits GROUP BY cost",
    ),
    (
        "split_block",
        lambda column, low, high, rows, *, nulls: blocks.split_block(column, low, high, max(rows - 1, 1), nulls=nulls),
        "SELECT AVG(cost) AS n, COUNT(*) AS m FROM visits",
    ),
    (
        "hierarchy_block",
        lambda leaves, rows, *, nulls: blocks.hierarchy_block(leaves, max(rows - 1, 1), nulls=nulls),
        "SELECT MEDIAN(cost) AS n, QUANTILE(cost, 0.9) AS m FROM persons AS p JOIN visits AS v ON p.person = v.person",
    ),
    (
        "zoom_block",
        lambda leaves, share, rows, ladder: blocks.zoom_block(leaves, share, max(rows - 1, 1), ladder),
        "SELECT MEDIAN(cost) AS n FROM persons AS p JOIN visits AS v ON p.person = v.person",
    ),
]


@pytest.mark.parametrize(("name", "broken", "sql"), TWINS, ids=[twin[0] for twin in TWINS])
@by_day_and_night("beyond", 0, 11)
def test_a_twin_that_allows_a_person_one_row_less_is_caught(
    monkeypatch: pytest.MonkeyPatch, beyond: int, name: str, broken: Any, sql: str
) -> None:
    """Within twelve pairs of worlds. Without the fault nothing is found in those, nor in as many `beyond` them."""
    seeds = range(40, 52)

    def breaks(seed: int) -> bool:
        with neighbours(world(seed), BUDGETS[0]) as (left, right):
            found = tried(sql, left, right, BUDGETS[0])
        assert isinstance(found, Loss)
        return bool(found.breaks)

    with monkeypatch.context() as patch:
        patch.setattr(builder, name, broken)
        tries = next((tries for tries, seed in enumerate(seeds, start=1) if breaks(seed)), None)
    assert tries is not None
    assert not any(breaks(seed) for seed in seeds[: tries + beyond])


REACHING = [
    "SELECT COUNT(*) AS n FROM tests AS t JOIN drugs AS d ON d.visit = t.ref",
    "SELECT COUNT(*) AS n FROM (SELECT person, visit FROM visits UNION ALL SELECT person, ref AS visit FROM tests) AS u"
    " JOIN drugs AS d ON d.visit = u.visit",
    "WITH visits AS (SELECT person, ref AS visit FROM tests) SELECT COUNT(*) AS n FROM visits"
    " JOIN drugs ON drugs.visit = visits.visit",
    "SELECT COUNT(*) AS n FROM visits AS v JOIN tests AS t ON t.ref = v.visit",
    "SELECT COUNT(*) AS n FROM drugs AS d LEFT JOIN visits AS v ON d.visit = v.visit",
    "SELECT COUNT(*) AS n FROM visits AS v FULL JOIN drugs AS d ON d.visit = v.visit",
    "SELECT COUNT(*) AS n FROM flat FULL JOIN towns ON flat.town = towns.name",
    "SELECT COUNT(*) AS n FROM towns LEFT JOIN flat ON flat.town = towns.name",
    "SELECT COUNT(*) AS n FROM flat RIGHT JOIN towns ON flat.town = towns.name",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.ward = b.ward",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person OR a.ward = b.ward",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person <> b.person",
    "SELECT COUNT(*) AS n FROM visits AS a, visits AS b",
    "SELECT COUNT(*) AS n FROM flat AS a JOIN flat AS b ON a.age = b.age",
    "SELECT COUNT(*) AS n FROM flat AS a JOIN visits AS b ON a.sex = b.ward",
    "SELECT COUNT(*) AS n FROM visits JOIN towns ON visits.person = towns.name",
    "SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM tests)",
    "SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM tests AS t WHERE t.ward = visits.ward)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT person, ward FROM visits EXCEPT SELECT person, ward FROM tests) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT person, cost FROM visits ORDER BY cost LIMIT 3) AS t",
    "SELECT COUNT(*) AS n FROM visits NATURAL JOIN flat",
    "SELECT SUM(DISTINCT cost) AS n FROM visits",
    "SELECT cost, RANK() OVER (ORDER BY cost) AS r FROM visits GROUP BY cost",
    "SELECT ANY_VALUE(note) AS n FROM visits",
    "SELECT STRING_AGG(note, ',') AS n FROM visits",
    "SELECT street, COUNT(*) AS n FROM (SELECT street FROM flat UNION ALL SELECT street FROM flat) AS t GROUP BY street",
]


@pytest.fixture(scope="module")
def apart() -> Iterator[tuple[cl.Session, cl.Session]]:
    """One pair of worlds for the questions that reach for other persons' rows."""
    with neighbours(world(3), BUDGETS[1]) as pair:
        yield pair


@pytest.mark.parametrize("sql", REACHING)
def test_what_would_let_one_person_move_another_ones_rows_is_refused_in_both_worlds(
    sql: str, apart: tuple[cl.Session, cl.Session]
) -> None:
    assert isinstance(tried(sql, *apart, BUDGETS[1]), str)


def test_a_table_through_a_key_is_reached_through_that_key_alone() -> None:
    """Fifty persons refer to another one's visit: its one row of `drugs` would count fifty times, with one row a person.

    In SQL and without it: whoever writes relations by hand is an analyst, too."""
    declared: dict[str, Any] = {"population": "all", "version": "1"}
    visits = cl.PrivateTable(
        {"person": ["a"], "visit": [5]}, columns={"visit": Identifier()}, unit="person", max_rows=1, **declared
    )
    tests = cl.PrivateTable(
        {"person": [f"b{n}" for n in range(50)], "ref": [5] * 50},
        columns={"ref": Identifier()},
        unit="person",
        max_rows=1,
        **declared,
    )
    drugs = cl.PrivateTable(
        {"visit": [5], "dose": [1]},
        columns={"dose": cl.Integer(0, 9)},
        unit="visit",
        max_rows=1,
        through="visits.visit",
        **declared,
    )
    tables = {"visits": visits, "tests": tests, "drugs": drugs}
    left, right = Base(name="drugs", table=drugs), Base(name="tests", table=tests)
    with pytest.raises(cl.CloisterError):
        KeyJoined(left=left, right=right, left_key="visit", right_key="ref")
    with cl.Session(tables, budget=cl.PureDP(10**6)) as session, pytest.raises(cl.CloisterError):
        session.sql("SELECT COUNT(*) AS n FROM tests JOIN drugs ON drugs.visit = tests.ref", spend=1)


ODD_BUT_SOUND = [
    "SELECT COUNT(*) AS n FROM drugs",
    "SELECT drug, SUM(dose) AS n FROM drugs GROUP BY drug",
    "SELECT COUNT(*) AS n FROM drugs AS a JOIN drugs AS b ON a.visit = b.visit",
    "SELECT COUNT(*) AS n FROM drugs AS d RIGHT JOIN visits AS v ON d.visit = v.visit",
    "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN drugs AS d ON d.visit = v.visit WHERE d.dose IS NULL",
    "SELECT AVG(s) AS n FROM (SELECT v.person, SUM(d.dose) AS s FROM visits AS v JOIN drugs AS d ON d.visit = v.visit"
    " GROUP BY v.person) AS t",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, ward FROM visits) AS t",
    "SELECT COUNT(DISTINCT note) AS n, COUNT(DISTINCT visit) AS v FROM visits",
    "SELECT ward, COUNT(DISTINCT note) AS n, COUNT(DISTINCT cost) AS v FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n FROM visits JOIN (SELECT person, COUNT(*) AS c FROM visits GROUP BY person) AS t USING (person)",
    "SELECT COUNT(*) AS n FROM visits JOIN towns ON visits.note = towns.name",
    "SELECT note, ward, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY note, ward",
]


@pytest.mark.parametrize("seed", [3, 11, 17])
def test_odd_questions_that_are_answered_keep_to_their_bounds(seed: int) -> None:
    with neighbours(world(seed), BUDGETS[1]) as (left, right):
        for sql in ODD_BUT_SOUND:
            found = tried(sql, left, right, BUDGETS[1])
            assert isinstance(found, Loss), found
            assert not found.breaks, f"{sql}\n{found}"
