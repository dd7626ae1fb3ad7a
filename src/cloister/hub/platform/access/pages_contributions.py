"""Pages of data providers: what one gave, the policy that one attaches to it, and for what it was used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from cloister.hub.caller import PersonDep
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import actions
from cloister.hub.hub import HubDep
from cloister.hub.platform.access.contributions import attach, contribution, contributions_of, policy_draft, uses_of
from cloister.hub.platform.access.days import last_day
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.parts import Name, done
from cloister.hub.platform.access.rules import DATA_ACTIONS
from cloister.hub.platform.access.typed import Typed
from cloister.hub.platform.access.views import unreadable_views
from cloister.hub.records.policies import parts_of, policies_in_row
from cloister.hub.web.forms import FormDep
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.platform.access.sentences import Gettext

_Before = Annotated[int | None, Query(ge=1)]


def add(routes: Pages) -> None:
    """Add them."""

    @routes.get("/contributions", "contribution.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        """What one gave."""
        with hub.database.reading() as db:
            rows = contributions_of(db, caller)
            names = names_in(db, people=[row.owner for row in rows])
        attached = {row.id for row in rows if parts_of(row).get("contribution")}
        return render(request, "access/contributions.html", rows=rows, names=names, attached=attached)

    @routes.get("/contributions/{name}", "contribution.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name, before: _Before = None) -> Response:
        """For what one contribution was used, and its policy."""
        return render(request, "access/contribution.html", **_one(hub, caller, name, before, {}, request_gettext(request)))

    @routes.post("/contributions/{name}", "contribution.manage")
    def keep(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        """Attach a policy to it."""

        def act() -> None:
            with hub.database.begin() as db:
                attach(hub, db, caller, name, policy_draft(form))

        _, values = request_gettext(request), Typed.of(form)
        said = _("Your policy binds everyone from the next query on.")
        path = f"/contributions/{name}"
        return done(request, act, path, said, "access/contribution.html", lambda: _one(hub, caller, name, None, values, _))


def _one(hub: Hub, caller: Caller, name: str, before: int | None, typed: dict[str, Any], _: Gettext) -> dict[str, Any]:
    with hub.database.reading() as db:
        row = contribution(hub, db, caller, name, "contribution.see")
        uses, older = uses_of(db, row, before=before)
        names = names_in(db, people=[row.owner])
        found, unread = policies_in_row(row)
        own = [each for each in unread if each.place == "contribution"]
        unreadable = unreadable_views(db, replace(facts_of(hub, db), unreadable=tuple(own)), _)
    from cloister.hub.platform.trail import titles

    kept = {} if own else found.given.to_dict()
    lists = {key: ", ".join(kept.get(key, [])) for key in ("purposes", "consent", "labels")}
    known, never = actions(), kept.get("prohibitions", [])
    offered = (*DATA_ACTIONS, *(each for each in never if each not in DATA_ACTIONS))  # what was prohibited once stays so
    return {
        "row": row,
        "uses": uses,
        "titles": titles(),
        "older": f"/contributions/{row.name}?before={older}" if older else "",
        "first": before is None,
        "names": names,
        "actions": [(key, known[key].title) for key in offered],
        "typed": Typed(
            {
                **lists,
                "prohibitions": never,
                "retention": last_day(kept.get("retention", "")),
                **typed,
            }
        ),
        "unreadable": unreadable,
        "problem": None,
    }
