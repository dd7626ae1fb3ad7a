"""The difference of two Pólya (negative binomial) numbers of a rational shape, drawn exactly: a share of discrete Laplace noise.

*Claim.* Let α = e^(−1/s). The difference X − Y of two independent numbers with P(j) = Γ(j + r)/(Γ(r)·j!)·(1 − α)^r·α^j is a
compound Poisson number: its jumps +k and −k, for k = 1, 2, …, are independent Poisson numbers of mean r·α^k/k each.
*Proof.* Σ_k α^k·z^k/k = −ln(1 − αz), so exp(Σ_k (r·α^k/k)·(z^k − 1)) = ((1 − α)/(1 − αz))^r, the generating function of X. ∎
Hence shapes add: n of shape 1/n are the difference of two geometric numbers, which is the discrete Laplace law of scale s.

*How it is drawn.* Candidates for jumps, of which each stays with a probability of its own (thinning of a Poisson process). Sizes
are cut into blocks 2^j ≤ k < 2^(j+1). With 2^J ≥ s, block j has candidates at the rate 2r·w_j for both signs together, w_j = 1
for j ≤ J and w_(J+i) = 2^(−i) from there on: in all 2r·(J + 2), a rational number. A candidate's sign and its place in the block
are uniform, and it stays with probability (2^j/k)·α^k/w_j. That is at most 1, since beyond J α^k ≤ e^(−2^i) ≤ 2^(−i). What stays
has the rate ½·2r·w_j·2^(−j)·(2^j/k)·α^k/w_j = r·α^k/k for each sign. ∎ The number of candidates is Poisson of rational mean, by
inversion: 64 bits of a uniform number among the distribution function's values, which are enclosed in integers; so is each coin,
after a first look in floating point. What they leave open is decided by more bits.

How long it takes: about 2r·(log₂ s + 3) candidates a number. How many are worked on depends on how many numbers are asked for
alone, save once in 2^60 calls.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.noise.bernoulli import SLACK
from cloister.noise.enclosure import Enclosure, exp_below, lies_below

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloister.noise.random import Random

_CANDIDATES = 1 << 18
_WIDEST = 44
"""Up to blocks of 2^44 sums of jumps fit in 64 bits; wider ones are drawn as Python ints."""
_LAST_MACHINE = 7
"""Beyond J + 7 a candidate stays with a probability below e^(−100): those are decided in integers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolyaDifference:
    """The law of X − Y above, of scale `scale` and shape `shape`.

    >>> from cloister.noise.random import Random
    >>> PolyaDifference(scale=Fraction(10), shape=Fraction(1, 3)).draw(4, Random.deterministic(1)).dtype
    dtype('int64')
    """

    scale: Fraction
    shape: Fraction
    slack: float = SLACK
    """How near a coin's floating-point look must be to be decided in integers. The default is proved; a test widens it."""
    blocks: int = field(init=False)
    """J: the least number with 2^J ≥ scale, and at least 0."""

    def __post_init__(self) -> None:
        blocks = max(0, self.scale.numerator.bit_length() - self.scale.denominator.bit_length() - 1)
        while self.scale > 1 << blocks:
            blocks += 1
        object.__setattr__(self, "blocks", blocks)

    @property
    def rate(self) -> Fraction:
        """The mean number of candidates a number.

        >>> PolyaDifference(scale=Fraction(10), shape=Fraction(1, 3)).rate
        Fraction(4, 1)
        """
        return 2 * self.shape * (self.blocks + 2)

    def draw(self, n: int, random: Random) -> NDArray[Any]:
        """`n` independent draws: int64, or Python ints where the scale is beyond 2^44.

        >>> from cloister.noise.random import Random
        >>> PolyaDifference(scale=Fraction(10**30), shape=Fraction(1, 2)).draw(1, Random()).dtype
        dtype('O')
        """
        if self.blocks > _WIDEST:
            out = np.empty(n, dtype=object)
            out[:] = [self._one(random) for _ in range(n)]
            return out
        most = max(1, int(_CANDIDATES / self.rate))
        parts = [self._some(min(most, n - start), random) for start in range(0, n, most)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def chance(self, size: int, beyond: int) -> Enclosure:
        """The probability with which a candidate of this size stays; `beyond` says how far its block is beyond J (0: it is not).

        >>> low, high = PolyaDifference(scale=Fraction(8), shape=Fraction(1)).chance(8, 0)(20)
        >>> low <= 2.718281828459045**-1 * 2**20 <= high <= low + 4
        True
        """
        factor = Fraction(1 << size.bit_length() - 1 + beyond, size)
        extra = beyond + 2

        def enclose(bits: int) -> tuple[int, int]:
            low = exp_below(size / self.scale, bits + extra)
            unit = factor / (1 << extra)
            return int(low * unit), min(int((low + 2) * unit) + 1, 1 << bits)

        return enclose

    def _some(self, n: int, random: Random) -> NDArray[Any]:
        """`n` draws at once."""
        counts = self._counts(n, random)
        mean = n * self.rate
        found = int(counts.sum())
        # as many candidates are worked on whatever the counts are; those that are too many belong to no number
        worked_on = max(found, int(mean + 10 * float(mean) ** 0.5) + 48)
        owners = np.full(worked_on, n, dtype=np.int64)
        owners[:found] = np.repeat(np.arange(n), counts)
        block = random.below(self.blocks + 2, worked_on)
        beyond = np.zeros(worked_on, dtype=np.int64)
        far = np.flatnonzero(block == self.blocks + 1)
        beyond[far] = [_first_one(random) for _ in range(far.size)] if far.size < 16 else _first_ones(far.size, random)
        block[far] += beyond[far] - 1
        words = random.words(worked_on)
        near = beyond <= _LAST_MACHINE
        low = np.where(near, block, 0)
        sizes = np.where(low == 0, 1, (1 << low) + (words >> (64 - low).clip(1, 63).astype(np.uint64)).astype(np.int64))
        rate = float(min(1 / self.scale, Fraction(10**300)))
        # sizes are exact as floats; what the chance is off by: 2^−52 by the rate and its product (y·2^i·e^(−y) < 0.6), 2^−50 by 8
        # units in the last place of exp, 2^−52 by the quotient and the product, 2^−53 by the coin: in all less than `SLACK`
        chance = np.ldexp(1 / sizes, low + beyond) * np.exp(-(sizes * rate))
        coins = random.words(worked_on)
        gap = chance - coins.astype(np.float64) * 2.0**-64
        stays = (gap > 0) & near
        jumps = np.where(words & np.uint64(1), sizes, -sizes)
        for i in np.flatnonzero(near & (np.abs(gap) <= self.slack)).tolist():
            stays[i] = lies_below(int(coins[i]), 64, self.chance(int(sizes[i]), int(beyond[i])), random)
        total: NDArray[Any] = np.zeros(n + 1, dtype=np.int64)
        np.add.at(total, owners, np.where(stays, jumps, 0))
        for i in np.flatnonzero(~near).tolist():
            size = (1 << int(block[i])) + random.bits(int(block[i]))
            if lies_below(int(coins[i]), 64, self.chance(size, int(beyond[i])), random):  # once in 2^144 candidates
                total = total.astype(object)
                total[owners[i]] += size if int(words[i]) & 1 else -size
        return total[:n]

    def _one(self, random: Random) -> int:
        """One draw in Python ints."""
        total = 0
        for _ in range(_exact_count(self.rate, random.word(), random)):
            block, beyond = random.below_one(self.blocks + 2), 0
            if block == self.blocks + 1:
                beyond = _first_one(random)
                block += beyond - 1
            size = (1 << block) + random.bits(block)
            sign = 1 if random.word() & 1 else -1
            if lies_below(random.word(), 64, self.chance(size, beyond), random):
                total += sign * size
        return total

    def _counts(self, n: int, random: Random) -> NDArray[np.int64]:
        """`n` Poisson numbers of mean `rate`."""
        lows, highs = _tables(self.rate)
        words = random.words(n)
        counts = np.searchsorted(highs, words, side="right").astype(np.int64)
        undecided = (counts != np.searchsorted(lows, words, side="right")) | (counts == len(highs))
        for i in np.flatnonzero(undecided).tolist():
            counts[i] = _exact_count(self.rate, int(words[i]), random)
        return counts


def _first_one(random: Random) -> int:
    """The place of the first 1 in a row of bits: i with probability 2^(−i)."""
    skipped = 0
    while not (word := random.word()):
        skipped += 64
    return skipped + (word & -word).bit_length()


def _first_ones(n: int, random: Random) -> NDArray[np.int64]:
    words = random.words(n)
    last = words & (~words + np.uint64(1))
    places = np.frexp(last.astype(np.float64))[1].astype(np.int64)  # a power of two is exact as a float
    for i in np.flatnonzero(words == 0).tolist():
        places[i] = 64 + _first_one(random)
    return places


def _exact_count(rate: Fraction, word: int, random: Random) -> int:
    """The Poisson number that a uniform real picks whose first 64 bits are `word`, by as many bits as it takes."""
    bits = 64
    while True:
        lows, highs = poisson_floors(rate, bits)
        count = bisect_right(highs, word)
        if count < len(highs) and count == bisect_right(lows, word):
            return count
        word, bits = word << 64 | random.word(), bits + 64


@lru_cache(maxsize=64)
def _tables(rate: Fraction) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Of 64 bits, as arrays, but those that have no room in a word: beyond them nothing is decided."""
    lows, highs = poisson_floors(rate, 64)
    kept = sum(high < 1 << 64 for high in highs)
    return np.array(lows[:kept], dtype=np.uint64), np.array(highs[:kept], dtype=np.uint64)


@lru_cache(maxsize=64)
def poisson_floors(rate: Fraction, bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Integers low ≤ 2^bits·P(N ≤ m) ≤ high for m = 0, 1, …, for a Poisson number N, until 1 is as near as `bits` bits show.

    Each term is the one before it times rate/m, rounded down below and up above, from an enclosure of e^(−rate) that has more
    bits than all roundings together can cost: terms are at most e^rate times the first.

    >>> lows, highs = poisson_floors(Fraction(1), 10)
    >>> lows[:3], highs[:3], [round(1024 * each / 2.718281828, 1) for each in (1, 2, 2.5)]
    ((376, 753, 941), (377, 754, 942), [376.7, 753.4, 941.8])
    """
    deep = bits + int(rate * 3 / 2) + 48
    shift = deep - bits
    below = exp_below(rate, deep)
    above = below + 2
    low, high = below, above
    lows, highs = [low >> shift], [-(-high >> shift)]
    m = 0
    while (1 << bits) - lows[-1] > 1 or m < rate:
        m += 1
        below = below * rate.numerator // (rate.denominator * m)
        above = -(-above * rate.numerator // (rate.denominator * m))
        low, high = low + below, high + above
        lows.append(min(low >> shift, 1 << bits))
        highs.append(min(-(-high >> shift), 1 << bits))
    return tuple(lows), tuple(highs)
