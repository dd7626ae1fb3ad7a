"""What all additive mechanisms share: shapes, types, sizes of any length, refusals that show nothing."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloister.noise
from cloister.errors import InvalidParameter
from cloister.noise import (
    AdditiveNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Geometric,
    Laplace,
    Mechanism,
    Random,
    Staircase,
)
from cloister.noise.additive import least_integer
from cloister.noise.mechanism import check_confidence, check_scale, integer_array, narrowed, release_integers, source

INTEGER = [DiscreteLaplace(scale=3), DiscreteGaussian(scale=3), Geometric(epsilon="0.3")]
ONE_NUMBER = [*INTEGER, Staircase(epsilon="0.3", sensitivity=2)]
EVERY: list[Any] = [*ONE_NUMBER, Laplace(scale=3), Gaussian(scale=3), Staircase(epsilon="0.3", step="0.1")]


@pytest.mark.parametrize("noise", EVERY, ids=repr)
def test_the_protocol(noise: Any) -> None:
    assert isinstance(noise, Mechanism)
    assert isinstance(noise, AdditiveNoise)
    assert noise == type(noise)(**{name: getattr(noise, name) for name in noise.__dataclass_fields__})
    assert len({noise, noise}) == 1
    assert eval(repr(noise), vars(cloister.noise) | {type(noise).__name__: type(noise)}) == noise
    with pytest.raises(AttributeError):
        noise.sensitivity = 5


@pytest.mark.parametrize("noise", EVERY, ids=repr)
def test_the_margin_is_the_least_that_holds(noise: Any) -> None:
    half = Fraction(0) if getattr(noise, "step", None) is None else noise.step / 2
    step = getattr(noise, "step", None) or 1
    for confidence in ("0.5", "0.9", "0.95", "0.999999"):
        m = round((Fraction(noise.margin(confidence)) - half) / step)
        assert noise.tail(m * step) <= 1 - float(Fraction(confidence)) + 1e-15
        assert m == 0 or noise.tail((m - 1) * step) > 1 - float(Fraction(confidence))


@pytest.mark.parametrize("noise", EVERY, ids=repr)
def test_tails_fall_from_one(noise: Any) -> None:
    reach = [noise.tail(m) for m in range(-2, 200)]
    assert reach[0] == reach[1] == 1.0
    assert all(a >= b > 0 for a, b in pairwise(reach))
    assert noise.tail(10**9) > 0


@pytest.mark.parametrize("noise", ONE_NUMBER, ids=repr)
@given(value=st.integers(min_value=-(10**40), max_value=10**40))
def test_an_integer_of_any_size_stays_an_integer(noise: Any, value: int) -> None:
    released = noise.release(value, random=Random.deterministic(1))
    assert type(released) is int
    assert released - value == noise.release(0, random=Random.deterministic(1))


@pytest.mark.parametrize("noise", INTEGER, ids=repr)
def test_shapes_are_kept(noise: Any) -> None:
    for value in (
        [1, 2, 3],
        (4, 5),
        [],
        [[1, 2], [3, 4]],
        np.zeros((2, 3), dtype=np.int32),
        np.arange(4, dtype=np.uint8),
        range(3),
    ):
        released = noise.release(value)
        assert released.shape == np.shape(value)
        assert released.dtype == np.int64
    assert type(noise.release(np.int64(4))) is int
    assert noise.release(np.array([2**64 - 1], dtype=np.uint64)).dtype == object


@pytest.mark.parametrize("noise", ONE_NUMBER, ids=repr)
@pytest.mark.parametrize(
    "value", [1.5, [1.5], "7", ["7"], True, [True], None, {1: 2}, np.array([1.0]), np.array([True]), [[1], [2, 3]]]
)
def test_what_is_not_an_integer_is_refused_unseen(noise: Any, value: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        noise.release(value)
    assert "7" not in str(refused.value)
    assert "1.5" not in str(refused.value)


def test_the_type_of_an_array_is_a_function_of_what_is_released() -> None:
    down = release_integers([2**63, 2**62], lambda n: np.full(n, -1, dtype=np.int64))
    up = release_integers([2**63 - 1, 2**62], lambda n: np.full(n, 1, dtype=np.int64))
    assert down.tolist() == [2**63 - 1, 2**62 - 1]
    assert down.dtype == np.int64  # all fit now, whatever the value was
    assert up.tolist() == [2**63, 2**62 + 1]
    assert up.dtype == object


@given(
    value=st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1), min_size=1, max_size=5),
    shift=st.integers(min_value=-(2**63), max_value=2**63 - 1),
)
def test_sums_never_wrap(value: list[int], shift: int) -> None:
    released = release_integers(np.array(value, dtype=np.int64), lambda n: np.full(n, shift, dtype=np.int64))
    assert released.tolist() == [item + shift for item in value]


def test_large_integers_stay_exact_inside_nested_lists() -> None:
    assert integer_array([[2**70, 1], [2, 3]]).tolist() == [[2**70, 1], [2, 3]]
    assert narrowed(np.array([1, 2], dtype=object)).dtype == np.int64


def test_other_generators_are_refused() -> None:
    assert source(None) is cloister.noise.default_random()
    with pytest.raises(InvalidParameter, match="foretold"):
        DiscreteLaplace(scale=1).sample(1, random=np.random.default_rng(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [0, -1, "nan", "1e-101", "1e101", float("inf"), True])
def test_scales_that_are_no_scales(scale: Any) -> None:
    with pytest.raises(InvalidParameter):
        check_scale(scale)
    with pytest.raises(InvalidParameter):
        DiscreteLaplace(scale=scale)
    with pytest.raises(InvalidParameter):
        DiscreteGaussian(scale=scale)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "1.0"])
def test_confidences_that_are_none(confidence: Any) -> None:
    with pytest.raises(InvalidParameter):
        check_confidence(confidence)
    with pytest.raises(InvalidParameter):
        DiscreteLaplace(scale=1).margin(confidence)


@given(limit=st.integers(min_value=0, max_value=10**30), guess=st.integers(min_value=-5, max_value=10**30))
def test_the_least_integer_is_found_from_any_guess(limit: int, guess: int) -> None:
    assert least_integer(lambda m: m >= limit, guess) == limit


def test_every_public_name_is_there() -> None:
    for name in cloister.noise.__all__:
        assert getattr(cloister.noise, name) is not None
    assert "DiscreteLaplace" in dir(cloister.noise)
    with pytest.raises(AttributeError):
        _ = cloister.noise.Nothing


@pytest.mark.parametrize("noise", EVERY, ids=repr)
def test_a_mechanism_travels_between_processes(noise: Any) -> None:
    noise.sample(3)  # so that its tables are made
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert copy.deepcopy(noise).sample(3).shape == (3,)
