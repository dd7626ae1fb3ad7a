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


@pytest.fixture
def written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(budget, "BUDGET", tmp_path / "budget.json")
    (tmp_path / "budget.json").write_text('{"tests/synth": 100.0}', encoding="utf-8")
    return tmp_path / "budget.json"


@pytest.mark.parametrize(("seconds", "status"), [(90, 0), (110 + budget.SLACK - 1, 0), (110 + budget.SLACK + 1, 1)])
def test_a_folder_may_grow_by_a_tenth(
    tmp_path: Path, written_down: Path, capsys: pytest.CaptureFixture[str], seconds: float, status: int
) -> None:
    assert budget.main([str(written(tmp_path, synth=seconds))]) == status
    assert ("tests/synth  GREW" in capsys.readouterr().out) == bool(status)


def test_on_a_slower_machine_a_folder_grows_against_the_others() -> None:
    before = {f"tests/{number}": 50.0 for number in range(30)}
    slow = {folder: 2.3 * seconds for folder, seconds in before.items()}
    assert budget.grown(slow, before) == []
    assert budget.grown(slow | {"tests/7": 150.0}, before) == ["tests/7"]
    assert budget.grown({"tests/7": 115.0}, before) == ["tests/7"], "of one folder nobody knows why"
    assert "a folder takes 2.30 of it" in budget.table(slow, before)


def test_a_new_folder_is_written_down_first(tmp_path: Path, written_down: Path) -> None:
    noted = str(written(tmp_path / "noted", synth=100, mining=20))
    assert budget.main([noted]) == 1
    assert budget.main([noted, "--write"]) == 0
    assert json.loads(written_down.read_text()) == {"tests/mining": 20, "tests/synth": 100}
    assert budget.main([noted]) == 0


def test_nothing_noted_is_said_and_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert budget.main([str(tmp_path)]) == 1
    assert "holds no seconds" in capsys.readouterr().out


def test_every_folder_with_a_budget_is_there() -> None:
    listed = json.loads(budget.BUDGET.read_text(encoding="utf-8"))
    assert [folder for folder in listed if folder not in ("collecting", "pages") and not (ROOT / folder).is_dir()] == []


def test_what_a_process_used_stays_counted_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser's processes vanish without an account; a driver's account of them is not counted twice."""
    seen = [(7, "node", "1", 1.0, 9.0), (8, "chrome", "2", 5.0, 0.0), (9, "headless_shell", "3", 2.0, 0.0)]
    monkeypatch.setattr(budget, "_under", lambda pid: iter(seen))
    usage = budget.Usage()
    before = usage.seconds()
    seen.pop()
    seen[1] = (8, "chrome", "2", 6.5, 0.0)
    assert 1.5 <= usage.seconds() - before < 2.5
    seen.pop()
    assert usage.seconds() - before >= 1.5


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
