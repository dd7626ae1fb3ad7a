"""Events, and the accountants that interpret them or refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from cloister.errors import CloisterError, InvalidParameter, NotConvertible
from cloister.privacy import (
    ZCDP,
    ApproxAccountant,
    ApproxDP,
    Composed,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    GaussianRelease,
    LaplaceRelease,
    LossAccountant,
    Nothing,
    NotPrivate,
    Promised,
    PureAccountant,
    PureDP,
    RandomizedResponse,
    RenyiAccountant,
    Repeated,
    Sampled,
    ZCDPAccountant,
    epsilon_of_gaussian,
)

LAPLACE = LaplaceRelease(scale=10)
DISCRETE_LAPLACE = DiscreteLaplaceRelease(scale=10, sensitivity=2)
GAUSSIAN = GaussianRelease(scale=5)
DISCRETE_GAUSSIAN = DiscreteGaussianRelease(scale=5, sensitivity_squared=4)
RESPONSE = RandomizedResponse(noise="0.5", values=3)
PURE, APPROX, RHO = Promised(PureDP("0.2")), Promised(ApproxDP("0.2", "1e-7")), Promised(ZCDP("0.01"))
SAMPLED = Sampled(GAUSSIAN, rate="0.01")
EVENTS = [
    LAPLACE,
    DISCRETE_LAPLACE,
    GAUSSIAN,
    DISCRETE_GAUSSIAN,
    RESPONSE,
    PURE,
    APPROX,
    RHO,
    SAMPLED,
    Sampled(LAPLACE, rate="0.1"),
]

# who knows what:   pure approx zcdp renyi loss
KNOWN = {
    LAPLACE: (1, 1, 1, 1, 1),
    DISCRETE_LAPLACE: (1, 1, 1, 1, 1),
    GAUSSIAN: (0, 0, 1, 1, 1),
    DISCRETE_GAUSSIAN: (0, 0, 1, 1, 1),
    DiscreteGaussianRelease(scale=5, sensitivity_squared=2, entries=2): (0, 0, 1, 1, 0),
    RESPONSE: (1, 1, 1, 1, 1),
    RandomizedResponse(noise=0, values=2): (0, 0, 0, 0, 0),
    PURE: (1, 1, 1, 1, 1),
    APPROX: (0, 1, 1, 0, 1),
    RHO: (0, 0, 1, 1, 0),
    SAMPLED: (0, 0, 0, 1, 1),
    Sampled(LAPLACE, rate="0.1"): (1, 1, 0, 1, 1),
    Sampled(DISCRETE_LAPLACE, rate="0.1"): (1, 1, 0, 1, 1),
    Sampled(RESPONSE, rate="0.1"): (1, 1, 0, 1, 1),
    Sampled(APPROX, rate="0.1"): (0, 1, 0, 0, 1),
    Sampled(Composed((LAPLACE, PURE)), rate="0.1"): (1, 1, 0, 1, 1),
    Sampled(LaplaceRelease(scale=1, sensitivity=3, entries=3), rate="0.1"): (1, 1, 0, 1, 1),
    Sampled(DISCRETE_GAUSSIAN, rate="0.1"): (0, 0, 0, 0, 0),
    Sampled(RHO, rate="0.1"): (0, 0, 0, 0, 0),
    Sampled(Sampled(LAPLACE, rate="0.1"), rate="0.1"): (1, 1, 0, 1, 1),
    Nothing(): (1, 1, 1, 1, 1),
    NotPrivate("a table"): (0, 0, 0, 0, 0),
    Composed((LAPLACE, GAUSSIAN)): (0, 0, 1, 1, 1),
    Repeated(LAPLACE, times=3): (1, 1, 1, 1, 1),
    Composed((LAPLACE, NotPrivate())): (0, 0, 0, 0, 0),
}
ADDING = (PureAccountant(), ApproxAccountant(), ZCDPAccountant(), RenyiAccountant())


@pytest.mark.parametrize(("event", "known"), KNOWN.items(), ids=lambda value: type(value).__name__)
def test_each_accountant_knows_what_it_says_and_refuses_the_rest(event: Any, known: tuple[int, ...]) -> None:
    assert tuple(int(accountant.supports(event)) for accountant in ADDING) == known[:4]
    for accountant, knows in zip(ADDING, known, strict=False):
        if not knows:
            with pytest.raises(NotConvertible):
                accountant.after(event)
    if known[4]:
        LossAccountant.of([event])
    else:
        with pytest.raises(NotConvertible):
            LossAccountant.of([event])


@pytest.mark.parametrize("event", [None, "LaplaceRelease", 1.0, PureDP(1), object()])
def test_what_is_no_event_is_refused(event: Any) -> None:
    for accountant in ADDING:
        with pytest.raises(CloisterError):
            accountant.after(event)
        with pytest.raises(CloisterError):
            accountant.after(Composed((LAPLACE, event)))
    with pytest.raises(CloisterError):
        LossAccountant.of([event])


def test_sums_are_exact() -> None:
    batch = Composed((Repeated(LAPLACE, times=10), DISCRETE_LAPLACE, PURE))
    assert PureAccountant().after(batch).spent == PureDP("1.4")
    assert ApproxAccountant().after(batch).after(APPROX).spent == ApproxDP("1.6", "1e-7")
    assert ZCDPAccountant().after(GAUSSIAN).after(DISCRETE_GAUSSIAN).spent == ZCDP("0.1")
    assert ZCDPAccountant().after(APPROX).spent.delta == Fraction(1, 10**7)
    assert ApproxAccountant().after(Repeated(APPROX, times=10**8)).spent.delta == 1


def test_accountants_are_not_changed_by_what_they_see() -> None:
    accountant = PureAccountant()
    accountant.after(LAPLACE)
    assert accountant.spent == PureDP(0)


def test_randomised_response_is_its_ratio() -> None:
    spent = PureAccountant().after(RESPONSE).spent.epsilon
    assert float(spent) == pytest.approx(math.log((0.5 + 0.5 / 3) / (0.5 / 3)), rel=1e-14)
    assert math.exp(spent) >= 4
    assert PureAccountant().after(RandomizedResponse(noise=1, values=2)).spent == PureDP(0)
    assert float(PureAccountant().after(RandomizedResponse(noise="0.5", values=2)).spent.epsilon) == pytest.approx(math.log(3))


def test_all_accountants_agree_on_who_is_tighter() -> None:
    events = [LAPLACE] * 100
    delta = "1e-6"
    pure = PureAccountant().after(Composed(tuple(events))).to_approx(delta).epsilon
    rho = ZCDPAccountant().after(Composed(tuple(events))).to_approx(delta).epsilon
    renyi = RenyiAccountant().after(Composed(tuple(events))).to_approx(delta).epsilon
    loss = LossAccountant.of(events).to_approx(delta).epsilon
    assert loss < renyi < rho < pure
    assert LossAccountant.of(events).delta(loss) <= Fraction(1001, 10**9)


def test_gaussians_compose_to_one() -> None:
    found = LossAccountant.of([GAUSSIAN] * 25).to_approx("1e-6").epsilon
    assert found == epsilon_of_gaussian(1, "1e-6")
    assert LossAccountant.of([Repeated(GAUSSIAN, times=25)]) == LossAccountant.of([Composed((GAUSSIAN,) * 25)])


def test_several_entries_are_covered_by_pure_epsilon() -> None:
    one, several = LaplaceRelease(scale=1), LaplaceRelease(scale=1, entries=3)
    assert LossAccountant.of([one] * 9).to_approx("1e-3").epsilon < LossAccountant.of([several] * 9).to_approx("1e-3").epsilon
    assert RenyiAccountant().after(one).spent <= RenyiAccountant().after(several).spent


def test_a_batch_takes_no_more() -> None:
    assert not hasattr(LossAccountant.of([LAPLACE]), "after")


def test_orders_are_kept() -> None:
    accountant = RenyiAccountant(orders=[2, 4]).after(GAUSSIAN).after(SAMPLED)
    assert accountant.spent.orders == (2, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceRelease(scale=0),
        lambda: LaplaceRelease(scale="nan"),
        lambda: LaplaceRelease(scale=1, sensitivity=-1),
        lambda: DiscreteLaplaceRelease(scale=1, entries=0),
        lambda: GaussianRelease(scale=math.inf),
        lambda: DiscreteGaussianRelease(scale=1, entries=True),
        lambda: RandomizedResponse(noise="1.5", values=2),
        lambda: RandomizedResponse(noise="0.5", values=1),
        lambda: Sampled(LAPLACE, rate=2),
        lambda: Repeated(LAPLACE, times=0),
        lambda: Repeated(LAPLACE, times="1.5"),
    ],
)
def test_what_is_no_event_cannot_be_made(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_events_are_values() -> None:
    assert LaplaceRelease(scale="10") == LAPLACE
    assert len({LaplaceRelease(scale=10), LaplaceRelease(scale="10.0"), GAUSSIAN}) == 2
    with pytest.raises((AttributeError, TypeError)):
        LAPLACE.scale = Fraction(1)  # type: ignore[misc]


@pytest.mark.parametrize("rate", ["0.001", "0.3", "0.999999"])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "6"])
def test_a_sampled_laplace_release_is_its_exact_curve(epsilon: str, rate: str) -> None:
    """Removal: δ at ln(1 + q(e^ε′ − 1)) is q times δ at ε′ (Balle, Barthe & Gaboardi 2018), which no addition exceeds."""
    found = LossAccountant.of([Sampled(LaplaceRelease(scale=1 / Fraction(epsilon)), rate=rate)])
    q, top = float(Fraction(rate)), float(Fraction(epsilon))
    for share in (0.0, 0.3, 0.9):
        base = 1 - math.exp((share * top - top) / 2)
        told = float(found.delta(math.log1p(q * math.expm1(share * top))))
        assert q * base <= told * (1 + 1e-9) + 1e-15
        assert told <= q * base * (1 + 1e-3) + 1e-9
    assert found.delta(PureAccountant().after(Sampled(LaplaceRelease(scale=1 / Fraction(epsilon)), rate=rate)).spent.epsilon) == 0


@pytest.mark.parametrize("rate", ["0.01", "0.5"])
def test_samples_of_the_worst_mechanism_are_what_amplification_says(rate: str) -> None:
    """One ε-private release of which no more is known: its sample has the curve of the amplified promise, or a lower one."""
    event = Sampled(Promised(PureDP(2)), rate=rate)
    amplified = PureAccountant().after(event).spent
    once = LossAccountant.of([event])
    assert once.to_approx(0).epsilon == amplified.epsilon
    many = LossAccountant.of([Repeated(event, times=200)]).to_approx("1e-6").epsilon
    assert many <= LossAccountant.of([Repeated(Promised(amplified), times=200)]).to_approx("1e-6").epsilon
    assert LossAccountant.of([Sampled(LAPLACE, rate=1)]) == LossAccountant.of([LAPLACE])
    assert LossAccountant.of([Sampled(LAPLACE, rate=0)]).to_approx(0) == ApproxDP(0, 0)


def test_a_sample_is_composed_with_what_was_not_sampled() -> None:
    batch = [Repeated(Sampled(LAPLACE, rate="0.01"), times=1000), GAUSSIAN, PURE]
    found = LossAccountant.of(batch).to_approx("1e-6").epsilon
    assert (
        LossAccountant.of(batch[1:]).to_approx("1e-6").epsilon
        < found
        < LossAccountant.of(batch[1:]).to_approx("1e-6").epsilon + 1
    )
    with pytest.raises(NotConvertible, match="LossAccountant"):
        LossAccountant.of([Sampled(Composed((LAPLACE, GAUSSIAN)), rate="0.1")])
