"""Noise by day is a function of the test's name: a test passes always or fails always, until code or test changes.

The root conftest loads this plugin of pytest. It stands in for the module `os` inside `cloister/noise/random.py`, of this process
alone: the operating system's bytes become a hash of the seed, the test's name and a counter. The product has no such switch. What
a program draws that a test starts is fresh, and so is what a forked child draws.

    make test                      # noise by name
    make test FRESH=1              # fresh noise, as at night (CLOISTER_FRESH=1)
    make test SEED=7               # another function of the name (CLOISTER_TEST_SEED=7)
    pytest --again 20 tests/learn  # fresh noise; each test that draws runs for 20 seconds more, or 1,000 times

A fixture that several tests share draws under its own name, so it does not matter which test comes first.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from cloister.noise import random as module

SEED = os.environ.get("CLOISTER_TEST_SEED", "1")
FRESH = os.environ.get("CLOISTER_FRESH", "") not in ("", "0")
RUNS = 1000
"""How often a test is run again at most."""
FEWEST = 5
FAILURES = 5
"""After so many failures a test is known to be a coin."""


class System:
    """The module `os`, whose random bytes follow from a name."""

    def __init__(self) -> None:
        self.pid, self.name, self.counter = os.getpid(), "", itertools.count()
        self.drawn = False
        self.getpid = os.getpid  # looked up for every word

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def urandom(self, n: int) -> bytes:
        """`n` bytes for whatever draws next."""
        self.drawn = True
        if FRESH or not self.name or self.pid != os.getpid():
            return os.urandom(n)
        return hashlib.shake_256(f"{SEED} {self.name} {next(self.counter)}".encode()).digest(n)

    def begin(self, name: str, counter: Iterator[int] | None = None) -> None:
        """Whatever is drawn from here on follows from this name: words that were made before are thrown away."""
        self.name, self.counter, self.drawn = name, counter or itertools.count(), False
        for random in _living():
            if not random.marked:
                with random._lock:
                    random._words[:] = 0
                    random._position, random._blocks_left, random._key = module._BLOCK_WORDS, 0, b""

    @contextmanager
    def under(self, name: str) -> Iterator[None]:
        """For a while, another name."""
        before, drawn = (self.name, self.counter), self.drawn
        self.begin(name)
        try:
            yield
        finally:
            drawn = drawn or self.drawn
            self.begin(*before)
            self.drawn = drawn


def _living() -> list[module.Random]:
    while True:
        try:
            return list(module._living)
        except RuntimeError:  # another thread made one meanwhile
            continue


system = System()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--again`: for the night, and for whoever looks for coins."""
    parser.addoption("--again", type=float, default=0.0, metavar="SECONDS", help="how long a test that draws noise is repeated")


def pytest_configure(config: pytest.Config) -> None:
    """Stand in for the operating system."""
    module.os = system  # type: ignore[assignment]
    if config.getoption("--again"):
        globals()["FRESH"] = True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """What a file of tests draws while it is read follows from the file."""
    with system.under(collector.nodeid or "collection"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """What is shared by several tests has its own name."""
    if fixturedef.scope == "function":
        return (yield)
    with system.under(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """A test draws under its name, without the group that its worker put behind it."""
    group = item.get_closest_marker("xdist_group")
    name = item.nodeid.removesuffix(f"@{group.args[0]}") if group and group.args else item.nodeid
    system.begin(name)
    done = yield
    seconds = item.config.getoption("--again")
    if seconds and system.drawn:
        _again(item, nextitem, seconds)
    return done


def _again(item: pytest.Item, nextitem: pytest.Item | None, seconds: float) -> None:
    """Run it with new fixtures; report the last failure, and note how often there was one."""
    began, runs, failures = time.monotonic(), 1, 0
    shown: list[pytest.TestReport] = []
    while runs < RUNS and failures < FAILURES and (runs < FEWEST or time.monotonic() < began + seconds):
        item._initrequest()  # type: ignore[attr-defined]
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        runs += 1
        if any(report.failed for report in reports):
            failures, shown = failures + 1, reports
    for report in shown:
        if report.failed:
            report.sections.append(("run again", f"{failures} of {runs} runs failed"))
        item.ihook.pytest_runtest_logreport(report=report)
    folder = Path(item.config.rootpath / ".cache")
    folder.mkdir(exist_ok=True)
    with (folder / "again.tsv").open("a", encoding="utf-8") as lines:
        lines.write(f"{failures}\t{runs}\t{item.nodeid}\n")
