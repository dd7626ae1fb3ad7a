"""Subset selection: a set of values, which holds the true one more often than not."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.packed import column_counts, fits, set_bits
from cloister.local.protocols.coins import flips, heads_below, lanes_of, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

_LARGEST = 1 << 16
_CHUNK = 1 << 20
_LISTED = 5000


class SubsetSelection(FrequencyOracle):
    """ω values of the domain at once: those with the true one among them are e^ε times as likely as those without.

    Guarantee: ε-local privacy (Wang et al. 2016; Ye & Barg 2018). Proof: a set of ω values has one of two probabilities, by
    whether the true value is in it: p/C(d − 1, ω − 1) or (1 − p)/C(d − 1, ω), where p = ωe^ε/(ωe^ε + d − ω), rounded down to a
    whole number of 2⁻⁶⁴. Their ratio is p(d − ω)/((1 − p)ω) ≤ e^ε.

    Error: another value is in the set with q = p(ω − 1)/(d − 1) + (1 − p)ω/(d − 1), and an estimated count has variance
    n·q(1 − q)/(p − q)² where nobody holds the value. ω, about d/(e^ε + 1), is the one for which that is least: with many
    people no protocol has a lesser error for evenly spread values, at any d and ε (Ye & Barg 2018). ω = 1 is direct encoding.

    A report is a row of ⌈d/64⌉ words, as in unary encoding: bit j of word i says whether the value at place 64·i + j is in. So
    domains end at 65,536 values; for larger ones local hashing has the same error with reports of a few bytes.

    >>> oracle = SubsetSelection(range(100), epsilon=1)
    >>> oracle.picks, round(oracle.variance(1), 3), oracle.report_size
    (27, 3.59, 81)
    >>> reports = oracle.randomize([7] * 3000 + [8] * 2000, random=Random.deterministic(1))
    >>> estimate = oracle.estimate(oracle.aggregate(reports))
    >>> bool((abs(estimate.counts[7:9] - [3000, 2000]) < estimate.margin(0.999)[7:9]).all())
    True
    """

    protocol: ClassVar[str] = "subset"

    picks: int
    """ω, how many values a report has."""

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        super().__init__(domain, epsilon)
        if len(self.domain) > _LARGEST:
            raise InvalidParameter(
                "The domain is invalid",
                why="it has more than 65,536 values, and each report would have a bit for each",
                instead=f"LocalHashing(domain, epsilon={self.epsilon}), which has the same error",
            )
        self._odds = odds_below(self.epsilon)
        near = int(len(self.domain) / (1 + float(self._odds)))
        some = range(max(1, near - 1), min(len(self.domain) - 1, near + 2) + 1)
        self.picks = min(some, key=lambda picks: _variance(float(self._share(picks)), picks, len(self.domain), 0.0))
        self._heads = heads_below(self._share(self.picks))
        self._p = probability(self._heads)

    @property
    def client(self) -> Mapping[str, Any]:
        return {"protocol": self.protocol, "size": len(self.domain), "picks": self.picks, "inside": hex(self._heads)}

    @property
    def report_size(self) -> int:
        """As few bits as say which set it is; a row of words has ⌈d/64⌉·64."""
        return (comb(len(self.domain), self.picks) - 1).bit_length()

    @property
    def _width(self) -> int:
        return lanes_of(len(self.domain))

    def variance(self, n: int, frequency: float = 0.0) -> float:
        return n * _variance(float(self._p), self.picks, len(self.domain), frequency)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        sizes = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.asarray(fits(reports, len(self.domain)) & (sizes == self.picks), dtype=np.bool_)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """Reports are in the order of `itertools.combinations`."""
        size, picks = len(self.domain), self.picks
        if comb(size, picks) * size > _LISTED:
            return super().channel()
        with_it, without = self._p / comb(size - 1, picks - 1), (1 - self._p) / comb(size - 1, picks)
        every = list(combinations(range(size), picks))
        return tuple(tuple(with_it if place in each else without for each in every) for place in range(size))

    def _report(self, places: Indices, random: Random) -> Reports:
        """A coin for the true value; ω of the d − 1 others; and the number of one of those, which makes room for the true value.
        All are drawn for every report.

        The others are numbered 0 … d − 2 in their order. They are drawn by Floyd's rule: for j = d − 1 − ω, …, d − 2, a number on
        0 … j; it's picked, or j where it has been picked before. Each set of ω is as likely. The last draw, on 0 … ω − 1, says
        which of them leaves, counted in the order in which they were picked.
        """
        rows = max(1, _CHUNK // (self.picks + self._width))
        parts = [self._some(places[first : first + rows], random) for first in range(0, len(places), rows)]
        return np.concatenate(parts) if parts else np.zeros((0, self._width), dtype=np.uint64)

    def _some(self, places: Indices, random: Random) -> npt.NDArray[np.uint64]:
        n, others = len(places), len(self.domain) - 1
        inside = flips(self._heads, n, random)
        here = np.arange(n)
        taken = np.zeros((n, self._width), dtype=np.uint64)
        picked = np.empty((n, self.picks), dtype=np.int64)
        every = np.ones(n, dtype=np.bool_)
        for turn, last in enumerate(range(others - self.picks, others)):
            number = random.below(last + 1, n)
            before = taken[here, number >> 6] >> (number & 63).astype(np.uint64) & 1
            number[before.astype(np.bool_)] = last
            set_bits(taken, number, every)
            picked[:, turn] = number
        leaves = random.below(self.picks, n)
        result = np.zeros((n, self._width), dtype=np.uint64)
        for turn in range(self.picks):
            true = inside & (leaves == turn)
            number = picked[:, turn]
            set_bits(result, np.where(true, places, number + (number >= places)), every)
        return result

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        return column_counts(reports, len(self.domain))

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        p = float(self._p)
        q = _other(p, self.picks, len(self.domain))
        return np.asarray((sketch.counts - sketch.n * q) / (p - q), dtype=np.float64)

    @property
    def _part(self) -> float:
        p = float(self._p)
        return 1 / (p - _other(p, self.picks, len(self.domain)))

    def _share(self, picks: int) -> Fraction:
        return picks * self._odds / (picks * self._odds + len(self.domain) - picks)


def _other(p: float, picks: int, size: int) -> float:
    """How likely a value that isn't the truth is in the set."""
    return (p * (picks - 1) + (1 - p) * picks) / (size - 1)


def _variance(p: float, picks: int, size: int, frequency: float) -> float:
    q = _other(p, picks, size)
    return (q * (1 - q) + frequency * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2
