"""Reading the audit log: filters, pages and days; of everything, of one's own acts, of what was done with one's data sets.

And lines as a file: CSV for spreadsheets, JSON lines for programs, made batch by batch while they leave. A cell that a
spreadsheet would take for a formula begins with an apostrophe, since names and purposes are typed by people.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Select, and_, false, func, literal, or_, select
from sqlalchemy.orm import Session
from starlette.responses import StreamingResponse

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy.actions import PROVIDER
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail.chain import ALGORITHM, DATA_SET, key_of
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet, Population
from cloister.hub.records.trail import AuditAbout, AuditHead, AuditLine
from cloister.hub.spreadsheets import safe
from cloister.hub.web.routing import attachment
from cloister.printable import json_of
from cloister.stored import Stored

OUTCOMES = ("done", "denied", "failed")
PAGE = 50
_MOST_DAYS = 60
_LONGEST = 320
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=_MOST_DAYS), datetime(2999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which lines are wanted; what is empty asks for nothing.

    >>> Filters(action="question.ask", since="2026-01-01").query()
    'action=question.ask&since=2026-01-01'
    """

    person: str = ""
    """An id, or a part of the e-mail address or the name."""
    action: str = ""
    """An action, or an area of them such as "data set"."""
    object: str = ""
    """An id, the name of a data set, or a kind and an id as "population:patients"."""
    purpose: str = ""
    """A part of the purpose, in letters of either case."""
    since: str = ""
    until: str = ""
    """A day, which is included; or a moment."""
    outcome: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Filters:
        """From an address or a form, checked."""
        values = {name: given.get(name, "").strip()[:_LONGEST] for name in FILTERS.attributes}
        if values["outcome"] not in ("", *OUTCOMES):
            raise InvalidParameter("The filter is invalid", why="there is no such outcome", instead="outcome=denied")
        for name in ("since", "until"):
            if values[name]:
                _moment(values[name])
        if "\0" in "".join(values.values()):
            raise InvalidParameter("The filter is invalid", why="it holds a zero character", instead="person=ada@example.org")
        return FILTERS.made(values)

    def query(self, **more: Any) -> str:
        """As the end of an address."""
        told = {name: value for name, value in FILTERS.told(self).items() if value}
        return urlencode(told | {name: value for name, value in more.items() if value not in ("", None)})

    @property
    def empty(self) -> bool:
        """Whether everything is wanted."""
        return self == Filters()

    def narrowed(self, **more: str) -> Filters:
        """With some values replaced."""
        return replace(self, **more)

    def conditions(self) -> list[ColumnElement[bool]]:
        """As conditions on lines."""
        found: list[ColumnElement[bool]] = []
        if self.person:
            like = f"%{_escaped(self.person.lower())}%"
            people = select(Person.id).where(
                or_(Person.email.like(like, escape="\\"), func.lower(Person.name).like(like, escape="\\"))
            )
            found.append(or_(AuditLine.person == self.person, AuditLine.person.in_(people)))
        if self.action:
            area = _escaped(self.action.rstrip(".")) + ".%"
            found.append(or_(AuditLine.action == self.action, AuditLine.action.like(area, escape="\\")))
        if self.object:
            named = select(literal(f"{DATA_SET}:") + DataSet.id).where(DataSet.name == self.object)
            keys = (self.object, key_of(DATA_SET, self.object))
            found.append(or_(AuditLine.object == self.object, _about(keys), _about(named)))
        if self.purpose:
            found.append(AuditLine.purpose.icontains(self.purpose, autoescape=True))
        if self.since:
            found.append(AuditLine.when >= _moment(self.since))
        if self.until:
            found.append(AuditLine.when < _end(self.until))
        if self.outcome:
            found.append(AuditLine.outcome == self.outcome)
        return found


FILTERS = Stored(Filters, "filters", "person", "action", "object", "purpose", "since", "until", "outcome")
"""As addresses and forms have them."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose lines may be seen at all: everybody's, one person's, or those about some objects."""

    person: str | None = None
    objects: tuple[str, ...] | None = None
    """By kind and id (`key_of`): a name alone may be that of things of several kinds."""

    def conditions(self) -> list[ColumnElement[bool]]:
        """As conditions on lines."""
        found: list[ColumnElement[bool]] = []
        if self.person is not None:
            found.append(AuditLine.person == self.person)
        if self.objects is not None:
            found.append(_about(self.objects))
        return found


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """Some lines, the newest first, and where the older and newer ones are."""

    lines: list[AuditLine]
    older: int | None
    """Read the lines before this number."""
    newer: int | None
    """Read the lines after this number."""


def read_page(
    db: Session, filters: Filters, scope: Scope, *, before: int | None = None, after: int | None = None, limit: int = PAGE
) -> AuditPage:
    """One page of lines: the newest, those before a number, or those after one."""
    wanted = _wanted(filters, scope)
    if after is not None:
        rows = list(db.scalars(wanted.where(AuditLine.number > after).order_by(AuditLine.number).limit(limit + 1)))
        more = len(rows) > limit
        lines = rows[:limit][::-1]
        db.expunge_all()
        return AuditPage(lines=lines, older=lines[-1].number if lines else None, newer=lines[0].number if more else None)
    if before is not None:
        wanted = wanted.where(AuditLine.number < before)
    rows = list(db.scalars(wanted.order_by(AuditLine.number.desc()).limit(limit + 1)))
    lines = rows[:limit]
    db.expunge_all()
    newer = lines[0].number if before is not None and lines else None
    return AuditPage(lines=lines, older=lines[-1].number if len(rows) > limit else None, newer=newer)


