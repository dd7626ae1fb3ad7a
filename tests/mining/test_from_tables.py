"""Baskets of a session leave by the marked door: noted first, without names, and refusals are noted as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import cloister as cl
from cloister.errors import CloisterError
from cloister.mining import association_rules, hide_rules, publish_baskets
from cloister.noise import Random

ITEMS = ["beer", "crisps", "jam", "tea"]
LISTS = [["beer", "crisps"]] * 4 + [["beer", "crisps", "jam"]] * 2 + [["beer"]] * 3 + [["jam", "tea"]] * 5
ODD = "Grüß, \"x\" 'y'"
THRESHOLDS: dict[str, Any] = {"min_support": "0.2", "min_confidence": "0.6"}


def session_of(lists: list[list[str]], *, max_rows: int = 4, extra: tuple[list[Any], list[Any]] = ([], [])) -> cl.Session:
    baskets = [f"n{number}" for number, basket in enumerate(lists) for _ in basket] + extra[0]
    items = [item for basket in lists for item in basket] + extra[1]
    columns = {"basket": cl.Text(), "item": cl.Category(ITEMS)}
    table = cl.PrivateTable({"basket": baskets, "item": items}, columns, unit="basket", max_rows=max_rows)
    return cl.Session({"sold": table}, budget=cl.PureDP(1))


def test_it_is_what_the_library_makes_of_the_same_baskets() -> None:
    with session_of(LISTS) as session:
        found = publish_baskets(session, "sold", ["beer → crisps"], random=Random.deterministic(1), **THRESHOLDS)
    plain = hide_rules(LISTS, ["beer → crisps"], **THRESHOLDS)
    assert (found.effects.lost, found.effects.removed) == (plain.effects.lost, plain.effects.removed)
    assert found.effects.hiding_failure == 0
    assert "beer → crisps" not in [str(rule) for rule in association_rules(found.data, **THRESHOLDS)]
    assert Counter(map(frozenset, found.data)) == Counter(map(frozenset, plain.data))


def test_the_order_is_of_chance_and_names_stay() -> None:
    orders = set()
    for seed in range(4):
        with session_of(LISTS) as session:
            found = publish_baskets(session, "sold", ["beer → crisps"], random=Random.deterministic(seed), **THRESHOLDS)
            orders.add(str(found.data))
            assert found.baskets.names is None
    assert len(orders) > 1


def test_rows_without_an_item_or_a_basket_and_undeclared_items_are_none() -> None:
    extra = (["n0", None, "n99", "n98"], ["whisky", "beer", None, "rum"])
    with session_of(LISTS, extra=extra) as session:
        found = publish_baskets(session, "sold", ["beer → crisps"], **THRESHOLDS)
    assert len(found.data) == len(LISTS)
    assert {item for basket in found.data for item in basket} <= set(ITEMS)


def test_a_rule_of_an_item_that_nobody_holds_is_hidden_already() -> None:
    """It was refused, after the mark, with what no basket holds."""
    lists = [[item for item in basket if item != "tea"] for basket in LISTS]
    with session_of(lists) as session:
        found = publish_baskets(session, "sold", ["beer → crisps", "tea → beer"], **THRESHOLDS)
    assert [rule.there_before for rule in found.rules] == [True, False]
    assert (found.effects.sensitive, found.effects.failed) == (1, 0)
    assert len(found.data) == len(lists)


def test_the_ledger_knows_before_anything_leaves() -> None:
    with session_of(LISTS) as session:
        publish_baskets(session, "sold", ["beer → crisps"], **THRESHOLDS)
        [charge] = session.ledger.charges("sold")
        assert charge.state == "not private"
        assert session.unbounded == ("sold",)
        assert "spent of 'sold': unbounded (NOT PRIVATE)" in repr(session)
    assert session.unbounded == ("sold",)


def test_a_refusal_that_saw_rows_is_noted() -> None:
    with session_of([["beer", "crisps"]] * 6) as session:
        with pytest.raises(CloisterError, match="cannot hide"):
            publish_baskets(session, "sold", ["beer → crisps"], method="1.a", **THRESHOLDS)
        [charge] = session.ledger.charges("sold")
        assert charge.state == "not private"


def test_so_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cloister.mining.from_tables.hide_rules", stopped)
    with session_of(LISTS) as session:
        with pytest.raises(KeyboardInterrupt):
            publish_baskets(session, "sold", ["beer → crisps"], **THRESHOLDS)
        assert session.unbounded == ("sold",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"item": "goods"}, "was not found"),
        ({"item": "basket"}, "it is the basket column"),
        ({"method": "magic"}, "known are auto"),
        ({"min_support": "2"}, "min_support"),
        ({"time_limit": "-1"}, "time_limit"),
        ({"rules": None}, "list of rules"),
        ({"rules": []}, "nothing is to be hidden"),
        ({"rules": ["tea"]}, "one arrow"),
        ({"rules": ["beer → zzz"]}, "zzz"),
        ({"table": "nope"}, "'nope' is unknown"),
    ],
)
def test_what_needs_no_row_is_refused_before_the_door(given: dict[str, Any], words: str) -> None:
    with session_of(LISTS) as session:
        with pytest.raises(CloisterError, match=words):
            publish_baskets(session, **{"table": "sold", "rules": ["beer → crisps"], **THRESHOLDS, **given})
        assert not session.ledger.charges("sold")


@pytest.mark.parametrize(
    ("domain", "rules", "words"),
    [
        (cl.Text(), ["1"], "one arrow"),
        (cl.Text(), [], "nothing is to be hidden"),
        (cl.Text(), [("1", "1")], "share an item"),
        (cl.Integer(1, 9), [1], "two sides"),
        (cl.Integer(1, 9), ["1 → 12"], "12"),
        (cl.Boolean(), ["True → yes"], "yes"),
    ],
)
def test_so_it_is_where_items_are_no_categories(domain: Any, rules: Any, words: str) -> None:
    """It was refused after the mark: the population's spending read "unbounded" for a slip of the pen."""
    table = cl.PrivateTable(
        {"basket": ["a", "a"], "item": [1, 2]}, {"basket": cl.Text(), "item": domain}, unit="basket", max_rows=4
    )
    with cl.Session({"sold": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(CloisterError, match=words):
            publish_baskets(session, "sold", rules, **THRESHOLDS)
        assert not session.ledger.charges("sold")


def test_rules_may_come_one_by_one() -> None:
    """They were read once before the mark, and none was left after it."""
    with session_of(LISTS) as session:
        found = publish_baskets(session, "sold", (each for each in ["beer → crisps"]), **THRESHOLDS)
    assert found.effects.sensitive == 1


def test_texts_with_commas_and_arrows_are_items_of_undeclared_ones() -> None:
    rows = {"basket": list("aaabbb"), "item": ["甲，乙", "a->b", "x, y"] * 2}
    table = cl.PrivateTable(rows, {"basket": cl.Text(), "item": cl.Text()}, unit="basket", max_rows=4)
    with cl.Session({"sold": table}, budget=cl.PureDP(1)) as session:
        rules = [("甲，乙", "x, y"), "a->b → 甲，乙", (("x, y",), ["a->b"])]
        found = publish_baskets(session, "sold", rules, **THRESHOLDS)
    assert found.effects.sensitive == 3


@pytest.mark.parametrize("domain", [cl.Text(), cl.Category([ODD, "tea", "x, y", "a, x, y"])])
def test_a_comma_may_stand_in_the_name_of_an_item(domain: Any) -> None:
    """The text was divided there, and no basket held the pieces."""
    rows = {"basket": list("aaabbb"), "item": [ODD, "tea", "x, y"] * 2}
    sold = cl.PrivateTable(rows, {"basket": cl.Text(), "item": domain}, unit="basket", max_rows=4)
    with cl.Session({"sold": sold}, budget=cl.PureDP(1)) as session:
        found = publish_baskets(session, "sold", [f"{ODD} → tea", f"tea, {ODD}->x, y"], **THRESHOLDS)
    assert [rule.there_before for rule in found.rules] == [True, True]


def test_of_declared_numbers_each_is_known() -> None:
    """As of categories: a rule of a number that nobody holds was refused, after the mark."""
    rows = {"basket": ["a", "a", "b", "b"], "item": [2, 5, 2, 5]}
    table = cl.PrivateTable(rows, {"basket": cl.Text(), "item": cl.Integer(1, 9)}, unit="basket", max_rows=4)
    with cl.Session({"sold": table}, budget=cl.PureDP(1)) as session:
        found = publish_baskets(session, "sold", [(2, 5), "7 → 2"], **THRESHOLDS)
    assert [rule.there_before for rule in found.rules] == [True, False]
    assert {item for basket in found.data for item in basket} <= {2, 5}


def test_words_of_what_went_wrong_inside_stay_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **more: Any) -> Callable[[], None]:
        raise RuntimeError("n3 holds beer")

    monkeypatch.setattr("cloister.mining.from_tables.hide_rules", broken)
    with session_of(LISTS) as session, pytest.raises(CloisterError) as told:
        publish_baskets(session, "sold", ["beer → crisps"], **THRESHOLDS)
    assert "n3" not in str(told.value)
    assert told.value.__cause__ is None
