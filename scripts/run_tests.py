"""Run a tier of tests: what `make test`, `make prove` and CI call.

    python -m scripts.run_tests test [words for pytest]     # what a change of logic can break
    python -m scripts.run_tests prove                       # statistics, attacks, kills, browsers, Spark, figures, the site
    python -m scripts.run_tests all                         # both, the first one first

A tier has two lanes that run beside each other. One has the tests, on JOBS workers. The other has what must not share a process
with them: types, the tests of Spark (its client has threads), and the examples of docstrings and pages (to collect them, each
worker would import every module). With a path among the words, nothing but that path is run.

    JOBS=3        workers            TRIES=2     what failed is run once more, alone (scripts/second_try.py)
    CHANGED=1     the folders that a diff against main can reach     FRESH=1, SEED=7     scripts/noise_by_name.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from scripts import changed, second_try

ROOT = Path(__file__).resolve().parent.parent
TIERS = {"test": "not slow and not prove", "prove": "prove and not slow", "all": "not slow"}
PAGES = ["src", "docs", "README.md", "CONTRIBUTING.md"]
NOTHING = 5
"""What pytest ends with where no test was chosen."""


@dataclass
class Step:
    """One program of a lane."""

    name: str
    command: list[str]
    failed: Path | None = None
    """Where its pytest notes what failed."""
    status: int = -1
    lines: list[str] = field(default_factory=list)


def pytest(name: str, words: list[str], mark: str, folder: Path) -> Step:
    """A run of pytest, with the plugins that note its seconds and failures."""
    failed = ROOT / ".cache" / f"failed-{name}.json"
    command = [sys.executable, "-m", "pytest", "-p", "scripts.test_budget", "-p", "scripts.second_try"]
    command += ["--disable-warnings", "-m", mark, f"--basetemp={folder / name}", "-o", "tmp_path_retention_policy=failed"]
    return Step(name, [*command, *words], failed)


def run(step: Step, *, aloud: bool) -> None:
    """Run it to its end; quietly, what it says is kept until then."""
    environment = os.environ | {"CLOISTER_FAILED": str(step.failed)} if step.failed else dict(os.environ)
    with subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=None if aloud else subprocess.PIPE,
        stderr=None if aloud else subprocess.STDOUT,
        text=True,
    ) as process:
        if process.stdout is not None:
            step.lines = list(process.stdout)
        step.status = process.wait()
    if step.failed and step.status == NOTHING:
        step.status = 0
    if not aloud:
        print(f"\n--- {step.name}\n" + "".join(step.lines if step.failed or step.status else []), flush=True)


def with_spark() -> list[str]:
    """The files with tests of Spark: those that name its mark, or whose folder's conftest does."""
    marked = {path for path in (ROOT / "tests").rglob("*.py") if "mark.spark" in path.read_text(encoding="utf-8")}
    folders = {path.parent for path in marked if path.name == "conftest.py" and path.parent != ROOT / "tests"}
    found = {path for folder in folders for path in folder.rglob("test_*.py")} | {
        path for path in marked if path.name[:5] == "test_"
    }
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def lanes(tier: str, words: list[str], folder: Path) -> tuple[list[Step], list[Step]]:
    """What runs aloud, and what runs beside it."""
    mark, jobs = TIERS[tier], os.environ.get("JOBS", "3")
    workers = ["-n", jobs, "--dist", "loadgroup", "--no-loadscope-reorder"]
    chosen = changed.folders() if os.environ.get("CHANGED") else None
    types = [Step("types", [str(Path(sys.executable).parent / "mypy"), "--no-error-summary"])] if tier != "prove" else []
    if any((ROOT / word.partition("::")[0]).exists() for word in words):
        return [pytest("tests", [*workers, *words], mark, folder)], types
    if chosen == []:
        return [], types
    spark = [each for each in with_spark() if chosen is None or any(Path(each).is_relative_to(one) for one in chosen)]
    alone = ["-p", "no:xdist", *words]
    beside = [pytest("spark", [*alone, *spark], f"spark and {mark}", folder)] if spark else []
    pages = PAGES if chosen is None else [each for each in chosen if not each.startswith("tests")]
    tests = ["tests"] if chosen is None else [each for each in chosen if each.startswith("tests")]
    if pages and tier != "prove":
        beside.append(pytest("pages", [*alone, *pages], mark, folder))
    return [pytest("tests", [*workers, *words, *tests], f"not spark and {mark}", folder)] if tests else [], types + beside


def room_for_files() -> Path:
    """A new folder for the files of the tests: in memory where there is enough, since tests wait for disks and compute little."""
    memory = Path("/dev/shm")
    enough = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 6 << 30
    return Path(tempfile.mkdtemp(prefix="tests-", dir=memory if enough else None))


def run_tier(tier: str, words: list[str]) -> list[Step]:
    """Both lanes, to their ends."""
    folder = room_for_files()
    try:
        aloud, beside = lanes(tier, words, folder)
        other = threading.Thread(target=lambda: [run(step, aloud=False) for step in beside])
        other.start()
        for step in aloud:
            run(step, aloud=True)
        other.join()
        return [*aloud, *beside]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(given: list[str]) -> int:
    """0 where everything passed, or passed when it was run again alone."""
    tier, *words = given
    if tier not in TIERS:
        print(f"usage: run_tests {' | '.join(TIERS)} [words for pytest]", file=sys.stderr)
        return 2
    (ROOT / ".cache").mkdir(exist_ok=True)
    for file in (ROOT / ".cache").glob("failed-*.json"):
        file.unlink()
    steps = run_tier(tier, words)
    bad = [step for step in steps if step.status]
    for step in bad:
        print(f"failed: {step.name}, with {step.status}")
    if bad and os.environ.get("TRIES") == "2" and all(step.failed for step in bad):
        return second_try.main([step.failed for step in steps if step.failed])
    passed, failed = second_try.counts([step.failed for step in steps if step.failed])
    print(f"{passed} passed, {failed} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
