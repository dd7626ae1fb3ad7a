"""What pytest collects besides tests/: the examples in docstrings (doctest) and the Python in the documentation (Sybil).

Each page runs top to bottom in one process, in a temporary folder of its own, so that a later block may use an earlier one's
names and files. Blocks that a reader need not see are written `% invisible-code-block: python` (docs) or `<!--- … -->` (README).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers import markdown, myst

collect_ignore_glob = ["docs/*.py", "docs/_build/*", "docs/reference/api/*", "benchmarks/*", "scripts/*", "examples/*"]

_HOME = "__folder_to_return_to__"


def _enter(namespace: dict[str, Any]) -> None:
    """Start a page in an empty folder: what its code writes is swept away after it."""
    folder = tempfile.TemporaryDirectory(prefix="cloister-page-", ignore_cleanup_errors=True)
    namespace[_HOME] = (os.getcwd(), folder)
    os.chdir(folder.name)


def _leave(namespace: dict[str, Any]) -> None:
    home, folder = namespace[_HOME]
    os.chdir(home)
    folder.cleanup()


_FLAGS = NORMALIZE_WHITESPACE | ELLIPSIS
_DOCS = Sybil(
    parsers=[myst.PythonCodeBlockParser(doctest_optionflags=_FLAGS), myst.SkipParser()],
    patterns=["docs/*.md", "docs/*/*.md", "docs/*/*/*.md"],  # in Python 3.11, ** stands for one folder only
    setup=_enter,
    teardown=_leave,
)
_FRONT = Sybil(
    parsers=[markdown.PythonCodeBlockParser(doctest_optionflags=_FLAGS), markdown.SkipParser()],
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
