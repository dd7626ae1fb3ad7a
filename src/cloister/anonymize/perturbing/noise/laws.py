"""The laws that noise may have: drawn from, and known to the analyst, who needs their distribution function."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random

Floats = npt.NDArray[np.float64]

LAWS = ("normal", "laplace", "uniform")


@dataclass(frozen=True, kw_only=True)
class NoiseLaw:
    """The law of one column's noise: its shape, its standard deviation in the column's unit, and the step values were
    rounded to.

    Publish it beside the noised column: without it, nobody can correct for the noise, and keeping it secret protects little.

    >>> law = NoiseLaw(shape="normal", scale=10.0)
    >>> law.below(np.array([0.0, 10.0])).round(4).tolist()
    [0.5, 0.8413]
    >>> law.draw(3, Random.deterministic(1)).shape
    (3,)
    """

    shape: str = "normal"
    scale: float = 1.0
    mean: float = 0.0
    step: float = 0.0
    """The noised values are whole multiples of it; 0 where they were not rounded."""

    def __post_init__(self) -> None:
        check_one_of(self.shape, "law", LAWS, instead='law="normal"')
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InvalidParameter(
                f"scale={self.scale} is invalid", why="a standard deviation is finite and above 0", instead="scale=10"
            )

    @property
    def variance(self) -> float:
        """Of the noise, the rounding included."""
        return self.scale**2 + self.step**2 / 12

    def draw(self, n: int, random: Random) -> Floats:
        """n independent numbers of the law, before rounding. They are floating point: nothing here claims more than that."""
        if self.shape == "normal":
            return self.mean + self.scale * normals(n, random)
        chance = uniforms(n, random)
        if self.shape == "uniform":
            return self.mean + self.scale * math.sqrt(12) * (chance - 0.5)
        sides = np.where(chance < 0.5, 1.0, -1.0)
        return np.asarray(self.mean + self.scale / math.sqrt(2) * sides * np.log(2 * np.minimum(chance, 1 - chance)))

    def below(self, x: npt.ArrayLike) -> Floats:
        """The probability of noise up to x."""
        z = (np.asarray(x, dtype=np.float64) - self.mean) / self.scale
        if self.shape == "normal":
            return normal_below(z)
        if self.shape == "uniform":
            return np.asarray(np.clip(z / math.sqrt(12) + 0.5, 0.0, 1.0))
        half = 0.5 * np.exp(-math.sqrt(2) * np.abs(z))
        return np.asarray(np.where(z < 0, half, 1 - half))

    def below_mean(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
        """The mean of `below` between two points: the probability of noised values below one cell's end, from a whole bin.

        >>> law = NoiseLaw(scale=1e-9)
        >>> law.below_mean([-1.0], [3.0]).tolist()
        [0.75]
        """
        start, end = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        return np.asarray((self._summed(end - self.mean) - self._summed(start - self.mean)) / (end - start))

    def _summed(self, x: Floats) -> Floats:
        """An antiderivative of `below`, for mean 0; 0 far below."""
        if self.shape == "normal":
            z = x / self.scale
            return np.asarray(self.scale * (z * normal_below(z) + np.exp(-z * z / 2) / math.sqrt(2 * math.pi)))
        if self.shape == "uniform":
            half = self.scale * math.sqrt(3)
            return np.asarray(np.where(x > half, x, np.clip(x + half, 0, None) ** 2 / (4 * half)))
        width = self.scale / math.sqrt(2)
        return np.asarray(np.maximum(x, 0.0) + width / 2 * np.exp(-np.abs(x) / width))


def uniforms(n: int, random: Random) -> Floats:
    """n numbers strictly between 0 and 1: the middles of 2⁵³ cells.

    >>> bool(((0 < (u := uniforms(99, Random.deterministic(1)))) & (u < 1)).all())
    True
    """
    return np.asarray(((random.words(n) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def normals(n: int, random: Random) -> Floats:
    """n standard normal numbers (Box & Muller 1958)."""
    half = (n + 1) // 2
    radii, angles = np.sqrt(-2 * np.log(uniforms(half, random))), 2 * np.pi * uniforms(half, random)
    return np.concatenate([radii * np.cos(angles), radii * np.sin(angles)])[:n]


def normal_below(z: Floats) -> Floats:
    """The standard normal distribution function, to 1e-15.

    >>> normal_below(np.array([-1.96, 0.0, 1.96])).round(3).tolist()
    [0.025, 0.5, 0.975]
    """
    flat = np.asarray(z, dtype=np.float64).ravel()
    return np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in flat.tolist()]).reshape(np.shape(z))
