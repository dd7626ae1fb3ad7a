"""The banded square root: exact without noise, sensitivity and margins as its matrix has them, and audited."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

import cloister as cl
from cloister.attacks import audit
from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, Random
from cloister.privacy import ZCDP
from cloister.traces import Counter, StoredCounter, WindowLevel
from cloister.traces.banded import Banded
from cloister.traces.counter import _BandedGaussian, _Gaussian

USER: dict[str, Any] = {"level": "user", "most": 4}


def dense(bands: int, steps: int) -> npt.NDArray[np.int64]:
    """The matrix, written out."""
    lag = np.arange(steps)[:, None] - np.arange(steps)
    weights = Banded(bands).weights
    return np.where((lag >= 0) & (lag < bands), weights[np.clip(lag, 0, bands - 1)], 0)


@pytest.mark.parametrize(
    "options", [{"last": 1}, {"last": 7}, {"last": 500}, {**USER, "apart": 9}, {**USER, "apart": 5, "last": 3}]
)
def test_without_noise_the_sums_are_exact(options: dict[str, Any]) -> None:
    values = np.random.default_rng(1).integers(-9, 10, 200)
    counter = Counter(rho=10**13, steps=200, bounds=(-9, 9), **options, random=Random.deterministic(1))
    last = options.get("last") or 200
    expected = [int(values[max(0, step + 1 - last) : step + 1].sum()) for step in range(200)]
    assert [round(counter.step(int(value))) for value in values] == expected


def test_a_state_goes_on_where_it_was() -> None:
    for options in ({"last": 6}, {**USER, "apart": 9}):
        counter = Counter(rho=10**13, steps=50, **options, random=Random.deterministic(1))
        for _ in range(20):
            counter.step(1)
        again = Counter.from_state(counter.state(), random=Random.deterministic(2))
        assert str(again) == str(counter)
        assert again.margin() == counter.margin()
        assert round(again.step(1)) == round(counter.step(1)) == (6 if "last" in options else 21)
    ledger = cl.Ledger()
    ledger.open("visitors", cl.ZCDP(1), who="owner")
    StoredCounter.open(ledger, "visitors", "day", who="ada", rho=1, steps=90, last=24, apart=30, level="user", most=3).step(1)
    assert "sums of the last 24; ρ = 1 a person with at most 3 readings, at least 30 steps apart" in str(
        StoredCounter.resume(ledger, "visitors", "day")
    )


@pytest.mark.parametrize("bands", [1, 2, 16, 100])
def test_readings_that_are_far_apart_move_it_by_the_root_of_their_number(bands: int) -> None:
    matrix = Banded(bands)
    written = dense(bands, 400)
    longest = (written.astype(object) ** 2).sum(axis=0).max()
    assert longest == matrix.l2_squared
    for signs in ((1, 1, 1), (1, -1, 1)):
        together = sum(sign * written[:, at * bands].astype(object) for at, sign in enumerate(signs))
        assert (together**2).sum() == 3 * matrix.l2_squared
    assert (np.diff(matrix.weights) <= 0).all()
    assert matrix.weights[-1] > 0


@pytest.mark.parametrize(("bands", "last"), [(1, None), (8, None), (8, 3), (8, 8), (8, 30), (30, 8)])
def test_energies_are_those_of_the_inverse(bands: int, last: int | None) -> None:
    steps = 700
    inverse = np.linalg.inv(dense(bands, steps) / Banded(bands).unit)
    summed = inverse.cumsum(axis=0)
    if last is not None:
        summed[last:] -= summed[:-last].copy()
    for step in (1, 5, 100, steps):
        assert Banded(bands).energy(step, last=last) == pytest.approx((summed[step - 1] ** 2).sum(), rel=1e-6)


def test_the_least_noise_is_chosen_and_scaled_to_what_a_person_moves() -> None:
    spread = Counter(rho=1, steps=365, level="user", most=12, apart=30, bounds=(-3, 2))
    assert isinstance(spread._now, _BandedGaussian)
    assert spread.noise.scale_squared == 9 * 12 * Banded(30).l2_squared / 2  # type: ignore[union-attr]
    plain = Counter(rho=1, steps=365, level="user", most=12, bounds=(-3, 2))
    for counter in (spread, plain):
        counter._now.taken = 365
    assert spread.margin() < 0.5 * plain.margin()
    near = Counter(rho=1, steps=4096, level="user", most=2, apart=2)
    assert isinstance(near._now, _Gaussian)  # a band of two steps is worse than the triangle inequality
    few = Counter(rho=1, steps=365, level="user", most=400, apart=30)
    assert few.noise.scale_squared == 13 * Banded(30).l2_squared / 2  # type: ignore[union-attr]


def test_a_sliding_sum_does_not_lose_with_the_horizon() -> None:
    margins = []
    for steps in (10**3, 10**9):
        counter = Counter(rho="0.5", steps=steps, last=24)
        counter._now.taken = 1000
        margins.append(counter.margin())
    whole = Counter(rho="0.5", steps=10**9)
    whole._now.taken = 10**6
    assert margins[0] == margins[1] < 0.5 * 2**0.5 * whole.margin()
    window = Counter(rho="0.5", steps=10**3, last=24, level=WindowLevel(3))
    window._now.taken = 1000
    assert window.margin() == pytest.approx(3 * margins[0])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"epsilon": 1, "last": 5}, "ρ alone"),
        ({"epsilon": 1, "apart": 5, **USER}, "ρ alone"),
        ({"rho": 1, "apart": 5}, "protects no person"),
        ({"rho": 1, "last": 0}, "last"),
        ({"rho": 1, "last": 5000}, "4,096"),
        ({"rho": 1, "apart": 0, **USER}, "apart"),
        ({"rho": 1, "last": 2.5}, "last"),
    ],
)
def test_what_is_declared_wrongly_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Counter(**{"steps": 90, **wrong})


def published(counter: Counter, apart: int) -> Any:
    """All that is published of a stream, n times over."""

    def run(data: Any, n: int, random: Random) -> npt.NDArray[np.float64]:
        noise = counter.noise
        assert isinstance(noise, DiscreteGaussian)
        drawn = noise.sample(n * len(data), random=random).reshape(n, len(data))
        return np.asarray((dense(apart, len(data)) @ np.asarray(data) + drawn).astype(np.float64))

    return run


def test_what_is_published_is_the_matrix_row_with_one_fresh_draw() -> None:
    """So the audit below, which draws many at once, is one of the counter itself."""
    values, random = np.random.default_rng(5).integers(-9, 10, 40), Random.deterministic(6)
    counter = Counter(rho=1, steps=40, bounds=(-9, 9), last=5, random=Random.deterministic(6))
    expected = [counter.noise.release(int(exact), random=random) for exact in dense(5, 40) @ values]
    found = []
    for value in values.tolist():
        counter.step(value)
        found.append(counter.published)
    assert found == expected


@pytest.mark.statistical
@pytest.mark.parametrize("gap", [1, 4])
def test_readings_nearer_than_declared_are_caught(gap: int) -> None:
    """BROKEN with a gap of 1: three readings of a person in a row, with noise for readings that are 4 steps apart."""
    counter, promise = Counter(rho="0.5", steps=12, level="user", most=3, apart=4), ZCDP("0.5")
    assert isinstance(counter._now, _BandedGaussian)
    empty, one = (0,) * 12, tuple(int(step in (0, gap, 2 * gap)) for step in range(12))
    along = (dense(4, 12) @ np.array(one)).astype(float)
    features = {"along the columns": lambda rows: rows @ along / np.abs(along).max()}
    found = audit(
        published(counter, 4), empty, one, runs=40_000, against=promise, features=features, random=Random.deterministic(3)
    )
    assert found.contradicts(promise) == (gap == 1)


@pytest.mark.statistical
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_margins_cover_as_often_as_they_say(confidence: float) -> None:
    """20,000 streams: fails where so few would be inside with a probability below 1e-7."""
    counter, runs = Counter(rho="0.5", steps=100, last=12), 20_000
    inverse = np.linalg.inv(dense(12, 100)).cumsum(axis=0)
    inverse[12:] -= inverse[:-12].copy()
    noise = counter.noise.sample(runs * 100, random=Random.deterministic(7)).reshape(runs, 100).astype(float)
    for taken in (1, 12, 100):
        counter._now.taken = taken
        inside = int((np.abs(noise @ inverse[taken - 1]) <= counter.margin(confidence)).sum())
        assert binom.cdf(inside, runs, confidence) > 1e-7
        assert inside / runs < confidence + 0.02
