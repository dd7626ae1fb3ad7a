"""What somebody may run now, as a page offers it: which algorithms, on which data sets, for which purpose, by which methods.

An algorithm that is about several data sets at once (one with a query of its own) is offered where its provider, the institution
and the owner of every one of them let this person run it; any other where that holds of at least one data set. Nothing here lets
anybody do anything: an order is decided on by itself (`authorise.py`).
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product

from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError
from cloister.hub.decisions.checking import check_together, context_of
from cloister.hub.decisions.facts import Facts, facts_of
from cloister.hub.decisions.policy import Decision, Object, actions
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import algorithms_of
from cloister.hub.platform.catalogue import live_of
from cloister.hub.records.access import Algorithm
from cloister.hub.work.authorise import sight
from cloister.hub.work.offer import Offer

About = Callable[[Facts, Algorithm], Sequence[Object] | None]
"""The data sets that an algorithm is about, all of them together; None: any one."""


_MOST_PUT = 500
"""Purposes that are put to the policy while a page is made; nobody reads a list of more."""


@dataclass(frozen=True, kw_only=True)
class Reach:
    """That somebody may do something."""

    decisions: Mapping[str, Decision]
    """By the id of a data set."""
    methods: frozenset[str]
    """Those by which they may, for the first purpose that allows it; the empty one where it is not done by methods."""


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
        ways = [*([""] if own else []), *(run.row.id for run in by)]
        named = _purposes(hub, db, caller, then or action, each, ways)
        columns = reach.decisions[each.id].narrowed.columns
        narrow = None if columns is None else {each.name: (columns | named.columns) & each.columns}
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
                    methods=frozenset[str]().union(own.methods if own else (), *left_open),
                    plain=own is not None,
                    purposes=tuple(sorted(named.purposes)),
                    names_purpose=bool(named.purposes) and not named.free,
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
    columns: frozenset[str] = frozenset(),
) -> Reach | None:
    """Whether the person may do it on all of these at once, with these `columns` of each: for the first purpose for which they
    may (of `purposes`, or of those that anybody demands), alone or in one of their projects; with every method by which they may,
    for that purpose."""
    facts = facts_of(hub, db)
    of = [*objects, facts.algorithms[algorithm]] if algorithm else objects
    named = _demanded(facts, of)
    touched = {each.id: columns for each in objects}
    projects = sorted(caller.projects) if anyhow else ()
    alike = _alike(facts, objects) if actions()[action].by_method else [[""]]
    for purpose in ("", *(sorted(named) if anyhow else ())) if purposes is None else purposes:
        first: Mapping[str, Decision] | None = None
        by: set[str] = set()
        for project, group in product(("", *projects), alike):
            how = {"purpose": purpose, "project": project, "algorithm": algorithm, "method": group[0]}
            try:
                decisions = check_together(hub, db, caller, action, objects, context_of(hub, caller, columns=touched, **how))
            except CloisterError:  # another method may do, another project, or another purpose
                continue
            first = first or decisions
            by.update(group)
            if len(by) == sum(map(len, alike)):
                break
        if first is not None:
            return Reach(decisions=first, methods=frozenset(by))
    return None


@dataclass(frozen=True, kw_only=True)
class _Named:
    """What somebody may do it for."""

    purposes: Set[str]
    columns: Set[str]
    """Those that one of these purposes opens."""
    free: bool
    """Whether there is a way in which they see something without naming one."""


def _purposes(hub: Hub, db: Db, caller: Caller, action: str, which: Object, ways: Sequence[str]) -> _Named:
    """The purposes for which the person may do it in any of these ways: by themselves, or under an algorithm.

    Each is put to the policy: what the page offers is what it would allow. Where they may do it for any purpose, those of others'
    grants are not shown; those of single columns are offered still, since these columns are closed without. Of very many
    none is offered, and the field is free.
    """
    facts, found, opened, free = facts_of(hub, db), set[str](), set[str](), False
    of_columns = [(name, column) for column, policy in which.column_policies.items() for name in policy.purposes or ()]
    for algorithm in ways:
        objects = [which, facts.algorithms[algorithm]] if algorithm else [which]
        demanded = _demanded(facts, objects)
        if len(demanded) + len(of_columns) > _MOST_PUT:
            return _Named(purposes=frozenset(), columns=frozenset(), free=True)

        def reached(name: str, column: str = "", under: str = algorithm) -> Reach | None:
            columns = frozenset({column}) if column else frozenset[str]()
            return _reach(hub, db, caller, action, [which], algorithm=under, purposes=[name], columns=columns)

        for_any = reached("")
        if for_any is None:
            found.update(name for name in demanded if reached(name))
        else:
            seen = for_any.decisions[which.id].narrowed.columns
            free |= seen is None or not seen.isdisjoint(which.columns)
        for name, column in of_columns:
            if reached(name, column):
                found.add(name)
                opened.add(column)
    return _Named(purposes=found, columns=opened, free=free)


def _demanded(facts: Facts, objects: Sequence[Object]) -> set[str]:
    """Every purpose that grants, policies and rules name; which of them somebody may use, the policy says."""
    said = [
        *(grant.rules.purposes for each in objects for grant in each.grants),
        *(policy.purposes for each in objects for policy in each.policies),
        *(rule.purposes for rule in facts.mandatory),
    ]
    return {name for names in said for name in names or ()}


def _alike(facts: Facts, objects: Sequence[Object]) -> list[list[str]]:
    """Every method by which models are trained here, in groups between which no rule makes a difference."""
    every = [grant.rules.methods for each in objects for grant in each.grants] + [rule.methods for rule in facts.mandatory]
    lists = [names for names in every if names is not None]
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in offered():
        groups.setdefault(tuple(name in names for names in lists), []).append(name)
    return list(groups.values())
