"""Hadamard response: one column of a matrix of signs, more likely where its sign agrees with the value's row."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.domain import Indices
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.hashing import check_size
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.transforms import walsh_hadamard
from cloister.local.protocols.coins import flips, heads_below, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

_CHUNK = 1 << 18
_WRITTEN_OUT = 1 << 10


class HadamardResponse(FrequencyOracle):
    """A column of a block-diagonal matrix of signs: one of those where the value's row has a +1, or by chance any other.

    The values are dealt to B blocks of b − 1. Each block is a Hadamard matrix of order b, a power of two: row r, column c has
    the sign (−1)^parity(r & c), and row 0 (all +1) belongs to nobody. Of the B·b columns, a value is tied to the b/2 of its own
    block in which its row has a +1.

    Guarantee: ε-local privacy (Acharya, Sun & Zhang 2019). Proof: each of the b/2 tied columns has probability 2p/b, each other
    one (1 − p)/(Bb − b/2), whatever the value. p is (b/2)e^ε/((b/2)e^ε + Bb − b/2), rounded down to a whole number of 2⁻⁶⁴, so
    that the ratio of the two is at most e^ε.

    Error: let δ be the difference of those two probabilities, and o the lesser. The count of a value is estimated by the sum of
    its row's signs over the reports of its block, times 2/(δb): unbiased, since two rows of a block are at a right angle. With
    the share f of a value and F of its whole block, it has variance n·((bo + Fδb/2)·4/(δb)² − f). With one block that is
    n·((e^ε + 1)²/(e^ε − 1)² − f). More blocks are better above ε = 2, about; the order b is the one with the least variance for
    people who are spread evenly. The variance is 1.3 times that of optimal local hashing at ε = 1, and some 2 times at the most;
    in return a report is one number of few bits, and the transform that reads a sketch has additions only.

    >>> oracle = HadamardResponse(range(1000), epsilon=1)
    >>> oracle.order, oracle.blocks, oracle.report_size, round(oracle.variance(1), 3)
    (1024, 1, 10, 4.683)
    >>> reports = oracle.randomize([7] * 3000 + [8] * 2000, random=Random.deterministic(1))
    >>> estimate = oracle.estimate(oracle.aggregate(reports))
    >>> bool((abs(estimate.counts[7:9] - [3000, 2000]) < estimate.margin(0.999)[7:9]).all())
    True
    """

    protocol: ClassVar[str] = "hadamard"

    order: int
    """b, the order of each block."""

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        super().__init__(domain, epsilon)
        check_size(len(self.domain))
        self._odds = odds_below(self.epsilon)
        powers = [1 << exponent for exponent in range(1, len(self.domain).bit_length() + 1)]
        self.order = min(powers, key=self._variance_of)
        tied, columns = self.order // 2, self.blocks * self.order
        self._heads = heads_below(tied * self._odds / (tied * self._odds + columns - tied))
        self._tied = probability(self._heads) / tied
        self._other = (1 - probability(self._heads)) / (columns - tied)

    @property
    def blocks(self) -> int:
        """B, how many blocks there are.

        >>> HadamardResponse(range(1000), epsilon=4).blocks
        33
        """
        return self._blocks_of(self.order)

    @property
    def client(self) -> Mapping[str, Any]:
        return {"protocol": self.protocol, "size": len(self.domain), "order": self.order, "heads": hex(self._heads)}

    @property
    def report_size(self) -> int:
        return (self.blocks * self.order - 1).bit_length()

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Where the others are spread evenly over the other values of the domain; `estimate` takes the blocks as they are."""
        inside = (self.order - 2) / (len(self.domain) - 1)
        return float(self._variance(n, frequency, frequency + (1 - frequency) * min(1.0, inside)))

    def estimate(self, sketch: Sketch) -> Estimate:
        """How many hold each value. Margins follow each block's own share of the reports."""
        found = super().estimate(sketch)
        if not sketch.n:
            return found
        reports = sketch.counts.reshape(self.blocks, self.order).sum(axis=1).repeat(self.order - 1)[: len(found)]
        variances = reports * (self._part / 2) ** 2 - np.clip(found.counts, 0.0, sketch.n)
        return replace(found, variances=np.asarray(np.maximum(variances, 0.0), dtype=np.float64))

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < self.blocks * self.order), dtype=np.bool_)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        size, columns = len(self.domain), self.blocks * self.order
        if size > 64 or columns > _WRITTEN_OUT:
            return super().channel()
        rows = []
        for place in range(size):
            block, row = place // (self.order - 1), place % (self.order - 1) + 1
            agree = [c // self.order == block and (row & c % self.order).bit_count() % 2 == 0 for c in range(columns)]
            rows.append(tuple(self._tied if each else self._other for each in agree))
        return tuple(rows)

    def _report(self, places: Indices, random: Random) -> Reports:
        """A coin for the tied columns; the number u of one of these; and the number v of one of the others. All three are drawn
        for every report.

        The tied column of number u: u with one bit put in where the row's highest bit is, such that the parity is even. With
        v < b/2 the other column is the v-th of the own block's other half, made likewise with an odd parity; beyond, it is column
        v − b/2 of the other blocks, one after the other. The report is block·b + column.
        """
        tied, order = self.order // 2, self.order
        out = np.empty(len(places), dtype=np.int64)
        for first in range(0, len(places), _CHUNK):
            block, row = np.divmod(places[first : first + _CHUNK], order - 1)
            row = row + 1
            coin = flips(self._heads, len(row), random)
            inside = random.below(tied, len(row))
            outside = random.below(self.blocks * order - tied, len(row))
            near = outside < tied
            own = _completed(np.where(coin | ~near, inside, outside), row, ~coin)
            other, column = np.divmod(outside - tied, order)
            far = (other + (other >= block)) * order + column
            out[first : first + _CHUNK] = np.where(coin | near, block * order + own, far)
        return out

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.bincount(reports.astype(np.int64, copy=False), minlength=self.blocks * self.order)
        return counts.astype(np.int64, copy=False)

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        signed = walsh_hadamard(sketch.counts.reshape(self.blocks, self.order))[:, 1:]
        return signed.ravel()[: len(self.domain)] * (2 / (float(self._tied - self._other) * self.order))

    @property
    def _part(self) -> float:
        return 4 / (float(self._tied - self._other) * self.order)

    @property
    def _slope(self) -> float:
        """Through the block's reports, each of which counts (`_part`/2)² in the variance, and through the count itself."""
        return self._part / 2 + 1

    def _variance(self, n: int, frequency: Any, inside: Any) -> Any:
        """Where the whole block holds the share `inside`. A report's sign is ±1 in the block and 0 elsewhere."""
        b, other, difference = self.order, float(self._other), float(self._tied - self._other)
        return n * ((b * other + inside * difference * b / 2) * 4 / (difference * b) ** 2 - frequency)

    def _blocks_of(self, order: int) -> int:
        return -(-len(self.domain) // (order - 1))

    def _variance_of(self, order: int) -> float:
        """For a value that nobody holds, before rounding, with blocks of this order."""
        odds, blocks = float(self._odds), self._blocks_of(order)
        total = odds + 2 * blocks - 1  # all probabilities, in units of b/2 times the lesser one
        inside = min(1.0, (order - 1) / len(self.domain))
        return (2 + inside * (odds - 1)) * total / (odds - 1) ** 2


def _completed(number: Indices, row: Indices, odd: npt.NDArray[np.bool_]) -> Indices:
    """`number` with one bit more, at the highest bit of `row`, so that parity(result & row) is as told."""
    place = np.bitwise_count(_filled(row)).astype(np.int64) - 1
    low = number & ((1 << place) - 1)
    spread = (number - low) << 1 | low
    bit = (np.bitwise_count(spread & row) & 1).astype(np.int64) ^ odd
    return np.asarray(spread | bit << place, dtype=np.int64)


def _filled(row: Indices) -> Indices:
    """All bits below the highest one set, too."""
    for shift in (1, 2, 4, 8, 16):
        row = row | row >> shift
    return row
