"""Pages of projects: mine, one with its members, data sets, releases and shares, and the owner's approval."""

from collections.abc import Callable
from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import project_object
from cloister.hub.decisions.policy import actions
from cloister.hub.decisions.policy.methods import titled
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import projects
from cloister.hub.platform.access.drafts import Typed, draft_of, grantable, rules_in, with_purposes
from cloister.hub.platform.access.granting import own_data_set
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.pages_grants import budget_of
from cloister.hub.platform.access.parts import Name, done
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_ELSEWHERE = ("dataset.see", "dataset.describe", "algorithm.run", "dataset.version")
"""What is granted on the page of grants, with all that belongs to it."""


def add(routes: Pages) -> None:
    @routes.get("/projects", "project.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "projects/list.html", **_list(hub, caller, {}))

    @routes.post("/projects", "project.create")
    def create(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        name = form.text("name", most=63)

        def act(db: Session) -> None:
            about, title, purpose = form.text("about"), form.text("title"), form.text("purpose")
            projects.make_project(hub, db, caller, name=name, title=title, purpose=purpose, about=about)

        said, values = request_gettext(request)("The project was started."), Typed.of(form)
        return done(request, hub, act, f"/projects/{name}", said, "projects/list.html", lambda: _list(hub, caller, values))

    @routes.get("/projects/{name}", "project.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return render(request, "projects/project.html", **_one(hub, caller, name, {}))

    @routes.post("/projects/{name}/members", "project.manage")
    def invite(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        """Invite somebody; the page says the same whether or not anybody has that address."""
        said = request_gettext(request)("The person with this address here may join now. Tell them to open their projects.")
        email = form.text("email", most=320)

        def act(db: Session) -> None:
            row = projects.seen_project(hub, db, caller, name, "project.manage", open_=True)
            projects.invite(hub, db, caller, row, email)

        return _act(request, hub, caller, name, form, said, act)

    @routes.post("/projects/{name}/join", "project.join")
    def join(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        _, stays = request_gettext(request), form.flag("decline")
        with hub.database.begin() as db:
            (projects.decline if stays else projects.join)(hub, db, caller, name)
        said = _("The invitation was declined.") if stays else _("You are a member now.")
        return go(request, "/projects" if stays else f"/projects/{name}", said)

    @routes.post("/projects/{name}/data/confirm", "access.decide")
    def confirm(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        """Let those work with a data set of one's own who joined since."""
        said, wanted = request_gettext(request)("The new members may use it now."), form.text("data_set", most=63)
        shown = frozenset(form.all("person"))
        return _act(request, hub, caller, name, form, said, lambda db: projects.confirm(hub, db, caller, name, wanted, shown))

    @routes.post("/projects/{name}/members/remove", "project.manage")
    def leave(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        said, person = request_gettext(request)("The person is not a member any more."), form.text("person", most=320)
        return _act(request, hub, caller, name, form, said, lambda db: projects.remove_member(hub, db, caller, name, person))

    @routes.post("/projects/{name}/data", "project.manage")
    def ask(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        said, wanted = request_gettext(request)("Its owner was asked."), form.text("data_set", most=63)
        return _act(request, hub, caller, name, form, said, lambda db: projects.ask_data_set(hub, db, caller, name, wanted))

    @routes.post("/projects/{name}/data/remove", "project.manage")
    def remove(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        said, gone = request_gettext(request)("The data set was taken out."), form.text("data_set", most=63)
        return _act(request, hub, caller, name, form, said, lambda db: projects.remove_data_set(hub, db, caller, name, gone))

    @routes.post("/projects/{name}/data/approve", "access.decide")
    def approve(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        """Let the project work with a data set of one's own."""
        data_set = form.text("data_set", most=63)

        def act(db: Session) -> object:
            row, _which = own_data_set(hub, db, caller, data_set, "access.decide")
            draft = draft_of(form, budget_of(hub, row))
            shown = frozenset(form.all("person"))
            return projects.approve(hub, db, caller, name, data_set, rules_in(draft), shown or None)

        return _act(request, hub, caller, name, form, request_gettext(request)("The project may work with it now."), act)

    @routes.post("/projects/{name}/close", "project.manage")
    def close(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        with hub.database.begin() as db:
            projects.close_project(hub, db, caller, name)
        return go(request, f"/projects/{name}", request_gettext(request)("The project is closed."))


def _act(
    request: Request, hub: Hub, caller: Caller, name: str, form: FormDep, said: str, act: Callable[[Session], object]
) -> Response:
    values, path = Typed.of(form), f"/projects/{name}"
    return done(request, hub, act, path, said, "projects/project.html", lambda: _one(hub, caller, name, values))


def _list(hub: Hub, caller: Caller, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        rows, invited = projects.projects_of(hub, db, caller), projects.invitations_for(db, caller)
        return {
            "projects": rows,
            "names": names_in(db, people=[row.lead for row in (*rows, *invited)]),
            "waiting": projects.waiting_for(hub, db, caller),
            "invited": invited,
            "creates": not actions()["project.create"].roles.isdisjoint(caller.roles),
            "typed": Typed(typed),
            "problem": None,
        }


def _one(hub: Hub, caller: Caller, name: str, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        row = projects.seen_project(hub, db, caller, name)
        members = projects.members_of(db, row)
        data = projects.data_sets_in(hub, db, row)
        leads = row.closed is None and allowed(hub, db, caller, "project.manage", project_object(row)).allowed
        parts = [service.in_project(hub, db, caller, row) for service in hub.services if service.in_project is not None]
        shown = {name: value for part in parts for name, value in part.items()}
        waiting = projects.waiting_members(hub, db, row)
        people = [row.lead, *(each.person for each in members), *(each[1].owner for each in data)]
        names = names_in(db, people=[*people, *(each.person for each in shown.get("releases", ()))])
        return {
            "row": row,
            "members": members,
            "invited": projects.invited_to(db, row) if leads else [],
            "newcomers": {each.name: (each, waiting[each.name]) for _state, each in data if each.name in waiting},
            "data": data,
            "leads": leads,
            "inside": row.id in caller.projects,
            **shown,
            "names": names,
            "owned": [each for state, each in data if each.owner == caller.id and state != "approved"],
            "actions": [(key, title) for key, title in grantable("data-set") if key not in _ELSEWHERE],
            "methods": titled(),
            "typed": Typed(
                with_purposes({"actions": ["question.ask", "release.download"], "until": "", "share": "", **typed}, None)
            ),
            "zone": hub.settings.zone,
            "problem": None,
        }
