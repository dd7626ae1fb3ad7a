"""Filters and odometers: budgets for spending whose size is itself decided in view of earlier answers.

The composition theorems want parameters fixed in advance; an analyst who sees an answer and then decides how much to spend on the
next one breaks that. A *filter* has a budget fixed in advance, and refuses any charge that would pass it: then everything it let
through, together, has the budget's guarantee. An *odometer* has no budget; its reading is an upper bound on the privacy loss that
holds at all times at once, so that one may stop whenever one likes what it shows.

==================  ==========================================================  ==================================================
filter              lets a charge through while                                 theorem
==================  ==========================================================  ==================================================
`PureFilter`        Σε ≤ budget                                                 Rogers, Roth, Ullman & Vadhan (2016)
`SlidingFilter`     Σε ≤ budget over every w steps in a row                     Kellaris, Papadopoulos, Xiao & Papadias (2014),
                                                                                Theorem 3, with the filter above
`ApproxFilter`      Σε and Σδ ≤ budget                                          Rogers, Roth, Ullman & Vadhan (2016)
`ZCDPFilter`        Σρ ≤ budget; of approximate ρ, Σδ ≤ budget, too             Feldman & Zrnic (2021) at every order; with δ:
                                                                                Whitehouse, Ramdas, Rogers & Wu (2023)
`RenyiFilter`       Στ(α) ≤ budget, at every order of the budget                Feldman & Zrnic (2021)
`AdvancedFilter`    √(2·ln(1/δ′)·Σε²) + ½Σε² ≤ ε and Σδ ≤ δ − δ′                Whitehouse, Ramdas, Rogers & Wu (2023)
==================  ==========================================================  ==================================================

A privacy loss distribution is no filter: `cloister.privacy.loss` is for batches only.

Why sums are filters, in one line: with Lₜ the loss so far and τₛ the charges, exp((α − 1)(Lₜ − Σₛ≤ₜ τₛ)) is a supermartingale,
whatever the charges depend on; so its mean at the stopping time is at most 1, which is what the Rényi bound says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.privacy.conversion import zcdp_of_pure
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, pure_of
from cloister.privacy.precision import context, real, rounded_down, up
from cloister.privacy.rational import Exact, exact_positive, exact_probability, text_of
from cloister.privacy.renyi import RenyiCurve

_NO_EPSILON, _NO_DELTA, _NO_RHO = PureDP(0), ApproxDP(0, 0), ZCDP(0)


@dataclass(frozen=True, slots=True)
class PureFilter:
    """An ε budget, spent adaptively. Exact: ten charges of 0.1 fill a budget of 1.

    >>> filter = PureFilter(PureDP(1)).after(PureDP("0.7"))
    >>> filter.remaining, filter.admits(PureDP("0.3")), filter.admits(PureDP("0.31"))
    (PureDP(epsilon='0.3'), True, False)
    """

    budget: PureDP
    spent: PureDP = _NO_EPSILON

    @property
    def remaining(self) -> PureDP:
        """What may still be charged."""
        return PureDP(self.budget.epsilon - self.spent.epsilon)

    def admits(self, cost: PureDP) -> bool:
        """Whether a charge fits."""
        return isinstance(cost, PureDP) and self.spent.epsilon + cost.epsilon <= self.budget.epsilon

    def after(self, cost: PureDP) -> PureFilter:
        """The filter that has let this charge through; raises `BudgetExceeded` where it does not fit."""
        _require(self.admits(cost), cost, self.budget, self.remaining)
        return replace(self, spent=PureDP(self.spent.epsilon + cost.epsilon))


@dataclass(frozen=True, slots=True)
class SlidingFilter:
    """An ε budget for every w steps in a row of a stream without end, spent adaptively; one charge a step.

    Guarantee. Streams that differ only within w steps in a row are told apart with ε at most. Proof: given what was released
    before it, a step outside of those w has the same law in both worlds, and the t-th of them is εₜ-private, εₜ being fixed by
    what was released before. So the loss of all steps is at most the sum of εₜ over those w, on every path, and the filter keeps
    every such sum within the budget. What answers over several steps for one charge, as a sparse vector does, is *carried*: its
    charge stands at the last of its steps so far. A window that ends there or later holds it if it holds any of its steps; and
    the windows that ended before counted it then. So each window counts whatever touched it, once.

    >>> filter = SlidingFilter(PureDP(1), window=3).after(PureDP("0.6")).after(PureDP("0.4"))
    >>> filter.remaining, filter.after(PureDP(0)).remaining
    (PureDP(epsilon='0'), PureDP(epsilon='0.6'))
    """

    budget: PureDP
    window: int
    recent: tuple[Fraction, ...] = ()
    """What the last w − 1 steps were charged, the newest last."""

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise InvalidParameter("window is invalid", why="it is a whole number of steps, at least 1", instead="window=24")

    @property
    def remaining(self) -> PureDP:
        """What the next step may be charged."""
        return PureDP(self.budget.epsilon - sum(self.recent, Fraction(0)))

    def admits(self, cost: PureDP) -> bool:
        """Whether the next step's charge fits."""
        return isinstance(cost, PureDP) and cost <= self.remaining

    def after(self, cost: PureDP, *, carried: PureDP = _NO_EPSILON) -> SlidingFilter:
        """The filter after one more step, at this charge; raises `BudgetExceeded` where it does not fit. `carried` is what the
        step before was charged for what goes on at this one: it is moved here.

        >>> filter = SlidingFilter(PureDP(1), window=2).after(PureDP(1))
        >>> filter.after(PureDP("0.7"), carried=PureDP("0.7")).recent
        (Fraction(7, 10),)
        """
        moved = carried.epsilon if self.recent else Fraction(0)  # of a window of one step, nothing is left to move
        if not isinstance(cost, PureDP) or not moved <= min([cost.epsilon, *self.recent[-1:]]):
            raise InvalidParameter(
                "carried is invalid", why="it is at most what this step and the last are charged", instead="carried=PureDP(0)"
            )
        before = (*self.recent[:-1], self.recent[-1] - moved) if self.recent else ()
        held = replace(self, recent=before)
        _require(held.admits(cost), cost, self.budget, held.remaining)
        kept = (*before, cost.epsilon)
        return replace(self, recent=kept[len(kept) - self.window + 1 :] if len(kept) >= self.window else kept)


