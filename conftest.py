"""What pytest collects besides tests/: the examples in docstrings (doctest) and the Python in the documentation (Sybil).

Each block of a page runs alone: in an empty namespace and an empty folder. A block whose first line is `# continued from above`
says so to its reader, and has the names and files of the blocks before it. Blocks that a reader need not see are written
`% invisible-code-block: python` (docs) or `<!--- … -->` (README); they go on from the page, and no block that is seen may use
a name of theirs (tests/docs/test_snippets.py).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example, Region, Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers import markdown, myst

pytest_plugins = ["scripts.noise_by_name"]
collect_ignore_glob = ["docs/*.py", "docs/_build/*", "docs/reference/api/*", "benchmarks/*", "scripts/*", "examples/*"]

_HOME = "__folder_to_return_to__"
_PAGE = "__names_and_folder_of_the_blocks_before__"
CONTINUED = "# continued from above"


def _enter(namespace: dict[str, Any]) -> None:
    """Start a page in an empty folder: what its code writes is swept away after it."""
    folder = tempfile.TemporaryDirectory(prefix="cloister-page-", ignore_cleanup_errors=True)
    namespace[_HOME] = (os.getcwd(), folder)
    namespace[_PAGE] = ({}, Path(tempfile.mkdtemp(dir=folder.name)))
    os.chdir(namespace[_PAGE][1])


def _leave(namespace: dict[str, Any]) -> None:
    home, folder = namespace[_HOME]
    os.chdir(home)
    folder.cleanup()


def _go_on(namespace: dict[str, Any]) -> None:
    """Before a block that goes on: the names and files of all blocks before it."""
    names, page = namespace[_PAGE]
    for name, value in names.items():
        namespace.setdefault(name, value)
    here = Path.cwd()
    if not any(page.iterdir()):
        page = here  # files that are open stay where they are
    elif here != page:
        for path in here.iterdir():
            shutil.rmtree(page / path.name, ignore_errors=True)
            path.replace(page / path.name)
        os.chdir(page)
    namespace[_PAGE] = ({}, page)


def _alone(namespace: dict[str, Any]) -> None:
    """Before a block that says nothing: no name and no file. What the page has is kept for a later block that goes on."""
    _go_on(namespace)
    kept = {name: value for name, value in namespace.items() if name not in (_HOME, _PAGE)}
    for name in kept:
        del namespace[name]
    namespace[_PAGE] = (kept, namespace[_PAGE][1])
    os.chdir(tempfile.mkdtemp(dir=namespace[_HOME][1].name))


class _Blocks:
    """A parser of Python blocks, each of which begins by taking up what is its own."""

    def __init__(self, parser: Callable[[Document], Iterable[Region]]) -> None:
        self.parser = parser

    def __call__(self, document: Document) -> Iterator[Region]:
        begun = -1
        for region in self.parser(document):
            before = document.text[: document.text.index("\n", region.start)]
            start = max(before.rfind("\n```python"), before.rfind("invisible-code-block: python"))
            if start != begun:
                begun, block = start, document.text[start + 1 :]
                goes_on = not block.startswith("```python") or block.split("\n", 2)[1].removeprefix(">>> ") == CONTINUED
                region.evaluator = _begun(_go_on if goes_on else _alone, region.evaluator)
            yield region


def _begun(begin: Callable[[dict[str, Any]], None], evaluator: Any) -> Callable[[Example], Any]:
    def evaluate(example: Example) -> Any:
        begin(example.namespace)
        return evaluator(example)

    return evaluate


_FLAGS = NORMALIZE_WHITESPACE | ELLIPSIS
_DOCS = Sybil(
    parsers=[_Blocks(myst.PythonCodeBlockParser(doctest_optionflags=_FLAGS)), myst.SkipParser()],
    patterns=["docs/*.md", "docs/*/*.md", "docs/*/*/*.md"],  # in Python 3.11, ** stands for one folder only
    setup=_enter,
    teardown=_leave,
)
_FRONT = Sybil(
    parsers=[_Blocks(markdown.PythonCodeBlockParser(doctest_optionflags=_FLAGS)), markdown.SkipParser()],
    patterns=["README.md", "CONTRIBUTING.md"],
    setup=_enter,
    teardown=_leave,
)
pytest_collect_file = (_DOCS + _FRONT).pytest()


def pytest_itemcollected(item: pytest.Item) -> None:
    """A page's blocks go to one worker, in their order. Marked as they are collected, before xdist reads the marks."""
    if isinstance(item, SybilItem):
        item.add_marker(pytest.mark.xdist_group(f"page-{item.path.name}"))


@pytest.fixture(autouse=True)
def _empty_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A docstring's example may write a file by name; it must not land in the tree."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("docstring"))
    yield
    os.chdir(before)
