"""The whole hub in Chinese: no page says in English what the catalogue can say, and each names its language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from cloister.hub.web.languages import language_of
from cloister.hub.web.render import LANGUAGE_COOKIE
from tests.hub.house import House
from tests.hub.security.walk import addresses, places
from tests.hub.security.world import World, populated

SHOWN = {"aria-label", "alt", "data-confirm", "data-copied", "data-label", "placeholder", "title"}
UNTOLD = {"code", "option", "pre", "script", "style", "textarea"}
"""Elements that hold what people and programs wrote."""
ALONE = {"br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect", "source", "use"}


class Visible(HTMLParser):
    """The texts that a page shows or reads out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [text for name, text in attrs if text and name in SHOWN]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not UNTOLD & set(self.open):
            self.texts.append(" ".join(data.split()))


@pytest.fixture
def world(house: House) -> World:
    return populated(house)


def pages(world: World, visitor: str) -> Iterator[tuple[str, str]]:
    client = getattr(world, visitor).client
    client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    for place in places(world.house.app):
        if not place.api and not place.writes and "form" not in place.parameters:
            for address in addresses(place, world.ids):
                answer = client.get(address)
                if answer.headers.get("content-type", "").startswith("text/html"):
                    yield address, answer.text


@pytest.mark.parametrize("visitor", ["owner", "analyst", "administrator", "steward"])
def test_no_page_says_in_english_what_it_can_say_in_chinese(world: World, visitor: str) -> None:
    chinese = language_of("zh_CN")
    left, seen = set(), 0
    for address, page in pages(world, visitor):
        seen += 1
        assert '<html lang="zh-Hans"' in page or "<html" not in page, address  # a part that a page fetches has no language
        left |= {(text, address) for text in Visible(page).texts if chinese.gettext(text) != text}
    assert seen > 20
    assert not left


def test_times_and_numbers_are_written_as_in_chinese(world: World) -> None:
    page = dict(pages(world, "owner"))["/datasets/secrets_zqx/manage"]
    assert re.search(r'<time datetime="2026-03-02T09:00:00Z"[^>]*>2026年3月2日 09:00 UTC</time>', page)
