"""Run the pages and notebooks of this folder, and write down what they print.

python docs/learn/refresh.py

A page's blocks that begin with >>> and a notebook's cells keep their outputs in the tree, where readers see them; tests compare
these with what the code prints today. After a change that is meant, run this, and read the difference.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTEBOOKS = sorted((HERE / "exercises").glob("*.ipynb"))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Everything, or the files that are named."""
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for path in named or [*sorted(HERE.glob("*.md")), *NOTEBOOKS]:
        before = path.read_text(encoding="utf-8")
        after = notebook_text(path) if path.suffix == ".ipynb" else page(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.name} was refreshed")


def page(text: str) -> str:
    """The page with its outputs written anew."""
    names: dict[str, Any] = {}

    def refreshed(match: re.Match[str]) -> str:
        body = match.group(1)
        if not body.startswith(">>>"):
            said(body, names)
            return match.group(0)
        parts = [part for part in doctest.DocTestParser().parse(body) if isinstance(part, doctest.Example)]
        before = parts[0].lineno if parts else 0  # a comment there is no example
        kept = "".join(line for line in body.splitlines(keepends=True)[:before] if line.startswith(">>> #"))
        done = "".join(_prompted(part.source) + _shown(said(part.source, names, "single")) for part in parts)
        return f"```python\n{kept}{done}```"

    with an_empty_folder():
        return _BLOCK.sub(refreshed, text)


def notebook_text(path: Path) -> str:
    """The notebook with its outputs written anew."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, printed) in enumerate(outputs(notebook), 1):
        cell["execution_count"] = number
        cell["outputs"] = (
            [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}] if printed else []
        )
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each code cell, in order, and what it prints; the cells share their names."""
    names: dict[str, Any] = {}
    with an_empty_folder():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                yield cell, said("".join(cell["source"]), names)


def said(source: str, names: dict[str, Any], mode: str = "exec") -> str:
    """What a piece of code prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<page>", mode), names)  # noqa: S102  (our own pages)
    return printed.getvalue()


@contextlib.contextmanager
def an_empty_folder() -> Iterator[None]:
    """So that nothing that code writes lands in the tree."""
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(home)


def _prompted(source: str) -> str:
    first, *rest = source.rstrip("\n").split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in rest)]) + "\n"


def _shown(printed: str) -> str:
    return "".join(f"{line.rstrip() or '<BLANKLINE>'}\n" for line in printed.splitlines())


if __name__ == "__main__":
    main()
