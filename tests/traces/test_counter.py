"""Counters: exact without noise, audited with it, and in words what a person is promised."""

from __future__ import annotations

import gc
import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from cloister.attacks import audit
from cloister.errors import BudgetExceeded, InvalidParameter, MissingBound
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import ZCDP, PureDP
from cloister.traces import Counter, WindowLevel
from cloister.traces.square_root import square_root_matrix
from tests.traces import dense

ALMOST_NO_NOISE = {"rho": {"rho": 10**12}, "epsilon": {"epsilon": 10**6}}


@pytest.mark.parametrize("kind", ["rho", "epsilon"])
@pytest.mark.parametrize("steps", [1, 7, 64, 1000])
def test_without_noise_the_running_sum_is_exact(kind: str, steps: int) -> None:
    values = np.random.default_rng(steps).integers(-9, 10, steps)
    counter = Counter(**ALMOST_NO_NOISE[kind], steps=steps, bounds=(-9, 9), random=Random.deterministic(1))  # type: ignore[arg-type]
    found = [counter.step(int(value)) for value in values]
    assert np.round(found).astype(int).tolist() == np.cumsum(values).tolist()


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 100, 127, 128])
def test_a_reading_is_in_one_node_of_a_level(steps: int) -> None:
    columns = dense.tree(steps).sum(axis=0)
    assert columns.max() == columns[0] == steps.bit_length()


def test_the_noise_is_scaled_to_the_longest_column() -> None:
    gaussian = Counter(rho="0.5", steps=64, bounds=(-3, 2)).noise
    laplace = Counter(epsilon="0.5", steps=64, bounds=(-3, 2)).noise
    assert isinstance(gaussian, DiscreteGaussian)
    assert isinstance(laplace, DiscreteLaplace)
    assert gaussian.scale_squared == 9 * square_root_matrix(64).l2_squared
    assert laplace.scale == 3 * 7 * 2


@pytest.mark.parametrize(
    ("level", "most", "readings", "person"),
    [
        ("event", None, 1, None),
        ("event", 4, 1, {"epsilon": PureDP(4), "rho": ZCDP(16)}),
        ("user", 4, 4, {"epsilon": PureDP(1), "rho": ZCDP(1)}),
        (WindowLevel(10), None, 10, {"epsilon": PureDP("9.6"), "rho": ZCDP("92.16")}),
        (WindowLevel(10), 3, 10, {"epsilon": PureDP("0.3"), "rho": ZCDP("0.09")}),
        (WindowLevel(10), 500, 10, {"epsilon": PureDP(50), "rho": ZCDP(2500)}),
        (WindowLevel(1000), None, 96, {"epsilon": PureDP(1), "rho": ZCDP(1)}),
    ],
)
def test_the_line_of_a_person_follows_from_the_level(
    level: Any, most: int | None, readings: int, person: dict[str, Any] | None
) -> None:
    for kind in ("epsilon", "rho"):
        counter = Counter(**{kind: 1}, steps=96, level=level, most=most)  # type: ignore[arg-type]
        alone = Counter(**{kind: 1}, steps=96)  # type: ignore[arg-type]
        assert counter.person == (None if person is None else person[kind])
        assert counter.protection.readings == readings
        assert counter.noise.sensitivity == pytest.approx(readings * alone.noise.sensitivity)


def test_a_user_without_a_bound_is_refused_and_an_event_reads_unbounded() -> None:
    with pytest.raises(MissingBound, match="how many readings one person sends"):
        Counter(rho=1, steps=10, level="user")
    assert "events only, unbounded for a person" in str(Counter(rho=1, steps=10))


