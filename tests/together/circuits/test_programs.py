"""Ready programs against plain Python, in integers and in gates; and the law of noise that neither party knows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import exp, expm1

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.together.circuits import FixedPoint, GeometricNoise, Program, intersection_size, largest_sums
from cloister.together.circuits.geometric import COIN
from cloister.together.circuits.machines import Clear


@cache
def ranking(length: int, count: int) -> Program:
    return largest_sums(length, count, bits=6)


@cache
def meeting(one: int, other: int) -> Program:
    return intersection_size(one, other, bits=5)


@given(data=st.data(), length=st.sampled_from([1, 2, 5, 6]))
@settings(max_examples=40, deadline=None)
def test_the_places_of_the_largest_sums(data: st.DataObject, length: int) -> None:
    numbers = st.lists(st.integers(-32, 31), min_size=length, max_size=length)
    a, b, count = data.draw(numbers), data.draw(numbers), min(length, 3)
    program = ranking(length, count)
    expected = sorted(range(length), key=lambda place: (-a[place] - b[place], place))[:count]
    assert np.atleast_1d(program.as_numbers(a=a, b=b)).tolist() == expected
    assert np.array_equal(program.as_gates(a=a, b=b), program.as_numbers(a=a, b=b))


@given(a=st.sets(st.integers(0, 31), min_size=1, max_size=6), b=st.sets(st.integers(0, 31), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_sizes_of_intersections(a: set[int], b: set[int]) -> None:
    program = meeting(len(a), len(b))
    values = {"a": sorted(a), "b": sorted(b)}
    assert int(program.as_numbers(**values)) == int(program.as_gates(**values)) == len(a & b)


@given(
    a=st.lists(st.integers(0, 31), min_size=1, max_size=6),
    b=st.lists(st.integers(0, 31), min_size=1, max_size=6),
    place=st.integers(0, 5),
    other=st.integers(0, 31),
)
@example(a=[1, 2, 3, 4, 5, 6], b=[6, 5, 4, 3, 2, 1], place=0, other=0)
@example(a=[3, 3], b=[3, 4], place=0, other=2)
@settings(max_examples=40, deadline=None)
def test_a_list_that_is_no_set_in_order_has_nothing_in_common(a: list[int], b: list[int], place: int, other: int) -> None:
    """As a party would bring it that does not run our code: bits, which nobody checked."""
    program = meeting(len(a), len(b))

    def count(*lists: list[int]) -> int:
        bits = [np.array([[each >> bit & 1 for each in one] for bit in range(5)], dtype=np.bool_)[:, :, None] for one in lists]
        [found] = program.on(Clear(), dict(zip("ab", bits, strict=True)))
        return int(program.outputs[0].read(found[:, :, 0]))

    def is_set(one: list[int]) -> bool:
        return one == sorted(set(one))

    assert count(a, b) == (len(set(a) & set(b)) if is_set(a) and is_set(b) else 0)
    mine = sorted(set(a))
    replaced = sorted({*mine[: place % len(mine)], *mine[place % len(mine) + 1 :], other})
    if len(replaced) == len(mine) == len(a):
        assert abs(count(mine, b) - count(replaced, b)) <= 1


def test_sets_of_ten_thousand_are_forecast_and_small_ones_noised() -> None:
    program = intersection_size(10_000, 10_000, bits=40)
    assert program.gates < 32e6
    widest = intersection_size(3, 4, bits=64)  # filled up with a number above all of 64 bits
    assert int(widest.as_numbers(a=[1, 2, 2**64 - 1], b=[2, 5, 2**63, 2**64 - 1])) == 2
    noise = GeometricNoise(epsilon=3)
    noised = intersection_size(3, 3, bits=5, noise=noise)
    values = {"a": [1, 2, 3], "b": [2, 3, 4]}
    values |= {"coins_a": noise.draw(Random.deterministic(1)), "coins_b": noise.draw(Random.deterministic(2))}
    found = int(noised.as_numbers(**values))
    assert found == int(noised.as_gates(**values))
    assert abs(found - 2) <= 12  # beyond with probability below 1e-15


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("2", 1), ("0.5", 3), ("0.1", 1)])
def test_digits_are_those_of_a_geometric_number(epsilon: str, sensitivity: int) -> None:
    """By the thresholds alone: the law of the first 2^12 numbers, digit by digit, is the geometric one. Nothing is drawn."""
    noise = GeometricNoise(epsilon=epsilon, sensitivity=sensitivity)
    rate = float(Fraction(epsilon)) / sensitivity
    law = np.ones(1)
    for threshold in noise.thresholds[:12]:
        one = threshold / 2**COIN
        law = np.concatenate([law * (1 - one), law * one])
    for threshold in noise.thresholds[12:]:
        law = law * (1 - threshold / 2**COIN)
    expected = -expm1(-rate) * np.exp(-rate * np.arange(len(law)))
    np.testing.assert_allclose(law, expected, rtol=1e-9, atol=1e-18)
    assert exp(-rate * 2.0**noise.digits) <= 2.0**-COIN * 1.0001
    assert noise.guarantee.epsilon == Fraction(epsilon)
    assert 0 < noise.guarantee.delta < Fraction(1, 10**24)


def test_noise_of_many_numbers_is_two_sided_and_the_same_in_gates() -> None:
    """The variance of 2,000 numbers: off by more than a fifth with probability below 1e-6, and the generators are fixed."""
    noise = GeometricNoise(epsilon=1, numbers=2000)
    own = {"garbler": {"a": noise.coins}, "evaluator": {"b": noise.coins}}
    program = Program(lambda a, b: noise.sample(a, b), **own, bits=COIN)
    values = {"a": noise.draw(Random.deterministic(5)), "b": noise.draw(Random.deterministic(6))}
    found = program.as_numbers(**values)
    alpha = exp(-1)
    assert abs(found.var() / (2 * alpha / (1 - alpha) ** 2) - 1) < 0.2
    assert abs(found.mean()) < 0.2
    few = GeometricNoise(epsilon=1, numbers=2)
    small = Program(lambda a, b: few.sample(a, b), garbler={"a": few.coins}, evaluator={"b": few.coins}, bits=COIN)
    drawn = {"a": few.draw(Random.deterministic(5)), "b": few.draw(Random.deterministic(6))}
    assert np.array_equal(small.as_gates(**drawn), small.as_numbers(**drawn))
    assert FixedPoint(bits=COIN, low=0).width == COIN


def test_bad_input() -> None:
    for work, why in (
        (lambda: largest_sums(3, 4), "3 places"),
        (lambda: GeometricNoise(epsilon=0), "epsilon"),
        (lambda: intersection_size(1, 1, noise=GeometricNoise(epsilon=1, numbers=3)), "another answer"),
        (lambda: GeometricNoise(epsilon="1e-12"), "binary digits"),
        (lambda: GeometricNoise(epsilon=1, numbers=0), "from 1 to"),
        (lambda: intersection_size(2, 1).as_numbers(a=[7, 5], b=[5]), "The value at 1 is not above"),
        (lambda: intersection_size(1, 2).bits_of("b", [5, 5]), "The value at 1 is not above"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            work()
