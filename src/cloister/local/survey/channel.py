"""What stands between an answer and its report, for one question at one level: the interface of all kinds of question."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.survey.anomalies import Anomaly
from cloister.local.survey.counts import Counts
from cloister.local.survey.findings import Finding
from cloister.noise import Random
from cloister.privacy.rational import Exact

_HEX = re.compile(r"0x(0|[1-9a-f][0-9a-f]{0,15})")


class Channel(ABC):
    """Randomises places of answers, checks reports, counts them, and reads the counts.

    Guarantee: `report` is ε-locally private; what `client` says as integers is all that it depends on besides the place, and the
    browser's twin makes the same report of the same words.
    """

    epsilon: Fraction

    @property
    @abstractmethod
    def client(self) -> Mapping[str, Any]:
        """What a person's own machine needs, as plain JSON."""

    @abstractmethod
    def report(self, place: Any, random: Random) -> Any:
        """One randomised report, as plain JSON."""

    @abstractmethod
    def read(self, said: Any) -> Any | None:
        """What a report says, ready to be counted; None where it is garbage. Never raises."""

    @abstractmethod
    def count(self, rows: Sequence[Any]) -> Counts:
        """The counts of reports that `read` has read."""

    @abstractmethod
    def finding(self, counts: Counts) -> Finding:
        """What the counts say of the answers."""

    def look_up(self, counts: Counts, words: Sequence[str]) -> Finding:
        """The same of given answers, where `finding` has only those that stand out."""
        return self.finding(counts)

    @abstractmethod
    def margin(self, n: int, share: float = 0.0, confidence: Exact = 0.95) -> float:
        """The half-width of the interval of an estimated share (of a mean, where the question asks for one) among n people, of
        whom `share` give the answer: by the law that makes the margins of results (`half_width`)."""

    def least(self, n: int) -> float | None:
        """The share of n people who must give an answer for it to be found at all; None where all answers are listed."""
        return None

    @property
    @abstractmethod
    def sway(self) -> float:
        """The most that one made-up report moves an estimated count; of a mean, its sum."""

    def lift(self, sum_: float, answered: float) -> float:
        """The most that one made-up report, in the place of an honest one, adds to so many times the estimated sum and so many
        times the estimated number of those who answered (`poisoning.Lift`), where the answers have a mean."""
        raise NotImplementedError

    @abstractmethod
    def anomalies(self, counts: Counts) -> list[Anomaly]:
        """Tests of reports that honest people would not have sent."""


def hex_row(row: npt.NDArray[np.uint64]) -> list[str]:
    """Words as hexadecimal texts: JSON numbers end at 2⁵³ in a browser.

    >>> hex_row(np.array([255], dtype=np.uint64))
    ['0xff']
    """
    return [hex(word) for word in row.tolist()]


def read_hex_row(said: Any, width: int) -> list[int] | None:
    """The words of such a list; None for anything else.

    >>> read_hex_row(["0xff"], 1), read_hex_row(["255"], 1), read_hex_row("0xff", 1)
    ([255], None, None)
    """
    if not isinstance(said, list) or len(said) != width:
        return None
    if not all(isinstance(word, str) and len(word) <= 18 and _HEX.fullmatch(word) for word in said):
        return None
    return [int(word, 16) for word in said]


def read_number(said: Any, below: int) -> int | None:
    """A whole number from 0 to below − 1; None for anything else (True is not a number).

    >>> read_number(3, 4), read_number(4, 4), read_number(True, 4), read_number(1.0, 4)
    (3, None, None, None)
    """
    if isinstance(said, bool) or not isinstance(said, int) or not 0 <= said < below:
        return None
    return said
