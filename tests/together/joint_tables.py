"""Joint tables for tests: rows dealt out to sites, and what was exact in each round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.tables.engines.noised import exact_integers
from cloister.together import JointTable, Site
from cloister.together.joint import AtSites
from cloister.together.site import SitePart
from tests.session.test_parts import COLUMNS, ROWS, rows

MUCH = cl.ZCDP(10**30)
"""A site's budget that never runs out, for either law."""


def sites_of(
    data: Mapping[str, list[Any]] | None = None,
    count: int = 3,
    *,
    columns: Mapping[str, Any] | None = None,
    budget: Guarantee = MUCH,
    unit: str | None = None,
    max_rows: int | None = None,
    **other: Any,
) -> list[Site]:
    """Sites with rows of different number, drawn from what a test can repeat."""
    given, found = data or rows(), []
    length = len(next(iter(given.values())))
    for place in range(count):
        mine = [row for row in range(length) if min(row % (count + 2), count - 1) == place]
        held = {name: [values[row] for row in mine] for name, values in given.items()}
        table = cl.PrivateTable(held, columns=columns or COLUMNS, unit=unit, max_rows=max_rows)
        found.append(Site(f"site {place}", table, budget=budget, random=Random.deterministic(place + 1), **other))
    return found


def joint_of(sites: list[Site], **other: Any) -> JointTable:
    """The joint table of the panel's columns."""
    given = {"columns": COLUMNS, "overlap": "none", "missing": 0, "size": ROWS, **other}
    return JointTable(sites, **given)


def session_of(table: JointTable, budget: Guarantee, seed: int = 1) -> cl.Session:
    return cl.Session({"people": table}, budget=budget, random=Random.deterministic(seed))


def watched(monkeypatch: Any, see: Callable[[Any, Any, Mapping[str, Any]], None]) -> None:
    """Calls `see` after each round with the request, the answer and the exact integers of all sites that were asked."""
    answered, numbers = AtSites.noised, SitePart._numbers
    exact: list[Mapping[str, Any]] = []

    def numbered(self: SitePart, round_: Any, request: Any, compiled: Any) -> Any:
        found = [self.rows.aggregate(asked, plan) for asked, plan in zip(request.asked, compiled, strict=True)]
        exact.append(exact_integers(request, found))
        return numbers(self, round_, request, compiled)

    def noised(self: AtSites, request: Any, compiled: Any, random: Any) -> Any:
        exact.clear()
        found = answered(self, request, compiled, random)
        see(request, found, {name: sum(np.asarray(each[name]) for each in exact) for name in found.values})
        return found

    monkeypatch.setattr(SitePart, "_numbers", numbered)
    monkeypatch.setattr(AtSites, "noised", noised)
