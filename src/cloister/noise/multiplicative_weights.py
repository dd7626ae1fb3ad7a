"""Private multiplicative weights: answer a long, adaptive stream of counting questions from a public hypothesis, paying only
where it is wrong.

The hypothesis is a table of guessed counts. Each question is first answered from it; a sparse vector says privately whether the
truth is far from that. Only then is the truth measured with noise, and the hypothesis corrected. As it learns, corrections
become rare: their number is bounded by the logarithm of the table's size, however many questions are asked.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import level, vector, whole
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields, source
from cloister.noise.random import Random
from cloister.noise.sparse_vector import SparseVector
from cloister.privacy import Exact, PureDP, exact_positive


@dataclass(frozen=True, slots=True)
class WeighedAnswer:
    """An answer, and where it comes from.

    "hypothesis": the sparse vector found it close; "measured": noised again, and learnt from; "unchecked": the corrections are
    used up, and the hypothesis speaks alone (at no cost, and with no error stated).
    """

    value: float
    origin: Literal["hypothesis", "measured", "unchecked"]


@dataclass(frozen=True, slots=True, init=False)
class MultiplicativeWeights:
    """Private multiplicative weights for questions that count a set of the table's cells (0/1 questions), adaptively chosen.

    `size` is public: a declared number of rows, or one bought in advance. `threshold` is the gap from which a hypothesis is
    corrected, `corrections` how many are paid for.

    Guarantee: ε-DP for the whole stream, between unbounded neighbours, one row a unit (Hardt & Rothblum 2010, with pure ε:
    Dwork & Roth 2014, Section 4.2). Proof: two questions to a sparse vector, ±(truth − guess), each of sensitivity 1, with c =
    `corrections` hits, cost ε/2 (Lyu, Su & Li 2017); c measured answers with Laplace noise of scale 2c/ε cost ε/2 by sequential
    composition, adaptively. The hypothesis is post-processing of answers.

    Error: with the stated confidence over that many questions, each answer but an unchecked one is off by at most `margin`. How
    many corrections can come: let t, h and m be the shares of `size` that the truth, the hypothesis and the measured answer
    give to the counted cells. A correction multiplies these cells by the one factor that makes h equal m, and so lowers the
    relative entropy of the hypothesis to the truth by exactly D(t‖h) − D(t‖m), D the relative entropy of coins, if `size` is
    the true number of rows. D(t‖h) ≥ 2(t − h)² (Pinsker), and D(t‖m) ≤ (t − m)²/m(1 − m) is small. At first the relative
    entropy was ln(cells) at most: so about size²·ln(cells)/2g² corrections suffice for gaps of g, an eighth of the bound for
    the textbook's steps; real data need far fewer.

    >>> from cloister.noise.random import Random
    >>> mechanism = MultiplicativeWeights(cells=4, epsilon=10, size=1000, threshold=60, corrections=5)
    >>> stream = mechanism.start([700, 100, 100, 100], random=Random.deterministic(1))
    >>> stream.ask([1, 0, 0, 0]).origin, stream.ask([1, 1, 1, 1]).origin
    ('measured', 'hypothesis')
    """

    cells: int
    epsilon: Fraction
    size: int
    threshold: int
    corrections: int

    def __init__(self, *, cells: int, epsilon: Exact, size: int, threshold: int, corrections: int) -> None:
        set_fields(
            self,
            cells=whole(cells, "cells", least=2),
            epsilon=exact_positive(epsilon, "epsilon"),
            size=whole(size, "size", least=1),
            threshold=whole(threshold, "threshold", least=1),
            corrections=whole(corrections, "corrections", least=1),
        )

    @property
    def guarantee(self) -> PureDP:
        """ε for the whole stream."""
        return PureDP(self.epsilon)

    @property
    def gate(self) -> SparseVector:
        """The sparse vector that says which guesses are far off."""
        return SparseVector(epsilon=self.epsilon / 2, threshold=self.threshold, hits=self.corrections)

    @property
    def answer_noise(self) -> DiscreteLaplace:
        """The law of the noise of a measured answer."""
        return DiscreteLaplace(scale=2 * self.corrections / self.epsilon)

    @property
    def variance(self) -> float:
        """The variance of a measured answer. One from the hypothesis has none: its error is the gap that the gate lets pass."""
        return self.answer_noise.variance

    def margin(self, confidence: Exact = 0.95, *, questions: int) -> int:
        """An m with P(all answers but unchecked ones are within m of the truth) >= confidence, over that many questions.

        >>> MultiplicativeWeights(cells=4, epsilon=10, size=1000, threshold=60, corrections=5).margin(0.95, questions=100) < 120
        True
        """
        miss = (1 - Fraction(level(confidence))) / 2
        gated = self.threshold + self.gate.margin(1 - miss, queries=2 * whole(questions, "questions", least=1))
        return max(gated, self.answer_noise.margin(1 - miss / self.corrections))

    def start(self, value: Sequence[int], *, random: Random | None = None) -> WeightsStream:
        """A stream over a private table of counts; the whole of it costs `guarantee`, from its start on."""
        return WeightsStream(self, value, random)

    def release(
        self, value: Sequence[int], *, questions: Sequence[Sequence[int]], random: Random | None = None
    ) -> npt.NDArray[np.float64]:
        """The answers to a list of questions about a private table of counts.

        >>> from cloister.noise.random import Random
        >>> mechanism = MultiplicativeWeights(cells=2, epsilon=10, size=100, threshold=30, corrections=2)
        >>> mechanism.release([90, 10], questions=[[1, 0], [0, 1]], random=Random.deterministic(1)).shape
        (2,)
        """
        stream = self.start(value, random=random)
        return np.array([stream.ask(question).value for question in questions])


class WeightsStream:
    """One run of `MultiplicativeWeights`. Threads may share it.

    >>> mechanism = MultiplicativeWeights(cells=2, epsilon=1, size=10, threshold=5, corrections=1)
    >>> mechanism.start([5, 5]).hypothesis.tolist()
    [5.0, 5.0]
    """

    __slots__ = ("_cells", "_gate", "_lock", "_logs", "_mechanism", "_noise", "_random")

    def __init__(self, mechanism: MultiplicativeWeights, value: Any, random: Random | None) -> None:
        self._mechanism = mechanism
        self._random = source(random)
        self._cells = vector(value, "value", mechanism.cells).astype(object)
        self._gate = mechanism.gate.start(random=self._random)
        self._noise = mechanism.answer_noise
        self._logs = np.zeros(mechanism.cells)
        self._lock = threading.Lock()

    @property
    def hypothesis(self) -> npt.NDArray[np.float64]:
        """The table as far as it has been learnt: public, a free by-product of the answers."""
        weights = np.exp(self._logs - self._logs.max())
        return np.asarray(weights / weights.sum() * self._mechanism.size)

    @property
    def corrections_left(self) -> int:
        """How many measured answers are still paid for."""
        return self._gate.left

    def ask(self, question: Sequence[int]) -> WeighedAnswer:
        """How many rows lie in the cells that the public question marks with 1.

        >>> mechanism = MultiplicativeWeights(cells=2, epsilon=100, size=10, threshold=5, corrections=1)
        >>> mechanism.start([5, 5]).ask([1, 0])
        WeighedAnswer(value=5.0, origin='hypothesis')
        """
        marks = np.asarray(question)
        if marks.shape != (self._mechanism.cells,) or not np.isin(marks, (0, 1)).all():
            raise InvalidParameter(
                "question is invalid", why="it must mark every cell with 0 or 1", instead="question=[1, 0, 1, 0]"
            )
        with self._lock:
            guess = float(self.hypothesis @ marks)
            if self._gate.exhausted:
                return WeighedAnswer(guess, "unchecked")
            truth = int(sum(self._cells[marks.astype(bool)].tolist()))
            nearest = math.floor(guess + 0.5)
            if not (self._gate.above(nearest - truth) or self._gate.above(truth - nearest)):
                return WeighedAnswer(guess, "hypothesis")
            measured = int(self._noise.release(truth, random=self._random))
            self._correct(marks, measured / self._mechanism.size, guess / self._mechanism.size)
            return WeighedAnswer(float(measured), "measured")

    def _correct(self, marks: npt.NDArray[Any], share: float, guess: float) -> None:
        """Move the hypothesis to the measured share; one within the noise of 0 or 1 is not taken at its word."""
        least = min(0.25, float(self._noise.scale) / self._mechanism.size)
        if 0 < guess < 1 and 0 < marks.sum() < len(marks):
            wanted = min(1 - least, max(least, share))
            self._logs += marks * (math.log(wanted / (1 - wanted)) - math.log(guess / (1 - guess)))
            self._logs -= self._logs.max()
