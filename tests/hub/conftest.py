"""A hub with all its services in a folder of its own, the application around it, and people who are logged in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI
from starlette.testclient import TestClient, _TestClientTransport

from cloister.hub.hub import Hub
from cloister.hub.records.catalogue import DataSet
from tests.hub.house import Clock, House, Visitor, compiled_once, in_one_step, migrated_once


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> Iterator[None]:
    with compiled_once(), migrated_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_loop() -> Iterator[None]:
    """Browsers of all tests ask in one event loop, as those of a hub do: otherwise each request begins a thread and a loop."""
    one_step = patch.object(_TestClientTransport, "handle_request", in_one_step)
    with start_blocking_portal() as portal, patch.object(TestClient, "portal", portal), one_step:
        yield


@pytest.fixture(scope="session")
def empty_hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hub that was opened and closed once: the steps of its database are not run for each test."""
    folder = tmp_path_factory.mktemp("empty") / "hub"
    House(folder, Clock()).close()
    return folder


@pytest.fixture
def house(tmp_path: Path, empty_hub: Path, clock: Clock) -> Iterator[House]:
    """Everything together; the fixtures below are parts of it."""
    shutil.copytree(empty_hub, tmp_path / "hub")
    made = House(tmp_path / "hub", clock)
    yield made
    made.close()


@pytest.fixture(scope="module")
def one_house(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path) -> Iterator[House]:
    """One for the tests of a file that only look, or mend what they break; each begins with `in_front()`."""
    folder = tmp_path_factory.mktemp("one") / "hub"
    shutil.copytree(empty_hub, folder)
    made = House(folder, Clock())
    yield made
    made.close()


@pytest.fixture
def world(tmp_path: Path, empty_hub: Path, clock: Clock, kind_of_world: Callable[[Path, Clock], Any]) -> Iterator[Any]:
    """The hub of a room with a world of its own (`kind_of_world`): some services, and browsers without scripts."""
    shutil.copytree(empty_hub, tmp_path / "hub")
    made = kind_of_world(tmp_path, clock)
    yield made
    made.close()


@pytest.fixture
def hub(house: House) -> Hub:
    return house.hub


@pytest.fixture
def app(house: House) -> FastAPI:
    return house.app


@pytest.fixture
def client(house: House) -> TestClient:
    """A browser on this machine in which nobody is logged in."""
    return house.client()


@pytest.fixture
def person(house: House) -> Callable[..., Visitor]:
    """`person("owner", "analyst", email=…)`: somebody with these roles, a browser that is logged in, and a token."""
    return house.person


@pytest.fixture
def sample_data_set(house: House) -> Callable[..., DataSet]:
    """`sample_data_set("people", owner=…, readers=[…])`: a data set that is open, stored and granted."""
    return house.sample_data_set
