"""A line is broken in each of ten packages, and `make test` has to see it: not only what `make prove` or the night runs.

    python -m scripts.broken_lines              # all of them, in copies of the tree
    python -m scripts.broken_lines ledger       # one

Each break is a fault that a change of logic could bring in. The tests of its folder run as `make test` runs them, until the first
failure. A break that nothing sees is printed, and the exit is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from scripts.run_tests import ROOT, TIERS


class Break(NamedTuple):
    """A part of one line, as it is and as it would be wrong."""

    file: str
    line: str
    wrong: str
    tests: str

    def make(self, tree: Path) -> None:
        """Break it in a copy of the tree."""
        path = tree / "src/cloister" / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.line) != 1:
            raise SystemExit(f"{self.file} has not one line {self.line!r}: write down another one in scripts/broken_lines.py")
        path.write_text(text.replace(self.line, self.wrong), encoding="utf-8")


BREAKS = {
    "privacy": Break("privacy/composition.py", "total = total + guarantee_of(", "total = guarantee_of(", "tests/privacy"),
    "noise": Break("noise/laplace.py", "(self, scale=check_scale(scale),", "(self, scale=check_scale(scale) / 2,", "tests/noise"),
    "ledger": Break("ledger/book.py", "return self.spent[0] + cost[0] <= self.limit[0]", "return True", "tests/ledger"),
    "tables": Break("tables/declaring/columns.py", "return min(max(whole, self.low), self.high)", "return whole", "tests/tables"),
    "session": Break(
        "session/planning/builder.py",
        "block = self._add(sum_block(statistic.column, low, high, self.max_rows))",
        "block = self._add(sum_block(statistic.column, low, high, 1))",
        "tests/session",
    ),
    "query": Break("query/conditions.py", 'exp.LTE: "<=",', 'exp.LTE: "<",', "tests/query"),
    "learn": Break("learn/bayesian/naive_bayes.py", "/ self.var_[label]", "* self.var_[label]", "tests/learn"),
    "anonymize": Break("anonymize/models/k.py", ".sizes >= self.k)", ".sizes >= self.k - 1)", "tests/anonymize"),
    "mining": Break("mining/itemsets.py", "support=count / max(1, len(self.baskets)))", "support=count)", "tests/mining"),
    "hub": Break(
        "hub/decisions/policy/decide.py", 'rule="token", reason="scope"', 'rule="token", reason="token"', "tests/hub/policy"
    ),
}
"""By package."""


def seen(broken: Break) -> bool:
    """Whether the tests of its folder fail, as `make test` runs them."""
    with tempfile.TemporaryDirectory(prefix="cloister-broken-") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        for name in (
            "src",
            "tests",
            "scripts",
            "docs",
            "benchmarks",
            "examples",
            "conftest.py",
            "pyproject.toml",
            ".importlinter",
            "README.md",
            "Makefile",
        ):
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
        broken.make(tree)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--disable-warnings", "-m"]
        command += [f"{TIERS['test']} and not spark and not postgres", *broken.tests.split()]
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
        print(f"{broken.file}: {'seen' if done.returncode else 'NOT SEEN'}: {_first(done.stdout)}", flush=True)
        return bool(done.returncode)


def _first(said: str) -> str:
    return next((line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))), "nothing failed")


def main(given: list[str]) -> int:
    """0 where each break is seen."""
    unknown = sorted({*given} - {*BREAKS})
    if unknown:
        print(f"usage: broken_lines [{' | '.join(BREAKS)}]; there is no {', '.join(unknown)}", file=sys.stderr)
        return 2
    unseen = [name for name in given or BREAKS if not seen(BREAKS[name])]
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
