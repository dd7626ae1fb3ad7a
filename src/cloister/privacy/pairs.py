"""Worst pairs of distributions, and their privacy loss on a grid.

A mechanism is as private as its worst pair of neighbouring outputs, P with a unit and Q without it. All that composition needs to
know of a pair is its *privacy loss*, L = ln(P(x)/Q(x)) for x drawn from P: a number, or +∞ where Q(x) = 0. Each class here is one
such pair; it knows its loss exactly, and puts it on the grid {k·h} without making it smaller.

Rounding argument. A loss ℓ between two grid points l < u = l + h becomes u with probability (1 − e^{−(ℓ−l)})/(1 − e^{−h}), else
l. Both the P-mass and the Q-mass (the mean of e^{−L}) stay what they were, so the gridded pair is a finer experiment than the
true one: merging the two points again gives it back, and by data processing every δ(ε) of the gridded pair is at least the true
one ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022). A pair that dominates so dominates under composition
too (Zhu, Dong & Wang 2022, Theorem 10). Cut-off tails go upwards: the lower one to the lowest point kept, the upper one to +∞.
Every mass then grows by a bound on its floating-point error; more mass never makes δ smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cloister.errors import NotConvertible
from cloister.privacy.rational import float_up

Floats = NDArray[np.float64]

UNIT = 2.0**-53
"""The unit roundoff of a double."""

_REACH = 37.5  # in standard deviations; the mass beyond is below 1e-307
_LONGEST = 2**22
HOPELESS = 10**4  # a single release of such an ε hides nothing, and is counted as an infinite loss


class TooWide(Exception):
    """This grid is too fine for memory: the caller takes a coarser one."""


@dataclass(frozen=True, slots=True, eq=False)
class Gridded:
    """Masses at (first + i)·h for i = 0, 1, …, and at +∞."""

    first: int
    mass: Floats
    infinite: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """A loss of finitely many values."""

    loss: Floats
    mass: Floats
    infinite: float = 0.0

    def on_grid(self, step: float) -> Gridded:
        """Each atom split between its two neighbours on the grid."""
        if self.loss.size == 0:
            return Gridded(0, np.zeros(1), self.infinite)
        below = np.floor(self.loss / step)
        first = int(below.min())
        shift = self.loss - below * step
        error = 4 * UNIT * (np.abs(self.loss) / step + 2)
        up = np.clip(np.expm1(-shift) / math.expm1(-step), 0, 1)
        down = np.clip(np.exp(-shift) * np.expm1(shift - step) / math.expm1(-step), 0, 1)
        place = (below - first).astype(np.int64)
        size = int(place.max()) + 2
        if size > _LONGEST:
            raise TooWide
        mass = np.bincount(place, self.mass * (down + error), size) + np.bincount(place + 1, self.mass * (up + error), size)
        return Gridded(first, np.asarray(mass, dtype=np.float64), self.infinite)


class Pair(Protocol):
    """What composition asks of a pair; each is hashable, so that equal ones are found and their transform is taken once."""

    @property
    def variance(self) -> float:
        """Roughly, the variance of the loss: it chooses the grid, and no bound depends on it."""

    @property
    def largest(self) -> Fraction | None:
        """The largest loss, rounded up, where there is one."""

    @property
    def reversed(self) -> Pair:
        """The pair (Q, P); itself where the two are alike."""

    def on_grid(self, step: float) -> Gridded:
        """The loss on the multiples of `step`, never smaller than it is."""


class Symmetric:
    """A pair whose two distributions are alike: it is its own reverse."""

    __slots__ = ()

    @property
    def reversed(self) -> Self:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True)
class LaplacePair(Symmetric):
    """Laplace noise of scale 1/ε on a number that moves by 1: the loss is ±ε at the ends, with density ¼e^{(ℓ−ε)/2} between.

    A vector whose L1 norm moves by 1 is covered by pure ε-DP (`RandomizedResponsePair`), which the theorem for one number does
    not reach.
    """

    epsilon: Fraction

    @property
    def variance(self) -> float:
        epsilon = size_of(self.epsilon)
        if epsilon < 0.1:
            return epsilon**2
        square = epsilon**2 - 2 * epsilon + 4 - math.exp(-epsilon) * (2 * epsilon + 4)
        return square - (epsilon + math.expm1(-epsilon)) ** 2 if epsilon < 1e3 else 3.0

    @property
    def largest(self) -> Fraction | None:
        return self.epsilon

    def on_grid(self, step: float) -> Gridded:
        return _laplace_grids(np.array([float_up(self.epsilon)]), step)[0]


@dataclass(frozen=True, slots=True)
class GaussianPair(Symmetric):
    """N(0, 1) against N(μ, 1): the loss is N(μ²/2, μ²). Gaussians compose to one Gaussian, so a batch holds at most one of these.

    Being one, it is rounded up to the next grid point, which costs at most one step of ε in all.
    """

    mu_squared: Fraction

    @property
    def variance(self) -> float:
        return size_of(self.mu_squared)

    @property
    def largest(self) -> Fraction | None:
        return None if self.mu_squared else Fraction(0)

    def on_grid(self, step: float) -> Gridded:
        if self.mu_squared > 2 * HOPELESS:
            return Gridded(0, np.zeros(1), 1.0)
        mu = math.nextafter(math.sqrt(float_up(self.mu_squared)), math.inf)
        mean = mu * mu / 2
        first, last = math.floor((mean - 9 * mu) / step), math.ceil((mean + _REACH * mu) / step)
        if last - first > _LONGEST:
            raise TooWide
        z = (np.arange(first, last + 1) * step - mean) / mu
        tail = np.array([math.erfc(value) for value in (np.abs(z) / math.sqrt(2)).tolist()]) / 2
        error = UNIT * (16 + 8 * (z * z + mean)) * tail
        left, right = tail[:-1], tail[1:]
        between = np.where(z[:-1] >= 0, left - right, np.where(z[1:] <= 0, right - left, 1 - left - right))
        mass = np.empty(tail.size)
        mass[0] = tail[0] + error[0]
        mass[1:] = np.maximum(between, 0) + error[:-1] + error[1:]
        return Gridded(first, mass, float(tail[-1] + error[-1]))


@dataclass(frozen=True, slots=True)
class RandomizedResponsePair(Symmetric):
    """The worst pair of all (ε, δ)-private mechanisms: with probability δ the truth, else a loss of ±ε with odds e^ε : 1.

    Theorem: Kairouz, Oh & Viswanath (2015).
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    @property
    def variance(self) -> float:
        epsilon = size_of(self.epsilon)
        return epsilon**2 * (1 - math.tanh(epsilon / 2) ** 2) + 1e-6 * min(epsilon, 1.0) ** 2

    @property
    def largest(self) -> Fraction | None:
        return None if self.delta else self.epsilon

    def on_grid(self, step: float) -> Gridded:
        epsilon, kept = float_up(self.epsilon), float_up(1 - self.delta)
        odds = math.exp(-epsilon)
        mass = np.array([odds, 1.0]) * (kept / (1 + odds))
        return Atoms(np.array([-epsilon, epsilon]), mass, float_up(self.delta)).on_grid(step)


