"""Budget over time: how much of a window's ε a step spends on looking and on publishing.

A policy sees public things only: the step, what the window still allows, and what was released. It answers with two shares:
`look` pays for a noisy comparison of the step with the last release, `publish` for new values. With `look` above 0 the step
publishes only where the comparison finds more change than `threshold`, or without one than the new noise would cost; without
`look`, a `publish` above 0 always does. `run` pays for all comparisons until one of them finds a change, by the sparse vector.
Whatever a policy asks for, a `SlidingFilter` holds every window's sum within ε, so no policy can break the guarantee, only
waste it.

==============  ==========================================================================================
`Uniform`       ε/w at every step
`Sampled`       kε/w at every k-th step (k divides w, or the last of a window gets less)
`Decreasing`    ε(1−q)qᵗ/(1−qʷ) at step t of each w steps, and so on: most at first
`Increasing`    the same backwards: most at last
`Threshold`     ε/2w to look; ε/2m to publish where more than a declared change is found, at most m times in w steps
`Changes`       a share for all looks until the next change, by the sparse vector; the rest for at most m releases in w steps
`Distribution`  BD of Kellaris, Papadopoulos, Xiao & Papadias (2014): ε/2w to look, half of what remains of the other ε/2
`Absorption`    BA of the same: ε/2w to look; skipped shares are taken up, and as many steps afterwards are silent
`Adaptive`      ours: nothing to look; the next publishing step and its share follow from what was published
==============  ==========================================================================================
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise.sparse_vector import AboveThreshold
from cloister.privacy.rational import Exact, exact, exact_positive, text_of

Values = npt.NDArray[np.float64]
_PARTS = 2**40
_LEAST = 1e-200
"""The least variance that is reckoned with."""
_CALM, _RISK, _FIRST = 500, 5, 8
_FORGOTTEN_LEVEL, _FORGOTTEN_CHANGE = 0.998, 0.995
"""Of `Adaptive`: after how many steps a calm may end, what that costs at most in noises of an even share, of how many parts of ε
the first release is one, and how much of the highest level and the largest change is remembered from one step to the next.
Chosen on other streams than are reported."""


class Shares(NamedTuple):
    """What a step may spend: to look whether much has changed, and to publish."""

    look: Fraction = Fraction(0)
    publish: Fraction = Fraction(0)
    threshold: Fraction | None = None
    """The change, summed over the cells, above which a step that looks publishes; None: that of the noise of new values."""
    run: Fraction = Fraction(0)
    """Instead of `look`: for the comparisons of this step and of all after it that say the same, up to one that publishes."""


class Policy(Protocol):
    """Decides from public things alone. Those here are subclasses, which says what their methods are for."""

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """A new stream."""

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """What this step may spend, where the window allows `remaining`."""

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """What was published, and for which share; not called for a step that publishes nothing."""
        return  # most have nothing to remember of it


class Memory:
    """What a policy or an estimator remembers between two steps, as plain JSON: what it names, which is nothing for most. All of
    it follows from what was published."""

    remembers: ClassVar[tuple[str, ...]] = ()

    def state(self) -> list[Any]:
        """What the next step needs."""
        kept = [getattr(self, name) for name in self.remembers]
        return [each.tolist() if isinstance(each, np.ndarray) else each for each in kept]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state, after `begin`."""
        for name, each in zip(self.remembers, state, strict=False):
            setattr(self, name, np.array(each) if isinstance(each, list) else each)


