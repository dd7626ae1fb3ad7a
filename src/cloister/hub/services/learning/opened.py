"""What is open to somebody for learning: the data sets, and of each the columns, as declared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloister.errors import CloisterError
from cloister.hub.policy import Decision, Object
from cloister.hub.policy.methods import offered
from cloister.hub.services.access import Facts, algorithms_of, allowed, context_of, facts_of
from cloister.hub.services.catalogue import live_of
from cloister.hub.services.learning.algorithms import NAME
from cloister.hub.services.learning.authorised import ACTION
from cloister.hub.work.authorise import visible
from cloister.session.questions.spend import Measure, measure_of
from cloister.tables import PrivateTable, Text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Opened", "open_for_learning"]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A data set that somebody may learn from, with its table as they may know it."""

    which: Object
    table: PrivateTable
    measure: Measure
    """What the population's budget counts."""
    purposes: tuple[str, ...]
    """Those that the grant names, where it names any."""
    methods: frozenset[str]
    """Those by which the person may train, for that purpose."""
    plain: bool = True
    """Whether they may train without an algorithm."""
    algorithms: tuple[tuple[str, str], ...] = ()
    """Those that the person may run on it, each by its name and its title."""

    @property
    def columns(self) -> dict[str, str]:
        """Each column that a model can read, with its kind; a text without declared values is none of them."""
        return {name: domain.kind for name, domain in self.table.columns.items() if not isinstance(domain, Text)}


def open_for_learning(hub: Hub, db: Db, caller: Caller) -> list[Opened]:
    """Those from which the person may learn for some purpose, alone or in one of their projects."""
    facts, live = facts_of(hub, db), live_of(hub)
    runnable = [row for row in algorithms_of(hub, db, caller) if row.withdrawn is None and row.service == NAME]
    found = []
    for each in sorted(facts.data_sets.values(), key=lambda which: which.name):
        if not each.population or not visible(hub, caller, facts, each):
            continue
        decision, purpose, methods = _decided(hub, db, caller, facts, each)
        plain, algorithms = decision is not None, []
        for row in runnable:
            own, for_purpose, by = _decided(hub, db, caller, facts, each, algorithm=facts.algorithms[row.id])
            if own is not None and row.settings.get("method", min(by)) in by:
                algorithms.append((row.name, row.title))
                methods |= by if not row.settings else frozenset()
                if decision is None:
                    decision, purpose = own, for_purpose
        if decision is None:
            continue
        reach = decision.narrowed.columns
        narrow = None if reach is None else {each.name: reach & each.columns}
        try:
            table = live.session(db, caller.email, tables=[each.name], columns=narrow).tables.get(each.name)
            measure = measure_of(hub.ledger.budget(each.population))
        except CloisterError:  # its rows cannot be reached now: who asks about it is told why
            continue
        if isinstance(table, PrivateTable):
            purposes = (purpose,) if purpose else ()
            found.append(
                Opened(
                    which=each,
                    table=table,
                    measure=measure,
                    purposes=purposes,
                    methods=methods,
                    plain=plain,
                    algorithms=tuple(algorithms),
                )
            )
    return found


def _decided(
    hub: Hub, db: Db, caller: Caller, facts: Facts, which: Object, *, algorithm: Object | None = None
) -> tuple[Decision | None, str, frozenset[str]]:
    """A decision that is a yes, with the purpose for which it is one and the methods that it opens; None where there is none."""
    named = sorted({purpose for grant in which.grants for purpose in grant.rules.purposes or ()})
    for purpose in ("", *named):
        first: Decision | None = None
        methods: set[str] = set()
        for project in ("", *sorted(caller.projects)):
            for alike in _alike(facts, which):
                columns = {which.id: frozenset[str]()}
                context = context_of(
                    hub,
                    caller,
                    purpose=purpose,
                    columns=columns,
                    project=project,
                    method=alike[0],
                    algorithm="" if algorithm is None else algorithm.id,
                )
                if algorithm is not None:
                    beside = replace(context, together=(which,))
                    if not allowed(hub, db, caller, "algorithm.run", algorithm, beside).allowed:
                        continue
                decision = allowed(hub, db, caller, ACTION, which, context)
                if decision.allowed:
                    first = first or decision
                    methods.update(alike)
        if first is not None:
            return first, purpose, frozenset(methods)
    return None, "", frozenset()


def _alike(facts: Facts, which: Object) -> list[list[str]]:
    """Every method that is trained here, in groups between which no rule makes a difference."""
    every = [grant.rules.methods for grant in which.grants] + [rule.methods for rule in facts.mandatory]
    lists = [names for names in every if names is not None]
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in offered():
        groups.setdefault(tuple(name in names for names in lists), []).append(name)
    return list(groups.values())
