"""What stands behind the pages that talk to a hub: a hub that is served, a person, and the environment that the snippets read."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from unittest.mock import patch

from tests.hub.house import Clock, House, Visitor, served

__all__ = ["served_hub"]


def served_hub(
    scene: contextlib.ExitStack, role: str, email: str, folder: str = "hub", *, pg: bool = False
) -> tuple[House, Visitor]:
    """A hub, and a person in it whose token the environment holds; both go with the scene."""
    ports = {}
    if pg:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            ports["pg_port"] = probe.getsockname()[1]
    house = House(Path(folder).absolute(), Clock(), **ports)
    scene.callback(house.close)
    person = house.person(role, email=email)
    told = {"CLOISTER_HUB": scene.enter_context(served(house.hub)), "CLOISTER_TOKEN": person.token}
    if pg:
        told |= {"PGPORT": str(ports["pg_port"]), "PGPASSWORD": person.token}
    scene.enter_context(patch.dict(os.environ, told))
    return house, person
