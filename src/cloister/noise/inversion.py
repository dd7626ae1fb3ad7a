"""Fast and exact draws from exponential and Gaussian laws; the proof stands beside this file, in inversion.proof.md.

The half-line is cut into blocks of length 2^j, 4 to 8 of them to a scale (1/decay, or σ). A draw takes

1. one word: a sign, and 63 bits of a uniform number that are looked up among the exact tail probabilities of the block numbers;
2. one word: the place within the block, uniform;
3. one word: a coin of bias exp(−y), in floating point with a proved bound, that thins the block to its true shape (0.88 to
   0.95 of the draws stay).

Small scales need step 1 alone, on the integers themselves. Whatever the first 64 bits leave open (once in 2^46 draws or more
rarely) is decided by drawing more bits and comparing them with integer bounds of the number itself. Whether a draw is thrown
away in step 3 is independent of the values that stay, so the time that it takes tells nothing of the noise.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from operator import neg
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cloister.noise.bernoulli import SLACK
from cloister.noise.enclosure import exp_enclosure, lies_below
from cloister.noise.thresholds import Tails

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloister.noise.random import Random

Grid = Literal["integers", "rounded"]
"""`integers`: the discrete law, weights exp(−(k/scale)^power …) on the integers. `rounded`: the continuous law, rounded to
them."""

_CHUNK = 1 << 14
_FEW = 24
_GUIDE_BITS = 13
_WIDEST = 48
_MOST_BLOCKS = 1 << 12
"""2^12 blocks of 2^48, doubled for rounding, fit in int64; longer blocks are drawn as Python ints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Draws from the law whose density or weights are proportional to exp(−decay·|x|^power), on one side of 0 or on both.

    `slack` and `margin` widen what counts as undecided: the coin's floating-point bound, and the distance of the looked-up 63
    bits to a tail probability. The defaults are the proved ones; a test widens them to send every draw down the exact path.

    >>> from cloister.noise.random import Random
    >>> law = Inversion(decay=Fraction(1, 3), power=1)
    >>> law.draw(5, Random.deterministic(1)).dtype, law.block
    (dtype('int64'), None)
    >>> Inversion(decay=Fraction(1, 1000), power=1).block
    7
    """

    decay: Fraction
    power: Literal[1, 2]
    grid: Grid = "integers"
    two_sided: bool = True
    slack: float = SLACK
    margin: int = 0
    block: int | None = field(init=False)
    """The length of a block is 2^block; None where each integer is a block of its own."""
    tails: Tails = field(init=False)
    _rate: float = field(init=False, repr=False)
    _rising: list[int] = field(init=False, repr=False)
    _guide: list[NDArray[np.int16]] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        block = _block_for(self.decay, self.power)
        direct = self.grid == "integers" and block <= 0
        rate = self.decay if direct else self.decay * Fraction(2) ** (block * self.power)
        tails = Tails(rate=rate, power=self.power, mirrored=direct and self.two_sided)
        for name, value in {
            "block": None if direct else block,
            "tails": tails,
            "_rate": 0.0 if direct else float(rate),
            "_rising": list(reversed(tails.floors(63))),
        }.items():
            object.__setattr__(self, name, value)

    def draw(self, n: int, random: Random) -> NDArray[Any]:
        """`n` independent draws: int64, or Python ints where the blocks are longer than int64 has room for.

        >>> from cloister.noise.random import Random
        >>> Inversion(decay=Fraction(1, 10**30), power=1).draw(2, Random()).dtype
        dtype('O')
        """
        wide = self.block is not None and self.block > _WIDEST
        if wide or n <= _FEW:
            out = np.empty(n, dtype=object if wide else np.int64)
            drawn = [self.draw_one(random) for _ in range(n)]
            try:
                out[:] = drawn
            except OverflowError:
                out = np.array(drawn, dtype=object)
            return out
        parts, missing = [], n
        while missing > 0:
            proposals = missing if self.block is None else missing + (missing >> 3) + 32
            part = self._chunk(min(_CHUNK, proposals), random)[:missing]
            missing -= part.size
            parts.append(part)
        return np.concatenate(parts)

    def draw_one(self, random: Random) -> int:
        """One draw, without the cost of arrays.

        >>> from cloister.noise.random import Random
        >>> Inversion(decay=Fraction(1000), power=1).draw_one(Random())
        0
        """
        block = self.block
        while True:
            word = random.word()
            value = word >> 1
            rank = bisect_right(self._rising, value)
            index = len(self._rising) - rank
            if self.margin or value == 0 or (rank and self._rising[rank - 1] == value):
                index = self._exact_index(value, random)
            if block is None:
                return -index if word & 1 and self.two_sided else index
            bits = block if self.grid == "integers" else 64 + max(0, block)
            place = random.word() >> 64 - bits if bits <= 64 else random.bits(bits)
            share = place / (1 << bits)
            coin = random.word()
            exponent = share * self._rate if self.power == 1 else share * (share + 2.0 * index) * self._rate
            gap = math.exp(-exponent) - coin * 2.0**-64
            if not (gap > 0.0 if abs(gap) > self.slack else self._exact_coin(index, place, bits, coin, random)):
                continue
            size = (index << block) + place if self.grid == "integers" else self._rounded_one(index, place, bits)
            if word & 1 and self.two_sided:
                if size == 0 and self.grid == "integers":
                    continue  # 0 would come from both sides
                return -size
            return size

    def _chunk(self, n: int, random: Random) -> NDArray[Any]:
        """The accepted ones of `n` proposals, in order."""
        words = random.words(n)
        index = self._lookup(words, random)
        negative = (words & np.uint64(1)).astype(np.int64) if self.two_sided else np.zeros(1, dtype=np.int64)
        if self.block is None:
            return (index ^ -negative) + negative
        places = random.words(n)
        bits = 64
        if self.grid == "integers":
            bits = self.block
            places >>= np.uint64(64 - bits)
        share = places.astype(np.float64) * 2.0**-bits
        exponent = share * self._rate if self.power == 1 else share * (share + 2.0 * index) * self._rate
        coin = random.words(n)
        gap = np.exp(-exponent) - coin.astype(np.float64) * 2.0**-64
        accepted = gap > 0.0
        for i in np.flatnonzero(np.abs(gap) <= self.slack).tolist():
            accepted[i] = self._exact_coin(int(index[i]), int(places[i]), bits, int(coin[i]), random)
        size: NDArray[Any]
        if int(index.max()) >= _MOST_BLOCKS:  # once in 2^700 draws: a tail longer than int64
            index = index.astype(object)
        if self.grid == "rounded":
            size = self._rounded_all(index, places)
        else:
            size = (index << self.block) + places.astype(np.int64)
            if self.two_sided:
                accepted &= (size != 0) | (negative == 0)  # 0 would come from both sides
        return ((size ^ -negative) + negative)[accepted]

    def _lookup(self, words: NDArray[np.uint64], random: Random) -> NDArray[np.int64]:
        """How many tail probabilities lie above each 63-bit number: by its top 13 bits where they suffice, else by search."""
        if not self._guide:
            self._guide.append(_guide_of(self._rising))
        index: NDArray[np.int64] = self._guide[0][words >> np.uint64(64 - _GUIDE_BITS)].astype(np.int64)
        open_ones = np.flatnonzero(index < 0) if self.margin == 0 else np.arange(words.size)
        values = (words[open_ones] >> np.uint64(1)).astype(np.int64)
        rising = np.array(self._rising, dtype=np.int64)
        rank = np.searchsorted(rising, values, side="right")
        index[open_ones] = rising.size - rank
        undecided = values <= self.margin
        if rising.size:
            undecided |= (rank > 0) & (values - rising[np.maximum(rank, 1) - 1] <= self.margin)
            undecided |= (rank < rising.size) & (rising[np.minimum(rank, rising.size - 1)] - values <= self.margin)
        for i in np.flatnonzero(undecided).tolist():
            index[open_ones[i]] = self._exact_index(int(values[i]), random)
        return index

    def _exact_index(self, value: int, random: Random) -> int:
        """The number of tail probabilities above a uniform real whose first 63 bits are `value`, by more of its bits."""
        bits = 63
        while True:
            value, bits = value << 64 | random.word(), bits + 64
            floors = self.tails.floors(bits)
            index = bisect_left(floors, -value, key=neg)  # they fall: how many are above it
            if value > 0 and (index == len(floors) or floors[index] != value):
                return index

    def _exact_coin(self, index: int, place: int, bits: int, coin: int, random: Random) -> bool:
        """Is the coin's real number below exp(−y)? `bits` bits of the place are known; draws more of both if need be."""
        if self.grid == "integers":
            share = Fraction(place, 1 << bits)
            return share == 0 or lies_below(coin, 64, exp_enclosure(self._exponent(index, share)), random)
        seen = 64
        while True:  # the place is a real number as well: exp(−y) lies between its values at the two ends
            low = exp_enclosure(self._exponent(index, Fraction(place + 1, 1 << bits)))(seen)[0]
            high = exp_enclosure(self._exponent(index, Fraction(place, 1 << bits)))(seen)[1]
            if coin + 1 <= low:
                return True
            if coin >= high:
                return False
            coin, place = coin << 64 | random.word(), place << 64 | random.word()
            seen, bits = seen + 64, bits + 64

    def _exponent(self, index: int, share: Fraction) -> Fraction:
        """y such that the density falls by exp(−y) from the start of block `index` to this share of it."""
        return self.tails.rate * (share if self.power == 1 else share * (2 * index + share))

    def _rounded_one(self, index: int, place: int, bits: int) -> int:
        """(index + place/2^bits)·2^block, rounded to the nearest integer: half of its double, plus a half, rounded down."""
        shift = (self.block or 0) + 1
        doubled = (index << shift) + (place >> bits - shift) if shift >= 0 else index >> -shift
        return (doubled + 1) >> 1

    def _rounded_all(self, index: NDArray[Any], places: NDArray[np.uint64]) -> NDArray[Any]:
        shift = (self.block or 0) + 1
        if shift <= 0:
            return ((index >> -shift) + 1) >> 1
        return ((index << shift) + (places >> np.uint64(64 - shift)).astype(np.int64) + 1) >> 1


