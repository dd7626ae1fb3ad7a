"""Files that a command writes: whether there is a place for one is known before anything is read or charged."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cloister.errors import InvalidParameter
from cloister.printable import finite

_WHAT = "The file {!r} is invalid"


class Written(click.Path):
    """The path of a file to write, in a folder that is there; with endings, one that says its form."""

    def __init__(self, *endings: str) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; refused where no file can be written there."""
        found = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = found.parent
        if self.endings:
            self.check(found, param.opts[-1] if param is not None else "--out")
        what = _WHAT.format(str(found))
        if not folder.is_dir():
            raise InvalidParameter(what, why="there is no such folder", instead=f"mkdir {folder}")
        if not os.access(found if found.exists() else folder, os.W_OK):
            raise InvalidParameter(what, why="it can't be written", instead="another folder")
        return found

    def check(self, path: Path, option: str) -> None:
        """Refuse an ending that says none of the forms."""
        if path.suffix not in self.endings:
            why = f"its ending is none of {', '.join(self.endings)}"
            example = path.name.removesuffix(path.suffix) + self.endings[0]
            raise InvalidParameter(_WHAT.format(str(path)), why=why, instead=f"{option} {path.with_name(example)}")


class _Folder(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":  # a variable of a script that is not set: the path would be the current folder's
            raise InvalidParameter("The folder is invalid", why="it has no name", instead="a name, or . for the current folder")
        return super().convert(value, param, ctx)


def check_apart(read: object, *written: Path | None) -> None:
    """Refuse to write over the file that the same command reads: rows may have no other copy."""
    for path in written:
        if path is not None and path.exists() and Path(str(read)).exists() and path.samefile(str(read)):
            raise InvalidParameter(_WHAT.format(str(path)), why="it is read, and would be lost", instead="another name")


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file to read."""
FOLDER = _Folder(file_okay=False, path_type=Path)
WRITTEN = Written()
CHART = Written(".html", ".json", ".svg", ".png")
PAGE = Written(".html", ".json", ".txt")


def write_whole(path: Path, text: str) -> None:
    """To a file beside it first: an interruption leaves what was there, and no half of a text."""
    beside = path.with_name(f".{path.name}.part")
    try:
        if path.exists():
            beside.touch()
            shutil.copymode(path, beside)
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(path)
    except OSError:
        raise InvalidParameter(_WHAT.format(str(path)), why="it can't be written", instead="another folder") from None


@contextlib.contextmanager
def waiting_for(path: Path) -> Iterator[None]:
    """Alone with a file that is read and written back: another process that does so waits."""
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_page(page: Any, path: Path, **of: str) -> None:
    """A report as the ending of its file says; `of` is what its HTML is told."""
    if path.suffix == ".html":
        text = page.to_html(**of)
    else:
        text = (json.dumps(finite(page.to_dict()), indent=2) if path.suffix == ".json" else str(page)) + "\n"
    path.write_text(text, encoding="utf-8")
