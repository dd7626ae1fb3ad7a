"""Making and taking back grants on data sets and algorithms. What changes here holds for the next question of every process."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidDeclaration, Missing
from cloister.hub.decisions.checking import allowed, check, context_of, no_algorithm
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import Context, GrantFacts, Object, Spend, Who, actions, decide, words
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access.days import days_in
from cloister.hub.platform.access.drafts import check_grant, condition_columns
from cloister.hub.platform.access.names import resolved
from cloister.hub.platform.trail import write
from cloister.hub.records.access import Algorithm, Grant, ProjectDataSet, ProjectMember
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import grant_in_row


def grant(
    hub: Hub, caller: Caller, *, data_set: str, role: str, members: Mapping[str, Any], rules: Mapping[str, Any], request: str = ""
) -> str:
    """Grant access to a data set, by its name: the id of the grant. `members` and `rules` are in their JSON form
    (`hub/decisions/policy/facts.py`), with e-mail addresses and names where ids are meant."""
    with hub.database.begin() as db:
        row, which = own_data_set(hub, db, caller, data_set)
        draft = {"role": role, "members": dict(members), "rules": dict(rules)}
        return grant_in(hub, db, caller, which, draft, row=row, request=request).id


def revoke(hub: Hub, caller: Caller, number: str) -> None:
    """Take a grant back: it ends with the next question."""
    with hub.database.begin() as db:
        revoke_in(hub, db, caller, number)


def grant_in(
    hub: Hub,
    db: Session,
    caller: Caller,
    which: Object,
    draft: Mapping[str, Any],
    *,
    row: DataSet | None = None,
    request: str = "",
    shown: frozenset[str] | None = None,
) -> GrantFacts:
    """Keep a grant in the transaction of `db`, once text, object and the institution's rules allow it, to those `shown`."""
    draft = resolved(hub, db, caller, draft)
    if isinstance(draft.get("rules"), Mapping):
        draft = {**draft, "rules": days_in(draft["rules"], hub.settings.zone)}
    found = _to_present(db, GrantFacts.read(draft, id=new_id(), granted_by=caller.id))
    if shown is not None and (found.members.people or frozenset()) - shown:
        why = "somebody joined the project after the page was loaded"
        raise Conflict("The approval has no effect", why=why, instead="load the page again and send it once more")
    check_grant(hub, found, which, row)
    if row is not None and found.rules.rows:
        check_condition(hub, db, found, which, row)
    spend = {which.population: Spend(allotment=found.rules.share)} if found.rules.share is not None else None
    action = "dataset.grant" if which.kind == "data-set" else "algorithm.manage"
    check(hub, db, caller, action, which, context_of(hub, caller, spend=spend))
    text = found.to_keep()
    bump(db)  # before the look: of two that are sent at once, the second sees the first
    about: dict[str, Any] = {"role": found.role, "attributes": text["members"], "rules": text["rules"]}
    about |= {"request": request, "granted_by": caller.id}
    for old in grants_on(db, which.kind, which.id):  # a form that was sent twice: who revokes the one would leave the other
        if old.revoked is None and all(getattr(old, name) == value for name, value in about.items()):
            return grant_in_row(old)[0]
    db.add(Grant(id=found.id, kind=which.kind, object=which.id, created=hub.now(), **about))
    _told(hub, db, caller, action, which.kind, which.id, grant=found.id, role=found.role, given=text, request=request)
    return found


def revoke_in(hub: Hub, db: Session, caller: Caller, number: str) -> Grant:
    """Take a grant back in the transaction of `db`."""
    found = db.get(Grant, number[:32])
    facts = facts_of(hub, db)
    if found is None:
        raise _missing()
    which = (facts.data_sets if found.kind == "data-set" else facts.algorithms).get(found.object)
    action = "dataset.revoke" if found.kind == "data-set" else "algorithm.manage"
    if which is None or not allowed(hub, db, caller, action, which).allowed:
        raise _missing()  # of a grant on somebody else's object, not even its existence is told
    if found.revoked is None:
        found.revoked, found.revoked_by = hub.now(), caller.id
        for project in grant_in_row(found)[0].members.projects or () if found.request else ():
            place = db.get(ProjectDataSet, (project, found.object))
            if place is not None:
                place.approved, place.approved_by = None, ""
        bump(db)
        _told(hub, db, caller, action, found.kind, found.object, grant=found.id, role=found.role, revoked=True)
    return found


def confirm_in(
    hub: Hub, db: Session, caller: Caller, row: Grant, which: Object, shown: frozenset[str] | None = None
) -> frozenset[str]:
    """Let those into a project's grant who joined the project after it was made, of those that were `shown`; who they are."""
    action = "dataset.grant" if row.kind == "data-set" else "algorithm.manage"
    check(hub, db, caller, action, which)
    found = grant_in_row(row)[0]
    new = newcomers(db, row) if shown is None else newcomers(db, row) & shown
    if new:
        _keep_people(row, found, (found.members.people or frozenset()) | new)
        bump(db)
        _told(hub, db, caller, action, row.kind, row.object, grant=row.id, role=row.role, joined=sorted(new))
    return new


def forget_in(db: Session, row: Grant, person: str) -> None:
    """Take somebody who left the projects of a grant out of it."""
    found = grant_in_row(row)[0]
    if found.members.people is not None and person in found.members.people - _members(db, found):
        _keep_people(row, found, found.members.people - {person})


