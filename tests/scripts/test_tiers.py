"""The lists of tiers name tests that are there: one that was renamed would run by day again, or never prove anything."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from tests.tiers import BY_THIRDS, PROVED

TESTS = Path(__file__).resolve().parents[1]


def test_each_test_that_runs_by_thirds_is_there() -> None:
    named = [each.split("::") for each in sorted(BY_THIRDS)]
    assert [name for file, name in named if f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8")] == []


def test_each_pattern_of_what_is_proved_names_a_file() -> None:
    files = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    assert [pattern for pattern in PROVED if not any(fnmatch(file, pattern) for file in files)] == []
