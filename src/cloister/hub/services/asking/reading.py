"""Which releases somebody may see: their own, those shown to them, and those of their projects; and which a program may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlalchemy import ColumnElement, false, or_, select

from cloister.errors import AccessDenied
from cloister.hub.problems import Missing
from cloister.hub.records.asking import ProjectShare, ReleaseShare, StoredRelease
from cloister.hub.releases.derived import check_derived, newest_open
from cloister.hub.services.access import refusal_of
from cloister.hub.services.asking.lending import is_own, shown_to
from cloister.session import Release

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Which", "own_release", "read_release", "releases_of", "seen_release", "unpacked"]

Which = Literal["all", "mine", "shown", "projects"]


def seen_release(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see") -> StoredRelease:
    """A release that this person may see (or download, or share); any other is missing, whether it exists or not.

    The policy that it inherited is asked at each use: what its data may no longer be used for, it may not either. So are the
    rules and the grants of what it came from (`sources.py`), and of another's, whether it is shown still (`lending.py`).
    """
    row = db.scalar(select(StoredRelease).where(StoredRelease.id == number, _readable(caller, "all")))
    if row is None:
        raise _missing()
    asleep = shown_to(hub, db, caller, row)
    if asleep is not None:
        raise refusal_of(db, asleep)
    check_derived(hub, db, caller, row, action)
    return row


def read_release(hub: Hub, db: Db, caller: Caller, number: str) -> StoredRelease:
    """A release as a program reads it. An answer of one's own is read as it was answered; what another shows is to be looked at,
    and a program that reads its table takes it as a file does: as a download.
    """
    row = seen_release(hub, db, caller, number)
    if is_own(hub, db, caller, row):
        return row
    try:
        check_derived(hub, db, caller, row, "release.download")
    except AccessDenied as error:
        raise AccessDenied(
            error.what,
            why=f"{error.why}; a program reads what others show you as it downloads it",
            instead=f"look at it in a browser: /releases/{row.id}; or {error.instead}",
            rule=error.rule,
        ) from None
    return row


def own_release(hub: Hub, db: Db, caller: Caller, number: str, action: str) -> StoredRelease:
    """A release of the caller's own, to show it to others or to name it; another's is not told from none."""
    owns = (StoredRelease.id == number) & (StoredRelease.person == caller.id)
    if db.scalar(select(StoredRelease.id).where(owns)) is None:
        raise _missing()
    return seen_release(hub, db, caller, number, action)


def releases_of(
    hub: Hub,
    db: Db,
    caller: Caller,
    *,
    which: Which = "all",
    search: str = "",
    project: str = "",
    after: str = "",
    limit: int = 50,
) -> list[StoredRelease]:
    """The newest releases that somebody may see now; `after` is the id of the last one that was seen.

    A title and a question tell of data too: a release that was closed to this person since is not in the list either.
    """
    wanted = _readable(caller, which)
    if project:
        wanted &= _of_projects([project])
    for word in search.split()[:10]:
        texts = (StoredRelease.title, StoredRelease.sql, StoredRelease.purpose)
        wanted &= or_(*(text.icontains(word, autoescape=True) for text in texts))
    known = _readable(caller, "all")

    def shown(row: StoredRelease) -> bool:
        return shown_to(hub, db, caller, row) is None

    return newest_open(hub, db, caller, StoredRelease, wanted, after=after, limit=limit, known=known, shown=shown)


def unpacked(row: StoredRelease) -> Release:
    """The release itself."""
    return Release.from_json(row.body.decode())


def _readable(caller: Caller, which: Which) -> ColumnElement[bool]:
    shown = select(ReleaseShare.release).where(ReleaseShare.email == caller.email)
    ways: dict[str, ColumnElement[bool]] = {
        "mine": StoredRelease.person == caller.id,
        "shown": StoredRelease.id.in_(shown) if caller.email else false(),
        "projects": _of_projects(sorted(caller.projects)),
    }
    chosen = or_(*ways.values()) if which == "all" else ways[which]
    return chosen & StoredRelease.withdrawn.is_(None)


def _of_projects(projects: list[str]) -> ColumnElement[bool]:
    shown = select(ProjectShare.release).where(ProjectShare.project.in_(projects))
    return or_(StoredRelease.project.in_(projects), StoredRelease.id.in_(shown)) if projects else false()


def _missing() -> Missing:
    return Missing("There is no such release", why="it does not exist, or was not shown to you", instead="/releases")
