"""Which releases somebody may see: their own, those shown to them, and those of their projects; which a
program may read; and how one leaves as a file.

A table that became a data set is also for those to whom a grant opens every column and every row of that.

Whether somebody is shown still what another asked: by a share, which is a delegation, or as a member of its project.

Facts are read here, and the policy decides (`policy/shares.py`): of a share, whether whoever gave it may give it now, at the
network and with the sign-in of its reader; of what was asked in a project, whether the owner of the data ever let this member in.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlalchemy import ColumnElement, false, or_, select, true
from sqlalchemy.orm import Session as Db
from starlette.responses import Response, StreamingResponse

from cloister.errors import AccessDenied, Missing
from cloister.hub.decisions.callers import caller_for
from cloister.hub.decisions.checking import allowed, context_of, refusal_of
from cloister.hub.decisions.facts import facts_of, who_of
from cloister.hub.decisions.policy import Decision, Object
from cloister.hub.decisions.policy.shares import SHARE, asleep, let_in, not_let_in
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import left
from cloister.hub.records.access import Algorithm, Grant, ProjectMember
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import grant_in_row
from cloister.hub.records.releases import ProjectShare, ReleaseShare, StoredRelease
from cloister.hub.releases.derived import check_derived, decided, newest_open, sources_of
from cloister.hub.releases.kinds import ANSWERS, View, Which, kind_of
from cloister.hub.web.languages import Language, language_of
from cloister.hub.web.routing import attachment


def seen_release(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see", *, kind: str = "") -> StoredRelease:
    """A release that this person may see (or download, or share); any other is missing, whether it exists or not. With a `kind`
    it is one of that kind, or missing.

    The policy that it inherited is asked at each use: what its data may no longer be used for, it may not either. So are the
    rules and the grants of what it came from (`derived.py`), and of another's, whether it is shown still (`shown_to`).
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
    sql: str = "",
    after: str = "",
    limit: int = 50,
) -> list[StoredRelease]:
    """The newest releases that somebody may see now, of a kind ("all": of every one), or of this very query; `after` is the id of
    the last one that was seen.

    A title and a question say something about data too: a release that was closed to this person since is not in the list either.
    """
    kinds = [each for each in hub.kinds.values() if kind in ("all", each.name)]
    of_kind = StoredRelease.kind.in_([each.name for each in kinds])
    granted = _all_granted(hub, db, caller) if any(each.audience == "data set" for each in kinds) else frozenset()
    opened: ColumnElement[bool] = StoredRelease.id.in_(sorted(granted)) if granted else false()
    known = of_kind & (_readable(caller, "all") | opened)
    wanted = of_kind & (_readable(caller, which) | (opened if which in ("all", "shown") else false()))
    if project:
        wanted &= _of_projects([project])
    if sql:
        wanted &= StoredRelease.sql == sql
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
    """The projects that a release was shown to, and that the analyst who bought it has left."""
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


def file_of(
    hub: Hub,
    caller: Caller,
    number: str,
    form: str,
    *,
    kind: str = "",
    confidence: float = 0.95,
    language: Language | None = None,
) -> Response:
    """The file. With a `kind` any other release is missing."""
    with hub.database.reading() as db:
        row = seen_release(hub, db, caller, number, "release.download", kind=kind)
    own = kind_of(hub, row)
    if form not in own.files:
        raise Missing("There is no such file", why="it is not available in this form", instead=", ".join(own.files))
    which = own.files[form]
    found = which.make(View(hub=hub, caller=caller, row=row, language=language or language_of("en"), confidence=confidence))
    left(hub, caller, own.trail, row.id, row.data_sets, row.purpose, form)
    if isinstance(found.body, bytes):
        return Response(found.body, headers=attachment(found.name), media_type=which.media_type)
    return StreamingResponse(found.body, headers=attachment(found.name), media_type=which.media_type)
