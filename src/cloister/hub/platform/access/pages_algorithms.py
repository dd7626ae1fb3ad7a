"""Pages of algorithms: those that one may see, one with its grants, and the form that registers one."""

from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.policy.actions import ALGORITHM_PROVIDER
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access.algorithms import (
    algorithms_of,
    count_runs,
    register_algorithm,
    reviews_of,
    runs_of,
    settings_of,
    versions_of,
    withdraw_algorithm,
)
from cloister.hub.platform.access.drafts import Typed, draft_of, grantable
from cloister.hub.platform.access.granting import grant_in, grants_on, own_algorithm, revoke_in, seen_algorithm
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.parts import Name, done
from cloister.hub.platform.access.views import grant_views
from cloister.hub.platform.trail import titles
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages


def add(routes: Pages) -> None:
    @routes.get("/algorithms", "algorithm.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "access/algorithms.html", **_list(hub, caller, {}))

    @routes.post("/algorithms", "algorithm.register")
    def register(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        name = form.text("name", most=63)

        def act(db: Session) -> None:
            register_algorithm(
                hub,
                db,
                caller,
                name=name,
                title=form.text("title"),
                about=form.text("about"),
                service=form.text("service", most=40),
                settings=settings_of(
                    form.text("settings", most=65_536),
                    **{each: form.get(each, "") for each in ("code", "tests", "proof", "licence")},
                ),
                version_of=form.text("version_of", most=63),
            )

        said = request_gettext(request)("The algorithm was registered. No one can run it until you grant that.")
        values = Typed.of(form)
        return done(request, hub, act, f"/algorithms/{name}", said, "access/algorithms.html", lambda: _list(hub, caller, values))

    @routes.get("/algorithms/{name}", "algorithm.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        """One algorithm, and for its provider who may run it on what."""
        return render(request, "access/algorithm.html", **_one(request, hub, caller, name, {}))

    @routes.post("/algorithms/{name}/grants", "algorithm.manage")
    def grant(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        """Say who may run it, on which data sets."""

        def act(db: Session) -> None:
            _row, which = own_algorithm(hub, db, caller, name)
            grant_in(hub, db, caller, which, draft_of(form))

        said, values = request_gettext(request)("The grant was made."), Typed.of(form)
        path = f"/algorithms/{name}"
        return done(request, hub, act, path, said, "access/algorithm.html", lambda: _one(request, hub, caller, name, values))

    @routes.post("/algorithms/{name}/grants/{grant}/revoke", "algorithm.manage")
    def revoke(request: Request, hub: HubDep, caller: PersonDep, name: Name, grant: Number, form: FormDep) -> Response:
        with hub.database.begin() as db:
            row, _which = own_algorithm(hub, db, caller, name)
            if revoke_in(hub, db, caller, grant).object != row.id:
                raise Missing("There is no such grant", why="it is not on this algorithm", instead=f"/algorithms/{name}")
        return go(request, f"/algorithms/{name}", request_gettext(request)("The grant was revoked."))

    @routes.post("/algorithms/{name}/withdraw", "algorithm.manage")
    def withdraw(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        with hub.database.begin() as db:
            withdraw_algorithm(hub, db, caller, name)
        return go(request, "/algorithms", request_gettext(request)("The algorithm was withdrawn. No one can run it any more."))


def _list(hub: Hub, caller: Caller, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        rows = algorithms_of(hub, db, caller)
        names = names_in(db, people=[row.provider for row in rows])
    return {
        "algorithms": rows,
        "names": names,
        "provides": caller.has(ALGORITHM_PROVIDER),
        "services": [(service.name, service.title) for service in hub.services if service.algorithm is not None],
        "typed": Typed(typed),
        "problem": None,
    }


def _one(request: Request, hub: Hub, caller: Caller, name: str, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        row, which = seen_algorithm(hub, db, caller, name)
        own = allowed(hub, db, caller, "algorithm.manage", which).allowed
        return {
            "row": row,
            "runs": runs_of(hub, db, caller, row) if own else [],
            "reviews": reviews_of(hub, db, caller, row) if own else [],
            "ran": count_runs(db, row) if own else 0,
            "versions": [each for each in versions_of(db, row.package or row.name) if own and each.id != row.id],
            "titles": titles(),
            "own": own,
            "grants": grant_views(hub, db, grants_on(db, "algorithm", row.id), request_gettext(request)) if own else [],
            "names": names_in(db, people=[row.provider]),
            "actions": grantable("algorithm"),
            "typed": Typed({"actions": ["algorithm.run"], **typed}),
            "problem": None,
        }
