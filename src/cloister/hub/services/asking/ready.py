"""From a wish to a session that may answer it: which data sets it touches, whether this person may, and how narrowly.

1. The data sets that the text may mean are those whose names stand in it and that the person may see; any other name is unknown,
in the words for what does not exist; but whoever holds a grant on it is told why that does not hold just now.
2. The question is read against them, and says which columns it touches; nothing is spent and no row is read.
3. All of them together are put to the policy with those columns and the purpose; the session that answers knows only the columns
and the rows that the decisions leave. Where a grant's condition on rows reads further columns, the policy is asked again with
those: what the institution, or a policy on a column, closes is not read by a detour.
4. Where a ceiling, a share or a limit on the risk is to be kept, that session says what the answer would cost, and the policy
is asked again with the money. A wanted margin is turned into its spend before that; what was paid for already costs nothing and
passes no ceiling. The ceilings go with the session (`money.py`), so that no race of questions passes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from cloister.errors import CloisterError, InvalidParameter, UnknownTable
from cloister.hub.policy import Context, Decision, Object, Policy, Spend, actions, decide, derived
from cloister.hub.policy.grants import kept_for_now
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.access import Facts, check_together, context_of, facts_of, who_of
from cloister.hub.services.access.check import refusal_of
from cloister.hub.services.asking.algorithms import settled
from cloister.hub.services.asking.money import bounded, bounds_of, money_of, purse_of, spend_for
from cloister.hub.services.asking.risks import limited, within_risk
from cloister.hub.services.asking.wish import Wish
from cloister.hub.services.catalogue.live import Held, live_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.query.views import row_conditions
from cloister.session.touched import Touched

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Ready", "meant", "ready", "visible"]

_WORD = re.compile(r"[^\W\d]\w*")
_ROUNDS = 3
_CARRIED, _MOST_CARRIED = "asking policies", 512

Behind = Mapping[str, frozenset[str]]
"""Columns that are read by the conditions of grants on rows, by data set: nobody asked about them, and every rule counts them."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A wish that may be answered."""

    session: Session
    objects: tuple[Object, ...]
    decisions: Mapping[str, Decision]
    algorithm: str
    """The id of the one under which it is asked; empty for none."""
    touched: Touched
    behind: Behind
    policy: Policy
    """What the answer will carry."""
    spend: str | Guarantee | None
    """What may be spent; None where the question names it itself."""
    generation: int
    """Of the facts that it was decided on."""
    held: Held
    """The tables that it was decided for: it is answered from these, or not at all."""

    @property
    def columns(self) -> list[str]:
        """Every column that is touched, as "data set.column"."""
        return [f"{name}.{column}" for name, columns in self.touched.items() for column in sorted(columns)]


def ready(
    hub: Hub,
    db: Db,
    caller: Caller,
    wish: Wish,
    action: str,
    *,
    progress: Callable[[str], None] | None = None,
    charges: bool = True,
) -> Ready:
    """The session that may answer a wish, or the refusal. `charges`: whether anything may be charged to a population."""
    facts = facts_of(hub, db)
    sees = _sight(hub, caller, facts)
    seen = {each.name: each for each in meant(facts, wish.texts) if sees(each)}
    live, who = live_of(hub), purse_of(facts, caller, wish)
    first = live.session(db, who, tables=seen, progress=progress)
    with live.held(first, [name for name in seen if name in first.tables], facts.generation).steady():  # a refusal tells of them
        return _decided(hub, db, caller, wish, action, facts, seen, first, who, progress, charges=charges)


def _decided(
    hub: Hub,
    db: Db,
    caller: Caller,
    wish: Wish,
    action: str,
    facts: Facts,
    seen: Mapping[str, Object],
    first: Session,
    who: str,
    progress: Callable[[str], None] | None,
    *,
    charges: bool,
) -> Ready:
    """What is decided on tables that stay as they are meanwhile."""
    live = live_of(hub)
    try:
        touched = _touched(first, wish)
    except UnknownTable as error:
        raise _unknown(hub, db, caller, wish, action, facts, seen, first, error) from None
    held = live.held(first, touched, facts.generation)
    objects = tuple(seen[name] for name in touched)
    columns = {each.id: touched[each.name] for each in objects}
    algorithm = settled(hub, db, caller, wish)

    def context(behind: Behind, money: Mapping[str, Spend] | None = None) -> Context:
        return context_of(
            hub,
            caller,
            purpose=wish.purpose,
            columns=columns,
            behind=behind,
            project=wish.project,
            spend=money,
            algorithm=algorithm,
        )

    def narrowed(rows: Mapping[str, str], narrow: Mapping[str, frozenset[str]]) -> Session:
        if not rows and not narrow:
            return first
        return live.session(db, who, tables=touched, rows=rows, columns=narrow, progress=progress)

    asks = action == "question.ask"
    priced = asks and (bounded(facts, objects) or limited(objects))
    decisions = check_together(hub, db, caller, action, objects, context({}))
    money: Mapping[str, Spend] | None = None
    for _ in range(_ROUNDS):
        rows, narrow = _reach(objects, decisions)
        session, behind = narrowed(rows, narrow), _behind(first, objects, rows)
        spend = spend_for(session, wish, buy=False) if asks and charges else wish.spend or None
        if not priced and not behind:
            break
        money = money_of(hub, session if charges else None, objects, who, wish, spend) if priced else None
        decisions = check_together(hub, db, caller, action, objects, context(behind, money))
        if _reach(objects, decisions) == (rows, narrow):
            break
    else:
        raise InvalidParameter(
            "The query is invalid",
            why="which of your grants applies depends on its cost and its columns",
            instead="a query within what one grant covers",
        )
    if priced:
        bounds = bounds_of(hub, facts, caller, objects, decisions, context(behind))
        session.keep_within(within_risk(bounds, objects, decisions, money or {}))
    versions = {each.id: str(getattr(held.tables.get(each.name), "version", None) or "") for each in objects}
    policy = _carried(hub, facts, objects, columns, versions, behind)
    return Ready(
        session=session,
        objects=objects,
        decisions=decisions,
        algorithm=algorithm,
        touched=touched,
        behind=behind,
        policy=policy,
        spend=spend,
        generation=facts.generation,
        held=held,
    )


