"""What the tests of each folder cost is noted, added up, and held against a budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import test_budget as budget

ROOT = Path(__file__).resolve().parents[2]
WORKS = "def test_works() -> None:\n    assert sum(x * x for x in range(3_000_000)) > 0\n"
STARTS = """
import subprocess, sys

def test_starts_a_program() -> None:
    subprocess.run([sys.executable, "-c", "sum(x * x for x in range(3_000_000))"], check=True)
"""


def written(folder: Path, **seconds: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"file": f"tests/{name}/test_a.py", "test": "t", "seconds": each}) for name, each in seconds.items()]
    (folder / "gw0.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_file_counts_in_its_folder() -> None:
    files = ("tests/hub/asking/test_pages.py", "tests/hub/test_turns.py", "tests/learn/a/test_b.py", "docs/learn/noise.md", "")
    assert [budget.folder_of(each) for each in files] == ["tests/hub/asking", "tests/hub", "tests/learn", "docs", "collecting"]


def test_a_folder_that_is_not_listed_has_the_budget_of_a_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    minute = 60 * budget.CORES
    assert budget.main([str(written(tmp_path, synth=budget.NEW * minute - 1))]) == 0
    assert budget.main([str(written(tmp_path, synth=budget.NEW * minute + 1))]) == 1
    assert "tests/synth  OVER" in capsys.readouterr().out


def test_all_together_have_a_budget_too(tmp_path: Path) -> None:
    each = 1.0 * 60 * budget.CORES
    few, many = ({f"room{number}": each for number in range(count)} for count in (int(budget.WHOLE), int(budget.WHOLE) + 1))
    assert budget.main([str(written(tmp_path / "few", **few))]) == 0
    assert budget.main([str(written(tmp_path / "many", **many))]) == 1


def test_nothing_noted_is_said_and_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main([str(tmp_path)]) == 1
    assert "holds no seconds" in capsys.readouterr().out


def test_every_folder_with_a_budget_is_there() -> None:
    assert [folder for folder in budget.BUDGET if folder not in ("collecting", "pages") and not (ROOT / folder).is_dir()] == []


def test_the_plugin_notes_what_a_test_and_its_programs_use(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_works.py").write_text(WORKS, encoding="utf-8")
    (tmp_path / "tests" / "test_starts.py").write_text(STARTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "scripts.test_budget",
        "-p",
        "no:cacheprovider",
        str(tmp_path / "tests"),
    ]
    given = {**os.environ, budget.SECONDS: str(tmp_path / "noted"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    used = {file: seconds for file, test, seconds in budget.noted(tmp_path / "noted") if test.startswith("test_")}
    assert set(used) == {"tests/test_works.py", "tests/test_starts.py"}
    assert all(seconds > 0.05 for seconds in used.values())
