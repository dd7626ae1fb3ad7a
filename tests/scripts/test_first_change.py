"""What the pages about a first change say holds: their edits apply, and their tests fail and pass where they say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import first_change
from scripts.first_change import ROOT, Stale
from tests.tiers import some_by_day

PAGES = ("add-a-mechanism", "add-an-aggregate", "write-a-hub-service", "add-a-page")


@some_by_day("name", PAGES, lambda name: name == "add-an-aggregate")
def test_each_page_can_be_followed(name: str, tmp_path: Path) -> None:
    text = (ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")
    assert "# fails: " in text
    assert "# passes" in text
    assert first_change.follow(ROOT / f"docs/how-to/{name}.md", first_change.copied(tmp_path)) >= 4
    assert f"docs/how-to/{name}.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_each_edit_stands_where_the_page_says(tmp_path: Path) -> None:
    """By day for all pages, without their tests."""
    first_change.copied(tmp_path)
    for name in PAGES:
        for kind, step in first_change.steps((ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")):
            if kind == "diff":
                first_change.apply(step, tmp_path)
            elif "  # " not in step:  # what is copied, and no test
                first_change.run(step, tmp_path)
    assert "GET /whose" in (tmp_path / "tests/hub/routes.toml").read_text(encoding="utf-8")
    assert "GET /whose" not in (ROOT / "tests/hub/routes.toml").read_text(encoding="utf-8"), "the tree stays as it is"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("```diff\n+++ src/cloister/errors.py\n no such line\n+x\n```\n", "0 times"),
        ("```sh\nfalse\n```\n", "ended with 1"),
        ("```sh\ntrue  # fails: x\n```\n", "ended with 0"),
        ("```sh\necho no; false  # fails: yes\n```\n", "ended with 1"),
    ],
)
def test_a_page_that_is_wrong_is_found(page: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "src/cloister").mkdir(parents=True)
    (tmp_path / "src/cloister/errors.py").write_text("x\n", encoding="utf-8")
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    with pytest.raises(Stale, match=said):
        first_change.follow(tmp_path / "page.md", tmp_path)