def test_the_horizon_ends_and_refunds_nothing() -> None:
    counter = Counter(rho=1, steps=2)
    counter.step(1)
    counter.step(1)
    with pytest.raises(BudgetExceeded, match="charged for 2 steps"):
        counter.step(1)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"rho": 1, "epsilon": 1},
        {"rho": 0},
        {"rho": 1, "steps": 0},
        {"rho": 1, "steps": 2.5},
        {"rho": 1, "bounds": (1, 0)},
        {"rho": 1, "bounds": (0, 0)},
        {"rho": 1, "bounds": ("0.5", 1)},
        {"rho": 1, "bounds": (0, 2**40)},
        {"rho": 1, "steps": 2**40},
        {"rho": 1, "bounds": (0, 10**330), "grid": 10**330},
        {"rho": 1, "bounds": (0, "1e-330"), "grid": "1e-330"},
        {"rho": 1, "level": "person"},
        {"rho": 1, "most": 0},
        {"rho": 1, "random": np.random.default_rng()},
    ],
)
def test_what_is_declared_wrongly_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Counter(**{"steps": 8, **wrong})


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (1, 1),
        (True, 1),
        (None, 0),
        ([], 0),
        ([1, None, 1], 2),
        (float("nan"), 0),
        (float("inf"), 5),
        (-(10**30), -5),
        (10**30, 5),
        ([0.6, 0.4, -2.5], 1 - 2),
        (np.array([1, 2, 3], dtype=np.uint8), 6),
        (np.array([[9, 9], [1, 1]]), 12),
        (np.array([True, False]), 1),
        (iter([1, 1]), 2),
        (np.float32(2), 2),
        (np.bool_(True), 1),
        ([10**400, -(10**400), 1], 1),
    ],
)
def test_whatever_is_read_counts_as_defined(value: Any, counted: int) -> None:
    assert Counter(rho=1, steps=4, bounds=(-5, 5))._units(value) == counted


def test_real_readings_are_rounded_to_the_grid() -> None:
    counter = Counter(rho=10**12, steps=4, bounds=(0, 2), grid="0.25")
    assert round(counter.step([0.3, 1.9, 7.0]) * 4) == 1 + 8 + 8
    assert counter.margin() < 0.01


@pytest.mark.parametrize("value", ["1", ["a"], [[1, "b"]], np.array(["x"]), [1j]])
def test_what_is_no_number_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="must be numbers") as found:
        Counter(rho=1, steps=4).step(value)
    assert "'x'" not in str(found.value)


def test_a_total_beyond_64_bits_is_clamped_and_moves_by_no_more_than_a_reading() -> None:
    counter = Counter(rho=1, steps=2**30, bounds=(0, 2**31))
    many = np.full(4, 2**31)
    assert counter._units(many) == counter._units(many[:3]) == 2**32


def test_a_horizon_of_a_milliard_steps_is_kept_in_ten_kilobytes() -> None:
    """Beside the public weights, which all counters of a horizon share: 1.7 kB more; and beside what any other leaves behind."""

    def counted() -> Counter:
        counter = Counter(rho=1, steps=2**30)
        for _ in range(20):
            counter.step(1)
        return counter

    counted()
    tracemalloc.start(25)  # frames: what others in this process allocate meanwhile is not the counter's
    ours = [tracemalloc.Filter(True, "*/cloister/traces/*", all_frames=True)]
    kept, sizes = [counted() for _ in range(3)], list[float]()
    try:
        for _ in range(3):  # the least: a table of the process that grows beneath a counter is not the counter's
            gc.collect()
            before = tracemalloc.take_snapshot().filter_traces(ours)
            kept += [counted() for _ in range(5)]
            gc.collect()
            after = tracemalloc.take_snapshot().filter_traces(ours)
            sizes.append(sum(each.size_diff for each in after.compare_to(before, "filename")) / 5)
    finally:
        tracemalloc.stop()
    used = min(sizes)
    assert len(kept) == 18
    assert used > 4_000, "its bins, at least"
    assert used < 10_240, used
    assert square_root_matrix(2**30).weights.nbytes < 2_048


def published(counter: dict[str, Any], *, times: Fraction = Fraction(1)) -> Any:
    """All that a counter publishes of a stream of step totals, n times over; noise of another scale makes it a broken twin."""

    def run(data: Any, n: int, random: Random) -> npt.NDArray[np.float64]:
        noise = Counter(**counter).noise
        if isinstance(noise, DiscreteGaussian):
            noise = DiscreteGaussian(scale_squared=noise.scale_squared * times**2)
        else:
            noise = DiscreteLaplace(scale=noise.scale * times)
        drawn = noise.sample(n * len(data), random=random).reshape(n, len(data))
        return np.asarray((strategy_of(counter) @ np.asarray(data) + drawn).astype(np.float64))

    return run


def strategy_of(counter: dict[str, Any]) -> npt.NDArray[np.int64]:
    return dense.square_root(square_root_matrix(counter["steps"])) if "rho" in counter else dense.tree(counter["steps"])


@pytest.mark.parametrize("kind", ["rho", "epsilon"])
def test_what_is_published_is_the_matrix_row_with_one_fresh_draw(kind: str) -> None:
    """So the audits below, which draw many at once, are audits of the counter itself."""
    declared: dict[str, Any] = {kind: 1, "steps": 40, "bounds": (-9, 9)}
    values = np.random.default_rng(5).integers(-9, 10, 40)
    counter, random = Counter(**declared, random=Random.deterministic(6)), Random.deterministic(6)
    expected = [counter.noise.release(int(exact), random=random) for exact in strategy_of(declared) @ values]
    found: list[int] = []
    for value in values.tolist():
        counter.step(value)
        found.append(counter.published)
    assert found == expected


