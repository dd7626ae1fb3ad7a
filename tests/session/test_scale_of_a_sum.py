"""The noise of a sum is as wide as all rows of one person may move it."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.session import Door, Question, Sum


@pytest.mark.parametrize("most", [1, 5])
def test_a_sum_hides_every_row_of_a_person(most: int) -> None:
    """A person has up to `most` rows, and each moves the sum by at most 9: discrete Laplace noise of scale 9 · most / ε."""
    visits = cl.PrivateTable({"who": [1], "cost": [3]}, {"cost": cl.Integer(0, 9)}, unit="who", max_rows=most)
    with Door({"visits": visits}, budget=cl.PureDP(1)) as door:
        [part] = door.explain(Question(table="visits", statistics=(Sum(column="cost"),)), "0.5").parts
    [noise] = part.noises.values()
    assert (noise.scale, noise.guarantee) == (9 * most / cl.PureDP("0.5").epsilon, cl.PureDP("0.5"))