@dataclass(frozen=True, slots=True)
class ApproxFilter:
    """An (ε, δ) budget, spent adaptively by plain sums.

    >>> ApproxFilter(ApproxDP(1, "1e-6")).after(ApproxDP("0.5", "1e-6")).remaining
    ApproxDP(epsilon='0.5', delta='0')
    """

    budget: ApproxDP
    spent: ApproxDP = _NO_DELTA

    @property
    def remaining(self) -> ApproxDP:
        """What may still be charged."""
        return ApproxDP(self.budget.epsilon - self.spent.epsilon, self.budget.delta - self.spent.delta)

    def admits(self, cost: PureDP | ApproxDP) -> bool:
        """Whether a charge fits."""
        return isinstance(cost, PureDP | ApproxDP) and cost <= self.remaining

    def after(self, cost: PureDP | ApproxDP) -> ApproxFilter:
        """The filter that has let this charge through; raises `BudgetExceeded` where it does not fit."""
        _require(self.admits(cost), cost, self.budget, self.remaining)
        return replace(self, spent=ApproxDP(self.spent.epsilon + cost.epsilon, self.spent.delta + cost.delta))


@dataclass(frozen=True, slots=True)
class ZCDPFilter:
    """A ρ budget, spent adaptively; a pure ε costs ε·tanh(ε/2), rounded up.

    >>> ZCDPFilter(ZCDP("0.5")).after(ZCDP("0.2")).after(PureDP("0.1")).remaining.rho < Fraction("0.3")
    True
    """

    budget: ZCDP
    spent: ZCDP = _NO_RHO

    @property
    def remaining(self) -> ZCDP:
        """What may still be charged."""
        return ZCDP(self.budget.rho - self.spent.rho, self.budget.delta - self.spent.delta)

    def admits(self, cost: PureDP | ZCDP) -> bool:
        """Whether a charge fits."""
        return isinstance(cost, PureDP | ZCDP) and self._rho(cost) <= self.remaining

    def after(self, cost: PureDP | ZCDP) -> ZCDPFilter:
        """The filter that has let this charge through; raises `BudgetExceeded` where it does not fit."""
        _require(self.admits(cost), cost, self.budget, self.remaining)
        rho = self._rho(cost)
        return replace(self, spent=ZCDP(self.spent.rho + rho.rho, self.spent.delta + rho.delta))

    @staticmethod
    def _rho(cost: PureDP | ZCDP) -> ZCDP:
        return zcdp_of_pure(cost) if isinstance(cost, PureDP) else cost


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """A Rényi curve as a budget, spent adaptively: no order of it may be passed.

    >>> budget = RenyiFilter.for_approx(epsilon=2, delta="1e-6", order=12)
    >>> budget.after(RenyiCurve.laplace("0.1", [12])).budget.to_approx("1e-6").epsilon <= 2
    True
    """

    budget: RenyiCurve
    spent: RenyiCurve | None = None

    @classmethod
    def for_approx(cls, *, epsilon: Exact, delta: Exact, order: Exact) -> RenyiFilter:
        """An (ε, δ) budget, watched at one order that is chosen in advance.

        The order may not be chosen afterwards; 1 + 2·ln(1/δ)/ε is a good choice.
        """
        wanted, slack, alpha = (
            exact_positive(epsilon, "epsilon"),
            exact_probability(delta, "delta"),
            exact_positive(order, "order"),
        )
        excess = (
            RenyiCurve([alpha], [wanted]).to_approx(slack).epsilon - wanted
        )  # what δ costs at this order; the conversion adds it to τ
        if excess >= wanted:
            raise InvalidParameter(
                f"order={text_of(alpha)} is invalid",
                why="at this order δ alone costs more than ε",
                instead="order=1 + 2·ln(1/δ)/ε",
            )
        return cls(RenyiCurve([alpha], [rounded_down(wanted - max(excess, Fraction(0)), 13)]))

    @property
    def remaining(self) -> RenyiCurve:
        """What may still be charged."""
        if self.spent is None:
            return self.budget
        pairs = zip(self.budget.divergences, self.spent.divergences, strict=True)
        return RenyiCurve(self.budget.orders, [budget - spent for budget, spent in pairs])

    def admits(self, cost: RenyiCurve) -> bool:
        """Whether a charge fits, at every order of the budget."""
        return isinstance(cost, RenyiCurve) and cost <= self.remaining

    def after(self, cost: RenyiCurve) -> RenyiFilter:
        """The filter that has let this charge through; raises `BudgetExceeded` where it does not fit."""
        if not self.admits(cost):
            raise BudgetExceeded(
                "A charge was refused",
                why="at some order of the budget it exceeds what is left, or says nothing",
                instead="a smaller charge",
            )
        known = dict(zip(cost.orders, cost.divergences, strict=True))
        needed = RenyiCurve(self.budget.orders, [known[alpha] for alpha in self.budget.orders])
        return replace(self, spent=needed if self.spent is None else self.spent + needed)


