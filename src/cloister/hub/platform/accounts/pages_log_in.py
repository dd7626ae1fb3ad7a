"""Pages for anyone who is not signed in yet: password, second step, single sign-on, one-time links; and signing out."""

from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.hub import CallerDep, Hub, HubDep
from cloister.hub.platform.accounts import links, second_factor, sessions, sign_on
from cloister.hub.platform.accounts.log_in import enter_by_link, enter_by_password, pass_second_factor
from cloister.hub.platform.accounts.notices import said_at_sign_in
from cloister.hub.platform.accounts.pages_common import again, back_to, entered_by, onward, password_twice
from cloister.hub.platform.accounts.people import log_event
from cloister.hub.web.forms import FormDep, flash, keep_cookie
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages


def add(routes: Pages) -> None:
    @routes.get("/login", "public.read")
    def login(request: Request, hub: HubDep, caller: CallerDep, next: str = "/") -> Response:  # noqa: A002
        back = back_to(next)
        if caller.signed_in:
            return RedirectResponse(back, 303)
        if caller.session:
            return RedirectResponse(onward("/login/second", back), 303)
        return render(request, "accounts/login.html", **_login_values(hub, back))

    @routes.post("/login", "public.read")
    def sign_in(request: Request, hub: HubDep, form: FormDep) -> Response:
        back, email = back_to(form.get("next", "/")), form.get("email", "")
        try:
            entered = enter_by_password(hub, request, email, form.get("password", ""))
        except CloisterError as error:
            return again(request, "accounts/login.html", error, **_login_values(hub, back, email[:320]))
        return entered_by(hub, entered, back)

    @routes.post("/logout", "public.read")
    def log_out(hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        if caller.session:
            with hub.database.begin() as db:
                sessions.end(db, caller.session)
                log_event(hub, db, caller, "session.end", caller.id)
        response = RedirectResponse("/login", 303)
        sessions.forget_cookie(response, hub)
        return response

    @routes.get("/login/second", "public.read")
    def second(request: Request, hub: HubDep, caller: CallerDep, next: str = "/") -> Response:  # noqa: A002
        back = back_to(next)
        if caller.signed_in:  # every sign-in that is whole comes by here
            response = RedirectResponse(back, 303)
            with hub.database.reading() as db:
                said = said_at_sign_in(hub, db, caller.id, request_gettext(request))
            if said:
                flash(request, response, said, "warn")
            return response
        if not caller.session:
            return RedirectResponse(onward("/login", back), 303)
        with hub.database.reading() as db:
            person = second_factor.person_of_session(db, caller)
        if person.totp is None:
            return RedirectResponse(onward("/account/second-factor", back), 303)
        return render(request, "accounts/second.html", problem=None, back=back)

    @routes.post("/login/second", "public.read")
    def pass_second(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        back = back_to(form.get("next", "/"))
        if caller.signed_in:
            return RedirectResponse(back, 303)
        try:
            entered = pass_second_factor(hub, request, caller, form.get("code", ""))
        except CloisterError as error:
            return again(request, "accounts/second.html", error, back=back)
        return entered_by(hub, entered, back)

    @routes.post("/login/sso", "public.read")
    def leave(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        address, browser = sign_on.leave(hub, caller, back_to(form.get("next", "/")))
        # a page that goes on by itself: our content policy forbids that a form ends up at another host
        response = render(request, "accounts/leaving.html", address=address)
        response.headers["Refresh"] = f"0; url={address}"
        keep_cookie(hub, response, sign_on.COOKIE, browser, 600, path="/login/sso")
        return response

    @routes.get("/login/sso/callback", "public.read")
    def come_back(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        returned = sign_on.come_back(hub, request, caller, request.query_params)
        if returned.entered is not None:
            response = entered_by(hub, returned.entered, returned.back)
        else:
            response = RedirectResponse("/account", 303)
            flash(request, response, request_gettext(request)("The accounts are connected."))
        response.delete_cookie(sign_on.COOKIE, path="/login/sso", httponly=True, samesite="lax", secure=hub.settings.secure)
        return response

    @routes.get("/link/{secret}", "public.read")
    def link(request: Request, hub: HubDep, secret: str) -> Response:
        with hub.database.reading() as db:
            row = links.look(hub, db, secret)
        least = hub.settings.password_length
        values: dict[str, Any] = {"link": row, "action": request.url.path, "email": "", "name": "", "problem": None}
        return render(request, "accounts/link.html", least=least, **values)

    @routes.post("/link/{secret}", "public.read")
    def follow(request: Request, hub: HubDep, secret: str, form: FormDep) -> Response:
        with hub.database.reading() as db:
            row = links.look(hub, db, secret)
        email, name = form.text("email"), form.text("name")
        try:
            password = password_twice(form) if row.kind != "login" else ""
            entered = enter_by_link(hub, request, secret, email=email, name=name, password=password)
        except CloisterError as error:
            values = {"link": row, "action": request.url.path, "email": email[:320], "name": name[:200]}
            return again(request, "accounts/link.html", error, least=hub.settings.password_length, **values)
        return entered_by(hub, entered, "/")


def _login_values(hub: Hub, back: str, typed: str = "") -> dict[str, Any]:
    return {"problem": None, "back": back, "email": typed, "single_sign_on": bool(hub.settings.oidc_issuer)}
