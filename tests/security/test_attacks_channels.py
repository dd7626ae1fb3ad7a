"""What can be told without the values: refusals, costs, and the number and kind of rows of an answer follow from public facts
and the ledger alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random
from tests.security.naive import Naive
from tests.security.questions import SOURCES, question
from tests.security.worlds import COLUMNS, World, world

SPENDS = ["0.01", "0.2", "0.5", 1, 3]


def described(session: cl.Session, sql: str, how: str, spend: Any) -> list[Any]:
    """Everything that is not a released value: the shape of the answer or the whole refusal, and the ledger's state after it."""
    said: list[Any] = []
    try:
        if how == "explain":
            said.append(str(session.explain(sql, spend=spend)))
        elif how == "afford":
            said.append(str(session.afford(sql)))
        else:
            options = {"within": 40.0} if how == "within" else {"spend": spend, "rehearse": how == "rehearse"}
            answer = session.sql(sql, **options)
            kinds = [(name, str(answer[name].dtype)) for name in answer.statistics()]
            said += [answer.column_names, kinds, str(answer.cost), answer.provenance.mechanism, answer.provenance.repeated]
            if answer.threshold is None:
                keys = [name for name in answer.column_names if name not in answer.statistics()]
                said += [answer.num_rows, [answer[name].tolist() for name in keys]]
            else:
                said.append(answer.threshold)
    except cl.CloisterError as refusal:
        said.append(f"{type(refusal).__name__} {refusal}")
    return [*said, str(session.spent), str(session.remaining), [charge.state for charge in session.ledger.charges("all")]]


def conversation(pair: World, seed: int, number: int) -> list[list[Any]]:
    """One analyst's questions, one after another, until long after the budget is gone."""
    draw = random.Random(seed)
    budget: Any = draw.choice([cl.ApproxDP(12, "1e-4"), cl.ZCDP(5, delta="1e-4"), cl.PureDP(12)])
    said = []
    with cl.Session(pair.tables(), budget=budget, random=Random.deterministic(seed), who="ada") as session:
        for place in range(number):
            sql = question(draw, SOURCES[(seed + place) % len(SOURCES)])
            how = draw.choice(["ask"] * 24 + ["explain"] * 8 + ["within"] * 6 + ["rehearse", "afford"])
            said.append([sql, how, *described(session, sql, how, draw.choice(SPENDS))])
    return said


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_refusals_costs_and_shapes_are_the_same_in_two_worlds(seed: int) -> None:
    """Forty questions, and sixteen hundred in a night, in a world with and without one odd person: word for word the same."""
    pair = world(seed)
    with_ghost, without = (conversation(each, seed, 40) for each in (pair, pair.without()))
    for one, other in zip(with_ghost, without, strict=True):
        assert one == other
    text = str(with_ghost)
    assert "BudgetExceeded" in text or "spent" in text


def test_a_naive_budget_that_refunds_what_fails_tells_of_a_person() -> None:
    """The channel is real: a service that gives the money back when its engine fails says by its balance that it did."""
    balances = []
    for rows in ({"x": ["1", "2"]}, {"x": ["1", "2", "three"]}):
        with Naive({"t": rows}, scale=1) as naive:
            balance = 1.0 - 0.1
            try:
                naive.number("SELECT SUM(CAST(x AS INTEGER)) FROM t")
            except Exception:
                balance += 0.1
            balances.append(balance)
    assert balances[0] != balances[1]

    spent = []
    for rows in ({"x": ["1", "2"]}, {"x": ["1", "2", "three"]}):
        table = cl.PrivateTable(rows, columns={"x": cl.Category(["1", "2", "three"])}, version="1")
        with cl.Session({"t": table}, budget=cl.PureDP(1)) as session:
            session.sql("SELECT SUM(CLAMP(CAST(x AS INTEGER), 0, 9)) AS s FROM t", spend="0.1")
            spent.append(session.spent)
    assert spent == [cl.PureDP("0.1")] * 2


