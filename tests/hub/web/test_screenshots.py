"""Pictures are taken of what a person can reach, and what is wrong with a page is said; the documentation has all of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import screenshots
from scripts.engines import chromium
from scripts.tour import MOST_BYTES, STOPS
from scripts.tour_anonymising import ANONYMISED
from scripts.tour_building import BUILT
from scripts.tour_clients import CLIENTS
from scripts.tour_declaring import DECLARED
from scripts.tour_menu import MENU
from scripts.tour_publishing import PUBLISHED
from scripts.tour_reading import READ
from scripts.tour_surveys import SURVEYS
from tests.hub.web.browser import missing, served
from tests.hub.web.gallery import make_gallery


def test_every_place_is_taken_and_every_fault_is_said(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if chromium() is None:
        missing(pytestconfig)
    with served(make_gallery()) as address:
        taken = screenshots.take(address, {"ada": "/"}, tmp_path, widths=(360,), themes=("dark",))
    names = {file.name for file in taken.files}
    assert names >= {"ada-first-360-dark.png", "ada-gallery-360-dark.png", "visitor-first-360-dark.png"}
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in taken.files)
    assert any("/ask: answered 404" in fault for fault in taken.faults)
    assert not any("/gallery" in fault for fault in taken.faults)


def test_the_pages_show_every_picture_of_the_tour() -> None:
    folder = Path(__file__).parents[3] / "docs"
    files = {file.stem: file for file in (folder / screenshots.IMAGES.relative_to("docs")).iterdir()}
    toured, surveyed, anonymised, declared, built, menu, published = (
        re.findall(r"images/hub/([\w-]+)\.webp", (folder / page).read_text())
        for page in (
            "tutorials/a-first-hub.md",
            "how-to/run-a-survey.md",
            "how-to/anonymise-a-data-set.md",
            "how-to/share-a-data-set.md",
            "how-to/ask-a-hub.md",
            "how-to/find-your-way.md",
            "how-to/publish-an-answer.md",
        )
    )
    assert toured == [stop.name for stop in STOPS if stop.shown]
    assert surveyed == list(SURVEYS)
    assert anonymised == list(ANONYMISED)
    assert declared == list(DECLARED)
    assert sorted(built) == sorted([*BUILT, *READ, *CLIENTS])
    assert menu == list(MENU)
    assert published == list(PUBLISHED)
    assert sorted(files) == sorted(toured + surveyed + anonymised + declared + built + menu + published)
    assert all(file.stat().st_size <= MOST_BYTES for file in files.values())