@dataclass(frozen=True, slots=True)
class AdvancedFilter:
    """An (ε, δ) budget, spent adaptively at the rate of the advanced theorem: √(2·ln(1/δ′)·Σε²) + ½Σε² ≤ ε, and Σδ ≤ δ − δ′.

    >>> filter = AdvancedFilter(ApproxDP(1, "1e-6"), slack="1e-6")
    >>> for _ in range(300):
    ...     filter = filter.after(PureDP("0.01"))
    >>> filter.admits(PureDP("0.2"))
    False
    """

    budget: ApproxDP
    slack: Exact
    squares: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        prime = exact_probability(self.slack, "slack")
        if not 0 < prime <= self.budget.delta:
            raise InvalidParameter(
                f"slack={text_of(prime)} is invalid",
                why="δ′ must be above 0 and within the budget's δ",
                instead=f'slack="{text_of(self.budget.delta)}"',
            )
        object.__setattr__(self, "slack", prime)

    def admits(self, cost: PureDP | ApproxDP) -> bool:
        """Whether a charge fits."""
        if not isinstance(cost, PureDP | ApproxDP):
            return False
        reached = self._epsilon(self.squares + cost.epsilon**2)
        return reached <= self.budget.epsilon and self.delta + cost.delta + exact_probability(self.slack) <= self.budget.delta

    def after(self, cost: PureDP | ApproxDP) -> AdvancedFilter:
        """The filter that has let this charge through; raises `BudgetExceeded` where it does not fit."""
        if not self.admits(cost):
            raise BudgetExceeded(
                f"A charge of {cost} was refused",
                why=f"of the budget of {self.budget}, {self.spent} is spent",
                instead="a smaller charge",
            )
        return replace(self, squares=self.squares + cost.epsilon**2, delta=self.delta + cost.delta)

    @property
    def spent(self) -> ApproxDP:
        """What has been let through, should nothing more come: ε at δ′, rounded up."""
        return ApproxDP(self._epsilon(self.squares), self.delta + exact_probability(self.slack))

    def _epsilon(self, squares: Fraction) -> Fraction:
        if squares == 0:
            return Fraction(0)
        number, total = context(), real(squares)
        return up(number.sqrt(-2 * number.log(real(exact_probability(self.slack))) * total) + total / 2)


