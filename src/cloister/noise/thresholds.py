"""The tail probabilities of an exponential or Gaussian law on 0, 1, 2, …, as integers that are proved, to any number of bits.

A draw from such a law is a comparison of a uniform real U with the numbers T(1) > T(2) > …, T(k) = P(K ≥ k): K is how many of
them lie above U. Here T(k) is cut down to `bits` binary places, in integer arithmetic whose rounding is counted.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from cloister.noise.enclosure import exp_below

_GUARD_BITS = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The law on k = 0, 1, 2, … with weights exp(−rate·k^power); where `mirrored`, every k ≥ 1 weighs twice (k and −k).

    >>> Tails(rate=Fraction(100), power=1).floors(10)  # nearly all weight on 0
    ()
    >>> half = Tails(rate=Fraction(693147180559945, 10**15), power=1).floors(8)  # just below ln 2: P(K ≥ k) is just above 2^−k
    >>> half
    (128, 64, 32, 16, 8, 4, 2, 1)
    """

    rate: Fraction
    power: Literal[1, 2]
    mirrored: bool = False
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def floors(self, bits: int) -> tuple[int, ...]:
        """⌊T(k)·2^bits⌋ for k = 1, 2, … while it is above 0; for all later k it is 0.

        Every result is certain: lower and upper bounds of T(k) have the same floor; where they don't, they are computed
        again with more guard bits. T(k) is transcendental (Lindemann–Weierstrass), never a dyadic number, so this ends.
        """
        known = self._known.get(bits)
        if known is None:
            guard = _GUARD_BITS
            certain = self._geometric_floors if self.power == 1 else self._gaussian_floors
            while (known := certain(bits, guard)) is None:
                guard *= 2
            self._known[bits] = known
        return known

    def _geometric_floors(self, bits: int, guard: int) -> tuple[int, ...] | None:
        """For power 1, T(k + 1) = α·T(k) with α = exp(−rate), and T(1) = α; where mirrored, T(1) = 2α/(1 + α).

        α is low by at most 2 units, so T(1) by at most 8; each product, rounded down, adds at most 3: T(k) is low by at
        most 8 + 3k.
        """
        places = bits + guard
        mask = (1 << guard) - 1
        ratio = exp_below(self.rate, places)
        tail = (2 * ratio << places) // ((1 << places) + ratio + 2) if self.mirrored else ratio
        floors: list[int] = []
        slack = 8
        while True:
            slack += 3
            if (tail & mask) + slack > mask:
                return None
            floor = tail >> guard
            if floor == 0:
                return tuple(floors)
            floors.append(floor)
            tail = tail * ratio >> places

    def _gaussian_floors(self, bits: int, guard: int) -> tuple[int, ...] | None:
        """For power 2, sums of the weights from the end.

        Each weight is low by at most 3·count² units (`_weights`). Those left out sum to at most (the first of them)·(1 +
        1/rate), as each is at most exp(−rate) times the one before, and the first computed as 0 is truly below 3·count² + 1
        units.
        """
        places = bits + guard
        weights = self._weights(places)
        count = len(weights)
        slack = 3 * count**2 * count + (3 * count**2 + 1) * (2 + int(1 / self.rate))
        twice = 2 if self.mirrored else 1
        suffixes = [0] * count
        total = 0
        for k in range(count - 1, 0, -1):
            total += weights[k]
            suffixes[k] = total
        least = weights[0] + twice * total  # weights[0] is exactly 1
        most = least + twice * slack
        floors: list[int] = []
        for k in range(1, count):
            low = (twice * suffixes[k] << bits) // most
            if low != (twice * (suffixes[k] + slack) << bits) // least:
                return None
            if low == 0:
                return tuple(floors)
            floors.append(low)
        return tuple(floors) if (twice * slack << bits) // least == 0 else None

    def _weights(self, places: int) -> list[int]:
        """exp(−rate·k²)·2^places from below, up to the first that is computed as 0, which is left out.

        Two exponentials are computed, exp(−rate) and exp(−2·rate), low by at most 2 units; the rest are products, rounded
        down. The ratio exp(−rate(2k + 1)) is low by at most 3k + 2 units, and a weight by at most the sum of 3i + 3 over i
        < k: below 3·count².
        """
        ratio = exp_below(self.rate, places)
        square = exp_below(2 * self.rate, places)
        weights = []
        weight = 1 << places
        while weight:
            weights.append(weight)
            weight = weight * ratio >> places
            ratio = ratio * square >> places
        return weights
