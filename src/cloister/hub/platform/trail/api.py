"""The audit log for programs: the same lines, filters and alerts as on the pages."""

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, model_validator

from cloister.hub.hub import CallerDep, Hub, HubDep
from cloister.hub.platform.trail.alerts import alerts, mark_seen
from cloister.hub.platform.trail.chain import BrokenLine
from cloister.hub.platform.trail.pages import LINE_NUMBER, NAME
from cloister.hub.platform.trail.profiles import shown
from cloister.hub.platform.trail.reading import (
    FILTERS,
    PAGE,
    Filters,
    Form,
    Scope,
    as_mapping,
    own_data_sets,
    read_page,
    response,
)
from cloister.hub.platform.trail.verifying import verify
from cloister.hub.platform.trail.writing import write_alone
from cloister.hub.records.accounts import person_by_id
from cloister.hub.web.routing import Routes


class Line(BaseModel):
    """One act."""

    number: int
    when: datetime
    person: str
    action: str
    kind: str
    object: str
    purpose: str
    cost: dict[str, Any]
    outcome: str
    details: dict[str, Any]
    hash: str


class Lines(BaseModel):
    """Some lines, the newest first. `older`: what to give as `before` for the next ones."""

    lines: list[Line]
    older: int | None


class Verified(BaseModel):
    """Whether the chain holds; else the first line that does not fit, and why."""

    holds: bool
    line: int | None = None
    reason: str = ""


class AlertOut(BaseModel):
    """Something that a steward should look at."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    person: str
    kind: str
    about: dict[str, Any]
    created: datetime
    seen: datetime | None
    seen_by: str


class _Pair(BaseModel):
    """Of a profile: what pages show as two cells."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, pair: Any) -> Any:
        return dict(zip(cls.model_fields, pair, strict=True))


class ProfileDay(_Pair):
    """A day, and how many questions were asked on it."""

    day: date
    questions: int


class ProfileHour(_Pair):
    """An hour of the day (UTC), and how many questions were asked in it."""

    hour: int
    questions: int


class ProfileName(_Pair):
    """A column (as data set.column) or a data set (its id), and how many questions touched it."""

    name: str
    questions: int


class ProfileSpend(_Pair):
    """What was spent of a population."""

    population: str
    spent: str


class ProfileOut(BaseModel):
    """What is usual for a person: questions a day (the newest thirty) and by hour (UTC), what they touched, what they spent."""

    total: int
    begun: datetime | None
    days: list[ProfileDay]
    hours: list[ProfileHour]
    columns: list[ProfileName]
    data_sets: list[ProfileName]
    spend: list[ProfileSpend]


class Wanted(BaseModel):
    """Which lines, and which page of them."""

    person: str = ""
    action: str = ""
    object: str = ""
    purpose: str = ""
    since: str = ""
    until: str = ""
    outcome: str = ""
    before: Annotated[int | None, LINE_NUMBER] = None
    limit: Annotated[int, Query(ge=1, le=500)] = PAGE


_Wanted = Annotated[Wanted, Query()]


def add(routes: Routes) -> None:
    @routes.get("/trail", "trail.read", "List audit entries", "The entries that the filters leave, the newest first")
    def everything(hub: HubDep, wanted: _Wanted) -> Lines:
        """All lines, by filters."""
        return _page(hub, wanted, Scope())

    @routes.get("/trail/mine", "trail.own", "List your own audit entries", "The entries of what you did, the newest first")
    def mine(hub: HubDep, caller: CallerDep, wanted: _Wanted) -> Lines:
        """What the caller did."""
        return _page(hub, wanted, Scope(person=caller.id))

    @routes.get(
        "/trail/uses",
        "dataset.uses",
        "List the uses of your data sets",
        "The entries of what was done with your data sets, the newest first",
    )
    def uses(hub: HubDep, caller: CallerDep, wanted: _Wanted) -> Lines:
        """What was done with the caller's data sets."""
        with hub.database.reading() as db:
            scope = own_data_sets(db, caller)
        return _page(hub, wanted, scope)

    @routes.get("/trail/export/{form}", "trail.read", "Download the audit log", "The file", response_class=Response)
    def export(hub: HubDep, caller: CallerDep, form: Form, wanted: _Wanted) -> Response:
        """All lines as a file."""
        filters = _filters(wanted)
        write_alone(hub, caller, "trail.export", kind="trail", filters=filters.query())
        return response(hub, form, filters, Scope())

    @routes.get("/trail/mine/profile", "trail.own", "Get your own usage profile", "What is usual for you")
    def own_profile(hub: HubDep, caller: CallerDep) -> ProfileOut:
        """What is usual for the caller."""
        with hub.database.reading() as db:
            return ProfileOut.model_validate(shown(hub, db, caller.id))

    @routes.get("/trail/people/{person}", "trail.read", "Get the usage profile of a person", "What is usual for the person")
    def profile(hub: HubDep, person: Annotated[str, NAME]) -> ProfileOut:
        """What is usual for a person."""
        with hub.database.reading() as db:
            person_by_id(db, person)
            return ProfileOut.model_validate(shown(hub, db, person))

    @routes.get(
        "/trail/verify", "trail.verify", "Verify the audit log", "Whether the chain holds, and the first entry that does not fit"
    )
    def verified(hub: HubDep) -> Verified:
        """Check every line of the chain."""
        outcome = verify(hub)
        if isinstance(outcome, BrokenLine):
            return Verified(holds=False, line=outcome.number, reason=outcome.reason)
        return Verified(holds=True)

    @routes.get("/trail/alerts", "trail.read", "List alerts", "The newest alerts")
    def list_alerts(hub: HubDep, seen: bool | None = None) -> list[AlertOut]:
        """The newest alerts."""
        with hub.database.reading() as db:
            return [AlertOut.model_validate(each) for each in alerts(db, seen=seen)]

    @routes.post(
        "/trail/alerts/{alert}/seen", "trail.acknowledge", "Acknowledge an alert", "The alert is acknowledged", status_code=204
    )
    def seen(hub: HubDep, caller: CallerDep, alert: Annotated[str, NAME]) -> None:
        """Write down that somebody looked."""
        with hub.database.begin() as db:
            mark_seen(hub, db, caller, alert)


def _filters(wanted: Wanted) -> Filters:
    return Filters.of({name: str(getattr(wanted, name)) for name in FILTERS.attributes})


def _page(hub: Hub, wanted: Wanted, scope: Scope) -> Lines:
    with hub.database.reading() as db:
        page = read_page(db, _filters(wanted), scope, before=wanted.before, limit=wanted.limit)
    return Lines(lines=[Line(**as_mapping(line)) for line in page.lines], older=page.older)
