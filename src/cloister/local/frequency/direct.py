"""Direct encoding and binary randomised response: the truth with one probability, any other value by chance."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.protocols.coins import WORD, flips, heads_below, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact


class DirectEncoding(FrequencyOracle):
    """The true value with probability p, and every other value of the domain with probability q.

    Guarantee: ε-local privacy, p = e^ε/(e^ε + d − 1), q = 1/(e^ε + d − 1) (generalised randomised response: Warner 1965; Kairouz,
    Oh & Viswanath 2016). Proof: a report y has probability p under the value y and q under every other one, and p/q ≤ e^ε, since
    p is rounded down to a whole number of 2⁻⁶⁴ and q is what is left, by equal parts.

    Error: an estimated count has variance n·(d − 2 + e^ε)/(e^ε − 1)² where nobody holds the value: the least of all protocols
    for d < 3e^ε + 2.

    >>> oracle = DirectEncoding(["a", "b", "c", "d"], epsilon=1)
    >>> round(oracle.variance(1), 3), oracle.report_size
    (1.598, 2)
    """

    protocol: ClassVar[str] = "direct"

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        super().__init__(domain, epsilon)
        odds = odds_below(self.epsilon)
        self._heads = heads_below(odds / (odds + len(self.domain) - 1))
        self._p = probability(self._heads)
        self._q = (1 - self._p) / (len(self.domain) - 1)

    @property
    def client(self) -> Mapping[str, Any]:
        return {"protocol": self.protocol, "size": len(self.domain), "heads": hex(self._heads)}

    @property
    def report_size(self) -> int:
        return (len(self.domain) - 1).bit_length()

    def variance(self, n: int, frequency: float = 0.0) -> float:
        p, q = float(self._p), float(self._q)
        return n * (q * (1 - q) + frequency * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports < len(self.domain)), dtype=np.bool_)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        size = len(self.domain)
        if size > 64:
            return super().channel()
        return tuple(tuple(self._p if row == column else self._q for column in range(size)) for row in range(size))

    def _report(self, places: Indices, random: Random) -> Reports:
        """A coin for the truth; and, for where it falls on tails, one of the d − 1 others (those from the true one on
        move up by one). Both are drawn for every report, so that the time says nothing of the coin."""
        truth = flips(self._heads, len(places), random)
        others = random.below(len(self.domain) - 1, len(places))
        others += others >= places
        return np.where(truth, places, others)

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(reports.astype(np.int64), minlength=len(self.domain)).astype(np.int64)

    @property
    def _part(self) -> float:
        return 1 / float(self._p - self._q)

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        p, q = float(self._p), float(self._q)
        return np.asarray((sketch.counts - sketch.n * q) / (p - q), dtype=np.float64)


class RandomizedResponse(DirectEncoding):
    """Yes or no: the truth with probability e^ε/(1 + e^ε), the other answer otherwise.

    Guarantee: ε-local privacy (Warner 1965), that of direct encoding on two values.

    Error: an estimated count has variance n·e^ε/(e^ε − 1)², whatever the truth.

    >>> oracle = RandomizedResponse(epsilon=1)
    >>> reports = oracle.randomize([True] * 700 + [False] * 300, random=Random.deterministic(4))
    >>> estimate = oracle.estimate(oracle.aggregate(reports))
    >>> bool(abs(estimate.counts[1] - 700) < estimate.margin(0.999)[1])
    True
    """

    protocol: ClassVar[str] = "response"

    def __init__(self, domain: Any = (False, True), epsilon: Exact = 1) -> None:
        super().__init__(domain, epsilon)
        if len(self.domain) != 2:
            raise InvalidParameter(
                "The domain is invalid",
                why="a randomised response has two answers",
                instead=f"DirectEncoding(domain, epsilon={epsilon})",
            )
        assert self._heads < WORD

    def _report(self, places: Indices, random: Random) -> Reports:
        """One coin: the truth, or the other answer."""
        return np.where(flips(self._heads, len(places), random), places, 1 - places)
