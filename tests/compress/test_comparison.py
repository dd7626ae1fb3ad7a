"""Use against attackers: the numbers are those of models that anybody can train, and hiding by accident counts for nothing."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.compress import (
    DCA,
    LDA,
    PCA,
    RUCA,
    MultiplicativeNoise,
    RandomProjection,
    Rounded,
    TradeOff,
    drawn_faces,
    trade_off,
)
from cloister.compress.attackers import distance, explained, labels_read, linked, rows_rebuilt, scaled
from cloister.compress.drawing import normal
from cloister.compress.from_tables import publish_projections
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random

FACES = drawn_faces(12, 6)


@pytest.fixture(scope="module")
def found() -> TradeOff:
    made = {"PCA": PCA(), "DCA": DCA(), "one bit": Rounded(DCA(), levels=2)}
    return trade_off(FACES.pixels, FACES.glasses, FACES.person, made, dimensions=[1], persons=FACES.person, splits=1)


def test_what_is_aimed_at_stays_and_the_rest_is_lost(found: TradeOff) -> None:
    pca, dca, bit = found.points
    assert dca.utility > 0.9 > pca.utility + 0.1
    assert bit.utility > 0.9
    assert bit.secret <= 2 / 12 + 1e-9, "one bit tells two people apart, whatever the attacker"
    assert pca.rebuilt < dca.rebuilt <= found.mean_row * 1.05
    assert pca.secret_of_strangers is not None
    assert (found.utility_guess, found.secret_guess) == (0.5, 1 / 12)


def test_strangers_stand_beside_known_people_and_earlier_files_are_read(found: TradeOff) -> None:
    """Of few pictures a projection learns the people: their rows are rebuilt better than those of anybody else."""
    for point, line in zip(found.points, found.text().splitlines()[1:], strict=False):
        assert point.utility_of_strangers is not None
        assert point.rebuilt_of_strangers is not None
        assert f"{point.utility:.3f}{point.utility_of_strangers:>11.3f}" in line
        assert f"{point.rebuilt:.2f}{point.rebuilt_of_strangers:>11.2f}" in line
    assert found.points[0].rebuilt < found.points[0].rebuilt_of_strangers  # type: ignore[operator]
    earlier = json.loads(found.to_json())
    for each in earlier["points"]:
        del each["rebuilt_of_strangers"]
    read = TradeOff.from_json(json.dumps(earlier))
    assert [each.rebuilt_of_strangers for each in read.points] == [None] * 3
    assert TradeOff.from_json(found.to_json()) == found


def test_attackers_do_better_than_the_published_measure(found: TradeOff) -> None:
    """A projection's own inverse knows nothing of rows: it looks worse than whoever learns. It is one of the attackers."""
    for point in found.points:
        assert point.published is not None
        assert point.rebuilt < point.published