@lru_cache(maxsize=256)
def inversion(*, decay: Fraction, power: Literal[1, 2], grid: Grid = "integers", two_sided: bool = True) -> Inversion:
    """The `Inversion` of these parameters, with its tables made once.

    >>> inversion(decay=Fraction(1, 3), power=1) is inversion(decay=Fraction(1, 3), power=1)
    True
    """
    return Inversion(decay=decay, power=power, grid=grid, two_sided=two_sided)


def _block_for(decay: Fraction, power: Literal[1, 2]) -> int:
    """The greatest j for which a block of 2^j is at most a quarter of the scale: of 1/decay, or of σ = 1/√(2·decay)."""
    longest = 1 / (4 * decay) if power == 1 else 1 / (32 * decay)
    log2 = longest.numerator.bit_length() - longest.denominator.bit_length()
    if Fraction(2) ** log2 > longest:
        log2 -= 1
    return log2 if power == 1 else log2 >> 1


def _guide_of(rising: list[int]) -> NDArray[np.int16]:
    """For each value of the top 13 bits: the index, where no tail probability falls among the numbers that begin so; else −1."""
    cells = np.array([value >> (63 - _GUIDE_BITS) for value in rising], dtype=np.int64)
    inside = np.bincount(cells, minlength=1 << _GUIDE_BITS)
    guide = (len(rising) - np.cumsum(inside)).astype(np.int16)
    guide[inside > 0] = -1
    guide[0] = -1  # tail probabilities too small for 63 bits lie here
    return guide
