"""What failed is tried once more in a fresh process; a real failure stays one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import second_try

ROOT = Path(__file__).resolve().parents[2]
COIN = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("given", ["a@b", "c"])
@pytest.mark.xdist_group("one/group")
def test_coin(given):
    tossed = Path("tossed-" + given[0])
    if not tossed.exists():
        tossed.touch()
        raise AssertionError("the first toss of " + given)
"""
BROKEN = "def test_broken():\n    assert 1 == 2, 'always'\n"
MANY = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_broken(n):\n    assert n < 0\n"
PASSES = "def test_passes():\n    assert True\n"


def run(folder: Path, *more: str, **files: str) -> tuple[int, int, str]:
    """The exit statuses of the run and of the second try in a project of its own, and what the second one printed."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    xdist_group: of one worker\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLOISTER_"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # half of a short run is their import
    first, second = (
        subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        for command in (["pytest", "-q", "-p", "scripts.second_try", *more], ["scripts.second_try"])
    )
    return first.returncode, second.returncode, second.stdout


@pytest.mark.parametrize("more", [(), ("-p", "xdist.plugin", "-n", "1", "--dist", "loadgroup")], ids=["one process", "a worker"])
def test_a_coin_is_named_and_its_first_failure_is_shown(tmp_path: Path, more: tuple[str, ...]) -> None:
    first, second, said = run(tmp_path, *more, coin=COIN, passes=PASSES)
    assert (first, second) == (1, 0), said
    assert "flaky: test_coin.py::test_coin[a@b]\n" in said
    assert "flaky: test_coin.py::test_coin[c]\n" in said
    assert "the first toss of a@b" in said
    assert said.rstrip().endswith("3 passed, 0 failed")


def test_a_failure_that_stays_is_red(tmp_path: Path) -> None:
    first, second, said = run(tmp_path, broken=BROKEN, coin=COIN)
    assert (first, second) == (1, 1)
    assert "FAILED twice: test_broken.py::test_broken" in said
    assert said.rstrip().endswith("2 passed, 1 failed")


def test_more_than_three_are_not_tried(tmp_path: Path) -> None:
    first, second, said = run(tmp_path, broken=MANY)
    assert (first, second) == (1, 1)
    assert "4 tests failed" in said
    assert "trying again" not in said


def test_what_was_not_collected_is_not_tried(tmp_path: Path) -> None:
    first, second, said = run(tmp_path, broken="import what_is_not_there\n", passes=PASSES)
    assert (first, second) == (2, 1)
    assert "Nothing is tried again" in said


def test_what_workers_could_not_collect_is_red_beside_a_coin(tmp_path: Path) -> None:
    more = ("-p", "xdist.plugin", "-n", "1", "--dist", "loadgroup", "--continue-on-collection-errors")
    _, second, said = run(tmp_path, *more, coin=COIN, lost="import what_is_not_there\n", passes=PASSES)
    assert second == 1, said
    assert "could not be collected" in said
    assert "what_is_not_there" in said


def test_a_run_that_was_cut_off_is_red(tmp_path: Path) -> None:
    first, second, said = run(tmp_path, broken="import os\ndef test_ends():\n    os._exit(1)\n")
    assert (first, second) == (1, 1)
    assert "did not come to its end" in said


def test_notes_of_a_run_before_are_not_taken_for_this_one(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/failed.json").write_text(json.dumps({"exit": 1, "passed": 1, "failed": {"test_passes.py": "x"}}))
    assert run(tmp_path, ends="import os\ndef test_ends():\n    os._exit(1)\n", passes=PASSES)[1] == 1


def test_a_block_of_a_page_is_run_with_its_page() -> None:
    assert second_try.what_to_run("docs/learn/noise.md::line:3,column:1") == "docs/learn/noise.md"
    assert second_try.what_to_run("tests/a.py::test_b[c.md::d]") == "tests/a.py::test_b[c.md::d]"