def test_a_turned_table_is_turned_back() -> None:
    """More dimensions than known rows show: whoever learns sees only those, and the inverse sees all."""
    X = normal(40 * 70, Random.deterministic(5)).reshape(40, 70)
    [turned] = trade_off(X, np.arange(40) % 2, np.arange(40) % 4 // 2, {"turn": PCA()}, dimensions=[70], splits=1).points
    assert (turned.rebuilt_by, turned.rebuilt < 1e-9) == ("inverse", True)


def test_a_rare_secret_is_read_as_well_as_a_rare_use() -> None:
    """Attackers are judged with each class alike, so they learn with each class alike; the honest reader is one of them."""
    rare = np.arange(300) % 11 == 0
    X = normal(300 * 6, Random.deterministic(6)).reshape(300, 6) + 1.3 * rare[:, None]
    [point] = trade_off(X, rare, rare, {"PCA": PCA()}, dimensions=[6], splits=2).points
    assert point.secret >= point.utility > 0.7


@pytest.mark.parametrize("named", ["fractions", "texts", "objects", "dates"])
def test_labels_are_read_whatever_they_are_called(named: str) -> None:
    codes = np.arange(80) % 4
    X = np.eye(4)[codes] + 0.05 * normal(320, Random.deterministic(7)).reshape(80, 4)
    days = np.datetime64("2020-01-01") + codes
    labels = {"fractions": codes + 0.5, "texts": codes.astype(str), "objects": np.array([(), 1, "x", 2.5], dtype=object)[codes]}
    [point] = trade_off(X, codes % 2, labels.get(named, days), {"PCA": PCA()}, dimensions=[3], splits=1).points
    assert point.secret > 0.95


def test_strangers_are_linked_whatever_they_are_called_and_read_where_they_can_be() -> None:
    people = np.repeat(np.arange(20), 4)
    X = np.repeat(normal(60, Random.deterministic(8)).reshape(20, 3), 4, axis=0) + 1e-4 * normal(
        240, Random.deterministic(9)
    ).reshape(80, 3)
    how: dict[str, Any] = {"projections": {"PCA": PCA()}, "dimensions": [3], "splits": 1, "persons": people}
    named = trade_off(X, np.arange(80) % 2, [f"p{each}" for each in people], **how)
    assert (named.points[0].secret_of_strangers, named.strangers_guess) == (1.0, 1 / 6)
    families = trade_off(X, np.arange(80) % 2, people // 2, **how)
    assert families.strangers_guess == 1 / 2, "of the strangers' families two are those of known people"
    halves = trade_off(X, np.arange(80) % 2, people % 2, **how)  # whoever the six strangers are, both halves are known
    assert 0 <= json.loads(halves.to_json())["points"][0]["secret_of_strangers"] <= 1
    alone = trade_off(X, np.arange(80) % 2, np.where(np.arange(80) == 0, 20, people), **how)  # nobody shares a class: none is met
    assert alone.strangers_guess is None
    assert json.loads(alone.to_json())["points"][0]["secret_of_strangers"] is None


def test_guessing_is_right_as_often_as_there_are_classes_to_be_judged() -> None:
    rows = normal(200 * 3, Random.deterministic(3)).reshape(200, 3)
    rare, secret = np.arange(200) < 2, np.arange(200) // 2 % 2  # of the rare class no row is judged
    found = trade_off(rows, rare, secret, {"PCA": PCA()}, dimensions=[1], splits=1, test=0.05)
    assert (found.utility_guess, found.secret_guess) == (1.0, 0.5)


def test_as_text_json_and_picture(found: TradeOff) -> None:
    told = json.loads(found.to_json())
    assert TradeOff.from_json(found.to_json()) == found
    assert told["mark"].startswith("not differentially private; attackers tried: nearest neighbour")
    assert [each["method"] for each in told["points"]] == ["PCA", "DCA", "one bit"]
    assert "guessing" in repr(found)
    assert repr(found).endswith(found.mark)
    reason = "knows nothing of rows, so it says nothing of an attacker who has seen some"
    assert reason in found.text()  # beside the number, wherever it is printed
    assert reason in told["published_means"]
    before = {name: each for name, each in told.items() if name != "published_means"}
    assert TradeOff.from_json(json.dumps(before)) == found  # a release that was kept before the reason stood in it
    assert "vega-lite" in found.chart().to_dict()["$schema"]


def test_directions_that_are_empty_for_known_rows_confuse_no_attacker() -> None:
    """Scaled by next to nothing they would drown the others: the projection would look safe, and be open."""
    z = normal(80, Random.deterministic(1)).reshape(80, 1)
    labels = z[:, 0] > 0
    known, seen = np.column_stack([z, z * 1e-16]), np.column_stack([z, z * 0 + 3.0])
    assert min(labels_read(known, labels, seen, labels, 0).values()) > 0.9
    assert scaled(known, seen)[1].shape == (80, 1)
    assert scaled(known[:, 1:] * 0, seen[:, 1:])[0].shape == (80, 1)
    assert min(distance(guess, z) for guess in rows_rebuilt(known, z, seen, 0).values()) < 0.2


def test_the_columns_that_an_attacker_gets_back() -> None:
    """Principal components of two columns that vary much: those are rebuilt, and the third is not."""
    rows = normal(600, Random.deterministic(4)).reshape(200, 3) * [10, 5, 0.1]
    [point] = trade_off(rows, rows[:, 0] > 0, rows[:, 1] > 0, {"PCA": PCA()}, dimensions=[2], splits=1).points
    assert point.columns[0] > 0.95 and point.columns[1] > 0.95 and point.columns[2] < 0.1  # noqa: PT018
    assert explained(np.zeros((4, 1)), np.ones((4, 1))).tolist() == [0.0]  # of a column that never varies nothing is learned


def test_two_rows_of_a_stranger_are_linked_where_they_are_alike() -> None:
    people = np.repeat(np.arange(20), 3)
    z = np.repeat(normal(40, Random.deterministic(2)).reshape(20, 2), 3, axis=0) + 1e-6 * normal(
        120, Random.deterministic(3)
    ).reshape(60, 2)
    assert set(linked(z[:30], people[:30], z[30:], people[30:]).values()) == {1.0}
    assert linked(z[:30], people[:30], z[30:31], people[30:31]) == {}


def test_a_secret_that_is_no_identity() -> None:
    pixels = FACES.pixels[:, ::7]
    found = trade_off(pixels, FACES.glasses, FACES.person % 2, {"PCA": PCA()}, dimensions=[2], splits=1)
    assert found.points[0].secret_of_strangers is None
    told: list[str] = []
    made = {"random": RandomProjection(random_state=1)}
    persons = trade_off(
        pixels, FACES.glasses, FACES.person % 2, made, dimensions=[3], persons=FACES.person, splits=1, progress=told.append
    )
    assert persons.points[0].secret_of_strangers is not None
    assert told == ["random, 3 dimensions"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"X": np.zeros((0, 3))}, "finite numbers"),
        ({"X": np.full((72, 3), np.nan)}, "finite numbers"),
        ({"X": [["x"]]}, "finite numbers"),
        ({"X": np.full((72, 3), 50.0)}, "all alike"),
        ({"utility": np.zeros(72)}, "one class"),
        ({"private": np.array([np.nan, 1.0] * 36)}, "missing"),
        ({"private": np.array([None, 1] * 36)}, "missing"),
        ({"persons": np.arange(72)}, "too few rows"),
        ({"test": 0.001}, "too few rows"),
        ({"test": "x"}, "share of the rows"),
        ({"dimensions": 1}, "list of whole numbers"),
        ({"projections": {"noise": MultiplicativeNoise()}}, "no number of dimensions"),
        ({"projections": []}, "by name"),
        ({"private": np.zeros(3)}, "one label for each of 72 rows"),
        ({"splits": 0}, "1 or more"),
        ({"test": 1.0}, "share of the rows"),
        ({"dimensions": [10_000]}, "from 1 to the 576 columns"),
    ],
)
def test_bad_input(changed: dict[str, Any], why: str) -> None:
    how: dict[str, Any] = {
        "X": FACES.pixels,
        "utility": FACES.glasses,
        "private": FACES.person,
        "projections": {"PCA": PCA()},
        "dimensions": [1],
    }
    with pytest.raises(InvalidParameter, match=why):
        trade_off(**{**how, **changed})


