"""From an order to a session that may learn it: whether this person may, how narrowly, and within which ceilings and shares.

It is the way of a question (`services/asking/ready.py`) with another action: the policy is asked with the columns, the purpose
and the money, which is what is still to be charged (`charging.py`); the session knows only the rows and the columns that the
decision leaves; the ceilings and the share of the grant go with the session, so that the ledger holds the charge against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter, UnknownColumn, UnknownTable
from cloister.hub.floor import check_floor
from cloister.hub.policy import Context, Decision, Object, Policy, Spend, derived
from cloister.hub.services.access import Facts, check_together, context_of, facts_of
from cloister.hub.services.asking.money import bounded, bounds_of
from cloister.hub.services.asking.ready import visible
from cloister.hub.services.asking.risks import limited, within_risk
from cloister.hub.services.catalogue.live import Held, live_of
from cloister.hub.services.learning.algorithms import settled
from cloister.hub.services.learning.charging import still_to_pay
from cloister.privacy import Guarantee, zero_of
from cloister.query.views import row_conditions
from cloister.session.spend import amount_of, least, less, spend_of
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.learning.order import Order
    from cloister.query import Session

__all__ = ["ACTION", "Ready", "purse_of", "ready"]

ACTION = "learn.run"
_ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Ready:
    """An order that may be carried out."""

    order: Order
    """With what its algorithm says."""
    session: Session
    which: Object
    table: PrivateTable
    decision: Decision
    behind: Mapping[str, frozenset[str]]
    policy: Policy
    """What the model will carry."""
    cost: Guarantee
    """What the order names: the promise that its model is learnt under."""
    charge: Guarantee
    """What would be charged of it now, at most: less, where it was bought before."""
    generation: int
    """Of the facts that it was decided on."""
    held: Held
    """The table that it was decided for: the model learns from its rows, or not at all."""


def ready(
    hub: Hub,
    db: Db,
    caller: Caller,
    order: Order,
    *,
    progress: Callable[[str], None] | None = None,
    paid: Mapping[str, Guarantee] | None = None,
) -> Ready:
    """The session that may learn it, or the refusal. Nothing is spent and no row is read. `paid` is what was charged for it
    already, by population: of an attempt that was killed."""
    order = settled(hub, db, caller, order)
    facts, live = facts_of(hub, db), live_of(hub)
    which = _meant(hub, caller, facts, order)
    who = purse_of(facts, caller, order.project)
    first = live.session(db, who, tables=[which.name], progress=progress)
    held = live.held(first, [which.name], facts.generation)
    with held.steady():  # a refusal tells of the columns that it was decided for
        return _decided(hub, db, caller, order, facts, which, first, held, who, progress, paid or {})


def _decided(
    hub: Hub,
    db: Db,
    caller: Caller,
    order: Order,
    facts: Facts,
    which: Object,
    first: Session,
    held: Held,
    who: str,
    progress: Callable[[str], None] | None,
    paid: Mapping[str, Guarantee],
) -> Ready:
    """What is decided on a table that stays as it is meanwhile."""
    live, name = live_of(hub), which.name
    columns = {which.id: frozenset(order.columns)}
    whole = first.tables.get(name)
    if not isinstance(whole, PrivateTable):
        raise InvalidParameter(
            "The model is invalid", why="the data set is public: nothing needs hiding", instead="its rows, and fit(X, y)"
        )
    for column in order.columns:
        if column not in whole.columns:
            raise UnknownColumn(
                f"The column {column!r} is unknown", why="the data set declares none of that name", instead="one of its columns"
            )

    def context(behind: Mapping[str, frozenset[str]], money: Mapping[str, Spend] | None = None) -> Context:
        return context_of(
            hub,
            caller,
            purpose=order.purpose,
            columns=columns,
            behind=behind,
            project=order.project,
            spend=money,
            method=order.method,
            algorithm=order.algorithm,
        )

    def narrowed(rows: Mapping[str, str], columns: frozenset[str] | None) -> Session:
        narrow = {} if columns is None else {name: columns & which.columns}
        return live.session(db, who, tables=[name], rows=rows or None, columns=narrow or None, progress=progress)

    budget = hub.ledger.budget(which.population)
    cost = spend_of(order.spending, budget).whole()
    spent, drawn = hub.ledger.spent(which.population), hub.ledger.spent_by(which.population, who)
    decision = check_together(hub, db, caller, ACTION, [which], context({}))[which.id]
    for _ in range(_ROUNDS):
        reach = decision.narrowed
        rows = {name: reach.rows} if reach.rows else {}
        conditions = row_conditions(rows, first.tables)
        behind = {which.id: frozenset(conditions[name].columns())} if name in conditions else {}
        session = narrowed(rows, reach.columns)
        table = session.tables[name]
        assert isinstance(table, PrivateTable)
        charge = still_to_pay(session, order, table, budget)
        if which.population in paid:
            charge = least(charge, less(cost, paid[which.population]) or zero_of(cost))
        asked = charge if amount_of(charge) > 0 else None
        money = {which.population: Spend(asked=asked, spent=spent, drawn=drawn)}
        decision = check_together(hub, db, caller, ACTION, [which], context(behind, money))[which.id]
        if (decision.narrowed.rows, decision.narrowed.columns) == (reach.rows, reach.columns):
            break
    else:
        raise InvalidParameter(
            "The model is invalid",
            why="which of your grants applies depends on its cost and its columns",
            instead="columns that one grant covers",
        )
    check_floor(hub.settings.delta_floor, "The model", asked, spent)
    if bounded(facts, [which]) or limited([which]):
        decisions = {which.id: decision}
        bounds = bounds_of(hub, facts, caller, [which], decisions, context(behind), action=ACTION)
        session.keep_within(within_risk(bounds, [which], decisions, money))
    versions = {which.id: str(getattr(held.tables.get(name), "version", None) or "")}
    policy = derived([(which, columns[which.id])], versions, behind)
    return Ready(
        order=order,
        session=session,
        which=which,
        table=table,
        decision=decision,
        behind=behind,
        policy=policy,
        cost=cost,
        charge=charge,
        generation=facts.generation,
        held=held,
    )


def purse_of(facts: Facts, caller: Caller, project: str) -> str:
    """The name under which the ledger counts: the project's, or the person's."""
    found = facts.projects.get(project)
    return caller.email if found is None else f"project {found.name}"


def _meant(hub: Hub, caller: Caller, facts: Facts, order: Order) -> Object:
    for each in facts.data_sets.values():
        if each.name == order.table and visible(hub, caller, facts, each):
            return each
    raise UnknownTable(
        "The model is unknown", why="no data set of that name is open to you", instead="one of those on the page Data"
    )
