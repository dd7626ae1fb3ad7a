"""What hiding did beside hiding: the four measures of the field, by mining again and comparing.

With R the rules that the thresholds find, R_s the sensitive ones among them, a dash for after:

    hiding failure   |R_s(D′)| / |R_s(D)|                       sensitive rules that are still found
    lost rules       |R̃_s(D) ∖ R̃_s(D′)| / |R̃_s(D)|               others that are found no more
    ghost rules      |R(D′) ∖ R(D)| / |R(D′)|                   rules that were not there before
    dissimilarity    Σ|f_D − f_D′| / Σ f_D  over all items       how much of the data changed, f being how often an item is held

(Oliveira & Zaïane 2002, 2003; Verykios et al. 2004.) A share of nothing is 0. Rules below the thresholds are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.mining.baskets import Baskets
from cloister.mining.itemsets import Engine, mine
from cloister.mining.rules import find_rules
from cloister.mining.sensitive import Problem


@dataclass(frozen=True, kw_only=True)
class SideEffects:
    """Counts, and the four measures of them.

    >>> effects = SideEffects(sensitive=2, failed=0, others=8, lost=2, rules=6, ghosts=0, entries=100, changed_counts=5,
    ...     removed=5, added=0, touched=5)
    >>> effects.hiding_failure, effects.lost_rules, effects.ghost_rules, effects.dissimilarity
    (0.0, 0.25, 0.0, 0.05)
    """

    sensitive: int
    """Sensitive rules that were found before, |R_s(D)|."""
    failed: int
    """Of these those still found."""
    others: int
    """Rules found before that are not sensitive."""
    lost: int
    """Of these those found no more."""
    rules: int
    """Rules found after."""
    ghosts: int
    """Of these those not found before."""
    entries: int
    """Σ f_D."""
    changed_counts: int
    """Σ|f_D − f_D′|."""
    removed: int
    """Entries taken out of a basket."""
    added: int
    """Entries put into a basket that did not hold them: made up."""
    touched: int
    """Baskets that are not what they were."""

    @property
    def hiding_failure(self) -> float:
        """|R_s(D′)| / |R_s(D)|."""
        return _share(self.failed, self.sensitive)

    @property
    def lost_rules(self) -> float:
        """|R̃_s(D) ∖ R̃_s(D′)| / |R̃_s(D)|."""
        return _share(self.lost, self.others)

    @property
    def ghost_rules(self) -> float:
        """|R(D′) ∖ R(D)| / |R(D′)|."""
        return _share(self.ghosts, self.rules)

    @property
    def dissimilarity(self) -> float:
        """Σ|f_D − f_D′| / Σ f_D."""
        return _share(self.changed_counts, self.entries)


def side_effects(problem: Problem, after: Baskets, engine: Engine = "bits") -> SideEffects:
    """Mine the changed baskets, and compare."""
    before = problem.found.keys
    now = find_rules(mine(after, problem.thresholds.least, engine=engine), problem.thresholds).keys
    sensitive = {(rule.antecedent, rule.whole) for rule in problem.sensitive}
    removed = added = 0
    touched = np.zeros(len(after), dtype=np.bool_)
    for place in problem.items:
        was, is_ = problem.baskets.column(place), after.column(place)
        removed += int((was & ~is_).sum())
        added += int((is_ & ~was).sum())
        touched |= was != is_
    return SideEffects(
        sensitive=len(sensitive),
        failed=len(sensitive & now),
        others=len(before - sensitive),
        lost=len(before - sensitive - now),
        rules=len(now),
        ghosts=len(now - before),
        entries=int(problem.baskets.counts.sum()),
        changed_counts=int(np.abs(problem.baskets.counts - after.counts).sum()),
        removed=removed,
        added=added,
        touched=int(touched.sum()),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
