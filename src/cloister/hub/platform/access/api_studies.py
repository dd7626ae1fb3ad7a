"""The API of projects and algorithms."""

from functools import partial
from typing import Annotated, Any

from fastapi import Body, Path
from sqlalchemy.orm import Session

from cloister.hub.database import of_each
from cloister.hub.description import Limit, read_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import algorithms, projects
from cloister.hub.platform.access.api_models import (
    AlgorithmOut,
    AskDataSet,
    Items,
    Joining,
    NewAlgorithm,
    NewProject,
    ProjectOut,
    paged,
)
from cloister.hub.platform.access.granting import grant_in, own_algorithm, revoke_in
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.parts import Name
from cloister.hub.platform.access.views import GrantOut, grant_views
from cloister.hub.records.access import Grant, Project
from cloister.hub.web.routing import After, Number, Routes

_RULES = [{"actions": ["question.ask"], "share": {"epsilon": "0.5"}}]
_RUNNERS = [
    {
        "role": "runner",
        "members": {"people": ["ada@example.org"]},
        "rules": {"actions": ["algorithm.run"], "only_with": ["people"]},
    }
]
"""Examples of what is sent."""
_Member = Annotated[str, Path(max_length=254, pattern=r"^[^\x00-\x20/]+$")]


def add(routes: Routes) -> None:
    _projects(routes)
    _algorithms(routes)


