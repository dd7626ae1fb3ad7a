"""A query as the frame authorises it (`hub/work/authorise.py`): which data sets its text may mean, what it touches and costs.

The data sets that the text may mean are those whose names stand in it and that the person may see; any other name is unknown, in
the words for what does not exist; but whoever holds a grant on it is told why that does not hold just now. A wanted margin is
turned into its spend before the policy is asked with the money; what was paid for already costs nothing and passes no ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidParameter, UnknownTable
from cloister.hub.decisions.checking import context_of, refusal_of
from cloister.hub.decisions.facts import Facts, facts_of, who_of
from cloister.hub.decisions.policy import Decision, Object, actions, decide
from cloister.hub.decisions.policy.grants import kept_for_now
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.access import Algorithm
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.asking.question_request import NAME, QuestionRequest, settled
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Authorised, Terms, Words, authorise, sight
from cloister.hub.work.offers import Runnable, runnable
from cloister.privacy import Guarantee, exact_positive, text_of
from cloister.query import Session
from cloister.session import Plan, Touched
from cloister.session.questions.spend import amount_of

QUERY = Words(
    name="The question",
    invalid=N_("The query is invalid"),
    denied=N_("The query was denied"),
    withheld=N_("The answer was not released"),
)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, kw_only=True)
class AuthorisedQuestion(Authorised):
    """A wish that may be answered."""

    query: _Query

    @property
    def spend(self) -> str | Guarantee | None:
        """What may be spent; None where the question names it itself. To be asked for on the tables that are held."""
        return self.query.spend(self.session)


class _Query:
    """A wish as the frame asks about it."""

    words = QUERY

    def __init__(
        self,
        hub: Hub,
        wish: QuestionRequest,
        terms: Terms,
        *,
        buys: bool,
        unknown: Callable[[Session, UnknownTable], CloisterError],
    ) -> None:
        self.terms = terms
        self._hub, self._wish, self._buys, self._unknown = hub, wish, buys, unknown
        self._spend: tuple[Session, str | Guarantee | None] | None = None

    def touches(self, session: Session) -> Touched:
        first, *others = self._wish.texts
        try:
            found = session.touched(first, dialect=self._wish.dialect)
            for text in others:
                found |= session.touched(text, dialect=self._wish.dialect)
        except UnknownTable as error:
            raise self._unknown(session, error) from None
        return found

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return costs_of(self._hub, session, self._wish, self.spend(session), session.who) if self._buys else {}

    def spend(self, session: Session) -> str | Guarantee | None:
        """What may be spent in that session: a wanted margin is looked for once."""
        if not self._buys or self._wish.within is None:
            return self._wish.spend or None
        if self._spend is None or self._spend[0] is not session:
            self._spend = session, spend_for(session, self._wish, buy=False)
        return self._spend[1]


def ready(
    hub: Hub,
    db: Db,
    caller: Caller,
    wish: QuestionRequest,
    action: str,
    *,
    facts: Facts | None = None,
    progress: Callable[[str], None] | None = None,
    charges: bool = True,
) -> AuthorisedQuestion:
    """The session that may answer a wish, or the refusal. `charges`: whether anything may be charged to a population."""
    facts = facts or facts_of(hub, db)
    asks, named = action == "question.ask", _meant(facts, wish.texts)
    seen: dict[str, Object] = {}

    def unknown(session: Session, error: UnknownTable) -> CloisterError:
        return _unknown(hub, db, caller, wish, action, facts, seen, session, error)

    terms = Terms(action=action, purpose=wish.purpose, project=wish.project, algorithm=settled(hub, db, caller, wish))
    query = _Query(hub, wish, terms, buys=asks and charges, unknown=unknown)
    sees = sight(hub, caller, facts)
    for each in named:
        if sees(each):
            seen[each.name] = each
    found = authorise(hub, db, facts, caller, query, seen, priced=asks, progress=progress)
    return AuthorisedQuestion(**vars(found), query=query)


def _meant(facts: Facts, texts: Iterable[str]) -> list[Object]:
    """The data sets whose names stand in questions as words."""
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}
    return [each for each in facts.data_sets.values() if each.name.casefold() in words]


def algorithms_to_ask_under(hub: Hub, db: Db, caller: Caller) -> list[Runnable]:
    """Those that the person may run now. One with a query of its own is about all the data sets in it."""

    def about(facts: Facts, row: Algorithm) -> list[Object] | None:
        sql = str(row.settings.get("sql", ""))
        return _meant(facts, [sql]) if sql else None

    return runnable(hub, db, caller, "question.explain", NAME, about=about)


def _unknown(
    hub: Hub,
    db: Db,
    caller: Caller,
    wish: QuestionRequest,
    action: str,
    facts: Facts,
    seen: Mapping[str, Object],
    session: Session,
    error: UnknownTable,
) -> CloisterError:
    """The refusal of a name that the session does not know: in the same words whether there is no such data set, or none to be
    seen. Its owner is told that it is closed, and whoever holds a grant on it why that does not hold just now."""
    named = {word.casefold() for word in _WORD.findall(error.what)}
    for each in _meant(facts, wish.texts):
        if each.name in session.tables or each.name.casefold() not in named:
            continue
        state = select(DataSet.state).where(DataSet.id == each.id)
        if each.name in seen and each.owner == caller.id and db.scalar(state) == "closed":
            return UnknownTable(
                error.what, why="the data set is closed to queries", instead=f"open it again: /datasets/{each.name}/manage"
            )
        denied = None if each.name in seen else _for_now(hub, caller, facts, each)
        if denied is not None:
            return refusal_of(db, replace(denied, action=action))
    return UnknownTable(error.what, why="no data set of that name is open to you", instead="one of those on the page Data")


def _for_now(hub: Hub, caller: Caller, facts: Facts, which: Object) -> Decision | None:
    """Why somebody does not see a data set at this moment, from where they are, by a grant that they hold; None where they hold
    none."""
    who, context, sees = replace(who_of(caller, facts), token_scopes=None), context_of(hub, caller), actions()["dataset.see"]
    held = tuple(each for each in which.grants if kept_for_now(each, who, sees, which, context))
    if not held:
        return None
    found = decide(who, sees.name, replace(which, grants=held), context, facts.mandatory)
    return found if found.rule.startswith("grant:") else None


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
        plan = session.explain(wish.sql, found, dialect=wish.dialect)
        shares = {name: amount_of(cost) for name, cost in plan.owed.items()}
        sums = [amount_of(cost) + shares.get(name, Fraction(0)) for name, cost in plan.costs.items()]
        dearest = pilot + max(sums, default=Fraction(0))
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


def plan_of(session: Session, wish: QuestionRequest, spend: str | Guarantee | None) -> Plan:
    """What would be measured: for one question, or for several together."""
    if not wish.more:
        return session.explain(wish.sql, spend, dialect=wish.dialect)
    return session.explain_workload(wish.texts, spend or "", dialect=wish.dialect)


def costs_of(
    hub: Hub, session: Session, wish: QuestionRequest, spend: str | Guarantee | None, who: str
) -> Mapping[str, Guarantee]:
    """What is still to be paid of each population: what was bought before is counted in, and what this account was charged for an
    attempt that died before its answer left. (If that is not taken over after all, the ledger holds the charge against the same
    bounds.)"""
    plan = plan_of(session, wish, spend)
    paid = plan.costs and hub.ledger.waiting(plan.costs, who=who, what=plan.digest) is not None
    return {} if paid else plan.costs
