"""Window level: no path passes a window's ε, skips are as public as releases, and what is broken is caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cloister.attacks import audit
from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import PureDP
from cloister.traces import (
    Absorption,
    Adaptive,
    Distribution,
    GroupMean,
    LastRelease,
    LocalLevel,
    Policy,
    Sampled,
    Shares,
    Uniform,
    WindowStream,
    window_stream,
)

POLICIES: list[Callable[[], Policy]] = [Uniform, Distribution, Absorption, Adaptive, lambda: Sampled(3), lambda: Sampled(7)]


def values(kind: str, steps: int) -> npt.NDArray[np.int64]:
    random = np.random.default_rng(1)
    if kind == "calm":
        return np.full((steps, 2), 50)
    if kind == "jumps":
        return np.repeat(random.integers(0, 100_000, (steps // 5 + 1, 2)), 5, axis=0)[:steps]
    return random.integers(0, 10**6, (steps, 2))


def charges(policy: Policy, kind: str, *, window: int, steps: int) -> list[Fraction]:
    """What each step was charged, as the filter saw it."""
    stream = WindowStream(epsilon=1, window=window, steps=steps, cells=2, policy=policy, random=Random.deterministic(1))
    found = []
    for table in values(kind, steps):
        stream.step(table)
        found.append(stream._filter.recent[-1] if window > 1 else Fraction(1))
    return found


@pytest.mark.parametrize("kind", ["calm", "jumps", "wild"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_sum_of_every_window_stays_within_epsilon(policy: Callable[[], Policy], kind: str) -> None:
    for window in (7, 12):
        found = charges(policy(), kind, window=window, steps=120)
        sums = [sum(found[first : first + window]) for first in range(len(found))]
        assert max(sums) <= 1
        assert max(sums) > Fraction(1, 2)  # and it is used


@pytest.mark.parametrize("kind", ["calm", "jumps", "wild"])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_noise_of_every_draw_is_charged_to_its_step(
    policy: Callable[[], Policy], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a step is charged is what its noise promises for a difference of `reach`, comparisons included."""
    promised: list[Fraction] = []

    class Recorded(DiscreteLaplace):
        def release(self, value: Any, *, random: Random | None = None) -> Any:
            promised.append(self.guarantee.epsilon)
            return super().release(value, random=random)

    monkeypatch.setattr(window_stream, "DiscreteLaplace", Recorded)
    stream = WindowStream(epsilon=1, window=7, steps=60, cells=2, reach=3, policy=policy(), random=Random.deterministic(1))
    for table in values(kind, 60):
        promised.clear()
        stream.step(table)
        assert stream._filter.recent[-1] >= sum(promised)
        assert stream._filter.recent[-1] == sum(promised) or len(promised) < 2


def test_a_policy_that_asks_for_too_much_is_refused_before_its_step_is_read() -> None:
    class Greedy(Uniform):
        def shares(self, step: int, remaining: Fraction) -> Shares:
            return Shares(publish=Fraction(1))

    stream = WindowStream(epsilon=1, window=2, steps=9, policy=Greedy())
    stream.step(1)
    with pytest.raises(BudgetExceeded):
        stream.step(1)
    assert stream.taken == 1


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_step_that_was_broken_off_is_not_done_again(failure: type[BaseException]) -> None:
    """Once a step's table has been read, drawing it again would be a second release of one step, and the window would hold one
    step less than w.
    """

    class Fails(Uniform):
        def published(self, step: int, share: Fraction, values: npt.NDArray[np.float64]) -> None:
            if step == 1:
                raise failure

    stream = WindowStream(epsilon=1, window=2, steps=9, policy=Fails(), random=Random.deterministic(1))
    stream.step(1)
    with pytest.raises(failure):
        stream.step(1)
    before = stream._filter
    with pytest.raises(BudgetExceeded, match="broken off"):
        stream.step(1)
    assert stream._filter == before


@pytest.mark.parametrize("estimator", [LastRelease, LocalLevel, GroupMean])
@pytest.mark.parametrize("epsilon", ["1e-60", "1e-6", 10_000, "1e60"])
def test_a_stream_without_a_change_gives_numbers_at_any_epsilon(estimator: Callable[[int], Any], epsilon: Any) -> None:
    stream = WindowStream(epsilon=epsilon, window=2, steps=9, cells=2, estimator=estimator(2), random=Random.deterministic(1))
    for _ in range(6):
        assert np.isfinite(stream.step([5, 0])).all()
    assert epsilon not in (10_000, "1e60") or stream.step([5, 0]).tolist() == [5, 0]


def test_an_epsilon_too_small_for_its_window_is_refused_before_the_first_step() -> None:
    with pytest.raises(InvalidParameter):
        WindowStream(epsilon="1e-100", window=2, steps=9)


def test_a_total_may_be_a_whole_number_of_numpy() -> None:
    assert WindowStream(epsilon=10_000, window=2, steps=9).step(np.int64(5)).tolist() == [5]


@pytest.mark.parametrize("share", [-1, Fraction(-1, 9), float("nan"), "a lot"])
def test_a_policy_that_asks_for_less_than_nothing_is_refused(share: Any) -> None:
    class Odd(Uniform):
        def shares(self, step: int, remaining: Fraction) -> Shares:
            return Shares(look=share, publish=Fraction(1, 2))

    with pytest.raises(InvalidParameter):
        WindowStream(epsilon=1, window=2, steps=9, policy=Odd()).step(1)


def test_distribution_halves_what_is_left_of_the_window() -> None:
    policy = Distribution()
    policy.begin(Fraction(1), 3, 1)
    found = []
    for step in range(6):
        found.append(policy.shares(step, Fraction(1)).publish)
        policy.published(step, found[-1], np.zeros(1))
    assert found[:3] == [Fraction(1, 4), Fraction(1, 8), Fraction(1, 16)]
    assert found[3] == (Fraction(1, 2) - Fraction(1, 8) - Fraction(1, 16)) / 2  # the first is out of the window