def read_batch(db: Session, filters: Filters, scope: Scope, *, after: int, until: int, limit: int = 1000) -> list[AuditLine]:
    """The next lines in their order, for an export."""
    wanted = _wanted(filters, scope).where(AuditLine.number > after, AuditLine.number <= until)
    return list(db.scalars(wanted.order_by(AuditLine.number).limit(limit)))


def by_day(hub: Hub, db: Session, filters: Filters, scope: Scope) -> list[tuple[date, int]]:
    """How many lines a day, for the days of the filter (the newest sixty), days without any included."""
    until = min(_end(filters.until) - timedelta(seconds=1), hub.now()) if filters.until else hub.now()
    since = max(_moment(filters.since), until - timedelta(days=_MOST_DAYS - 1)) if filters.since else until - timedelta(days=29)
    start = datetime.combine(since.astimezone(UTC).date(), datetime.min.time(), UTC)
    if hub.database.is_postgres:
        day: ColumnElement[str] = func.to_char(func.timezone("UTC", AuditLine.when), "YYYY-MM-DD")
    else:
        day = func.strftime("%Y-%m-%d", AuditLine.when)
    chosen = [sealed(), *filters.conditions(), *scope.conditions(), AuditLine.when >= start]
    rows = {row[0]: row[1] for row in db.execute(select(day, func.count()).where(*chosen).group_by(day))}
    days = (until.date() - start.date()).days + 1
    return [(each, rows.get(each.isoformat(), 0)) for each in (start.date() + timedelta(days=back) for back in range(days))]


def gave(caller: Caller) -> ColumnElement[bool]:
    """The condition on data sets whose data somebody gave: those that name their address, for one who is a data provider."""
    return DataSet.provider == caller.email if caller.email and caller.has(PROVIDER) else false()


def own_data_sets(db: Session, caller: Caller) -> Scope:
    """What is about the data sets and populations that a person owns. Who gave data reads no names: they see uses by institution,
    on *My contributions*."""
    sets = db.scalars(select(DataSet.id).where(DataSet.owner == caller.id))
    populations = db.scalars(select(Population.name).where(Population.owner == caller.id))
    return Scope(objects=(*(key_of(DATA_SET, each) for each in sets), *(key_of("population", each) for each in populations)))


def of_data_set(data_set: str) -> ColumnElement[bool]:
    """The condition on lines that are about a data set, by its id."""
    return and_(sealed(), _about([key_of(DATA_SET, data_set)]))


def of_algorithm(algorithm: str) -> ColumnElement[bool]:
    """The condition on lines that are about an algorithm, or say that it ran, by its id."""
    return and_(sealed(), _about([key_of(ALGORITHM, algorithm)]))


def sealed() -> ColumnElement[bool]:
    """The condition on lines that belong to the chain. What stands behind its end was not written by the hub."""
    return AuditLine.number <= select(AuditHead.number).scalar_subquery()


def _wanted(filters: Filters, scope: Scope) -> Select[AuditLine]:
    return select(AuditLine).where(sealed(), *filters.conditions(), *scope.conditions())


def _about(objects: Sequence[str] | Select[Any]) -> ColumnElement[bool]:
    return AuditLine.number.in_(select(AuditAbout.number).where(AuditAbout.object.in_(objects)))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _moment(text: str) -> datetime:
    """A day or a moment; one without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(text)
        found = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidParameter(
            "The filter is invalid", why="its day is not a valid date", instead="since=2026-01-31, or 2026-01-31T08:00:00+00:00"
        ) from None
    return min(max(found, _FIRST), _LAST)


def _end(text: str) -> datetime:
    """The moment before which a day is over; of a moment, that moment."""
    moment = _moment(text)
    try:
        date.fromisoformat(text)
    except ValueError:
        return moment
    return moment + timedelta(days=1)


Form = Literal["csv", "jsonl"]
COLUMNS = ("number", "when", "person", "action", "kind", "object", "purpose", "cost", "outcome", "details", "hash")
_BATCH = 1000


def export(hub: Hub, form: Form, filters: Filters, scope: Scope) -> Iterator[str]:
    """The lines, the oldest first, in pieces; those that are written meanwhile are not among them."""
    write = _csv if form == "csv" else _jsonl
    if form == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    with hub.database.reading() as db:
        until = db.scalar(select(func.max(AuditLine.number))) or 0
    after = 0
    while True:
        with hub.database.reading() as db:
            lines = read_batch(db, filters, scope, after=after, until=until, limit=_BATCH)
            if lines:
                after = lines[-1].number
                text = write([as_mapping(line) for line in lines])
        if not lines:
            return
        yield text
        if len(lines) < _BATCH:
            return


def response(hub: Hub, form: Form, filters: Filters, scope: Scope) -> StreamingResponse:
    """The file, as a download."""
    kinds = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
    headers = attachment(f"trail-{hub.now():%Y-%m-%d}.{form}")
    return StreamingResponse(export(hub, form, filters, scope), media_type=kinds[form], headers=headers)


def as_mapping(line: AuditLine) -> dict[str, Any]:
    """A line for programs."""
    told = {name: getattr(line, name) for name in COLUMNS}
    return {**told, "when": line.when.astimezone(UTC).isoformat(timespec="microseconds")}


def harmless(cell: str) -> str:
    """A cell that no spreadsheet computes.

    >>> harmless("=1+2"), harmless("a study"), harmless("-3")
    ("'=1+2", 'a study', "'-3")
    """
    return f"'{cell}" if cell[:1] == "'" else safe(cell)


def _csv(lines: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([_cell(line[name]) for name in COLUMNS] for line in lines)
    return text.getvalue()


def _cell(value: Any) -> str:
    return harmless(json_of(value, sort_keys=True) if isinstance(value, dict) else str(value))


def _jsonl(lines: list[dict[str, Any]]) -> str:
    return "".join(json_of(line) + "\n" for line in lines)
