"""Every model of the catalogue passes every check of `checks.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("sklearn")

from cloister.learn.frame.catalogue import METHODS
from tests.learn.checks import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_model(name: str, check: Callable[[str], None]) -> None:
    check(name)
