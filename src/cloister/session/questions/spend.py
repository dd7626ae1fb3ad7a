"""What a spend means under a budget, and how it is shared among blocks.

A number counts in the budget's first parameter: ε under `PureDP` and `ApproxDP`, ρ under `ZCDP`. Where a release needs a δ, a
number reserves the same share of the budget's δ as it takes of its first parameter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, PureDP, exact_positive, text_of

Measure: TypeAlias = Literal["pure", "approx", "zcdp"]
Spending: TypeAlias = Exact | Guarantee

_STEPS = 10**6


@dataclass(frozen=True)
class Spend:
    """An amount of the first parameter, the δ at hand for those blocks that need one, and the budget's measure."""

    measure: Measure
    amount: Fraction
    delta: Fraction

    def guarantee(self, amount: Fraction, delta: Fraction = Fraction(0)) -> Guarantee:
        """`amount` and `delta` as a promise in the budget's measure."""
        if self.measure == "pure":
            return PureDP(amount)
        return ApproxDP(amount, delta) if self.measure == "approx" else ZCDP(amount, delta)

    def whole(self) -> Guarantee:
        """All of it."""
        return self.guarantee(self.amount, self.delta)


def measure_of(budget: Guarantee) -> Measure:
    """The kind of promise that a budget counts in."""
    return "pure" if isinstance(budget, PureDP) else "approx" if isinstance(budget, ApproxDP) else "zcdp"


def amount_of(guarantee: Guarantee) -> Fraction:
    """The first parameter.

    >>> amount_of(PureDP("0.1"))
    Fraction(1, 10)
    """
    return guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon


def less(whole: Guarantee, part: Guarantee) -> Guarantee | None:
    """What is left of a promise after a part of it, in the same measure; None where nothing is.

    >>> less(PureDP(3), PureDP(1)), less(PureDP(1), PureDP(1))
    (PureDP(epsilon='2'), None)
    """
    amount, delta = max(amount_of(whole) - amount_of(part), Fraction(0)), max(whole.delta - part.delta, Fraction(0))
    return Spend(measure_of(whole), amount, delta).whole() if amount or delta else None


def least(one: Guarantee, other: Guarantee) -> Guarantee:
    """The less of two promises in one measure, in each of their amounts.

    >>> least(PureDP(3), PureDP(1))
    PureDP(epsilon='1')
    """
    return Spend(measure_of(one), min(amount_of(one), amount_of(other)), min(one.delta, other.delta)).whole()


def spend_of(spend: Spending, budget: Guarantee) -> Spend:
    """What was written as `spend=`, in the budget's measure.

    >>> spend_of("0.1", PureDP(1))
    Spend(measure='pure', amount=Fraction(1, 10), delta=Fraction(0, 1))
    >>> spend_of(1, ApproxDP(10, "1e-5")).delta
    Fraction(1, 1000000)
    """
    return _spend_of_text(spend, budget) if type(spend) is str else _spend_of(spend, budget)


@lru_cache(maxsize=1024)
def _spend_of_text(spend: str, budget: Guarantee) -> Spend:
    return _spend_of(spend, budget)


def _spend_of(spend: Spending, budget: Guarantee) -> Spend:
    measure = measure_of(budget)
    if not isinstance(spend, PureDP | ApproxDP | ZCDP):
        amount = exact_positive(spend, "spend")
        whole = amount_of(budget)
        share = min(amount / whole, Fraction(1)) if whole else Fraction(0)
        return Spend(measure, amount, budget.delta * share)
    if measure == "zcdp" and isinstance(spend, PureDP):
        spend = spend.to_zcdp()
    if measure == "approx" and isinstance(spend, PureDP):
        spend = spend.to_approx()
    if measure_of(spend) != measure:
        raise NotConvertible(
            f"spend={spend!r} is invalid",
            why=f"the population's budget is {budget!r}, and a promise of the other kind cannot be counted in it",
            instead=f'spend="{text_of(amount_of(budget) / 10)}"',
        )
    if amount_of(spend) <= 0:
        raise InvalidParameter(f"spend={spend!r} is invalid", why="it must be greater than 0", instead='spend="0.1"')
    return Spend(measure, amount_of(spend), spend.delta)


def shares(sensitivities: Sequence[int], measure: Measure) -> list[Fraction]:
    """The split of one spend that makes the sum of the blocks' variances least, each in units of the widths of its own raws.

    With Laplace noise the variance of a block is proportional to (l1/ε)², so Σ l1²/ε² under Σ ε = 1 is least at ε ∝ l1^(2/3);
    with Gaussian noise it is proportional to l2²/ρ, least at ρ ∝ l2. The shares are multiples of a millionth and sum to exactly
    1.

    >>> shares([1, 1], "pure")
    [Fraction(1, 2), Fraction(1, 2)]
    >>> sum(shares([1, 8, 27], "pure")) == 1
    True
    """
    power = 2 / 3 if measure != "zcdp" else 1.0
    wishes = [float(sensitivity) ** power for sensitivity in sensitivities]
    total = sum(wishes)
    parts = [Fraction(max(1, round(wish / total * _STEPS)), _STEPS) for wish in wishes]
    largest = parts.index(max(parts))
    parts[largest] += 1 - sum(parts)
    if parts[largest] <= 0:  # more than half a million blocks
        return [Fraction(1, len(parts))] * len(parts)
    return parts
