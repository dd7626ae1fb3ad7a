"""Holes that peers, clean rooms and papers admit, each tried on ours: `docs/explanation/attacks.md` has the list.

Every test here is named on that page, and every name on that page is a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Laplace, Random
from cloister.session.execution import answer, buying
from cloister.tables.engines import engine

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "attacks.md"
COLUMNS: dict[str, Any] = {
    "age": cl.Integer(0, 100),
    "pay": cl.Real(0, 100, step="0.25"),
    "sex": cl.Category(["F", "M"]),
    "note": cl.Text(),
}
COUNT = "SELECT COUNT(*) AS n FROM people"


def rows(**odd: Any) -> dict[str, list[Any]]:
    """Twenty people; one more with these values, where any are given."""
    found: dict[str, list[Any]] = {
        "age": list(range(20, 40)),
        "pay": [10.25] * 20,
        "sex": ["F", "M"] * 10,
        "note": ["ok"] * 20,
    }
    usual = {"age": 30, "pay": 10.25, "sex": "F", "note": "ok"}
    return {name: [*values, odd.get(name, usual[name])] if odd else values for name, values in found.items()}


def session(table: dict[str, list[Any]] | None = None, *, budget: Any = None, **how: Any) -> cl.Session:
    """A session over them."""
    people = cl.PrivateTable(table or rows(), columns=COLUMNS, **how)
    return cl.Session({"people": people}, budget=budget or cl.PureDP(10))


def failing(*_: Any) -> Any:
    """An engine that fails when it reads."""
    raise RuntimeError("row 17: age 34 of 'Ada' does not fit")


def test_a_failure_gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with session() as asked:
        with monkeypatch.context() as patch:
            patch.setattr(buying, "measured", failing)
            with pytest.raises(cl.CloisterError):
                asked.sql(COUNT, spend=1)
        assert asked.spent == cl.PureDP(1)
        asked.sql(COUNT, spend=1)  # the same question: under the charge that stands
        assert asked.spent == cl.PureDP(1)


def test_an_error_tells_nothing_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buying, "measured", failing)
    with session() as asked, pytest.raises(cl.CloisterError) as refused:
        asked.sql(COUNT, spend=1)
    assert not re.search(r"17|34|Ada|fit", str(refused.value))
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_another_name_has_no_budget_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n" + "30,F\n" * 20)
    columns = {"age": COLUMNS["age"], "sex": COLUMNS["sex"]}
    ledger = tmp_path / "budget.db"
    with cl.Session({"people": cl.PrivateTable(path, columns=columns)}, budget=cl.PureDP(1), ledger=ledger) as asked:
        asked.sql(COUNT, spend=1)
    again = cl.PrivateTable(path, columns=columns, population="a view of people")
    with pytest.raises(cl.CloisterError):
        cl.Session({"people_view": again}, budget=cl.PureDP(1), ledger=ledger)


def test_a_view_that_a_question_defines_spends_the_same_budget() -> None:
    with session(budget=cl.PureDP(1)) as asked:
        asked.sql("WITH v AS (SELECT * FROM people WHERE age > 25) SELECT COUNT(*) AS n FROM v", spend=1)
        with pytest.raises(cl.BudgetExceeded):
            asked.sql("SELECT COUNT(*) AS n FROM (SELECT * FROM people WHERE age > 30) AS v", spend="0.1")


def test_overflow_and_a_failed_cast_change_no_answers_shape() -> None:
    asked_for = (
        "SELECT sex, AVG(CLAMP(age / (age - 77), -5, 5)) AS a, SUM(CLAMP(POWER(pay, 9), 0, 10)) AS b,"
        " COUNT_IF(note LIKE '1%') AS c FROM people GROUP BY sex"
    )
    shapes = []
    for odd in ({}, {"age": 77, "pay": 1e308, "note": "1e400"}, {"age": 10**30, "pay": float("nan"), "note": "\x00"}):
        with session(rows(**odd)) as asked:
            found = asked.sql(asked_for, spend=1)
            shapes.append((str(found.to_arrow().schema), found["sex"].tolist(), found.num_rows))
    assert shapes[0] == shapes[1] == shapes[2]


def test_the_limit_of_time_follows_from_public_facts() -> None:
    """Seconds can still be measured: `channels.md` says how little they tell, and what remains."""
    limits = []
    for count in (1, 5_000):
        crowd = {name: values * count for name, values in rows().items()}
        with session(crowd, size=1000) as asked:
            limits.append(asked.explain(COUNT, spend=1).time_limit)
    assert limits[0] == limits[1]


def test_rewriting_a_question_averages_nothing_for_free() -> None:
    """The same plan comes from the ledger; another plan is charged, and the budget ends the averaging."""
    with session(budget=cl.PureDP(1)) as asked:
        first = asked.sql(COUNT, spend="0.1")["n"]
        for same in ("select count(*) as n from people", "SELECT COUNT(1) AS n FROM people AS p"):
            assert asked.sql(same, spend="0.1")["n"] == first
        assert asked.spent == cl.PureDP("0.1")
        answered = 1

        def again() -> None:
            nonlocal answered
            for number in range(1000):
                asked.sql(f"{COUNT} WHERE age > -{number + 1}", spend="0.1")
                answered += 1

        with pytest.raises(cl.BudgetExceeded):
            again()
        assert answered == 10
        assert asked.spent == cl.PureDP(1)


def test_rows_of_two_providers_are_not_joined() -> None:
    """Neither one's cap bounds what a person of the other one adds."""
    declared = {"unit": "who", "max_rows": 1}
    mine, other = (
        cl.PrivateTable({"who": ["a"], "age": [30]}, columns={"age": COLUMNS["age"]}, population=name, **declared)
        for name in ("mine", "theirs")
    )
    with (
        cl.Session({"mine": mine, "theirs": other}, budget=cl.PureDP(1)) as asked,
        pytest.raises(cl.CloisterError, match="population"),
    ):
        asked.sql("SELECT COUNT(*) AS n FROM mine JOIN theirs ON mine.who = theirs.who", spend=1)


