"""The page on which owners of sites agree, and the address that sites call."""

import json
from typing import Annotated

from fastapi import Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.crypto import fingerprint
from cloister.errors import CloisterError
from cloister.hub.guidance import budget_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import coordinators_of, key_of, lines_of, money_of, populations_of
from cloister.hub.problems import problem_of
from cloister.hub.services.sites.joining import Joining, change_roster, join, roster_before, roster_of, standings
from cloister.hub.web.forms import Form, FormDep, counted, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.together import Roster
from cloister.together.coordinator import other_version, unknown_party

_LONG = 2**20
Name = Annotated[str, Path(max_length=63)]


def add(routes: Pages) -> None:
    """All routes. Who includes them serves them, so sites can call this process."""

    @routes.get("/sites", "dataset.register")
    def sites(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return _page(request, hub, caller)

    @routes.post("/sites/roster", "dataset.register")
    def roster(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            before = roster_before(hub, caller, form.text("after"))[1] if form.text("after") else None
            epoch = 1 if before is None else before.signed.roster.epoch + 1
            failing = {"missing": form.text("missing"), "dropouts": form.text("dropouts")}
            made = roster_of(hub, form.text("keys", most=_LONG), epoch=epoch, **failing)
        except CloisterError as error:
            return _page(request, hub, caller, error=error, typed=form)
        return _page(request, hub, caller, made=made, typed=form)

    @routes.post("/sites/join", "dataset.register")
    def joined(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            known = form.text("population")
            budget = None if known else budget_of(form.text("epsilon"), form.text("delta"), form.text("rho"))
            made = join(hub, caller, _asked(form, known or form.text("population_new")), budget)
        except CloisterError as error:
            return _page(request, hub, caller, error=error, typed=form)
        return go(request, f"/datasets/{made.name}", request_gettext(request)("%(name)s is open.", name=made.name))

    @routes.post("/sites/{name}/roster", "dataset.register")
    def changed(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        try:
            change_roster(hub, caller, name, form.text("roster", most=_LONG), form.text("signatures", most=_LONG))
        except CloisterError as error:
            return _page(request, hub, caller, error=error, typed=form, changing=name)
        return go(request, "/sites", request_gettext(request)("The sites of %(name)s have changed.", name=name))

    @routes.post("/together/{name:path}", "site.call", own_check=True)
    async def called(request: Request, hub: HubDep, name: str) -> Response:
        other = other_version(request)
        if other is not None:
            return other
        known = coordinators_of(hub)
        signed = request.headers.get("authorization", "")
        found = await run_in_threadpool(lambda: known.called_by(name, signed) or lines_of(hub).called_by(name, signed))
        if found is None:
            return unknown_party(name, 403 if signed else 404)
        return await found.polled(request)


def _asked(form: Form, population: str) -> Joining:
    return Joining(
        roster=form.text("roster", most=_LONG),
        signatures=form.text("signatures", most=_LONG),
        table=form.text("table", most=_LONG),
        **{each: form.text(each) for each in ("overlap", "title", "about", "reason")},
        population=population,
        size=counted(form.text("size", most=20)),
        listed=form.flag("listed"),
    )


def _page(
    request: Request,
    hub: Hub,
    caller: Caller,
    *,
    made: Roster | None = None,
    error: CloisterError | None = None,
    typed: Form | None = None,
    changing: str = "",
) -> Response:
    """`typed` is what was sent, into the form of the data set `changing`, or of a new one."""
    with hub.database.reading() as db:
        found = standings(hub, db, caller)
        populations = [(row.name, money_of(hub, row.name)) for row in populations_of(db, caller)]
    key, problem = key_of(hub).public, None if error is None else problem_of(error)
    return render(
        request,
        "sites/sites.html",
        problem=problem,
        typed={} if changing else typed or {},
        changed={changing: typed or {}},
        made=made,
        roster="" if made is None else json.dumps(made.plain(), indent=1),
        standings=found,
        populations=populations,
        key=key.hex(),
        fingerprint=fingerprint(key),
    )
