"""How far a noisy number of rows up to a leaf, less a share of all rows, may lie from the truth.

For all leaves at once there is a loose bound: that of continuous noises of the same scales, and half a step of the widest. It is
within a few per cent where the noise is much larger than 1. Where the noise is mostly 0 only the law itself will do: such a sum
takes few values, and its half-width may be 0 or several steps. So the leaves that an interval would end at have their half-widths
worked out from the laws (`convolution.py`), again and again until the ends stay: each half-width in use is a valid one, whether
loose or not, and which of them are worked out is read off noisy values alone.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloister.session.planning.leaves import Floats, Leaves
from cloister.session.releases.uncertainty import Terms, chance_of_any, spreads_at, variance, widths_of_counts

ROUNDING = 1e-12
"""Of the rows: so that sums of floats decide nothing where the noise is nil."""
_BETWEEN = 5
_MOST = 128
"""How many leaves of one answer have theirs worked out: a millisecond or some each."""

Plausible = npt.NDArray[np.bool_]


class Bounds:
    """The half-widths of `upto` · (rows up to leaf k) + `beyond` · (rows after it), for each k; leaves counted from the highest
    where `top`.

    >>> from cloister.noise import DiscreteLaplace
    >>> from cloister.session.planning.leaves import leaves_of
    >>> from cloister.session.releases.uncertainty import Term
    >>> noise = (Term(1.0, DiscreteLaplace(scale="0.25")),)
    >>> bounds = Bounds(leaves_of("x", 0, 3, cells=1, total=False, gaussian=False), noise, 0.95, upto=1.0, beyond=0.0, top=False)
    >>> bounds.values.round(2).tolist()
    [1.26, 1.57, 1.81]
    >>> bounds.refine([0, 2])
    >>> bounds.values.round(2).tolist()
    [0.0, 1.57, 1.01]
    """

    def __init__(self, leaves: Leaves, terms: Terms, confidence: float, *, upto: float, beyond: float, top: bool) -> None:
        self._leaves, self._terms, self._confidence = leaves, terms, confidence
        self._upto, self._beyond, self._top = upto, beyond, top
        self.values = _loose(leaves, terms, confidence, upto, beyond).copy()
        if top:
            # counted from the other end: the rows from leaf k on are all less those before it
            self.values[:-1] = _loose(leaves, terms, confidence, beyond, upto)[-2::-1]
        self.known = np.zeros(leaves.count, dtype=bool)

    def refine(self, places: Iterable[int]) -> None:
        """Works out the half-widths at these leaves."""
        for place in places:
            self.known[place] = True
            above = self._top and place < self._leaves.count - 1
            weights = (self._beyond, self._upto) if above else (self._upto, self._beyond)
            at = self._leaves.count - 2 - place if above else place
            self.values[place] = min(self.values[place], width_at(self._leaves, self._terms, self._confidence, at, *weights))


def narrowed(bounds: list[Bounds], plausible: Callable[[], Plausible]) -> Plausible:
    """What is plausible by the bounds, a row a group, after those at the first and the last plausible leaf were worked out."""
    found, known = plausible(), 0
    while True:
        first = found.argmax(axis=1)
        last = found.shape[1] - 1 - found[:, ::-1].argmax(axis=1)
        ends = np.unique(np.concatenate([first, first - 1, last, last - 1]))
        places = [int(place) for place in ends if place >= 0 and not bounds[0].known[place]]
        known += len(places)
        if not places or known > _MOST:
            return found
        for each in bounds:
            each.refine(places)
        found = plausible()


@lru_cache(maxsize=4096)
def width_at(leaves: Leaves, terms: Terms, confidence: float, place: int, below: float, above: float) -> float:
    """The half-width of the noise in below · (rows up to leaf `place`) + above · (rows after it), from the laws."""
    sizes, numbers = leaves.weights_at(place, below, above)
    return float(widths_of_counts(sizes[None], numbers[None], [terms] * len(sizes), confidence)[0])


def usual_widths(leaves: Leaves, terms: Terms, confidence: float, below: float, above: float) -> Floats:
    """The half-widths of such sums for each k, by variance and kurtosis alone: good where the noise is not mostly 0."""
    one = variance(terms)
    heavy = math.fsum(term.fourth for term in terms) / one / one if one else 0.0
    spread = float(spreads_at(heavy * leaves.kurtosis(below, above), confidence))
    return np.sqrt(leaves.variances(below, above) * one) * spread


@lru_cache(maxsize=64)
def _loose(leaves: Leaves, terms: Terms, confidence: float, below: float, above: float) -> Floats:
    """The bound for all leaves; kept, since one answer asks several times. Nobody may write to it."""
    if int(leaves.measured().sum()) * chance_of_any(terms) <= 1 - confidence:
        found = np.zeros(leaves.count)
    else:
        one = math.fsum(term.square for term in terms)
        heavy = math.fsum(term.fourth for term in terms) / one / one  # its square may be 0 as a double
        # the kurtosis of a sum lies between 0 and the largest; at small confidences the laws of less are the wider ones
        spread = spreads_at(np.linspace(0.0, heavy * leaves.kurtosis(below, above), _BETWEEN), confidence).max()
        found = np.sqrt(leaves.variances(below, above) * one) * spread
        # least squares gives no raw more than the question gives a cell, or than it differs from one cell to the next
        found += max(abs(below), abs(above), abs(below - above)) * max(abs(term.weight) for term in terms) / 2
    found.flags.writeable = False
    return found
