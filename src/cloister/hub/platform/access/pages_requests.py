"""Pages of requests for access: mine, those to decide, one with its messages, and the form that asks."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy.methods import titled
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import projects, requests
from cloister.hub.platform.access.days import last_day
from cloister.hub.platform.access.drafts import Typed, draft_of, grantable, rules_in, with_purposes
from cloister.hub.platform.access.granting import seen_data_set
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.pages_grants import budget_of
from cloister.hub.platform.access.parts import SEEN, done
from cloister.hub.platform.access.requests import say, thread
from cloister.hub.platform.access.views import request_views
from cloister.hub.records.access import AccessRequest, Project
from cloister.hub.service import Card
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.languages import N_
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages

_Text = Annotated[str, Query(max_length=63, pattern=SEEN)]
_WANTED = ("dataset.see", "dataset.describe")
"""What asking needs no request for."""
_ELSEWHERE = ("algorithm.run", "dataset.version")
"""What is granted on the page of grants, with all that belongs to it."""
_ON_A_CARD = 5
_LIMITS = ("not_before", "hours", "networks", "algorithms", "only_with", "risk")


def add(routes: Pages) -> None:
    @routes.get("/access/requests", "access.ask")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        """To decide, and mine."""
        _ = request_gettext(request)
        with hub.database.reading() as db:
            values: dict[str, Any] = {
                "waiting": request_views(hub, db, requests.to_decide(hub, db, caller), _),
                "decided": request_views(hub, db, requests.to_decide(hub, db, caller, decided=True), _),
                "mine": request_views(hub, db, requests.mine(db, caller), _),
                "projects": projects.waiting_for(hub, db, caller),
            }
        return render(request, "access/requests.html", **values)

    @routes.get("/access/requests/new", "access.ask")
    def form_page(request: Request, hub: HubDep, caller: PersonDep, data_set: _Text = "") -> Response:
        return render(request, "access/ask.html", **_form_page(hub, caller, data_set, {}))

    @routes.post("/access/requests", "access.ask")
    def ask(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        name = form.text("data_set", most=63)
        made = ""

        def act(db: Session) -> None:
            nonlocal made
            row, _which = seen_data_set(hub, db, caller, name)
            made = requests.ask_access(
                hub,
                db,
                caller,
                data_set=name,
                purpose=form.text("purpose"),
                wanted=rules_in(draft_of(form, budget_of(hub, row))),
                project=form.text("project", most=32),
                message=form.text("message"),
            ).id

        said, back = request_gettext(request)("Your request was sent to the owner."), "/access/requests"
        answer = done(request, hub, act, back, said, "access/ask.html", lambda: _form_page(hub, caller, name, Typed.of(form)))
        return go(request, f"{back}/{made}", said) if made else answer

    @routes.get("/access/requests/{number}", "access.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return render(request, "access/request.html", **_one(request, hub, caller, number, {}))

    @routes.post("/access/requests/{number}/messages", "access.ask")
    def speak(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        def act(db: Session) -> None:
            requests.request_for(hub, db, caller, number)
            say(hub, db, caller, number, form.text("text"))

        return _done(request, hub, caller, number, form, act, request_gettext(request)("Your message was sent."))

    @routes.post("/access/requests/{number}/withdraw", "access.ask")
    def withdraw(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said = request_gettext(request)("The request was withdrawn.")
        return _done(request, hub, caller, number, form, lambda db: requests.withdraw(hub, db, caller, number), said)

    @routes.post("/access/requests/{number}/grant", "access.decide")
    def grant(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Grant it as the form has it: perhaps narrower than it was asked for."""

        def act(db: Session) -> None:
            row, data_set = requests.request_for(hub, db, caller, number)
            draft = draft_of(form, budget_of(hub, data_set))
            if not form.text("json", most=65_536):
                draft["rules"] = _not_in_the_form(row) | draft["rules"]
            requests.grant_request(hub, db, caller, number, draft, form.text("message"), frozenset(form.all("person")) or None)

        return _done(request, hub, caller, number, form, act, request_gettext(request)("Access was granted."))

    @routes.post("/access/requests/{number}/refuse", "access.decide")
    def refuse(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said = request_gettext(request)("The request was refused.")

        def act(db: Session) -> None:
            requests.refuse_request(hub, db, caller, number, form.text("reason"))

        return _done(request, hub, caller, number, form, act, said)


def _done(
    request: Request, hub: Hub, caller: Caller, number: str, form: FormDep, act: Callable[[Session], object], said: str
) -> Response:
    path = f"/access/requests/{number}"
    again = partial(_one, request, hub, caller, number, Typed.of(form))
    return done(request, hub, act, path, said, "access/request.html", again)


def _one(request: Request, hub: Hub, caller: Caller, number: str, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        row, data_set = requests.request_for(hub, db, caller, number)
        said, decides = thread(db, row.id), data_set.owner == caller.id
        members = projects.members_of(db, db.get_one(Project, row.project)) if row.project and decides else []
        rules, share = row.wanted, row.wanted.get("share") or {}
        first = {
            "role": "",
            "actions": rules.get("actions", []),
            "columns": rules.get("columns", []),
            "methods": rules.get("methods", []),
            "purposes": list(rules.get("purposes", [])),
            "share": share.get("epsilon", share.get("rho", "")),
            "until": last_day(rules.get("until", ""), hub.settings.zone),
            "rows": "",
        }
        return {
            "asked": request_views(hub, db, [row], request_gettext(request))[0],
            "data_set": data_set,
            "messages": said,
            "names": names_in(db, people=[*(each.person for each in said), *(each.person for each in members)]),
            "members": members,
            "own": row.person == caller.id,
            "decides": decides,
            "actions": [each for each in grantable("data-set") if each[0] not in _ELSEWHERE],
            "columns": sorted(data_set.declaration.get("columns", {})),
            "methods": titled(),
            "limits": bool(_not_in_the_form(row)),
            "typed": Typed(with_purposes({**first, **typed}, facts_of(hub, db).data_sets.get(data_set.id), decides)),
            "zone": hub.settings.zone,
            "problem": None,
        }


def _not_in_the_form(row: AccessRequest) -> dict[str, Any]:
    """What was asked for that the form of a grant has no field for. The owner reads it on the page, so it holds."""
    return {name: row.wanted[name] for name in _LIMITS if name in row.wanted}


def _form_page(hub: Hub, caller: Caller, name: str, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        row, which = seen_data_set(hub, db, caller, name)
        open_ = facts_of(hub, db).projects
        return {
            "row": row,
            "actions": [(key, title) for key, title in grantable("data-set") if key not in (*_WANTED, *_ELSEWHERE)],
            "columns": sorted(which.columns),
            "methods": titled(),
            "projects": [(number, open_[number].name) for number in sorted(caller.projects) if number in open_],
            "typed": Typed(with_purposes({"actions": ["question.ask"], **typed}, None)),
            "zone": hub.settings.zone,
            "problem": None,
        }


def cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The cards; their template translates the titles and the states."""
    asked, own = requests.to_decide(hub, db, caller), requests.mine(db, caller)
    names = names_in(db, people=[row.person for row in asked])
    items = [
        (f"{names.person(row.person)}: {names.object(row.data_set)}", f"/access/requests/{row.id}", row.purpose[:80])
        for row in asked
    ]
    items += [
        (f"{project.title}: {data_set.name}", f"/projects/{project.name}", project.purpose[:80])
        for project, data_set in projects.waiting_for(hub, db, caller)
    ]
    found = []
    if caller.has("owner"):
        values = {
            "title": N_("Requests to decide"),
            "href": "/access/requests",
            "items": items[:_ON_A_CARD],
            "nothing": N_("No requests to decide."),
            "states": False,
        }
        found.append(Card(template="access/card.html", values=values, order=20))
    if own:
        states = requests.states_of(hub, db, own[:_ON_A_CARD])
        shown = [(names.object(row.data_set), f"/access/requests/{row.id}", states[row.id]) for row in own[:_ON_A_CARD]]
        values = {
            "title": N_("My requests for access"),
            "href": "/access/requests",
            "items": shown,
            "nothing": "",
            "states": True,
        }
        found.append(Card(template="access/card.html", values=values, order=30))
    return found
