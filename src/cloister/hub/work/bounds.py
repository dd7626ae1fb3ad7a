"""How much work may draw: the institution's ceilings, the shares of grants and their limits on the risk; before the charge, in
it, and when what was made is to leave; and what is left of it, for the page that asks whether to go on.

The policy is asked with the money before anything is charged, since its refusal names the rule and whom to ask. What it compared
may have changed when the charge is made, by work of others: so the same ceilings, shares and limits go with the session, and the
ledger holds each charge, also that of a share for what others paid, against them in its own transaction. A grant may be
revoked and another given between the decision and the charge: so where anything changed, what was drawn is compared with the
limits of now before anything leaves.

A grant's share is a bound and nothing else: the most that an account may have drawn of the population in all, by whatever it
drew, while the grant stands. So it leaves nothing behind when the grant ends; what an owner allots by hand is the ledger's, and
stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session as Db

from cloister.hub.decisions.checking import check
from cloister.hub.decisions.facts import Facts, project_account, who_of
from cloister.hub.decisions.policy import Context, Decision, Object, Spend, ceilings
from cloister.hub.decisions.policy.decision import LEFT
from cloister.hub.decisions.policy.risk import most_within
from cloister.hub.hub import Caller, Hub
from cloister.hub.max_delta import check_max_delta
from cloister.hub.platform.budgets import sees_budget
from cloister.hub.web.languages import N_
from cloister.ledger import Bound
from cloister.privacy import Guarantee, advantage, text_of, zero_of
from cloister.session.analyst import Bounds
from cloister.session.questions.spend import amount_of, less

_WHY = N_("the risk would pass the most that the grant allows: {limit}")


def account_of(facts: Facts, caller: Caller, project: str) -> str:
    """The name under which the ledger counts: the project's, whose members have one share together, or the person's."""
    found = facts.projects.get(project)
    return caller.email if found is None else project_account(found.name)


def money_of(hub: Hub, objects: Sequence[Object], who: str, costs: Mapping[str, Guarantee], what: str) -> dict[str, Spend]:
    """What the policy has to know of the money: what is still to be charged to each population that is touched, what was spent of
    it and what this account drew. A δ that would pass the hub's maximum is refused; `what` names what would."""
    found = {}
    for population in _populations(objects):
        cost = costs.get(population)
        asked = cost if cost is not None and amount_of(cost) > 0 else None
        drawn, spent = hub.ledger.spent_by(population, who), hub.ledger.spent(population)
        check_max_delta(hub.settings.max_delta, what, asked, spent)
        found[population] = Spend(asked=asked, spent=spent, drawn=drawn)
    return found


def bounded(facts: Facts, objects: Iterable[Object]) -> bool:
    """Whether any rule or grant speaks of money."""
    for each in objects:
        for grant in each.grants:
            if grant.rules.share is not None or grant.rules.risk is not None:
                return True
    return bool(facts.mandatory)


def bounds_of(
    hub: Hub,
    facts: Facts,
    caller: Caller,
    action: str,
    objects: Sequence[Object],
    decisions: Mapping[str, Decision],
    context: Context,
    money: Mapping[str, Spend],
) -> Bounds:
    """The ceilings of the institution's rules, and the shares and the limits on the risk of the grants that the decisions stand
    on, for the ledger."""
    budgets = {population: hub.ledger.budget(population) for population in _populations(objects)}
    above: dict[str, list[Bound]] = {}
    shares: dict[str, list[Bound]] = {}
    for each in ceilings(who_of(caller, facts), action, objects, context, facts.mandatory, budgets):
        kept = shares if each.of_allotment else above
        kept.setdefault(each.population, []).append(Bound(most=each.most, why=each.why, rule=each.rule))
    for which in objects:
        limits, rule, known = decisions[which.id].narrowed, decisions[which.id].rule, money.get(which.population)
        if limits.share is not None and which.population:
            why = f"your share of the budget under this grant is used up: {limits.share}"
            left = LEFT.format(rest="{rest}", share=limits.share, cost="{cost}")
            shares.setdefault(which.population, []).append(Bound(most=limits.share, why=why, rule=rule, left=left))
        if limits.risk is not None and known is not None and known.drawn is not None:
            most = most_within(limits.risk, known.drawn if known.asked is None else known.drawn + known.asked)
            if most is not None:
                why = _WHY.format(limit=text_of(limits.risk))
                shares.setdefault(which.population, []).append(Bound(most=most, why=why, rule=rule))
    return Bounds(ceilings=above, shares=shares)


