"""Privacy loss distributions: never below the truth (a closed form, an enumeration, a quadrature), and close to it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from cloister.errors import CloisterError, InvalidParameter, NotConvertible
from cloister.privacy import ZCDP, ApproxDP, PrivacyLossDistribution, PureDP, epsilon_of_gaussian, optimal, optimal_delta
from cloister.privacy import loss as batches
from cloister.privacy.lattice import DiscreteGaussianPair, DiscreteLaplacePair
from cloister.privacy.pairs import FinitePair, GaussianPair, LaplacePair, Pair

P = PrivacyLossDistribution


def chances(draw: st.DrawFn, size: int) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def finite_batches(draw: st.DrawFn) -> list[tuple[list[Fraction], list[Fraction]]]:
    return [(chances(draw, size), chances(draw, size)) for size in draw(st.lists(st.integers(2, 3), min_size=1, max_size=4))]


def enumerated(batch: list[tuple[list[Fraction], list[Fraction]]], epsilon: Fraction) -> mpmath.mpf:
    """The larger of both directions' Σ max(0, P(x) − e^ε·Q(x)) over all outputs x."""
    mpmath.mp.dps = 50
    factor = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    totals = []
    for left, right in ((0, 1), (1, 0)):
        total = mpmath.mpf(0)
        for cells in itertools.product(*(range(len(pair[0])) for pair in batch)):
            p = math.prod((pair[left][cell] for pair, cell in zip(batch, cells, strict=True)), start=Fraction(1))
            q = math.prod((pair[right][cell] for pair, cell in zip(batch, cells, strict=True)), start=Fraction(1))
            total += max(0, mpmath.mpf(p.numerator) / p.denominator - factor * mpmath.mpf(q.numerator) / q.denominator)
        totals.append(total)
    return max(totals)


@settings(max_examples=60)
@given(finite_batches(), st.fractions(0, 3, max_denominator=100))
def test_finite_pairs_against_enumeration(batch: list[tuple[list[Fraction], list[Fraction]]], epsilon: Fraction) -> None:
    truth = enumerated(batch, epsilon)
    found = P.compose(P.of_pair(p, q) for p, q in batch).delta(epsilon)
    exactly = mpmath.mpf(found.numerator) / found.denominator
    assert exactly >= truth * (1 - mpmath.mpf(10) ** -40)
    assert float(exactly - truth) <= 2e-3 * float(truth) + 1e-5


@settings(max_examples=40)
@given(finite_batches(), st.integers(1, 40))
def test_finite_pairs_at_a_delta(batch: list[tuple[list[Fraction], list[Fraction]]], power: int) -> None:
    delta = Fraction(1, 2**power)
    try:
        epsilon = P.compose(P.of_pair(p, q) for p, q in batch).epsilon(delta)
    except NotConvertible:  # an output that only one neighbour can give
        assert enumerated(batch, Fraction(400)) > float(delta) * (1 - 1e-9)
        return
    assert enumerated(batch, epsilon) <= float(delta) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "5"])
@pytest.mark.parametrize("share", ["0", "0.3", "0.9", "0.999"])
def test_one_laplace_against_its_closed_form(epsilon: str, share: str) -> None:
    bound = Fraction(epsilon) * Fraction(share)
    truth = -math.expm1((float(bound) - float(epsilon)) / 2)
    found = float(P.laplace(epsilon).delta(bound))
    assert truth * (1 - 1e-12) <= found <= truth * 1.001 + 1e-9


@pytest.mark.parametrize(("first", "second", "bound"), [(0.5, 1.0, 0.7), (0.2, 0.3, 0.1), (2.0, 0.1, 1.5)])
def test_two_different_laplace_against_quadrature(first: float, second: float, bound: float) -> None:
    def tail(epsilon: float, above: float) -> float:
        """E (1 − e^{above − L})⁺ for one Laplace loss, from its closed form, for any sign of `above`."""
        if above >= epsilon:
            return 0.0
        return -math.expm1((above - epsilon) / 2) if above > -epsilon else 1 - math.exp(above)

    inner = integrate.quad(lambda x: math.exp((x - first) / 2) / 4 * tail(second, bound - x), -first, first, epsabs=1e-13)[0]
    truth = tail(second, bound - first) / 2 + math.exp(-first) / 2 * tail(second, bound + first) + inner
    found = float((P.laplace(str(first)) + P.laplace(str(second))).delta(str(bound)))
    assert truth * (1 - 1e-10) <= found <= truth * 1.001


