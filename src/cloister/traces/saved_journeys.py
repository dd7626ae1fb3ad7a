"""Models of journeys as JSON: what was released with its noise, and the public grid or roads that it is about.

Nothing in it is exact, and reading one runs no code: what is not such a model is refused.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy.plain import guarantee_from_plain, guarantee_to_plain
from cloister.privacy.rational import text_of
from cloister.tables.declaring.plain import domain_of
from cloister.traces.journeys import JourneyCounts, Journeys, ReleasedTrips
from cloister.traces.roads import RoadCounts, RoadGraph, RoadJourneys

_FORMAT, _KIND = 1, "journeys"
_NAMES = ("journey", "moment", "x", "y", "zones", "place")
_MOST_ZONES, _LARGEST = 32, 2**53


def journeys_to_json(model: ReleasedTrips) -> str:
    """The model as JSON."""
    method = model.method
    told: dict[str, Any] = {"format": _FORMAT, "kind": _KIND, "marked": model.marked, "cost": guarantee_to_plain(model.cost)}
    told |= {name: getattr(method, name) for name in _NAMES}
    if isinstance(model, Journeys):
        fastest = model.method.fastest
        told |= {"cells": model.method.cells, "outside": model.method.outside}
        told |= {"fastest": None if fastest is None else text_of(fastest), "axes": [each.describe() for each in model.domains]}
    elif isinstance(model, RoadJourneys):
        roads = model.method.roads
        places = roads.places if roads.origin is None else roads.degrees(roads.places)
        told["roads"] = {
            "nodes": roads.names,
            "places": places.tolist(),
            "edges": roads.edges.tolist(),
            "lengths": roads.lengths.tolist(),
            "one_way": roads.one_way,
            "degrees": roads.origin is not None,
        }
    else:
        raise InvalidParameter("The model is invalid", why="it has no form as JSON", instead="a model of fit_journeys")
    told["released"] = {name: values.tolist() for name, values in model.released.items()}
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def journeys_from_json(text: str) -> Journeys | RoadJourneys:
    """The model of a text that `to_json` gave.

    >>> import cloister as cl
    >>> columns = {"who": cl.Text(), "moment": cl.Integer(0, 9), "x": cl.Integer(0, 99), "y": cl.Integer(0, 99)}
    >>> people = cl.PrivateTable({"who": ["a"], "moment": [0], "x": [1], "y": [1]}, columns, unit="who", max_rows=1)
    >>> from cloister.traces import fit_journeys
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     model = fit_journeys(session, "people", spend=1, cells=4, zones=2)
    >>> journeys_from_json(model.to_json()).cost
    PureDP(epsilon='1')
    >>> journeys_from_json("[]")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The model of journeys is invalid: it is not one that this library wrote.
      Instead: journeys_from_json(model.to_json())
    """
    try:
        told = json.loads(text)
        if told["format"] != _FORMAT or told["kind"] != _KIND:
            raise _refused()
        return _read(told)
    except CloisterError as error:
        raise (error if error.what == _WHAT else _refused()) from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, ZeroDivisionError):
        raise _refused() from None


_WHAT = "The model of journeys is invalid"


def _refused() -> InvalidParameter:
    return InvalidParameter(_WHAT, why="it is not one that this library wrote", instead="journeys_from_json(model.to_json())")


def _read(told: Mapping[str, Any]) -> Journeys | RoadJourneys:
    how = {name: told[name] for name in _NAMES}
    cost, marked = guarantee_from_plain(told["cost"]), told["marked"] is True
    plain = all(isinstance(each, int if name == "zones" else str) for name, each in how.items())
    if not plain or not 1 <= how["zones"] <= _MOST_ZONES or cost is None:
        raise _refused()
    if "roads" in told:
        roads = RoadCounts(**how, roads=_roads(told["roads"]))
        return RoadJourneys(method=roads, released=_released(told, roads.sizes()), cost=cost, marked=marked)
    cells, fastest = told["cells"], told["fastest"]
    divided = isinstance(cells, int) and 1 <= cells <= _MOST_ZONES and not cells % how["zones"]
    if not divided or told["outside"] not in ("drop", "edge"):
        raise _refused()
    pace = None if fastest is None else Fraction(fastest)
    grid = JourneyCounts(**how, cells=cells, outside=told["outside"], fastest=pace)
    x, y = (domain_of("axis", each, table="the model") for each in told["axes"])
    if any(each.kind not in ("integer", "real") for each in (x, y)):
        raise _refused()
    return Journeys(method=grid, domains=(x, y), released=_released(told, grid.sizes()), cost=cost, marked=marked)


def _released(told: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    found = {name: told["released"][name] for name in sizes}
    for name, size in sizes.items():
        # an older version counted the detours of journeys that come back together with the others
        if len(found[name]) not in ((size, size // 2) if name == "detours" else (size,)) or not all(
            type(each) is int and abs(each) < _LARGEST for each in found[name]
        ):
            raise _refused()
    return {name: np.array(values, dtype=np.int64) for name, values in found.items()}


def _roads(told: Mapping[str, Any]) -> RoadGraph:
    names, places, edges = told["nodes"], told["places"], told["edges"]
    axes = ("longitude", "latitude") if told["degrees"] else ("x", "y")
    nodes = {"node": names, **{axis: [each[at] for each in places] for at, axis in enumerate(axes)}}
    ends = {end: [names[each[at]] for each in edges] for at, end in enumerate(("from", "to"))}
    return RoadGraph(nodes, {**ends, "length": [max(each, 1e-9) for each in told["lengths"]]}, one_way=told["one_way"] is True)
