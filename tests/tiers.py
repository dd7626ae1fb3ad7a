"""Which form of a long test runs by day, and which at night.

A test that gets stronger with every run of a mechanism runs each day in a small form, and at night, marked `slow`, in full. None
goes to the night alone: what it looks for is looked for by day, too, with less power or in fewer cases. CONTRIBUTING.md lists
what each tier holds.
"""

from __future__ import annotations

import pytest


def by_day_and_night(name: str, day: int, night: int) -> pytest.MarkDecorator:
    """Run a test with two sizes: `day` in every run of the tests, `night` only among the slow ones."""
    return pytest.mark.parametrize(
        name, [pytest.param(day, id=f"{day} {name}"), pytest.param(night, id=f"{night} {name}", marks=pytest.mark.slow)]
    )
