"""The documentation builds without a warning, with no network, into pages that fetch nothing from anywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.xdist_group("documentation"), pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages. Objects are left out of the contents: Sphinx copies them for each page, which is most of its work."""
    target = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-D",
        "toc_object_entries=0",
        "-d",
        str(target / "trees"),
        "docs",
        str(target / "html"),
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-4000:]
    return target / "html"


def test_every_section_is_there(site: Path) -> None:
    for page in (
        "index",
        "glossary",
        "benchmarks",
        "tutorials/first-answer",
        "explanation/how-an-answer-is-made",
        "reference/api/cloister.privacy",
    ):
        assert (site / f"{page}.html").exists(), page


def test_the_pages_fetch_nothing(site: Path) -> None:
    fetching = re.compile(
        r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href|srcset)=\"(?:https?:)?//[^\"]+\"|@import\s+url\(\s*[\"']?(?:https?:)?//"
    )
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert pages
    assert {found for page in pages for found in fetching.findall(page.read_text(encoding="utf-8"))} == set()
