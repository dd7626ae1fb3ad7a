"""Synthetic journeys as a kind of release: the map, the table of trips with its margins, the files.

Journeys are drawn when somebody looks or downloads, always the same ones, from the counts that were kept: at no further cost.

Against the real ones, drawn journeys are judged for the owner of the rows alone: by nine measures, and by what linkage is left.
That is exact, so no guarantee covers it: an owner's view (`hub/releases/comparing.py`). Linkage is the attack that fits drawn
journeys: no filter takes noise off a journey that belongs to nobody.
"""

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.hub.releases.kinds import AgainstRows, File, FileKind, ReleaseKind, View, json_file
from cloister.hub.releases.rows import MOST_CELLS, MOST_VALUES, row_files
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.web.languages import N_
from cloister.hub.web.maps import Map, map_svg, said_beside, shaded
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.noise.matrix import sum_of_laplace
from cloister.session import Frame
from cloister.traces import Journeys, RoadJourneys, journey_measures, unique_in_the_crowd

_CELLS, _KNOWN, _TRIES, _MOST_DRAWN = 6, 4, 1000, 20_000


def compared(model: Journeys | RoadJourneys, rows: Mapping[str, list[Any]]) -> tuple[str, ...]:
    """What was found, in parts, of which the first is its mark; of the rows of the owner, by column: unit, moment, and a place or
    two numbers."""
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
    drawn = model.sample(min(max(round(model.journeys), 1), _MOST_DRAWN))
    axes = [name for name in drawn.column_names if name not in ("journey", "step", "node")]
    made = (drawn["journey"], drawn["step"], *(drawn[name].astype(np.float64) for name in axes))
    box = box_of(model)
    cells = getattr(model.method, "cells", _CELLS)
    measures = journey_measures(real, made, box=box, cells=cells)
    return (*str(measures).splitlines(), *_linkage(real, made, box, cells))


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


_WAYS, _TRIPS = 40, 12
_COLUMNS, _LONG = 5, 60
"""Of a file: columns of a row, and about how many rows a journey has."""


@lru_cache(maxsize=16)
def _read(body: bytes) -> Journeys | RoadJourneys:
    from cloister.traces import journeys_from_json

    return journeys_from_json(json.dumps(json.loads(body)["model"]))


def spread(model: Journeys | RoadJourneys) -> tuple[float, float]:
    """About how many journeys there are, and the half-width of the 95 % interval."""
    sums = [_of_sum(model.noise[name], size) for name, size in model.method.sizes().items() if name != "moves"]
    return model.journeys, min(sums)


def _of_sum(law: DiscreteLaplace | DiscreteGaussian, terms: int) -> float:
    """The half-width of the 95 % interval of a sum of so many numbers with this noise; half a unit more, since it is whole."""
    return math.sqrt(terms * law.variance) * sum_of_laplace(terms if isinstance(law, DiscreteLaplace) else math.inf, 0.95) + 0.5


def together(model: Journeys | RoadJourneys) -> float:
    """The half-width of an interval that holds for all pairs of zones at once at 95 %, and so also for those that were picked by
    their noisy counts: each misses with a probability of 5 % over the number of pairs (Bonferroni)."""
    return model.margin(1 - Fraction(1, 20 * model.method.zones**4))


def _drawn(view: View, number: int) -> Frame:
    """The same at each look, from choices that protect nothing."""
    random = Random.derived(view.hub.ledger.derive("journeys", view.row.id))
    return _read(view.row.body).sample(number, random=random)


def _rows(view: View, values: int) -> Frame:
    return _drawn(view, max(min(round(_read(view.row.body).journeys), _most(values)), 1))


def _most(values: int) -> int:
    """Journeys of a file with so many values."""
    return values // (_COLUMNS * _LONG)