def check_limits(
    hub: Hub,
    db: Db,
    caller: Caller,
    action: str,
    objects: Sequence[Object],
    decisions: Mapping[str, Decision],
    context: Context,
    who: str,
) -> Mapping[str, Decision]:
    """Refuse what the account `who` paid for already where the limit of today, or the share, is below what was drawn with it; the
    decisions, by other grants where those have no such limit."""
    found = dict(decisions)
    for each in objects:
        limits = decisions[each.id].narrowed
        if not each.population or (limits.risk is None and limits.share is None):
            continue
        drawn = hub.ledger.spent_by(each.population, who)
        beyond = limits.share is not None and not drawn <= limits.share
        if limits.risk is not None or beyond:
            given = replace(context, together=tuple(other for other in objects if other.id != each.id))
            given = given if limits.risk is None else replace(given, risk=advantage(drawn))
            money = {each.population: Spend(asked=zero_of(drawn), drawn=drawn)} if beyond else given.spend
            found[each.id] = check(hub, db, caller, action, each, replace(given, spend=money))
    return found


def own_share(
    hub: Hub, population: str, who: str, objects: Iterable[Object], decisions: Mapping[str, Decision]
) -> tuple[Guarantee, Guarantee] | None:
    """What an account may draw of a population in all, and what is left of it, where anything but the budget caps it: its
    share, or the share of a grant that the decisions stand on, whichever leaves less.
    """
    allotted = hub.ledger.allotment(population, who)
    found = [] if allotted is None else [allotted]
    for which in objects:
        share = decisions[which.id].narrowed.share
        if share is not None and which.population == population:
            found.append((share, less(share, hub.ledger.spent_by(population, who)) or zero_of(share)))
    return min(found, key=lambda each: amount_of(each[1]), default=None)


def _populations(objects: Iterable[Object]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys(each.population for each in objects if each.population))


@dataclass(frozen=True, kw_only=True)
class Left:
    """What work costs one population, and what is left of a budget or of a share of it, before and after."""

    population: str
    of_share: bool
    whole: Guarantee
    before: Guarantee
    cost: Guarantee
    frozen: bool = False
    """Whether the ledger charges nothing: then nothing is left, whatever the sums would say, and what costs nothing is given."""

    @classmethod
    def of_budget(cls, hub: Hub, population: str, cost: Guarantee) -> Left:
        """Of all that a population may spend."""
        whole, frozen = hub.ledger.budget(population), hub.ledger.frozen is not None
        rest = less(whole, hub.ledger.spent(population)) if frozen else hub.ledger.remaining(population)
        before = zero_of(whole) if rest is None else rest
        return cls(population=population, of_share=False, whole=whole, before=before, cost=cost, frozen=frozen)

    @property
    def enough(self) -> bool:
        """Whether it may be charged.

        >>> from cloister.privacy import PureDP
        >>> left = Left(population="people", of_share=False, whole=PureDP(1), before=PureDP("0.2"), cost=PureDP("0.3"))
        >>> left.enough, left.after
        (False, None)
        """
        return amount_of(self.cost) == 0 if self.frozen else bool(self.cost <= self.before)

    @property
    def after(self) -> Guarantee | None:
        """What is left then; None for nothing."""
        return less(self.before, self.cost) if self.enough and not self.frozen else None

    @property
    def spent(self) -> Guarantee | None:
        """What was spent before."""
        return less(self.whole, self.before)


def left_of(
    hub: Hub,
    db: Db,
    caller: Caller,
    who: str,
    objects: Sequence[Object],
    decisions: Mapping[str, Decision],
    costs: Mapping[str, Guarantee],
) -> tuple[Left, ...]:
    """By population: of one's own share to everybody; of a budget to those who may see it."""
    found, frozen = [], hub.ledger.frozen is not None
    for population, cost in costs.items():
        if sees_budget(hub, db, caller, population):
            found.append(Left.of_budget(hub, population, cost))
        share = own_share(hub, population, who, objects, decisions)
        if share is not None:
            found.append(Left(population=population, of_share=True, whole=share[0], before=share[1], cost=cost, frozen=frozen))
    return tuple(found)
