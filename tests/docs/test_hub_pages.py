"""The hub's pages of the documentation say what the code says: settings, permissions, routes, the threat model's tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import hub_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.xdist_group("hub pages")


@pytest.mark.parametrize(
    ("page", "names"), [("settings", ["settings"]), ("permissions", ["permissions"]), ("api", ["codes", "routes"])]
)
def test_a_page_gets_its_tables_when_it_is_built(page: str, names: list[str]) -> None:
    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    assert re.findall(r"<!-- table: (\w+) -->", text) == names
    built = hub_pages.with_tables(text)
    assert "<!--" not in built
    for name in names:
        head, rule, *rows = hub_pages.made(name).splitlines()
        assert f"\n\n{head}\n{rule}\n{rows[0]}\n" in built, "a blank line is before it"
        assert len(rows) > 10
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {head.count("|")}


def test_the_tables_have_every_setting_action_and_route() -> None:
    from cloister.hub.decisions.policy import actions
    from cloister.hub.settings import known_settings

    paths = hub_pages.api()["paths"]
    routes = [
        f"| {method.upper()} | `{path.removeprefix('/api/v1')}` | " for path, methods in paths.items() for method in methods
    ]
    tables = {name: hub_pages.made(name) for name in hub_pages.TABLES}
    assert [name for name in known_settings() if f"| `{name}` |" not in tables["settings"]] == []
    assert [name for name in actions() if f"| `{name}` |" not in tables["permissions"]] == []
    assert len(routes) > 150
    assert [route for route in routes if route not in tables["routes"]] == []


def test_a_mark_of_no_table_is_refused() -> None:
    with pytest.raises(KeyError, match="setting"):
        hub_pages.with_tables("# Settings\n\n<!-- table: setting -->\n")


def test_every_route_names_its_action() -> None:
    described = hub_pages.api()
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
