"""A declared road graph, journeys drawn on it from noisy counts of trips, and what a filter that knows the roads takes off.

The graph is public: nodes with a place, edges between them. *Measured* of the journeys of a table, with a share of the spend
each: from which zone to which they go (zones are squares of the graph's extent; one count a journey), at which node they begin
and at which they end. A journey's ends are the nodes nearest to its first and last place. *Drawn*: zones, a node in each, and
the shortest path between them. That is the baseline that a model of journeys has to beat, and where roads are known it is hard
to beat.

In a graph of several pieces, where some nodes cannot be reached from others, a trip is drawn within one piece (a strongly
connected component): zones and piece first, in proportion to trips between the zones and to the ends that lie in the piece;
then a node for each end. A piece where nothing begins or ends by the noisy counts is drawn from where no other fits.

Guarantee: the spend, for one unit of the table added or removed. Theorem: discrete Laplace or discrete Gaussian noise, and
basic composition. Proof: graph, zones and nodes are public. A unit's rows are one journey and touch no other. It adds 1 to one
count of zones, of beginnings and of ends; without a complete row it adds nothing. So three vectors move by at most 1 each, in
L1 and in L2; each gets its share of ε (or ρ) for that, and shares add up to the spend. Which node is nearest is a function of
the journey's own places. All that is drawn is post-processing. ∎
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random, default_random
from cloister.printable import margin_text
from cloister.session import Frame, Measurer, Series, Spending
from cloister.tables import Place, PrivateTable
from cloister.tables.declaring.places import METRES
from cloister.tables.declaring.regions import PARTS
from cloister.traces.journeys import (
    FARTHEST,
    ReleasedTrips,
    TripMethod,
    above_zero,
    box_of,
    check_floats,
    declared_journeys,
    drawn,
    journeys_wanted,
    lattice_of,
)
from cloister.traces.planar import Points

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_SHARES = {"zones": Fraction(1, 2), "begins": Fraction(1, 4), "ends": Fraction(1, 4)}
_MOST_NODES, _MOST_EDGES, _MOST_ZONES = 20_000, 100_000, 16
_POLAR = 85
_BATCH = 256
"""Destinations whose shortest paths are held at once."""
_PIECES = 3_000
"""About how many places on the roads a filter looks at."""
_LOST = 50.0
"""What a jump that no road allows costs a walk, as a logarithm."""


class RoadGraph:
    """Roads that are public: nodes with a place in metres, and edges between them.

    >>> nodes = {"node": ["a", "b", "c"], "x": [0, 300, 300], "y": [0, 0, 400]}
    >>> roads = RoadGraph(nodes, {"from": ["a", "b"], "to": ["b", "c"]})
    >>> roads.path("a", "c"), roads.length("a", "c"), roads.pieces
    (['a', 'b', 'c'], 700.0, 1)
    """

    def __init__(self, nodes: Any, edges: Any, *, one_way: bool = False) -> None:
        """`nodes` has the columns "node", "x" and "y" (or "longitude" and "latitude", in degrees), `edges` the columns "from",
        "to" and, if you like, "length" in metres: a dict of lists, or a frame. Without a length an edge is straight. With
        `one_way` an edge goes from its first node to its second alone.
        """
        self.names = _column(nodes, "nodes", "node")
        self.origin: tuple[float, float] | None = None
        """The longitude and latitude from which its metres count, where its nodes are given in degrees."""
        axes = ("longitude", "latitude") if _has(nodes, "longitude") else ("x", "y")
        across, up = (_numbers(_column(nodes, "nodes", name), "nodes", name) for name in axes)
        if wrong := [name for name in self.names if not _is_name(name)]:
            raise InvalidParameter(
                "nodes is invalid",
                why=f"a node is called {wrong[0]!r}, which is neither a text nor a whole number",
                instead='nodes={"node": ["0,0", "0,200"], "x": [0, 0], "y": [0, 200]}',
            )
        known = {name: number for number, name in enumerate(self.names)}
        ends = [_column(edges, "edges", name) for name in ("from", "to")]
        if not 1 <= len(self.names) <= _MOST_NODES or len(ends[0]) > _MOST_EDGES:
            raise InvalidParameter(
                "The road graph is invalid",
                why=f"it has no node, more than {_MOST_NODES:,}, or more than {_MOST_EDGES:,} edges",
                instead="the roads of a smaller region, or main roads alone",
            )
        if not len(across) == len(up) == len(self.names) == len(known) or len(ends[0]) != len(ends[1]):
            raise InvalidParameter(
                "The road graph is invalid",
                why="columns have different lengths, or a node stands twice",
                instead='nodes={"node": ["a", "b"], "x": [0, 300], "y": [0, 0]}, edges={"from": ["a"], "to": ["b"]}',
            )
        if missing := sorted({str(name) for column in ends for name in column if not _is_name(name) or name not in known}):
            raise InvalidParameter(
                "edges is invalid", why=f"no node is called {missing[0]!r}", instead=f'nodes={{"node": [{missing[0]!r}, …], …}}'
            )
        self.places = np.stack([across, up], axis=1)
        if axes[0] == "longitude":
            self.origin, self.places = _in_metres(across, up)
        self.edges = np.array([[known[name] for name in column] for column in ends], dtype=np.int64).T.reshape(-1, 2)
        straight = np.hypot(*(self.places[self.edges[:, 0]] - self.places[self.edges[:, 1]]).T)
        given = _has(edges, "length")
        self.lengths = _numbers(_column(edges, "edges", "length"), "edges", "length") if given else straight
        if self.lengths.shape != straight.shape or (self.lengths < 0).any() or (given and (self.lengths == 0).any()):
            raise InvalidParameter(
                "edges is invalid", why="a length is one number above 0 for each edge", instead='edges={…, "length": [300, 400]}'
            )
        self.one_way = bool(one_way)

    @property
    def pieces(self) -> int:
        """In how many pieces it lies: within one, every node can be reached from every other."""
        return int(self.piece.max()) + 1

    @cached_property
    def piece(self) -> Integers:
        """Which piece each node belongs to."""
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.matrix, directed=self.one_way, connection="strong")[1], dtype=np.int64)

    @cached_property
    def matrix(self) -> csr_array:
        """The least length from each node to each beside it."""
        return _matrix(self.edges, self.lengths, len(self.names), one_way=self.one_way)

    @cached_property
    def digest(self) -> str:
        """What tells it from other graphs."""
        parts = [self.places, self.edges, self.lengths, np.array([self.one_way])]
        parts += [] if self.origin is None else [np.array(self.origin)]
        return hashlib.sha256(b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()

    def plane(self, degrees: Points) -> Points:
        """Longitudes and latitudes in metres from the origin, on the plane that touches the earth there.

        >>> nodes = {"node": ["a", "b"], "longitude": [4.35, 4.37], "latitude": [52.0, 52.0]}
        >>> RoadGraph(nodes, {"from": ["a"], "to": ["b"]}).plane(np.array([[4.36, 52.01]])).round().tolist()
        [[0.0, 1112.0]]
        """
        return _about(self._origin, degrees)

    def degrees(self, places: Points) -> Points:
        """The longitudes and latitudes of places in metres from the origin."""
        origin = self._origin
        return np.asarray(places / _scale(origin) + np.array(origin))

    @property
    def _origin(self) -> tuple[float, float]:
        if self.origin is None:
            raise InvalidParameter(
                "The road graph is invalid",
                why="its nodes have no longitudes and latitudes",
                instead='nodes={"node": […], "longitude": […], "latitude": […]}',
            )
        return self.origin

    def nearest(self, places: Points) -> Integers:
        """The node nearest to each place.

        >>> roads = RoadGraph({"node": [7, 8], "x": [0, 300], "y": [0, 0]}, {"from": [7], "to": [8]})
        >>> [roads.names[node] for node in roads.nearest(np.array([[200.0, 50.0]]))]
        [8]
        """
        from scipy.spatial import KDTree

        return np.asarray(KDTree(self.places).query(places)[1], dtype=np.int64).reshape(-1)

    def zone(self, zones: int) -> Integers:
        """The zone of each node: `zones` × `zones` rectangles over the graph's extent, in rows from the lower left."""
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        across, up = np.minimum((self.places - low) / np.maximum(high - low, 1e-9) * zones, zones - 1).astype(np.int64).T
        return np.asarray(across + zones * up)

    def path(self, begin: Any, end: Any) -> list[Any]:
        """The names of the nodes on the shortest path; none, where no road leads there."""
        numbers = [self._number(name) for name in (begin, end)]
        return [self.names[node] for node in self.paths(*(np.array([number]) for number in numbers))[1].tolist()]

    def length(self, begin: Any, end: Any) -> float:
        """The metres of the shortest path; infinite, where no road leads there."""
        from scipy.sparse.csgraph import dijkstra

        start, goal = self._number(begin), self._number(end)
        return float(dijkstra(self.matrix, directed=True, indices=start)[goal])

    def paths(self, begins: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """How many nodes the shortest path of each trip has (0, where no road leads there), and all of them, trip after trip."""
        from scipy.sparse.csgraph import dijkstra

        back = self.matrix.T.tocsr()
        trips: list[Integers] = []
        steps: list[Integers] = []
        passed: list[Integers] = []
        goals, which = np.unique(ends, return_inverse=True)
        for first in range(0, len(goals), _BATCH):
            distance, towards = dijkstra(back, directed=True, indices=goals[first : first + _BATCH], return_predecessors=True)
            trip = np.flatnonzero((which >= first) & (which < first + _BATCH))
            row, now, step = which[trip] - first, begins[trip], 0
            reached = np.isfinite(distance[row, now])
            trip, row, now = trip[reached], row[reached], now[reached]
            while len(trip):
                trips.append(trip)
                steps.append(np.full(len(trip), step))
                passed.append(now)
                going = now != goals[first + row]
                trip, row = trip[going], row[going]
                now, step = towards[row, now[going]].astype(np.int64), step + 1
        of, at, node = (np.concatenate([np.empty(0, dtype=np.int64), *each]) for each in (trips, steps, passed))
        counts = np.bincount(of, minlength=len(begins)).astype(np.int64)
        found = np.empty(len(of), dtype=np.int64)
        found[(np.cumsum(counts) - counts)[of] + at] = node
        return counts, found

    def along(self, apart: float, kept: npt.NDArray[np.bool_] | None = None) -> tuple[Points, csr_array]:
        """Places on the roads (on the `kept` edges), `apart` metres or less from one another, and the lengths between
        neighbours.
        """
        chosen = np.arange(len(self.edges)) if kept is None else np.flatnonzero(kept)
        nodes = np.arange(len(self.names)) if kept is None else np.unique(self.edges[chosen])
        edges, lengths = np.searchsorted(nodes, self.edges[chosen]), self.lengths[chosen]
        cuts = np.maximum(np.ceil(lengths / apart).astype(np.int64), 1)
        edge = np.repeat(np.arange(len(cuts)), cuts - 1)
        part = np.arange(len(edge)) - np.repeat(np.cumsum(cuts - 1) - (cuts - 1), cuts - 1) + 1
        begin, end = edges[edge].T
        share = (part / cuts[edge])[:, None]
        between = (1 - share) * self.places[nodes[begin]] + share * self.places[nodes[end]]
        number = len(nodes) + np.arange(len(edge))
        first, last, whole = part == 1, part == cuts[edge] - 1, cuts == 1
        links = [
            edges[whole],
            np.stack([begin[first], number[first]], axis=1),
            np.stack([number[~last], number[~last] + 1], axis=1),
            np.stack([number[last], end[last]], axis=1),
        ]
        of = np.concatenate([np.flatnonzero(whole), edge[first], edge[~last], edge[last]])
        count = len(nodes) + len(edge)
        matrix = _matrix(np.concatenate(links), lengths[of] / cuts[of], count, one_way=self.one_way)
        return np.concatenate([self.places[nodes], between]), matrix

    def most_probable(self, seen: Points, logarithms: Any, pace: float, error: float) -> Points:
        """The most probable walk on the roads (Viterbi): `logarithms(at, places)` says how probable released point `at` makes
        each place, and steps along the roads have the deviation `pace` in metres. Looked at are the roads within an error of what
        was released. A jump that no road allows, to another piece or too far, has a public penalty.
        """
        from scipy.sparse.csgraph import dijkstra
        from scipy.spatial import KDTree

        if not len(self.edges):
            return self.places[self.nearest(seen)]
        ends = KDTree(seen).query(self.places)[0][self.edges].min(axis=1) - self.lengths / 2
        kept = ends <= max(error, float(ends.min()))
        apart = max(float(self.lengths[kept].sum()) / _PIECES, pace / 4, 1e-6)
        places, lengths = self.along(apart, kept)
        near = dijkstra(lengths, directed=True, limit=max(3 * pace, 1.5 * apart))
        source, target = np.nonzero(np.isfinite(near))
        order = np.lexsort((source, target))
        source, target = source[order], target[order]
        cost = -((near[source, target] / max(pace, apart / 2)) ** 2) / 2
        starts = np.searchsorted(target, np.arange(len(places)))
        score = np.asarray(logarithms(0, places), dtype=np.float64)
        came: list[Integers] = []
        for at in range(1, len(seen)):
            ways = score[source] + cost
            best = np.maximum.reduceat(ways, starts)
            first = np.flatnonzero(ways == best[target])
            came_from = np.empty(len(places), dtype=np.int64)
            came_from[target[first[::-1]]] = source[first[::-1]]
            top = int(score.argmax())
            lost = best < score[top] - _LOST
            came_from[lost] = top
            came.append(came_from)
            score = np.where(lost, score[top] - _LOST, best) + logarithms(at, places)
        walk = [int(score.argmax())]
        for came_from in reversed(came):
            walk.append(int(came_from[walk[-1]]))
        return np.asarray(places[walk[::-1]])

    def _number(self, name: Any) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise InvalidParameter(f"{name!r} is invalid", why="no node is called so", instead=repr(self.names[0])) from None

    def __repr__(self) -> str:
        return f"{len(self.names):,} nodes and {len(self.edges):,} edges in {self.pieces} piece{'s' if self.pieces > 1 else ''}"


@dataclass(frozen=True, kw_only=True)
class RoadCounts(TripMethod):
    """What is measured of journeys on roads. See above for its proof."""

    stored: ClassVar[tuple[str, str]] = ("cloister.traces.roads", "RoadCounts")
    shares: ClassVar[Mapping[str, Fraction]] = _SHARES

    roads: RoadGraph

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {"columns": list(self.columns), "roads": self.roads.digest, "zones": self.zones, "format": 1}

    def sizes(self) -> dict[str, int]:
        """How many numbers are released of each kind."""
        return {"zones": self.zones**4, "begins": len(self.roads.names), "ends": len(self.roads.names)}

    def counted(self, rows: Mapping[str, Any], declaration: PrivateTable) -> dict[str, Integers]:
        """The exact numbers, before noise: private."""
        if self.place:
            owner, _, *codes = self.in_order(rows, declaration, *lattice_of(rows, declaration, self.place))
            corner = declaration.column(self.place)
            assert isinstance(corner, Place)
            places = self.roads.plane((np.stack(codes, axis=1) + np.array([corner.west, corner.south])) / PARTS)
        else:
            owner, _, *codes = self.ordered(rows, declaration)
            places = np.stack(
                [self.numbers(name, found, declaration) for name, found in zip((self.x, self.y), codes, strict=True)], axis=1
            )
        first, last = self.ends_of(owner)
        begins, ends = (self.roads.nearest(places[stop]) for stop in (first, last))
        zone = self.roads.zone(self.zones)
        found = {"zones": zone[begins] * self.zones**2 + zone[ends], "begins": begins, "ends": ends}
        return {name: np.bincount(values, minlength=self.sizes()[name]) for name, values in found.items()}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RoadJourneys(ReleasedTrips):
    """What `fit_road_journeys` gives: noisy counts, and journeys on the roads drawn from them at no cost."""

    method: RoadCounts

    def sample(self, n: int | None = None, *, random: Random | None = None) -> Frame:
        """So many journeys, a row for each node that they pass: the number of the journey, its step, the node and its place; of a
        graph in degrees its longitude and latitude. None: as many as there are, by the noisy counts. Steps have no time.
        """
        random = default_random() if random is None else random
        wanted = journeys_wanted(n, self.journeys)
        roads, zones = self.method.roads, self.method.zones**2
        cell = roads.zone(self.method.zones) * roads.pieces + roads.piece
        # A little everywhere: then each zone and piece with a node can be drawn where the noisy counts leave nothing else.
        weights = [above_zero(self.released[name], self.journeys) + 1e-9 for name in ("begins", "ends")]
        held = [np.bincount(cell, weight, zones * roads.pieces).reshape(zones, -1) for weight in weights]
        shared = held[0] @ held[1].T > 0
        trips = above_zero(self.trips().ravel(), self.journeys).reshape(zones, zones)
        pairs = drawn(((trips + 1e-12) * shared).ravel(), wanted, random)
        piece = np.zeros(wanted, dtype=np.int64)
        if roads.pieces > 1:
            order = np.argsort(pairs, kind="stable")
            for same in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1) if wanted else []:
                begin, end = divmod(int(pairs[same[0]]), zones)
                piece[same] = drawn(held[0][begin] * held[1][end], len(same), random)
        ends = []
        for weight, zone in zip(weights, (pairs // zones, pairs % zones), strict=True):
            order = np.argsort(cell, kind="stable")
            sums = np.append(0.0, np.cumsum(weight[order]))
            chosen = zone * roads.pieces + piece
            low, high = (np.searchsorted(cell[order], chosen, side=side) for side in ("left", "right"))
            at = np.searchsorted(sums, sums[low] + random.uniform(wanted) * (sums[high] - sums[low]), side="right") - 1
            ends.append(order[np.clip(at, low, high - 1)])
        counts, passed = roads.paths(*ends)
        step = np.arange(len(passed)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = roads.places if roads.origin is None else roads.degrees(roads.places).round(6)
        x, y = places[passed].T
        axes = ("x", "y") if roads.origin is None else ("longitude", "latitude")
        kind: Any = "integer" if all(isinstance(name, int) for name in roads.names) else "text"
        names = np.array(roads.names if kind == "integer" else [str(name) for name in roads.names], dtype=object)
        return Frame(
            {
                "journey": Series("integer", np.repeat(np.arange(wanted), counts)),
                "step": Series("integer", step),
                "node": Series(kind, (names.astype(np.int64) if kind == "integer" else names)[passed]),
                axes[0]: Series("real", x),
                axes[1]: Series("real", y),
            }
        )

    def __repr__(self) -> str:
        return (
            f"journeys on {self.method.roads!r}: about {self.journeys:z,.0f} of them, "
            f"trips between {self.method.zones**2} zones ± {margin_text(self.margin())}\n"
            f"  cost: {self.cost}; journeys drawn from it cost nothing more"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_road_journeys(
    session: Measurer,
    table: str,
    roads: RoadGraph,
    *,
    spend: Spending,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    place: str = "",
    zones: int = 4,
    purpose: str = "synthetic journeys on roads",
) -> RoadJourneys:
    """Noisy counts of the trips of a table on public roads, for one charge, and a model to draw others from.

    A unit's rows are one journey: where people are the units, all that is known of a person is. `x` and `y` are metres of the
    plane in which the roads lie. Instead of them, `place` is a column of `cl.Place`, and the nodes have longitudes and
    latitudes. Rows beyond `max_rows` of a unit do not count, nor do rows without a moment or a place, or outside the box.

    >>> import cloister as cl
    >>> rows = {"who": [str(n // 2) for n in range(600)], "moment": [0, 1] * 300, "x": [10, 890] * 300, "y": [0, 300] * 300}
    >>> columns = {"who": cl.Text(), "moment": cl.Integer(0, 9), "x": cl.Integer(0, 999), "y": cl.Integer(0, 999)}
    >>> people = cl.PrivateTable(rows, columns, unit="who", max_rows=2)
    >>> nodes = {"node": ["home", "bridge", "work"], "x": [0, 450, 900], "y": [0, 0, 300]}
    >>> roads = RoadGraph(nodes, {"from": ["home", "bridge"], "to": ["bridge", "work"]})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(5), random=Random.deterministic(1)) as session:
    ...     model = fit_road_journeys(session, "people", roads, spend=5, zones=2)
    ...     print(session.spent)
    ε = 5
    >>> model.sample(1, random=Random.deterministic(1))["node"].tolist()
    ['home', 'bridge', 'work']
    >>> isinstance(model, RoadJourneys), model.trips().shape
    (True, (4, 4))
    """
    method = road_counts(session, table, roads, moment=moment, x=x, y=y, place=place, zones=zones)
    outcome = session.run(method, table, spend, purpose=purpose)
    released = {name: np.array(outcome.values[name], dtype=np.int64) for name in method.sizes()}
    return RoadJourneys(method=method, released=released, cost=outcome.cost, marked=outcome.marked)


def road_counts(
    session: Measurer,
    table: str,
    roads: RoadGraph,
    *,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    place: str = "",
    zones: int = 4,
) -> RoadCounts:
    """What `fit_road_journeys` measures: from declarations and the public roads alone."""
    if not isinstance(roads, RoadGraph):
        raise InvalidParameter("roads is invalid", why="it is not a RoadGraph", instead="RoadGraph(nodes, edges)")
    declared = declared_journeys(session, table, moment=moment, x=x, y=y, place=place)
    if place:
        box = box_of(declared, place)
        x, y = box.longitude, box.latitude
    else:
        check_floats(declared, (x, y))
    if bool(place) != (roads.origin is not None):
        raise InvalidParameter(
            "roads is invalid",
            why="a column of places goes with nodes in longitudes and latitudes, and x and y with nodes in metres",
            instead='RoadGraph({"node": […], "longitude": […], "latitude": […]}, edges)' if place else 'place="home"',
        )
    check_whole(zones, "zones", 1, _MOST_ZONES, why=f"there are 1 to {_MOST_ZONES} along a side", instead="zones=4")
    return RoadCounts(journey=str(declared.unit), moment=moment, x=x, y=y, roads=roads, zones=zones, place=place)


def _in_metres(longitude: Floats, latitude: Floats) -> tuple[tuple[float, float], Floats]:
    """The middle of places in degrees, and the places in metres from it."""
    if (np.abs(longitude) > 180).any() or (np.abs(latitude) > _POLAR).any():
        raise InvalidParameter(
            "nodes is invalid",
            why=f"a longitude lies beyond 180 degrees, or a latitude beyond {_POLAR}: they may be swapped",
            instead='"longitude": [4.35], "latitude": [52.01]',
        )
    origin = tuple(float(each.min() + each.max()) / 2 for each in (longitude, latitude))
    return (origin[0], origin[1]), _about((origin[0], origin[1]), np.stack([longitude, latitude], axis=1))


def _scale(origin: tuple[float, float]) -> Floats:
    """Metres in a degree of longitude and of latitude."""
    return np.array([METRES * math.cos(math.radians(origin[1])), METRES])


def _about(origin: tuple[float, float], degrees: Points) -> Floats:
    return np.asarray((degrees - np.array(origin)) * _scale(origin))


def _matrix(edges: Integers, lengths: Floats, nodes: int, *, one_way: bool) -> csr_array:
    """Lengths as a sparse matrix, of several edges between the same nodes the shortest; and none from a node to itself."""
    from scipy.sparse import csr_array

    if not one_way:
        edges, lengths = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([lengths, lengths])
    kept = edges[:, 0] != edges[:, 1]
    edges, lengths = edges[kept], np.maximum(lengths[kept], 1e-9)  # a length of 0 would be no edge
    order = np.lexsort((lengths, edges[:, 1], edges[:, 0]))
    edges, lengths = edges[order], lengths[order]
    new = np.append(True, (np.diff(edges, axis=0) != 0).any(axis=1))[: len(edges)]
    return csr_array((lengths[new], edges[new].T), shape=(nodes, nodes))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) or (isinstance(name, int) and not isinstance(name, bool) and -(2**63) <= name < 2**63)


def _has(table: Any, name: str) -> bool:
    return name in (table if isinstance(table, Mapping) else getattr(table, "column_names", list(getattr(table, "columns", ()))))


def _column(table: Any, what: str, name: str) -> list[Any]:
    try:
        found = table[name]
        cells = found.to_pylist() if hasattr(found, "to_pylist") else found  # Arrow's own cells are not values
        return [each.item() if isinstance(each, np.generic) else each for each in cells]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise InvalidParameter(
            f"{what} is invalid",
            why=f"it has no column {name!r}",
            instead='nodes={"node": [1, 2], "x": [0, 300], "y": [0, 0]}, edges={"from": [1], "to": [2]}',
        ) from None


def _numbers(values: list[Any], what: str, name: str) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if found.ndim != 1 or not (np.abs(found) <= FARTHEST).all():
        raise InvalidParameter(
            f"{what} is invalid",
            why=f"the column {name!r} must hold numbers, in metres, within ±10¹²",
            instead=f'"{name}": [0, 300]',
        )
    return found
