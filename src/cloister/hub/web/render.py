"""A template and its values become a page.

`render(request, "catalogue/list.html", data_sets=…)` is all that a handler says. Every template also has

- `me`: the caller (`caller` is the same, but a `{% call %}` block hides it); `here`: the path; `hub_title`, `institution`;
- `navigation`: the links whose action the caller's roles may do; `flashes`: what the page before left to say;
- `fragment`: whether the page's script asks for a part of a page;
- `_`, `ngettext`, `pgettext`, `npgettext`, `csrf()`, `asset()`;
- the filters `guarantee`, `number`, `moment`, `ago` (`environment.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse

from cloister.errors import CloisterError
from cloister.hub.caller import Caller, caller_of
from cloister.hub.guard import check_action
from cloister.hub.hub import hub_of
from cloister.hub.service import Link
from cloister.hub.web.environment import PAGE, Page, environment
from cloister.hub.web.flashes import forget_flashes, read_flashes
from cloister.hub.web.formats import zone_of
from cloister.hub.web.forms import TOKEN_FIELD, keep_visit, token_of
from cloister.hub.web.languages import LANGUAGES, Language, choose, language_of
from cloister.printable import json_of

THEME_COOKIE = "cloister-theme"
LANGUAGE_COOKIE = "cloister-language"
ZONE_COOKIE = "cloister-zone"
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, kw_only=True)
class NavigationLink:
    """A link of the navigation, as it stands on one page."""

    title: str
    path: str
    icon: str
    current: bool


class ExactJSON(JSONResponse):
    """JSON that says every text exactly, whatever is in it: what is not printable, and half a letter, by JSON's own escape."""

    def render(self, content: Any) -> bytes:
        return json_of(content, allow_nan=False, separators=(",", ":")).encode()


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The page of a template, or a part of a page where the page's script asked for one."""
    language = request_language(request)
    return respond(request, environment(language.code), language, template, status, values)


def respond(
    request: Request, templates: Environment, language: Language, template: str, status: int, values: dict[str, Any]
) -> HTMLResponse:
    """The page, from an environment that is given."""
    hub = hub_of(request)
    caller = caller_of(request)
    part = is_fragment(request)
    flashes = [] if part else read_flashes(request)
    query = request.url.query
    theme = request.cookies.get(THEME_COOKIE, "")
    context: dict[str, Any] = {
        "caller": caller,
        "me": caller,
        "may": partial(_may, caller),
        "hub_title": hub.settings.title,
        "institution": hub.settings.institution,
        "here": request.url.path,
        "here_with_query": request.url.path + (f"?{query}" if query else "") if request.method in ("GET", "HEAD") else "/",
        "theme": theme if theme in THEMES else "auto",
        "language": language,
        "languages": LANGUAGES,
        "navigation": places(hub.links, caller, request.url.path),
        "flashes": flashes,
        "fragment": part,
    }
    page = Page(
        token=lambda: token_of(request),
        token_field=TOKEN_FIELD,
        zone=zone_of(request.cookies.get(ZONE_COOKIE, "UTC")),
        now=hub.now,
        template=template,
    )
    before = PAGE.set(page)
    try:
        text = templates.get_template(template).render(context | values)
    finally:
        PAGE.reset(before)
    response = HTMLResponse(text, status)
    response.headers["Vary"] = "Cookie, Accept-Language"
    keep_visit(request, response)
    if flashes:
        forget_flashes(response)
    return response


def places(links: list[Link], caller: Caller, path: str) -> list[NavigationLink]:
    """The links that the caller may follow; the longest that leads to `path` or above it is the current one."""
    shown = [link for link in links if _may(caller, link.action)] if caller.logged_in else []
    here = [link.path for link in shown if path == link.path or path.startswith(link.path.rstrip("/") + "/")]
    current = max(here, key=len, default=None)
    return [
        NavigationLink(title=link.title, path=link.path, icon=link.icon or "arrow", current=link.path == current)
        for link in shown
    ]


def _may(caller: Caller, action: str) -> bool:
    """Whether a page shows the way to an action: what a role may not do at all is not offered."""
    try:
        check_action(caller, action)
    except CloisterError:
        return False
    return True


def is_fragment(request: Request) -> bool:
    """Whether the page's script asks for a part to put in place."""
    return request.headers.get("x-fragment") == "1"


def request_language(request: Request) -> Language:
    """The language to answer in."""
    setting = caller_of(request).locale
    return language_of(choose(setting, request.cookies.get(LANGUAGE_COOKIE, ""), request.headers.get("accept-language", "")))


def request_gettext(request: Request) -> Callable[..., str]:
    """`_` for a handler: texts in the reader's language.

    Used as `_ = request_gettext(request)`, so that the texts are found by the extractor.
    """
    return request_language(request).gettext
