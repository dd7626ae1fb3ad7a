"""One's own pages: profile, password, sessions, tokens."""

from typing import Any
from zoneinfo import available_timezones

from fastapi import Request
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.database import Damaged
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.accounts import second_factor, sessions, tokens
from cloister.hub.platform.accounts.log_in import change_password
from cloister.hub.platform.accounts.notices import notices
from cloister.hub.platform.accounts.pages_common import again, password_twice
from cloister.hub.platform.accounts.people import clean, log_event
from cloister.hub.records.accounts import ApiToken, Person
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.languages import LANGUAGES
from cloister.hub.web.render import ZONE_COOKIE, render, request_gettext
from cloister.hub.web.routing import Pages


def add(routes: Pages) -> None:
    @routes.get("/account", "profile.manage")
    def account(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "accounts/account.html", **_profile(hub, request, caller))

    @routes.post("/account", "profile.manage")
    def change_account(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            name = clean(form.text("name"), "the name", needed=True)
            language = form.text("language")
            if language and language not in LANGUAGES:
                raise InvalidParameter("The language is invalid", why="the hub does not support it", instead=", ".join(LANGUAGES))
        except CloisterError as error:
            return again(request, "accounts/account.html", error, **_profile(hub, request, caller))
        with hub.database.begin() as db:
            person = db.get_one(Person, caller.id)
            person.name, person.locale = name, language
            log_event(hub, db, caller, "profile.change", caller.id)
        return go(request, "/account", request_gettext(request)("Your profile was saved."))

    @routes.get("/account/password", "profile.manage")
    def password(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        return render(request, "accounts/password.html", **_password(hub, caller))

    @routes.post("/account/password", "profile.manage")
    def set_password(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        try:
            keep = form.flag("keep_tokens")
            secret = change_password(hub, caller, form.get("present", ""), password_twice(form), keep_tokens=keep)
        except CloisterError as error:
            return again(request, "accounts/password.html", error, **_password(hub, caller))
        _ = request_gettext(request)
        if keep:
            said = _("Your password was changed; all your other sessions have ended.")
        else:
            said = _("Your password was changed; all your other sessions and your API tokens have ended.")
        response = go(request, "/account", said)
        sessions.give_cookie(response, hub, secret)
        return response

    @routes.get("/account/sessions", "profile.manage")
    def log_ins(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        with hub.database.reading() as db:
            listed = sessions.listed(hub, db, caller.id, caller.session)
        return render(request, "accounts/sessions.html", sessions=listed)

    @routes.post("/account/sessions/end", "profile.manage")
    def end_session(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            if form.text("which") == "others":
                sessions.end_all(db, caller.id, but=caller.session)
                ended, said = "", _("All your other sessions have ended.")
            else:
                ended, said = sessions.end_named(hub, db, caller.id, form.text("which")), _("The session has ended.")
            log_event(hub, db, caller, "session.end", caller.id)
        response = go(request, "/login" if ended == caller.session else "/account/sessions", said)
        if ended == caller.session:
            sessions.forget_cookie(response, hub)
        return response

    @routes.get("/account/tokens", "token.manage")
    def token_list(request: Request, hub: HubDep, caller: PersonDep, after: str = "", preset: str = "") -> Response:
        return render(request, "accounts/tokens.html", **_tokens(hub, caller, after, preset=preset))

    @routes.post("/account/tokens", "token.manage")
    def make(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        typed = {"name": form.text("name")[:100], "scopes": form.all("scope"), "days": form.text("days")}
        try:
            days = int(form.text("days", most=9)) if form.text("days").isdecimal() else 0
            with hub.database.begin() as db:
                _row, secret = tokens.make_token(hub, db, caller, name=form.text("name"), scopes=form.all("scope"), days=days)
        except CloisterError as error:
            return again(request, "accounts/tokens.html", error, **_tokens(hub, caller, "", typed=typed))
        return render(request, "accounts/tokens.html", status=201, **_tokens(hub, caller, "", secret=secret))

    @routes.post("/account/tokens/{token}/revoke", "token.manage")
    def revoke(request: Request, hub: HubDep, caller: PersonDep, token: str, form: FormDep) -> Response:
        with hub.database.begin() as db:
            tokens.revoke(hub, db, caller, tokens.own_token(db, caller, token))
        return go(request, "/account/tokens", request_gettext(request)("The token was revoked."))


def _profile(hub: Hub, request: Request, caller: Caller) -> dict[str, Any]:
    with hub.database.reading() as db:
        person = db.get_one(Person, caller.id)
        left = second_factor.codes_left(db, caller.id)
        done = notices(db, caller.id)
    from cloister.hub.platform.trail import titles

    return {
        "notices": done,
        "titles": titles(),
        "problem": None,
        "person": person,
        "languages_of_hub": [(code, each.name) for code, each in LANGUAGES.items()],
        "zones": [(each, each) for each in ("UTC", *sorted(available_timezones() - {"UTC"})) if "/" in each or each == "UTC"],
        "zone": request.cookies.get(ZONE_COOKIE, "UTC"),
        "codes_left": left,
        "single_sign_on": bool(hub.settings.oidc_issuer),
    }


def _password(hub: Hub, caller: Caller) -> dict[str, Any]:
    with hub.database.reading() as db:
        has = db.get_one(Person, caller.id).password is not None
    return {"problem": None, "has_password": has, "least": hub.settings.password_length}


def _tokens(
    hub: Hub, caller: Caller, after: str, *, secret: str = "", typed: dict[str, Any] | None = None, preset: str = ""
) -> dict[str, Any]:
    now = hub.now()
    with hub.database.reading() as db:
        rows, more = tokens.page_of_tokens(db, caller, after=after)
    may, (_, fits) = tokens.scopes_for(caller.roles), tokens.PRESETS.get(preset, ("", lambda _: False))
    scopes = [(name, name, action.title) for name, action in may.items()]
    return {
        "problem": None,
        "tokens": [(row, _state(row, now), [] if isinstance(row.scopes, Damaged) else row.scopes) for row in rows],
        "more": more,
        "secret": secret,
        "typed": typed or {"name": "", "scopes": list(filter(fits, may)), "days": str(min(30, hub.settings.token_days))},
        "presets": [(key, title) for key, (title, wanted) in tokens.PRESETS.items() if any(map(wanted, may))],
        "scopes": scopes,
        "most_days": hub.settings.token_days,
    }


def _state(row: ApiToken, now: Any) -> str:
    if row.revoked is not None:
        return "revoked"
    return "expired" if row.expires <= now else "active"
