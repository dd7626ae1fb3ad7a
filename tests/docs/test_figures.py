"""Each figure can be drawn with no network and no web font, and those that are kept in the tree are what their scripts draw."""

from __future__ import annotations

import re
import runpy
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from zlib import crc32

import pytest

from scripts import figures
from tests.tiers import some_by_day

KEPT, DRAWN = figures.scripts(kept=True), figures.scripts(kept=False)


def check(text: str) -> None:
    assert ElementTree.fromstring(text).tag.endswith("svg")
    outside = re.findall(r"(?:href|src|url\()\s*=?\s*[\"']?(?:https?:)?//\S+|@import|@font-face", text)
    assert outside == []


@some_by_day("script", DRAWN, day=lambda script: crc32(script.stem.encode()) % 3 == 1, ids=lambda path: path.stem)
def test_the_figure_is_drawn_from_nothing_outside(script: Path) -> None:
    """As a draft, with one run of each curve: `make docs` and the night draw it in full. By day a third, by name."""
    check(figures.draft(script))


@pytest.mark.parametrize("script", DRAWN, ids=lambda path: path.stem)
def test_the_figure_has_a_script_that_is_read(script: Path) -> None:
    """Its names are there still: those that it imports, and what it draws."""
    assert callable(runpy.run_path(str(script))["chart"])


@pytest.mark.slow
@pytest.mark.xdist_group("documentation")  # where the site is built, too: what is drawn once is not drawn again
@pytest.mark.parametrize("script", DRAWN, ids=lambda path: path.stem)
def test_the_whole_figure_is_drawn_from_nothing_outside(script: Path) -> None:
    for picture in figures.draw(script, figures.DOCS / "_static"):
        text = picture.read_text(encoding="utf-8")
        assert text != figures.BLANK
        check(text)


@pytest.mark.parametrize("script", KEPT, ids=lambda path: path.stem)
def test_the_kept_figure_is_current(script: Path, tmp_path: Path) -> None:
    for picture in figures.draw(script, tmp_path):
        check(picture.read_text(encoding="utf-8"))
        kept = figures.DOCS / "_static" / picture.name
        assert kept.read_text(encoding="utf-8") == picture.read_text(encoding="utf-8"), "run: python scripts/figures.py"


def test_every_figure_is_shown_on_a_page() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in figures.DOCS.rglob("*.md"))
    assert [script.stem for script in [*KEPT, *DRAWN] if f"/{script.stem}.svg" not in pages] == []


def test_a_script_that_draws_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(SystemExit, match="neither"):
        figures.draw(tmp_path / "empty.py", tmp_path)
