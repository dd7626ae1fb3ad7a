"""Suppression: small cells of a frequency table are left out, and others with them, so that no total gives them back.

Not differential privacy. *Primary* suppression leaves out the counts from 1 to threshold − 1 (and zeros, where asked). In a table
with totals that alone is nothing: one cell missing from a row is the total less the others. *Complementary* suppression leaves
out further cells and, where it must, totals.

What is guaranteed, for one-way and two-way tables with totals: whoever sees the published cells and totals, knows that counts are
whole and not negative, and knows nothing else, is left with an interval of at least `width` + 1 whole numbers for every small
cell, and of at least two for every other suppressed one. Proof: the tables that agree with what is published are circulations of
a network; the greatest and least flow on an edge are found exactly by augmenting paths (network.py), and cells are added until
the intervals are that wide. Each cell that is added lies on a cycle that can be pushed round, so it is open as well.

What is not: three-way tables are no network, so they are published without totals and without complements; other questions about
the same records (a count of one suppressed cell with its neighbour) are not looked at; and who is alone in a cell knows that
cell, and with it may open the one that was suppressed for its sake.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.query.controls.masks import Mask
from cloister.query.controls.network import Circulation, circulation_of

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, init=False)
class Suppression:
    """Leave out counts from 1 to `threshold` − 1, and what would give them back. Not differential privacy.

    >>> print(Suppression(threshold=3))
    counts below 3 are suppressed, and others with them so that none follows from the totals
    """

    threshold: int
    complementary: bool
    zeros: bool
    width: int

    def __init__(self, *, threshold: int = 3, complementary: bool = True, zeros: bool = False, width: int = 1) -> None:
        for name, value, least in (("threshold", threshold, 2), ("width", width, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidParameter(
                    f"{name}={value!r} is invalid", why=f"it must be a whole number, at least {least}", instead=f"{name}={least}"
                )
        for name, value in (("threshold", threshold), ("complementary", complementary), ("zeros", zeros), ("width", width)):
            object.__setattr__(self, name, value)

    def small(self, counts: Counts) -> Mask:
        """Which counts are too small to show.

        >>> Suppression(threshold=3).small(np.array([0, 1, 2, 3])).tolist()
        [False, True, True, False]
        """
        return np.asarray((counts < self.threshold) & (self.zeros | (counts > 0)))

    def __str__(self) -> str:
        more = ", and others with them so that none follows from the totals" if self.complementary else ""
        return f"counts below {self.threshold} are suppressed{more}"


def suppressed(counts: Counts, small: Mask, *, width: int = 1) -> Mask:
    """Which cells and totals of a table with totals to leave out: the small ones, and their complements.

    `small` has the shape of the table with totals. Complements are chosen one after the other, each as the cheapest cycle (in
    counts that are lost) that opens a cell further; that is a good choice and not always the least.

    >>> from cloister.query.controls.network import with_totals
    >>> table = np.array([[20, 1, 9], [30, 40, 50]])
    >>> suppressed(table, Suppression(threshold=3).small(with_totals(table))).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """
    network = circulation_of(counts)
    hidden = frozenset(number for number, edge in enumerate(network.edges) if small[edge.place])
    primary = sorted(hidden, key=lambda number: network.edges[number].value)
    costs = _costs(network)
    for edge in primary:
        while not _open_enough(network, edge, hidden, width):
            ways = [network.cheapest(edge, hidden, costs, upwards=upwards) for upwards in (True, False)]
            found = [way for way in ways if way is not None and way[1]]
            hidden |= min(found, key=lambda way: (way[0], sorted(way[1])))[1]
    mask = np.zeros(tuple(length + 1 for length in counts.shape), dtype=bool)
    for number in hidden:
        mask[network.edges[number].place] = True
    return mask


def intervals(counts: Counts, mask: Mask) -> dict[tuple[int, ...], tuple[int, int | None]]:
    """For the owner: what each suppressed cell may be, for who sees the rest; None is no upper bound.

    >>> from cloister.query.controls.network import with_totals
    >>> table = np.array([[20, 1, 9], [30, 40, 50]])
    >>> intervals(table, suppressed(table, Suppression(threshold=3).small(with_totals(table))))[(0, 1)]
    (0, 21)
    """
    network = circulation_of(counts)
    hidden = frozenset(number for number, edge in enumerate(network.edges) if mask[edge.place])
    return {network.edges[number].place: network.interval(number, hidden) for number in sorted(hidden)}


def _open_enough(network: Circulation, edge: int, hidden: frozenset[int], width: int) -> bool:
    low, high = network.interval(edge, hidden)
    return high is None or high - low >= width


def _costs(network: Circulation) -> dict[int, int]:
    """What leaving out each edge loses: its count; totals and zeros only where nothing else helps (a zero may be known to be
    impossible, and would then protect nothing)."""
    grand = sum(edge.value for edge in network.edges if not edge.total)
    return {
        number: edge.value + 1 + (2 * grand if edge.total else grand if edge.value == 0 else 0)
        for number, edge in enumerate(network.edges)
    }
