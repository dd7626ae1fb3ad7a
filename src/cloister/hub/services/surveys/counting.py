"""Reports as they come in, and the tally of them.

A report is checked in full before it is kept, and is kept apart from its token: the token's hash says that an invitation was
used, the report gets a token drawn again, and no table puts the two side by side (the database's own log can, for anyone who
administers it). The tally is brought up to date when somebody looks at it.
"""

import hashlib
import ipaddress
import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, Conflict, InvalidParameter, Missing, TooMany
from cloister.hub.hub import Hub
from cloister.hub.ids import new_id
from cloister.hub.records.accounts import Person
from cloister.hub.records.surveys import HeldJointSurvey, HeldSurvey, JointTicket, SurveyRefusal, SurveyReport, SurveyTicket
from cloister.hub.services.surveys.composing import of_text
from cloister.hub.web.languages import N_
from cloister.local.survey import Report, Tally, hash_of, read_report
from cloister.local.survey.reports import fingerprint_of
from cloister.local.survey.tokens import new_token

_CHUNK = 5_000
_MOST_REFUSALS = 10_000
"""So many refusals are kept of one survey; a flood of garbage fills no disk."""


Kind = TypeVar("Kind", HeldSurvey, HeldJointSurvey)


def asked(db: Db, number: str, kind: type[Kind]) -> Kind:
    """A survey that was opened, for anyone who has its link; nobody else may see a draft."""
    row = db.get(kind, number)
    if row is None or row.state in ("draft", "joining"):
        raise Missing(
            "There is no such survey", why="it does not exist, or is not open yet", instead="the link that you were given"
        )
    return row


def receive(hub: Hub, number: str, sent: Mapping[str, Any], *, address: str = "") -> bool:
    """Keep a report; False where the very same one was kept before: whether somebody sent it twice, or two people were given one
    token and drew the same values, nobody can tell, so it counts once, and its sender is told, also after the survey was closed:
    the answer to the first one may have been lost. Garbage is counted under its reason, and refused. `address` is looked at by
    the brake of a survey that whoever has its link may answer, and is kept nowhere."""
    with hub.database.reading() as db:
        row = asked(db, number, HeldSurvey)
        survey, state, invited = of_text(row.body), row.state, row.invited
    if not invited:
        check_rate_limit(hub, number, address)
    read = read_report(survey, sent)
    if isinstance(read, str):
        if state != "open":
            raise closed()
        _refuse(hub, number, read)
        raise InvalidParameter("The report is invalid", why=_WHY.get(read, _STRANGE), instead="what the survey's page makes")
    report, _rows = read
    ticket = hash_of(report.token) if invited else fingerprint_of(report)
    try:
        with hub.database.begin() as db:
            if invited:
                use_ticket(db, SurveyTicket, number, ticket)
            else:
                db.add(SurveyTicket(digest=ticket, survey=number, used=True))
                db.flush()
            if not is_open(db, HeldSurvey, number):
                raise closed()
            db.add(SurveyReport(id=new_id(), survey=number, body=_apart(report)))
    except IntegrityError:
        return False
    return True


def receive_all(hub: Hub, number: str, sent: Iterable[Mapping[str, Any]]) -> int:
    """Keep many reports to an open link at once, such as a demonstration's; one that is no report is refused with all of them."""
    with hub.database.begin() as db:
        survey = of_text(asked(db, number, HeldSurvey).body)
        rows = []
        for each in sent:
            read = read_report(survey, each)
            if isinstance(read, str):
                raise InvalidParameter(
                    "The report is invalid", why=_WHY.get(read, _STRANGE), instead="what the survey's page makes"
                )
            rows.append(read[0])
        db.add_all([SurveyTicket(digest=fingerprint_of(report), survey=number, used=True) for report in rows])
        db.add_all([SurveyReport(id=new_id(), survey=number, body=_apart(report)) for report in rows])
        return len(rows)


def counted(db: Db, row: HeldSurvey) -> Tally:
    """The tally of all that came in, brought up to date in this transaction."""
    survey = of_text(row.body)
    db.execute(select(HeldSurvey.id).where(HeldSurvey.id == row.id).with_for_update())
    db.refresh(row)
    tally = Tally.from_json(survey, row.tally) if row.tally else Tally(survey)
    new = select(SurveyReport.id, SurveyReport.body).where(SurveyReport.survey == row.id, SurveyReport.counted.is_(False))
    grown = False
    while some := db.execute(new.limit(_CHUNK)).all():
        tally.add(body for _, body in some)
        tally.used.clear()  # tokens are the tickets' business
        seen = [name for name, _ in some]
        db.execute(update(SurveyReport).where(SurveyReport.id.in_(seen)).values(counted=True))
        grown = True
    if grown:
        row.tally = tally.to_json()
    return tally


def answers_of(db: Db, numbers: list[str]) -> Counter[str]:
    """How many reports each of these surveys has."""
    wanted = select(SurveyReport.survey, func.count()).where(SurveyReport.survey.in_(numbers)).group_by(SurveyReport.survey)
    return Counter({row[0]: row[1] for row in db.execute(wanted)})


def refused_of(db: Db, number: str) -> Counter[str]:
    """How many reports were refused, by reason."""
    wanted = select(SurveyRefusal.reason, func.count()).where(SurveyRefusal.survey == number).group_by(SurveyRefusal.reason)
    return Counter({row[0]: row[1] for row in db.execute(wanted)})


