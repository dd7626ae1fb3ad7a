"""Showing a release to others: to an e-mail address, to a project; and no longer.

Nobody is looked up: a share is with an address, whoever has it here, so that no answer tells whether somebody does.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter, Missing
from cloister.hub.decisions.checking import own_project
from cloister.hub.decisions.policy import why
from cloister.hub.decisions.policy.shares import SHARE
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_title
from cloister.hub.platform.trail import write
from cloister.hub.records.access import Project
from cloister.hub.records.accounts import folded
from cloister.hub.records.releases import ProjectShare, ReleaseShare, StoredRelease
from cloister.hub.releases.derived import decided
from cloister.hub.releases.kinds import kind_of
from cloister.hub.releases.reading import left_projects
from cloister.hub.releases.shapes import ShareLine

_MOST = 200


def share_release(hub: Hub, db: Db, caller: Caller, row: StoredRelease, *, email: str = "", project: str = "") -> None:
    """Show a release to the members of a project of one's own; or to whoever has an address: one that nobody has is as good."""
    if project:
        project = own_project(hub, db, caller, project, closed=True)
        if db.get(ProjectShare, (row.id, project)) is None:
            db.add(ProjectShare(release=row.id, project=project, shared=hub.now()))
        _told(hub, db, caller, "release.share", row, project=project)
        return
    address = folded(email)
    if (db.scalar(select(func.count()).select_from(ReleaseShare).where(ReleaseShare.release == row.id)) or 0) >= _MOST:
        raise InvalidParameter(
            "The release was not shared", why=f"{_MOST} people see it already", instead="a project with these people"
        )
    if db.get(ReleaseShare, (row.id, address)) is None:
        db.add(ReleaseShare(release=row.id, email=address, shared=hub.now()))
    _told(hub, db, caller, "release.share", row, person=address)


def withdraw(hub: Hub, db: Db, caller: Caller, row: StoredRelease, *, email: str = "", project: str = "") -> None:
    """Show it no longer; what was looked at or downloaded before is not undone."""
    if project:
        with_projects = select(ProjectShare).join(Project, Project.id == ProjectShare.project)
        named = or_(Project.id == project, Project.name == project)  # of closed projects and of those that one left, too
        share = db.scalar(with_projects.where(ProjectShare.release == row.id, named))
        if share is None:
            raise Missing("There is no such project", why="the release is not shared with it", instead="one of its shares")
        db.delete(share)
        _told(hub, db, caller, "release.withdraw", row, project=share.project)
    else:
        address = folded(email)
        db.execute(delete(ReleaseShare).where(ReleaseShare.release == row.id, ReleaseShare.email == address))
        _told(hub, db, caller, "release.withdraw", row, person=address)


def shares_of(hub: Hub, db: Db, caller: Caller, row: StoredRelease, _: Callable[[str], str] = str) -> list[ShareLine]:
    """Everybody to whom a release was shown, the first first; and of each share why it sleeps, where its giver, who asks, could
    not give it now.
    """
    decision = decided(hub, db, replace(caller, scopes=None, via="system"), row, SHARE)
    asleep, rule = ("", "") if decision.allowed else (why(decision, _), decision.rule)
    left = _("you are not a member of the project any more")
    gone = left_projects(db, row)
    people = db.scalars(select(ReleaseShare).where(ReleaseShare.release == row.id))
    projects = db.execute(
        select(ProjectShare, Project.title)
        .join(Project, Project.id == ProjectShare.project)
        .where(ProjectShare.release == row.id)
    )
    found = [ShareLine(email=each.email, project="", title="", shared=each.shared, asleep=asleep, rule=rule) for each in people]
    for each, title in projects:
        told = (left, "project") if each.project in gone else (asleep, rule)
        found.append(ShareLine(email="", project=each.project, title=title, shared=each.shared, asleep=told[0], rule=told[1]))
    return sorted(found, key=lambda each: (each.shared, each.email, each.project))


def rename(hub: Hub, db: Db, caller: Caller, row: StoredRelease, title: str) -> None:
    """Another name for it; an empty one shows its question."""
    told = " ".join(title.split())
    check_title(told)
    row.title = told
    _told(hub, db, caller, "release.rename", row)


def _told(hub: Hub, db: Db, caller: Caller, action: str, row: StoredRelease, **details: Any) -> None:
    write(hub, db, caller, action, kind=kind_of(hub, row).trail, object_id=row.id, data_sets=list(row.data_sets), **details)
