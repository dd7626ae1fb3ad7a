"""What a budget counts in: whole numbers of one very small unit, so that sums are exact, fast, and stay the same size for ever.

Running sums of arbitrary rationals are exact too, but their denominators can be made to grow without end (a million charges of
1/p for different primes p). So amounts are counted in units of 1/GRID, where GRID = 10⁶⁰ · lcm(1, …, 100): every decimal of up
to sixty places and every share by a whole number up to a hundred is a whole number of units, and their sums are exact. A charge
that is finer than that rounds up to the next unit (less than 10⁻⁹⁷); a budget never rounds up.

A guarantee is two amounts: (ε, 0) for `PureDP`, (ε, δ) for `ApproxDP`, (ρ, δ) for `ZCDP`. Under each of the three, the amounts
of adaptively chosen releases add, and stopping before a sum would pass the budget is a valid filter (Rogers et al. 2016 for ε
and (ε, δ); Feldman & Zrnic 2021 for zCDP), so that a budget holds whatever the analysts ask next.
"""

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, text_of

GRID = math.lcm(10**60, *range(1, 101))
"""How many units make 1."""

Units: TypeAlias = tuple[int, int]
"""The two amounts of a guarantee, each a whole number of 1/GRID."""

_ZERO = Fraction(0)
_LONGEST = 4_000  # bits of a numerator or denominator: text of more would be refused by Python itself


def kind_of(guarantee: Guarantee) -> str:
    """The name of the measure: "pure", "approx" or "zcdp".

    >>> kind_of(ZCDP("0.1"))
    'zcdp'
    """
    if isinstance(guarantee, PureDP):
        return "pure"
    if isinstance(guarantee, ApproxDP):
        return "approx"
    if isinstance(guarantee, ZCDP):
        return "zcdp"
    raise InvalidParameter(
        f"A budget or a cost of type {type(guarantee).__name__} is invalid",
        why="it is a PureDP, an ApproxDP or a ZCDP",
        instead=f'PureDP("{guarantee if isinstance(guarantee, int | float) else 0.1}")',
    )


def amounts_of(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    """The two exact amounts of a guarantee.

    >>> amounts_of(PureDP("0.1"))
    (Fraction(1, 10), Fraction(0, 1))
    """
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon, _ZERO
    return guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon, guarantee.delta


def guarantee_of(kind: str, units: Units) -> Guarantee:
    """The guarantee that so many units stand for; a δ of 1 or more is shown as the largest below 1.

    >>> guarantee_of("pure", (GRID // 10, 0))
    PureDP(epsilon='0.1')
    """
    first, delta = Fraction(units[0], GRID), Fraction(min(units[1], GRID - 1), GRID)
    if kind == "pure":
        return PureDP(first)
    return ApproxDP(first, delta) if kind == "approx" else ZCDP(first, delta)


def units_up(guarantee: Guarantee) -> Units:
    """The amounts in units, rounded up: for charges.

    >>> units_up(PureDP(Fraction(1, 10**200)))
    (1, 0)
    """
    first, delta = amounts_of(guarantee)
    return -(-first.numerator * GRID // first.denominator), -(-delta.numerator * GRID // delta.denominator)


def units_down(guarantee: Guarantee) -> Units:
    """The amounts in units, rounded down: for budgets.

    >>> units_down(PureDP(Fraction(1, 10**200)))
    (0, 0)
    """
    first, delta = amounts_of(guarantee)
    return first.numerator * GRID // first.denominator, delta.numerator * GRID // delta.denominator


def in_measure(cost: Guarantee, kind: str) -> Guarantee:
    """`cost` as a charge against a budget of this kind, by exact implications only.

    Pure counts as approximate with δ = 0, and the other way; pure counts as zCDP with ρ = ε²/2 (Bun & Steinke 2016, Proposition
    1.4). Anything else would lose something that only the analyst can choose (a δ), so it is refused.

    >>> in_measure(PureDP(1), "zcdp"), in_measure(ApproxDP(1, 0), "pure")
    (ZCDP(rho='0.5'), PureDP(epsilon='1'))
    """
    if kind_of(cost) == kind:
        return cost
    if not isinstance(cost, ZCDP):
        if kind == "approx":
            return cost.to_approx(0)
        if cost.delta == 0:
            return PureDP(cost.epsilon) if kind == "pure" else PureDP(cost.epsilon).to_zcdp()
    wanted = {"pure": "pure ε-differential privacy", "approx": "(ε, δ)-differential privacy", "zcdp": "zCDP"}[kind]
    raise NotConvertible(
        f"a cost of {cost} was not charged",
        why=f"the budget counts in {wanted}, which that guarantee does not imply exactly",
        instead="convert the cost first: cost.to_approx(delta)"
        if kind == "approx"
        else "a mechanism whose guarantee is of the budget's kind",
    )


def encode(guarantee: Guarantee) -> list[str]:
    """The guarantee as it stands in a line of the ledger.

    >>> encode(ApproxDP("0.1", "1e-6")), encode(PureDP(1))
    (['approx', '0.1', '0.000001'], ['pure', '1'])
    """
    kind = kind_of(guarantee)
    first, delta = amounts_of(guarantee)
    texts = [kind, _text(first.numerator, first.denominator)]
    if delta or kind == "approx":
        texts.append(_text(delta.numerator, delta.denominator))
    return texts


def is_whole(guarantee: Guarantee) -> bool:
    """Whether the amounts are whole numbers of units, so that no charge of it is rounded.

    >>> is_whole(PureDP("1/97")), is_whole(PureDP("1/101"))
    (True, False)
    """
    first, delta = amounts_of(guarantee)
    return GRID % first.denominator == 0 and GRID % delta.denominator == 0


class Price(NamedTuple):
    """A cost, with all that a charge needs to know of it."""

    kind: str
    texts: list[str]
    """As `encode` writes it; not to be changed."""
    units: Units
    """The amounts in its own measure, rounded up."""
    whole: bool
    """Whether nothing was rounded."""


@functools.lru_cache(maxsize=4096)
def price(cost: Guarantee) -> Price:
    """Worked out once for a cost that is charged again and again.

    >>> price(PureDP(1)).texts, price(PureDP(1)).units == (GRID, 0), price(PureDP("1/101")).whole
    (['pure', '1'], True, False)
    """
    return Price(kind_of(cost), encode(cost), units_up(cost), is_whole(cost))


@functools.lru_cache(maxsize=4096)
def _text(numerator: int, denominator: int) -> str:
    if numerator.bit_length() > _LONGEST or denominator.bit_length() > _LONGEST:
        raise InvalidParameter(
            "a guarantee is invalid", why="its exact parameters are too long to write down", instead='PureDP("0.1")'
        )
    return text_of(Fraction(numerator, denominator))


def decode(texts: Any) -> Guarantee:
    """The guarantee that a line of the ledger names.

    >>> decode(["zcdp", "0.01"])
    ZCDP(rho='0.01')
    """
    kind, first = texts[0], Fraction(texts[1])
    delta = Fraction(texts[2]) if len(texts) > 2 else Fraction(0)
    if kind == "pure":
        return PureDP(first)
    return ApproxDP(first, delta) if kind == "approx" else ZCDP(first, delta)


def charged_units(payload: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Units]:
    """What a line charged each population, in units of the population's measure.

    >>> charged_units({"costs": {"people": ["pure", "1"]}}, {"people": "pure"}) == {"people": (GRID, 0)}
    True
    """
    charged = payload.get("charged", {})
    return {name: units_up(in_measure(decode(charged.get(name, cost)), kinds[name])) for name, cost in payload["costs"].items()}
