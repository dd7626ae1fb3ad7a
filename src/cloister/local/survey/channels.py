"""Which channel a question gets at a level: chosen when the survey is composed, by the least error, and written into it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Estimate, half_width
from cloister.local.frequency.fields import Lines, field_of
from cloister.local.frequency.heavy import HeavyHitters
from cloister.local.frequency.heavy import _places as prefix_places
from cloister.local.protocols.coins import lanes_of, probability
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.anomalies import Anomaly, fits_law, within_reach
from cloister.local.survey.channel import Channel, hex_row, read_hex_row, read_number
from cloister.local.survey.counts import LISTED, Counts
from cloister.local.survey.findings import Finding
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.poisoning import sway_of_coins
from cloister.local.survey.question import OneOf, Question
from cloister.local.survey.questions import Number, Scale, Several, Word
from cloister.local.survey.ticks import Ticks
from cloister.noise import Random
from cloister.printable import is_printable
from cloister.privacy.rational import Exact

_MOST_WORDS = 30
_FUNCTION_PARTS = 16


@lru_cache(maxsize=1024)
def channel_of(question: Question, epsilon: Fraction) -> Channel:
    """The channel of a question at an ε.

    >>> from cloister.local.survey import YesNo
    >>> channel_of(YesNo("copied", "Have you copied?"), Fraction(1)).client["protocol"]
    'direct'
    """
    if isinstance(question, Several):
        return SeveralChannel(question.labels, epsilon, most=question.most)
    if isinstance(question, Number):
        return AmountChannel(question.low, question.high, epsilon, want=question.want, no_answer=question.no_answer)
    if isinstance(question, Word):
        return WordChannel(epsilon, length=question.length)
    if isinstance(question, OneOf):
        steps = range(1, len(question.answers) + 1) if isinstance(question, Scale) else ()
        scores = [*map(float, steps), *([None] if question.no_answer and steps else [])]
        return OneOfChannel(question.labels, epsilon, scores=scores)
    raise InvalidParameter(
        f'"{question.name}" has no channel',
        why=f"{type(question).__name__} is not a kind of question",
        instead="Choice, YesNo, …",
    )


class SeveralChannel(Channel):
    """The channel of a question with several answers at once.

    >>> channel = SeveralChannel(("a", "b", "no answer"), 1, most=2)
    >>> channel.finding(channel.count([channel.read(channel.report({0, 1}, Random.deterministic(1)))])).estimate.n
    1
    """

    def __init__(self, labels: Sequence[str], epsilon: Exact, *, most: int) -> None:
        self.labels = tuple(labels)
        self.ticks = Ticks(len(self.labels), most=most, epsilon=epsilon)
        self.epsilon = self.ticks.epsilon

    @property
    def client(self) -> Mapping[str, Any]:
        return self.ticks.client

    def report(self, place: Any, random: Random) -> list[str]:
        return hex_row(self.ticks.randomize([place], random=random)[0])

    def read(self, said: Any) -> list[int] | None:
        row = read_hex_row(said, lanes_of(len(self.labels)))
        return row if row is not None and bool(self.ticks.valid(self._array([row])).all()) else None

    def count(self, rows: Sequence[list[int]]) -> Counts:
        return Counts(n=len(rows), parts={"sketch": self.ticks.count(self._array(rows))})

    def finding(self, counts: Counts) -> Finding:
        n = counts.n
        estimated = self.ticks.estimate(counts.parts["sketch"], n)
        shares = np.clip(estimated / n, 0.0, 1.0) if n else np.zeros(len(estimated))
        variances = np.array([self.ticks.variance(n, float(share)) for share in shares])
        part, slope = self._part_and_slope
        estimate = Estimate(counts=estimated, n=n, variances=variances, values=self.labels, part=part, slope=slope)
        return Finding(estimate=estimate, several=True)

    def margin(self, n: int, share: float = 0.0, confidence: Exact = 0.95) -> float:
        part, slope = self._part_and_slope
        return float(half_width(confidence, np.asarray(self.ticks.variance(n, share)), part=part, slope=slope)) / n

    @cached_property
    def _part_and_slope(self) -> tuple[float, float]:
        """As of an `Estimate`: by how much one report moves a count, and one person more its variance."""
        none, all_ = self.ticks.variance(1, 0.0), self.ticks.variance(1, 1.0)
        return 2 * math.sqrt(max(none, all_)), abs(all_ - none)

    @cached_property
    def sway(self) -> float:
        return sway_of_coins(self.ticks.variance(1, 0.0), self.ticks.variance(1, 1.0))

    def anomalies(self, counts: Counts) -> list[Anomaly]:
        low, high = (float(probability(int(self.client[name], 16))) for name in ("rise", "stay"))
        return [within_reach(counts.parts["sketch"], counts.n, low, high, test="answers within reach")]

    def _array(self, rows: Sequence[list[int]]) -> npt.NDArray[np.uint64]:
        return np.array(rows, dtype=np.uint64).reshape(len(rows), lanes_of(len(self.labels)))


class WordChannel(Channel):
    """The channel of a question with a free word; no answer is the empty word, also among what was found. Frequent words are
    found in the reports, and rare ones are never seen.

    Reports are numbers below some 10⁷, so what is kept is the list of them, sorted: less than a table of all counts for any
    survey that is not a census.

    >>> channel = WordChannel(Fraction(1), length=8)
    >>> rows = [channel.read(channel.report("basel", Random.deterministic(seed))) for seed in range(3)]
    >>> channel.count(rows).n, channel.read(-1)
    (3, None)
    """

    def __init__(self, epsilon: Fraction, *, length: int) -> None:
        self.heavy = HeavyHitters(epsilon, length=length)
        self.epsilon = self.heavy.epsilon

    @property
    def client(self) -> Mapping[str, Any]:
        return self.heavy.client

    def report(self, place: str, random: Random) -> int:
        return int(self.heavy.randomize([place], random=random)[0])

    def read(self, said: Any) -> int | None:
        return read_number(said, self.heavy.levels * self.heavy._cells)

    def count(self, rows: Sequence[int]) -> Counts:
        return Counts(n=len(rows), parts={LISTED: np.sort(np.array(rows, dtype=np.int64))})

    def finding(self, counts: Counts) -> Finding:
        if not counts.n:
            return Finding(estimate=_nothing(0), found=True)
        if self.least(counts.n) >= 1:  # not even a word that all give would stand out
            return Finding(estimate=_nothing(counts.n), found=True)
        read = self.heavy.find(self.heavy.aggregate(counts.parts[LISTED]), most=_MOST_WORDS)
        real = [place for place, value in enumerate(read.values) if is_printable(value)]  # no honest machine sends others
        words = tuple(read.values[place] for place in real)
        estimate = replace(read, counts=read.counts[real], variances=read.variances[real], values=words)
        return Finding(estimate=estimate, found=True)

    def look_up(self, counts: Counts, words: Sequence[str]) -> Finding:
        """The estimated counts of given words, whether they stand out here or not: unbiased, so that groups add up. Each report
        is asked whether it supports each word, which takes a thousandth of the time of reading all counts at once.

        >>> channel = WordChannel(Fraction(4), length=2)
        >>> rows = [channel.read(channel.report("a", Random.deterministic(seed))) for seed in range(500)]
        >>> bool(abs(channel.look_up(channel.count(rows), ["a"]).estimate.counts[0] - 500) < 200)
        True
        """
        if not words or not counts.n:
            zeros = np.zeros(len(words))
            return Finding(estimate=Estimate(counts=zeros, n=counts.n, variances=zeros, values=tuple(words)), found=True)
        heavy, hashing = self.heavy, self.heavy._hashing
        listed, cells, buckets = counts.parts[LISTED], heavy._cells, hashing.buckets
        cut = heavy.blocks.cut(words)
        supports = np.zeros(len(words))
        for level in range(heavy.levels):
            reports = listed[listed // cells == level]
            functions, values = reports % cells // buckets, reports % buckets
            for index, place in enumerate(prefix_places(cut, np.full(len(words), level)).tolist()):
                supports[index] += int((self._lines.hashed(functions, np.full(len(reports), place)) == values).sum())
        total = (supports - counts.n * hashing.support) / (float(probability(self._heads)) - hashing.support)
        shares = np.clip(total / max(counts.n, 1), 0.0, 1.0)
        variances = np.array([hashing.variance(counts.n, float(share)) for share in shares])
        slope = hashing._slope
        estimate = Estimate(counts=total, n=counts.n, variances=variances, values=tuple(words), part=hashing._part, slope=slope)
        return Finding(estimate=estimate, found=True)

    def margin(self, n: int, share: float = 0.0, confidence: Exact = 0.95) -> float:
        return self.heavy._hashing.margin(n, share, confidence)

    def least(self, n: int) -> float:
        """The share of people who must give a word, for it to be found 19 times in 20.

        >>> 0 < WordChannel(Fraction(4), length=8).least(100_000) < 0.05
        True
        """
        if n < self.heavy.levels:  # a level that nobody reports to has no noise to stand out of, and shows nothing
            return 1.0
        return min(1.0, self.heavy.least(n) / n)

    @property
    def _heads(self) -> int:
        return int(self.client["hashing"]["heads"], 16)

    @cached_property
    def _lines(self) -> Lines:
        """The hash functions, as the survey's integers say them."""
        told = self.client["hashing"]
        return Lines(field=field_of(told["field"]), digits=told["digits"])

    @cached_property
    def sway(self) -> float:
        return sway_of_coins(self.heavy._hashing.variance(1, 0.0), self.heavy._hashing.variance(1, 1.0))

    def anomalies(self, counts: Counts) -> list[Anomaly]:
        """Levels and hash functions are drawn without a look at the word, each as likely."""
        listed, cells = counts.parts[LISTED], self.heavy._cells
        levels = np.bincount(listed // cells, minlength=self.heavy.levels)
        functions = listed % cells // self.heavy._hashing.buckets
        number = cells // self.heavy._hashing.buckets
        edges = np.array([number * part // _FUNCTION_PARTS for part in range(_FUNCTION_PARTS + 1)])
        drawn = np.histogram(functions, edges)[0]
        law = (np.diff(edges) / number).tolist()
        return [
            fits_law(levels, [1 / len(levels)] * len(levels), test="levels are uniform"),
            fits_law(drawn, law, test="hash functions are uniform"),
        ]


def _nothing(n: int) -> Estimate:
    """No words at all."""
    return Estimate(counts=np.zeros(0), n=n, variances=np.zeros(0), values=())
