"""A hub with the catalogue for each test, copied from one that was opened once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.accounts.world import Clock
from tests.hub.catalogue.world import Sender, World


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def fresh_hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hub that was opened and closed once: the steps of its database are not run for each test."""
    folder = tmp_path_factory.mktemp("fresh")
    World(folder, Clock()).close()
    return folder / "hub"


@pytest.fixture
def world(tmp_path: Path, fresh_hub: Path, clock: Clock) -> Iterator[World]:
    shutil.copytree(fresh_hub, tmp_path / "hub")
    made = World(tmp_path, clock)
    yield made
    made.close()


@pytest.fixture
def ada(world: World) -> Sender:
    """An owner."""
    return world.owner()
