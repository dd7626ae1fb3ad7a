"""Which form of a long test runs by day, and which at night.

A test that gets stronger with every run of a mechanism runs each day in a small form, and at night, marked `slow`, in full. None
goes to the night alone: what it looks for is looked for by day, too, with less power or in fewer cases. CONTRIBUTING.md lists
what each tier holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


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
