"""What all tests share: engines that CI may not skip, one worker for an engine and for a file, repeatable examples."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase, ReadOnlyDatabase
from hypothesis.internal.conjecture import providers

from scripts import spark
from scripts.engines import java_home
from tests.tiers import BY_THIRDS, left_to_the_night, proves

ENGINES = ("postgres", "spark", "browser")
TESTS = Path(__file__).parent
PARTS = 8
"""Into how many the slow tests of one file are dealt, for workers to share."""

FOUND = DirectoryBasedExampleDatabase(TESTS / "found")
"""What broke a property at night, by the test's name: each run tries it first. A night writes there, and no other run."""
PROFILE = os.environ.get("CLOISTER_HYPOTHESIS", "every commit")
SLOW_IS_FINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("every commit", max_examples=40, database=ReadOnlyDatabase(FOUND), **SLOW_IS_FINE)
settings.register_profile("nightly", max_examples=2000, database=FOUND, **SLOW_IS_FINE)
settings.load_profile(PROFILE)
if PROFILE == "every commit":
    # One draw in twenty is else a constant of our own modules, of those that this process has loaded: other examples in each run.
    # To read 1,200 modules for them takes each process four seconds, too.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """By day examples follow from one seed. Point Spark at a Java that it runs on, where the one on the path is too old or too
    new.
    """
    if PROFILE == "every commit" and getattr(config.option, "hypothesis_seed", "") is None:
        config.option.hypothesis_seed = os.environ.get("CLOISTER_TEST_SEED", "1")
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """A million objects are made here and live to the end: the collector of cycles looks at them neither now nor in any test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 20)  # as in a hub
        atexit.register(gc.unfreeze)  # what is frozen would be called leaked by extension modules


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """A file of tests without an example in a docstring is not searched for one: that costs as much as half of its import."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule) or b">>>" in file_path.read_bytes()]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What breaks a property is kept under the name of its test: it stays found when the test's code changes."""
    test = getattr(item, "obj", None)
    if getattr(test, "is_hypothesis_test", False):
        name = f"{item.path.relative_to(TESTS.parent).as_posix()}::{item.name}"
        getattr(test, "__func__", test)._hypothesis_internal_database_key = name.encode()


@pytest.fixture(scope="session")
def spark_connect() -> Iterator[spark.Server]:
    """A Spark Connect server, with the table `default.people`: 400 rows, `age` from 20 to 79 and `sex`."""
    try:
        server = spark.start()
    except spark.CannotStart as error:
        pytest.skip(f"!!! Spark Connect could not be started: {error}")
    try:
        spark.fill(server)
        yield server
    finally:
        spark.stop(server)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test gets its tier (`tests/tiers.py`). Tests of one server go to one worker, so that it starts once; and those of one
    file, with what they share. Each file starts a browser of its own, so files may run beside each other. The slow tests of a
    file are dealt out.
    """
    engines = _engines_of(item)
    file = item.path.relative_to(TESTS).as_posix()
    proved = proves(file, item.name, spark="spark" in engines, browser="browser" in engines)
    if proved:
        item.add_marker(pytest.mark.prove)
    for engine in engines:
        if engine != "browser":
            item.add_marker(pytest.mark.xdist_group(engine))
        item.user_properties.append((engine, True))
    if item.get_closest_marker("xdist_group") is None:
        group = f"{item.path.parent.name}/{item.path.stem}"
        if proved:
            group += " prove"
        if item.get_closest_marker("slow") is not None:  # one file's seeds can be half of a night
            group += f" {crc32(item.name.encode()) % PARTS}"
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where both run, `make test` comes first. With CLOISTER_PART=2/6, the second of six parts: whole groups, dealt by name."""
    families: dict[str, list[pytest.Item]] = {}
    for item in [each for each in items if each.path.is_relative_to(TESTS)]:  # a run may have pages beside
        families.setdefault(f"{item.path.relative_to(TESTS).as_posix()}::{item.name.partition('[')[0]}", []).append(item)
    for name in BY_THIRDS & families.keys():
        left_out = left_to_the_night([item.name for item in families[name]])
        for item in families[name]:
            if item.name in left_out:
                item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("prove") is not None)
    if part := os.environ.get("CLOISTER_PART"):
        which, _, parts = part.partition("/")
        kept, left = [], []
        for item in items:
            group = item.get_closest_marker("xdist_group")
            mine = crc32((group.args[0] if group else item.nodeid).encode()) % int(parts) == int(which) - 1
            (kept if mine else left).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CLOISTER_REQUIRE_ENGINES=1, a test that was skipped for want of its engine has failed."""
    report = yield
    if report.skipped and os.environ.get("CLOISTER_REQUIRE_ENGINES") == "1" and _engines_of(item):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"CLOISTER_REQUIRE_ENGINES=1, and this test was skipped: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One loud line for each engine whose tests were skipped; and what tests counted of a person's path, such as
    `record_property("counted", "ten columns: 25 inputs")`.
    """
    for engine in ENGINES:
        skipped = [
            report
            for report in terminalreporter.getreports("skipped")
            if engine in report.keywords or engine in dict(report.user_properties)
        ]
        if skipped:
            line = f"!!! {len(skipped)} tests of {engine} were SKIPPED: the engine is not here"
            terminalreporter.write_line(line, red=True, bold=True)
    for report in terminalreporter.getreports("passed"):
        for name, told in report.user_properties:
            if name == "counted" and report.when == "call":
                terminalreporter.write_line(f"counted: {told}")


def _engines_of(item: pytest.Item) -> list[str]:
    wanted = {"browser"} if "browser" in getattr(item, "fixturenames", ()) else set()
    return [engine for engine in ENGINES if engine in wanted or item.get_closest_marker(engine)]
