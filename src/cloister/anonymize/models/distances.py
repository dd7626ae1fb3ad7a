"""How far the values of each class are from those of the whole table: the distances of t-closeness, without a matrix.

Only the values that stand in a class are looked at. What the others add is in running totals of the whole table, so that 100,000
classes over 1,000 values take milliseconds.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Spread
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.models.ratios import Ratios, fits


def per_class(spread: Spread, amounts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum over the triples of each class.

    >>> from cloister.anonymize.classes import Classes
    >>> from cloister.anonymize.encoded import EncodedColumn
    >>> column = EncodedColumn(name="x", codes=np.array([0, 0, 1, 1], dtype=np.int32), values=["a", "b"], kind="text")
    >>> spread = Classes.of(np.array([0, 0, 0, 1]), 2, sensitive={"x": column}).spread("x")
    >>> per_class(spread, spread.count).tolist()
    [3, 1]
    """
    if not len(spread.sizes):
        return amounts[:0]
    return np.asarray(np.add.reduceat(amounts, spread.first[:-1]))


def total_variation(spread: Spread) -> Ratios:
    """Half the sum of |q − p|: the earth mover's distance where each value is as far from each other one (Li et al. 2007)."""
    return _variation(spread.value, spread.count, spread.first, spread.sizes, spread.overall)


def ordered(spread: Spread) -> Ratios:
    """The earth mover's distance where values stand in a row: the sum of |Q − P| over the m − 1 steps between them, over m − 1.

    A missing value stands after the last one.
    """
    present = spread.overall > 0
    places = np.cumsum(present) - 1
    before = np.cumsum(spread.overall[present])
    values, table = len(before), int(before[-1]) if len(before) else 0
    kind: Any = np.int64 if fits(values, table, table) else np.float64
    sizes: npt.NDArray[Any] = spread.sizes.astype(kind)
    if values < 2:
        return Ratios(top=np.zeros(len(sizes), dtype=kind), bottom=np.ones(len(sizes), dtype=kind))
    running = np.concatenate([[0], np.cumsum(before)]).astype(kind)

    here = places[spread.value]
    reached = np.cumsum(spread.count)
    reached = reached - np.repeat(reached[spread.first[:-1]] - spread.count[spread.first[:-1]], np.diff(spread.first))
    after = np.empty_like(here)
    after[:-1] = here[1:]
    after[spread.first[1:] - 1] = values
    n = sizes[spread.owner]
    # From each value of a class up to its next one Q is the same, and P climbs past it at `crossing`.
    level = reached.astype(kind) * kind(table)
    crossing = np.clip(np.searchsorted(before, level // n, side="right"), here, after)
    below = level * (crossing - here) - n * (running[crossing] - running[here])
    above = n * (running[after] - running[crossing]) - level * (after - crossing)
    top = per_class(spread, below + above) + sizes * running[here[spread.first[:-1]]]
    return Ratios(top=np.asarray(top, dtype=kind), bottom=np.asarray(sizes * (kind(table) * kind(values - 1))))


def hierarchical(spread: Spread, ladder: Ladder) -> Ratios:
    """The earth mover's distance where two values are as far apart as the level on which they meet is high (Li et al. 2007).

    On a tree that is the mean of the variations of its levels under the root.
    """
    # the root is what has all leaves of the hierarchy under it, which is more than all that occur in the table
    levels = [level for level in range(ladder.height) if level == 0 or ladder.leaves[level].max(initial=0) < ladder.total]
    top: npt.NDArray[Any] | None = None
    for level in levels:
        codes = ladder.codes[level].astype(np.int64)
        labels = len(ladder.labels[level])
        key, place = np.unique(spread.owner * labels + codes[spread.value], return_inverse=True)
        count = np.bincount(place, weights=spread.count).astype(np.int64)
        first = np.searchsorted(key // max(labels, 1), np.arange(len(spread.sizes) + 1))
        overall = np.bincount(codes, weights=spread.overall, minlength=labels).astype(np.int64)
        found = _variation(key % max(labels, 1), count, first, spread.sizes, overall)
        top = found.top if top is None else top + found.top
        bottom = found.bottom
    assert top is not None
    return Ratios(top=np.asarray(top), bottom=np.asarray(bottom * len(levels)))


def kullback_leibler(spread: Spread) -> npt.NDArray[np.float64]:
    """The sum of q·ln(q/p), in nats: never infinite, since what stands in a class is in the table."""
    expected = spread.overall[spread.value] / spread.overall.sum()
    return np.maximum(np.asarray(per_class(spread, spread.shares * np.log(spread.shares / expected)), dtype=np.float64), 0.0)


def _variation(
    value: npt.NDArray[np.int64],
    count: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    overall: npt.NDArray[np.int64],
) -> Ratios:
    """The mass by which values of a class exceed their share of the table, which is what the others lack."""
    table = int(overall.sum())
    kind = np.int64 if fits(table, table) else np.float64
    n = np.repeat(sizes, np.diff(first))
    more = np.maximum(count.astype(kind) * kind(table) - n.astype(kind) * overall[value].astype(kind), kind(0))
    top = np.add.reduceat(more, first[:-1]) if len(sizes) else more[:0]
    return Ratios(top=np.asarray(top), bottom=np.asarray(sizes.astype(kind) * kind(table)))
