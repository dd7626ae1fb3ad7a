"""An owner with a data set to anonymise."""

from __future__ import annotations

import pytest

from tests.hub.house import House, Visitor


@pytest.fixture
def owner(house: House) -> Visitor:
    found = house.person("owner", email="olga@example.org", name="Olga Owner")
    house.sample_data_set("people", owner=found)
    return found
