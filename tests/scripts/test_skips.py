"""A test that is skipped for want of its engine is said aloud, and is a failure where engines are required."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """
import pytest

@pytest.mark.postgres
def test_of_an_engine():
    pytest.skip("no server")

@pytest.fixture
def server():
    pytest.skip("no server either")

@pytest.mark.postgres
def test_whose_fixture_skips(server):
    pass

def test_of_nothing():
    pytest.skip("not today")

def test_that_passes():
    pass
"""


def run(folder: Path, *, required: bool) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CLOISTER"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # both processes would import them
    environment |= {"CLOISTER_REQUIRE_ENGINES": "1"} if required else {}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist",
        "-q",
        "-n",
        "1",
        "--dist",
        "loadgroup",
        "-o",
        "markers=postgres",
        "-p",
        "no:cacheprovider",
        ".",
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_skip_is_one_loud_line(tmp_path: Path) -> None:
    said = run(tmp_path, required=False)
    assert said.returncode == 0, said.stdout
    assert "!!! 2 tests of postgres were SKIPPED" in said.stdout
    assert said.stdout.strip().splitlines()[-1].startswith("1 passed, 3 skipped")


def test_a_skip_is_a_failure_where_engines_are_required(tmp_path: Path) -> None:
    said = run(tmp_path, required=True)
    assert said.returncode == 1, said.stdout
    assert "test_of_an_engine" in said.stdout
    assert "test_whose_fixture_skips" in said.stdout
    assert "test_of_nothing" not in said.stdout
    assert "no server" in said.stdout
