"""MDAV for millions of records: cut the table into blocks of neighbours, and run MDAV in each.

Blocks are the leaves of a k-d tree (Solanas, Martínez-Ballesté, Domingo-Ferrer & Mateo-Sanz 2006 cut by a 2ᵈ tree): a block is
cut at the middle of the column along which it spreads most. Cuts fall at whole multiples of k, so that only one group of the
whole table has more than k records. Time is n·size/k instead of n²/k.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.microaggregation.mdav import check_points, mdav
from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def blocked_mdav(points: npt.ArrayLike, k: int, *, size: int = 1000) -> Integers:
    """The group of each record by MDAV inside of blocks of at most about `size` records.

    >>> groups = blocked_mdav(np.arange(1000.0)[::-1], k=5, size=50)
    >>> np.bincount(groups).min(), groups.max() + 1
    (np.int64(5), np.int64(200))
    """
    rows = check_points(points, k)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 3 * k:
        raise InvalidParameter(f"size={size!r} is invalid", why="a block holds three groups at least", instead=f"size={200 * k}")
    groups = np.empty(len(rows), dtype=np.int64)
    first = 0
    stack = [np.arange(len(rows))]
    while stack:
        members = stack.pop()
        if len(members) > size:
            stack += _halves(rows, members, k)
            continue
        if len(members):
            groups[members] = first + mdav(rows[members], k)
            first = int(groups[members].max()) + 1
    return groups


def _halves(rows: Floats, members: Integers, k: int) -> list[Integers]:
    block = rows[members]
    column = block[:, int(block.var(axis=0).argmax())]
    middle = max(1, round(len(members) / (2 * k))) * k
    order = np.argpartition(column, middle)
    return [members[order[middle:]], members[order[:middle]]]
