"""Each snippet of a page runs alone, or says in its first line that it continues, and needs nothing that its reader cannot see.

That they run is held by conftest.py, which empties names and folder before each block that does not say so.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = "# continued from above"
PAGES = [
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "api"} & set(path.parts)),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]


class Snippet(NamedTuple):
    line: int
    continued: bool
    binds: set[str]
    wants: set[str]
    """Names that it uses and does not bind."""


def snippets(text: str) -> Iterator[Snippet]:
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        code = found.group(1)
        first = code.split("\n", 1)[0].removeprefix(">>> ")
        if code.startswith(">>>"):
            code = "".join(example.source for example in doctest.DocTestParser().get_examples(code))
        nodes = list(ast.walk(ast.parse(code)))
        binds = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        binds |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        binds |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        imported = (alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names)
        binds |= {alias.asname or alias.name.split(".")[0] for alias in imported}
        inside = {node.arg for node in nodes if isinstance(node, ast.arg)} | set(dir(builtins))
        uses = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        yield Snippet(text[: found.start()].count("\n") + 1, first == MARK, binds, uses - binds - inside)


def faults(text: str) -> list[str]:
    seen: set[str] = set()
    found = []
    for snippet in snippets(text):
        missing = snippet.wants - seen if snippet.continued else snippet.wants
        if missing:
            found.append(f"line {snippet.line}: {', '.join(sorted(missing))}")
        seen |= snippet.binds
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_snippet_has_what_it_uses_or_says_that_it_continues(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


def test_a_snippet_that_uses_what_it_does_not_have_is_found() -> None:
    hidden = "% invisible-code-block: python\n%\n% token = 1\n\n"
    assert faults("```python\nimport cloister as cl\n```\n```python\ncl.PureDP(1)\n```\n") == ["line 4: cl"]
    assert faults(f"{hidden}```python\n{MARK}\nprint(token)\n```\n") == ["line 5: token"]
    assert faults(f"```python\n>>> x = 1\n```\n```python\n>>> {MARK}\n>>> x\n1\n```\n") == []


def run(page: Path) -> list[str]:
    """What each block of a page prints or raises, run as pytest runs the documentation."""
    spec = importlib.util.spec_from_file_location("documentation", ROOT / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    documentation: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(documentation)
    parsed = documentation._DOCS.parse(page)
    documentation._enter(parsed.namespace)
    said = []
    try:
        for example in parsed.examples():
            try:
                example.evaluate()
                said.append("ran")
            except Exception as error:
                said.append(type(error).__name__)
    finally:
        documentation._leave(parsed.namespace)
    return said


def test_names_and_files_of_other_blocks_are_gone_unless_a_block_says_that_it_continues(tmp_path: Path) -> None:
    first = "from pathlib import Path\nx = 1\n_ = Path('a.txt').write_text('a')"
    page = tmp_path / "page.md"
    blocks = [
        first,
        "x",
        "open('a.txt').close()",
        f"{MARK}\nassert x == 1\nopen('a.txt').close()",
        "y = 2",
        f"{MARK}\nassert x + y == 3\nopen('a.txt').close()",
        ">>> x\n1",
        f">>> {MARK}\n>>> x\n1\n>>> x + y\n3",
    ]
    page.write_text("# A page\n\n" + "\n\n".join(f"```python\n{block}\n```" for block in blocks) + "\n")
    here = os.getcwd()
    said = run(page)
    assert os.getcwd() == here
    assert said == ["ran", "NameError", "FileNotFoundError", "ran", "ran", "ran", "SybilFailure", "ran", "ran"]


def test_a_hidden_block_goes_on_and_hands_its_names_to_the_next_hidden_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\nx = 1\n```\n\n% invisible-code-block: python\n%\n% z = x + 1\n\n```python\nz\n```\n\n"
        "% invisible-code-block: python\n%\n% assert z == 2\n"
    )
    assert run(page) == ["ran", "ran", "NameError", "ran"]
