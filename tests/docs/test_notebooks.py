"""Every exercise runs: the cells of each notebook in order, in one namespace, their asserts, and the outputs that readers see."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

LEARN = Path(__file__).resolve().parents[2] / "docs" / "learn"
NOTEBOOKS = sorted((LEARN / "exercises").glob("*.ipynb"))


def refresh() -> ModuleType:
    """The script that writes the outputs: what it would write is what must stand there."""
    spec = importlib.util.spec_from_file_location("refresh_of_learn", LEARN / "refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_and_prints_what_it_shows(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell, printed in refresh().outputs(notebook):
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert printed == shown, "run: python docs/learn/refresh.py"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_of_format_4(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", identity) for identity in identities)
    for cell in notebook["cells"]:
        assert isinstance(cell["source"], list)
        if cell["cell_type"] == "code":
            assert isinstance(cell["execution_count"], int)
            assert all(set(output) == {"name", "output_type", "text"} for output in cell["outputs"])
        else:
            assert set(cell) == {"cell_type", "id", "metadata", "source"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_exercise_has_a_solution_that_checks_itself(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    headings = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    exercises = sum(text.startswith("## Exercise") for text in headings)
    solutions = sum(text.startswith("### Solution") for text in headings)
    checks = sum("assert " in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert 0 < exercises == solutions <= checks


def test_each_notebook_is_linked_from_its_page() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert f"<exercises/{path.name}>" in (LEARN / f"{path.stem}.md").read_text(encoding="utf-8")


def test_an_exercise_that_no_longer_holds_is_found() -> None:
    broken = {"cells": [{"cell_type": "code", "source": ["x = 1\n", "assert x == 2"]}]}
    with pytest.raises(AssertionError):
        list(refresh().outputs(broken))
