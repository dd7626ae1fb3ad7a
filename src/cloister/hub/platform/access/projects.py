"""Projects: one study, its members, and the data sets of several owners, each of whom approves by a grant to the project.

What a member asks inside a project is charged to the project (the ledger knows it as "project <name>") and seen by its members;
it reads only data sets that were granted to the project. A grant is given to the members of its day: who joins later works with
the data set once its owner has confirmed them. A project is closed, never deleted: its members then have nothing by it.

Who leads it invites e-mail addresses, of which nobody says whether anybody has them; whoever does may come in.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import String, cast, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidDeclaration, InvalidParameter, Missing
from cloister.hub.decisions.checking import allowed, check
from cloister.hub.decisions.facts import project_object
from cloister.hub.decisions.policy import GrantFacts
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access.algorithms import checked_name
from cloister.hub.platform.access.granting import (
    confirm_in,
    forget_in,
    grant_in,
    newcomers,
    own_data_set,
    revoke_in,
    seen_data_set,
    state_of_grant,
)
from cloister.hub.platform.access.requests import spoken
from cloister.hub.platform.trail import write
from cloister.hub.records.access import AccessRequest, Grant, Project, ProjectDataSet, ProjectInvitation, ProjectMember
from cloister.hub.records.accounts import Person, folded, person_of_address
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import grant_in_row

_LONGEST = 200
_MOST = 200


def make_project(hub: Hub, db: Session, caller: Caller, *, name: str, title: str, purpose: str, about: str = "") -> Project:
    """Start a project, with oneself as its first member."""
    check(hub, db, caller, "project.create")
    if not title.strip() or len(title) > _LONGEST or len(about) > 10 * _LONGEST:
        raise InvalidDeclaration("title is invalid", why=f"it has 1 to {_LONGEST} characters", instead='"The heart study"')
    row = Project(
        id=new_id(),
        name=checked_name(name),
        title=title.strip(),
        purpose=spoken(purpose, "the purpose", 1000),
        about=about.strip(),
        lead=caller.id,
        created=hub.now(),
    )
    try:
        with db.begin_nested():
            db.add(row)
    except IntegrityError:
        raise Conflict("The name is taken", why="a project has it already", instead="another name") from None
    db.add(ProjectMember(project=row.id, person=caller.id, joined=hub.now()))
    db.flush()
    bump(db)
    _told(hub, db, caller, "project.create", row)
    return row


def seen_project(
    hub: Hub, db: Session, caller: Caller, name: str, action: str = "project.see", *, open_: bool = False
) -> Project:
    """A project, by its name, that this person may see (or manage); any other is missing."""
    row = db.scalar(select(Project).where(Project.name == name))
    if row is None or not _sees(hub, db, caller, row):
        raise Missing("There is no such project", why="it does not exist, or is not open to you", instead="/projects")
    if action != "project.see":
        check(hub, db, caller, action, project_object(row))
    if open_ and row.closed is not None:
        raise Conflict("The project was left as it is", why="it is closed", instead="a new project")
    return row


def projects_of(hub: Hub, db: Session, caller: Caller) -> list[Project]:
    """The projects that a person is in, leads, is asked for data by, or watches over; open ones first, by name."""
    rows = db.scalars(select(Project).order_by(Project.closed.is_not(None), Project.name))
    return [row for row in rows if _sees(hub, db, caller, row)]


def members_of(db: Session, row: Project) -> list[ProjectMember]:
    """The members, in the order in which they came."""
    wanted = select(ProjectMember).where(ProjectMember.project == row.id)
    return list(db.scalars(wanted.order_by(ProjectMember.joined, ProjectMember.person)))


def remove_member(hub: Hub, db: Session, caller: Caller, name: str, person: str) -> None:
    """Take somebody out, by their e-mail address or their id: at once they may do nothing more by it. Whoever leads stays. An
    address that is no member's is invited no longer."""
    row = seen_project(hub, db, caller, name, "project.manage", open_=True)
    known = person_of_address(db, person) if "@" in person else db.get(Person, person[:32])
    if known is not None and known.id == row.lead:
        raise Conflict("The member stays", why="they lead the project", instead="close the project")
    member = None if known is None else db.get(ProjectMember, (row.id, known.id))
    if known is not None and member is not None:
        db.delete(member)
        withdraw_invitation(hub, db, caller, row, known.email)  # else they would join again by it
        named = cast(Grant.attributes, String).contains(row.id, autoescape=True)
        for grant in db.scalars(select(Grant).where(named, Grant.revoked.is_(None))).all():  # with a request behind it, or none
            forget_in(db, grant, known.id)  # if they join again, each owner is asked again
        bump(db)
        _told(hub, db, caller, "project.manage", row, left=known.id)
    elif "@" not in person or not withdraw_invitation(hub, db, caller, row, person):
        why = "no member or invitation of the project has this e-mail address or id"
        raise Missing("There is no such member", why=why, instead=f"/projects/{row.name}")


