"""Files of settings and declarations, as editors save them that put a mark (BOM) before the text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cloister.cli import bounds, csp, declared, site, survey, vault
from cloister.cli.main import cli
from cloister.hub import settings

TABLE = '[tables.people]\nsource = "people.csv"\ncolumns.age = { kind = "integer", low = 17, high = 90 }\n'
JSON = '{"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}}'
SURVEY = "".join(CliRunner().invoke(cli, ["survey", "make", "--example"]).output)


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("site.toml", '[site]\nname = "north"\n', lambda path: site._settings(path.parent).name),
        ("csp.toml", '[key_holder]\nname = "keys"\n', lambda path: csp._settings(path.parent)),
        ("vault.toml", '[vault]\nstore = "sqlite:///sealed.db"\n', lambda path: vault._settings(path.parent)),
        ("tables.toml", TABLE, lambda path: declared.load(path)[0].keys()),
        ("bounds.toml", TABLE, lambda path: bounds.arguments_of(str(path), "people")),
        ("bounds.json", JSON, lambda path: bounds.arguments_of(str(path), "people")),
        ("survey.toml", SURVEY, survey._composed),
        ("hub.toml", "port = 8766\n", lambda path: settings.load(path.parent).port),
    ],
    ids=lambda each: each if isinstance(each, str) and "." in each and "\n" not in each else "",
)
def test_a_mark_before_the_text_changes_nothing(tmp_path: Path, name: str, text: str, read: Callable[[Path], Any]) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n", encoding="utf-8")
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    plain = read(path)
    path.write_text("\ufeff" + text, encoding="utf-8")
    assert read(path) == plain
