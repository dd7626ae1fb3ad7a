"""What is known before anything is spent: the plan, what would be left, whether it may be asked at all; and made-up answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloister.errors import AccessDenied
from cloister.hub.policy import Context, Decision
from cloister.hub.services.access import check_together, context_of, facts_of
from cloister.hub.services.asking.money import money_of, own_share, purse_of, spend_for
from cloister.hub.services.asking.ready import Ready, ready
from cloister.hub.services.asking.seats import looking
from cloister.hub.services.asking.wish import Wish
from cloister.privacy import Guarantee
from cloister.privacy.guarantee import zero_of
from cloister.session import Affordable, Plan, Release
from cloister.session.spend import amount_of, less

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Left", "Preview", "afford", "explain", "preview", "rehearse"]


_ROUND = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5")
"""Spends that tell nothing of what is left."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a question costs one population, and what is left of a budget or of a share of it, before and after."""

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


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A plan, the money beside it, and why it could not be asked, where it could not."""

    plan: Plan
    left: tuple[Left, ...]
    denied: AccessDenied | None

    @property
    def affordable(self) -> bool:
        """Whether every budget and share has enough left."""
        return all(each.enough for each in self.left)


def explain(hub: Hub, caller: Caller, wish: Wish) -> Plan:
    """What an answer would measure, with which error, at which cost: spends nothing and reads no row."""
    with looking(hub, caller), hub.database.reading() as db:
        found = ready(hub, db, caller, wish, "question.explain")
        with found.held.steady():
            return _plan(found, wish)


def preview(hub: Hub, caller: Caller, wish: Wish) -> Preview:
    """The same, with what would be left, and with what the policy would say to asking it now."""
    with looking(hub, caller), hub.database.reading() as db:
        found = ready(hub, db, caller, wish, "question.explain")
        with found.held.steady():
            plan = _plan(found, wish)
            who = purse_of(facts_of(hub, db), caller, wish)
            left = tuple(_left(hub, db, caller, wish, found, who, plan.costs))
            return Preview(plan=plan, left=left, denied=_denied(hub, db, caller, wish, found, who))


def rehearse(hub: Hub, caller: Caller, wish: Wish) -> Release:
    """An answer from made-up rows that follow the declarations: nothing private is touched and nothing is spent."""
    with looking(hub, caller):
        with hub.database.reading() as db:
            found = ready(hub, db, caller, wish, "question.rehearse")
        with found.held.steady():
            return found.session.sql(
                wish.sql,
                wish.spend or None,
                within=wish.within,
                pilot=wish.pilot or None,
                confidence=wish.confidence,
                dialect=wish.dialect,
                rehearse=True,
            )


def afford(hub: Hub, caller: Caller, wish: Wish) -> Affordable:
    """The margins to expect over a range of spends: spends nothing."""
    from cloister.hub.services.budgets import sees_budget

    with looking(hub, caller):
        with hub.database.reading() as db:
            found = ready(hub, db, caller, wish, "question.explain")
            known = all(sees_budget(hub, db, caller, each.population) for each in found.objects if each.population)
        spends = None if known else _ROUND
        with found.held.steady():
            return found.session.afford(wish.sql, spends, confidence=wish.confidence, dialect=wish.dialect)


def _plan(found: Ready, wish: Wish) -> Plan:
    spend = spend_for(found.session, wish, buy=False)
    plan = found.session.explain(wish.sql, spend, dialect=wish.dialect)
    if wish.pilot:
        note = "this is the pilot; what the wanted margin costs follows from its noisy answer"
        plan = replace(plan, notes=(*plan.notes, note))
    return plan


def _left(hub: Hub, db: Db, caller: Caller, wish: Wish, ready: Ready, who: str, costs: Mapping[str, Guarantee]) -> list[Left]:
    """Of one's own share to everybody; of a budget to those who may see it."""
    from cloister.hub.services.budgets import sees_budget

    found, decisions, frozen = [], _asked(hub, db, caller, wish, ready), hub.ledger.frozen is not None
    for population, cost in costs.items():
        if sees_budget(hub, db, caller, population):
            found.append(Left.of_budget(hub, population, cost))
        share = own_share(hub, population, who, ready.objects, decisions)
        if share is not None:
            found.append(Left(population=population, of_share=True, whole=share[0], before=share[1], cost=cost, frozen=frozen))
    return found


def _asked(hub: Hub, db: Db, caller: Caller, wish: Wish, found: Ready) -> Mapping[str, Decision]:
    """By which grants it would be asked, the money left aside; those by which it is explained, where none lets it be asked."""
    try:
        return check_together(hub, db, caller, "question.ask", found.objects, _context(hub, caller, wish, found))
    except AccessDenied:
        return found.decisions


def _context(hub: Hub, caller: Caller, wish: Wish, found: Ready) -> Context:
    return context_of(
        hub,
        caller,
        purpose=wish.purpose,
        columns={each.id: found.touched[each.name] for each in found.objects},
        behind=found.behind,
        project=wish.project,
        algorithm=found.algorithm,
    )


def _denied(hub: Hub, db: Db, caller: Caller, wish: Wish, found: Ready, who: str) -> AccessDenied | None:
    """Why asking it would be denied now; the money counts, as it would then."""
    try:
        money = money_of(hub, found.session, found.objects, who, wish, spend_for(found.session, wish, buy=False))
        context = replace(_context(hub, caller, wish, found), spend=money)
        check_together(hub, db, caller, "question.ask", found.objects, context)
    except AccessDenied as error:
        return error
    return None
