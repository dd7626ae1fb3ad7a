"""Which tests `make test` runs and which `make prove`; which form of a long test runs by day, and which at night.

`make test` has what a change of logic can break. What proves the rest stands in `PROVED`, goes through a browser, or asks Spark.

A test that gets stronger with every run of a mechanism runs each day in a small form, and at night, marked `slow`, in full. None
goes to the night alone: what it looks for is looked for by day, too, with less power or in fewer cases. CONTRIBUTING.md lists
what each tier holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

PROVED = {
    "statistical/*": "distributions and coverage",
    "security/*": "attacks on the session from outside",
    "hub/security/*": "every request by everybody, API fuzzing, canaries",
    "hub/faults/*": "servers, databases and disks that fail",
    "hub/stories/*": "whole days of several people",
    "cli/test_help_examples.py": "every example of --help",
    "hub/jobs/test_restart.py": "kills",
    "hub/learning/test_begun_again.py": "kills",
    "*/test_killed.py": "kills",
    "*/test_hub_killed.py": "kills",
    "*/test_crashes.py": "kills",
    "*/test_in_browser.py": "browsers",
    "*/test_*_in_browser.py": "browsers",
    "hub/web/test_narrow.py": "browsers",
    "hub/web/test_screenshots.py": "browsers",
    "attacks/test_broken_twins.py": "audits of mechanisms",
    "attacks/test_canaries.py": "audits of mechanisms",
    "attacks/test_every_mechanism.py": "audits of mechanisms",
    "attacks/test_famous.py": "attacks of the literature",
    "attacks/test_held_rows.py": "audits of mechanisms",
    "attacks/test_models.py": "audits of models",
    "together/test_floods.py": "attacks over the wire",
    "cli/test_demo.py": "the demo",
    "docs/test_book_*.py": "figures and tables of books",
    "docs/test_build.py": "the site",
    "docs/test_commands.py": "commands of the documentation",
    "docs/test_deploy.py": "containers and services",
    "docs/test_examples.py": "programs of examples/",
    "docs/test_figures.py": "figures",
    "docs/test_notebooks.py": "notebooks",
    "scripts/test_bench.py": "the benchmarks' own frame",
    "stored/test_damaged.py": "each stored column, damaged",
    "test_samples.py": "the sample data",
}
"""Files of tests/ that `make prove` runs, by pattern, with what they prove."""
SPARK_BY_DAY = (
    "engines/test_engines.py::test_numbers_of_every_spelling[",
    "engines/test_engines.py::test_tables_of_no_rows_and_one[",
    "engines/test_engines.py::test_a_failure_says_nothing_of_the_rows[",
    "engines/test_relation.py::test_each_kind_of_relation[spark-base]",
    "engines/test_relation.py::test_each_kind_of_relation[spark-filtered]",
    "engines/test_relation.py::test_each_kind_of_relation[spark-joined]",
    "engines/test_scalars.py::test_dates[",
    "engines/test_session.py::test_every_construct_has_the_same_answer_on_every_engine[",
    "engines/test_sites.py::test_a_site_aggregates_where_its_rows_are[",
    "engines/test_synth.py::test_the_same_tables_are_measured_on_every_engine[",
)
"""A dozen tests of Spark that `make test` runs; `make prove` has the others."""


BY_THIRDS = frozenset(Path(__file__).with_name("thirds.txt").read_text(encoding="utf-8").split())
"""Tests of five cases or more that look for one thing and cost a second together: by day a third of the cases, at night all."""


def proves(file: str, name: str, *, spark: bool, browser: bool) -> bool:
    """Whether a test belongs to `make prove`: by its file below tests/, its name, and what it needs.

    >>> proves("engines/test_scalars.py", "test_dates[spark]", spark=True, browser=False)
    False
    >>> proves("hub/jobs/test_killed.py", "test_a_worker_that_is_killed", spark=False, browser=False)
    True
    """
    if browser or _proved(file):
        return True
    return spark and not f"{file}::{name}".startswith(SPARK_BY_DAY)


def left_to_the_night(names: Sequence[str]) -> set[str]:
    """Of the cases of one such test those that run at night alone: two of three by their names; the first and the last never.

    >>> sorted({"t[a]", "t[b]", "t[c]", "t[d]", "t[e]"} - left_to_the_night(["t[a]", "t[b]", "t[c]", "t[d]", "t[e]"]))
    ['t[a]', 't[c]', 't[d]', 't[e]']
    """
    return {name for name in names[1:-1] if crc32(name.encode()) % 3}


@cache
def _proved(file: str) -> bool:
    return any(fnmatch(file, pattern) for pattern in PROVED)


def by_day_and_night(name: str, day: int, night: int) -> pytest.MarkDecorator:
    """Run a test with two sizes: `day` in every run of the tests, `night` only among the slow ones."""
    return pytest.mark.parametrize(
        name, [pytest.param(day, id=f"{day} {name}"), pytest.param(night, id=f"{night} {name}", marks=pytest.mark.slow)]
    )


def some_by_day(
    names: str, cases: Iterable[Any], day: Callable[[Any], bool], ids: Callable[[Any], str] | None = None
) -> pytest.MarkDecorator:
    """Run a test over all cases at night, and in every run of the tests over the fixed selection that `day` chooses."""
    given = [*cases]
    chosen = [day(case) for case in given]
    if not any(chosen):
        raise ValueError(f"no case of {names} runs by day")
    several = "," in names
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(*(case if several else (case,)), marks=[] if by_day else [pytest.mark.slow])
            for case, by_day in zip(given, chosen, strict=True)
        ],
        ids=ids,
    )


def pairwise(cases: Iterable[tuple[Any, ...]]) -> Callable[[tuple[Any, ...]], bool]:
    """A selection of cases in which each two values that meet anywhere meet once: what breaks two of them together is found."""
    given = [*cases]
    left = {pair for case in given for pair in _pairs(case)}
    chosen: list[int] = []
    while left:
        best = max(range(len(given)), key=lambda number: len(_pairs(given[number]) & left))
        chosen.append(best)
        left -= _pairs(given[best])
    return lambda case: any(given[number] == case for number in chosen)


def _pairs(case: tuple[Any, ...]) -> set[tuple[int, str, int, str]]:
    return {(i, repr(one), j, repr(case[j])) for j in range(len(case)) for i, one in enumerate(case[:j])}
