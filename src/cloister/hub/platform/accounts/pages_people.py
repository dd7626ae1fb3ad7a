"""Pages about people: who uses the hub, who was invited, what somebody may do."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import AccessDenied, CloisterError, InvalidParameter
from cloister.hub.decisions.policy.actions import ADMINISTRATOR, OFFERED_ROLES, STEWARD
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.accounts import links, people, second_factor, sessions
from cloister.hub.platform.accounts.pages_common import again
from cloister.hub.platform.accounts.people import log_event
from cloister.hub.records.accounts import Person, names_of, person_by_id
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_PAGE = 50


def add(routes: Pages) -> None:
    @routes.get("/people", "people.see")
    def everybody(request: Request, hub: HubDep, search: str = "", after: str = "") -> Response:
        with hub.database.reading() as db:
            rows, more = people.page_of_people(db, search=search, after=after, limit=_PAGE)
            invitations = links.open_invitations(hub, db) if not after else []
            names = names_of(db, (each.made_by for each in invitations))
        older = "/people?" + urlencode({"search": search, "after": more}) if more else ""
        values: dict[str, Any] = {"people": rows, "search": search, "older": older, "first": bool(not after)}
        return render(request, "accounts/people.html", invitations=invitations, names=names, **values)

    @routes.get("/people/invite", "people.invite")
    def invitation(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "accounts/invite.html", **_invitation(caller))

    @routes.post("/people/invite", "people.invite")
    def invite(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        email, roles = form.text("email"), form.all("role")
        try:
            with hub.database.begin() as db:
                link = links.invite(hub, db, caller, email=email, roles=roles)
        except CloisterError as error:
            return again(request, "accounts/invite.html", error, **_invitation(caller) | {"email": email[:320], "chosen": roles})
        return _handed(request, link, email, "invitation", "/people")

    @routes.post("/people/invitations/{name}/withdraw", "people.invite")
    def withdraw(request: Request, hub: HubDep, caller: PersonDep, name: str, form: FormDep) -> Response:
        with hub.database.begin() as db:
            links.withdraw(hub, db, caller, name)
        return go(request, "/people", request_gettext(request)("The invitation was withdrawn."))

    @routes.get("/people/{person}", "people.see")
    def somebody(request: Request, hub: HubDep, person: str) -> Response:
        return render(request, "accounts/person.html", **_person(hub, person))

    @routes.post("/people/{person}/roles", "roles.give")
    def give(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        secret = ""

        def act(db: Session, found: Person) -> None:
            nonlocal secret
            if people.set_roles(hub, db, caller, found, form.all("role")) and person == caller.id:
                secret = sessions.renew(hub, db, caller.session)

        response = _done(request, hub, person, act, request_gettext(request)("The roles were saved."))
        if secret:
            sessions.give_cookie(response, hub, secret)
        return response

    @routes.post("/people/{person}/details", "roles.give")
    def describe(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        typed = {"place": form.text("institution"), **{name: form.text(name) for name in ("training", "attributes")}}

        def act(db: Session, found: Person) -> None:
            training, attributes = _pairs(typed["training"]), _pairs(typed["attributes"])
            people.describe(hub, db, caller, found, institution=typed["place"], training=training, attributes=attributes)

        return _done(request, hub, person, act, request_gettext(request)("The details were saved."), typed)

    @routes.post("/people/{person}/block", "people.block")
    def block(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        said = request_gettext(request)("The person is blocked: sessions and tokens have ended.")
        return _done(request, hub, person, lambda db, found: people.block(hub, db, caller, found), said)

    @routes.post("/people/{person}/unblock", "people.block")
    def unblock(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        said = request_gettext(request)("The person may sign in again.")
        return _done(request, hub, person, lambda db, found: people.unblock(hub, db, caller, found), said)

    @routes.post("/people/{person}/second-factor", "people.block")
    def forget_factor(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        def act(db: Session, found: Person) -> None:
            if found.id == caller.id:
                why, instead = "one's own is turned off with a code", "/account/second-factor"
                raise AccessDenied("Two-step verification stays on", why=why, instead=instead)
            second_factor.remove(db, found)
            sessions.end_all(db, found.id)
            log_event(hub, db, caller, "second-factor.remove", found.id)

        return _done(request, hub, person, act, request_gettext(request)("Two-step verification is off."))

    @routes.post("/people/{person}/password-link", "people.block")
    def password_link(request: Request, hub: HubDep, caller: PersonDep, person: str, form: FormDep) -> Response:
        try:
            with hub.database.begin() as db:
                found = person_by_id(db, person)
                link = links.password_link(hub, db, caller, found)
        except CloisterError as error:
            return again(request, "accounts/person.html", error, **_person(hub, person))
        return _handed(request, link, found.email, "password", f"/people/{person}")


def _handed(request: Request, link: str, address: str, kind: str, onward: str) -> Response:
    return render(request, "accounts/handover.html", status=201, link=link, email=address, kind=kind, onward=onward)


def _done(
    request: Request, hub: Hub, person: str, act: Callable[[Session, Person], None], said: str, typed: Mapping[str, str] = {}
) -> Response:
    """Do it and go back to the person's page, or show there what was wrong and what was typed."""
    try:
        with hub.database.begin() as db:
            act(db, person_by_id(db, person))
    except CloisterError as error:
        return again(request, "accounts/person.html", error, **{**_person(hub, person), **typed})
    return go(request, f"/people/{person}", said)


def _person(hub: Hub, person: str) -> dict[str, Any]:
    with hub.database.reading() as db:
        found = person_by_id(db, person)
        held = people.roles_of(db, found.id)
        left = select(DataSet.name, DataSet.population).where(DataSet.owner == found.id, DataSet.state == "open")
        return {
            "problem": None,
            "person": found,
            "left_open": list(db.execute(left.where(DataSet.population.is_not(None)))) if found.blocked else [],
            "held": held,
            "place": found.institution,
            "roles": (*OFFERED_ROLES, *(role for role in held if role not in OFFERED_ROLES)),
            "training": _lines(found.training),
            "attributes": _lines(found.attributes),
        }


def _invitation(caller: Caller) -> dict[str, Any]:
    roles = tuple(role for role in OFFERED_ROLES if caller.has(ADMINISTRATOR) or role not in (ADMINISTRATOR, STEWARD))
    return {"problem": None, "email": "", "chosen": ["analyst"], "roles": roles}


def _lines(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in values.items())


def _pairs(text: str) -> dict[str, str]:
    """Lines of "name = value" as they are typed.

    >>> _pairs("GCP = 2027-12-31\\n\\nethics = 2028-01-31")
    {'GCP': '2027-12-31', 'ethics': '2028-01-31'}
    """
    found: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        name, sign, value = map(str.strip, line.replace("＝", "=").partition("="))
        if not sign or name in found:
            why = "a name is in it twice" if sign else "a line has no '='"
            raise InvalidParameter("The list is invalid", why=why, instead="GCP = 2027-12-31")
        found[name] = value
    return found
