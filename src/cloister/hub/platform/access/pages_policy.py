"""The page of the institution's policy: readable by everybody, written by stewards and administrators."""

from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import actions
from cloister.hub.decisions.policy.methods import titled
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access.drafts import Typed
from cloister.hub.platform.access.parts import done
from cloister.hub.platform.access.rules import DATA_ACTIONS, end_rule, every_rule, make_rule, rule_draft
from cloister.hub.platform.access.views import conflict_views, rule_views, unreadable_views
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages

_WRITERS = ("steward", "administrator")


def add(routes: Pages) -> None:
    @routes.get("/policy", "policy.see")
    def policy(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "access/policy.html", **_page(request, hub, caller, {}))

    @routes.post("/policy/rules", "policy.write")
    def make(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        said = request_gettext(request)("The rule applies from the next query on.")
        again = partial(_page, request, hub, caller, Typed.of(form))
        return done(
            request, hub, lambda db: make_rule(hub, db, caller, rule_draft(form)), "/policy", said, "access/policy.html", again
        )

    @routes.post("/policy/rules/{number}/end", "policy.write")
    def end(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        with hub.database.begin() as db:
            end_rule(hub, db, caller, number)
        return go(request, "/policy", request_gettext(request)("The rule was ended. It stays readable below."))


def _page(request: Request, hub: Hub, caller: Caller, typed: dict[str, Any]) -> dict[str, Any]:
    _ = request_gettext(request)
    writes = caller.has(*_WRITERS)
    with hub.database.reading() as db:
        rules, facts = rule_views(db, every_rule(db), _), facts_of(hub, db)
        own = [each for each in facts.data_sets.values() if writes or each.owner == caller.id]
        return {
            "present": [each for each in rules if each.ended is None],
            "past": [each for each in rules if each.ended is not None],
            "conflicts": conflict_views(db, facts, own, hub.now(), _),
            "unreadable": unreadable_views(db, facts, _) if writes else [],
            "writes": writes,
            "actions": [(name, actions()[name].title) for name in DATA_ACTIONS],
            "methods": titled(),
            "typed": Typed({"actions": [], **typed}),
            "problem": None,
        }
