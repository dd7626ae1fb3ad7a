"""What somebody wants of journeys: the columns that say who was where and when, the grid or the roads, the spend."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.labels import check_purpose
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import asked
from cloister.privacy import exact_positive
from cloister.stored import Stored
from cloister.traces.cleaning import pace_of

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
    """In metres a second of places and moments: what nobody can have done does not count."""
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
                    "The grid is invalid",
                    why="up to 32 cells and 16 zones lie along a side",
                    instead="12 cells, 4 zones",
                )
        if self.fastest:
            pace_of(self.fastest)
        check_purpose(self.purpose)
        _ = exact_positive(self.spend, "spend")

    @property
    def algorithm(self) -> str:
        """No algorithm makes journeys."""
        return ""

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
