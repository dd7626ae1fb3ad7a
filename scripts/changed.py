"""The folders of tests that a change can reach: `make test CHANGED=1` runs no others.

    python -m scripts.changed            # what differs from main, committed or not

A change of a room reaches the rooms of the layers above it (`.importlinter`), and of a service of the hub those above it.
What is no room (settings, conftests, the hub's own frame) reaches everything above it.
"""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVERYTHING = ["tests", "src", "docs", "README.md", "CONTRIBUTING.md"]


def layers(contract: str) -> list[set[str]]:
    """The layers of a contract, the highest first."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    lines = parser[f"importlinter:contract:{contract}"]["layers"].split("\n")
    return [set(re.findall(r"\w+", line)) for line in lines if line.strip()]


def above(name: str, contract: str) -> set[str]:
    """A room and whatever may use it."""
    found: set[str] = set()
    for layer in layers(contract):
        if name in layer:
            return found | {name}
        found |= layer
    return found | {name}


def differs(base: str = "main") -> list[str]:
    """The files that differ from where this branch left `base`, and those that are not committed."""

    def lines(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    [start] = lines("merge-base", base, "HEAD")
    return sorted({*lines("diff", "--name-only", start), *lines("ls-files", "--others", "--exclude-standard")})


def reached(files: Iterable[str]) -> set[str]:
    """Folders and files of tests, docstrings and pages; `tests` alone stands for all of them."""
    found: set[str] = set()
    for file in files:
        parts = Path(file).parts
        if parts[:2] == ("src", "cloister"):
            found |= _of_source(parts[2:])
        elif parts[0] == "tests":
            deep = 3 if parts[1] == "hub" and len(parts) > 3 else 2
            found.add("/".join(parts[:deep]) if len(parts) > 2 else "tests")
        elif parts[0] in ("docs", "examples") or file.endswith(".md"):
            found |= {"tests/docs", *([file] if file.endswith(".md") and (parts[0] == "docs" or file in EVERYTHING) else [])}
        elif parts[0] in ("scripts", "benchmarks", ".ci") or file == "Makefile":
            found |= {"tests/scripts", *_naming(Path(file).stem)}
        else:
            found.add("tests")
    return found


def _of_source(parts: tuple[str, ...]) -> set[str]:
    room = parts[0].removesuffix(".py")
    known = set().union(*layers("floors"))
    if room not in known or len(parts) == 1:
        return {"tests"}
    if room == "hub":
        if parts[1] in ("services", "platform") and len(parts) > 3:
            reaching = above(parts[2], parts[1]).union(*(layers("services") if parts[1] == "platform" else []))
            return {f"tests/hub/{each}" for each in reaching} | {
                "tests/stored",
                "tests/cli",
                f"src/cloister/hub/{parts[1]}/{parts[2]}",
            }
        return {"tests/hub", "tests/client", "tests/cli", "tests/stored", "src/cloister/hub"}
    return {f"{where}/{each}" for each in above(room, "floors") for where in ("tests", "src/cloister")}


def _naming(name: str) -> set[str]:
    """The folders of tests that use a script."""
    spoken = re.compile(rf"scripts[. ](?:import )?.*\b{re.escape(name)}\b")
    return {
        "/".join(path.relative_to(ROOT).parts[:2])
        for path in (ROOT / "tests").rglob("*.py")
        if spoken.search(path.read_text(encoding="utf-8"))
    }


def folders() -> list[str]:
    """What to hand to pytest: those that exist, none inside another; everything where the change may reach everything."""
    found = reached(differs())
    if "tests" in found or "tests/conftest.py" in found:
        return EVERYTHING
    there = sorted(each for each in found if (ROOT / each).exists())
    return [each for each in there if not any(each != one and Path(each).is_relative_to(one) for one in there)]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{each}\n" for each in folders()))
