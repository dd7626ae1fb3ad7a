"""Places and moments at several sites and of several owners: counted by region and hour as in one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import cloister as cl
from cloister.tables import PrivateTable
from cloister.together import MemoryJournal, PooledTable, Site, SiteAgent
from tests.engines.test_places import REGIONS
from tests.session.test_parts import NONE
from tests.together.joint_tables import MUCH
from tests.together.wired import coordinator_of, key_of, running

COLUMNS = {"home": cl.Place(regions=REGIONS, longitude="lon", latitude="lat"), "at": cl.Moment("2026-03-01", "2026-03-31")}
BY_REGION_AND_HOUR = "SELECT region(home) AS r, hour(at) AS h, COUNT(*) AS n FROM people WHERE weekday(at) < 6 GROUP BY r, h"
BUDGET = cl.PureDP(100 * NONE)


def rows_of(first: int, last: int) -> dict[str, list[Any]]:
    """Trips all over the box and somewhat beyond it, at every hour, a few without a place or a moment."""
    places = [(4.19 + place % 29 / 90, 51.89 + place % 23 / 105) for place in range(first, last)]
    times = [f"2026-03-{1 + place % 30:02d}T{place % 24:02d}:30" for place in range(first, last)]
    return {
        "lon": [None if place % 17 == 0 else x for place, (x, _) in enumerate(places)],
        "lat": [y for _, y in places],
        "at": ["" if place % 19 == 0 else time for place, time in enumerate(times)],
    }


PARTS = {"a": (0, 40), "b": (40, 170), "c": (170, 240)}


def sites() -> list[Site]:
    return [
        Site(name, PrivateTable(rows_of(*part), columns=COLUMNS), budget=MUCH, key=key_of(name), journal=MemoryJournal())
        for name, part in PARTS.items()
    ]


@contextmanager
def joint() -> Iterator[cl.Session]:
    with cl.Session({"people": cl.JointTable(sites(), COLUMNS, overlap="none")}, budget=BUDGET) as session:
        yield session


@contextmanager
def elsewhere() -> Iterator[cl.Session]:
    coordinator = coordinator_of("abc")
    with (
        coordinator.serving() as hub,
        running([SiteAgent(site) for site in sites()], hub),
        cl.Session({"people": cl.JointTable(coordinator.sites, COLUMNS, overlap="none")}, budget=BUDGET) as session,
    ):
        yield session


@contextmanager
def pooled() -> Iterator[cl.Session]:
    parts = {name: PrivateTable(rows_of(*part), columns=COLUMNS) for name, part in PARTS.items()}
    with cl.Session({**parts, "people": PooledTable(parts)}, budget=BUDGET) as session:
        yield session


@pytest.mark.parametrize("over", [joint, elsewhere, pooled])
def test_counts_by_region_and_hour_are_those_of_one_table(over: Any) -> None:
    whole = {name: [each for part in PARTS.values() for each in rows_of(*part)[name]] for name in ("lon", "lat", "at")}
    with cl.Session({"people": PrivateTable(whole, columns=COLUMNS)}, budget=BUDGET) as central:
        expected = central.sql(BY_REGION_AND_HOUR, spend=NONE).to_pydict()
    with over() as session:
        assert session.sql(BY_REGION_AND_HOUR, spend=NONE).to_pydict() == expected
    assert sum(expected["n"]) > 100
    assert len({r for r, n in zip(expected["r"], expected["n"], strict=True) if n}) >= 4


def test_a_rehearsal_has_places() -> None:
    """Made-up rows stand within the box, in the two columns of the source; nothing is charged."""
    with pooled() as session:
        found = session.sql(BY_REGION_AND_HOUR, spend=NONE, rehearse=True).to_pydict()
        assert set(session.spent_by.values()) == {cl.PureDP(0)}
    assert sum(found["n"]) > 100
    assert {"West", "East", "Islands", "outside"} <= {r for r, n in zip(found["r"], found["n"], strict=True) if n}
