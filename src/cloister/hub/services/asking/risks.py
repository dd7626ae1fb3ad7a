"""How a grant's limits on the risk and on what is drawn are kept: before the charge, in it, and where an answer is to leave.

The policy compares the risk that a question would reach with the limit once it knows the price (`hub/policy/risk.py`). Questions
of others, or of the same person elsewhere, may be charged meanwhile: so the limit goes with the session as an amount, and the
ledger holds each charge, and each debit for what others paid, against it in the charge's own transaction.

A grant may be revoked, and another given, between the decision and the charge: the ledger then held the charge against limits of
yesterday. So where anything changed, what was drawn is compared with the limits of now before the answer leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cloister.hub.policy import Context, Decision, Object, Spend
from cloister.hub.policy.risk import most_within
from cloister.hub.services.access import check
from cloister.hub.web.languages import N_
from cloister.ledger import Bound
from cloister.privacy import advantage, zero_of
from cloister.privacy.rational import text_of
from cloister.session.buying import Bounds

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_WHY = N_("the risk would pass the most that the grant allows: {limit}")

__all__ = ["check_limits", "limited", "within_risk"]


def limited(objects: Iterable[Object]) -> bool:
    """Whether any grant limits the risk."""
    return any(grant.rules.risk is not None for each in objects for grant in each.grants)


def within_risk(
    bounds: Bounds, objects: Sequence[Object], decisions: Mapping[str, Decision], money: Mapping[str, Spend]
) -> Bounds:
    """Bounds with the limits of the grants that the decisions stand on."""
    shares = {population: list(each) for population, each in bounds.shares.items()}
    for which in objects:
        decision, known = decisions[which.id], money.get(which.population)
        limit = decision.narrowed.risk
        if limit is None or known is None or known.drawn is None:
            continue
        most = most_within(limit, known.drawn if known.asked is None else known.drawn + known.asked)
        if most is not None:
            why = _WHY.format(limit=text_of(limit))
            shares.setdefault(which.population, []).append(Bound(most=most, why=why, rule=decision.rule))
    return replace(bounds, shares=shares)


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
    """Refuse what the purse `who` paid for already where the limit of today, or the share, is below what was drawn with it; the
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