@pytest.mark.parametrize("mu_squared", ["0.01", "1", "30", "400"])
@pytest.mark.parametrize("delta", ["0.01", "1e-6", "1e-12", "1e-50", "1e-200"])
def test_a_gridded_gaussian_against_the_analytic_one(mu_squared: str, delta: str) -> None:
    truth = float(epsilon_of_gaussian(mu_squared, delta))
    found = batches._epsilon(((GaussianPair(Fraction(mu_squared)), 1),), float(delta))
    assert truth <= found <= truth * 1.0005


@pytest.mark.parametrize(("epsilon", "count"), [("0.5", 3), ("0.1", 100), ("1", 500), ("0.01", 10000)])
@pytest.mark.parametrize("delta", ["0.01", "1e-5", "1e-9", "1e-30"])
def test_randomised_responses_against_the_binomial_sum(epsilon: str, count: int, delta: str) -> None:
    truth = optimal(PureDP(epsilon), count, delta).epsilon
    found = (P.of_guarantee(PureDP(epsilon)) * count).epsilon(delta)
    assert truth * (1 - Fraction(1, 10**14)) <= found <= truth * Fraction(10003, 10000)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_promised_delta_is_kept(count: int) -> None:
    guarantee = ApproxDP("0.3", "1e-5")
    batch = P.of_guarantee(guarantee) * count
    truth = optimal_delta(guarantee, count, "0.5")
    assert truth <= batch.delta("0.5") * (1 + Fraction(1, 10**12))
    assert batch.delta("0.5") <= truth * Fraction(1002, 1000) + Fraction(1, 10**12)
    with pytest.raises(NotConvertible):
        batch.epsilon("0.9e-5")


def masses_of_discrete_laplace(scale: float, sensitivity: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(-int(60 * scale) - 60, int(60 * scale) + 60 + sensitivity)
    p = np.exp(-np.abs(x) / scale) * math.tanh(1 / scale / 2)
    return p, np.exp(-np.abs(x - sensitivity) / scale) * math.tanh(1 / scale / 2)


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.5, 1), (2, 1), (10, 3), (10, 40), (3000, 6000)])
def test_discrete_laplace_against_its_sum(scale: float, sensitivity: int) -> None:
    p, q = masses_of_discrete_laplace(scale, sensitivity)
    largest = sensitivity / scale
    for share in (0.0, 0.4, 0.95):
        truth = float(np.maximum(p - math.exp(share * largest) * q, 0).sum())
        found = float(P.discrete_laplace(scale=str(scale), sensitivity=sensitivity).delta(str(share * largest)))
        assert truth * (1 - 1e-9) <= found <= truth * 1.001 + 1e-9
    assert P.discrete_laplace(scale=str(scale), sensitivity=sensitivity).epsilon(0) == Fraction(sensitivity) / Fraction(
        str(scale)
    )


@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.5, 1), (2, 1), (20, 3), (511, 20), (600, 1), (5000, 300)])
def test_discrete_gaussian_against_its_sum(sigma: float, sensitivity: int) -> None:
    x = np.arange(-int(16 * sigma) - 16, int(16 * sigma) + 16 + sensitivity, dtype=np.float64)
    bell = np.exp(-x * x / 2 / sigma**2)
    p, q = bell / bell.sum(), np.exp(-((x - sensitivity) ** 2) / 2 / sigma**2) / bell.sum()
    mu = sensitivity / sigma
    for epsilon in (0.0, mu, 3 * mu + mu * mu / 2):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        found = float(P.discrete_gaussian(sigma_squared=str(sigma**2), sensitivity=sensitivity).delta(str(epsilon)))
        assert truth * (1 - 1e-8) <= found <= truth * 1.002 + 1e-12


def test_a_wide_discrete_gaussian_is_all_but_the_continuous_one() -> None:
    found = (P.discrete_gaussian(sigma_squared="1e18", sensitivity=10**8) * 50).epsilon("1e-6")
    truth = epsilon_of_gaussian("0.5", "1e-6")
    assert truth * Fraction(99999, 100000) <= found <= truth * Fraction(1001, 1000)


