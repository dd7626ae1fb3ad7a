"""The institution's ceilings as amounts that a ledger can keep to in the transaction of a charge.

A decision that compares a ceiling with what was spent is true of the moment at which it was made. So that no race of questions
passes the ceiling, whoever charges is handed the same ceilings in the budget's own measure: exact for ε and (ε, δ). The ε of a ρ
is not linear in it; its bound is the largest ρ, to one part in 2⁴⁰, whose ε at the rule's δ is not above the ceiling.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.decisions.policy.actions import actions
from cloister.hub.decisions.policy.decision import REASONS
from cloister.hub.decisions.policy.facts import Context, MandatoryRule, Object, Who
from cloister.hub.decisions.policy.mandatory import among, governs, labels_of
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, text_of

LARGEST = 10**12
"""The most that a budget, a share, a spend or a ceiling may say: beyond it there is only a mistake of units. At ε = 30 an answer
may give a person away for certain, so it takes nothing from anybody who means what they write, and keeps every amount within what
floats, pictures and pages can hold."""
_NEARLY_ONE = 1 - Fraction(1, 10**60)
_HALVINGS = 40


def check_amount(amount: Fraction | Guarantee, title: str = "The amount") -> None:
    """Refuse an ε or a ρ that is larger than any that is meant.

    >>> check_amount(Fraction(10**9))
    >>> check_amount(Fraction(10**400), "The budget")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The budget is invalid: ε and ρ are at most 1,000,000,000,000, and protect no one long before
    that.
      Instead: 1
    """
    number = amount if isinstance(amount, Fraction) else amount.rho if isinstance(amount, ZCDP) else amount.epsilon
    if number > LARGEST:
        raise InvalidParameter(
            f"{title} is invalid", why=f"ε and ρ are at most {LARGEST:,}, and protect no one long before that", instead="1"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most that a population, or one person's part of it, may come to; which rule says so, and how a refusal says it."""

    population: str
    of_allotment: bool
    most: Guarantee
    rule: str
    why: str


def ceilings(
    who: Who,
    what: str,
    objects: Sequence[Object],
    context: Context,
    mandatory: Sequence[MandatoryRule],
    budgets: Mapping[str, Guarantee],
) -> list[Ceiling]:
    """Every ceiling that one act on these objects has to keep to. `budgets`: of their populations, by name.

    >>> from datetime import UTC, datetime
    >>> rule = MandatoryRule(id="m1", epsilon_of_population=Fraction(1))
    >>> people = Object(kind="data-set", id="d1", population="people")
    >>> context = Context(now=datetime.now(UTC))
    >>> [found] = ceilings(Who(id="p1"), "question.ask", [people], context, [rule], {"people": PureDP(5)})
    >>> found.most, found.rule
    (PureDP(epsilon='1'), 'mandatory:m1')
    """
    action = actions()[what]
    found: dict[tuple[str, str, bool], Ceiling] = {}
    for which in objects:
        labels = labels_of(which, context.read(which.id))
        for rule in mandatory:
            applies = action.data if rule.actions is None else what in rule.actions
            if governs(rule, who, which, labels) and (applies or rule.actions is None):
                for each in _of_rule(rule, which, budgets):
                    found[each.population, each.rule, each.of_allotment] = each
    return list(found.values())


def _of_rule(rule: MandatoryRule, which: Object, budgets: Mapping[str, Guarantee]) -> Iterator[Ceiling]:
    narrow = which.population if rule.labels or rule.institution else ""
    for population, budget in budgets.items():
        if narrow and population != narrow:
            continue
        if rule.populations is not None and not among(population, rule.populations):
            continue
        for of_allotment, epsilon in ((False, rule.epsilon_of_population), (True, rule.epsilon_of_allotment)):
            if epsilon is None and rule.delta is None:
                continue
            reason = "delta" if epsilon is None else "ceiling-allotment" if of_allotment else "ceiling-population"
            told = {"delta": text_of(rule.delta or Fraction(0)), "ceiling": text_of(epsilon or Fraction(0))}
            yield Ceiling(
                population=population,
                of_allotment=of_allotment,
                most=most_of(budget, epsilon, rule.delta),
                rule=f"mandatory:{rule.id}",
                why=REASONS[reason].format(**told),
            )


def most_of(budget: Guarantee, epsilon: Fraction | None, delta: Fraction | None) -> Guarantee:
    """A ceiling in the measure of a budget; None is none.

    >>> most_of(ApproxDP(5, "1e-3"), Fraction(1), Fraction(1, 10**6))
    ApproxDP(epsilon='1', delta='0.000001')
    """
    if isinstance(budget, PureDP):
        return PureDP(LARGEST if epsilon is None else epsilon)
    slack = _NEARLY_ONE if delta is None else delta
    if isinstance(budget, ApproxDP):
        return ApproxDP(LARGEST if epsilon is None else epsilon, slack)
    return ZCDP(LARGEST if epsilon is None else _largest_rho(epsilon, delta or Fraction(0), budget.delta), slack)


@lru_cache(maxsize=256)
def _largest_rho(epsilon: Fraction, delta: Fraction, used: Fraction) -> Fraction:
    """The largest ρ whose ε at δ is not above a ceiling, where the budget's own δ may all be used; 0 where there is none."""

    def fits(rho: Fraction) -> bool:
        try:
            return bool(ZCDP(rho, used).to_approx(delta).epsilon <= epsilon)
        except CloisterError:
            return False

    low, high = Fraction(0), max(epsilon, Fraction(1))  # ε is at least ρ, at every δ below one half
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
