"""Drawn journeys against the real ones, for the owner of the rows alone: nine measures, and what linkage is left.

Exact, so no guarantee covers it: an owner's view (`hub/releases/comparing.py`). Linkage is the attack that fits drawn journeys:
no filter takes noise off a journey that belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.traces import journey_measures, unique_in_the_crowd

if TYPE_CHECKING:
    from cloister.traces import Journeys, RoadJourneys

_CELLS, _KNOWN, _TRIES, _MOST = 6, 4, 1000, 20_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """A line of what was found."""

    text: str


@dataclass(frozen=True, kw_only=True)
class JourneysCompared:
    """What was found, in parts; the first is its mark."""

    texts: tuple[str, ...]

    def parts(self) -> list[Part]:
        """In order."""
        return [Part(text=text) for text in self.texts]


def compared(model: Journeys | RoadJourneys, rows: Mapping[str, list[Any]]) -> JourneysCompared:
    """Of the rows of the owner, by column: unit, moment, and a place or two numbers."""
    who, moments, *places = (rows[name] for name in model.method.columns)
    points = [*places[0]] if len(places) == 1 else list(zip(*places, strict=True))
    kept = [
        (name, moment, point)
        for name, moment, point in zip(who, moments, points, strict=True)
        if name is not None and moment is not None and isinstance(point, tuple) and None not in point
    ]
    if not kept:
        raise InvalidParameter("The journeys are invalid", why="no row is complete", instead="the rows of the data set")
    names, when, found = zip(*kept, strict=True)
    real = (list(names), np.unique(np.array(when), return_inverse=True)[1], *np.array(found, dtype=np.float64).T)
    drawn = model.sample(min(max(round(model.journeys), 1), _MOST))
    axes = [name for name in drawn.column_names if name not in ("journey", "step", "node")]
    made = (drawn["journey"], drawn["step"], *(drawn[name].astype(np.float64) for name in axes))
    box = box_of(model)
    cells = getattr(model.method, "cells", _CELLS)
    measures = journey_measures(real, made, box=box, cells=cells)
    return JourneysCompared(texts=(*str(measures).splitlines(), *_linkage(real, made, box, cells)))


def box_of(model: Journeys | RoadJourneys) -> tuple[tuple[float, float], tuple[float, float]]:
    """The public area that it is about: that of the grid, or of the roads."""
    from cloister.traces import Journeys

    if isinstance(model, Journeys):
        ends = [(float(each.decode(each.low_code)), float(each.decode(each.high_code))) for each in model.domains]
    else:
        roads = model.method.roads
        places = roads.places if roads.origin is None else roads.degrees(roads.places)
        ends = [(float(low), float(max(high, low + 1e-6))) for low, high in zip(places.min(0), places.max(0), strict=True)]
    (west, east), (south, north) = ends
    return (west, south), (east, north)


def _linkage(real: Any, made: Any, box: Any, cells: int) -> list[str]:
    """How often a few known cells single a journey out, before and after; fewer where no journey has so many."""
    low, high = (np.array(corner) for corner in box)

    def celled(journeys: Any) -> tuple[Any, Any]:
        places = np.stack([np.asarray(axis, dtype=np.float64) for axis in journeys[2:]], axis=1)
        return journeys[0], np.clip((places - low) / (high - low) * cells, 0, cells - 1).astype(np.int64)

    before, after = celled(real), celled(made)
    for known in range(_KNOWN, 0, -1):
        try:
            told = [
                unique_in_the_crowd(*before, released=released, known=known, tries=_TRIES, random=Random())
                for released in (None, after)
            ]
        except InvalidParameter:  # no journey has so many different cells
            continue
        return [f"linkage, before: {told[0]}", f"linkage, after: {told[1]} (a drawn journey that fits is nobody's)"]
    return []
