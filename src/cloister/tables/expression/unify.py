"""One domain for columns of several domains, and the arithmetic that turns the codes of each into its codes.

Two columns that are compared or stacked must count in the same steps from the same origin. The common step is the greatest that
divides both steps and the distance of the origins, so every value keeps its exact value; all of it is whole-number arithmetic.
"""

import copy
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from cloister.errors import InvalidDeclaration, UnsupportedQuery
from cloister.tables.declaring.columns import Category, Date, Domain, Integer, Real, Text
from cloister.tables.engines.compiler import storage
from cloister.tables.expression.computed import Stepped

NUMERIC = ("integer", "real")
_MOST_RECODED = 2_000


def with_nullable(domain: Domain, nullable: bool) -> Domain:
    """The same domain with rows of NULL in a group of their own, or in none.

    >>> with_nullable(Integer(0, 9), True)
    Integer(low=0, high=9, nullable=True)
    """
    if domain.nullable == nullable:
        return domain
    other = copy.copy(domain)
    object.__setattr__(other, "nullable", nullable)
    return other


def common_step(*numbers: Fraction) -> Fraction:
    """The greatest number of which all are multiples.

    >>> common_step(Fraction(1, 2), Fraction(1, 3), Fraction(0))
    Fraction(1, 6)
    """
    below = math.lcm(*(number.denominator for number in numbers))
    return Fraction(math.gcd(*(int(number * below) for number in numbers)), below)


def numeric(what: str, low: Fraction, high: Fraction, step: Fraction, *, whole: bool, nullable: bool) -> Domain:
    """The domain of the numbers low, low + step, …, high; refused where its codes would not fit.

    >>> numeric("the sum", Fraction(0), Fraction(3, 2), Fraction(1, 2), whole=False, nullable=False)
    Stepped(first=0, last=3, step_size=Fraction(1, 2), nullable=False)
    """
    try:
        if whole:
            return Integer(int(low), int(high), nullable=nullable)
        first, last = low / step, high / step
        if first.denominator == last.denominator == 1:
            return Stepped(first=int(first), last=int(last), step_size=step, nullable=nullable)
        return Real(low, high if high > low else low + step, step=step, nullable=nullable)
    except InvalidDeclaration:
        pass
    raise UnsupportedQuery(
        f"{what[0].upper()}{what[1:]} is not supported",
        why="within the declared bounds it needs more steps than an engine counts exactly",
        instead="a coarser step=, or CLAMP(expression, low, high)",
    )


def unified(name: str, domains: Sequence[Domain]) -> Domain:
    """The least domain that holds the values of all; refused where the kinds differ.

    >>> unified("age", [Integer(0, 9), Integer(5, 20)])
    Integer(low=0, high=20, nullable=False)
    >>> unified("sex", [Category(["F", "M"]), Category(["M", "X"])])
    Category(['F', 'M', 'X'])
    """
    nullable = any(domain.nullable for domain in domains)
    plain = [with_nullable(domain, nullable) for domain in domains]
    if all(each.describe() == plain[0].describe() for each in plain):
        return plain[0]
    kinds = {domain.kind for domain in domains}
    if kinds <= set(NUMERIC):
        low = min(domain.origin + domain.low_code * domain.step for domain in domains)
        high = max(domain.origin + domain.high_code * domain.step for domain in domains)
        step = common_step(*(domain.step for domain in domains), *(domain.origin - domains[0].origin for domain in domains))
        step = common_step(step, high - low)
        whole = kinds == {"integer"} and all(domain.step == 1 and domain.origin == 0 for domain in domains)
        return numeric(f"the column {name!r}", low, high, step, whole=whole, nullable=nullable)
    if all(isinstance(domain, Date) for domain in domains):
        days = [domain for domain in domains if isinstance(domain, Date)]
        return Date(min(each.low for each in days), max(each.high for each in days), nullable=nullable)
    if all(isinstance(domain, Category) for domain in domains):
        lists = [domain.options for domain in domains if isinstance(domain, Category)]
        if len({type(options[0]) for options in lists}) == 1:
            options = tuple(dict.fromkeys(option for options in lists for option in options))
            if len(options) <= _MOST_RECODED or options in lists:
                return Category(options, nullable=nullable)
    raise UnsupportedQuery(
        f"The columns {name!r} are not supported together",
        why=f"they are declared {' and '.join(sorted(kinds))}, or of different lists",
        instead="columns of one kind, with the same categories",
    )


def recoded(code: Any, domain: Domain, target: Domain) -> Any:
    """The Ibis code of the same value in the target domain, in the target's storage type."""
    if isinstance(domain, Text):
        return code
    if isinstance(domain, Category) and isinstance(target, Category) and domain.options != target.options:
        places = [target.encode(option) for option in domain.options]
        first = places[0]
        assert first is not None
        if places == list(range(first, first + len(places))):
            code = code.cast("int64") + first
        else:
            code = code.cases(*((place, other) for place, other in enumerate(places)), else_=None)
    elif domain.kind in NUMERIC and (domain.step, domain.origin) != (target.step, target.origin):
        times, plus = domain.step / target.step, (domain.origin - target.origin) / target.step
        code = code.cast("int64") * int(times) + int(plus)
    return code.cast(storage(target))
