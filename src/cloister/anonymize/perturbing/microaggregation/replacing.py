"""What a group is published as: its mean, its median, or its commonest value, for all groups at once."""

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

REPLACEMENTS = ("mean", "median", "mode")


def means(numbers: Floats, groups: Integers) -> Floats:
    """The mean of each record's group.

    >>> means(np.array([1.0, 3.0, 10.0]), np.array([0, 0, 1])).tolist()
    [2.0, 2.0, 10.0]
    """
    if not len(numbers):
        return numbers.copy()
    firsts = np.empty(int(groups.max()) + 1)
    firsts[groups] = numbers  # one member of each group: sums of differences from it don't lose large numbers' last places
    away = np.bincount(groups, numbers - firsts[groups]) / np.bincount(groups)
    return np.asarray((firsts + away)[groups])


def medians(numbers: Floats, groups: Integers) -> Floats:
    """The lower median of each record's group: a value that somebody in the group has.

    >>> medians(np.array([1.0, 3.0, 10.0, 7.0]), np.array([0, 0, 0, 1])).tolist()
    [3.0, 3.0, 3.0, 7.0]
    """
    order = np.lexsort((numbers, groups))
    sizes = np.bincount(groups) if len(groups) else np.zeros(0, dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    return np.asarray(numbers[order[starts + (sizes - 1) // 2]][groups]) if len(groups) else numbers.copy()


def modes(codes: npt.NDArray[np.integer], groups: Integers) -> Integers:
    """The commonest code of each record's group; of equally common ones the least.

    >>> modes(np.array([5, 2, 5, 2, 9]), np.array([0, 0, 0, 1, 1])).tolist()
    [5, 5, 5, 2, 2]
    """
    if not len(codes):
        return codes.astype(np.int64)
    width = int(codes.max()) + 1
    pairs, counts = np.unique(groups * width + codes, return_counts=True)
    owners, values = np.divmod(pairs, width)
    order = np.lexsort((values, -counts, owners))
    firsts = np.unique(owners[order], return_index=True)[1]
    return np.asarray(values[order][firsts][groups], dtype=np.int64)


def information_loss(before: npt.ArrayLike, after: npt.ArrayLike) -> float:
    """SSE/SST: how much of the variance of standardised columns is gone, from 0 (nothing) to 1 (one group) when groups are
    published as means. The literature gives it in per cent.

    >>> information_loss([[1.0], [2.0], [3.0], [4.0]], [[1.5], [1.5], [3.5], [3.5]])
    0.2
    """
    raw, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if raw.shape != new.shape or raw.ndim != 2:
        raise InvalidParameter(
            "The tables were not compared", why="they have no common shape of records times columns", instead="two equal shapes"
        )
    if not raw.size:
        return 0.0
    shares = []
    for old, fresh in zip(raw.T, new.T, strict=True):
        there = ~np.isnan(old)
        largest = float(np.abs(old[there]).max(initial=0.0)) or 1.0
        total = float(((old[there] / largest - np.mean(old[there] / largest)) ** 2).sum()) if there.any() else 0.0
        kept = there & ~np.isnan(fresh)
        away = float((((old - fresh)[kept] / largest) ** 2).sum())
        if total > 0:
            shares.append(away / total)
    return float(np.mean(shares)) if shares else 0.0
