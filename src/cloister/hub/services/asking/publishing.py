"""Published views: answers that pages of other sites show in a frame, to anyone, until a moment.

To publish is an action of its own (`release.publish`), which each owner of the data behind an answer grants, with an end. A view
holds no number: at each look every answer of it is decided on, for whoever published it as they stand now, at the network of the
reader and without a second factor. What is closed by then is left out; a view of which nothing is left is missing, as is one that
was revoked, one that is over, and one that never was: no reader learns which.

A view may be framed by the origins that it names, which a browser holds to (`frame-ancestors`). That is no protection of the
answers: whoever has its address can open it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidParameter, Missing
from cloister.hub.database import readable
from cloister.hub.decisions.callers import caller_for
from cloister.hub.decisions.policy.shares import PUBLISH
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access import days_in
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import PublishedView, StoredRelease
from cloister.hub.releases.derived import decided
from cloister.hub.releases.kinds import ANSWERS
from cloister.hub.releases.reading import own_release
from cloister.hub.services.asking.answers import unpacked
from cloister.hub.services.asking.boards import MOST_PARTS, SHOWS
from cloister.printable import is_text

LONGEST = timedelta(days=366)
_MOST_ORIGINS, _LISTED = 10, 200
_HOST = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
_ORIGIN = re.compile(rf"(?:https://{_HOST}|http://(?:localhost|127\.0\.0\.1))(?::[0-9]{{1,5}})?")


def publish(
    hub: Hub, db: Db, caller: Caller, parts: Sequence[Mapping[str, str]], *, title: str, origins: str, until: str
) -> PublishedView:
    """A new view of answers of one's own, each of which may be published now."""
    rows = [own_release(hub, db, caller, part["release"], PUBLISH) for part in parts]
    if not 0 < len(rows) <= MOST_PARTS:
        raise _refused(f"it must show 1 to {MOST_PARTS} answers", "an answer of yours")
    if any(row.kind != ANSWERS or unpacked(row).marked for row in rows):
        raise _refused("an answer of it has no guarantee", "answers to queries")
    name = " ".join(title.split())
    if not is_text(name):
        raise _refused("its title must be a line of 1 to 200 characters", "Visits by ward")
    shows = [part["shows"] if part.get("shows") in SHOWS else SHOWS[0] for part in parts]
    kept = [{"release": row.id, "shows": each} for row, each in zip(rows, shows, strict=True)]
    sources = sorted({number for row in rows for number in row.data_sets})
    row = PublishedView(
        id=new_id(), person=caller.id, title=name, parts=kept, data_sets=sources, created=hub.now(), revoked_by=""
    )
    row.origins, row.until = origins_in(origins), _end(hub, until)
    db.add(row)
    told: dict[str, Any] = {"origins": row.origins, "until": row.until.isoformat(), "releases": [each.id for each in rows]}
    write(hub, db, caller, PUBLISH, kind="published view", object_id=row.id, data_sets=sources, **told)
    return row


def views_of(db: Db, caller: Caller) -> list[tuple[PublishedView, bool]]:
    """The views that somebody made, and those of answers about their data sets, the newest first (of one moment, by title); and
    which they made.
    """
    owned = set(db.scalars(select(DataSet.id).where(DataSet.owner == caller.id)))
    rows = db.scalars(select(PublishedView).order_by(PublishedView.created.desc(), PublishedView.title, PublishedView.id))
    found = [row for row in readable(rows) if row.person == caller.id or not owned.isdisjoint(map(str, row.data_sets))]
    found.sort(key=lambda row: row.revoked is not None)  # those that are still shown come first
    return [(row, row.person == caller.id) for row in found[:_LISTED]]


def revoke_view(hub: Hub, db: Db, caller: Caller, number: str) -> None:
    """Show it to nobody from now on: by whoever made it, and by each owner of its data."""
    row = db.get(PublishedView, number)
    owners = select(DataSet.id).where(DataSet.owner == caller.id, DataSet.id.in_([] if row is None else row.data_sets))
    if row is None or (row.person != caller.id and not db.scalars(owners).first()):
        raise Missing("There is no such published view", why="it does not exist, or is not yours", instead="/published")
    if row.revoked is None:
        row.revoked, row.revoked_by = hub.now(), caller.id
        write(hub, db, caller, "release.unpublish", kind="published view", object_id=row.id, data_sets=list(row.data_sets))


def seen_view(hub: Hub, db: Db, reader: Caller, number: str) -> tuple[PublishedView, list[tuple[StoredRelease, str]]]:
    """A view for a reader who may be anyone, and what it shows now."""
    row = db.get(PublishedView, number)
    maker = caller_for(hub, db, row.person) if row is not None and row.revoked is None and row.until > hub.now() else None
    shown = list[tuple[StoredRelease, str]]()
    if row is not None and maker is not None:
        there = replace(maker, address=reader.address, second_factor=False)
        for part in row.parts:
            release = db.get(StoredRelease, part["release"])
            if release is not None and release.withdrawn is None and decided(hub, db, there, release, PUBLISH).allowed:
                shown.append((release, part["shows"]))
    if row is None or not shown:
        raise Missing(
            "There is nothing to show here", why="the view ended, or never was", instead="ask the people who run the page"
        )
    return row, shown


def may_publish(hub: Hub, db: Db, caller: Caller, numbers: Sequence[str]) -> bool:
    """Whether a page offers it: each of the answers is one's own, and may be published now."""
    try:
        return bool(numbers) and all(own_release(hub, db, caller, each, PUBLISH) for each in numbers)
    except CloisterError:
        return False


def origins_in(text: str) -> list[str]:
    """The origins that a form names, one a line or between spaces.

    >>> origins_in("https://www.example.org\\nHTTPS://Stats.Example.org:8443/")
    ['https://www.example.org', 'https://stats.example.org:8443']
    >>> origins_in("https://*.example.org")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The view was not published: an origin is https:// and one host, with nothing behind it.
      Instead: https://www.example.org
    """
    found = list(dict.fromkeys(each.lower().removesuffix("/") for each in text.split()))
    if not 0 < len(found) <= _MOST_ORIGINS or not all(_ORIGIN.fullmatch(each) for each in found):
        raise _refused("an origin is https:// and one host, with nothing behind it", "https://www.example.org")
    return found


def frame_policy(row: PublishedView) -> str:
    """The content security policy of a view: it runs nothing, sends nothing, and is framed by its origins alone."""
    return (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {' '.join(row.origins)}"
    )


def _end(hub: Hub, day: str) -> datetime:
    """The last moment of a day on the hub's clock."""
    try:
        moment = datetime.fromisoformat(days_in({"until": day}, hub.settings.zone)["until"])
        good = len(day) == len("2026-12-31") and hub.now() < moment <= hub.now() + LONGEST
    except (TypeError, ValueError):  # no day, or a moment without a zone
        good = False
    if not good:
        raise _refused("it needs a last day, within a year", "a day that comes")
    return moment


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The view was not published", why=why, instead=instead)
