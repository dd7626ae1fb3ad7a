"""Published ways to make rows that promise more than they keep, as broken twins that are caught: microaggregation with Gaussians,
and plausible deniability.

The theorem of plausible deniability is checked with exact probabilities; its page has the proof.
"""

from __future__ import annotations

from math import exp, floor, log
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random

Rows = Any


def clusters(values: Any, k: int) -> list[Any]:
    """MDAV of one feature (Domingo-Ferrer & Mateo-Sanz 2002): the k nearest to the farthest from the mean, while 2k are left."""
    left, found = np.argsort(values, kind="stable"), []
    while len(left) >= 2 * k:
        centre = values[left].mean()
        farthest = values[left[np.argmax(np.abs(values[left] - centre))]]
        nearest = np.argsort(np.abs(values[left] - farthest), kind="stable")[:k]
        found.append(left[nearest])
        left = np.delete(left, nearest)
    return [*found, left]


def published(data: Rows, n: int, random: Random, *, k: int, epsilon: float) -> Any:
    """BROKEN ON PURPOSE: microaggregation as published. Records are grouped by looking at them, sizes are exact, and each set of
    features takes all of ε: of the means Laplace noise of 2d/(N·0.4ε), here with d = 1."""
    rows, columns = np.array(data, dtype=float), [np.zeros(n)]
    for feature in rows.T:
        groups = clusters(feature, k)
        columns[0] += len(groups)
        for group in groups[:1]:
            noise = np.array([-log(1 - each) for each in random.uniform(2 * n)]).reshape(2, n)
            scale = 2 / (len(group) * 0.4 * epsilon)
            columns += [np.full(n, float(len(group))), feature[group].mean() + (noise[0] - noise[1]) * scale]
    return np.column_stack(columns)


def found(way: Any, more: Rows, less: Rows, features: Any, runs: int) -> Any:
    return audit(way, more, less, runs=runs, features=features, random=Random.deterministic(71))


@pytest.mark.parametrize(("column", "what"), [(0, "how many groups"), (1, "how large they are")])
def test_groups_that_are_found_by_looking_and_counted_exactly_are_caught(column: int, what: str) -> None:
    """Three rows are one group of two or more, four are two: seen in every run, whatever ε is."""
    way = lambda data, n, random: published(data, n, random, k=2, epsilon=0.1)  # noqa: E731
    one = found(way, [(-1.0,), (-1.0,), (1.0,), (1.0,)], [(-1.0,), (-1.0,), (1.0,)], {what: lambda told: told[:, column]}, 500)
    assert one.contradicts(cl.PureDP(2)), one


def test_sets_of_features_that_each_take_all_of_it_are_caught() -> None:
    """A row lies in each of ten sets: its means cost 0.4 ε ten times."""
    rows = [(-1.0,) * 10] * 100
    way = lambda data, n, random: published(data, n, random, k=200, epsilon=1)[:, 2::2]  # noqa: E731
    least = {"least mean": lambda told: told.min(axis=1)}
    one = found(way, [*rows, (1.0,) * 10], rows, least, 20_000)
    assert one.contradicts(cl.PureDP(1)), one
    alone = [row[:1] for row in rows]
    assert not found(way, [*alone, (1.0,)], alone, least, 20_000).contradicts(cl.PureDP(1))


K, GAMMA, NOISE, T = 8, 2.0, 1.0, 4


def passes(alike: int, noise: float | None) -> float:
    """The chance of the test where so many rows could have made the draw: with Laplace noise of scale 1/noise on it, or none."""
    away = K - alike
    if noise is None:
        return float(away <= 0)
    return 0.5 * exp(-noise * away) if away > 0 else 1 - 0.5 * exp(noise * away)


def drawn(rows: list[int], noise: float | None, *, tested: bool = True) -> list[float]:
    """The exact probability of each value to leave: a seed at random, a value by its row of chances, and the test."""
    chances = np.array([[0.98, 0.0199, 0.0001], [0.05, 0.9, 0.05], [0.002, 0.002, 0.996]])
    left = []
    for value in range(3):
        levels = [floor(-log(chances[row, value], GAMMA)) for row in rows]
        told = [passes(levels.count(level), noise) if tested else 1.0 for level in levels]
        left.append(sum(chances[row, value] * each for row, each in zip(rows, told, strict=True)) / len(rows))
    return left


def beyond(epsilon: float, more: list[float], less: list[float]) -> float:
    """The least δ that these two worlds need beside ε, both ways."""
    return max(sum(max(a - exp(epsilon) * b, 0.0) for a, b in zip(*pair, strict=True)) for pair in ((more, less), (less, more)))


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("rows", [[0] * 20, [0] * 20 + [1] * 7, [0] * 20 + [1] * 3 + [2] * 3, [0, 1, 2], [1] * 7])
def test_the_theorem_of_plausible_deniability_holds(rows: list[int], extra: int) -> None:
    for t in range(1, K):
        promised = NOISE + log(1 + GAMMA / t), exp(-NOISE * (K - t))
        assert beyond(promised[0], drawn([*rows, extra], NOISE), drawn(rows, NOISE)) <= promised[1] + 1e-12


def test_deniability_that_promises_more_is_caught() -> None:
    """The test without noise at its threshold promises nothing, though each draw has k rows that could have made it; and draws
    without a test show the one row that could."""
    epsilon, delta = NOISE + log(1 + GAMMA / T), exp(-NOISE * (K - T))
    rows = [1] * (K - 1)
    assert beyond(epsilon, drawn([*rows, 1], None), drawn(rows, None)) > 0.8 > delta
    assert beyond(epsilon, drawn([*[0] * 20, 2], NOISE, tested=False), drawn([0] * 20, NOISE, tested=False)) > 1e-3

    def way(data: list[int], n: int, random: Random) -> Any:
        """BROKEN ON PURPOSE: which values leave, of a test without noise."""
        ends = np.cumsum(drawn(list(data), None))
        return np.searchsorted(ends, random.uniform(n), side="right")[:, None]

    result = audit(way, [*rows, 1], rows, runs=2_000, random=Random.deterministic(72))
    assert result.contradicts(cl.PureDP(cl.privacy.exact(round(epsilon, 6)))), result


def test_a_draw_that_fails_must_leave_no_trace() -> None:
    """The theorem is about rows that leave: how often one was held back shows a stranger among rows that are all alike."""
    held = [1 - sum(drawn(rows, NOISE)) for rows in ([*[0] * 60, 2], [0] * 60)]
    assert held[1] < 1e-12
    assert held[0] > 0.01


def test_rows_that_are_made_again_until_a_test_passes_are_caught() -> None:
    """BROKEN ON PURPOSE: noise of ε = 0.1 each time, until the count is within two rows of the truth. Each try keeps its promise;
    the one that is kept is never three rows off, so a count of two less is never seen beside one more person."""

    def again(data: Rows, n: int, random: Random) -> Any:
        noise = cl.noise.DiscreteLaplace(scale=10, sensitivity=1).sample(30 * n, random=random)
        return len(data) + noise[np.abs(noise) <= 2][:n, None].astype(float)

    one = found(again, [(1.0,)] * 6, [(1.0,)] * 5, {"the count": lambda told: told[:, 0]}, 4_000)
    assert one.contradicts(cl.PureDP(1)), one
