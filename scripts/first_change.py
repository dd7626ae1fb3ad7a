"""Do what a page of the documentation says about a first change, on a copy of the tree: its commands, its edits, its tests.

    python -m scripts.first_change docs/how-to/add-an-aggregate.md

A block of `diff` has a part for each edit: `+++ path`, then lines that stay, go (-) and come (+). What stays and goes must
stand in the file once; a file that is not there is made of what comes. A line of a block of `sh` runs as it stands; one that ends
in `# fails: WORDS` must fail and say so, one in `# passes` must not fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "scripts", "conftest.py", "pyproject.toml")
_BLOCK = re.compile(r"^```(diff|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Stale(Exception):
    """What a page says is not so any more."""


def edited(text: str, part: list[str]) -> str:
    """A text with one edit.

    >>> edited("one\\ntwo\\n", [" one", "-two", "+2"])
    'one\\n2\\n'
    """
    before = "".join(f"{line[1:]}\n" for line in part if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in part if line[:1] != "-")
    if not before and not text:
        return after
    if text.count(before) != 1:
        raise Stale(f"this stands {text.count(before)} times in the file, and once was expected:\n{before}")
    return text.replace(before, after)


def apply(block: str, folder: Path) -> None:
    """Every edit of a block."""
    for part in block.removeprefix("+++ ").split("\n+++ "):
        name, *lines = part.rstrip("\n").split("\n")
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(edited(file.read_text(encoding="utf-8") if file.exists() else "", lines), encoding="utf-8")


def run(line: str, folder: Path) -> None:
    """One command, and what the page says of its end."""
    command, _, said = line.partition("  # ")
    own = {name: value for name, value in os.environ.items() if name != "CLOISTER_PART"}  # of the night that runs this
    here = {**own, "PYTHONPATH": "src", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=here, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    wanted = said.removeprefix("fails: ") if said.startswith("fails: ") else ""
    if (done.returncode != 0) != bool(wanted) or wanted not in told:
        raise Stale(f"{line}\nended with {done.returncode}:\n{told[-3000:]}")


def steps(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of a page, and the lines of those that are commands.

    >>> list(steps("a\\n```sh\\nmake\\n```\\n```python\\nx\\n```\\n"))
    [('sh', 'make')]
    """
    for kind, block in _BLOCK.findall(page):
        yield from ((kind, line) for line in block.splitlines()) if kind == "sh" else [(kind, block)]


def follow(page: Path, folder: Path) -> int:
    """Everything that the page says; how many steps there were."""
    done = 0
    for kind, step in steps(page.read_text(encoding="utf-8")):
        (run if kind == "sh" else apply)(step, folder)
        done += 1
    return done


def copied(folder: Path) -> Path:
    """A copy of what tests need."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy2(source, folder / name)
    return folder


def main(given: list[str]) -> int:
    """0 where the page is right."""
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        for page in given:
            print(f"{page}: {follow(Path(page), Path(folder))} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
