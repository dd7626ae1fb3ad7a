"""The leakage score: published attacks, on columns whose answers are known, and on generated hospitals."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.noise import Random as Chance
from cloister.vault import Equal, Keys, Random, Range, Sum, Vault, Words, leakage
from cloister.vault.attacks import _by_access, _by_volume, _in_order

TOWNS = ["Basel"] * 60 + ["Bern"] * 30 + ["Chur"] * 10


@pytest.mark.parametrize("field", [Random(), Sum()])
def test_on_a_field_that_is_only_read_back_nobody_does_better_than_guessing(field: cl.vault.Field) -> None:
    for column in ([1, 1, 2, 3], [7], [None, None, 4], list(range(50))):
        found = leakage(column, field)
        assert found.worst == found.guess == max(map(column.count, column)) / len(column)


def test_lengths_that_differ_are_counted() -> None:
    column = ["no"] * 60 + ["a diagnosis that takes more than thirty-two bytes"] * 40
    assert leakage(column, Random()).worst == 1.0
    assert leakage(column, Random()).guess == 0.6
    assert leakage(column, Random(), auxiliary=["other"]).worst == 0.0


def test_one_length_for_all_leaves_the_guess_alone_and_several_are_said() -> None:
    """Texts of 59 lengths, in 15 padded ones; with a fixed length, the score is the majority guess on every such field."""
    column = ["a" * length for length in range(1, 60)] * 3
    seen = leakage(column, Random())
    assert seen.worst > 3 * seen.guess
    assert seen.lengths > 1
    assert f"{seen.lengths} padded lengths show at any time; pad=62 would leave one" in str(seen)
    for field in (Random(pad=62), Random(pad=62) | Sum(), Random(pad=1000)):
        if not field.total:
            found = leakage(column, field)
            assert (found.worst, found.lengths) == (found.guess, 1)
            assert "padded lengths show" not in str(found)
    with pytest.raises(InvalidParameter, match="pad= has room"):
        leakage(column, Random(pad=61))


def test_words_that_are_common_are_named_by_their_number() -> None:
    texts = ["pain"] * 30 + ["pain fever"] * 20 + ["pain fever cough"] * 10
    told = {each.name: each.recovered for each in leakage(texts, Words(3)).attacks}
    assert told["words"] == 1.0
    other = {each.name: each.recovered for each in leakage(texts, Words(3), auxiliary=["fever"] * 3 + ["pain"] * 2).attacks}
    assert other["words"] == 0.0


def test_the_volumes_of_all_ranges_are_those_of_few_columns() -> None:
    """The counts come back from the numbers of records alone, or others that no server could tell from them."""
    chance = Chance.deterministic(11)
    exact = 0
    for size in (2, 5, 12, 40):
        for _ in range(5):
            counts = np.asarray(chance.below(1_000, size), dtype=np.int64)
            counts[0] += 1_000
            found = _by_volume(counts, counts / counts.sum())
            assert found is not None
            volumes = [
                sorted(each[first:last].sum() for first in range(size) for last in range(first + 1, size + 1))
                for each in (counts, found)
            ]
            assert volumes[0] == volumes[1]
            exact += found.tolist() == counts.tolist()
    assert exact >= 15, "two columns with the same volumes are rare"
    ages = [age for age in range(30) for _ in range(1 + age * age % 17)]
    told = {each.name: each.recovered for each in leakage(ages, Range(0, 29)).attacks}
    assert told["volume"] == 1.0
    assert "volume" not in {each.name for each in leakage(ages, Range(0, 29), ranges=50).attacks}


def test_frequencies_find_what_is_common_and_only_chance_tells_equals_apart() -> None:
    assert leakage(TOWNS, Equal()).worst == 1.0
    alike = leakage([f"town {number}" for number in range(400)], Equal())
    assert alike.worst < 0.05  # one of 400 is right on average; more than 20 happens less than once in 1e18
    assert leakage(TOWNS, Equal(), auxiliary={"Basel": 0.5, "Bern": 0.3, "Chur": 0.2}).worst == 1.0
    assert leakage(TOWNS, Equal(), auxiliary={"Chur": 0.5, "Bern": 0.3, "Basel": 0.2}).worst == 0.3
    assert leakage(TOWNS, Equal(), auxiliary=["Genf"]).worst == 0.0


def test_the_order_is_matched_as_every_other_order_would_be_worse() -> None:
    """The dynamic programme against all choices of places."""
    random = Chance.deterministic(3)
    for _ in range(20):
        counts, public = np.asarray(random.below(20, 3)) + 1, np.asarray(random.below(20, 6)) + 1.0
        public /= public.sum()
        cost, places = _in_order(counts, public)
        share = counts / counts.sum()
        tried = {
            chosen: float(((share - public[list(chosen)]) ** 2 + (np.cumsum(share) - np.cumsum(public)[list(chosen)]) ** 2).sum())
            for chosen in combinations(range(6), 3)
        }
        assert cost == pytest.approx(min(tried.values()))
        assert tried[tuple(places.tolist())] == pytest.approx(cost)


def test_a_column_that_has_every_value_is_sorted_out_and_all_ranges_tell_everything() -> None:
    dense = [age for age in range(21) for _ in range(1 + age % 5)]
    attacks = {each.name: each.recovered for each in leakage(dense, Range(0, 20)).attacks}
    assert attacks["cumulative"] == attacks["access pattern"] == 1.0
    sparse = [0, 3, 3, 17, None]
    assert leakage(sparse, Range(0, 20)).worst == 1.0
    assert leakage([None, None], Range(0, 20)).worst == 1.0


def test_more_ranges_tell_more() -> None:
    column = [int(each) for each in Chance.deterministic(5).below(40, 600)]
    shares = [
        {each.name: each.recovered for each in leakage(column, Range(0, 39), ranges=number).attacks}["access pattern"]
        for number in (10, 1_000, 100_000)
    ]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.8
    held = np.arange(40)
    told, saw = _by_access(held, 40, 100_000, Chance.deterministic(2))
    assert min(np.abs(told - held).max(), np.abs(39 - told - held).max()) <= 2
    assert saw == "100,000 ranges were asked"


def hospital(chance: Chance, *, patients: int) -> dict[str, list[int]]:
    """Columns as discharge records have them: their distributions are those of a country, each hospital a draw."""

    def drawn(weights: list[float]) -> list[int]:
        ends = np.cumsum(np.array(weights) / sum(weights))
        return np.searchsorted(ends, chance.uniform(patients) * (1 - 1e-12), side="right").tolist()

    return {
        "sex": drawn([0.44, 0.56]),
        "race": drawn([0.62, 0.16, 0.12, 0.05, 0.03, 0.02]),
        "mortality risk": drawn([0.45, 0.27, 0.19, 0.09]),
        "admission month": drawn([1 + 0.01 * month for month in range(12)]),
        "severity": drawn([0.20, 0.36, 0.31, 0.13]),
    }


def test_the_published_recoveries_have_the_same_shape_on_generated_hospitals() -> None:
    """Naveed et al. 2015: of 200 hospitals, sorted columns fall for 80 % of the records in nearly all; without the order, columns
    of unequal frequencies fall as well, and those of nearly equal ones do not."""
    chance = Chance.deterministic(200)
    country = {name: Counter(column) for name, column in hospital(chance, patients=200_000).items()}
    sizes = [200 + int(each) for each in chance.below(1000, 40)]
    equal: dict[str, list[float]] = {}
    order: dict[str, list[float]] = {}
    for size in sizes:
        for name, column in hospital(chance, patients=size).items():
            equal.setdefault(name, []).append(leakage(column, Equal(), auxiliary=country[name]).worst)
            spread = Range(0, max(country[name]))
            told = {each.name: each.recovered for each in leakage(column, spread, auxiliary=country[name]).attacks}
            order.setdefault(name, []).append(told["cumulative"])
    for name in ("mortality risk", "admission month", "severity"):
        assert np.mean(np.array(order[name]) > 0.8) > 0.7, name  # the direction is a guess where months are nearly alike
    for name in ("sex", "race", "mortality risk"):
        assert np.mean(np.array(equal[name]) > 0.6) > 0.9, name
    assert np.median(equal["admission month"]) < 0.5


def test_a_collection_scores_its_own_columns(tmp_path: Path) -> None:
    with Vault(f"sqlite:///{tmp_path}/sealed.db", Keys.generate(tmp_path / "owner.keys")) as store:
        people = store.collection("people", {"town": Random(), "age": Range(0, 120)})
        people.insert_many([{"town": town, "age": place} for place, town in enumerate(TOWNS)])
        people.insert_one({"age": 7})
        assert people.leakage("town").worst == pytest.approx(60 / 101)
        assert people.leakage("town", Equal()).worst == 1.0
        assert people.leakage("age").worst == 1.0
        with pytest.raises(InvalidParameter, match="no field of that name"):
            people.leakage("pay")


@pytest.mark.parametrize(
    ("column", "how", "says"),
    [
        ([], {}, "empty column"),
        ([121], {"field": Range(0, 120)}, "0 to 120"),
        ([float("nan")], {"field": Equal()}, "NaN"),
        ([1], {"auxiliary": []}, "empty"),
        ([1], {"auxiliary": {1: -1.0}}, "from 0"),
        ([1], {"auxiliary": {1: float("nan")}}, "from 0"),
        ([1], {"auxiliary": {1: 10**400}}, "from 0"),
        ([1, 2], {"field": Range(0, 10**13)}, "too wide"),
        ([1], {"field": Range(0, 9), "ranges": 0}, "from 1"),
        ([1], {"field": Range(0, 9), "ranges": True}, "from 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(column: list[object], how: dict[str, object], says: str) -> None:
    field = how.pop("field", Random())
    with pytest.raises(InvalidParameter, match=says):
        leakage(column, field, **how)  # type: ignore[arg-type]


def test_values_of_any_type_are_scored() -> None:
    assert leakage([(1, [2]), (1, [2]), [3]], Random()).guess == pytest.approx(2 / 3)
