"""What a release did, as a frozen event: facts for an accountant to interpret, with no claim about privacy in them.

An accountant (`cloister.privacy.accounting`) that does not know an event refuses it. Events describe one unit's view:
`sensitivity` is how far that unit moves the answer in the mechanism's own norm, `entries` how many entries of it the unit can
move (its L0). Nothing of the answer itself is in an event, so a list of them may be published.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias

from cloister.errors import InvalidParameter, MissingDependency
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.precision import context, down, real
from cloister.privacy.rational import Exact, exact_nonnegative, exact_positive, float_down, float_up, text_of, whole_number


@dataclass(frozen=True, slots=True, init=False)
class _Laplace:
    """Noise of a scale on numbers of an L1 sensitivity."""

    scale: Fraction
    sensitivity: Fraction
    entries: int

    def __init__(self, *, scale: Exact, sensitivity: Exact = 1, entries: int = 1) -> None:
        _set(
            self,
            scale=exact_positive(scale, "scale"),
            sensitivity=exact_nonnegative(sensitivity, "sensitivity"),
            entries=_count(entries),
        )

    @property
    def epsilon(self) -> Fraction:
        """Δ₁/scale."""
        return self.sensitivity / self.scale


@dataclass(frozen=True, slots=True, init=False)
class LaplaceRelease(_Laplace):
    """Continuous Laplace noise of a scale, on numbers of an L1 sensitivity.

    >>> LaplaceRelease(scale=10).epsilon
    Fraction(1, 10)
    """


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplaceRelease(_Laplace):
    """Discrete Laplace (geometric) noise of a scale, on integers of an L1 sensitivity.

    >>> DiscreteLaplaceRelease(scale=10, sensitivity=2).epsilon
    Fraction(1, 5)
    """


@dataclass(frozen=True, slots=True, init=False)
class GaussianRelease:
    """Continuous Gaussian noise of standard deviation `scale`, on numbers of a squared L2 sensitivity.

    >>> GaussianRelease(scale=10, sensitivity_squared=2).mu_squared
    Fraction(1, 50)
    """

    scale: Fraction
    sensitivity_squared: Fraction

    def __init__(self, *, scale: Exact, sensitivity_squared: Exact = 1) -> None:
        _set(
            self,
            scale=exact_positive(scale, "scale"),
            sensitivity_squared=exact_nonnegative(sensitivity_squared, "sensitivity_squared"),
        )

    @property
    def mu_squared(self) -> Fraction:
        """(Δ₂/σ)²: twice its ρ."""
        return self.sensitivity_squared / self.scale**2


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussianRelease:
    """Discrete Gaussian noise of parameter σ = `scale`, on integers of a squared L2 sensitivity.

    >>> DiscreteGaussianRelease(scale=10).shift
    1
    """

    scale: Fraction
    sensitivity_squared: Fraction
    entries: int

    def __init__(self, *, scale: Exact, sensitivity_squared: Exact = 1, entries: int = 1) -> None:
        square = exact_nonnegative(sensitivity_squared, "sensitivity_squared")
        _set(self, scale=exact_positive(scale, "scale"), sensitivity_squared=square, entries=_count(entries))

    @property
    def mu_squared(self) -> Fraction:
        """(Δ₂/σ)²: twice its ρ."""
        return self.sensitivity_squared / self.scale**2

    @property
    def shift(self) -> int | None:
        """By how much the one entry moves that a unit can move; None where there are several, or it moves by no whole number."""
        root = isqrt(int(self.sensitivity_squared))
        return root if self.entries == 1 and root * root == self.sensitivity_squared else None


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """The true one of k values with probability 1 − p, else one of the k at random.

    >>> RandomizedResponse(noise="0.5", values=2).ratio
    Fraction(3, 1)
    """

    noise: Fraction
    values: int

    def __init__(self, *, noise: Exact, values: int) -> None:
        share = exact_nonnegative(noise, "noise")
        if share > 1:
            raise InvalidParameter(f"noise={text_of(share)} is invalid", why="it is a probability", instead='noise="0.5"')
        if _count(values) < 2:
            raise InvalidParameter("values=1 is invalid", why="a response has two values or more", instead="values=2")
        _set(self, noise=share, values=values)

    @property
    def ratio(self) -> Fraction | None:
        """e^ε, exactly; None where a value is never anything but true."""
        other = self.noise / self.values
        return (1 - self.noise + other) / other if other else None


@dataclass(frozen=True, slots=True)
class Promised:
    """Something of which no more is known than the guarantee that it was released under.

    >>> Promised(PureDP("0.5")).guarantee
    PureDP(epsilon='0.5')
    """

    guarantee: Guarantee


@dataclass(frozen=True, slots=True, init=False)
class Sampled:
    """An event on a Poisson sample: each unit took part with probability `rate`.

    >>> Sampled(GaussianRelease(scale=1), rate="0.01").rate
    Fraction(1, 100)
    """

    event: Event
    rate: Fraction

    def __init__(self, event: Event, *, rate: Exact) -> None:
        share = exact_nonnegative(rate, "rate")
        if share > 1:
            raise InvalidParameter(f"rate={text_of(share)} is invalid", why="it is a probability", instead='rate="0.01"')
        _set(self, event=event, rate=share)


@dataclass(frozen=True, slots=True, init=False)
class Repeated:
    """The same event several times, with fresh noise each time.

    >>> Repeated(LaplaceRelease(scale=1), times=3).times
    3
    """

    event: Event
    times: int

    def __init__(self, event: Event, *, times: int) -> None:
        _set(self, event=event, times=_count(times, "times"))


@dataclass(frozen=True, slots=True)
class Composed:
    """Several events about the same units.

    >>> len(Composed((LaplaceRelease(scale=1), Nothing())).events)
    2
    """

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """No private row was read."""


@dataclass(frozen=True, slots=True)
class NotPrivate:
    """Something left with no guarantee, by the marked door; every accountant refuses it, and spending reads "unbounded".

    >>> NotPrivate("an anonymised table")
    NotPrivate(what='an anonymised table')
    """

    what: str = field(default="")


Event: TypeAlias = (
    LaplaceRelease
    | DiscreteLaplaceRelease
    | GaussianRelease
    | DiscreteGaussianRelease
    | RandomizedResponse
    | Promised
    | Sampled
    | Repeated
    | Composed
    | Nothing
    | NotPrivate
)


def to_dp_accounting(event: Event) -> Any:
    """The event in the words of `dp_accounting`, its floats rounded towards more spending.

    A pure guarantee becomes discrete Laplace noise on a number that moves by 1: its loss is that of randomised response, the
    worst mechanism with that guarantee. The discrete Gaussian becomes its ρ. Their accountants take randomised response for
    bounded neighbours only. What there is no event for (δ > 0 promised) becomes an `UnsupportedDpEvent`, which they refuse.

    >>> to_dp_accounting(Nothing())
    NoOpDpEvent()
    """
    try:
        from dp_accounting import dp_event as theirs
    except ImportError as error:
        raise MissingDependency(
            "The export was not made", why="dp_accounting is not installed", instead="pip install dp-accounting"
        ) from error
    match event:
        case Composed(events):
            return theirs.ComposedDpEvent([to_dp_accounting(part) for part in events])
        case Repeated(inner, times):
            return theirs.SelfComposedDpEvent(to_dp_accounting(inner), times)
        case Sampled(inner, rate):
            return theirs.PoissonSampledDpEvent(float_up(rate), to_dp_accounting(inner))
        case Nothing():
            return theirs.NoOpDpEvent()
        case NotPrivate():
            return theirs.NonPrivateDpEvent()
        case Promised(guarantee):
            return _promised(guarantee, theirs)
        case RandomizedResponse(noise, values):
            return theirs.RandomizedResponseDpEvent(float_down(noise), values)
        case LaplaceRelease() if event.epsilon:
            return theirs.LaplaceDpEvent(float_down(event.scale / event.sensitivity))
        case DiscreteLaplaceRelease() if event.epsilon:
            whole = -(-event.sensitivity.numerator // event.sensitivity.denominator)  # integers move by integers
            return theirs.DiscreteLaplaceDpEvent(float_up(1 / event.scale), whole)
        case GaussianRelease() if event.mu_squared:
            return theirs.GaussianDpEvent(float_down(down(1 / context().sqrt(real(event.mu_squared)), 18)))
        case DiscreteGaussianRelease() if event.mu_squared:
            return theirs.ZCDpEvent(float_up(event.mu_squared / 2))
        case LaplaceRelease() | DiscreteLaplaceRelease() | GaussianRelease() | DiscreteGaussianRelease():
            return theirs.NoOpDpEvent()
    raise InvalidParameter(f"A {type(event).__name__} is invalid", why="it is not an event", instead="Promised(PureDP(1))")


def _promised(guarantee: Guarantee, theirs: Any) -> Any:
    if isinstance(guarantee, ApproxDP) and guarantee.delta == 0:
        guarantee = PureDP(guarantee.epsilon)
    if isinstance(guarantee, PureDP):
        if guarantee.epsilon == 0:
            return theirs.NoOpDpEvent()
        return theirs.DiscreteLaplaceDpEvent(float_up(guarantee.epsilon), 1)
    if isinstance(guarantee, ZCDP) and guarantee.delta == 0:
        return theirs.ZCDpEvent(float_up(guarantee.rho))
    return theirs.UnsupportedDpEvent()


def _set(target: object, /, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _count(value: int, name: str = "entries") -> int:
    return whole_number(exact_positive(value, name), name, least=1)
