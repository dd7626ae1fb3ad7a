"""The name of the distribution stands in one place, and the line for an extra fits how cloister was installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cloister import installed
from cloister.installed import DISTRIBUTION, edition, install

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"""pip install (-e |--upgrade )?["']?cloister\b(?!-)|["']cloister\[""")


def test_the_name_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    assert project["version"] == edition()
    assert all(f"| `{extra}`" in TABLE or f"`{extra}`" in TABLE for extra in project["optional-dependencies"])


TABLE = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ({}, 'pip install "cloister-privacy[hub,learn]"'),
        (
            {"url": "file:///srv/a", "dir_info": {"editable": True}},
            'pip install -e ".[hub,learn]"  # in the repository of cloister',
        ),
        (
            {"url": "file:///srv/cloister_privacy-0.1.0-py3-none-any.whl", "archive_info": {}},
            'pip install "./cloister_privacy-0.1.0-py3-none-any.whl[hub,learn]"'
            "  # beside the file that cloister was installed from",
        ),
        (
            {"url": "https://git.example.org/cloister", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            'pip install "cloister-privacy[hub,learn] @ git+https://git.example.org/cloister@c0ffee"',
        ),
    ],
)
def test_the_line_fits_where_it_came_from(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any], line: str) -> None:
    monkeypatch.setattr(installed, "_origin", lambda: origin)
    assert install("hub", "learn") == line


def test_nobody_is_told_to_install_another_project() -> None:
    texts = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.html"),
        *(ROOT / "src").rglob("*.po"),
        *(ROOT / "examples").rglob("*.py"),
    ]
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    ]
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()[:100]}"
        for path in [*texts, *pages]
        if path.is_file()
        for line in path.read_text(encoding="utf-8").splitlines()
        if NAMED.search(line) and "would install another project" not in line
    }
    assert not found