def data_sets_in(hub: Hub, db: Session, row: Project) -> list[tuple[str, DataSet]]:
    """The data sets that were asked for, each with its state: asked, approved, or expired with the grant that approved it."""
    wanted = select(ProjectDataSet.approved, DataSet).join(DataSet, DataSet.id == ProjectDataSet.data_set)
    wanted = wanted.where(ProjectDataSet.project == row.id, DataSet.state != "deleted")
    given = _standing(hub, db, row)
    found = db.execute(wanted.order_by(DataSet.name))
    return [("approved" if each[1].id in given else "expired" if each[0] else "asked", each[1]) for each in found]


def ask_data_set(hub: Hub, db: Session, caller: Caller, name: str, data_set: str) -> None:
    """Ask the owner of a data set to let the project work with it, or to let it go on when their grant has ended."""
    row = seen_project(hub, db, caller, name, "project.manage", open_=True)
    found, _ = seen_data_set(hub, db, caller, data_set)
    place = db.get(ProjectDataSet, (row.id, found.id))
    if place is None or (place.approved is not None and found.id not in _standing(hub, db, row)):
        db.merge(ProjectDataSet(project=row.id, data_set=found.id, asked=hub.now(), approved=None, approved_by=""))
        db.flush()
        bump(db)
        _told(hub, db, caller, "project.manage", row, asked=found.id, data_sets=[found.id])


def approve(
    hub: Hub, db: Session, caller: Caller, name: str, data_set: str, rules: Mapping[str, Any], shown: frozenset[str] | None = None
) -> GrantFacts:
    """The owner of a data set lets the project work with it: a grant to the members that it has now, for work inside it. Where
    these were `shown`, it is refused if somebody joined since."""
    row = seen_project(hub, db, caller, name, open_=True)
    found, which = own_data_set(hub, db, caller, data_set, "access.decide")
    place = db.get(ProjectDataSet, (row.id, found.id))
    if place is None:
        raise Missing(
            "There is no such request", why="the project did not ask for this data set", instead=f"/projects/{row.name}"
        )
    if found.id in _standing(hub, db, row):
        raise Conflict("The approval has no effect", why="it was given already", instead="revoke the grant first")
    draft = {"role": f"project {row.name}", "members": {"projects": [row.id]}, "rules": dict(rules)}
    made = grant_in(hub, db, caller, which, draft, row=found, request=row.id, shown=shown)
    place.approved, place.approved_by = hub.now(), caller.id
    _told(hub, db, caller, "access.decide", row, approved=found.id, data_sets=[found.id])
    return made


