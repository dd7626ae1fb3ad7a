"""How many different values there are: exact where noise is nothing, and no unit moves it by more than its block says."""

from __future__ import annotations

import itertools

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Distinct, Door, Question
from cloister.session.planning.blocks import distinct_block

ROWS = {
    "who": [f"p{number % 30}" for number in range(90)],
    "ward": [["a", "b", None][number % 3] for number in range(90)],
    "cost": [number % 17 for number in range(90)],
    "town": [f"t{number % 5}" for number in range(90)],
}


def table(rows: dict[str, list[object]]) -> cl.PrivateTable:
    return cl.PrivateTable(
        rows,
        columns={"ward": cl.Category(["a", "b", "c"]), "cost": cl.Integer(0, 40), "town": cl.Text()},
        unit="who",
        max_rows=3,
    )


def found(rows: dict[str, list[object]], by: tuple[str, ...], column: str) -> list[int]:
    with Door({"t": table(rows)}, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as door:
        question = Question(table="t", by=by, statistics=(Distinct(column=column),))
        return [int(value) for value in door.measure(question, spend=10**7)[f"distinct_{column}"]]


@pytest.mark.parametrize(("column", "expected"), [("ward", 2), ("cost", 17), ("town", 5)])
def test_the_number_of_values(column: str, expected: int) -> None:
    assert found(ROWS, (), column) == [expected]  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["ward", "cost", "town"])
@pytest.mark.parametrize("by", [(), ("ward",)])
def test_no_unit_moves_it_further_than_the_block_says(by: tuple[str, ...], column: str) -> None:
    whole = found(ROWS, by, column)  # type: ignore[arg-type]
    declared = table(ROWS).columns[column].size  # type: ignore[arg-type]
    block = distinct_block(column, 3, declared, 4 if by else 1)
    for person in ("p0", "p1", "p29"):
        rest = {name: [v for v, who in zip(values, ROWS["who"], strict=True) if who != person] for name, values in ROWS.items()}
        moved = [abs(one - other) for one, other in zip(whole, found(rest, by, column), strict=True)]  # type: ignore[arg-type]
        assert sum(moved) <= block.l1
        assert sum(part**2 for part in moved) <= block.l2_squared


@pytest.mark.parametrize(("rows", "values", "groups"), itertools.product([1, 2, 5], [1, 2, 3, None], [1, 2, 4, None]))
def test_the_worst_unit_stays_within_the_norms(rows: int, values: int | None, groups: int | None) -> None:
    """A unit's rows spread over groups in every way: in each at most as many new values as rows there, and as values."""
    block = distinct_block("x", rows, values, groups)
    for spread in itertools.product(range(rows + 1), repeat=min(groups or rows, 4)):
        if sum(spread) <= rows:
            moved = [min(part, values or part) for part in spread]
            assert sum(moved) <= block.l1
            assert sum(part**2 for part in moved) <= block.l2_squared


def test_numbers_of_values_do_not_add_up_over_groups() -> None:
    with Door({"t": table(ROWS)}, budget=cl.PureDP(100), random=Random.deterministic(1)) as door:  # type: ignore[arg-type]
        door.measure(Question(table="t", by=("ward",), statistics=(Distinct(column="cost"),)), spend=1)
        before = door.spent
        door.measure(Question(table="t", statistics=(Distinct(column="cost"),)), spend=1)
        assert door.spent != before


def test_in_sql() -> None:
    with cl.Session({"t": table(ROWS)}, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as session:  # type: ignore[arg-type]
        answer = session.sql("SELECT COUNT(DISTINCT cost) AS c, COUNT(DISTINCT who) AS p FROM t WHERE cost < 5", spend=10**7)
        assert (answer["c"][0], answer["p"][0]) == (
            5,
            len({who for who, cost in zip(ROWS["who"], ROWS["cost"], strict=True) if cost < 5}),
        )
