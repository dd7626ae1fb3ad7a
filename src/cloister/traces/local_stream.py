"""A histogram at every step from people who trust nobody: each of them reports from the device, at most once in w steps.

With w steps to protect, a person could report at every step with ε/w, or once with ε. The second is far better: the variance of a
local report falls faster than as the square of its ε, that of an estimate only as the number of reports. So what is shared out
over time is not ε but the people (Ren, Shi, Yu, Yang, Zhao & Wang 2022, "LDP-IDS"): the policies of `policies.py` say which share
of them looks for a change and which reports for new values, and a sliding filter holds the shares of any w steps within one.
Their uniform, distribution and absorption are LPU, LPD and LPA there.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise import Random
from cloister.noise._checks import level as confidence_level
from cloister.noise._checks import whole
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP, SlidingFilter
from cloister.traces.levels import Protection, WindowLevel
from cloister.traces.policies import Absorption, Decreasing, Distribution, Policy, Sampled, Uniform, Values
from cloister.traces.step_lock import StepLock

Ask = Callable[[npt.NDArray[np.int64]], Any]
"""Takes the numbers of people, and gives the reports that their devices drew."""
_ALLOWED = (Uniform, Sampled, Decreasing, Distribution, Absorption)


class Oracle(Protocol):
    """What a frequency oracle of `cloister.local` has."""

    @property
    def guarantee(self) -> PureDP:
        """Of one report."""

    def aggregate(self, reports: Any) -> Any:
        """Reports, added up."""

    def estimate(self, sketch: Any) -> Any:
        """The counts that they say, with their variances."""

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Of one estimated count of n people."""


