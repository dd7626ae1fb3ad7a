"""Every model of the catalogue passes every check of `checks.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("sklearn")

from cloister.learn.frame.catalogue import METHODS, class_of
from tests.learn.checks import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_model(name: str, check: Callable[[str], None]) -> None:
    check(name)


@pytest.mark.parametrize("name", METHODS)
def test_only_what_can_be_asked_for_is_a_parameter(name: str) -> None:
    """Parameters are the annotated attributes of a class: what is learned, or kept to ourselves, is none."""
    asked = class_of(name)().get_params(deep=False)
    assert not [each for each in asked if each.startswith("_") or each.endswith("_")]
