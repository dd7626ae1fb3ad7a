"""The documentation builds without a warning, with no network, into pages that fetch nothing from anywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.hub.web.browser import browser

__all__ = ["browser"]

pytestmark = [pytest.mark.xdist_group("documentation"), pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]


PAGE = """# A page

A figure: ![the house](_static/house.svg), a name `x`, and code.

```python
import cloister as cl
```

```python
# continued from above
budget = cl.PureDP(1)
```

```python
# continued from above
print(cl.PureDP("0.5"), budget)
```

```python
>>> # continued from above
>>> for each in (budget, budget):
...     print(each)
ε = 1
ε = 1
```
"""
CONFIGURATION = """
import runpy
from pathlib import Path

docs = Path({docs!r})
site = runpy.run_path(str(docs / "conf.py"), {{"tags": tags}})
globals().update({{name: value for name, value in site.items() if name != "setup"}})
html_static_path = [str(docs / "_static")]
"""
"""The site's own configuration, for one page instead of its pages and figures."""


def built(source: Path, target: Path, *how: str) -> Path:
    """What Sphinx makes of a folder; a warning is an error. Objects are left out of the contents, which each page holds anew."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "toc_object_entries=0", *how]
    command += ["-d", str(target / "trees"), str(source), str(target / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return target / "html"


@pytest.fixture(scope="module", params=["draft", pytest.param("whole", marks=pytest.mark.slow)])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages: by day a draft, in a plain theme and with figures that may be blank; at night as they are."""
    return built(ROOT / "docs", tmp_path_factory.mktemp("site"), *(["-t", "draft"] if request.param == "draft" else []))


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


def fetched(html: Path) -> set[str]:
    fetching = re.compile(
        r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href|srcset)=\"(?:https?:)?//[^\"]+\"|@import\s+url\(\s*[\"']?(?:https?:)?//"
    )
    pages = [*html.rglob("*.html"), *html.rglob("*.css")]
    assert pages
    return {found for page in pages for found in fetching.findall(page.read_text(encoding="utf-8"))}


def test_the_pages_fetch_nothing(site: Path) -> None:
    assert fetched(site) == set()


@pytest.fixture(scope="module")
def themed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page with the theme and the options of the site, which the draft leaves out."""
    folder = tmp_path_factory.mktemp("themed")
    (folder / "docs").mkdir()
    (folder / "docs" / "conf.py").write_text(CONFIGURATION.format(docs=str(ROOT / "docs")), encoding="utf-8")
    (folder / "docs" / "index.md").write_text(PAGE, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "_static", folder / "docs" / "_static", ignore=shutil.ignore_patterns("figures"))
    return built(folder / "docs", folder)


def test_the_theme_fetches_nothing(themed: Path) -> None:
    assert "furo" in (themed / "index.html").read_text(encoding="utf-8")
    assert fetched(themed) == set()


def test_what_is_copied_runs_alone(themed: Path, browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that goes on is copied with those before it, and an example with prompts without them and what it printed."""
    page = browser.new_page()
    page.add_init_script("navigator.clipboard.writeText = async (text) => { window.pasted = text; }")
    page.goto((themed / "index.html").as_uri())
    printed = ["", "", "ε = 0.5 ε = 1\n", "ε = 0.5 ε = 1\nε = 1\nε = 1\n"]
    for button, told in zip(page.locator("button.copy").all(), printed, strict=True):
        button.click()
        exec(compile(page.evaluate("window.pasted"), "pasted", "exec"), {})
        assert capsys.readouterr().out == told
