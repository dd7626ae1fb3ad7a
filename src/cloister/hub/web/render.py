"""A template and its values become a page.

`render(request, "catalogue/list.html", data_sets=…)` is all that a handler says. Every template also has

- `me`: the caller (`caller` is the same, but a `{% call %}` block hides it); `here`: the path; `hub_title`, `institution`;
- `menu`: the links whose action the caller's roles may do, in groups; `help_address`: where the page is explained;
- `flashes`: what the page before left to say; `left_out`: the damaged rows that the page goes on without;
- `fragment`: whether the page's script asks for a part of a page;
- `_`, `ngettext`, `pgettext`, `npgettext`, `csrf()`, `asset()`;
- the filters `guarantee`, `number`, `moment`, `ago`.

What every template can use: the language's texts, our filters, the address of files. One Jinja environment for each language.

Everything is escaped and printable (`cloister.printable`), and a name that was not given is an error. What depends on the
request and is needed inside macros too (the token of forms, the reader's time zone, the hub's clock) stands in `PAGE` while a
page is made.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from cloister import local, together
from cloister.errors import CloisterError
from cloister.hub.decisions.policy.actions import ROLES
from cloister.hub.guard import check_action
from cloister.hub.hub import Caller, caller_of, hub_of, left_out_for
from cloister.hub.ids import new_id
from cloister.hub.web import formats
from cloister.hub.web.formats import zone_of
from cloister.hub.web.forms import ONCE_FIELD, TOKEN_FIELD, forget_flashes, keep_visit, read_flashes, token_of
from cloister.hub.web.languages import LANGUAGES, N_, NC_, Language, as_shown, choose, language_of
from cloister.hub.web.menu import REFUSED, Menu, help_address, help_for, menu_of
from cloister.hub.web.speaking import voiced
from cloister.hub.web.terms import Marked
from cloister.printable import json_of

THEME_COOKIE = "cloister-theme"
LANGUAGE_COOKIE = "cloister-language"
ZONE_COOKIE = "cloister-zone"
THEMES = ("auto", "light", "dark")
STATIC = Path(__file__).parent / "static"
TWINS = (Path(local.__file__).parent / "browser", Path(together.__file__).parent / "prio3" / "browser")
"""What respondents' browsers run: kept beside the Python that it is the twin of."""


@cache
def asset(name: str) -> str:
    """The address of a file of `static/`.

    >>> asset("page.js").startswith("/static/page.js?v=")
    True
    """
    found = next(folder / name for folder in (STATIC, *TWINS) if (folder / name).is_file())
    return f"/static/{name}?v={hashlib.sha256(found.read_bytes()).hexdigest()[:12]}"


class Assets(StaticFiles):
    """What answers under /static: kept for good where the address names the version, asked for again where it doesn't."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self.all_directories = [STATIC, *TWINS]

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file."""
        response = await super().get_response(path, scope)
        kept = b"v=" in scope.get("query_string", b"") and response.status_code == 200
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
        return response


class ExactJSON(JSONResponse):
    """JSON that says every text exactly, whatever is in it: what is not printable, and half a letter, by JSON's own escape."""

    def render(self, content: Any) -> bytes:
        return json_of(content, allow_nan=False, separators=(",", ":")).encode()


