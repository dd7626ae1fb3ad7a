"""What every frequency oracle is: reports out of values, a sketch out of reports, estimates out of a sketch.

An oracle says how one value becomes a report (`_report`), what is counted of reports (`_count`) and how the counts are read
(`_read`). Everything else is the same for all of them and stands here, or, where it is the same for numbers, in protocol.py.
"""

import math
from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.domain import Domain, Indices, domain_of
from cloister.local.frequency.estimates import Estimate, half_width
from cloister.local.protocols.coins import check_epsilon
from cloister.local.protocols.protocol import Protocol, Reports, Sketch
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy.rational import Exact

__all__ = ["FrequencyOracle", "Reports", "Sketch"]


class FrequencyOracle(Protocol):
    """How many people hold each value of a domain, when nobody says which they hold.

    Guarantee: each report is ε-locally private, for any two values of the domain (`Protocol`). It holds for each report; reports
    of one person about one value add their ε up.

    >>> from cloister.local import DirectEncoding
    >>> oracle = DirectEncoding(["never", "once", "often"], epsilon=1)
    >>> estimate = oracle.estimate(oracle.aggregate(oracle.randomize(["never"] * 500, random=Random.deterministic(1))))
    >>> estimate.counts.shape, round(float(estimate.counts.sum())), estimate.n
    ((3,), 500, 500)
    """

    domain: Domain

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        self.domain = domain_of(domain)
        self.epsilon = check_epsilon(epsilon)

    # what a protocol says of itself

    @abstractmethod
    def _report(self, places: Indices, random: Random) -> Reports:
        """One report for each place of a value. Random words are used up as the browser's twin does, report by report."""

    @abstractmethod
    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        """The estimated count of each value of the domain: unbiased."""

    @abstractmethod
    def variance(self, n: int, frequency: float = 0.0) -> float:
        """The variance of an estimated count among n people, of whom the share `frequency` hold the value."""

    @property
    def _part(self) -> float:
        """By how much one report can move a count at the most; or, where that is nothing finite or far from what it does, twice
        its deviation, which is more than any symmetric noise here has by its third and fourth moments."""
        return 2 * math.sqrt(self.variance(1))

    @property
    def _slope(self) -> float:
        """By how much a count's variance may change where one person more holds the value."""
        return abs(self.variance(1, 1.0) - self.variance(1, 0.0))

    # what is the same for all

    def margin(self, n: int, frequency: float = 0.0, confidence: Exact = 0.95) -> float:
        """The half-width of the interval of an estimated share among n people, of whom the share `frequency` hold the value: as
        it will be said of their reports, by the law that `Estimate.margin` uses."""
        return float(half_width(confidence, np.asarray(self.variance(n, frequency)), part=self._part, slope=self._slope)) / n

    @property
    def _label(self) -> str:
        return f"{self.protocol}-{len(self.domain)}"

    def randomize(self, values: Any, *, random: Random | None = None) -> Reports:
        """One report for each value: to run where the person is. One at a time or a million."""
        return self._report(self.domain.places(values), source(random))

    def estimate(self, sketch: Sketch) -> Estimate:
        """How many hold each value, with margins; not made to fit, so that estimates stay unbiased (`Estimate.consistent`)."""
        counts = self._read(self._own(sketch))
        n = sketch.n
        shares = np.clip(counts / n, 0.0, 1.0) if n else np.zeros(len(counts))
        variances = self._variances(n, shares)
        return Estimate(counts=counts, n=n, variances=variances, values=self.domain.values, part=self._part, slope=self._slope)

    def _variances(self, n: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Of the estimated counts; every protocol's variance is a straight line in the share of those who hold the value."""
        none, all_ = self.variance(n, 0.0), self.variance(n, 1.0)
        return np.asarray(none + (all_ - none) * shares, dtype=np.float64)
