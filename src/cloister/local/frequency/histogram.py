"""Histogram encodings: a noisy cell for each value of the domain, sent as it is (SHE) or as one bit, above a threshold (THE)."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.unary import Bits
from cloister.local.protocols.coins import check_epsilon, heads_above, heads_below
from cloister.noise import DiscreteLaplace, Random
from cloister.noise.enclosure import exp_above
from cloister.privacy.rational import Exact, exact, text_of

STEPS = 256
"""A cell is sent in steps of 1/256: the truth is 0 or 256 of them."""
_RARE = 2.0**-40
_CHUNK = 1 << 20
_GOLDEN = (math.sqrt(5) - 1) / 2


class HistogramEncoding(FrequencyOracle, ABC):
    """A cell for each value of the domain, 1 for the true one and 0 for the others, each with Laplace noise of scale 2/ε.

    Without a threshold the noisy cells are sent and summed (SHE). With `threshold=` a bit is sent for each cell: whether it lies
    above (THE). `threshold=True` takes the threshold of least error; a number from 0 to 1 is taken as it is.

    Guarantee: ε-local privacy, with or without a threshold (Wang, Blocki, Li & Jha 2017). Two values differ in two cells by 1
    each. SHE: in steps of 1/256 the truth is a whole number, two values are 512 steps apart in L1, and the discrete Laplace law
    of scale 512/ε steps is drawn exactly; so the ratio of two values' probabilities is at most exp(512/(512/ε)) = e^ε. Cells
    beyond a public reach (which the noise of a cell leaves once in 2⁴⁰) are moved to it afterwards: that is post-processing.
    THE: the bits are those of thresholded noise (see `probabilities`); they are drawn directly, as a unary encoding with
    p = 1 − ½e^((θ−1)ε/2) and q = ½e^(−θε/2). Proof: let a = e^(ε/2), t = a^θ. By the lemma of `Bits` the ratio is p/q times
    (1 − q)/(1 − p). p/q = 2t − t²/a ≤ a, since (a − t)² ≥ 0; (1 − q)/(1 − p) = a(2t − 1)/t² ≤ a, since (t − 1)² ≥ 0. So it is
    at most a² = e^ε; p is rounded down and q up, which lessens it. It is below e^ε even before: THE pays for noise that it
    throws away, which is why a unary encoding beats it at the same ε.

    Error: an estimated count has variance 8n/ε² (SHE, whoever holds the value), or
    n·q(1 − q)/(p − q)² (THE, where nobody holds it).

    >>> summed = HistogramEncoding(range(5), epsilon=1)
    >>> tuned, fixed = HistogramEncoding(range(5), epsilon=1, threshold=True), HistogramEncoding(range(5), 1, threshold="0.25")
    >>> [round(oracle.variance(1), 2) for oracle in (summed, tuned, fixed)]
    [8.0, 4.81, 5.33]
    >>> tuned.threshold, summed.threshold
    (Fraction(31, 50), None)
    """

    threshold: Fraction | None

    def __new__(cls, domain: Any = None, epsilon: Exact = 1, threshold: Exact | bool | None = None) -> Self:
        kind: type[Any] = cls
        if cls is HistogramEncoding:
            kind = Summed if threshold is None or threshold is False else Thresholded
        made: Self = object.__new__(kind)
        return made

    if TYPE_CHECKING:

        def __init__(self, domain: Any, epsilon: Exact = 1, threshold: Exact | bool | None = None) -> None: ...


class Summed(HistogramEncoding):
    """SHE: the noisy cells themselves. A report is a row of d whole numbers from 0 to 2·reach: steps above −reach."""

    protocol: ClassVar[str] = "histogram"

    def __init__(self, domain: Any, epsilon: Exact = 1, threshold: bool | None = None) -> None:
        super(HistogramEncoding, self).__init__(domain, epsilon)
        self.threshold = None
        self.noise = DiscreteLaplace.for_epsilon(self.epsilon, sensitivity=2 * STEPS)
        self._reach = STEPS + self.noise.margin(1 - Fraction(_RARE))
        self._dtype = next(kind for kind in (np.uint16, np.uint32, np.uint64) if 2 * self._reach <= np.iinfo(kind).max)

    @property
    def client(self) -> Mapping[str, Any]:
        scale, reach = text_of(self.noise.scale), hex(self._reach)
        return {"protocol": self.protocol, "size": len(self.domain), "steps": STEPS, "scale": scale, "reach": reach}

    @property
    def report_size(self) -> int:
        return len(self.domain) * (2 * self._reach).bit_length()

    @property
    def _width(self) -> int:
        return len(self.domain)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """That of the noise, whoever holds the value."""
        return n * self.noise.variance / STEPS**2

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray(((reports >= 0) & (reports <= 2 * self._reach)).all(axis=1), dtype=np.bool_)

    def _report(self, places: Indices, random: Random) -> Reports:
        size = len(self.domain)
        out = np.empty((len(places), size), dtype=self._dtype)
        step = max(1, _CHUNK // size)
        for first in range(0, len(places), step):
            here = places[first : first + step]
            cells = self.noise.sample(len(here) * size, random=random).reshape(len(here), size)
            cells[np.arange(len(here)), here] += STEPS
            out[first : first + step] = np.clip(cells, -self._reach, self._reach) + self._reach
        return out

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.asarray(reports.sum(axis=0, dtype=np.int64))

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        return np.asarray((sketch.counts - sketch.n * self._reach) / STEPS, dtype=np.float64)


class Thresholded(Bits, HistogramEncoding):
    """THE: a bit for each cell. Its reports are those of a unary encoding, also for the browser."""

    threshold: Fraction

    def __init__(self, domain: Any, epsilon: Exact = 1, threshold: Exact | bool = True) -> None:
        self.threshold = best_threshold(epsilon) if threshold is True else _checked(threshold)
        super().__init__(domain, epsilon)

    def _heads(self) -> tuple[int, int]:
        """p rounded down, and q rounded up."""
        half = self.epsilon / 2
        return heads_below(1 - exp_above((1 - self.threshold) * half) / 2), heads_above(exp_above(self.threshold * half) / 2)


def best_threshold(epsilon: Exact) -> Fraction:
    """The threshold with the least variance of a count that nobody adds to, in hundredths: found by golden-section search.

    A threshold is public, and any is as private as any other, so floating point may choose it.

    >>> [float(best_threshold(epsilon)) for epsilon in ("0.5", 1, 2, 4)]
    [0.56, 0.62, 0.71, 0.82]
    """
    half = float(check_epsilon(epsilon)) / 2

    def variance(theta: float) -> float:
        p, q = 1 - math.exp((theta - 1) * half) / 2, math.exp(-theta * half) / 2
        return q * (1 - q) / (p - q) ** 2

    return Fraction(round(100 * _least(variance, 0.5, 1.0)), 100)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least."""
    for _ in range(60):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if function(left) <= function(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _checked(threshold: Exact) -> Fraction:
    theta = exact(threshold, "threshold")
    if not 0 <= theta <= 1:
        raise InvalidParameter(
            f"threshold={threshold} is invalid",
            why="a threshold lies between the cells' true values, 0 and 1",
            instead="threshold=True, for the best one",
        )
    return theta
