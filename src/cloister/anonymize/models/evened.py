"""How even the values of a column can be made by suppressing rows: what tells, in advance, that a model cannot be met."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def evened(counts: npt.NDArray[np.int64], limit: int | None) -> npt.NDArray[np.int64]:
    """Counts at least as even as any that are left when `limit` rows are gone; with no limit known, one row of each value.

    Rows of the commonest values are cut off at one height; where the limit does not reach down to a whole number, the next lower
    one is taken. A model that bounds how uneven a class is, and that holds for classes together where it holds for each, has to
    hold of all rows that are kept; so it can't be met where it fails here.

    >>> evened(np.array([10, 4, 1]), 5).tolist(), evened(np.array([10, 4, 1]), 7).tolist()
    ([5, 4, 1], [3, 3, 1])
    >>> evened(np.array([3, 0, 1]), None).tolist()
    [1, 0, 1]
    """
    if limit is None:
        return np.minimum(counts, 1)
    low, high = 1, int(counts.max(initial=1))
    while low < high:
        middle = (low + high) // 2
        if int(np.maximum(counts - middle, 0).sum()) <= limit:
            high = middle
        else:
            low = middle + 1
    gone = int(np.maximum(counts - low, 0).sum())
    return np.minimum(counts, low if gone == limit else max(low - 1, 1))
