"""Codebooks that browsers send, and declarations as files. The other ways to fill in the form are buttons of the form itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.caller import PersonDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.problems import problem_of
from cloister.hub.releases.reading import attachment
from cloister.hub.services.catalogue import reading
from cloister.hub.services.catalogue.arrivals import arrival_of, columns_of
from cloister.hub.services.catalogue.filling import from_file, suggested, with_drafts, written
from cloister.hub.services.catalogue.pages import Name
from cloister.hub.services.catalogue.pages_register import declare_page
from cloister.hub.services.catalogue.typed import beginning
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import check_token
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import request_gettext
from cloister.tables.declaring.draft import declaration_text, of_declaration

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.catalogue import Arrival

_REGISTER, _MANAGE = [needs("dataset.register")], [needs("dataset.manage")]
_Id = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
_MOST = 2**26
_HELD = {int: "integer", bool: "boolean"}
_TOML = "application/toml; charset=utf-8"


def routes(router: APIRouter) -> None:
    """Add them."""

    @router.post("/uploads/codebooks/{number}", dependencies=_REGISTER)
    async def codebook(request: Request, hub: HubDep, caller: PersonDep, number: _Id) -> Response:
        try:
            form = FileForm(request.headers.get("content-type", ""), request.stream())
            fields = await form.head()
        except CloisterError:
            await run_in_threadpool(lambda: _own(hub, caller, number))  # somebody else's upload is not told of by this either
            raise
        check_token(request, fields)
        await run_in_threadpool(lambda: _own(hub, caller, number))  # before the first byte of the file
        content = bytearray()
        async for chunk in form.file():
            content += chunk
            if len(content) > _MOST:
                raise InvalidParameter("The codebook is invalid", why="it is larger than 64 MB", instead="the codebook as CSV")
        return await run_in_threadpool(lambda: _filled(request, hub, caller, number, form.file_name, bytes(content)))

    @router.get("/register/{number}/declaration.toml", dependencies=_REGISTER)
    def typed_so_far(request: Request, hub: HubDep, caller: PersonDep, number: _Id) -> Response:
        with hub.database.reading() as db:
            arrival = arrival_of(db, caller, number)
        columns = columns_of(arrival)
        begun = with_drafts(beginning(columns, arrival.shown), suggested(columns, request_gettext(request)))
        typed = arrival.typed or begun
        name = typed.get("name") or "people"
        file = "" if arrival.kind == "connection" else arrival.shown.partition(" · ")[0]
        return Response(written(name, file, columns, typed), headers=attachment("declaration.toml"), media_type=_TOML)

    @router.get("/datasets/{name}/declaration.toml", dependencies=_MANAGE)
    def declared(hub: HubDep, caller: PersonDep, name: Name) -> Response:
        with hub.database.reading() as db:
            row = reading.owned(hub, db, caller, name)
        book = of_declaration(row.declaration)
        firsts = {column: (each.get("values") or [""])[0] for column, each in row.declaration.get("columns", {}).items()}
        kinds = {column: _HELD.get(type(value), "text") for column, value in firsts.items()}  # of 1 and "1" each stays what it is
        text = declaration_text(name, f"{name}.csv", kinds, book)
        return Response(text, headers=attachment(f"{name}.toml"), media_type=_TOML)


def _own(hub: Hub, caller: Caller, number: str) -> Arrival:
    with hub.database.reading() as db:
        return arrival_of(db, caller, number)


def _filled(request: Request, hub: Hub, caller: Caller, number: str, name: str, content: bytes) -> Response:
    _ = request_gettext(request)
    arrival = _own(hub, caller, number)
    columns = columns_of(arrival)
    typed = arrival.typed or with_drafts(beginning(columns, arrival.shown), suggested(columns, _))
    try:
        found = from_file(hub, typed, columns, name, content, _)
    except CloisterError as error:
        return declare_page(request, hub, caller, arrival, problem=problem_of(error))
    with hub.database.begin() as db:
        arrival_of(db, caller, number).typed = found.typed
    return go(request, f"/register/{number}", found.said)