def test_projections_of_people_with_several_rows_need_no_declared_unit() -> None:
    rows = {
        "age": [*range(60)],
        "ill": [0, 0, 1, 1] * 15,
        "sex": [0, 0, 0, 0, 1, 1] * 10,
        "who": [each // 2 for each in range(60)],
    }
    kinds = {"age": cl.Integer(0, 60), "ill": cl.Category([0, 1]), "sex": cl.Category([0, 1])}
    people = cl.PrivateTable(rows, kinds, unit="who", max_rows=2)
    how: dict[str, Any] = {"columns": ["age"], "utility": "ill", "private": "sex", "dimensions": [1]}
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        found = publish_projections(session, "people", {"PCA": PCA()}, **how)
    assert len(found.projections) == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"dimensions": [99]}, "from 1 to 1"),
        ({"dimensions": []}, "dimensions="),
        ({"columns": []}, "names no column"),
        ({"projections": {}}, "projections="),
        ({"projections": {"LDA": LDA()}, "columns": ["age", "pay"], "dimensions": [2]}, "2 classes have 1 directions"),
        ({"projections": {"Rounded": Rounded(PCA())}}, "not a linear projection"),
        ({"projections": {"RUCA": RUCA(rho_p=-1)}}, "rho_p=-1 is invalid"),
        ({"utility": "one"}, "a label has two values or more"),
        ({"table": "nope"}, "'nope' is unknown"),
    ],
)
def test_what_needs_no_row_is_refused_before_the_door(changed: dict[str, Any], why: str) -> None:
    rows = {"age": [*range(60)], "pay": [*range(60)], "ill": [0, 0, 1, 1] * 15, "sex": [0, 1] * 30, "one": [1] * 60}
    kinds: dict[str, Any] = {name: cl.Integer(0, 60) for name in ("age", "pay")}
    kinds |= {"ill": cl.Category([0, 1]), "sex": cl.Category([0, 1]), "one": cl.Category([1])}
    how: dict[str, Any] = {"columns": ["age"], "utility": "ill", "private": "sex", "dimensions": [1]}
    with cl.Session({"people": cl.PrivateTable(rows, kinds)}, budget=cl.PureDP(1)) as session:
        with pytest.raises(CloisterError, match=why):
            publish_projections(session, **{"table": "people", "projections": {"PCA": PCA()}, **how, **changed})
        assert not session.ledger.charges("people")


def test_days_and_truth_values_are_projected_as_numbers() -> None:
    first = datetime.date(2026, 1, 1)
    rows = {
        "day": [first + datetime.timedelta(days=each) for each in range(60)],
        "smoker": [each % 3 == 0 for each in range(60)],
        "ill": [0, 0, 1, 1] * 15,
        "sex": [0, 0, 0, 0, 1, 1] * 10,
    }
    kinds = {
        "day": cl.Date("2026-01-01", "2026-03-01"),
        "smoker": cl.Boolean(),
        "ill": cl.Category([0, 1]),
        "sex": cl.Category([0, 1]),
    }
    how: dict[str, Any] = {"columns": ["day", "smoker"], "utility": "ill", "private": "sex", "dimensions": [1]}
    with cl.Session({"people": cl.PrivateTable(rows, kinds)}, budget=cl.PureDP(1)) as session:
        found = publish_projections(session, "people", {"PCA": PCA()}, **how)
    assert found.columns == ({"name": "day", "low": 20454.0, "high": 20513.0}, {"name": "smoker", "low": 0.0, "high": 1.0})
    np.testing.assert_allclose(found.projections[0]["mean"], [0.0, -1 / 3], atol=1e-9)