def _map(view: View) -> Map:
    """Zones in the shade of the journeys that begin there, with their margin; public outlines, and some drawn journeys."""
    model = _read(view.row.body)
    zones, (low, high) = model.method.zones, box_of(model)
    across, up = (np.linspace(start, end, zones + 1).tolist() for start, end in zip(low, high, strict=True))
    begins = model.trips().sum(axis=1).tolist()
    margin = _of_sum(model.noise["zones"], zones**2)
    outlines, told = {}, {}
    for zone, many in enumerate(begins):
        x, y = zone % zones, zone // zones
        corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
        outlines[name := str(zone + 1)] = [[(across[i], up[j]) for i, j in corners]]
        told[name] = (many, margin)
    frame = _drawn(view, _WAYS)
    places = np.stack([frame[name].astype(np.float64) for name in frame.column_names[-2:]], axis=1)
    ways = [part.tolist() for part in np.split(places, np.flatnonzero(np.diff(frame["journey"])) + 1) if len(part) > 1]
    earth = "longitude" in frame.column_names or bool(model.method.place)
    statistic = view.language.gettext("Journeys that begin here")
    return shaded(outlines, told, statistic, lines=_outlines(view), ways=ways, earth=earth)


def _outlines(view: View) -> list[list[Any]]:
    """What is public of the area: roads, or the borders of declared regions."""
    told = json.loads(view.row.body)
    roads = told["model"].get("roads")
    if roads is None:
        return [[*ring, ring[0]] for ring in told["borders"] if ring]
    return [[roads["places"][end] for end in edge] for edge in roads["edges"]]


def _beside(view: View, drawn: Map) -> list[str]:
    _ = view.language.gettext
    return [
        *said_beside(drawn, view.language),
        _("Zones are numbered from the lower left, row by row."),
        _("Lines: {number} journeys drawn from the counts; they are nobody's.").format(number=len(drawn.ways)),
    ]


def _shown(view: View) -> dict[str, Any]:
    _ = view.language.gettext
    model, details = _read(view.row.body), view.row.details
    drawn, zones = _map(view), model.method.zones**2
    trips = sorted(((many, at) for at, many in enumerate(model.trips().ravel().tolist())), key=lambda each: (-each[0], each[1]))
    pairs = [
        (_("Data set"), details["table"]),
        (_("Columns"), ", ".join(details["columns"])),
        *([(_("Roads"), ", ".join(details["roads"]))] if details["roads"] else []),
    ]
    return {
        "map": drawn,
        "beside": _beside(view, drawn),
        "pairs": pairs,
        "trips": [(at // zones + 1, at % zones + 1, many) for many, at in trips[:_TRIPS]],
        "margin": together(model),
        "all_trips": zones**2,
        "in_files": [_most(values) for values in (MOST_VALUES, MOST_CELLS)],
    }


def _picture(view: View) -> File:
    drawn = _map(view)
    costs = ", ".join(f"{cost} · {population}" for population, cost in view.row.cost.items())
    title = view.row.title or f"{view.language.gettext('Synthetic journeys')}: {view.row.details['table']}"
    body = map_svg(drawn, title, [*_beside(view, drawn), costs], view.language).encode()
    return File(name=f"journeys-{view.row.id}.svg", body=body)


def _trips(view: View) -> File:
    """The matrix of origins and destinations: every pair of zones with its noisy count and its margin."""
    model = _read(view.row.body)
    zones, margin = model.method.zones**2, model.margin()
    found = model.trips().ravel().tolist()
    lines = ((at // zones + 1, at % zones + 1, many, margin) for at, many in enumerate(found))
    return File(name=f"trips-{view.row.id}.csv", body=csv_pieces(["from_zone", "to_zone", "journeys", "margin"], lines))


def _json(view: View) -> bytes:
    """The model, as `cloister.traces.journeys_from_json` reads it."""
    return json.dumps(json.loads(view.row.body)["model"], ensure_ascii=False).encode()


JOURNEYS = ReleaseKind(
    name="journeys",
    path="/journeys",
    trail="journeys",
    title=N_("Synthetic journeys"),
    missing=N_("There are no such journeys"),
    list_template="journeys/list.html",
    template="journeys/journeys.html",
    shown=_shown,
    told=_json,
    against_rows=AgainstRows(action="synthesise.run", compare=lambda row, rows: compared(_read(row.body), rows)),
    files={
        **row_files("journeys", _rows, lambda view, frame: (int(frame["journey"][-1]) + 1, round(_read(view.row.body).journeys))),
        "trips": FileKind(media_type="text/csv; charset=utf-8", make=_trips),
        "map": FileKind(media_type="image/svg+xml", make=_picture),
        "json": json_file("journeys", _json),
    },
)