def test_absorption_takes_up_what_was_skipped_and_is_silent_afterwards() -> None:
    policy = Absorption()
    policy.begin(Fraction(1), 5, 1)
    unit = Fraction(1, 10)
    policy.published(0, policy.shares(0, Fraction(1)).publish, np.zeros(1))
    assert policy.shares(3, Fraction(1)).publish == 3 * unit  # its own, and those of steps 1 and 2
    policy.published(3, 3 * unit, np.zeros(1))
    assert [policy.shares(step, Fraction(1)).publish / unit for step in (4, 5, 6, 7)] == [0, 0, 1, 2]
    assert all(policy.shares(step, Fraction(1)).look == unit for step in range(8))
    assert policy.shares(60, Fraction(1)).publish == 5 * unit


def test_ours_waits_longer_the_calmer_the_stream_and_is_at_once_where_it_moves() -> None:
    pauses = {}
    for kind in ("calm", "wild"):
        policy = Adaptive()
        stream = WindowStream(epsilon=1, window=40, steps=400, cells=2, policy=policy, random=Random.deterministic(1))
        for table in values(kind, 400):
            stream.step(table)
        pauses[kind] = policy._pause
    assert pauses["calm"] > 10
    assert pauses["wild"] == 1


@pytest.mark.parametrize("estimator", [LastRelease, LocalLevel, GroupMean])
def test_estimators_come_to_the_level_of_a_calm_stream(estimator: Callable[[int], Any]) -> None:
    noisy = np.random.default_rng(2).laplace(0, 20, (200, 3)) + 1000
    made = estimator(3)
    errors = np.array([np.abs(made.estimate(row, 800.0) - 1000).mean() for row in noisy])[50:]
    raw = np.abs(noisy - 1000).mean()
    assert errors.mean() < (1.3 * raw if estimator is LastRelease else 0.6 * raw)
    assert np.array_equal(made.estimate(None, 0.0), made.estimate(None, 0.0))


@pytest.mark.parametrize("estimator", [LocalLevel, GroupMean])
def test_a_jump_is_followed_at_once(estimator: Callable[[int], Any]) -> None:
    made = estimator(1)
    for _ in range(50):
        made.estimate(np.array([100.0]), 8.0)
    assert made.estimate(np.array([5000.0]), 8.0)[0] == pytest.approx(5000, abs=1)


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0}, {"window": 0}, {"steps": 0}, {"cells": 0}, {"reach": 0}, {"reach": 0.5}, {"policy": Sampled(11)}],
)
def test_what_is_declared_wrongly_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        WindowStream(**{"epsilon": 1, "window": 10, "steps": 100, **wrong})


@pytest.mark.parametrize("totals", [[1], [1, 2, 3], [0.5, 1], ["1", "2"], [[1, 2]]])
def test_totals_of_another_shape_or_type_are_refused(totals: Any) -> None:
    stream = WindowStream(epsilon=1, window=10, steps=100, cells=2)
    with pytest.raises(InvalidParameter):
        stream.step(totals)
    assert stream.taken == 0


def test_the_horizon_ends() -> None:
    stream = WindowStream(epsilon=1, window=4, steps=1)
    stream.step(3)
    with pytest.raises(BudgetExceeded, match="declared for 1 steps"):
        stream.step(3)
    assert stream.person == PureDP(1)


class LooksUp(WindowStream):
    """BROKEN: compares the step with the last release exactly, so that whether it publishes tells the data."""

    def _changed(self, exact: npt.NDArray[Any], look: Fraction, publish: Fraction) -> bool:
        return bool(abs(int(exact[0]) - int(self._last[0])) > self.reach / publish)


class WholeShares(Uniform):
    """BROKEN: ε at every step instead of ε/2, with a filter that is not asked."""

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares(publish=2 * self._share)


def told(stream: type[WindowStream], policy: Callable[[], Policy], epsilon: str, *, filtered: bool = True) -> Any:
    """What is released of two steps, n times over."""

    def run(data: Any, n: int, random: Random) -> npt.NDArray[np.float64]:
        rows = np.empty((n, 2))
        for row in rows:
            made = stream(epsilon=epsilon, window=2, steps=2, policy=policy(), estimator=LastRelease(1), random=random)
            for step, total in enumerate(data):
                if not filtered:
                    made._filter = type(made._filter)(made.guarantee, 2)
                row[step] = made.step(total)[0]
        return rows

    return run


FEATURES = {"sum": lambda rows: rows[:, 0] + rows[:, 1], "silent": lambda rows: rows[:, 0] == 0}


@pytest.mark.statistical
@pytest.mark.parametrize("stream", [LooksUp, WindowStream])
def test_a_comparison_without_noise_is_caught(stream: type[WindowStream]) -> None:
    """One reading more brings the first step over what it is compared with: 40, its noise. The broken one is silent below it."""
    claim = PureDP("0.1")
    run = told(stream, Absorption, "0.1")
    found = audit(run, (40, 0), (41, 0), runs=1_000, against=claim, features=FEATURES, random=Random.deterministic(2))
    assert found.contradicts(claim) == (stream is LooksUp)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", [WholeShares, Uniform])
def test_a_whole_epsilon_at_every_step_is_caught(policy: Callable[[], Policy]) -> None:
    run = told(WindowStream, policy, "4", filtered=policy is Uniform)
    found = audit(run, (4, 4), (5, 5), runs=6_000, against=PureDP(4), features=FEATURES, random=Random.deterministic(3))
    assert found.contradicts(PureDP(4)) == (policy is WholeShares)