@dataclass(frozen=True, slots=True)
class FinitePair:
    """Any two distributions over finitely many outputs, given exactly."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    @property
    def variance(self) -> float:
        atoms = self._atoms()
        if atoms.loss.size == 0:
            return 0.0
        mean = float((atoms.loss * atoms.mass).sum())
        return float(((atoms.loss - mean) ** 2 * atoms.mass).sum()) + 1e-6 * float(np.abs(atoms.loss).max()) ** 2

    @property
    def largest(self) -> Fraction | None:
        """In either direction: an output that only one of the two can give has an infinite loss in one of them."""
        if any((not p) != (not q) for p, q in zip(self.p, self.q, strict=True)):
            return None
        return Fraction(float(np.abs(self._atoms().loss).max(initial=0.0))) if self.p != self.q else Fraction(0)

    @property
    def reversed(self) -> Pair:
        return FinitePair(self.q, self.p)

    def on_grid(self, step: float) -> Gridded:
        return self._atoms().on_grid(step)

    def _atoms(self) -> Atoms:
        both = [(p, q) for p, q in zip(self.p, self.q, strict=True) if p and q]
        loss = np.array([_log_up(p / q) for p, q in both], dtype=np.float64)
        mass = np.array([float_up(p) for p, _ in both], dtype=np.float64)
        return Atoms(loss, mass, float_up(sum((p for p, q in zip(self.p, self.q, strict=True) if not q), Fraction(0))))


def grid_all(pairs: Sequence[Pair], step: float) -> list[Gridded]:
    """`on_grid` of each pair, the Laplace ones all at once."""
    hopeless = [pair.largest is not None and pair.largest > HOPELESS for pair in pairs]
    laplace = [i for i, pair in enumerate(pairs) if isinstance(pair, LaplacePair) and not hopeless[i]]
    found = {i: Gridded(0, np.zeros(1), 1.0) for i, lost in enumerate(hopeless) if lost}
    if laplace:
        epsilons = np.array([float_up(pair.largest or Fraction(0)) for pair in (pairs[i] for i in laplace)])
        found.update(zip(laplace, _laplace_grids(epsilons, step), strict=True))
    try:
        return [found[i] if i in found else pair.on_grid(step) for i, pair in enumerate(pairs)]
    except OverflowError:
        raise NotConvertible(
            "The loss was not computed",
            why="its noise is beyond what a float holds",
            instead="a smaller scale, in the same ratio",
        ) from None


def _laplace_grids(epsilon: Floats, step: float) -> list[Gridded]:
    """Laplace losses, many at once, in closed form.

    With t = ℓ − l, the mass between two grid points splits into differences of cosh(t/2) and of cosh((h − t)/2), and a difference
    of hyperbolic cosines is a product of sines, in which nothing cancels. Where an interval is cut by an end of the support, t is
    known to a few roundings of ε; that is what `error` covers.
    """
    if step > 16:
        return [Atoms(np.array([each]), np.ones(1)).on_grid(step) for each in epsilon.tolist()]
    first = np.floor(-epsilon / step).astype(np.int64)
    size = np.floor(epsilon / step).astype(np.int64) + 2 - first
    if int(size.sum()) > _LONGEST * 4:
        raise TooWide
    begin = np.cumsum(size) - size
    place = np.arange(int(size.sum())) - np.repeat(begin, size)
    low = (np.repeat(first, size) + place) * step
    ends = np.repeat(epsilon, size)
    start, stop = np.clip(-ends - low, 0, step), np.clip(ends - low, 0, step)
    whole = (start == 0) & (stop == step)
    thickness = np.sinh((stop - start) / 4) * np.exp((low - ends) / 2) / -math.expm1(-step)
    thickness[stop <= start] = 0
    error = 8 * UNIT * (ends / step + 2) * np.where(whole, 0, step * np.exp((low - ends) / 2) / -math.expm1(-step))
    to_up = 2 * np.sinh((stop + start) / 4) * thickness + error
    mass = 2 * math.exp(-step / 2) * np.sinh((2 * step - start - stop) / 4) * thickness + error
    last = np.ones(mass.size, dtype=bool)
    last[begin + size - 1] = False  # the last point of a piece begins no interval
    mass *= last
    mass[1:] += (to_up * last)[:-1]
    for sign, atom in ((-1, np.exp(-epsilon) / 2), (1, np.full(epsilon.size, 0.5))):
        index = np.floor(sign * epsilon / step)
        shift = sign * epsilon - index * step
        slack = 4 * UNIT * (epsilon / step + 2)
        at = begin + (index.astype(np.int64) - first)
        mass[at] += atom * (np.clip(np.exp(-shift) * np.expm1(shift - step) / math.expm1(-step), 0, 1) + slack)
        mass[at + 1] += atom * (np.clip(np.expm1(-shift) / math.expm1(-step), 0, 1) + slack)
    return [Gridded(int(f), mass[b : b + n]) for f, b, n in zip(first.tolist(), begin.tolist(), size.tolist(), strict=True)]


def size_of(value: Fraction) -> float:
    """A parameter as a float, for choosing a grid: rounded up, and never too large to be squared."""
    return min(float_up(value), 1e100)


def _log_up(ratio: Fraction) -> float:
    near = math.log(ratio.numerator) - math.log(ratio.denominator)
    if abs(near) < 1:  # the difference of two long logarithms loses what a ratio near 1 keeps
        near = math.log1p(float(ratio - 1))
    size = 4 * UNIT * (abs(near) + (0 if abs(near) < 1 else math.log(ratio.numerator) + math.log(ratio.denominator)))
    return math.nextafter(near + size, math.inf)
