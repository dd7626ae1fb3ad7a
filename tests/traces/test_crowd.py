"""Unique in the crowd: against every set of places, on traces and on journeys drawn from their counts."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.traces import fit_journeys, unique_in_the_crowd


def traces(people: int, *, cells: int = 12, seed: int = 1) -> tuple[list[str], list[list[int]]]:
    random = np.random.default_rng(seed)
    who, places = [], []
    for person in range(people):
        for moment in range(int(random.integers(3, 9))):
            who.append(f"p{person}")
            places.append([int(random.integers(0, cells)), moment // 4])
    return who, places


def expected(real: tuple[Any, Any], other: tuple[Any, Any], known: int) -> tuple[float, float]:
    """Over every journey and every set of its places, each as probable as it is drawn."""

    def held(data: tuple[Any, Any]) -> dict[str, set[tuple[int, ...]]]:
        found: dict[str, set[tuple[int, ...]]] = {}
        for name, place in zip(*data, strict=True):
            found.setdefault(name, set()).add(tuple(place))
        return found

    alone, nobody, journeys = 0.0, 0.0, [each for each in held(real).values() if len(each) >= known]
    others = list(held(other).values())
    for journey in journeys:
        sets = list(combinations(sorted(journey), known))
        matches = [sum(set(chosen) <= each for each in others) for chosen in sets]
        alone += sum(match == 1 for match in matches) / len(sets) / len(journeys)
        nobody += sum(match == 0 for match in matches) / len(sets) / len(journeys)
    return alone, nobody


@pytest.mark.parametrize("known", [1, 2, 3])
@pytest.mark.parametrize("itself", [True, False])
def test_shares_are_those_of_every_set_of_places(known: int, itself: bool) -> None:
    real = traces(60)
    other = real if itself else traces(40, seed=2)
    crowd = unique_in_the_crowd(
        *real, released=None if itself else other, known=known, tries=4_000, random=Random.deterministic(1)
    )
    alone, nobody = expected(real, other, known)
    assert crowd.alone == pytest.approx(alone, abs=0.04)
    assert crowd.nobody == pytest.approx(nobody, abs=0.04)
    assert not itself or crowd.nobody == 0


def test_more_places_single_out_more() -> None:
    shares = [unique_in_the_crowd(*traces(200), known=known, random=Random.deterministic(1)).alone for known in (1, 2, 3, 4)]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert shares[3] > 0.7


def test_synthetic_journeys_single_out_no_more_with_a_person_than_without() -> None:
    """A person who goes where nobody goes: four places of theirs single them out in the traces, and nobody in the release."""
    random = np.random.default_rng(1)
    x = np.clip(20 + random.normal(0, 4, (400, 6)).cumsum(axis=1), 0, 40)
    rows = {"who": np.repeat(np.arange(400), 6).astype(str).tolist(), "moment": list(range(6)) * 400, "x": x.ravel().tolist()}
    rows["y"] = [5.0] * 2400
    rows["who"] += ["alone"] * 6
    rows["moment"] += list(range(6))
    rows["x"] += [60.0, 70.0, 80.0, 90.0, 90.0, 90.0]
    rows["y"] += [95.0, 95.0, 95.0, 95.0, 85.0, 75.0]
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 9), **{name: cl.Real(0, 100, step=1) for name in ("x", "y")}}
    people = cl.PrivateTable(rows, columns, unit="who", max_rows=6)
    with cl.Session({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as session:
        frame = fit_journeys(session, "people", spend=1, cells=10, zones=5).sample(401, random=Random.deterministic(2))

    def cells(x: Any, y: Any) -> Any:
        return np.stack([np.minimum(np.array(axis) // 10.1, 9) for axis in (x, y)], axis=1)

    person = [row for row, name in enumerate(rows["who"]) if name == "alone"]
    mine = cells([rows["x"][row] for row in person], [rows["y"][row] for row in person])
    released = frame["journey"].tolist(), cells(frame["x"].tolist(), frame["y"].tolist())
    real = rows["who"], cells(rows["x"], rows["y"])
    among = {"known": 4, "tries": 100, "random": Random.deterministic(3)}
    assert unique_in_the_crowd(["alone"] * 6, mine, released=real, **among).alone == 1
    assert unique_in_the_crowd(["alone"] * 6, mine, released=released, **among).alone < 0.5


def test_names_of_several_kinds_are_names() -> None:
    assert unique_in_the_crowd([None, "a", 3], [[1], [2], [3]], known=1, tries=20).alone == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"places": [[1], [np.nan]]},
        {"places": [1, 2]},
        {"places": [["a"], ["b"]]},
        {"places": [[1]]},
        {"who": [], "places": np.empty((0, 2))},
        {"known": 0},
        {"known": 2},
        {"known": 1.5},
        {"tries": 0},
        {"released": (["x"], [[1, 2]])},
    ],
)
def test_what_cannot_be_compared_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        unique_in_the_crowd(**{"who": ["a", "b"], "places": [[1], [2]], "known": 1, **wrong})
