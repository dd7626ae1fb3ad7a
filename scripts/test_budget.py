"""Processor seconds of the tests: noted by a plugin of pytest, added up by folder, and held against a budget in minutes.

The plugin notes what each test cost, with the programs that it started; `make test` runs it. Every worker of pytest-xdist has a
file of its own in the folder that CLOISTER_SECONDS names.

    CLOISTER_SECONDS=.cache/seconds python -m pytest -p scripts.test_budget tests/ledger
    python -m scripts.test_budget .cache/seconds             # by folder, against the budget; fails where one is over
    python -m scripts.test_budget .cache/seconds --files 40  # the files that cost most

Seconds of the processor, not of the clock: they are nearly the same on a busy machine. What a server uses that outlives its test
is counted with the test during which it is used.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

SECONDS = "CLOISTER_SECONDS"
TICKS = os.sysconf("SC_CLK_TCK")

CORES = 2
"""A budget is in minutes of `make test` on so many cores that do nothing else; each holds twice as much time of the processor."""
NEW = 2.5
"""Minutes for the tests of a package that is not listed: a new one."""
BUDGET: dict[str, float] = {
    "tests/attacks": 1.2,
    "tests/docs": 1.6,
    "tests/hub/access": 0.3,
    "tests/hub/budgets": 0.2,
    "tests/hub/catalogue": 1.3,
    "tests/hub/jobs": 0.6,
    "tests/hub/policy": 0.2,
    "tests/hub/security": 1.3,
    "tests/hub/web": 1.1,
    "tests/ledger": 0.6,
    "tests/noise": 0.4,
    "tests/privacy": 0.4,
    "tests/scripts": 0.6,
    "tests/statistical": 1.5,
}
"""Minutes for the tests of a folder: what they were measured to use, and a little more."""
WHOLE = 20.0
"""Minutes for everything that runs by day."""


def processor_seconds() -> float:
    """What this process, those that it waited for, and those that still run under it have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(_of(pid) for pid in _under(os.getpid()))


def _under(pid: int) -> Iterator[int]:
    """Processes may end at any moment while they are looked for."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    for child in children:
        yield child
        yield from _under(child)


def _of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class Meter:
    """What each test has used."""

    def __init__(self, folder: Path, root: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.to = (folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}.jsonl").open(
            "w", encoding="utf-8", buffering=1
        )
        self.before = processor_seconds()
        self.note("", "", 0.0)

    def note(self, path: str, test: str, wall: float) -> None:
        now = processor_seconds()
        print(
            json.dumps({"file": path, "test": test, "seconds": round(now - self.before, 4), "wall": round(wall, 4)}), file=self.to
        )
        self.before = now

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        began = time.monotonic()
        done = yield
        self.note("", "collection", time.monotonic() - began)
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        began = time.monotonic()
        done = yield
        self.note(item.path.relative_to(self.root).as_posix(), item.name, time.monotonic() - began)
        return done


def pytest_configure(config: pytest.Config) -> None:
    """Note what tests cost, where CLOISTER_SECONDS names a folder for it."""
    if os.environ.get(SECONDS):
        config.pluginmanager.register(Meter(Path(os.environ[SECONDS]), config.rootpath))


def folder_of(file: str) -> str:
    """The folder whose budget a file counts in: of tests/ and of tests/hub/ each its own, and `docs` and `src` whole."""
    parts = file.split("/")[:-1]
    if parts[:1] == ["tests"]:
        return "/".join(parts[: 3 if parts[1:2] == ["hub"] else 2])
    return parts[0] if parts else ("pages" if file else "collecting")


def noted(folder: Path) -> Iterator[tuple[str, str, float]]:
    """File, test and seconds of everything that was noted."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            yield each["file"], each["test"], each["seconds"]


def over(used: dict[str, float]) -> list[str]:
    """The folders that used more minutes than their budget has."""
    return sorted(folder for folder, minutes in used.items() if minutes > BUDGET.get(folder, NEW))


def table(used: dict[str, float]) -> str:
    """What each folder used and may use, in minutes of two cores, the largest first."""
    late = over(used)
    lines = [f"{'minutes':>8} {'budget':>7}  folder"]
    for folder, minutes in sorted(used.items(), key=lambda each: -each[1]):
        lines.append(f"{minutes:8.2f} {BUDGET.get(folder, NEW):7.1f}  {folder}{'  OVER' if folder in late else ''}")
    return "\n".join([*lines, f"{sum(used.values()):8.2f} {WHOLE:7.1f}  together"])


def main(given: Iterable[str]) -> int:
    """Print where the time goes; 1 where a folder, or all of them together, used more than it may."""
    parser = argparse.ArgumentParser(description="Minutes of the tests on two cores, by folder, against their budget.")
    parser.add_argument("seconds", type=Path, help="the folder that CLOISTER_SECONDS named")
    parser.add_argument("--files", type=int, default=0, metavar="N", help="the N files that cost most instead")
    asked = parser.parse_args([*given])
    files: Counter[str] = Counter()
    for file, _, seconds in noted(asked.seconds):
        files[file] += seconds  # type: ignore[assignment]
    if asked.files:
        for file, seconds in files.most_common(asked.files):
            print(f"{seconds:8.1f}  {file or 'collecting'}")
        return 0
    folders: Counter[str] = Counter()
    for file, seconds in files.items():
        folders[folder_of(file)] += seconds / 60 / CORES  # type: ignore[assignment]
    if not folders:
        print(f"{asked.seconds} holds no seconds of any test: run them with CLOISTER_SECONDS={asked.seconds}")
        return 1
    print(table(dict(folders)))
    return 1 if over(dict(folders)) or sum(folders.values()) > WHOLE else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
