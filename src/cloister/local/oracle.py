"""What every frequency oracle is: reports out of values, a sketch out of reports, estimates out of a sketch.

A protocol says how one value becomes a report (`_report`), what is counted of reports (`_count`) and how the counts are read
(`_read`). Everything else is the same for all of them and stands here: domains, ε, merging, margins.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.coins import check_epsilon
from cloister.local.domain import Domain, Indices, domain_of
from cloister.local.estimates import Estimate
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import PureDP
from cloister.privacy.rational import Exact

__all__ = ["FrequencyOracle", "Reports", "Sketch"]

Reports = npt.NDArray[Any]
"""One report a row: whole numbers, whose meaning is the protocol's."""


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """What is kept of many reports: small, without a trace of who sent which, and sketches of one protocol add up.

    >>> from cloister.local import DirectEncoding
    >>> oracle = DirectEncoding(["a", "b", "c"], epsilon=1)
    >>> morning, evening = (oracle.aggregate(oracle.randomize(["a", "b"])) for _ in range(2))
    >>> (morning + evening).n
    4
    """

    key: str
    """The protocol, its domain's size and its probabilities: only sketches with the same key add up."""
    n: int
    counts: npt.NDArray[np.int64]

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.key != other.key:
            raise InvalidParameter(
                "Two sketches were not added",
                why="they are of different protocols, domains or ε",
                instead="sketches of one oracle; estimates of different ones add: cloister.local.add_estimates",
            )
        return Sketch(key=self.key, n=self.n + other.n, counts=self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sketch) and (self.key, self.n) == (other.key, other.n) and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """The sketch as plain JSON, to keep or to send to another server.

        >>> Sketch.from_json(Sketch(key="k", n=2, counts=np.array([1, 1])).to_json()).n
        2
        """
        return json.dumps({"key": self.key, "n": self.n, "shape": self.counts.shape, "counts": self.counts.ravel().tolist()})

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        """What `to_json` wrote."""
        try:
            read = json.loads(text)
            counts = np.array(read["counts"], dtype=np.int64).reshape(read["shape"])
            key, n = str(read["key"]), int(read["n"])
        except (ValueError, KeyError, TypeError, OverflowError):
            raise InvalidParameter(
                "The sketch was refused", why="it is not what to_json wrote", instead="sketch.to_json()"
            ) from None
        if n < 0 or bool((counts < 0).any()):
            raise InvalidParameter("The sketch was refused", why="it counts less than nothing", instead="sketch.to_json()")
        return cls(key=key, n=n, counts=counts)


