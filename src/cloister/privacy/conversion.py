"""From one kind of promise to another, in each direction that exists; whatever is not exact is rounded towards more spending.

==================  ==========================================================  ==================================================
from                to                                                          by
==================  ==========================================================  ==================================================
pure ε              zCDP: ρ = ε·tanh(ε/2) ≤ ε²/2                                `zcdp_of_pure`; exact and simple: `PureDP.to_zcdp`
pure ε              (ε′, δ) for every ε′                                        `delta_of_pure`, `epsilon_of_pure`
(ε, δ)              (ε′, δ′) for every ε′; δ-approximate zCDP                   `delta_of_approx`, `zcdp_of_approx`
zCDP ρ              (ε, δ) for every δ > 0; and the ρ for a wanted (ε, δ)       `epsilon_of_zcdp`, `delta_of_zcdp`, `zcdp_within`
Rényi (α, τ)        (ε, δ) for every δ > 0                                      `epsilon_of_renyi`
any                 one for groups of k units; from unbounded to bounded        `cloister.privacy.groups`
==================  ==========================================================  ==================================================

There is no way from (ε, δ > 0) or ρ > 0 back to pure ε, and none from bounded neighbours to unbounded ones; asking raises
`NotConvertible`. Gaussian noise has an exact curve of its own: `cloister.privacy.gaussian`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP, pure_of, pure_or_approx, zcdp_or_rho
from cloister.privacy.precision import context, down, lowest_between, real, up
from cloister.privacy.rational import Exact, exact, exact_nonnegative, exact_probability, text_of


def delta_of_pure(guarantee: PureDP | Exact, epsilon: Exact) -> Fraction:
    """The least δ, rounded up, for which ε₀-DP implies (ε, δ)-DP: (e^ε₀ − e^ε)/(1 + e^ε₀) below ε₀, and 0 from there on.

    Theorem: Kairouz, Oh & Viswanath (2015): what an ε₀-DP mechanism tells, randomised response tells too.

    >>> delta_of_pure(PureDP(1), 1), float(delta_of_pure(PureDP(1), 0))
    (Fraction(0, 1), 0.46211715726001)
    """
    return delta_of_approx(guarantee, epsilon)


def delta_of_approx(guarantee: PureDP | ApproxDP | Exact, epsilon: Exact) -> Fraction:
    """The least δ, rounded up, for which (ε₀, δ₀)-DP implies (ε, δ)-DP: below ε₀ it is δ₀ + (1 − δ₀)(e^ε₀ − e^ε)/(1 + e^ε₀).

    Theorem: Kairouz, Oh & Viswanath (2015).

    >>> float(delta_of_approx(ApproxDP(1, "1e-6"), "0.9")) > 1e-6
    True
    """
    guarantee, wanted = pure_or_approx(guarantee), exact_nonnegative(epsilon, "epsilon")
    if wanted >= guarantee.epsilon:
        return guarantee.delta
    number = context()
    difference, top = real(guarantee.epsilon - wanted), real(guarantee.epsilon)
    slack = up(-number.expm1(-difference) / (1 + number.exp(-top)))
    return min(Fraction(1), guarantee.delta + (1 - guarantee.delta) * slack)


def epsilon_of_pure(guarantee: PureDP | Exact, delta: Exact) -> Fraction:
    """The least ε, rounded up, for which ε₀-DP implies (ε, δ)-DP: ln(e^ε₀ − δ(1 + e^ε₀)), and not below 0.

    >>> epsilon_of_pure(PureDP(1), "1e-6") < 1
    True
    """
    guarantee, slack = pure_of(guarantee), exact_probability(delta, "delta")
    if slack == 0:
        return guarantee.epsilon
    number = context()
    lost = real(slack) * (1 + number.exp(-real(guarantee.epsilon)))
    if lost >= 1:
        return Fraction(0)
    fallen = down(-number.log1p(-lost))  # 1 − lost would have no digits left of a δ far below 10⁻³⁰
    return max(Fraction(0), guarantee.epsilon - fallen)


def zcdp_of_pure(guarantee: PureDP | Exact) -> ZCDP:
    """ε-DP implies ρ-zCDP with ρ = ε·tanh(ε/2), rounded up and never above the simple ε²/2; no smaller ρ will do.

    Proof. By Kairouz, Oh & Viswanath (2015) randomised response is the worst ε-DP mechanism; its loss is ±ε with odds e^ε : 1, so
    with x = ε/2, α > 1 and v = 2α − 1 its Rényi divergence satisfies (α − 1)·D_α = ln cosh(vx) − ln cosh(x). Put f(w) = ln
    cosh(x√w). Then f′(w) = (x²/2)·tanh(y)/y with y = x√w falls as w grows: f is concave, and f(v²) − f(1) ≤ f′(1)·(v² − 1) =
    ½·x·tanh(x)·4α(α − 1). Divide by α − 1: D_α ≤ α·2x·tanh(x) = α·ε·tanh(ε/2). At α → 1 it is an equality. ∎

    >>> zcdp_of_pure(PureDP(2)).rho < PureDP(2).to_zcdp().rho
    True
    """
    guarantee = pure_of(guarantee)
    if guarantee.epsilon == 0:
        return ZCDP(0)
    tight = up(real(guarantee.epsilon) * context().tanh(real(guarantee.epsilon / 2)))
    return ZCDP(min(tight, guarantee.epsilon**2 / 2))


def zcdp_of_approx(guarantee: PureDP | ApproxDP | Exact) -> ZCDP:
    """(ε, δ)-DP implies δ-approximate ρ-zCDP with the ρ of ε-DP.

    Proof. By Kairouz, Oh & Viswanath (2015) every (ε, δ)-DP mechanism is a post-processing of one that with probability δ says
    everything and otherwise does ε-randomised response; setting that event aside leaves ε-DP. ∎

    >>> zcdp_of_approx(ApproxDP("0.1", "1e-6")).delta
    Fraction(1, 1000000)
    """
    guarantee = pure_or_approx(guarantee)
    return ZCDP(zcdp_of_pure(guarantee.epsilon).rho, guarantee.delta)


def epsilon_of_renyi(order: Exact, divergence: Exact, delta: Exact) -> Fraction:
    """The ε, rounded up, for which a Rényi divergence of at most `divergence` at one order implies (ε, δ)-DP.

    ε = τ + ln(1 − 1/α) − ln(αδ)/(α − 1), and not below 0. Theorem: Canonne, Kamath & Steinke (2020), Proposition 12; for both
    directions of the neighbours the divergence must be bounded.

    >>> float(epsilon_of_renyi(8, "0.4", "1e-6"))
    1.943...
    """
    alpha, slack = exact(order, "order"), exact_probability(delta, "delta")
    if alpha <= 1:
        raise InvalidParameter(f"order={text_of(alpha)} is invalid", why="a Rényi order is greater than 1", instead="order=2")
    _refuse_no_slack(slack)
    tau = real(exact_nonnegative(divergence, "divergence"))
    log_delta = context().log(real(slack))
    return max(Fraction(0), up(tau + _price(real(alpha) - 1, log_delta)))


def epsilon_of_zcdp(guarantee: ZCDP | Exact, delta: Exact) -> Fraction:
    """The least ε, rounded up, for which ρ-zCDP is known to imply (ε, δ)-DP: the best order of the Rényi conversion.

    ε = min over α > 1 of αρ + ln(1 − 1/α) − ln(αδ)/(α − 1). Theorem: Canonne, Kamath & Steinke (2020), Corollary 13. Every α
    gives a valid bound, so the search for the best one needs no proof. A δ₀-approximate ρ leaves (δ − δ₀)/(1 − δ₀) for the
    conversion (Bun & Steinke 2016, Lemma 8.8).

    >>> float(epsilon_of_zcdp(ZCDP("0.1"), "1e-6"))  # the simple formula gives 2.45
    2.1...
    """
    guarantee, slack = zcdp_or_rho(guarantee), exact_probability(delta, "delta")
    if slack < guarantee.delta:
        raise NotConvertible(
            f"{guarantee} was not converted to δ = {text_of(slack)}",
            why="its own δ is larger",
            instead=f'a delta above "{text_of(guarantee.delta)}"',
        )
    if guarantee.rho == 0:
        return Fraction(0)
    left = (slack - guarantee.delta) / (1 - guarantee.delta)
    _refuse_no_slack(left)
    number = context()
    rho, log_delta = real(guarantee.rho), number.log(real(left))
    start = (number.log(1 - log_delta) - number.log(rho)) / 2
    best = _lowest(lambda t: (1 + number.exp(t)) * rho + _price(number.exp(t), log_delta), start)
    above = number.exp(best)
    return max(Fraction(0), up((1 + above) * rho + _price(above, log_delta)))


def simple_epsilon_of_zcdp(guarantee: ZCDP | Exact, delta: Exact) -> Fraction:
    """The textbook conversion ρ + 2√(ρ·ln(1/δ)), rounded up: Bun & Steinke (2016), Proposition 1.3. Never better than
    `epsilon_of_zcdp`.

    >>> float(simple_epsilon_of_zcdp(ZCDP("0.1"), "1e-6"))
    2.45...
    """
    guarantee, slack = zcdp_or_rho(guarantee), exact_probability(delta, "delta")
    if guarantee.rho == 0 and slack >= guarantee.delta:
        return Fraction(0)
    left = (slack - guarantee.delta) / (1 - guarantee.delta) if slack > guarantee.delta else Fraction(0)
    _refuse_no_slack(left)
    rho = real(guarantee.rho)
    return up(rho + 2 * context().sqrt(rho * -context().log(real(left))))


def delta_of_zcdp(guarantee: ZCDP | Exact, epsilon: Exact) -> Fraction:
    """The least δ, rounded up, for which ρ-zCDP is known to imply (ε, δ)-DP.

    δ = min over α > 1 of exp((α − 1)(αρ − ε))·(1 − 1/α)^α/(α − 1). Theorem: Canonne, Kamath & Steinke (2020), Corollary 13.

    >>> delta_of_zcdp(ZCDP("0.1"), "2.4") < Fraction(1, 10**6)
    True
    """
    guarantee, bound = zcdp_or_rho(guarantee), exact_nonnegative(epsilon, "epsilon")
    if guarantee.rho == 0:
        return guarantee.delta
    number = context()
    rho, wanted = real(guarantee.rho), real(bound)

    def log_delta(t: Any) -> Any:
        above = number.exp(t)
        alpha = 1 + above
        return above * (alpha * rho - wanted) - alpha * number.log1p(1 / above) - t

    start = number.log(max(wanted / (2 * rho), number.sqrt(1 / rho), number.mpf("0.5")))
    slack = min(Fraction(1), up(number.exp(log_delta(_lowest(log_delta, start)))))
    return guarantee.delta + (1 - guarantee.delta) * slack


def zcdp_within(*, epsilon: Exact, delta: Exact) -> ZCDP:
    """The largest ρ, rounded down, whose `epsilon_of_zcdp` at δ is at most ε: what an (ε, δ) budget is worth in ρ.

    >>> epsilon_of_zcdp(zcdp_within(epsilon=1, delta="1e-6"), "1e-6") <= 1
    True
    """
    bound, slack = exact_nonnegative(epsilon, "epsilon"), exact_probability(delta, "delta")
    _refuse_no_slack(slack)
    return _zcdp_within(bound, slack)


@lru_cache(maxsize=1024)
def _zcdp_within(bound: Fraction, slack: Fraction) -> ZCDP:
    number = context()
    wanted, log_delta = real(bound), number.log(real(slack))

    def negative_rho(t: Any) -> Any:
        above = number.exp(t)
        return -(wanted - _price(above, log_delta)) / (1 + above)

    start = number.log(2 * (1 - log_delta) / max(wanted, real(slack)))
    rho = -negative_rho(_lowest(negative_rho, start))
    if rho <= 0:
        return ZCDP(0)
    best, step = down(rho), Fraction(1, 10**14)
    while best > 0 and epsilon_of_zcdp(ZCDP(best), slack) > bound:
        best, step = max(Fraction(0), best * (1 - step)), 2 * step
    return ZCDP(best)


def _price(above: Any, log_delta: Any) -> Any:
    """What δ costs at the order 1 + `above`: ln(1 − 1/α) − ln(αδ)/(α − 1)."""
    number = context()
    return -number.log1p(1 / above) - (log_delta + number.log1p(above)) / above


def _lowest(function: Callable[[Any], Any], start: Any) -> Any:
    """Where a function with one valley is lowest, to seven digits: brackets outwards from `start`, then the golden section."""
    number = context()
    step = number.mpf(1)
    left, right = start - step, start + step
    middle_value = function(start)
    while function(left) < middle_value:
        start, middle_value, step = left, function(left), 2 * step
        left -= step
    right = max(right, start + step)
    while function(right) < middle_value:
        start, middle_value, step = right, function(right), 2 * step
        right += step
    return lowest_between(function, left, right, width=number.mpf(10) ** -9, ratio=(number.sqrt(5) - 1) / 2)


def _refuse_no_slack(delta: Fraction) -> None:
    if delta == 0:
        raise NotConvertible(
            "A conversion to δ = 0 is invalid",
            why="a bound on moments of the privacy loss leaves it a small chance to be large",
            instead='delta="1e-6"',
        )
