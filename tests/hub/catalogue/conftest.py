"""A hub with the catalogue, and its owner."""

from __future__ import annotations

import pytest

from tests.hub.catalogue.world import Sender, World


@pytest.fixture
def kind_of_world() -> type[World]:
    return World


@pytest.fixture
def ada(world: World) -> Sender:
    """An owner."""
    return world.owner()
