"""What a query costs: the spend of a wanted margin, and what is still to be charged to each population."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter
from cloister.privacy import Guarantee, text_of
from cloister.privacy.rational import exact_positive
from cloister.query import Session, parse
from cloister.session.questions.spend import amount_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.services.asking.question_request import QuestionRequest


def spend_for(session: Session, wish: QuestionRequest, *, buy: bool) -> str | Guarantee | None:
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


def _too_much(wish: QuestionRequest, cost: str, *, paid: bool = False) -> InvalidParameter:
    return InvalidParameter(
        "The margin is invalid",
        why=f"it costs {cost}, of which its pilot of {wish.pilot} is already charged, and at most {wish.most} may be spent on it"
        if paid
        else f"it costs {cost}, and at most {wish.most} may be spent on it",
        instead="a wider margin, or a larger spend",
    )


def costs_of(
    hub: Hub, session: Session, wish: QuestionRequest, spend: str | Guarantee | None, who: str
) -> Mapping[str, Guarantee]:
    """What is still to be paid of each population: what was bought before is counted in, and what this account was charged for an
    attempt that died before its answer left. (If that is not taken over after all, the ledger holds the charge against the same
    bounds.)"""
    if not wish.more:
        plan = session.explain(wish.sql, spend, dialect=wish.dialect)
    else:
        questions = [each for text in wish.texts for each in parse(text, session.tables, wish.dialect).questions]
        plan = session.explain_workload(questions, spend or "")
    paid = plan.costs and hub.ledger.waiting(plan.costs, who=who, what=plan.digest) is not None
    return {} if paid else plan.costs
