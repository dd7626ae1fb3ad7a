"""A hub with accounts and the trail, a clock that tests move, and browsers that fill in forms as people do."""

from __future__ import annotations

import pytest

from tests.hub.accounts.world import World


@pytest.fixture
def kind_of_world() -> type[World]:
    return World
