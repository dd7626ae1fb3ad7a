"""What failed is run once more, alone, in a fresh process: a coin costs a line, and a real failure stays red.

    python -m pytest -p scripts.second_try …         # notes in .cache/failed.json what failed, and every word of it
    python -m scripts.second_try                     # runs that again; exit 0 where all of it passes now

A test that fails again is a failure. One that passes is printed as `flaky: NAME` with its first failure whole, so that its cause
can be mended. More than three in one run are no coins: then nothing is tried again. Nor is it where tests could not be collected,
or where pytest itself failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

FAILED = Path(os.environ.get("CLOISTER_FAILED", ".cache/failed.json"))
MOST = 3
"""How many tests of one run may be tried again."""
SECONDS = 900
"""How long a test may take when it is tried again."""


class Notes:
    """Of the process that pytest was started in: workers report to it."""

    def __init__(self, to: Path) -> None:
        self.to = to
        self.failed: dict[str, str] = {}
        self.lost: list[str] = []
        self.passed = 0
        self.to.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With `--dist loadgroup` the name of a test ends in `@` and its group."""
        if report.failed:
            name = report.nodeid.rpartition("@")[0] if _has_group(report.nodeid) else report.nodeid
            said = [report.longreprtext, *(f"--- {title}\n{text}" for title, text in report.sections)]
            self.failed[name] = self.failed.get(name, "") + f"[{report.when}]\n" + "\n".join(said) + "\n"
        elif report.passed and report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that a worker could not import: its tests don't run, and beside a coin that passes nobody would see it."""
        if report.failed:
            self.lost.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.to.parent.mkdir(parents=True, exist_ok=True)
        self.to.write_text(
            json.dumps({"exit": int(exitstatus), "passed": self.passed, "failed": self.failed, "lost": self.lost}),
            encoding="utf-8",
        )


def _has_group(name: str) -> bool:
    """Whether the last `@` of a name begins a group: a parameter of a test may hold one too, inside its brackets."""
    after = name.rpartition("@")[2]
    return after != name and "]" not in after and "::" not in after


def pytest_configure(config: pytest.Config) -> None:
    """Note what fails, in the process that sees all reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notes(config.rootpath / FAILED))


def what_to_run(name: str) -> str:
    """A block of a page goes on from those before it, so the whole page is run, and is one failure."""
    path = name.partition("::")[0]
    return path if path.endswith(".md") else name


def run_alone(name: str) -> subprocess.CompletedProcess[str]:
    """One test, in a process of its own, with nothing beside it."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "--disable-warnings",
        what_to_run(name),
    ]
    kept = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"  # whoever runs without plugins tries again without
    environment = {key: value for key, value in os.environ.items() if key == kept or not key.startswith("PYTEST_")}
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 1, f"{late.stdout or ''}\nIt took longer than {SECONDS} s.", "")


def notes_of(files: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """What each run noted; nothing where it did not come to its end."""
    return {file: json.loads(file.read_text(encoding="utf-8")) if file.exists() else {} for file in files}


def counts(files: Iterable[Path]) -> tuple[int, int]:
    """How many tests passed and failed in several runs."""
    noted = [each for each in notes_of(files).values() if each]
    return sum(each["passed"] for each in noted), sum(len(each["failed"]) for each in noted)


def main(files: Iterable[Path] = (FAILED,)) -> int:
    """0 where whatever failed passes when it is run alone."""
    noted = notes_of(files)
    for file, each in noted.items():
        if not each:
            print(f"Nothing is tried again: pytest did not come to its end ({file}).")
            return 1
        if each["exit"] not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            print(f"Nothing is tried again: pytest ended with {each['exit']}, which is not that tests failed ({file}).")
            return 1
        if each.get("lost"):
            print("Nothing is tried again: tests could not be collected.", *dict.fromkeys(each["lost"]), sep="\n")
            return 1
    failed: dict[str, str] = {}
    for name, text in (pair for each in noted.values() for pair in each["failed"].items()):
        failed[what_to_run(name)] = failed.get(what_to_run(name), "") + text
    if not failed:
        print("Nothing is tried again: no test failed.")
        return 1
    if len(failed) > MOST:
        print(f"Nothing is tried again: {len(failed)} tests failed, and more than {MOST} are no coins.")
        return 1
    again = []
    for name, first in failed.items():
        print(f"trying again, alone: {name}", flush=True)
        done = run_alone(name)
        if done.returncode:
            again.append(name)
            print(f"{done.stdout}\n{done.stderr}\nFAILED twice: {name}")
        else:
            print(f"flaky: {name}\nIt passed alone. Its first failure, whole:\n{first}", flush=True)
    print(f"{sum(each['passed'] for each in noted.values()) + len(failed) - len(again)} passed, {len(again)} failed")
    return 1 if again else 0


if __name__ == "__main__":
    sys.exit(main())
