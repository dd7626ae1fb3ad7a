"""Accountants: each interprets events in one calculus, adds them up, and refuses what it does not know.

==================  =====================================================  =======================================================
accountant          knows                                                  its sum
==================  =====================================================  =======================================================
`PureAccountant`    Laplace, discrete Laplace, randomised response,        a `PureDP`, exactly
                    pure promises; samples of these
`ApproxAccountant`  the same, and approximate promises                     an `ApproxDP`, exactly
`ZCDPAccountant`    everything but samples; promises of δ > 0 as           a `ZCDP`, exactly but for what pure ε is worth in ρ
                    approximate ρ
`RenyiAccountant`   everything of δ = 0; samples of Gaussians              a `RenyiCurve`
`LossAccountant`    all but ρ promises, and discrete Gaussians on several  a `PrivacyLossDistribution`; takes one whole batch
                    entries; samples of Gaussians, and of any single
                    release that ε or (ε, δ) bounds
==================  =====================================================  =======================================================

The first four may be asked to add an event at any time (`after`); what they say then holds for the mechanisms so far *with
parameters fixed in advance*, except that the sums of ε and of ρ are also valid filters (see `filters`). `LossAccountant` has no
`after`: privacy loss distributions are for parameters fixed in advance, and it takes the batch at once to say so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from cloister.errors import CloisterError, InvalidParameter, NotConvertible
from cloister.privacy.amplification import poisson
from cloister.privacy.conversion import zcdp_of_approx, zcdp_of_pure
from cloister.privacy.events import (
    Composed,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    Event,
    GaussianRelease,
    LaplaceRelease,
    Nothing,
    NotPrivate,
    Promised,
    RandomizedResponse,
    Repeated,
    Sampled,
)
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP
from cloister.privacy.loss import PrivacyLossDistribution
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact
from cloister.privacy.renyi import ORDERS, RenyiCurve
from cloister.privacy.sampled import sampled, sampled_gaussian

Self = TypeVar("Self", bound="Accountant")

_NO_EPSILON, _NO_DELTA, _NO_RHO = PureDP(0), ApproxDP(0, 0), ZCDP(0)


@dataclass(frozen=True, slots=True)
class Accountant(ABC):
    """An accountant that can be asked after every event; each answer is a new accountant, and the old one stays as it was."""

    spent: Any

    def after(self: Self, event: Event) -> Self:
        """The accountant that has seen this event, too.

        >>> PureAccountant().after(LaplaceRelease(scale=10)).after(Promised(PureDP("0.3"))).spent
        PureDP(epsilon='0.4')
        """
        return replace(self, spent=self.spent + self._cost(event))

    def supports(self, event: Event) -> bool:
        """Whether this accountant knows an event, and every part of it.

        >>> PureAccountant().supports(GaussianRelease(scale=1)), ZCDPAccountant().supports(GaussianRelease(scale=1))
        (False, True)
        """
        try:
            self._cost(event)
        except CloisterError:
            return False
        return True

    def to_approx(self, delta: Exact) -> ApproxDP:
        """What was spent, as (ε, δ).

        >>> ZCDPAccountant().after(GaussianRelease(scale=10)).to_approx("1e-6").epsilon < 1
        True
        """
        approx: ApproxDP = self.spent.to_approx(delta)
        return approx

    def _cost(self, event: Event) -> Any:
        match event:
            case Nothing():
                return self._leaf(Promised(_NO_EPSILON))
            case Composed(events):
                total = self._cost(Nothing())
                for part in events:
                    total = total + self._cost(part)
                return total
            case Repeated(inner, times):
                return self._cost(inner) * times
            case _:
                found = self._leaf(event)
                if found is None:
                    raise _unknown(event, type(self).__name__)
                return found

    @abstractmethod
    def _leaf(self, event: Event) -> Any:
        """The cost of an event that is not made of others; None where it is not known."""


@dataclass(frozen=True, slots=True)
class PureAccountant(Accountant):
    """Adds ε.

    >>> PureAccountant().after(Repeated(DiscreteLaplaceRelease(scale=10), times=10)).spent
    PureDP(epsilon='1')
    """

    spent: PureDP = _NO_EPSILON

    def _leaf(self, event: Event) -> PureDP | None:
        if isinstance(event, Sampled):
            inner: PureDP = self._cost(event.event)
            amplified = poisson(inner, event.rate)
            return amplified if isinstance(amplified, PureDP) else None
        return _pure(event)


@dataclass(frozen=True, slots=True)
class ApproxAccountant(Accountant):
    """Adds ε and δ.

    >>> ApproxAccountant().after(Promised(ApproxDP(1, "1e-6"))).after(LaplaceRelease(scale=1)).spent
    ApproxDP(epsilon='2', delta='0.000001')
    """

    spent: ApproxDP = _NO_DELTA

    def _leaf(self, event: Event) -> ApproxDP | None:
        if isinstance(event, Sampled):
            amplified = poisson(self._cost(event.event), event.rate)
            return amplified if isinstance(amplified, ApproxDP) else None
        if isinstance(event, Promised) and isinstance(event.guarantee, ApproxDP):
            return event.guarantee
        pure = _pure(event)
        return None if pure is None else pure.to_approx()


@dataclass(frozen=True, slots=True)
class ZCDPAccountant(Accountant):
    """Adds ρ; what is known only to be ε-DP counts as ε·tanh(ε/2).

    >>> ZCDPAccountant().after(Repeated(DiscreteGaussianRelease(scale=10), times=4)).spent
    ZCDP(rho='0.02')
    """

    spent: ZCDP = _NO_RHO

    def _leaf(self, event: Event) -> ZCDP | None:
        if isinstance(event, GaussianRelease | DiscreteGaussianRelease):
            return ZCDP(event.mu_squared / 2)
        if isinstance(event, Promised):
            if isinstance(event.guarantee, ZCDP):
                return event.guarantee
            if isinstance(event.guarantee, ApproxDP):
                return zcdp_of_approx(event.guarantee)
        pure = _pure(event)
        return None if pure is None else zcdp_of_pure(pure)


@dataclass(frozen=True, slots=True, init=False)
class RenyiAccountant(Accountant):
    """Adds Rényi curves.

    >>> step = Sampled(GaussianRelease(scale=1), rate="0.01")
    >>> RenyiAccountant().after(Repeated(step, times=1000)).to_approx("1e-6").epsilon < 3
    True
    """

    spent: RenyiCurve

    def __init__(self, spent: RenyiCurve | None = None, *, orders: Iterable[Exact] = ORDERS) -> None:
        object.__setattr__(self, "spent", RenyiCurve.zcdp(ZCDP(0), orders) if spent is None else spent)

    def _leaf(self, event: Event) -> RenyiCurve | None:
        orders = self.spent.orders
        match event:
            case GaussianRelease() | DiscreteGaussianRelease():
                return RenyiCurve.gaussian(mu_squared=event.mu_squared, orders=orders)
            case Sampled(GaussianRelease() as inner, rate):
                return RenyiCurve.sampled_gaussian(mu_squared=inner.mu_squared, rate=rate, orders=orders)
            case Sampled(inner, rate):
                sampled = poisson(PureAccountant()._cost(inner), rate)
                return RenyiCurve.pure(sampled, orders) if isinstance(sampled, PureDP) else None
            case LaplaceRelease(entries=1):
                return RenyiCurve.laplace(event.epsilon, orders)
            case Promised(ZCDP(delta=0) as guarantee):
                return RenyiCurve.zcdp(guarantee, orders)
        pure = _pure(event)
        return None if pure is None else RenyiCurve.pure(pure, orders)


@dataclass(frozen=True, slots=True)
class LossAccountant:
    """Composes one batch of events, declared as a whole, by their privacy loss distributions.

    There is no way to add an event later: the theorem needs parameters that were fixed before the first release.

    >>> LossAccountant.of([LaplaceRelease(scale=10)] * 50 + [GaussianRelease(scale=5)]).to_approx("1e-6").epsilon < 5
    True
    """

    distribution: PrivacyLossDistribution

    @classmethod
    def of(cls, events: Iterable[Event]) -> LossAccountant:
        """The accountant of a whole batch."""
        return cls(PrivacyLossDistribution.compose(_distribution(event) for event in events))

    def to_approx(self, delta: Exact) -> ApproxDP:
        """What the batch spends, as (ε, δ)."""
        return self.distribution.to_approx(delta)

    def delta(self, epsilon: Exact) -> Fraction:
        """What the batch spends in δ, at one ε."""
        return self.distribution.delta(epsilon)


def _pure(event: Event) -> PureDP | None:
    """The least ε of a single event; None where there is none."""
    match event:
        case LaplaceRelease() | DiscreteLaplaceRelease():
            return PureDP(event.epsilon)
        case RandomizedResponse():
            if event.ratio is None:
                return None
            return PureDP(0) if event.ratio == 1 else PureDP(up(context().log(real(event.ratio))))
        case Promised(PureDP() as guarantee):
            return guarantee
        case Promised(ApproxDP(delta=0) as guarantee):
            return PureDP(guarantee.epsilon)
        case Promised(ZCDP(rho=0, delta=0)):
            return PureDP(0)
    return None


def _distribution(event: Event) -> PrivacyLossDistribution:
    match event:
        case Nothing():
            return PrivacyLossDistribution(())
        case Composed(events):
            return PrivacyLossDistribution.compose(_distribution(part) for part in events)
        case Repeated(inner, times):
            return _distribution(inner) * times
        case LaplaceRelease(entries=1):
            return PrivacyLossDistribution.laplace(event.epsilon)
        case DiscreteLaplaceRelease(entries=1) if event.sensitivity.denominator == 1:
            return PrivacyLossDistribution.discrete_laplace(scale=event.scale, sensitivity=int(event.sensitivity))
        case GaussianRelease():
            return PrivacyLossDistribution.gaussian(mu_squared=event.mu_squared)
        case DiscreteGaussianRelease() if event.shift is not None:
            return PrivacyLossDistribution.discrete_gaussian(sigma_squared=event.scale**2, sensitivity=event.shift)
        case RandomizedResponse(noise, values) if noise:
            other = noise / values
            rest = [other * (values - 2)] if values > 2 else []
            p, q = [1 - noise + other, other, *rest], [other, 1 - noise + other, *rest]
            return PrivacyLossDistribution.of_pair(p, q)
        case Promised(PureDP() | ApproxDP() as guarantee):
            return PrivacyLossDistribution.of_guarantee(guarantee)
        case Sampled(GaussianRelease() as inner, rate) if inner.mu_squared and rate:
            return sampled_gaussian(mu_squared=inner.mu_squared, rate=rate)
        case Sampled(inner, rate):
            found = sampled(_distribution(inner), rate)
            if found is not None:
                return found
            if ApproxAccountant().supports(event):  # several releases about one sample: their sum, amplified
                return PrivacyLossDistribution.of_guarantee(ApproxAccountant()._cost(event))
    pure = _pure(event)
    if pure is None:
        raise _unknown(event, "LossAccountant")
    return PrivacyLossDistribution.of_guarantee(pure)


def _unknown(event: object, accountant: str) -> CloisterError:
    if isinstance(event, NotPrivate):
        return NotConvertible(
            "The spending is unbounded", why="something left with no guarantee", instead="nothing: no sum can include it"
        )
    if not isinstance(event, Event):
        return InvalidParameter(f"A {type(event).__name__} is invalid", why="it is not an event", instead="Promised(PureDP(1))")
    return NotConvertible(
        f"A {type(event).__name__} has no cost in {accountant}",
        why="it has no finite cost there that is proved",
        instead="RenyiAccountant() or ZCDPAccountant(); cloister.privacy.accounting lists who knows what",
    )
