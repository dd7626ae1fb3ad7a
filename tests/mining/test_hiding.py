"""Every method hides, says what it cost, and the exact one is the least of what brute force can find."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from cloister.errors import CloisterError, InvalidParameter
from cloister.mining import METHODS, association_rules, compare, hide_rules
from cloister.mining.baskets import Baskets
from cloister.mining.borders import along_border, farthest, lightest, revised_border
from cloister.mining.exact import hide_exactly
from cloister.mining.hiding import side_effects, slide
from cloister.mining.lowering import lower_1a, lower_1b, lower_2a, lower_2b
from cloister.mining.program import reachable
from cloister.mining.sensitive import Problem, Sensitive
from tests.mining.small import CHESS, GROCERIES, chess, groceries, problems, rules_by_hand

TAKING_OUT = {
    "1.b": lower_1b,
    "2.a": lower_2a,
    "2.b": lower_2b,
    "SWA": slide,
    "BBA": lambda problem: along_border(problem, lightest),
    "max-min": lambda problem: along_border(problem, farthest),
}
SMALL = [["beer", "crisps"]] * 4 + [["beer", "crisps", "jam"]] * 2 + [["beer"]] * 3 + [["jam", "tea"]] * 5


def hidden(problem: Problem, after: Baskets, rule: Sensitive) -> bool:
    whole, left = (int(after.holding(side).sum()) for side in (rule.whole, rule.antecedent))
    least = -(-problem.thresholds.support.numerator * len(after) // problem.thresholds.support.denominator)
    return whole < least or Fraction(whole, max(left, 1)) < problem.thresholds.confidence


@pytest.mark.parametrize("name", TAKING_OUT)
def test_what_only_takes_out_always_hides(name: str) -> None:
    tried = 0
    for problem in problems(range(40), rules=3):
        after = TAKING_OUT[name](problem).baskets()
        assert all(hidden(problem, after, rule) for rule in problem.asked)
        effects = side_effects(problem, after)
        assert (effects.failed, effects.added) == (0, 0)
        tried += 1
    assert tried > 20


def test_raising_the_antecedent_hides_or_says_that_it_did_not() -> None:
    outcomes = Counter()
    for problem in problems(range(40), rules=2):
        worked = lower_1a(problem)
        effects = side_effects(problem, worked.baskets())
        assert effects.removed == 0
        assert (effects.failed == 0) == all(hidden(problem, worked.baskets(), rule) for rule in problem.asked)
        outcomes[effects.failed == 0] += 1
    assert outcomes[True]
    assert outcomes[False]


@pytest.mark.parametrize("seed", range(6))
def test_side_effects_are_those_of_brute_force(seed: int) -> None:
    for problem in problems(range(seed, seed + 1), rules=2):
        after = lower_2b(problem).baskets()
        before_lists, after_lists = (  # the tests' own miner, on plain lists
            [[str(item) for item in basket] for basket in each.lists()] for each in (problem.baskets, after)
        )
        least, c = problem.thresholds.least, problem.thresholds.confidence
        before = rules_by_hand(before_lists, least, (c.numerator, c.denominator))
        now = rules_by_hand(after_lists, least, (c.numerator, c.denominator))
        names = problem.baskets.items
        secret = {tuple(frozenset(str(names[i]) for i in side) for side in (r.antecedent, r.consequent)) for r in problem.asked}
        effects = side_effects(problem, after)
        assert effects.hiding_failure == len(secret & now) / len(secret)
        assert effects.lost_rules == len(before - secret - now) / len(before - secret)
        assert effects.ghost_rules == (len(now - before) / len(now) if now else 0)
        counts = [Counter(item for basket in lists for item in basket) for lists in (before_lists, after_lists)]
        changed = sum(abs(counts[0][item] - counts[1][item]) for item in counts[0])
        assert effects.dissimilarity == changed / sum(counts[0].values())


def test_the_border_covers_what_may_stay() -> None:
    for problem in problems(range(15)):
        border = [set(each) for each in revised_border(problem)]
        for each in problem.found.mined.sets:
            stays = not any(set(rule.whole) <= set(each) for rule in problem.sensitive)
            assert stays == any(set(each) <= one for one in border)
        assert not any(one < other for one in border for other in border)


def least_lost(problem: Problem, *, insertions: bool) -> tuple[int, int]:
    """The fewest lost rules, and of such answers the fewest entries, over every answer of the space there is."""
    rows = [frozenset(problem.baskets.places[item] for item in basket) for basket in problem.baskets.lists()]
    sensitive = set(problem.items)
    options = []
    for row in rows:
        own, rest = row & sensitive, row - sensitive
        others = reachable(frozenset(own), problem.sensitive, insertions=insertions)
        options.append([row, *(rest | each for each in others)])
    best = (10**9, 10**9)
    secret = {(rule.antecedent, rule.whole) for rule in problem.sensitive}
    rules = problem.found.keys - secret
    sides = {side for pair in problem.found.keys for side in pair}
    for answer in product(*options):
        counts = {side: sum(row.issuperset(side) for row in answer) for side in sides}
        if any(problem.thresholds.there(counts[whole], counts[left]) for left, whole in secret):
            continue
        lost = sum(not problem.thresholds.there(counts[whole], counts[left]) for left, whole in rules)
        if lost <= best[0]:
            entries = sum(len(old ^ new) for old, new in zip(rows, answer, strict=True))
            best = min(best, (lost, entries))
    return best


@pytest.mark.parametrize("insertions", [False, True])
def test_exact_is_the_optimum_of_brute_force(insertions: bool) -> None:
    tried = better = 0
    for problem in problems(range(40), rules=2, baskets=7, items=4, support="0.25", confidence="0.5"):
        rows = [set(basket) for basket in problem.baskets.lists()]
        names = problem.baskets.items
        ways = [
            1
            + len(
                reachable(
                    frozenset(problem.baskets.places[i] for i in row) & set(problem.items),
                    problem.sensitive,
                    insertions=insertions,
                )
            )
            for row in rows
        ]
        if np.prod(ways) > 3_000 or not names:
            continue
        starts = [lower_2b(problem).columns]
        columns, proof = hide_exactly(problem, starts, insertions=insertions, seconds=20)
        effects = side_effects(problem, problem.baskets.with_columns(columns))
        expected = least_lost(problem, insertions=insertions)
        assert proof.optimal
        assert effects.failed == 0
        assert effects.lost == proof.lost == expected[0]
        if not insertions:
            assert proof.fewest
            assert effects.removed == expected[1]
        tried += 1
        better += effects.lost < side_effects(problem, lower_2b(problem).baskets()).lost
    assert tried >= 8
    assert better


def test_every_answer_of_the_heuristics_is_in_the_space() -> None:
    for problem in problems(range(25), rules=3):
        sensitive = set(problem.items)
        for heuristic in TAKING_OUT.values():
            after = heuristic(problem).baskets()
            for old, new in zip(problem.baskets.lists(), after.lists(), strict=True):
                before, then = (frozenset(problem.baskets.places[item] for item in row) & sensitive for row in (old, new))
                assert before == then or then in reachable(before, problem.sensitive, insertions=False)


@pytest.mark.parametrize("seed", range(5))
def test_exact_loses_no_more_than_any_heuristic(seed: int) -> None:
    for problem in problems(range(seed, seed + 1), rules=2, baskets=60):
        starts = [heuristic(problem).columns for heuristic in TAKING_OUT.values()]
        lost = [side_effects(problem, problem.baskets.with_columns(each)).lost for each in starts]
        _, proof = hide_exactly(problem, starts, insertions=False, seconds=10)
        assert proof.lost <= min(lost)
        assert proof.bound <= proof.lost


def test_when_time_is_up_the_gap_is_told() -> None:
    problem = next(problems(range(3, 40), rules=3, baskets=200))
    columns, proof = hide_exactly(problem, [lower_2b(problem).columns], insertions=True, seconds=1e-6)
    assert side_effects(problem, problem.baskets.with_columns(columns)).failed == 0
    assert not proof.optimal
    assert f"gap of {proof.gap}" in str(proof)
    assert proof.gap == proof.lost - proof.bound > 0


def test_one_call_hides_and_reports() -> None:
    result = hide_rules(SMALL, [("beer", "crisps")], min_support="0.2", min_confidence="0.6", shuffle=False)
    assert association_rules(result.data, min_support="0.2", min_confidence="0.6").found.keys.isdisjoint({((0,), (0, 1))})
    assert "NOT differentially private" in result.not_private
    assert "NOT differentially private" in str(result)
    stated = json.loads(result.to_json())
    assert stated["hiding_failure"] == 0
    assert stated["proof"]["optimal"] is True
    assert "beer → crisps: support 42.86% → 35.71%" in str(result)


def test_the_comparison_has_every_method_and_a_picture() -> None:
    found = compare(SMALL, ["beer -> crisps"], min_support="0.2", min_confidence="0.6")
    assert [each.method for each in found] == list(METHODS)
    assert found["exact"].effects.lost == min(each.effects.lost for each in found if not each.effects.failed)
    frame = found.to_frame().to_pydict()
    assert frame["method"] == list(METHODS)
    assert set(frame) >= {"hiding_failure", "lost_rules", "ghost_rules", "dissimilarity"}
    assert len(found.chart().to_dict()["hconcat"]) == 4
    assert str(found).count("\n") == len(METHODS) + 1
    assert len(json.loads(found.to_json())) == len(METHODS)
    with pytest.raises(InvalidParameter, match="compared are"):
        found["3.c"]


def test_the_exact_method_needs_no_other_that_hides() -> None:
    found = compare([["a", "b"]] * 6, ["a -> b"], min_support="0.5", min_confidence="0.6", methods=["1.a", "exact"])
    assert [each.effects.hiding_failure for each in found] == [1, 0]


def test_a_rule_that_is_not_found_is_hidden_already() -> None:
    result = hide_rules(SMALL, [("tea", "beer")], min_support="0.2", min_confidence="0.6")
    assert sorted(map(sorted, result.baskets.lists())) == sorted(map(sorted, Baskets.of(SMALL).lists()))
    assert result.effects.hiding_failure == 0
    assert "was not found before" in str(result)


def test_a_threshold_of_one_basket_can_be_hidden_under() -> None:
    result = hide_rules([["a", "b"]], [("a", "b")], min_support=1, min_confidence=1)
    assert result.effects.hiding_failure == 0
    assert result.effects.removed == 1


@pytest.mark.parametrize("method", ["2.a", "exact", "SWA"])
def test_confidence_of_nought_leaves_support(method: Any) -> None:
    result = hide_rules(SMALL, [("beer", "crisps")], min_support="0.2", min_confidence=0, method=method)
    assert result.effects.failed == 0
    assert result.baskets.holding((0, 1)).sum() == 2


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ([], "nothing"),
        ("beer -> crisps", "list of rules"),
        ([("beer", "beer")], "share an item"),
        ([((), "beer")], "empty"),
        ([("bear", "crisps")], "there is 'beer'"),
        (["beer"], "arrow"),
        (["beer -> crisps -> jam"], "arrow"),
        ([("beer", "crisps", "jam")], "two sides"),
        ([7], "two sides"),
    ],
)
def test_what_is_no_rule_is_refused(rules: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        hide_rules(SMALL, rules, min_support="0.2", min_confidence="0.6")
    assert refused.value.instead


@pytest.mark.parametrize(
    "parameters",
    [
        {"method": "3.c"},
        {"time_limit": 0},
        {"window": 0, "method": "SWA"},
        {"min_support": 0},
        {"min_confidence": 2},
        {"basket": "x"},
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any]) -> None:
    given: dict[str, Any] = {"min_support": "0.2", "min_confidence": "0.6", **parameters}
    source = {"basket": ["1", "1"], "item": ["beer", "crisps"]} if "basket" in parameters else SMALL
    with pytest.raises(CloisterError):
        hide_rules(source, [("beer", "crisps")], **given)


def test_a_method_that_cannot_hide_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="cannot hide"):
        hide_rules([["a", "b"]] * 4, [("a", "b")], min_support="0.5", min_confidence="0.5", method="1.a")


def test_mined_rules_can_be_handed_back() -> None:
    mined = association_rules(SMALL, min_support="0.2", min_confidence="0.6")
    result = hide_rules(SMALL, [mined[0]], min_support="0.2", min_confidence="0.6", method="2.b")
    assert result.effects.failed == 0


@pytest.mark.skipif(not GROCERIES.exists(), reason="the shared data are not here")
def test_groceries_are_hidden_with_a_proof() -> None:
    rules = ["yogurt, curd -> whole milk", "butter -> whole milk", "domestic eggs -> whole milk"]
    methods = [name for name in METHODS if name != "1.a"]
    found = compare(groceries(), rules, min_support="0.01", min_confidence="0.3", methods=methods, time_limit=60)
    assert [each.effects.hiding_failure for each in found] == [0] * len(methods)
    exact = found["exact"]
    assert exact.effects.sensitive == 3
    assert exact.proof is not None
    assert exact.proof.optimal
    assert exact.effects.lost == min(each.effects.lost for each in found)


@pytest.mark.skipif(not CHESS.exists(), reason="the shared data are not here")
def test_chess_is_hidden_and_the_gap_is_told_where_there_is_one() -> None:
    rules, methods = ["hdchk=f, skach=f -> reskd=f"], ["1.b", "2.b", "exact"]
    found = compare(chess(), rules, min_support="0.96", min_confidence="0.95", methods=methods, time_limit=4)
    assert found["2.b"].effects.sensitive == 1
    assert found["2.b"].effects.removed > 0
    assert [each.effects.hiding_failure for each in found] == [0, 0, 0]
    assert found["exact"].effects.lost <= min(each.effects.lost for each in found)
    assert found["exact"].proof is not None
    assert found["exact"].proof.optimal or found["exact"].proof.gap > 0


def test_methods_and_columns_of_the_wrong_kind_are_refused_in_words() -> None:
    """methods=-1 and a list for the name of a column ended in a TypeError; a method by itself was read letter by letter."""
    how: dict[str, Any] = {"min_support": "0.2", "min_confidence": "0.6"}
    for methods in (-1, [[]], "2.x"):
        with pytest.raises(InvalidParameter, match=r"methods=\["):
            compare(SMALL, ["beer -> crisps"], methods=methods, **how)
    assert [each.method for each in compare(SMALL, ["beer -> crisps"], methods="2.a", **how)] == ["2.a"]
    long = {"basket": [1, 1, 2], "item": ["beer", "crisps", "beer"]}
    for columns in ({"item": []}, {"basket": []}, {"item": [1]}, {"basket": ""}):
        with pytest.raises(CloisterError, match="was not found"):
            hide_rules(long, ["beer -> crisps"], **columns, **how)
