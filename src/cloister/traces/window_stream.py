"""Tables of counts released at every step, with one ε for whatever lies within w steps in a row.

At each step a policy (`policies.py`) says what may be spent on looking and on publishing; a sliding filter holds both within the
window's ε before anything private is read; an estimator makes the table of the step from what was published so far.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise import AboveThreshold, DiscreteLaplace, Random
from cloister.noise._checks import whole
from cloister.noise.mechanism import integer_array, source
from cloister.privacy import Exact, PureDP, SlidingFilter, exact, exact_nonnegative, exact_positive, text_of
from cloister.traces.levels import Protection, WindowLevel
from cloister.traces.policies import Adaptive, Memory, Policy, Values
from cloister.traces.step_lock import StepLock

_SMALLEST = 1e-200
"""The least variance that estimators see: that of noise which is nearly always 0 is below all floats."""
_MOST, _LONGEST = 2**62, 10**8
_INSTEAD = "a new WindowStream(…) under a charge of its own"


class Estimator(Protocol):
    """Makes the table of a step from what was published: post-processing, which costs nothing."""

    def estimate(self, published: Values | None, variance: float) -> Values:
        """The table of the next step, in which these values were published with noise of this variance (above 0), or nothing."""


class LastRelease(Memory, Estimator):
    """The last published table, as BD and BA use it.

    >>> last = LastRelease(2); last.estimate(np.array([3.0, 1.0]), 1.0).tolist(), last.estimate(None, 0.0).tolist()
    ([3.0, 1.0], [3.0, 1.0])
    """

    def __init__(self, cells: int) -> None:
        self._values: Values = np.zeros(cells)

    def estimate(self, published: Values | None, variance: float) -> Values:
        if published is not None:
            self._values = published
        return self._values

    def state(self) -> list[Any]:
        return self._values.tolist()  # type: ignore[no-any-return]

    def restore(self, state: list[Any]) -> None:
        self._values = np.array(state)


class LocalLevel(Memory, Estimator):
    """A Kalman filter for levels that move at random (Fan & Xiong 2014 use one with a fixed speed). How fast each cell moves is
    estimated from what was published: the larger of a mean over some five and over some thirty releases. A release more than
    three standard deviations from what was foreseen is taken as it is.

    >>> level = LocalLevel(1); level.estimate(np.array([10.0]), 4.0).tolist()
    [10.0]
    >>> 10 < float(level.estimate(np.array([14.0]), 4.0)[0]) < 14
    True
    """

    remembers = ("_steps", "_noise", "_level", "_spread", "_moved", "_waited", "_last")

    def __init__(self, cells: int, *, memories: tuple[float, ...] = (0.8, 0.97)) -> None:
        self.memories, self._memories = memories, np.array(memories)[:, None]
        self._level: Values = np.zeros(cells)
        self._spread: Values = np.full(cells, math.inf)
        self._moved, self._waited = np.zeros((len(memories), cells)), np.zeros((len(memories), 1))
        self._last: Values | None = None
        self._noise, self._steps = 0.0, 0

    def estimate(self, published: Values | None, variance: float) -> Values:
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

    def state(self) -> list[Any]:
        return [self._steps] if self._last is None else super().state()  # before the first release the rest is not finite


class GroupMean(Memory, Estimator):
    """The mean of the releases since the last change, in the manner of PeGaSus (Chen, Machanavajjhala, Hay & Miklau 2017), with
    the groups found in what was published instead of bought: a release further than `width` standard deviations from the
    mean of its group begins a new one.

    >>> mean = GroupMean(1)
    >>> [mean.estimate(np.array([value]), 1.0).tolist() for value in (4.0, 6.0, 90.0)]
    [[4.0], [5.0], [90.0]]
    """

    remembers = ("_mean", "_weight")

    def __init__(self, cells: int, *, width: float = 3.0) -> None:
        self.width = width
        self._mean: Values = np.zeros(cells)
        self._weight = np.zeros(cells)

    def estimate(self, published: Values | None, variance: float) -> Values:
        if published is None:
            return self._mean
        own = 1 / variance
        spread = np.sqrt(variance + 1 / np.maximum(self._weight, _SMALLEST))
        fresh = (np.abs(published - self._mean) > self.width * spread) | (self._weight == 0)
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
    public as a release; a skipped step is charged `look` alone, which is what it spent. Comparisons of a `run` are those of one
    sparse vector (Lyu, Su & Li 2017, `noise.AboveThreshold`): all of them cost `run`, on however many of its steps two streams
    differ, and a window is charged for every run that touches it (`SlidingFilter`). `person` is what follows for a person
    (`levels.py`): ⌈steps/w⌉ε at most one reading a step; with `most` mε, in whichever steps these m lie, each of which moves its
    table by at most `reach`. Such a stream lives in one process, and charges no ledger: whoever opens it answers for `person`
    (`StoredWindowStream` charges it, and goes on).

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
        cells, reach = self.cells, self.reach = whole(cells, "cells", least=1), whole(reach, "reach", least=1)
        self.window = window
        if max(cells, window) > _LONGEST:
            why = f"cells= and window= are at most {_LONGEST:,}: as many numbers are kept"
            raise InvalidParameter("The stream is invalid", why=why, instead="fewer cells, or a shorter window")
        self.policy, self.estimator = policy or Adaptive(), estimator or LocalLevel(cells)
        for name, given, does in (("policy", self.policy, "begin"), ("estimator", self.estimator, "estimate")):
            if isinstance(given, type) or not hasattr(given, does):
                raise InvalidParameter(f"{name}= is invalid", why="it is none that is offered here", instead=f"{name}=None")
        DiscreteLaplace(scale=reach * window / self.guarantee.epsilon)  # an even share: refused here, where its noise has no law
        self.policy.begin(self.guarantee.epsilon, window, reach)
        self.random = source(random)
        self._filter = SlidingFilter(self.guarantee, window)
        self._last = np.zeros(cells, dtype=object)
        self._publish_share: Fraction | None = None
        self._run: tuple[Fraction, int, int] | None = None
        """Of the sparse vector that is open: its ε, its threshold, and that with its noise, which is secret."""
        why = "the step before it was broken off after its table had been read"
        self._lock = StepLock(error=BudgetExceeded, why=why, instead=_INSTEAD)
        self.taken = 0

    @property
    def person(self) -> PureDP:
        """What a person is promised: the line that a population is charged."""
        return self.protection.over_windows(self.guarantee)

    def step(self, totals: Sequence[int] | int | npt.NDArray[Any]) -> Values:
        """The table of the next step, from its exact totals: whole numbers, one for each cell.

        A step that was broken off after its table had been read ends the stream: done again, it would be a second release of
        one step.
        """
        table = self._counts(totals)
        return self._lock.take(self._shared_out, lambda spending: self._released(table, spending))

    def _shared_out(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """What the next step spends on looking, publishing and a run, and its threshold: all of it public. It is refused here,
        before anything private is read."""
        self.protection.refuse_beyond(self.taken, "the stream was declared", _INSTEAD)
        asked = self.policy.shares(self.taken, self._filter.remaining.epsilon)
        look, publish, run = (
            exact_nonnegative(each, name) for each, name in ((asked.look, "look"), (asked.publish, "publish"), (asked.run, "run"))
        )
        limit = self.cells * self.reach / publish if publish else Fraction(0)
        if asked.threshold is not None:
            limit = exact_nonnegative(asked.threshold, "threshold")
        run = run if publish else Fraction(0)
        self._filter.after(PureDP(look + run + publish), carried=self._carried(run, limit))
        return look, publish, run, limit

    def _carried(self, run: Fraction, limit: Fraction) -> PureDP:
        """What the step before was charged for a run that goes on."""
        return PureDP(run if self._run is not None and self._run[:2] == (run, math.ceil(limit)) else 0)

    def _released(self, table: npt.NDArray[Any], spending: tuple[Fraction, Fraction, Fraction, Fraction]) -> Values:
        look, publish, run, limit = spending
        carried = self._carried(run, limit)
        if not carried.epsilon:
            self._run = self._opened(run, math.ceil(limit)) if run else None
        chosen = publish > 0 and (not look or self._changed(table, look, limit)) and (not run or self._passed(table))
        self._filter = self._filter.after(PureDP(look + run + publish if chosen else look + run), carried=carried)
        values, variance = None, 0.0
        if chosen:
            noise = DiscreteLaplace(scale=self.reach / publish, sensitivity=self.reach)
            self._last = np.asarray(noise.release(table, random=self.random)).astype(object)
            values, variance = self._last.astype(np.float64), max(noise.variance, _SMALLEST)
            self._publish_share, self._run = publish, None
            self.policy.published(self.taken, publish, values)
        self.taken += 1
        return np.array(self.estimator.estimate(values, variance))  # the estimator goes on with its own

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of one cell of the last published table; the noise alone.

        >>> stream = WindowStream(epsilon=10, window=10, steps=100)
        >>> _ = stream.step(5)
        >>> stream.margin()
        2
        """
        if self._publish_share is None:
            return math.inf
        return DiscreteLaplace(scale=self.reach / self._publish_share).margin(confidence)

    def state(self) -> dict[str, Any]:
        """What the next step needs besides the declarations, as plain JSON. All of it follows from what was published, but for
        the noisy threshold of a `run`: keep it as you keep the data. Policy and estimator must be of this library.

        >>> stream = WindowStream(epsilon=1, window=2, steps=9, random=Random.deterministic(1))
        >>> _ = stream.step(50)
        >>> again = WindowStream(epsilon=1, window=2, steps=9)
        >>> again.restore(stream.state())
        >>> again.taken, again.margin() == stream.margin()
        (1, True)
        """
        policy, estimator = (each.state() for each in (self.policy, self.estimator))  # type: ignore[union-attr]
        return {
            "taken": self.taken,
            "charged": [text_of(share) for share in self._filter.recent],
            "last": [int(each) for each in self._last],
            "share": None if self._publish_share is None else text_of(self._publish_share),
            "run": None if self._run is None else [text_of(self._run[0]), *self._run[1:]],
            "policy": policy,
            "estimator": estimator,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, under the same declarations."""
        self.taken = state["taken"]
        self._filter = SlidingFilter(self.guarantee, self.window, tuple(exact(share) for share in state["charged"]))
        self._last = np.array(state["last"], dtype=object)
        self._publish_share = None if state["share"] is None else exact(state["share"])
        run = state.get("run")
        self._run = None if run is None else (exact(run[0]), *run[1:])
        self.policy.restore(state["policy"])  # type: ignore[attr-defined]
        self.estimator.restore(state["estimator"])  # type: ignore[attr-defined]

    def __str__(self) -> str:
        promised = self.protection.sentence(self.guarantee, self.person)
        return f"WindowStream: {self.taken} of {self.protection.steps} steps; {promised}"

    def _counts(self, totals: Any) -> npt.NDArray[Any]:
        """The exact totals as they are counted; messages show no number of them."""
        try:
            table = integer_array([totals] if isinstance(totals, int | np.integer) else totals).astype(object)
        except InvalidParameter:
            table = np.array([-1], dtype=object)
        if any(not 0 <= total <= _MOST for total in table.ravel().tolist()):
            raise InvalidParameter(
                "The totals of a step are invalid",
                why="they are counts: whole numbers from 0 to 2⁶²; a missing one is 0",
                instead=f"stream.step({[3] * min(self.cells, 3)})",
            )
        if table.shape != (self.cells,):
            raise InvalidParameter(
                "The totals of a step are invalid", why=f"there must be one for each of the {self.cells} cells", instead="[3, 5]"
            )
        return table

    def _changed(self, exact: npt.NDArray[Any], look: Fraction, limit: Fraction) -> bool:
        """Whether the step differs from the last release by more than so much, summed over the cells."""
        noise = DiscreteLaplace(scale=self.reach / look, sensitivity=self.reach)
        return bool(noise.release(self._distance(exact), random=self.random) > limit)

    def _opened(self, run: Fraction, limit: int) -> tuple[Fraction, int, int]:
        """A sparse vector, and its noisy threshold."""
        noise = AboveThreshold(epsilon=run, threshold=limit, sensitivity=self.reach).threshold_noise
        return run, limit, int(noise.release(limit, random=self.random))

    def _passed(self, exact: npt.NDArray[Any]) -> bool:
        """Whether the step differs from the last release by more than the noisy threshold of the run, but for noise."""
        assert self._run is not None
        run, limit, noisy = self._run
        noise = AboveThreshold(epsilon=run, threshold=limit, sensitivity=self.reach).query_noise
        return int(noise.release(self._distance(exact), random=self.random)) >= noisy

    def _distance(self, exact: npt.NDArray[Any]) -> int:
        """From the last release, summed over the cells."""
        return sum(abs(int(mine) - int(last)) for mine, last in zip(exact, self._last, strict=True))
