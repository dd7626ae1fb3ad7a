"""Itemsets and rules against brute force and against another's code."""

from __future__ import annotations

import tracemalloc

import pytest

from cloister.errors import InvalidParameter
from cloister.mining import association_rules, frequent_itemsets, itemsets
from tests.mining.small import CHESS, GROCERIES, chess, frequent_by_hand, groceries, rules_by_hand, some

ENGINES = ["bits", "efficient-apriori"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_itemsets_are_those_of_brute_force(engine: itemsets.Engine, seed: int) -> None:
    lists = some(seed, baskets=5 + 9 * seed, items=2 + seed % 6)
    least = max(1, -(-len(lists) * (1 + seed % 4) // 10))
    found = frequent_itemsets(lists, min_support=f"{(1 + seed % 4) / 10}", engine=engine)
    assert {frozenset(each.items): each.count for each in found} == frequent_by_hand(lists, least)
    assert len(found) == len({each.items for each in found})
    assert [each.support for each in found] == [each.count / len(lists) for each in found]


@pytest.mark.parametrize("seed", range(12))
def test_rules_are_those_of_brute_force(seed: int) -> None:
    lists = some(seed, baskets=40, items=5)
    found = association_rules(lists, min_support="0.15", min_confidence="0.55")
    assert {(frozenset(rule.antecedent), frozenset(rule.consequent)) for rule in found} == rules_by_hand(lists, 6, (55, 100))
    for rule in found:
        assert rule.confidence >= 0.55
        assert rule.support == rule.count / 40
        assert rule.lift == pytest.approx(rule.confidence / (rule.consequent_count / 40))


def test_a_threshold_is_reached_exactly() -> None:
    baskets = [["a", "b"]] * 3 + [["a"]] * 7
    assert len(association_rules(baskets, min_support="0.3", min_confidence="0.3")) == 2
    assert len(association_rules(baskets, min_support="0.3", min_confidence="0.3000001")) == 1
    assert len(association_rules(baskets, min_support="0.3000001", min_confidence="0.3")) == 0
    assert len(association_rules(baskets, min_support=0.3, min_confidence=0)) == 2


def test_the_order_and_the_frame() -> None:
    found = frequent_itemsets([["tea", "milk"], ["tea"]], min_support="0.5")
    assert found.to_frame().to_pydict() == {
        "itemset": ["tea", "milk", "tea, milk"],
        "size": [1, 1, 2],
        "count": [2, 1, 1],
        "support": [1.0, 0.5, 0.5],
    }
    assert found[0].items == ("tea",)
    assert [each.count for each in found[1:]] == [1, 1]
    rules = association_rules([["tea", "milk"], ["tea"]], min_support="0.5", min_confidence="0.5")
    assert rules.to_frame().to_pandas()["confidence"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"min_support": 0}, "every set"),
        ({"min_support": -1}, "greater than 0"),
        ({"min_support": 2}, "at most 1"),
        ({"min_support": "x"}, "min_support"),
        ({"min_support": float("nan")}, "min_support"),
        ({"min_support": "0.1", "max_size": 0}, "one item"),
        ({"min_support": "0.1", "engine": "other"}, "known are"),
    ],
)
def test_wrong_thresholds_are_refused(parameters: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        frequent_itemsets([["a"]], **parameters)  # type: ignore[arg-type]
    assert refused.value.instead


def test_confidence_is_a_share() -> None:
    with pytest.raises(InvalidParameter, match="at most 1"):
        association_rules([["a"]], min_support="0.1", min_confidence="1.1")


def test_too_many_sets_are_refused_before_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(itemsets, "MOST", 1000)
    with pytest.raises(InvalidParameter, match="1,000 sets"):
        frequent_itemsets([list(range(14))], min_support="0.1")
    assert len(frequent_itemsets([list(range(14))], min_support="0.1", max_size=2)) == 14 + 91


def test_sets_that_must_be_too_many_are_not_counted_first() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidParameter, match="more than 2,000,000 sets"):
            frequent_itemsets([list(range(start, start + 60)) for start in range(5)], min_support="0.2")
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()
    assert len(frequent_itemsets([list(range(60))], min_support=1, max_size=2)) == 60 * 61 / 2


@pytest.mark.skipif(not GROCERIES.exists() or not CHESS.exists(), reason="the shared data are not here")
@pytest.mark.parametrize(("name", "support", "sets"), [("groceries", "0.005", 1001), ("chess", "0.9", 622)])
def test_another_library_finds_the_same_in_real_data(name: str, support: str, sets: int) -> None:
    lists = groceries() if name == "groceries" else chess()
    one, other = (frequent_itemsets(lists, min_support=support, engine=engine) for engine in ("bits", "efficient-apriori"))
    counted = [{frozenset(each.items): each.count for each in found} for found in (one, other)]
    assert counted[0] == counted[1]
    assert len(one) == sets