pairs = st.one_of(
    st.builds(LaplacePair, st.fractions(Fraction(1, 1000), 5, max_denominator=1000)),
    st.builds(DiscreteLaplacePair, st.fractions(Fraction(1, 10), 100, max_denominator=10), st.integers(1, 20)),
    st.builds(DiscreteGaussianPair, st.fractions(Fraction(1, 4), 100, max_denominator=4), st.integers(1, 5)),
    st.builds(GaussianPair, st.fractions(Fraction(1, 1000), 9, max_denominator=1000)),
)


@settings(max_examples=60)
@given(pairs, st.floats(1e-3, 2))
def test_a_gridded_loss_keeps_both_masses_and_never_shrinks(pair: Pair, step: float) -> None:
    coarse, fine = pair.on_grid(step), pair.on_grid(step / 16)
    for grid, h in ((coarse, step), (fine, step / 16)):
        place = (grid.first + np.arange(grid.mass.size)) * h
        assert grid.mass.min() >= 0
        assert 1 - 1e-12 <= grid.mass.sum() + grid.infinite <= 1 + 1e-6
        if isinstance(pair, LaplacePair | DiscreteLaplacePair):  # the others have tails that are moved up
            assert (grid.mass * np.exp(-place)).sum() == pytest.approx(1, rel=1e-6)

    def delta(grid_place: np.ndarray, mass: np.ndarray, epsilon: float) -> float:
        return float((mass * np.maximum(-np.expm1(epsilon - grid_place), 0)).sum())

    coarse_place = (coarse.first + np.arange(coarse.mass.size)) * step
    fine_place = (fine.first + np.arange(fine.mass.size)) * step / 16
    for epsilon in np.linspace(coarse_place[0], coarse_place[-1], 9):
        assert (
            delta(coarse_place, coarse.mass, epsilon) + coarse.infinite
            >= delta(fine_place, fine.mass, epsilon) * (1 - 1e-9) - 1e-15
        )


@settings(max_examples=25)
@given(st.lists(st.fractions(Fraction(1, 100), 2, max_denominator=100), min_size=1, max_size=8), st.integers(3, 30))
def test_epsilon_and_delta_are_inverse_and_composition_is_monotone(parts: list[Fraction], power: int) -> None:
    delta = Fraction(1, 2**power)
    batch = P.compose(P.laplace(part) for part in parts)
    epsilon = batch.epsilon(delta)
    assert batch.delta(epsilon) <= delta * Fraction(1001, 1000)
    more = batch + P.laplace("0.5")
    assert epsilon <= more.epsilon(delta) * (1 + Fraction(1, 1000))
    assert epsilon <= batch.epsilon(delta / 2) * (1 + Fraction(1, 10**9))
    assert epsilon <= sum(parts)


def test_order_and_grouping_do_not_matter() -> None:
    parts = [P.laplace("0.1"), P.gaussian(mu_squared="0.1"), P.laplace("0.2"), P.gaussian(mu_squared="0.2")]
    forwards, backwards = P.compose(parts), P.compose(reversed(parts))
    assert len(forwards.pairs) == 3
    assert float(forwards.epsilon("1e-6")) == pytest.approx(float(backwards.epsilon("1e-6")), rel=1e-9)
    assert (P.laplace("0.1") * 3).pairs == P.compose([P.laplace("0.1")] * 3).pairs


def test_the_popular_form_of_the_advanced_theorem_is_wrong() -> None:
    claimed = 2 * math.sqrt(2 * 500 * math.log(1e5))
    assert claimed == pytest.approx(214.59, abs=0.01)
    batch = P.laplace(1) * 500
    assert 258.2 < batch.epsilon("1e-5") < 258.4
    assert Fraction("0.039") < batch.delta("214.59") < Fraction("0.04")


def test_far_tails_keep_their_precision() -> None:
    batch = P.laplace("0.1") * 1000 + P.gaussian(mu_squared="0.5")
    found = [batch.epsilon(Fraction(1, 10**power)) for power in (3, 10, 30, 100, 200)]
    assert found == sorted(found)
    for power, epsilon in zip((3, 10, 30, 100, 200), found, strict=True):
        assert float(batch.delta(epsilon)) == pytest.approx(10.0**-power, rel=1e-2)


def test_very_many_alike() -> None:
    million = P.of_guarantee(PureDP("0.001")) * 1_000_000
    truth = epsilon_of_gaussian(1, "1e-6")  # by the central limit
    assert float(million.epsilon("1e-6")) == pytest.approx(float(truth), rel=5e-3)


