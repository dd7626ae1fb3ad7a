"""Whether somebody is shown still what another asked: by a share, which is a delegation, or as a member of its project.

Facts are read here, and the policy decides (`hub/policy/shares.py`): of a share, whether whoever gave it may give it now, at the
network and with the log-in of its reader; of what was asked in a project, whether the owner of the data ever let this member in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.hub.policy import Decision, Object
from cloister.hub.policy.shares import SHARE, asleep, let_in, not_let_in
from cloister.hub.records.access import Grant, ProjectMember
from cloister.hub.records.policies import grant_in_row
from cloister.hub.records.releases import ProjectShare, ReleaseShare, StoredRelease
from cloister.hub.releases.derived import decided, sources_of
from cloister.hub.services.access import who_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


def is_own(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> bool:
    """Whether an answer is one's own: asked by oneself, or in a project into whose work its owners let one."""
    if row.person == caller.id:
        return True
    return bool(row.project) and row.project in caller.projects and _kept_out(hub, db, caller, row) is None


def shown_to(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> Decision | None:
    """Why somebody who was shown a release is not any more; None where they are. Any one way to it is enough."""
    if is_own(hub, db, caller, row):
        return None
    refusals = list[Decision]()
    for found in _ways(hub, db, caller, row):
        if found is None:
            return None
        refusals.append(found)
    return next(iter(refusals), asleep(row.person, None))  # who is shown it in no way is told that there is none (`reading.py`)


def left_projects(db: Db, row: StoredRelease) -> set[str]:
    """The projects that a release was shown to of which its asker is no member any more."""
    shown = set(db.scalars(select(ProjectShare.project).where(ProjectShare.release == row.id)))
    return shown - set(db.scalars(select(ProjectMember.project).where(ProjectMember.person == row.person)))


def _ways(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> Iterator[Decision | None]:
    """Of each way in which a release came to somebody, the refusal; None where it holds."""
    lent = _lent(hub, db, caller, row)
    if db.get(ReleaseShare, (row.id, caller.email)) is not None:
        yield lent
    shown = set(db.scalars(select(ProjectShare.project).where(ProjectShare.release == row.id))) & caller.projects
    left = left_projects(db, row) if shown else set()
    for project in sorted(shown):
        yield asleep(row.person, None) if project in left else lent
    if row.project and row.project in caller.projects:
        closed = _kept_out(hub, db, caller, row)
        yield None if lent is None or closed is None else not_let_in(closed)


def _lent(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> Decision | None:
    """Why whoever asked a release may not show it to this reader now; None where they may."""
    from cloister.hub.services.accounts import caller_for

    asker = caller_for(hub, db, row.person)
    if asker is None:
        return asleep(row.person, None)
    there = replace(asker, address=caller.address, second_factor=caller.second_factor)
    found = decided(hub, db, there, row, SHARE)
    return None if found.allowed else asleep(row.person, found)


def _kept_out(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> Object | None:
    """The first source into the project's work with which its owner never let somebody. Grants on one that was deleted count."""
    sources, who = sources_of(hub, db, row), who_of(caller)
    wanted = select(Grant).where(Grant.kind == "data-set", Grant.object.in_([each.id for each in sources]))
    given = [(grant.object, grant_in_row(grant)[0]) for grant in db.scalars(wanted)]
    whole = (replace(each, grants=tuple(facts for number, facts in given if number == each.id)) for each in sources)
    return next((each for each in whole if not let_in(who, row.project, each)), None)