@dataclass
class Uniform(Memory, Policy):
    """ε/w at every step.

    >>> policy = Uniform(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1)).publish
    Fraction(1, 4)
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._share = epsilon / window

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares(publish=self._share)


@dataclass
class Sampled(Memory, Policy):
    """kε/w at every k-th step.

    >>> policy = Sampled(every=2); policy.begin(Fraction(1), 4, 1)
    >>> [policy.shares(step, Fraction(1)).publish for step in range(3)]
    [Fraction(1, 2), Fraction(0, 1), Fraction(1, 2)]
    """

    every: int

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        if not 1 <= self.every <= window:
            raise InvalidParameter("every is invalid", why="it lies between 1 and the window", instead=f"every={window}")
        self._share = epsilon * self.every / window

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares() if step % self.every else Shares(publish=min(self._share, remaining))


@dataclass
class Decreasing(Memory, Policy):
    """Geometric shares that fall within each w steps: ε(1−q)qᵗ/(1−qʷ) at step t from 0 on, and from the beginning again. Any w
    steps in a row hold each of the w shares once, so every window spends the same. They are rounded down to a 2⁴⁰-th of ε, and
    one below a hundredth of an even share is not spent: its noise would hide everything.

    >>> policy = Decreasing("0.5"); policy.begin(Fraction(15), 4, 1)
    >>> [round(float(policy.shares(step, Fraction(15)).publish), 6) for step in range(5)]
    [8.0, 4.0, 2.0, 1.0, 8.0]
    """

    factor: Exact = "0.9"

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        factor = exact_positive(self.factor, "factor")
        if factor >= 1:
            raise InvalidParameter("factor is invalid", why="it lies between 0 and 1", instead='factor="0.9"')
        weights = float(factor) ** np.arange(window)
        whole = np.floor(weights / weights.sum() * (_PARTS - window)).astype(np.int64)
        assert whole.sum() <= _PARTS
        whole[whole * window * 100 < _PARTS] = 0
        self._shares = [epsilon * int(each) / _PARTS for each in whole]

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares(publish=self._shares[step % len(self._shares)])


@dataclass
class Increasing(Decreasing):
    """Geometric shares that grow within each w steps: those of `Decreasing` backwards.

    >>> policy = Increasing("0.5"); policy.begin(Fraction(15), 4, 1)
    >>> [round(float(policy.shares(step, Fraction(15)).publish), 6) for step in range(5)]
    [1.0, 2.0, 4.0, 8.0, 1.0]
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        super().begin(epsilon, window, reach)
        self._shares.reverse()


class _Rare(Memory, Policy):
    """Publishes at most `most` times in w steps."""

    most: int

    def _begin(self, window: int) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most <= window:
            instead = f"most={min(type(self).most, window)}"
            raise InvalidParameter("most is invalid", why="it lies between 1 and the window", instead=instead)
        self._window, self._published = window, list[int]()

    def _may(self, step: int) -> bool:
        """Whether the window has room for one more release."""
        self._published = [past for past in self._published if past > step - self._window]
        return len(self._published) < self.most

    def published(self, step: int, share: Fraction, values: Values) -> None:
        self._published.append(step)

    def state(self) -> list[Any]:
        return list(self._published)

    def restore(self, state: list[Any]) -> None:
        self._published = list(state)


@dataclass
class Threshold(_Rare):
    """ε/2w to look at each step; where the step differs from the last release by more than `above`, summed over the cells, new
    values for ε/2m, at most m = `most` times in w steps. `above` is declared, never looked up.

    >>> policy = Threshold(above=50, most=2); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1))
    Shares(look=Fraction(1, 8), publish=Fraction(1, 4), threshold=Fraction(50, 1), run=Fraction(0, 1))
    """

    above: Exact
    most: int = 5

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._above = exact_positive(self.above, "above")
        self._begin(window)
        self._look, self._share = epsilon / (2 * window), epsilon / (2 * self.most)

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares(self._look, self._share if self._may(step) else Fraction(0), self._above)


@dataclass
class Changes(_Rare):
    """Change detection by the sparse vector: one share of ε pays for all comparisons with the last release until one of them
    finds a change, however many steps that takes; then new values are published, at most m = `most` times in w steps.

    Any w steps touch at most m + 1 such runs. So with a = `looking` each run may spend aε/(m + 1), and each release (1 − a)ε/m:
    a comparison has noise of some 6(m + 1)/aε, and not of 2w/ε as that of a policy that pays for every look. It is the better the
    longer the window and the rarer the changes. `above` is the change, summed over the cells, that is looked for; declared, never
    looked up. None: what a run of w calm steps passes by with a probability of 0.9.

    >>> policy = Changes(most=3); policy.begin(Fraction(1), 60, 1); policy.shares(0, Fraction(1)).publish
    Fraction(1, 6)
    >>> policy.shares(0, Fraction(1)).run
    Fraction(1, 8)
    """

    most: int = 3
    above: Exact | None = None
    looking: Exact = "0.5"

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._begin(window)
        looking = exact_positive(self.looking, "looking")
        if looking >= 1:
            raise InvalidParameter("looking is invalid", why="it lies between 0 and 1", instead='looking="0.5"')
        self._run, self._share = looking * epsilon / (self.most + 1), (1 - looking) * epsilon / self.most
        if self.above is None:
            run = AboveThreshold(epsilon=self._run, threshold=0, sensitivity=reach)
            self._above = Fraction(run.margin("0.9", queries=window))
        else:
            self._above = exact_positive(self.above, "above")

    def shares(self, step: int, remaining: Fraction) -> Shares:
        return Shares(publish=self._share, threshold=self._above, run=self._run) if self._may(step) else Shares()


