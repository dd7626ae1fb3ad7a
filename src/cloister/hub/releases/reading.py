"""Which releases somebody may see: their own, those shown to them, and those of their projects; and which a program may read.

A table that became a data set is also for those to whom a grant opens every column and every row of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, false, or_, select, true

from cloister.errors import AccessDenied
from cloister.hub.problems import Missing
from cloister.hub.records.access import Algorithm
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import ProjectShare, ReleaseShare, StoredRelease
from cloister.hub.releases.derived import check_derived, newest_open
from cloister.hub.releases.kinds import ANSWERS, Which, kind_of
from cloister.hub.releases.lending import is_own, shown_to
from cloister.hub.services.access import allowed, context_of, facts_of, refusal_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


def seen_release(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see", *, kind: str = "") -> StoredRelease:
    """A release that this person may see (or download, or share); any other is missing, whether it exists or not. With a `kind`
    it is one of that kind, or missing.

    The policy that it inherited is asked at each use: what its data may no longer be used for, it may not either. So are the
    rules and the grants of what it came from (`derived.py`), and of another's, whether it is shown still (`lending.py`).
    """
    row = db.scalar(select(StoredRelease).where(StoredRelease.id == number, StoredRelease.withdrawn.is_(None)))
    if row is None or kind not in ("", row.kind):
        raise _missing(hub, kind)
    public = kind_of(hub, row).audience == "data set"
    if not (public and _granted(hub, db, caller, row, "release.see")):
        if db.scalar(select(StoredRelease.id).where(StoredRelease.id == number, _readable(caller, "all"))) is None:
            raise _missing(hub, kind)
        asleep = shown_to(hub, db, caller, row)
        if asleep is not None:
            raise refusal_of(db, asleep)
    if public and action != "release.see" and row.person != caller.id and not _granted(hub, db, caller, row, action):
        raise AccessDenied(
            "The table was not downloaded", why="you may view it but not download it", instead="ask the owner of its data set"
        )
    # what binds its source now binds everybody; what is granted on it is asked of others where it is another's now
    check_derived(hub, db, caller, row, action, by=row.person if public else "")
    return row


def read_release(hub: Hub, db: Db, caller: Caller, number: str, *, kind: str = "") -> StoredRelease:
    """A release as a program reads it. One of one's own is read as it left; what another shows is to be looked at, and a program
    that reads it takes it as a file does: as a download.
    """
    row = seen_release(hub, db, caller, number, kind=kind)
    if is_own(hub, db, caller, row) or _granted(hub, db, caller, row, "release.see"):
        return row
    try:
        return seen_release(hub, db, caller, number, "release.download", kind=kind)
    except AccessDenied as error:
        raise AccessDenied(
            error.what,
            why=f"{error.why}; a program reads what others show you as it downloads it",
            instead=f"look at it in a browser: /releases/{row.id}; or {error.instead}",
            rule=error.rule,
        ) from None


def own_release(hub: Hub, db: Db, caller: Caller, number: str, action: str) -> StoredRelease:
    """A release of the caller's own, to show it to others or to name it; another's is not told from none."""
    owns = (StoredRelease.id == number) & (StoredRelease.person == caller.id)
    if db.scalar(select(StoredRelease.id).where(owns)) is None:
        raise _missing(hub)
    return seen_release(hub, db, caller, number, action)


def releases_of(
    hub: Hub,
    db: Db,
    caller: Caller,
    *,
    kind: str = ANSWERS,
    which: Which = "all",
    search: str = "",
    project: str = "",
    after: str = "",
    limit: int = 50,
) -> list[StoredRelease]:
    """The newest releases that somebody may see now, of a kind ("all": of every one); `after` is the id of the last one that was
    seen.

    A title and a question tell of data too: a release that was closed to this person since is not in the list either.
    """
    kinds = [each for each in hub.kinds.values() if kind in ("all", each.name)]
    of_kind = StoredRelease.kind.in_([each.name for each in kinds])
    granted = _all_granted(hub, db, caller) if any(each.audience == "data set" for each in kinds) else frozenset()
    opened: ColumnElement[bool] = StoredRelease.id.in_(sorted(granted)) if granted else false()
    known = of_kind & (_readable(caller, "all") | opened)
    wanted = of_kind & (_readable(caller, which) | (opened if which in ("all", "shown") else false()))
    if project:
        wanted &= _of_projects([project])
    for word in search.split()[:10]:
        texts = (StoredRelease.title, StoredRelease.sql, StoredRelease.purpose)
        wanted &= or_(*(text.icontains(word, autoescape=True) for text in texts))

    def shown(row: StoredRelease) -> bool:
        return row.id in granted or shown_to(hub, db, caller, row) is None

    return newest_open(hub, db, caller, wanted, after=after, limit=limit, known=known, shown=shown)


def titles_of(db: Db, ids: Iterable[str]) -> dict[str, str]:
    """The titles of algorithms, by id; of withdrawn ones too, since what was asked under them stays."""
    wanted = sorted({each for each in ids if each})
    if not wanted:
        return {}
    return {row.id: row.title for row in db.execute(select(Algorithm.id, Algorithm.title).where(Algorithm.id.in_(wanted)))}


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


def _granted(hub: Hub, db: Db, caller: Caller, row: StoredRelease, action: str) -> bool:
    """Whether a grant opens every column and every row of the data set that a release became, to somebody else."""
    return row.id in _all_granted(hub, db, caller, action, StoredRelease.id == row.id)


def _all_granted(
    hub: Hub, db: Db, caller: Caller, action: str = "release.see", of: ColumnElement[bool] | None = None
) -> frozenset[str]:
    """The same of all that became data sets: their ids."""
    others = (StoredRelease.person != caller.id) & (StoredRelease.data_set != "") & StoredRelease.withdrawn.is_(None)
    wanted = select(StoredRelease.id, StoredRelease.data_set, StoredRelease.purpose, DataSet.state)
    wanted = wanted.join(DataSet, DataSet.id == StoredRelease.data_set).where(others, DataSet.state == "open")
    rows, found = db.execute(wanted.where(true() if of is None else of)).all(), set()
    known = facts_of(hub, db).data_sets if rows else {}
    for row in rows:
        made = known.get(row.data_set)
        if made is None:
            continue
        context = context_of(hub, caller, purpose=row.purpose, columns={made.id: made.columns})
        decision = allowed(hub, db, caller, action, made, context)
        narrowed = decision.narrowed
        if decision.allowed and not narrowed.rows and (narrowed.columns is None or narrowed.columns >= made.columns):
            found.add(row.id)
    return frozenset(found)


def _missing(hub: Hub, kind: str = "") -> Missing:
    own = hub.kinds.get(kind)
    what, where = ("There is no such release", "/releases") if own is None else (own.missing, own.path)
    return Missing(what, why="it does not exist, or was not shown to you", instead=where)
