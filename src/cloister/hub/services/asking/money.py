"""What a wish costs, under whose name it is counted, and how much of it rules and grants allow.

The policy is asked with the money before anything is charged, since its refusal names the rule and whom to ask. What it compared
may have changed when the charge is made, by questions of others: so the same ceilings and shares go with the session, and the
ledger holds each charge against them in the charge's own transaction.

A grant's share is a bound and nothing else: the most that a purse may have drawn of the population in all, by whatever it drew,
while the grant stands. So it leaves nothing behind when the grant ends; what an owner allots by hand is the ledger's, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter
from cloister.hub.floor import check_floor
from cloister.hub.policy import Context, Decision, Object, Spend, ceilings
from cloister.hub.services.access import Facts, who_of
from cloister.hub.services.asking.wish import Wish
from cloister.ledger import Bound
from cloister.privacy import Guarantee, text_of, zero_of
from cloister.privacy.rational import exact_positive
from cloister.query import Session, parse
from cloister.session.buying import Bounds
from cloister.session.spend import amount_of, less

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["bounded", "bounds_of", "money_of", "own_share", "purse_of", "spend_for"]


def purse_of(facts: Facts, caller: Caller, wish: Wish) -> str:
    """The name under which the ledger counts: the project's, whose members share an allotment, or the person's."""
    project = facts.projects.get(wish.project)
    return caller.email if project is None else f"project {project.name}"


def spend_for(session: Session, wish: Wish, *, buy: bool) -> str | Guarantee | None:
    """What a wish may spend. For a margin that needs a pilot, that first answer is bought with `buy`; without, it is the price of
    the pilot. A margin that costs more than the wish allows is refused. None: the question names its cost itself.
    """
    if wish.within is None:
        return wish.spend or None
    if wish.pilot and not buy:
        return wish.pilot
    most = exact_positive(wish.most, "spend") if wish.most else None
    pilot = exact_positive(wish.pilot, "pilot") if wish.pilot and most is not None else 0
    if most is not None and pilot > most:
        raise _too_much(wish, wish.pilot)
    found = session.spend_for(
        wish.sql,
        within=wish.within,
        pilot=wish.pilot or None,
        confidence=wish.confidence,
        purpose=wish.purpose,
        dialect=wish.dialect,
    )
    if most is not None:
        costs = [amount_of(each) for each in session.explain(wish.sql, found, dialect=wish.dialect).costs.values()]
        dearest = pilot + max(costs, default=Fraction(0))
        if dearest > most:
            raise _too_much(wish, text_of(dearest), paid=bool(pilot))
    return found


def _too_much(wish: Wish, cost: str, *, paid: bool = False) -> InvalidParameter:
    return InvalidParameter(
        "The margin is invalid",
        why=f"it costs {cost}, of which its pilot of {wish.pilot} is already charged, and at most {wish.most} may be spent on it"
        if paid
        else f"it costs {cost}, and at most {wish.most} may be spent on it",
        instead="a wider margin, or a larger spend",
    )


def money_of(
    hub: Hub, session: Session | None, objects: Sequence[Object], who: str, wish: Wish, spend: str | Guarantee | None
) -> dict[str, Spend]:
    """What the policy has to know of the money: what is still to be charged to each population that is touched, what was spent of
    it and what this purse drew. Without a session nothing is to be charged. A δ that would pass the hub's floor is refused.
    """
    costs = {} if session is None else _costs(hub, session, wish, spend, who)
    found = {}
    for population in _populations(objects):
        cost = costs.get(population)
        asked = cost if cost is not None and amount_of(cost) > 0 else None
        drawn, spent = hub.ledger.spent_by(population, who), hub.ledger.spent(population)
        check_floor(hub.settings.delta_floor, "The question", asked, spent)
        found[population] = Spend(asked=asked, spent=spent, drawn=drawn)
    return found


def bounded(facts: Facts, objects: Iterable[Object]) -> bool:
    """Whether any rule speaks of money."""
    return bool(facts.mandatory) or any(grant.rules.share is not None for each in objects for grant in each.grants)


def bounds_of(
    hub: Hub,
    facts: Facts,
    caller: Caller,
    objects: Sequence[Object],
    decisions: Mapping[str, Decision],
    context: Context,
    *,
    action: str = "question.ask",
) -> Bounds:
    """The ceilings of the institution's rules, and the shares of the grants that the decisions stand on, for the ledger."""
    budgets = {population: hub.ledger.budget(population) for population in _populations(objects)}
    above: dict[str, list[Bound]] = {}
    shares: dict[str, list[Bound]] = {}
    for each in ceilings(who_of(caller, facts), action, objects, context, facts.mandatory, budgets):
        kept = shares if each.of_allotment else above
        kept.setdefault(each.population, []).append(Bound(most=each.most, why=each.why, rule=each.rule))
    for which in objects:
        decision = decisions[which.id]
        share = decision.narrowed.share
        if share is not None and which.population:
            why = f"your share of the budget under this grant is used up: {share}"
            shares.setdefault(which.population, []).append(Bound(most=share, why=why, rule=decision.rule))
    return Bounds(ceilings=above, shares=shares)


def own_share(
    hub: Hub, population: str, who: str, objects: Iterable[Object], decisions: Mapping[str, Decision]
) -> tuple[Guarantee, Guarantee] | None:
    """What a purse may draw of a population in all, and what is left of it, where anything but the budget caps it: its allotment,
    or the share of a grant that the decisions stand on, whichever leaves less.
    """
    allotted = hub.ledger.allotment(population, who)
    found = [] if allotted is None else [allotted]
    for which in objects:
        share = decisions[which.id].narrowed.share
        if share is not None and which.population == population:
            found.append((share, less(share, hub.ledger.spent_by(population, who)) or zero_of(share)))
    return min(found, key=lambda each: amount_of(each[1]), default=None)


def _costs(hub: Hub, session: Session, wish: Wish, spend: str | Guarantee | None, who: str) -> Mapping[str, Guarantee]:
    """What is still to be paid of each population: what was bought before is counted in, and what this purse was charged for an
    attempt that died before its answer left. (If that is not taken over after all, the ledger holds the charge against the same
    bounds.)"""
    if not wish.more:
        plan = session.explain(wish.sql, spend, dialect=wish.dialect)
    else:
        questions = [each for text in wish.texts for each in parse(text, session.tables, wish.dialect).questions]
        plan = session.explain_workload(questions, spend or "")
    paid = plan.costs and hub.ledger.waiting(plan.costs, who=who, what=plan.digest) is not None
    return {} if paid else plan.costs


def _populations(objects: Iterable[Object]) -> list[str]:
    return list(dict.fromkeys(each.population for each in objects if each.population))
