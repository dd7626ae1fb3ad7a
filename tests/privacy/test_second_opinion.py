"""The second opinion, dp-accounting, on closed forms and loss distributions. Its import takes seconds: it is loaded only here."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from cloister.privacy import (
    ZCDP,
    ApproxDP,
    Composed,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    Event,
    GaussianRelease,
    LaplaceRelease,
    LossAccountant,
    Nothing,
    NotPrivate,
    PrivacyLossDistribution,
    Promised,
    PureDP,
    RandomizedResponse,
    RenyiCurve,
    Repeated,
    Sampled,
    delta_of_gaussian,
    epsilon_of_gaussian,
    epsilon_of_renyi,
    sigma_of_gaussian,
    to_dp_accounting,
)
from cloister.privacy import loss as batches


@pytest.fixture(scope="module")
def theirs() -> Any:
    import dp_accounting
    from dp_accounting import pld, rdp
    from dp_accounting.pld import accountant, privacy_loss_distribution
    from dp_accounting.rdp import rdp_privacy_accountant

    class Opinion:
        root, pld_accountant, rdp_accountant = dp_accounting, pld.PLDAccountant, rdp.RdpAccountant
        distributions, gaussian, orders_to_epsilon = privacy_loss_distribution, accountant, rdp_privacy_accountant

    return Opinion


def neighbours_of(event: Event, theirs: Any) -> Any:
    """A response is changed, not added or removed; the other accountant takes it in no other way."""
    relations = theirs.root.NeighboringRelation
    return relations.REPLACE_ONE if isinstance(event, RandomizedResponse) else relations.ADD_OR_REMOVE_ONE


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_analytic_gaussian(theirs: Any, epsilon: float, mu: float) -> None:
    found = float(delta_of_gaussian(str(mu * mu), str(epsilon)))
    distribution = theirs.distributions.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4)
    other = distribution.get_delta_for_epsilon(epsilon)
    if other > 1e-12:
        assert found == pytest.approx(other, rel=1e-3)


def test_the_noise_for_an_epsilon_and_a_delta(theirs: Any) -> None:
    for epsilon, delta in ((0.5, 1e-6), (1.0, 1e-5), (4.0, 1e-9)):
        sigma = float(sigma_of_gaussian(epsilon=str(epsilon), delta=str(delta)))
        assert sigma == pytest.approx(theirs.gaussian.get_smallest_gaussian_noise(
            theirs.gaussian.common.DifferentialPrivacyParameters(epsilon, delta), 1), rel=1e-3)  # fmt: skip
        assert float(epsilon_of_gaussian(1 / Fraction(sigma) ** 2, str(delta))) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_from_renyi_to_epsilon(theirs: Any, delta: float) -> None:
    for order, value in ((2.0, 0.3), (8.0, 0.4), (64.0, 2.0)):
        other, _ = theirs.orders_to_epsilon.compute_epsilon([order], [value], delta)
        assert float(epsilon_of_renyi(str(order), str(value), str(delta))) == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    ("event", "curve"),
    [
        (LaplaceRelease(scale=2), lambda orders: RenyiCurve.laplace("0.5", orders)),
        (GaussianRelease(scale=3), lambda orders: RenyiCurve.gaussian(mu_squared="1/9", orders=orders)),
        (
            Sampled(GaussianRelease(scale=1), rate="0.01"),
            lambda orders: RenyiCurve.sampled_gaussian(mu_squared=1, rate="0.01", orders=orders),
        ),
        (
            Sampled(GaussianRelease(scale=2), rate="0.3"),
            lambda orders: RenyiCurve.sampled_gaussian(mu_squared="0.25", rate="0.3", orders=orders),
        ),
        (RandomizedResponse(noise="0.5", values=2), lambda orders: RenyiCurve.pure(PureDP("1.0986122886681098"), orders)),
        (Promised(ZCDP("0.02")), lambda orders: RenyiCurve.zcdp(ZCDP("0.02"), orders)),
    ],
)
def test_renyi_curves_at_whole_orders(theirs: Any, event: Event, curve: Any) -> None:
    orders = [2, 3, 5, 8, 16, 32, 64]
    accountant = theirs.rdp_accountant(orders, neighbours_of(event, theirs))
    accountant.compose(to_dp_accounting(event))
    for mine, other in zip(curve(orders).divergences, accountant._rdp, strict=True):
        assert float(mine) == pytest.approx(other, rel=1e-7)


def test_a_thousand_sampled_gaussians(theirs: Any) -> None:
    event = Repeated(Sampled(GaussianRelease(scale=1), rate="0.01"), times=1000)
    accountant = theirs.rdp_accountant()
    accountant.compose(to_dp_accounting(event))
    found = float((RenyiCurve.sampled_gaussian(mu_squared=1, rate="0.01") * 1000).to_approx("1e-6").epsilon)
    assert found == pytest.approx(accountant.get_epsilon(1e-6), rel=0.02)


@pytest.mark.parametrize(
    "events",
    [
        [LaplaceRelease(scale=2)],
        [LaplaceRelease(scale=10)] * 30,
        [GaussianRelease(scale=4)] * 5,
        [DiscreteLaplaceRelease(scale=3, sensitivity=2)] * 10,
        [RandomizedResponse(noise="0.7", values=4)] * 20,
        [Promised(PureDP("0.2"))] * 20,
        [
            LaplaceRelease(scale=5),
            GaussianRelease(scale=3),
            DiscreteLaplaceRelease(scale=2),
            Promised(PureDP("0.3")),
        ],
    ],
    ids=["Laplace", "30 Laplace", "Gaussian", "discrete Laplace", "responses", "promises", "mixed"],
)
def test_loss_distributions(theirs: Any, events: list[Event]) -> None:
    accountant = theirs.pld_accountant(neighbours_of(events[0], theirs))
    for event in events:
        accountant.compose(to_dp_accounting(event))
    mine = LossAccountant.of(events)
    for delta in (1e-3, 1e-6):
        assert float(mine.to_approx(str(delta)).epsilon) == pytest.approx(accountant.get_epsilon(delta), rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("sigma", [1.0, 7.5])
def test_the_discrete_gaussian(theirs: Any, sigma: float) -> None:
    other = theirs.distributions.from_discrete_gaussian_mechanism(sigma, sensitivity=1).self_compose(20)
    mine = PrivacyLossDistribution.discrete_gaussian(sigma_squared=str(sigma**2)) * 20
    for delta in (1e-3, 1e-6):
        assert float(mine.epsilon(str(delta))) == pytest.approx(other.get_epsilon_for_delta(delta), rel=2e-3)


def batch_of(count: int) -> list[Event]:
    """That many different Laplace and Gaussian releases, of ε (or μ) from 0.02 to 0.5."""
    sizes = [Fraction(round(10**6 * 0.02 * 25 ** ((i * 0.618034) % 1)), 10**6) for i in range(count)]
    return [LaplaceRelease(scale=1 / size) if i % 2 else GaussianRelease(scale=1 / size) for i, size in enumerate(sizes)]


def test_a_hundred_different_releases_within_a_percent_and_never_below(theirs: Any) -> None:
    events = batch_of(100)
    accountant = theirs.pld_accountant(value_discretization_interval=2e-4)
    for event in events:
        accountant.compose(to_dp_accounting(event))
    optimistic = None
    for event in events:
        dp_event = to_dp_accounting(event)
        make = (
            theirs.distributions.from_laplace_mechanism
            if isinstance(event, LaplaceRelease)
            else theirs.distributions.from_gaussian_mechanism
        )
        part = make(dp_event.noise_multiplier, value_discretization_interval=5e-4, pessimistic_estimate=False)
        optimistic = part if optimistic is None else optimistic.compose(part)
    mine = LossAccountant.of(events)
    for delta in (1e-3, 1e-6, 1e-9):
        found, pessimistic = float(mine.to_approx(str(delta)).epsilon), accountant.get_epsilon(delta)
        assert found == pytest.approx(pessimistic, rel=0.01)
        assert found >= optimistic.get_epsilon_for_delta(delta)  # a lower bound on the truth
    epsilon = Fraction(round(accountant.get_epsilon(1e-6) * 1000), 1000)
    assert float(mine.delta(epsilon)) == pytest.approx(accountant.get_delta(float(epsilon)), rel=0.01)


@pytest.mark.slow
def test_a_thousand_different_releases_within_a_percent(theirs: Any) -> None:
    events = batch_of(1000)
    accountant = theirs.pld_accountant()
    for event in events:
        accountant.compose(to_dp_accounting(event))
    assert float(LossAccountant.of(events).to_approx("1e-6").epsilon) == pytest.approx(accountant.get_epsilon(1e-6), rel=0.01)


def test_a_thousand_gaussians_on_the_grid_are_above_their_closed_form() -> None:
    """No second opinion is needed here: the sum of Gaussians is a Gaussian, and the grid must know it too."""
    from cloister.privacy.pairs import Gridded, grid_all
    from cloister.privacy.spectrum import Spectrum

    [grid] = grid_all([batches.GaussianPair(Fraction(1, 1000))], 5e-5)
    truth = float(epsilon_of_gaussian(1, "1e-6"))
    found = Spectrum([grid], [1000], 5e-5).epsilon(1e-6)
    assert truth <= found <= truth + 1000 * 5e-5 * 1.01  # each was rounded up to the next grid point
    half = Gridded(grid.first - 1, grid.mass, grid.infinite)  # a broken twin: each rounded down
    assert Spectrum([half], [1000], 5e-5).epsilon(1e-6) < truth


def test_the_popular_form_is_wrong(theirs: Any) -> None:
    accountant = theirs.pld_accountant(value_discretization_interval=1e-3)
    accountant.compose(to_dp_accounting(Repeated(LaplaceRelease(scale=1), times=500)))
    batch = PrivacyLossDistribution.laplace(1) * 500
    assert float(batch.epsilon("1e-5")) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)
    assert float(batch.delta("214.59")) == pytest.approx(accountant.get_delta(214.59), rel=1e-2)


def test_the_export_knows_every_event_and_rounds_towards_more_spending(theirs: Any) -> None:
    root = theirs.root
    third = Fraction(1, 3)
    laplace = to_dp_accounting(LaplaceRelease(scale=third))
    assert Fraction(laplace.noise_multiplier) <= third
    gaussian = to_dp_accounting(GaussianRelease(scale=1, sensitivity_squared=2))
    assert Fraction(gaussian.noise_multiplier) ** 2 <= Fraction(1, 2)
    assert gaussian.noise_multiplier == pytest.approx(math.sqrt(0.5))
    discrete = to_dp_accounting(DiscreteLaplaceRelease(scale=3, sensitivity="1.5"))
    assert Fraction(discrete.noise_parameter) >= third
    assert discrete.sensitivity == 2
    assert Fraction(to_dp_accounting(DiscreteGaussianRelease(scale=3)).rho) >= Fraction(1, 18)
    pure = to_dp_accounting(Promised(PureDP(third)))
    assert Fraction(pure.noise_parameter) >= third
    assert pure.sensitivity == 1
    assert to_dp_accounting(Promised(ApproxDP(third, 0))) == pure
    assert Fraction(to_dp_accounting(RandomizedResponse(noise=third, values=2)).noise_parameter) <= third
    assert isinstance(to_dp_accounting(Promised(ApproxDP(1, "1e-6"))), root.dp_event.UnsupportedDpEvent)
    assert isinstance(to_dp_accounting(Promised(ZCDP(1, "1e-6"))), root.dp_event.UnsupportedDpEvent)
    assert to_dp_accounting(NotPrivate("a table")) == root.NonPrivateDpEvent()
    for nothing in (
        Nothing(),
        Promised(PureDP(0)),
        LaplaceRelease(scale=1, sensitivity=0),
        GaussianRelease(scale=1, sensitivity_squared=0),
    ):
        assert to_dp_accounting(nothing) == root.NoOpDpEvent()
    nested = to_dp_accounting(Composed((Repeated(Sampled(GaussianRelease(scale=1), rate=third), times=2), Nothing())))
    assert nested.events[0].count == 2
    assert Fraction(nested.events[0].event.sampling_probability) >= third
    with pytest.raises(ValueError, match="not an event"):
        to_dp_accounting("LaplaceRelease")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "rate", "times"), [("1", "0.01", 1000), ("0.1", "0.3", 200), ("5", "0.001", 100), ("1", "0.999", 20)]
)
def test_sampled_laplace_noise_within_a_thousandth_and_never_below(theirs: Any, epsilon: str, rate: str, times: int) -> None:
    """Both directions of a Poisson sample, composed; their optimistic estimate is a lower bound on the truth."""
    event = Repeated(Sampled(LaplaceRelease(scale=1 / Fraction(epsilon)), rate=rate), times=times)
    mine = LossAccountant.of([event])
    above, below = (
        theirs.distributions.from_laplace_mechanism(
            1 / float(epsilon), sampling_prob=float(rate), value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
        ).self_compose(times)
        for pessimistic in (True, False)
    )
    for delta in (1e-3, 1e-6):
        found = float(mine.to_approx(str(delta)).epsilon)
        assert found == pytest.approx(above.get_epsilon_for_delta(delta), rel=1e-3)
        assert found >= below.get_epsilon_for_delta(delta)
