"""Budget over time: how much of a window's ε a step spends on looking and on publishing.

A policy sees public things only: the step, what the window still allows, and what was released. It answers with two shares:
`look` pays for a noisy comparison of the step with the last release, `publish` for new values. With `look` above 0 the step
publishes only where the comparison finds more change than the new noise would cost; without it, a `publish` above 0 always does.
Whatever a policy asks for, a `SlidingFilter` holds every window's sum within ε, so no policy can break the guarantee, only
waste it.

==============  ==========================================================================================
`Uniform`       ε/w at every step
`Sampled`       kε/w at every k-th step (k divides w, or the last of a window gets less)
`Distribution`  BD of Kellaris, Papadopoulos, Xiao & Papadias (2014): ε/2w to look, half of what remains of the other ε/2
`Absorption`    BA of the same: ε/2w to look; skipped shares are taken up, and as many steps afterwards are silent
`Adaptive`      ours: nothing to look; the next publishing step and its share follow from what was published
==============  ==========================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Values = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """What a step may spend: to look whether much has changed, and to publish."""

    look: Fraction = Fraction(0)
    publish: Fraction = Fraction(0)


class Policy(Protocol):
    """Decides from public things alone."""

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """A new stream."""

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """What this step may spend, where the window allows `remaining`."""

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """What was published, and for which share; not called for a step that publishes nothing."""


@dataclass
class Uniform:
    """ε/w at every step.

    >>> policy = Uniform(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1)).publish
    Fraction(1, 4)
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """See `Policy`."""
        self._share = epsilon / window

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """See `Policy`."""
        return Shares(publish=self._share)

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """See `Policy`."""


@dataclass
class Sampled:
    """kε/w at every k-th step.

    >>> policy = Sampled(every=2); policy.begin(Fraction(1), 4, 1)
    >>> [policy.shares(step, Fraction(1)).publish for step in range(3)]
    [Fraction(1, 2), Fraction(0, 1), Fraction(1, 2)]
    """

    every: int

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """See `Policy`."""
        if not 1 <= self.every <= window:
            raise InvalidParameter("every is invalid", why="it lies between 1 and the window", instead=f"every={window}")
        self._share = epsilon * self.every / window

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """See `Policy`."""
        return Shares() if step % self.every else Shares(publish=min(self._share, remaining))

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """See `Policy`."""


@dataclass
class Distribution:
    """Budget distribution (BD): ε/2w to look; to publish, half of what the window's other half of ε still allows.

    >>> policy = Distribution(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1))
    Shares(look=Fraction(1, 8), publish=Fraction(1, 4))
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """See `Policy`."""
        self._look, self._half, self._window = epsilon / (2 * window), epsilon / 2, window
        self._spent: dict[int, Fraction] = {}

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """See `Policy`."""
        self._spent = {past: share for past, share in self._spent.items() if past > step - self._window}
        return Shares(self._look, (self._half - sum(self._spent.values(), Fraction(0))) / 2)

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """See `Policy`."""
        self._spent[step] = share


@dataclass
class Absorption:
    """Budget absorption (BA): ε/2w to look; a step that publishes takes up the ε/2w of the steps that were skipped since the last
    one, and as many steps after it stay silent.

    >>> policy = Absorption(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1))
    Shares(look=Fraction(1, 8), publish=Fraction(1, 8))
    """

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """See `Policy`."""
        self._unit, self._window = epsilon / (2 * window), window
        self._last, self._silent_until = -1, -1

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """See `Policy`."""
        if step <= self._silent_until:
            return Shares(look=self._unit)
        return Shares(self._unit, self._unit * min(step - self._silent_until, self._window))

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """See `Policy`."""
        self._last, self._silent_until = step, step + int(share / self._unit) - 1


@dataclass
class Adaptive:
    """Publishes as rarely as the changes allow, each time with the shares of the steps since the last: the noise of a release
    falls with the pause before it, what is stale in between grows with it.

    From the differences of what was published, less what their noise explains, follows how fast the stream moves: s² a step, the
    larger of a mean with a short memory (some five releases, so that a sudden move is met) and of one with a long memory (some
    hundred, so that a calm season is not taken for the end of all seasons). The next pause k is the one with the least sum of the
    noise w/kε and of √(2/π)·s·√j, the mean drift of a random walk, averaged over its k steps; it is at most one step longer
    than the last. Nothing is spent on looking, and a pause tells nothing: it follows from what was published.

    >>> policy = Adaptive(); policy.begin(Fraction(1), 4, 1); policy.shares(0, Fraction(1)).publish
    Fraction(1, 4)
    """

    memories: tuple[float, ...] = (0.8, 0.99)

    def begin(self, epsilon: Fraction, window: int, reach: int) -> None:
        """See `Policy`."""
        self._unit, self._window, self._reach = epsilon / window, window, reach
        self._last, self._pause = -1, 1
        self._values: Values | None = None
        self._noise = 0.0
        self._moved, self._waited = np.zeros((2, len(self.memories)))
        steps = np.arange(1, window + 1)
        self._stale = math.sqrt(2 / math.pi) * np.concatenate([[0.0], np.sqrt(steps[:-1]).cumsum()]) / steps
        self._spread = float(reach / self._unit) / steps

    def shares(self, step: int, remaining: Fraction) -> Shares:
        """See `Policy`."""
        waited = step - self._last
        return Shares() if waited < self._pause else Shares(publish=min(self._unit * min(waited, self._window), remaining))

    def published(self, step: int, share: Fraction, values: Values) -> None:
        """See `Policy`."""
        noise = 2 * float(self._reach / share) ** 2
        if self._values is not None:
            memories = np.array(self.memories)
            self._moved = memories * self._moved + float(np.mean((values - self._values) ** 2)) - noise - self._noise
            self._waited = memories * self._waited + step - self._last
            speed = math.sqrt(max(float((self._moved / self._waited).max()), 0.0))
            self._pause = min(self._pause + 1, 1 + int(np.argmin(self._spread + speed * self._stale)))
        self._values, self._noise, self._last = values, noise, step
