"""Processor seconds of the tests: noted by a plugin of pytest, added up by folder, and held against what stands in the tree.

The plugin notes what each test cost, with the programs that it started; `make test` and `make prove` run it. Every worker of
pytest-xdist has a file of its own in the folder that CLOISTER_SECONDS names.

    CLOISTER_SECONDS=.cache/seconds python -m pytest -p scripts.test_budget tests/ledger
    python -m scripts.test_budget .cache/seconds             # by folder; fails where one grew by more than a tenth
    python -m scripts.test_budget .cache/seconds --write     # what was measured is the budget from now on (tests/budget.json)
    python -m scripts.test_budget .cache/seconds --files 40  # the files that cost most

Seconds of the processor, not of the clock: they are nearly the same on a busy machine. Another machine, or another Python, is
quicker or slower in all folders: a folder grew where it did against the others (`pace`). What a server uses that outlives its
test is counted with the test during which it is used.
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
BUDGET = Path(__file__).resolve().parent.parent / "tests" / "budget.json"
"""Seconds of the processor by folder, as they were when somebody wrote them down."""
GROWTH = 1.1
SLACK = 3.0
"""Seconds that a folder may differ by from one run to the next."""
MANY = 20
"""Folders of which the median says how quick a machine is."""
SHORT = 0.02
"""Seconds of a test after which nobody looks at what runs under it."""
BROWSERS = ("chrom", "headless")


class Usage:
    """What this process and those under it have used of the processor; it never goes down.

    A browser's processes are reaped by one of their own that keeps no account of them. So each is counted by itself, and what it
    had used when it was seen last stays counted.
    """

    def __init__(self) -> None:
        self.browsers: dict[tuple[int, str], float] = {}
        self.others = 0.0

    def seconds(self, *, short: bool = False) -> float:
        """This process, those that it waited for, and those that still run under it; after something short, these as they were
        seen last: to look at them takes as long as most tests."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        if not short:
            self.others = 0.0
            for pid, name, born, own, waited_for in _under(os.getpid()):
                if name.startswith(BROWSERS):
                    self.browsers[pid, born] = own
                else:
                    self.others += own + (0.0 if name.startswith("node") else waited_for)  # a browser's driver is node
        return sum(each.ru_utime + each.ru_stime for each in used) + self.others + sum(self.browsers.values())


def _under(pid: int) -> Iterator[tuple[int, str, str, float, float]]:
    """Number, name, birth, own seconds, and those of children that were waited for. Processes may end meanwhile."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    for child in children:
        with suppress(OSError):
            name, _, rest = Path(f"/proc/{child}/stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            own, waited_for = (sum(map(int, fields[first : first + 2])) / TICKS for first in (11, 13))
            yield child, name, fields[19], own, waited_for
        yield from _under(child)


class Meter:
    """What each test has used."""

    def __init__(self, folder: Path, root: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.to = (folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}.jsonl").open(
            "w", encoding="utf-8", buffering=1
        )
        self.usage = Usage()
        self.before = self.usage.seconds()
        self.note("", "", 0.0)

    def note(self, path: str, test: str, wall: float) -> None:
        now = self.usage.seconds(short=0 < wall < SHORT)
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Look once more at what a browser used, before its page is closed and its process is gone."""
        if "browser" in getattr(item, "fixturenames", ()):
            self.usage.seconds()

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


def pace(used: dict[str, float], budget: dict[str, float]) -> float:
    """The median of what folders used over what is written down, where many were run; 1 where few were."""
    quotients = sorted(used[folder] / budget[folder] for folder in used.keys() & budget.keys() if budget[folder] >= SLACK)
    return quotients[len(quotients) // 2] if len(quotients) >= MANY else 1.0


def grown(used: dict[str, float], budget: dict[str, float]) -> list[str]:
    """The folders that use more than a tenth more than is written down; one that is new may use nothing until it is."""
    here = pace(used, budget)
    return sorted(folder for folder, seconds in used.items() if seconds > budget.get(folder, 0.0) * here * GROWTH + SLACK)


def table(used: dict[str, float], budget: dict[str, float]) -> str:
    """What each folder used and may use, in seconds of the processor, the largest first."""
    late = grown(used, budget)
    lines = [f"{'seconds':>8} {'budget':>8}  folder"]
    for folder, seconds in sorted(used.items(), key=lambda each: -each[1]):
        lines.append(f"{seconds:8.1f} {budget.get(folder, 0.0):8.1f}  {folder}{'  GREW' if folder in late else ''}")
    lines.append(
        f"{sum(used.values()):8.1f} {sum(budget.values()):8.1f}  together; a folder takes {pace(used, budget):.2f} of it"
    )
    return "\n".join(lines)


def main(given: Iterable[str]) -> int:
    """Print where the time goes; 1 where a folder grew by more than a tenth."""
    parser = argparse.ArgumentParser(description="Processor seconds of the tests, by folder, against what is written down.")
    parser.add_argument("seconds", type=Path, help="the folder that CLOISTER_SECONDS named")
    parser.add_argument("--files", type=int, default=0, metavar="N", help="the N files that cost most instead")
    parser.add_argument("--write", action="store_true", help="write down what was measured")
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
        folders[folder_of(file)] += seconds  # type: ignore[assignment]
    if not folders:
        print(f"{asked.seconds} holds no seconds of any test: run them with CLOISTER_SECONDS={asked.seconds}")
        return 1
    used = dict(folders)
    if asked.write:
        rounded = {folder: round(seconds, 1) for folder, seconds in sorted(used.items())}
        BUDGET.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    budget: dict[str, float] = json.loads(BUDGET.read_text(encoding="utf-8")) if BUDGET.exists() else {}
    print(table(used, budget))
    return 1 if grown(used, budget) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
