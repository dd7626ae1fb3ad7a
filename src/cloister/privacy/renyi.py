"""Rényi curves: a bound on the Rényi divergence of neighbouring outputs at each of a list of orders.

Guarantee. A mechanism has the curve (α, τ) when the Rényi divergence of order α between its outputs on neighbours, in either
direction, is at most τ(α) at each listed order (Mironov 2017). Curves add under composition (his Proposition 1), also when a
mechanism is chosen in view of earlier answers, parameters fixed in advance. Every closed form is rounded up.

Between two orders nothing is listed, but something is known: (α − 1)·τ(α) is convex in α, and 0 at α = 1 (van Erven & Harremoës
2014, Corollary 2), so the chord is a bound. It is used for the sampled Gaussian mechanism, whose closed form needs whole orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import Any

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy.conversion import epsilon_of_renyi
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP, pure_of, zcdp_or_rho
from cloister.privacy.precision import context, real, rounded_up, up
from cloister.privacy.rational import Exact, exact, exact_nonnegative, exact_probability, text_of, whole_number

ORDERS: tuple[Fraction, ...] = tuple(
    1 + Fraction(quarters, 4) * Fraction(2) ** power for power in range(-7, 12) for quarters in range(4, 8)
)
"""The orders at which curves are kept unless others are named: from 1 + 1/128 to 3585, four in each doubling of α − 1."""

_LEAST = 1 + Fraction(1, 10**6)  # divergences grow with the order, so nearer to 1 the one here is a bound, with no digits lost
_TINIEST = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True, init=False)
class RenyiCurve:
    """A Rényi divergence bound at each of a list of orders; `+` composes, at the orders that both have.

    >>> (RenyiCurve.gaussian(mu_squared="0.01") + RenyiCurve.laplace("0.1")).to_approx("1e-6").epsilon < Fraction("0.8")
    True
    """

    orders: tuple[Fraction, ...]
    divergences: tuple[Fraction, ...]

    def __init__(self, orders: Iterable[Exact], divergences: Iterable[Exact]) -> None:
        alphas = tuple(exact(order, "order") for order in orders)
        taus = tuple(exact_nonnegative(value, "divergence") for value in divergences)
        if not alphas or len(alphas) != len(taus):
            raise InvalidParameter(
                "The curve is invalid", why="each order needs one divergence", instead='RenyiCurve([2, 4], ["0.1", "0.2"])'
            )
        if alphas[0] <= 1 or any(left >= right for left, right in pairwise(alphas)):
            raise InvalidParameter("The orders are invalid", why="they must exceed 1 and increase", instead="orders=[2, 4, 8]")
        object.__setattr__(self, "orders", alphas)
        object.__setattr__(self, "divergences", taus)

    @classmethod
    def of(cls, divergence: Callable[[Fraction], Fraction], orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """The curve of a function of the order, which must round up itself.

        >>> RenyiCurve.of(lambda order: order / 2, [2, 4]).divergences
        (Fraction(1, 1), Fraction(2, 1))
        """
        alphas = tuple(exact(order, "order") for order in orders)
        return cls(alphas, [divergence(alpha) for alpha in alphas])

    @classmethod
    def zcdp(cls, guarantee: ZCDP | Exact, orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """ρ-zCDP is the line αρ.

        >>> RenyiCurve.zcdp(ZCDP("0.5"), [2]).divergences
        (Fraction(1, 1),)
        """
        line = zcdp_or_rho(guarantee)
        if line.delta:
            raise NotConvertible(
                f"{line} has no Rényi curve", why="its δ may hold an infinite loss", instead="a ZCDP with delta=0"
            )
        return cls.of(lambda alpha: alpha * line.rho, orders)

    @classmethod
    def gaussian(cls, *, mu_squared: Exact, orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """Gaussian noise, continuous or discrete, μ² = Δ₂²/σ²: αμ²/2.

        Theorem: Mironov (2017), Corollary 3, with equality; discrete: Canonne, Kamath & Steinke (2020), Theorem 4, as an upper
        bound.

        >>> RenyiCurve.gaussian(mu_squared=1, orders=[8]).divergences
        (Fraction(4, 1),)
        """
        return cls.zcdp(ZCDP(exact_nonnegative(mu_squared, "mu_squared") / 2), orders)

    @classmethod
    def pure(cls, guarantee: PureDP | Exact, orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """Any ε-DP mechanism; attained by binary randomised response: ln(cosh((α − ½)ε)/cosh(ε/2))/(α − 1).

        Theorem: Kairouz, Oh & Viswanath (2015) for the worst pair; Mironov (2017), Proposition 5 for its divergence.

        >>> RenyiCurve.pure(PureDP(1), [2]).divergences[0] <= 1
        True
        """
        epsilon = pure_of(guarantee).epsilon

        def divergence(alpha: Fraction) -> Fraction:
            if epsilon == 0:
                return Fraction(0)
            near = max(alpha, _LEAST)
            half, far = real(epsilon / 2), real((near - Fraction(1, 2)) * epsilon)
            value = (_log_cosh(far) - _log_cosh(half)) / real(near - 1)
            return min(epsilon, alpha * epsilon**2 / 2, up(value))

        return cls.of(divergence, orders)

    @classmethod
    def laplace(cls, epsilon: Exact, orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """One number with Laplace noise of scale Δ/ε.

        ln(α/(2α − 1)·e^{(α−1)ε} + (α − 1)/(2α − 1)·e^{−αε})/(α − 1): Mironov (2017), Proposition 6.

        >>> RenyiCurve.laplace(1, [2]).divergences < RenyiCurve.pure(PureDP(1), [2]).divergences
        True
        """
        size = exact_nonnegative(epsilon, "epsilon")

        def divergence(alpha: Fraction) -> Fraction:
            quadratic = alpha * size**2 / 2
            if size < _TINIEST:
                return quadratic
            number, near = context(), max(alpha, _LEAST)
            low = real((near - 1) / (2 * near - 1)) * number.expm1(-real((2 * near - 1) * size))
            return min(size, quadratic, up(real(size) + number.log1p(low) / real(near - 1)))

        return cls.of(divergence, orders)

    @classmethod
    def sampled_gaussian(cls, *, mu_squared: Exact, rate: Exact, orders: Iterable[Exact] = ORDERS) -> RenyiCurve:
        """Gaussian noise on a Poisson sample of rate q.

        Neighbours: unbounded. At a whole order α: ln Σₖ C(α, k)(1 − q)^{α−k}q^k·e^{k(k−1)μ²/2}/(α − 1); between whole orders, the
        chord. Theorem: Mironov, Talwar & Zhang (2019), Section 3.3, whose Theorem 5 shows that the other direction is no larger.

        >>> curve = RenyiCurve.sampled_gaussian(mu_squared=1, rate="0.01", orders=[2])
        >>> curve.divergences[0] < Fraction("0.0002")
        True
        """
        square, q = exact_nonnegative(mu_squared, "mu_squared"), exact_nonnegative(rate, "rate")
        if q > 1:
            raise InvalidParameter(f"rate={text_of(q)} is invalid", why="it is a probability", instead='rate="0.01"')
        plain = cls.gaussian(mu_squared=square, orders=orders)
        if q in (0, 1):
            return plain if q else cls.of(lambda _: Fraction(0), plain.orders)
        moments: dict[int, Any] = {1: context().mpf(0)}

        def moment(alpha: int) -> Any:
            if alpha not in moments:
                moments[alpha] = _sampled_moment(alpha, real(square), real(q))
            return moments[alpha]

        def divergence(alpha: Fraction) -> Fraction:
            below = floor(alpha)
            share = real(alpha - below)
            value = moment(below) if alpha == below else (1 - share) * moment(below) + share * moment(below + 1)
            return min(alpha * square / 2, up(value / real(alpha - 1)))

        return cls.of(divergence, plain.orders)

    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        if self.orders == other.orders:
            return RenyiCurve(
                self.orders, [left + right for left, right in zip(self.divergences, other.divergences, strict=True)]
            )
        mine, theirs = (
            dict(zip(self.orders, self.divergences, strict=True)),
            dict(zip(other.orders, other.divergences, strict=True)),
        )
        both = [alpha for alpha in self.orders if alpha in theirs]
        if not both:
            raise NotConvertible(
                "Two Rényi curves were not added", why="they share no order", instead="the same orders= for both"
            )
        return RenyiCurve(both, [mine[alpha] + theirs[alpha] for alpha in both])

    def __mul__(self, times: int) -> RenyiCurve:
        count = whole_number(exact_nonnegative(times, "times"), "times", usual=2)  # half of a release is no release
        return RenyiCurve(self.orders, [count * value for value in self.divergences])

    def __le__(self, other: RenyiCurve) -> bool:
        """Whether this curve lies within the other at every order of the other."""
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        mine = dict(zip(self.orders, self.divergences, strict=True))
        return all(alpha in mine and mine[alpha] <= tau for alpha, tau in zip(other.orders, other.divergences, strict=True))

    def rounded(self, digits: int = 15) -> RenyiCurve:
        """The same curve with short numbers, none smaller: for sums of many.

        >>> RenyiCurve([2], ["1/3"]).rounded(3).divergences
        (Fraction(167, 500),)
        """
        return RenyiCurve(self.orders, [rounded_up(value, digits) for value in self.divergences])

    def to_approx(self, delta: Exact) -> ApproxDP:
        """The least ε, rounded up, that any listed order gives at δ; see `conversion.epsilon_of_renyi`.

        >>> RenyiCurve.zcdp(ZCDP("0.1")).to_approx("1e-6").epsilon >= ZCDP("0.1").to_approx("1e-6").epsilon
        True
        """
        slack = exact_probability(delta, "delta")
        if not any(self.divergences):
            return ApproxDP(0, slack)
        return ApproxDP(
            min(epsilon_of_renyi(alpha, tau, slack) for alpha, tau in zip(self.orders, self.divergences, strict=True)), slack
        )


def _log_cosh(value: Any) -> Any:
    """ln cosh(x) for x ≥ 0: by sinh near zero, where cosh(x) − 1 would cancel; without overflow far away."""
    number = context()
    if value < 1:
        return number.log1p(2 * number.sinh(value / 2) ** 2)
    return value + number.log1p(number.exp(-2 * value)) - number.log(2)


def _sampled_moment(alpha: int, square: Any, rate: Any) -> Any:
    """ln(1 + Σ over k ≥ 2 of C(α, k)(1 − q)^{α−k}q^k·(e^{k(k−1)μ²/2} − 1)): its 1 apart, for the sake of small rates."""
    number = context()
    odds = rate / (1 - rate)
    weight = (1 - rate) ** alpha
    total, factor = number.mpf(0), weight * odds
    binomial = alpha
    for k in range(2, alpha + 1):
        factor *= odds
        binomial = binomial * (alpha - k + 1) // k
        total += binomial * factor * number.expm1(k * (k - 1) * square / 2)
    return number.log1p(total)