_STRANGE = N_("it is not a report")
_WHY = {
    "impossible values": N_("it has values that this survey never sends"),
    "of an unknown level": N_("it has no level of this survey for some question"),
    "of another format": N_("another version of cloister made it"),
    "of another survey": N_("it is of another survey"),
    "of another version": N_("it is of another version of this survey"),
    "other questions": N_("it answers other questions"),
    "over the cap": N_("its levels add up to more than this survey allows"),
    "too long": N_("it is too long"),
    "without a token": N_("it has no token"),
}


def _apart(report: Report) -> str:
    """The report under a token of its own."""
    return replace(report, token=new_token()).to_json()


def is_open(db: Db, kind: type[Kind], number: str, *, lock: bool = False) -> bool:
    """Whether reports are taken: not while its author is blocked, since nobody could read them."""
    wanted = select(kind.state).join(Person, Person.id == kind.person).where(kind.id == number, ~Person.blocked)
    return db.scalar(wanted.with_for_update(read=True, of=kind) if lock else wanted) == "open"


def use_ticket(db: Db, kind: type[SurveyTicket | JointTicket], number: str, ticket: str) -> None:
    """Use an invitation up, at most once however many try at a time."""
    mine = (kind.digest == ticket) & (kind.survey == number)
    done = db.execute(update(kind).where(mine, kind.used.is_(False)).values(used=True))
    if getattr(done, "rowcount", 0) != 1:
        raise not_invited()


def not_invited() -> AccessDenied:
    """The refusal of a report without a good invitation."""
    return AccessDenied(
        "The report was not accepted",
        why="its invitation was used already, or is not one of this survey",
        instead="the link that you were given, once",
    )


def closed() -> Conflict:
    """The refusal of a report that came too late."""
    return Conflict("The report was not accepted", why="the survey is closed", instead="another survey")


def _refuse(hub: Hub, number: str, reason: str) -> None:
    with hub.database.begin() as db:
        kept = db.scalar(select(func.count()).select_from(SurveyRefusal).where(SurveyRefusal.survey == number)) or 0
        if kept < _MOST_REFUSALS:
            db.add(SurveyRefusal(id=new_id(), survey=number, reason=reason))


_PART = "survey brake"
_HOUR = 3600.0
_MOST = 100_000
"""So many networks are counted at once; beyond, those that sent least recently are forgotten."""


class RateLimit:
    """What networks have used up.

    Each network has so many reports, and gets used-up ones back evenly over an hour; a whole class behind one address still
    gets in. What is counted lives in this process's memory alone, under names made with a key that dies with the process, and
    is forgotten as soon as it is full again: no address is kept, and nothing tells later which network answered.

    What it can't do: many networks together (a botnet, a mobile carrier) send as much as they like; several processes of a hub
    each count for themselves, and a restart counts again. Whoever needs to count people asks by invitation, where nothing of
    this applies.

    >>> brake = RateLimit(2)
    >>> noon = datetime(2026, 1, 1, 12)
    >>> [brake.wait("survey", "192.0.2.7", noon) for _ in range(3)]
    [0, 0, 1800]
    >>> brake.wait("survey", "192.0.2.8", noon), brake.wait("another", "192.0.2.7", noon)
    (0, 0)
    """

    def __init__(self, hourly: int) -> None:
        self._hourly = hourly
        self._key = new_id().encode()
        self._used: dict[bytes, tuple[float, datetime]] = {}
        self._lock = threading.Lock()

    def wait(self, survey: str, address: str, now: datetime) -> int:
        """Count a report; or the seconds until one may come again."""
        name = hashlib.blake2b(f"{survey} {_network(address)}".encode(), key=self._key, digest_size=16).digest()
        with self._lock:
            used, last = self._used.pop(name, (0.0, now))
            passed = max(0.0, (now - last).total_seconds())  # a clock that was put back makes nobody wait for longer
            used = max(0.0, used - self._hourly * passed / _HOUR)
            full = used > self._hourly - 1
            self._used[name] = (used if full else used + 1, now)  # the last one of the dictionary
            if len(self._used) > _MOST:
                self._forget(now)
        return math.ceil((used - self._hourly + 1) * _HOUR / self._hourly) if full else 0

    def _forget(self, now: datetime) -> None:
        """Those that have everything back; and if need be the first half."""
        hour = self._hourly / _HOUR
        self._used = {name: (used, at) for name, (used, at) in self._used.items() if used > hour * (now - at).total_seconds()}
        for name in list(self._used)[: len(self._used) - _MOST // 2 if len(self._used) > _MOST else 0]:
            del self._used[name]


def check_rate_limit(hub: Hub, survey: str, address: str) -> None:
    """Refuse a report whose network has sent too many; nothing where the hub sets no limit, or a report comes from no network."""
    hourly = hub.settings.survey_hourly
    if hourly < 1 or not address:
        return
    brake: RateLimit = hub.parts.setdefault(_PART, RateLimit(hourly))
    seconds = brake.wait(survey, address, hub.now())
    if seconds:
        raise TooMany(
            "The report has to wait",
            why="many reports to this survey came from your network within the hour",
            instead=f"send it again in {seconds} seconds",
            after=seconds,
        )


def _network(address: str) -> str:
    """The address itself, or its /64 where one customer has so many; ::ffff:192.0.2.7 is 192.0.2.7.

    >>> _network("2001:db8::1") == _network("2001:db8::2"), _network("::ffff:192.0.2.7"), _network("?")
    (True, '192.0.2.7/32', 'unknown')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    known = (known.ipv4_mapped or known) if isinstance(known, ipaddress.IPv6Address) else known
    return str(ipaddress.ip_network((known, 32 if known.version == 4 else 64), strict=False))
