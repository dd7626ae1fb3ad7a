"""One answer of a list (yes or no, a choice, a scale, a map's cell) by the frequency oracle with the least error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.direct import DirectEncoding, RandomizedResponse
from cloister.local.estimates import Estimate
from cloister.local.hashing import LocalHashing
from cloister.local.oracle import FrequencyOracle, Sketch
from cloister.local.subset import SubsetSelection
from cloister.local.survey.anomalies import Anomaly, bits_of_one, fits_law, within_reach
from cloister.local.survey.channel import Channel, hex_row, read_hex_row, read_number
from cloister.local.survey.counts import Counts
from cloister.local.survey.findings import Finding
from cloister.local.survey.poisoning import reach, sway_of_coins
from cloister.local.unary import UnaryEncoding
from cloister.noise import Random
from cloister.privacy.rational import Exact

__all__ = ["OneOfChannel", "best_oracle"]

_LARGEST_NUMBER = 1 << 53
_FUNCTION_PARTS = 16


def best_oracle(size: int, epsilon: Exact) -> FrequencyOracle:
    """The oracle whose estimated count of a rare answer has the least variance. Where several are within a hundredth of the
    least, the one with the shortest report.

    >>> best_oracle(2, 1).protocol, best_oracle(4, 1).protocol, best_oracle(500, 1).protocol
    ('response', 'direct', 'hashing')
    """
    if size == 2:
        return RandomizedResponse(range(2), epsilon)
    choices: list[FrequencyOracle] = [
        DirectEncoding(range(size), epsilon),
        UnaryEncoding(range(size), epsilon),
        LocalHashing(range(size), epsilon),
        SubsetSelection(range(size), epsilon),
    ]
    least = min(oracle.variance(1) for oracle in choices)
    near = [oracle for oracle in choices if oracle.variance(1) <= 1.01 * least]
    return min(near, key=lambda oracle: oracle.report_size)


class OneOfChannel(Channel):
    """The channel of a question with one answer of a list.

    >>> channel = OneOfChannel(("no", "yes", "no answer"), 1)
    >>> said = [channel.report(place, Random.deterministic(place)) for place in (0, 1, 2)]
    >>> channel.finding(channel.count([channel.read(each) for each in said])).estimate.n
    3
    """

    def __init__(
        self,
        labels: Sequence[str],
        epsilon: Exact,
        *,
        scores: Sequence[float | None] = (),
        oracle: FrequencyOracle | None = None,
    ) -> None:
        self.labels = tuple(labels)
        self.scores = tuple(scores)
        self.oracle = best_oracle(len(self.labels), epsilon) if oracle is None else oracle
        self.epsilon = self.oracle.epsilon

    @property
    def client(self) -> Mapping[str, Any]:
        return self.oracle.client

    def report(self, place: int, random: Random) -> Any:
        made = self.oracle.randomize([place], random=random)
        if not self._words:
            return int(made[0]) if made.ndim == 1 else [int(each) for each in made[0]]
        return hex_row(made[0])

    def read(self, said: Any) -> list[int] | None:
        row: list[int] | None
        if self._words:
            row = read_hex_row(said, self._width)
        elif self._width:
            listed = said if isinstance(said, list) and len(said) == self._width else []
            read = [read_number(each, _LARGEST_NUMBER) for each in listed]
            row = [each for each in read if each is not None]
            row = row if row and len(row) == self._width else None
        else:
            number = read_number(said, _LARGEST_NUMBER)
            row = None if number is None else [number]
        if row is None or not bool(self.oracle.valid(self._array([row])).all()):
            return None
        return row

    def count(self, rows: Sequence[list[int]]) -> Counts:
        array = self._array(rows)
        parts = {"sketch": self.oracle.aggregate(array).counts}
        if self.oracle.protocol == "unary":
            parts["bits"] = self._bit_counts(array)
        return Counts(n=len(rows), parts=parts)

    def finding(self, counts: Counts) -> Finding:
        read = self.oracle.estimate(Sketch(key=self.oracle.key, n=counts.n, counts=counts.parts["sketch"]))
        estimate = Estimate(counts=read.counts, n=read.n, variances=read.variances, values=self.labels)
        return Finding(estimate=estimate, scores=self.scores)

    def error(self, n: int, share: float = 0.0) -> float:
        return float(np.sqrt(self.oracle.variance(n, share)) / n)

    @cached_property
    def sway(self) -> float:
        return sway_of_coins(self.oracle.variance(1, 0.0), self.oracle.variance(1, 1.0))

    def anomalies(self, counts: Counts) -> list[Anomaly]:
        """Every answer's support must lie between the chances of a report that supports it falsely and truly; unary reports
        have a known number of bits; and hash functions are drawn without a look at the answer, each as likely."""
        n = counts.n
        a, b = reach(self.oracle.variance(1, 0.0), self.oracle.variance(1, 1.0))
        support = (self.finding(counts).estimate.counts + n * b) / (a + b)
        tests = [within_reach(support, n, b / (a + b), (1 + b) / (a + b), test="answers within reach")]
        if "bits" in counts.parts:
            stay, rise = (int(self.client[name], 16) for name in ("stay", "rise"))
            law = bits_of_one(len(self.labels), stay, rise)
            tests.append(fits_law(counts.parts["bits"], law, test="bits in a report"))
        if isinstance(self.oracle, LocalHashing):
            functions = counts.parts["sketch"].reshape(-1, self.oracle.buckets).sum(axis=1)
            parts = min(len(functions), _FUNCTION_PARTS)
            law = [len(part) / len(functions) for part in np.array_split(functions, parts)]
            drawn = np.array([part.sum() for part in np.array_split(functions, parts)])
            tests.append(fits_law(drawn, law, test="hash functions are uniform"))
        return tests

    @cached_property
    def _words(self) -> bool:
        return self.oracle.protocol in ("unary", "subset")

    @cached_property
    def _width(self) -> int:
        return self.oracle._width

    def _array(self, rows: Sequence[list[int]]) -> npt.NDArray[Any]:
        array = np.array(rows, dtype=np.uint64 if self._words else np.int64).reshape(len(rows), max(self._width, 1))
        return array if self._width else array[:, 0]

    def _bit_counts(self, array: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        per_report = np.bitwise_count(array).sum(axis=1, dtype=np.int64) if len(array) else np.zeros(0, dtype=np.int64)
        return np.bincount(per_report, minlength=len(self.labels) + 1).astype(np.int64)