class LocalStream:
    """Estimated counts of all people at every step, from reports of a few of them.

    Guarantee: `guarantee`, the oracle's ε, local, for all that one person's values are within any w = `window` steps in a row:
    each report is ε-private by itself, drawn on the device, and nobody is asked twice in w steps. Theorem: Ren et al. (2022), who
    share out people over the windows of Kellaris et al. (2014). Proof: who is asked follows from public coins, from who was asked
    before and from the reports so far, and not from the values of those asked now. So a change of one person's values within w
    steps changes the law of at most one report, given all before it, by e^ε at most. That there is always somebody to ask: a step
    takes at most the share of people that its policy has of the window, rounded down, and the filter holds these shares within 1
    for any w steps. ∎ `person` is what follows over all steps: ⌈steps/w⌉ε. Nothing is charged to a ledger: no owner holds the
    values.

    Error: a count is of a sample, with the oracle's variance for so many reports, times (people/reports)². `margin()` holds both;
    what has changed since is not in it.

    >>> from cloister.local import UnaryEncoding
    >>> rooms, values = UnaryEncoding(["ward", "home"], epsilon=2, optimized=True), np.array(["ward"] * 3000 + ["home"] * 7000)
    >>> stream = LocalStream(rooms, people=10_000, window=10, steps=40, random=Random.deterministic(1))
    >>> for hour in range(12):
    ...     found = stream.step(lambda who: rooms.randomize(values[who], random=Random.deterministic(hour)))
    >>> bool(abs(found[0] - 3000) < stream.margin()[0]), str(stream.person)
    (True, 'ε = 8')
    """

    def __init__(
        self, oracle: Oracle, *, people: int, window: int, steps: int, policy: Policy | None = None, random: Random | None = None
    ) -> None:
        self.oracle, self.guarantee = oracle, oracle.guarantee
        self.people, self.window = whole(people, "people", least=1), WindowLevel(window).steps
        self.protection = Protection.of(WindowLevel(window), most=None, steps=steps)
        self.policy = Uniform() if policy is None else policy
        if not isinstance(self.policy, _ALLOWED):
            raise InvalidParameter(
                f"A {type(self.policy).__name__} is invalid",
                why="it reckons with the noise of one owner's counts",
                instead="policy=Uniform(), Sampled(k), Decreasing(), Increasing(), Distribution() or Absorption()",
            )
        if self.people < 2 * self.window:
            raise InvalidParameter(
                f"people={people} is invalid", why="a step would ask less than one of them", instead=f"people={2 * self.window}"
            )
        self.policy.begin(Fraction(1), self.window, 1)
        self.random = source(random)
        self._filter = SlidingFilter(PureDP(1), self.window)
        self._asked = np.full(self.people, -self.window)
        """The step at which each person was asked last."""
        self._reported = 0
        self._size = 0
        self._read: Any = None
        """What the oracle told last: with few reports it knows how a count's law is not the normal one."""
        self.last: Values | None = None
        self.taken = 0
        self._lock = StepLock(error=BudgetExceeded, instead="a new LocalStream(…), a window later")

    @property
    def person(self) -> PureDP:
        """What a person is promised over all steps."""
        return self.protection.over_windows(self.guarantee)

    def step(self, ask: Ask) -> Values:
        """The counts at the next step. `ask` is called with the numbers of those who must report, once or twice: their devices
        draw the reports, with values of this step. A step that is broken off while they report was not taken; it may be taken
        again, of others."""
        return self._lock.take(lambda: self._drawn(ask), self._keep)

    def _drawn(self, ask: Ask) -> tuple[Fraction, tuple[Fraction, Values, int] | None]:
        """What the step takes of the window, and the counts where it publishes, of how many reports."""
        self.protection.refuse_beyond(self.taken, "the stream was declared", "a new LocalStream(…)")
        asked = self.policy.shares(self.taken, self._filter.remaining.epsilon)
        looking, publishing = math.floor(asked.look * self.people), math.floor(asked.publish * self.people)
        self._filter.after(PureDP(asked.look + asked.publish))  # refused here, before anybody is asked
        chosen = publishing > 0 and (
            not asked.look or (looking > 0 and self._changed(self._found(ask, looking), looking, publishing))
        )
        return asked.look, (asked.publish, self._found(ask, publishing), publishing) if chosen else None

    def _keep(self, drawn: tuple[Fraction, tuple[Fraction, Values, int] | None]) -> Values:
        spent, found = drawn
        if found is not None:
            share, self.last, self._reported = found
            self.policy.published(self.taken, share, self.last)
            spent += share
        self._filter = self._filter.after(PureDP(spent))
        self.taken += 1
        return np.zeros(self._size) if self.last is None else self.last.copy()

    def margin(self, confidence: Exact = "0.95") -> Values:
        """The half-width of the interval of each count that was published last."""
        wanted = confidence_level(confidence)
        if self.last is None:
            return np.full(self._size, math.inf)
        shares, scale = np.clip(self.last / self.people, 0.0, 1.0), self.people / self._reported
        unseen = (self.people - self._reported) / max(self.people - 1, 1)
        law = replace(
            self._read, variances=self._variances(shares, self._reported), part=scale * max(self._read.part, 1.0), raw=None,
            slope=scale * (self._read.slope + unseen),
        )  # fmt: skip
        return np.asarray(law.margin(wanted), dtype=np.float64)

    def _found(self, ask: Ask, count: int) -> Values:
        """The counts that so many people, who are free, report."""
        free = np.flatnonzero(self._asked <= self.taken - self.window)
        who = free[self.random.permutation(len(free))[:count]]
        if len(who) < count:
            raise BudgetExceeded(
                "The step was refused",
                why="a step before it was broken off, and those whom it asked are not asked again in the window",
                instead="a new LocalStream(…), a window later",
            )
        self._asked[who] = self.taken  # before they are asked: what is broken off is not asked again
        estimate = self.oracle.estimate(self.oracle.aggregate(ask(who)))
        if estimate.n != count:
            raise InvalidParameter("The reports are invalid", why="there must be one of each person asked", instead="ask(who)")
        counts = np.asarray(estimate.counts, dtype=np.float64) * (self.people / count)
        self._size, self._read = len(counts), estimate
        return counts

    def _variances(self, shares: Values, reports: int) -> Values:
        """Of counts of all people, from so many reports: of the protocol, and of the sample."""
        none, all_ = self.oracle.variance(reports, 0.0), self.oracle.variance(reports, 1.0)
        sampled = shares * (1 - shares) * reports
        return np.asarray((none + (all_ - none) * shares + sampled) * (self.people / reports) ** 2)

    def _changed(self, seen: Values, looking: int, publishing: int) -> bool:
        """Whether counts are further from the last ones, in mean squares, than new ones would be from the truth: post-processing
        of reports."""
        if self.last is None:
            return True
        shares = np.clip(seen / self.people, 0.0, 1.0)
        distance = float(np.mean((seen - self.last) ** 2 - self._variances(shares, looking)))
        return distance > float(np.mean(self._variances(shares, publishing)))
