"""The least spend for a wanted margin."""

from __future__ import annotations

from fractions import Fraction

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy import Guarantee
from cloister.session.formulas import Linear, ordered
from cloister.session.history import History
from cloister.session.plan import following, price
from cloister.session.shape import Shape
from cloister.session.spend import Spend, measure_of
from cloister.session.uncertainty import check_confidence, half_width

_DIGITS = 6
_WIDEST = 1e300


def least_spend(shape: Shape, budget: Guarantee, within: float, confidence: float, history: History) -> Guarantee:
    """The least amount, to six digits, at which every count and sum of the question has a margin of at most `within`.

    The margin of a count or a sum follows from the noise alone and falls as the spend grows, so the amount is found by bisection
    over numbers of six digits; what was bought before is combined with what is still to buy. The margin of a mean depends on
    private sizes: it is refused.
    """
    check_confidence(confidence)
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 < within <= _WIDEST:
        raise InvalidParameter(f"within={within!r} was refused", why="it must be a number greater than 0", instead="within=50")
    formulas = [formula for formula in shape.formulas if isinstance(formula, Linear)]
    if len(formulas) < len(shape.formulas):
        raise UnsupportedQuery(
            f"within={within} was refused",
            why="the error of a mean depends on how many rows its group has, which is private",
            instead='spend="0.1", or within= for the SUM and the COUNT alone',
        )
    if any(formula.kind == "integer" for formula in formulas) and within < 1:
        raise InvalidParameter(
            f"within={within} was refused", why="a whole number is either exact or off by 1 at least", instead="within=1"
        )
    measure, share = measure_of(budget), budget.delta / 10
    had = history.had(shape.population)

    def wide(amount: Fraction) -> bool:
        fresh = amount > had
        spend = Spend(measure, amount - had if fresh and history.combinable else amount, share)
        plan = following(price([shape], {shape.population: spend}), history.usable(fresh=fresh), missing=fresh)
        readings = plan.parts[0].sharpness()
        widths = (half_width(ordered(formula.terms(readings)), confidence, formula.kind == "integer") for formula in formulas)
        return any(width > within for width in widths)

    def guarantee(amount: Fraction) -> Guarantee:
        return Spend(measure, amount, share).guarantee(amount, share if not shape.grid.declared else Fraction(0))

    if had > 0 and not wide(had):
        return guarantee(had)
    low, high = -12, 12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(Fraction(10) ** middle) else (low, middle)
    first, last = 10 ** (_DIGITS - 1), 10**_DIGITS
    unit = Fraction(10) ** (low - _DIGITS + 1)
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if wide(middle * unit) else (first, middle)
    return guarantee(last * unit)
