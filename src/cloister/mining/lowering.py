"""The classical algorithms: lower a rule's confidence or support, rule by rule, basket by basket.

Named as in Dasseni, Verykios, Elmagarmid & Bertino (IHW 2001) and Verykios, Elmagarmid, Bertino, Saygin & Dasseni (TKDE 2004):

    1.a   raise the count of X: put the rest of X into baskets that hold much of it and not all of Y, until the confidence is low
    1.b   lower the count of X ∪ Y: take an item of Y out of the smallest baskets that hold both
    2.a   the same with an item of X or Y
    2.b   lower the count of X ∪ Y below the least: take its most frequent item out of the smallest baskets; largest rules first

1.b and 2.a stop as soon as confidence *or* support is low; 2.b goes on until support is. Where the papers choose the item "with
the least impact on the (|S|−1)-itemsets", taken here is the one for which the counts of those subsets of S that hold it sum to
the least. What a later rule undid of an earlier one is done again, until all are hidden: every step takes out (or puts in) an
entry, so there is an end. 1.a alone may fail: there may be too few baskets without X.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from cloister.mining.baskets import Codes
from cloister.mining.sensitive import Problem, Sensitive
from cloister.mining.worked import Worked


def lower_1a(problem: Problem) -> Worked:
    """Confidence, by raising the count of the antecedent."""
    return _until_hidden(problem, problem.sensitive, _complete)


def lower_1b(problem: Problem) -> Worked:
    """Confidence or support, by taking items out of the consequent."""
    return _until_hidden(problem, problem.sensitive, lambda worked, rule: _take_out(worked, rule, rule.consequent))


def lower_2a(problem: Problem) -> Worked:
    """Confidence or support, by taking items out of either side."""
    return _until_hidden(problem, problem.sensitive, lambda worked, rule: _take_out(worked, rule, rule.whole))


def lower_2b(problem: Problem) -> Worked:
    """Support, largest rules first."""
    counts = {rule: int(problem.baskets.holding(rule.whole).sum()) for rule in problem.sensitive}
    ordered = sorted(problem.sensitive, key=lambda rule: (-len(rule.whole), -counts[rule]))
    return _until_hidden(problem, ordered, _below_support)


def smallest_first(worked: Worked, baskets: Codes) -> Codes:
    """Baskets in the order of how few items they hold."""
    return baskets[np.argsort(worked.sizes[baskets], kind="stable")]


def _until_hidden(
    problem: Problem, rules: tuple[Sensitive, ...] | list[Sensitive], hide: Callable[[Worked, Sensitive], bool]
) -> Worked:
    worked = Worked(problem)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            if not worked.is_hidden(rule):
                changed |= hide(worked, rule)
    return worked


def _complete(worked: Worked, rule: Sensitive) -> bool:
    confidence = worked.problem.thresholds.confidence
    if not confidence:
        return False
    wanted = worked.count(rule.whole) * confidence.denominator // confidence.numerator + 1 - worked.count(rule.antecedent)
    free = np.flatnonzero(~worked.holding(rule.antecedent) & ~worked.holding(rule.consequent))
    held = np.sum([worked.columns[place][free] for place in rule.antecedent], axis=0)
    chosen = free[np.argsort(-held, kind="stable")][:wanted]
    for basket in chosen.tolist():
        for place in rule.antecedent:
            worked.add(place, basket)
    return len(chosen) > 0


def _take_out(worked: Worked, rule: Sensitive, choice: tuple[int, ...]) -> bool:
    victim = _least_impact(worked, choice)
    whole, antecedent = worked.count(rule.whole), worked.count(rule.antecedent)
    thresholds, both = worked.problem.thresholds, victim in rule.antecedent
    number = 0
    while thresholds.there(whole - number, antecedent - number * both):
        number += 1
    for basket in smallest_first(worked, worked.holders(rule.whole))[:number].tolist():
        worked.remove(victim, basket)
    return number > 0


def _below_support(worked: Worked, rule: Sensitive) -> bool:
    victim = max(rule.whole, key=lambda place: (worked.count((place,)), -place))
    number = worked.count(rule.whole) - worked.problem.thresholds.least + 1
    for basket in smallest_first(worked, worked.holders(rule.whole))[:number].tolist():
        worked.remove(victim, basket)
    return True


def _least_impact(worked: Worked, choice: tuple[int, ...]) -> int:
    if len(choice) == 1:
        return choice[0]
    parts = {part: worked.count(part) for part in combinations(choice, len(choice) - 1)}
    return min(choice, key=lambda place: (sum(count for part, count in parts.items() if place in part), place))
