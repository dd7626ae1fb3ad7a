"""From a wish to a session that may answer it: which data sets it touches, whether this person may, and how narrowly.

1. The data sets that the text may mean are those whose names stand in it and that the person may see; any other name is unknown,
in the words for what does not exist.
2. The question is read against them, and says which columns it touches; nothing is spent and no row is read.
3. All of them together are put to the policy with those columns and the purpose; the session that answers knows only the columns
and the rows that the decisions leave.
4. Where a ceiling or a share is to be kept, that session says what the answer would cost, and the policy is asked again with the
money. A wanted margin is turned into its spend before that; what was paid for already costs nothing and passes no ceiling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter, UnknownTable
from cloister.hub.policy import Decision, Object, Policy, Spend, decide, derived
from cloister.hub.services.access import Facts, check_together, context_of, facts_of, who_of
from cloister.hub.services.asking.wish import Wish
from cloister.hub.services.catalogue.live import live_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.session.spend import amount_of, less, spend_of
from cloister.session.touched import Touched

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Ready", "money_of", "purse_of", "ready", "spend_for", "visible"]

_WORD = re.compile(r"[^\W\d]\w*")
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A wish that may be answered."""

    session: Session
    objects: tuple[Object, ...]
    decisions: Mapping[str, Decision]
    touched: Touched
    policy: Policy
    """What the answer will carry."""
    spend: str | Guarantee | None
    """What may be spent; None where the question names it itself."""

    @property
    def columns(self) -> list[str]:
        """Every column that is touched, as "data set.column"."""
        return [f"{name}.{column}" for name, columns in self.touched.items() for column in sorted(columns)]


def ready(hub: Hub, db: Db, caller: Caller, wish: Wish, action: str, *, progress: Callable[[str], None] | None = None) -> Ready:
    """The session that may answer a wish, or the refusal."""
    facts = facts_of(hub, db)
    seen = {each.name: each for each in _meant(facts, wish.texts) if visible(hub, caller, facts, each)}
    live, who = live_of(hub), purse_of(facts, caller, wish)
    first = live.session(db, who, tables=seen, progress=progress)
    touched = _touched(first, wish)
    objects = tuple(seen[name] for name in touched)
    columns = {each.id: touched[each.name] for each in objects}

    def decided(money: Mapping[str, Spend] | None = None) -> Mapping[str, Decision]:
        context = context_of(hub, caller, purpose=wish.purpose, columns=columns, project=wish.project, spend=money)
        return check_together(hub, db, caller, action, objects, context)

    def narrowed(decisions: Mapping[str, Decision]) -> Session:
        rows, narrow = _reach(objects, decisions)
        if not rows and not narrow:
            return first
        return live.session(db, who, tables=touched, rows=rows, columns=narrow, progress=progress)

    decisions = decided()
    session = narrowed(decisions)
    spend = wish.spend or None
    if action == "question.ask":
        spend = spend_for(session, wish, buy=False)
        if _bounded(facts, objects):
            for _ in range(_ROUNDS):
                again = decided(money_of(hub, session, objects, who, wish, spend))
                settled = _reach(objects, again) == _reach(objects, decisions)
                decisions = again
                if settled:
                    break
                session = narrowed(decisions)
                spend = spend_for(session, wish, buy=False)
            else:
                raise InvalidParameter(
                    "The question was refused",
                    why="which of your grants holds changes with what it costs",
                    instead="a question that touches what one grant covers",
                )
            _keep_to_shares(hub, objects, decisions, who)
    versions = {each.id: str(getattr(first.tables[each.name], "version", "")) for each in objects}
    policy = derived(((each, touched[each.name]) for each in objects), versions)
    return Ready(session=session, objects=objects, decisions=decisions, touched=touched, policy=policy, spend=spend)


def visible(hub: Hub, caller: Caller, facts: Facts, which: Object) -> bool:
    """Whether somebody may know that a data set exists, whatever their token was made for."""
    who = replace(who_of(caller, facts), token_scopes=None)
    return decide(who, "dataset.see", which, context_of(hub, caller), facts.mandatory).allowed


def purse_of(facts: Facts, caller: Caller, wish: Wish) -> str:
    """The name under which the ledger counts: the project's, whose members share an allotment, or the person's."""
    project = facts.projects.get(wish.project)
    return caller.email if project is None else f"project {project.name}"


def spend_for(session: Session, wish: Wish, *, buy: bool) -> str | Guarantee | None:
    """What a wish may spend. For a margin that needs a pilot, that first answer is bought with `buy`; without, it is the price of
    the pilot. None: the question names its cost itself.
    """
    if wish.within is None:
        return wish.spend or None
    if wish.pilot and not buy:
        return wish.pilot
    return session.spend_for(
        wish.sql,
        within=wish.within,
        pilot=wish.pilot or None,
        confidence=wish.confidence,
        purpose=wish.purpose,
        dialect=wish.dialect,
    )


def money_of(
    hub: Hub, session: Session, objects: tuple[Object, ...], who: str, wish: Wish, spend: str | Guarantee | None
) -> dict[str, Spend]:
    """What the policy has to know of the money, for populations whose budget is touched."""
    costs = _costs(hub, session, objects, wish, spend)
    found = {}
    for population in dict.fromkeys(each.population for each in objects if each.population):
        cost = costs.get(population)
        allotment = hub.ledger.allotment(population, who)
        drawn = None if allotment is None else less(*allotment)
        asked = cost if cost is not None and amount_of(cost) > 0 else None
        found[population] = Spend(asked=asked, spent=hub.ledger.spent(population), drawn=drawn)
    return found


def _costs(
    hub: Hub, session: Session, objects: tuple[Object, ...], wish: Wish, spend: str | Guarantee | None
) -> Mapping[str, Guarantee]:
    if not wish.more:
        return session.explain(wish.sql, spend, dialect=wish.dialect).costs
    populations = dict.fromkeys(each.population for each in objects if each.population)
    return {name: spend_of(spend or "", hub.ledger.budget(name)).whole() for name in populations}


def _meant(facts: Facts, texts: Iterable[str]) -> list[Object]:
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}
    return [each for each in facts.data_sets.values() if each.name.casefold() in words]


def _touched(session: Session, wish: Wish) -> Touched:
    found = Touched({})
    try:
        for text in wish.texts:
            found |= session.touched(text, dialect=wish.dialect)
    except UnknownTable as error:
        raise UnknownTable(
            error.what, why="no data set of that name is open to you", instead="one of those on the page Data"
        ) from None
    return found


def _reach(objects: tuple[Object, ...], decisions: Mapping[str, Decision]) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The rows and the columns that the decisions leave, where they leave less than all."""
    rows = {each.name: decisions[each.id].narrowed.rows for each in objects if decisions[each.id].narrowed.rows}
    columns = {each.name: reach & each.columns for each in objects if (reach := decisions[each.id].narrowed.columns) is not None}
    return rows, columns


def _bounded(facts: Facts, objects: tuple[Object, ...]) -> bool:
    """Whether any rule speaks of money."""
    return bool(facts.mandatory) or any(grant.rules.share is not None for each in objects for grant in each.grants)


def _keep_to_shares(hub: Hub, objects: tuple[Object, ...], decisions: Mapping[str, Decision], who: str) -> None:
    """A grant's share becomes the ledger's allotment when it is first drawn on, so that no race of questions goes beyond it."""
    for each in objects:
        share = decisions[each.id].narrowed.share
        if share is not None and each.population and hub.ledger.allotment(each.population, who) is None:
            hub.ledger.allot(each.population, who, share, who=each.owner or "hub")
