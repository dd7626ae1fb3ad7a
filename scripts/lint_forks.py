"""Nothing forks beside threads: a forked child of a process with threads may hang, or die in a library's fork handler.

    python scripts/lint_forks.py [root …]       # default: src, tests, scripts, benchmarks, examples

Reads syntax trees and follows names, as `lint_randomness` does. What is found: `preexec_fn=`, `os.fork` and its kin, the start
method "fork", and pools and processes that do not name their start method (on Linux it is "fork" where nothing is said). A child
sets its own limits in its script; a test that has to fork does it in a program of its own, which ALLOWED names with the reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    from scripts.lint_randomness import _full_names, _names_of
except ImportError:  # run as a program: only this folder is on the path
    from lint_randomness import _full_names, _names_of  # type: ignore[import-not-found, no-redef]

ROOT = Path(__file__).resolve().parent.parent
FORKS = frozenset({"os.fork", "os.forkpty", "pty.fork", "posix.fork", "posix.forkpty"})
UNNAMED = frozenset(
    {
        "multiprocessing.Process",
        "multiprocessing.Pool",
        "multiprocessing.Manager",
        "multiprocessing.Queue",
        "multiprocessing.pool.Pool",
        "concurrent.futures.ProcessPoolExecutor",
        "concurrent.futures.process.ProcessPoolExecutor",
    }
)
"""What starts processes by the default method of the platform."""
CHOOSE = ("get_context", "set_start_method")
NAMED = {"spawn", "forkserver"}
WORDS = ("fork", "preexec_fn", "multiprocessing", "concurrent")
"""Each finding is of a text with one of them. A text without any, as most are, is not parsed."""

ALLOWED = {
    "src/cloister/guests/sandbox/fork_server.py": "the guests' fork server: it has one thread and imports what has none",
    "tests/hub/forked.py": "a program of its own, with one thread, which is counted before each fork",
    "tests/ledger/forking.py": "a program of its own, with one thread",
    "tests/noise/forking.py": "a program of its own, with one thread",
    "tests/stored/making.py": "a program of its own, run by hand",
    "tests/together/hub_process.py": "a program of its own, with one thread",
    "tests/together/sealed/csp_process.py": "a program of its own, with one thread",
    "tests/together/site_process.py": "a program of its own, with one thread",
}
"""The files that fork, by path in the tree, each with its reason."""


def findings_in(source: str) -> list[tuple[int, str]]:
    """Line and name of each place where a source text forks, in the order of lines."""
    if not any(word in source for word in WORDS):
        return []
    tree = ast.parse(source)
    return sorted(set(_uses(tree, _names_of(tree))))


def _uses(tree: ast.AST, names: dict[str, set[str]]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield from ((node.lineno, name) for name in _full_names(node, names) & FORKS)
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from ((node.lineno, name) for name in whole & FORKS)
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, what) for what in _calls(node, names))


def _calls(call: ast.Call, names: dict[str, set[str]]) -> Iterator[str]:
    given = {word.arg: word.value for word in call.keywords}
    if not (isinstance(nothing := given.get("preexec_fn", ast.Constant(None)), ast.Constant) and nothing.value is None):
        yield "preexec_fn"
    called = _full_names(call.func, names)
    for name in called:
        if name.rpartition(".")[2] in CHOOSE and name.startswith("multiprocessing."):
            method = call.args[0] if call.args else given.get("method")
            if not (isinstance(method, ast.Constant) and method.value in NAMED):
                yield f"{name} without one of {', '.join(sorted(NAMED))}"
        elif name in UNNAMED and "mp_context" not in given and len(call.args) < 2:
            yield f"{name} without a start method"


def findings(root: Path, tree: Path = ROOT) -> list[str]:
    """Every fork below `root`, except in the files that may."""
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(tree).as_posix()
        if inside not in ALLOWED:
            found += [f"{inside}:{line}: {what}" for line, what in findings_in(path.read_text(encoding="utf-8"))]
    return found


def main(arguments: list[str]) -> int:
    """Lint the given roots; 1 where anything was found, or where a file is allowed to fork that does not."""
    roots = [Path(each).resolve() for each in arguments] or [
        ROOT / each for each in ["src", "tests", "scripts", "benchmarks", "examples"]
    ]
    found = [each for root in roots for each in findings(root)]
    if not arguments:
        found += [
            f"{each}: is allowed to fork and does not" for each in ALLOWED if not findings_in((ROOT / each).read_text("utf-8"))
        ]
    for each in found:
        print(
            f"{each}: a fork beside threads may hang; set limits in the child's script, or fork in a program of its own (ALLOWED)"
        )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
