"""The sum of many independent privacy losses on one grid, by their Fourier transforms; its δ(ε), never below the truth.

The pieces are masses on the grid {k·h}; the sum of n of them has as its transform the product of theirs. Four things make that
sound and quick:

- *Tilting.* With K(θ) = ln E e^{θL}, every piece is multiplied by e^{θℓ − Kᵢ(θ)}, and the sum by e^{K(θ) − θℓ} again at the end.
  θ is chosen where the Chernoff bound e^{K(θ) − θε} ≈ δ is least, so the part of the distribution that δ depends on lies in the
  middle, with the full relative precision of a double, be δ = 10⁻⁶ or 10⁻²⁰⁰.
- *A window.* Chernoff bounds on the tilted sum give an interval outside which its mass is below τ on either side. The transform
  is as long as that window: what lies outside is wrapped into it, which only adds to δ, and τ is added for it besides.
- *Few frequencies.* The product of a thousand transforms is far below 10⁻³⁰ at almost all frequencies. Since each factor is at
  most 1, what has fallen so low stays so; after the first few dozen pieces only the surviving frequencies are evaluated.
- *A bound on round-off.* All masses are nonnegative. A computed transform of a piece differs from the true one by at most
  8·u·log₂N in the L2 norm relative to √N (Higham 2002, Theorem 24.2, with room), and factors are at most 1, so the errors of the
  factors add; Parseval carries them back to the masses; Cauchy–Schwarz to δ. That error is added to δ, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cloister.privacy.pairs import UNIT, Floats, Gridded, TooWide
from cloister.privacy.precision import lowest_between

_TAU = 1e-13  # tilted mass outside the window, on either side
_DEAD = 1e-30  # a product of transforms below this is zero from there on; N of them together weigh less than 1e-24
_CHUNK = 32
_LONGEST = 2**19


class Spectrum:
    """The sum of `counts[i]` independent losses of the distribution `pieces[i]`, on multiples of `step`."""

    def __init__(self, pieces: Sequence[Gridded], counts: Sequence[int], step: float) -> None:
        self._step = step
        self._counts = np.array(counts, dtype=np.float64)
        self._repeats = list(counts)
        self._masses = [piece.mass for piece in pieces]
        self._firsts = [piece.first for piece in pieces]
        sizes = [mass.size for mass in self._masses]
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        self._sizes = np.array(sizes)
        self._flat = np.concatenate(self._masses)
        self._place = np.concatenate([np.arange(size) for size in sizes]) * step
        self._first = np.array(self._firsts, dtype=np.float64) * step
        self._reach = (self._sizes - 1) * step
        self.infinite = _up(
            -math.expm1(sum(n * math.log1p(-min(p.infinite, 1 - UNIT)) for n, p in zip(counts, pieces, strict=True)))
        )
        self.lowest = sum(n * first for n, first in zip(counts, self._firsts, strict=True))
        self.highest = sum(n * (p.first + p.mass.size - 1) for n, p in zip(counts, pieces, strict=True))
        self._known: dict[float, _Tilted] = {}

    def delta(self, epsilon: float) -> float:
        """The least δ, rounded up, at one ε."""
        if epsilon >= (self.highest + 1) * self._step:
            return self.infinite
        return min(1.0, self._at(self._saddle(epsilon)).delta(epsilon) + self.infinite)

    def epsilon(self, delta: float) -> float:
        """The least ε, rounded up, at one δ; infinite where δ is not above the mass of infinite loss."""
        left = math.nextafter((delta - self.infinite) * (1 - 4 * UNIT), 0.0)
        if left <= 0:
            return math.inf
        cost = -math.log(left)
        theta = self._tilt(lambda tilt: (self._log_moment(tilt) + cost) / tilt, positive=True)
        best = self.highest * self._step
        for _ in range(4):
            tilted = self._at(theta)
            best = _solve(tilted, left, best)
            if best == 0 or tilted.share_of_error(best) < 1e-4:
                break
            # The least Chernoff bound lay where the tilted sum is all but one point: a tilt to just below this ε is better.
            theta = self._saddle(best * (1 - 1e-4))
        return _up(best)

    def _log_moments(self, theta: float) -> Floats:
        """ln Σ mass·e^{θℓ} of each piece."""
        shift = self._reach if theta > 0 else np.zeros_like(self._reach)
        weights = self._flat * np.exp(theta * (self._place - np.repeat(shift, self._sizes)))
        sums: Floats = np.add.reduceat(weights, self._starts)
        return np.asarray(np.log(np.maximum(sums, 1e-300)) + theta * (self._first + shift))

    def _log_moment(self, theta: float) -> float:
        return float(self._counts @ self._log_moments(theta))

    def _saddle(self, epsilon: float) -> float:
        return self._tilt(lambda theta: self._log_moment(theta) - theta * epsilon)

    def _tilt(self, cost: Callable[[float], float], *, positive: bool = False) -> float:
        """The θ where a function with one valley is lowest, to a few per cent; how well it is found affects precision only."""
        spread = math.sqrt(max(float(self._variances(0.0).sum()), 1e-300))
        left, right = math.log(1e-3 / spread), math.log(1e3 / spread)
        found = lowest_between(lambda log: cost(math.exp(log)), left, right, width=0.05, ratio=(math.sqrt(5) - 1) / 2)
        theta = math.exp(found)
        return theta if positive or cost(theta) < cost(0.0) else 0.0

    def _variances(self, theta: float) -> Floats:
        """What each kind of piece adds to the variance of the tilted sum."""
        logs = np.repeat(self._log_moments(theta) - theta * self._first, self._sizes)
        weights = self._flat * np.exp(theta * self._place - logs)
        mean = np.add.reduceat(weights * self._place, self._starts)
        centred = (self._place - np.repeat(mean, self._sizes)) ** 2
        return np.asarray(self._counts * np.add.reduceat(weights * centred, self._starts))

    def _at(self, theta: float) -> _Tilted:
        if theta not in self._known:
            self._known[theta] = self._transform(theta)
        return self._known[theta]

    def _window(self, theta: float, log_moment: float, variances: Floats) -> tuple[int, int]:
        spread = math.sqrt(max(float(variances.sum()), self._step**2 * 1e-6))
        low, high = -math.inf, math.inf
        room = -math.log(_TAU) + 0.1
        for pull in (4 / spread, 7.5 / spread, 12 / spread, 2 / spread, 1 / spread, 0.5 / spread):
            if pull < 4 / spread and high - low < _LONGEST / 2 * self._step:
                break  # the gentle pulls are for heavy tails (samples), whose moments explode under the others
            high = min(high, (self._log_moment(theta + pull) - log_moment + room) / pull)
            low = max(low, -(self._log_moment(theta - pull) - log_moment + room) / pull)
        return max(self.lowest, math.floor(low / self._step)), min(self.highest, math.ceil(high / self._step))

    def _transform(self, theta: float) -> _Tilted:
        logs = self._log_moments(theta)
        log_moment = float(self._counts @ logs)
        variances = self._variances(theta)
        low, high = self._window(theta, log_moment, variances)
        size = max(1024, 1 << (high - low).bit_length())
        if size > _LONGEST:
            raise TooWide
        total, error = _product(self._rows(theta, logs, size), self._repeats, np.argsort(-variances).tolist(), size)
        masses = np.fft.irfft(total, size)
        error += 8 * UNIT * math.log2(size)
        masses = np.roll(masses, (self.lowest - low) % size)
        # What the tilting itself rounds: the argument of each exponential, and the sum of their logarithms.
        argument = theta * (np.abs(self._first) + self._reach) + np.abs(logs)
        growth = float(self._counts @ (UNIT * (16 + 8 * argument)))
        loss = np.arange(low, low + size, dtype=np.float64) * self._step
        return _Tilted(theta, log_moment, loss, np.maximum(masses, 0.0), 2 * error, growth)

    def _rows(self, theta: float, logs: Floats, size: int) -> list[Floats]:
        """The tilted masses of each piece, its first grid point at place 0, wrapped to the length of the transform."""
        tilted = self._flat * np.exp(theta * self._place - np.repeat(logs - theta * self._first, self._sizes))
        rows = [tilted[start : start + n] for start, n in zip(self._starts.tolist(), self._sizes.tolist(), strict=True)]
        return [row if row.size <= size else np.pad(row, (0, -row.size % size)).reshape(-1, size).sum(axis=0) for row in rows]


class _Tilted:
    """The masses of a tilted sum within its window, and what is known of their error."""

    def __init__(self, theta: float, log_moment: float, loss: Floats, mass: Floats, error: float, growth: float) -> None:
        self._theta, self._log_moment, self._loss, self._mass = theta, log_moment, loss, mass
        self._error, self._growth = error, growth + 4 * UNIT * loss.size

    def delta(self, epsilon: float) -> float:
        """Σ over ℓ > ε of (1 − e^{ε−ℓ})·p(ℓ), with everything that may be missing from it added."""
        inside, error = self._parts(epsilon)
        exponent = self._log_moment - self._theta * epsilon
        rounding = self._growth + 8 * UNIT * (abs(self._log_moment) + self._theta * abs(epsilon))
        return math.inf if exponent > 700 else _up((inside + error) * math.exp(exponent + rounding))

    def share_of_error(self, epsilon: float) -> float:
        """How much of δ is only there because it may be missing."""
        inside, error = self._parts(epsilon)
        return error / (inside + error)

    def _parts(self, epsilon: float) -> tuple[float, float]:
        start = int(np.searchsorted(self._loss, epsilon, side="right"))
        above = self._loss[start:] - epsilon
        weight = -np.expm1(-above) * np.exp(-self._theta * above)
        inside, length = float((weight * self._mass[start:]).sum()), math.sqrt(float((weight * weight).sum()))
        return inside, self._error * length + 2 * _TAU


def _solve(tilted: _Tilted, delta: float, high: float) -> float:
    """The least ε up to `high` whose δ is small enough, to ten digits, from above."""
    if tilted.delta(0.0) <= delta:
        return 0.0
    low, below, above = 0.0, math.log(tilted.delta(0.0) / delta), -math.inf
    turn = 0
    while high - low > 1e-10 * high:
        # ln δ is nearly straight, so the chord mostly lands next to the root; every third step halves, whatever the shape.
        turn += 1
        chord = below / (below - above) if turn % 3 and math.isfinite(above) else 0.5
        middle = low + (high - low) * min(max(chord * (1 + 1e-7 * (1 if turn % 3 == 1 else -1)), 1e-6), 1 - 1e-6)
        found = tilted.delta(middle)
        excess = math.log(found / delta) if 0 < found < math.inf else math.copysign(math.inf, found - delta)
        if found <= delta:
            high, above = middle, excess
        else:
            low, below = middle, excess if math.isfinite(excess) else below
    return high


def _product(rows: list[Floats], counts: list[int], order: list[int], size: int) -> tuple[NDArray[np.complex128], float]:
    """The product of the transforms of rows, each to its power, and a bound on its error in the L2 norm over √N.

    `order` begins with the rows of largest variance, whose transforms fall fastest.
    """
    circle = np.exp(-2j * np.pi * np.arange(size) / size)
    total = np.ones(size // 2 + 1, dtype=np.complex128)
    alive = np.arange(size // 2 + 1)
    error = 0.0
    for at in range(0, len(order), _CHUNK):
        chunk = order[at : at + _CHUNK]
        width = max(rows[i].size for i in chunk)
        block = np.zeros((len(chunk), width))
        for line, i in enumerate(chunk):
            block[line, : rows[i].size] = rows[i]
        if width * alive.size * (8 + len(chunk) / 2) < len(chunk) * size * math.log2(size):  # the cheaper of the two, roughly
            waves = circle[np.outer(np.arange(width), alive) % size]
            factors = block @ waves.real + 1j * (block @ waves.imag)
            each = 2 * UNIT * (width + 8) * math.sqrt(2 * alive.size / size)
        else:
            factors = np.fft.rfft(block, size, axis=1)[:, alive]
            each = 8 * UNIT * math.log2(size)
        for line, i in enumerate(chunk):
            error += counts[i] * (each + 8 * UNIT)
            total[alive] *= _power(factors[line], counts[i])
        faint = np.abs(total[alive]) < _DEAD
        total[alive[faint]] = 0
        alive = alive[~faint]
    return total, error


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    result = values if count & 1 else np.ones_like(values)
    while count := count >> 1:
        values = values * values
        if count & 1:
            result = result * values
    return result


def _up(value: float) -> float:
    return math.nextafter(value * (1 + 4 * UNIT), math.inf) if value else 0.0
