"""One hub with one thing of each kind, for attacks that change nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.house import Clock, House, application
from tests.hub.security.walk import Place, places
from tests.hub.security.world import World, populated


@pytest.fixture(scope="module")
def populated_world(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("security") / "hub"
    shutil.copytree(empty_hub, folder)
    house = House(folder, Clock())
    yield populated(house)
    house.close()


@pytest.fixture
def world(populated_world: World) -> World:
    """That hub, back in the one application: another test's may have been put there meanwhile."""
    application(populated_world.house.hub)
    return populated_world


@pytest.fixture
def every(world: World) -> list[Place]:
    """Every route of the hub."""
    return places(world.house.app)