@dataclass
class Distribution(Memory, Policy):
    """Budget distribution (BD): ε/2w to look; to publish, half of what the window's other half of ε still allows.

    >>> policy = Distribution(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1))
    Shares(look=Fraction(1, 8), publish=Fraction(1, 4), threshold=None, run=Fraction(0, 1))
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._look, self._half, self._window = epsilon / (2 * window), epsilon / 2, window
        self._spent: dict[int, Fraction] = {}

    def shares(self, step: int, remaining: Fraction) -> Shares:
        self._spent = {past: share for past, share in self._spent.items() if past > step - self._window}
        return Shares(self._look, (self._half - sum(self._spent.values(), Fraction(0))) / 2)

    def published(self, step: int, share: Fraction, values: Values) -> None:
        self._spent[step] = share

    def state(self) -> list[Any]:
        return [[step, text_of(share)] for step, share in self._spent.items()]

    def restore(self, state: list[Any]) -> None:
        self._spent = {step: exact(share) for step, share in state}


@dataclass
class Absorption(Memory, Policy):
    """Budget absorption (BA): ε/2w to look; a step that publishes takes up the ε/2w of the steps that were skipped since the last
    one, and as many steps after it stay silent.

    >>> policy = Absorption(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1))
    Shares(look=Fraction(1, 8), publish=Fraction(1, 8), threshold=None, run=Fraction(0, 1))
    """

    remembers = ("_silent_until",)

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._unit, self._window = epsilon / (2 * window), window
        self._silent_until = -1

    def shares(self, step: int, remaining: Fraction) -> Shares:
        if step <= self._silent_until:
            return Shares(look=self._unit)
        return Shares(self._unit, self._unit * min(step - self._silent_until, self._window))

    def published(self, step: int, share: Fraction, values: Values) -> None:
        self._silent_until = step + int(share / self._unit) - 1


@dataclass
class Adaptive(Memory, Policy):
    """Publishes as rarely as the changes allow: the noise of a release falls with the pause, what is stale in between grows with
    it. Nothing is spent on looking, and a pause tells nothing: it follows from what was published.

    *The first* release has an eighth of ε, where the window has more than eight steps: it tells the level, and what it takes from
    the steps of one window is little. The second follows at once.

    *The share* of any other is the greatest that could be spent again after every pause of this length, for the next w steps,
    beside what the window holds. So what a long pause saved does not run out a window later, when it would leave steps without
    any. Less than a quarter of an even share is not spent.

    *The pause* k is the one with the least sum of the noise w/kε, of √(2/π)·s·√j, the drift of a random walk over its steps j,
    and of the level for (k − 1)/2 steps once in 500 steps, since a calm may end (but of no more than five times the noise
    of an even share, so that large and constant numbers are known to be calm). It is at most twice the last. s² a
    step comes from the differences of what was published, less what their noise explains; it is the larger of a mean with a
    short and of one with a long memory, so that a calm season is not taken for the end of all seasons. Differences count by how
    little noise is in them, beside the largest change that was seen for certain. Where the level stays below half the noise of
    an even share, nothing drifts further than the level.

    No policy can be within 1.1 of the best fixed split on all streams: on one of n windows it is at least 1 + 0.43/n times as
    far off. Proof: let r be its worst ratio on streams that rest within each window, or that rest until some step of the first
    and jump without end from there on. Up to its step τw these look alike; so if S(τ) of ε is spent by then, the second kind has
    errors of (1 − τ)²w²/(1 − S)ε in sum for the rest of the window and of w²/ε for each other. With r times those of the even
    split, nw²/ε, that gives S(τ) ≤ 1 − (1 − τ)²/q with q = 1 + n(r − 1). Now a resting stream is off by 1/S(τ)ε at step τw, which
    is √q·artanh(1/√q)/ε on average over the first window, and by 1/ε in each other; the split that publishes once a window is
    off by 1/ε. So √q·artanh(1/√q) ≤ 1 + n(r − 1) = q, and q ≥ 1.439. ∎ (1/sε is the least error of a number without bounds that
    may spend sε, but for what is discrete of it.) And where a stream moves by more than the noise at every step, any shares s
    are off by the mean of 1/s, at least w/ε: nothing is better than `Uniform`, which is a fixed split.

    >>> policy = Adaptive(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1)).publish
    Fraction(1, 4)
    """

    memories: tuple[float, ...] = (0.8, 0.99)

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        self._epsilon, self._window, self._reach = epsilon, window, reach
        self._whole = window << 20
        self._spent = np.zeros(window, dtype=np.int64)  # of the last steps, by step modulo the window, in parts of ε
        self._step, self._last, self._pause, self._asked = -1, -1, 1, 0
        self._past: list[tuple[float, float]] = []
        self._values: Values | None = None
        self._noise = self._largest = self._highest = 0.0
        self._moved, self._waited = np.zeros((2, len(self.memories)))
        steps = np.arange(1, window + 1)
        self._waits = (steps - 1) / 2
        self._stale = math.sqrt(2 / math.pi) * np.concatenate([[0.0], np.sqrt(steps[:-1]).cumsum()]) / steps
        self._even = float(reach * window / epsilon)
        self._spread = self._even / steps

    def shares(self, step: int, remaining: Fraction) -> Shares:
        gone = np.arange(max(self._step + 1, step - self._window + 1), step + 1)
        self._spent[gone % self._window] = 0
        self._step = step
        if step - self._last < self._pause:
            return Shares()
        if self._last < 0:
            self._asked = max(self._whole // _FIRST, self._whole // self._window)
            return Shares(publish=self._epsilon * self._asked / self._whole)
        recent = self._spent[(step + 1 + np.arange(self._window - 1)) % self._window]
        held = np.append(recent[::-1].cumsum()[::-1], 0)  # what the windows hold that end at this step and at each after it
        times = np.arange(-(-self._window // self._pause))
        self._asked = int(((self._whole - held[times * self._pause]) // (times + 1)).min())
        return (
            Shares()
            if self._asked * self._window * 4 < self._whole
            else Shares(publish=self._epsilon * self._asked / self._whole)
        )

    def published(self, step: int, share: Fraction, values: Values) -> None:
        self._spent[step % self._window] = self._asked
        noise, waited = max(2 * float(self._reach / share) ** 2, _LEAST), step - self._last
        self._past = [*self._past[-3:], (float(np.mean(values)), noise)]
        weights = np.array([1 / each for _, each in self._past])
        level = max(float(weights @ [mean for mean, _ in self._past] / weights.sum()), 0.0)
        unsure = float(1 / math.sqrt(weights.sum()))
        self._highest = max(self._highest * _FORGOTTEN_LEVEL**waited, level - 2 * unsure)
        if self._values is not None:
            change, noises = float(np.mean((values - self._values) ** 2)), noise + self._noise
            before = self._largest * _FORGOTTEN_CHANGE**waited
            self._largest = max(before, (change - 9 * noises) / waited)
            weight = 1 / (noises + self._largest * waited)
            kept = np.array(self.memories) * (noises + before * waited) * weight  # what was seen weighs as if seen beside it, too
            self._moved = kept * self._moved + weight * (change - noises)
            self._waited = kept * self._waited + weight * waited
            drift = math.sqrt(max(float((self._moved / self._waited).max()), 0.0)) * self._stale
            most = max(level + unsure, self._highest)
            if 2 * most < self._even:
                drift = np.minimum(drift, most)
            best = 1 + int(np.argmin(self._spread + drift + min(level, _RISK * self._even) / _CALM * self._waits))
            self._pause = min(best, 2 * self._pause)
        self._values, self._noise, self._last = values, noise, step

    def state(self) -> list[Any]:
        spent = [[place, count] for place, count in enumerate(self._spent.tolist()) if count]
        numbers = [self._step, self._last, self._pause, self._noise, self._largest, self._highest]
        values = None if self._values is None else self._values.tolist()
        return [numbers, spent, [list(each) for each in self._past], values, self._moved.tolist(), self._waited.tolist()]

    def restore(self, state: list[Any]) -> None:
        numbers, spent, past, values, moved, waited = state
        self._step, self._last, self._pause, self._noise, self._largest, self._highest = numbers
        for place, count in spent:
            self._spent[place] = count
        self._past, self._values = [(mean, noise) for mean, noise in past], None if values is None else np.array(values)
        self._moved, self._waited = np.array(moved), np.array(waited)