def _projects(routes: Routes) -> None:
    @routes.get("/projects", "project.see", "List projects", "The projects that you see")
    def listed(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Items[ProjectOut]:
        with hub.database.reading() as db:
            found = [_shown(hub, db, caller, row) for row in projects.projects_of(hub, db, caller)]
        return paged(found, after, limit)

    @routes.post("/projects", "project.create", "Create a project", "The project", status_code=201)
    def create(hub: HubDep, caller: PersonDep, body: NewProject) -> ProjectOut:
        with hub.database.begin() as db:
            made = projects.make_project(
                hub, db, caller, name=body.name, title=body.title, purpose=body.purpose, about=body.about
            )
            return _shown(hub, db, caller, made)

    @routes.get("/projects/{name}", "project.see", "Get a project", "The project with its members and data sets")
    def one(hub: HubDep, caller: PersonDep, name: Name) -> ProjectOut:
        with hub.database.reading() as db:
            return _shown(hub, db, caller, projects.seen_project(hub, db, caller, name))

    @routes.post(
        "/projects/{name}/members",
        "project.manage",
        "Invite a person to a project",
        "The project with its members and invitations",
    )
    def invite(hub: HubDep, caller: PersonDep, name: Name, body: Joining) -> ProjectOut:
        """The person with the address may join; the answer is the same whether or not there is one."""
        with hub.database.begin() as db:
            row = projects.seen_project(hub, db, caller, name, "project.manage", open_=True)
            projects.invite(hub, db, caller, row, body.email)
            return _shown(hub, db, caller, row)

    @routes.post("/projects/{name}/join", "project.join", "Join a project", "The project that you joined")
    def join(hub: HubDep, caller: PersonDep, name: Name) -> ProjectOut:
        with hub.database.begin() as db:
            return _shown(hub, db, caller, projects.join(hub, db, caller, name))

    @routes.delete(
        "/projects/{name}/members/{person}",
        "project.manage",
        "Remove a member or an invitation from a project",
        "The project without them",
    )
    def leave(hub: HubDep, caller: PersonDep, name: Name, person: _Member) -> ProjectOut:
        """`person` is the e-mail address of a member or of an invitation, or the id of a member."""
        with hub.database.begin() as db:
            projects.remove_member(hub, db, caller, name, person)
            return _shown(hub, db, caller, projects.seen_project(hub, db, caller, name))

    @routes.post(
        "/projects/{name}/data-sets",
        "project.manage",
        "Request a data set for a project",
        "The project with the data sets that were requested",
    )
    def ask(hub: HubDep, caller: PersonDep, name: Name, body: AskDataSet) -> ProjectOut:
        with hub.database.begin() as db:
            projects.ask_data_set(hub, db, caller, name, body.data_set)
            return _shown(hub, db, caller, projects.seen_project(hub, db, caller, name))

    @routes.post(
        "/projects/{name}/data-sets/{data_set}/approve",
        "access.decide",
        "Approve a project's use of a data set",
        "The project with the approved data set",
    )
    def approve(
        hub: HubDep, caller: PersonDep, name: Name, data_set: Name, rules: Annotated[dict[str, Any], Body(examples=_RULES)]
    ) -> ProjectOut:
        """Let the project work with a data set of yours; the body is the grant's rules in their JSON form."""
        with hub.database.begin() as db:
            projects.approve(hub, db, caller, name, data_set, rules)
            return _shown(hub, db, caller, projects.seen_project(hub, db, caller, name))

    @routes.post(
        "/projects/{name}/data-sets/{data_set}/confirm",
        "access.decide",
        "Confirm the new members of a project",
        "The project with the confirmed members",
    )
    def confirm(hub: HubDep, caller: PersonDep, name: Name, data_set: Name) -> ProjectOut:
        """Let those work with a data set of yours who joined the project after you approved."""
        with hub.database.begin() as db:
            projects.confirm(hub, db, caller, name, data_set)
            return _shown(hub, db, caller, projects.seen_project(hub, db, caller, name))

    @routes.post("/projects/{name}/close", "project.manage", "Close a project", "The closed project")
    def close(hub: HubDep, caller: PersonDep, name: Name) -> ProjectOut:
        with hub.database.begin() as db:
            return _shown(hub, db, caller, projects.close_project(hub, db, caller, name))


def _algorithms(routes: Routes) -> None:
    @routes.get("/algorithms", "algorithm.see", "List algorithms", "The algorithms that you may see")
    def listed(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Items[AlgorithmOut]:
        with hub.database.reading() as db:
            found = of_each(algorithms.algorithms_of(hub, db, caller), partial(read_of, AlgorithmOut))
        return paged(found, after, limit)

    @routes.post("/algorithms", "algorithm.register", "Register an algorithm", "The algorithm", status_code=201)
    def register(hub: HubDep, caller: PersonDep, body: NewAlgorithm) -> AlgorithmOut:
        with hub.database.begin() as db:
            settings = algorithms.exact_settings(body.settings)
            row = algorithms.register_algorithm(
                hub,
                db,
                caller,
                name=body.name,
                title=body.title,
                service=body.service,
                settings=settings,
                about=body.about,
                version_of=body.version_of,
            )
            return read_of(AlgorithmOut, row)

    @routes.delete("/algorithms/{name}", "algorithm.manage", "Withdraw an algorithm", "The withdrawn algorithm")
    def withdraw(hub: HubDep, caller: PersonDep, name: Name) -> AlgorithmOut:
        with hub.database.begin() as db:
            return read_of(AlgorithmOut, algorithms.withdraw_algorithm(hub, db, caller, name))

    @routes.post("/algorithms/{name}/grants", "algorithm.manage", "Create a grant on an algorithm", "The grant", status_code=201)
    def grant(hub: HubDep, caller: PersonDep, name: Name, body: Annotated[dict[str, Any], Body(examples=_RUNNERS)]) -> GrantOut:
        """The body is the grant in its JSON form, on an algorithm of yours."""
        with hub.database.begin() as db:
            _row, which = own_algorithm(hub, db, caller, name)
            made = grant_in(hub, db, caller, which, body)
            db.flush()
            return grant_views(hub, db, [db.get_one(Grant, made.id)])[0]

    @routes.delete(
        "/algorithms/{name}/grants/{number}", "algorithm.manage", "Revoke a grant on an algorithm", "The revoked grant"
    )
    def revoke(hub: HubDep, caller: PersonDep, name: Name, number: Number) -> GrantOut:
        with hub.database.begin() as db:
            own_algorithm(hub, db, caller, name)
            return grant_views(hub, db, [revoke_in(hub, db, caller, number)])[0]


def _shown(hub: Hub, db: Session, caller: Caller, row: Project) -> ProjectOut:
    members = [each.person for each in projects.members_of(db, row)]
    names = names_in(db, people=[row.lead, *members])
    waiting = projects.waiting_members(hub, db, row)
    return read_of(
        ProjectOut,
        row,
        lead=names.person(row.lead),
        members=[names.person(each) for each in members],
        invited=projects.invited_to(db, row) if caller.id in members else [],
        waiting={data_set: sorted(map(names.person, people)) for data_set, people in waiting.items()},
        data_sets={data_set.name: state == "approved" for state, data_set in projects.data_sets_in(hub, db, row)},
    )
