"""Which channel a question gets at a level: chosen when the survey is composed, by the least error, and written into it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Estimate, half_width
from cloister.local.protocols.coins import lanes_of, probability
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.anomalies import Anomaly, within_reach
from cloister.local.survey.channel import Channel, hex_row, read_hex_row
from cloister.local.survey.counts import Counts
from cloister.local.survey.findings import Finding
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.poisoning import sway_of_coins
from cloister.local.survey.question import OneOf, Question
from cloister.local.survey.questions import Number, Scale, Several, Word
from cloister.local.survey.ticks import Ticks
from cloister.local.survey.words import WordChannel
from cloister.noise import Random
from cloister.privacy.rational import Exact


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
