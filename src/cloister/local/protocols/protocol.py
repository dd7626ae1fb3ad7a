"""What every protocol with reports of one shape is, whatever is asked: a promise, checked reports, sketches that add up.

`FrequencyOracle` (values of a list), `NumericMechanism` (numbers) and `KeyValue` (both) stand on it.
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
from cloister.privacy import PureDP

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
                "The sketch is invalid", why="it is not what to_json wrote", instead="sketch.to_json()"
            ) from None
        if n < 0 or bool((counts < 0).any()):
            raise InvalidParameter("The sketch is invalid", why="it counts less than nothing", instead="sketch.to_json()")
        return cls(key=key, n=n, counts=counts)


class Protocol(ABC):
    """What a person's own machine does to make a report, and what is counted of reports.

    Guarantee: each report is ε-locally private: for any two things that a person might hold, every report is at most e^ε times
    as likely under one as under the other (Kasiviswanathan et al. 2011; Duchi, Jordan & Wainwright 2013). Nobody needs to be
    trusted. It holds for each report; reports of one person add their ε up.
    """

    protocol: ClassVar[str]
    """Its name in a survey's file and in the browser."""
    epsilon: Fraction

    _asked: ClassVar[str] = "domain"
    """What was declared, in messages."""

    # what a protocol says of itself

    @abstractmethod
    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """What is counted of reports: whole numbers, none below 0, that add up over reports."""

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

    @property
    def _width(self) -> int:
        """How many numbers a report has; 0: it is one number, and reports are a flat array."""
        return 0

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report for each thing that a person may hold, where these can be written out.

        >>> from cloister.attacks import audit_channel
        >>> from cloister.local import DirectEncoding, Piecewise
        >>> audit_channel(DirectEncoding([1, 2, 3], epsilon=1).channel()).epsilon <= 1
        True
        >>> audit_channel(Piecewise(epsilon=1, grid=4).channel()).epsilon <= 1
        True
        """
        raise InvalidParameter(
            "The channel was not written out",
            why=f"{type(self).__name__} has too many reports to list",
            instead=f"a smaller {self._asked} or a coarser grid, or cloister.attacks.audit by sampling",
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
        """The same for protocols whose reports may be counted together."""
        told = json.dumps(self.client, sort_keys=True).encode()
        return f"{self._label}-{hashlib.sha256(told).hexdigest()[:16]}"

    @property
    def _label(self) -> str:
        """How the key begins."""
        return self.protocol

    def aggregate(self, reports: Any) -> Sketch:
        """The reports' sketch: those of streams and servers add up. Reports that could not come from this protocol are refused
        here; a survey's collector counts them and goes on."""
        array = self._checked(reports)
        return Sketch(key=self.key, n=len(array), counts=self._count(array))

    def _own(self, sketch: Any) -> Sketch:
        """A sketch of this protocol."""
        if not isinstance(sketch, Sketch) or sketch.key != self.key:
            raise InvalidParameter(
                "The sketch is invalid",
                why=f"it is of another protocol, {self._asked} or ε",
                instead="the one that .aggregate(reports) made",
            )
        return sketch

    def _checked(self, reports: Any) -> Reports:
        array = np.asarray(reports)
        if array.size == 0 and array.ndim:
            return np.zeros((0, self._width) if self._width else 0, dtype=np.uint64)
        shape = () if not array.ndim else (len(array), self._width) if self._width else (len(array),)
        if array.dtype.kind not in "iub" or not array.ndim or array.shape != shape:
            what = f"rows of {self._width} whole numbers" if self._width else "a flat list of whole numbers"
            raise InvalidParameter(
                "The reports are invalid", why=f"those of {type(self).__name__} are {what}", instead="randomize(…)"
            )
        array = array.astype(np.int64) if array.dtype.kind == "b" else array
        if not bool(self.valid(array).all()):
            raise InvalidParameter(
                "The reports are invalid",
                why=f"some could not come from this {type(self).__name__}: another {self._asked}, another ε, or garbage",
                instead="reports[protocol.valid(reports)], and say how many were left out",
            )
        return array


def check_people(n: int) -> int:
    """How many people a variance is asked for.

    >>> check_people(100)
    100
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidParameter("n= is invalid", why="it is a whole number of people, 1 or more", instead="n=1000")
    return int(n)
