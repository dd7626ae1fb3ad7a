"""The pages of data sets of masked cells: ciphertext and who holds which key, and never a value."""

from typing import Annotated, Any

from fastapi import Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.crypto import fingerprint
from cloister.errors import CloisterError
from cloister.hub.guidance import budget_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import key_of, money_of, populations_of
from cloister.hub.problems import problem_of
from cloister.hub.services.vault.keeping import NewMaskedDataSet, all_waiting, followed, received, registered, standing, standings
from cloister.hub.web.forms import Form, FormDep, check_token, go
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_Name = Annotated[str, Path(max_length=63, pattern=r"^[^\x00]*$")]


def add(routes: Pages) -> None:
    @routes.get("/masked", "dataset.register")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return _page(request, hub, caller)

    @routes.post("/uploads/masked", "dataset.register", own_check=True)
    async def upload(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        try:
            form = FileForm(request.headers.get("content-type", ""), request.stream())
            check_token(request, await form.head())
            came = await received(hub, caller, form.file())
            found = await run_in_threadpool(lambda: followed(hub, caller, came))
        except CloisterError as refused:
            error = refused
            return await run_in_threadpool(lambda: _page(request, hub, caller, error=error))
        if found is None:
            return go(request, "/masked")
        said = request_gettext(request)("Queries now read version %(number)s.", number=found[1])
        return go(request, f"/masked/{found[0]}", said)

    @routes.post("/masked", "dataset.register")
    def make(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            known = form.text("population")
            budget = None if known else budget_of(form.text("epsilon"), form.text("delta"), form.text("rho"))
            made = registered(hub, caller, _asked(form, known or form.text("population_new")), budget)
        except CloisterError as error:
            return _page(request, hub, caller, error=error, typed=form)
        return go(request, f"/masked/{made.name}", request_gettext(request)("%(name)s is open.", name=made.name))

    @routes.get("/masked/{name}", "dataset.register")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: _Name) -> Response:
        found = standing(hub, caller, name)
        return render(request, "vault/one.html", each=found, hub_fingerprint=fingerprint(key_of(hub).public))


def _asked(form: Form, population: str) -> NewMaskedDataSet:
    texts: dict[str, Any] = {each: form.text(each) for each in ("upload", "name", "title", "about", "reason", "holder", "key")}
    return NewMaskedDataSet.model_construct(**texts, population=population, listed=form.flag("listed"))


def _page(
    request: Request, hub: Hub, caller: Caller, *, error: CloisterError | None = None, typed: Form | None = None
) -> Response:
    found, uploads = standings(hub, caller), all_waiting(hub, caller)
    with hub.database.reading() as db:
        populations = [(row.name, money_of(hub, row.name)) for row in populations_of(db, caller)]
    key, problem = key_of(hub).public, None if error is None else problem_of(error)
    return render(
        request,
        "vault/list.html",
        problem=problem,
        typed=typed or {},
        standings=found,
        uploads=[each for each in uploads if each.head is not None],
        populations=populations,
        key=key.hex(),
        fingerprint=fingerprint(key),
    )
