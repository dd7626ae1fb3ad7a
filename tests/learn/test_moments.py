"""Class counts, sums and sums of squares: exact, as far apart and as noisy as is said, and the same from rows and tables."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("sklearn")

from cloister.errors import InvalidParameter
from cloister.learn.bayesian.class_tables import from_table
from cloister.learn.bayesian.moments import BITS, class_moments, class_sums, noisy_class_moments, reach_squared
from cloister.learn.frame.bounds import box_of
from cloister.learn.frame.cube import CubeNoise
from cloister.learn.frame.encoding import Encoder
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ApproxDP, PureDP
from cloister.session import Door
from cloister.tables import Category, Integer, PrivateTable, Real

GENERATOR = np.random.default_rng(5)
BOX = box_of(([-3, 0, 5], [7, 1, 5]), features=3)


def rows(count: int) -> np.ndarray:
    """Random ones, and corners and middles of the box."""
    X = GENERATOR.uniform(BOX.low, BOX.high, (count, 3))
    X[::3] = np.where(GENERATOR.random((len(X[::3]), 3)) < 0.5, BOX.low, BOX.high)
    X[1::7] = BOX.middle
    return X


@pytest.mark.parametrize("pure", [True, False])
def test_one_row_moves_one_class_by_no_more_than_is_said(pure: bool) -> None:
    X, y = rows(300), GENERATOR.integers(0, 2, 300)
    whole = class_sums(X, y, 2, BOX, pure=pure)
    longest = 0
    for place in range(len(X)):
        rest = class_sums(np.delete(X, place, axis=0), np.delete(y, place), 2, BOX, pure=pure)
        change = whole - rest
        assert not change[1 - y[place]].any()
        assert np.abs(change).max() <= 2**BITS
        longest = max(longest, sum(int(step) ** 2 for step in change[y[place]]))
    assert pure or longest <= reach_squared(3)
    assert longest >= (1 if pure else Fraction(9, 10)) * 4**BITS


def test_the_length_that_is_said_is_reached() -> None:
    X = np.array([[7.0, 1.0, 5.0]])
    [change] = class_sums(X, np.array([0]), 1, box_of(([-3, 0, 4], [7, 1, 5]), features=3), pure=False)
    length = sum(int(step) ** 2 for step in change)
    assert reach_squared(3) - Fraction(length) < Fraction(length, 10**5)


def test_sums_are_exact_over_several_chunks() -> None:
    X, y = GENERATOR.uniform(-3, 7, (150_001, 1)), GENERATOR.integers(0, 3, 150_001)
    box = box_of((-3, 7), features=1)
    found = class_sums(X, y, 3, box, pure=True)
    steps = np.rint(box.centred(X[:, 0:1]) * 2**BITS).astype(object)
    for label in range(3):
        assert found[label, 0] == int((y == label).sum()) * 2**BITS
        assert found[label, 1] == int(steps[y == label].sum())


def test_the_law_of_the_cube() -> None:
    draws = 40_000
    noise = CubeNoise(dimension=2, reach=2, epsilon=1)
    found = noise.sample(draws, random=Random.deterministic(11))
    radii = np.abs(found).max(axis=1)
    cells = np.arange(40)
    shells = np.where(cells > 0, (2 * cells + 1) ** 2 - (2 * cells - 1) ** 2, 1)
    law = shells * np.exp(-cells / 2)
    law /= law.sum()
    expected = draws * np.append(law[:15], law[15:].sum())
    counted = np.bincount(np.minimum(radii, 15), minlength=16)
    statistic = float(((counted - expected) ** 2 / expected).sum())
    assert statistic < 60  # chi-square with 15 degrees exceeds it with probability 2e-7
    on_edge = found[radii == 3]
    assert abs((np.abs(on_edge[:, 0]) == 3).mean() - 14 / 24) < 5 * math.sqrt(0.25 / len(on_edge))


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_the_steps_of_the_cube_s_draw_make_its_law_exactly(dimension: int) -> None:
    """In fractions, for α = 1/3: geometric numbers, the coin that keeps their sum, a uniform point: P(z) ∝ α^‖z‖ in the end."""
    alpha, most = Fraction(1, 3), 60
    kept = [
        math.comb(r + dimension, dimension)
        * alpha**r
        * Fraction((2 * r + 1) ** dimension, math.prod(2 * r + 2 * i for i in range(1, dimension + 1)))
        for r in range(most)
    ]
    point = [sum((kept[r] / (2 * r + 1) ** dimension for r in range(size, most)), Fraction(0)) for size in range(most)]
    rest = kept[0] * alpha**most / (1 - alpha)  # what radii of `most` or more add to each point
    assert all(point[size + 1] + rest == alpha * (point[size] + rest) for size in range(most - 1))


@pytest.mark.parametrize("dimension", [1, 5, 41])
def test_the_variance_of_the_cube(dimension: int) -> None:
    noise = CubeNoise(dimension=dimension, reach=2**20, epsilon="0.3")
    squares = noise.sample(4000, random=Random.deterministic(3)).astype(np.float64) ** 2
    assert abs(squares.mean() / noise.variance - 1) < 0.2  # more than 5 standard errors for each of the dimensions


def test_the_cube_refuses_what_is_not_whole() -> None:
    with pytest.raises(InvalidParameter, match="whole numbers"):
        CubeNoise(dimension=2, reach=1, epsilon=1).release(np.array([[0.5, 1.0]]))
    with pytest.raises(InvalidParameter):
        CubeNoise(dimension=0, reach=1, epsilon=1)


@pytest.mark.parametrize("promise", [PureDP(1), ApproxDP(1, "1e-5")])
def test_noise_is_as_large_as_is_said(promise: PureDP | ApproxDP) -> None:
    X, y = rows(50), np.zeros(50, dtype=np.int64)
    exact = class_moments(X, y, 1, BOX)
    random = Random.deterministic(4)
    share, off = Allowance(promise).rest("sums"), []
    for _ in range(3000):
        found = noisy_class_moments(X, y, 1, BOX, share=share, random=random)
        off.append(
            [found.sizes[0] - exact.sizes[0], found.sums[0, 0] - exact.sums[0, 0], found.squares[0, 0] - exact.squares[0, 0]]
        )
    covariance = np.cov(np.array(off).T)
    said = [found.size_variance, found.sum_variance, found.square_variance]
    np.testing.assert_allclose(np.diag(covariance), said, rtol=0.2)
    np.testing.assert_allclose(covariance[0, 2], found.covariance, rtol=0.3)
    assert abs(covariance[0, 1]) < 0.15 * found.sum_variance


def table() -> tuple[PrivateTable, np.ndarray, np.ndarray]:
    """People of two classes with two numbers and a category; some numbers are missing."""
    count = 500
    age, pay = GENERATOR.integers(17, 91, count), GENERATOR.integers(0, 1001, count) / 2
    label, sex = GENERATOR.integers(0, 2, count), GENERATOR.integers(0, 2, count)
    columns = {
        "age": age.tolist(),
        "pay": [None if place % 10 == 0 else value for place, value in enumerate(pay.tolist())],
        "sex": np.where(sex, "M", "F").tolist(),
        "y": np.where(label, "yes", "no").tolist(),
    }
    declared = {
        "age": Integer(17, 90),
        "pay": Real(0, 500, step="0.5", nullable=True),
        "sex": Category(["F", "M"]),
        "y": Category(["no", "yes"]),
    }
    return PrivateTable(columns, columns=declared), np.column_stack([age, pay, sex == 0, sex == 1]).astype(float), label


def test_a_table_gives_what_rows_give() -> None:
    people, X, y = table()
    encoder = Encoder.of(people.columns, ["age", "pay", "sex"])
    with Door({"people": people}, budget=PureDP(10**9)) as door:
        found = from_table(door, "people", encoder, "y", ["no", "yes"], 10**9, "")
    kept = np.arange(len(X)) % 10 != 0
    whole = class_moments(X[:, :2], y, 2, box_of(([17, 0], [90, 500]), features=2))
    held = class_moments(X[kept][:, :2], y[kept], 2, box_of(([17, 0], [90, 500]), features=2))
    np.testing.assert_allclose(found.numbers.sizes, whole.sizes, atol=1e-3)
    np.testing.assert_allclose(found.numbers.sums[:, 0], whole.sums[:, 0], atol=1e-3)
    np.testing.assert_allclose(found.numbers.sums[:, 1], held.sums[:, 1], atol=1e-3)
    np.testing.assert_allclose(found.numbers.squares[:, 1], held.squares[:, 1], atol=1e-3)
    np.testing.assert_allclose(found.numbers.counts[:, 1], held.counts[:, 1], atol=1e-3)
    np.testing.assert_allclose(found.categories[0].counts, [X[y == label][:, 2:].sum(axis=0) for label in (0, 1)], atol=1e-3)


def test_a_stored_answer_is_promised_for_what_it_cost() -> None:
    people, _, _ = table()
    encoder = Encoder.of(people.columns, ["age"])
    with Door({"people": people}, budget=PureDP(10)) as door:
        first = from_table(door, "people", encoder, "y", ["no", "yes"], 2, "")
        again = from_table(door, "people", encoder, "y", ["no", "yes"], "0.5", "")
        assert door.spent == PureDP(2)
    assert first.allowance.whole == again.allowance.whole == PureDP(2)
