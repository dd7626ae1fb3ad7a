"""Which level each column gets, chosen by the exponential mechanism: the look at the rows that `levels=` saves is paid for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.errors import InvalidParameter
from cloister.noise import Exponential, Random

MOST_NODES = 5_000
_GRID = 1_000
"""What a published row keeps is counted in thousandths, so that scores are whole numbers."""


def nodes_of(ladders: Mapping[str, Ladder]) -> list[tuple[int, ...]]:
    """Every choice of a level for each column."""
    count = math.prod(ladder.height for ladder in ladders.values())
    if count > MOST_NODES:
        raise InvalidParameter(
            f"A choice among {count:,} combinations of levels is invalid",
            why=f"more than {MOST_NODES:,} are counted one after the other, and the best is drowned among the rest",
            instead="levels={…} for all columns, or hierarchies with fewer levels",
        )
    return list(itertools.product(*(range(ladder.height) for ladder in ladders.values())))


def scores(
    codes: Sequence[npt.NDArray[np.int64]], ladders: Mapping[str, Ladder], nodes: Sequence[tuple[int, ...]], threshold: int
) -> npt.NDArray[np.int64]:
    """What each choice keeps: over its classes, what a label keeps (in thousandths) times the rows that are likely to be shown.

    Those are none of a class up to the threshold, all of a class of twice as many, and two for each one more in between; so one
    row more moves one class by two rows at most. Sensitivity: 2,000, and monotone, since no class ever shrinks by a row more.
    """
    ids, count = alike(list(codes), [len(ladder.labels[0]) for ladder in ladders.values()])
    first = np.zeros(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    rows = np.bincount(ids, minlength=count)
    kinds = [each[first] for each in codes]
    found = np.zeros(len(nodes), dtype=np.int64)
    for place, node in enumerate(nodes):
        columns = [ladder.codes[level][kind] for ladder, level, kind in zip(ladders.values(), node, kinds, strict=True)]
        classes, many = alike(columns, [len(ladder.labels[level]) for ladder, level in zip(ladders.values(), node, strict=True)])
        kept = np.mean(
            [1 - ladder.shares(level)[column] for ladder, level, column in zip(ladders.values(), node, columns, strict=True)],
            axis=0,
        )
        worth = np.zeros(many, dtype=np.int64)
        worth[classes] = np.floor(_GRID * np.clip(kept, 0, 1)).astype(np.int64)
        sizes = np.bincount(classes, weights=rows, minlength=many).astype(np.int64)
        found[place] = int((worth * np.clip(2 * (sizes - threshold), 0, sizes)).sum())
    return found


def choose_levels(
    codes: Sequence[npt.NDArray[np.int64]],
    ladders: Mapping[str, Ladder],
    *,
    epsilon: Fraction,
    threshold: int,
    random: Random,
) -> tuple[int, ...]:
    """A level for each column: ε-DP by the exponential mechanism (McSherry and Talwar 2007) on monotone scores."""
    nodes = nodes_of(ladders)
    found = scores(codes, ladders, nodes, threshold) if len(codes[0]) else np.zeros(len(nodes), dtype=np.int64)
    chosen = Exponential(epsilon=epsilon, sensitivity=2 * _GRID, monotone=True).release(found, random=random)
    return nodes[int(chosen)]
