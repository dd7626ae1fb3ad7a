"""The pages of data sets of several owners: what there is and what one's own parts gave, a new one, and a comparison."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.guidance import budget_of
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import money_of, populations_of, search
from cloister.hub.problems import problem_of
from cloister.hub.services.pooling.comparing import WayOut, compare
from cloister.hub.services.pooling.making import NewPool, make, pool_named, pools
from cloister.hub.web.forms import Form, FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_MOST = 200
Name = Annotated[str, Path(max_length=63)]


def add(routes: Pages) -> None:
    @routes.get("/pools", "dataset.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return _page(request, hub, caller)

    @routes.post("/pools", "dataset.register")
    def made(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            known = form.text("population")
            budget = None if known else budget_of(form.text("epsilon"), form.text("delta"), form.text("rho"))
            texts: dict[str, Any] = {each: form.text(each) for each in ("name", "title", "about")}
            asked = NewPool.model_construct(
                **texts, parts=form.all("parts"), population=known or form.text("population_new"), listed=form.flag("listed")
            )
            row = make(hub, caller, asked, budget)
        except CloisterError as error:
            return _page(request, hub, caller, error=error, typed=form)
        return go(request, f"/datasets/{row.name}", request_gettext(request)("%(name)s is open.", name=row.name))

    @routes.get("/pools/{name}", "dataset.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return _one(request, hub, caller, name)

    @routes.post("/pools/{name}", "question.explain", ticked=True)
    def compared(request: Request, hub: HubDep, caller: CallerDep, name: Name, form: FormDep) -> Response:
        try:
            with hub.database.reading() as db:
                pool = pool_named(hub, db, caller, name)
                sql, spend, purpose = (form.text(each, most=5000) for each in ("sql", "spend", "purpose"))
                found = compare(hub, db, caller, pool, sql, spend, purpose)
        except CloisterError as error:
            return _one(request, hub, caller, name, error=error, typed=form)
        return _one(request, hub, caller, name, found=found, typed=form)


def _page(
    request: Request, hub: Hub, caller: Caller, *, error: CloisterError | None = None, typed: Form | None = None
) -> Response:
    problem = None if error is None else problem_of(error)
    with hub.database.reading() as db:
        found = pools(hub, db, caller)
        entries, _ = search(hub, db, caller, limit=_MOST)
        populations = [(row.name, money_of(hub, row.name)) for row in populations_of(db, caller)]
    names = {each.name for each in found}
    options = [(each.row.name, each.row.title) for each in entries if not each.row.public and each.row.name not in names]
    return render(
        request,
        "pooling/pools.html",
        problem=problem,
        typed=typed or {},
        chosen=[] if typed is None else typed.all("parts"),
        pools=found,
        options=options,
        populations=populations,
    )


def _one(
    request: Request,
    hub: Hub,
    caller: Caller,
    name: str,
    *,
    found: Sequence[WayOut] = (),
    error: CloisterError | None = None,
    typed: Form | None = None,
) -> Response:
    problem = None if error is None else problem_of(error)
    with hub.database.reading() as db:
        pool = pool_named(hub, db, caller, name)
    columns = list(found[0].margins) if found else []
    return render(request, "pooling/pool.html", pool=pool, found=found, columns=columns, typed=typed or {}, problem=problem)
