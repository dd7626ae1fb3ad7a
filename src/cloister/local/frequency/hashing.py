"""Local hashing: a value is hashed to a few by a function of one's own, and the hash is randomised; the function is told."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.fields import Lines, field_of, next_field
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.transforms import supports
from cloister.local.protocols.coins import flips, heads_below, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

LARGEST = 1 << 26
"""Domains above this are not hashed place by place: an estimate for each would not fit into memory."""
_CHUNK = 1 << 18
_WRITTEN_OUT = 1 << 13


class LocalHashing(FrequencyOracle):
    """A random function of a fixed family takes the value to one of g; that one, or by chance another, is sent with the function.

    Guarantee: ε-local privacy (Bassily & Smith 2015; Wang, Blocki, Li & Jha 2017). Proof: the function is drawn before the value
    is looked at, uniformly, so it tells nothing. Given the function, the report is a direct encoding of one of g values: the true
    hash has probability p = e^ε/(e^ε + g − 1), rounded down to a whole number of 2⁻⁶⁴, every other one (1 − p)/(g − 1).

    The family is that of lines over GF(g) (`fields.Lines`), told apart by a number. It is finite and has as few collisions as a
    family can have, so reports are counted by (function, value), and one transform reads that table for all values of the
    domain. Nothing is lost against drawing a fresh hash function for each person, which takes a look at each report for each
    value.

    Error: a report supports a value with probability p where it is the truth, and otherwise, whatever the truth, with
    q* = cp + (1 − c)(1 − p)/(g − 1), c < 1/g being the share of colliding functions. An estimated count has variance
    n·q*(1 − q*)/(p − q*)² where nobody holds the value: with g = e^ε + 1 about 4n·e^ε/(e^ε − 1)². By default g is the prime or
    power of two with the least variance whose table has no more than `cells` cells (by default 8 for each value of the domain, or
    64 as long as that is below 2²⁰). With few values and much ε that is direct encoding: one function, and g = d.
    `optimized=False` is binary local hashing (g = 2), `buckets=g` any other.

    >>> oracle = LocalHashing(range(1000), epsilon=1)
    >>> oracle.buckets, round(oracle.variance(1), 3), oracle.report_size
    (4, 3.682, 11)
    >>> reports = oracle.randomize([7] * 3000 + [8] * 2000, random=Random.deterministic(1))
    >>> estimate = oracle.estimate(oracle.aggregate(reports))
    >>> bool((abs(estimate.counts[7:9] - [3000, 2000]) < estimate.margin(0.999)[7:9]).all())
    True
    """

    protocol: ClassVar[str] = "hashing"

    def __init__(
        self, domain: Any, epsilon: Exact = 1, *, optimized: bool = True, buckets: int | None = None, cells: int | None = None
    ) -> None:
        super().__init__(domain, epsilon)
        size = len(self.domain)
        check_size(size)
        if cells is not None and (isinstance(cells, bool) or not isinstance(cells, int)):
            raise InvalidParameter("cells= is invalid", why="it is a whole number of cells", instead="cells=1_000_000")
        if buckets is None and optimized:
            self._lines = best_lines(size, self.epsilon, cells)
        else:
            self._lines = lines_for(size, 2 if buckets is None else buckets)
        odds = odds_below(self.epsilon)
        self._heads = heads_below(odds / (odds + self.buckets - 1))
        self._p = probability(self._heads)

    @property
    def buckets(self) -> int:
        """g, how many values a hash has.

        >>> LocalHashing(range(100), epsilon=3).buckets
        19
        """
        return self._lines.field.size

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "size": len(self.domain),
            "field": self.buckets,
            "polynomial": self._lines.field.polynomial,
            "digits": self._lines.digits,
            "heads": hex(self._heads),
        }

    @property
    def report_size(self) -> int:
        return (self._lines.cells - 1).bit_length()

    @property
    def support(self) -> float:
        """The probability that a report supports a value which is not the truth.

        >>> LocalHashing(range(7), epsilon=1, buckets=2).support < 0.5
        True
        """
        return _support(float(self._p), self._lines)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        p, q = float(self._p), self.support
        return n * (q * (1 - q) + frequency * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < self._lines.cells), dtype=np.bool_)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        size, lines = len(self.domain), self._lines
        if size > 64 or lines.cells > _WRITTEN_OUT:
            return super().channel()
        functions = np.arange(len(lines), dtype=np.int64)
        true, other = self._p / len(lines), (1 - self._p) / (self.buckets - 1) / len(lines)
        rows = []
        for place in range(size):
            hashes = lines.hashed(functions, np.full(len(lines), place, dtype=np.int64))
            rows.append(tuple(true if value == hash_ else other for hash_ in hashes.tolist() for value in range(self.buckets)))
        return tuple(rows)

    def _report(self, places: Indices, random: Random) -> Reports:
        """A function s, uniform; a coin for the true hash; and one of the g − 1 other values, as in direct encoding. All three
        are drawn for every report. The report is s·g + value."""
        g = self.buckets
        out = np.empty(len(places), dtype=np.int64)
        for first in range(0, len(places), _CHUNK):
            some = places[first : first + _CHUNK]
            functions = random.below(len(self._lines), len(some))
            truth = flips(self._heads, len(some), random)
            others = random.below(g - 1, len(some))
            hashes = self._lines.hashed(functions, some)
            others += others >= hashes
            out[first : first + _CHUNK] = functions * g + np.where(truth, hashes, others)
        return out

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.bincount(reports.astype(np.int64, copy=False), minlength=self._lines.cells)
        return counts.astype(np.int64, copy=False)

    @property
    def _part(self) -> float:
        return 1 / (float(self._p) - self.support)

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        table = sketch.counts.reshape(len(self._lines), self.buckets)
        supported = np.rint(supports(table, self._lines, len(self.domain)))  # they are counts, whatever the transform rounded
        q = self.support
        return np.asarray((supported - sketch.n * q) / (float(self._p) - q), dtype=np.float64)


def lines_for(size: int, buckets: int) -> Lines:
    """The functions from `size` places to so many values: numbers of as few digits as the places need.

    >>> lines_for(100, 7).digits
    3
    """
    check_whole(buckets, "buckets", 2, 2 * LARGEST, why="a hash has two values at least", instead="buckets=4, or leave it out")
    digits = 1
    while buckets**digits < size:
        digits += 1
    return Lines(field=field_of(buckets), digits=digits)


@lru_cache(maxsize=256)
def best_lines(size: int, epsilon: Fraction, cells: int | None = None) -> Lines:
    """The functions whose reports have the least variance, among those whose table has at most `cells` cells.

    >>> best_lines(100, Fraction(1)).field.size, best_lines(4, Fraction(3)).digits
    (4, 1)
    """
    most = max(8 * size, min(64 * size, 1 << 20)) if cells is None else cells
    odds = float(odds_below(epsilon))
    sizes = {next_field(_root(size, digits)) for digits in range(1, size.bit_length() + 1)}
    g = 2
    while g <= min(4096, 2 * size, 4 * odds + 8):
        sizes.add(g)
        g = next_field(g + 1)
    tried = [lines_for(size, each) for each in sorted(sizes)]
    allowed = [lines for lines in tried if lines.cells <= most]
    if not allowed:
        raise InvalidParameter(
            f"cells={cells} is invalid", why="no table is as small", instead=f"cells={min(lines.cells for lines in tried)}"
        )
    return min(allowed, key=lambda lines: hashed_variance(odds, lines))


def hashed_variance(odds: float, lines: Lines) -> float:
    """Of one report, for a value that nobody holds.

    >>> from cloister.local.frequency.fields import field_of
    >>> round(hashed_variance(3.0, Lines(field=field_of(4), digits=8)), 3)
    3.0
    """
    p = odds / (odds + lines.field.size - 1)
    q = _support(p, lines)
    return q * (1 - q) / (p - q) ** 2


def check_size(size: int) -> None:
    """Refuse domains for which a table would not fit."""
    if size > LARGEST:
        raise InvalidParameter(
            "The domain is invalid",
            why="it has more than 2²⁶ values, and an estimate for each of them would not fit into memory",
            instead="cloister.local.HeavyHitters, which finds the frequent ones",
        )


def _support(p: float, lines: Lines) -> float:
    c = lines.collisions
    return c * p + (1 - c) * (1 - p) / (lines.field.size - 1)


def _root(size: int, digits: int) -> int:
    """The least g with g^digits ≥ size."""
    root: int = max(1, round(size ** (1 / digits)) - 1)
    while root**digits < size:
        root += 1
    return root