def test_nothing_released_costs_nothing() -> None:
    nothing = P(())
    assert nothing.epsilon(0) == nothing.delta(0) == 0
    for free in (
        P.laplace(0),
        P.gaussian(mu_squared=0),
        P.discrete_laplace(scale=1, sensitivity=0),
        P.discrete_gaussian(sigma_squared=1, sensitivity=0),
        P.of_guarantee(PureDP(0)),
        P.of_pair([1], [1]),
        P.laplace(1) * 0,
    ):
        assert (free + nothing).epsilon("1e-6") == 0


@pytest.mark.parametrize("size", ["1e-300", "1e-30", "1e5", "1e30", "1e300"])
def test_extreme_parameters_stay_on_the_safe_side(size: str) -> None:
    number = Fraction(size)
    assert (P.laplace(number) + P.laplace(1)).epsilon("1e-6") <= number + 1
    assert (P.laplace(number) * 3).epsilon("1e-6") >= 0
    batch = P.laplace(1) + P.gaussian(mu_squared=number)
    try:
        epsilon = batch.epsilon("1e-6")
    except NotConvertible:
        assert number > 10**4
    else:
        assert epsilon >= epsilon_of_gaussian(number, "1e-6") * (1 - Fraction(1, 10**9))


def test_a_disjoint_pair_has_no_epsilon() -> None:
    batch = P.of_pair(["0.5", "0.5", 0], [0, "0.5", "0.5"])
    assert float(batch.delta(0)) == pytest.approx(0.5, rel=1e-9)
    with pytest.raises(NotConvertible):
        batch.epsilon("0.4")
    with pytest.raises(NotConvertible):
        (P.gaussian(mu_squared=1) + P.laplace(1)).epsilon(0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: P.of_pair(["0.5", "0.4"], ["0.5", "0.5"]),
        lambda: P.of_pair(["0.5", "0.5"], [1]),
        lambda: P.of_pair([], []),
        lambda: P.of_pair(["1.5", "-0.5"], ["0.5", "0.5"]),
        lambda: P.laplace(-1),
        lambda: P.laplace(math.nan),
        lambda: P.gaussian(mu_squared="inf"),
        lambda: P.discrete_laplace(scale=0),
        lambda: P.discrete_laplace(scale=1, sensitivity=1.5),  # type: ignore[arg-type]
        lambda: P.discrete_gaussian(sigma_squared=0),
        lambda: P.laplace(1) * -1,
        lambda: P.laplace(1) * True,
        lambda: P.laplace(1).epsilon(1),
        lambda: P.laplace(1).delta(""),
    ],
)
def test_what_is_no_batch_is_refused(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_rho_has_no_worst_pair() -> None:
    with pytest.raises(NotConvertible, match="moments"):
        P.of_guarantee(ZCDP("0.1"))


def test_there_is_no_way_to_add_to_a_batch_in_view_of_its_answers() -> None:
    assert not {"after", "charge", "spend", "append", "add"} & set(dir(P))


def test_a_broken_grid_would_be_seen() -> None:
    """The comparison with enumeration can fail: losses rounded down are caught by it."""
    pair = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    grid = pair.on_grid(0.75)
    loss = (grid.first + np.arange(grid.mass.size)) * 0.75
    down = np.floor(math.log(3) / 0.75) * 0.75
    honest = float((grid.mass * np.maximum(-np.expm1(0.3 - loss), 0)).sum())
    truth = 0.75 - math.exp(0.3) * 0.25
    assert -math.expm1(0.3 - down) * 0.75 < truth <= honest * (1 + 1e-12)
    assert issubclass(InvalidParameter, CloisterError)


def test_a_discrete_gaussian_that_hides_nothing_costs_no_memory() -> None:
    """As for the continuous one: its loss counts as infinite, and a sensitivity of a billion makes no grid of a billion."""
    batch = PrivacyLossDistribution.discrete_gaussian(sigma_squared=1, sensitivity=10**12)
    assert batch.delta(1) == 1
    with pytest.raises(NotConvertible):
        batch.epsilon("1e-6")


def test_noise_beyond_floats_is_refused_in_words() -> None:
    with pytest.raises(NotConvertible, match="beyond what a float holds"):
        PrivacyLossDistribution.discrete_gaussian(sigma_squared="1e400").epsilon("1e-9")
