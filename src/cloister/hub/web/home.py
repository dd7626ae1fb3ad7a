"""The first page, the help, and the two choices that anybody has: how pages look, and their language.

A demonstration has a story besides: what each of its people does in five minutes, one after another, on their first page. It says
who plays which part (`hub.parts[STORY]`, by the id of a person); no other hub has one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.service import Card
from cloister.hub.web.formats import is_address, zone_of
from cloister.hub.web.forms import FormDep, keep_cookie
from cloister.hub.web.languages import LANGUAGES, N_
from cloister.hub.web.menu import anchor, guides, help_address
from cloister.hub.web.render import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, ZONE_COOKIE, render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.hub.web.terms import TERMS

_YEAR = 365 * 86400
STORY = "story of a demonstration"


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """What one person does: steps, each a sentence and where it is; and who goes on."""

    title: str
    steps: tuple[tuple[str, str], ...]
    then: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Somebody's part: which chapter, and the survey in it."""

    chapter: str
    survey: str


CHAPTERS: Mapping[str, Chapter] = {
    "analyst": Chapter(
        title=N_("Minute 1: Ana asks"),
        steps=(
            (N_("Read why the census is bounded as it is: each bound has a public reason."), "/datasets/census"),
            (N_("Build a query without SQL. See the margin and the cost before anything is spent."), "/ask/build"),
            (N_("Open an answer: a chart, margins, a citation."), "/releases"),
            (N_("Read what 4,000 people said to a survey that knows nobody's answer."), "/surveys"),
        ),
        then=N_("Then open the owner's link in another browser or a private window."),
    ),
    "owner": Chapter(
        title=N_("Minute 2: Otto sees what was asked"),
        steps=(
            (N_("See who asked the census, for what, and what it cost."), "/datasets/census/manage"),
            (N_("See what is left of the people's budget."), "/budgets/census"),
            (N_("Revoke Ana's grant. It ends with her next query."), "/datasets/census/access"),
        ),
        then=N_("Then open the steward's link."),
    ),
    "steward": Chapter(
        title=N_("Minute 3: Sam sets rules for everybody"),
        steps=(
            (N_("Read the institution's rules, and add one: it binds every owner and every query."), "/policy"),
            (N_("See the alerts: queries that are unusual together. An alert accuses nobody."), "/trail/alerts"),
            (N_("See which data sets there are: who asks, and for what, is their owners' to decide."), "/datasets"),
        ),
        then=N_("Then open the administrator's link."),
    ),
    "administrator": Chapter(
        title=N_("Minute 4: Alma verifies"),
        steps=(
            (N_("Find Ana's query and Otto's revocation in the audit log, and verify its chain."), "/trail"),
            (N_("Look for Otto's rows: no page has them for you."), "/datasets"),
        ),
        then=N_("Then open the respondent's link."),
    ),
    "respondent": Chapter(
        title=N_("Minute 5: Rosa answers"),
        steps=(
            (N_("Choose a level of protection and answer. Your browser randomises before it sends."), "/s/{survey}"),
            (N_("See which data sets there are, and that you may not query them."), "/datasets"),
        ),
        then=N_("Ana's survey has one answer more, and nobody can tell which one is yours."),
    ),
}


def chapter_of(part: Part | None) -> Chapter | None:
    """The chapter of a part, with the addresses of its steps.

    >>> chapter_of(Part(chapter="respondent", survey="abc")).steps[0][1], chapter_of(None)
    ('/s/abc', None)
    """
    if part is None:
        return None
    told = CHAPTERS[part.chapter]
    return Chapter(
        title=told.title, steps=tuple((text, at.format(survey=part.survey)) for text, at in told.steps), then=told.then
    )


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
                keep_cookie(hub, response, name, value, _YEAR)
        return response

    return routes.router