EMPTY, ONE = (0, 0, 0, 0), (1, 0, 0, 0)


def directions(counter: dict[str, Any]) -> dict[str, Any]:
    """The best feature to tell the two streams apart: along the column of the reading that was added."""
    column = strategy_of(counter)[:, 0].astype(float)
    return {"along the column": lambda rows: rows @ column / np.abs(column).max()}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [{"rho": "0.5"}, {"epsilon": 1}])
def test_the_audit_finds_no_more_than_is_promised(kind: dict[str, Any]) -> None:
    counter = {**kind, "steps": 4}
    promise = Counter(**counter).guarantee
    found = audit(
        published(counter),
        EMPTY,
        ONE,
        runs=100_000,
        against=promise,
        features=directions(counter),
        random=Random.deterministic(3),
    )
    assert not found.contradicts(promise)


@pytest.mark.statistical
def test_noise_for_one_node_instead_of_a_path_is_caught() -> None:
    """The broken twin of the tree: each node gets Laplace noise of scale 1/ε, although a reading is in three nodes."""
    counter = {"epsilon": 1, "steps": 4}
    broken = published(counter, times=Fraction(1, 3))
    random = Random.deterministic(4)
    found = audit(broken, EMPTY, ONE, runs=100_000, against=PureDP(1), features=directions(counter), random=random)
    assert found.contradicts(PureDP(1))


@pytest.mark.statistical
def test_noise_for_the_newest_weight_alone_is_caught() -> None:
    """The broken twin of the factorisation: σ from the largest entry of C̃, as if a reading moved one release and not all later
    ones. The first column is 1.5 times as long over 32 steps, so ρ is twice what is claimed."""
    counter, matrix = {"rho": "0.5", "steps": 32}, square_root_matrix(32)
    broken = published(counter, times=Fraction(int(matrix.weights[0]), math.isqrt(matrix.l2_squared)))
    empty, one = (0,) * 32, (1,) + (0,) * 31
    random = Random.deterministic(5)
    found = audit(broken, empty, one, runs=60_000, against=ZCDP("0.5"), features=directions(counter), random=random)
    assert found.contradicts(ZCDP("0.5"))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [{"rho": "0.5"}, {"epsilon": "0.5"}])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_margins_cover_as_often_as_they_say(kind: dict[str, Any], confidence: float) -> None:
    """At five steps of a hundred, 20,000 streams each: fails where so few would be inside with a probability below 1e-7."""
    declared, runs = {**kind, "steps": 100}, 20_000
    counter = Counter(**declared)
    noise = counter.noise.sample(runs * 100, random=Random.deterministic(7)).reshape(runs, 100).astype(float)
    off = noise @ np.linalg.inv(strategy_of(declared)).T.cumsum(axis=1) if "rho" in kind else None
    for taken in (1, 7, 63, 64, 100):
        counter._now.taken = taken
        if off is None:
            ends = [taken >> level << level for level in range(7) if taken >> level & 1]
            wrong = noise[:, [end - 1 for end in ends]].sum(axis=1)
        else:
            wrong = off[:, taken - 1]
        inside = int((np.abs(wrong) <= counter.margin(confidence)).sum())
        assert binom.cdf(inside, runs, confidence) > 1e-7, (taken, inside / runs)
        assert inside / runs < confidence + 0.02


@pytest.mark.parametrize("epsilon", [2, 3, 8, 20])
@pytest.mark.parametrize("taken", [1, 3, 7])
def test_margins_hold_where_noise_is_small_and_whole(epsilon: int, taken: int) -> None:
    """By the exact law of the sum of so many discrete Laplace numbers."""
    counter = Counter(epsilon=epsilon, steps=7)
    counter._now.taken = taken
    chance = np.exp(-np.abs(np.arange(-400, 401)) * epsilon / 3)
    law = np.ones(1)
    for _ in range(taken.bit_count()):
        law = np.convolve(law, chance / chance.sum())
    reach = np.abs(np.arange(len(law)) - len(law) // 2)
    for confidence in (0.9, 0.95, 0.99):
        margin = counter.margin(confidence)
        assert law[reach <= margin].sum() >= confidence
        assert margin == 0 or law[reach <= margin - 1].sum() < confidence
