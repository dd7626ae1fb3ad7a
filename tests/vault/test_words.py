"""Words of a text and elements of a list: found as MongoDB finds them, and as many entries whatever is in them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

import cloister as cl
from cloister.vault import Equal, Random, Words
from cloister.vault.fields import words_of
from tests.vault.conftest import Place

FIELDS = {"tags": Words(4), "note": Words(6), "town": Equal()}
ROWS: list[dict[str, Any]] = [
    {"_id": 1, "tags": ["a", "b"], "note": "Chest pain, no fever", "town": "Basel"},
    {"_id": 2, "tags": ["b", 1, None], "note": "FEVER and cough", "town": "Bern"},
    {"_id": 3, "tags": "a", "note": "", "town": "Basel"},
    {"_id": 4, "tags": [], "town": "Bern"},
    {"_id": 5, "tags": ["A", ["a"]], "note": "feverish"},
]


def ids(found: list[dict[str, Any]]) -> list[int]:
    return sorted(each["_id"] for each in found)


@pytest.fixture
def filled(place: Place) -> Place:
    place.store.collection("people", FIELDS).insert_many(ROWS)
    return place


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"tags": "a"}, [1, 3]),
        ({"tags": ["a", "b"]}, [1]),
        ({"tags": {"$in": ["a", 1.0]}}, [1, 2, 3]),
        ({"tags": None}, [2]),
        ({"tags": []}, [4]),
        ({"tags": ["a"]}, [5]),
        ({"tags": "b", "town": "Bern"}, [2]),
        ({"note": "Chest pain, no fever"}, [1]),
        ({"note": "fever"}, []),
        ({"$text": {"$search": "fever"}}, [1, 2]),
        ({"$text": {"$search": "Cough, chest"}}, [1, 2]),
        ({"$text": {"$search": "fever"}, "town": "Bern"}, [2]),
        ({"$or": [{"$text": {"$search": "cough"}}, {"tags": []}]}, [2, 4]),
        ({"$text": {"$search": "a"}}, [3]),
        ({"$text": {"$search": "?"}}, []),
    ],
)
def test_they_find_what_mongodb_would(filled: Place, query: Any, expected: list[int]) -> None:
    people = filled.store["people"]
    assert ids(people.find(query)) == expected
    assert "every record" not in people.explain(query).found_by, "an index leads there"


def test_an_element_that_goes_is_not_found_and_forgetting_forgets_words(place: Place) -> None:
    people = place.store.collection("people", FIELDS | {"who": Equal()}, person="who")
    people.insert_many(each | {"who": "pq"[each["_id"] % 2]} for each in ROWS)
    people.update_one({"_id": 1}, {"$set": {"tags": ["c"]}})
    assert ids(people.find({"tags": "a"})) == [3]
    assert ids(people.find({"tags": "c"})) == [1]
    place.store.rotate(batches=0)
    people.update_one({"_id": 2}, {"$set": {"note": "no cough"}})
    assert ids(people.find({"$text": {"$search": "cough"}})) == [2]
    assert place.store.forget("q") == 3
    assert ids(people.find({"$text": {"$search": "no fever"}})) == [2]
    assert place.store.verify()
    assert place.store.rotate()
    assert ids(people.find({"tags": "b"})) == [2]
    assert place.store.verify()
    again = place.vault().collection("people")
    assert again.fields == people.fields


def test_the_number_of_entries_says_nothing_of_the_number_of_words(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    counts = [0]
    for row in ROWS:
        people.insert_one(row)
        counts.append(place.sql("SELECT count(*) FROM {I}")[0][0])
    people.update_one({"_id": 4}, {"$set": {"note": "one"}})
    counts.append(place.sql("SELECT count(*) FROM {I}")[0][0])
    assert [after - before for before, after in pairwise(counts)] == [5 + 7 + 1] * 5 + [7]
    assert len({address for (address,) in place.sql("SELECT address FROM {I}")}) == counts[-1]


def test_what_is_refused_says_the_line_to_write(filled: Place) -> None:
    people = filled.store["people"]
    for row in ({"tags": list(range(5))}, {"note": "one two three four five six canary"}):
        with pytest.raises(cl.InvalidParameter, match="different words or elements") as caught:
            people.insert_one(row)
        assert "canary" not in str(caught.value)
    people.insert_one({"_id": 9, "tags": ["x"] * 50, "note": "so " * 50})
    for wrong in ({"$text": "fever"}, {"$text": {"$search": 3}}, {"$text": {"$search": "x", "$language": "de"}}):
        with pytest.raises(cl.InvalidParameter, match="takes words"):
            people.find(wrong)
    plain = filled.store.collection("plain", {"note": Random()})
    with pytest.raises(cl.UnsupportedQuery, match="found by words"):
        plain.find({"$text": {"$search": "x"}})
    for most in (0, True, 1.5, 10**6):
        with pytest.raises(cl.InvalidDeclaration, match="most is from 1"):
            Words(most)  # type: ignore[arg-type]


def test_words_are_folded() -> None:
    assert words_of("Straße, STRASSE ﬁn don't 3.5") == ["strasse", "fin", "don", "t", "3", "5"]


def test_a_fixed_length_is_the_same_for_every_value(place: Place) -> None:
    made = place.store.collection("people", {"note": Random(pad=100), "tag": Equal(pad=64)})
    made.insert_many({"_id": n, "note": "x" * n, "tag": "y" * (n % 50)} for n in range(90))
    sizes = {tuple(map(len, json.loads(body).values())) for (body,) in place.sql("SELECT body FROM {R}")}
    assert len({tuple(sorted(each)) for each in sizes}) == 1
    assert made.find_one({"tag": "y" * 49, "_id": 49}) == {"_id": 49, "note": "x" * 49, "tag": "y" * 49}
    with pytest.raises(cl.InvalidParameter, match="room for one less"):
        made.insert_one({"note": "x" * 98})
    made.insert_one({"_id": 200, "note": "x" * 97})
    assert place.store.verify()
    for pad in (31, 2**30, True, "64"):
        with pytest.raises(cl.InvalidDeclaration, match="number of bytes"):
            Random(pad=pad)  # type: ignore[arg-type]
    with pytest.raises(cl.InvalidDeclaration, match="two different lengths"):
        Random(pad=64) | Equal(pad=65)
    assert place.vault().collection("people").fields == made.fields
