"""Duchi's mechanism: a report of one sign for each coordinate. The best at small ε, for means alone."""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.packed import column_counts, fits, unpacked
from cloister.local.numbers.interval import Floats
from cloister.local.numbers.numeric import NumericMechanism
from cloister.local.protocols.coins import flips, heads_below, lanes_of, odds_below, probability
from cloister.local.protocols.protocol import Reports, Sketch
from cloister.noise import Random
from cloister.privacy.rational import Exact

_CHUNK = 1 << 22
_LISTED = 7


class Duchi(NumericMechanism):
    """The mean of numbers, at small ε: each report is the sign + or − (Duchi, Jordan & Wainwright 2013, 2018).

    Guarantee: ε-local privacy. *One dimension:* a number goes to one end of the interval by a coin that keeps its mean, and the
    end is told by a randomised response: with probability p = e^ε/(1 + e^ε), rounded down, the truth. The response is ε-private
    for two ends, so for any two mixtures of them. That is exactly Duchi's law, P(+) = ½ + t(e^ε − 1)/(2(e^ε + 1)) on [−1, 1].

    *Several dimensions:* the numbers go to a corner v of {−1, 1}^d by d such coins. With probability p the report is a uniform
    corner of the half-space {s·v > 0}, else of {s·v < 0}; corners at a right angle to v, which are there where d is even, belong
    to each half-space half of the time. It is drawn so: a uniform corner s; the side that it lies on, by a fair coin where
    s·v = 0; s where that is the wanted side, −s where not. Proof: an agreeing corner r is reported where s = r and "with" is
    wanted, or s = −r and "with" is wanted: 2p/2^d. A disagreeing one has 2(1 − p)/2^d, one at a right angle 1/2^d, which lies
    between these two. So two probabilities have a ratio of at most p/(1 − p) ≤ e^ε. ∎ (As often printed, corners at a right
    angle are whole in both half-spaces: their ratio to disagreeing ones is then 1 + e^ε.)

    Error: a coordinate's mean is read off the share of plus signs: unbiased, with variance (B² − t²)/n on [−1, 1], where
    B = 2^(d−1) / ((2p − 1)·binom(d − 1, ⌊(d − 1)/2⌋)); in one dimension (e^ε + 1)/(e^ε − 1).

    >>> round(Duchi(epsilon=1).variance(), 3), Duchi(epsilon=1).report_size
    (4.683, 1)
    """

    protocol: ClassVar[str] = "sign"

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, dimensions=dimensions)
        odds = odds_below(self.epsilon)
        self._heads = heads_below(odds / (1 + odds))
        p = probability(self._heads)
        self._pull = float((2 * p - 1) * Fraction(comb(dimensions - 1, (dimensions - 1) // 2), 1 << (dimensions - 1)))

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "low": self.interval.low,
            "high": self.interval.high,
            "heads": hex(self._heads),
            "dimensions": self.dimensions,
        }

    @property
    def report_size(self) -> int:
        return self.dimensions

    @property
    def _width(self) -> int:
        return 0 if self.dimensions == 1 else lanes_of(self.dimensions)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        if self.dimensions == 1:
            return np.asarray((reports == 0) | (reports == 1), dtype=np.bool_)
        return fits(reports, self.dimensions)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        d, p = self.dimensions, probability(self._heads)
        if d > _LISTED:
            return super().channel()
        corners = list(product((-1, 1), repeat=d))
        share = {1: p / 2 ** (d - 1), 0: Fraction(1, 2**d), -1: (1 - p) / 2 ** (d - 1)}
        dots = ((sum(a * b for a, b in zip(v, s, strict=True)) for s in corners) for v in corners)
        return tuple(tuple(share[(dot > 0) - (dot < 0)] for dot in row) for row in dots)

    def _report(self, values: Floats, random: Random) -> Reports:
        """In one dimension: the coin that brings a number to an end, then the one that tells it or its opposite."""
        if self.dimensions == 1:
            end = self.interval.places(values[:, 0], 1, random)
            return np.where(flips(self._heads, len(end), random), end, 1 - end)
        rows = max(1, _CHUNK // self.dimensions)
        out = np.empty((len(values), self._width), dtype=np.uint64)
        for first in range(0, len(values), rows):
            part = values[first : first + rows]
            out[first : first + rows] = self._corners(part, random)
        return out

    def _corners(self, values: Floats, random: Random) -> npt.NDArray[np.uint64]:
        n, d = values.shape
        truth = self.interval.places(values.ravel(), 1, random).reshape(n, d).astype(np.bool_)
        mask = np.full(self._width, (1 << 64) - 1, dtype=np.uint64)
        if d % 64:
            mask[-1] = np.uint64((1 << d % 64) - 1)
        lanes = random.words(n * self._width).reshape(n, self._width) & mask
        agreeing = 2 * (unpacked(lanes, d) == truth).sum(axis=1)
        fair = random.words(n) < np.uint64(1 << 63)
        side = np.where(agreeing == d, fair, agreeing > d)
        turned = side != flips(self._heads, n, random)
        return np.where(turned[:, None], lanes ^ mask, lanes)

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        if self.dimensions == 1:
            return np.array([int(reports.sum())], dtype=np.int64)
        return column_counts(reports, self.dimensions)

    def _means(self, sketch: Sketch) -> tuple[Floats, Floats]:
        """The mean of t² is not told by signs; it is at least the mean's square, so the variance may be less than is said. The
        mean itself may be three deviations nearer to the middle, where the variance is largest."""
        means = 0.5 + (sketch.counts / sketch.n - 0.5) / self._pull
        nearer = 3 * math.sqrt(self._noise(self._worst) / sketch.n)
        held = 0.5 + np.maximum(np.abs(np.clip(means, 0.0, 1.0) - 0.5) - nearer, 0.0)
        noise = [self._noise(float(unit)) / sketch.n for unit in held]
        return np.asarray(means, dtype=np.float64), np.array(noise)

    def _noise(self, unit: float) -> float:
        return 0.25 / self._pull**2 - (unit - 0.5) ** 2

    @property
    def _part(self) -> float:
        return 1 / self._pull

    @property
    def _worst(self) -> float:
        return 0.5
