"""The least spend for a wanted margin."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy import Guarantee
from cloister.session.execution.history import History
from cloister.session.planning.expectation import chosen, expected_margin
from cloister.session.planning.plan import Part, Plan, following, price
from cloister.session.planning.shape import Shape
from cloister.session.questions.spend import Spend, Spending, amount_of, measure_of
from cloister.session.releases.formulas import Linear, Reading, combined
from cloister.session.releases.uncertainty import check_confidence

_DIGITS = 6
_WIDEST = 1e300
_LEAST, _MOST = -12, 12  # powers of ten between which a spend is looked for


def least_spend(shape: Shape, budget: Guarantee, within: float, confidence: float, history: History, *, who: str) -> Guarantee:
    """The least amount, to six digits, at which every count and sum of the question has a margin of at most `within`.

    The margin of a count or a sum follows from the noise alone and falls as the spend grows, so the amount is found by
    bisection over numbers of six digits; what was bought before is combined with what is still to buy. Where what is stored is
    sharp enough, and others than `who` paid for it, it is no more than somebody who asks first would spend: so much is charged
    to a share. A count that decides whether its undeclared group is shown has the widest margin that such a count can have. The
    margin of anything else depends on private sizes: it is refused here, and `least_spend_after` works it out from a pilot.
    """
    check_wanted(within, confidence)
    formulas = [formula for formula in shape.formulas if isinstance(formula, Linear)]
    if len(formulas) < len(shape.formulas):
        raise UnsupportedQuery(
            f"within={within} is not supported",
            why="the error of a mean or a quantile depends on how many rows its group has, which is private",
            instead='pilot="0.01" beside within=, which gives a first noisy answer; or spend="0.1"',
        )
    if any(formula.kind == "integer" for formula in formulas) and within < 1:
        raise InvalidParameter(
            f"within={within} is invalid", why="a whole number is either exact or off by 1 at least", instead="within=1"
        )

    def wide(part: Part) -> bool:
        readings = part.blanks()
        if part.threshold is not None:
            readings["units"] = chosen(readings["units"], part.threshold.least, confidence, None)
        return any(expected_margin(formula, readings, confidence, None) > within for formula in formulas)

    return _search(shape, budget, history, who, wide)


def least_spend_after(
    shape: Shape, budget: Guarantee, within: float, confidence: float, history: History, *, who: str
) -> Guarantee:
    """The least amount at which the margin of every cell is at most `within`, by the noisy values that a pilot has bought.

    The private sizes that a margin depends on are replaced by the pilot's noisy ones, so this is post-processing of what was paid
    for; the margin that comes out is that of the values which are then found, and may lie a little above or below.
    """
    check_wanted(within, confidence)
    shown = shape.grid.visible()
    raws = history.stored[0].parts[0].readings if history.stored else ()
    values = {name: combined([stored.parts[0].readings[name] for stored in history.stored]).values[shown] for name in raws}

    def wide(part: Part) -> bool:
        readings = {name: Reading(values[name], reading.terms) for name, reading in part.blanks().items()}
        return any(float(np.max(formula.margins(readings, confidence), initial=0.0)) > within for formula in shape.formulas)

    return _search(shape, budget, history, who, wide)


def check_asked(within: float | None, pilot: Spending | None, confidence: float, **switches: bool) -> None:
    """What stands beside a query is sound, also where its answer does not need it: here, and over a hub."""
    check_wanted(1 if within is None else within, confidence)
    if pilot is not None and within is None:
        raise lone_pilot()
    for name, given in switches.items():
        if not isinstance(given, bool):
            raise InvalidParameter(f"{name}={given!r} is invalid", why="it must be True or False", instead=f"{name}=True")


def lone_pilot() -> InvalidParameter:
    """A pilot says how large the groups are, for a wanted margin."""
    instead = 'within=50 beside pilot="0.01"'
    return InvalidParameter("The pilot is invalid", why="it goes with a wanted margin", instead=instead)


def check_wanted(within: float, confidence: float) -> None:
    """A wanted margin is a number that a margin can be.

    >>> check_wanted(50, 0.95)
    """
    check_confidence(confidence)
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 < within <= _WIDEST:
        raise InvalidParameter(f"within={within!r} is invalid", why="it must be a number greater than 0", instead="within=50")


def _search(shape: Shape, budget: Guarantee, history: History, who: str, wide: Callable[[Part], bool]) -> Guarantee:
    measure, share = measure_of(budget), budget.delta / 10
    had = history.had(shape.population)

    def priced(amount: Fraction) -> Plan:
        spend = Spend(measure, amount - had if amount > had and history.combinable else amount, share)
        return price([shape], {shape.population: spend})

    def too_wide(amount: Fraction) -> bool:
        fresh = amount > had
        return wide(following(priced(amount), history.usable(fresh=fresh), missing=fresh).parts[0])

    def guarantee(amount: Fraction) -> Guarantee:
        """With as much δ as the threshold and the noise that was chosen need."""
        return Spend(measure, amount, share).guarantee(amount, priced(amount).costs[shape.population].delta)

    if had > 0 and not too_wide(had):
        first = _search(shape, budget, History(), who, wide) if history.paid_by_others(who) else guarantee(had)
        return first if amount_of(first) < had else guarantee(had)
    low, high = _LEAST, _MOST
    if too_wide(Fraction(10) ** high):
        raise UnsupportedQuery(
            "within= is not supported",
            why="no spend makes the margin of every group so small: some groups have too few rows",
            instead='a larger pilot=, spend="0.1", or fewer groups',
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_wide(Fraction(10) ** middle) else (low, middle)
    first, last = 10 ** (_DIGITS - 1), 10**_DIGITS
    unit = Fraction(10) ** (low - _DIGITS + 1)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if too_wide(middle * unit) else (first, middle)
    return guarantee(last * unit)
