"""Files that browsers send: for a new data set, a new version, a new window. Read as they come, never in plain on a disk.

These are the only pages with no limit on the body but the setting's. The token against forgery stands before the file in the
form, and is checked before the first byte of the file is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.arrivals import arrivals_of, discard, kept, kind_of, received
from cloister.hub.platform.catalogue.cleaning import reading_of
from cloister.hub.platform.catalogue.pages import Name
from cloister.hub.platform.catalogue.versions import add_version, add_window, check_kept, check_open
from cloister.hub.platform.catalogue.windows import column_of, next_window, windows_of
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.catalogue import Arrival, DataSet
from cloister.hub.settings import listed
from cloister.hub.storage import Reading, SeveralSheets, accepted
from cloister.hub.web.forms import check_token, go
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages


def add(routes: Pages) -> None:
    @routes.get("/register", "dataset.register")
    def new(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return new_page(request, hub, caller)

    @routes.post("/uploads", "dataset.register", own_check=True)
    async def upload(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        try:
            _, arrival = await _arrived(request, hub, caller)
            assert arrival is not None
        except CloisterError as error:
            problem, sheets = problem_of(error), error.sheets if isinstance(error, SeveralSheets) else ()
            return await run_in_threadpool(lambda: new_page(request, hub, caller, problem, sheets=sheets))
        return go(request, f"/register/{arrival.id}")

    @routes.get("/datasets/{name}/version", "dataset.version")
    def version(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return _version_page(request, hub, caller, name)

    @routes.post("/uploads/versions/{name}", "dataset.version", own_check=True)
    async def new_version(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        row = await run_in_threadpool(lambda: _seen(hub, caller, name, "dataset.version"))
        _ = request_gettext(request)

        def use(arrival: Arrival | None, fields: dict[str, str]) -> str:
            assert arrival is not None
            others = fields.get("others") == "yes"
            number = add_version(hub, caller, row.id, arrival.id, others=others)
            if others:
                return _("Every open window is served from these rows now, each from those of its own days.")
            return _("Queries now read version %(number)s.", number=number)

        onward = f"/datasets/{name}/manage" if row.owner == caller.id else f"/datasets/{name}"
        return await _used(request, hub, caller, name, onward, use)

    @routes.post("/uploads/windows/{name}", "dataset.register", own_check=True)
    async def new_window(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        row = await run_in_threadpool(lambda: _seen(hub, caller, name, "dataset.manage"))
        _ = request_gettext(request)

        def use(arrival: Arrival | None, fields: dict[str, str]) -> str:
            number = "" if arrival is None else arrival.id
            made = add_window(hub, caller, row.id, number, fields.get("window", "").strip())
            return _("The window is open as %(name)s.", name=made.name)

        optional = bool(column_of(row.window))
        return await _used(request, hub, caller, name, f"/datasets/{name}/manage", use, optional=optional)


async def _used(
    request: Request,
    hub: Hub,
    caller: Caller,
    name: str,
    onward: str,
    use: Callable[[Arrival | None, dict[str, str]], str],
    *,
    optional: bool = False,
) -> Response:
    """Receive the file and make something of it at once; where that is refused, nothing of the file stays."""
    arrival: Arrival | None = None
    try:
        fields, arrival = await _arrived(request, hub, caller, optional=optional)
        came = arrival
        said = await run_in_threadpool(lambda: use(came, fields))
    except CloisterError as error:
        if arrival is not None:
            number = arrival.id
            await run_in_threadpool(lambda: discard(hub, caller, number, maybe=True))
        problem = problem_of(error)
        return await run_in_threadpool(lambda: _version_page(request, hub, caller, name, problem))
    return go(request, onward, said)


async def _arrived(
    request: Request, hub: Hub, caller: Caller, *, optional: bool = False
) -> tuple[dict[str, str], Arrival | None]:
    """The fields of the form and what arrived with it; None where that is optional and no file was chosen."""
    form = FileForm(request.headers.get("content-type", ""), request.stream())
    fields = await form.head(optional=optional)
    check_token(request, fields)
    if optional and not form.file_name:
        return fields, None
    how = _reading(fields)
    upload = await received(hub, kind_of("", form.file_name or "?"), form.file(), how)
    return fields, await run_in_threadpool(lambda: kept(hub, caller, upload, form.file_name, how))


def _reading(fields: Mapping[str, str]) -> Reading:
    return replace(
        reading_of({part: fields.get(part, "") for part in ("numbers", "dates", "pivot", "missing")}),
        sheet=fields.get("sheet", "").strip()[:200],
        lines=2 if fields.get("lines") == "2" else 1,
        short=fields.get("short") == "yes",
    )


def new_page(
    request: Request, hub: Hub, caller: Caller, problem: Problem | None = None, *, sheets: Sequence[str] = ()
) -> Response:
    """Where a new data set begins: a file, or a connection; and what waits from before."""
    with hub.database.reading() as db:
        waiting = arrivals_of(db, caller)
    values: dict[str, Any] = {
        "waiting": waiting,
        "sources": listed(hub.settings.sources),
        "most": hub.settings.upload_megabytes,
        "accept": accepted(),
        "problem": problem,
        "sheets": sheets,
    }
    return render(request, "catalogue/new.html", **values)


def _version_page(request: Request, hub: Hub, caller: Caller, name: str, problem: Problem | None = None) -> Response:
    with hub.database.reading() as db:
        row = reading.seen(hub, db, caller, name, "dataset.version")
        mine = row.owner == caller.id
        upcoming = next_window(db, row) if mine else ""
        others = [each for each in windows_of(db, row) if each.id != row.id and each.state == "open"] if mine else []
    try:
        check_open(row)
        check_kept(hub, row)
    except CloisterError as error:
        problem = problem or problem_of(error)
    values: dict[str, Any] = {
        "row": row,
        "most": hub.settings.upload_megabytes,
        "accept": accepted(),
        "next_window": upcoming,
        "problem": problem,
        "column": column_of(row.window),
        "others": others,
    }
    return render(request, "catalogue/version.html", **values)


def _seen(hub: Hub, caller: Caller, name: str, action: str) -> DataSet:
    with hub.database.reading() as db:
        return reading.seen(hub, db, caller, name, action)
