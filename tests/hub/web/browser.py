"""A real hub and a real browser for tests: an application on a free port in a thread, Chromium, and what must hold of every page.

Import the fixtures where they are wanted: `from tests.hub.web.browser import browser, serve, visit  # noqa: F401`. Where there is
no Chromium, tests that use them are skipped with one loud line; with CLOISTER_REQUIRE_ENGINES=1 they fail.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, expect, sync_playwright

from scripts.engines import chromium

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"
"""No page reaches another machine. (To stop its requests one by one, Playwright would switch the cache of the browser off.)"""
WIDTHS = (360, 1280)
GRAVE = ("serious", "critical")

PATIENCE = 60_000
"""Milliseconds until a page is given up: on a busy machine it comes late, and no test is about that."""
expect.set_options(timeout=PATIENCE)


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port while this holds; gives its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the application did not start")
            time.sleep(0.01)
        yield address
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Any], str]]:
    """Serve applications until the module's tests end: `address = serve(app)`."""
    with contextlib.ExitStack() as stack:
        yield lambda app: stack.enter_context(served(app))


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium. Only for a module: while it runs, nothing else in this thread can use asyncio."""
    program = chromium()
    if program is None:
        missing(request.config)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(program), args=[*ARGUMENTS, NOWHERE])
        yield started
        started.close()


def missing(config: pytest.Config) -> NoReturn:
    """Say loudly that there is no Chromium, and skip; or fail where engines are required."""
    line = "!!! Chromium is not here: the tests of pages are SKIPPED (as root: apt-get install chromium)"
    if os.environ.get("CLOISTER_REQUIRE_ENGINES") == "1":
        pytest.fail(line, pytrace=False)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not config.stash.get(_SAID, False):
        config.stash[_SAID] = True
        reporter.ensure_newline()
        reporter.write_line(line, red=True, bold=True)
    pytest.skip(line)


_SAID = pytest.StashKey[bool]()


class Guarded:
    """A browser's context for one hub, which remembers where else its pages tried to go, and what they complained of."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context = context
        self.address = address
        self.foreign: list[str] = []
        self.complaints: list[str] = []
        context.on("request", self._check)
        context.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def page(self, path: str = "/") -> Page:
        """A new page at a path of the hub."""
        page = self.context.new_page()
        page.goto(self.address + path, wait_until="load")
        return page

    def _check(self, request: Request) -> None:
        url = request.url
        if not url.startswith(("data:", "blob:")) and urlsplit(url).netloc != urlsplit(self.address).netloc:
            self.foreign.append(url)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Guarded]]:
    """`visit(address, width=360, theme="dark", scripts=False)`: a visitor. After the test: no request to another host was
    made and no page broke its own policy or failed in its script (`expected=` lists parts of messages that a test wants).
    """
    opened: list[tuple[Guarded, tuple[str, ...]]] = []

    def open_one(
        address: str,
        *,
        width: int = 1280,
        height: int = 900,
        theme: str = "light",
        locale: str = "en",
        scripts: bool = True,
        expected: tuple[str, ...] = (),
    ) -> Guarded:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,  # type: ignore[arg-type]
            locale=locale,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        guarded = Guarded(context, address)
        opened.append((guarded, expected))
        return guarded

    yield open_one
    for guarded, expected in opened:
        guarded.context.close()
        no_foreign_requests(guarded)
        unexpected = [text for text in guarded.complaints if not any(part in text for part in expected)]
        assert not unexpected, f"the browser complained: {unexpected}"


def no_foreign_requests(guarded: Guarded) -> None:
    """No page asked another host for anything."""
    assert not guarded.foreign, f"requests to other hosts: {guarded.foreign}"


def log_in(page: Page, email: str, password: str) -> None:
    """Log in by the form, as a person does."""
    page.goto(_origin(page) + "/login")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password", exact=True).fill(password)
    page.locator("main form button").first.click()
    page.wait_for_load_state("load")


def follow_link(page: Page, link: str) -> None:
    """Come in by a one-time link, such as those of a demonstration; its page asks for one press of a button."""
    page.goto(_origin(page) + urlsplit(link).path)
    page.locator("main form button").first.click()
    page.wait_for_load_state("load")


def last(found: Locator) -> Locator:
    """The last of these on the whole page: while a page comes in, the last that is there may be any of them."""
    found.page.wait_for_load_state("load")
    return found.last


def _origin(page: Page) -> str:
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}"


def findings(page: Page) -> list[str]:
    """What axe-core finds that is serious or critical: rule, selectors and the reason."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.wait_for_load_state("load")  # a page that a click led to may not have its style yet
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    violations = page.evaluate("axe.run({resultTypes: ['violations'], preload: false}).then(found => found.violations)")
    return [
        f"{found['id']}: {node['target']}: {node.get('failureSummary', '')}"
        for found in violations
        if found["impact"] in GRAVE
        for node in found["nodes"]
    ]


def accessible(page: Page, *widths: int) -> None:
    """Nothing serious for axe-core, no sideways scrolling, and a first heading; in each of these widths, or as it is."""
    for width in widths or (None,):
        if width:
            page.set_viewport_size({"width": width, "height": 900})
        found = findings(page)
        assert not found, f"{page.url} is not accessible at {width} px:\n" + "\n".join(found)
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, f"{page.url} is {too_wide} px wider than its window"
    assert page.locator("h1").count() == 1, f"{page.url} has {page.locator('h1').count()} first headings"


class _Strict(HTMLParser):
    """Collects what the content security policy forbids in a page, and forms without their token."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._posting = ""
        self._has_token = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in given:
            if name == "style" or name.startswith("on"):
                self.faults.append(f"<{tag} {name}=…> at {self.getpos()}")
        if tag == "style" or (tag == "script" and "src" not in given):
            self.faults.append(f"inline <{tag}> at {self.getpos()}")
        for name in ("src", "href", "action", "formaction"):
            value = (given.get(name) or "").strip().lower()
            loaded = tag in ("script", "link", "img", "iframe", "use", "form", "button", "source", "object", "embed")
            if value.startswith("javascript:") or (loaded and value.startswith(("http:", "https:", "//"))):
                self.faults.append(f"<{tag} {name}={value}> at {self.getpos()}")
        if tag == "form" and (given.get("method") or "get").lower() == "post":
            self._posting, self._has_token = given.get("action") or "(no action)", False
        if tag == "input" and given.get("name") == "form_token" and given.get("value"):
            self._has_token = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._posting:
            if not self._has_token:
                self.faults.append(f"the form to {self._posting} has no token")
            self._posting = ""


def strict(html: str) -> None:
    """No inline style or script, no handler, nothing loaded from another host, a token in each form that posts."""
    parser = _Strict()
    parser.feed(html)
    parser.close()
    assert not parser.faults, "; ".join(parser.faults)
