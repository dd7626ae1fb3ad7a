"""Private multiplicative weights: what is paid for, what is learnt, what is bounded."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise.multiplicative_weights import MultiplicativeWeights
from cloister.noise.random import Random
from cloister.privacy.guarantee import PureDP

CELLS = 64


def table(size: int) -> np.ndarray:
    weights = np.exp(-np.arange(CELLS) / 10)
    counts = np.floor(weights / weights.sum() * size).astype(int)
    counts[0] += size - counts.sum()
    return counts


def questions(n: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 2, (n, CELLS))


def test_the_parts_add_up_to_the_guarantee() -> None:
    mechanism = MultiplicativeWeights(cells=4, epsilon=3, size=100, threshold=10, corrections=6)
    gate = mechanism.gate
    assert mechanism.guarantee == PureDP(3)
    assert gate.guarantee.epsilon + 6 / mechanism.answer_noise.scale == 3
    assert (gate.hits, gate.sensitivity, gate.monotone) == (6, 1, False)


def test_a_long_stream_is_answered_within_its_margin_for_few_corrections() -> None:
    counts = table(100_000)
    mechanism = MultiplicativeWeights(cells=CELLS, epsilon=2, size=100_000, threshold=8000, corrections=60)
    asked = questions(500)
    stream = mechanism.start(counts, random=Random.deterministic(1))
    answers = [stream.ask(question) for question in asked]
    origins = [answer.origin for answer in answers]
    errors = np.abs(np.array([answer.value for answer in answers]) - asked @ counts)
    assert "unchecked" not in origins
    assert 0 < origins.count("measured") == 60 - stream.corrections_left < 60
    assert errors.max() <= mechanism.margin(0.999999, questions=500)


def test_the_hypothesis_learns() -> None:
    counts = table(100_000)
    mechanism = MultiplicativeWeights(cells=CELLS, epsilon=2, size=100_000, threshold=4000, corrections=60)
    stream = mechanism.start(counts, random=Random.deterministic(2))
    truth = counts / counts.sum()

    def entropy() -> float:
        guess = stream.hypothesis / 100_000
        return float((truth[truth > 0] * np.log(truth[truth > 0] / guess[truth > 0])).sum())

    def coins(a: float, b: float) -> float:
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    before = entropy()
    for question in questions(300):
        last, guess = entropy(), float(stream.hypothesis @ question) / 100_000
        answer = stream.ask(question)
        if answer.origin == "measured":
            share = float(truth @ question)
            assert last - entropy() == pytest.approx(coins(share, guess) - coins(share, answer.value / 100_000), abs=1e-9)
            assert entropy() < last
        else:
            assert entropy() == last
    assert entropy() < before / 2
    assert stream.hypothesis.sum() == pytest.approx(100_000)


def test_after_the_last_correction_the_hypothesis_speaks_alone() -> None:
    mechanism = MultiplicativeWeights(cells=2, epsilon=100, size=1000, threshold=50, corrections=1)
    stream = mechanism.start([1000, 0], random=Random.deterministic(1))
    assert stream.ask([1, 0]).origin == "measured"
    assert stream.corrections_left == 0
    assert stream.ask([0, 1]).origin == "unchecked"
    assert mechanism.release([1000, 0], questions=[[1, 0], [0, 1]], random=Random.deterministic(1)).shape == (2,)
    assert mechanism.variance == mechanism.answer_noise.variance


@pytest.mark.parametrize("bad", [[1], [1, 2], [0.5, 1], [1, 0, 1]])
def test_refused_questions(bad: list[float]) -> None:
    stream = MultiplicativeWeights(cells=2, epsilon=1, size=10, threshold=5, corrections=1).start([5, 5])
    with pytest.raises(InvalidParameter):
        stream.ask(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [{"cells": 1}, {"epsilon": 0}, {"size": 0}, {"threshold": 0}, {"corrections": 0}])
def test_refused_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        MultiplicativeWeights(**{"cells": 4, "epsilon": 1, "size": 10, "threshold": 5, "corrections": 1, **bad})


def test_a_table_of_the_wrong_shape_is_refused_unseen() -> None:
    with pytest.raises(InvalidParameter) as caught:
        MultiplicativeWeights(cells=2, epsilon=1, size=10, threshold=5, corrections=1).start([123, 4, 5])
    assert "123" not in str(caught.value)
