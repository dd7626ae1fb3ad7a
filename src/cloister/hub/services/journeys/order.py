"""What somebody wants of journeys: the columns that say who was where and when, the grid or the roads, the spend; and what the
form of an order offers: the data sets that hold journeys, their columns, the public data sets of roads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.web.languages import N_
from cloister.hub.work.offer import Offer
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import about_offered, asked
from cloister.privacy import exact_positive
from cloister.stored import Stored
from cloister.tables import Date, Integer, Moment, Place, PrivateTable, PublicTable, Real, Text
from cloister.traces.cleaning import pace_of

ACTION = "synthesise.run"
"""Whoever forbids synthetic tables forbids these."""
_MOST_CELLS, _MOST_ZONES = 32, 16


@dataclass(frozen=True, kw_only=True)
class JourneyOrder:
    """Synthetic journeys of a data set."""

    __pydantic_config__ = example(
        table="trips", moment="at", place="where", cells="12", zones="4", spend="1", purpose="transport planning"
    ) | {"extra": "forbid"}

    table: str
    moment: str = asked(N_("Moment"), N_("the column that says when"))
    place: str = asked(N_("Place"), N_("a column of places; or the two columns below"), default="")
    x: str = asked(N_("Across"), N_("a column of numbers, in metres"), default="")
    y: str = asked(N_("Up"), N_("a column of numbers, in metres"), default="")
    cells: str = asked(N_("Cells along a side"), default="12")
    zones: str = asked(N_("Zones along a side"), default="4")
    fastest: str = asked(N_("Greatest speed"), default="")
    """In metres a second of places and moments, or for one of a moment that is a number: what nobody can have done does not
    count. A date has no speed."""
    nodes: str = asked(N_("Nodes of roads"), default="")
    """A public data set with `node` and its place; with `edges`, journeys lie on these roads."""
    edges: str = asked(N_("Edges of roads"), default="")
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        if bool(self.place) == bool(self.x and self.y) or bool(self.x) != bool(self.y):
            raise InvalidParameter(
                "The columns are invalid",
                why="places are one column of places, or two columns of metres",
                instead="a column of places",
            )
        if bool(self.nodes) != bool(self.edges) or (self.nodes and self.nodes == self.edges):
            raise InvalidParameter(
                "The roads are invalid",
                why="a graph is two public data sets, its nodes and its edges",
                instead="both, or neither",
            )
        if self.nodes and self.fastest:
            raise InvalidParameter(
                "The greatest speed is invalid", why="on roads only the ends of a journey count", instead="no greatest speed"
            )
        for text, most in ((self.cells, _MOST_CELLS), (self.zones, _MOST_ZONES)):
            if not (text.isascii() and text.isdigit() and len(text) <= 2 and 1 <= int(text) <= most):
                raise InvalidParameter(
                    "The grid is invalid", why="up to 32 cells and 16 zones lie along a side", instead="12 cells, 4 zones"
                )
        if self.fastest:
            pace_of(self.fastest)
        check_purpose(self.purpose)
        _ = exact_positive(self.spend, "spend")

    algorithm = ""
    """No algorithm makes journeys."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read besides the unit."""
        return (self.moment, *((self.place,) if self.place else (self.x, self.y)))

    @property
    def roads(self) -> tuple[str, ...]:
        """The public data sets of a graph, where there is one."""
        return (self.nodes, self.edges) if self.nodes else ()


ORDER = Stored(
    JourneyOrder,
    "Journeys",
    "table",
    "moment",
    "place",
    "x",
    "y",
    "cells",
    "zones",
    "fastest",
    "nodes",
    "edges",
    "spend",
    "purpose",
    "project",
    "title",
)
"""As a job holds it."""


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, what can be chosen of the one that is, and what was typed; first the columns that fit."""
    found = offers(hub, db, caller, ACTION, under=(), anyhow=True)
    offer, shown = about_offered(hub, [each for each in found if _holds_journeys(each.table)], typed)
    kinds = _columns(offer)
    first = {
        "moment": next(iter(kinds["moments"]), ""),
        "place": next(iter(kinds["places"]), ""),
        "x": "",
        "y": "",
        "cells": "12",
        "zones": "4",
        "spend": "1",
        **dict.fromkeys(("fastest", "nodes", "edges", "purpose", "project", "title"), ""),
    }
    if not kinds["places"]:
        first |= dict(zip(("x", "y"), [each for each in kinds["numbers"] if each != first["moment"]], strict=False))
    return {
        **shown,
        **kinds,
        "roads": [each.which.name for each in found if isinstance(each.table, PublicTable)],
        "typed": {**first, **typed},
    }


def _holds_journeys(table: PrivateTable | PublicTable) -> bool:
    """Whether its units are journeys: a column of text says whose a row is, and others say when and where."""
    if not isinstance(table, PrivateTable) or not isinstance(table.columns.get(table.unit or ""), Text):
        return False
    kinds = [type(each) for each in table.columns.values()]
    numbers = sum(kind in (Integer, Real) for kind in kinds)
    return numbers >= 2 * (Place not in kinds) + (not {Date, Moment} & {*kinds})


def _columns(offer: Offer | None) -> dict[str, list[str]]:
    table = None if offer is None else offer.table
    if not isinstance(table, PrivateTable):
        return {"moments": [], "places": [], "numbers": []}
    numbers = [name for name, each in table.columns.items() if isinstance(each, Integer | Real)]
    clocks = [name for name, each in table.columns.items() if isinstance(each, Moment | Date)]
    return {
        "moments": [*clocks, *numbers],
        "places": [name for name, each in table.columns.items() if isinstance(each, Place)],
        "numbers": numbers,
    }
