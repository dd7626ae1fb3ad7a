"""Which lines of each folder of src the tests run, and whether a change lost some.

    python -m scripts.coverage_by_folder learn ledger --write before.json      # at one commit
    python -m scripts.coverage_by_folder learn ledger --against before.json    # at another: a folder that lost lines is named

Runs the tests of these folders that run by day, on CORES workers, and counts statements that none of them ran; without a folder,
all of them. Ends with 1 where a folder has more such statements than before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = "src/cloister/"
CONFIG = """[run]
source = {root}/src/cloister
data_file = {folder}/data
parallel = true
patch = subprocess
sigterm = true
"""


def measured(folders: list[str], folder: Path, *words: str) -> dict[str, Any]:
    """The report of `coverage` over a run of the tests of these folders."""
    config = folder / "coverage.ini"
    config.write_text(CONFIG.format(root=ROOT, folder=folder), encoding="utf-8")
    tests = [f"tests/{each}" for each in folders] or ["tests"]
    how = ["-n", os.environ.get("CORES", "2"), "--dist", "loadgroup", "--no-loadscope-reorder", "--disable-warnings"]
    coverage = [sys.executable, "-m", "coverage"]
    run = [*coverage, "run", f"--rcfile={config}", "-m", "pytest", *how, "-m", "not slow and not spark", *words, *tests]
    done = subprocess.run(run, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"pytest ended with {done.returncode}: what its tests run is counted where they pass")
    subprocess.run([*coverage, "combine", "--quiet", f"--rcfile={config}"], cwd=ROOT, check=True)
    report = folder / "report.json"
    subprocess.run([*coverage, "json", "--quiet", f"--rcfile={config}", "-o", str(report)], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def by_folder(report: Mapping[str, Any], folders: list[str]) -> dict[str, list[int]]:
    """Of each folder its statements, and those that no test ran.

    >>> of_file = {"summary": {"num_statements": 9, "missing_lines": 2}}
    >>> by_folder({"files": {"src/cloister/learn/pca.py": of_file, "src/cloister/cli/hub.py": of_file}}, ["learn"])
    {'learn': [9, 2]}
    """
    statements, missing = Counter[str](), Counter[str]()
    for file, told in report["files"].items():
        room = file.partition(HOME)[2].split("/")[0].removesuffix(".py")
        if not folders or room in {each.split("/")[0] for each in folders}:
            statements[room] += told["summary"]["num_statements"]
            missing[room] += told["summary"]["missing_lines"]
    return {room: [statements[room], missing[room]] for room in sorted(statements)}


def worse(now: Mapping[str, list[int]], before: Mapping[str, list[int]]) -> list[str]:
    """The folders that lost lines.

    >>> worse({"learn": [10, 3], "cli": [5, 1]}, {"learn": [9, 2], "cli": [9, 4]})
    ['learn: 3 of 10 statements are not run, and were 2 of 9']
    """
    return [
        f"{room}: {missing} of {statements} statements are not run, and were {before[room][1]} of {before[room][0]}"
        for room, (statements, missing) in now.items()
        if room in before and missing > before[room][1]
    ]


def main() -> int:
    """Measure, print, and write or compare."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folders", nargs="*", help="of tests, as learn or hub/asking")
    arguments.add_argument("--write", type=Path, help="where to keep what was found")
    arguments.add_argument("--against", type=Path, help="what was found before")
    given, words = arguments.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        now = by_folder(measured(given.folders, Path(folder), *words), given.folders)
    for room, (statements, missing) in now.items():
        print(f"{room:12} {statements:7} statements, {missing:5} not run")
    if given.write:
        given.write.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    lost = worse(now, json.loads(given.against.read_text(encoding="utf-8"))) if given.against else []
    print(*lost, sep="\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
