"""Processes of pytest that share the files of a run: each takes the next one, collects it and runs it.

    python -m pytest -p scripts.queued --queue FILE tests      # beside others like it; `write` made the file

A worker of pytest-xdist collects every file, and three of them use as much of the processor for that as forty tests of a hub.
Here a file is read once, by the process that runs it. What a session shares lives on from file to file. Files of one group
(`pytestmark = pytest.mark.xdist_group(…)`) are taken together.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest

_GROUP = re.compile(r"^pytestmark = .*xdist_group\(\"([^\"]+)\"\)", re.MULTILINE)


def write(queue: Path, given: Iterable[Path], last: Callable[[Path], bool] = lambda path: False) -> None:
    """All files with tests or examples below these folders, in their order, those of a group on one line; what is `last` comes
    after the rest."""
    found = sorted({path for each in given for path in ([each] if each.is_file() else each.rglob("*.py"))})
    units: dict[str, list[str]] = {}
    for path in sorted(found, key=last):
        text = path.read_text(encoding="utf-8")
        if path.name.startswith("test_") or ">>>" in text:
            group = _GROUP.search(text)
            units.setdefault(group[1] if group else str(path), []).append(str(path))
    queue.write_text("".join(" ".join(files) + "\n" for files in units.values()), encoding="utf-8")


def taken(queue: Path) -> list[str]:
    """The files of the first line, which nobody else gets; none where nothing is left."""
    with queue.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        first, _, rest = file.read().partition("\n")
        file.seek(0)
        file.truncate()
        file.write(rest)
    return first.split()


class Taker:
    """One of the processes."""

    def __init__(self, queue: Path) -> None:
        self.queue = queue

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """As pytest's own, but that it goes on to the next file."""
        count = 0
        for item, following in pairwise(chain(self._items(session), [None])):
            assert item is not None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            count += 1
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        session.testscollected = count
        return True

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        yield from session.items
        while files := taken(self.queue):
            yield from session.perform_collect(files)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--queue`: what `write` wrote."""
    parser.addoption("--queue", type=Path, required=True, metavar="FILE", help="the files that are left, a unit on each line")


def pytest_configure(config: pytest.Config) -> None:
    """The first file is collected as any is; the rest are taken as they are needed."""
    queue: Path = config.getoption("--queue")
    config.args = taken(queue)
    config.pluginmanager.register(Taker(queue))
