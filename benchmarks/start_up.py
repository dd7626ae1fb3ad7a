"""What it takes until a first answer: `import cloister`, `cloister query` on a small file, a first session, its first question.

Each is a process of its own, beside ones that do the least that anybody's would: the bare interpreter, and one that counts the
same file with DuckDB. What is compared is processor time, the least of several runs of each in turn, so that other work on the
machine matters little. Compiled modules are kept in a folder of their own: where an environment forbids to write them
(PYTHONDONTWRITEBYTECODE), each start compiles all sources, which takes as long as all the rest.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import report

ROUNDS = 3 if os.environ.get("CLOISTER_BENCH_QUICK") else 7
ROWS = 1_000
DECLARED = """
[tables.people]
source = "people.csv"
[tables.people.columns]
age = { kind = "integer", low = 17, high = 90 }
sex = { kind = "category", values = ["F", "M"] }
[budgets]
people = { epsilon = "10" }
"""
SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
COUNTED = "import duckdb; duckdb.sql(\"SELECT sex, COUNT(*) FROM 'people.csv' GROUP BY sex\").fetchall()"
OPENED = """
import cloister as cl
people = cl.PrivateTable("people.csv", columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
session = cl.Session({"people": people}, budget=cl.PureDP(10))
"""


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = "\n".join(f"{20 + i % 60},{'FM'[i % 2]}" for i in range(ROWS))
        (place / "people.csv").write_text(f"age,sex\n{rows}\n", encoding="utf-8")
        (place / "tables.toml").write_text(DECLARED, encoding="utf-8")
        commands = {
            "interpreter": [sys.executable, "-c", "pass"],
            "duckdb": [sys.executable, "-c", COUNTED],
            "import": [sys.executable, "-c", "import cloister"],
            "query": [sys.executable, "-m", "cloister", "query", SQL, "--spend", "0.1", "--tables", "tables.toml"],
            "session": [sys.executable, "-c", OPENED],
            "question": [sys.executable, "-c", f"{OPENED}session.sql({SQL!r}, spend=1)"],
        }
        least = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, command in commands.items():
                least[name] = min(least[name], seconds(command, place))
    bare, duck = least["interpreter"], least["duckdb"]
    beside = f"the interpreter alone takes {bare:.3f} s, and counting the file with DuckDB {duck:.3f} s"
    for name, what, limit in (
        ("import", "import cloister", 0.5),
        ("query", f"cloister query on a file of {ROWS:,} rows", 0.8),
        ("session", "a first session, its imports included", 0.4),
        ("question", "a first session and its first question", 0.8),
    ):
        report(f"{what}: seconds of processor time", least[name], limit, beside, most=True)


def seconds(command: list[str], place: Path) -> float:
    """The processor time of a command that succeeds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {"PYTHONPYCACHEPREFIX": str(place / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, cwd=place, env={**os.environ, **kept}, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
