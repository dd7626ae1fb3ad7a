"""What is known before anything is spent: the plan, what would be left, whether it may be asked at all; and made-up answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied
from cloister.hub.decisions.checking import check_together
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import Decision
from cloister.hub.hub import Caller, Hub
from cloister.hub.services.asking.authorised import QUERY, AuthorisedQuestion, costs_of, plan_of, ready, spend_for
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.hub.work.bounds import Left, account_of, left_of, money_of
from cloister.hub.work.concurrency import looking
from cloister.privacy import Exact
from cloister.session import Affordable, Plan, Release

_ROUND = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5")
"""Spends that tell nothing of what is left."""


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


def explain(hub: Hub, caller: Caller, wish: QuestionRequest) -> Plan:
    """What an answer would measure, with which error, at which cost: spends nothing and reads no row."""
    with looking(hub, caller), hub.database.reading() as db:
        found = ready(hub, db, caller, wish, "question.explain")
        with found.held.pinned():
            return _plan(found, wish)


def preview(hub: Hub, caller: Caller, wish: QuestionRequest) -> Preview:
    """The same, with what would be left, and with what the policy would say to asking it now."""
    with looking(hub, caller), hub.database.reading() as db:
        found = ready(hub, db, caller, wish, "question.explain")
        with found.held.pinned():
            plan = _plan(found, wish)
            who = account_of(facts_of(hub, db), caller, found.terms.project)
            left = left_of(hub, db, caller, who, found.objects, _asked(hub, db, caller, found), plan.costs)
            return Preview(plan=plan, left=left, denied=_denied(hub, db, caller, wish, found, who))


def rehearse(hub: Hub, caller: Caller, wish: QuestionRequest) -> Release:
    """An answer from made-up rows that follow the declarations: nothing private is touched and nothing is spent."""
    with looking(hub, caller):
        with hub.database.reading() as db:
            found = ready(hub, db, caller, wish, "question.rehearse")
        with found.held.pinned():
            return found.session.sql(
                wish.sql,
                wish.spend or None,
                within=wish.within,
                pilot=wish.pilot or None,
                confidence=wish.confidence,
                dialect=wish.dialect,
                rehearse=True,
            )


def afford(hub: Hub, caller: Caller, wish: QuestionRequest, spends: Sequence[Fraction] | None = None) -> Affordable:
    """The margins to expect over a range of spends, by default up to what is left where one may know that: spends nothing."""
    from cloister.hub.platform.budgets import sees_budget

    with looking(hub, caller):
        with hub.database.reading() as db:
            found = ready(hub, db, caller, wish, "question.explain")
            known = all(sees_budget(hub, db, caller, each.population) for each in found.objects if each.population)
        chosen: Sequence[Exact] | None = spends or (None if known else _ROUND)
        with found.held.pinned():
            return found.session.afford(wish.sql, chosen, confidence=wish.confidence, dialect=wish.dialect)


def _plan(found: AuthorisedQuestion, wish: QuestionRequest) -> Plan:
    spend = spend_for(found.session, wish, buy=False)
    plan = plan_of(found.session, wish, spend)
    if wish.pilot:
        note = "this is the pilot; what the wanted margin costs follows from its noisy answer"
        plan = replace(plan, notes=(*plan.notes, note))
    return plan


def _asked(hub: Hub, db: Db, caller: Caller, found: AuthorisedQuestion) -> Mapping[str, Decision]:
    """By which grants it would be asked, the money left aside; those by which it is explained, where none lets it be asked."""
    try:
        context = found.terms.context(hub, caller, found.read, found.behind)
        return check_together(hub, db, caller, "question.ask", found.objects, context)
    except AccessDenied:
        return found.decisions


def _denied(hub: Hub, db: Db, caller: Caller, wish: QuestionRequest, found: AuthorisedQuestion, who: str) -> AccessDenied | None:
    """Why asking it would be denied now; the money counts, as it would then."""
    try:
        costs = costs_of(hub, found.session, wish, spend_for(found.session, wish, buy=False), who)
        money = money_of(hub, found.objects, who, costs, QUERY.name)
        context = found.terms.context(hub, caller, found.read, found.behind, money)
        check_together(hub, db, caller, "question.ask", found.objects, context)
    except AccessDenied as error:
        return error
    return None
