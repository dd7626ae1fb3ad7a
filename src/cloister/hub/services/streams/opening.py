"""A stream from its opening to its end: what is declared, the one charge, the keys of devices, who sees it."""

import hmac
import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, true
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, Conflict, InvalidParameter, Missing
from cloister.hub.database import last_seen, of_each, older_than
from cloister.hub.decisions.checking import allowed, check, context_of
from cloister.hub.decisions.policy import Context, Object, Spend, check_amount
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_id, new_secret
from cloister.hub.labels import check_purpose
from cloister.hub.platform.trail import write
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import Population
from cloister.hub.records.streams import HeldStream, StreamBatch, StreamDevice
from cloister.hub.work.idempotency import Claim, once
from cloister.hub.work.recheck import charged
from cloister.printable import is_printable
from cloister.privacy import ZCDP, Guarantee, PureDP
from cloister.query import Session
from cloister.stored import Stored
from cloister.tables import PrivateTable
from cloister.tables.declaring.places import sources_of
from cloister.tables.declaring.plain import domain_of
from cloister.traces.feed import Late
from cloister.traces.moments import Steps
from cloister.traces.watch import Watch

TABLE, UNIT, PERSONS = "readings", "device", "stream persons"
_MOST_DEVICES, _MOST_STREAMS = 10_000, 100
_AT_ONCE = 100
"""Streams that are read at once; the rules leave some out."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What an owner declares of a stream; all of it is public but the readings."""

    title: str
    sql: str
    columns: Mapping[str, Any]
    every: str
    since: str
    until: str
    most: int
    hourly: int = 1000
    wait: int = 10
    """Seconds after its end for which a step takes readings."""
    rho: str = ""
    epsilon: str = ""
    shown: bool = False
    late: Late = "drop"
    purpose: str = ""
    """What for: the rules are asked with it, when it is opened and at each look."""

    def __post_init__(self) -> None:
        check_purpose(self.purpose)
        for name, value in (("title", self.title), ("sql", self.sql)):
            if not value.strip() or len(value) > 2000 or (name == "title" and (not is_printable(value) or len(value) > 200)):
                raise InvalidParameter(
                    f"{name} is invalid", why="it is empty, too long, or more than one line", instead='"People in the hall"'
                )
        if bool(self.rho) == bool(self.epsilon):
            raise InvalidParameter("The stream is invalid", why="it needs either rho or epsilon", instead='"rho": "0.5"')
        if not 1 <= self.hourly <= 10**6 or not 1 <= self.most <= 10**6 or not 0 <= self.wait <= 86_400:
            raise InvalidParameter(
                "The stream is invalid",
                why="most and hourly lie between 1 and a million, wait within a day",
                instead='"most": 100',
            )
        if self.late not in ("drop", "next"):
            raise InvalidParameter("late is invalid", why="it must be drop or next", instead='"late": "next"')
        if not {UNIT, "at", "key"}.isdisjoint((*self.columns, *self.fields)):
            raise InvalidParameter(
                "The columns are invalid", why="at, device and key are the hub's own", instead='{"room": {"kind": "category", …}}'
            )

    @property
    def spend(self) -> Guarantee:
        """What all steps cost together."""
        return ZCDP(self.rho) if self.rho else PureDP(self.epsilon)

    @property
    def steps(self) -> Steps:
        """Its clock."""
        return Steps.of(every=self.every, since=self.since, until=self.until)

    @property
    def fields(self) -> list[str]:
        """What a reading holds besides its moment: of a place its two numbers, under the names that they are declared with."""
        found = dict[str, None]()
        for name, each in self.columns.items():
            place = isinstance(each, Mapping) and each.get("kind") == "place"
            names = [str(each.get(title, title)) for title in ("longitude", "latitude")] if place else [name]
            found |= dict.fromkeys(names)
        return list(found)

    @property
    def schema(self) -> dict[str, Any]:
        """What a device has to know."""
        names = ("columns", "every", "since", "until", "wait", "late", "most", "hourly")
        return {name: value for name, value in _STORED.told(self).items() if name in names}

    def over(self, now: datetime) -> int:
        """How many steps take no reading any more."""
        return self.steps.over(now - timedelta(seconds=self.wait))

    def table(self, population: str) -> PrivateTable:
        """The readings as they are declared: a device is a person, whose readings are within `most` in all steps."""
        domains = {name: domain_of(name, each, table=TABLE) for name, each in self.columns.items()}
        empty: dict[str, list[Any]] = {name: [] for name in (*sources_of(domains), UNIT)}
        return PrivateTable(empty, domains, unit=UNIT, max_rows=self.most, population=population)


