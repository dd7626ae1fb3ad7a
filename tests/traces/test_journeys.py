"""Journeys: counts as the definition says, one unit's within W, noise for that, and walks that go from end to end."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import EngineError, InvalidParameter, MissingBound, UnknownColumn
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import zcdp_within
from cloister.traces import Journeys, fit_journeys
from cloister.traces import journeys as module
from cloister.traces.journeys import JourneyCounts, above_zero, drawn, neighbours
from cloister.traces.saved_journeys import journeys_from_json
from tests.traces.handed import codes_of

SIDE, ZONES, WHOLE, BINS = 6, 3, 4096, 10
COLUMNS = {
    "who": cl.Text(),
    "moment": cl.Integer(0, 10_000),
    "x": cl.Real(0, 100, step="0.5", nullable=True),
    "y": cl.Integer(-50, 50, nullable=True),
}
METHOD = JourneyCounts(journey="who", moment="moment", x="x", y="y", cells=SIDE, zones=ZONES, outside="edge")
Town = dict[str, list[Any]]


def town(people: int, *, seed: int = 1, rows: int = 12, pace: float = 15.0) -> Town:
    """Made-up journeys: people walk at random from a place near one of two homes, with rows missing and jumps."""
    random = np.random.default_rng(seed)
    found: Town = {name: [] for name in COLUMNS}
    for person in range(people):
        length = int(random.integers(1, rows + 1))
        start = np.array([20, -30]) if person % 2 else np.array([80, 30])
        places = np.clip(start + random.normal(0, pace, (length, 2)).cumsum(axis=0), [-20, -90], [130, 90])
        found["who"] += [f"p{person}"] * length
        found["moment"] += random.integers(0, 10_000, length).tolist()
        found["x"] += [None if random.random() < 0.05 else float(x) for x in places[:, 0]]
        found["y"] += [round(y) for y in places[:, 1]]
    return found


def table(rows: Town, **options: Any) -> cl.PrivateTable:
    return cl.PrivateTable(rows, COLUMNS, **{"unit": "who", "max_rows": 12, **options})


def fitted(rows: Town, *, spend: Any = 1, budget: Any = None, seed: int = 1, **options: Any) -> Journeys:
    with cl.Session({"town": table(rows)}, budget=budget or cl.PureDP(1000), random=Random.deterministic(seed)) as session:
        return fit_journeys(session, "town", spend=spend, **{"cells": SIDE, "zones": ZONES, "outside": "edge", **options})


def counted(rows: Town, method: JourneyCounts = METHOD) -> dict[str, npt.NDArray[np.int64]]:
    return method.counted(codes_of(rows, COLUMNS), table(rows))


def by_the_definition(rows: Town) -> dict[str, Counter[Any]]:
    """Journey by journey, move by move, in words of the definition."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in METHOD.sizes()}
    read = codes_of(rows, COLUMNS)
    for person in sorted(set(rows["who"])):
        mine = sorted(
            (int(read["moment"][row]), int(read["x"][row]), int(read["y"][row]))
            for row in range(len(rows["who"]))
            if rows["who"][row] == person and rows["x"][row] is not None and rows["y"][row] is not None
        )
        if not mine:
            continue
        stops = [(x * SIDE // 201, (y + 50) * SIDE // 101) for _, x, y in mine]
        path = [stops[0]]
        for (x, y), (to_x, to_y) in pairwise(stops):
            length = max(abs(to_x - x), abs(to_y - y))
            for step in range(1, length + 1):
                share = Fraction(step, length)
                path.append(tuple((at + (to - at) * share + Fraction(1, 2)).__floor__() for at, to in ((x, to_x), (y, to_y))))
        begin, end = path[0], path[-1]
        found["begins"][begin[0] + SIDE * begin[1]] += 1
        found["ends"][end[0] + SIDE * end[1]] += 1
        zones = [at[0] // 2 + ZONES * (at[1] // 2) for at in (begin, end)]
        found["zones"][zones[0] * ZONES**2 + zones[1]] += 1
        detour = len(path) - 1 - max(abs(end[0] - begin[0]), abs(end[1] - begin[1]))
        found["detours"][sum(detour >= edge for edge in (1, 2, 3, 5, 9, 17, 33, 65, 129)) + BINS * (begin != end)] += 1
        for a, b in pairwise(path):
            around = [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)]
            found["moves"][(a[0] + SIDE * a[1]) * 8 + around.index((b[0] - a[0], b[1] - a[1]))] += WHOLE // (len(path) - 1)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_the_definition(seed: int) -> None:
    rows = town(60, seed=seed, pace=(5.0, 15.0, 60.0, 1.0)[seed])
    expected = by_the_definition(rows)
    for name, numbers in counted(rows).items():
        assert {place: number for place, number in enumerate(numbers.tolist()) if number} == dict(expected[name]), name


@pytest.mark.parametrize(
    "rules", [{}, {"outside": "drop"}, {"fastest": Fraction(1, 20)}, {"outside": "drop", "fastest": Fraction(1, 9)}]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_unit_more_moves_each_vector_by_no_more_than_its_noise_hides(seed: int, rules: dict[str, Any]) -> None:
    rows = town(25, seed=seed, rows=40, pace=30)
    method = replace(METHOD, **rules)
    whole = counted(rows, method)
    for person in sorted(set(rows["who"])):
        kept = [row for row, who in enumerate(rows["who"]) if who != person]
        without = counted({name: [values[row] for row in kept] for name, values in rows.items()}, method)
        for name, most in (("zones", 1), ("begins", 1), ("ends", 1), ("detours", 1), ("moves", WHOLE)):
            change = whole[name] - without[name]
            assert (change >= 0).all()
            assert change.sum() <= most
        assert (whole["begins"] - without["begins"]).sum() == (whole["zones"] - without["zones"]).sum()


def test_the_order_of_rows_tells_nothing_even_where_moments_are_the_same() -> None:
    rows = town(30)
    rows["moment"] = [moment // 4_000 for moment in rows["moment"]]
    shuffled = np.random.default_rng(2).permutation(len(rows["who"]))
    other = counted({name: [values[row] for row in shuffled] for name, values in rows.items()})
    assert all(np.array_equal(numbers, other[name]) for name, numbers in counted(rows).items())


@pytest.mark.parametrize("spend", [cl.PureDP("0.7"), cl.ZCDP("0.3"), cl.ApproxDP(1, "1e-6"), cl.ApproxDP(1, 0)])
def test_the_shares_of_all_noise_add_up_to_the_spend(spend: Any) -> None:
    laws = METHOD.laws(spend)
    reach = {name: WHOLE if name == "moves" else 1 for name in METHOD.sizes()}
    for name, law in laws.items():
        assert law.sensitivity >= reach[name]
    if isinstance(spend, cl.PureDP) or (isinstance(spend, cl.ApproxDP) and not spend.delta):
        assert sum((law.guarantee.epsilon for law in laws.values()), Fraction(0)) == spend.epsilon
    else:
        rho = spend.rho if isinstance(spend, cl.ZCDP) else zcdp_within(epsilon=1, delta="1e-6").rho
        assert sum((law.guarantee.rho for law in laws.values()), Fraction(0)) <= rho


def test_what_leaves_is_the_counts_with_noise_of_these_laws() -> None:
    rows = town(40)
    released = METHOD.release(codes_of(rows, COLUMNS), table(rows), cl.PureDP(1), Random.deterministic(5))
    random, exact = Random.deterministic(5), counted(rows)
    assert set(released) == set(METHOD.sizes())
    for name, law in METHOD.laws(cl.PureDP(1)).items():
        assert np.array_equal(released[name], exact[name] + law.sample(METHOD.sizes()[name], random=random))


class Unshared(JourneyCounts):
    """BROKEN: every move of a journey counts W, as if it were the only one."""

    def counted(self, rows: Any, declaration: Any) -> dict[str, npt.NDArray[np.int64]]:
        found = super().counted(rows, declaration)
        return {**found, "moves": found["moves"] * 8}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Unshared, JourneyCounts])
def test_moves_that_are_not_shared_out_are_caught(kind: type[JourneyCounts]) -> None:
    """One journey more, of eight moves along one row of cells."""
    method = kind(journey="who", moment="moment", x="x", y="y", cells=SIDE, zones=ZONES, outside="edge")
    rows: Town = {"who": ["a"] * 4, "moment": [0, 1, 2, 3], "x": [0.0, 100.0, 40.0, 40.0], "y": [0] * 4}
    empty: Town = {name: [] for name in COLUMNS}
    assert counted(rows)["moves"].sum() == WHOLE // 8 * 8
    claim = cl.PureDP(4)
    path = counted(rows)["moves"] > 0

    def on_path(data: Town, n: int, random: Random) -> npt.NDArray[np.float64]:
        exact, law = method.counted(codes_of(data, COLUMNS), table(data))["moves"][path], method.laws(claim)["moves"]
        return (law.sample(n * int(path.sum()), random=random).reshape(n, -1) + exact).clip(0, WHOLE // 8).sum(axis=1)[:, None]

    found = audit(
        on_path,
        rows,
        empty,
        runs=20_000,
        against=cl.PureDP(claim.epsilon * Fraction(3, 8)),
        features={"sum": lambda seen: seen[:, 0]},
        random=Random.deterministic(2),
    )
    assert found.contradicts(cl.PureDP(claim.epsilon * Fraction(3, 8))) == (kind is Unshared)


def test_a_session_is_charged_once_and_what_leaves_says_what_it_cost() -> None:
    with cl.Session({"town": table(town(50))}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
        model = fit_journeys(session, "town", spend="0.5", cells=SIDE, zones=ZONES)
        model.sample(100, random=Random.deterministic(2))
        assert session.spent == model.cost == cl.PureDP("0.5")
    assert model.marked
    assert "MARKED" in repr(model)
    assert "about" in repr(model)
    assert model.trips().shape == (9, 9)
    assert model.margin() == DiscreteLaplace(scale=8).margin("0.95")


@pytest.mark.parametrize(
    ("budget", "spend"),
    [(cl.ZCDP(1), cl.ZCDP("0.5")), (cl.ZCDP(1), "0.5"), (cl.ApproxDP(2, "1e-6"), cl.ApproxDP(1, "1e-7"))],
)
def test_every_kind_of_budget_pays_for_journeys(budget: Any, spend: Any) -> None:
    model = fitted(town(300), spend=spend, budget=budget)
    assert model.cost <= budget
    assert model.margin() == model.noise["zones"].margin("0.95") > 0
    assert abs(model.journeys - counted(town(300))["begins"].sum()) < 6 * (SIDE**2 * model.noise["begins"].variance) ** 0.5
    assert model.sample(20, random=Random.deterministic(1)).num_rows >= 20


@pytest.mark.parametrize(("delta", "charged"), [("1e-6", 0), ("1e-300", 0), ("0.01", Fraction(1, 100))])
def test_a_delta_is_charged_where_it_buys_less_noise(delta: str, charged: Any) -> None:
    spend = METHOD.guarantee(cl.ApproxDP(1, delta), table(town(1)))
    assert (spend.epsilon, spend.delta) == (1, charged)
    widths = [METHOD.laws(each)["moves"].variance for each in (spend, cl.ApproxDP(1, delta), cl.PureDP(1))]
    assert widths[0] == min(widths)


def walks(model: Journeys, n: int) -> list[npt.NDArray[np.int64]]:
    """The cells of each drawn journey."""
    frame = model.sample(n, random=Random.deterministic(4))
    number, step = (np.array(frame[name].tolist()) for name in ("journey", "step"))
    x = (np.array(frame["x"].tolist()) * 2).round().astype(int) * SIDE // 201
    y = (np.array(frame["y"].tolist()) + 50).astype(int) * SIDE // 101
    assert ((x >= 0) & (x < SIDE) & (y >= 0) & (y < SIDE)).all()
    starts = np.flatnonzero(step == 0)
    assert number.tolist() == np.repeat(np.arange(n), np.diff(starts, append=len(step))).tolist()
    assert all(part.tolist() == list(range(len(part))) for part in np.split(step, starts[1:]))
    return np.split(np.stack([x, y], axis=1), starts[1:])


@pytest.mark.parametrize("spend", [1, 900])
def test_drawn_journeys_are_kings_moves_from_end_to_end(spend: int) -> None:
    model = fitted(town(400), spend=spend)
    for walk in walks(model, 300):
        assert len(walk) >= 1
        assert (np.abs(np.diff(walk, axis=0)).max(axis=1, initial=0) <= 1).all()
        assert (np.abs(np.diff(walk, axis=0)).max(axis=1) == 1).all()


def test_without_noise_to_speak_of_ends_lengths_and_visits_are_those_of_the_town() -> None:
    rows = town(3_000, pace=6)
    model, exact = fitted(rows, spend=900), counted(rows)
    assert model.journeys == pytest.approx(exact["begins"].sum(), abs=5)
    assert np.abs(model.trips() - exact["zones"].reshape(9, 9)).max() < 3
    drawn_walks = walks(model, 3_000)
    begins = np.bincount([int(walk[0] @ [1, SIDE]) for walk in drawn_walks], minlength=SIDE**2)
    ends = np.bincount([int(walk[-1] @ [1, SIDE]) for walk in drawn_walks], minlength=SIDE**2)
    total = exact["begins"].sum()
    assert np.abs(begins / 3_000 - exact["begins"] / total).sum() < 0.15
    assert np.abs(ends / 3_000 - exact["ends"] / total).sum() < 0.15
    moves = np.mean([len(walk) - 1 for walk in drawn_walks])
    truth = by_the_definition(rows)
    real = np.mean([place_moves(row) for row in detours(truth)]) + apart(exact)
    assert moves == pytest.approx(real, rel=0.15)


def detours(truth: dict[str, Counter[Any]]) -> list[int]:
    return [place % BINS for place, number in truth["detours"].items() for _ in range(number)]


@pytest.mark.parametrize("spend", [1, 900])
def test_who_stays_and_who_comes_back_are_as_many_as_in_the_town(spend: int) -> None:
    """A third stays in one cell, a third goes somewhere and back, a third goes away: some 1,000 each."""
    rows = town(3_000, pace=40)
    place = np.random.default_rng(1).integers(0, 3, 3_000)
    who, moment = (np.asarray(rows[name]) for name in ("who", "moment"))
    for person, kind in zip(dict.fromkeys(who.tolist()), place.tolist(), strict=False):
        mine = np.flatnonzero(who == person)
        first, last = mine[np.argmin(moment[mine])], mine[np.argmax(moment[mine])]
        for axis in ("x", "y"):
            for at in mine.tolist() if kind == 0 else [last] if kind == 1 else []:
                rows[axis][at] = rows[axis][first]
    exact = counted(rows)["detours"]
    model = fitted(rows, spend=spend)
    drawn_walks = walks(model, 6_000)
    closed = np.array([bool((walk[0] == walk[-1]).all()) for walk in drawn_walks])
    stays = np.array([len(walk) == 1 for walk in drawn_walks])
    assert closed.mean() == pytest.approx(exact[:BINS].sum() / exact.sum(), abs=0.04)
    assert stays.mean() == pytest.approx(exact[0] / exact.sum(), abs=0.04)
    assert 0.2 < stays.mean() < closed.mean() - 0.1


def test_a_model_of_an_older_version_draws_as_it_did() -> None:
    """It has one row of detours, of all journeys together."""
    model = fitted(town(400), spend=900)
    told = json.loads(model.to_json())
    both = np.array(told["released"]["detours"])
    told["released"]["detours"] = (both[:BINS] + both[BINS:]).tolist()
    older = journeys_from_json(json.dumps(told))
    assert isinstance(older, Journeys)
    assert older.detours.shape == (1, BINS)
    assert len(walks(older, 300)) == 300
    assert json.loads(older.to_json()) == told


def place_moves(place: int) -> float:
    edges = [0, 1, 2, 3, 5, 9, 17, 33, 65, 129, 257]
    return (edges[place] + edges[place + 1] - 1) / 2


def apart(exact: dict[str, npt.NDArray[np.int64]]) -> float:
    """The fewest moves between the ends, on average, where ends are spread over their zones as begins and ends are."""
    zone = np.arange(9)
    centre = np.stack([zone % 3, zone // 3], axis=1) * 2
    distance = np.abs(centre[:, None] - centre[None]).max(axis=2)
    trips = exact["zones"].reshape(9, 9)
    return float((trips * distance).sum() / trips.sum()) + 0.6


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("zones", [1, "cells"])
def test_small_grids(cells: int, zones: Any) -> None:
    model = fitted(town(100), spend=2, cells=cells, zones=cells if zones == "cells" else zones)
    frame = model.sample(200, random=Random.deterministic(1))
    assert len(set(frame["journey"].tolist())) == 200
    assert all(0 <= x <= 100 for x in frame["x"].tolist())


@pytest.mark.parametrize("rows", [town(0), {**town(0), "who": ["a"], "moment": [1], "x": [float("nan")], "y": [1]}, town(1)])
def test_no_rows_rows_without_a_place_and_one_person_are_released_like_any_other(rows: Town) -> None:
    model = fitted(rows, spend="0.1")
    assert {name: len(numbers) for name, numbers in model.released.items()} == METHOD.sizes()
    assert len(set(model.sample(50, random=Random.deterministic(1))["journey"].tolist())) == 50
    assert model.sample(0).num_rows == 0
    for numbers in model.released.values():
        numbers[:] = -5
    assert model.journeys == 0
    assert model.sample().num_rows == 0
    assert Journeys(**{name: getattr(model, name) for name in ("method", "domains", "released", "cost")}).sample(5).num_rows >= 5


def test_rows_beyond_the_cap_and_places_outside_the_bounds_count_as_declared() -> None:
    rows: Town = {"who": ["a"] * 30, "moment": list(range(30)), "x": [1e9] * 30, "y": [-1_000] * 30}
    model = fitted(rows, spend=1000)
    assert model.released["begins"][SIDE - 1] == pytest.approx(1, abs=1)
    assert int(np.argmax(model.released["begins"])) == SIDE - 1
    assert np.abs(fitted(rows, spend=1000, outside="drop").released["begins"]).max() <= 1


@pytest.mark.parametrize("n", [-1, 1.5, True, "many", 10**9])
def test_a_number_of_journeys_that_is_none_is_refused(n: Any) -> None:
    with pytest.raises(InvalidParameter, match="number of journeys"):
        fitted(town(5)).sample(n)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"cells": 0}, InvalidParameter),
        ({"cells": 33}, InvalidParameter),
        ({"cells": 6, "zones": 4}, InvalidParameter),
        ({"zones": True}, InvalidParameter),
        ({"x": "y"}, InvalidParameter),
        ({"x": "side"}, InvalidParameter),
        ({"x": "wide"}, InvalidParameter),
        ({"x": "Step"}, InvalidParameter),
        ({"y": "Journey"}, InvalidParameter),
        ({"x": "who"}, MissingBound),
        ({"x": "height"}, UnknownColumn),
        ({"spend": "1e-30"}, InvalidParameter),
    ],
)
def test_what_is_asked_wrongly_is_refused_and_costs_nothing(wrong: dict[str, Any], error: type[Exception]) -> None:
    more = {"side": cl.Integer(0, 3), "wide": cl.Integer(-(2**60), 2**60)}  # cells of the second would pass 64 bits
    more |= dict.fromkeys(("Step", "Journey"), cl.Integer(-90, 90))  # as drawn rows call columns of their own
    rows = {**town(5), **dict.fromkeys(more, town(5)["y"])}
    sides = cl.PrivateTable(rows, {**COLUMNS, **more}, unit="who", max_rows=12)
    with cl.Session({"town": sides}, budget=cl.PureDP(1)) as session:
        with pytest.raises(error):
            fit_journeys(session, "town", **{"spend": 1, "cells": SIDE, "zones": ZONES, **wrong})
        assert session.spent == cl.PureDP(0)


def test_a_unit_whose_names_might_be_one_is_refused() -> None:
    """Numbers beyond a bound count as the bound: two people would be one journey, and one of them would change the other's."""
    columns = {**COLUMNS, "who": cl.Integer(0, 3)}
    rows = {**town(5), "who": [int(who[1:]) for who in town(5)["who"]]}
    unnamed = cl.PrivateTable(town(5), {name: COLUMNS[name] for name in ("moment", "x", "y")}, unit="who", max_rows=12)
    alone = cl.PrivateTable(town(5), COLUMNS)
    numbered = cl.PrivateTable(rows, columns, unit="who", max_rows=12)
    for wrong in (numbered, unnamed, alone):
        with cl.Session({"town": wrong}, budget=cl.PureDP(1)) as session, pytest.raises(MissingBound, match="column of text"):
            fit_journeys(session, "town", spend=1)


def test_a_failure_inside_says_nothing_and_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, rows: Any, declaration: Any) -> Any:
        raise ValueError(f"the first is {rows['who'][0]}")

    monkeypatch.setattr(JourneyCounts, "counted", fails)
    with cl.Session({"town": table(town(5))}, budget=cl.PureDP(1)) as session:
        with pytest.raises(EngineError) as refusal:
            fit_journeys(session, "town", spend=1, cells=SIDE, zones=ZONES)
        assert "p0" not in str(refusal.value)
        assert session.spent == cl.PureDP(1)


def test_the_nearest_numbers_from_zero_on_with_a_sum() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        noisy, total = random.normal(0, 10, 20), float(random.uniform(0.1, 100))
        found = above_zero(noisy, total)
        assert found.sum() == pytest.approx(total)
        assert (found >= 0).all()
        lowered = (noisy - found)[found > 0]
        assert lowered == pytest.approx(lowered[0])
        assert (noisy[found == 0] <= lowered[0] + 1e-9).all()


def test_places_are_drawn_by_their_weights_and_never_one_without() -> None:
    found = np.bincount(drawn(np.array([0.0, 3.0, 0.0, 1.0, 0.0]), 40_000, Random.deterministic(1)), minlength=5)
    assert found[[0, 2, 4]].sum() == 0
    assert found[1] / 40_000 == pytest.approx(0.75, abs=0.012)


def test_a_walk_that_is_led_has_the_law_of_walks_that_happen_to_end_there() -> None:
    """By whole enumeration: walks of three moves on four cells, from 0 to 3, against drawn ones."""
    model = fitted(town(200), spend=50, cells=2, zones=1)
    around, expected = neighbours(2), Counter[tuple[int, ...]]()
    for path in np.ndindex(8, 8, 8):
        cells, chance = [0], 1.0
        for way in path:
            chance *= model.moves[cells[-1], way] if around[cells[-1], way] >= 0 else 0.0
            cells.append(int(around[cells[-1], way]))
        if chance and cells[-1] == 3:
            expected[tuple(cells)] += chance
    n = 40_000
    walker, _, cell = model._walked(np.zeros(n, int), np.full(n, 3), np.full(n, 2), Random.deterministic(3))
    seen = Counter(map(tuple, cell.reshape(n, 4).tolist()))
    assert (np.bincount(walker) == 4).all()
    assert set(seen) <= set(expected)
    total = sum(expected.values())
    for path_cells, chance in expected.items():
        assert seen[path_cells] / n == pytest.approx(chance / total, abs=0.015)


def test_the_shares_are_a_whole() -> None:
    assert sum(module._SHARES.values()) == 1


def test_who_comes_back_lives_in_some_zones_alone() -> None:
    """A hundred stay in a cell of their own zone, a hundred go from one cell of another zone to the next: half come back."""
    stays = [(x, y) for x, y in [(5.0, -45)] * 100]
    rows: Town = {
        "who": [f"s{n}" for n in range(100)],
        "moment": [0] * 100,
        "x": [x for x, _ in stays],
        "y": [y for _, y in stays],
    }
    for name, ends in (("there", [(80.0, 40), (95.0, 40)]), ("back", [(95.0, 40), (80.0, 40)])):
        for person in range(50):
            rows["who"] += [f"{name}{person}"] * 2
            rows["moment"] += [0, 1]
            rows["x"] += [x for x, _ in ends]
            rows["y"] += [y for _, y in ends]
    drawn_walks = walks(fitted(rows, spend=900), 2_000)
    assert np.mean([bool((walk[0] == walk[-1]).all()) for walk in drawn_walks]) == pytest.approx(0.5, abs=0.06)
