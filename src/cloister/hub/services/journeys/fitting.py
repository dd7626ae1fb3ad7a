"""Synthetic journeys as work of the frame: what is touched, the one charge, the margins in advance.

Guarantee: that of the charge (`cloister.traces.fit_journeys`, `fit_road_journeys`), for a unit of the data set. All that a page
shows of the release is post-processing of it.
"""

import json
from collections.abc import Callable
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.hub import Hub
from cloister.hub.services.journeys.models import JOURNEYS, spread
from cloister.hub.services.journeys.order import ACTION, ORDER, JourneyOrder
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, private_table, ready_table
from cloister.hub.work.orders import FREE, OrderedWork, Product, job_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.tables import Date, Place, PrivateTable, PublicTable
from cloister.tables.declaring.regions import PARTS
from cloister.tables.expression.names import quotation
from cloister.traces import RoadGraph
from cloister.traces.journeys import JourneyCounts
from cloister.traces.roads import RoadCounts

_MOST_CORNERS = 20_000
_KINDS = {
    "zones": N_("Journeys from one zone to another"),
    "begins": N_("Journeys that begin in a cell or at a node"),
    "ends": N_("Journeys that end in a cell or at a node"),
}


class _Fitting(OrderedWork[JourneyOrder, ReadyTable[JourneyOrder]]):
    """Orders of journeys."""

    job, title, action, release, stored = "journeys.fit", N_("Synthetic journeys"), ACTION, JOURNEYS, ORDER
    extra = "learn"
    stages = FREE | {N_("counting the journeys"): 0.3, N_("keeping the journeys"): 0.9}
    words = Words(
        name="The journeys",
        invalid=N_("The journeys are invalid"),
        denied=N_("The journeys were denied"),
        withheld=N_("The journeys were not released"),
    )

    def ready(self, *given: Any, **how: Any) -> ReadyTable[JourneyOrder]:
        order: JourneyOrder = given[3]

        def charge(session: Session, table: PrivateTable, budget: Guarantee) -> Guarantee:
            return session.explain_run(_method(session, order), order.table, order.spend).cost

        how |= {"beside": order.roads, "unit": True, "method": "journeys"}
        return ready_table(self, *given, **how, columns=order.columns, charge=charge)

    def run(self, hub: Hub, found: ReadyTable[JourneyOrder], session: Callable[[], AttemptSession]) -> Product:
        from cloister.traces import fit_journeys, fit_road_journeys

        order, how = found.order, _how(found.order)
        model: Any
        if order.roads:
            roads = _roads(found.session, order)
            model = fit_road_journeys(session(), order.table, roads, spend=order.spend, purpose=order.purpose, **how)
        else:
            model = fit_journeys(session(), order.table, spend=order.spend, purpose=order.purpose, **how, **_grid(order))
        told = {"model": json.loads(model.to_json()), "borders": _borders(found.table, order)}
        journeys, error = spread(model)
        details: dict[str, Any] = {
            "table": order.table,
            "columns": [str(found.table.unit), *order.columns],
            "roads": list(order.roads),
        }
        details |= {"journeys": journeys, "journeys_error": error, "version": str(getattr(found.table, "version", ""))}
        return Product(body=json.dumps(told).encode(), cost=dict.fromkeys(found.populations, model.cost), details=details)


def expected(_: Hub, found: ReadyTable[JourneyOrder]) -> list[dict[str, Any]]:
    """The margins of the counts that are released, from declarations alone."""
    with found.held.pinned():
        laws = _method(found.session, found.order).laws(found.cost)
    return [{"name": name, "margin": float(laws[kind].margin("0.95"))} for kind, name in _KINDS.items()]


def _how(order: JourneyOrder) -> dict[str, Any]:
    places = {"place": order.place} if order.place else {"x": order.x, "y": order.y}
    return {"moment": order.moment, "zones": int(order.zones), **places}


def _grid(order: JourneyOrder) -> dict[str, Any]:
    return {"cells": int(order.cells), "fastest": order.fastest or None}


def _method(session: Session, order: JourneyOrder) -> JourneyCounts | RoadCounts:
    """What would be counted; refused where the declarations are of no journeys, or the roads of no graph."""
    from cloister.traces.journeys import journey_counts
    from cloister.traces.roads import road_counts

    table = private_table(session, order.table, order.columns, FITTING.words.invalid)
    if order.fastest and isinstance(table.columns[order.moment], Date):
        raise InvalidParameter(
            "The greatest speed is invalid",
            why="the moment is a date, and rows of one day lie no time apart",
            instead="no greatest speed, or a column of moments",
        )
    if order.roads:
        return road_counts(session, order.table, _roads(session, order), **_how(order))
    return journey_counts(session, order.table, **_how(order), **_grid(order))[0]


def _roads(session: Session, order: JourneyOrder) -> RoadGraph:
    """The graph in two public data sets: no row of anybody is in them."""
    from cloister.traces import RoadGraph

    tables = [session.tables.get(name) for name in order.roads]
    nodes, edges = (set(each.names) if isinstance(each, PublicTable) else set[str]() for each in tables)
    axes = ["longitude", "latitude"] if order.place else ["x", "y"]
    if not {"node", *axes} <= nodes or not {"from", "to"} <= edges:
        raise InvalidParameter(
            "The roads are invalid",
            why="nodes have the columns node, longitude and latitude (or x and y, for columns of metres); edges have from and to",
            instead="two public data sets with these columns",
        )
    lengths = ["length"] if "length" in edges else []
    found = [
        session.sql(f"SELECT {', '.join(quotation(each) for each in names)} FROM {quotation(name)} ORDER BY 1, 2").to_pydict()  # noqa: S608
        for name, names in zip(order.roads, (["node", *axes], ["from", "to", *lengths]), strict=True)
    ]
    return RoadGraph(*found)


def _borders(table: PrivateTable, order: JourneyOrder) -> list[list[list[float]]]:
    """The public outlines of the regions that the place is declared with, for the map; none where they are too fine."""
    place = table.columns.get(order.place)
    rings = [ring for region in place.regions for ring in region.rings] if isinstance(place, Place) else []
    if sum(map(len, rings)) > _MOST_CORNERS:
        return []
    return [[[x / PARTS, y / PARTS] for x, y in ring] for ring in rings]


FITTING = _Fitting()
FIT = job_of(FITTING)
