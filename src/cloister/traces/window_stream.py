"""Tables of counts released at every step, with one ε for whatever lies within w steps in a row.

At each step a policy (`policies.py`) says what may be spent on looking and on publishing; a sliding filter holds both within the
window's ε before anything private is read; an estimator makes the table of the step from what was published so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise import DiscreteLaplace, Random
from cloister.noise.mechanism import integer_array, source
from cloister.privacy.filters import SlidingFilter
from cloister.privacy.guarantee import PureDP
from cloister.privacy.rational import Exact, exact_nonnegative, exact_positive
from cloister.traces.levels import Protection, WindowLevel
from cloister.traces.policies import Adaptive, Policy, Values

_SMALLEST = 1e-200
"""The least variance that estimators see: that of noise which is nearly always 0 is below all floats."""


class Estimator(Protocol):
    """Makes the table of a step from what was published: post-processing, which costs nothing."""

    def estimate(self, published: Values | None, variance: float) -> Values:
        """The table of the next step, in which these values were published with noise of this variance (above 0), or nothing."""


class LastRelease:
    """The last published table, as BD and BA use it.

    >>> last = LastRelease(2); last.estimate(np.array([3.0, 1.0]), 1.0).tolist(), last.estimate(None, 0.0).tolist()
    ([3.0, 1.0], [3.0, 1.0])
    """

    def __init__(self, cells: int) -> None:
        self._values: Values = np.zeros(cells)

    def estimate(self, published: Values | None, variance: float) -> Values:
        """See `Estimator`."""
        if published is not None:
            self._values = published
        return self._values


class LocalLevel:
    """A Kalman filter for levels that move at random (Fan & Xiong 2014 use one with a fixed speed). How fast each cell moves is
    estimated from what was published: the larger of a mean over some five and over some thirty releases. A release more than
    three standard deviations from what was foreseen is taken as it is.

    >>> level = LocalLevel(1); level.estimate(np.array([10.0]), 4.0).tolist()
    [10.0]
    >>> 10 < float(level.estimate(np.array([14.0]), 4.0)[0]) < 14
    True
    """

    def __init__(self, cells: int, *, memories: tuple[float, ...] = (0.8, 0.97)) -> None:
        self._memories = np.array(memories)[:, None]
        self._level: Values = np.zeros(cells)
        self._spread: Values = np.full(cells, math.inf)
        self._moved, self._waited = np.zeros((len(memories), cells)), np.zeros((len(memories), 1))
        self._last: Values | None = None
        self._noise, self._steps = 0.0, 0

    def estimate(self, published: Values | None, variance: float) -> Values:
        """See `Estimator`."""
        self._steps += 1
        if published is None:
            return self._level
        if self._last is not None:
            self._moved = self._memories * self._moved + (published - self._last) ** 2 - variance - self._noise
            self._waited = self._memories * self._waited + self._steps
            speed = np.maximum((self._moved / self._waited).max(axis=0), 0.0)
            self._spread = self._spread + speed * self._steps
        off = published - self._level
        taken = np.isinf(self._spread) | (off**2 > 9 * (self._spread + variance))
        gain = np.where(taken, 1.0, 1 - variance / (np.where(taken, 0.0, self._spread) + variance))
        self._level = self._level + gain * off
        self._spread = gain * variance
        self._last, self._noise, self._steps = published, variance, 0
        return self._level


class GroupMean:
    """The mean of the releases since the last change, in the manner of PeGaSus (Chen, Machanavajjhala, Hay & Miklau 2017), with
    the groups found in what was published instead of bought: a release further than `width` standard deviations from the
    mean of its group begins a new one.

    >>> mean = GroupMean(1)
    >>> [mean.estimate(np.array([value]), 1.0).tolist() for value in (4.0, 6.0, 90.0)]
    [[4.0], [5.0], [90.0]]
    """

    def __init__(self, cells: int, *, width: float = 3.0) -> None:
        self._width = width
        self._mean: Values = np.zeros(cells)
        self._weight = np.zeros(cells)

    def estimate(self, published: Values | None, variance: float) -> Values:
        """See `Estimator`."""
        if published is None:
            return self._mean
        own = 1 / variance
        spread = np.sqrt(variance + 1 / np.maximum(self._weight, _SMALLEST))
        fresh = (np.abs(published - self._mean) > self._width * spread) | (self._weight == 0)
        weight = np.where(fresh, 0.0, self._weight) + own
        self._mean = np.where(fresh, published, self._mean + (published - self._mean) * own / weight)
        self._weight = weight
        return self._mean


class WindowStream:
    """A table of counts at every step, private for what is sent within any w steps in a row.

    Guarantee: `guarantee`, ε of pure DP between streams of tables that differ within w = `window` steps in a row, at each by at
    most `reach` in L1, which is one reading of a person where each reading counts once (`reach` 1). Theorem: Kellaris,
    Papadopoulos, Xiao & Papadias (2014), Theorem 3, over every path of an adaptive policy (`SlidingFilter`). Proof: a step's
    shares follow from what was published and are held against the filter before the step's table is read. The comparison is
    Σ|x − last|, which moves by at most `reach`, with discrete Laplace noise of scale reach/look; what is published is x with
    discrete Laplace noise of scale reach/publish. Whether a step publishes follows from the noisy comparison, so a skip is as
    public as a release; a skipped step is charged `look` alone, which is what it spent. `person` is what follows for a person
    over `steps` steps, at most one reading a step: ⌈steps/w⌉ε, or less with `most`. A stream lives in one process, and charges
    no ledger: whoever opens it answers for `person`, and a process that has ended begins a new one, at a cost of its own.

    Error: `margin()` is that of the noise of the last published table; what has changed since is not in it.

    >>> stream = WindowStream(epsilon=1, window=10, steps=100, cells=2, random=Random.deterministic(1))
    >>> [stream.step([500, 20]).shape for hour in range(3)], str(stream.person)
    ([(2,), (2,), (2,)], 'ε = 10')
    """

    def __init__(
        self,
        *,
        epsilon: Exact,
        window: int,
        steps: int,
        cells: int = 1,
        reach: int = 1,
        most: int | None = None,
        policy: Policy | None = None,
        estimator: Estimator | None = None,
        random: Random | None = None,
    ) -> None:
        self.protection = Protection.of(WindowLevel(window), most=most, steps=steps)
        self.guarantee = PureDP(exact_positive(epsilon, "epsilon"))
        for name, value in (("cells", cells), ("reach", reach)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                why = "it must be a whole number of at least 1"
                raise InvalidParameter(f"{name}={value!r} is invalid", why=why, instead=f"{name}=1")
        self.reach, self.cells = reach, cells
        self.policy, self.estimator = policy or Adaptive(), estimator or LocalLevel(cells)
        DiscreteLaplace(scale=reach * window / self.guarantee.epsilon)  # an even share: refused here, where its noise has no law
        self.policy.begin(self.guarantee.epsilon, window, reach)
        self._random = source(random)
        self._filter = SlidingFilter(self.guarantee, window)
        self._last = np.zeros(cells, dtype=object)
        self._publish_share: Fraction | None = None
        self._broken = False
        self.taken = 0

    @property
    def person(self) -> PureDP | None:
        """What a person is promised: the line that a population is charged."""
        found = self.protection.person(self.guarantee)
        assert isinstance(found, PureDP)
        return found

    def step(self, totals: Sequence[int] | int | npt.NDArray[Any]) -> Values:
        """The table of the next step, from its exact totals: whole numbers, one for each cell.

        A step that was broken off after its table had been read ends the stream: done again, it would be a second release of
        one step.
        """
        if self._broken:
            raise BudgetExceeded(
                "The step was refused",
                why="the step before it was broken off after its table had been read",
                instead="a new WindowStream(…) under a charge of its own",
            )
        if self.taken == self.protection.steps:
            raise BudgetExceeded(
                "The step was refused",
                why=f"the stream was declared for {self.taken} steps, and all of them are released",
                instead="a new WindowStream(…) under a charge of its own",
            )
        table = integer_array([totals] if isinstance(totals, int | np.integer) else totals).astype(object)
        if table.shape != (self.cells,):
            raise InvalidParameter(
                "The totals of a step are invalid", why=f"there must be one for each of the {self.cells} cells", instead="[3, 5]"
            )
        asked = self.policy.shares(self.taken, self._filter.remaining.epsilon)
        look, publish = exact_nonnegative(asked.look, "look"), exact_nonnegative(asked.publish, "publish")
        self._filter.after(PureDP(look + publish))  # refused here, before anything private is read
        self._broken = True
        chosen = publish > 0 and (not look or self._changed(table, look, publish))
        self._filter = self._filter.after(PureDP(look + publish if chosen else look))
        values, variance = None, 0.0
        if chosen:
            noise = DiscreteLaplace(scale=self.reach / publish, sensitivity=self.reach)
            self._last = np.asarray(noise.release(table, random=self._random)).astype(object)
            values, variance = self._last.astype(np.float64), max(noise.variance, _SMALLEST)
            self._publish_share = publish
            self.policy.published(self.taken, publish, values)
        self.taken += 1
        found = self.estimator.estimate(values, variance)
        self._broken = False
        return found

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of one cell of the last published table; the noise alone.

        >>> stream = WindowStream(epsilon=10, window=10, steps=100)
        >>> _ = stream.step(5)
        >>> stream.margin()
        3
        """
        if self._publish_share is None:
            return math.inf
        return DiscreteLaplace(scale=self.reach / self._publish_share).margin(confidence)

    def __str__(self) -> str:
        return f"WindowStream: {self.taken} of {self.protection.steps} steps; {self.protection.sentence(self.guarantee)}"

    def _changed(self, exact: npt.NDArray[Any], look: Fraction, publish: Fraction) -> bool:
        """Whether the step differs from the last release by more than the noise of a new one, on average over the cells."""
        distance = sum(abs(int(mine) - int(last)) for mine, last in zip(exact, self._last, strict=True))
        noisy = DiscreteLaplace(scale=self.reach / look, sensitivity=self.reach).release(distance, random=self._random)
        return bool(noisy > self.cells * self.reach / publish)