_NAMES = (
    "title", "sql", "columns", "every", "since", "until", "most", "hourly", "wait", "rho", "epsilon", "shown", "late", "purpose",
)  # fmt: skip
_STORED = Stored(Declared, "Stream", *_NAMES, later=("purpose",))


def columns_of(step: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The names of the groups and those of the numbers of a step."""
    return step["groups"], [name for name in step["table"] if name not in step["groups"]]


def labels_of(keys: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """The columns of released steps as a table, of SQL and of CSV.

    >>> labels_of(["room"], ["n"])
    ['step', 'begins', 'ends', 'room', 'n', 'n_margin', 'n_so_far']
    """
    return ["step", "begins", "ends", *keys, *(f"{name}{end}" for name in numbers for end in ("", "_margin", "_so_far"))]


def population_of(number: str) -> str:
    """The population of a stream's devices: its own."""
    return f"stream {number}"


@contextmanager
def watching(hub: Hub, number: str, declared: Declared, *, who: str) -> Iterator[Watch]:
    """The watch of a stream; it charges when it opens, and goes on where it is open. What cannot be watched is refused before the
    ledger has a population of it."""
    population = population_of(number)
    known = population in hub.ledger.populations()
    table = {TABLE: declared.table(population)}
    how: dict[str, Any] = {"every": declared.every, "since": declared.since, "until": declared.until, "late": declared.late}
    how |= {"at": "at", "spend": declared.spend, "fed": True, "key": "key", "name": f"stream {number}"}
    if not known:
        with Session(table, budget=declared.spend) as session:
            _check_columns(session.watch(declared.sql, **how))
    with Session(table, budget=None if known else declared.spend, ledger=hub.ledger, who=who) as session:
        found = session.watch(declared.sql, **how)
        assert isinstance(found, Watch)
        yield found


def _check_columns(found: object) -> None:
    """Released steps are a table, in which each column has a name of its own, in whichever case."""
    assert isinstance(found, Watch)
    keys, numbers = columns_of(found.foreseen().to_plain())
    labels = [each.casefold() for each in labels_of(keys, numbers)]
    twice = sorted({each for each in labels if labels.count(each) > 1})
    if not numbers or twice:
        raise InvalidParameter(
            "The query is invalid",
            why=f"two columns of its steps are called {', '.join(twice)}: each has step, begins and ends, and of a number n "
            "n_margin and n_so_far"
            if twice
            else "it selects no number",
            instead="SELECT room, COUNT(*) AS people FROM readings GROUP BY room",
        )


def open_stream(hub: Hub, caller: Caller, declared: Declared, key: str = "") -> str:
    """Charge for all steps and begin to take readings; the id, of one stream under one key. What was charged under the key by who
    died then is the same stream's."""
    request = json.dumps(["stream", *_STORED.told(declared).items()])
    number = hub.ledger.derive("stream", caller.id, key, request).hex()[:32] if key else new_id()
    which = _object(number, declared.title, caller.id, caller.institution)

    def again(*_: object) -> None:
        with hub.database.reading() as db:
            check(hub, db, caller, "stream.open", which, context_of(hub, caller, purpose=declared.purpose))

    return once(hub, caller, key, request.encode(), lambda claim: _open(hub, caller, declared, which, claim), again=again)[
        1
    ].decode()


def _open(hub: Hub, caller: Caller, declared: Declared, which: Object, claim: Claim) -> tuple[int, bytes]:
    """The charge comes first: a row without one would take readings that nothing pays for."""
    number, population = which.id, which.population
    check_amount(declared.spend, "The budget")
    if declared.over(hub.now()) >= declared.steps.count:
        raise InvalidParameter("until is invalid", why="it is over: no reading would be taken", instead="a moment to come")
    asked = context_of(hub, caller, purpose=declared.purpose, spend={population: Spend(asked=declared.spend)})

    def may(db: Db) -> None:
        check(hub, db, caller, "stream.open", which, asked)
        if len(list(db.scalars(select(HeldStream.id).where(HeldStream.owner == caller.id)))) >= _MOST_STREAMS:
            raise Conflict("The stream was not opened", why=f"you have {_MOST_STREAMS} already", instead="another account")

    with hub.database.reading() as db:
        may(db)
    with watching(hub, number, declared, who=caller.email) as found:
        found.open()
        steps = found.steps.count
    with hub.database.begin() as db:
        claim.store(db, 201, number.encode())
        try:
            may(db)
        except CloisterError as error:
            raise charged("The stream was not opened", error) from None
        now = hub.now()
        db.add(Population(name=population, title=declared.title, owner=caller.id, created=now))
        held = dict(_STORED.told(declared))
        db.add(HeldStream(id=number, owner=caller.id, title=declared.title, declared=held, shown=declared.shown, created=now))
        cost = {population: str(declared.spend)}
        told: dict[str, Any] = {"purpose": declared.purpose, "cost": cost, "name": declared.title, "steps": steps}
        write(hub, db, caller, "stream.open", kind="stream", object_id=number, **told)
    return 201, number.encode()


def seen_stream(hub: Hub, db: Db, caller: Caller, number: str, action: str = "stream.see", open_: bool = False) -> HeldStream:
    """One's own stream, or one whose steps are shown to everybody who is signed in; any other is missing."""
    row = db.get(HeldStream, number)
    if row is None or (row.owner != caller.id and not (row.shown and action == "stream.see")):
        raise Missing("There is no such stream", why="it does not exist, or is not shown to you", instead="/streams")
    check(hub, db, caller, action, *_asked(hub, db, caller, row))
    if open_ and row.state != "open":
        raise Conflict("The stream was left as it is", why="it is closed", instead="a new stream")
    return row


def streams_of(
    hub: Hub, db: Db, caller: Caller, *, after: str = "", limit: int, which: Callable[[HeldStream], bool] = lambda _: True
) -> list[HeldStream]:
    """Those of `which` that somebody may see now, at most so many, behind the one of the id `after`: their own first, then those
    that are shown, the newest first of either. Fewer are found only where there are no more."""
    own, found = HeldStream.owner == caller.id, list[HeldStream]()
    known, newest = own | HeldStream.shown, (own.desc(), HeldStream.created.desc(), HeldStream.id.desc())
    last = last_seen(db, HeldStream, after, known)
    ordered = select(HeldStream).where(known).order_by(*newest).limit(_AT_ONCE)
    while len(found) < limit:
        behind = true() if last is None else older_than(last) & own | ~own if last.owner == caller.id else older_than(last) & ~own
        rows = list(db.scalars(ordered.where(behind)))
        seen = of_each(rows, lambda row: (row, which(row) and sees(hub, db, caller, row)))
        found += [row for row, may in seen if may]
        if len(rows) < _AT_ONCE:
            break
        last = rows[-1]
    return found[:limit]


def sees(hub: Hub, db: Db, caller: Caller, row: HeldStream) -> bool:
    """Whether the rules of now let somebody look at a stream of theirs, or one that is shown."""
    return allowed(hub, db, caller, "stream.see", *_asked(hub, db, caller, row)).allowed


def _asked(hub: Hub, db: Db, caller: Caller, row: HeldStream) -> tuple[Object, Context]:
    """What the policy is asked of a stream; anyone it is shown to counts as its owner."""
    which = _object(row.id, row.title, caller.id, db.get_one(Person, row.owner).institution)
    return which, context_of(hub, caller, purpose=declared_of(row).purpose)


def _object(number: str, title: str, owner: str, institution: str) -> Object:
    population = population_of(number)
    return Object(kind="stream", id=number, name=title, owner=owner, institution=institution, population=population)


def declared_of(row: HeldStream) -> Declared:
    """What was declared of it."""
    found: Declared = _STORED.made(row.declared)
    return found


def add_device(hub: Hub, db: Db, caller: Caller, number: str, name: str, person: str = "") -> tuple[StreamDevice, str]:
    """A device of a person (of its own where none is named), and its key to show once. Devices of one person share their
    `most` readings, so that a second or a replaced one gives nobody a further share of what is protected."""
    row = seen_stream(hub, db, caller, number, "stream.manage", open_=True)
    title, whose = (" ".join(text.split()) for text in (name, person))
    if not title or len(title) > 100 or len(whose) > 90 or not (is_printable(title) and is_printable(whose or "-")):
        raise InvalidParameter("The name is invalid", why="it is one line of at most 100 characters", instead="badge 17")
    known = list(db.scalars(select(StreamDevice.name).where(StreamDevice.stream == row.id)))
    if title in known or len(known) >= _MOST_DEVICES:
        raise Conflict("The device was not added", why="there is one of this name, or too many", instead="another name")
    secret = "device_" + new_secret()
    device = StreamDevice(id=new_id(), stream=row.id, name=title, digest=digest(secret), created=hub.now(), hour=0, used=0)
    device.person = _hidden(hub, db, row.id, whose) if whose else ""
    db.add(device)
    write(hub, db, caller, "stream.device", kind="stream", object_id=row.id, name=row.title, device=title)
    return device, secret


def _hidden(hub: Hub, db: Db, stream: str, whose: str) -> str:
    """What stands for a person in the database: a digest by a secret that is wrapped there, so that no copy of it says who sends.
    "Ann" and "ann" are one person, who would count twice as two. What an earlier version wrote for a name goes on as it is."""
    spelt = whose, unicodedata.normalize("NFKC", whose).casefold()
    digests = [hmac.digest(hub.secret(PERSONS), f"{stream} {each}".encode(), "sha256").hex() for each in spelt]
    old, new = [f"person {whose}", f"person {digests[0]}"], f"person {digests[1]}"
    known = select(StreamDevice.person).where(StreamDevice.stream == stream, StreamDevice.person.in_(old)).limit(1)
    return db.scalar(known) or new


def revoke_device(hub: Hub, db: Db, caller: Caller, number: str, device: str) -> None:
    """Take a device's key back: what it sent before stays."""
    row, found = seen_stream(hub, db, caller, number, "stream.manage"), db.get(StreamDevice, device)
    if found is None or found.stream != row.id:
        raise Missing("There is no such device", why="the stream has none of this id", instead=f"/streams/{row.id}")
    if found.revoked is None:
        found.revoked = hub.now()
        write(hub, db, caller, "stream.revoke", kind="stream", object_id=row.id, name=row.title, device=found.name)


def close_stream(hub: Hub, db: Db, caller: Caller, number: str) -> HeldStream:
    """Take no reading any more and release no step; the charge stands."""
    row = seen_stream(hub, db, caller, number, "stream.manage", open_=True)
    end_stream(hub, db, caller, row)
    return row


def end_stream(hub: Hub, db: Db, caller: Caller, row: HeldStream) -> None:
    """As `close_stream`, by whom the rules let do it or by the hub itself."""
    row.state = "closed"
    db.execute(delete(StreamBatch).where(StreamBatch.stream == row.id))
    write(hub, db, caller, "stream.close", kind="stream", object_id=row.id, name=row.title)


def devices_of(db: Db, number: str) -> list[StreamDevice]:
    """By name."""
    return list(db.scalars(select(StreamDevice).where(StreamDevice.stream == number).order_by(StreamDevice.name)))