def test_the_size_of_an_answer_is_the_plans() -> None:
    """An answer has the groups that are declared, with rows in them or not."""
    sizes = []
    for table in (rows(), {name: [] for name in COLUMNS}):
        with session(table) as asked:
            sizes.append(asked.sql("SELECT sex, age, COUNT(*) AS n FROM people GROUP BY sex, age", spend=1).num_rows)
    assert sizes == [2 * 101] * 2


def test_laplace_noise_has_one_grid_whatever_the_value() -> None:
    """Textbook floating-point noise reaches other doubles from 0 than from 0.1 (Mironov 2012); ours falls on one public grid."""
    noise = Laplace(scale=1, sensitivity=1)
    grids = []
    for value in (0, 0.1):
        draw = Random.deterministic(3)
        found = [noise.release(value, random=draw) for _ in range(200)]
        grids.append({Fraction(each) / noise.step % 1 for each in found})
    assert grids == [{0}, {0}]


def test_a_sum_of_reals_is_an_integer_before_noise() -> None:
    """No rounding of a float sum, and so no row whose weight rounds differently when another one is there."""
    orders = []
    for turn in (1, -1):
        crowd = rows(pay=0.3)
        crowd = {name: values[::turn] for name, values in crowd.items()}
        seen: list[Any] = []
        with pytest.MonkeyPatch.context() as patch, session(crowd) as asked:
            patch.setattr(engine, "exact_integers", _looking(seen, engine.exact_integers))
            asked.sql("SELECT SUM(pay) AS s FROM people", spend=1)
        orders.append(seen)
    assert orders[0] == orders[1]
    assert all(isinstance(number, int) for number in orders[0])


def _looking(seen: list[Any], exact_integers: Callable[..., Any]) -> Callable[..., Any]:
    def looked(*asked: Any) -> Any:
        exact = exact_integers(*asked)
        for values in exact.values():
            assert np.asarray(values).dtype.kind in "iuO"
            seen.extend(int(each) for each in np.ravel(values).tolist())
        return exact

    return looked


def test_a_bound_is_never_looked_up() -> None:
    people = cl.PrivateTable({"age": [30, 40], "sex": ["F", "M"]}, columns={"sex": COLUMNS["sex"]})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as asked:
        with pytest.raises(cl.CloisterError, match="age"):
            asked.sql("SELECT AVG(age) AS a FROM people", spend=1)
        assert asked.spent == cl.PureDP(0)


def test_the_debit_stands_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    with session() as asked:
        inner = answer.measured

        def looked(*how: Any) -> Any:
            found.append(asked.ledger.spent("people"))
            return inner(*how)

        monkeypatch.setattr(buying, "measured", looked)
        asked.sql(COUNT, spend="0.5")
    assert found == [cl.PureDP("0.5")]


def test_the_page_names_these_tests_and_no_others() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = {name for name in globals() if name.startswith("test_")} - {"test_the_page_names_these_tests_and_no_others"}
    assert named == here
