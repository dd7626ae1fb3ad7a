"""The pictures of docs/images/hub: a demonstration is started, its people do what the tutorial tells, and pages are taken.

`python -m scripts.screenshots --tour` calls it. Noise is fresh each time, so the numbers on the pictures differ each time.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from cloister.cli.demo_hub import PEOPLE
from scripts.engines import chromium
from scripts.spark import free_port
from scripts.tour_anonymising import anonymised_pictures
from scripts.tour_building import built_pictures
from scripts.tour_clients import client_pictures
from scripts.tour_declaring import declared_pictures
from scripts.tour_menu import menu_pictures
from scripts.tour_publishing import published_pictures
from scripts.tour_reading import read_pictures
from scripts.tour_surveys import survey_pictures

__all__ = ["STOPS", "Stop", "tour"]

WIDTH, VIEW = 900, 1400
QUALITY = 82
MOST_BYTES = 60_000
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
CSV = b"age,sex,income\n" + b"34,F,41000\n51,M,38500\n29,F,44000\n" * 100
CARE = "SELECT ward, COUNT(*) AS visits, AVG(stay) AS nights FROM visits GROUP BY ward"


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One picture: who goes where, what they fill in (label, text or file) and press (a name alone), and what is shown."""

    name: str
    who: str
    path: str
    steps: tuple[tuple[str | bytes, ...], ...] = ()
    top: str = ""
    """What stands at the picture's upper edge; empty: the page's own."""
    height: int = 640
    shown: bool = True


def _asked(sql: str, spend: str, purpose: str, button: str) -> tuple[tuple[str | bytes, ...], ...]:
    return ("Query", sql), ("Spend", spend), ("Purpose", purpose), (button,)


STOPS = (
    Stop(name="welcome", who="visitor", path="/", height=520),
    Stop(name="story", who="analyst", path="/", height=425),
    Stop(name="invite", who="administrator", path="/people/invite", steps=(("E-mail address", "emmy@example.org"),), height=880),
    Stop(name="register", who="owner", path="/register", height=540),
    Stop(
        name="declare",
        who="owner",
        path="/register",
        steps=(
            ("Table file", CSV),
            ("Upload",),
            ("Kind", "integer"),
            ("From", "17"),
            ("To", "90"),
            ("Public reason", "the register takes adults"),
        ),
        top="section:has(.declared) h2",
    ),
    Stop(name="access", who="owner", path="/datasets/visits/access", height=820),
    Stop(name="data-set", who="analyst", path="/datasets/visits", height=760),
    Stop(
        name="explained", who="analyst", path="/ask?about=visits", steps=_asked(CARE, "0.3", "care paths", "Explain"), height=1400
    ),
    Stop(name="answer", who="analyst", path="/ask", steps=_asked(CARE, "0.3", "care paths", "Run"), height=1180),
    Stop(
        name="refused",
        who="analyst",
        path="/ask",
        steps=_asked("SELECT AVG(cost) AS cost FROM visits", "5", "care paths", "Run"),
        top="main .refusal",
        height=200,
    ),
    *(
        Stop(
            name=f"count-{age}",
            who="analyst",
            path="/ask",
            steps=_asked(f"SELECT COUNT(*) AS n FROM census WHERE age >= {age}", "0.05", "ages", "Run"),
            shown=False,
        )
        for age in (40, 41)
    ),
    Stop(name="budget", who="owner", path="/budgets/patients", height=790),
    Stop(name="alert", who="administrator", path="/trail/alerts", height=560),
    Stop(name="trail", who="administrator", path="/trail", steps=(("Verify",),), height=760),
)


def tour(folder: Path) -> list[Path]:
    """Take them all: the files, each no larger than what a page of the documentation should load."""
    program = chromium()
    if program is None:
        raise SystemExit("Chromium is not here: apt-get install chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with _demonstration() as found, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program), args=list(ARGUMENTS))
        pages = {who: _entered(browser, found["address"], link) for who, link in {"visitor": "/", **found["links"]}.items()}
        files = [_stop(pages[stop.who], found["address"], stop, folder) for stop in STOPS]
        picture = partial(_picture, folder)
        files += survey_pictures(pages["analyst"], pages["visitor"], found["address"], picture)
        files += built_pictures(pages["analyst"], found["address"], picture)
        files += read_pictures(pages["analyst"], pages["owner"], found["address"], picture)
        files += published_pictures(pages["analyst"], found["address"], picture)
        files += menu_pictures(pages["owner"], found["address"], picture)
        files += declared_pictures(pages["owner"], found["address"], picture)
        files += anonymised_pictures(pages["owner"], found["address"], picture)
        files += client_pictures(browser.new_page(viewport={"width": WIDTH, "height": VIEW}), _client(found), picture)
        browser.close()
    taken = [file for file in files if file is not None]
    for file in taken:
        if file.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{file} has {file.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    return taken


@contextmanager
def _demonstration() -> Iterator[Mapping[str, Any]]:
    """What `cloister demo --json` prints, while it serves."""
    command = [str(Path(sys.executable).with_name("cloister")), "demo", "--json"]
    port = free_port()
    environment = {**os.environ, "CLOISTER_HUB_PG_PORT": str(port)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            yield {**json.loads(running.stdout.readline()), "pg_port": port}
        finally:
            running.terminate()


def _client(found: Mapping[str, Any]) -> tuple[int, str, str]:
    """Where the PostgreSQL clients of the analyst come in, as whom, and with which token."""
    return found["pg_port"], PEOPLE["analyst"][1], found["token"]


def _entered(browser: Browser, address: str, link: str) -> Page:
    page = browser.new_page(locale="en", reduced_motion="reduce", viewport={"width": WIDTH, "height": VIEW})
    page.goto(address + urlsplit(link).path)
    if link != "/":
        page.locator("main form button").first.click()
        page.wait_for_load_state("load")
    return page


def _stop(page: Page, address: str, stop: Stop, folder: Path) -> Path | None:
    page.goto(address + stop.path)
    for label, *value in stop.steps:
        if not value:
            page.locator("main").get_by_role("button", name=str(label), exact=True).first.click()
            page.wait_for_load_state("load")
            continue
        field = page.locator("main").get_by_label(re.compile(rf"^\s*{label}\b")).first
        if isinstance(value[0], bytes):
            field.set_input_files({"name": "survey.csv", "mimeType": "text/csv", "buffer": value[0]})
        elif field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value[0])
        else:
            field.fill(value[0])
    return _picture(folder, page, stop.name, stop.top, stop.height) if stop.shown else None


def _picture(folder: Path, page: Page, name: str, upper: str, height: int) -> Path:
    page.evaluate("document.activeElement?.blur()")
    page.evaluate("scrollTo(0, 0)")
    top = page.locator(upper).first.bounding_box() if upper else None
    wide = (page.viewport_size or {"width": WIDTH})["width"]
    clip = {"x": 0, "y": max(0, top["y"] - 12) if top else 0, "width": wide, "height": height, "scale": 1}
    wanted = {"format": "webp", "quality": QUALITY, "clip": clip, "captureBeyondViewport": True}
    drawn = page.context.new_cdp_session(page).send("Page.captureScreenshot", wanted)
    file = folder / f"{name}.webp"
    file.write_bytes(base64.b64decode(drawn["data"]))
    return file