def confirm(
    hub: Hub, db: Session, caller: Caller, name: str, data_set: str, shown: frozenset[str] | None = None
) -> frozenset[str]:
    """The owner of a data set lets those work with it who joined the project since it was approved; who they are. Of `shown`:
    whoever joined since these were shown waits on."""
    row = seen_project(hub, db, caller, name, open_=True)
    found, which = own_data_set(hub, db, caller, data_set, "access.decide")
    new: frozenset[str] = frozenset()
    for grant in _standing(hub, db, row).get(found.id, ()):
        new |= confirm_in(hub, db, caller, grant, which, shown)
    if not new:
        why = "no new member waits for it, or its approval has ended"
        raise Conflict("Nobody was confirmed", why=why, instead=f"/projects/{row.name}")
    return new


def waiting_members(hub: Hub, db: Session, row: Project) -> dict[str, frozenset[str]]:
    """By name of a data set, the members for whom its owner has not approved it: they joined afterwards."""
    given, told = _standing(hub, db, row), dict[str, frozenset[str]]()
    for _state, each in data_sets_in(hub, db, row):
        told[each.name] = frozenset().union(*(newcomers(db, grant) for grant in given.get(each.id, ())))
    return {name: people for name, people in told.items() if people}


def remove_data_set(hub: Hub, db: Session, caller: Caller, name: str, data_set: str) -> None:
    """Take a data set out of a project: by whoever leads it, or by its owner, who takes back the grant with it."""
    row = seen_project(hub, db, caller, name, open_=True)
    found = db.scalar(select(DataSet).where(DataSet.name == data_set))
    place = None if found is None else db.get(ProjectDataSet, (row.id, found.id))
    if found is None or place is None:
        raise Missing("There is no such data set", why="the project does not work with it", instead=f"/projects/{row.name}")
    given = [] if found.state == "deleted" else _standing(hub, db, row).get(found.id, [])
    if caller.id == found.owner:
        for grant in given:
            revoke_in(hub, db, caller, grant.id)
    else:
        check(hub, db, caller, "project.manage", project_object(row))
        if given:
            raise Conflict("The data set stays", why="its owner approved it", instead="ask its owner to revoke it")
    db.delete(place)
    bump(db)
    _told(hub, db, caller, "project.manage", row, removed=found.id, data_sets=[found.id])


def close_project(hub: Hub, db: Session, caller: Caller, name: str) -> Project:
    """End a project: nothing is asked in it any more; what it released stays with its members."""
    row = seen_project(hub, db, caller, name, "project.manage", open_=True)
    row.closed = hub.now()
    bump(db)
    _told(hub, db, caller, "project.manage", row, closed=True)
    return row


def waiting_for(hub: Hub, db: Session, caller: Caller) -> list[tuple[Project, DataSet]]:
    """The projects that wait for an owner's approval, or for a word on members who joined after it."""
    wanted = select(Project, DataSet).join(ProjectDataSet, ProjectDataSet.project == Project.id)
    wanted = wanted.join(DataSet, DataSet.id == ProjectDataSet.data_set)
    wanted = wanted.where(DataSet.owner == caller.id, Project.closed.is_(None))
    asked, waiting = [(row[0], row[1]) for row in db.execute(wanted.order_by(ProjectDataSet.asked))], set[tuple[str, str]]()
    for row in {row.id: row for row, _ in asked}.values():
        names = {each.name for state, each in data_sets_in(hub, db, row) if state == "asked"}
        waiting |= {(row.id, name) for name in names | waiting_members(hub, db, row).keys()}
    return [(row, each) for row, each in asked if (row.id, each.name) in waiting]


def _standing(hub: Hub, db: Session, row: Project) -> dict[str, list[Grant]]:
    """By data set, the grants by which its owner approved, or answered a request for the project, and which have not ended:
    neither revoked nor past their last day."""
    found: dict[str, list[Grant]] = {}
    asked = select(AccessRequest.id).where(AccessRequest.project == row.id)
    given = select(Grant).where(or_(Grant.request == row.id, Grant.request.in_(asked)), Grant.revoked.is_(None))
    for grant in db.scalars(given):
        if state_of_grant(hub, grant_in_row(grant)[0]) != "expired":
            found.setdefault(grant.object, []).append(grant)
    return found


