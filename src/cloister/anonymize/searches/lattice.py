"""The best recoding in which each column has one level: proved, because every other was judged or ruled out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Proof, Recoded
from cloister.anonymize.searches.boxes import Boxes
from cloister.anonymize.searches.greedy import explore
from cloister.anonymize.searches.judging import Judge, Judgement, recode
from cloister.anonymize.searches.tagging import Tagged
from cloister.anonymize.searches.unmet import interrupted, unmet

_SMALL = 50_000
"""In lattices of more nodes than this the first node is searched for with more care."""


@dataclass(frozen=True, kw_only=True)
class OptimalLattice(Search):
    """The best node of the lattice of levels: globally optimal full-domain recoding (as in Incognito, OLA and Flash, with
    bounds).

    Every node gives each quasi-identifier one level of its hierarchy. A node is allowed when the rows of its classes that miss
    a model are no more than may be suppressed. Nodes are ruled out in cones: all below one that is not allowed (where the
    models let that be concluded), and all above one whose floor is no better than the best score so far. Counts are rolled up
    from node to node and never from rows. No column stands higher than the score is worth: of two nodes of the same score, one
    over the other, the lower one is taken.

    Lattices of more than `most_nodes` nodes are searched by dividing them into boxes, best bound first. With a time budget
    (`Problem.seconds`) the best node so far is returned, and its proof says how far from the best it may be.

    >>> OptimalLattice().name
    'optimal'
    """

    name: ClassVar[str] = "optimal"
    most_nodes: int = 4_000_000

    def find(self, problem: Problem) -> Recoded:
        """The best node, recoded."""
        until = None if problem.seconds is None else time.monotonic() + problem.seconds
        judge = Judge(problem)
        low = judge.lowest()
        nodes = float(np.prod([float(height) for height in judge.heights]))
        search: Tagged | Boxes = Tagged(judge) if nodes <= self.most_nodes else Boxes(judge)
        _, met = explore(judge, until, 3 if nodes > _SMALL else 1)
        whole = search.run(until, low, met)
        if search.best is None:
            raise unmet(problem) if whole else interrupted(problem)
        return recode(problem, _settled(judge, search.best).levels, _proof(search, whole, nodes))


def _settled(judge: Judge, best: Judgement) -> Judgement:
    """The same score on lower levels, where there is one below: nothing is made coarser for no gain."""
    for column in range(len(best.levels)):
        while level := best.levels[column]:
            lower = judge.judge((*best.levels[:column], level - 1, *best.levels[column + 1 :]))
            if not lower.allowed or lower.score > best.score:
                break
            best = lower
    return best


def _proof(search: Tagged | Boxes, whole: bool, nodes: float) -> Proof:
    assert search.best is not None
    score, judged = search.best.score, search.judge.judged
    if whole:
        return Proof(optimal=True, bound=score, what=f"{judged:,} of {nodes:,.0f} nodes were judged, all others ruled out")
    bound = min(search.bound(), score)
    gap = f", so that it is at most {(score - bound) / abs(bound):.1%} above the best" if bound > 0 else ""
    return Proof(
        optimal=False,
        bound=bound,
        what=f"{judged:,} of {nodes:,.0f} nodes were judged in the time; its score is {score:,.6g} and none has less than "
        f"{bound:,.6g}{gap}",
    )
