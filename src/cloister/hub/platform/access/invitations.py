"""Invitations to a project: to an e-mail address, of which nobody says whether anybody has it; whoever does may come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from cloister.errors import InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.platform.trail import write
from cloister.hub.problems import Conflict, Missing
from cloister.hub.records.access import Project, ProjectInvitation, ProjectMember
from cloister.hub.records.people import folded

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_MOST = 200


def invite(hub: Hub, db: Session, caller: Caller, row: Project, address: str) -> None:
    """Invite an address; the answer is the same whether or not anybody has it. Whether somebody may was decided before."""
    known = folded(address)
    if (db.scalar(select(func.count()).select_from(ProjectInvitation).where(ProjectInvitation.project == row.id)) or 0) >= _MOST:
        raise InvalidParameter("The invitation is invalid", why=f"{_MOST} are open", instead="withdraw some of them")
    if db.get(ProjectInvitation, (row.id, known)) is None:
        db.add(ProjectInvitation(project=row.id, email=known, invited=hub.now()))
        db.flush()
        _told(hub, db, caller, row, invited=known)


def withdraw_invitation(hub: Hub, db: Session, caller: Caller, row: Project, address: str) -> None:
    """Invite an address no longer."""
    known = folded(address)
    found = db.get(ProjectInvitation, (row.id, known))
    if found is not None:
        db.delete(found)
        db.flush()
        _told(hub, db, caller, row, withdrawn=known)


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
    row, found = _mine(db, caller, name)
    if row.closed is not None:
        raise Conflict("The project was left as it is", why="it is closed", instead="a new project")
    db.delete(found)
    if db.get(ProjectMember, (row.id, caller.id)) is None:
        db.add(ProjectMember(project=row.id, person=caller.id, joined=hub.now()))
    db.flush()
    bump(db)
    _told(hub, db, caller, row, joined=caller.id)
    return row


def decline(hub: Hub, db: Session, caller: Caller, name: str) -> None:
    """Stay out."""
    row, found = _mine(db, caller, name)
    db.delete(found)
    db.flush()
    _told(hub, db, caller, row, declined=caller.id)


def _mine(db: Session, caller: Caller, name: str) -> tuple[Project, ProjectInvitation]:
    row = db.scalar(select(Project).where(Project.name == name))
    found = None if row is None or not caller.email else db.get(ProjectInvitation, (row.id, caller.email))
    if row is None or found is None:
        raise Missing("There is no such invitation", why="the project does not exist, or did not invite you", instead="/projects")
    return row, found


def _told(hub: Hub, db: Session, caller: Caller, row: Project, **details: Any) -> None:
    write(hub, db, caller, "project.manage", kind="project", object_id=row.id, purpose=row.purpose, name=row.name, **details)
