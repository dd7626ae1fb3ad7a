"""Sorting with a limit: exactly what sorting everything gives, and no more read than that needs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import cloister as cl
from cloister.vault import Equal, Field, OrderRevealing, Random, Range, Sum
from cloister.vault.store import Store
from tests.vault.conftest import Place

Layer = Callable[..., Field]
LAYERS = pytest.mark.parametrize("layer", [OrderRevealing, Range])


def rows(number: int, draw: random.Random, digits: int = 6) -> list[dict[str, Any]]:
    """Some values are missing, some are equal, and many share a cell of width 1."""
    values = [None if draw.random() < 0.1 else round(draw.random() * 10, digits) for _ in range(number)]
    return [{"_id": at, "v": value, "w": at % 3} for at, value in enumerate(values)]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each reading asked the store for; −1: all."""
    read: list[int] = []
    records = Store.records

    def watched(store: Store, name: str, handles: list[bytes] | None = None) -> Any:
        read.append(-1 if handles is None else len(handles))
        return records(store, name, handles)

    monkeypatch.setattr(Store, "records", watched)
    return read


@LAYERS
@pytest.mark.parametrize("step", [1, 2.5, 0.001])
@pytest.mark.parametrize("way", [1, -1])
def test_values_within_one_cell_are_sorted_before_they_are_cut(layer: Layer, step: float, way: int) -> None:
    """One token or node stands for many values, and the store knows none of them."""
    made = cl.vault.Vault("sqlite://", cl.vault.Keys.generate()).collection("c", {"v": layer(0, 10, step), "w": Range(0, 2)})
    made.insert_many(rows(60, random.Random(1)))
    for keys in ([("v", way)], [("v", way), ("w", -way)]):
        everything = list(made.find(sort=keys))
        known = [each["v"] for each in everything if each["v"] is not None]
        assert known == sorted(known, reverse=way == -1)
        assert (everything[0 if way == 1 else -1]["v"]) is None
        for skip, limit in ((0, 1), (0, 5), (3, 5), (0, 60), (55, 20), (60, 5)):
            assert made.find(sort=keys, skip=skip, limit=limit) == everything[skip : skip + limit]
            pipeline = [{"$sort": dict(keys)}, {"$skip": skip}, {"$limit": limit}]
            assert made.aggregate(pipeline) == everything[skip : skip + limit]


@LAYERS
@pytest.mark.parametrize("way", [1, -1])
def test_a_filter_an_order_and_a_limit_give_what_a_plain_list_gives(layer: Layer, way: int) -> None:
    draw = random.Random(7)
    made = cl.vault.Vault("sqlite://", cl.vault.Keys.generate()).collection("c", {"v": layer(0, 10), "w": Equal()})
    made.insert_many(rows(80, draw, digits=1))
    for identity in range(0, 80, 4):
        made.update_one({"_id": identity}, {"$set": {"v": round(draw.random() * 10, 1)}})  # leaves stale entries
    made.delete_many({"_id": {"$in": list(range(1, 80, 9))}})
    plain = list(made.find())
    for _ in range(12):
        low, high, limit = draw.random() * 10 - 1, draw.random() * 12, draw.randrange(1, 12)
        filters: list[tuple[Any, Callable[[Any], bool]]] = [
            ({"v": {"$gte": low}}, lambda v, low=low: v >= low),  # type: ignore[misc]
            ({"v": {"$gt": low, "$lt": high}}, lambda v, low=low, high=high: low < v < high),  # type: ignore[misc]
        ]
        for given, holds in filters:
            wanted = [each for each in plain if each["v"] is not None and holds(each["v"])]
            wanted.sort(key=lambda each: each["v"], reverse=way == -1)
            assert made.find(given, sort=[("v", way)], limit=limit) == wanted[:limit]
            both = given | {"w": 1}
            assert made.find(both, sort=[("v", way)], limit=limit) == [each for each in wanted if each["w"] == 1][:limit]
            assert made.aggregate([{"$match": given}, {"$sort": {"v": way}}, {"$limit": limit}]) == wanted[:limit]


@LAYERS
def test_no_more_is_read_than_the_order_needs(layer: Layer, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made = place.store.collection("c", {"v": layer(0, 1023)})
    made.insert_many({"_id": n, "v": n * 5 % 1024} for n in range(1024))
    read = counted(monkeypatch)
    for given in ({}, {"v": {"$gte": 500}}, {"v": {"$gt": 3.5, "$lt": 900}}):
        for way in (1, -1):
            del read[:]
            assert len(made.find(given, sort=[("v", way)], skip=2, limit=3)) == 3
            assert -1 not in read
            assert sum(read) <= 12
    assert len(made.find(sort=[("v", 1)], limit=3).sort("v", -1)) == 3
    assert made.find(sort=[("v", 1)], limit=3).sort("v", -1)[0]["v"] == 1023, "a chain sorts before it cuts"


@LAYERS
def test_orders_of_two_epochs_are_one(layer: Layer, place: Place) -> None:
    made = place.store.collection("c", {"v": layer(0, 100)})
    made.insert_many({"_id": n, "v": n} for n in range(0, 40, 2))
    place.store.rotate(batches=0)
    made.insert_many({"_id": n, "v": n} for n in range(1, 40, 2))
    made.update_one({"_id": 0}, {"$set": {"v": 99}})
    assert [each["v"] for each in made.find(sort=[("v", 1)], limit=4)] == [1, 2, 3, 4]
    assert [each["v"] for each in made.find({"v": {"$lt": 50}}, sort=[("v", -1)], limit=3)] == [39, 38, 37]
    assert place.store.rotate()
    assert [each["v"] for each in made.find(sort=[("v", -1)], limit=2)] == [99, 39]


def test_explain_says_what_an_order_shows() -> None:
    fields = {"age": Range(0, 120), "pay": OrderRevealing(0, 9), "town": Equal(), "note": Random() | Sum()}
    made = cl.vault.Vault("sqlite://", cl.vault.Keys.generate()).collection("c", fields)
    said = str(made.explain(sort=[("age", 1)], limit=5))
    assert "nodes of 'age' from the least on, until there are 5 records" in said
    assert "which records have the least values" in said
    assert "tokens of 'pay' from the largest on, until there are 8 records" in str(
        made.explain({}, sort=[("pay", -1)], skip=3, limit=5)
    )
    assert "in a range" in str(made.explain([{"$match": {"age": {"$gt": 3}}}, {"$sort": {"age": 1}}, {"$limit": 2}]))
    for given in (
        made.explain(sort=[("age", 1)]),
        made.explain([{"$sort": {"age": 1}}, {"$sort": {"pay": 1}}, {"$limit": 2}]),
        made.explain([{"$sort": {"age": 1}}, {"$group": {"_id": "$town"}}, {"$limit": 2}]),
    ):
        assert given.found_by == ("every record",)
    assert made.explain({"town": "x"}, sort=[("age", 1)], limit=1).found_by == ("1 word of 'town'",)
    with pytest.raises(cl.UnsupportedQuery, match="compared by order"):
        made.explain(sort=[("note", 1)], limit=1)
