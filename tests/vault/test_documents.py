"""The document interface: what pymongo's users expect, what is refused, and that no refusal repeats a value."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.vault import Conflict, DuplicateKey, Equal, Random, Range, Sum
from cloister.vault.ranges import uniform_cover
from cloister.vault.values import decode, encode, padded, unpadded
from tests.vault.conftest import FIELDS, PEOPLE, Place


def ids(found: list[dict[str, Any]]) -> list[Any]:
    return sorted(each["_id"] for each in found)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"_id": 2}, [2]),
        ({"_id": {"$in": [1, 3, 9]}}, [1, 3]),
        ({"town": "canary-Basel"}, [1, 3]),
        ({"town": {"$in": ["canary-Bern", "x"]}}, [2]),
        ({"age": 52}, [2]),
        ({"age": 52.0}, [2]),
        ({"age": {"$gt": 39, "$lte": 71}}, [2, 3]),
        ({"age": {"$gte": -5, "$lt": 39.5}}, [1]),
        ({"age": {"$gt": 120}}, []),
        ({"age": {"$gt": 60}, "town": "canary-Basel"}, [3]),
        ({"$and": [{"age": {"$gt": 40}}, {"age": {"$lt": 60}}]}, [2]),
        ({"$or": [{"town": "canary-Bern"}, {"age": {"$lt": 40}}]}, [1, 2]),
        ({"$or": [{"_id": 1}, {"age": None}]}, [1]),
        ({"town": None}, []),
        ({"town": {"$in": []}}, []),
    ],
)
def test_a_query_finds_what_a_plain_store_would(filled: Place, query: dict[str, Any], expected: list[int]) -> None:
    assert ids(filled.people().find(query)) == expected
    assert filled.people().count_documents(query) == len(expected)


def test_documents_are_added_changed_and_deleted(filled: Place) -> None:
    people = filled.people()
    assert people.find_one({"_id": 3}) == PEOPLE[2]
    assert (
        people.update_one(
            {"_id": 1}, {"$set": {"town": "canary-Bern"}, "$inc": {"pay": 1}, "$unset": {"name": ""}}
        ).modified_count
        == 1
    )
    assert people.find_one({"_id": 1}) == {"_id": 1, "age": 39, "town": "canary-Bern", "pay": 70_002}
    assert people.update_many({"town": "canary-Bern"}, {"$set": {"age": 50}}).matched_count == 2
    assert people.update_many({"town": "canary-Bern"}, {"$set": {"age": 50}}).modified_count == 0
    assert ids(people.find({"age": 50})) == [1, 2]
    assert people.find({"age": 39}) == []
    assert people.replace_one({"_id": 2}, {"name": "new"}).modified_count == 1
    assert people.find_one({"_id": 2}) == {"_id": 2, "name": "new"}
    assert ids(people.find({"town": None})) == ids(people.find({"age": None})) == [2]
    assert people.delete_many({"age": {"$gte": 50}}).deleted_count == 2
    assert people.delete_one({"_id": 1}).deleted_count == 0
    assert people.insert_one({"_id": 1, "age": 39}).inserted_id == 1
    assert len(people.insert_one({}).inserted_id) == 24
    assert people.count_documents({}) == 3
    assert filled.store.verify()


def test_order_limits_and_projections(filled: Place) -> None:
    people = filled.people()
    assert [each["age"] for each in people.find(sort=[("age", -1)])] == [71, 52, 39]
    assert people.find({}, {"age": 1, "_id": 0}, sort=[("age", 1)], skip=1, limit=1) == [{"age": 52}]
    assert people.find_one({"_id": 1}, ["town"]) == {"_id": 1, "town": "canary-Basel"}
    assert people.find_one({"_id": 1}, {"age": 0, "pay": 0, "name": 0}) == {"_id": 1, "town": "canary-Basel"}


def test_what_pymongo_spells_in_other_ways(filled: Place) -> None:
    people = filled.store["canary-people"]
    ages = [39, 52, 71]
    assert [each["age"] for each in people.find().sort("age", -1)] == ages[::-1]
    assert [each["age"] for each in people.find({}, ["age"]).limit(2).skip(1).sort([("age", 1)])] == ages[1:]
    assert people.find({}, ["town"]).sort("age").limit(1) == [{"_id": 1, "town": "canary-Basel"}], "it sorts, then projects"
    assert people.find().sort("age").to_list(1) == people.find(sort="age", limit=1) == people.find(sort={"age": 1}, limit=1)
    assert (people.find_one(sort=[("age", -1)]) or {})["_id"] == 3
    assert isinstance(people.find(), list)
    there = people.find()
    assert there.sort(key=lambda each: -each["_id"]) is None
    assert [each["_id"] for each in there] == [3, 2, 1], "a function sorts in place"
    groups = [{"$group": {"_id": "$town", "n": {"$sum": 1}, "pay": {"$avg": "$pay"}}}]
    assert people.aggregate([*groups, {"$match": {"n": {"$gt": 1}}}, {"$sort": {"pay": 1}}])[0]["_id"] == "canary-Basel"
    assert len(people.aggregate([*groups, {"$match": {"_id": "canary-Bern", "n": 1}}])) == 1
    by_age = people.aggregate([{"$group": {"_id": "$age", "n": {"$sum": 1}}}, {"$match": {"_id": {"$gte": 52}}}])
    assert [each["_id"] for each in by_age] == ages[1:], "the client has the groups before it"
    with pytest.raises(cl.UnknownColumn):
        people.aggregate([*groups, {"$match": {"age": 1}}])
    with pytest.raises(cl.UnsupportedQuery, match="of its own"):
        people.find({"town.canary": 1})
    with pytest.raises(cl.UnsupportedQuery, match="only `_id` is unique"):
        people.create_index([("town", 1)], unique=True)
    with pytest.raises(cl.InvalidParameter, match="whole number"):
        people.find().limit(-1)


@pytest.mark.parametrize("skip", [-1, 1.5, "1", True])
@pytest.mark.parametrize("more", [{}, {"limit": 1}, {"sort": "age"}, {"sort": "age", "limit": 1}])
def test_what_is_no_number_of_documents_to_skip_is_refused(filled: Place, skip: Any, more: dict[str, Any]) -> None:
    """Also without a limit, where -1 left out all but the last."""
    for asked in (lambda: filled.people().find({}, skip=skip, **more), lambda: filled.people().find({}, **more).skip(skip)):
        with pytest.raises(cl.InvalidParameter, match="skip is invalid"):
            asked()


def test_groups_come_in_the_order_of_texts(filled: Place) -> None:
    people, towns = filled.people(), ["New", "New York", "Zug", "aarau", "Ölten", "东京"]
    people.insert_many([{"_id": 100 + place, "town": town} for place, town in enumerate(reversed(towns))])
    made: list[Any] = [{"$match": {"_id": {"$in": [*range(100, 106)]}}}, {"$group": {"_id": "$town"}}, {"$sort": {"_id": 1}}]
    assert [each["_id"] for each in people.aggregate(made)] == towns
    assert people.aggregate([*made, {"$limit": 1}]) == [{"_id": "New"}]


def test_an_update_adds_what_it_does_not_find(filled: Place) -> None:
    people = filled.people()
    done = people.update_one(
        {"_id": 7, "town": "canary-Chur", "age": {"$gte": 3}}, {"$set": {"age": 5}, "$inc": {"pay": 2}}, True
    )
    assert (done.matched_count, done.modified_count, done.upserted_id) == (0, 0, 7)
    assert people.find_one({"_id": 7}) == {"_id": 7, "town": "canary-Chur", "age": 5, "pay": 2}
    assert people.update_one({"_id": 7}, {"$set": {"age": 6}}, upsert=True).upserted_id is None
    made = people.replace_one({"town": "nowhere"}, {"age": 1}, upsert=True).upserted_id
    assert people.find_one({"_id": made}) == {"_id": made, "age": 1}
    with pytest.raises(DuplicateKey):
        people.update_many({"_id": 1, "town": "nowhere"}, {"$set": {"age": 1}}, upsert=True)
    with pytest.raises(cl.InvalidParameter):
        people.update_one({"_id": 8}, {"$set": {"age": 500}}, upsert=True)
    assert people.count_documents({}) == 5
    assert filled.store.verify()


def test_aggregates_are_exact(filled: Place) -> None:
    people = filled.people()
    columns = {
        "n": {"$count": {}},
        "pay": {"$sum": "$pay"},
        "age": {"$avg": "$age"},
        "low": {"$min": "$age"},
        "high": {"$max": "$pay"},
    }
    found = people.aggregate([{"$match": {"age": {"$gte": 0}}}, {"$group": {"_id": "$town"} | columns}, {"$sort": {"n": -1}}])
    assert found == [
        {"_id": "canary-Basel", "n": 2, "pay": 70_001 + 2**80, "age": 55.0, "low": 39, "high": 2**80},
        {"_id": "canary-Bern", "n": 1, "pay": 80_001, "age": 52.0, "low": 52, "high": 80_001},
    ]
    assert people.aggregate([{"$match": {"_id": 9}}, {"$group": {"_id": None} | columns}]) == []
    assert people.aggregate([{"$group": {"_id": None, "n": {"$sum": 2}}}, {"$limit": 1}]) == [{"_id": None, "n": 6}]
    assert people.aggregate([{"$group": {"_id": {"t": "$town"}, "n": {"$count": {}}}}, {"$sort": {"n": 1}}, {"$skip": 1}]) == [
        {"_id": {"t": "canary-Basel"}, "n": 2}
    ]


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (lambda people: people.find({"name": "canary-Ada"}), cl.UnsupportedQuery, r"Equal\(\)"),
        (lambda people: people.find({"pay": 70_001}), cl.UnsupportedQuery, r"Equal\(\)"),
        (lambda people: people.find({"town": {"$gt": ""}}), cl.UnsupportedQuery, r"Range\(low, high\)"),
        (lambda people: people.find({"town": {"$ne": ""}}), cl.UnsupportedQuery, "compare in Python"),
        (lambda people: people.find({"town": {"$regex": "^canary"}}), cl.UnsupportedQuery, "compare in Python"),
        (lambda people: people.find({"_id": {"$gt": 0}}), cl.UnsupportedQuery, "Range"),
        (lambda people: people.find({"$where": "canary"}), cl.UnsupportedQuery, "only \\$and, \\$or and \\$text"),
        (lambda people: people.find({"town": {"$in": "canary"}}), cl.InvalidParameter, "a list"),
        (lambda people: people.find({"town": {"a": {"$gt": ""}}}), cl.InvalidParameter, "begins with \\$"),
        (lambda people: people.find({"age": {"$gt": math.nan}}), cl.InvalidParameter, "a number"),
        (lambda people: people.find({"canary": 1}), cl.UnknownColumn, "'town'"),
        (lambda people: people.find("canary"), cl.InvalidParameter, "not a dict"),
        (lambda people: people.find(sort=[("town", 1)]), cl.UnsupportedQuery, "Range"),
        (lambda people: people.find(limit=-1), cl.InvalidParameter, "whole number"),
        (lambda people: people.insert_one({"canary": 1}), cl.UnknownColumn, "'town'"),
        (lambda people: people.insert_one({"town": {"$gt": "canary"}}), cl.InvalidParameter, "begins with \\$"),
        (lambda people: people.insert_one({"$set": {"town": "canary"}}), cl.InvalidParameter, "does not begin with"),
        (lambda people: people.insert_one({"age": 121}), cl.InvalidParameter, "from 0 to 120"),
        (lambda people: people.insert_one({"age": math.nan}), cl.InvalidParameter, "from 0 to 120"),
        (lambda people: people.insert_one({"age": True}), cl.InvalidParameter, "from 0 to 120"),
        (lambda people: people.insert_one({"pay": "canary"}), cl.InvalidParameter, "finite numbers"),
        (lambda people: people.insert_one({"town": math.nan}), cl.InvalidParameter, "NaN"),
        (lambda people: people.insert_one({"name": object()}), cl.InvalidParameter, "type"),
        (lambda people: people.insert_one({"name": nested(200)}), cl.InvalidParameter, "100 levels"),
        (lambda people: people.insert_one({"name": "canary" * 2**22}), cl.InvalidParameter, "16 MiB"),
        (lambda people: people.insert_one(["canary"]), cl.InvalidParameter, "not a dict"),
        (lambda people: people.insert_one({"_id": None}), cl.InvalidParameter, "_id"),
        (lambda people: people.insert_many([{"_id": 8}, {"_id": 1}]), DuplicateKey, "another one has this _id"),
        (lambda people: people.update_one({"_id": 1}, {"$set": {"_id": 2}}), cl.InvalidParameter, "an _id stays"),
        (lambda people: people.update_one({"_id": 1}, {"$push": {"town": "canary"}}), cl.UnsupportedQuery, "\\$set"),
        (lambda people: people.update_one({"_id": 1}, {"town": "canary"}), cl.InvalidParameter, "operators"),
        (lambda people: people.update_one({"_id": 1}, {"$inc": {"town": 1}}), cl.UnsupportedQuery, r"Sum\(\)"),
        (lambda people: people.update_one({"_id": 1}, {"$set": {"age": 500}}), cl.InvalidParameter, "from 0 to 120"),
        (lambda people: people.aggregate([{"$group": {"_id": None, "n": {"$sum": "$name"}}}]), cl.UnsupportedQuery, r"Sum\(\)"),
        (lambda people: people.aggregate([{"$group": {"_id": "$name"}}]), cl.UnsupportedQuery, r"Equal\(\)"),
        (lambda people: people.aggregate([{"$lookup": {"from": "canary"}}]), cl.UnsupportedQuery, "\\$match"),
        (lambda people: people.aggregate({"canary": 1}), cl.InvalidParameter, "list of stages"),
        (lambda people: people.replace_one({"_id": 1}, {"town": "y"}, version=7), Conflict, "another writer"),
    ],
)
def test_a_refusal_says_what_to_do_and_repeats_no_value(filled: Place, act: Any, kind: type[Exception], said: str) -> None:
    before = filled.people().find()
    with pytest.raises(kind, match=said) as caught:
        act(filled.people())
    assert "canary" not in str(caught.value)
    assert "70001" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert filled.people().find() == before
    assert filled.store.verify()


def nested(levels: int) -> Any:
    value: Any = "canary"
    for _ in range(levels):
        value = [value]
    return value


def test_operator_injection_succeeds_on_a_plain_twin_only(filled: Place) -> None:
    """A program that puts what a form sent into its filter: `{"$gt": ""}` is every text to a plain store."""
    sent: Any = {"$gt": ""}
    assert [each for each in PEOPLE if str(each["town"]) > sent["$gt"]] == PEOPLE
    with pytest.raises(cl.UnsupportedQuery):
        filled.people().find_one({"town": sent})


@pytest.mark.parametrize("name", ["a\0b", "🦉", '"; DROP TABLE collections; --', "ß" * 1000, "\ud800"])
def test_any_name_can_be_a_collection_and_a_field(place: Place, name: str) -> None:
    made = place.store.collection(name, {name: Equal()})
    made.insert_one({"_id": name, name: name})
    assert made.find({name: name}) == [{"_id": name, name: name}]
    place.restart()
    assert place.store.collection(name).find({"_id": name}) == [{"_id": name, name: name}]
    assert place.store.verify()


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1, 2**63, -(2**200), 10**5000, 1.5, -0.0, 1e308, math.inf, "", "\0", "🦉\ud800", "x" * 5000, b"", b"\x80\0",
     date(1990, 5, 1), datetime(2026, 1, 1, tzinfo=UTC), [], {}, {"a": [1, {"b": None}]}, {"date": 1}],
    ids=lambda value: str(type(value).__name__),
)  # fmt: skip
def test_a_value_comes_back_as_it_was(place: Place, value: Any) -> None:
    made = place.store.collection("any", {"value": Random()})
    made.insert_one({"_id": "x", "value": value})
    found = made.find_one({})
    assert found is not None
    assert found["value"] == value
    assert type(found["value"]) is type(value)


def test_nan_comes_back_where_nothing_compares_it(place: Place) -> None:
    made = place.store.collection("any", {"value": Random()})
    made.insert_one({"value": math.nan})
    assert math.isnan(made.find()[0]["value"])


def test_padding_comes_off_and_lengths_are_few() -> None:
    for length in [*range(300), 5000, 70_000]:
        assert unpadded(padded(b"\x80" * length)) == b"\x80" * length
        assert length < len(padded(bytes(length))) <= max(32, 1.12 * (length + 1) + 1)
    assert len({len(padded(bytes(length))) for length in range(100_000)}) < 200
    assert decode(encode([1, "a"])) == [1, "a"]


def test_a_cover_is_the_range_and_its_shape_tells_the_size_alone() -> None:
    shapes: dict[int, set[tuple[int, ...]]] = {}
    for first in range(64):
        for last in range(first, 64):
            nodes = uniform_cover(first, last)
            leaves = [leaf for level, number in nodes for leaf in range(number << level, (number + 1) << level)]
            assert sorted(leaves) == list(range(first, last + 1))
            shapes.setdefault(last - first + 1, set()).add(tuple(level for level, _ in nodes))
    assert all(len(each) == 1 for each in shapes.values())


def test_ranges_of_fractions_are_cells_and_the_client_is_exact(place: Place) -> None:
    made = place.store.collection("labs", {"level": Range(0, 10, step=0.5)})
    values = [random.Random(1).uniform(0, 10) for _ in range(60)]
    made.insert_many({"_id": number, "level": value} for number, value in enumerate(values))
    for low, high in ((0.3, 0.9), (2.0, 2.5), (9.99, 10)):
        expected = [number for number, value in enumerate(values) if low <= value < high]
        assert ids(made.find({"level": {"$gte": low, "$lt": high}})) == expected


def test_a_collection_is_opened_as_it_was_declared(filled: Place) -> None:
    filled.restart()
    again = filled.store.collection("canary-people")
    assert dict(again.fields) == FIELDS
    assert again.layers()["age"] == ["AES-GCM-SIV", "range index of 8 levels"]
    with pytest.raises(cl.InvalidDeclaration, match="other fields"):
        filled.store.collection("canary-people", {"name": Equal()})
    with pytest.raises(cl.InvalidParameter, match="never declared"):
        filled.store.collection("other")
    for fields in ({}, {"_id": Equal()}, {"a.b": Equal()}, {"$a": Equal()}, {"a": "Equal"}):
        with pytest.raises(cl.InvalidDeclaration):
            filled.store.collection("bad", fields)
    with pytest.raises(cl.InvalidDeclaration):
        Range(0, 1) | Range(0, 2)
    with pytest.raises(cl.InvalidDeclaration):
        Range(5, 5)
    assert Sum() | Equal() | Random() == Equal() | Sum()


def test_an_explanation_names_what_shows_and_reads_nothing(filled: Place) -> None:
    people = filled.people()
    people.reader.store.entries = None  # type: ignore[assignment,method-assign]
    people.reader.store.records = None  # type: ignore[assignment,method-assign]
    assert people.explain({"age": {"$gte": 40}}).found_by == (
        "8 nodes of 'age'",
    )  # 81 ages: 63 + 18, six levels of one node and two of two
    both = people.explain([{"$match": {"town": "canary-Basel", "age": {"$lt": 9}}}, {"$limit": 1}])
    assert both.found_by == ("1 word of 'town'",)
    assert both.checked == ("'age'",)
    assert "canary-Basel" not in str(both)
    assert people.explain().leaks == ("that every record was read, and nothing of the filter",)
    assert people.explain({"_id": 1}).leaks == ("which record was read, and that it was read before",)
    assert "order" in str(people.explain({"age": {"$gt": 3}}))


def test_what_a_query_asks_is_what_its_explanation_said(filled: Place) -> None:
    people, asked = filled.people(), []
    ask = people.reader.store.records
    people.reader.store.records = lambda name, handles=None: asked.append(handles) or ask(name, handles)  # type: ignore[method-assign]
    people.find({"town": "canary-Basel", "age": {"$lt": 40}})
    assert [len(each) for each in asked] == [2]  # the town's records alone; the age is compared by the client
    people.find({"age": None})
    assert asked[1:] == [None]
    people.count_documents({})
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (pd.NaT, "moment is missing"),
        (pd.Timestamp("2020-01-01T00:00:00.123456789"), "finer than microseconds"),
        ("\ud835\udc00", "two halves"),
        ({"\ud835\udc00": 1}, "key inside"),
    ],
)
def test_what_would_come_back_as_another_value_is_never_written(place: Place, value: Any, why: str) -> None:
    """It would be read as another value for ever, and the store be blamed for it."""
    people = place.store.collection("m", {"seen": cl.vault.Random()})
    with pytest.raises(InvalidParameter, match=why):
        people.insert_one({"_id": 1, "seen": value})
    people.insert_one({"_id": 1, "seen": pd.Timestamp("2020-01-01T00:00:00.123456", tz="Europe/Zurich")})
    assert people.find()[0]["seen"].microsecond == 123456
    assert place.store.verify()
