"""Sparse vector: of a stream of private queries, say which lie above a threshold, and pay only for those that do.

Both mechanisms add integer noise to integers, exactly drawn; no number about a query is released but the one bit. The constants
are those of Lyu, Su & Li (2017), who found four of six published variants not private; the proof for integer noise is in
`sparse_vector.proof.md`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import BudgetExceeded
from cloister.noise._checks import level, vector, whole
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields, source
from cloister.noise.random import Random
from cloister.privacy import Exact, PureDP, exact_positive


@dataclass(frozen=True, slots=True, init=False)
class SparseVector:
    """Answers "above" or "below" for each query of a stream, until `hits` of them were above.

    The threshold is noised once, at scale Δ/ε₁; each query at scale 2cΔ/ε₂ (cΔ/ε₂ where monotone), with c = `hits`, ε₁ + ε₂ = ε
    and ε₁ : ε₂ = 1 : (2c)^(2/3) (monotone 1 : c^(2/3)), the ratio that minimises the variance of the comparison.

    Guarantee: ε-DP for the whole stream, queries adaptively chosen, each of sensitivity Δ (Lyu, Su & Li 2017, Algorithm 7 with
    ε₃ = 0). *Monotone* means that between (unbounded) neighbours all queries move the same way, as counts do. Proof: move the
    threshold's noise by Δ, at a price of e^(ε₁); then every "below" of one world is a "below" of the other for free, whatever
    their number, and each of the c "above" costs e^(ε₂/c), since its noise need move by at most 2Δ (Δ where monotone).

    Error: `margin` gives an α such that, with the stated confidence, k answers are right for all queries further than α from the
    threshold.

    >>> from cloister.noise.random import Random
    >>> SparseVector(epsilon=20, threshold=100, hits=2).release([3, 180, 20, 190, 0], random=Random.deterministic(1))
    [False, True, False, True]
    """

    epsilon: Fraction
    threshold: int
    hits: int
    sensitivity: Fraction
    monotone: bool
    threshold_share: Fraction

    def __init__(self, *, epsilon: Exact, threshold: int, hits: int, sensitivity: Exact = 1, monotone: bool = False) -> None:
        cost = exact_positive(epsilon, "epsilon")
        count = whole(hits, "hits", least=1)
        weight = Fraction(((1 if monotone else 2) * count) ** (2 / 3)).limit_denominator(1000)
        set_fields(
            self,
            epsilon=cost,
            threshold=int(vector([threshold], "threshold", 1)[0]),
            hits=count,
            sensitivity=exact_positive(sensitivity, "sensitivity"),
            monotone=bool(monotone),
            threshold_share=cost / (1 + weight),
        )

    @property
    def guarantee(self) -> PureDP:
        """ε for the whole stream."""
        return PureDP(self.epsilon)

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The law of what is added to the threshold."""
        return DiscreteLaplace(scale=self.sensitivity / self.threshold_share)

    @property
    def query_noise(self) -> DiscreteLaplace:
        """The law of what is added to each query."""
        factor = self.hits * (1 if self.monotone else 2)
        return DiscreteLaplace(scale=factor * self.sensitivity / (self.epsilon - self.threshold_share))

    @property
    def variance(self) -> float:
        """The variance of one comparison: of the threshold's noise and a query's together."""
        return self.threshold_noise.variance + self.query_noise.variance

    def margin(self, confidence: Exact = 0.95, *, queries: int) -> int:
        """An α with P(all answers are right for queries at least α from the threshold) >= confidence, over that many queries.

        Half of the failure is left to the threshold's noise, half to the queries'.

        >>> SparseVector(epsilon=1, threshold=0, hits=1).margin(0.95, queries=10) < 50
        True
        """
        miss = 1 - Fraction(level(confidence))
        count = whole(queries, "queries", least=1)
        return self.threshold_noise.margin(1 - miss / 2) + self.query_noise.margin(1 - miss / (2 * count)) + 1

    def start(self, *, random: Random | None = None) -> SparseVectorStream:
        """A stream of adaptively chosen queries; the whole of it costs `guarantee`, from its start on.

        >>> from cloister.noise.random import Random
        >>> stream = SparseVector(epsilon=20, threshold=100, hits=1).start(random=Random.deterministic(1))
        >>> stream.above(10), stream.above(180), stream.exhausted
        (False, True, True)
        """
        return SparseVectorStream(self, random)

    def release(self, value: Sequence[int], *, random: Random | None = None) -> list[bool]:
        """The answers for a list of queries, cut after the last allowed hit."""
        queries = vector(value, "value", len(value)).tolist()
        stream = self.start(random=random)
        answers = []
        for query in queries:
            if stream.exhausted:
                break
            answers.append(stream.above(query))
        return answers


class SparseVectorStream:
    """One run of a `SparseVector`: holds the noisy threshold, which must stay secret. Threads may share it.

    >>> SparseVector(epsilon=1, threshold=0, hits=3).start().left
    3
    """

    __slots__ = ("_lock", "_mechanism", "_noise", "_random", "_threshold", "left")

    def __init__(self, mechanism: SparseVector, random: Random | None) -> None:
        self._mechanism = mechanism
        self._random = source(random)
        self._noise = mechanism.query_noise
        self._threshold = int(mechanism.threshold_noise.release(mechanism.threshold, random=self._random))
        self._lock = threading.Lock()
        self.left = mechanism.hits

    @property
    def exhausted(self) -> bool:
        """True once all hits were given: nothing more may be asked."""
        return self.left == 0

    def above(self, value: int, *, shift: int = 0) -> bool:
        """Whether the private `value` plus a public `shift` reaches the threshold, but for noise.

        >>> SparseVector(epsilon=100, threshold=0, hits=1).start().above(50)
        True
        """
        query = int(vector([value], "value", 1)[0]) + shift
        with self._lock:
            if self.left == 0:
                raise BudgetExceeded(
                    "The query was refused",
                    why=f"this stream has given its {self._mechanism.hits} hits",
                    instead="SparseVector(hits=…) with more of them, started again",
                )
            hit = int(self._noise.release(query, random=self._random)) >= self._threshold
            self.left -= hit
        return hit


@dataclass(frozen=True, slots=True, init=False)
class AboveThreshold(SparseVector):
    """The sparse vector for one hit: the place of the first query that reaches the threshold, but for noise; None where none
    does.

    Guarantee: ε-DP, however many queries are asked (Dwork & Roth 2014, Theorem 3.23, with their split ε/2 + ε/2; here 1 :
    2^(2/3), or 1 : 1 where monotone). Proof and error as for `SparseVector` with one hit.

    >>> from cloister.noise.random import Random
    >>> AboveThreshold(epsilon=20, threshold=100).first([3, 20, 180, 20], random=Random.deterministic(1))
    2
    """

    def __init__(self, *, epsilon: Exact, threshold: int, sensitivity: Exact = 1, monotone: bool = False) -> None:
        SparseVector.__init__(self, epsilon=epsilon, threshold=threshold, hits=1, sensitivity=sensitivity, monotone=monotone)

    def first(self, value: Sequence[int], *, random: Random | None = None) -> int | None:
        """The place of the first hit: the same release as `release`, read as a place.

        >>> AboveThreshold(epsilon=100, threshold=1000).first([0, 0]) is None
        True
        """
        answers = self.release(value, random=random)
        return len(answers) - 1 if answers and answers[-1] else None
