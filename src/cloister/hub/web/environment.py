"""What every template can use: the language's texts, our filters, the address of files. One Jinja environment for each language.

Everything is escaped and printable (`cloister.printable`), and a name that was not given is an error. What depends on the
request and is needed inside macros too (the token of forms, the reader's time zone, the hub's clock) stands in `PAGE` while a
page is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from cloister.hub.web import formats
from cloister.hub.web.assets import asset
from cloister.hub.web.languages import Language, language_of
from cloister.hub.web.speaking import voiced
from cloister.hub.web.words import role_title, state_title
from cloister.printable import shown

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page that is being made depends on, besides its values."""

    token: Callable[[], str]
    token_field: str
    zone: tzinfo
    now: Callable[[], datetime]
    template: str = ""


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
        finalize=_shown,
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
        "role_title": role_title,
        "state_title": state_title,
        "voiced": partial(_voiced, language),
    }
    made.filters |= {
        "ago": lambda value: formats.ago(value, language.locale, PAGE.get().zone, PAGE.get().now()),
        "guarantee": formats.guarantee,
        "moment": lambda value: formats.moment(value, language.locale, PAGE.get().zone),
        "number": lambda value, digits=None: formats.number(value, language.locale, digits),
    }
    made.tests |= {"address": _about_text(formats.is_address), "code": _about_text(formats.is_code)}
    return made


def _shown(value: Any) -> Any:
    """Every text that a page writes, as it may be shown; what is HTML already was made of such texts."""
    return shown(value, lines=True) if type(value) is str else value


@pass_context
def _part(context: Context, template: str, values: Mapping[str, Any]) -> Markup:
    """Another template's text, with values of its own: a card of the first page."""
    return Markup(context.environment.get_template(template).render(context.get_all() | dict(values)))  # noqa: S704  (escaped there)


def _voiced(language: Language, text: Any, *, instead: bool = False) -> str:
    """A text of an error, as the page that is being made says it."""
    return voiced(language, PAGE.get().template, str(text), instead=instead)


def _about_text(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: test(str(value))


def _csrf() -> Markup:
    """The hidden field of every form that posts."""
    page = PAGE.get()
    return Markup('<input type="hidden" name="{}" value="{}">').format(page.token_field, page.token())
