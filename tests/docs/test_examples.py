"""Every script of examples/ runs from an empty folder, says something, and explains itself."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [script.name])
    runpy.run_path(str(script), run_name="example")["main"]()
    assert capsys.readouterr().out.strip(), "it says nothing"


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_says_what_it_shows(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)


def test_there_are_examples() -> None:
    assert EXAMPLES
