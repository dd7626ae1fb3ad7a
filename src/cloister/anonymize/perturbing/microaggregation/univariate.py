"""The best groups of one column: exact, by a shortest path over the sorted values (Hansen & Mukherjee 2003).

In a best grouping of numbers, groups are runs of the sorted numbers, of k to 2k − 1 each. The least loss up to a place is the
least, over the lengths of the last run, of the loss before that run and the run's own.
"""

import operator

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.microaggregation.mdav import check_points

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_STRETCH = 1 << 16
"""Ends of runs whose losses are worked out at once."""


def best_groups(values: npt.ArrayLike, k: int) -> Integers:
    """The group of each value: runs of the sorted values, with the least sum of squares within groups of at least k.

    Exact: no other grouping loses less. Time n·k.

    >>> best_groups([1.0, 9.0, 2.0, 11.0, 1.5, 10.0, 9.5], k=3).tolist()
    [0, 1, 0, 1, 0, 1, 1]
    """
    column = check_points(np.asarray(values, dtype=np.float64).reshape(-1, 1), k)[:, 0]
    n = len(column)
    if k == 1 or n < 2 * k:
        return np.arange(n) if k == 1 else np.zeros(n, dtype=np.int64)
    order = np.argsort(column, kind="stable")
    marks = np.zeros(n, dtype=np.int64)
    marks[_starts(column[order], k)] = 1
    groups = np.empty(n, dtype=np.int64)
    groups[order] = np.cumsum(marks) - 1
    return groups


def _starts(ordered: Floats, k: int) -> list[int]:
    """Where the runs begin: the first one at 0."""
    n, longest = len(ordered), 2 * k - 1
    infinity = float("inf")
    best = [infinity] * longest + [0.0] + [infinity] * n  # best[longest + end], so that no run begins before the list
    lengths = [0] * (n + 1)
    for first in range(k, n + 1, _STRETCH):
        last = min(first + _STRETCH, n + 1)
        for end, losses in enumerate(_losses(ordered, k, first, last).tolist(), start=first):
            totals = list(map(operator.add, best[end : end + k], losses))
            least = min(totals)
            best[longest + end] = least
            lengths[end] = longest - totals.index(least)
    starts, end = [], n
    while end > 0:
        end -= lengths[end]
        starts.append(end)
    return starts


def _losses(ordered: Floats, k: int, first: int, last: int) -> Floats:
    """The sums of squares of runs that end before the places `first` … `last` − 1, for the lengths 2k − 1 down to k.

    Each run is measured from its own last value, so that large numbers near one another don't cancel.
    """
    ends = np.arange(first, last)
    out = np.full((len(ends), k), np.inf)
    ones, squares = np.zeros(len(ends)), np.zeros(len(ends))
    for length in range(2, 2 * k):
        fits = ends >= length
        away = np.where(fits, ordered[np.maximum(ends - length, 0)] - ordered[ends - 1], 0.0)
        ones += away
        squares += away * away
        if length >= k:
            out[:, 2 * k - 1 - length] = np.where(fits, np.maximum(squares - ones * ones / length, 0.0), np.inf)
    return out