def _carried(
    hub: Hub, facts: Facts, objects: Sequence[Object], columns: Behind, versions: Mapping[str, str], behind: Behind
) -> Policy:
    """The policy that an answer will carry. It decides nothing here; it follows from the facts and from what is read, and is
    worked out once for these."""
    known: tuple[Facts, dict[Any, Policy]] | None = hub.parts.get(_CARRIED)
    if known is None or known[0] is not facts or len(known[1]) >= _MOST_CARRIED:
        known = hub.parts[_CARRIED] = (facts, {})
    key = tuple((each.id, columns[each.id], versions[each.id], behind.get(each.id)) for each in objects)
    policy = known[1].get(key)
    if policy is None:
        policy = known[1][key] = derived(((each, columns[each.id]) for each in objects), versions, behind)
    return policy


def visible(hub: Hub, caller: Caller, facts: Facts, which: Object) -> bool:
    """Whether somebody may know that a data set exists, whatever their token was made for."""
    return _sight(hub, caller, facts)(which)


def _sight(hub: Hub, caller: Caller, facts: Facts) -> Callable[[Object], bool]:
    """The same for several data sets at one moment."""
    who, context = replace(who_of(caller, facts), token_scopes=None), context_of(hub, caller)
    return lambda which: decide(who, "dataset.see", which, context, facts.mandatory).allowed


def meant(facts: Facts, texts: Iterable[str]) -> list[Object]:
    """The data sets whose names stand in questions as words."""
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}
    return [each for each in facts.data_sets.values() if each.name.casefold() in words]


def _touched(session: Session, wish: Wish) -> Touched:
    found = Touched({})
    for text in wish.texts:
        found |= session.touched(text, dialect=wish.dialect)
    return found


def _unknown(
    hub: Hub,
    db: Db,
    caller: Caller,
    wish: Wish,
    action: str,
    facts: Facts,
    seen: Mapping[str, Object],
    session: Session,
    error: UnknownTable,
) -> CloisterError:
    """The refusal of a name that the session does not know: in the same words whether there is no such data set, or none to be
    seen. Its owner is told that it is closed, and whoever holds a grant on it why that does not hold just now."""
    named = {word.casefold() for word in _WORD.findall(error.what)}
    for each in meant(facts, wish.texts):
        if each.name in session.tables or each.name.casefold() not in named:
            continue
        if each.name in seen and each.owner == caller.id and _is_closed(db, each):
            return UnknownTable(
                error.what,
                why="the data set is closed to queries",
                instead=f"open it again: /datasets/{each.name}/manage",
            )
        denied = None if each.name in seen else _for_now(hub, caller, facts, each)
        if denied is not None:
            return refusal_of(db, replace(denied, action=action))
    return UnknownTable(error.what, why="no data set of that name is open to you", instead="one of those on the page Data")


def _is_closed(db: Db, which: Object) -> bool:
    return db.scalar(select(DataSet.state).where(DataSet.id == which.id)) == "closed"


def _for_now(hub: Hub, caller: Caller, facts: Facts, which: Object) -> Decision | None:
    """Why somebody does not see a data set at this moment, from where they are, by a grant that they hold; None where they hold
    none."""
    who, context, sees = replace(who_of(caller, facts), token_scopes=None), context_of(hub, caller), actions()["dataset.see"]
    held = tuple(each for each in which.grants if kept_for_now(each, who, sees, which, context))
    if not held:
        return None
    found = decide(who, sees.name, replace(which, grants=held), context, facts.mandatory)
    return found if found.rule.startswith("grant:") else None


def _reach(objects: tuple[Object, ...], decisions: Mapping[str, Decision]) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The rows and the columns that the decisions leave, where they leave less than all."""
    rows = {each.name: decisions[each.id].narrowed.rows for each in objects if decisions[each.id].narrowed.rows}
    columns = {each.name: reach & each.columns for each in objects if (reach := decisions[each.id].narrowed.columns) is not None}
    return rows, columns


def _behind(session: Session, objects: Iterable[Object], rows: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The columns that the conditions on rows read, by data set."""
    found = row_conditions(rows, session.tables) if rows else {}
    return {each.id: frozenset(found[each.name].columns()) for each in objects if each.name in found}
