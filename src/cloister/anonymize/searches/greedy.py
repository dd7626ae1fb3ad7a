"""Greedy search of a lattice: for so many columns that the best node would take too long, and to begin the optimal search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

import numpy as np

from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Proof, Recoded
from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.judging import Judge, Judgement, recode
from cloister.anonymize.searches.unmet import interrupted, unmet

Look = Callable[[Levels], Judgement]
Ended = Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Greedy(Search):
    """One level for each column, found by going down from the highest levels, the most promising nodes first.

    `width` nodes are carried from one generation to the next: those that score best among all that are one level lower in one
    column. Then single steps and exchanges (one column lower, another higher) are tried as long as one of them helps. It judges
    at most some thousands of nodes whatever the size of the lattice; its proof bounds how far it can be from the best.

    >>> Greedy(width=4).name
    'greedy'
    """

    name: ClassVar[str] = "greedy"
    width: int = 3

    def find(self, problem: Problem) -> Recoded:
        """The best node that was met, recoded."""
        until = None if problem.seconds is None else time.monotonic() + problem.seconds
        judge = Judge(problem)
        seen: dict[Levels, Judgement] = {}
        best = _search(judge, until, self.width, seen)
        if best is None:
            lost = seen and all(judged.hopeless_below for judged in seen.values())
            ended = problem.stop() or (until is not None and time.monotonic() > until)
            raise interrupted(problem) if ended and not lost else unmet(problem)
        bound = min(_bound(judge), best.score)
        proof = Proof.near(best.score, bound, f"{judge.judged:,} nodes were judged", problem.metric.ranged)
        return recode(problem, best.levels, proof)


def explore(judge: Judge, until: float | None = None, width: int = 3) -> tuple[Judgement | None, list[Judgement]]:
    """A good node to begin with, or None where none was found; and all nodes that were met on the way."""
    if until is not None:
        until = time.monotonic() + (until - time.monotonic()) / 4
    seen: dict[Levels, Judgement] = {}
    return _search(judge, until, width, seen), list(seen.values())


def descend(judge: Judge, until: float | None = None, width: int = 3) -> list[Levels]:
    """The levels of a good node, in a list; empty where none was found."""
    best, _ = explore(judge, until, width)
    return [] if best is None else [best.levels]


def _search(judge: Judge, until: float | None, width: int, seen: dict[Levels, Judgement]) -> Judgement | None:
    problem = judge.problem

    def ended() -> bool:
        return problem.stop() or (until is not None and time.monotonic() > until)

    def look(levels: Levels) -> Judgement:
        if levels not in seen:
            seen[levels] = judge.judge(levels)
        return seen[levels]

    best = _down(judge, look, ended, width)
    return best if best is None else _polish(judge, look, ended, best)


def _down(judge: Judge, look: Look, ended: Ended, width: int) -> Judgement | None:
    generation = [look(tuple(height - 1 for height in judge.heights))]
    found = [judged for judged in generation if judged.allowed]
    best = found[0] if found else None
    steps = sum(height - 1 for height in judge.heights)
    for step in range(steps):
        judge.problem.progress("going down the lattice", step / steps)
        below: dict[Levels, Judgement] = {}
        for levels, floor in _by_floor(judge, _children(generation)):
            if ended():
                return best
            if len(below) >= width and floor > sorted(one.score for one in below.values())[width - 1]:
                break  # neither this one nor any after it is among the best of its generation
            below[levels] = look(levels)
        # where the models are not monotone a node that is not allowed may stand over one that is
        generation = [one for one in below.values() if not one.hopeless_below]
        generation = sorted(generation, key=attrgetter("score", "suppressed", "levels"))[:width]
        best = min([*(one for one in generation if one.allowed), *([best] if best else [])], key=attrgetter("key"), default=None)
        if not generation:
            break
    return best


def _polish(judge: Judge, look: Look, ended: Ended, best: Judgement) -> Judgement:
    while True:
        start = best
        for levels, floor in _by_floor(judge, _neighbours(start.levels, judge.heights)):
            if ended():
                return best
            if floor > best.score:
                break
            judged = look(levels)
            if judged.allowed and judged.key < best.key:
                best = judged
        if best is start:
            return best


def _children(generation: Sequence[Judgement]) -> list[Levels]:
    """All that are one level lower in one column."""
    found = []
    for parent in generation:
        levels = parent.levels
        found += [(*levels[:column], level - 1, *levels[column + 1 :]) for column, level in enumerate(levels) if level]
    return list(dict.fromkeys(found))


def _by_floor(judge: Judge, nodes: list[Levels]) -> list[tuple[Levels, float]]:
    """With what each costs at least by its levels, the cheapest first; as they came where nothing is known before counting."""
    if not judge.metric.by_levels or not nodes:
        return [(levels, -np.inf) for levels in nodes]
    floors = judge.floors(list(np.array(nodes).T))
    return [(nodes[place], float(floors[place])) for place in np.argsort(floors, kind="stable").tolist()]


def _neighbours(levels: Levels, heights: Levels) -> list[Levels]:
    """One level up or down in one column, or down in one and up in another."""
    moves = [(place, -1) for place, level in enumerate(levels) if level]
    raises = [(place, 1) for place, level in enumerate(levels) if level + 1 < heights[place]]
    found = []
    for one in [[move] for move in moves + raises] + [[down, up] for down in moves for up in raises if down[0] != up[0]]:
        changed = list(levels)
        for place, step in one:
            changed[place] += step
        found.append(tuple(changed))
    return found


def _bound(judge: Judge) -> float:
    """What every allowed node costs: each column is as high as it has to be with all others on top."""
    low = judge.lowest()
    found = -np.inf
    if judge.metric.by_levels:
        found = float(judge.floors([np.array(level) for level in low]))
    if judge.metric.by_classes:
        found = max(found, judge.judge(low).floor)
    return found
