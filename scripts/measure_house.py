"""How heavy the house is: lines by room, circles of files, small files, words of the docs, and words that the docs avoid in code.

    python scripts/measure_house.py            # the table
    python scripts/measure_house.py --write    # what was measured is the most from now on (tests/house.json)

`tests/scripts/test_house.py` fails where a number grew. Lines are those of Python files, blank ones and docstrings included. A
circle is a group of files that import one another at their top, outside `if TYPE_CHECKING`. The words are those that
`tests/docs/test_words.py` avoids, looked for in docstrings, comments and names of src. How far a question travels is counted by
`scripts/trace_question.py`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "src" / "cloister"
MOST = ROOT / "tests" / "house.json"
"""What each number may be."""
WANTED = {"hub": 43_000, "all rooms": 193_000, "circles of files": 4, "avoided words in src": 60, "words of docs": 175_000}
"""What the numbers are to become."""
SMALL = 60


def files() -> dict[str, Path]:
    """The files of src, by the names of their modules.

    >>> files()["cloister.errors"].name
    'errors.py'
    """
    found = sorted(HOUSE.rglob("*.py"))
    return {".".join(path.relative_to(HOUSE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in found}


def lines_by_room() -> dict[str, int]:
    """Lines of each top-level package, and of all."""
    rooms: Counter[str] = Counter()
    for path in files().values():
        parts = path.relative_to(HOUSE).parts
        rooms[parts[0] if len(parts) > 1 else "its own files"] += path.read_text(encoding="utf-8").count("\n")
    return {**dict(sorted(rooms.items())), "all rooms": rooms.total()}


def circles(modules: Mapping[str, Path]) -> list[list[str]]:
    """Groups of modules that import one another."""
    ways = {name: {each for each in _imported(name, path, modules) if each != name} for name, path in modules.items()}
    return [sorted(each) for each in _tied(ways) if len(each) > 1]


def _imported(name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _at_the_top(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for each in node.names:
                yield from (found for found in (f"{base}.{each.name}", base) if found in modules)


def _at_the_top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from _at_the_top([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _at_the_top([*node.body, *(each for handler in node.handlers for each in handler.body), *node.orelse])


def _tied(ways: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Strongly connected parts: what is reached from a module, and reaches it."""
    reached = {name: _reached(name, ways) for name in ways}
    left = set(ways)
    while left:
        name = min(left)
        part = {name, *(each for each in reached[name] & left if name in reached[each])}
        left -= part
        yield part


def _reached(name: str, ways: Mapping[str, set[str]]) -> set[str]:
    found, ahead = set[str](), [name]
    while ahead:
        for each in ways[ahead.pop()] - found:
            found.add(each)
            ahead.append(each)
    return found


def talk(path: Path) -> str:
    """Docstrings, comments and names of a file, as one text."""
    source = path.read_text(encoding="utf-8")
    tree, said = ast.parse(source), list[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.append(node.value.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            said.append(" ".join(re.findall(r"[A-Z]?[a-z]+", node.name)).lower())
        elif isinstance(node, ast.arg):
            said.append(node.arg.replace("_", " "))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    said += [each.string.lstrip("# ") for each in tokens if each.type == tokenize.COMMENT]
    return "\n".join(said)


def avoided(paths: Iterable[Path]) -> int:
    """How often words stand in code that the docs avoid."""
    from tests.docs.test_words import AVOIDED

    patterns = [re.compile(each) for each in AVOIDED]
    return sum(len(pattern.findall(text)) for path in paths for text in [talk(path)] for pattern in patterns)


def measured() -> dict[str, int]:
    """Every number, by its name."""
    modules = files()
    made = {ROOT / "docs" / each for each in ("_build", "reference/api", "benchmarks.md")}  # by the site, and by `make bench`
    written = [path for path in (ROOT / "docs").rglob("*.md") if made.isdisjoint((path, *path.parents))]
    pages = [path.read_text(encoding="utf-8") for path in written]
    small = [path for path in modules.values() if HOUSE / "hub" in path.parents and path.name != "__init__.py"]
    return {
        **lines_by_room(),
        "circles of files": len(circles(modules)),
        f"files of the hub under {SMALL} lines": sum(path.read_text(encoding="utf-8").count("\n") < SMALL for path in small),
        "avoided words in src": avoided(modules.values()),
        "words of docs": sum(len(page.split()) for page in pages),
    }


def main(arguments: list[str]) -> int:
    """Print the table, or write down what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="what was measured is the most from now on")
    found, most = measured(), json.loads(MOST.read_text(encoding="utf-8")) if MOST.exists() else {}
    if parser.parse_args(arguments).write:
        MOST.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{'now':>9} {'at most':>9} {'wanted':>9}")
    for name, number in found.items():
        print(f"{number:>9,} {most.get(name, 0):>9,} {WANTED.get(name, ''):>9}  {name}")
    for circle in circles(files()):
        print("circle:", ", ".join(circle))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
