"""A town for stories: a hub that nobody has entered yet, over real connections, and people who only click and type.

A `Visitor` reads what stands on the page and presses what it finds there. Each new kind of page that somebody comes by is looked
at once: by axe where scripts run, and for a first heading, sideways scrolling, inline scripts and tokens of forms.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page

from cloister.hub.services.accounts import first_link
from tests.hub.house import Clock, House, served
from tests.hub.web.browser import Guarded, accessible, strict

PASSWORD = "tepid otter juggles maps"
WIDE, NARROW = 1280, 360


class Now(Clock):
    """The real time: a browser looks at it too."""

    def __call__(self) -> float:
        return time.time()


class Visitor:
    """Somebody at a browser."""

    def __init__(self, guarded: Guarded, *, scripts: bool, width: int, seen: set[str]) -> None:
        self.page: Page = guarded.page("/")
        self.scripts, self.narrow = scripts, width < 1000
        self._seen = seen
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
        group = menu.locator("details:not([open])", has=self.page.get_by_text(place, exact=True))
        if group.count():
            group.locator("summary").click()
        menu.get_by_role("link", name=place, exact=True).click()
        self._arrived()

    def places(self) -> list[str]:
        """What the navigation offers."""
        return [each.strip() for each in self.page.locator(".side nav a").all_text_contents()]

    def follow(self, name: str, *, exact: bool = True) -> None:
        """A link of the page."""
        self.main.get_by_role("link", name=name, exact=exact).first.click()
        self._arrived()

    def press(self, name: str, *, within: Locator | None = None) -> None:
        """A button."""
        (within or self.main).get_by_role("button", name=name, exact=True).first.click()
        self._arrived()

    def fill(self, label: str, text: str, *, within: Locator | None = None) -> None:
        """A field, or one of those that a list offers."""
        found = (within or self.main).get_by_label(label).first
        if found.and_((within or self.main).locator("select")).count():
            found.select_option(text)
        else:
            found.fill(text)

    def tick(self, *labels: str) -> None:
        """Boxes."""
        for label in labels:
            self.main.get_by_label(label).first.check()

    def card(self, title: str) -> Locator:
        """The card under a title."""
        return self.main.locator(".card", has=self.page.get_by_role("heading", name=title))

    def unfold(self, summary: str) -> None:
        """Open what is folded away."""
        self.main.locator("summary", has_text=summary).first.click()

    @property
    def main(self) -> Locator:
        """The page without its frame."""
        return self.page.locator("main")

    def reads(self, *texts: str) -> None:
        """All of it stands on the page."""
        shown = self.main.inner_text().replace("\N{NO-BREAK SPACE}", " ")
        for text in texts:
            assert text in shown, f"{text!r} does not stand on {self.page.url}:\n{shown}"

    def log_out(self) -> None:
        """By the menu of the account."""
        self.page.locator("header.top details.menu summary").last.click()
        self.page.locator("header.top").get_by_role("button", name="Sign out").click()
        self._arrived()

    def look(self) -> None:
        """Once for each kind of page, whoever comes by first."""
        kind = f"{self.scripts} {kind_of(self.page.url)} {self.main.get_by_role('alert').count() > 0}"
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

    def _arrived(self) -> None:
        self.page.wait_for_load_state("load")
        self.look()


class Town:
    """The hub, and who comes to it."""

    def __init__(self, house: House, address: str, visit: Callable[..., Guarded], *, scripts: Collection[str]) -> None:
        self.house, self.address, self._scripts = house, address, scripts
        self.first_link = self.reachable(first_link(house.hub) or "")
        self._visit, self._seen = visit, set[str]()

    def visitor(self, name: str, *, expected: tuple[str, ...] = ()) -> Visitor:
        """Somebody's browser, in which nobody is logged in: wide and light with scripts, a dark phone without. `expected`:
        refusals, which a browser reports as errors."""
        scripts = name in self._scripts
        width, theme = (WIDE, "light") if scripts else (NARROW, "dark")
        guarded = self._visit(self.address, width=width, theme=theme, scripts=scripts, expected=expected)
        return Visitor(guarded, scripts=scripts, width=width, seen=self._seen)

    def reachable(self, link: str) -> str:
        """A link of the hub, at the port where it answers here."""
        return self.address + urlsplit(link).path


@contextmanager
def opened(folder: Path, visit: Callable[..., Guarded], *, scripts: Collection[str]) -> Iterator[Town]:
    """A new hub, served until the story ends. `scripts`: the names of those in whose browsers they run."""
    house = House(folder, Now())
    try:
        with served(house.hub) as address:
            yield Town(house, address, visit, scripts=scripts)
    finally:
        house.close()


def kind_of(url: str) -> str:
    """The page of an address, whichever object it shows.

    >>> kind_of("http://127.0.0.1:1/releases/I5mzOFQXk2RcGuIVyvqgxQ?confidence=0.9")
    '/releases/…'
    """
    return re.sub(r"/[\w-]{20,}", "/…", urlsplit(url).path)
