"""What a steward should look at: behaviour that is new for a person, and questions that would be subtracted from one another.

The rules are pure functions of a history and one question more (`notices`); `watch` applies them after each question and keeps
what they found, once a day for each kind. Ordinary work makes none: a first week, a total split by one condition, the same
dashboard every morning. An alert accuses nobody, and changes nothing that a person may do.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any, TypeAlias

from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from cloister.errors import CloisterError, Missing
from cloister.hub.hub import ITSELF, Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.trail.fingerprints import closeness
from cloister.hub.platform.trail.profiles import Histories, History, Question, questions_since
from cloister.hub.platform.trail.writing import write
from cloister.hub.records.trail import Alert

N_ = str
"""Marks an English text that is translated where it is shown."""

KINDS: Mapping[str, str] = {
    "volume": N_("Many more queries than usual"),
    "hours": N_("At an hour never used before"),
    "columns": N_("Columns never touched before"),
    "differencing": N_("Two queries that differ by a few people"),
    "variations": N_("Many variations of one query"),
    "origin": N_("The same rows as another owner's, under another population"),
    "shared": N_("Two data sets over the same rows were closed"),
    "algorithm": N_("An algorithm was stopped"),
}
"""The kinds of alert, with their titles."""
_AGAIN = timedelta(days=1)
_NEAR = 2
"""So many conjuncts may stand in one of two questions and not in the other, for them to be near."""
_LOG = logging.getLogger("cloister.hub.trail")


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """When behaviour counts as changed."""

    days_before_volume: int = 5
    """Days with questions before the usual number a day is known."""
    volume_of_newcomers: int = 300
    deviations: float = 6.0
    """How many robust standard deviations above the median day are too many."""
    least_rise: int = 20
    days_before_hours: int = 10
    stable: timedelta = timedelta(days=30)
    """How long no new column was touched before a new one is news."""
    questions_before_columns: int = 20
    pairs: timedelta = timedelta(days=30)
    """How far back a near-duplicate is looked for."""
    variations: int = 12
    within: timedelta = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that was noticed: names and numbers of questions, nothing of data."""

    kind: str
    about: Mapping[str, Any]


_Noticed: TypeAlias = tuple[int, Question, Notice]


def notices(history: History, question: Question, sensitivity: Sensitivity | None = None) -> Iterator[Notice]:
    """What is new about a question, against the history before it."""
    chosen = sensitivity or Sensitivity()
    yield from _volume(history, question, chosen)
    yield from _hours(history, question, chosen)
    yield from _columns(history, question, chosen)
    yield from _shapes(history, question, chosen)


def usual_most(days: Sequence[int], chosen: Sensitivity) -> int:
    """The most questions a day that are still usual, from the numbers of earlier days: the median, and the median deviation from
    it, which a few odd days do not move.

    >>> usual_most([10, 12, 11, 9, 10, 400], Sensitivity()), usual_most([3], Sensitivity())
    (31, 300)
    """
    if len(days) < chosen.days_before_volume:
        return chosen.volume_of_newcomers
    middle = median(days)
    spread = 1.4826 * median([abs(each - middle) for each in days])
    return int(max(middle + chosen.deviations * spread, 3 * middle, middle + chosen.least_rise))


def _volume(history: History, question: Question, chosen: Sensitivity) -> Iterator[Notice]:
    today = question.when.date()
    most = usual_most([number for day, number in history.days.items() if day != today], chosen)
    asked = history.days[today] + 1
    if asked > most:
        yield Notice(kind="volume", about={"day": today.isoformat(), "questions": asked, "usual at most": most})


def _hours(history: History, question: Question, chosen: Sensitivity) -> Iterator[Notice]:
    if len([day for day in history.days if day != question.when.date()]) < chosen.days_before_hours:
        return
    hour = question.when.hour
    if not any((hour + shift) % 24 in history.hours for shift in (-1, 0, 1)):
        yield Notice(kind="hours", about={"hour": hour, "usual": sorted(history.hours)})


def _columns(history: History, question: Question, chosen: Sensitivity) -> Iterator[Notice]:
    new = [column for column in question.columns if column not in history.first]
    if not new or history.begun is None or history.total < chosen.questions_before_columns:
        return
    if question.when - max(history.first.values(), default=history.begun) >= chosen.stable:
        yield Notice(kind="columns", about={"columns": new, "data sets": list(question.data_sets)})


