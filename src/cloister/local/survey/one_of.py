"""One answer of a list (yes or no, a choice, a scale, a map's cell) by the frequency oracle with the least error."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.direct import DirectEncoding, RandomizedResponse
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.frequency.oracle import FrequencyOracle, Sketch
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.survey.anomalies import Anomaly, bits_of_one, fits_law, within_reach
from cloister.local.survey.channel import Channel, hex_row, read_hex_row, read_number
from cloister.local.survey.counts import Counts
from cloister.local.survey.findings import Finding
from cloister.local.survey.poisoning import reach, sway_of_coins
from cloister.noise import Random
from cloister.privacy.rational import Exact

Floats = npt.NDArray[np.float64]

_LARGEST_NUMBER = 1 << 53
_FUNCTION_PARTS = 16
_MOST_HASHES = 1 << 18


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
        self, labels: Sequence[str], epsilon: Exact, *, scores: Sequence[float | None] = (), oracle: FrequencyOracle | None = None
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
        estimate = replace(read, values=self.labels)
        if not self.scores or not counts.n:
            return Finding(estimate=estimate, scores=self.scores, noise=(0.0, 0.0, 0.0) if self.scores else None)
        noise = self._noise(read.counts, read.n)
        return Finding(estimate=estimate, scores=self.scores, noise=noise, part=self._part(noise, read.n))

    def _part(self, noise: tuple[float, float, float], n: int) -> float:
        """Of a mean: an answer that a report supports counts a + b more, times how far its score may be from the mean. Where one
        report supports answers that go together, twice its deviation (as of oracles), if that is more."""
        scores = [score for score in self.scores if score is not None]
        most = max(noise[0] + noise[1] * m + noise[2] * m**2 for m in (min(scores), max(scores)))
        return max(self.oracle._part * (max(scores) - min(scores)), 2 * math.sqrt(max(most, 0.0) / n))

    def _noise(self, counts: Floats, n: int) -> tuple[float, float, float]:
        scores = np.array([score or 0.0 for score in self.scores])
        counted = np.array([float(score is not None) for score in self.scores])
        both = self._varied(scores, counted, counts, n)
        return self._varied(scores, scores, counts, n), -2 * both, self._varied(counted, counted, counts, n)

    def _varied(self, x: Floats, y: Floats, counts: Floats, n: int) -> float:
        """The covariance of x·c and y·c, where c are the estimated counts, over all reports.

        Proof: a report is worth a + b for each answer that it supports, and −b for all. Of a person with the answer h the counts
        of two answers have the covariance (a + b)²·(P(both supported) − the product of the two chances); it is c₁ where one of
        them is h and c₀ where neither is, and the variances are v₁ and v₀. Summed over i ≠ j and over all people, with X = Σx and
        Y = Σy, this is what is returned. Hash functions that are lines through a plane are no three of them independent, so for
        hashing the sum over the functions is taken itself: in a bucket that stands for the answers B lies Σ_B x.
        """
        none, all_ = self.oracle.variance(1, 0.0), self.oracle.variance(1, 1.0)
        a, b = reach(none, all_)
        p, q, size = (1 + b) / (a + b), b / (a + b), len(self.labels)
        if isinstance(self.oracle, LocalHashing):
            functions, buckets = len(self._hashes), self.oracle.buckets
            cells = (np.arange(functions)[:, None] * buckets + self._hashes).ravel()
            one, other = (np.bincount(cells, np.tile(each, functions), functions * buckets) for each in (x, y))
            own = (one * other)[cells].reshape(functions, size).mean(axis=0)
            rest = float(one @ other) / functions
            wrong = (1 - p) / (buckets - 1)
            first, second = (p * each + q * (each.sum() - each) for each in (x, y))
            of_answer = (p - wrong) * own + wrong * rest - first * second
            people = counts + (n - counts.sum()) / size  # they are n, and so are these
            return float((a + b) ** 2 * (people @ of_answer))
        c1, c0 = 0.0, 0.0
        if isinstance(self.oracle, SubsetSelection):
            picks, others = self.oracle.picks, max((size - 1) * (size - 2), 1)
            c1 = p * (picks - 1) / (size - 1) - p * q
            c0 = (p * (picks - 1) * (picks - 2) + (1 - p) * picks * (picks - 1)) / others - q * q
        elif self.oracle.protocol in ("response", "direct"):
            c1, c0 = -p * q, -q * q
        c1, c0 = c1 * (a + b) ** 2, c0 * (a + b) ** 2
        apart = float((none - c0) * (x @ y) + c0 * x.sum() * y.sum()) * n
        own_ = (all_ - none - 2 * (c1 - c0)) * (counts @ (x * y))
        return apart + float(own_ + (c1 - c0) * (y.sum() * (counts @ x) + x.sum() * (counts @ y)))

    def margin(self, n: int, share: float = 0.0, confidence: Exact = 0.95) -> float:
        return self.oracle.margin(n, share, confidence)

    @cached_property
    def sway(self) -> float:
        return sway_of_coins(self.oracle.variance(1, 0.0), self.oracle.variance(1, 1.0))

    def lift(self, sum_: float, answered: float) -> float:
        """A report adds a to the count of each answer that it supports and takes b from each other one, so what matters is which
        answers one report can support: any one (direct encoding), so many (subsets), any (unary), those of one hash (hashing)."""
        weights = np.array([0.0 if score is None else sum_ * score + answered for score in self.scores])
        a, b = reach(self.oracle.variance(1, 0.0), self.oracle.variance(1, 1.0))
        return float((a + b) * self._most(weights) - b * weights.sum() - weights.min())

    def _most(self, weights: npt.NDArray[np.float64]) -> float:
        """The largest sum of the weights of answers that one report supports; at least as much as that, for very long lists."""
        if self.oracle.protocol in ("response", "direct"):
            return float(weights.max())
        if isinstance(self.oracle, SubsetSelection):
            return float(np.sort(weights)[-self.oracle.picks :].sum())
        if isinstance(self.oracle, LocalHashing) and len(self._hashes) == len(self.oracle._lines):
            functions, buckets = len(self._hashes), self.oracle.buckets
            cells = (np.arange(functions)[:, None] * buckets + self._hashes).ravel()
            return float(np.bincount(cells, np.tile(weights, functions), functions * buckets).max())
        return float(np.maximum(weights, 0.0).sum())

    @cached_property
    def _hashes(self) -> npt.NDArray[np.int64]:
        """The hash of each answer under each function; of very long lists, under functions that are spread evenly."""
        assert isinstance(self.oracle, LocalHashing)
        lines, size = self.oracle._lines, len(self.labels)
        functions = np.unique(np.linspace(0, len(lines) - 1, min(len(lines), max(_MOST_HASHES // size, 1))).astype(np.int64))
        columns = [lines.hashed(functions, np.full(len(functions), place, dtype=np.int64)) for place in range(size)]
        return np.stack(columns, axis=1).astype(np.int64)

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
