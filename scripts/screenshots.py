"""Pictures of every page of a running hub, at two widths and in both looks, for the documentation and for a critical eye.

    make demo                                                     # prints a log-in link for each person
    python -m scripts.screenshots http://127.0.0.1:8765 --as owner=/link/… --as analyst=/link/… --folder /tmp/pictures
    python -m scripts.screenshots --tour                          # the documentation's own, from a demonstration

For a visitor and each person, the first page is taken, every place of the navigation, and the first thing that each place leads
to, so a new service needs no line here. A page that answers with an error, scrolls sideways or asks another host is a fault.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page, sync_playwright

from scripts.engines import chromium
from scripts.tour import tour

WIDTHS = (360, 1280)
THEMES = ("light", "dark")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
HEIGHT = 860
TALLEST = 4000
IMAGES = Path("docs/images/hub")


@dataclass(kw_only=True)
class Taken:
    """What was taken, and what was wrong with it."""

    files: list[Path] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def take(
    address: str,
    people: Mapping[str, str],
    folder: Path,
    *,
    widths: Sequence[int] = WIDTHS,
    themes: Sequence[str] = THEMES,
    language: str = "en",
) -> Taken:
    """Pictures of what each person sees. `people`: a name for the files → a one-time log-in link."""
    program = chromium()
    if program is None:
        raise SystemExit("Chromium is not here: apt-get install chromium")
    taken = Taken()
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program), args=list(ARGUMENTS))
        for who, link in [("visitor", "/"), *people.items()]:
            context = browser.new_context(
                locale=language, reduced_motion="reduce", viewport={"width": widths[-1], "height": HEIGHT}
            )
            _stay_home(context, address, taken)
            page = context.new_page()
            page.goto(address + urlsplit(link).path)
            if link != "/" and page.locator("main form button").count():
                page.locator("main form button").first.click()
                page.wait_for_load_state("load")
            for name, path in list(pages_of(page, address)):
                for width in widths:
                    for theme in themes:
                        _picture(page, address + path, width, theme, folder / f"{who}-{name}-{width}-{theme}.png", taken)
            context.close()
        browser.close()
    return taken


def pages_of(page: Page, address: str) -> Iterator[tuple[str, str]]:
    """The first page, each place, and the first thing that each place leads to: a name for the file, and the path."""
    yield "first", "/"
    page.goto(address + "/")
    hrefs = page.locator("header nav a, .side nav a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    places = [href for href in dict.fromkeys(hrefs) if href.startswith("/") and href != "/"]
    if not places:
        places = ["/login"]
    for place in places:
        yield name_of(place), place
        page.goto(address + place)
        inner = page.locator("main a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        below = [href for href in inner if href and href.startswith(place.rstrip("/") + "/") and "/export/" not in href]
        if below:
            yield f"{name_of(place)}-one", below[0]


def name_of(path: str) -> str:
    """A name for a file.

    >>> name_of("/data-sets?mine=1"), name_of("/")
    ('data-sets', 'first')
    """
    return re.sub(r"[^a-z0-9]+", "-", urlsplit(path).path.lower()).strip("-") or "first"


def _picture(page: Page, url: str, width: int, theme: str, file: Path, taken: Taken) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    answer = page.goto(url, wait_until="load")
    if answer is None or answer.status >= 400:
        taken.faults.append(f"{url}: answered {answer.status if answer else 'nothing'}")
        return
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if too_wide > 0:
        taken.faults.append(f"{url}: {too_wide} px too wide at {width}")
    page.evaluate("scrollTo(0, 0)")
    tall = min(TALLEST, max(HEIGHT, page.evaluate("document.documentElement.scrollHeight")))
    page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": tall})
    taken.files.append(file)


def _stay_home(context: BrowserContext, address: str, taken: Taken) -> None:
    def asked(request) -> None:  # type: ignore[no-untyped-def]
        if urlsplit(request.url).netloc not in ("", urlsplit(address).netloc):
            taken.faults.append(f"a page asked another host: {request.url}")

    context.on("request", asked)


def main() -> int:
    """Take them all, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", nargs="?", help="where the hub answers")
    parser.add_argument("--as", dest="people", action="append", default=[], metavar="NAME=LINK", help="a person's log-in link")
    parser.add_argument("--folder", type=Path, help="where they are put; those of the documentation in docs/images/hub")
    parser.add_argument("--language", default="en")
    parser.add_argument("--tour", action="store_true", help="start a demonstration, and take the pictures of the documentation")
    given = parser.parse_args()
    if given.tour:
        print(*tour(given.folder or IMAGES), sep="\n")
        return 0
    if not given.address or not given.folder:
        parser.error("an address and --folder, or --tour")
    people = dict(each.split("=", 1) for each in given.people)
    taken = take(given.address.rstrip("/"), people, given.folder, language=given.language)
    print(f"{len(taken.files)} pictures in {given.folder}")
    for fault in taken.faults:
        print(f"!!! {fault}")
    return min(1, len(taken.faults))


if __name__ == "__main__":
    sys.exit(main())