def _shapes(history: History, question: Question, chosen: Sensitivity) -> Iterator[Notice]:
    """A question that hardly differs from an earlier one, and one that is among many variations; of these so many are counted as
    are needed to say so."""
    shape = question.shape
    if shape is None:
        return
    variations, here = 1, shape.parts
    narrow = False
    paired, lately = question.when - chosen.pairs, question.when - chosen.within
    for other, when in reversed(history.shapes.items()):
        if when < paired:
            break
        if narrow and (variations >= chosen.variations or when < lately):  # there is nothing more to tell
            break
        if other.aggregate != shape.aggregate:
            continue
        there = other.parts
        apart = len(here) + len(there) if here.isdisjoint(there) else len(here ^ there)  # most have nothing in common
        if apart and when >= lately:
            variations += 1
        if apart <= _NEAR and not narrow and closeness(shape, other) == "narrow":
            narrow = True
            told = {"conditions": [each.text for each in shape.conditions], "earlier": [each.text for each in other.conditions]}
            yield Notice(kind="differencing", about={"shape": shape.aggregate, **told, "when": when.isoformat()})
    if variations >= chosen.variations:
        minutes = int(chosen.within.total_seconds() // 60)
        yield Notice(kind="variations", about={"shape": shape.aggregate, "variations": variations, "minutes": minutes})


def watch(hub: Hub, caller: Caller, line: int, sensitivity: Sensitivity | None = None) -> list[str]:
    """Look at a question of the caller's, once its line of the audit log is committed; the ids of new alerts.

    Lines that came in since the last look are looked at too, in their order: whichever process is first judges each. The answer
    is on its way by then, so a database that is away makes no error here: it is logged, and the next look reads on.
    """
    try:
        return _watch(hub, caller, line, sensitivity)
    except (CloisterError, SQLAlchemyError) as error:
        _LOG.warning("a question could not be looked at: %s", type(error).__name__)
        return []


def _watch(hub: Hub, caller: Caller, line: int, sensitivity: Sensitivity | None) -> list[str]:
    histories = Histories.of(hub)
    noticed: list[_Noticed] = []
    with histories.turn, hub.database.reading() as db:
        history = histories.before(db, caller.id, line)
        for number, question in questions_since(db, caller.id, history.seen):
            noticed += [(number, question, each) for each in notices(history, question, sensitivity)]
            history.add(question, number)
    if not noticed:
        return []
    with hub.database.begin() as db:
        made = [_keep(hub, db, caller.id, each) for each in _alike(noticed)]
    return [each for each in made if each]


def _alike(noticed: Sequence[_Noticed]) -> list[list[_Noticed]]:
    """What was noticed, with what is the same within a day put together, so that it is kept at one go."""
    found: list[list[_Noticed]] = []
    open_: dict[tuple[str, object], list[_Noticed]] = {}
    for each in noticed:
        _, question, notice = each
        same = (notice.kind, notice.about.get("shape"))
        if same not in open_ or question.when - open_[same][0][1].when >= _AGAIN:
            open_[same] = []
            found.append(open_[same])
        open_[same].append(each)
    return found


def _keep(hub: Hub, db: Session, person: str, alike: Sequence[_Noticed]) -> str:
    """A new alert, or some times more for the same within a day."""
    line, question, notice = alike[0]
    last = alike[-1][0]
    near = (Alert.created > question.when - _AGAIN, Alert.created < question.when + _AGAIN)
    recent = select(Alert).where(Alert.person == person, Alert.kind == notice.kind, *near)
    for earlier in db.scalars(recent.order_by(Alert.created.desc())):
        if earlier.about.get("shape") == notice.about.get("shape"):
            new = sum(each[0] > earlier.about["last line"] for each in alike)
            if new:
                earlier.about = {**earlier.about, "times": int(earlier.about["times"]) + new, "last line": last}
            return ""
    return raise_alert(hub, db, person, notice.kind, line, {**notice.about, "last line": last, "times": len(alike)})


def raise_alert(hub: Hub, db: Session, person: str, kind: str, line: int, about: Mapping[str, Any]) -> str:
    """An alert about what a line of the audit log says of a person, in the transaction of `db`: its id."""
    told = {"last line": line, "times": 1, **about, "line": line}
    alert = Alert(id=new_id(), person=person, kind=kind, about=told, created=hub.now())
    db.add(alert)
    db.flush()
    write(hub, db, ITSELF, "alert.raise", kind="alert", object_id=alert.id, person=person, alert=kind)
    return alert.id


def alerts(db: Session, *, seen: bool | None = None, person: str = "", limit: int = 200) -> list[Alert]:
    """Alerts, the newest first."""
    found = select(Alert).order_by(Alert.created.desc(), Alert.id).limit(limit)
    if seen is not None:
        found = found.where(Alert.seen.is_not(None) if seen else Alert.seen.is_(None))
    if person:
        found = found.where(Alert.person == person)
    rows = list(db.scalars(found))
    db.expunge_all()
    return rows


def unseen(db: Session) -> int:
    """How many alerts nobody has looked at."""
    return db.scalar(select(func.count()).select_from(Alert).where(Alert.seen.is_(None))) or 0


def mark_seen(hub: Hub, db: Session, caller: Caller, alert: str) -> None:
    """Write down that somebody looked; the first who did stays."""
    if db.get(Alert, alert) is None:
        raise Missing("There is no such alert", why="nothing is known under that id", instead="/trail/alerts")
    changed = db.execute(
        update(Alert).where(Alert.id == alert, Alert.seen.is_(None)).values(seen=hub.now(), seen_by=caller.id).returning(Alert.id)
    ).all()
    if changed:
        write(hub, db, caller, "alert.see", kind="alert", object_id=alert)
