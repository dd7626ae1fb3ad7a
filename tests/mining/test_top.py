"""Noisy itemsets: counts of candidates, the laws of choice and noise, what is charged, and audits with twins that are caught.

Generators are fixed; audits state bounds at a confidence of 1 − 1e-9: of other seeds, fewer than one in 10⁸ would flake.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import BudgetExceeded, CloisterError, InvalidParameter, MissingBound, UnknownColumn
from cloister.mining import TopItemsets, top_itemsets
from cloister.mining.long_tables import numbered
from cloister.mining.top import Picker, by_width, counted, sets_of
from cloister.mining.top_tables import Picking
from cloister.noise import PermuteAndFlip, Random
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.mining.small import some

ITEMS = ["a", "b", "c", "d"]
RUNS = 4_000


def table(lists: list[list[str]], *, max_rows: int = 4, unit: str | None = "basket", **more: Any) -> cl.PrivateTable:
    rows = {
        "basket": [f"n{number}" for number, basket in enumerate(lists) for _ in basket],
        "item": [item for basket in lists for item in basket],
    }
    columns = {"basket": cl.Text(), "item": cl.Category(ITEMS)}
    return cl.PrivateTable(rows, columns, unit=unit, max_rows=max_rows if unit else None, **more)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 2), (2, 3), (1, 4)])
def test_every_candidate_is_counted(low: int, high: int) -> None:
    lists = [sorted({ord(item) - 97 for item in basket}) for basket in some(3, baskets=200, items=6)]
    pairs = np.array([(item, number) for number, basket in enumerate(lists) for item in basket])
    counts = counted(by_width(pairs[:, 0], pairs[:, 1]), 6, low, high)
    candidates = sets_of(range(len(counts)), 6, low, high)
    assert sorted(candidates) == sorted(each for size in range(low, high + 1) for each in combinations(range(6), size))
    for each, count in zip(candidates, counts.tolist(), strict=True):
        assert count == sum(set(each) <= set(basket) for basket in lists)


def test_the_first_choice_has_the_law_of_permute_and_flip() -> None:
    picker = Picker(k=3, guarantee=PureDP(3), total=3, squares=3)
    counts = np.array([5, 4, 3, 0])
    source = Random.deterministic(1)
    found = np.bincount([picker.pick(counts, source)[0][0] for _ in range(RUNS)], minlength=4)
    law = PermuteAndFlip(epsilon=Fraction(1, 2), monotone=True).probabilities(counts) * RUNS
    assert ((found - law) ** 2 / law).sum() < 30.7  # chi-square, 3 degrees of freedom: a false alarm in 10⁶ of other seeds


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP("0.1"), ApproxDP(1, "1e-6")])
def test_counts_are_off_by_the_margin_and_unbiased(guarantee: Any) -> None:
    picker = Picker(k=4, guarantee=guarantee, total=4, squares=4)
    counts = np.array([10**6, 2 * 10**6, 3 * 10**6, 4 * 10**6])
    source = Random.deterministic(2)
    errors = []
    for _ in range(400):
        chosen, noisy = picker.pick(counts, source)
        assert chosen == [3, 2, 1, 0]
        errors.append(noisy - counts[chosen])
    off = np.array(errors).ravel()
    _, noise = picker.parts
    assert abs(off.mean()) < 5 * math.sqrt(noise.variance / len(off))
    assert (np.abs(off) <= noise.margin("0.95")).mean() >= 0.93
    assert off.var() == pytest.approx(noise.variance, rel=0.3)


def test_the_parts_cost_no_more_than_the_whole() -> None:
    choice, noise = Picker(k=5, guarantee=PureDP("0.7"), total=3, squares=3).parts
    assert choice.epsilon * 5 + noise.guarantee.epsilon == Fraction(7, 10)
    choice, noise = Picker(k=5, guarantee=ZCDP("0.7"), total=3, squares=3).parts
    spent = 5 * choice.epsilon**2 / 8 + noise.guarantee.rho
    assert Fraction(7, 10) * Fraction(999_999, 10**6) < spent <= Fraction(7, 10)


def two(data: list[list[str]], n: int, random: Random, k: int = 2, epsilon: str = "2", cheat: bool = False) -> Any:
    """Outputs of n runs on these baskets: two choices and two counts, as one row of numbers."""
    mechanism = TopItemsets(items=ITEMS[:3], k=k, epsilon=epsilon, max_items=2, max_size=1)
    lists = [[ITEMS.index(item) for item in basket] for basket in data]
    pairs = np.array([(item, number) for number, basket in enumerate(lists) for item in basket]).reshape(-1, 2)
    counts = counted(by_width(pairs[:, 0], pairs[:, 1]), 3, 1, 1)
    picker = mechanism.picker
    if cheat:  # every choice and every number takes the whole ε of its half
        picker = Picker(k=k, guarantee=PureDP(k * Fraction(epsilon)), total=1, squares=1)
    return np.array([[*chosen, *noisy] for chosen, noisy in (picker.pick(counts, random) for _ in range(n))])


LEFT, RIGHT = [["a", "b"], ["a", "c"], ["b"]], [["a", "b"], ["a", "c"], ["b"], ["a", "b"]]


@pytest.mark.statistical
def test_an_audit_does_not_refute_it() -> None:
    found = audit(two, LEFT, RIGHT, runs=RUNS, random=Random.deterministic(3))
    assert not found.contradicts(PureDP(2))


@pytest.mark.statistical
def test_an_audit_refutes_the_twin_that_pays_once_for_all() -> None:
    def twin(data: list[list[str]], n: int, random: Random) -> Any:
        return two(data, n, random, epsilon="4", cheat=True)

    found = audit(twin, LEFT, RIGHT, runs=RUNS, random=Random.deterministic(4))
    assert found.contradicts(PureDP(2))


def test_the_cap_is_kept_and_chosen_at_random() -> None:
    mechanism = TopItemsets(items=ITEMS, k=4, epsilon=10_000, max_items=1, max_size=1)
    found = mechanism.release([ITEMS] * 4_000, random=Random.deterministic(5))
    assert sum(each.count for each in found) == 4_000
    assert all(abs(each.count - 1_000) < 5 * math.sqrt(4_000 * 3 / 16) for each in found)
    assert mechanism.picker.total == 1


def test_strangers_and_nobody() -> None:
    mechanism = TopItemsets(items=ITEMS, k=2, epsilon=1, max_items=3)
    for baskets in ([], [[]], [["no such item"]]):
        found = mechanism.release(baskets, random=Random.deterministic(6))
        assert len(found) == 2
        assert found.marked
    assert len(mechanism.release([["a"]])) == 2
    assert not mechanism.release([["a"]]).marked


def test_the_margins_of_choice_hold() -> None:
    lists = [["a"]] * 60 + [["b"]] * 50 + [["c"]] * 20
    mechanism = TopItemsets(items=ITEMS, k=1, epsilon=1, max_items=1, max_size=1)
    margin = mechanism.release(lists, random=Random.deterministic(0)).choice_margin("0.95")
    true = {"a": 60, "b": 50, "c": 20, "d": 0}
    source = Random.deterministic(7)
    missed = sum(60 - true[str(mechanism.release(lists, random=source)[0].items[0])] > margin for _ in range(500))
    assert missed <= 500 * 0.05 + 5 * math.sqrt(500 * 0.05 * 0.95)


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0},
        {"k": 11},
        {"max_items": 0},
        {"max_size": 0},
        {"min_size": 3},
        {"items": "abc"},
        {"items": ["a", "a"]},
        {"epsilon": 0},
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        TopItemsets(**{"items": ITEMS, "k": 2, "epsilon": 1, "max_items": 3, **parameters}).release([["a"]])
    assert refused.value.instead


def test_too_many_candidates_are_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidParameter, match="candidates"):
        TopItemsets(items=range(5_000), k=2, epsilon=1, max_items=3).release([[1]])


def test_a_session_charges_and_releases() -> None:
    lists = [["a", "b"]] * 400 + [["a"]] * 300 + [["c", "d"]] * 100
    with cl.Session({"sold": table(lists)}, budget=cl.PureDP(5), random=Random.deterministic(8)) as session:
        found = top_itemsets(session, "sold", k=3, spend=4, max_size=2)
        assert session.spent == PureDP(4)
        assert found[0].items == ("a",)
        assert {each.items for each in found} == {("a",), ("b",), ("a", "b")}
        assert abs(found[0].count - 700) <= found.margin("0.999999")
        assert found.marked
        assert "± " in str(found)
        assert found.to_frame().to_pydict()["size"][0] == 1
        with pytest.raises(BudgetExceeded):
            top_itemsets(session, "sold", k=3, spend=4)
        assert session.spent == PureDP(4)


@pytest.mark.parametrize("budget", [ZCDP(5), ApproxDP(9, "1e-6")])
def test_other_currencies(budget: Any) -> None:
    lists = [["a", "b"]] * 900 + [["a"]] * 300
    with cl.Session({"sold": table(lists)}, budget=budget, random=Random.deterministic(9)) as session:
        found = top_itemsets(session, "sold", k=2, spend=budget)
        assert found[0].items == ("a",)
        assert session.spent == budget


def test_sensitivities_follow_from_the_declaration() -> None:
    def picker(k: int, **about: Any) -> Picker:
        return Picking(item="item", basket="basket", k=k, min_size=1, max_size=2).picker(PureDP(1), table([["a"]], **about))

    assert (picker(9, max_rows=2).sensitivity, picker(9, max_rows=2).total) == (1, 3)  # {x}, {y}, {x, y}
    assert picker(2, max_rows=2).total == 2
    assert (picker(9, unit=None).sensitivity, picker(9, unit=None).total) == (1, 9)
    rows = {"person": ["x"], "basket": ["1"], "item": ["a"]}
    many = cl.PrivateTable(
        rows, {"person": cl.Text(), "basket": cl.Text(), "item": cl.Category(ITEMS)}, unit="person", max_rows=6
    )
    several = Picking(item="item", basket="basket", k=2, min_size=1, max_size=2).picker(PureDP(1), many)
    assert (several.sensitivity, several.total, several.squares) == (6, 12, 72)
    numbered = cl.PrivateTable(
        {"basket": [1], "item": ["a"]}, {"basket": cl.Integer(1, 9), "item": cl.Category(ITEMS)}, unit="basket", max_rows=2
    )
    assert Picking(item="item", basket="basket", k=9, min_size=1, max_size=2).picker(PureDP(1), numbered).total == 9


def test_a_unit_moves_no_count_by_more_than_is_claimed() -> None:
    """The rows that the door hands over, with and without one person, for random tables: counts move one way, and by no more."""
    method = Picking(item="item", basket="basket", k=3, min_size=1, max_size=2)
    draw = np.random.default_rng(10)
    for _ in range(30):
        counts = []
        rows = [(str(draw.integers(0, 5)), str(draw.integers(0, 6)), ITEMS[draw.integers(0, 4)]) for _ in range(30)]
        for kept in (rows, [row for row in rows if row[0] != "0"]):
            items = np.array([ITEMS.index(row[2]) for row in kept])
            owners = np.unique([row[1] for row in kept], return_inverse=True)[1]
            pairs = np.unique(owners * 4 + items)
            counts.append(counted(by_width(pairs % 4, pairs // 4), 4, 1, 2))
        many = cl.PrivateTable(
            {"p": [row[0] for row in rows], "basket": [row[1] for row in rows], "item": [row[2] for row in rows]},
            {"p": cl.Text(), "basket": cl.Text(), "item": cl.Category(ITEMS)},
            unit="p",
            max_rows=sum(row[0] == "0" for row in rows) or 1,
        )
        moved = counts[0] - counts[1]
        assert (moved >= 0).all()
        assert moved.max() <= method.picker(PureDP(1), many).sensitivity


def test_baskets_whose_names_differ_in_their_last_zero_byte_are_two() -> None:
    """Else a person with one row would be in a basket of two, and move more counts than are paid for."""
    assert numbered(cl.Text(), ["n", "n\0", "n"])[1].tolist() == [0, 1, 0]


def test_what_is_not_declared_is_refused() -> None:
    lists = [["a"]]
    with cl.Session({"sold": table(lists), "towns": cl.PublicTable({"x": [1]})}, budget=cl.PureDP(1)) as session:
        with pytest.raises(UnknownColumn):
            top_itemsets(session, "sold", k=1, spend=1, item="thing")
        with pytest.raises(InvalidParameter):
            top_itemsets(session, "sold", k=1, spend=1, item="item", basket="item")
        with pytest.raises(MissingBound):
            top_itemsets(session, "sold", k=1, spend=1, item="basket", basket="item")
        with pytest.raises(CloisterError):
            top_itemsets(session, "towns", k=1, spend=1)
        with pytest.raises(CloisterError):
            top_itemsets(session, "other", k=1, spend=1)
        with pytest.raises(InvalidParameter):
            top_itemsets(session, "sold", k=100, spend=1)
        assert session.spent == PureDP(0)
    wide = {"basket": cl.Text(), "item": cl.Integer(0, 10**6)}
    sold = cl.PrivateTable({"basket": ["b"], "item": [1]}, wide, unit="basket", max_rows=1)
    with (
        cl.Session({"sold": sold}, budget=cl.PureDP(1)) as session,
        pytest.raises(MissingBound, match="declares 1,000,001 values"),
    ):
        top_itemsets(session, "sold", k=1, spend=1)
    with pytest.raises(InvalidParameter, match="hands rows"):
        top_itemsets(object(), "sold", k=1, spend=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("domain", [cl.Date("2026-03-01", "2026-03-04"), cl.Real(0, "1.5", step="0.5")])
def test_days_and_numbers_of_few_steps_are_declared_items(domain: Any) -> None:
    """They were "not declared", while baskets of them were published."""
    first, second, *_ = domain.values()
    rows = {"basket": [str(n) for n in range(400) for _ in "ab"], "item": [first, second] * 400}
    sold = cl.PrivateTable(rows, {"basket": cl.Text(), "item": domain}, unit="basket", max_rows=2)
    with cl.Session({"sold": sold}, budget=cl.PureDP(9), random=Random.deterministic(1)) as session:
        found = top_itemsets(session, "sold", k=3, spend=9)
    assert sorted(each.items for each in found) == [(first,), (first, second), (second,)]


def test_missing_items_and_baskets_are_nobodys() -> None:
    rows = {"basket": ["1", None, "2", "2", None], "item": ["a", "a", None, "b", "a"]}
    columns = {"basket": cl.Text(nullable=True), "item": cl.Category(ITEMS, nullable=True)}
    with cl.Session(
        {"sold": cl.PrivateTable(rows, columns)}, budget=cl.PureDP(100_000), random=Random.deterministic(1)
    ) as session:
        found = top_itemsets(session, "sold", k=4, spend=100_000, max_size=1)
    assert {each.items[0]: each.count for each in found} == {"a": 1, "b": 1, "c": 0, "d": 0}


def test_noise_that_no_count_has_room_for_is_refused_before_it_is_charged() -> None:
    table = cl.PrivateTable({"item": ["a", "b"], "basket": [1, 2]}, {"item": cl.Category(["a", "b"]), "basket": cl.Integer(0, 9)})
    for budget, spend in ((cl.PureDP(1), "1e-25"), (cl.ZCDP(1), "1e-40")):
        with cl.Session({"sold": table}, budget=budget) as session:
            with pytest.raises(InvalidParameter, match="wider than the counts"):
                top_itemsets(session, "sold", k=1, max_size=1, item="item", basket="basket", spend=spend)
            assert not session.ledger.charges("sold")


@pytest.mark.parametrize("items", [None, 3, "tea", [["a"], "b"], []])
def test_items_that_are_none_are_refused(items: Any) -> None:
    with pytest.raises(InvalidParameter, match="items is invalid"):
        TopItemsets(items=items, k=1, epsilon=1, max_items=1).release([["a"]])
