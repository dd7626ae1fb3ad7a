"""Setting up a second factor, by choice or because the hub asks for one; its backup codes; taking it away. A session whose second
factor has yet to be set up has no caller; the handlers look at it themselves."""

from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from cloister.errors import AccessDenied, CloisterError
from cloister.hub.decisions.callers import must_have_second_factor
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep, PersonDep
from cloister.hub.platform.accounts import second_factor, sessions, totp
from cloister.hub.platform.accounts.log_in import prove_code
from cloister.hub.platform.accounts.pages_common import again, back_to, onward
from cloister.hub.platform.accounts.people import as_person, log_event
from cloister.hub.records.accounts import Person
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages


def add(routes: Pages) -> None:
    @routes.get("/account/second-factor", "public.read")
    def show(request: Request, hub: HubDep, caller: CallerDep, next: str = "/") -> Response:  # noqa: A002
        back = back_to(next)
        with hub.database.reading() as db:
            has = second_factor.person_of_session(db, caller).totp is not None
        if has and not caller.signed_in:
            return RedirectResponse(onward("/login/second", back), 303)
        if has:
            return render(request, "accounts/second_factor.html", **_kept(hub, caller))
        return render(request, "accounts/second_factor_setup.html", **_setup(hub, caller, back))

    @routes.get("/account/second-factor/code.svg", "public.read")
    def picture(hub: HubDep, caller: CallerDep) -> Response:
        with hub.database.reading() as db:
            person = second_factor.person_of_session(db, caller)
            key = second_factor.key_in_setup(hub, db, caller)
        address = totp.key_address(key, person.email, hub.settings.title)
        return Response(totp.picture(address), media_type="image/svg+xml")

    @routes.post("/account/second-factor", "public.read")
    def confirm(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        back = back_to(form.get("next", "/"))
        try:
            with hub.database.begin() as db:
                person = second_factor.person_of_session(db, caller)
                codes = second_factor.finish_setup(hub, db, caller, form.get("code", ""))
                sessions.end_all(db, person.id, but=caller.session)
                secret = sessions.renew(hub, db, caller.session, second_factor=True)
                log_event(hub, db, as_person(person, caller.address), "second-factor.set", person.id)
        except CloisterError as error:
            return again(request, "accounts/second_factor_setup.html", error, **_setup(hub, caller, back))
        page = render(request, "accounts/second_factor_codes.html", codes=codes, back=back if back != "/" else "/account")
        sessions.give_cookie(page, hub, secret)
        return page

    @routes.post("/account/second-factor/codes", "profile.manage")
    def renew_codes(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        person = _person(hub, caller)
        try:
            prove_code(hub, caller, person, form.get("code", ""))
        except CloisterError as error:
            return again(request, "accounts/second_factor.html", error, **_kept(hub, caller))
        with hub.database.begin() as db:
            codes = second_factor.new_codes(hub, db, second_factor.locked(db, caller.id))
            log_event(hub, db, caller, "second-factor.codes", caller.id)
        return render(request, "accounts/second_factor_codes.html", status=201, codes=codes, back="/account")

    @routes.post("/account/second-factor/remove", "profile.manage")
    def remove(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            if must_have_second_factor(hub.settings, caller.roles):
                raise AccessDenied(
                    "Two-step verification stays on", why="this hub requires it for your roles", instead="ask an administrator"
                )
            prove_code(hub, caller, _person(hub, caller), form.get("code", ""))
        except CloisterError as error:
            return again(request, "accounts/second_factor.html", error, **_kept(hub, caller))
        with hub.database.begin() as db:
            second_factor.remove(db, second_factor.locked(db, caller.id))
            secret = sessions.renew(hub, db, caller.session, second_factor=False)
            log_event(hub, db, caller, "second-factor.remove", caller.id)
        response = go(request, "/account", request_gettext(request)("Two-step verification is off."), "warn")
        sessions.give_cookie(response, hub, secret)
        return response


def _person(hub: Hub, caller: Caller) -> Person:
    with hub.database.reading() as db:
        return db.get_one(Person, caller.id)


def _setup(hub: Hub, caller: Caller, back: str) -> dict[str, Any]:
    with hub.database.begin() as db:
        key = second_factor.begin_setup(hub, db, caller)
    return {"problem": None, "key": totp.shown_key(key), "back": back, "half": not caller.signed_in}


def _kept(hub: Hub, caller: Caller) -> dict[str, Any]:
    with hub.database.reading() as db:
        left = second_factor.codes_left(db, caller.id)
    return {"problem": None, "codes_left": left, "required": must_have_second_factor(hub.settings, caller.roles)}
