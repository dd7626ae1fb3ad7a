"""What a release came from, when it is looked at, downloaded or shown: the rules that hold for data hold for what was derived.

- *Looking* at what one asked, or was shown, stays one's own: what was read cannot be unread. But the institution's rules are
  asked for every source, by the institution, population and labels that it has, and that it had when the answer left.
- *Downloading, sharing and publishing* let it go further, so each source is asked as it is now: its owner must have granted
  `release.download`, `release.share` or `release.publish` on it, and not have revoked it. A grant of questions alone gives none
  of them. What came from a data set that is closed is shown to nobody further.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session as Db
from sqlalchemy.orm import defer

from cloister.hub.database import last_seen, of_each, older_than
from cloister.hub.decisions.checking import allowed, allowed_together, context_of, refusal_of
from cloister.hub.decisions.facts import data_set_object, facts_of, who_of
from cloister.hub.decisions.policy import Decision, Object, Policy, Source
from cloister.hub.decisions.policy.shares import by_closing
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import policy_in
from cloister.hub.records.releases import StoredRelease

_FURTHER = ("release.download", "release.share", "release.publish")


def check_derived(hub: Hub, db: Db, caller: Caller, row: StoredRelease, action: str, *, by: str = "") -> None:
    """Refuse what `decided` says no to."""
    decision = decided(hub, db, caller, row, action, by=by)
    if not decision.allowed:
        raise refusal_of(db, decision)


def decided(hub: Hub, db: Db, caller: Caller, row: StoredRelease, action: str, *, by: str = "", handed: bool = False) -> Decision:
    """Whether the policy that a release or a model carries lets this person do something with it, and its sources do.

    Anyone who may read it counts as its owner here: who that is was decided before; what binds all of them is the policy.
    With `by` the owner of the sources let it go as it is, and others read it too: they count as the owner there as well,
    for as long as the sources are theirs. `handed`: the owners of all sources agreed before it was made that it goes to this
    person, so of them it is asked only whether a source is closed.
    """
    policy = policy_in(row.policy)
    which = Object(kind="release", id=row.id, name=row.title, owner=caller.id, labels=policy.labels, policies=(policy,))
    decision = allowed(hub, db, caller, action, which, context_of(hub, caller, purpose=row.purpose))
    return (_by_sources(hub, db, caller, row, policy, action, by, handed) if decision.allowed else None) or decision


def newest_open(
    hub: Hub,
    db: Db,
    caller: Caller,
    wanted: ColumnElement[bool],
    *,
    after: str,
    limit: int,
    known: ColumnElement[bool],
    shown: Callable[[StoredRelease], bool],
) -> list[StoredRelease]:
    """Of the rows that are wanted, the newest that this person may see now; those that stand behind the one of the id `after`,
    where there is any, which is one of those that are `known`. `shown`: whether one is shown to them still.

    What was closed to them since is left out, and the list goes on behind it: a page is short only where there is no more.
    """
    last = last_seen(db, StoredRelease, after, known)
    newest = (StoredRelease.created.desc(), StoredRelease.id.desc())
    listed = select(StoredRelease).options(defer(StoredRelease.body))  # which may be long
    ordered = listed.where(wanted).order_by(*newest).limit(limit)
    found: list[StoredRelease] = []
    while True:
        rows = list(db.scalars(ordered if last is None else ordered.where(older_than(last))))
        seen = of_each(rows, lambda row: (row, shown(row) and decided(hub, db, caller, row, "release.see").allowed))
        found += [row for row, open_to_them in seen if open_to_them]
        if len(rows) < limit or len(found) >= limit:
            return found[:limit]
        last = rows[-1]


def _by_sources(
    hub: Hub, db: Db, caller: Caller, row: StoredRelease, policy: Policy, action: str, by: str, handed: bool
) -> Decision | None:
    """The refusal of the institution, or of the owner of a source, of what is to be done with what was derived from it."""
    facts = facts_of(hub, db)
    sources = _sources(policy, row.data_sets)
    project = row.asked_in if row.asked_in in who_of(caller, facts).projects else ""
    context = context_of(
        hub,
        caller,
        purpose=row.purpose,
        columns={each.object: frozenset(each.columns) for each in sources},
        behind={each.object: frozenset(each.behind) for each in sources},
        project=project,
        algorithm=row.algorithm,
    )
    present = {each.object: _present(db, facts.data_sets.get(each.object), each.object) for each in sources}
    then = [_then(each, present[each.object], policy, caller) for each in sources]
    found = list(allowed_together(hub, db, caller, action, then, context).values())
    found += [allowed(hub, db, caller, action, _theirs(each, policy, caller), context) for each in present.values() if each]
    if action in _FURTHER:
        whole = [present[each.object] or Object(kind="data-set", id=each.object) for each in sources]
        now = [replace(each, owner=caller.id) if by and each.owner == by else each for each in whole]
        found += () if handed else allowed_together(hub, db, caller, action, now, context).values()
        shut = by_closing(who_of(caller, facts), action, now)
        found += [] if shut is None else [shut]
    return next((each for each in found if not each.allowed), None)


def sources_of(hub: Hub, db: Db, row: StoredRelease) -> list[Object]:
    """What a release came from, as it is now."""
    live, numbers = facts_of(hub, db).data_sets, [each.object for each in _sources(policy_in(row.policy), row.data_sets)]
    return [_present(db, live.get(each), each) or Object(kind="data-set", id=each) for each in numbers]


def told_policy(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy of a release as its readers are shown it: without the columns that only a condition on rows has read, which they
    may not know of.

    >>> told_policy({"sources": [{"object": "d1", "columns": ["age"], "behind": ["pay"]}]})
    {'sources': [{'object': 'd1', 'columns': ['age']}]}
    """
    sources = [{name: value for name, value in each.items() if name != "behind"} for each in policy.get("sources", ())]
    return {**policy, "sources": sources} if sources else dict(policy)


def _sources(policy: Policy, data_sets: Iterable[str]) -> list[Source]:
    """Each object once, with all that was read of it."""
    found = {number: Source(object=number) for number in data_sets}
    for each in sorted(policy.sources):
        known = found.get(each.object, each)
        found[each.object] = replace(
            each, columns=tuple(sorted({*known.columns, *each.columns})), behind=tuple(sorted({*known.behind, *each.behind}))
        )
    return list(found.values())


def _present(db: Db, live: Object | None, number: str) -> Object | None:
    """A data set as it is now; one that was deleted still has its owner, and nothing is granted on it."""
    row = db.get(DataSet, number) if live is None else None
    return live if row is None else data_set_object(row)


def _then(source: Source, present: Object | None, policy: Policy, caller: Caller) -> Object:
    """A source as it was when the answer left."""
    found = present or Object(kind="data-set", id=source.object)
    return replace(
        _theirs(found, policy, caller),
        institution=source.institution or found.institution,
        population=source.population or found.population,
    )


def _theirs(found: Object, policy: Policy, caller: Caller) -> Object:
    """A source of which nothing counts but what the institution's rules look at; its owner is not asked."""
    labels = found.labels | policy.labels
    return replace(found, owner=caller.id, labels=labels, grants=(), policies=(), column_policies={})
