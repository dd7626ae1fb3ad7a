"""Processes that share a queue of files run each test once, end a file's fixtures with it, and are red where one of them is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts import queued

ROOT = Path(__file__).resolve().parents[2]
SHARED = """
import pytest

@pytest.fixture(scope="session")
def whole():
    print("begun")
    yield
    print("ended")
"""
FILE = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield
    print("left NAME")

def test_one(whole, shared):
    print("ran NAME one")

@pytest.mark.slow
def test_left_out():
    assert False

def test_two(whole, shared):
    print("ran NAME two")
    assert "NAME" != "c"
"""


def test_each_file_is_read_and_run_once(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(FILE.replace("NAME", name), encoding="utf-8")
    (tmp_path / "conftest.py").write_text(SHARED, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text("import what_is_not_there\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: by night\n", encoding="utf-8")
    queue = tmp_path / "queue"
    queued.write(queue, [tmp_path], last=lambda path: path.name == "test_a.py")
    assert [Path(line).stem for line in queue.read_text().splitlines()] == [f"test_{each}" for each in ("b", "broken", *"cda")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLOISTER_"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "--tb=no",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        "-p",
        "scripts.queued",
    ]
    command += ["--queue", str(queue), "."]
    both = [subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    for name in "abcd":
        for test in ("one", "two"):
            assert "".join(said).count(f"ran {name} {test}") == 1
        [one] = [each for each in said if f"left {name}" in each]
        assert one.index(f"ran {name} one") < one.index(f"ran {name} two") < one.index(f"left {name}")
        assert one.count("begun") == one.count("ended") == 1, "a session's fixture is one for all of its files"
    assert 1 in {process.returncode for process in both}
    assert "ERROR test_broken.py" in "".join(said)
    assert "FAILED test_c.py::test_two" in "".join(said)
    assert queue.read_text() == ""


def test_files_of_a_group_are_taken_together(tmp_path: Path) -> None:
    grouped = 'pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("one port")]\n'
    for name, mark in (("a", grouped), ("b", ""), ("c", grouped)):
        (tmp_path / f"test_{name}.py").write_text(mark, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("", encoding="utf-8")
    (tmp_path / "shown.py").write_text('"""\n>>> 1\n1\n"""\n', encoding="utf-8")
    queued.write(tmp_path / "queue", [tmp_path])
    lines = [queued.taken(tmp_path / "queue") for _ in range(4)]
    assert [[Path(each).name for each in line] for line in lines] == [["shown.py"], ["test_a.py", "test_c.py"], ["test_b.py"], []]
