"""One table with a column of every kind, some of its values missing, and a model of it without noise."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.synth import SyntheticModel

ROWS = 600
COLUMNS = {
    "age": cl.Integer(18, 40),
    "pay": cl.Real(0, 50_000, step="0.5", nullable=True),
    "sex": cl.Category(["F", "M"]),
    "ward": cl.Category([3, 5, 8], nullable=True),
    "born": cl.Date("1950-01-01", "1999-12-31", nullable=True),
    "smoker": cl.Boolean(nullable=True),
    "member": cl.Boolean(),
}


def rows() -> dict[str, list[Any]]:
    """Smokers have no pay; wards follow sex."""
    numbers = range(ROWS)
    return {
        "age": [18 + number * 7 % 23 for number in numbers],
        "pay": [None if number % 5 == 0 else 100.5 * (number * 31 % 400) for number in numbers],
        "sex": ["FM"[number % 3 == 0] for number in numbers],
        "ward": [None if number % 7 == 0 else (8 if number % 3 == 0 else 3) for number in numbers],
        "born": [
            None if number % 11 == 0 else datetime.date(1960, 1, 1) + datetime.timedelta(days=number * 13) for number in numbers
        ],
        "smoker": [None if number % 13 == 0 else number % 5 == 0 for number in numbers],
        "member": [number % 2 == 0 for number in numbers],
    }


def made_up(seed: int, n: int) -> dict[str, np.ndarray]:
    """Six columns that follow one another, with an interaction that pairs don't show whole, and a long tail."""
    random = Random.deterministic(seed)
    draws = random.words(10 * n).reshape(10, n) * 2.0**-64
    a = (6 * draws[0]).astype(int)
    b = np.where(draws[1] < 0.6, a % 4, (4 * draws[2]).astype(int))
    c = np.where(draws[3] < 0.5, (a + b) % 5, (5 * draws[4] ** 2).astype(int))
    d = np.where(draws[5] < 0.5, (b * c) % 3, (3 * draws[6]).astype(int))
    e = np.minimum((np.log1p(-draws[7]) / np.log(0.85)).astype(int) + 2 * d, 29)
    f = (draws[8] < 1 / (1 + np.exp(-(a - 2.5) - 0.3 * (c - 2) * (b - 1)))).astype(int)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}


@pytest.fixture(scope="session")
def people() -> cl.PrivateTable:
    return cl.PrivateTable(rows(), columns=COLUMNS)


@pytest.fixture(scope="session")
def sure(people: cl.PrivateTable) -> SyntheticModel:
    """A model for so much budget that hardly a count is off by more than one."""
    with cl.Session({"people": people}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        return cl.synth.fit(session, "people", spend=100, method="pairs")
