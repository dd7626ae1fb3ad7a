"""Numbers between bounds: a mean with the least error, or a whole distribution; and whether there is a number at all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from cloister.local.frequency.direct import RandomizedResponse
from cloister.local.frequency.estimates import Estimate, Number
from cloister.local.frequency.oracle import Sketch
from cloister.local.numbers.hybrid import Hybrid
from cloister.local.numbers.piecewise import SquareWave
from cloister.local.protocols.coins import check_epsilon, probability
from cloister.local.survey.anomalies import Anomaly, within_reach
from cloister.local.survey.channel import Channel, read_number
from cloister.local.survey.counts import Counts
from cloister.local.survey.findings import Finding, Mean
from cloister.local.survey.poisoning import reach
from cloister.local.survey.question import NO_ANSWER
from cloister.noise import Random
from cloister.privacy.rational import Exact

_SHARE = Fraction(1, 4)
"""How much of ε tells whether there is a number at all, where that may be left open."""
_BINS = 10
_STEPS = 256
"""Of a distribution's grid: fine enough for ten bins, and read three times as fast as twice as many."""


class AmountChannel(Channel):
    """The channel of a question with a number.

    Guarantee: ε-local privacy. A quarter of ε goes into a randomised response (is there a number?), the rest into a numeric
    mechanism; the two are independent reports of one person, so their ε add up. Who gives no number reports the middle of the
    interval where a mean is wanted (its part of the sum above the middle is 0), or a uniform point where a distribution is
    wanted (a known share, taken off again): neither report tells whether there was a number.

    >>> channel = AmountChannel(0, 40, 1, want="mean", no_answer=True)
    >>> rows = [channel.read(channel.report(30.0, Random.deterministic(seed))) for seed in range(400)]
    >>> channel.finding(channel.count(rows)).answered.n
    400
    """

    def __init__(self, low: Exact, high: Exact, epsilon: Exact, *, want: str, no_answer: bool) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.want = want
        told = self.epsilon * _SHARE if no_answer else Fraction(0)
        self.answered = RandomizedResponse(range(2), told) if no_answer else None
        left = self.epsilon - told
        self.mechanism: Hybrid | SquareWave = (
            Hybrid(low, high, left) if want == "mean" else SquareWave(low, high, left, grid=_STEPS)
        )
        self.middle = (self.mechanism.interval.low + self.mechanism.interval.high) / 2

    @property
    def client(self) -> Mapping[str, Any]:
        if self.answered is None:
            return self.mechanism.client
        fill = "middle" if self.want == "mean" else "uniform"
        return {"protocol": "number", "fill": fill, "value": self.mechanism.client, "answered": self.answered.client}

    def report(self, place: float | None, random: Random) -> Any:
        """Words: where the fill is uniform, below(steps + 1), whether it is needed or not; those of the mechanism; one coin for
        whether there is a number."""
        filled = self.middle
        if self.answered is not None and self.want == "spread":
            steps = self.mechanism.grid
            filled = self._at(int(random.below(steps + 1, 1)[0]), steps)
        cell = int(self.mechanism.randomize([filled if place is None else place], random=random)[0])
        if self.answered is None:
            return cell
        return [cell, int(self.answered.randomize([int(place is not None)], random=random)[0])]

    def read(self, said: Any) -> list[int] | None:
        if self.answered is None:
            cell = read_number(said, self.mechanism._cells)
            return None if cell is None else [cell]
        if not isinstance(said, list) or len(said) != 2:
            return None
        cell, told = read_number(said[0], self.mechanism._cells), read_number(said[1], 2)
        return None if cell is None or told is None else [cell, told]

    def count(self, rows: Sequence[list[int]]) -> Counts:
        array = np.array(rows, dtype=np.int64).reshape(len(rows), 1 if self.answered is None else 2)
        parts = {"sketch": self.mechanism.aggregate(array[:, 0]).counts}
        if self.answered is not None:
            parts["answered"] = self.answered.aggregate(array[:, 1]).counts
        return Counts(n=len(rows), parts=parts)

    def finding(self, counts: Counts) -> Finding:
        n = counts.n
        given = Estimate(counts=np.array([float(n)]), n=n, variances=np.zeros(1), values=("a number",))
        if self.answered is not None:
            given = self.answered.estimate(Sketch(key=self.answered.key, n=n, counts=counts.parts["answered"]))
        sketch = Sketch(key=self.mechanism.key, n=n, counts=counts.parts["sketch"])
        if not n:
            nothing = np.zeros(len(labels := self._labels()))
            part = max(given.part, self.mechanism._part) if self.answered is not None or self.want == "spread" else 0.0
            empty = Estimate(counts=nothing, n=0, variances=nothing, values=labels, part=part)
            return Finding(estimate=empty, total=Number(value=0.0, variance=0.0, n=0), ends=self._ends)
        mean = self.mechanism.mean(sketch)
        drawn = self._drawn(given) * self.mechanism.interval.span**2 * (1 + 2 / _STEPS) / 12  # uniform points of a grid
        total = Number(value=n * (mean.value - self.middle), variance=n**2 * mean.variance + drawn, n=n, part=n * mean.part)
        estimate = self._bins(sketch, given) if self.want == "spread" else self._split(given)
        return Finding(estimate=estimate, total=total, ends=self._ends)

    def margin(self, n: int, share: float = 0.0, confidence: Exact = 0.95) -> float:
        """Of the mean, where all answer, and all with the number whose interval is the widest: at an end where numbers may be
        left out, since how many answered counts the more the farther the mean is from the middle."""
        low, high = self._ends
        answered = 0.0 if self.answered is None else self.answered.variance(n, 1.0)
        part = (high - low) * (self.mechanism._part + (0.0 if self.answered is None else self.answered._part / 2))
        noise = (n**2 * self.mechanism.variance(n), 0.0, answered)
        planned = (
            Mean.of((n * (number - self.middle), float(n)), noise, self._ends, self.middle, n, part)
            for number in (low, self.middle, high)
        )
        return max(each.planned(confidence) for each in planned)

    @cached_property
    def sway(self) -> float:
        """Of the sum above the middle: the most that a cell adds to it, and what an honest person might have added. By how much
        the mean moves follows from `lift`: it is a ratio where numbers may be left out."""
        span = self.mechanism.interval.span
        most = float(np.abs(self.mechanism._firsts - 0.5).max())
        return span * (most + 0.5)

    def lift(self, sum_: float, answered: float) -> float:
        """The cell and the answer of who has none are two parts of a report, each as its sender likes. An honest person adds a
        number between the ends and 1, or the middle (0 above it) and 0."""
        span, firsts = self.mechanism.interval.span, self.mechanism._firsts
        most = span * float((sum_ * (firsts - 0.5)).max())
        least = answered - abs(sum_) * span / 2
        if self.answered is None:
            return most + answered - least
        a, b = reach(self.answered.variance(1, 0.0), self.answered.variance(1, 1.0))
        return most + max(answered * a, -answered * b) - min(least, 0.0)

    def anomalies(self, counts: Counts) -> list[Anomaly]:
        """Each cell has a least and a largest chance, whatever the number; so has the answer of who has none."""
        n, cells = counts.n, counts.parts["sketch"]
        signs = 2 if isinstance(self.mechanism, Hybrid) else 0
        chosen = float(probability(self._heads("choice"))) if signs else 1.0
        tests = []
        if signs:
            truth = float(probability(self._heads("sign")))
            low, high = (1 - chosen) * (1 - truth), (1 - chosen) * truth
            tests.append(within_reach(cells[:2], n, low, high, test="signs within reach"))
        window = self.mechanism.window
        low, high = chosen * float(window.outside), chosen * float(window.inside)
        tests.append(within_reach(cells[signs:], n, low, high, test="numbers within reach"))
        if self.answered is not None:
            truth = float(probability(int(self.answered.client["heads"], 16)))
            tests.append(within_reach(counts.parts["answered"], n, 1 - truth, truth, test="answered within reach"))
        return tests

    @property
    def _ends(self) -> tuple[float, float]:
        return self.mechanism.interval.low, self.mechanism.interval.high

    def _heads(self, name: str) -> int:
        return int(self.mechanism.client[name], 16)

    def _at(self, point: int, steps: int) -> float:
        """A point of the grid as a double, so that the mechanism finds it there again up to the last bit."""
        interval = self.mechanism.interval
        return min(interval.low + interval.span * (point / steps), interval.high)

    def _labels(self) -> tuple[str, ...]:
        interval = self.mechanism.interval
        points = [interval.low + interval.span * step / _BINS for step in range(_BINS + 1)]
        edges: list[str] = []
        for digits in range(6, 18):  # as few as tell all of them apart
            edges = [f"{point:.{digits}g}" for point in points]
            if len({*edges}) > _BINS:
                break
        bins = tuple(f"{low} to {high}" for low, high in pairwise(edges)) if self.want == "spread" else ("a number",)
        return bins if self.answered is None else (*bins, NO_ANSWER)

    def _drawn(self, given: Estimate) -> float:
        """How many report a point that chance drew, of which the mean and the bins are read with its own variety."""
        fills = self.answered is not None and self.want == "spread"
        return min(max(float(given.counts[0]), 0.0), float(given.n)) if fills else 0.0

    def _split(self, given: Estimate) -> Estimate:
        if self.answered is None:
            return given
        return replace(given, counts=given.counts[::-1], variances=given.variances[::-1], values=self._labels())

    def _bins(self, sketch: Sketch, given: Estimate) -> Estimate:
        """The distribution's bins less what uniform points add to each."""
        read = self.mechanism.distribution(sketch).histogram(_BINS)
        if self.answered is None:
            return replace(read, values=self._labels())
        counts = np.append(read.counts - given.counts[0] / _BINS, given.counts[0])
        return Estimate(
            counts=counts,
            n=sketch.n,
            variances=np.append(
                read.variances + (given.variances[0] + self._drawn(given) * (_BINS - 1)) / _BINS**2, given.variances[0]
            ),
            values=self._labels(),
            raw=counts,
            part=max(read.part, given.part),
            slope=given.slope,
            bias=np.append(np.broadcast_to(read.bias, _BINS), 0.0),
        )
