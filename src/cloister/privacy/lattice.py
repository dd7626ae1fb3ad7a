"""Worst pairs of integer noise, and their privacy loss on a grid: discrete Laplace and discrete Gaussian.

Their losses are atoms. Where there are more of them than a grid can tell apart (a sensitivity of a million, a σ of 10⁹),
consecutive integers are taken together in blocks: a block's P-mass and Q-mass go to the two ends of its range of losses, so that
both stay what they were. That is the rounding of `pairs` once more, on points of our own choosing, and it dominates by the same
argument.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cloister.privacy.pairs import HOPELESS, UNIT, Atoms, Floats, Gridded, Symmetric, size_of
from cloister.privacy.rational import float_down, float_up

_DISCRETE_REACH = 14.0  # the mass beyond is below 1e-43, which is what δ of a discrete Gaussian is known to
_BLOCKS = 256  # blocks in one standard deviation of a wide discrete Gaussian
_MOST_ATOMS = 4096


@dataclass(frozen=True, slots=True)
class DiscreteLaplacePair(Symmetric):
    """Discrete Laplace noise, P(x) ∝ e^{−|x|/scale}, on an integer that moves by `sensitivity`."""

    scale: Fraction
    sensitivity: int = 1

    @property
    def variance(self) -> float:
        return min(size_of(self.sensitivity / self.scale) ** 2, 3.0)

    @property
    def largest(self) -> Fraction | None:
        return self.sensitivity / self.scale

    def on_grid(self, step: float) -> Gridded:
        """The two ends, and the integers strictly between: blocks of equal width, each split by its P-mass and Q-mass."""
        unit = float_up(1 / self.scale)
        width = self.sensitivity
        epsilon = float_up(width * Fraction(unit))
        top = 1 / (1 + math.exp(-unit))
        ends = np.array([epsilon, -epsilon]), np.array([top, top * math.exp(-epsilon)])
        count = -(-(width - 1) // _MOST_ATOMS) if width > 1 else 1
        start = np.arange(1, width, count, dtype=np.float64)
        stop = np.minimum(start + (count - 1), width - 1)
        length = -np.expm1(-unit * (stop - start + 1)) * top
        inner = _split(
            low=(width - 2 * stop) * unit,
            high=(width - 2 * start) * unit,
            p=np.exp(-unit * start) * length,
            q=np.exp(-unit * (width - stop)) * length,
        )
        loss, mass = np.concatenate([ends[0], inner[0]]), np.concatenate([ends[1], inner[1]])
        return Atoms(loss, mass * (1 + 64 * UNIT * (1 + epsilon))).on_grid(step)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianPair(Symmetric):
    """Discrete Gaussian noise, P(x) ∝ e^{−x²/2σ²}, on an integer that moves by `sensitivity`."""

    sigma_squared: Fraction
    sensitivity: int = 1

    @property
    def variance(self) -> float:
        return size_of(self.sensitivity**2 / self.sigma_squared)

    @property
    def largest(self) -> Fraction | None:
        return None if self.sensitivity else Fraction(0)

    def on_grid(self, step: float) -> Gridded:
        """Atoms at every integer while σ is small; else blocks of B integers, whose sums are Taylor's at the middle.

        With the middle at tσ and B ≤ σ/256, the first term left out is below 8·10⁻¹⁴ of the block for |t| ≤ 14.
        """
        if (
            self.sensitivity**2 > 2 * HOPELESS * self.sigma_squared
        ):  # it hides nothing, and its grid would be as long as the shift
            return Gridded(0, np.zeros(1), 1.0)
        sigma, shift = math.sqrt(float_down(self.sigma_squared)), self.sensitivity
        block = max(1, int(sigma / _BLOCKS))
        reach = math.ceil((_DISCRETE_REACH * sigma + 2) / block)
        blocks = np.arange(-reach, reach + 1 + math.ceil(shift / block))
        # Blocks are centred on multiples of B, and half an integer off where B is even.
        middle: Floats = blocks.astype(np.float64) * block - (0.5 if block % 2 == 0 else 0.0)
        p, q = _block_mass(middle / sigma, block, sigma), _block_mass((middle - shift) / sigma, block, sigma)
        total = sigma * math.sqrt(2 * math.pi) if block > 1 else float(_block_mass(middle / sigma, 1, sigma).sum())
        keep = (np.abs(middle) <= _DISCRETE_REACH * sigma + 1) & (p > 0)
        half = (block - 1) / 2
        rate = shift / (sigma * sigma)
        low, high = rate * (shift / 2 - (middle + half)), rate * (shift / 2 - (middle - half))
        loss, mass = _split(
            low=low[keep], high=high[keep], p=p[keep] / total, q=q[keep] / total, precision=1e-12 if block > 1 else 0
        )
        error = 64 * UNIT * (1 + _DISCRETE_REACH**2 + rate * (shift + _DISCRETE_REACH * sigma))
        beyond = math.exp(-(_DISCRETE_REACH**2) / 2)
        loss, mass = np.append(loss, loss.min()), np.append(mass * (1 + 1e-12 + error), beyond)
        return Atoms(loss + error * np.abs(loss), mass, beyond).on_grid(step)


def _split(*, low: Floats, high: Floats, p: Floats, q: Floats, precision: float = 0.0) -> tuple[Floats, Floats]:
    """Blocks of losses within [low, high], of masses p and q, as atoms at their ends with the same masses."""
    width = high - low
    flat = width <= 0
    span = np.where(flat, 1.0, -np.expm1(-width))
    error = (16 * UNIT * (2 + np.abs(low)) + 2 * precision) * p / span
    top = np.where(flat, 0.0, np.clip((p - np.exp(np.minimum(low, 700.0)) * q) / span, 0, p) + error)
    bottom = np.where(flat, p, np.clip(p - top + error, 0, p) + error)
    return np.concatenate([low, high[~flat]]), np.concatenate([bottom, top[~flat]])


def _block_mass(t: Floats, block: int, sigma: float) -> Floats:
    """The sum of e^{−x²/2σ²} over B consecutive integers around tσ, by its Taylor series there."""
    bell = np.exp(-t * t / 2)
    if block == 1:
        return bell
    second = block * (block**2 - 1) / 24 / sigma**2
    fourth = block * (block**2 - 1) * (3 * block**2 - 7) / 5760 / sigma**4
    return np.asarray(bell * (block + second * (t**2 - 1) + fourth * (t**4 - 6 * t**2 + 3)))
