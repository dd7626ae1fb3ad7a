"""What the floors of nodes will be, guessed from a few that were counted.

Were columns independent, the number of pairs of rows that look alike would be a product of one factor for each column and level;
it is nearly so in real tables. The factors are fitted to the nodes that were judged on the way to a first good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.tables import Levels

_FEWEST = 5
_STIFF = 1e-6
"""How much a step that no node tells of is held to the usual one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Guesses:
    """For each node a guess of its floor, on some scale on which going up a level adds."""

    guess: npt.NDArray[np.float64]
    aim: float
    """The score to be beaten, on the same scale."""
    step: float
    """What a level adds, in the mean."""
    error: float
    """How far guesses are from what is known, in the mean square; what is near to the aim counts most."""


def guesses(heights: Levels, known: Sequence[tuple[Levels, float]], limit: float) -> Guesses | None:
    """By least squares, weighted; None where too little is known."""
    known = [(levels, floor) for levels, floor in known if isfinite(floor)]
    if len(known) < _FEWEST or not np.isfinite(limit):
        return None
    floors = np.array([floor for _, floor in known])
    products = bool((floors > 0).all() and limit > 0)
    height = np.log(floors) if products else floors
    steps = sum(heights) - len(heights)
    if not steps or not np.ptp(height) > 0:
        return None
    # a column for each step from a level to the next, and one for the bottom
    levels = np.array([levels for levels, _ in known])
    passed = [levels[:, column] > step for column, tall in enumerate(heights) for step in range(tall - 1)]
    design = np.column_stack([*passed, np.ones(len(known))]).astype(np.float64)
    # nearer to what has to be beaten counts more
    aim = float(np.log(limit)) if products else float(limit)
    near = 1.0 / (1.0 + np.abs(height - aim) / np.ptp(height) * steps)
    usual = np.ptp(height) / steps
    # the normal equations are small, and need no threads that wait for one another
    weighted = design * near[:, None]
    square = np.einsum("ij,ik->jk", weighted, weighted) + np.diag([*[_STIFF] * steps, 0.0])
    found = np.linalg.solve(square, np.einsum("ij,i->j", weighted, height * near) + np.array([*[_STIFF * usual] * steps, 0.0]))
    off = (design @ found - height) * near
    error = float(np.sqrt(np.einsum("i,i->", off, off) / np.einsum("i,i->", near, near)))
    guess = np.full((1,) * len(heights), found[-1])
    begin = 0
    for column, tall in enumerate(heights):
        shape = [1] * len(heights)
        shape[column] = tall
        up = np.maximum(found[begin : begin + tall - 1], 0.0)
        guess = guess + np.concatenate([[0.0], np.cumsum(up)]).reshape(shape)
        begin += tall - 1
    return Guesses(guess=guess, aim=aim, step=usual, error=error)
