"""Measure every promise of speed, and write what was found to docs/benchmarks.md.

    python scripts/bench.py [--quick] [name …]      # names: benchmark files without .py; all of them when left out

Runs each benchmarks/*.py in a process of its own, one after another, and reads the JSON lines that it prints (what is in them:
benchmarks/README.md). Each has a section of the page, with the day and the machine, which is written as soon as it ends: a run
that is stopped loses nothing. Exits 1 where a promise does not hold, or where a benchmark fails or prints no result. A short run
prints its tables and leaves the page as it is; so does a benchmark that fails.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.folded import Row, folded  # noqa: E402  (the tree is on the path only now)

PAGE = ROOT / "docs" / "benchmarks.md"
MISSED = "**missed**"
HEAD = ("| promise | measured | limit | what was run |", "|---|---:|---:|---|")
FIELDS = {"benchmark": str, "ratio": int | float, "limit": int | float, "holds": bool, "detail": str}


@dataclass(frozen=True, kw_only=True)
class Result:
    """One promise, and what was measured."""

    benchmark: str
    ratio: float
    limit: float
    holds: bool
    detail: str
    broken: bool = False
    """Nothing was measured: the benchmark failed."""


def run(script: Path, quick: bool) -> list[Result]:
    """Run one benchmark, its words going to the terminal as they come; its results."""
    environment = os.environ | ({"CLOISTER_BENCH_QUICK": "1"} if quick else {})
    results = []
    with subprocess.Popen([sys.executable, str(script)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            result = read(line)
            if result is None:
                print(line, end="", flush=True)
            else:
                results.append(result)
    if process.returncode or not results:
        why = f"it ended with status {process.returncode}" if process.returncode else "it printed no result"
        results.append(Result(benchmark=script.stem, ratio=0, limit=0, holds=False, detail=why, broken=True))
    return results


def read(line: str) -> Result | None:
    """The result in a line of output, or None where the line is for people."""
    if not line.startswith("{"):
        return None
    try:
        said: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    wrong = [name for name, kind in FIELDS.items() if not isinstance(said.get(name), kind)]
    if wrong:
        raise SystemExit(f"a result lacks {', '.join(wrong)}, or has it in another type: {line.strip()}")
    return Result(**{name: said[name] for name in FIELDS})


def machine() -> dict[str, str]:
    """What may matter of the machine; nothing that names it."""
    return {
        "processor": _first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": f"Python {platform.python_version()}",
    }


def _first(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _memory() -> str:
    kibibytes = _first("/proc/meminfo", "MemTotal").split()
    return f"{int(kibibytes[0]) / 2**20:.0f} GiB" if kibibytes else "unknown"


def table(results: list[Result]) -> str:
    """The results as a Markdown table, what neighbours share written once."""
    return "\n".join([*HEAD, *("| " + " | ".join(row) + " |" for row in folded([_row(one) for one in results]))])


def _row(one: Result) -> Row:
    missed = "" if one.holds else f" {MISSED}"
    name, detail = (" ".join(text.replace("|", "/").split()) for text in (one.benchmark, one.detail))
    return name, f"{one.ratio:.3g}{missed}", f"{one.limit:.3g}", detail


def section(results: list[Result]) -> str:
    """What the page says of one benchmark."""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}: {', '.join(machine().values())}.\n\n{table(results)}"


def sections(page: str) -> dict[str, str]:
    """What the page says of each benchmark, by its name."""
    return {name: text.strip() for name, _, text in (part.partition("\n") for part in page.split("\n## ")[1:])}


def page(found: Mapping[str, str]) -> str:
    """The page of the documentation."""
    return f"""# Benchmarks

Each promise of speed, against a peer or a limit measured in the same run on the same machine. `make bench` runs them all and
writes this page; a section is what one script of `benchmarks/` measured, and says when. Every limit holds but those marked
{MISSED}. A bold line has what the rows below it share; `…` in it are the places that they fill, in order.
""" + "".join(f"\n## {name}\n\n{found[name]}\n" for name in sorted(found))


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 where every promise holds."""
    quick = "--quick" in arguments
    names = [argument for argument in arguments if not argument.startswith("-")]
    scripts = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_"))
    stems = {path.stem for path in scripts}
    unknown = set(names) - stems
    if unknown:
        raise SystemExit(f"no benchmark of the name {', '.join(sorted(unknown))}; there are: {', '.join(sorted(stems))}")
    holds = True
    for script in scripts:
        if not names or script.stem in names:
            print(f"== {script.stem}", flush=True)
            results = run(script, quick)
            print(f"\n{table(results)}\n", flush=True)
            holds = holds and all(result.holds for result in results)
            if not quick and not any(result.broken for result in results):
                known = {stem: text for stem, text in sections(PAGE.read_text(encoding="utf-8")).items() if stem in stems}
                PAGE.write_text(page({**known, script.stem: section(results)}), encoding="utf-8")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