def render(request: Request, template: str, *, status: int | None = None, **values: Any) -> HTMLResponse:
    """The page of a template, or a part of a page where the page's script asked for one. Its status is that of the `problem`
    which it shows, where none is given."""
    language = request_language(request)
    given = status if status is not None else int(getattr(values.get("problem"), "status", 200))
    return respond(request, environment(language.code), language, template, given, values)


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
        "me": caller,
        "may": partial(is_open, caller),
        "hub_title": hub.settings.title,
        "institution": hub.settings.institution,
        "here": request.url.path,
        "here_with_query": request.url.path + (f"?{query}" if query else "") if request.method in ("GET", "HEAD") else "/",
        "theme": theme if theme in THEMES else "auto",
        "language": language,
        "languages": LANGUAGES,
        "menu": menu_of(hub.links, partial(is_open, caller), request.url.path) if caller.signed_in else Menu(),
        "help_address": help_address(hub.settings.docs, REFUSED if status >= 400 else help_for(hub.help, request.url.path)),
        "flashes": flashes,
        "left_out": [] if part else left_out_for(caller),
        "fragment": part,
    }
    page = Page(
        token=lambda: token_of(request),
        once=new_id(),
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


def is_open(caller: Caller, action: str) -> bool:
    """Whether the caller's roles have an action, and a page shows the way to it: what a role may not do at all is not offered."""
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


TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page that is being made depends on, besides its values."""

    token: Callable[[], str]
    once: str
    zone: tzinfo
    now: Callable[[], datetime]
    template: str = ""
    marked: Marked = field(default_factory=Marked)


PAGE: ContextVar[Page] = ContextVar("cloister page")


@cache
def environment(code: str) -> Environment:
    """The environment of a language."""
    return make_environment(language_of(code), [TEMPLATES])


def make_environment(language: Language, folders: list[Path]) -> Environment:
    """An environment over folders of templates; tests add their own."""
    made = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        auto_reload=False,
        finalize=as_shown,
    )
    made.policies["ext.i18n.trimmed"] = True
    made.install_gettext_callables(  # type: ignore[attr-defined]
        language.gettext, language.ngettext, newstyle=False, pgettext=language.pgettext, npgettext=language.npgettext
    )
    made.globals |= {
        "_": language.gettext,
        "asset": asset,
        "budget_parts": formats.budget_parts,
        "csrf": _csrf,
        "part": _part,
        "role_title": partial(role_title, language),
        "state_title": state_title,
        "terms_said": lambda: PAGE.get().marked.linked,
        "voiced": partial(_voiced, language),
    }
    made.filters |= {
        "ago": lambda value: formats.ago(value, language.locale, PAGE.get().zone, PAGE.get().now()),
        "guarantee": formats.guarantee,
        "moment": lambda value: formats.moment(value, language.locale, PAGE.get().zone),
        "number": lambda value, digits=None: formats.number(value, language.locale, digits),
        "odds": lambda value: formats.odds(value, language.locale),
        "with_terms": lambda html: PAGE.get().marked.mark(html, language.gettext),
    }
    made.tests |= {"address": _about_text(formats.is_address), "code": _about_text(formats.is_code)}
    return made


@pass_context
def _part(context: Context, template: str, values: Mapping[str, Any]) -> Markup:
    """Another template's text, with values of its own: a card of the first page."""
    return Markup(context.environment.get_template(template).render(context.get_all() | dict(values)))  # noqa: S704  (escaped there)


def _voiced(language: Language, text: Any, *, instead: bool = False) -> str:
    """A text of an error, as the page that is being made says it."""
    return voiced(language, PAGE.get().template, str(text), instead=instead)


def _about_text(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: test(str(value))


def _csrf(*, once: bool = True) -> Markup:
    """The hidden fields of every form that posts; not `once`: of one that may as well do its work twice."""
    page, line = PAGE.get(), Markup('<input type="hidden" name="{}" value="{}">')
    return line.format(TOKEN_FIELD, page.token()) + (line.format(ONCE_FIELD, page.once) if once else "")


STATES = {
    "active": N_("Active"),
    "admitted": N_("Admitted"),
    "approved": N_("Approved"),
    "asked": N_("Asked"),
    "blocked": N_("Blocked"),
    "cancelled": N_("Cancelled"),
    "closed": N_("Closed"),
    "collecting": N_("Taking answers"),
    "joining": N_("Waiting for the helper"),
    "deleted": N_("Deleted"),
    "denied": N_("Denied"),
    "done": N_("Done"),
    "draft": N_("Draft"),
    "expired": N_("Expired"),
    "failed": N_("Failed"),
    "granted": N_("Granted"),
    "open": N_("Open"),
    "pending": N_("Pending"),
    "ready": N_("Ready"),
    "revoked": N_("Revoked"),
    "running": N_("Running"),
    "stopped": N_("Stopped"),
    "unbounded": N_("Not covered by the budget"),
    "waiting": N_("Waiting"),
    "withdrawn": N_("Withdrawn"),
}

TERMS = (
    NC_("along", "along the dates in {column}"),
    NC_("along", "by its owner's hand, along no column"),
    NC_("bound", "less than {number}"),
    NC_("bound", "more than {number}"),
    *(NC_("every", "month"), NC_("every", "quarter"), NC_("every", "year")),
    *(NC_("kind", "boolean"), NC_("kind", "category"), NC_("kind", "date"), NC_("kind", "decimal"), NC_("kind", "identifier")),
    *(NC_("kind", "moment"), NC_("kind", "place"), NC_("part", "steps")),
    *(NC_("kind", "integer"), NC_("kind", "real"), NC_("kind", "text")),
    *(NC_("kinds", "days"), NC_("kinds", "numbers"), NC_("kinds", "texts"), NC_("kinds", "truth values")),
    *(NC_("kinds", "persons"), NC_("kinds", "values of {column}")),
    *(NC_("party", "key-holder"), NC_("party", "site")),
    *(NC_("kind", "dates"), NC_("kind", "decimal numbers"), NC_("kind", "times"), NC_("kind", "whole numbers")),
    *(NC_("kind", "a type that no declaration fits"), NC_("kind", "numbers"), NC_("kind", "truth values")),
    *(NC_("kind", "avg"), NC_("kind", "correlation"), NC_("kind", "covariance")),
    *(NC_("kind", "mean"), NC_("kind", "sum"), NC_("kind", "variance")),
    *(NC_("part", "columns"), NC_("part", "options"), NC_("part", "risk"), NC_("part", "rows"), NC_("part", "share")),
    NC_("shape", "a flat list of numbers"),
    NC_("shape", "rows of {dimensions} numbers"),
    *(NC_("state", "reserved"), NC_("state", "settled"), NC_("state", "unknown"), NC_("state", "voided")),
    NC_("told", "A charge of {cost}, and a charge to the share for stored answers,"),
    *(NC_("unit", "group"), NC_("unit", "household"), NC_("unit", "person")),
    *(NC_("wanted", "settled"), NC_("wanted", "voided")),
    *(NC_("what", "The budget"), NC_("what", "The budget of {name}"), NC_("what", "The data set"), NC_("what", "The model")),
    *(NC_("what", "The question"), NC_("what", "The share")),
    *(NC_("what", "bytes"), NC_("what", "columns"), NC_("what", "rows")),
    N_("The description is invalid"),
)
"""Words of the library's that stand inside its messages, by the place where they do (`retelling.py`)."""


def role_title(language: Language, role: str) -> str:
    """A role by itself, as on a badge: the policy's word for it, which sentences use too.

    >>> role_title(language_of("en"), "owner"), role_title(language_of("en"), "head-gardener")
    ('Data owner', 'Head gardener')
    """
    word = language.gettext(ROLES.get(role, role.replace("-", " ")))
    return word[:1].upper() + word[1:]


def state_title(state: str) -> str:
    """A state, for people.

    >>> state_title("done"), state_title("half_done")
    ('Done', 'Half done')
    """
    return STATES.get(state, state.replace("_", " ").replace("-", " ").capitalize())
