"""The square-root factorisation of running sums, with a memory of a few hundred numbers.

The running sums of a stream are A·x, where A is the lower triangle of ones. A counter publishes y = C̃·x + z with
independent noise z and reads A·C̃⁻¹·y as the sums. With C̃ = A^(1/2), whose entry at lag k is f(k) = binom(2k, k)/4^k, the
error grows as the logarithm of the number of steps and the noise is nearly the least that any matrix allows (Fichtenberger,
Henzinger & Upadhyay 2023). This C̃ has two differences:

- *Binned.* Old steps share a weight, so that only the sum of each bin is kept (the idea of Andersson & Pagh 2024). At step
  t a bin of level l holds the steps s, …, s + 2^l − 1 with s a multiple of 2^l, and its weight depends on l and on its slot
  q = ⌊t/2^l⌋ − s/2^l alone. Level 0 has the slots 0 … 2K − 1 and each other level the slots K … 2K − 1, K = 16. At each
  multiple of 2^(l+1), the two oldest bins of level l become one of level l + 1.
- *Whole numbers.* Weights are integers: f in the middle of the slot, times a scale, times (127/128)^l, rounded down. The
  last factor weighs old steps a little less: the error of a long horizon is smaller while it is young.

Claim: the largest L2 norm of a column of C̃ is that of column 0, which is √Σ d·v² over all slots: v the weight of a slot, d
the number of the first `steps` steps that column 0 spends in it, 2^l but for the last. Proof: the weight of step j at time
t belongs to the slot that j is in. In a slot of level l a step stays for 2^l steps, since slots change at multiples of 2^l
alone. Column j passes the slots of each level in order, from the first to the last or to the last but one: the last slot of
level l exists only while ⌊t/2^l⌋ is odd, so only for bins with an even s/2^l, the older of the two that merge. Step 0 is in
the oldest bin of every level and passes every slot; any other column skips some, so that after as many steps it is in the
same or a later slot. Weights fall from slot to slot, so no weight of another column is larger than that of column 0 after
as many steps, and none has more steps. ∎

So the sensitivity is computed from the very integers that multiply the data. The weights depend on nothing but `steps`.

Reading. C̃ is lower triangular with the positive weight of slot 0 on its diagonal, so x̂ = C̃⁻¹·y is found step by step:
the newest of x̂ is y less what C̃ makes of the earlier ones, over that weight. It needs the same bins of x̂. Weights fall
with age, so A·C̃⁻¹ has entries in [0, 1/v₀]: the probabilities that a walk, which jumps from step t to before the bin that
a weight drops after, visits a step. Rounding in floating point is therefore not amplified, and since y is public it is not
of concern to privacy.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOTS = 16
"""K: the number of slots of a level. The error falls with it, the memory grows."""
_FADING = (127, 128)
_PI = (355, 113)
_LARGEST = 2**62
_LOW = 30


class SquareRoot:
    """The matrix C̃ for so many steps: its weights, its sensitivity, and the variance of what is read from it.

    >>> matrix = SquareRoot(4096)
    >>> matrix.slots, matrix.l2_squared / int(matrix.weights[0]) ** 2 < 3.71  # that of A^(1/2)
    (144, True)
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        levels = 1
        while SLOTS << levels < steps:
            levels += 1
        self.levels = levels
        scale = 1 << (9 + (steps.bit_length() + 1) // 2)
        newest = [scale * math.comb(2 * q, q) >> 2 * q for q in range(2 * SLOTS)]
        older = [_weight(level, q, scale) for level in range(1, levels) for q in range(SLOTS, 2 * SLOTS)]
        self.weights = np.array(newest + older, dtype=np.int32)
        self.weights.flags.writeable = False

    @property
    def slots(self) -> int:
        """The number of bins that are kept at most."""
        return len(self.weights)

    @cached_property
    def l2_squared(self) -> int:
        """The largest squared L2 norm of a column, which is that of column 0: the proof is at the top of the module."""
        left, total = self.steps, 0
        for weight, stay in zip(self.weights.tolist(), self.stays(), strict=True):
            total += min(stay, left) * weight**2
            left -= min(stay, left)
        return total

    def stays(self) -> list[int]:
        """For how many steps a step stays in each slot."""
        return [1] * (2 * SLOTS) + [1 << level for level in range(1, self.levels) for _ in range(SLOTS)]

    def energy_bound(self, step: int) -> float:
        """At least `energy(step)`, at once: Σ f² and what the bins add to it, 0.000031·log₂(step)^3.5.

        The second term was fitted to exact values up to 2²⁰ steps and holds there (tests compute them again); beyond, it is an
        extrapolation.

        >>> matrix = SquareRoot(512)
        >>> 1 <= matrix.energy_bound(512) / matrix.energy(512) < 1.01
        True
        """
        return square_root_energy(step) + 3.1e-5 * math.pow(math.log2(max(step, 1)), 3.5)

    @property
    def most(self) -> int:
        """What one step may add to a bin, so that no sum of bins passes 64 bits: totals beyond it are clamped."""
        return _LARGEST // self.steps

    def row(self, sums: NDArray[Any]) -> Any:
        """A row of C̃·x, exactly."""
        return self.weights.astype(object) @ sums if sums.dtype == object else exact_product(self.weights, sums)

    def energy(self, step: int) -> float:
        """The variance of the running sum after so many steps, for noise of variance v₀²: Σ of the squares of a row of
        v₀·A·C̃⁻¹.

        Exact but for floating point, and it takes time in proportion to `step`: half a second for 2¹⁴. `Σ f²` is what the
        square root itself would give.

        >>> SquareRoot(512).energy(512) < 1.04 * square_root_energy(512)
        True
        """
        visited = np.zeros(step)
        visited[-1] = 1.0
        level = np.repeat(np.arange(self.levels), [2 * SLOTS] + [SLOTS] * (self.levels - 1))
        slot = np.concatenate([np.arange(2 * SLOTS), *[np.arange(SLOTS, 2 * SLOTS)] * (self.levels - 1)])
        shares = self.weights / self.weights[0]
        last = slot == 2 * SLOTS - 1
        for now in range(step - 1, -1, -1):
            passed = now >> level
            there = ~last | (passed & 1 == 1)
            start = ((passed - slot) << level)[there]
            held = shares[there]
            count = int((start > 0).sum())
            drops = held[:count] - np.append(held[1:], 0.0)[:count]
            visited[start[:count] - 1] += visited[now] * drops
        return float((visited**2).sum())


class Bins:
    """The bins of a stream under one `SquareRoot`: integers of what is private, or floats of what was read.

    >>> bins = Bins(SquareRoot(64), np.int64)
    >>> for value in range(40):
    ...     bins.begin_step(value)
    ...     bins.sums[0] = value
    >>> int(bins.sums.sum()), int(bins.sums[:32].sum()) < 780
    (780, True)
    """

    __slots__ = ("levels", "sums")
    changes: ClassVar[tuple[str, ...]] = ("sums",)

    def __init__(
        self, matrix: SquareRoot, kind: type[np.int64] | type[np.float64] | type[object], cells: int | None = None
    ) -> None:
        """With `cells`, those of so many streams at once: a row a bin."""
        self.levels = matrix.levels
        self.sums: NDArray[Any] = np.full(matrix.slots if cells is None else (matrix.slots, cells), 0, dtype=kind)

    def begin_step(self, now: int) -> None:
        """Make room for step `now`, 0, 1, 2, …: every level whose slots change at it moves on, and what is oldest there
        merges."""
        sums, first, end, carried = self.sums, 0, 2 * SLOTS, self.sums[0] * 0
        for level in range(self.levels):
            oldest = sums[end - 1].copy()
            sums[first + 1 : end] = sums[first : end - 1]
            sums[first] = carried
            if now >> level & 1:
                return
            carried = oldest + sums[end - 1]
            sums[end - 1] = 0
            first, end = end, end + SLOTS


class RootSums:
    """Exact totals of a stream, by bins, and the running sum that is read of what is published; with `cells`, of so many streams
    at once, whose totals are Python's integers: no cell overflows.

    >>> sums = RootSums(SquareRoot(64))
    >>> [round(float(sums.read(step, sums.close(step, total))), 9) for step, total in enumerate([5, 1, 7], 1)]
    [5.0, 6.0, 13.0]
    """

    changes: ClassVar[tuple[str, ...]] = ("exact", "found")

    def __init__(self, matrix: SquareRoot, cells: int | None = None) -> None:
        self.matrix = matrix
        self.exact = Bins(matrix, np.int64 if cells is None else object, cells)
        self.found = Bins(matrix, np.float64, cells)
        self.sum: Any = 0.0 if cells is None else np.zeros(cells)

    def close(self, step: int, total: Any) -> Any:
        """What the matrix makes of the totals so far, with this step's: private."""
        self.exact.begin_step(step - 1)
        self.exact.sums[0] = total
        return self.matrix.row(self.exact.sums)

    def read(self, step: int, published: Any) -> Any:
        """The running sum that follows from what was published."""
        weights, sums = self.matrix.weights, self.found.sums
        self.found.begin_step(step - 1)
        sums[0] = (published - weights @ sums) / float(weights[0])
        self.sum = self.sum + sums[0]
        return self.sum

    def state(self) -> list[Any]:
        """All of it, as plain JSON."""
        return [self.exact.sums.tolist(), self.found.sums.tolist(), np.asarray(self.sum).tolist()]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        exact, self.found.sums[:], total = state
        self.exact.sums[:] = np.array(exact, dtype=self.exact.sums.dtype)
        self.sum = np.array(total)[()]


square_root_matrix = lru_cache(maxsize=8)(SquareRoot)
"""The matrix for so many steps; counters of one horizon share it."""


def exact_product(weights: NDArray[Any], sums: NDArray[np.int64]) -> int:
    """Sums of up to 2⁶², each times its weight, exactly: they are multiplied in two halves, neither of which passes 64 bits.

    >>> exact_product(np.array([2**20] * 4), np.array([2**58] * 4)) == 2**80
    True
    """
    wide, high, low = weights.astype(np.int64), sums >> _LOW, sums & ((1 << _LOW) - 1)
    return (int(wide @ high) << _LOW) + int(wide @ low)


def square_root_energy(steps: int) -> float:
    """Σ f(k)² over k < steps: the squared norm of a column, and of a row, of the exact square root.

    >>> [round(square_root_energy(steps), 2) for steps in (512, 65_536, 1_048_576)]
    [3.05, 4.6, 5.48]
    """
    total = _energies()[min(steps, 4096)]
    if steps > 4096:  # f(k)² = (1 − 1/4k + 1/32k² + …)/πk, summed
        total += (math.log(steps / 4096) + (1 / steps - 1 / 4096) * 0.75) / math.pi
    return total


@lru_cache(maxsize=1)
def _energies() -> tuple[float, ...]:
    """That sum for up to 4,096 steps."""
    squares = accumulate(range(4095), lambda square, k: square * ((2 * k + 1) / (2 * k + 2)) ** 2, initial=1.0)
    return tuple(accumulate(squares, initial=0.0))


def _weight(level: int, slot: int, scale: int) -> int:
    """The whole part of scale·(127/128)^level·f at (slot + ½)·2^level, with f(k)² = 1/π(k + ¼) and 355/113 for π: in
    integers, so that every machine has the same matrix.
    """
    number, shrink = _FADING
    above = 4 * _PI[1] * scale**2 * number ** (2 * level)
    below = _PI[0] * ((2 * slot + 1) * (2 << level) + 1) * shrink ** (2 * level)
    return math.isqrt(above // below)
