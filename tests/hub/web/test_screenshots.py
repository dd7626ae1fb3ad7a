"""Pictures are taken of what a person can reach, and what is wrong with a page is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import screenshots
from scripts.engines import chromium
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