class FrequencyOracle(ABC):
    """How many people hold each value of a domain, when nobody says which they hold.

    Guarantee: each report is ε-locally private: for any two values that a person might hold, every report is at most e^ε
    times likelier under one than under the other (Kasiviswanathan et al. 2011; Duchi, Jordan & Wainwright 2013). Nobody
    needs to be trusted. It holds for each report; reports of one person about one value add their ε up.

    >>> from cloister.local import DirectEncoding
    >>> oracle = DirectEncoding(["never", "once", "often"], epsilon=1)
    >>> estimate = oracle.estimate(oracle.aggregate(oracle.randomize(["never"] * 500, random=Random.deterministic(1))))
    >>> estimate.counts.shape, round(float(estimate.counts.sum())), estimate.n
    ((3,), 500, 500)
    """

    protocol: ClassVar[str]
    """Its name in a survey's file and in the browser."""
    domain: Domain
    epsilon: Fraction

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        self.domain = domain_of(domain)
        self.epsilon = check_epsilon(epsilon)

    # what a protocol says of itself

    @abstractmethod
    def _report(self, places: Indices, random: Random) -> Reports:
        """One report for each place of a value. Random words are used up as the browser's twin does, report by report."""

    @abstractmethod
    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """What is counted of reports: whole numbers that add up over reports."""

    @abstractmethod
    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        """The estimated count of each value of the domain: unbiased."""

    @abstractmethod
    def variance(self, n: int, frequency: float = 0.0) -> float:
        """The variance of an estimated count among n people, of whom the share `frequency` hold the value."""

    @property
    @abstractmethod
    def report_size(self) -> int:
        """How many bits a report has."""

    @property
    @abstractmethod
    def client(self) -> Mapping[str, Any]:
        """What a person's own machine needs to make a report, as plain JSON; integers above 2⁵³ as hexadecimal texts."""

    @abstractmethod
    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which rows could be reports at all. `reports` is a whole-number array of the right shape."""

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report for each value, where these can be written out.

        >>> from cloister.attacks import audit_channel
        >>> from cloister.local import DirectEncoding
        >>> audit_channel(DirectEncoding([1, 2, 3], epsilon=1).channel()).epsilon <= 1
        True
        """
        raise InvalidParameter(
            "The channel was not written out",
            why=f"{type(self).__name__} has too many reports to list on this domain",
            instead="a smaller domain, or cloister.attacks.audit by sampling",
        )

    # what is the same for all

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, for one report.

        >>> from cloister.local import DirectEncoding
        >>> str(DirectEncoding(["a", "b"], epsilon="0.5").guarantee)
        'ε = 0.5'
        """
        return PureDP(self.epsilon)

    @property
    def key(self) -> str:
        """The same for oracles whose reports may be counted together."""
        told = json.dumps(self.client, sort_keys=True).encode()
        return f"{self.protocol}-{len(self.domain)}-{hashlib.sha256(told).hexdigest()[:16]}"

    def randomize(self, values: Any, *, random: Random | None = None) -> Reports:
        """One report for each value: to run where the person is. One at a time or a million."""
        return self._report(self.domain.places(values), source(random))

    def aggregate(self, reports: Any) -> Sketch:
        """The reports' sketch. Reports that could not come from this oracle are refused here; a survey's collector counts
        them and goes on."""
        array = self._checked(reports)
        return Sketch(key=self.key, n=len(array), counts=self._count(array))

    def estimate(self, sketch: Sketch) -> Estimate:
        """How many hold each value, with margins; not made to fit, so that estimates stay unbiased (`Estimate.consistent`)."""
        if not isinstance(sketch, Sketch) or sketch.key != self.key:
            raise InvalidParameter(
                "The sketch was refused", why="it is of another protocol, domain or ε", instead="oracle.aggregate(reports)"
            )
        counts = self._read(sketch)
        n = sketch.n
        shares = np.clip(counts / n, 0.0, 1.0) if n else np.zeros(len(counts))
        return Estimate(counts=counts, n=n, variances=self._variances(n, shares), values=self.domain.values)

    def _variances(self, n: int, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Of the estimated counts; every protocol's variance is a straight line in the share of those who hold the value."""
        none, all_ = self.variance(n, 0.0), self.variance(n, 1.0)
        return np.asarray(none + (all_ - none) * shares, dtype=np.float64)

    @property
    def _width(self) -> int:
        """How many numbers a report has; 0: it is one number, and reports are a flat array."""
        return 0

    def _checked(self, reports: Any) -> Reports:
        array = np.asarray(reports)
        if array.size == 0:
            return np.zeros((0, self._width) if self._width else 0, dtype=np.uint64)
        shape = (len(array), self._width) if self._width else (len(array),)
        if array.dtype.kind not in "iub" or array.shape != shape:
            what = f"rows of {self._width} whole numbers" if self._width else "a flat list of whole numbers"
            raise InvalidParameter("The reports were refused", why=f"those of {self.protocol} are {what}", instead="randomize(…)")
        if not bool(self.valid(array).all()):
            raise InvalidParameter(
                "The reports were refused",
                why=f"some could not come from this {type(self).__name__}: another domain, another ε, or garbage",
                instead="reports[oracle.valid(reports)], and say how many were left out",
            )
        return array
