"""The hub's pages of the documentation say what the code says: settings, permissions, routes, the threat model's tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import hub_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.xdist_group("hub pages")


@pytest.mark.parametrize(("page", "name"), list(hub_pages.TABLES), ids=lambda value: value)
def test_the_table_is_current(page: str, name: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert hub_pages.with_table(text, name, hub_pages.TABLES[page, name]()) == text, "run: python scripts/hub_pages.py"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="begin: settings"):
        hub_pages.with_table("# Settings\n", "settings", "| a |")


def test_every_route_names_its_action(tmp_path: Path) -> None:
    described = hub_pages.api_of(tmp_path / "hub")
    assert described["paths"]
    assert {place for place, action in described["x-actions"].items() if action is None} == set()


def test_every_promise_of_the_threat_model_names_tests_that_exist() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests/)?[\w/]+\.py)(?:::([\w:]+))?`", text)
    assert len(named) > 60
    missing = []
    for file, name in named:
        path = ROOT / "tests" / file.removeprefix("tests/")
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        if not source or (
            name and not re.search(rf"^\s*(?:async )?(?:def|class) {name.split('::')[-1]}\b", source, re.MULTILINE)
        ):
            missing.append(f"{file}::{name}")
    assert missing == []


def test_every_row_of_the_threat_model_names_a_test_or_says_what_remains() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| [STRIDE]{1,3} \|", line)]
    assert len(rows) > 30
    assert [row for row in rows if ".py" not in row and "*remains*" not in row] == []


def test_the_settings_of_the_postgresql_front_are_on_a_page() -> None:
    from cloister.pgwire import variables

    source = Path(variables.__file__).read_text(encoding="utf-8")
    names = set(re.findall(r'"(cloister\.[a-z_]+)"', source))
    text = (DOCS / "how-to" / "ask-a-hub.md").read_text(encoding="utf-8")
    assert names
    assert {name for name in names if name not in text} == set()
