"""Risk against loss: the nodes that a choice is really between."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from cloister.anonymize.problem import Problem
from cloister.anonymize.searches.border import border
from cloister.anonymize.searches.counting import Levels
from cloister.anonymize.searches.judging import Judge

_MOST_SCORED = 20_000


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One recoding by levels, and what it is worth."""

    levels: dict[str, int]
    risk: float
    """The mean over published rows of 1 / the size of the row's class: how often a person who is looked up is found."""
    highest_risk: float
    """1 / the size of the smallest class."""
    loss: float
    """What the problem's metric says."""
    classes: int
    suppressed: int


def frontier(problem: Problem, *, highest: bool = False) -> list[Choice]:
    """Allowed recodings of which none other has both less risk and less loss, by falling risk.

    `highest` compares by the risk of the smallest class in place of the mean. Of several that are alike in both the one with
    fewer levels is taken. In a lattice of many allowed nodes those of the lowest floors are compared, as many as the time
    allows.
    """
    until = None if problem.seconds is None else time.monotonic() + problem.seconds
    found = border(problem)
    judge = Judge(problem)
    judge.lowest()
    allowed = np.argwhere(found.allowed)
    if judge.metric.by_levels and len(allowed):
        floors = judge.floors(list(allowed.T))
        allowed = allowed[np.argsort(floors, kind="stable")]
    choices: list[Choice] = []
    for place, levels in enumerate(allowed[:_MOST_SCORED].tolist()):
        if place % 100 == 0:
            problem.progress("comparing risk and information loss", place / len(allowed))
        if choices and (problem.stop() or (until is not None and time.monotonic() > until)):
            break
        choices.append(_choice(problem, judge, tuple(levels)))
    return _undominated(choices, highest)


def _choice(problem: Problem, judge: Judge, levels: Levels) -> Choice:
    node, kept = judge.counted(levels)
    sizes = node.sizes[kept]
    published = int(sizes.sum())
    return Choice(
        levels=dict(zip(problem.quasi, levels, strict=True)),
        risk=len(sizes) / published if published else 0.0,
        highest_risk=1.0 / int(sizes.min()) if published else 0.0,
        loss=judge.metric.score(node, kept),
        classes=len(sizes),
        suppressed=judge.rows - published,
    )


def _undominated(choices: list[Choice], highest: bool) -> list[Choice]:
    def risk(choice: Choice) -> float:
        return choice.highest_risk if highest else choice.risk

    ordered = sorted(choices, key=lambda choice: (choice.loss, risk(choice), sum(choice.levels.values())))
    found: list[Choice] = []
    for choice in ordered:
        if not found or risk(choice) < risk(found[-1]):
            found.append(choice)
    return found
