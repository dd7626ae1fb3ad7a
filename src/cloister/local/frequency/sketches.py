"""Count mean sketch, and its Hadamard form of one bit: a value hashed by one of many functions, to one of many buckets."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.blocks import mixed
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.hashing import check_size, lines_for
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.packed import fits, set_bits, unpacked
from cloister.local.frequency.transforms import supports, walsh_hadamard
from cloister.local.protocols.coins import bit_rows, flips, heads_below, lanes_of, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

_MOST_CELLS = 1 << 25
_CHUNK = 1 << 23
_WRITTEN_OUT = 1 << 13


class CountMeanSketch(FrequencyOracle):
    """One of k hash functions takes the value to one of m buckets; a row of m bits says which, each bit randomised.

    Guarantee: ε-local privacy (Apple's Differential Privacy Team 2017). Proof: the function is drawn uniformly, before the value
    is looked at. The row has a 1 at one place, and each bit is kept with probability e^(ε/2)/(e^(ε/2) + 1), rounded down to a
    whole number of 2⁻⁶⁴. Two values change two bits at most, each by a ratio of at most e^(ε/2). With `hadamard=True`, one entry
    of the row's Walsh–Hadamard transform, drawn uniformly, is sent: a sign, which is kept with probability e^ε/(e^ε + 1) and
    turned otherwise.

    Error: the functions are all lines over GF(m) (`fields.Lines`), so that any two values collide in the same share c of them,
    c < 1/m. Taking c·n off makes every count unbiased for any data, not only on average over hash functions. A report supports
    another value with q* = cp + (1 − c)(1 − p), and the variance is that of the support, n·q*(1 − q*)/(p − q*)²: collisions
    included. In the Hadamard form it is n·(s² − c²)/(1 − c)² with s = (e^ε + 1)/(e^ε − 1) where nobody holds the value.

    `hashes=k` takes k of the functions only (in a fixed, mixed order), for a smaller sketch. Then values that collide in these
    stay together, in every survey with the same functions; the variances of estimates have (N − k)/(k(N − 1))·c/(1 − c)·Σv² added
    for this, with the sum over the other counts and N functions in all. It is right on average over the choice of functions,
    and margins hold what a single function may add (`half_width`).

    `buckets` is a power of two from 2 to 4096. OUE or local hashing is more accurate than the plain form; the Hadamard form's
    reports are the shortest of all, and its error is that of binary local hashing.

    >>> oracle = CountMeanSketch(range(1000), epsilon=1)
    >>> oracle.buckets, oracle.hashes, round(oracle.variance(1), 3)
    (256, 257, 3.952)
    >>> CountMeanSketch(range(1000), epsilon=1, hadamard=True).report_size
    18
    >>> reports = oracle.randomize([7] * 3000 + [8] * 2000, random=Random.deterministic(1))
    >>> estimate = oracle.estimate(oracle.aggregate(reports))
    >>> bool((abs(estimate.counts[7:9] - [3000, 2000]) < estimate.margin(0.999)[7:9]).all())
    True
    """

    protocol: ClassVar[str] = "sketch"

    buckets: int
    hashes: int

    def __init__(
        self, domain: Any, epsilon: Exact = 1, *, hadamard: bool = False, hashes: int | None = None, buckets: int | None = None
    ) -> None:
        super().__init__(domain, epsilon)
        check_size(len(self.domain))
        self.hadamard = bool(hadamard)
        self.buckets = _default_buckets(len(self.domain)) if buckets is None else _checked_buckets(buckets)
        self._lines = lines_for(len(self.domain), self.buckets)
        if self._lines.cells > _MOST_CELLS:
            raise InvalidParameter(
                "The sketch is invalid",
                why="it would have more than 2²⁵ cells",
                instead="more buckets, or cloister.local.HeavyHitters",
            )
        self.hashes = len(self._lines) if hashes is None else hashes
        if isinstance(hashes, bool) or not isinstance(self.hashes, int) or not 1 <= self.hashes <= len(self._lines):
            raise InvalidParameter(
                f"hashes={hashes!r} is invalid",
                why=f"there are {len(self._lines)} hash functions to {self.buckets} buckets",
                instead="hashes=64, or leave it out and take all",
            )
        odds = odds_below(self.epsilon if self.hadamard else self.epsilon / 2)
        self._heads = heads_below(odds / (odds + 1))
        self._p = float(probability(self._heads))

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "size": len(self.domain),
            "field": self.buckets,
            "polynomial": self._lines.field.polynomial,
            "digits": self._lines.digits,
            "hashes": self.hashes,
            "hadamard": self.hadamard,
            "heads": hex(self._heads),
        }

    @property
    def report_size(self) -> int:
        row = (self.buckets - 1).bit_length() + 1 if self.hadamard else self.buckets
        return (self.hashes - 1).bit_length() + row

    @property
    def _width(self) -> int:
        return 0 if self.hadamard else 1 + lanes_of(self.buckets)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        c, p = self._lines.collisions, self._p
        if self.hadamard:
            scale = 1 / (2 * p - 1) ** 2
            return n * (scale - c * c - frequency * (1 - c * c)) / (1 - c) ** 2
        q = c * p + (1 - c) * (1 - p)
        return n * (q * (1 - q) + frequency * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        if self.hadamard:
            return np.asarray((reports >= 0) & (reports < 2 * self.hashes * self.buckets), dtype=np.bool_)
        sound = fits(reports[:, 1:], self.buckets) & (reports[:, 0] >= 0) & (reports[:, 0] < self.hashes)
        return np.asarray(sound, dtype=np.bool_)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """Plain: for each function in turn, row r of 2^m has the bits of the number r."""
        size, entries = len(self.domain), 2 * self.buckets if self.hadamard else 1 << min(self.buckets, 20)
        if size > 64 or self.hashes * entries > _WRITTEN_OUT:
            return super().channel()
        p = probability(self._heads)
        rows = []
        for place in range(size):
            hashes = self._lines.hashed(self._order, np.full(self.hashes, place, dtype=np.int64)).tolist()
            if self.hadamard:
                signs = [
                    ((hash_ & entry).bit_count() & 1, sign)
                    for hash_ in hashes
                    for entry in range(self.buckets)
                    for sign in (0, 1)
                ]
                rows.append(tuple((p if true == sign else 1 - p) / (self.hashes * self.buckets) for true, sign in signs))
            else:
                turned = [(row ^ 1 << hash_).bit_count() for hash_ in hashes for row in range(entries)]
                rows.append(tuple(p ** (self.buckets - each) * (1 - p) ** each / self.hashes for each in turned))
        return tuple(rows)

    def _report(self, places: Indices, random: Random) -> Reports:
        """Which of the functions, uniform. Then, plain: coins that turn bits, for the whole row, and one coin for the value's own
        bit (1 on heads); the report is the function's number and the row's words. Hadamard: which entry, uniform, and a coin
        that keeps its sign; the report is (function·m + entry)·2 + 1 for a sign below 0."""
        n = len(places)
        chosen = random.below(self.hashes, n)
        hashes = self._lines.hashed(self._order[chosen], places)
        if self.hadamard:
            entry = random.below(self.buckets, n)
            turned = ~flips(self._heads, n, random)
            negative = (np.bitwise_count(hashes & entry) & 1).astype(np.int64) ^ turned
            return np.asarray((chosen * self.buckets + entry) * 2 + negative, dtype=np.int64)
        out = np.empty((n, self._width), dtype=np.uint64)
        out[:, 0] = chosen
        rows = bit_rows((1 << 64) - self._heads, n, self.buckets, random)
        set_bits(rows, hashes, flips(self._heads, n, random))
        out[:, 1:] = rows
        return out

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        if self.hadamard:
            cells = np.bincount(reports.astype(np.int64, copy=False), minlength=2 * self.hashes * self.buckets)
            return cells.astype(np.int64, copy=False)
        counts = np.zeros((self.hashes, self.buckets), dtype=np.int64)
        ordered = reports[np.argsort(reports[:, 0], kind="stable")]
        rows = max(1, _CHUNK // self.buckets)
        for first in range(0, len(ordered), rows):
            part = ordered[first : first + rows]
            functions, starts = np.unique(part[:, 0].astype(np.int64), return_index=True)
            bits = unpacked(part[:, 1:].astype(np.uint64), self.buckets)
            counts[functions] += np.add.reduceat(bits, starts, axis=0, dtype=np.int64)
        return counts.ravel()

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        c, p = self._lines.collisions, self._p
        table = np.zeros((len(self._lines), self.buckets))
        if self.hadamard:
            signed = sketch.counts.reshape(self.hashes, self.buckets, 2)
            table[self._order] = walsh_hadamard(signed[..., 0] - signed[..., 1]) / (2 * p - 1)
        else:
            ones = sketch.counts.reshape(self.hashes, self.buckets)
            table[self._order] = (ones - sketch.n * (1 - p) / self.hashes) / (2 * p - 1)
        return np.asarray((supports(table, self._lines, len(self.domain)) - c * sketch.n) / (1 - c), dtype=np.float64)

    def estimate(self, sketch: Sketch) -> Estimate:
        """How many hold each value. Of a part of the functions, one moves a count by its share of the largest other at most."""
        found = super().estimate(sketch)
        if self.hashes == len(self._lines):
            return found
        largest = min(float(np.max(found.counts + found.margin(), initial=0.0)), float(sketch.n))
        return replace(found, part=max(found.part, largest / self.hashes / (1 - self._lines.collisions)))

    def _variances(self, n: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """With what collisions in a part of the functions add. The squares of estimates are too large by their variance."""
        noise = super()._variances(n, shares)
        functions, c = len(self._lines), self._lines.collisions
        if self.hashes == functions or not n:
            return noise
        squares = (shares * n) ** 2
        others = max(0.0, float(squares.sum() - noise.sum() / 2)) - squares  # half of the noise was cut off at 0
        part = (functions - self.hashes) / (self.hashes * (functions - 1)) * c / (1 - c)
        return noise + part * np.maximum(others, 0.0)

    @cached_property
    def _order(self) -> Indices:
        """The functions in use: all in their order, or the first `hashes` in a mixed order."""
        every = np.arange(len(self._lines), dtype=np.int64)
        if self.hashes == len(self._lines):
            return every
        return np.argsort(mixed(every.astype(np.uint64)), kind="stable")[: self.hashes].astype(np.int64)


def _default_buckets(size: int) -> int:
    """A power of two, at least 256, with which values have two digits."""
    buckets = 256
    while buckets < 4096 and buckets * buckets < size:
        buckets *= 2
    return buckets


def _checked_buckets(buckets: int) -> int:
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets & (buckets - 1) or not 2 <= buckets <= 4096:
        raise InvalidParameter(
            f"buckets={buckets!r} is invalid", why="it is a power of two from 2 to 4096", instead="buckets=1024"
        )
    return buckets
