"""Free words: the frequent ones are found in the reports, and rare ones are never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.fields import Lines, field_of
from cloister.local.frequency.heavy import HeavyHitters
from cloister.local.frequency.heavy import _places as prefix_places
from cloister.local.protocols.coins import probability
from cloister.local.survey.anomalies import Anomaly, fits_law
from cloister.local.survey.channel import Channel, read_number
from cloister.local.survey.counts import LISTED, Counts
from cloister.local.survey.findings import Finding
from cloister.local.survey.poisoning import sway_of_coins
from cloister.local.survey.question import NO_ANSWER
from cloister.noise import Random
from cloister.printable import is_printable
from cloister.privacy.rational import Exact

_MOST = 30
_PARTS = 16


class WordChannel(Channel):
    """The channel of a question with a free word; no answer is the empty word.

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
        read = self.heavy.find(self.heavy.aggregate(counts.parts[LISTED]), most=_MOST)
        real = [place for place, value in enumerate(read.values) if is_printable(value)]  # no honest machine sends others
        labels = tuple(read.values[place] or NO_ANSWER for place in real)
        estimate = replace(read, counts=read.counts[real], variances=read.variances[real], values=labels)
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
        cut = heavy.blocks.cut(["" if word == NO_ANSWER else word for word in words])
        supports = np.zeros(len(words))
        for level in range(heavy.levels):
            reports = listed[listed // cells == level]
            functions, values = reports % cells // buckets, reports % buckets
            for index, place in enumerate(prefix_places(cut, np.full(len(words), level)).tolist()):
                supports[index] += int((self._lines.hashed(functions, np.full(len(reports), place)) == values).sum())
        total = (supports - counts.n * hashing.support) / (float(probability(self._heads)) - hashing.support)
        shares = np.clip(total / max(counts.n, 1), 0.0, 1.0)
        variances = np.array([hashing.variance(counts.n, float(share)) for share in shares])
        slope = abs(hashing.variance(1, 1.0) - hashing.variance(1, 0.0))
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
        edges = np.array([number * part // _PARTS for part in range(_PARTS + 1)])
        drawn = np.histogram(functions, edges)[0]
        law = (np.diff(edges) / number).tolist()
        return [
            fits_law(levels, [1 / len(levels)] * len(levels), test="levels are uniform"),
            fits_law(drawn, law, test="hash functions are uniform"),
        ]


def _nothing(n: int) -> Estimate:
    """No words at all."""
    return Estimate(counts=np.zeros(0), n=n, variances=np.zeros(0), values=())
