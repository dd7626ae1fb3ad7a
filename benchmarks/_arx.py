"""ARX, run in a Java of its own on the tables that ours get.

CLOISTER_PEER_ARX is a class path: ARX compiled (commit aacd487f of arx-deidentifier/arx), and the libraries that it needs.
`javac` has to be there as well: it compiles the few lines that run ARX (`_ArxRunner.java`). Without them the comparison is with
the times of the day when these optima were recorded, by how fast this machine runs a reference loop; that is said aloud.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VARIABLE = "CLOISTER_PEER_ARX"
RELEASE = "ARX at aacd487f"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of ARX: the milliseconds of its `anonymize`, those that its thread was at work, and what it found."""

    round: int
    columns: int
    metric: str
    milliseconds: float
    processor: float
    levels: tuple[int, ...]
    score: float
    classes: int
    suppressed: int


@cache
def available() -> bool:
    """Whether ARX can be run; where it cannot, this is said once, aloud."""
    found = bool(os.environ.get(VARIABLE)) and all(shutil.which(program) for program in ("java", "javac"))
    if not found:
        print(f"*** {RELEASE} IS NOT RUN: {VARIABLE} names no class path, or there is no Java ***", flush=True)
    return found


class Arx:
    """A folder with the table and hierarchies, and the runs on it."""

    def __init__(self, table: Path, hierarchies: Sequence[Path], columns: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        import gzip

        with gzip.open(table, "rt", encoding="utf-8", newline="") as opened:
            rows = [[row[name] for name in columns] for row in csv.DictReader(opened)]
        _write(folder / "table.tsv", [list(columns), *rows])
        for place, path in enumerate(hierarchies):
            with path.open(encoding="utf-8", newline="") as opened:
                _write(folder / f"{place}.tsv", list(csv.reader(opened))[1:])
        runner = Path(__file__).with_name("_ArxRunner.java")
        libraries = os.environ[VARIABLE]
        subprocess.run(["javac", "-nowarn", "-d", str(folder), "-cp", libraries, str(runner)], check=True, capture_output=True)
        self._command = ["java", "-cp", f"{folder}{os.pathsep}{libraries}", "_ArxRunner", str(folder)]

    def run(self, orders: Sequence[tuple[int, str, int, float]], rounds: int) -> list[Run]:
        """Each order (columns, metric, k, share that may be suppressed), as often as there are rounds, in one Java."""
        _write(Path(self._folder.name) / "orders.tsv", [[str(each) for each in order] for order in orders])
        done = subprocess.run([*self._command, str(rounds)], check=True, capture_output=True, text=True)
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return [Run(**{**each, "levels": tuple(each["levels"]), "score": float(each["score"])}) for each in found]


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
