"""What somebody may run now, as a page offers it: which algorithms, on which data sets, for which purpose, by which methods.

An algorithm that is about several data sets at once (one with a query of its own) is offered where its provider, the institution
and the owner of every one of them let this person run it; any other where that holds of at least one data set. Nothing here lets
anybody do anything: an order is decided on by itself (`authorise.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from cloister.errors import CloisterError
from cloister.hub.policy import Decision, Object, actions
from cloister.hub.policy.methods import offered
from cloister.hub.services.access import algorithms_of
from cloister.hub.services.catalogue import live_of
from cloister.hub.work.authorise import sight
from cloister.hub.work.checking import check_together, context_of
from cloister.hub.work.facts import facts_of
from cloister.hub.work.offer import Offer

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.access import Algorithm
    from cloister.hub.work.facts import Facts

    About = Callable[[Facts, Algorithm], Sequence[Object] | None]
    """The data sets that an algorithm is about, all of them together; None: any one."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """That somebody may do something."""

    decisions: Mapping[str, Decision]
    """By the id of a data set."""
    purpose: str
    """The first for which they may; empty where they need not name one."""
    methods: frozenset[str]
    """Those by which they may, for that purpose; the empty one where it is not done by methods."""


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """An algorithm that somebody may run."""

    row: Algorithm
    on: Mapping[str, Reach]
    """By the id of a data set on which they may."""


def runnable(hub: Hub, db: Db, caller: Caller, action: str, service: str, *, about: About = lambda *_: None) -> list[Runnable]:
    """The algorithms of a service that the person may run on data that they may know of, by name."""
    rows = [row for row in algorithms_of(hub, db, caller) if row.withdrawn is None and row.service == service]
    if not rows:
        return []
    facts, sees = facts_of(hub, db), sight(hub, caller, facts_of(hub, db))
    seen, found = [each for each in facts.data_sets.values() if sees(each)], []
    for row in rows:
        named, on = about(facts, row), dict[str, Reach]()
        if named is None:
            groups: list[Sequence[Object]] = [[each] for each in seen]
        else:
            groups = [named] if named and all(each in seen for each in named) else []
        for group in groups:
            reach = _reach(hub, db, caller, action, group, algorithm=row.id)
            if reach is not None and row.settings.get("method", min(reach.methods)) in reach.methods:
                on |= {each.id: reach for each in group}
        if on:
            found.append(Runnable(row=row, on=on))
    return found


def offers(
    hub: Hub, db: Db, caller: Caller, action: str, *, under: Sequence[Runnable], anyhow: bool = False, then: str = ""
) -> list[Offer]:
    """The data sets on which the person may do it, by themselves or under one of these algorithms, by name; without those whose
    rows are out of reach. `anyhow`: where they may for some purpose, in some project, too. `then`: what is done in the end, where
    the action only looks ahead; the purposes offered are those of this."""
    facts, sees, live = facts_of(hub, db), sight(hub, caller, facts_of(hub, db)), live_of(hub)
    found = []
    for each in sorted(facts.data_sets.values(), key=lambda which: which.name):
        if not sees(each):
            continue
        own = _reach(hub, db, caller, action, [each], anyhow=anyhow)
        by = [run for run in under if each.id in run.on]
        reach = own or (by[0].on[each.id] if by else None)
        if reach is None:
            continue
        columns = reach.decisions[each.id].narrowed.columns
        narrow = None if columns is None else {each.name: columns & each.columns}
        try:
            table = live.session(db, caller.email, tables=[each.name], columns=narrow).tables.get(each.name)
        except CloisterError:  # its rows cannot be reached now: who asks about it is told why
            continue
        if table is not None:
            left_open = [run.on[each.id].methods for run in by if not run.row.settings]
            found.append(
                Offer(
                    which=each,
                    table=table,
                    purpose=reach.purpose,
                    methods=frozenset[str]().union(own.methods if own else (), *left_open),
                    plain=own is not None,
                    purposes=_purposes(hub, db, caller, then or action, each, "" if own or not by else by[0].row.id),
                    algorithms=tuple(run.row for run in by),
                )
            )
    return found


def _reach(
    hub: Hub,
    db: Db,
    caller: Caller,
    action: str,
    objects: Sequence[Object],
    *,
    algorithm: str = "",
    anyhow: bool = True,
    purposes: Sequence[str] | None = None,
) -> Reach | None:
    """Whether the person may do it on all of these at once: for the first purpose for which they may (of `purposes`, or of those
    that grants name), alone or in one of their projects; with every method by which they may, for that purpose."""
    facts = facts_of(hub, db)
    of = [*objects, facts.algorithms[algorithm]] if algorithm else objects
    named = {purpose for each in of for grant in each.grants for purpose in grant.rules.purposes or ()}
    columns = {each.id: frozenset[str]() for each in objects}
    projects = sorted(caller.projects) if anyhow else ()
    alike = _alike(facts, objects) if actions()[action].by_method else [[""]]
    for purpose in ("", *(sorted(named) if anyhow else ())) if purposes is None else purposes:
        first: Mapping[str, Decision] | None = None
        by: set[str] = set()
        for project, group in product(("", *projects), alike):
            how = {"purpose": purpose, "project": project, "algorithm": algorithm, "method": group[0]}
            try:
                decisions = check_together(hub, db, caller, action, objects, context_of(hub, caller, columns=columns, **how))
            except CloisterError:  # another method may do, another project, or another purpose
                continue
            first = first or decisions
            by.update(group)
            if len(by) == sum(map(len, alike)):
                break
        if first is not None:
            return Reach(decisions=first, purpose=purpose, methods=frozenset(by))
    return None


def _purposes(hub: Hub, db: Db, caller: Caller, action: str, which: Object, algorithm: str) -> tuple[str, ...]:
    """The purposes for which the person may do it, of those that anybody wrote, where they may not do it without one; else none.

    Each is put to the policy: what the page offers is what it would allow."""
    facts = facts_of(hub, db)
    objects = [which, facts.algorithms[algorithm]] if algorithm else [which]
    said = [
        *(grant.rules.purposes for each in objects for grant in each.grants),
        *(policy.purposes for each in objects for policy in each.policies),
        *(rule.purposes for rule in facts.mandatory),
    ]
    named = {name for names in said if names is not None for name in names}
    if not named or _reach(hub, db, caller, action, [which], algorithm=algorithm, purposes=[""]) is not None:
        return ()
    allowed = (_reach(hub, db, caller, action, [which], algorithm=algorithm, purposes=[name]) for name in sorted(named))
    return tuple(reach.purpose for reach in allowed if reach is not None)


def _alike(facts: Facts, objects: Sequence[Object]) -> list[list[str]]:
    """Every method by which models are trained here, in groups between which no rule makes a difference."""
    every = [grant.rules.methods for each in objects for grant in each.grants] + [rule.methods for rule in facts.mandatory]
    lists = [names for names in every if names is not None]
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in offered():
        groups.setdefault(tuple(name in names for names in lists), []).append(name)
    return list(groups.values())
