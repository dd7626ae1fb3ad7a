"""The banded square root: sums of the last w steps, and of readings that one person sends far apart.

A counter publishes y = C̃·x + z and reads sums from it (`square_root.py`). Here C̃ has the weights of the square root, in whole
numbers, on the newest b steps, and 0 beyond (Kalinin & Lampert 2024, "Banded square root matrix factorization for differentially
private model training"). Two things follow:

- *Sensitivity.* A column of C̃ has the b weights of the steps after a reading. Columns that are b or more steps apart share no
  row, so they are orthogonal: k readings of a person, each of them at most B and b steps or more apart, move y by at most
  √k·B·‖v‖ in L2, and not by k·B·‖v‖. Proof: the squares of disjoint rows add up. ∎ It is computed from the integers v.
- *Horizon.* The sum of the last w steps is read by a row that ends: what a step adds to it fades as soon as it is older than w.
  So neither the noise nor the error grows with the number of steps of the stream.

Reading. x̂ = C̃⁻¹·y step by step: the newest is y less what C̃ makes of the b − 1 before it, over the first weight. Weights fall, so
the running sums of C̃⁻¹ are u(t)/v(0), with u(t) the probability that a walk that jumps k steps with probability
(v(k − 1) − v(k))/v(0) visits t: between 0 and 1, and rounding is not amplified. A sum of the last w steps has u(t) − u(t − w).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.traces.square_root import exact_product

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDEST = 4096
"""The most bands, and the most steps of a sliding sum: what is kept is as many numbers."""
_SCALE = 1 << 16
_SETTLED = 16
"""After so many times its bands, the walk visits each step with the same probability, but for 1e-9."""


class Banded:
    """C̃ with so many bands: its weights, its sensitivity, and the variance of what is read from it.

    >>> matrix = Banded(1)
    >>> matrix.weights.tolist(), matrix.l2_squared == matrix.unit**2, matrix.energy(9), matrix.energy(9, last=3)
    ([65536], True, 9.0, 3.0)
    >>> Banded(16).energy(10**6, last=64) < 64 / 4
    True
    """

    def __init__(self, bands: int) -> None:
        weights, term = np.empty(bands, dtype=np.int64), _SCALE << 64
        for k in range(bands):
            weights[k] = term >> 64
            term = term * (2 * k + 1) // (2 * k + 2)
        weights.flags.writeable = False
        self.bands, self.weights, self.unit = bands, weights, _SCALE
        self._known: dict[int | None, NDArray[np.float64]] = {}

    @property
    def l2_squared(self) -> int:
        """The squared L2 norm of a column."""
        return sum(weight**2 for weight in self.weights.tolist())

    def visits(self, steps: int) -> NDArray[np.float64]:
        """u(t) for so many steps."""
        from scipy.signal import lfilter

        jumps = (self.weights - np.append(self.weights[1:], 0)) / self.unit
        start = np.zeros(steps)
        start[:1] = 1.0
        return np.asarray(lfilter([1.0], np.append(1.0, -jumps), start))

    def energy(self, step: int, *, last: int | None = None) -> float:
        """The variance of the running sum after so many steps, or of that of the last so many, for noise of variance v₀²."""
        summed = self._energies(last)
        settled = min(step, len(summed) - 1)
        return float(summed[settled] + (step - settled) * (summed[-1] - summed[-2]))

    def _energies(self, last: int | None) -> NDArray[np.float64]:
        """Those of 0, 1, … steps, until each step adds the same."""
        if last not in self._known:
            visited = self.visits(_SETTLED * self.bands + (last or 0))
            if last is not None:
                visited[last:] -= visited[:-last].copy()
            self._known[last] = np.append(0.0, (visited**2).cumsum())
        return self._known[last]


class BandedSums:
    """Exact totals of the newest steps, and what was read of them.

    >>> sums = BandedSums(Banded(2), last=2)
    >>> found = [sums.read(step, sums.close(step, total)) for step, total in enumerate((5, 1, 7, 0), 1)]
    >>> [round(each, 9) for each in found]
    [5.0, 6.0, 8.0, 7.0]
    """

    changes: ClassVar[tuple[str, ...]] = ("totals", "found")

    def __init__(self, matrix: Banded, *, last: int | None) -> None:
        self.matrix, self.last = matrix, last
        self.totals = np.zeros(matrix.bands, dtype=np.int64)
        self.found = np.zeros(max(matrix.bands, last or 0))
        self.sum = 0.0

    def close(self, step: int, total: int) -> int:
        """What the matrix makes of the totals so far, with this step's: private."""
        self.totals[1:] = self.totals[:-1].copy()
        self.totals[0] = total
        return exact_product(self.matrix.weights, self.totals)

    def read(self, step: int, published: int) -> float:
        """The sum that follows from what was published."""
        weights, bands = self.matrix.weights, self.matrix.bands
        found = (published - float(weights[1:] @ self.found[: bands - 1])) / float(weights[0])
        self.found[1:] = self.found[:-1].copy()
        self.found[0] = found
        self.sum = self.sum + found if self.last is None else math.fsum(self.found[: self.last].tolist())
        return self.sum

    def state(self) -> list[Any]:
        """All of it, as plain JSON."""
        return [self.totals.tolist(), self.found.tolist(), self.sum]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self.totals[:], self.found[:], self.sum = state


banded_matrix = lru_cache(maxsize=8)(Banded)
"""The matrix with so many bands; counters share it."""
