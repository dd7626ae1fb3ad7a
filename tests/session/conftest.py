"""Small private tables that the tests of the door share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Door

ROWS = {
    "age": [20, 30, 40, 50, None, 200] * 50,
    "sex": ["F", "M", "F", "M", "F", "other"] * 50,
    "pay": [10.5, 20.25, float("nan"), 40.0, 5000.0, -3.0] * 50,
    "town": ["Delft", "Delft", "Leiden", "Delft", "Leiden", "Delft"] * 50,
}
COLUMNS = {
    "age": cl.Integer(17, 90),
    "sex": cl.Category(["F", "M"]),
    "pay": cl.Real(0, 100, step="0.25"),
    "town": cl.Text(),
}


@pytest.fixture
def people() -> cl.PrivateTable:
    """One row a person, with values missing, out of bounds and not listed."""
    return cl.PrivateTable(ROWS, columns=COLUMNS)


@pytest.fixture
def visits() -> cl.PrivateTable:
    """Person k has k visits, of which at most 3 count."""
    who = [f"p{k}" for k in range(40) for _ in range(k % 6)]
    return cl.PrivateTable(
        {"who": who, "ward": [["a", "b", "c"][n % 3] for n in range(len(who))], "cost": [n % 11 for n in range(len(who))]},
        columns={"ward": cl.Category(["a", "b", "c"]), "cost": cl.Integer(0, 10)},
        unit="who",
        max_rows=3,
    )


@pytest.fixture
def door(people: cl.PrivateTable) -> Iterator[Door]:
    """A door with a budget of ε = 10 and foretold noise."""
    with Door({"people": people}, budget=cl.PureDP(10), random=Random.deterministic(1)) as opened:
        yield opened
