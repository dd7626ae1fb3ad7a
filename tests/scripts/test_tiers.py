"""The lists of tiers name tests that are there: one that was renamed would run by day again, or never prove anything."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

from tests.tiers import BY_THIRDS, PROVED

TESTS = Path(__file__).resolve().parents[1]


def test_each_test_that_runs_by_thirds_is_there() -> None:
    named = [each.split("::") for each in sorted(BY_THIRDS)]
    assert [name for file, name in named if f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8")] == []


def test_what_make_check_runs_is_there() -> None:
    """A path that is gone ends a run before its first test."""
    said = subprocess.run(["make", "-n", "check"], cwd=TESTS.parent, capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"(?<!\S)tests/[\w/.]+", said))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (TESTS.parent / path).exists()] == []


def test_each_pattern_of_what_is_proved_names_a_file() -> None:
    files = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    assert [pattern for pattern in PROVED if not any(fnmatch(file, pattern) for file in files)] == []
