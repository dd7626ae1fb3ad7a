"""A town for stories: a hub that nobody has entered yet, over real connections, and people who only click and type.

A `Visitor` reads what stands on the page and presses what it finds there; a story is written in English, and a visitor with
another language finds the same things by its words. What somebody fills in, ticks, chooses and presses is counted. Each new kind
of page that somebody comes by is looked at once: by axe where scripts run, and for a first heading, sideways scrolling, inline
scripts and tokens of forms.

By day a story is walked in English at 1400 px or in Chinese at 390 px, in turn; at night in all four ways.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page

from cloister.hub.platform.accounts import first_link
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.web.languages import language_of
from cloister.hub.web.retelling import CONTEXT
from tests.hub.house import Clock, House, served
from tests.hub.house import Visitor as Person
from tests.hub.web.browser import Guarded, accessible, strict
from tests.tiers import some_by_day

PASSWORD = "tepid otter juggles maps"
WIDE, NARROW = 1400, 390
Way = tuple[int, str]
"""A width in pixels, and a language."""
WAYS: list[Way] = [(width, language) for width in (WIDE, NARROW) for language in ("en", "zh-CN")]
ENGLISH, CHINESE = (WIDE, "en"), (NARROW, "zh-CN")


def walked(by_day: Way) -> pytest.MarkDecorator:
    """A story with a `way`: by day this one, at night all four."""
    return some_by_day("way", WAYS, lambda way: way == by_day)


class Now(Clock):
    """The real time: a browser looks at it too."""

    def __call__(self) -> float:
        return time.time()


class Visitor:
    """Somebody at a browser."""

    def __init__(
        self, guarded: Guarded, *, scripts: bool, width: int, seen: set[str], language: str = "en", path: str = "/"
    ) -> None:
        self.page: Page = guarded.page(path)
        self.scripts, self.narrow, self.inputs = scripts, width < 1000, 0
        self._seen, self._language, self._width = seen, language, width
        self._words = language_of(language.replace("-", "_"))
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.look()

    def type_address(self, address: str) -> None:
        """What was handed over, typed into the bar of addresses."""
        self.page.goto(address)
        self.look()

    def go(self, place: str) -> None:
        """To a place of the navigation, in the menu where the window is narrow."""
        if self.narrow:
            self.page.locator("header.top summary").first.click()
        menu = self.page.locator("header.top nav" if self.narrow else ".side nav")
        group = menu.locator("details:not([open])", has=self.page.get_by_text(self.named(place)))
        if group.count():
            group.locator("summary").click()
        menu.get_by_role("link", name=self.named(place)).click()
        self.arrived()

    def places(self) -> list[str]:
        """What the navigation offers."""
        return [each.strip() for each in self.page.locator(".side nav a").all_text_contents()]

    def is_offered(self, place: str) -> bool:
        """Whether a place is among them."""
        return any(self.named(place).match(each) for each in self.places())

    def follow(self, name: str, *, exact: bool = True) -> None:
        """A link of the page."""
        self.main.get_by_role("link", name=self.named(name, exact=exact)).first.click()
        self.arrived()

    def press(self, name: str, *, within: Locator | None = None) -> None:
        """A button."""
        self.inputs += 1
        (within or self.main).get_by_role("button", name=self.named(name)).first.click()
        self.arrived()

    def fill(self, label: str, text: str, *, within: Locator | None = None, exact: bool = False) -> None:
        """A field, or one of those that a list offers."""
        self.inputs += 1
        found = (within or self.main).get_by_label(self.named(label, exact=exact)).first
        if found.and_((within or self.main).locator("select")).count():
            found.select_option(text)
        else:
            found.fill(text)

    def tick(self, *labels: str, within: Locator | None = None, exact: bool = False) -> None:
        """Boxes."""
        for label in labels:
            self.inputs += 1
            (within or self.main).get_by_label(self.named(label, exact=exact)).first.check()

    def choose(self, label: str, name: str, content: bytes) -> None:
        """A file of one's own."""
        self.inputs += 1
        kind = "application/octet-stream"
        self.main.get_by_label(self.named(label)).set_input_files({"name": name, "mimeType": kind, "buffer": content})

    def saves(self, link: str, **values: str) -> bytes:
        """What is downloaded by a link."""
        with self.page.expect_download() as coming:
            self.main.get_by_role("link", name=self.named(self._words.gettext(link, **values))).first.click()
        return coming.value.path().read_bytes()

    def card(self, title: str) -> Locator:
        """The card under a title."""
        return self.main.locator(".card", has=self.page.get_by_role("heading", name=self.named(title, exact=False)))

    def column(self, name: str) -> Locator:
        """The line of a column in the table of a declaration."""
        return self.main.locator("tr", has=self.page.locator("th code").get_by_text(name, exact=True))

    def unfold(self, summary: str) -> None:
        """Open what is folded away."""
        self.inputs += 1
        self.main.locator("summary").filter(has_text=self.named(summary, exact=False)).first.click()

    def has(self, label: str) -> bool:
        """Whether the page has such a field."""
        return self.main.get_by_label(self.named(label)).count() > 0

    @property
    def main(self) -> Locator:
        """The page without its frame."""
        return self.page.locator("main")

    def reads(self, *texts: str, **values: str) -> None:
        """All of it stands on the page."""
        shown = self.main.inner_text().replace("\N{NO-BREAK SPACE}", " ")
        for text in texts:
            assert any(each in shown for each in self.told(text, **values)), f"{text!r} is not on {self.page.url}:\n{shown}"

    def told(self, text: str, **values: str) -> list[str]:
        """How a text of the pages may read in this visitor's language: a word may mean several things."""
        others = (told for key, told in self._words.messages.items() if key.endswith(f"{CONTEXT}{text}"))
        found = [self._words.gettext(text), *(each for each in others if isinstance(each, str) and each)]
        plural = self._words.messages.get(text)
        if isinstance(plural, tuple):
            found.append(self._words.ngettext(text, text, 1))
        if not values:
            return found
        return [each % values if "%(" in each else each.format(**values) for each in found]

    def named(self, text: str, *, exact: bool = True) -> re.Pattern[str]:
        """What finds a text of the pages in this visitor's language."""
        either = "|".join(re.escape(each) for each in self.told(text))
        return re.compile(rf"^\s*(?:{either})\s*$" if exact else either, 0 if exact else re.IGNORECASE)

    def log_out(self) -> None:
        """By the menu of the account."""
        self.page.locator("header.top details.menu summary").last.click()
        self.page.locator("header.top").get_by_role("button", name=self.named("Sign out")).click()
        self.arrived()

    def look(self) -> None:
        """Once for each kind of page, whoever comes by first."""
        refused = self.main.get_by_role("alert").count() > 0
        kind = f"{self.scripts} {self._width} {self._language} {kind_of(self.page.url)} {refused}"
        if kind in self._seen:
            return
        self._seen.add(kind)
        strict(self.page.content())
        if self.scripts:
            accessible(self.page)  # axe is a script itself
        assert self.main.get_by_role("heading", level=1).count() == 1, f"{self.page.url} has not one first heading"
        assert self.page.locator("header.top a[data-help]").count() == 1, f"{self.page.url} has no help"
        sideways = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert sideways <= 0, f"{self.page.url} is {sideways} px too wide"

    def arrived(self) -> None:
        """After a click, which waits until the next page begins: the whole page."""
        self.page.wait_for_load_state("load")
        self.look()