@dataclass(frozen=True, slots=True)
class PureOdometer:
    """The running sum of ε: at every time, the loss so far is at most what it reads.

    >>> PureOdometer().after(PureDP("0.1")).after(PureDP("0.2")).reading
    PureDP(epsilon='0.3')
    """

    reading: PureDP = _NO_EPSILON

    def after(self, cost: PureDP | Exact) -> PureOdometer:
        """The odometer after one more charge; one with a δ is refused, since no sum of ε bounds its loss."""
        return PureOdometer(PureDP(self.reading.epsilon + pure_of(cost).epsilon))


_WATCHED = RenyiCurve.zcdp(ZCDP(0), ("1.5", 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 1024))


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiOdometer:
    """A running bound on the privacy loss from Rényi curves: with probability 1 − δ it holds at all times at once.

    Guarantee. For neighbours x, x′ and outputs drawn on x: P[Lₜ ≤ reading after t charges, for every t] ≥ 1 − δ, however the
    charges were chosen. Theorem: Ville's inequality for the supermartingale exp((α − 1)(Lₜ − Στ(α))) of Feldman & Zrnic (2021):
    at one order, Lₜ ≤ Στ(α) + ln(1/δ_α)/(α − 1) at all times with probability 1 − δ_α. Every order of `spent` gets δ/(number of
    orders), so that the least of the bounds may be read. A ρ-zCDP charge counts as its line αρ. The orders are those of the curve
    that it starts from.

    >>> odometer = RenyiOdometer(delta="1e-6")
    >>> for _ in range(10):
    ...     odometer = odometer.after(ZCDP("0.001"))
    >>> odometer.reading < 1
    True
    """

    delta: Exact
    spent: RenyiCurve = _WATCHED

    def __post_init__(self) -> None:
        slack = exact_probability(self.delta, "delta")
        if slack == 0:
            raise InvalidParameter("delta=0 is invalid", why="the reading holds with probability 1 − δ", instead='delta="1e-6"')
        object.__setattr__(self, "delta", slack)

    def after(self, cost: RenyiCurve | Guarantee) -> RenyiOdometer:
        """The odometer after one more charge."""
        if isinstance(cost, ApproxDP):
            raise InvalidParameter(
                f"{cost} is invalid", why="(ε, δ) has no Rényi curve", instead="a PureDP, a ZCDP or a RenyiCurve"
            )
        if isinstance(cost, PureDP):
            cost = RenyiCurve.pure(cost, self.spent.orders)
        elif isinstance(cost, ZCDP):
            cost = RenyiCurve.zcdp(cost, self.spent.orders)
        total = self.spent + cost
        if total.orders != self.spent.orders:
            raise InvalidParameter(
                "The curve is invalid", why="it lacks orders of the odometer", instead="the odometer's own orders"
            )
        return replace(self, spent=total)

    @property
    def reading(self) -> Fraction:
        """The bound on the loss so far, rounded up."""
        if not any(self.spent.divergences):
            return Fraction(0)
        price = context().log(real(len(self.spent.orders) / exact_probability(self.delta)))
        pairs = zip(self.spent.orders, self.spent.divergences, strict=True)
        return min(tau + up(price / real(alpha - 1)) for alpha, tau in pairs)


def _require(fits: bool, cost: Guarantee, budget: Guarantee, remaining: Guarantee) -> None:
    if not fits:
        raise BudgetExceeded(
            f"A charge of {cost} was refused", why=f"of the budget of {budget}, {remaining} is left", instead="a smaller charge"
        )
