"""What the form of an order shows besides what every order has: the data sets that are open, and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError
from cloister.hub.services.access import Facts, allowed, context_of, facts_of
from cloister.hub.services.catalogue import live_of
from cloister.hub.services.synthesising.making import ACTION
from cloister.hub.services.synthesising.order import METHODS
from cloister.hub.work.authorise import visible
from cloister.session.questions.spend import measure_of
from cloister.tables import PrivateTable, Text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.policy import Decision, Object

__all__ = ["choices"]


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, the columns of the chosen one, and what was typed; at first every column is ticked."""
    opened = _open(hub, db, caller)
    name = typed["table"] if typed["table"] in opened else next(iter(opened), "")
    which, table = opened.get(name, (None, None))
    columns = {} if table is None else {each: domain.kind for each, domain in table.columns.items() if _fits(table, each)}
    first = {"columns": tuple(columns), "method": "auto", "spend": "1", **dict.fromkeys(("purpose", "project", "title"), "")}
    return {
        "opened": list(opened),
        "chosen": name,
        "columns": columns,
        "measure": "" if which is None else measure_of(hub.ledger.budget(which.population)),
        "methods": list(METHODS.items()),
        "typed": {**first, **typed},
    }


def _fits(table: PrivateTable, name: str) -> bool:
    """Whether a column can be in a synthetic table: not free text, and not the one that names people."""
    return name != table.unit and not isinstance(table.columns[name], Text)


def _open(hub: Hub, db: Db, caller: Caller) -> dict[str, tuple[Object, PrivateTable]]:
    """The data sets of which the person may make a synthetic table for some purpose, alone or in a project, as they may know
    them."""
    facts, found = facts_of(hub, db), dict[str, tuple["Object", PrivateTable]]()
    for each in sorted(facts.data_sets.values(), key=lambda which: which.name):
        decision = _decided(hub, db, caller, facts, each) if each.population and visible(hub, caller, facts, each) else None
        if decision is None:
            continue
        reach = decision.narrowed.columns
        narrow = None if reach is None else {each.name: reach & each.columns}
        try:
            table = live_of(hub).session(db, caller.email, tables=[each.name], columns=narrow).tables.get(each.name)
        except CloisterError:  # its rows cannot be reached now: who orders is told why
            continue
        if isinstance(table, PrivateTable):
            found[each.name] = each, table
    return found


def _decided(hub: Hub, db: Db, caller: Caller, facts: Facts, which: Object) -> Decision | None:
    """A decision that is a yes."""
    named = sorted({purpose for grant in which.grants for purpose in grant.rules.purposes or ()})
    for purpose in ("", *named):
        for project in ("", *sorted(caller.projects)):
            context = context_of(hub, caller, purpose=purpose, columns={which.id: frozenset()}, project=project)
            decision = allowed(hub, db, caller, ACTION, which, context)
            if decision.allowed:
                return decision
    return None
