"""Marginal tables: unbiased, with margins that cover; consistent ones agree, sum up and err less; bad input."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from cloister.errors import InvalidParameter
from cloister.local import Marginals, MarginalTables
from cloister.noise import Random
from tests.tiers import by_day_and_night

DOMAINS = {"a": range(3), "b": range(4), "c": range(5)}
N = 20_000


def table() -> dict[str, npt.NDArray[np.int64]]:
    """b follows a, c is 0 where a is 0."""
    number = np.arange(N)
    a = number % 3
    return {"a": a, "b": (a + number // 3 % 2) % 4, "c": number // 7 % 5 * (a > 0)}


def truth(*names: str) -> npt.NDArray[np.int64]:
    counts = np.zeros([len(DOMAINS[name]) for name in names], dtype=np.int64)
    np.add.at(counts, tuple(table()[name] for name in names), 1)
    return counts


def estimated(seed: int, epsilon: str = "2") -> MarginalTables:
    marginals = Marginals(DOMAINS, epsilon)
    return marginals.estimate(marginals.aggregate(marginals.randomize(table(), random=Random.deterministic(seed))))


@by_day_and_night("surveys", 100, 300)
def test_tables_are_unbiased_and_margins_cover(surveys: int) -> None:
    """Each mean within 5.5 deviations; 95 % margins cover 47 cells of tables in each survey, to 6.5 deviations."""
    found = [estimated(seed) for seed in range(surveys)]
    covered = []
    for names in (("a", "b"), ("a", "c"), ("b", "c")):
        errors = np.array([each.tables[names] - truth(*names) for each in found])
        deviations = np.sqrt(np.mean([each.variances[names] for each in found], axis=0))
        assert (abs(errors.mean(axis=0)) < 5.5 * deviations / len(found) ** 0.5).all()
        covered += [abs(error) < each.margin(*names) for error, each in zip(errors, found, strict=True)]
    assert np.mean(np.concatenate([each.ravel() for each in covered])) == pytest.approx(
        0.95, abs=6.5 * (0.95 * 0.05 / (47 * surveys)) ** 0.5
    )


def test_consistent_tables_agree_sum_up_and_err_less() -> None:
    raw_squares, squares = 0.0, 0.0
    for seed in range(20):
        raw = estimated(seed, "1")
        sound = raw.consistent()
        for names, counts in sound.tables.items():
            assert counts.min() >= 0
            assert counts.sum() == pytest.approx(N)
            raw_squares += float(((raw.tables[names] - truth(*names)) ** 2).sum())
            squares += float(((counts - truth(*names)) ** 2).sum())
        for name in DOMAINS:
            tables = [counts.sum(axis=1 - names.index(name)) for names, counts in sound.tables.items() if name in names]
            assert abs(tables[0] - tables[1]).max() < 1e-3 * N
            assert abs(raw.tables["a", "b"].sum(axis=1) - raw.tables["a", "c"].sum(axis=1)).max() > 1
    assert squares < 0.7 * raw_squares


def test_three_ways_share_pairs() -> None:
    domains = {name: range(2) for name in "wxyz"}
    number = np.arange(N)
    values = {"w": number % 2, "x": number % 2, "y": number // 2 % 2, "z": number // 4 % 2}
    marginals = Marginals(domains, 2, ways=3)
    assert len(marginals.sets) == 4
    sound = marginals.estimate(marginals.aggregate(marginals.randomize(values, random=Random.deterministic(2)))).consistent()
    pairs = [
        counts.sum(axis=names.index(({"x", "y"} ^ set(names)).pop()))
        for names, counts in sound.tables.items()
        if {"x", "y"} < set(names)
    ]
    assert len(pairs) == 2
    assert pairs[0] == pytest.approx(pairs[1], abs=1e-3 * N)
    assert sound.of("w", "x") == pytest.approx(np.array([[N / 2, 0], [0, N / 2]]), abs=0.03 * N)
    assert (sound.of("x", "w") == sound.of("w", "x").T).all()
    assert sound.of("y").shape == (2,)


def test_tables_may_be_named() -> None:
    marginals = Marginals(DOMAINS, 1, sets=[("c", "a"), ("b",)])
    sketches = marginals.aggregate(marginals.randomize(table(), random=Random.deterministic(1)))
    doubled = marginals.estimate({names: sketch + sketch for names, sketch in sketches.items()})
    assert doubled.n == 2 * N
    assert doubled.tables["c", "a"].shape == (5, 3)
    assert doubled.consistent().of("a", "c").sum() == pytest.approx(2 * N)


def test_bad_input_is_refused_with_its_own_message() -> None:
    found = estimated(1)
    with pytest.raises(InvalidParameter, match="no table that was asked for"):
        found.of("a", "b", "c")
    with pytest.raises(InvalidParameter, match="was not asked for"):
        found.margin("b", "a")
    for ways in (0, 4, True):
        with pytest.raises(InvalidParameter, match="there are 3 attributes"):
            Marginals(DOMAINS, 1, ways=ways)
    for sets in ([], [("a", "d")], [("a", "a")], [("a", "b"), ("b", "a")], [()]):
        with pytest.raises(InvalidParameter, match="different sets of the attributes"):
            Marginals(DOMAINS, 1, sets=sets)
    with pytest.raises(InvalidParameter, match="more than 2²⁶ cells"):
        Marginals({"x": range(10_000), "y": range(10_000)}, 1)
