"""What is left to a guess: presence and values, by exact worlds that attain the bounds, and by noise whose tails are known."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import cloister as cl
from cloister.privacy import (
    ZCDP,
    About,
    ApproxDP,
    Guarantee,
    Inference,
    PureDP,
    advantage,
    for_groups,
    loss_within,
    sigma_of_gaussian,
    to_bounded,
)

amounts = st.fractions(min_value=Fraction(1, 1000), max_value=8, max_denominator=1000)
slacks = st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 20)])
guarantees = st.one_of(
    st.builds(PureDP, amounts), st.builds(ApproxDP, amounts, slacks), st.builds(ZCDP, amounts), st.builds(ZCDP, amounts, slacks)
)


def counts_by_bit(epsilon: float, reach: int = 60) -> dict[tuple[int, int], tuple[float, float, float]]:
    """Counts of one person's zeros and ones, each with discrete Laplace noise of ε: the chance of both when the person is absent,
    has a 0, has a 1."""
    fall = math.exp(-epsilon)

    def law(at: int) -> float:
        return (1 - fall) / (1 + fall) * fall ** abs(at)

    places = range(-reach, reach + 1)
    return {(x, y): (law(x) * law(y), law(x - 1) * law(y), law(x) * law(y - 1)) for x in places for y in places}


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_the_bounds_are_attained_by_counts_of_values(epsilon: str) -> None:
    """Presence at e^ε : 1, and a value at e^{2ε} : 1: no smaller figure could be promised of either."""
    worlds = counts_by_bit(float(epsilon)).values()
    presence = max(abs(math.log(zero / absent)) for absent, zero, _ in worlds)
    value = max(abs(math.log(zero / one)) for _, zero, one in worlds)
    promised = PureDP(epsilon)
    assert presence == pytest.approx(float(Inference.of(promised).loss or 0))
    assert value == pytest.approx(float(Inference.of(promised, about="value").loss or 0)) == pytest.approx(2 * float(epsilon))
    right = sum(max(absent, zero) for absent, zero, _ in worlds) / 2
    assert right == pytest.approx(float(Inference.of(promised).right), abs=1e-9)
    assert sum(max(zero, one) for _, zero, one in worlds) / 2 <= 1 - math.exp(-float(epsilon)) / 2 + 1e-12


@pytest.mark.parametrize(
    ("guarantee", "doubled"),
    [
        (PureDP("0.5"), (Fraction(1), 0.0)),
        (ApproxDP(1, "1e-6"), (Fraction(2), 1e-6 * (1 + math.e))),
        (ApproxDP(0, "0.01"), (Fraction(0), 0.02)),
    ],
)
def test_a_value_is_two_steps(guarantee: Guarantee, doubled: tuple[Fraction, float]) -> None:
    promise = Inference.of(guarantee, about="value").promise
    assert promise == to_bounded(guarantee)
    assert (promise.epsilon, float(promise.delta)) == (doubled[0], pytest.approx(doubled[1]))  # type: ignore[union-attr]
    assert Inference.of(guarantee, about="value", people=4).promise == for_groups(guarantee, 8)
    assert Inference.of(ZCDP("0.1"), about="value").promise == ZCDP("0.4")


@given(guarantees)
def test_more_people_and_values_are_never_safer_and_never_worse_than_step_by_step(guarantee: Guarantee) -> None:
    one = advantage(guarantee)
    cases: list[tuple[About, int, int]] = [("value", 1, 2), ("presence", 4, 4), ("value", 4, 8)]
    for about, people, steps in cases:
        found = advantage(guarantee, about=about, people=people)
        assert one <= found <= min(Fraction(1), steps * one)
    told = Inference.of(guarantee, about="value")
    assert told.right == (1 + advantage(guarantee, about="value")) / 2
    if told.loss is not None and told.promise is not None and told.chance < 1:
        assert told.loss >= loss_within(told.promise, min(Fraction(999, 1000), told.chance * 2))  # type: ignore[operator]


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "5"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "1e-3"])
def test_delta_is_no_chance_that_epsilon_fails(epsilon: str, delta: str) -> None:
    """Gaussian noise at (ε, δ): its loss is normal with mean μ²/2 and deviation μ, μ = 1/σ. It passes ε with several times δ; it
    passes what is said with the chance that is said."""
    promise = ApproxDP(epsilon, delta)
    mu = 1 / float(sigma_of_gaussian(epsilon=epsilon, delta=delta))

    def beyond(loss: Fraction | float) -> float:
        return float(norm.sf((float(loss) - mu**2 / 2) / mu))

    assert beyond(promise.epsilon) > 3 * float(promise.delta)
    for times in (Fraction(11, 10), 2, 10):
        said = loss_within(promise, promise.delta * times)
        assert said is not None
        assert beyond(said) <= float(promise.delta * times)
    found = Inference.of(promise)
    assert found.chance == 2 * promise.delta
    assert found.loss is not None
    assert math.exp(found.loss) == pytest.approx(2 * math.exp(promise.epsilon))


def test_the_loss_at_a_chance_is_attained() -> None:
    """All that passes ε at one loss, ε + ln 2: exactly (ε, δ)-private, and passed with 2δ."""
    epsilon, delta = 1.0, 0.01
    likely, unlikely = 2 * delta, 2 * delta * math.exp(-epsilon - math.log(2))
    assert likely - math.exp(epsilon) * unlikely == pytest.approx(delta)
    assert (1 - unlikely) / (1 - likely) < math.exp(epsilon)
    said = loss_within(ApproxDP(1, "0.01"), "0.02")
    assert math.log(likely / unlikely) == pytest.approx(float(said or 0))


@pytest.mark.parametrize("rho", ["0.001", "0.1", "2"])
def test_the_loss_under_rho_covers_gaussian_noise(rho: str) -> None:
    mu = math.sqrt(2 * float(rho))
    for chance in ("0.01", "1e-6", "1e-9"):
        said = loss_within(ZCDP(rho), chance)
        assert said is not None
        assert norm.sf((float(said) - mu**2 / 2) / mu) <= float(chance)
    slack = loss_within(ZCDP(rho, "1e-7"), "1e-6")
    plain = loss_within(ZCDP(rho), "1e-6")
    assert slack is not None and plain is not None and slack > plain  # noqa: PT018


def test_what_no_theorem_bounds_is_told_as_that() -> None:
    assert loss_within(ApproxDP(1, "1e-6"), "1e-6") is None
    assert loss_within(ZCDP(1, "1e-6"), "1e-6") is None
    assert loss_within(ZCDP(0), 0) == 0
    wide = Inference.of(ApproxDP(1, "0.4"), about="value")
    assert (wide.promise, wide.loss, wide.chance) == (None, None, 1)
    assert wide.right == min(Fraction(1), Fraction(1, 2) + advantage(ApproxDP(1, "0.4"))), "step by step"
    assert Inference.of(ZCDP("0.1", "1e-6"), people=4).promise is None
    assert advantage(ZCDP("0.001", "1e-6"), people=4) < Fraction(1, 10)
    assert Inference.of(PureDP(10**6), about="value").right == 1
    with pytest.raises(cl.CloisterError, match="presence or about a value"):
        Inference.of(PureDP(1), about="colour")  # type: ignore[arg-type]
    for people in (0, True, 2.5):
        with pytest.raises(cl.CloisterError, match="a group is one person or several"):
            Inference.of(PureDP(1), people=people)  # type: ignore[arg-type]
