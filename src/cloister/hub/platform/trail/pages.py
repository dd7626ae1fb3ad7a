"""The audit log's pages: all of it for stewards and administrators, one's own acts for everyone, one's own data for owners; and
the alerts."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Path, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.platform.trail.alerts import KINDS, alerts, mark_seen, unseen
from cloister.hub.platform.trail.chain import DATA_SET
from cloister.hub.platform.trail.profiles import shown
from cloister.hub.platform.trail.reading import Filters, Form, Scope, by_day, own_data_sets, read_page, response
from cloister.hub.platform.trail.verifying import verify
from cloister.hub.platform.trail.words import KINDS as OBJECTS
from cloister.hub.platform.trail.words import attempts, names_of_objects, titles
from cloister.hub.platform.trail.writing import write_alone
from cloister.hub.records.accounts import Person, names_of
from cloister.hub.records.trail import AuditLine
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

NAME = Path(pattern=r"^[A-Za-z0-9_-]{1,32}$")
LINE_NUMBER = Query(ge=0, le=2**31 - 1)
_Name = Annotated[str, NAME]
_Number = Annotated[int | None, LINE_NUMBER]


def add(routes: Pages) -> None:
    @routes.get("/trail", "trail.read")
    def everything(request: Request, hub: HubDep, caller: CallerDep, before: _Number = None, after: _Number = None) -> Response:
        return _lines(request, hub, caller, "all", Scope(), before, after)

    @routes.get("/trail/mine", "trail.own")
    def mine(request: Request, hub: HubDep, caller: CallerDep, before: _Number = None, after: _Number = None) -> Response:
        return _lines(request, hub, caller, "mine", Scope(person=caller.id), before, after)

    @routes.get("/trail/uses", "dataset.uses")
    def uses(request: Request, hub: HubDep, caller: CallerDep, before: _Number = None, after: _Number = None) -> Response:
        with hub.database.reading() as db:
            scope = own_data_sets(db, caller)
        return _lines(request, hub, caller, "uses", scope, before, after)

    @routes.get("/trail/export/{form}", "trail.read")
    def export_all(request: Request, hub: HubDep, caller: CallerDep, form: Form) -> Response:
        """All lines as a file; that it left is a line too."""
        filters = Filters.of(request.query_params)
        write_alone(hub, caller, "trail.export", kind="trail", filters=filters.query())
        return response(hub, form, filters, Scope())

    @routes.get("/trail/mine/export/{form}", "trail.own")
    def export_mine(request: Request, hub: HubDep, caller: CallerDep, form: Form) -> Response:
        return response(hub, form, Filters.of(request.query_params), Scope(person=caller.id))

    @routes.get("/trail/uses/export/{form}", "dataset.uses")
    def export_uses(request: Request, hub: HubDep, caller: CallerDep, form: Form) -> Response:
        with hub.database.reading() as db:
            scope = own_data_sets(db, caller)
        return response(hub, form, Filters.of(request.query_params), scope)

    @routes.post("/trail/verify", "trail.verify")
    def verified(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        _ = request_gettext(request)
        outcome = verify(hub)
        write_alone(hub, caller, "trail.verify", kind="trail", outcome="done" if outcome else "failed", found=str(outcome))
        if outcome is True:
            return go(request, "/trail", _("Every entry was checked: none was changed, dropped or rolled back."))
        return go(request, "/trail", _("The audit log is broken: %(where)s.", where=outcome), "bad")

    @routes.get("/trail/people/{person}", "trail.read")
    def profile(request: Request, hub: HubDep, person: _Name) -> Response:
        with hub.database.reading() as db:
            row = db.get(Person, person)
            if row is None:
                raise Missing("There is no such person", why="no person has that id", instead="/trail")
            values: dict[str, Any] = {
                "name": row.name,
                "email": row.email,
                "person": person,
                "history": _history(hub, db, person),
                "alerts": alerts(db, person=person, limit=50),
            }
        return render(request, "trail/person.html", kinds=KINDS, **values)

    @routes.get("/trail/alerts", "trail.read")
    def alerts_page(request: Request, hub: HubDep) -> Response:
        """What should be looked at, and who looked."""
        seen = request.query_params.get("seen") == "yes"
        with hub.database.reading() as db:
            rows = alerts(db, seen=seen)
            values: dict[str, Any] = {
                "alerts": rows,
                "people": names_of(db, [each for row in rows for each in (row.person, row.seen_by)]),
                "waiting": unseen(db),
            }
        return render(request, "trail/alerts.html", kinds=KINDS, seen=seen, **values)

    @routes.post("/trail/alerts/{alert}/seen", "trail.acknowledge")
    def seen(request: Request, hub: HubDep, caller: CallerDep, alert: _Name, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            mark_seen(hub, db, caller, alert)
        return go(request, "/trail/alerts", _("Acknowledged."))


def _lines(
    request: Request, hub: Hub, caller: Caller, which: str, scope: Scope, before: int | None, after: int | None
) -> Response:
    filters = Filters.of(request.query_params)
    with hub.database.reading() as db:
        page = read_page(db, filters, scope, before=before, after=after)
        values: dict[str, Any] = {
            "lines": page.lines,
            "names": names_of(db, [line.person for line in page.lines]),
            "days": by_day(hub, db, filters, scope),
            "older": f"{request.url.path}?{filters.query(before=page.older)}" if page.older else "",
            "newer": f"{request.url.path}?{filters.query(after=page.newer)}" if page.newer else "",
            "objects": names_of_objects(db, _ids(page.lines), data_sets=_data_sets(scope)),
            "history": _history(hub, db, caller.id) if which == "mine" and before is None and after is None else None,
            "waiting": unseen(db) if which == "all" else 0,
        }
    return render(
        request, "trail/lines.html", which=which, filters=filters, titles=titles(), attempts=attempts(), kinds=OBJECTS, **values
    )


def _history(hub: Hub, db: Session, person: str) -> dict[str, Any]:
    """A person's history, with data sets by their names."""
    told = shown(hub, db, person)
    names = names_of_objects(db, [each for each, _ in told["data_sets"]])
    return {**told, "data_sets": [(names.get(each, each), count) for each, count in told["data_sets"]]}


def _ids(lines: list[AuditLine]) -> Iterator[str]:
    """What lines are about, by id."""
    for line in lines:
        yield line.object
        told = line.details.get("data_sets")
        yield from (each for each in told if isinstance(each, str)) if isinstance(told, list) else ()
        algorithm = line.details.get("algorithm")
        if isinstance(algorithm, str):
            yield algorithm


def _data_sets(scope: Scope) -> list[str] | None:
    """Whose names may be said: those of one's own, where only what is about one's own is seen."""
    if scope.objects is None:
        return None
    return [each.removeprefix(f"{DATA_SET}:") for each in scope.objects if each.startswith(f"{DATA_SET}:")]
