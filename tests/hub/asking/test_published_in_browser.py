"""An analyst publishes a dashboard's answers and a page of another site frames them; a site that was not named frames nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.hub.asking.test_building_in_browser import opened, served
from tests.hub.web.browser import accessible, browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "served", "visit"]

WAYS = [(width, language) for width in (1400, 390) for language in ("en", "zh-CN")]


@contextmanager
def site(html: list[str]) -> Iterator[str]:
    """Another site, whose every page is this: its origin. (A page that a test makes up is not let near the hub by Chromium.)"""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write("".join(html).encode())

        def log_message(self, *given: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@some_by_day("width, language", WAYS, lambda way: way == (390, "zh-CN"))
def test_a_page_of_another_site_frames_an_answer(served: Any, browser: Any, visit: Any, width: int, language: str) -> None:
    html = list[str]()
    with site(html) as named, site(html) as other:
        _framed(served, browser, visit, width, language, html, named, other)


def _framed(served: Any, browser: Any, visit: Any, width: int, language: str, html: list[str], named: str, other: str) -> None:
    stage, address = served
    stage.house.grant(stage.people, stage.ana, by=stage.owner, actions=("release.publish",))
    number = stage.ask(f"SELECT sex, COUNT(*) AS n FROM ward WHERE age > {width % 30} GROUP BY sex", "0.05")["id"]
    assert (
        stage.ana.client.get(f"/releases/{number}/chart.svg").status_code == 200
    )  # the first picture of a process takes a while
    page = opened(served, visit, f"/releases/{number}", width=width, locale=language, theme="dark" if width == 390 else "light")
    title = f"Care by sex, {width} {language}"  # the cases share a hub, whose clock stands
    page.locator("#f-published-title").fill(title)
    page.locator("[name=origins]").fill(named)
    page.locator("[name=until]").fill("2026-04-01")
    accessible(page)
    page.locator("form[action='/published'] button").click()
    accessible(page)
    own = page.locator("section.card").filter(has=page.get_by_role("heading", name=title, exact=True))
    line = own.locator("code").inner_text()
    assert line.startswith("<iframe src="), line
    path = "/shown/" + line.split("/shown/")[1].split('"')[0]
    kept(page, f"published-{width}-{language}")
    context = browser.new_context(viewport={"width": width, "height": 800}, locale=language)
    try:
        html.append(f'<!doctype html><title>A site</title><iframe src="{address}{path}" width="100%" height="700"></iframe>')
        framing = context.new_page()
        framing.goto(f"{named}/page", wait_until="commit")
        inside = framing.frame_locator("iframe")
        expect(inside.get_by_role("heading", level=1)).to_have_text(title, timeout=60_000)
        expect(inside.get_by_role("table")).to_be_visible()
        wide = inside.locator("img.chart").evaluate("image => image.decode().then(() => image.naturalWidth)")
        assert wide > 100
        kept(framing, f"framed-{width}-{language}")
        framing.goto(f"{other}/page", wait_until="commit")
        framing.wait_for_timeout(300)
        assert framing.frames[1].query_selector("h1") is None, "it was framed by a site that was not named"
        alone = context.new_page()
        alone.goto(address + path)
        accessible(alone)
        assert context.cookies() == []
    finally:
        context.close()


def kept(page: Any, name: str) -> None:
    """For whoever wants to look."""
    folder = os.environ.get("CLOISTER_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
