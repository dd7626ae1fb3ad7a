"""Typical intervals cover what they claim: 93 % of the cells of tables of three columns, in each class of model counts, on tables
that the factor was not chosen on."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Question

CLASSES = ((0, 1), (1, 10), (10, 100), (100, np.inf))


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


def wine() -> dict[str, np.ndarray]:
    """178 wines, six columns in five bins each, and the kind."""
    data = pytest.importorskip("sklearn.datasets").load_wine()
    spans = [(column - column.min()) / (np.ptp(column) + 1e-9) for column in data.data.T[:6]]
    return {f"c{place}": (5 * span).astype(int) for place, span in enumerate(spans)} | {"kind": data.target}


TABLES: dict[str, tuple[Any, str, str]] = {
    "made up, ε = 1": (lambda: made_up(1, 10_000), "1", "1e-6"),
    "made up, pure ε = 1": (lambda: made_up(2, 10_000), "1", "0"),
    "made up, ε = 5": (lambda: made_up(3, 10_000), "5", "1e-6"),
    "wine, ε = 5": (wine, "5", "1e-6"),
}


@pytest.mark.parametrize("name", [next(iter(TABLES)), *(pytest.param(name, marks=pytest.mark.slow) for name in list(TABLES)[1:])])
def test_typical_intervals_cover_most_cells_of_each_class(name: str) -> None:
    make, epsilon, delta = TABLES[name]
    rows = make()
    declared = {column: cl.Integer(0, int(values.max())) for column, values in rows.items()}
    model = cl.synth.fit_frame(rows, declared, epsilon=epsilon, delta=delta, method="pairs", random=Random.deterministic(4))
    found: list[tuple[np.ndarray, ...]] = []
    for triple in combinations(rows, 3):
        answer = model.answer(Question(table="frame", by=triple, statistics=(Count(),)))
        sizes = [int(rows[column].max()) + 1 for column in triple]
        exact = np.bincount(np.ravel_multi_index([rows[column] for column in triple], sizes), minlength=int(np.prod(sizes)))
        assert (
            list(zip(*(answer.keys[column].tolist() for column in triple), strict=True))[:3]
            == list(product(*(range(size) for size in sizes)))[:3]
        )
        one = answer.statistics["count"]
        off, width = np.abs(one.value - exact), (one.high - one.low) / 2
        found.append(((one.low <= exact) & (exact <= one.high), one.value, one.kind == "typical", off, width))
    inside, value, typical, off, width = (np.concatenate(part) for part in zip(*found, strict=True))
    assert typical.mean() > 0.5
    for low, high in CLASSES:
        these = typical & (value >= low) & (value < high)
        if these.sum() >= 100:
            assert inside[these].mean() >= 0.93, (low, high)
            assert np.median(width[these]) <= 3 * np.sqrt(np.mean(off[these] ** 2)) + 1, (low, high)  # the row that is added
    assert inside[~typical].mean() >= 0.95  # what is sure


def test_nothing_is_typical_where_it_is_not_claimed() -> None:
    rows = made_up(5, 3_000)
    declared = {column: cl.Integer(0, int(values.max())) for column, values in rows.items()}
    model = cl.synth.fit_frame(rows, declared, epsilon=1, method="pairs", random=Random.deterministic(4))
    for question, confidence in (
        ("SELECT a, b, c, d, COUNT(*) AS n FROM frame GROUP BY a, b, c, d", 0.95),
        ("SELECT a, b, c, COUNT(*) AS n FROM frame GROUP BY a, b, c", 0.9),
    ):
        assert "typical" not in set(model.answer(question, confidence=confidence).kind()["n"])
    faint = cl.synth.fit_frame(rows, declared, epsilon="0.05", method="pairs", random=Random.deterministic(4))
    answer = faint.answer("SELECT a, b, c, COUNT(*) AS n FROM frame GROUP BY a, b, c")
    assert set(answer.kind()["n"]) <= {"sure", "not known"}