def _sees(hub: Hub, db: Session, caller: Caller, row: Project) -> bool:
    if row.closed is not None and (row.lead == caller.id or row.id in caller.projects):
        return True
    wanted = select(DataSet.owner).join(ProjectDataSet, ProjectDataSet.data_set == DataSet.id)
    owners = frozenset(db.scalars(wanted.where(ProjectDataSet.project == row.id, DataSet.state != "deleted")))
    return allowed(hub, db, caller, "project.see", project_object(row, owners)).allowed


def _told(hub: Hub, db: Session, caller: Caller, action: str, row: Project, **details: Any) -> None:
    write(hub, db, caller, action, kind="project", object_id=row.id, purpose=row.purpose, name=row.name, **details)


def invite(hub: Hub, db: Session, caller: Caller, row: Project, address: str) -> None:
    """Invite an address; the answer is the same whether or not anybody has it. Whether somebody may was decided before."""
    known = folded(address)
    waiting = select(func.count()).select_from(ProjectInvitation).where(ProjectInvitation.project == row.id)
    if (db.scalar(waiting) or 0) >= _MOST:
        raise InvalidParameter("The invitation is invalid", why=f"{_MOST} are open", instead="withdraw some of them")
    if db.get(ProjectInvitation, (row.id, known)) is None:
        db.add(ProjectInvitation(project=row.id, email=known, invited=hub.now()))
        db.flush()
        _told(hub, db, caller, "project.manage", row, invited=known)


def withdraw_invitation(hub: Hub, db: Session, caller: Caller, row: Project, address: str) -> bool:
    """Invite an address no longer; whether it was invited."""
    known = folded(address)
    found = db.get(ProjectInvitation, (row.id, known))
    if found is not None:
        db.delete(found)
        db.flush()
        _told(hub, db, caller, "project.manage", row, withdrawn=known)
    return found is not None


def invited_to(db: Session, row: Project) -> list[str]:
    """The addresses whose invitation is open."""
    wanted = select(ProjectInvitation.email).where(ProjectInvitation.project == row.id)
    return list(db.scalars(wanted.order_by(ProjectInvitation.email)))


def invitations_for(db: Session, caller: Caller) -> list[Project]:
    """The open projects to which somebody is invited, by name."""
    wanted = select(Project).join(ProjectInvitation, ProjectInvitation.project == Project.id)
    wanted = wanted.where(ProjectInvitation.email == caller.email, Project.closed.is_(None))
    return list(db.scalars(wanted.order_by(Project.name))) if caller.email else []


def join(hub: Hub, db: Session, caller: Caller, name: str) -> Project:
    """Join, where one is invited."""
    row, found = _invited_in(db, caller, name)
    if row.closed is not None:
        raise Conflict("The project was left as it is", why="it is closed", instead="a new project")
    db.delete(found)
    if db.get(ProjectMember, (row.id, caller.id)) is None:
        db.add(ProjectMember(project=row.id, person=caller.id, joined=hub.now()))
    db.flush()
    bump(db)
    _told(hub, db, caller, "project.manage", row, joined=caller.id)
    return row


def decline(hub: Hub, db: Session, caller: Caller, name: str) -> None:
    """Stay out."""
    row, found = _invited_in(db, caller, name)
    db.delete(found)
    db.flush()
    _told(hub, db, caller, "project.manage", row, declined=caller.id)


def _invited_in(db: Session, caller: Caller, name: str) -> tuple[Project, ProjectInvitation]:
    row = db.scalar(select(Project).where(Project.name == name))
    found = None if row is None or not caller.email else db.get(ProjectInvitation, (row.id, caller.email))
    if row is None or found is None:
        raise Missing("There is no such invitation", why="the project does not exist, or did not invite you", instead="/projects")
    return row, found
