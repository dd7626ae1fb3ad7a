"""The first page, the help, and the two choices that anybody has: how pages look, and their language."""

from __future__ import annotations

from datetime import UTC
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from cloister.hub.caller import CallerDep
from cloister.hub.hub import HubDep
from cloister.hub.service import Card
from cloister.hub.web.formats import is_address, zone_of
from cloister.hub.web.forms import FormDep
from cloister.hub.web.languages import LANGUAGES
from cloister.hub.web.menu import anchor, guides, help_address
from cloister.hub.web.render import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, ZONE_COOKIE, render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.hub.web.story import STORY, chapter_of
from cloister.hub.web.terms import TERMS

_YEAR = 365 * 86400


def home_pages() -> APIRouter:
    """The routes."""
    routes = Pages()

    @routes.get("/", "public.read")
    def home(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        """What this hub is, for a visitor; what waits for them, for a person."""
        if not caller.signed_in:
            return render(request, "welcome.html")
        cards: list[Card] = []
        with hub.database.reading() as db:
            for service in hub.services:
                if service.cards is not None:
                    cards += service.cards(hub, db, caller)
        story = chapter_of(hub.parts.get(STORY, {}).get(caller.id))
        return render(request, "home.html", cards=sorted(cards, key=lambda card: card.order), story=story)

    @routes.get("/help", "public.read")
    def help_page(request: Request, hub: HubDep) -> Response:
        """The glossary, and the pages of the documentation."""
        _ = request_gettext(request)
        docs = hub.settings.docs
        return render(
            request,
            "help.html",
            glossary=TERMS,
            docs=docs,
            guides=[(_(title), [(_(name), page) for name, page in pages]) for title, pages in guides(hub.guides)],
            docs_address=partial(help_address, docs),
            anchor=anchor,
        )

    @routes.post("/preferences", "public.read")
    def choose(request: Request, hub: HubDep, form: FormDep) -> Response:
        """Keep the choices in cookies, and go back to the page that they were made on."""
        back = form.text("back", "/", most=2000)
        response = RedirectResponse(back if is_address(back) else "/", status_code=303)
        zone = form.text("zone", most=60)
        chosen = {
            THEME_COOKIE: form.get("theme", "") if form.get("theme") in THEMES else "",
            LANGUAGE_COOKIE: form.get("language", "") if form.get("language") in LANGUAGES else "",
            ZONE_COOKIE: zone if zone == "UTC" or zone_of(zone) is not UTC else "",
        }
        for name, value in chosen.items():
            if value:
                response.set_cookie(
                    name, value, max_age=_YEAR, httponly=True, samesite="lax", secure=hub.settings.secure, path="/"
                )
        return response

    return routes.router