@dataclass(kw_only=True)
class Street:
    """A hub that several stories share, in which its people are logged in already."""

    house: House
    address: str
    visit: Callable[..., Guarded]
    seen: set[str] = field(default_factory=set)

    def visitor(self, somebody: Person, way: Way, *, path: str = "/", expected: tuple[str, ...] = ()) -> Visitor:
        """Their browser: dark where it is narrow. `expected`: refusals, which a browser reports as errors."""
        width, language = way
        theme = "dark" if width == NARROW else "light"
        guarded = self.visit(self.address, width=width, locale=language, theme=theme, expected=expected)
        name = cookie_name(self.house.settings)
        guarded.context.add_cookies([{"name": name, "value": somebody.client.cookies[name], "url": self.address}])
        return Visitor(guarded, scripts=True, width=width, seen=self.seen, language=language, path=path)

    def asks(self, somebody: Person, sql: str, spend: str, **more: Any) -> str:
        """An answer of theirs, by the API: its id."""
        answer = self.house.client().post("/api/v1/questions", json={"sql": sql, "spend": spend, **more}, headers=somebody.bearer)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


class Town:
    """The hub, and who comes to it."""

    def __init__(self, house: House, address: str, visit: Callable[..., Guarded], *, way: Way, scripts: Collection[str]) -> None:
        self.house, self.address, self._way, self._scripts = house, address, way, scripts
        self.first_link = self.reachable(first_link(house.hub) or "")
        self._visit, self._seen = visit, set[str]()

    def visitor(self, name: str, *, expected: tuple[str, ...] = ()) -> Visitor:
        """Somebody's browser, in which nobody is logged in: dark where it is narrow. `expected`: refusals, which a browser
        reports as errors."""
        (width, language), scripts = self._way, name in self._scripts
        theme = "dark" if width == NARROW else "light"
        guarded = self._visit(self.address, width=width, locale=language, theme=theme, scripts=scripts, expected=expected)
        return Visitor(guarded, scripts=scripts, width=width, seen=self._seen, language=language)

    def reachable(self, link: str) -> str:
        """A link of the hub, at the port where it answers here."""
        return self.address + urlsplit(link).path


@contextmanager
def opened(folder: Path, visit: Callable[..., Guarded], *, way: Way, scripts: Collection[str]) -> Iterator[Town]:
    """A new hub, served until the story ends. `scripts`: the names of those in whose browsers they run."""
    house = House(folder, Now())
    try:
        with served(house.hub) as address:
            yield Town(house, address, visit, way=way, scripts=scripts)
    finally:
        house.close()


def kind_of(url: str) -> str:
    """The page of an address, whichever object it shows.

    >>> kind_of("http://127.0.0.1:1/releases/I5mzOFQXk2RcGuIVyvqgxQ?confidence=0.9")
    '/releases/…'
    """
    return re.sub(r"/[\w-]{20,}", "/…", urlsplit(url).path)
