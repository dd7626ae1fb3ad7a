"""What an audit found: one event, how likely it is in each of two worlds at least and at most, and which promises that breaks.

Write p for the lower bound of the event's probability where it is more likely, and q for the upper bound where it is rarer. Both
hold together with the stated confidence, and every number below follows from them without further chance:

- (ε, δ) needs p ≤ e^ε·q + δ, so ε ≥ ln((p − δ)/q) and δ ≥ p − e^ε·q;
- ρ-zCDP needs D_α(Bernoulli(p) ‖ Bernoulli(q)) ≤ ρα for every α > 1: an event is a post-processing, the Rényi divergence can't
  grow under it, and it grows with p and falls with q while p > q. The audit takes the best α of a list;
- δ₀-approximate ρ-zCDP implies (ε(ρ, δ′), δ₀ + δ′) for every δ′ (`ZCDP.to_approx`); the audit takes the best δ′ of a list.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InvalidParameter
from cloister.privacy import Exact, exact_nonnegative, exact_probability, float_up, text_of
from cloister.privacy.guarantee import ApproxDP, Guarantee, PureDP

Floats = NDArray[np.float64]

_INWARD = 1 - 1e-12
_ORDERS = 1 + np.geomspace(1e-3, 1e3, 61)
FAILURES = tuple(Fraction(1, 10**k) for k in range(1, 8))
"""The δ′ at which a zCDP guarantee with a δ of its own is held against what was found."""


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """A lower confidence bound on what a mechanism gives away, with the event that shows it.

    >>> found = AuditResult(event="the value is 1 or more", likelier="left", likely=0.5, unlikely=0.1,
    ...                     target_delta=Fraction(0), target_epsilon=None, confidence=Fraction(999, 1000), runs=1000)
    >>> round(found.epsilon, 4), found.delta, found.contradicts(PureDP(1)), found.contradicts(PureDP(2))
    (1.6094, Fraction(0, 1), True, False)
    >>> print(found)
    AuditResult(ε ≥ 1.609 at δ = 0: the value is 1 or more;
      left in at least 50%, right in at most 10%; confidence 0.999, 1,000 runs a side)
    """

    event: str
    """The event in words."""
    likelier: str
    """Where it is more likely: "left" or "right"."""
    likely: float
    """A lower bound of its probability there."""
    unlikely: float
    """An upper bound of its probability in the other world."""
    confidence: Fraction
    """Both bounds hold together with this probability."""
    runs: int
    """Runs in each world."""
    target_delta: Fraction | None = Fraction(0)
    target_epsilon: Fraction | None = None

    @property
    def epsilon(self) -> float:
        """No (ε′, δ) with ε′ below this holds, at the δ that was asked about; the ε itself when that was asked about."""
        if self.target_epsilon is not None:
            return float(self.target_epsilon)
        return self.epsilon_at(self.target_delta or 0)

    @property
    def delta(self) -> Fraction:
        """The δ that was asked about; a lower bound of δ when ε was asked about."""
        if self.target_epsilon is not None:
            return Fraction(self.delta_at(self.target_epsilon))
        return self.target_delta or Fraction(0)

    @property
    def rho(self) -> float:
        """No ρ′-zCDP with ρ′ below this holds.

        >>> found = AuditResult(event="a 1", likelier="left", likely=0.5, unlikely=0.1, confidence=Fraction(999, 1000), runs=1000)
        >>> 0.53 < found.rho < 0.54
        True
        """
        return float(rho_of(np.array([self.likely]), np.array([self.unlikely]))[0])

    def epsilon_at(self, delta: Exact) -> float:
        """The lower bound on ε at another δ, by the same event.

        >>> found = AuditResult(event="a 1", likelier="left", likely=0.5, unlikely=0.1, confidence=Fraction(999, 1000), runs=1000)
        >>> round(found.epsilon_at("0.1"), 4)
        1.3863
        """
        excess = self.likely - float_up(exact_probability(delta))
        return max(0.0, math.log(excess / self.unlikely) * _INWARD) if excess > 0 else 0.0

    def delta_at(self, epsilon: Exact) -> float:
        """The lower bound on δ at another ε, by the same event.

        >>> found = AuditResult(event="a 1", likelier="left", likely=0.5, unlikely=0.1, confidence=Fraction(999, 1000), runs=1000)
        >>> round(found.delta_at(1), 4)
        0.2282
        """
        allowed = float_up(exact_nonnegative(epsilon, "epsilon"))
        if math.log(self.unlikely) + allowed >= 0:
            return 0.0
        return max(0.0, self.likely - math.exp(allowed) * self.unlikely * (1 + 1e-12))

    def contradicts(self, guarantee: Guarantee) -> bool:
        """Whether the guarantee is false, with this result's confidence.

        >>> from cloister.privacy.guarantee import ZCDP
        >>> found = AuditResult(event="a 1", likelier="left", likely=0.5, unlikely=0.1, confidence=Fraction(999, 1000), runs=1000)
        >>> found.contradicts(ApproxDP(1, "0.1")), found.contradicts(ApproxDP(1, "0.3")), found.contradicts(ZCDP("0.1"))
        (True, False, True)
        """
        if isinstance(guarantee, PureDP | ApproxDP):
            return self.epsilon_at(guarantee.delta) > float_up(guarantee.epsilon)
        if guarantee.delta == 0:
            return self.rho > float_up(guarantee.rho)
        stated = (guarantee.to_approx(min(guarantee.delta + slack, Fraction(1, 2))) for slack in FAILURES)
        return any(self.epsilon_at(each.delta) > float_up(each.epsilon) for each in stated)

    def __repr__(self) -> str:
        other = "right" if self.likelier == "left" else "left"
        if self.target_epsilon is not None:
            bound = f"δ ≥ {float(self.delta):.3g} at ε = {text_of(self.target_epsilon)}"
        else:
            bound = f"ε ≥ {self.epsilon:.3f} at δ = {text_of(self.target_delta or Fraction(0))}"
        return (
            f"AuditResult({bound}: {self.event};\n  {self.likelier} in at least {_per_cent(self.likely)}, "
            f"{other} in at most {_per_cent(self.unlikely)}; confidence {text_of(self.confidence)}, {self.runs:,} runs a side)"
        )


def rho_of(likely: Floats, unlikely: Floats) -> Floats:
    """The largest D_α(Bernoulli(likely) ‖ Bernoulli(unlikely))/α over a list of orders, rounded down; 0 where likely ≤ unlikely.

    >>> rho_of(np.array([0.5, 0.1]), np.array([0.1, 0.5])).round(3).tolist()
    [0.532, 0.0]
    """
    p = np.clip(likely, 1e-300, 1 - 1e-12)[:, None]
    q = np.clip(unlikely, 1e-300, 1 - 1e-13)[:, None]
    orders = _ORDERS[None, :]
    inside = orders * np.log(p) + (1 - orders) * np.log(q)
    outside = orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
    divergence = np.logaddexp(inside, outside) / (orders - 1)
    best = (divergence / orders).max(axis=1) * _INWARD - 1e-10
    found: Floats = np.where(p[:, 0] > q[:, 0], np.maximum(best, 0.0), 0.0)  # as they are clipped, beside 1
    return found


def check_target(delta: Exact, epsilon: Exact | None, against: Guarantee | None) -> tuple[Fraction | None, Fraction | None]:
    """The (δ, ε) that an audit is to bound: exactly one of them is fixed, and neither for zCDP.

    >>> check_target("1e-6", None, None), check_target(0, 1, None)
    ((Fraction(1, 1000000), None), (None, Fraction(1, 1)))
    """
    fixed = exact_probability(delta)
    if sum([fixed != 0, epsilon is not None, against is not None]) > 1:
        raise InvalidParameter(
            "More than one of delta=, epsilon= and against= is invalid",
            why="one event is chosen for one question: ε at a δ, δ at an ε, or whether a guarantee can be broken",
            instead="audit(…, delta=1e-6)",
        )
    if epsilon is not None:
        return None, exact_nonnegative(epsilon, "epsilon")
    if isinstance(against, PureDP | ApproxDP):
        return against.delta, None
    return (fixed, None) if against is None else (None, None)


def _per_cent(share: float) -> str:
    return f"{100 * share:.3g}%"
