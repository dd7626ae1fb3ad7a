"""The sliding window algorithm: one pass over the baskets, a window at a time (Oliveira & Zaïane, ICDM 2003).

In each window, for each sensitive set: the baskets that hold it, smallest first; of these a share (1 − ψ), rounded up, loses one
item: that which most of the sensitive sets in this basket share, so that one removal serves several. ψ is the set's disclosure
threshold. Here it follows from the thresholds: (least − 1)/count, the largest that hides. The paper breaks ties by chance; here
the item that is held most often goes. Each window is rounded up by itself, so small windows take out more.
"""

from __future__ import annotations

import numpy as np

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Codes
from cloister.mining.lowering import smallest_first
from cloister.mining.sensitive import Problem
from cloister.mining.worked import Worked


def slide(problem: Problem, *, window: int = 10_000) -> Worked:
    """Support, in windows of so many baskets."""
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise InvalidParameter(f"window={window!r} is invalid", why="it is a number of baskets", instead="window=10_000")
    worked = Worked(problem)
    sets = list(dict.fromkeys(rule.whole for rule in problem.sensitive))
    holders = {each: worked.holders(each) for each in sets}
    allowed = problem.thresholds.least - 1
    counts = {place: worked.count((place,)) for place in problem.items}
    shared = _shared(worked, sets)
    for start in range(0, len(problem.baskets), window):
        inside = {each: found[(found >= start) & (found < start + window)] for each, found in holders.items()}
        for each in sets:
            total, here = len(holders[each]), len(inside[each])
            wanted = -(-here * (total - allowed) // total) if total > allowed else 0
            still = worked.holding(each)[inside[each]]
            for basket in smallest_first(worked, inside[each][still])[: max(0, wanted - int((~still).sum()))].tolist():
                worked.remove(max(each, key=lambda place: (shared[place][basket], counts[place], -place)), basket)
    return worked


def _shared(worked: Worked, sets: list[tuple[int, ...]]) -> dict[int, Codes]:
    """Of each item and basket, how many of the sensitive sets that the basket holds have the item."""
    found = {place: np.zeros(len(worked.problem.baskets), dtype=np.int64) for place in worked.problem.items}
    for each in sets:
        held = worked.holding(each)
        for place in each:
            found[place] += held
    return found