def _keep_people(row: Grant, found: GrantFacts, people: frozenset[str]) -> None:
    row.attributes = replace(found, members=replace(found.members, people=people)).to_keep()["members"]


def newcomers(db: Session, row: Grant) -> frozenset[str]:
    """Members of a grant's projects for whom it was not given, since they joined after it."""
    found = grant_in_row(row)[0]
    if found.members.projects is None or found.members.people is None:
        return frozenset()
    since = select(ProjectMember.person).where(ProjectMember.joined >= row.created)
    return frozenset(db.scalars(since.where(ProjectMember.project.in_(found.members.projects)))) - found.members.people


def grants_on(db: Session, kind: str, number: str) -> list[Grant]:
    """Every grant on an object, revoked ones too, the newest first."""
    wanted = select(Grant).where(Grant.kind == kind, Grant.object == number)
    return list(db.scalars(wanted.order_by(Grant.created.desc(), Grant.id)))


def state_of_grant(hub: Hub, facts: GrantFacts) -> str:
    """Whether a grant holds: active, waiting for its first moment, expired, or revoked."""
    if facts.revoked:
        return "revoked"
    until, begin = facts.rules.until, facts.rules.not_before
    if until is not None and until <= hub.now():
        return "expired"
    return "waiting" if begin is not None and begin > hub.now() else "active"


def seen_data_set(hub: Hub, db: Session, caller: Caller, name: str) -> tuple[DataSet, Object]:
    """A data set, by its name, that this person may see; any other is missing, whether it exists or not."""
    row = db.scalar(select(DataSet).where(DataSet.name == name, DataSet.state != "deleted"))
    which = None if row is None else facts_of(hub, db).data_sets.get(row.id)
    if row is None or which is None or not allowed(hub, db, caller, "dataset.see", which).allowed:
        raise Missing("There is no such data set", why="it does not exist, or is not open to you", instead="/datasets")
    return row, which


def own_data_set(hub: Hub, db: Session, caller: Caller, name: str, action: str = "dataset.grant") -> tuple[DataSet, Object]:
    """A data set, by its name, on which this person may do what its owner does."""
    row, which = seen_data_set(hub, db, caller, name)
    check(hub, db, caller, action, which)
    return row, which


def own_algorithm(hub: Hub, db: Session, caller: Caller, name: str) -> tuple[Algorithm, Object]:
    """An algorithm, by its name, of this person."""
    row, which = seen_algorithm(hub, db, caller, name)
    check(hub, db, caller, "algorithm.manage", which)
    return row, which


def seen_algorithm(hub: Hub, db: Session, caller: Caller, name: str) -> tuple[Algorithm, Object]:
    """An algorithm, by its name, that this person may see."""
    row = db.scalar(select(Algorithm).where(Algorithm.name == name, Algorithm.withdrawn.is_(None)))
    which = None if row is None else facts_of(hub, db).algorithms.get(row.id)
    if row is None or which is None or not allowed(hub, db, caller, "algorithm.see", which).allowed:
        raise no_algorithm()
    return row, which


def _to_present(db: Session, found: GrantFacts) -> GrantFacts:
    """A grant to a project is given to the members that it has: whoever leads the project lets nobody else in by it."""
    if found.members.projects is None or found.members.people is not None:
        return found
    return replace(found, members=replace(found.members, people=_members(db, found)))


def _members(db: Session, found: GrantFacts) -> frozenset[str]:
    return frozenset(db.scalars(select(ProjectMember.person).where(ProjectMember.project.in_(found.members.projects or ()))))


def _told(hub: Hub, db: Session, caller: Caller, action: str, kind: str, number: str, **details: Any) -> None:
    about = [number] if kind == "data-set" else []
    write(hub, db, caller, action, kind=kind, object_id=number, data_sets=about, **details)


def _missing() -> Missing:
    return Missing("There is no such grant", why="it does not exist, or you may not revoke it", instead="/access/requests")


_CLOSED = ("denied", "prohibited", "combination", "retention")


def check_condition(hub: Hub, db: Session, grant: GrantFacts, which: Object, row: DataSet) -> None:
    """Refuse a condition whose columns the institution's rules, or policies of the data, close whoever asks.

    It would be refused at each question anyway, since a question under the grant reads the condition's columns. Said to the
    owner in advance, it can be mended."""
    read, rules = condition_columns(grant.rules.rows, row), grant.rules
    everybody = Who(id=which.owner, roles=frozenset().union(*(each.roles for each in actions().values())))
    reasons = _CLOSED if rules.purposes is None else (*_CLOSED, "purpose")
    for name in sorted(rules.actions):
        if not actions()[name].data:
            continue
        found = [
            decide(
                everybody,
                name,
                replace(which, grants=()),
                Context(now=hub.now(), purpose=purpose, columns={which.id: frozenset()}, behind={which.id: read}),
                facts_of(hub, db).mandatory,
            )
            for purpose in sorted(rules.purposes or {""})
        ]
        if all(not each.allowed and each.reason in reasons for each in found):
            raise InvalidDeclaration(
                "rows is invalid",
                why=f"it reads {', '.join(sorted(read))}. {words(found[0])} (rule {found[0].rule})",
                instead="a condition on other columns",
            )