EMPTY = World(rows={name: [] for name in COLUMNS}, ghost=None)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex, town, COUNT(*) AS n FROM flat GROUP BY sex, town",
        "SELECT sex, town, COUNT(*) AS n FROM flat GROUP BY ROLLUP (sex, town)",
        "SELECT FLOOR(age / 10) AS d, AVG(pay) AS a, MEDIAN(pay) AS m FROM flat WHERE age BETWEEN 20 AND 50 GROUP BY d",
        "SELECT v.ward, sex, COUNT(*) AS n FROM persons AS p JOIN visits AS v ON p.person = v.person GROUP BY v.ward, sex",
        "SELECT v.ward, drug, SUM(dose) AS n FROM visits AS v JOIN drugs AS d ON d.visit = v.visit GROUP BY v.ward, drug",
        "SELECT doctor, COUNT(*) AS n FROM visits AS v JOIN doctors AS d ON v.ward = d.ward GROUP BY doctor",
        "SELECT n, COUNT(*) AS persons FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) AS t GROUP BY n",
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m",
        "SELECT sex FROM flat GROUP BY sex",
        "SELECT sex, MIN(age) AS a, MAX(born) AS b, MODE(town) AS c FROM flat GROUP BY sex",
    ],
)
def test_declared_keys_give_the_same_rows_for_no_person_at_all_and_for_many(sql: str) -> None:
    shapes = []
    for rows in (EMPTY, world(2), world(5)):
        with cl.Session(rows.tables(), budget=cl.PureDP(1)) as session:
            answer = session.sql(sql, spend=1)
            keys = [name for name in answer.column_names if name not in answer.statistics()]
            shapes.append((answer.num_rows, answer.column_names, [answer[name].tolist() for name in keys]))
    assert shapes[0] == shapes[1] == shapes[2]
    with Naive({"flat": {"sex": ["F"], "age": [1]}}, scale=None) as naive:
        assert len(naive.rows("SELECT sex, COUNT(*) FROM flat GROUP BY sex")) == 1  # plain SQL shows the groups that occur


def test_having_order_and_limit_act_on_the_release_and_cost_nothing_more() -> None:
    """The groups that HAVING shows are those whose released value passes; empty groups among them, and no charge for asking."""
    whole = "SELECT age, COUNT(*) AS n FROM flat GROUP BY age"
    with cl.Session(EMPTY.tables(), budget=cl.PureDP(1), random=Random.deterministic(4)) as session:
        released = list(session.sql(whole, spend="0.5"))
        for condition in ("n > 0", "n > 3", "n BETWEEN -2 AND 2", "n < -1000"):
            chosen = session.sql(f"SELECT age, COUNT(*) AS n FROM flat GROUP BY age HAVING {condition}", spend="0.5")
            low, high = {"n > 0": (1, 99), "n > 3": (4, 99), "n BETWEEN -2 AND 2": (-2, 2), "n < -1000": (-(10**9), -1001)}[
                condition
            ]
            assert list(chosen) == [row for row in released if low <= row[1] <= high]
        assert session.sql("SELECT age, COUNT(*) AS n FROM flat GROUP BY age HAVING COUNT(*) > 0", spend="0.5").num_rows > 5
        top = session.sql(f"{whole} ORDER BY n DESC LIMIT 3", spend="0.5")
        assert [row[1] for row in top] == sorted((row[1] for row in released), reverse=True)[:3]
        assert session.spent == cl.PureDP("0.5")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
        "SELECT note, sex, COUNT(*) AS n FROM persons AS p JOIN visits AS v ON p.person = v.person GROUP BY note, sex",
        "SELECT note, COUNT(*) AS n FROM (SELECT person, note, COUNT(*) AS c FROM visits GROUP BY person, note) AS t"
        " GROUP BY note",
        "SELECT note, COUNT(*) AS n FROM (SELECT person, note FROM visits UNION ALL SELECT person, note FROM visits) AS t"
        " GROUP BY note",
    ],
)
def test_a_key_that_one_person_brings_is_not_shown_however_it_is_reached(sql: str) -> None:
    """Thirty persons wrote `ok`, one wrote a name in three rows. At δ = 1e-9 it is shown once in 10⁹ runs."""
    rows = World(rows={**EMPTY.rows}, ghost=None)
    rows.rows["persons"] = [{"person": n, "age": 20, "sex": "F", "town": "Delft", "born": "1980-01-01"} for n in range(31)]
    rows.rows["visits"] = [
        {"person": n, "visit": n, "ward": "eyes", "cost": 3, "day": "2024-01-01", "note": "Mr Jones" if n == 30 else "ok"}
        for n in [*range(31), 30, 30]
    ]
    with cl.Session(rows.tables(), budget=cl.ApproxDP(1000, "1e-9"), random=Random.deterministic(6)) as session:
        assert set(session.sql(sql, spend=cl.ApproxDP(50, "1e-9"))["note"].tolist()) == {"ok"}
    with Naive({"visits": {"note": [row["note"] for row in rows.rows["visits"]]}}, scale=1) as naive:
        assert ("Mr Jones",) in naive.rows("SELECT note FROM visits GROUP BY note HAVING COUNT(*) >= 3")
