"""Border-based hiding: lower the support of sensitive sets with an eye on the sets that are most at risk.

The *revised positive border* holds the largest frequent sets that are to stay frequent: none of them contains a sensitive set,
and every set that may stay is part of one of them. What keeps the border frequent keeps all of it frequent, so both methods look
at nothing else (Sun & Yu, ICDM 2005).

- *BBA* (Sun & Yu 2005) weighs each set of the border by (lost so far + 1) over how far above the least it is, and takes out the
  item of the basket whose border sets weigh least together.
- *max–min* (Moustakides & Verykios 2006, 2008) looks, for each item of the sensitive set, at the border set with that item that
  is closest to the least; takes the item for which this one is farthest; and takes it out of a basket that does not hold that
  border set, where there is such a basket, and that holds the fewest border sets with the item.

Rules are hidden by the support of both sides together.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cloister.mining.baskets import Codes
from cloister.mining.sensitive import Problem
from cloister.mining.worked import Worked


def revised_border(problem: Problem) -> list[tuple[int, ...]]:
    """The largest frequent sets that contain no sensitive set."""
    sensitive = [set(rule.whole) for rule in problem.sensitive]
    kept = [each for each in problem.found.mined.sets if not any(one.issubset(each) for one in sensitive)]
    within = {each[:place] + each[place + 1 :] for each in kept for place in range(len(each))}
    return [each for each in kept if each not in within]


class _Border:
    """Border sets that have an item of a sensitive rule, and which of the baskets at hand hold them."""

    def __init__(self, problem: Problem) -> None:
        changing = set(problem.items)
        self.sets = [each for each in revised_border(problem) if changing & set(each)]
        counts, index = problem.found.mined.counts, problem.found.mined.index
        self.before = np.array([counts[index[each]] for each in self.sets], dtype=np.int64)
        self.now = self.before.copy()
        self.least = problem.thresholds.least
        self.with_item = {place: np.array([place in each for each in self.sets], dtype=np.bool_) for place in changing}

    def held(self, worked: Worked, baskets: Codes) -> npt.NDArray[np.bool_]:
        """A row for each border set, a column for each of these baskets."""
        found = np.ones((len(self.sets), len(baskets)), dtype=np.bool_)
        columns = {place: worked.problem.baskets.column(place)[baskets] for each in self.sets for place in each}
        columns |= {place: column[baskets] for place, column in worked.columns.items()}
        for row, each in zip(found, self.sets, strict=True):
            for place in each:
                row &= columns[place]
        return found


_Choose = Callable[[_Border, tuple[int, ...], npt.NDArray[np.bool_], Codes], tuple[int, int]]


def along_border(problem: Problem, choose: _Choose) -> Worked:
    """Each sensitive set in turn, the least frequent first, an entry at a time."""
    worked, border = Worked(problem), _Border(problem)
    sets = list(dict.fromkeys(rule.whole for rule in problem.sensitive))
    for each in sorted(sets, key=lambda one: (worked.count(one), len(one))):
        baskets = worked.holders(each)
        held = border.held(worked, baskets)
        sizes = worked.sizes[baskets].copy()
        while len(baskets) >= border.least:
            victim, place = choose(border, each, held, sizes)
            hit = border.with_item[victim] & held[:, place]
            border.now[hit] -= 1
            worked.remove(victim, int(baskets[place]))
            baskets, sizes, held = np.delete(baskets, place), np.delete(sizes, place), np.delete(held, place, axis=1)
    return worked


def lightest(border: _Border, each: tuple[int, ...], held: npt.NDArray[np.bool_], sizes: Codes) -> tuple[int, int]:
    """BBA: the item whose border sets weigh least together, and its basket."""
    room = np.maximum(border.now - border.least, 0)
    lost = border.before - border.now + 1
    weights = np.where(room > 0, lost / np.maximum(border.before - border.least, 1), float(1 + border.before.sum()))
    weights[border.now < border.least] = 0.0  # what is lost already can be lost no more
    offers: list[tuple[float, int, int, int]] = []
    for victim in each:
        costs = weights[border.with_item[victim]] @ held[border.with_item[victim]]
        place = int(np.lexsort((sizes, costs))[0])
        offers.append((float(costs[place]), int(sizes[place]), victim, place))
    return min(offers)[2:]


def farthest(border: _Border, each: tuple[int, ...], held: npt.NDArray[np.bool_], sizes: Codes) -> tuple[int, int]:
    """Max–min: the item whose border set nearest the least is farthest from it, and the basket that costs least."""
    alive = border.now >= border.least
    nearest = {
        victim: int(border.now[border.with_item[victim] & alive].min(initial=int(border.before.sum()) + 1)) for victim in each
    }
    victim = max(each, key=lambda item: (nearest[item], -item))
    mine = border.with_item[victim] & alive
    at_risk = mine & (border.now == nearest[victim])
    place = int(np.lexsort((sizes, held[mine].sum(axis=0), held[at_risk].sum(axis=0)))[0])
    return victim, place
