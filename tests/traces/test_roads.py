"""Roads: shortest paths against a plain search, counts as the definition says, graphs in pieces, the filter that knows them."""

from __future__ import annotations

import heapq
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import InvalidParameter, MissingBound
from cloister.noise import Random
from cloister.traces import NextPoint, PlanarLaplace, RoadGraph, RoadJourneys, filter_attack, fit_road_journeys
from cloister.traces.roads import RoadCounts
from tests.traces.handed import codes_of

COLUMNS = {
    "who": cl.Text(),
    "moment": cl.Integer(0, 100),
    "x": cl.Real(0, 1000, step="0.5", nullable=True),
    "y": cl.Integer(0, 1000, nullable=True),
}
Rows = dict[str, list[Any]]


def grid(side: int = 6, *, apart: int = 200, seed: int = 1, cut: bool = False, one_way: bool = False) -> RoadGraph:
    """Streets of different lengths; with `cut` the left and the right half are two pieces."""
    random, names = np.random.default_rng(seed), [(i, j) for i in range(side) for j in range(side)]
    number = {name: at for at, name in enumerate(names)}
    edges = [(a, b) for a, b in product(names, repeat=2) if (b[0] - a[0], b[1] - a[1]) in ((0, 1), (1, 0))]
    edges = [(a, b) for a, b in edges if not (cut and a[0] == side // 2 - 1 and b[0] == side // 2)]
    table = {"from": [number[a] for a, _ in edges], "to": [number[b] for _, b in edges]}
    lengths = (apart * random.uniform(1, 2, len(edges))).tolist()
    nodes = {"node": list(number.values()), "x": [apart * i for i, _ in names], "y": [apart * j for _, j in names]}
    return RoadGraph(nodes, {**table, "length": lengths}, one_way=one_way)


def shortest(roads: RoadGraph, begin: int) -> dict[int, float]:
    """Dijkstra's search, written out."""
    beside: dict[int, list[tuple[int, float]]] = {}
    for (a, b), length in zip(roads.edges.tolist(), roads.lengths.tolist(), strict=True):
        beside.setdefault(a, []).append((b, length))
        if not roads.one_way:
            beside.setdefault(b, []).append((a, length))
    found: dict[int, float] = {}
    queue = [(0.0, begin)]
    while queue:
        length, node = heapq.heappop(queue)
        if node in found:
            continue
        found[node] = length
        for other, more in beside.get(node, []):
            heapq.heappush(queue, (length + more, other))
    return found


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("one_way", [False, True])
def test_paths_are_shortest_and_go_along_edges(cut: bool, one_way: bool) -> None:
    roads = grid(cut=cut, one_way=one_way)
    edges = {tuple(edge): length for edge, length in zip(roads.edges.tolist(), roads.lengths.tolist(), strict=True)}
    if not one_way:
        edges |= {(b, a): length for (a, b), length in edges.items()}
    begins, ends = (np.array(each) for each in zip(*product(range(36), repeat=2), strict=True))
    counts, passed = roads.paths(begins, ends)
    paths = np.split(passed, np.cumsum(counts)[:-1])
    for begin in range(36):
        lengths = shortest(roads, begin)
        for end in range(36):
            path = paths[36 * begin + end].tolist()
            assert bool(path) == (end in lengths)
            if path:
                assert (path[0], path[-1]) == (begin, end)
                assert sum(edges[pair] for pair in pairwise(path)) == pytest.approx(lengths[end])
    assert roads.path(0, 35) == paths[35].tolist()
    assert roads.length(0, 7) == pytest.approx(shortest(roads, 0)[7])
    assert roads.pieces == (36 if one_way else 2 if cut else 1)
    if cut:
        assert roads.path(0, 35) == []
        assert roads.length(0, 35) == np.inf


def trips(people: int, seed: int = 1) -> Rows:
    random = np.random.default_rng(seed)
    found: Rows = {name: [] for name in COLUMNS}
    for person in range(people):
        length = int(random.integers(1, 5))
        found["who"] += [f"p{person}"] * length
        found["moment"] += random.integers(0, 100, length).tolist()
        start = np.array([100, 100]) if person % 3 else np.array([900, 500])
        found["x"] += [
            None if random.random() < 0.1 else float(x) for x in np.clip(random.normal(start[0], 200, length), 0, 1000)
        ]
        found["y"] += np.clip(random.normal(start[1], 200, length), 0, 1000).astype(int).tolist()
    return found


def table(rows: Rows) -> cl.PrivateTable:
    return cl.PrivateTable(rows, COLUMNS, unit="who", max_rows=5)


def counted(rows: Rows, kind: type[RoadCounts] = RoadCounts, roads: RoadGraph | None = None) -> dict[str, Any]:
    method = kind(journey="who", moment="moment", x="x", y="y", roads=roads or grid(), zones=3)
    return method.counted(codes_of(rows, COLUMNS), table(rows))


def test_counts_are_those_of_the_definition_and_a_unit_more_moves_each_by_one() -> None:
    rows, roads = trips(40), grid()
    found = counted(rows)
    expected = {name: np.zeros_like(values) for name, values in found.items()}
    zone = roads.zone(3)
    assert zone.reshape(6, 6)[::2, ::2].tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    for person in sorted(set(rows["who"])):
        mine = sorted(
            (rows["moment"][at], rows["x"][at], rows["y"][at])
            for at in range(len(rows["who"]))
            if rows["who"][at] == person and rows["x"][at] is not None
        )
        if mine:
            begin, end = (int(np.hypot(*(roads.places - np.array(stop[1:])).T).argmin()) for stop in (mine[0], mine[-1]))
            expected["begins"][begin] += 1
            expected["ends"][end] += 1
            expected["zones"][zone[begin] * 9 + zone[end]] += 1
    assert all((found[name] == expected[name]).all() for name in found)
    kept = [at for at, who in enumerate(rows["who"]) if who != "p1"]
    without = counted({name: [values[at] for at in kept] for name, values in rows.items()})
    assert all((found[name] - without[name]).sum() == 1 and (found[name] >= without[name]).all() for name in found)


class EveryPlace(RoadCounts):
    """BROKEN: every place of a journey is counted as a beginning, not the first alone."""

    stored: ClassVar[tuple[str, str]] = ("tests", "EveryPlace")

    def counted(self, rows: Any, declaration: Any) -> dict[str, npt.NDArray[np.int64]]:
        owner, *_ = self.ordered(rows, declaration)
        found = super().counted(rows, declaration)
        return {**found, "begins": found["begins"] * len(owner)}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [EveryPlace, RoadCounts])
def test_a_journey_that_counts_for_each_of_its_places_is_caught(kind: type[RoadCounts]) -> None:
    rows: Rows = {"who": ["a"] * 5, "moment": list(range(5)), "x": [1.0] * 5, "y": [1] * 5}
    empty: Rows = {name: [] for name in COLUMNS}
    method = kind(journey="who", moment="moment", x="x", y="y", roads=grid(), zones=3)
    law, claim = method.laws(cl.PureDP(4))["begins"], cl.PureDP(4 * Fraction(1, 4))

    def first_node(data: Rows, n: int, random: Random) -> npt.NDArray[np.int64]:
        return np.asarray(law.sample(n, random=random) + counted(data, kind)["begins"][0])

    found = audit(first_node, rows, empty, runs=20_000, against=claim, random=Random.deterministic(2))
    assert found.contradicts(claim) == (kind is EveryPlace)


def fitted(rows: Rows, roads: RoadGraph, *, spend: Any = 1, budget: Any = None, zones: int = 3) -> RoadJourneys:
    with cl.Session({"trips": table(rows)}, budget=budget or cl.PureDP(2000), random=Random.deterministic(1)) as session:
        model = fit_road_journeys(session, "trips", roads, spend=spend, zones=zones)
        model.sample(5)
        assert session.spent == model.cost
    return model


@pytest.mark.parametrize(
    ("budget", "spend"),
    [(cl.PureDP(1), "0.5"), (cl.ZCDP(1), "0.5"), (cl.ApproxDP(2, "1e-6"), cl.ApproxDP(1, "1e-7"))],
)
def test_a_session_is_charged_once_under_every_kind_of_budget(budget: Any, spend: Any) -> None:
    model = fitted(trips(200), grid(), budget=budget, spend=spend)
    assert model.cost <= budget
    assert {name: len(values) for name, values in model.released.items()} == model.method.sizes()
    assert model.trips().shape == (9, 9)
    assert model.margin() == model.noise["zones"].margin("0.95")
    assert "MARKED" in repr(model)
    assert "36 nodes" in repr(model)


def test_without_noise_to_speak_of_trips_are_those_of_the_table() -> None:
    rows, roads = trips(2_000), grid()
    model, exact = fitted(rows, roads, spend=1500), counted(rows)
    frame = model.sample(20_000, random=Random.deterministic(1))
    journey, step, node = (np.array(frame[name]) for name in ("journey", "step", "node"))
    first = np.flatnonzero(step == 0)
    begins, ends = node[first], node[np.append(first[1:], len(node)) - 1]
    zone = roads.zone(3)
    seen = np.bincount(zone[begins] * 9 + zone[ends], minlength=81) / 20_000
    assert np.abs(seen - exact["zones"] / exact["zones"].sum()).sum() < 0.1
    assert np.abs(np.bincount(begins, minlength=36) / 20_000 - exact["begins"] / exact["begins"].sum()).sum() < 0.2
    assert journey[first].tolist() == list(range(20_000))
    lengths = [shortest(roads, begin) for begin in range(36)]
    for at in range(50):
        path = node[journey == at].tolist()
        assert roads.path(path[0], path[-1]) == path
        assert path[-1] in lengths[path[0]]
    assert np.stack([frame["x"], frame["y"]], axis=1) == pytest.approx(roads.places[node])
    assert model.journeys == pytest.approx(exact["begins"].sum(), abs=3)


def test_in_a_graph_of_two_pieces_no_journey_goes_from_one_to_the_other() -> None:
    """By the counts a third of the trips go across: these are drawn within a piece."""
    rows: Rows = {"who": [], "moment": [], "x": [], "y": []}
    for person in range(300):
        rows["who"] += [f"p{person}"] * 2
        rows["moment"] += [0, 1]
        rows["x"] += [0.0, 1000.0 if person % 3 == 0 else 200.0]
        rows["y"] += [0, 1000]
    roads = grid(cut=True)
    for zones in (1, 2, 3):
        model = fitted(rows, roads, spend=100, zones=zones)
        frame = model.sample(3_000, random=Random.deterministic(1))
        journey, node = np.array(frame["journey"]), np.array(frame["node"])
        pieces = [set(roads.piece[node[journey == at]].tolist()) for at in range(0, 3_000, 60)]
        assert all(len(each) == 1 for each in pieces)
        assert len(np.unique(journey)) == 3_000
    lonely = RoadGraph({"node": [1, 2], "x": [0, 900], "y": [0, 900]}, {"from": [], "to": []})
    assert lonely.pieces == 2
    frame = fitted(rows, lonely, spend=10).sample(100, random=Random.deterministic(1))
    assert frame.num_rows == 100
    assert set(frame["step"].tolist()) == {0}


def test_no_rows_and_counts_below_zero_are_drawn_like_any_other() -> None:
    model = fitted({name: [] for name in COLUMNS}, grid(), spend="0.1")
    for numbers in model.released.values():
        numbers[:] = -7
    assert model.journeys == 0
    assert model.sample().num_rows == 0
    assert len(set(model.sample(40, random=Random.deterministic(1))["journey"].tolist())) == 40


def test_names_of_nodes_may_be_texts_and_frames_may_be_frames() -> None:
    import pandas as pd

    nodes, edges = {"node": ["a", "b"], "x": [0, 300], "y": [0, 400]}, {"from": ["a"], "to": ["b"]}
    for kind in (dict, pd.DataFrame):
        roads = RoadGraph(kind(nodes), kind(edges))
        assert roads.length("b", "a") == 500
        assert roads.digest == RoadGraph(nodes, {**edges, "length": [500]}).digest
    assert roads.digest != RoadGraph(nodes, {**edges, "length": [501]}).digest
    assert RoadGraph(nodes, pd.DataFrame({**edges, "length": [501]})).length("a", "b") == 501
    twice = RoadGraph(nodes, {"from": ["a", "b", "a"], "to": ["b", "a", "a"], "length": [600, 501, 3]})
    assert twice.length("a", "b") == 501


def test_a_filter_that_knows_the_roads_takes_off_more() -> None:
    roads = grid(side=8, apart=600)
    path = np.array([roads.places[node] for node in roads.path(0, 63)])
    far = np.append(0, np.hypot(*np.diff(path, axis=0).T).cumsum())
    at = np.arange(0, far[-1], 80.0)
    truth = np.stack([np.interp(at, far, path[:, axis]) for axis in (0, 1)], axis=1)
    seen = PlanarLaplace("0.01").release(truth, random=Random.deterministic(1))
    plain, knowing = (filter_attack(truth, seen, epsilon=0.01, roads=known) for known in (None, roads))
    assert "Viterbi" in knowing.best
    assert knowing.ratio < 0.9 * plain.ratio
    ours = NextPoint(4, reach=300, anchor=PlanarLaplace("0.01")).release(truth, random=Random.deterministic(1))
    assert any("Viterbi" in name for name in filter_attack(truth, ours.points, law=ours.mechanism, roads=roads).after)
    assert any("Viterbi" in name for name in filter_attack(truth, seen, roads=roads).after)


def test_viterbi_is_the_best_of_all_walks() -> None:
    """Against every walk over the places, written out."""
    roads = RoadGraph({"node": [0, 1, 2], "x": [0, 100, 100], "y": [0, 0, 100]}, {"from": [0, 1], "to": [1, 2]})
    seen, pace = np.array([[10.0, 30.0], [90.0, -40.0], [130.0, 60.0]]), 200.0
    places, lengths = roads.along(50.0)
    assert sorted(places.tolist()) == [[0, 0], [50, 0], [100, 0], [100, 50], [100, 100]]

    def logarithms(at: int, where: Any) -> Any:
        return -0.05 * np.hypot(*(where - seen[at]).T)

    from scipy.sparse.csgraph import dijkstra

    apart = dijkstra(lengths, directed=True)
    best = max(
        product(range(5), repeat=3),
        key=lambda walk: (
            sum(float(logarithms(at, places)[place]) for at, place in enumerate(walk))
            - sum(apart[a, b] ** 2 / (2 * pace**2) for a, b in pairwise(walk))
        ),
    )
    assert roads.most_probable(seen, logarithms, pace, 1000).tolist() == places[list(best)].tolist()


def test_a_teleport_to_another_piece_is_followed() -> None:
    roads = grid(side=4, cut=True)
    truth = np.concatenate([np.zeros((10, 2)), np.full((10, 2), 600.0)])
    walk = roads.most_probable(truth, lambda at, places: -np.hypot(*(places - truth[at]).T), 50.0, 100.0)
    assert walk.tolist() == truth.tolist()
    alone = RoadGraph({"node": [1], "x": [0], "y": [0]}, {"from": [], "to": []})
    assert alone.most_probable(truth, lambda at, places: np.zeros(len(places)), 50.0, 100.0).tolist() == [[0, 0]] * 20


NODES: dict[str, Any] = {"node": [1, 2], "x": [0, 300], "y": [0, 0]}
EDGES: dict[str, Any] = {"from": [1], "to": [2]}


@pytest.mark.parametrize(
    ("nodes", "edges", "why"),
    [
        ({"node": [1]}, EDGES, "no column 'x'"),
        (NODES, {"from": [1]}, "no column 'to'"),
        (7, EDGES, "no column 'node'"),
        ({**NODES, "x": [0, 1e308]}, EDGES, "within ±10¹²"),
        ({**NODES, "x": [0, np.nan]}, EDGES, "numbers, in metres"),
        ({**NODES, "y": ["a", "b"]}, EDGES, "numbers, in metres"),
        ({"node": [], "x": [], "y": []}, {"from": [], "to": []}, "no node"),
        ({**NODES, "node": [1, 1]}, {"from": [1], "to": [1]}, "stands twice"),
        ({**NODES, "node": [1, 2, 3]}, EDGES, "different lengths"),
        ({**NODES, "x": [0, 300, 600]}, EDGES, "different lengths"),
        (NODES, {"from": [1], "to": [2, 1]}, "different lengths"),
        (NODES, {"from": [[1]], "to": [2]}, r"no node is called '\[1\]'"),
        (NODES, {"from": [1], "to": [9]}, "no node is called '9'"),
        (NODES, {**EDGES, "length": [0]}, "above 0"),
        (NODES, {**EDGES, "length": [-3]}, "above 0"),
        (NODES, {**EDGES, "length": [3, 4]}, "above 0"),
        (NODES, {**EDGES, "length": ["far"]}, "numbers, in metres"),
    ],
)
def test_graphs_that_are_none_are_refused(nodes: Any, edges: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        RoadGraph(nodes, edges)


def test_what_is_asked_wrongly_is_refused_and_costs_nothing() -> None:
    roads = RoadGraph(NODES, EDGES)
    with pytest.raises(InvalidParameter, match="no node is called so"):
        roads.path(1, 3)
    plain = cl.PrivateTable({"x": [1], "y": [1]}, {"x": cl.Integer(0, 9), "y": cl.Integer(0, 9)})
    tables: dict[str, Any] = {"trips": table(trips(3)), "plain": plain, "public": cl.PublicTable({"x": [1]})}
    with cl.Session(tables, budget=cl.PureDP(1)) as session:
        wrong: list[tuple[str, Any, dict[str, Any], type[Exception], str]] = [
            ("trips", NODES, {}, InvalidParameter, "not a RoadGraph"),
            ("trips", roads, {"zones": 0}, InvalidParameter, "zones=0"),
            ("trips", roads, {"zones": 17}, InvalidParameter, "zones=17"),
            ("trips", roads, {"zones": True}, InvalidParameter, "zones=True"),
            ("trips", roads, {"x": "y"}, InvalidParameter, "named twice"),
            ("trips", roads, {"x": "who"}, MissingBound, "needs bounds"),
            ("plain", roads, {}, MissingBound, "rows of one unit"),
            ("public", roads, {}, InvalidParameter, "public table"),
            ("trips", roads, {"spend": "1e-30"}, InvalidParameter, "spend is invalid"),
        ]
        for name, graph, options, error, why in wrong:
            with pytest.raises(error, match=why):
                fit_road_journeys(session, name, graph, **{"spend": 1, **options})
        assert session.spent == cl.PureDP(0)
        model = fit_road_journeys(session, "trips", roads, spend=1, zones=2)
    for n in (-1, 1.5, True, 10**9):
        with pytest.raises(InvalidParameter, match="number of journeys"):
            model.sample(n)  # type: ignore[arg-type]


def test_roads_in_degrees_refuse_swapped_numbers_and_columns_of_metres() -> None:
    edges = {"from": ["a"], "to": ["b"]}
    with pytest.raises(InvalidParameter, match="they may be swapped"):
        RoadGraph({"node": ["a", "b"], "longitude": [52.0, 52.1], "latitude": [104.3, 104.4]}, edges)
    with pytest.raises(InvalidParameter, match="different lengths"):
        RoadGraph({"node": ["a", "b"], "longitude": [4.3, 4.4], "latitude": [52.0]}, edges)
    roads = RoadGraph({"node": ["a", "b"], "longitude": [4.3, 4.4], "latitude": [52.0, 52.0]}, edges)
    assert roads.length("a", "b") == pytest.approx(0.1 * 111_195 * np.cos(np.radians(52)))
    assert roads.degrees(roads.places).round(9).tolist() == [[4.3, 52.0], [4.4, 52.0]]
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 9), "x": cl.Integer(0, 99), "y": cl.Integer(0, 99)}
    table = cl.PrivateTable({"who": ["a"], "moment": [0], "x": [1], "y": [1]}, columns, unit="who", max_rows=1)
    with cl.Session({"people": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="nodes in metres"):
            fit_road_journeys(session, "people", roads, spend=1)
        assert str(session.spent) == "ε = 0"


@pytest.mark.parametrize(
    "names", [[(0, 0), (0, 1)], [1, 2.5], [b"a", b"b"], [float("nan"), 1.0], [[1], [2]], [True, 2], [2**63, 1]]
)
def test_a_node_is_called_by_a_text_or_a_whole_number(names: list[Any]) -> None:
    with pytest.raises(InvalidParameter, match="neither a text nor a whole number"):
        RoadGraph({"node": names, "x": [0, 1], "y": [0, 1]}, {"from": [names[0]], "to": [names[1]]})


def test_names_that_numpy_holds_are_texts_and_whole_numbers() -> None:
    roads = RoadGraph({"node": list(np.arange(2)), "x": [0, 1], "y": [0, 1]}, {"from": [np.int64(0)], "to": [np.int64(1)]})
    assert roads.names == [0, 1]
    assert type(roads.names[0]) is int


def test_tables_of_arrow_make_the_graph_that_lists_make() -> None:
    arrow = pytest.importorskip("pyarrow")
    nodes = {"node": ["a", "b"], "longitude": [4.3, 4.4], "latitude": [52.0, 52.0]}
    edges = {"from": ["a"], "to": ["b"], "length": [9000.0]}
    made, listed = RoadGraph(arrow.table(nodes), arrow.table(edges)), RoadGraph(nodes, edges)
    assert (made.digest, made.length("a", "b")) == (listed.digest, 9000.0)
